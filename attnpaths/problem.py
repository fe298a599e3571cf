"""The problem that the theory sees: ξ, labels, heads, temperature and prior variance.

Everything that finds or samples an order parameter starts from a `Problem`, and from the same
rows of it: directions of the labels that no path reaches are taken off once, here.
"""

import dataclasses
import os
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from attnpaths import _checks, _files, kernels, paths
from attnpaths.network.ways import Ways

__all__ = ["Problem"]

# Kernels that exceed the temperature by more than this are rotated before they are factorised; by
# less, if ‖Y‖² exceeds it by more than the second.
GRADED_RATIO, HEAVY_LABELS = 1e6, 1e3
# Up to so many rows, if some are a combination of others, kernels above the temperature by so much
# are rotated, too: a narrow network may learn to exceed it by far more.
DEFICIENT_ROWS, DEFICIENT_RATIO = 512, 1e2


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """A training set and setting: `xi [P, Π, D]`, `y [P]`, 𝒯, σ² and (H₁, …, H_L).

    `residual` are the layers with a skip, and `outputs` is C where y is `[P, C]`, else None. σ² is
    one number, or one for each of V⁰, V of every layer, and a. A pytree whose `heads`,
    `residual` and `outputs` are static, so that `jit`, `vmap` and devices carry it. Made, and
    checked, by `Problem.of`.

    >>> problem = Problem.of(jnp.ones((3, 4, 2)), [1, 1, -1], heads=(2, 2), temperature=0.1)
    >>> problem
    Problem(heads=(2, 2), examples=3, dim=2, temperature=0.1, prior_variance=1)
    >>> problem.paths, list(problem.arguments)
    (4, ['xi', 'y', 'heads', 'temperature', 'prior_variance', 'residual'])
    >>> problem.check_features(jnp.ones((5, 4, 2))).shape
    (5, 4, 2)
    """

    xi: Float[Array, "*batch examples paths dim"]
    y: Float[Array, "..."]
    heads: tuple[int, ...] = dataclasses.field(metadata={"static": True})
    # a grid of temperatures shares everything else
    temperature: Float[Array, "..."]
    prior_variance: Float[Array, "..."]
    residual: tuple[bool, ...] = dataclasses.field(default=(), metadata={"static": True})
    outputs: int | None = dataclasses.field(default=None, metadata={"static": True})

    @classmethod
    def of(
        cls,
        xi: ArrayLike,
        y: ArrayLike,
        *,
        heads: Sequence[int],
        temperature: ArrayLike,
        prior_variance: ArrayLike | Sequence[ArrayLike] = 1.0,
        residual: bool | Sequence[bool] = False,
    ) -> "Problem":
        """Check everything that a theory needs, before any long work.

        Takes ξ `[P, Π, D]`, `y [P]` or `[P, C]`, and (H₁, …, H_L) with ∏(H_ℓ + r_ℓ) = Π.
        """
        counts = _checks.head_counts("heads", heads)
        skips = _checks.skips(residual, len(counts))
        if not hasattr(xi, "shape"):
            xi = _checks.array("xi", xi, "examples paths dim")
        if len(np.shape(xi)) == 3:
            _fits(*np.shape(xi), outputs=np.shape(y)[1] if _checks.axes_of(y) == 2 else 1)
        xi = _checks.array("xi", xi, "examples paths dim")
        y = _checks.labels(y, len(xi), "xi")
        ways = Ways(counts, skips, y.shape[1] if y.ndim == 2 else None)
        if xi.shape[1] != ways.paths:
            raise ValueError(
                f"xi has {xi.shape[1]} paths but {Ways(counts, skips)} makes {ways.paths}; heads "
                "is (H₁, …, H_L) and xi [examples, paths, dim] has one path for every choice of a "
                "head per layer, or of its skip, where `residual` gives it one"
            )
        temperature = _checks.number("temperature", temperature, above=0)
        prior_variance = _checks.variances(prior_variance, len(counts))
        _look_at(y)
        return cls(xi, y, counts, temperature, prior_variance, skips, ways.outputs)

    def __repr__(self):
        """Sizes and setting, on one line."""
        examples, _, dim = self.xi.shape[-3:]
        setting = (self.temperature, self.prior_variance)
        if any(_checks.is_traced(each) or jnp.ndim(each) for each in setting):
            return f"Problem({self.ways}, {examples=}, {dim=})"
        temperature, prior_variance = map(float, setting)
        return (
            f"Problem({self.ways}, {examples=}, {dim=}, temperature={temperature:g}, "
            f"prior_variance={prior_variance:g})"
        )

    @property
    def layers(self) -> int:
        """The number of attention layers, L."""
        return len(self.heads)

    @property
    def ways(self) -> Ways:
        """Heads, skips and outputs, and what they make of paths."""
        return Ways(self.heads, self.residual, self.outputs)

    @property
    def paths(self) -> int:
        """The number of paths, Π."""
        return self.ways.paths

    @property
    def names(self) -> list[str]:
        """The names of the rows of U."""
        return paths.labels(self.heads, residual=self.ways.residual, outputs=self.outputs)

    @property
    def arguments(self) -> dict[str, Any]:
        """What `theory.solve` and its like take: `theory.solve(**problem.arguments, width=10)`."""
        names = [field.name for field in dataclasses.fields(self) if field.name != "outputs"]
        return {name: getattr(self, name) for name in names} | {"residual": self.ways.residual}

    @property
    def regression(self) -> dict[str, Any]:
        """What `kernels.regress` takes of the setting: 𝒯, σ² of V⁰, and s_π of every path."""
        variances = self.ways.variances(self.prior_variance)
        given = {"temperature": self.temperature, "prior_variance": variances[0]}
        return given | {"scale": self.ways.scales}

    @property
    def path_variances(self) -> Float[Array, " paths"]:
        """The prior variance of what path π adds to an output, for each unit of ‖ξ^π‖²."""
        ways, dim = self.ways, self.xi.shape[-1]
        along = ways.units(self.prior_variance)[-1][:: ways.readouts]
        return jnp.square(ways.scales) * along * ways.variances(self.prior_variance)[0] / dim

    @property
    def valid(self) -> Bool[Array, ""]:
        """Whether there is an answer: what is traced could not be refused.

        𝒯 and σ² are positive and finite, and ξ and y neither NaN nor so large that K/𝒯 overflows.
        """
        setting = jnp.stack([jnp.min(self.temperature), *jnp.ravel(self.prior_variance)])
        along = self.path_variances * self.paths * self.xi.shape[-1]
        scaled = jnp.sum(jnp.einsum("...pi,p->...", self.xi**2, along))
        size = (scaled + jnp.sum(self.y**2)) / jnp.min(self.temperature)
        return jnp.all(setting > 0) & jnp.all(jnp.isfinite(setting)) & jnp.isfinite(size)

    def check_features(self, xi: ArrayLike, name: str = "xi") -> Float[Array, "tests paths dim"]:
        """Features of new examples, or a ValueError if they are not of this network.

        Takes and gives ξ `[P*, Π, D]`; `name` is what the error calls it.
        """
        xi = _checks.array(name, xi, "examples paths dim")
        if xi.shape[1:] != self.xi.shape[-2:]:
            raise ValueError(
                f"{name} must have {self.xi.shape[-2]} paths of dimension {self.xi.shape[-1]} as "
                f"in training; got shape {xi.shape}"
            )
        return xi


