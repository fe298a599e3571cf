"""attnpaths: attention paths in a statistical mechanics theory of transformers.

A deep linear network sees its input through H^L attention paths; learning, at finite width,
chooses how to combine them. Importing this package switches JAX to float64.
"""

import jax
import scipy.linalg  # noqa: F401  (JAX takes its LAPACK from here)
import threadpoolctl

# The theory minimises an action to 1e-8 and better: float32 does not do.
jax.config.update("jax_enable_x64", True)

# XLA has threads of its own: a second pool, under its calls of LAPACK, makes both wait.
for _library in threadpoolctl.ThreadpoolController().lib_controllers:
    if "scipy" in _library.filepath:
        _library.set_num_threads(1)

from attnpaths import kernels, paths, posterior, pruning, tasks, theory  # noqa: E402
from attnpaths.network import (  # noqa: E402
    Network,
    Weights,
    effective_weights,
    empirical_order_parameter,
)

__all__ = [
    "Network",
    "Weights",
    "effective_weights",
    "empirical_order_parameter",
    "kernels",
    "paths",
    "posterior",
    "pruning",
    "tasks",
    "theory",
]
