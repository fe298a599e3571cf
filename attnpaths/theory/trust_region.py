"""A trust-region Newton minimiser for the action: compiled, and exact in its last steps.

Quasi-Newton methods compare values of the function, whose rounding stops them at gradients
near 1e-8; Newton steps near the minimum compare gradients, and go on to 1e-12.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

# An updated Hessian is kept as long as each step shrinks the gradient at least this much.
_GOOD_STEP = 0.8
# Changes of the value below this fraction of its terms are rounding.
_ROUNDING = 1e-12

Objective = Callable[[PyTree, Float[Array, " n"]], tuple[Array, Array, Array]]
Move = Callable[[PyTree, Float[Array, " n"]], PyTree]


class Minimum(NamedTuple):
    """Where a minimisation ended, and what it cost."""

    point: PyTree
    value: Float[Array, ""]
    gradient: Float[Array, " n"]
    scale: Float[Array, ""]
    iterations: Int[Array, ""]
    evaluations: Int[Array, ""]
    products: Int[Array, ""]
    hessian: Float[Array, "m m"]


class _State(NamedTuple):
    point: PyTree
    value: Array
    gradient: Array
    scale: Array
    radius: Array
    hessian: Array
    stale: Array
    stuck: Array
    iterations: Array
    evaluations: Array
    products: Array


def minimise(
    objective: Objective,
    move: Move,
    point: PyTree,
    unknowns: int,
    *,
    tolerance: float,
    most: int,
    dense: bool = True,
    block: int = 64,
    hessian: Float[Array, "m m"] | None = None,
) -> Minimum:
    """Minimise `objective(point, step)`: a value, its gradient in `step`, the scale of its terms.

    Steps are vectors of `unknowns` numbers, taken by `move(point, step)`. After each the next
    is measured from the new point, in whatever units are natural there.

    Stops when the largest entry of the gradient is below `tolerance` times the scale, when
    rounding leaves nothing to gain, or after `most` evaluations. If `dense`, the Hessian is
    formed, `block` columns at a time to bound the memory it takes, updated while steps are
    good, and formed anew when they are not; a guess of it, `hessian`, may save forming the
    first one. If not, conjugate gradients find each step.
    """
    origin, size = jnp.zeros(unknowns), unknowns

    def unfinished(state: _State):
        small = jnp.max(jnp.abs(state.gradient)) <= tolerance * state.scale
        return ~(small | state.stuck) & (state.evaluations < most) & jnp.isfinite(state.value)

    def curvature(point):
        return jax.linearize(lambda step: objective(point, step)[1], origin)[1]

    def iterate(state: _State):
        if dense:
            hessian = jax.lax.cond(
                state.stale,
                lambda: jax.lax.map(curvature(state.point), jnp.eye(size), batch_size=block),
                lambda: state.hessian,
            )
            exact, products = state.stale, jnp.where(state.stale, size, 0)
            step, reduction = _exact_step(hessian, state.gradient, state.radius)
        else:
            hessian, exact = state.hessian, jnp.array(True)
            step, reduction, products = _truncated_step(
                curvature(state.point), state.gradient, state.radius
            )
        moved = move(state.point, step)
        value, gradient, scale = objective(moved, origin)
        length = jnp.linalg.norm(step)
        before, after = jnp.max(jnp.abs(state.gradient)), jnp.max(jnp.abs(gradient))
        ratio = (state.value - value) / reduction
        rounding = reduction <= _ROUNDING * (state.scale + jnp.abs(state.value))
        gained = jnp.where(rounding, after < before, ratio > 1e-4)
        accepted = gained & jnp.isfinite(value) & jnp.isfinite(after)
        doubtful = ~accepted | (~rounding & (ratio < 0.25))
        bold = accepted & (ratio > 0.75) & (length > 0.99 * state.radius)
        radius = jnp.where(doubtful, 0.25 * length, jnp.where(bold, 3.0, 1.0) * state.radius)
        if dense:
            update = _rank_one(hessian, step, gradient - state.gradient)
            hessian = jnp.where(accepted, hessian + update, hessian)
        return _State(
            point=jax.tree.map(lambda new, old: jnp.where(accepted, new, old), moved, state.point),
            value=jnp.where(accepted, value, state.value),
            gradient=jnp.where(accepted, gradient, state.gradient),
            scale=jnp.where(accepted, scale, state.scale),
            radius=radius,
            hessian=hessian,
            stale=jnp.where(accepted, after > _GOOD_STEP * before, ~exact),
            stuck=~accepted & exact & (rounding | (length < 1e-14)),
            iterations=state.iterations + 1,
            evaluations=state.evaluations + 1,
            products=state.products + products,
        )

    value, gradient, scale = objective(point, origin)
    zero = jnp.zeros((), int)
    start = _State(
        point=point,
        value=value,
        gradient=gradient,
        scale=scale,
        radius=jnp.ones(()),
        hessian=jnp.zeros((size, size) if dense else (0, 0)) if hessian is None else hessian,
        stale=jnp.array(hessian is None),
        stuck=jnp.array(False),
        iterations=zero,
        evaluations=zero + 1,
        products=zero,
    )
    end = jax.lax.while_loop(unfinished, iterate, start)
    return Minimum(*(getattr(end, name) for name in Minimum._fields))


def _exact_step(hessian, gradient, radius):
    """The minimum of the quadratic model in the trust region, and the reduction it promises."""
    w, Q = jnp.linalg.eigh(hessian)
    g = Q.T @ gradient
    tiny = 1e-14 * jnp.max(jnp.abs(w)) + 1e-300

    def newton(_, shift):
        # Newton on 1/radius − 1/‖p(shift)‖, which is nearly linear in the shift
        p = g / (w + shift)
        length = jnp.linalg.norm(p)
        slope = jnp.sum(p**2 / (w + shift))
        return shift + jnp.maximum(length**2 / slope * (length - radius) / radius, 0.0)

    # no smaller shift makes the model convex and the step short enough
    least = jnp.maximum(jnp.max(jnp.abs(g) / radius - w), jnp.maximum(tiny - w[0], 0.0))
    whole = (w[0] > tiny) & (jnp.linalg.norm(g / jnp.where(w[0] > tiny, w, 1.0)) <= radius)
    shift = jnp.where(whole, 0.0, jax.lax.fori_loop(0, 8, newton, least))
    p = -g / (w + shift)
    # a model that is not convex is least on the edge of the region
    missing = jnp.sqrt(jnp.maximum(radius**2 - jnp.sum(p**2), 0.0))
    p = p.at[0].add(jnp.where(w[0] < -tiny, jnp.where(g[0] > 0, -missing, missing), 0.0))
    return Q @ p, -(g @ p + 0.5 * jnp.sum(w * p**2))


def _truncated_step(product, gradient, radius):
    """The same by conjugate gradients, cut off at the edge of the region (Steihaug)."""
    wanted = jnp.minimum(0.1, jnp.sqrt(jnp.linalg.norm(gradient))) * jnp.linalg.norm(gradient)

    def unfinished(state):
        _, _, r, _, done, count = state
        return ~done & (jnp.linalg.norm(r) > wanted) & (count < len(gradient))

    def iterate(state):
        p, Hp, r, d, _, count = state
        Hd = product(d)
        bend, squared = d @ Hd, r @ r
        length = squared / bend
        crosses = (bend <= 0) | (jnp.linalg.norm(p + length * d) >= radius)
        a, b, c = d @ d, p @ d, p @ p - radius**2
        edge = (-b + jnp.sqrt(jnp.maximum(b**2 - a * c, 0.0))) / a
        length = jnp.where(crosses, edge, length)
        p, Hp, r = p + length * d, Hp + length * Hd, r + length * Hd
        return p, Hp, r, -r + (r @ r / squared) * d, crosses, count + 1

    zero = jnp.zeros_like(gradient)
    start = (zero, zero, gradient, -gradient, jnp.array(False), jnp.zeros((), int))
    p, Hp, _, _, _, count = jax.lax.while_loop(unfinished, iterate, start)
    return p, -(gradient @ p + 0.5 * p @ Hp), count


def _rank_one(hessian, step, change):
    """The symmetric rank-one update that makes the Hessian explain the last step."""
    residual = change - hessian @ step
    along = residual @ step
    safe = jnp.abs(along) > 1e-8 * jnp.linalg.norm(residual) * jnp.linalg.norm(step)
    return jnp.where(safe, jnp.outer(residual, residual) / jnp.where(safe, along, 1.0), 0.0)
