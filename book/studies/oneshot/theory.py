"""Theory, Gaussian process and exact samples with the heads of one trained network."""

import dataclasses
import functools
import itertools
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from attnpaths import posterior, pruning, theory
from attnpaths.tasks import images as image_sources
from attnpaths.tasks import oneshot
from book.studies.oneshot.trained import Compact

WIDTHS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
TEMPERATURES = (0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5)
#: The only ones at which the authors' plots have the Gaussian process.
AUTHORS_GP = (0.025, 0.05, 0.075, 0.1, 0.25)
#: The paper's best temperatures of the network (2, 4), for each of `WIDTHS`.
PAPER_TEMPERATURES = (0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.1, 0.1, 0.075)
NARROW = 10


@dataclasses.dataclass(frozen=True, eq=False)
class Data:
    """ξ and labels of one draw, for training and for each test set by name."""

    heads: tuple[int, ...]
    xi: Any
    y: Any
    tests: dict[str, tuple[Any, Any]]

    @functools.cached_property
    def all_tests(self):
        """ξ of all test sets, one after the other."""
        return jnp.concatenate([xi for xi, _ in self.tests.values()])


def drawn(
    network: Compact,
    images: Mapping[str, image_sources.Images],
    seed: int,
    *,
    examples: int = 600,
    test_examples: int = 1000,
) -> Data:
    """A draw of training and test sequences: the authors' set out of distribution beside random."""
    own, *others = images.values()
    task = oneshot.make_task(
        seed,
        source=own,
        examples=examples,
        test_examples=test_examples,
        out_of_distribution=others,
        labels=network.labels,
    )
    features = network.network.features
    splits = {task.source: task.test, **task.out_of_distribution}
    tests = {name: (features(split.x), split.y) for name, split in splits.items()}
    for other in others:
        fixed = oneshot.authors_set(other, test_examples)
        x = oneshot.Encoder(other, network.labels)(fixed)
        tests[f"{other.source}, authors"] = features(x), jnp.asarray(fixed.y, float)
    return Data(network.heads, features(task.train.x), task.train.y, tests)


def best(accuracies: Sequence[float], temperatures: Sequence[int | float]) -> int:
    """Where the accuracy is highest; of equals, at the highest temperature.

    >>> best([0.7, 0.8, 0.8, 0.6], [0.1, 0.2, 0.3, 0.4])
    2
    """
    top = np.flatnonzero(np.isclose(accuracies, np.max(accuracies), rtol=0, atol=1e-9))
    return max(map(int, top), key=lambda i: temperatures[i])


def solved(
    data: Data,
    *,
    widths: Sequence[int] = WIDTHS,
    temperatures: Sequence[float] = TEMPERATURES,
    describe: bool = False,
    progress: bool = False,
) -> dict[str, Any]:
    """Accuracies of the theory at every width and temperature, and of the Gaussian process.

    With `describe`, also the order parameter of the narrowest network at its best temperature in
    distribution, and how its kernel and that of the GP align with the labels.
    """
    start = time.perf_counter()
    grid = theory.sweep(
        data.xi,
        data.y,
        heads=data.heads,
        widths=widths,
        temperatures=temperatures,
        progress=progress,
    )
    seconds = time.perf_counter() - start
    points = [[grid[i, j] for j in range(len(temperatures))] for i in range(len(widths))]
    accuracy = [[_accuracies(point, data) for point in row] for row in points]
    every = sorted({*TEMPERATURES, *temperatures})
    gp = {t: _accuracies(_gp(data, t), data) for t in every}
    own = next(iter(data.tests))
    found = {
        "own": own,
        "examples": len(data.y),
        "widths": list(widths),
        "temperatures": list(temperatures),
        "gp_temperatures": every,
        "accuracy": {n: [[a[n] for a in row] for row in accuracy] for n in data.tests},
        "gp_accuracy": {n: [gp[t][n] for t in every] for n in data.tests},
        "strength": [[_rounded(np.trace(p.U) / len(p.U)) for p in row] for row in points],
        "converged": int(np.sum(grid.converged)),
        "evaluations": int(np.sum(grid.evaluations)),
        "largest_gradient": float(np.max(grid.gradient_norm)),
        "sweep_seconds": round(seconds, 1),
    }
    if describe:
        chosen = best([a[own] for a in accuracy[0]], temperatures)
        point = points[0][chosen]
        found["narrow"] = {
            "width": widths[0],
            "temperature": temperatures[chosen],
            "U": _rounded(point.U),
            "overlaps": _rounded(point.alignment().overlaps[:50]),
            "gp_overlaps": _rounded(_gp(data, temperatures[chosen]).alignment().overlaps[:50]),
        }
    return found


