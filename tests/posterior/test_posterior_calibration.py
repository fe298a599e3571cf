"""Simulation-based calibration: draws from the prior rank uniformly among posterior draws.

Draw U from the prior and Y given U, then sample U given Y. Averaged over data, the posterior is
the prior, so that the rank of the true U among posterior draws is uniform, exactly, if and only
if the sampler is right (Talts et al. 2018).
"""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from attnpaths import kernels, posterior
from attnpaths.posterior import densities

HEADS, WIDTH, TEMPERATURE, VARIANCE = (2, 2), 5, 0.2, 1.3
RUNS, KEPT = 100, 99

STATISTICS = {
    "first path": lambda U: U[..., 0, 0],
    "last path": lambda U: U[..., -1, -1],
    "two paths that share a head": lambda U: U[..., 0, 1],
    "two paths that share none": lambda U: U[..., 1, 2],
    "size": lambda U: np.trace(U, axis1=-2, axis2=-1),
    "volume": lambda U: np.linalg.slogdet(U)[1],
}


@functools.cache
def ranks(amplitude, runs):
    xi = jax.random.normal(jax.random.key(0), (10, 4, 3))
    density = densities.OrderParameter(HEADS, (WIDTH,) * 3)
    truths = density.read(density.starts(jax.random.key(1), runs)[None], jnp.array(VARIANCE))[1][0]
    rng = np.random.default_rng(0)
    result = []
    for run, truth in enumerate(truths):
        K = kernels.total_kernel(truth, xi, prior_variance=VARIANCE)
        y = rng.multivariate_normal(np.zeros(10), K + TEMPERATURE * np.eye(10))
        with warnings.catch_warnings():
            # one short chain for each data set; their ranks are judged together
            warnings.simplefilter("ignore", posterior.DoubtfulSample)
            draws = posterior.sample_order_parameter(
                xi,
                amplitude * y,
                heads=HEADS,
                width=WIDTH,
                temperature=TEMPERATURE,
                prior_variance=VARIANCE,
                seed=run,
                chains=1,
                warmup=150,
                samples=5 * KEPT,
                thinning=5,
                progress=False,
            ).draws[0]
        draws, truth = np.asarray(draws), np.asarray(truth)
        result.append([np.sum(f(draws) < f(truth)) for f in STATISTICS.values()])
    return dict(zip(STATISTICS, np.transpose(result), strict=True))


def p_values(ranks):
    """Are ranks 0 … KEPT equally likely? By counts in ten bins, and by their distribution."""
    counts, _ = np.histogram(ranks, bins=10, range=(0, KEPT + 1))
    jitter = np.random.default_rng(1).uniform(size=len(ranks))
    uniform = scipy.stats.uniform(0, KEPT + 1)
    return (
        scipy.stats.chisquare(counts).pvalue,
        scipy.stats.kstest(ranks + jitter, uniform.cdf).pvalue,
    )


@pytest.mark.parametrize("name", STATISTICS)
def test_ranks_are_uniform(name):
    assert min(p_values(ranks(1, RUNS)[name])) > 1e-3


def test_a_wrong_likelihood_is_found_out():
    # labels one and a half times as large as those that belong to U
    wrong = ranks(1.5, RUNS // 2)
    assert min(min(p_values(r)) for r in wrong.values()) < 1e-4
