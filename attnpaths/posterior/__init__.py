"""Sampling the posterior: all weights by NUTS, as the paper does, or the order parameter alone.

`sample_weights` walks through all weights. `sample_order_parameter` draws from the exact posterior
of U at finite width, a hierarchy of Wishart matrices (`attnpaths.posterior.prior`) times the
likelihood of a Gaussian process. Both sample the same distribution of U; `complete_weights` goes
from the second to the first. `OrderParameter` is the density itself, for other ways to draw from
it. Sampling needs NumPyro and arviz: `pip install "attnpaths[sampling]"`.
"""

from attnpaths.posterior.densities import OrderParameter
from attnpaths.posterior.draws import DoubtfulSample, Posterior, PosteriorPrediction, load
from attnpaths.posterior.sample import Interrupted, sample_order_parameter, sample_weights
from attnpaths.posterior.weights import complete_weights

__all__ = [
    "DoubtfulSample", "Interrupted", "OrderParameter", "Posterior", "PosteriorPrediction",
]  # fmt: skip
__all__ += ["complete_weights", "load", "sample_order_parameter", "sample_weights"]
