"""A trust-region Newton minimiser for the action: compiled, and exact in its last steps.

Quasi-Newton methods compare values of the function, whose rounding stops them at gradients
near 1e-8; Newton steps near the minimum compare gradients, and go on to 1e-12.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

# An updated Hessian is kept as long as each step shrinks the gradient at least this much.
_GOOD_STEP = 0.8
# How much a Hessian is worth: updated or guessed 0, formed at this point 1, with all care 2.
_CAREFUL = 2
# Changes of the value below this fraction of its terms are rounding.
_ROUNDING = 1e-12

#: What a minimisation counts.
WORK = ("iterations", "evaluations", "products")

Objective = Callable[[PyTree], tuple[Any, ...]]
Move = Callable[[PyTree, Float[Array, " n"]], PyTree]
Product = Callable[[PyTree], Callable[[Float[Array, " n"]], Float[Array, " n"]]]
Curvature = Callable[..., Float[Array, "n n"]]


class Minimum(NamedTuple):
    """Where a minimisation ended, and what it cost."""

    point: PyTree
    value: Float[Array, ""]
    gradient: Float[Array, " n"]
    scale: Float[Array, "*n"]
    iterations: Int[Array, ""]
    evaluations: Int[Array, ""]
    products: Int[Array, ""]
    hessian: Float[Array, "m m"]
    details: tuple[Any, ...] = ()


class _State(NamedTuple):
    point: PyTree
    value: Array
    gradient: Array
    scale: Array
    details: tuple[Any, ...]
    # what is tried next, and how much lower it should be
    trial: PyTree
    step: Array
    reduction: Array
    radius: Array
    hessian: Array
    fresh: Array
    wanted: Array
    done: Array
    evaluations: Array
    products: Array


def minimise(
    objective: Objective,
    move: Move,
    point: PyTree,
    unknowns: int,
    *,
    tolerance: float,
    most: int | Int[Array, ""],
    product: Product | None = None,
    curvature: Curvature | None = None,
    hessian: Float[Array, "m m"] | None = None,
    guessed: bool | Bool[Array, ""] = False,
) -> Minimum:
    """Minimise `objective(point)`: a value, its gradient in a step, and the scale of its terms.

    Whatever else it gives is kept as `details` of the minimum.

    Steps are vectors of `unknowns` numbers, taken by `move(point, step)`. After each the next
    is measured from the new point, in whatever units are natural there.

    Stops when no entry of the gradient is above `tolerance` times its scale, when rounding leaves
    nothing to gain, or after `most` evaluations. With `curvature`, the Hessian is formed, updated
    while steps are good, and formed anew when they are not: by `curvature(point, False, *details)`,
    which may be an estimate, then, if that was no help, with more care, by
    `curvature(point, True, *details)`. If `guessed`, `hessian` takes the place of the first one.
    Without `curvature`, conjugate gradients find each step from products with the Hessian,
    `product(point)`: where points are vectors and steps are added to them, these are found by
    themselves.
    """
    products_at = product or (lambda at: jax.linearize(lambda x: objective(x)[1], at)[1])

    def plan(state: _State) -> _State:
        """The next step, from a Hessian that is new if need be."""
        if curvature is None:
            step, reduction, products = _truncated_step(
                products_at(state.point), state.gradient, state.radius
            )
            hessian, fresh = state.hessian, jnp.array(_CAREFUL)
        else:
            forms = state.wanted > state.fresh
            careful = state.wanted == _CAREFUL
            at = state.point, careful, *state.details
            hessian = jax.lax.cond(forms, curvature, lambda *_: state.hessian, *at)
            fresh = jnp.maximum(state.fresh, state.wanted)
            products = jnp.where(forms, unknowns, 0)
            step, reduction = _exact_step(hessian, state.gradient, state.radius)
        return state._replace(
            trial=move(state.point, step),
            step=step,
            reduction=reduction,
            hessian=hessian,
            fresh=fresh,
            products=state.products + products,
        )

    def iterate(state: _State) -> _State:
        value, gradient, scale, *details = objective(state.trial)
        first, length = state.evaluations == 0, jnp.linalg.norm(state.step)
        before, after = largest(state.gradient, state.scale), largest(gradient, scale)
        ratio = (state.value - value) / state.reduction
        rounding = state.reduction <= _ROUNDING * (jnp.max(state.scale) + jnp.abs(state.value))
        gained = first | jnp.where(rounding, after < before, ratio > 1e-4)
        accepted = gained & jnp.isfinite(value) & jnp.isfinite(after)
        doubtful = ~accepted | (~rounding & (ratio < 0.25))
        bold = accepted & (ratio > 0.75) & (length > 0.99 * state.radius)
        radius = jnp.where(doubtful, 0.25 * length, jnp.where(bold, 3.0, 1.0) * state.radius)
        # as long as the model is right, a step to the edge of the region need not end in a valley
        good = accepted & (first | bold | (after <= _GOOD_STEP * before))
        new = state._replace(
            point=state.trial,
            value=value,
            gradient=gradient,
            scale=jnp.broadcast_to(scale, shape),
            details=tuple(details),
        )
        if curvature is not None:
            update = _rank_one(state.hessian, state.step, gradient - state.gradient)
            new = new._replace(hessian=jnp.where(first, state.hessian, state.hessian + update))
        state = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), new, state)
        known = state.fresh == _CAREFUL
        small = largest(state.gradient, state.scale) <= tolerance
        stuck = ~accepted & (first | (known & (rounding | (length < 1e-14))))
        # an estimate that was no help is not made again
        wanted = jnp.where(good, 0, jnp.minimum(state.fresh + 1, _CAREFUL))
        state = state._replace(
            radius=jnp.where(first, state.radius, radius),
            fresh=jnp.where(accepted, 0, state.fresh),
            wanted=jnp.where(first, state.wanted, wanted),
            done=small | stuck,
            evaluations=state.evaluations + 1,
        )
        return jax.lax.cond(state.done, lambda state: state, plan, state)

    zero, shape = jnp.zeros((), int), (unknowns,)
    size = 0 if curvature is None else unknowns
    _, _, _, *unknown = jax.eval_shape(objective, point)
    start = _State(
        point=point,
        value=jnp.array(jnp.inf),
        gradient=jnp.full(shape, jnp.inf),
        scale=jnp.zeros(shape),
        details=jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), tuple(unknown)),
        trial=point,
        step=jnp.zeros(shape),
        reduction=jnp.array(jnp.inf),
        radius=jnp.ones(()),
        hessian=jnp.zeros((size, size)) if hessian is None else hessian,
        fresh=zero,
        wanted=zero + jnp.where(guessed, 0, 1),
        done=jnp.array(False),
        evaluations=zero,
        products=zero,
    )
    end = jax.lax.while_loop(lambda state: ~state.done & (state.evaluations < most), iterate, start)
    found = {name: getattr(end, name) for name in Minimum._fields if name != "iterations"}
    return Minimum(iterations=jnp.maximum(end.evaluations - 1, 0), **found)


def largest(gradient: Float[Array, " n"], scale: Float[Array, "*n"]) -> Float[Array, ""]:
    """The largest entry of a gradient, beside its scale."""
    return jnp.max(jnp.abs(gradient) / scale)


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