def sampled(
    data: Data,
    U,
    *,
    temperature: int | float,
    width: int = NARROW,
    chains: int = 2,
    warmup: int = 80,
    samples: int = 300,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, Any]:
    """Exact samples at one point beside the theory's `U` there, with their diagnostics."""
    point = {"heads": data.heads, "width": width, "temperature": temperature}
    start = time.perf_counter()
    with warnings.catch_warnings():
        # the doubts are kept beside the numbers
        warnings.simplefilter("ignore", posterior.DoubtfulSample)
        result = posterior.sample_order_parameter(
            data.xi,
            data.y,
            **point,
            seed=seed,
            chains=chains,
            warmup=warmup,
            samples=samples,
            acceptance=0.8,
            whiten=True,
            progress=progress,
        )
    seconds = time.perf_counter() - start
    few = result.thin(max(1, samples // 25))
    saddle = _accuracies(theory.solve(data.xi, data.y, **point), data)
    accuracies = {n: float(few.predict(xi).accuracy(y)) for n, (xi, y) in data.tests.items()}
    U, mean = np.asarray(U), np.asarray(result.U)
    return {
        "width": width,
        "temperature": temperature,
        "chains": chains,
        "samples": samples,
        "U": _rounded(mean),
        "mcse": _rounded(result.mcse, 3),
        "to_theory": float(np.linalg.norm(mean - U)),
        "to_gp": float(np.linalg.norm(mean - np.eye(len(U)))),
        "accuracy": accuracies,
        "theory_accuracy": saddle,
        "largest_rhat": float(np.max(result.rhat)),
        "smallest_ess": float(np.min(result.ess_bulk)),
        "divergences": int(np.sum(result.divergences)),
        "seconds": round(seconds, 1),
    }


def structure(U, heads: Sequence[int]) -> dict[str, float]:
    """Ties, weighting and blocks of an order parameter `[Π, Π]`, as the paper speaks of them.

    `largest_tie` is the largest |U_ππ'|/√(U_ππ U_π'π'), `weighting` the largest over the smallest
    U_ππ, `block_share` the share of Σ|U_ππ'| between different paths that share h₁, `block_ratio`
    their mean |U| over that of the others, `first_head` the share of the variance of U_ππ that
    h₁ explains.

    >>> found = structure([[4, 2, 1, 1], [2, 4, 1, 1], [1, 1, 2, 1], [1, 1, 1, 2]], (2, 2))
    >>> found["largest_tie"], found["weighting"], found["block_ratio"], found["first_head"]
    (0.5, 2.0, 1.5, 1.0)
    """
    U = np.asarray(U, float)
    strength, size = np.diag(U), np.abs(U)
    first = np.arange(len(U)) // (len(U) // heads[0])
    other = ~np.eye(len(U), dtype=bool)
    same = (first[:, None] == first) & other
    groups = strength.reshape(heads[0], -1)
    spread = np.var(strength)
    return {
        "largest_tie": float((size / np.sqrt(np.outer(strength, strength)))[other].max()),
        "weighting": float(strength.max() / strength.min()),
        "block_share": float(size[same].sum() / size[other].sum()),
        "block_ratio": float(size[same].mean() / size[first[:, None] != first].mean()),
        "first_head": float(np.var(groups.mean(axis=1)) / spread) if spread else 0.0,
    }


def equal_signs(one, other, heads: Sequence[int]) -> tuple[float, np.ndarray]:
    """The share of equal signs off the diagonal, and the same for every renaming of the heads.

    Heads have no order, so that a matrix with other names for them is as good as its own: what
    these share is what networks with the same blocks share by chance.

    >>> equal_signs([[1, -1], [-1, 1]], [[2, -3], [-3, 2]], (2,))
    (1.0, array([1., 1.]))
    """
    one, other = np.asarray(one, float), np.asarray(other, float)
    above = np.triu_indices(len(one), 1)
    signs, grid = np.sign(one[above]), np.arange(len(one)).reshape(heads)
    names = itertools.product(*(itertools.permutations(range(count)) for count in heads))
    orders = (grid[np.ix_(*order)].ravel() for order in names)
    found = [np.mean(signs == np.sign(other[np.ix_(order, order)][above])) for order in orders]
    # the first renaming leaves all as they are
    return float(found[0]), np.array(found)


def _gp(data: Data, temperature: float) -> theory.Theory:
    return theory.gp_limit(data.xi, data.y, heads=data.heads, temperature=temperature)


def _accuracies(point: theory.Theory, data: Data) -> dict[str, float]:
    """Accuracy on each test set, from what the theory expects of every path."""
    # all test sets at once: the training kernel is made and solved anew in each call
    mean = np.asarray(pruning.theory_outputs(point, data.all_tests)).sum(axis=1)
    found, end = {}, 0
    for name, (_, y) in data.tests.items():
        start, end = end, end + len(y)
        found[name] = float(np.mean(np.sign(mean[start:end]) == np.asarray(y)))
    return found


def _rounded(value, digits: int = 4):
    if np.ndim(value):
        return [_rounded(each, digits) for each in np.asarray(value)]
    return float(f"{float(value):.{digits}g}")
