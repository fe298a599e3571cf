"""The action: entropy of the factor form, and energy with closed first and second derivatives.

Levels are measured in powers of σ², as in `factors`, which turns every problem into one with
σ = 1 whose ξ is larger by σ^{L+2}.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from attnpaths import kernels
from attnpaths.problem import Problem, reduce_rows
from attnpaths.theory.factors import Factors, assemble, entropies, move, pairs

# Kernels that exceed the temperature by more than this are rotated before they are factorised.
GRADED_RATIO = 1e6


class Widths(NamedTuple):
    """The width N that energies are divided by, and each level's share N_ℓ/N of the entropy.

    Shares are in the order of the factors, from level L+1 to level 1; all are 1 where all layers
    have one width. Where they differ, N is their mean: S = Σ_ℓ (N_ℓ/N)(−ℒ_ℓ) + (P/N) ℰ.
    """

    mean: Float[Array, ""]
    shares: Float[Array, " levels"]

    @classmethod
    def of(cls, width: Float[Array, "*levels"], layers: int) -> "Widths":
        """From one width, or from (N_1, …, N_{L+1})."""
        if jnp.ndim(width) == 0:
            return cls(width, jnp.ones(layers + 1))
        mean = jnp.mean(width)
        return cls(mean, width[::-1] / mean)


class Data(NamedTuple):
    """A problem whose levels are in units of σ²; one of the two forms of its kernel is None.

    Its rows are those of `problem.reduce_rows`; `unseen` and `missed` are what these leave out.
    """

    stored: Float[Array, "pairs rows_squared"] | None
    features: Float[Array, "rows paths dim"] | None
    y: Float[Array, " rows"]
    unseen: Array | int
    missed: Float[Array, ""]
    temperature: Float[Array, ""]


def prepare(problem: Problem) -> Data:
    """Absorb σ and the normalisation of the kernel in ξ; store path–path kernels that fit."""
    rows = reduce_rows(problem)
    count, paths, dim = rows.xi.shape
    scale = jnp.sqrt(problem.prior_variance ** (problem.layers + 2) / (paths * dim))
    flat, y = _graded((scale * rows.xi).reshape(count, -1), rows.y, problem.temperature)
    features = flat.reshape(count, paths, dim)
    rest = y, rows.unseen, rows.missed, problem.temperature
    if not kernels.stores(count, paths):
        return Data(None, features, *rest)
    return Data(kernels.pair_kernels(features, features).reshape(-1, count**2), None, *rest)


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
    assert data.features is not None
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


def action(B: Factors, data: Data, widths: Widths) -> Float[Array, ""]:
    """S = −Σℒ + αℰ, Eq. 32, at σ = 1 and without the constant `unreached`."""
    entropy = jnp.sum(widths.shares * entropies(B))
    return entropy + energy(data, pairs(assemble(B)[-1])) / widths.mean


def value_and_gradient(
    B: Factors,
    step: Float[Array, " unknowns"],
    data: Data,
    widths: Widths,
    heads: tuple[int, ...],
) -> tuple[Array, Array, Array]:
    """The action at `move(B, step)`, its gradient in `step`, and the scale of the terms in it."""

    def inner(step):
        moved = move(B, step, heads)
        return pairs(assemble(moved)[-1]), jnp.sum(widths.shares * entropies(moved))

    (u, entropy), pull = jax.vjp(inner, step)
    energy, gradient, fit = energy_and_gradient(data, u)
    (total,) = pull((gradient / widths.mean, jnp.ones(())))
    scale = 1 + (len(data.y) + jnp.abs(fit)) / widths.mean
    return entropy + energy / widths.mean, total, scale


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
    entropy, upper = jnp.zeros(()), jnp.ones((1, 1))
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
