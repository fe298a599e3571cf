"""attnpaths: attention paths in a statistical mechanics theory of transformers.

A transformer whose attention is fixed sees its input through H^L attention paths; learning, at
finite width, chooses how to combine them. Importing this package switches JAX to float64, and
changes nothing else.
"""

import importlib
from typing import TYPE_CHECKING

import jax

# The theory minimises an action to 1e-8 and better: float32 does not do.
jax.config.update("jax_enable_x64", True)

from attnpaths import kernels, paths, theory  # noqa: E402
from attnpaths.network import (  # noqa: E402
    Network,
    Weights,
    effective_weights,
    empirical_order_parameter,
)
from attnpaths.problem import Problem  # noqa: E402

if TYPE_CHECKING:
    from attnpaths import adapters, analysis, explorer, figures, posterior, pruning, tasks, training
    from attnpaths.analysis import analyse

    __version__: str

# what takes longer to import, or needs more than the core dependencies: on first use
_ROOMS = (
    "adapters", "analysis", "explorer", "figures", "posterior", "pruning", "tasks", "training",
)  # fmt: skip

__all__ = [
    "Network", "Problem", "Weights", "__version__", "adapters", "analyse", "analysis",
    "effective_weights", "empirical_order_parameter", "explorer", "figures", "kernels", "paths",
    "posterior", "pruning", "tasks", "theory", "training",
]  # fmt: skip


def __getattr__(name: str):
    """Import a room of the library when it is first asked for; the version likewise."""
    if name in _ROOMS:
        return importlib.import_module(f"attnpaths.{name}")
    if name == "analyse":
        return importlib.import_module("attnpaths.analysis").analyse
    if name == "__version__":
        from importlib import metadata

        return metadata.version("attnpaths")
    raise AttributeError(f"module 'attnpaths' has no attribute {name!r}")


def __dir__() -> list[str]:
    """All public names, also of rooms that are not imported yet."""
    return sorted({*globals(), *__all__})
