"""The action in its factor form: the order parameter as a small deep linear network.

Every level of the order parameter is written U⁽ℓ⁾ = A_ℓ A_ℓᵀ with A_ℓ = (I ⊗ A_{ℓ+1}) B_ℓ and
B_ℓ lower triangular. Then U⁽ℓ⁾ U_ext⁽ℓ⁺¹⁾⁻¹ is similar to B_ℓ B_ℓᵀ, so that the entropy is a
sum over layers, −ℒ = σ⁻²‖B_ℓ‖² − 2 Σ ln diag B_ℓ; positivity is built in, the GP limit is
B_ℓ = σI, and no inverse of an order parameter is ever formed.

Inside this module levels are measured in powers of σ², U⁽ℓ⁾ = σ^{2(L+2−ℓ)} u⁽ℓ⁾, which turns
every problem into one with σ = 1 whose ξ is larger by σ^{L+2}.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

# Path–path kernels up to this many bytes are stored; beyond it each kernel is one product of
# width ΠD, which is slower for few paths and needs no memory of its own.
STORED_BYTES = 2**29
# Kernels that exceed the temperature by more than this are rotated before they are factorised.
GRADED_RATIO = 1e6


Factors = tuple[Float[Array, "_ _"], ...]


class Data(NamedTuple):
    """A problem whose levels are in units of σ²; one of the two forms of its kernel is None.

    Its rows are the examples, or as many combinations of them as the features span: `unseen`
    counts the directions that no path reaches, and `missed` is what of ‖Y‖² lies there.
    """

    stored: Float[Array, "pairs rows_squared"] | None
    features: Float[Array, "rows paths dim"] | None
    y: Float[Array, " rows"]
    unseen: Int[Array, ""]
    missed: Float[Array, ""]
    temperature: Float[Array, ""]


def level_sizes(heads: tuple[int, ...]) -> list[int]:
    """The numbers of partial paths |Π_ℓ|, from the last level L+1 (one) to the first (all).

    >>> level_sizes((2, 3))
    [1, 3, 6]
    """
    return [math.prod(heads[i:]) for i in range(len(heads), -1, -1)]


def unknowns(heads: tuple[int, ...]) -> int:
    """How many independent numbers the factors B_ℓ hold.

    >>> unknowns((2, 2))
    14
    """
    return sum(n * (n + 1) // 2 for n in level_sizes(heads))


def rows(examples: int, paths: int, dim: int) -> int:
    """The size of the kernel that is factorised: examples, or features where they are fewer."""
    return min(examples, paths * dim)


def stores_kernels(rows: int, paths: int) -> bool:
    """Whether the kernels of all pairs of paths are few enough to be kept."""
    return 8 * (paths * (paths + 1) // 2) * rows**2 <= STORED_BYTES


def prepare(
    xi: Float[Array, "examples paths dim"],
    y: Float[Array, " examples"],
    *,
    layers: int,
    temperature: Float[Array, ""],
    prior_variance: Float[Array, ""],
) -> Data:
    """Absorb σ and the normalisation of the kernel in ξ; store path–path kernels that fit."""
    examples, paths, dim = xi.shape
    flat = (xi * jnp.sqrt(prior_variance ** (layers + 2) / (paths * dim))).reshape(examples, -1)
    count = rows(examples, paths, dim)
    missed = jnp.zeros(())
    if count < examples:
        basis, flat = jnp.linalg.qr(flat)
        inside = basis.T @ y
        missed, y = jnp.sum((y - basis @ inside) ** 2), inside
    flat, y = _graded(flat, y, temperature)
    unseen = jnp.asarray(examples - count)
    if not stores_kernels(count, paths):
        return Data(None, flat.reshape(count, paths, dim), y, unseen, missed, temperature)
    flat = flat.reshape(count, paths, dim).swapaxes(0, 1).reshape(paths * count, dim)
    all_pairs = (flat @ flat.T).reshape(paths, count, paths, count)
    first, second = np.tril_indices(paths)
    kernels = all_pairs.swapaxes(1, 2)[first, second]
    # U is symmetric: an entry below the diagonal counts for the one above it too
    kernels += jnp.where(jnp.asarray(first != second)[:, None, None], kernels.mT, 0.0)
    return Data(kernels.reshape(len(first), -1), None, y, unseen, missed, temperature)


def _graded(flat, y, temperature):
    """Rotate the rows so that large and tiny parts of the kernel do not mix.

    K + 𝒯 then has a Cholesky factor that is exact in small directions too, which matters where
    the kernel exceeds the temperature by many digits, and costs time where it does not.
    """

    def rotate():
        basis, values, features = jnp.linalg.svd(flat, full_matrices=False)
        return values[:, None] * features, basis.T @ y

    ratio = jnp.max(jnp.sum(flat**2, axis=1)) / temperature
    return jax.lax.cond(ratio > GRADED_RATIO, rotate, lambda: (flat, y))


def mix(data: Data, u: Float[Array, " pairs"]) -> Float[Array, "rows rows"]:
    """The kernel K(U), linear in the entries u of U on and below its diagonal."""
    count = len(data.y)
    if data.stored is not None:
        return (u @ data.stored).reshape(count, count)
    paths = data.features.shape[1]
    first, second = np.tril_indices(paths)
    entry = np.zeros((paths, paths), int)
    entry[first, second] = entry[second, first] = np.arange(len(first))
    mixed = jnp.einsum("ab,pbi->pai", u[entry], data.features)
    return data.features.reshape(count, -1) @ mixed.reshape(count, -1).T


def _likelihood(data: Data, u: Float[Array, " pairs"]):
    """Energy, its gradient in u, and what the second derivative needs, by one Cholesky factor."""
    identity = jnp.eye(len(data.y))
    factor = jnp.linalg.cholesky(mix(data, u) + data.temperature * identity)
    whitening = solve_triangular(factor, identity, lower=True)
    inverse = whitening.T @ whitening
    v = inverse @ data.y
    fit = data.y @ v
    energy = 2 * jnp.sum(jnp.log(jnp.diag(factor))) + fit
    transpose = jax.linear_transpose(lambda w: mix(data, w), u)
    (gradient,) = transpose(inverse - jnp.outer(v, v))
    return (energy, gradient, fit), (inverse, v, transpose)


@jax.custom_jvp
def energy_and_gradient(data: Data, u: Float[Array, " pairs"]):
    """P·ℰ = ln det(K+𝒯) + Yᵀ(K+𝒯)⁻¹Y, Eq. 12, its gradient in u, and its second term.

    Directions that no path reaches add the constant `unreached`, which is left out here.

    ∂/∂U_{ππ'} = tr(C_{ππ'} (K+𝒯)⁻¹) − vᵀ C_{ππ'} v with v = (K+𝒯)⁻¹Y.
    """
    return _likelihood(data, u)[0]


@energy_and_gradient.defjvp
def _(primals, tangents):
    (data, u), (_, du) = primals, tangents
    (energy, gradient, fit), (inverse, v, transpose) = _likelihood(data, u)
    dK = mix(data, du)
    dv = -inverse @ (dK @ v)
    cross = jnp.outer(dv, v)
    (dgradient,) = transpose(-inverse @ dK @ inverse - cross - cross.T)
    dfit = -v @ dK @ v
    return (energy, gradient, fit), (gradient @ du, dgradient, dfit)


@jax.custom_jvp
def energy(data: Data, u: Float[Array, " pairs"]) -> Float[Array, ""]:
    """The energy alone; differentiating it reuses the factorisation of its value."""
    return energy_and_gradient(data, u)[0]


@energy.defjvp
def _(primals, tangents):
    value, gradient, _ = energy_and_gradient(*primals)
    return value, gradient @ tangents[1]


def unreached(data: Data) -> Float[Array, ""]:
    """What directions outside the span of the features add to the energy."""
    return data.unseen * jnp.log(data.temperature) + data.missed / data.temperature


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


def assemble(B: Factors) -> tuple[Factors, Float[Array, ""]]:
    """The triangular A_{L+1}, …, A_1 of all levels, and the entropy −Σℒ, Eq. 33.

    >>> (last, first), entropy = assemble(triangular(jnp.zeros(4), (2,)))
    >>> first.shape, float(entropy)
    ((2, 2), 3.0)
    """
    A, levels, entropy = jnp.eye(1), [], jnp.zeros(())
    for b in B:
        entropy += jnp.sum(b**2) - 2 * jnp.sum(jnp.log(jnp.diag(b)))
        # (I ⊗ A) B without forming the Kronecker product
        size, inner = len(b), len(A)
        A = (A @ b.reshape(size // inner, inner, size)).reshape(size, size)
        levels.append(A)
    return tuple(levels), entropy


def gp_limit(heads: tuple[int, ...], amplitude: ArrayLike = 1.0) -> Factors:
    """The factors B_ℓ = I of the GP limit, or a multiple of them.

    >>> [b.shape for b in gp_limit((2,))]
    [(1, 1), (2, 2)]
    """
    return tuple(amplitude * jnp.eye(n) for n in level_sizes(heads))


def pairs(A: Float[Array, "paths paths"]) -> Float[Array, " pairs"]:
    """The entries of U = A Aᵀ on and below its diagonal."""
    return (A @ A.T)[np.tril_indices(len(A))]


def action(B: Factors, data: Data, width: Float[Array, ""]) -> Float[Array, ""]:
    """S = −Σℒ + αℰ, Eq. 32, at σ = 1 and without the constant `unreached`."""
    levels, entropy = assemble(B)
    return entropy + energy(data, pairs(levels[-1])) / width


def entropy_hessian(B: Factors, heads: tuple[int, ...]) -> Float[Array, "unknowns unknowns"]:
    """The second derivative of the entropy in `step`: that of the action for wide networks."""
    origin = jnp.zeros(unknowns(heads))
    return jax.hessian(lambda step: assemble(move(B, step, heads))[1])(origin)


def value_and_gradient(
    B: Factors,
    step: Float[Array, " unknowns"],
    data: Data,
    width: Float[Array, ""],
    heads: tuple[int, ...],
) -> tuple[Array, Array, Array]:
    """The action at `move(B, step)`, its gradient in `step`, and the scale of the terms in it."""

    def inner(step):
        levels, entropy = assemble(move(B, step, heads))
        return pairs(levels[-1]), entropy

    (u, entropy), pull = jax.vjp(inner, step)
    energy, gradient, fit = energy_and_gradient(data, u)
    (total,) = pull((gradient / width, jnp.ones(())))
    return entropy + energy / width, total, 1 + (len(data.y) + jnp.abs(fit)) / width


def paper_action(
    levels,
    K: Float[Array, "examples examples"],
    y: Float[Array, " examples"],
    *,
    width: Float[Array, ""],
    temperature: Float[Array, ""],
    prior_variance: Float[Array, ""],
):
    """Entropy and energy as the paper prints them, Eqs. 32–34: U_ext, its inverse, determinants.

    `levels` are U⁽¹⁾, …, U⁽ᴸ⁺¹⁾ and `K` the kernel of U⁽¹⁾. This form serves the paper's own
    recipe, `theory.solve_adam`, and checks the factor form.
    """
    entropy, upper = 0.0, jnp.ones((1, 1))
    for level in reversed(levels):
        level = jnp.atleast_2d(level)
        extended = jnp.kron(jnp.eye(len(level) // len(upper)), upper)
        trace = jnp.trace(level @ jnp.linalg.inv(extended))
        entropy += trace / prior_variance - _log_det(level) + _log_det(extended)
        upper = level
    noisy = K + temperature * jnp.eye(len(y))
    return entropy, (_log_det(noisy) + y @ jnp.linalg.solve(noisy, y)) / width


def _log_det(matrix: Float[Array, "n n"]) -> Float[Array, ""]:
    """ln det, NaN where the matrix is not positive definite."""
    return 2 * jnp.sum(jnp.log(jnp.diag(jnp.linalg.cholesky(matrix))))
