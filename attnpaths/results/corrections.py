"""How wrong is the saddle point at width N? `python -m attnpaths.results.corrections`.

The distance between the exact posterior mean and the saddle point, for U and for the predictor:

- `growing P, N = …`: P = 4N examples of Gaussian vectors of dimension 2N, so that nothing but
  the size of the problem changes;
- `fixed P, N = …`: the same with 32 examples of dimension 16 at every width;
- `chains, N = …`: P = 4N hidden Markov chains, whose dimension stays.

Differences of order 1/N drown in the spread of the posterior, 1/√N. Control variates take most
of that spread away. Narrow networks are sampled by NUTS; in wide ones the posterior is so close
to a Gaussian that independent draws, weighed by importance, are cheaper. About half an hour on
one core.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
import scipy.stats

from attnpaths import averaged, densities, diagnostics, nuts, theory
from attnpaths.predictor import Problem, check
from attnpaths.results import collect
from attnpaths.tasks.markov import make_task

HEADS = (2, 2)
GROWING = (8, 16, 32, 64, 128)
FIXED = (8, 16, 32, 64, 128, 256, 512, 1024)
SEEDS, CHAIN_SEEDS = range(6), range(4)
# from this width on by importance
WIDE = 32


def gaussian(seed: int, examples: int) -> tuple[Problem, np.ndarray]:
    """Training problem and test inputs: the label is the sign of a sum of two of four paths.

    >>> problem, test = gaussian(0, 32)
    >>> problem.xi.shape, test.shape
    ((32, 4, 16), (200, 4, 16))
    """
    rng = np.random.default_rng(seed)
    dim = examples // 2
    direction = rng.normal(size=dim)
    train, test = (rng.normal(size=(count, 4, dim)) for count in (examples, 200))
    y = np.sign((train[:, 0] - train[:, 2] / 2) @ direction)
    return check(train, y, HEADS, 0.1, 1.0), test


def markov(seed: int, examples: int) -> tuple[Problem, np.ndarray]:
    """The same of a fresh task of hidden Markov chains, in the paper's setting."""
    task = make_task(seed, examples=examples, test_examples=200)
    train, test = (task.network.features(split.x) for split in (task.train, task.test))
    return check(train, task.train.y, HEADS, 0.01, 1.0), np.asarray(test)


def distances(make: Callable, width: int, examples: int, seeds) -> dict:
    """How far the exact posterior mean is from the saddle point, relative to the latter."""
    sample = importance if width >= WIDE else chains
    rows = {"U": [], "U_mcse": [], "f": [], "f_mcse": [], "efficiency": []}
    for seed in seeds:
        problem, test = make(seed, examples)
        density = densities.OrderParameter(HEADS, width)
        draws = sample(density, density.data(problem), seed)
        U = density.read(jnp.asarray(draws.z), problem.prior_variance)[1]
        f = averaged.predict(
            U,
            problem.xi,
            problem.y,
            jnp.asarray(test),
            temperature=problem.temperature,
            prior_variance=problem.prior_variance,
        ).draws
        saddle = theory.solve(**problem._asdict(), width=width)
        pairs = {
            "U": (np.asarray(U).reshape(*U.shape[:2], -1), np.ravel(saddle.U)),
            "f": (np.asarray(f), np.asarray(saddle.predict(test).mean)),
        }
        for name, (values, wanted) in pairs.items():
            mean, error = steady(values, draws)
            # noise adds to a distance; its expected share goes
            square = np.sum((mean - wanted) ** 2) - np.sum(error**2)
            rows[name].append(np.sqrt(max(square, 0.0)) / np.linalg.norm(wanted))
            rows[f"{name}_mcse"].append(np.linalg.norm(error) / np.linalg.norm(wanted))
        weight = draws.weight
        rows["efficiency"].append(weight.sum() ** 2 / np.sum(weight**2) / weight.size)
    return rows | {"examples": examples}


class Draws(NamedTuple):
    """Coordinates `z [chains, samples, size]`, `slope` = ∇ ln p there, weights, and errors.

    `error(values)` is the standard error of the weighted mean of `values [chains, samples, K]`.
    """

    z: np.ndarray
    slope: np.ndarray
    weight: np.ndarray
    error: Callable[[np.ndarray], np.ndarray]


