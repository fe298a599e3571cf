"""Draws for the study of limits: chains where networks are narrow, importance where they are not.

As in `corrections`, but compiled once for each shape and not once for each problem.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
import scipy.stats

from attnpaths import diagnostics, nuts
from attnpaths.results.corrections import Draws


def chains(density, data, seed: int, samples: int | None = None) -> Draws:
    """Four chains of NUTS, all draws of weight one."""
    start_key, key = jax.random.split(jax.random.key(seed))
    starts = density.starts(start_key, 4)
    z = nuts.run(
        density,
        data,
        starts,
        key,
        warmup=200,
        kept=samples or 300,
        thinning=1,
        dense=True,
        acceptance=0.9,
        progress=False,
    ).position
    flat = _both(density, data, jnp.asarray(z).reshape(-1, z.shape[-1]))[1]
    return Draws(z, -np.asarray(flat).reshape(z.shape), np.ones(z.shape[:2]), diagnostics.mcse)


def importance(density, data, seed: int, samples: int | None = None) -> Draws:
    """Independent draws from a Student t around the maximum, weighed to follow the posterior."""
    size = density.starts(jax.random.key(0), 1).shape[1]

    def one(z):
        value, slope = _both(density, data, jnp.asarray(z)[None])
        return float(value[0]), np.asarray(slope[0])

    top = scipy.optimize.minimize(one, np.zeros(size), jac=True, method="BFGS").x
    rise = [one(top + e)[1] - one(top - e)[1] for e in 1e-4 * np.eye(size)]
    curvature = np.stack(rise) / 2e-4
    proposal = scipy.stats.multivariate_t(
        top, np.linalg.inv((curvature + curvature.T) / 2), df=10, seed=seed
    )
    # the narrower, the further from a Gaussian
    z = proposal.rvs(samples or (1000 if min(data[1]) >= 10 else 5000))
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
