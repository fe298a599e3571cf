"""The hidden Markov chains that claims are about, ready to be solved."""

import dataclasses
import functools

import jax
import numpy as np

from attnpaths import kernels, theory
from attnpaths.tasks.markov import Task, make_task, paper_task

TEMPERATURE = 0.01
FRESH = range(6)


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """A task as the theory sees it."""

    task: Task
    xi: jax.Array
    test: jax.Array

    @classmethod
    def of(cls, task: Task) -> "Problem":
        """Compute the attentioned inputs."""
        xi, test = (task.network.features(split.x) for split in (task.train, task.test))
        return cls(task, xi, test)

    def solve(self, width, temperature=TEMPERATURE) -> theory.Theory:
        """The theory at one width."""
        heads = self.task.network.head_counts
        return theory.solve(
            self.xi, self.task.train.y, heads=heads, width=width, temperature=temperature
        )

    def gp(self, paths=None, temperature=TEMPERATURE) -> theory.Theory:
        """The Gaussian process, of all paths or of some."""
        xi = self.xi if paths is None else self.xi[:, paths]
        heads = self.task.network.head_counts if paths is None else (len(paths), 1)
        return theory.gp_limit(xi, self.task.train.y, heads=heads, temperature=temperature)

    def mean(self, solution: theory.Theory, paths=None) -> np.ndarray:
        """Predictions on all test chains."""
        return np.asarray(
            solution.predict(self.test if paths is None else self.test[:, paths]).mean
        )

    def right(self, solution: theory.Theory, paths=None) -> np.ndarray:
        """Which test chains it gets right, as zeros and ones."""
        hits = np.sign(self.mean(solution, paths)) == np.asarray(self.task.test.y)
        return hits.astype(float)


class Chains:
    """The authors' data with four paths, and with two in strong noise."""

    def __init__(self):
        """Make all problems, and take the first solutions, which compile."""
        self.four = Problem.of(paper_task())
        self.pair = Problem.of(paper_task(5.0, "good+denoising"))
        self.uniform = Problem.of(paper_task(5.0, "good+denoising", "uniform"))
        self.calm_pair = Problem.of(paper_task(1.0, "good+denoising"))
        for problem in (self.four, self.pair):
            problem.mean(problem.solve(10)), problem.mean(problem.gp())

    @functools.cached_property
    def fresh(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Overlaps of kernel and labels at N = 10 and in the GP limit, for fresh tasks."""
        found = []
        for seed in FRESH:
            task = make_task(seed, test_examples=2)
            xi = task.network.features(task.train.x)
            problem = Problem(task, xi, xi)
            both = problem.solve(10), problem.gp()
            found.append(tuple(np.asarray(each.alignment().overlaps) for each in both))
        return found


def paired(one, other) -> tuple[float, float]:
    """Mean and standard error of a difference between two networks on the same chains.

    >>> paired(np.array([1.0, 1.0]), np.array([0.0, 1.0]))
    (0.5, 0.5)
    """
    gap = np.asarray(one) - np.asarray(other)
    return float(gap.mean()), float(gap.std(ddof=1) / np.sqrt(len(gap)))


def away(ours, theirs) -> float:
    """The largest difference between numbers of ours and of the authors, relative above 1.

    >>> away([100.0, 2e-3], [101.0, 1e-3])
    0.009900990099009901
    """
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    return float(np.max(np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))))


def path_sums(problem: Problem) -> dict[str, np.ndarray]:
    """What is kept of the authors' path–path kernels."""
    C = np.asarray(kernels.path_kernels(problem.xi))
    return {
        "trace": np.trace(C, axis1=2, axis2=3),
        "sum": C.sum(axis=(2, 3)),
        "00": C[:, :, 0, 0],
        "01": C[:, :, 0, 1],
    }
