"""Parts of the one-shot study that rest on the theory; `book.studies.oneshot.run` runs them.

Every function takes a network's features of a task, so that a page can compute a smaller
version of any part.
"""

import dataclasses
import itertools
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnpaths import posterior, pruning, theory
from attnpaths.network import Network
from attnpaths.tasks import oneshot
from book.studies.engine import peak_memory

WIDTHS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
TEMPERATURES = (0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5)


@dataclasses.dataclass(frozen=True, eq=False)
class Features:
    """What the theory sees of a task: ξ and labels, for training and for each test."""

    heads: tuple[int, ...]
    xi: Float[Array, "examples paths dim"]
    y: Float[Array, " examples"]
    tests: dict[str, tuple[Float[Array, "_ paths dim"], Float[Array, " _"]]]

    @property
    def all_tests(self) -> Float[Array, "tests paths dim"]:
        """ξ of all tests, one after the other."""
        return jnp.concatenate([xi for xi, _ in self.tests.values()])


def features(network: Network, task: oneshot.Task) -> Features:
    """ξ of a task: its own test set first, under the name of its source, then the others."""
    splits = {task.source: task.test, **task.out_of_distribution}
    tests = {name: (network.features(split.x), split.y) for name, split in splits.items()}
    return Features(network.head_counts, network.features(task.train.x), task.train.y, tests)


def sweep(
    data: Features,
    *,
    widths: Sequence[int | float] = WIDTHS,
    temperatures: Sequence[int | float] = TEMPERATURES,
    progress: bool = False,
) -> dict[str, Any]:
    """Accuracies at every width and temperature and in the GP limit, and what they cost.

    The best temperature of a width is that of the highest accuracy in distribution, as in the
    paper; other test sets are judged at the same temperature.
    """
    start = time.perf_counter()
    grid = _grid(data, widths, temperatures, progress)
    seconds = time.perf_counter() - start
    found = [[_accuracies(point, data) for point in row] for row in grid]
    limit = [_accuracies(_gp(data, t), data) for t in temperatures]
    accuracy = {name: [[a[name] for a in row] for row in found] for name in data.tests}
    gp = {name: [a[name] for a in limit] for name in data.tests}
    own = next(iter(data.tests))
    return {
        "widths": list(widths),
        "temperatures": list(temperatures),
        "examples": len(data.y),
        "test_examples": len(data.tests[own][1]),
        "accuracy": accuracy,
        "gp_accuracy": gp,
        "best_temperature": [temperatures[int(np.argmax(row))] for row in accuracy[own]],
        "gp_best_temperature": temperatures[int(np.argmax(gp[own]))],
        "evaluations": grid.evaluations,
        "largest_gradient": grid.gradient_norm.max(),
        "converged": int(grid.converged.sum()),
        "seconds": round(seconds, 1),
        "peak_memory_gib": rounded(peak_memory(), 3),
    }


def draws(
    make: Callable[[int], Features],
    *,
    seeds: Sequence[int],
    widths: Sequence[int | float] = WIDTHS,
    temperatures: Sequence[int | float] = TEMPERATURES[2:9],
    gp_temperatures: Sequence[int | float] = TEMPERATURES,
) -> dict[str, Any]:
    """How much better than the GP narrow networks are, over independent draws of the data.

    `make(seed)` gives the data of a draw. In `"best"` each draw chooses its temperatures by its
    own accuracy in distribution, as the paper does; in `"held_out"` those that are best on
    average over the other draws, so that no test set chooses its own. `gain` is accuracy minus
    that of the GP, which chooses its own temperature the same way.
    """
    theory_, gp = [], []
    for seed in seeds:
        data = make(seed)
        grid = _grid(data, widths, temperatures, progress=False)
        theory_.append([[_accuracies(point, data) for point in row] for row in grid])
        gp.append([[_accuracies(_gp(data, t), data) for t in gp_temperatures]])
    names = list(data.tests)
    # draws, widths, temperatures, test sets
    theory_, gp = (
        np.array([[[[a[n] for n in names] for a in r] for r in g] for g in part])
        for part in (theory_, gp)
    )
    answer = {
        "seeds": list(seeds),
        "widths": list(widths),
        "temperatures": list(temperatures),
        "gp_temperatures": list(gp_temperatures),
    }
    for way in ("best", "held_out"):
        chosen, limit = _choose(theory_, way), _choose(gp, way)
        here, there = _take(theory_, chosen), _take(gp, limit)
        answer[way] = {
            "temperature": [[temperatures[j] for j in row] for row in chosen],
            "gp_temperature": [gp_temperatures[row[0]] for row in limit],
            "accuracy": {n: here[..., k] for k, n in enumerate(names)},
            "gp_accuracy": {n: there[:, 0, k] for k, n in enumerate(names)},
            "gain": {n: mean_and_error(here[..., k] - there[..., k]) for k, n in enumerate(names)},
        }
    return answer


