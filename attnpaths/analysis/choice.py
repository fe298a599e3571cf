"""Width and temperature where they are not given: by cross-validation, or by evidence."""

import dataclasses
import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import multivariate_normal
from jaxtyping import Float

from attnpaths import theory
from attnpaths.analysis.labels import hits
from attnpaths.problem import Problem

#: Widths to choose from, and temperatures as multiples of the mean kernel of an example.
WIDTHS, TEMPERATURES = (10.0, 100.0, 1000.0), (0.01, 0.03, 0.1, 0.3)
# A kernel of less than this share of the temperature is drowned by it.
_FAINT = 0.05


@dataclasses.dataclass(frozen=True, eq=False)
class Choice:
    """What was tried and how it did: `values [W, K]` of `by`, which is best where largest.

    By `"cross-validation"` they are minus the mean square error on examples that were left out,
    and `accuracy [W, K]` is that on them; by `"evidence"` the logarithm of the evidence, with no
    accuracy.
    """

    by: str
    widths: tuple[float, ...]
    temperatures: tuple[float, ...]
    values: Float[np.ndarray, "W K"]
    accuracy: Float[np.ndarray, "W K"] | None

    @property
    def best(self) -> tuple[int, int]:
        """Where in the grid the largest value is."""
        return divmod(int(np.argmax(self.values)), len(self.temperatures))


def size(problem: Problem) -> float:
    """The mean over examples of the kernel of an example with itself, in the GP limit."""
    return float(np.einsum("pki,k->", problem.xi**2, problem.path_variances) / len(problem.xi))


def warn_if_faint(problem: Problem, temperature: float) -> None:
    """Say so where labels are noise to the theory, which then answers 0 to everything."""
    kernel = size(problem)
    if kernel < _FAINT * temperature:
        warnings.warn(
            f"the kernel of an example is {kernel:.2g} on average, far below the temperature "
            f"{temperature:.2g}: the labels look like noise and predictions are close to 0; lower "
            'the temperature, or take tokens="normalised"',
            UserWarning,
            stacklevel=3,
        )


def choose(problem: Problem, by: str, width, temperature, folds: int, seed: int, bar: bool):
    """How each of a small grid does, where what is given stays."""
    widths = WIDTHS if width is None else (width,)
    scale = size(problem)
    temperatures = tuple(scale * t for t in TEMPERATURES)
    temperatures = temperatures if temperature is None else (temperature,)
    if by == "evidence":
        if len(widths) > 1 or not math.isfinite(widths[0]):
            raise ValueError(
                'choose="evidence" needs a finite width: at the saddle point the evidence always '
                'prefers the narrowest; give `width`, or choose="cross-validation"'
            )
        values = np.asarray(log_evidence(_grid(problem, widths, temperatures, bar)))
        return Choice("evidence", widths, temperatures, values, None)
    y = np.asarray(problem.y)
    kinds = y if y.ndim == 1 else y.argmax(axis=1)
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(kinds[order], kind="stable")]
    errors, right = np.zeros((2, len(widths), len(temperatures)))
    for fold in range(folds):
        out = order[fold::folds]
        kept = np.setdiff1d(order, out)
        part = dataclasses.replace(problem, xi=problem.xi[kept], y=problem.y[kept])
        mean = np.asarray(_grid(part, widths, temperatures, bar).predict(problem.xi[out]).mean)
        errors += np.sum((mean - y[out]) ** 2, axis=tuple(range(2, mean.ndim)))
        right += np.sum(hits(mean, y[out]), axis=-1)
    return Choice("cross-validation", widths, temperatures, -errors / y.size, right / len(y))


def log_evidence(solution: theory.Theory) -> Float[jax.Array, "..."]:
    """ln p(Y) at the saddle point: −(N/2)(S − S_prior) − (PC/2) ln 2π.

    S_prior is the action of the prior alone, without labels. To leading order in 1/N: the spread
    around the saddle point is left out. By the envelope theorem it falls with N whatever the
    data, since every width may do what a larger one does, so that it can choose a temperature but
    no width. At N = ∞ it is the Gaussian process's, ln 𝒩(Y; 0, 𝒦 + 𝒯I), exactly.
    """
    if np.isinf(solution.width).all():
        # S and S_prior are the same there, but N times what is between them is not
        y = solution.problem.y.ravel()
        covariance = solution.kernel() + solution.temperature * jnp.eye(len(y))
        return jnp.asarray(multivariate_normal.logpdf(y, jnp.zeros_like(y), covariance))
    arguments = solution.problem.arguments
    # the prior's entropy has no temperature, of which a grid has many
    arguments["temperature"] = 1.0
    prior = theory.gp_limit(**arguments).entropy
    labels = math.log(2 * math.pi) * solution.problem.y.size
    return -(solution.width * (solution.action - prior) + labels) / 2


def _grid(problem: Problem, widths, temperatures, bar) -> theory.Sweep:
    arguments = {k: v for k, v in problem.arguments.items() if k != "temperature"}
    return theory.sweep(**arguments, widths=widths, temperatures=temperatures, progress=bar)