class OfProblem:
    """A result that can be saved, and what it says of the `problem` that it is of."""

    problem: Problem

    def save(self, path: str | os.PathLike) -> None:
        """Write all of it to a .npz file."""
        _files.save(path, self)

    @property
    def heads(self) -> tuple[int, ...]:
        """(H₁, …, H_L)."""
        return self.problem.heads

    @property
    def xi(self) -> Float[Array, "*batch examples paths dim"]:
        """The attentioned inputs of training."""
        return self.problem.xi

    @property
    def y(self) -> Float[Array, "..."]:
        """The labels of training."""
        return self.problem.y

    @property
    def temperature(self) -> Float[Array, "..."]:
        """𝒯, the variance of the labels' noise."""
        return self.problem.temperature

    @property
    def prior_variance(self) -> Float[Array, "..."]:
        """σ², the prior variance of all weights, or of each kind of them."""
        return self.problem.prior_variance

    @property
    def residual(self) -> tuple[bool, ...]:
        """Which layers add their input to their output."""
        return self.problem.ways.residual


class Rows(NamedTuple):
    """A problem in as few rows as hold it: examples, or combinations of them.

    `unseen` counts the directions of the labels that no path reaches, and `missed` is what of
    ‖Y‖² lies there. Where rounding hides whether a path reaches some of them, `unsure` is the
    square of what it hides times what of ‖Y‖² it is about.
    """

    xi: Float[Array, "rows paths dim"]
    y: Float[Array, "rows *outputs"]
    unseen: int
    missed: Float[Array, ""]
    unsure: Float[Array, ""]


