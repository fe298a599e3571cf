"""The action: entropy of the factor form, and energy, with first and second derivatives.

With C outputs everything is as with one: S = Σ_ℓ (N_ℓ/N)(−ℒ_ℓ) + P·ℰ/N, at σ = 1, since levels are
in units of σ². What the energy is made of stands in `energies`.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attnpaths.network.ways import Ways
from attnpaths.theory import energies
from attnpaths.theory.energies import Data, Likelihood
from attnpaths.theory.factors import (
    Factors,
    assemble,
    entropies,
    in_steps,
    logarithms,
    pairs,
    ranges,
    towards,
    unknowns,
)


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


def doubt(B: Factors, data: Data, widths: Widths) -> Float[Array, ""]:
    """What rounding may hide of the gradient: vᵀKv of labels that seem out of reach."""
    U = assemble(B)[-1]
    return 2 * data.unsure * jnp.sum(U**2) / (data.temperature**2 * widths.mean)


def resolution(B: Factors, data: Data) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The smallest part of a diagonal entry of a level that the entries above do not determine.

    As much of the relative precision of its numbers is left to the level, U⁽ℓ⁾ = A_ℓ A_ℓᵀ. Beside
    it, by how much the kernel exceeds the temperature.
    """
    levels = assemble(B)
    parts = [jnp.min(jnp.diag(A) ** 2 / jnp.sum(A**2, axis=1)) for A in levels]
    kernel = energies.mix(data, pairs(levels[-1]))
    return jnp.min(jnp.stack(parts)), jnp.max(jnp.diag(kernel)) / data.temperature


def action(B: Factors, data: Data, widths: Widths, ways: Ways | None = None) -> Float[Array, ""]:
    """S = −Σℒ + αℰ, Eq. 32, at σ = 1 and without the constant `unreached`."""
    entropy = jnp.sum(widths.shares * entropies(B, ways))
    return entropy + energies.energy(data, pairs(assemble(B)[-1])) / widths.mean


def value_and_gradient(
    B: Factors, data: Data, widths: Widths, heads: tuple[int, ...] | Ways
) -> tuple[Array, Array, Array, Likelihood]:
    """The action, its gradient in the `step` of `move`, and the scale of what cancels in it.

    Then what they come from, of which `hessian` needs all.

    A gradient has terms of the entropy, which is ‖B_ℓ‖² − 2 Σ ln diag B_ℓ, and of the two parts of
    the energy. The scale of all entries of a level is the sum of the largest of each: levels that
    matter little have small ones. Labels that no path reaches have no part in it.
    """
    ways = Ways.of(heads)
    (entropy, u), back = _parts_and_back(B, widths, ways)
    found = energies.likelihood(data, u)
    value = entropy + found.energy / widths.mean
    slopes = _through(back, found.traces, found.pulls, widths)
    entropic, *both = (in_steps(B, slope, ways) for slope in slopes)
    sizes = []
    for b, share, (start, end) in zip(B, widths.shares, ranges(ways), strict=True):
        parts = (jnp.max(jnp.abs(each[start:end]), initial=0.0) / 2 for each in both)
        largest = jnp.max(jnp.sum(b**2, axis=0))
        sizes.append(jnp.full(end - start, share * jnp.maximum(1.0, largest) + sum(parts)))
    return value, entropic + sum(both), jnp.concatenate(sizes), found


def _through(back, traces, pulls, widths: Widths) -> list[Factors]:
    """The gradient in the factors in three parts: entropy, ln det, and labels."""
    none = jnp.zeros_like(traces)
    each = jnp.array([1.0, 0.0, 0.0]), jnp.stack([none, traces, -pulls]) / widths.mean
    (slopes,) = jax.vmap(back)(each)
    return [tuple(b[i] for b in slopes) for i in range(3)]


def _parts_and_back(B: Factors, widths: Widths, ways: Ways):
    """The entropy and the entries of U, and how slopes in these become slopes in the factors."""
    return jax.vjp(lambda B: _parts(B, widths, ways), B)


def _parts(B: Factors, widths: Widths, ways: Ways):
    """The entropy, and the entries of U that the energy depends on."""
    return jnp.sum(widths.shares * entropies(B, ways)), pairs(assemble(B)[-1])


def hessian_product(
    B: Factors, data: Data, widths: Widths, heads: tuple[int, ...] | Ways
) -> Callable[[Float[Array, " unknowns"]], Float[Array, " unknowns"]]:
    """Products with the second derivative of the action in `step`."""
    ways = Ways.of(heads)

    def slope(B):
        (_, u), back = _parts_and_back(B, widths, ways)
        _, traces, pulls = energies.energy_and_slopes(data, u)
        return jax.tree.map(lambda *parts: sum(parts), *_through(back, traces, pulls, widths))

    slopes, product = jax.linearize(slope, B)
    bent = _bent(B, slopes, ways)
    return lambda step: in_steps(B, product(towards(B, step, ways)), ways) + bent * step


def _bent(B: Factors, slopes: Factors, ways: Ways) -> Float[Array, " unknowns"]:
    """What the second derivative has on its diagonal since some steps are logarithms."""
    return logarithms(ways) * in_steps(B, slopes, ways)


def hessian(
    B: Factors,
    careful: Bool[Array, ""],
    found: Likelihood,
    data: Data,
    widths: Widths,
    heads: tuple[int, ...] | Ways,
) -> Float[Array, "unknowns unknowns"]:
    """An estimate of the second derivative of the action in `step`, better if `careful`.

    `found` is what `value_and_gradient` found at the same factors. Only that of the energy in U is
    expensive: what the factors add is exact either way.
    """
    ways = Ways.of(heads)
    gradient, curvature = found.traces - found.pulls, energies.hessian(data, found, careful)

    def rest(B):
        """Derivatives of what is linear in U, and U itself."""
        (_, u), back = jax.vjp(lambda B: _parts(B, widths, ways), B)
        return back((jnp.ones(()), gradient / widths.mean))[0], u

    (slopes, _), product = jax.linearize(rest, B)

    def column(step):
        bending, along = product(towards(B, step, ways))
        return in_steps(B, bending, ways), along

    small, along = jax.vmap(column)(jnp.eye(unknowns(ways)))
    small += jnp.diag(_bent(B, slopes, ways))
    return small + along @ curvature @ along.T / widths.mean


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
