"""The order parameter of one setting: the minimum of the action, and the GP limit."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from attnpaths import _checks
from attnpaths.network.ways import Ways
from attnpaths.problem import Problem
from attnpaths.theory import action, energies, factors, stationary
from attnpaths.theory.action import Widths
from attnpaths.theory.solution import Theory, entropy_of, levels_of, warn_unless_converged
from attnpaths.theory.starts import Spectrum, Starts, growth, spectrum
from attnpaths.theory.trust_region import WORK, Minimum, largest, minimise

# The minimiser aims for the first, relative to the size of the terms that cancel in the
# gradient; a result is called converged below the second.
_AIM, _CONVERGED = 1e-10, 1e-8
# More than this of the gradient may not be hidden by rounding in the features; nor may as much be
# left of that of any level in the paper's form.
_HIDDEN, _LEFT = 1e-7, 1e-7
# Less than this of an entry of U may not decide, as it would be lost in the digits of the others;
# less than the second, where the kernel is so far above the temperature that these are doubtful.
_RESOLVED, _FAINT, _STEEP = 1e-8, 1e-6, 1e7
# Where a level has grown by more than this, where so few units have a kernel so far above the
# temperature, or where there is hardly more than one unit, there may be other minima: two more
# starts are made.
_GROWN, _FEW, _COLD, _SINGLE = 10.0, 10.0, 1e6, 2.0
_MOST_EVALUATIONS = 1000
_TOO_LARGE = (
    "xi or y is too large beside the temperature: the action overflows double precision; divide "
    "xi and y by a common factor and the temperature by its square"
)


def solve(
    xi: ArrayLike,
    y: ArrayLike,
    *,
    heads: Sequence[int],
    width: ArrayLike | Sequence[ArrayLike],
    temperature: ArrayLike,
    prior_variance: ArrayLike | Sequence[ArrayLike] = 1.0,
    residual: bool | Sequence[bool] = False,
) -> Theory:
    """Minimise the action S(U) of Eq. 11 and give the order parameter `U [Π, Π]`.

    Takes the attentioned inputs ξ `[P, Π, D]`, labels `y [P]`, the numbers of heads
    (H₁, …, H_L) with ∏H_ℓ = Π, the width N ≥ 1 (`inf` is the GP limit), the temperature
    𝒯 > 0 and the prior variance σ². Layers of different widths are given as
    (N_1, …, N_{L+1}), what enters each layer and the readout: the entropy of level ℓ then counts
    N_ℓ/N-fold, where N, their mean, also divides the energy. `residual`, one bool or one for each
    layer, says which layers add their input to their output; Π is then ∏(H_ℓ + r_ℓ), and way 0 of
    such a layer is the skip. Labels `y [P, C]` of C outputs give `U [ΠC, ΠC]`, path slow and output
    fast. Weights may have their own σ² for each kind, three for V⁰, V and a, or one for V of every
    layer. Numbers of lower precision are promoted to float64. Works under `jax.vmap` and
    `jax.jit` over all arrays and over width, temperature and prior variance, where values out of
    range give NaN and `converged` false; `sweep` is faster for a grid. It cannot be
    differentiated.

    The minimiser is a trust-region Newton method on the factor form, chosen by measurement:
    `benchmarks/optimisers.py` compares it with those of optimistix, optax and scipy. It starts from
    the lowest point near the GP limit at which all paths have one common scale. Where there is
    another such valley, or where U has grown far, it starts again and keeps the lowest minimum;
    `Theory.starts` counts.

    >>> xi = jax.random.normal(jax.random.key(0), (20, 4, 3))
    >>> theory = solve(xi, jnp.sign(xi[:, 0, 0]), heads=(2, 2), width=10, temperature=0.1)
    >>> theory.U.shape, bool(theory.converged)
    ((4, 4), True)
    """
    setting = {"temperature": temperature, "prior_variance": prior_variance}
    problem = Problem.of(xi, y, heads=heads, residual=residual, **setting)
    width = checked_width(width, problem.ways)
    theory, _ = minimum(problem, width, *prepare(problem))
    warn_unless_converged(theory)
    return theory


def gp_limit(
    xi: ArrayLike,
    y: ArrayLike,
    *,
    heads: Sequence[int],
    temperature: ArrayLike,
    prior_variance: ArrayLike | Sequence[ArrayLike] = 1.0,
    residual: bool | Sequence[bool] = False,
) -> Theory:
    """The limit of infinite width: U = σ^{2(L+1)} I, paths weighed equally and never combined.

    Takes ξ `[P, Π, D]`, `y [P]` and the rest as `solve` does; gives `U [Π, Π]`. Where layers have a
    skip, a path has σ² of those weights alone that it goes through.

    >>> gp_limit(jnp.ones((3, 2, 2)), [1, 1, -1], heads=(2,), temperature=1).U
    Array([[1., 0.],
           [0., 1.]], dtype=float64)
    """
    setting = {"temperature": temperature, "prior_variance": prior_variance}
    problem = Problem.of(xi, y, heads=heads, residual=residual, **setting)
    valid = problem.valid
    if not _checks.is_traced(valid) and not valid:
        raise ValueError(_TOO_LARGE)
    B, shares = factors.gp_limit(problem.ways), jnp.ones(problem.layers + 1)
    numbers = levels_of(B, problem), entropy_of(B, shares, problem)
    levels, entropy = jax.tree.map(lambda number: jnp.where(valid, number, jnp.nan), numbers)
    none = ("iterations", "evaluations", "hessian_products", "starts")
    return Theory(
        U=levels[0],
        levels=levels,
        action=entropy,
        entropy=entropy,
        **dict.fromkeys(("energy", "gradient_norm"), jnp.zeros(())),
        **dict.fromkeys(none, jnp.zeros((), int)),
        converged=valid,
        width=jnp.array(jnp.inf),
        problem=problem,
    )


def checked_width(width, ways: Ways) -> Float[Array, "*levels"]:
    """One width N, which may be infinite, or (N_1, …, N_{L+1}), which must be finite."""
    infinite, layers = _checks.axes_of(width) == 0, len(ways.heads)
    found = _checks.by_level(
        width, layers, lambda name, n: _checks.number(name, n, least=1, infinite=infinite)
    )
    if infinite:
        return found
    _checks.skip_widths(found, ways.residual)
    return jnp.stack(found)


class Near(NamedTuple):
    """Where a similar problem ended, to start from, unless there is none: `alone`."""

    point: factors.Factors
    hessian: Float[Array, "m m"]
    alone: Bool[Array, ""]


def prepare(problem: Problem) -> tuple[energies.Data, Spectrum, Near]:
    """Kernels, their spectrum and the GP limit, if the numbers are such that there is an action."""
    data, found, near, size = _prepared(problem)
    if not _checks.is_traced(size) and not np.isfinite(size):
        raise ValueError(_TOO_LARGE)
    return data, found, near


@jax.jit
def _prepared(problem: Problem):
    data, ways = energies.prepare(problem), problem.ways
    found = spectrum(data, ways)
    size = (found.largest + jnp.sum(problem.y**2)) / data.temperature
    unknowns = factors.unknowns(ways)
    held = unknowns if _forms_hessian(unknowns, data) else 0
    near = Near(factors.gp_limit(ways), jnp.zeros((held, held)), jnp.array(True))
    return data, found, near, size


def _forms_hessian(unknowns: int, data: energies.Data) -> bool:
    """Whether a whole Hessian is cheaper than products with it, of which many are needed."""
    small = unknowns * len(data.y) ** 2 <= 10**7
    return unknowns <= 64 or (unknowns <= 512 and (small or energies.by_entry(data)))


def _lowest(problem: Problem, widths: Widths, data, found: Spectrum, near: Near):
    """The lowest minimum from all starts that are worth it, and how many these were."""
    ways, unknowns = problem.ways, factors.unknowns(problem.ways)
    dense, entries = _forms_hessian(unknowns, data), len(factors.pairs(near.point[-1]))
    starts = Starts.of(found, data.temperature, widths, ways, near.point, near.alone)

    crowded = (widths.mean < _FEW) & (found.largest > _COLD * data.temperature)
    crowded |= widths.mean < _SINGLE

    def formed(B, careful, found):
        return action.hessian(B, careful, found, data, widths, ways)

    def attempt(state, start: Starts):
        best, count = state
        # all that is left until one converges; and others where U has grown far
        helps = start.wanted | ((count > 0) & ~_converged(best))
        helps |= start.mixed & (crowded | (growth(best.point, ways) > _GROWN)) & (count > 0)

        def compare():
            end = minimise(
                lambda B: action.value_and_gradient(B, data, widths, ways),
                lambda B, step: factors.move(B, step, ways),
                start.beside(best.point, ways),
                unknowns,
                tolerance=_AIM,
                # under vmap all starts are gone from: those that do not help end at once
                most=jnp.where(helps, _MOST_EVALUATIONS, 0),
                product=lambda B: action.hessian_product(B, data, widths, ways),
                curvature=formed if dense else None,
                hessian=near.hessian,
                guessed=start.near,
            )
            lower = ~(end.value >= best.value)
            better = jnp.where(_converged(end) == _converged(best), lower, _converged(end))
            chosen = jax.tree.map(lambda a, b: jnp.where(better, a, b), end, best)
            work = {name: getattr(best, name) + getattr(end, name) for name in WORK}
            return chosen._replace(**work), count + 1

        return jax.lax.cond(helps, compare, lambda: (best, count)), None

    none = Minimum(
        point=near.point,
        value=jnp.array(jnp.inf),
        gradient=jnp.full(unknowns, jnp.inf),
        scale=jnp.zeros(unknowns),
        hessian=near.hessian,
        details=(energies.Likelihood.none(len(data.y), entries),),
        **dict.fromkeys(WORK, jnp.zeros((), int)),
    )
    return jax.lax.scan(attempt, (none, jnp.zeros((), int)), starts)[0]


def _converged(end: Minimum) -> Bool[Array, ""]:
    return largest(end.gradient, end.scale) <= _CONVERGED


@jax.jit
def minimum(problem: Problem, width, data: energies.Data, found, near) -> tuple[Theory, Minimum]:
    """The compiled core: from a start to a `Theory`, and where a similar one may start."""
    ways, widths = problem.ways, Widths.of(width, problem.layers)
    end, count = _lowest(problem, widths, data, found, near)
    entropy = entropy_of(end.point, widths.shares, problem)
    energy = end.value - jnp.sum(widths.shares * factors.entropies(end.point, ways))
    energy += energies.unreached(data) / widths.mean
    # with what rounding in the features may hide of it
    hidden = action.doubt(end.point, data, widths)
    gradient_norm = jnp.max(jnp.abs(end.gradient)) + hidden
    part, steepness = action.resolution(end.point, data)
    certain = part > jnp.where(steepness > _STEEP, _FAINT, _RESOLVED)
    certain &= hidden <= _HIDDEN * jnp.min(end.scale)
    (last,) = end.details
    certain &= (
        stationary.relative_gradient(end.point, last.traces, last.pulls, widths, ways) <= _LEFT
    )
    # where arguments are traced they could not be refused: they give no answer instead
    valid = jnp.all(width >= 1) & problem.valid
    if jnp.ndim(width):
        # one of several cannot be infinite
        valid &= jnp.all(jnp.isfinite(width))
    levels = levels_of(end.point, problem)
    numbers = (levels, entropy + energy, energy, entropy, gradient_norm)
    levels, total, energy, entropy, gradient_norm = jax.tree.map(
        lambda number: jnp.where(valid, number, jnp.nan), numbers
    )
    theory = Theory(
        U=levels[0],
        levels=levels,
        action=total,
        energy=energy,
        entropy=entropy,
        gradient_norm=gradient_norm,
        converged=valid & certain & _converged(end),
        iterations=end.iterations,
        evaluations=end.evaluations,
        hessian_products=end.products,
        starts=count,
        width=width,
        problem=problem,
    )
    # matrices as large as the kernel that nobody needs any more
    return theory, end._replace(details=())