def chains(density, data, seed: int, samples: int = 600) -> Draws:
    """Four chains of NUTS, all draws of weight one."""
    start_key, key = jax.random.split(jax.random.key(seed))
    z = nuts.run(
        density,
        data,
        density.starts(start_key, 4),
        key,
        warmup=300,
        kept=samples,
        thinning=1,
        dense=True,
        acceptance=0.9,
        progress=False,
    ).position
    gradient = jax.grad(density, argnums=1)
    flat = jax.jit(lambda data, z: jax.lax.map(partial(gradient, data), z))(
        data, jnp.asarray(z).reshape(-1, z.shape[-1])
    )
    slope = -np.asarray(flat).reshape(z.shape)
    return Draws(z, slope, np.ones(z.shape[:2]), diagnostics.mcse)


def importance(density, data, seed: int, samples: int = 800) -> Draws:
    """Independent draws, weighed so that they follow the posterior.

    The proposal is a Student t around the posterior's maximum, with the curvature found there.
    """
    size = density.starts(jax.random.key(0), 1).shape[1]
    both = jax.value_and_grad(density, argnums=1)
    one, many = jax.jit(both), jax.jit(lambda data, z: jax.lax.map(partial(both, data), z))
    top = scipy.optimize.minimize(
        lambda z: tuple(map(np.asarray, one(data, z))), np.zeros(size), jac=True, method="BFGS"
    ).x
    steps = 1e-4 * np.eye(size)
    rise = [np.asarray(one(data, top + e)[1] - one(data, top - e)[1]) for e in steps]
    curvature = np.stack(rise) / 2e-4
    proposal = scipy.stats.multivariate_t(
        top, np.linalg.inv((curvature + curvature.T) / 2), df=20, seed=seed
    )
    z = proposal.rvs(samples)
    potential, gradient = map(np.asarray, many(data, jnp.asarray(z)))
    surplus = -potential - proposal.logpdf(z)
    weight = np.exp(surplus - surplus.max())
    share = weight[None, :, None] / weight.sum()

    def error(values):
        mean = np.sum(share * values, axis=(0, 1))
        return np.sqrt(np.sum((share * (values - mean)) ** 2, axis=(0, 1)))

    return Draws(z[None], -gradient[None], weight[None], error)


def steady(values: np.ndarray, draws: Draws) -> tuple[np.ndarray, np.ndarray]:
    """Means of `values [chains, samples, K]` over the posterior, with control variates, and errors.

    With s = ∇ ln p(z), integration by parts makes the means of s_i and of z_i s_j + z_j s_i +
    2δ_ij vanish, whatever p is (Mira, Solgi and Imparato, 2013). What these explain of the
    values is taken off. The coefficients for a half of the draws come from the other half, so
    that no mean is fitted to itself.

    >>> z = np.random.default_rng(0).normal(size=(4, 50, 1))
    >>> mean, error = steady(z + 5, Draws(z, -z, np.ones((4, 50)), diagnostics.mcse))
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


def slope(widths, distances) -> tuple[float, float]:
    """The power of N with which distances `[W, S]` of S tasks fall, and its standard error.

    A line is fitted to the logarithms for every task; tasks give mean and error.

    >>> slope([10, 100], [[1.0, 3.0], [0.1, 0.3]])
    (-1.0, 0.0)
    """
    fits = np.polyfit(np.log(widths), np.log(distances), 1)[0]
    error = np.std(fits, ddof=1) / np.sqrt(len(fits))
    return round(float(fits.mean()), 12), round(float(error), 12)


def parts() -> dict:
    """Every part of the study, with the function that computes it."""
    result = {f"growing P, N = {N}": partial(distances, gaussian, N, 4 * N, SEEDS) for N in GROWING}
    result |= {f"fixed P, N = {N}": partial(distances, gaussian, N, 32, SEEDS) for N in FIXED}
    result |= {
        f"chains, N = {N}": partial(distances, markov, N, 4 * N, CHAIN_SEEDS) for N in GROWING
    }
    return result


if __name__ == "__main__":
    collect("corrections", parts(), seeds=SEEDS)