def order_parameter(
    data: Features, *, width: int | float, temperature: int | float, beside: Mapping[str, Any]
) -> dict[str, Any]:
    """The theory's U at one point, and how its kernel and the GP's align with the labels.

    `beside` holds other order parameters by name, to compare with; so in `sampled`.
    """
    point = solved(data, width=width, temperature=temperature)
    limit = _gp(data, temperature)
    return {
        "width": width,
        "temperature": temperature,
        **described(point.U, data.heads),
        "agreement": {name: agreement(point.U, other) for name, other in beside.items()},
        "alignment": rounded(point.alignment().overlaps[:50]),
        "gp_alignment": rounded(limit.alignment().overlaps[:50]),
        "evaluations": int(point.evaluations),
        "gradient_norm": float(point.gradient_norm),
    }


def sampled(
    data: Features,
    *,
    width: int,
    temperature: int | float,
    beside: Mapping[str, Any],
    chains: int = 2,
    warmup: int = 80,
    samples: int = 300,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, Any]:
    """U from its exact posterior at finite width, with its diagnostics and accuracies."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        # the doubts are kept beside the numbers
        warnings.simplefilter("ignore", posterior.DoubtfulSample)
        result = posterior.sample_order_parameter(
            data.xi,
            data.y,
            heads=data.heads,
            width=width,
            temperature=temperature,
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
    predicted = {name: (few.predict(xi), y) for name, (xi, y) in data.tests.items()}
    return {
        "width": width,
        "temperature": temperature,
        "chains": chains,
        "warmup": warmup,
        "samples": samples,
        **described(result.U, data.heads),
        "agreement": {name: agreement(result.U, other) for name, other in beside.items()},
        "mcse": rounded(result.mcse, 3),
        "largest_rhat": float(np.max(result.rhat)),
        "smallest_ess": float(np.min(result.ess_bulk)),
        "divergences": int(np.sum(result.divergences)),
        "leapfrogs": int(np.sum(result.leapfrogs)),
        "doubts": list(result.doubts),
        "accuracy": {name: rounded(p.accuracy(y)) for name, (p, y) in predicted.items()},
        "accuracy_mcse": {
            name: rounded(p.accuracy_mcse(y), 2) for name, (p, y) in predicted.items()
        },
        "seconds": round(seconds, 1),
    }


def described(U, heads: Sequence[int], most: int = 27) -> dict[str, Any]:
    """An order parameter with its head scores and block ratio; itself only up to `most` paths."""
    U = np.asarray(U)
    scores = list(pruning.head_scores(U, heads).values())
    found = {"U": rounded(U)} if len(U) <= most else {}
    if len(U) > heads[0] > 1:
        # one layer, or one head in the first, makes no blocks
        found["block_ratio"] = block_ratio(U, heads)
    return found | {"scores": rounded(scores)}


def block_ratio(U, heads: Sequence[int]) -> float:
    """Mean |U| off the diagonal, between paths that share h₁, over that of paths that do not.

    >>> block_ratio([[9, 4, 2, 2], [4, 9, 2, 2], [2, 2, 9, 4], [2, 2, 4, 9]], (2, 2))
    2.0
    """
    size, first = np.abs(np.asarray(U, float)), np.arange(len(U)) // (len(U) // heads[0])
    same = first[:, None] == first
    off = ~np.eye(len(size), dtype=bool)
    return float(size[same & off].mean() / size[~same].mean())


def agreement(one, other) -> dict[str, float]:
    """How alike two order parameters are, off the diagonal and on it.

    The correlation of their entries above the diagonal, the share of equal signs among all of
    these and, since tiny entries have a sign by chance, weighted by |U| of the first; the
    correlation of the diagonals.

    >>> agreement([[1, 2, 3], [2, 2, -4], [3, -4, 3]], [[2, 4, 6], [4, 4, -8], [6, -8, 6]])
    {'correlation': 1.0, 'signs': 1.0, 'weighted_signs': 1.0, 'diagonal': 1.0}
    """
    one, other = np.asarray(one, float), np.asarray(other, float)
    above = np.triu_indices(len(one), 1)
    a, b = one[above], other[above]
    equal = np.sign(a) == np.sign(b)
    return {
        "correlation": rounded(np.corrcoef(a, b)[0, 1]),
        "signs": rounded(equal.mean()),
        "weighted_signs": rounded(np.sum(equal * np.abs(a)) / np.sum(np.abs(a))),
        "diagonal": rounded(np.corrcoef(np.diag(one), np.diag(other))[0, 1]),
    }


def renamings(heads: Sequence[int]) -> np.ndarray:
    """Orders of the paths `[∏ H_ℓ!, Π]` that give the heads of each layer other numbers.

    Heads have no order, so a matrix in any of these orders is as good as in its own. The first
    leaves all as they are.

    >>> renamings((1, 2)).tolist()
    [[0, 1], [1, 0]]
    """
    grid = np.arange(np.prod(heads)).reshape(heads)
    orders = itertools.product(*(itertools.permutations(range(count)) for count in heads))
    return np.stack([grid[np.ix_(*order)].ravel() for order in orders])


def against_renamed(one, other, heads: Sequence[int]) -> dict[str, np.ndarray]:
    """`agreement` of `one` with `other` in each of its `renamings`, the true one first."""
    other = np.asarray(other)
    found = [agreement(one, other[np.ix_(order, order)]) for order in renamings(heads)]
    return {name: np.array([each[name] for each in found]) for name in found[0]}


def mean_and_error(values) -> dict[str, Any]:
    """The mean over the first axis, and its standard error."""
    values = np.asarray(values, float)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return {"mean": rounded(values.mean(axis=0)), "standard_error": rounded(error, 3)}


def rounded(value, digits: int = 4):
    """`value` with so many significant digits, as a number or nested lists of them.

    >>> rounded([1 / 3, 200 / 3])
    [0.3333, 66.67]
    """
    if np.ndim(value):
        return [rounded(each, digits) for each in value]
    return float(f"{float(value):.{digits}g}")


def _grid(data: Features, widths, temperatures, progress) -> theory.Sweep:
    return theory.sweep(
        data.xi,
        data.y,
        heads=data.heads,
        widths=widths,
        temperatures=temperatures,
        progress=progress,
    )


def solved(data: Features, *, width: int | float, temperature: int | float) -> theory.Theory:
    """The theory at one point."""
    return theory.solve(data.xi, data.y, heads=data.heads, width=width, temperature=temperature)


def _gp(data: Features, temperature: float) -> theory.Theory:
    return theory.gp_limit(data.xi, data.y, heads=data.heads, temperature=temperature)


def _accuracies(point: theory.Theory, data: Features) -> dict[str, float]:
    """Accuracy on each test set; all of them are predicted at once."""
    mean = np.sign(np.asarray(point.predict(data.all_tests).mean))
    ends = np.cumsum([len(y) for _, y in data.tests.values()])[:-1]
    pairs = zip(data.tests.items(), np.split(mean, ends), strict=True)
    return {name: rounded(np.mean(own == np.asarray(y))) for (name, (_, y)), own in pairs}


def _choose(accuracy, way: str):
    """The index of the best temperature, `[draws, widths]`, by the first test set."""
    judge = accuracy[..., 0]
    if way == "held_out":
        others = [np.delete(judge, draw, axis=0).mean(axis=0) for draw in range(len(judge))]
        judge = np.stack(others)
    # equal accuracies are a tie also when they were added up in another order
    return judge.round(9).argmax(axis=2)


def _take(accuracy, chosen):
    """Accuracies `[draws, widths, test sets]` at the chosen temperatures."""
    return np.take_along_axis(accuracy, chosen[..., None, None], axis=2)[:, :, 0]
