"""The prior of the order parameter at finite width: a hierarchy of Wishart matrices.

The weights of a network, drawn from their prior, have the order parameters

    Ũ⁽ᴸ⁺¹⁾ ~ (σ²/N_{L+1}) χ² with N_{L+1} degrees of freedom,
    Ũ⁽ℓ⁾ | Ũ⁽ℓ⁺¹⁾ ~ Wishart(N_ℓ, σ² I ⊗ Ũ⁽ℓ⁺¹⁾)/N_ℓ,

where N_ℓ units enter layer ℓ, and N_{L+1} the readout; in the paper all are N. In the factor
form, Ũ⁽ℓ⁾ = A_ℓ A_ℓᵀ with A_ℓ = (I ⊗ A_{ℓ+1}) B_ℓ, the factors of different levels are
independent, and each is Bartlett's: B_ℓ√N_ℓ/σ is lower triangular with χ_{N_ℓ−i} (i = 0, 1, …)
on the diagonal and N(0, 1) below it. No matrix of rank N has more than N columns, so that narrow
networks have trapezoidal factors, min(|Π_ℓ|, N_ℓ) columns wide. The diagonal entry of column N
has one degree of freedom: it is |N(0, 1)|, and is given its sign back here, since a logarithm of
it would be hard to sample. A layer with a skip keeps the rows of the level above: the first rows
of its B_ℓ are the identity, and the others are Bartlett's, with i counted from the first row of
all. With C outputs the last level is a Wishart matrix of C rows.

Coordinates z are such that the prior of each is close to N(0, 1): an entry below the diagonal
is its own coordinate, and χ_ν = √ν exp(z/√(2ν)). Inside this module σ = 1, and `widths` are
(N_1, …, N_{L+1}).
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnpaths.network.ways import Heads, Ways
from attnpaths.theory.factors import Factors, assemble

# wider Gaussian vectors, whose lengths are χ, only take memory
_VECTORS = 10_000


class Level(NamedTuple):
    """The shape of one factor B, the width N of its level, and how many rows are the identity."""

    rows: int
    columns: int
    width: int
    fixed: int = 0

    @property
    def chis(self) -> np.ndarray:
        """Which diagonal entries are χ: the free ones but that of column N, which is Gaussian."""
        return np.arange(self.fixed, max(self.fixed, min(self.columns, self.width - 1)))

    @property
    def gaussian(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the Gaussian entries are: below the diagonal, and at the end of column N."""
        row, column = np.tril_indices(self.rows, 0, self.columns)
        keep = (row > column) | (column == self.width - 1)
        keep &= row >= self.fixed
        return row[keep], column[keep]

    @property
    def freedom(self) -> Float[Array, " chis"]:
        """The degrees of freedom of each χ."""
        return jnp.asarray(self.width - self.chis, dtype=float)


def levels(heads: Heads, widths: tuple[int, ...]) -> list[Level]:
    """The factors B_{L+1}, …, B_1.

    >>> [level[:2] for level in levels((2, 2), (3, 3, 3))]
    [(1, 1), (2, 2), (4, 3)]
    """
    ways = Ways.of(heads)
    result, columns = [], 1
    counts = ways.readouts, *reversed(ways.counts)
    skips = False, *reversed(ways.residual)
    for count, skip, width in zip(counts, skips, reversed(widths), strict=True):
        rows, fixed = count * columns, skip * columns
        columns = min(rows, width)
        result.append(Level(rows, columns, width, fixed))
    return result


def size(heads: Heads, widths: tuple[int, ...]) -> int:
    """How many coordinates there are."""
    return sum(len(level.chis) + len(level.gaussian[0]) for level in levels(heads, widths))


def factors(z: Float[Array, " size"], heads: Heads, widths: tuple[int, ...]) -> Factors:
    """The factors B_{L+1}, …, B_1 that coordinates stand for."""
    result = []
    for level, diagonal, others in _split(z, heads, widths):
        chi = jnp.sqrt(level.freedom) * jnp.exp(diagonal / jnp.sqrt(2 * level.freedom))
        matrix = jnp.zeros((level.rows, level.columns)).at[level.gaussian].set(others)
        matrix = matrix.at[level.chis, level.chis].set(chi) / math.sqrt(level.width)
        same = np.arange(level.fixed)
        result.append(matrix.at[same, same].set(1.0))
    return tuple(result)


def log_prior(z: Float[Array, " size"], heads: Heads, widths: tuple[int, ...]) -> Float[Array, ""]:
    """The logarithm of the prior density of the coordinates, up to a constant."""
    total = jnp.zeros(())
    for level, diagonal, others in _split(z, heads, widths):
        # ν ln χ − χ²/2, whose maximum, at z = 0, is subtracted
        x = 2 * diagonal / jnp.sqrt(2 * level.freedom)
        total -= jnp.sum(level.freedom * (jnp.expm1(x) - x)) / 2 + jnp.sum(others**2) / 2
    return total


def draw(key: Array, heads: Heads, widths: tuple[int, ...]) -> Float[Array, " size"]:
    """Coordinates drawn from the prior, exactly."""
    layout = levels(heads, widths)
    squares, normals = (_by_gamma if max(widths) > _VECTORS else _by_vectors)(key, layout)
    parts = []
    for level, square, normal in zip(layout, squares, normals, strict=True):
        parts += [jnp.sqrt(2 * level.freedom) * jnp.log(square / level.freedom) / 2, normal]
    return jnp.concatenate(parts)


def _by_vectors(key, layout):
    """χ² and Gaussian entries of each level, where χ is the length of a Gaussian vector."""
    # one call for all: each takes a second to compile
    sizes = [n for v in layout for n in (len(v.chis) * v.width, len(v.gaussian[0]))]
    numbers = jnp.split(jax.random.normal(key, (sum(sizes),)), np.cumsum(sizes)[:-1])
    squares = []
    for level, flat in zip(layout, numbers[::2], strict=True):
        kept = np.tri(len(level.chis), level.width, level.fixed - 1) == 0
        vectors = jnp.where(kept, flat.reshape(kept.shape), 0.0)
        squares.append(jnp.sum(vectors**2, axis=1))
    return squares, numbers[1::2]


def _by_gamma(key, layout):
    """The same for any width: χ² of ν degrees of freedom is twice Gamma(ν/2)."""
    first, second = jax.random.split(key)
    squares = jax.random.chisquare(first, jnp.concatenate([level.freedom for level in layout]))
    ends = np.cumsum([(len(v.chis), len(v.gaussian[0])) for v in layout], axis=0)
    normals = jax.random.normal(second, (ends[-1, 1],))
    return jnp.split(squares, ends[:-1, 0]), jnp.split(normals, ends[:-1, 1])


def order_parameter(B: Factors) -> Float[Array, "paths paths"]:
    """U = A₁A₁ᵀ."""
    A = assemble(B)[-1]
    return A @ A.T


def _split(z, heads, widths):
    """Each level, the coordinates of its χ, and its Gaussian entries."""
    start = 0
    for level in levels(heads, widths):
        middle = start + len(level.chis)
        end = middle + len(level.gaussian[0])
        yield level, z[start:middle], z[middle:end]
        start = end
