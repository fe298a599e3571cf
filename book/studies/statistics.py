"""What several studies count with: draws with weights, control variates, powers of N.

Differences of order 1/N between the exact posterior mean and the saddle point drown in the
spread of the posterior, 1/√N. Control variates take most of that spread away. Narrow networks
are sampled by NUTS; in wide ones the posterior is so close to a Gaussian that independent draws,
weighed by importance, are cheaper.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
import scipy.stats

from attnpaths.posterior import nuts

with warnings.catch_warnings():
    # arviz announces its next version once a day
    warnings.simplefilter("ignore", FutureWarning)
    import arviz


class Draws(NamedTuple):
    """Coordinates `z [chains, samples, size]`, `slope` = ∇ ln p there, weights, and errors.

    `error(values)` is the standard error of the weighted mean of `values [chains, samples, K]`.
    """

    z: np.ndarray
    slope: np.ndarray
    weight: np.ndarray
    error: Callable[[np.ndarray], np.ndarray]

    @property
    def efficiency(self) -> float:
        """Effective draws per draw, as far as weights make them fewer."""
        return float(self.weight.sum() ** 2 / np.sum(self.weight**2) / self.weight.size)


def chains(density, data, seed: int, *, warmup: int, samples: int) -> Draws:
    """Four chains of NUTS, all draws of weight one."""
    start_key, key = jax.random.split(jax.random.key(seed))
    z = nuts.run(
        density,
        data,
        density.starts(start_key, 4),
        key,
        warmup=warmup,
        kept=samples,
        thinning=1,
        dense=True,
        acceptance=0.9,
        progress=False,
    ).position
    flat = _both(density, data, jnp.asarray(z).reshape(-1, z.shape[-1]))[1]
    return Draws(z, -np.asarray(flat).reshape(z.shape), np.ones(z.shape[:2]), mcse)


def importance(density, data, seed: int, *, samples: int, freedom: int) -> Draws:
    """Independent draws, weighed so that they follow the posterior.

    The proposal is a Student t of so many degrees of `freedom` around the posterior's maximum,
    with the curvature found there.
    """
    size = density.starts(jax.random.key(0), 1).shape[1]

    def one(z):
        value, slope = _both(density, data, jnp.asarray(z)[None])
        return float(value[0]), np.asarray(slope[0])

    top = scipy.optimize.minimize(one, np.zeros(size), jac=True, method="BFGS").x
    rise = [one(top + e)[1] - one(top - e)[1] for e in 1e-4 * np.eye(size)]
    curvature = np.stack(rise) / 2e-4
    proposal = scipy.stats.multivariate_t(
        top, np.linalg.inv((curvature + curvature.T) / 2), df=freedom, seed=seed
    )
    z = proposal.rvs(samples)
    potential, gradient = map(np.asarray, _both(density, data, jnp.asarray(z)))
    surplus = -potential - proposal.logpdf(z)
    weight = np.exp(surplus - surplus.max())
    share = weight[None, :, None] / weight.sum()

    def error(values):
        mean = np.sum(share * values, axis=(0, 1))
        return np.sqrt(np.sum((share * (values - mean)) ** 2, axis=(0, 1)))

    return Draws(z[None], -gradient[None], weight[None], error)


@partial(jax.jit, static_argnums=0)
def _both(density, data, z):
    """Potential and its gradient at every row of z."""
    return jax.lax.map(partial(jax.value_and_grad(density, argnums=1), data), z)


def mcse(values) -> np.ndarray:
    """The Monte Carlo standard error of the mean of `values [chains, samples, K]`.

    >>> values = np.random.default_rng(0).normal(size=(4, 2500, 1))
    >>> float(mcse(values)[0].round(3))
    0.01
    """
    return arviz.mcse(arviz.convert_to_dataset({"x": np.asarray(values)}))["x"].values


def effective_draws(values) -> np.ndarray:
    """How many independent draws `values [chains, samples, ...]` are worth, each entry for itself.

    >>> values = np.random.default_rng(0).normal(size=(4, 2500, 1))
    >>> bool(9000 < effective_draws(values)[0] < 11000)
    True
    """
    return arviz.ess(arviz.convert_to_dataset({"x": np.asarray(values)}))["x"].values


def steady(values: np.ndarray, draws: Draws) -> tuple[np.ndarray, np.ndarray]:
    """Means of `values [chains, samples, K]` over the posterior, with control variates, and errors.

    With s = ∇ ln p(z), integration by parts makes the means of s_i and of z_i s_j + z_j s_i +
    2δ_ij vanish, whatever p is (Mira, Solgi and Imparato, 2013). What these explain of the
    values is taken off. The coefficients for a half of the draws come from the other half, so
    that no mean is fitted to itself.

    >>> z = np.random.default_rng(0).normal(size=(4, 50, 1))
    >>> mean, error = steady(z + 5, Draws(z, -z, np.ones((4, 50)), mcse))
    >>> bool(abs(mean[0] - 5) < 1e-9 and error[0] < 1e-9)  # a Gaussian leaves only its mean
    True
    """
    size = draws.z.shape[-1]
    z, slope = draws.z.reshape(-1, size), draws.slope.reshape(-1, size)
    z, slope = (z - z.mean(axis=0)) / z.std(axis=0), slope * z.std(axis=0)
    i, j = np.tril_indices(size)
    products = z[:, i] * slope[:, j] + z[:, j] * slope[:, i] + 2.0 * (i == j)
    controls = np.concatenate([np.ones((len(z), 1)), slope, products], axis=1)
    flat, root = values.reshape(len(z), -1), np.sqrt(draws.weight).reshape(-1, 1)
    calm, half = np.empty(flat.shape), len(z) // 2
    for mine, other in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
        design, wanted = (root * controls)[other], (root * flat)[other]
        found = np.linalg.lstsq(design, wanted, rcond=None)[0]
        calm[mine] = flat[mine] - controls[mine, 1:] @ found[1:]
    mean = np.sum(root**2 * calm, axis=0) / np.sum(root**2)
    return mean, np.asarray(draws.error(calm.reshape(values.shape)))


def distance(mean, error, wanted) -> tuple[float, float]:
    """How far a mean is from what is wanted, relative to the latter, and the error of that.

    Noise adds to a distance: its expected share is taken off.

    >>> distance(np.array([3.0, 5.0]), np.zeros(2), np.array([3.0, 4.0]))
    (0.2, 0.0)
    """
    square = np.sum((mean - wanted) ** 2) - np.sum(error**2)
    size = np.linalg.norm(wanted)
    return float(np.sqrt(max(square, 0.0)) / size), float(np.linalg.norm(error) / size)


def slope(widths, distances) -> tuple[float, float]:
    """The power of N with which distances `[W, S]` of S tasks fall, and its standard error.

    A line is fitted to the logarithms for every task; tasks give mean and error.

    >>> slope([10, 100], [[1.0, 3.0], [0.1, 0.3]])
    (-1.0, 0.0)
    """
    fits = np.polyfit(np.log(widths), np.log(distances), 1)[0]
    error = np.std(fits, ddof=1) / np.sqrt(len(fits))
    return round(float(fits.mean()), 12), round(float(error), 12)
