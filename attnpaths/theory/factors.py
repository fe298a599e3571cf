"""The factor form of the order parameter: a small deep linear network of triangular matrices.

Every level of the order parameter is written U⁽ℓ⁾ = A_ℓ A_ℓᵀ with A_ℓ = (I ⊗ A_{ℓ+1}) B_ℓ and
B_ℓ lower triangular. Then U⁽ℓ⁾ U_ext⁽ℓ⁺¹⁾⁻¹ is similar to B_ℓ B_ℓᵀ, so that the entropy is a
sum over layers, −ℒ = σ⁻²‖B_ℓ‖² − 2 Σ ln diag B_ℓ; positivity is built in, the GP limit is
B_ℓ = σI, and no inverse of an order parameter is ever formed. Here σ = 1: levels are measured in
powers of σ², U⁽ℓ⁾ = σ^{2(L+2−ℓ)} u⁽ℓ⁾. Factors are listed from the last level to the first,
B_{L+1}, …, B_1. Narrow networks have trapezoidal ones.

A layer that adds its input to its output keeps the rows of the level above, next to those through
its heads: the first rows of its B_ℓ are the identity, and have no entropy. With C outputs the
last level has C rows in place of one. Both are said by `Ways`, which here takes the place of the
numbers of heads.
"""

import itertools

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from attnpaths.network.ways import Heads, Ways

Factors = tuple[Float[Array, "_ _"], ...]


def level_sizes(heads: Heads) -> list[int]:
    """The numbers of partial paths |Π_ℓ|, from the last level L+1 (one) to the first (all).

    >>> level_sizes((2, 3))
    [1, 3, 6]
    """
    return [rows for rows, _ in Ways.of(heads).levels]


def unknowns(heads: Heads) -> int:
    """How many independent numbers the factors B_ℓ hold."""
    return ranges(heads)[-1][1]


def triangular(theta: Float[Array, " unknowns"], heads: Heads) -> Factors:
    """The factors B_{L+1}, …, B_1 that unknowns stand for; zeros stand for identities.

    Each level's unknowns are the logarithms of the diagonal of B_ℓ, then the entries below it,
    of all rows that are free.

    >>> triangular(jnp.zeros(4), (2,))[1]
    Array([[1., 0.],
           [0., 1.]], dtype=float64)
    """
    each = _directions(theta, Ways.of(heads))
    return tuple(x + jnp.diag(jnp.exp(jnp.diag(x)) - jnp.diag(x)) for x in each)


def _directions(step: Float[Array, " unknowns"], ways: Ways) -> Factors:
    """The triangular matrices of which a step has the diagonals and what is below them."""
    found, padded = [], jnp.append(step, 0.0)
    for (size, fixed), (start, end) in zip(ways.levels, ranges(ways), strict=True):
        place, own = np.full((size, size), len(step)), np.arange(fixed, size)
        row, column = _below(size, fixed)
        place[np.append(own, row), np.append(own, column)] = np.arange(start, end)
        found.append(padded[place])
    return tuple(found)


def _below(size: int, fixed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries below the diagonal, in the rows that are free."""
    row, column = np.tril_indices(size, -1)
    return row[row >= fixed], column[row >= fixed]


def move(B: Factors, step: Float[Array, " unknowns"], heads: Heads) -> Factors:
    """Multiply every factor by the triangular matrix that `step` stands for.

    Steps are thus measured relative to where one is, U → A(1 + X)(1 + X)ᵀAᵀ, so that strongly
    mixed or nearly suppressed paths are as easy to move as those of the GP limit.
    """
    return tuple(b @ e for b, e in zip(B, triangular(step, heads), strict=True))


def assemble(B: Factors) -> Factors:
    """The A_{L+1}, …, A_1 of all levels: U⁽ℓ⁾ = A_ℓ A_ℓᵀ."""
    A, levels = jnp.eye(1), []
    for b in B:
        # (I ⊗ A) B without forming the Kronecker product
        blocks = b.reshape(-1, A.shape[1], b.shape[1])
        A = (A @ blocks).reshape(-1, b.shape[1])
        levels.append(A)
    return tuple(levels)


def entropies(B: Factors, ways: Ways | None = None) -> Float[Array, " levels"]:
    """−ℒ of every level, Eq. 33, in the order of the factors; the rows of skips have none."""
    fixed = [0] * len(B) if ways is None else [rows for _, rows in ways.levels]
    terms = [
        jnp.sum(b**2) - rows - 2 * jnp.sum(jnp.log(jnp.diag(b)))
        for b, rows in zip(B, fixed, strict=True)
    ]
    return jnp.stack(terms)


def gp_limit(heads: Heads, amplitude: ArrayLike = 1.0) -> Factors:
    """The factors B_ℓ = I of the GP limit, or with all of U smaller by amplitude^{2(L+1)}."""
    ways = Ways.of(heads)
    last, *others = (jnp.eye(n) for n in level_sizes(ways))
    amplitude = jnp.asarray(amplitude)
    if any(ways.residual):
        # a level whose rows are fixed is no smaller than that above: the last makes up for all
        return amplitude ** (len(others) + 1) * last, *others
    return tuple(amplitude * b for b in (last, *others))


def pairs(A: Float[Array, "paths paths"]) -> Float[Array, " pairs"]:
    """The entries of U = A Aᵀ on and below its diagonal."""
    return (A @ A.T)[np.tril_indices(len(A))]


def in_steps(B: Factors, slopes: Factors, heads: Heads) -> Float[Array, " unknowns"]:
    """The gradient in the `step` of `move`, at no step, from that in the factors."""
    found = []
    for b, slope, (size, fixed) in zip(B, slopes, Ways.of(heads).levels, strict=True):
        row, column = _below(size, fixed)
        relative = b.T @ slope
        found += [jnp.diag(relative)[fixed:], relative[row, column]]
    return jnp.concatenate(found)


def towards(B: Factors, step: Float[Array, " unknowns"], heads: Heads) -> Factors:
    """How the factors move along a small step of `move`."""
    return tuple(b @ x for b, x in zip(B, _directions(step, Ways.of(heads)), strict=True))


def ranges(heads: Heads) -> list[tuple[int, int]]:
    """Where the unknowns of every level start and end.

    >>> ranges((2, 3))
    [(0, 1), (1, 7), (7, 28)]
    """
    ends = [0]
    for n, fixed in Ways.of(heads).levels:
        ends.append(ends[-1] + (n * (n + 1) - fixed * (fixed + 1)) // 2)
    return list(itertools.pairwise(ends))


def logarithms(heads: Heads) -> Float[Array, " unknowns"]:
    """1 where an unknown is the logarithm of what it multiplies by, 0 where it is added."""
    sizes = [(n - fixed, len(_below(n, fixed)[0])) for n, fixed in Ways.of(heads).levels]
    return jnp.asarray(np.concatenate([np.repeat([1.0, 0.0], size) for size in sizes]))
