"""The tasks of the paper, each with its data and its network."""

from attnpaths.tasks import images, markov, oneshot

__all__ = ["images", "markov", "oneshot"]
