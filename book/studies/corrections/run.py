"""How wrong is the saddle point at width N? `python -m book.studies.corrections.run`.

The distance between the exact posterior mean and the saddle point, for U and for the predictor:

- `growing P, N = …`: P = 4N examples of Gaussian vectors of dimension 2N, so that nothing but
  the size of the problem changes;
- `fixed P, N = …`: the same with 32 examples of dimension 16 at every width;
- `chains, N = …`: P = 4N hidden Markov chains, whose dimension stays.

`book.studies.statistics` says how so small a distance can be measured. About half an hour on
one core.
"""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
import numpy as np

from attnpaths import Problem, kernels, theory
from attnpaths.posterior import OrderParameter
from attnpaths.tasks.markov import make_task
from book.studies.engine import collect
from book.studies.statistics import chains, distance, importance, steady

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
    return Problem.of(train, y, heads=HEADS, temperature=0.1), test


def markov(seed: int, examples: int) -> tuple[Problem, np.ndarray]:
    """The same of a fresh task of hidden Markov chains, in the paper's setting."""
    task = make_task(seed, examples=examples, test_examples=200)
    train, test = (task.network.features(split.x) for split in (task.train, task.test))
    problem = Problem.of(train, task.train.y, heads=HEADS, temperature=0.01)
    return problem, np.asarray(test)


def distances(make: Callable, width: int, examples: int, seeds) -> dict:
    """How far the exact posterior mean is from the saddle point, relative to the latter."""
    rows = {"U": [], "U_mcse": [], "f": [], "f_mcse": [], "efficiency": []}
    for seed in seeds:
        problem, test = make(seed, examples)
        density = OrderParameter(HEADS, (width,) * 3)
        data = density.data(problem)
        if width >= WIDE:
            draws = importance(density, data, seed, samples=800, freedom=20)
        else:
            draws = chains(density, data, seed, warmup=300, samples=600)
        U = density.read(jnp.asarray(draws.z), problem.prior_variance)[1]
        saddle = theory.solve(**problem.arguments, width=width)
        setting = {k: problem.arguments[k] for k in ("temperature", "prior_variance")}
        f = kernels.regress(U, problem.xi, problem.y, jnp.asarray(test), **setting).mean
        pairs = {
            "U": (np.asarray(U).reshape(*U.shape[:2], -1), np.ravel(saddle.U)),
            "f": (np.asarray(f), np.asarray(saddle.predict(test).mean)),
        }
        for name, (values, wanted) in pairs.items():
            off, error = distance(*steady(values, draws), wanted)
            rows[name].append(off)
            rows[f"{name}_mcse"].append(error)
        rows["efficiency"].append(draws.efficiency)
    return rows | {"examples": examples}


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
