"""The factor form of the order parameter: a small deep linear network of triangular matrices.

Every level of the order parameter is written U⁽ℓ⁾ = A_ℓ A_ℓᵀ with A_ℓ = (I ⊗ A_{ℓ+1}) B_ℓ and
B_ℓ lower triangular. Then U⁽ℓ⁾ U_ext⁽ℓ⁺¹⁾⁻¹ is similar to B_ℓ B_ℓᵀ, so that the entropy is a
sum over layers, −ℒ = σ⁻²‖B_ℓ‖² − 2 Σ ln diag B_ℓ; positivity is built in, the GP limit is
B_ℓ = σI, and no inverse of an order parameter is ever formed. Here σ = 1: levels are measured in
powers of σ², U⁽ℓ⁾ = σ^{2(L+2−ℓ)} u⁽ℓ⁾. Factors are listed from the last level to the first,
B_{L+1}, …, B_1. Narrow networks have trapezoidal ones.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

Factors = tuple[Float[Array, "_ _"], ...]


def level_sizes(heads: tuple[int, ...]) -> list[int]:
    """The numbers of partial paths |Π_ℓ|, from the last level L+1 (one) to the first (all).

    >>> level_sizes((2, 3))
    [1, 3, 6]
    """
    return [math.prod(heads[i:]) for i in range(len(heads), -1, -1)]


def unknowns(heads: tuple[int, ...]) -> int:
    """How many independent numbers the factors B_ℓ hold."""
    return sum(n * (n + 1) // 2 for n in level_sizes(heads))


def triangular(theta: Float[Array, " unknowns"], heads: tuple[int, ...]) -> Factors:
    """The factors B_{L+1}, …, B_1 that unknowns stand for; zeros stand for identities.

    Each level's unknowns are the logarithms of the diagonal of B_ℓ, then the entries below it.

    >>> triangular(jnp.zeros(4), (2,))[1]
    Array([[1., 0.],
           [0., 1.]], dtype=float64)
    """
    result, start = [], 0
    for size in level_sizes(heads):
        middle, end = start + size, start + size * (size + 1) // 2
        below = jnp.zeros((size, size)).at[np.tril_indices(size, -1)].set(theta[middle:end])
        result.append(below + jnp.diag(jnp.exp(theta[start:middle])))
        start = end
    return tuple(result)


def move(B: Factors, step: Float[Array, " unknowns"], heads: tuple[int, ...]) -> Factors:
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


def entropies(B: Factors) -> Float[Array, " levels"]:
    """−ℒ of every level, Eq. 33, in the order of the factors."""
    terms = [jnp.sum(b**2) - 2 * jnp.sum(jnp.log(jnp.diag(b))) for b in B]
    return jnp.stack(terms)


def gp_limit(heads: tuple[int, ...], amplitude: ArrayLike = 1.0) -> Factors:
    """The factors B_ℓ = I of the GP limit, or a multiple of them."""
    return tuple(jnp.asarray(amplitude) * jnp.eye(n) for n in level_sizes(heads))


def pairs(A: Float[Array, "paths paths"]) -> Float[Array, " pairs"]:
    """The entries of U = A Aᵀ on and below its diagonal."""
    return (A @ A.T)[np.tril_indices(len(A))]


def entropy_hessian(
    B: Factors, shares: Float[Array, " levels"], heads: tuple[int, ...]
) -> Float[Array, "unknowns unknowns"]:
    """The second derivative of the entropy in `step`: that of the action for wide networks."""
    origin = jnp.zeros(unknowns(heads))
    return jax.hessian(lambda step: jnp.sum(shares * entropies(move(B, step, heads))))(origin)
