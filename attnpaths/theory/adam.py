"""The paper's own way to the order parameter, kept as the baseline to compare with.

Adam acts on the matrices U⁽ℓ⁾, symmetrised, and the action is that printed, with inverses.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from attnpaths import _checks, _extras, kernels
from attnpaths.problem import Problem
from attnpaths.theory import action, factors
from attnpaths.theory.solution import Theory, levels_of, warn_unless_converged

#: The learning rates that the paper tries, ten steps each, before every run.
LEARNING_RATES = tuple(sorted({1e-4, *(a * 10.0**-b for a in (1, 5, 8) for b in (0, 1, 2, 3))}))
_TRIAL_STEPS = 10


def solve_adam(
    xi: ArrayLike,
    y: ArrayLike,
    *,
    heads: Sequence[int],
    width: ArrayLike,
    temperature: ArrayLike,
    prior_variance: ArrayLike = 1.0,
    learning_rate: float | None = None,
    steps: int = 20_000,
    tolerance: float = 1e-5,
    target: ArrayLike = -jnp.inf,
) -> Theory:
    """Minimise the action, Eq. 11, with Adam, as the paper's Appendix describes.

    Each of its 13 learning rates runs for ten steps from the GP limit; the one with the lowest
    mean energy then runs until every derivative ∂S/∂U⁽ℓ⁾ is below `tolerance`, until the action
    is at most `target`, or for `steps` steps. A `learning_rate` skips the trial. A rate that
    leaves the positive matrices gives way to the next best. `evaluations` counts all of it.
    Takes ξ `[P, Π, D]`, `y [P]` and the rest as `solve` does; gives `U [Π, Π]`. Needs optax, from
    `pip install "attnpaths[sampling]"`.

    >>> xi = jax.random.normal(jax.random.key(0), (20, 2, 3))
    >>> theory = solve_adam(xi, jnp.sign(xi[:, 0, 0]), heads=(2,), width=10, temperature=0.1)
    >>> theory.U.shape, bool(theory.converged)
    ((2, 2), True)
    """
    _optax()
    problem = Problem.of(xi, y, heads=heads, temperature=temperature, prior_variance=prior_variance)
    if problem.outputs is not None or problem.prior_variance.ndim:
        raise ValueError(
            "solve_adam is the paper's recipe, for y [P] and a single prior_variance; solve takes "
            "several outputs and variances"
        )
    width = _checks.number("width", width, least=1)
    steps = _checks.whole("steps", steps, least=1)
    limit = _checks.number("tolerance", tolerance, above=0)
    target = _checks.number("target", target, least=-np.inf, infinite=True)
    stored = kernels.path_kernels(problem.xi) / problem.xi.shape[1]
    setting = (problem, stored, width)
    evaluations, rates = 0, [learning_rate]
    if learning_rate is None:
        energies = np.asarray(_try(*setting, jnp.asarray(LEARNING_RATES)))
        evaluations = _TRIAL_STEPS * len(LEARNING_RATES)
        rates = [LEARNING_RATES[i] for i in np.argsort(energies) if np.isfinite(energies[i])]
    for rate in rates:
        rate = _checks.number("learning_rate", rate, above=0)
        theory = _run(*setting, rate, steps, limit, target)
        evaluations += int(theory.evaluations)
        if jnp.isfinite(theory.action):
            warn_unless_converged(theory, "Give Adam more steps or a smaller learning_rate")
            return dataclasses.replace(theory, evaluations=jnp.asarray(evaluations))
    raise ValueError(
        "learning_rate must be smaller: Adam leaves the positive matrices on this xi, y and "
        f"temperature at {'the rate given' if learning_rate else 'every rate of the paper'}"
    )


def _parts(U, problem: Problem, stored, width):
    """Entropy and energy of the levels U⁽¹⁾, …, U⁽ᴸ⁺¹⁾, symmetrised."""
    U = [(u + u.T) / 2 for u in U]
    K = problem.prior_variance * jnp.tensordot(U[0], stored, 2)
    setting = {"temperature": problem.temperature, "prior_variance": problem.prior_variance}
    return action.paper_action(U, K, problem.y, width=width, **setting)


def _start(problem: Problem):
    *levels, last = levels_of(factors.gp_limit(problem.heads), problem)
    return (*levels, last[None, None])


def _optax():
    return _extras.require("optax", "sampling", "theory.solve_adam")


@jax.jit
def _try(problem: Problem, stored, width, rates):
    """The mean energy in the first steps at every learning rate."""
    optax = _optax()

    def trial(rate):
        optimiser = optax.adam(rate)

        def step(state, _):
            U, moments = state
            energy = _parts(U, problem, stored, width)[1]
            slope = jax.grad(lambda U: sum(_parts(U, problem, stored, width)))(U)
            updates, moments = optimiser.update(slope, moments)
            return (optax.apply_updates(U, updates), moments), energy

        U = _start(problem)
        return jnp.mean(jax.lax.scan(step, (U, optimiser.init(U)), length=_TRIAL_STEPS)[1])

    return jax.lax.map(trial, rates)


@jax.jit
def _run(problem: Problem, stored, width, rate, steps, tolerance, target) -> Theory:
    optax = _optax()
    optimiser = optax.adam(rate)
    value_and_grad = jax.value_and_grad(lambda U: sum(_parts(U, problem, stored, width)))

    def unfinished(state):
        _, _, _, value, slope, count = state
        return (slope > tolerance) & (value > target) & (count < steps)

    def step(state):
        U, _, moments, _, _, count = state
        value, slope = value_and_grad(U)
        updates, moments = optimiser.update(slope, moments)
        largest = jnp.max(jnp.stack([jnp.max(jnp.abs(s)) for s in slope]))
        return optax.apply_updates(U, updates), U, moments, value, largest, count + 1

    U, infinity = _start(problem), jnp.array(jnp.inf)
    start = (U, U, optimiser.init(U), infinity, infinity, jnp.zeros((), int))
    _, U, _, value, largest, count = jax.lax.while_loop(unfinished, step, start)
    entropy, energy = _parts(U, problem, stored, width)
    levels = tuple((u + u.T) / 2 for u in U)
    return Theory(
        U=levels[0],
        levels=(*levels[:-1], levels[-1][0, 0]),
        action=value,
        energy=energy,
        entropy=entropy,
        gradient_norm=largest,
        converged=(largest <= tolerance) | (value <= target),
        iterations=count,
        evaluations=count,
        hessian_products=jnp.zeros((), int),
        starts=jnp.ones((), int),
        width=width,
        problem=problem,
    )
