"""The problem that the theory sees: ξ, labels, heads, temperature and prior variance.

Everything that finds or samples an order parameter starts from a `Problem`, and from the same
rows of it: directions of the labels that no path reaches are taken off once, here.
"""

import dataclasses
import math
import os
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from attnpaths import _checks, _files, kernels

__all__ = ["Problem"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """A training set and setting: `xi [P, Π, D]`, `y [P]`, 𝒯, σ² and (H₁, …, H_L).

    A pytree whose `heads` are static, so that `jit`, `vmap` and devices carry it. Made, and
    checked, by `Problem.of`.

    >>> problem = Problem.of(jnp.ones((3, 4, 2)), [1, 1, -1], heads=(2, 2), temperature=0.1)
    >>> problem
    Problem(heads=(2, 2), examples=3, dim=2, temperature=0.1, prior_variance=1)
    >>> problem.paths, list(problem.arguments)
    (4, ['xi', 'y', 'heads', 'temperature', 'prior_variance'])
    >>> problem.check_features(jnp.ones((5, 4, 2))).shape
    (5, 4, 2)
    """

    xi: Float[Array, "*batch examples paths dim"]
    y: Float[Array, "*batch examples"]
    heads: tuple[int, ...] = dataclasses.field(metadata={"static": True})
    # a grid of temperatures shares everything else
    temperature: Float[Array, "..."]
    prior_variance: Float[Array, "*batch"]

    @classmethod
    def of(
        cls,
        xi: ArrayLike,
        y: ArrayLike,
        *,
        heads: Sequence[int],
        temperature: ArrayLike,
        prior_variance: ArrayLike = 1.0,
    ) -> "Problem":
        """Check everything that a theory needs, before any long work.

        Takes ξ `[P, Π, D]`, `y [P]` and (H₁, …, H_L) with ∏H_ℓ = Π.
        """
        counts = _checks.head_counts("heads", heads)
        if not hasattr(xi, "shape"):
            xi = _checks.array("xi", xi, "examples paths dim")
        if len(np.shape(xi)) == 3:
            _fits(*np.shape(xi))
        xi = _checks.array("xi", xi, "examples paths dim")
        y = _checks.array("y", y, "examples")
        if len(y) != len(xi):
            raise ValueError(f"y must hold one label per example of xi, {len(xi)}; got {len(y)}")
        count = math.prod(counts)
        if xi.shape[1] != count:
            raise ValueError(
                f"xi has {xi.shape[1]} paths but heads={counts} makes {count}; heads is "
                "(H₁, …, H_L) and xi [examples, paths, dim] has one path for every choice of a "
                "head per layer"
            )
        temperature = _checks.number("temperature", temperature, above=0)
        prior_variance = _checks.number("prior_variance", prior_variance, above=0)
        _look_at(y)
        return cls(xi, y, counts, temperature, prior_variance)

    def __repr__(self):
        """Sizes and setting, on one line."""
        examples, _, dim = self.xi.shape[-3:]
        setting = (self.temperature, self.prior_variance)
        if any(_checks.is_traced(each) or jnp.ndim(each) for each in setting):
            return f"Problem(heads={self.heads}, {examples=}, {dim=})"
        temperature, prior_variance = map(float, setting)
        return (
            f"Problem(heads={self.heads}, {examples=}, {dim=}, temperature={temperature:g}, "
            f"prior_variance={prior_variance:g})"
        )

    @property
    def layers(self) -> int:
        """The number of attention layers, L."""
        return len(self.heads)

    @property
    def paths(self) -> int:
        """The number of paths, Π."""
        return math.prod(self.heads)

    @property
    def arguments(self) -> dict[str, Any]:
        """What `theory.solve` and its like take: `theory.solve(**problem.arguments, width=10)`."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def check_features(self, xi: ArrayLike) -> Float[Array, "tests paths dim"]:
        """Features of new examples, or a ValueError if they are not of this network.

        Takes and gives ξ `[P*, Π, D]`.
        """
        xi = _checks.array("xi", xi, "examples paths dim")
        if xi.shape[1:] != self.xi.shape[-2:]:
            raise ValueError(
                f"xi must have {self.xi.shape[-2]} paths of dimension {self.xi.shape[-1]} as in "
                f"training; got shape {xi.shape}"
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
    def y(self) -> Float[Array, "*batch examples"]:
        """The labels of training."""
        return self.problem.y

    @property
    def temperature(self) -> Float[Array, "..."]:
        """𝒯, the variance of the labels' noise."""
        return self.problem.temperature

    @property
    def prior_variance(self) -> Float[Array, "*batch"]:
        """σ², the prior variance of all weights."""
        return self.problem.prior_variance


class Rows(NamedTuple):
    """A problem in as few rows as hold it: examples, or combinations of them.

    `unseen` counts the directions of the labels that no path reaches, and `missed` is what of
    ‖Y‖² lies there.
    """

    xi: Float[Array, "rows paths dim"]
    y: Float[Array, " rows"]
    unseen: int
    missed: Float[Array, ""]


def reduce_rows(problem: Problem) -> Rows:
    """Combine examples into as many rows as the features span, where they are more.

    With an orthogonal Q, K = Q (Qᵀξ)(Qᵀξ)ᵀ Qᵀ: Qᵀξ and QᵀY pose the same problem.
    """
    examples, paths, dim = problem.xi.shape
    count = row_count(examples, paths, dim)
    if count == examples:
        return Rows(problem.xi, problem.y, 0, jnp.zeros(()))
    basis, flat = jnp.linalg.qr(problem.xi.reshape(examples, -1))
    y = basis.T @ problem.y
    missed = jnp.sum((problem.y - basis @ y) ** 2)
    return Rows(flat.reshape(count, paths, dim), y, examples - count, missed)


def row_count(examples: int, paths: int, dim: int) -> int:
    """The size of the kernel that is factorised: examples, or features where they are fewer."""
    return min(examples, paths * dim)


def _fits(examples: int, paths: int, dim: int) -> None:
    rows = row_count(examples, paths, dim)
    kept = rows**2 * paths**2 if kernels.stores(rows, paths) else 4 * rows * paths * dim
    _checks.memory(
        8 * (kept + 8 * rows**2 + 3 * examples * paths * dim + examples**2),
        f"a theory of {examples} examples and {paths} paths",
        "use fewer examples",
    )


def _look_at(y) -> None:
    """Warn of labels that are probably not meant as numbers to regress on."""
    if _checks.is_traced(y):
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