def reduce_rows(problem: Problem) -> Rows:
    """Combine examples into as many rows as the features span, where they are more.

    With an orthogonal Q, K = Q (Qᵀξ)(Qᵀξ)ᵀ Qᵀ: Qᵀξ and QᵀY pose the same problem.
    """
    examples, paths, dim = problem.xi.shape
    count = row_count(examples, paths, dim)
    if count == examples:
        return Rows(problem.xi, problem.y, 0, jnp.zeros(()), jnp.zeros(()))
    basis, flat = jnp.linalg.qr(problem.xi.reshape(examples, -1))
    y = basis.T @ problem.y
    missed = jnp.sum((problem.y - basis @ y) ** 2)
    unseen = (examples - count) * problem.ways.readouts
    return Rows(flat.reshape(count, paths, dim), y, unseen, missed, jnp.zeros(()))


def graded_rows(problem: Problem) -> Rows:
    """The rows of a problem, rotated so that large and tiny parts of the kernel do not mix.

    K + 𝒯 then has a Cholesky factor that is exact in small directions too, and what the labels
    have in directions that no path reaches is taken off. This matters where kernel or labels
    exceed the temperature by many digits, and costs time where they do not. Solving
    and predicting start from the same rows, so that what one can factorise the other can.
    """
    rows = reduce_rows(problem)
    count, paths, dim = rows.xi.shape
    flat = rows.xi.reshape(count, -1)

    def rotate():
        basis, values, features = jnp.linalg.svd(flat, full_matrices=False)
        y = basis.T @ rows.y
        hidden = jnp.finfo(float).eps * max(flat.shape) * values[0]
        reached = values > hidden
        off = jnp.where(reached.reshape(-1, *(1,) * (y.ndim - 1)), 0.0, y)
        missed = jnp.sum(off**2)
        kept = jnp.where(reached, values, 0.0)[:, None] * features
        return kept, y - off, missed, hidden**2 * missed

    scaled = rows.xi * jnp.sqrt(problem.path_variances)[None, :, None]
    coldest = jnp.min(problem.temperature)
    ratio = jnp.max(jnp.sum(scaled**2, axis=(1, 2))) / coldest
    heavy = jnp.maximum(jnp.sum(rows.y**2) / coldest / HEAVY_LABELS, 1.0)
    rotated = ratio * heavy > GRADED_RATIO
    if count <= DEFICIENT_ROWS:
        rotated |= (ratio > DEFICIENT_RATIO) & _combined(flat)
    none = jnp.zeros(())
    flat, y, missed, unsure = jax.lax.cond(rotated, rotate, lambda: (flat, rows.y, none, none))
    xi = flat.reshape(count, paths, dim)
    return Rows(xi, y, rows.unseen, rows.missed + missed, unsure)


def _combined(flat: Float[Array, "rows features"]) -> Bool[Array, ""]:
    """Whether some rows are, to rounding, a combination of others."""
    gram = flat @ flat.T
    largest = jnp.max(jnp.diag(gram))
    pivots = jnp.diag(jnp.linalg.cholesky(gram + 1e-12 * largest * jnp.eye(len(flat)))) ** 2
    # NaN, which is no number at all, counts as well
    return ~(jnp.min(pivots) > 1e-7 * largest)


def row_count(examples: int, paths: int, dim: int) -> int:
    """The size of the kernel that is factorised: examples, or features where they are fewer."""
    return min(examples, paths * dim)


def _fits(examples: int, paths: int, dim: int, outputs: int) -> None:
    rows = row_count(examples, paths, dim)
    stored = rows**2 * paths**2 if kernels.stores(rows, paths, outputs) else 0
    numbers = stored or 4 * rows * paths * dim * outputs**2
    numbers += 3 * examples * paths * dim + examples**2 + 8 * (rows * outputs) ** 2
    # the order parameter, its levels and factors, and their derivatives
    numbers += 12 * (paths * outputs) ** 2
    what = f"a theory of {examples} examples and {paths} paths"
    _checks.memory(8 * numbers, what, "use fewer examples or paths")


def _look_at(y) -> None:
    """Warn of labels that are probably not meant as numbers to regress on."""
    if _checks.is_traced(y) or y[0].size > 1:
        return
    values = np.unique(np.asarray(y))
    whole = np.array_equal(values, np.round(values)) and values.min() >= 0
    if whole and 1 < len(values) <= 20 and values.max() < 1000:
        named = ", ".join(f"{v:g}" for v in values[:4]) + (", …" if len(values) > 4 else "")
        warnings.warn(
            f"y holds {named}, which look like names of classes, but the theory regresses on them "
            "as numbers; write two classes as −1 and +1 (2 * y - 1 for labels 0 and 1)",
            UserWarning,
            stacklevel=4,
        )
