"""The tasks of the paper, each with its data and its network."""

from attnpaths.tasks import markov

__all__ = ["markov"]
