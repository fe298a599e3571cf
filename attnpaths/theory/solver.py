"""The order parameter of one setting: the minimum of the action, and the GP limit."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from attnpaths import _checks
from attnpaths.problem import Problem
from attnpaths.theory import action, factors
from attnpaths.theory.action import Widths
from attnpaths.theory.solution import Theory, entropy_of, levels_of, warn_unless_converged
from attnpaths.theory.trust_region import Minimum, minimise

# The minimiser aims for the first, relative to the size of the terms that cancel in the
# gradient; a result is called converged below the second.
_AIM, _CONVERGED = 1e-10, 1e-8
_MOST_EVALUATIONS = 1000
# Kernels that exceed the temperature by more than this leave no digits to a Cholesky factor.
_LARGEST_RATIO = 1e11


def solve(
    xi: ArrayLike,
    y: ArrayLike,
    *,
    heads: Sequence[int],
    width: ArrayLike | Sequence[ArrayLike],
    temperature: ArrayLike,
    prior_variance: ArrayLike = 1.0,
) -> Theory:
    """Minimise the action S(U) of Eq. 11 and give the order parameter `U [Π, Π]`.

    Takes the attentioned inputs ξ `[P, Π, D]`, labels `y [P]`, the numbers of heads
    (H₁, …, H_L) with ∏H_ℓ = Π, the width N ≥ 1 (`inf` is the GP limit), the temperature
    𝒯 > 0 and the prior variance σ². Layers of different widths are given as
    (N_1, …, N_{L+1}), what enters each layer and the readout: the entropy of level ℓ then counts
    N_ℓ/N-fold, where N, their mean, also divides the energy. Numbers of lower precision are
    promoted to float64. Works under `jax.vmap` and `jax.jit` over all arrays and over width,
    temperature and prior variance, where values out of range give NaN and `converged` false;
    `sweep` is faster for a grid. It cannot be differentiated.

    The minimiser is a trust-region Newton method on the factor form, from the GP limit, chosen by
    measurement: `benchmarks/optimisers.py` compares it with those of optimistix, optax and scipy.

    >>> xi = jax.random.normal(jax.random.key(0), (20, 4, 3))
    >>> theory = solve(xi, jnp.sign(xi[:, 0, 0]), heads=(2, 2), width=10, temperature=0.1)
    >>> theory.U.shape, bool(theory.converged)
    ((4, 4), True)
    """
    problem = Problem.of(xi, y, heads=heads, temperature=temperature, prior_variance=prior_variance)
    width = checked_width(width, problem.layers)
    theory, _ = minimum(problem, width, *prepare(problem))
    warn_unless_converged(theory)
    return theory


def gp_limit(
    xi: ArrayLike,
    y: ArrayLike,
    *,
    heads: Sequence[int],
    temperature: ArrayLike,
    prior_variance: ArrayLike = 1.0,
) -> Theory:
    """The limit of infinite width: U = σ^{2(L+1)} I, paths weighed equally and never combined.

    Takes ξ `[P, Π, D]`, `y [P]` and the rest as `solve` does; gives `U [Π, Π]`.

    >>> gp_limit(jnp.ones((3, 2, 2)), [1, 1, -1], heads=(2,), temperature=1).U
    Array([[1., 0.],
           [0., 1.]], dtype=float64)
    """
    problem = Problem.of(xi, y, heads=heads, temperature=temperature, prior_variance=prior_variance)
    B, shares = factors.gp_limit(problem.heads), jnp.ones(problem.layers + 1)
    levels, entropy = levels_of(B, problem), entropy_of(B, shares, problem)
    none = ("iterations", "evaluations", "hessian_products")
    return Theory(
        U=levels[0],
        levels=levels,
        action=entropy,
        entropy=entropy,
        **dict.fromkeys(("energy", "gradient_norm"), jnp.zeros(())),
        **dict.fromkeys(none, jnp.zeros((), int)),
        converged=jnp.array(True),
        width=jnp.array(jnp.inf),
        problem=problem,
    )


def checked_width(width, layers: int) -> Float[Array, "*levels"]:
    """One width N, which may be infinite, or (N_1, …, N_{L+1}), which must be finite."""
    infinite = np.ndim(width) == 0
    found = _checks.by_level(
        width, layers, lambda name, n: _checks.number(name, n, least=1, infinite=infinite)
    )
    return found if infinite else jnp.stack(found)


def prepare(problem: Problem) -> tuple[action.Data, factors.Factors, Array]:
    """Kernels, a start and a first Hessian, if the numbers are such that there is an action."""
    data, start, hessian, size = _prepared(problem)
    if not _checks.is_traced(size) and not np.isfinite(size):
        raise ValueError(
            "xi or y is too large beside the temperature: the action overflows double precision; "
            "divide xi and y by a common factor and the temperature by its square"
        )
    return data, start, hessian


@jax.jit
def _prepared(problem: Problem):
    data, heads = action.prepare(problem), problem.heads
    kernel = action.mix(data, factors.pairs(jnp.eye(problem.paths)))
    ratio = jnp.max(jnp.diag(kernel)) / data.temperature
    size = ratio + problem.y @ problem.y / data.temperature
    # the GP limit, made smaller only where rounding would deny its kernel a Cholesky factor
    shrink = jnp.minimum(_LARGEST_RATIO / ratio, 1.0) ** (0.5 / (problem.layers + 1))
    start = factors.gp_limit(heads, shrink)
    dense = _forms_hessian(factors.unknowns(heads), len(data.y))
    shares = jnp.ones(problem.layers + 1)
    hessian = factors.entropy_hessian(start, shares, heads) if dense else jnp.zeros((0, 0))
    return data, start, hessian, size


def _forms_hessian(unknowns: int, rows: int) -> bool:
    """Whether a whole Hessian is cheaper than products with it, of which many are needed."""
    return unknowns <= 64 or (unknowns <= 512 and unknowns * rows**2 <= 10**7)


@jax.jit
def minimum(problem: Problem, width, data: action.Data, start, hessian) -> tuple[Theory, Minimum]:
    """The compiled core: from a start to a `Theory`, and where a similar one may start."""
    heads, widths = problem.heads, Widths.of(width, problem.layers)
    unknowns = factors.unknowns(heads)
    end = minimise(
        lambda B, step: action.value_and_gradient(B, step, data, widths, heads),
        lambda B, step: factors.move(B, step, heads),
        start,
        unknowns,
        tolerance=_AIM,
        most=_MOST_EVALUATIONS,
        block=max(1, 2**25 // len(data.y) ** 2),
        dense=_forms_hessian(unknowns, len(data.y)),
        hessian=hessian,
    )
    entropy = entropy_of(end.point, widths.shares, problem)
    energy = end.value - jnp.sum(widths.shares * factors.entropies(end.point))
    energy += action.unreached(data) / widths.mean
    gradient_norm = jnp.max(jnp.abs(end.gradient))
    # where arguments are traced they could not be refused: they give no answer instead
    valid = jnp.all(width >= 1) & (problem.temperature > 0) & (problem.prior_variance > 0)
    valid &= jnp.isfinite(problem.temperature) & jnp.isfinite(problem.prior_variance)
    valid &= jnp.all(jnp.isfinite(problem.xi)) & jnp.all(jnp.isfinite(problem.y))
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
        converged=gradient_norm <= _CONVERGED * end.scale,
        iterations=end.iterations,
        evaluations=end.evaluations,
        hessian_products=end.products,
        width=width,
        problem=problem,
    )
    return theory, end
