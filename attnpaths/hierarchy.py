"""The prior of the order parameter at finite width: a hierarchy of Wishart matrices.

The weights of a network of width N, drawn from their prior, have the order parameters

    Ũ⁽ᴸ⁺¹⁾ ~ (σ²/N) χ²_N,   Ũ⁽ℓ⁾ | Ũ⁽ℓ⁺¹⁾ ~ Wishart(N, σ² I ⊗ Ũ⁽ℓ⁺¹⁾)/N.

In the factor form, Ũ⁽ℓ⁾ = A_ℓ A_ℓᵀ with A_ℓ = (I ⊗ A_{ℓ+1}) B_ℓ, the factors of different
levels are independent, and each is Bartlett's: B_ℓ√N/σ is lower triangular with χ_{N−i}
(i = 0, 1, …) on the diagonal and N(0, 1) below it. No matrix of rank N has more than N columns,
so that narrow networks have trapezoidal factors, min(|Π_ℓ|, N) columns wide. The diagonal entry
of column N has one degree of freedom: it is |N(0, 1)|, and is given its sign back here, since
a logarithm of it would be hard to sample.

Coordinates z are such that the prior of each is close to N(0, 1): an entry below the diagonal
is its own coordinate, and χ_ν = √ν exp(z/√(2ν)). Inside this module σ = 1.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Factors = tuple[Float[Array, "_ _"], ...]


def shapes(heads: tuple[int, ...], width: int) -> list[tuple[int, int]]:
    """Rows and columns of the factors B_{L+1}, …, B_1.

    >>> shapes((2, 2), 10), shapes((2, 2), 3)
    ([(1, 1), (2, 2), (4, 4)], [(1, 1), (2, 2), (4, 3)])
    """
    result, columns = [], 1
    for count in (1, *reversed(heads)):
        rows = count * columns
        columns = min(rows, width)
        result.append((rows, columns))
    return result


def size(heads: tuple[int, ...], width: int) -> int:
    """How many coordinates there are.

    >>> size((2, 2), 10), size((2, 2), 3)
    (14, 13)
    """
    return sum(_chis(width, c) + len(_gaussian(r, c, width)[0]) for r, c in shapes(heads, width))


def factors(z: Float[Array, " size"], heads: tuple[int, ...], width: int) -> Factors:
    """The factors B_{L+1}, …, B_1 that coordinates stand for.

    >>> [b.shape for b in factors(jnp.zeros(4), (2,), 10)]
    [(1, 1), (2, 2)]
    """
    result = []
    for (rows, columns), diagonal, others in _split(z, heads, width):
        freedom = width - jnp.arange(len(diagonal), dtype=float)
        chi = jnp.sqrt(freedom) * jnp.exp(diagonal / jnp.sqrt(2 * freedom))
        matrix = jnp.zeros((rows, columns)).at[_gaussian(rows, columns, width)].set(others)
        on = np.arange(len(diagonal))
        result.append(matrix.at[on, on].set(chi) / math.sqrt(width))
    return tuple(result)


def log_prior(z: Float[Array, " size"], heads: tuple[int, ...], width: int) -> Float[Array, ""]:
    """The logarithm of the prior density of the coordinates, up to a constant.

    >>> float(log_prior(jnp.zeros(4), (2,), 10))
    0.0
    """
    total = jnp.zeros(())
    for _, diagonal, others in _split(z, heads, width):
        freedom = width - jnp.arange(len(diagonal), dtype=float)
        # ν ln χ − χ²/2, whose maximum, at z = 0, is subtracted
        x = 2 * diagonal / jnp.sqrt(2 * freedom)
        total -= jnp.sum(freedom * (jnp.expm1(x) - x)) / 2 + jnp.sum(others**2) / 2
    return total


def draw(key: Array, heads: tuple[int, ...], width: int) -> Float[Array, " size"]:
    """Coordinates drawn from the prior, exactly.

    >>> draw(jax.random.key(0), (2, 2), 10).shape
    (14,)
    """
    layout = [(_chis(width, c), _gaussian(r, c, width)[0].size) for r, c in shapes(heads, width)]
    # one call for all: each takes a second to compile
    normal = jax.random.normal(key, (sum(chis * width + rest for chis, rest in layout),))
    parts, start = [], 0
    for chis, rest in layout:
        middle = start + chis * width
        freedom = width - jnp.arange(chis, dtype=float)
        # χ is the length of a Gaussian vector
        vectors = normal[start:middle].reshape(chis, width)
        square = jnp.sum(jnp.where(np.tri(chis, width, -1) > 0, 0.0, vectors) ** 2, axis=1)
        parts.append(jnp.sqrt(2 * freedom) * jnp.log(square / freedom) / 2)
        parts.append(normal[middle : middle + rest])
        start = middle + rest
    return jnp.concatenate(parts)


def assemble(B: Factors) -> Factors:
    """The A_{L+1}, …, A_1 of all levels: Ũ⁽ℓ⁾ = A_ℓ A_ℓᵀ.

    >>> [A.shape for A in assemble(factors(jnp.zeros(13), (2, 2), 3))]
    [(1, 1), (2, 2), (4, 3)]
    """
    A, levels = jnp.eye(1), []
    for b in B:
        # (I ⊗ A) B without forming the Kronecker product
        blocks = b.reshape(-1, A.shape[1], b.shape[1])
        A = (A @ blocks).reshape(-1, b.shape[1])
        levels.append(A)
    return tuple(levels)


def order_parameter(B: Factors) -> Float[Array, "paths paths"]:
    """U = A₁A₁ᵀ.

    >>> order_parameter(factors(jnp.zeros(4), (2,), 10)).shape
    (2, 2)
    """
    A = assemble(B)[-1]
    return A @ A.T


def _chis(width: int, columns: int) -> int:
    """How many diagonal entries are χ: all but that of column N, which is Gaussian."""
    return min(columns, width - 1)


def _gaussian(rows: int, columns: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the Gaussian entries are: below the diagonal, and at the end of column N."""
    row, column = np.tril_indices(rows, 0, columns)
    keep = (row > column) | (column == width - 1)
    return row[keep], column[keep]


def _split(z, heads, width):
    """Each level's shape, coordinates of its χ, and Gaussian entries."""
    start = 0
    for rows, columns in shapes(heads, width):
        middle = start + _chis(width, columns)
        end = middle + len(_gaussian(rows, columns, width)[0])
        yield (rows, columns), z[start:middle], z[middle:end]
        start = end
