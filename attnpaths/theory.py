"""The paper's theory: the order parameter U that minimises the action, and what it predicts.

`solve` answers one setting, `sweep` a whole grid of widths and temperatures, `gp_limit` the
limit of infinite width; `solve_adam` is the paper's own recipe, kept to compare with.
"""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array
from tqdm.auto import tqdm

from attnpaths import _inputs, action, kernels, sharding
from attnpaths.adam import solve_adam
from attnpaths.minimise import Minimum, minimise
from attnpaths.predictor import Problem, Theory, check, levels_of, warn_unless_converged

__all__ = ["Sweep", "Theory", "gp_limit", "solve", "solve_adam", "sweep"]

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
    width: ArrayLike,
    temperature: ArrayLike,
    prior_variance: ArrayLike = 1.0,
) -> Theory:
    """Minimise the action S(U) of Eq. 11 and give the order parameter `U [Π, Π]`.

    Takes the attentioned inputs ξ `[P, Π, D]`, labels `y [P]`, the numbers of heads
    (H₁, …, H_L) with ∏H_ℓ = Π, the width N ≥ 1 (`inf` is the GP limit), the temperature
    𝒯 > 0 and the prior variance σ². Numbers of lower precision are promoted to float64. Works
    under `jax.vmap` and `jax.jit` over all arrays and over width, temperature and prior
    variance; `sweep` is faster for a grid. It cannot be differentiated.

    The minimiser is a trust-region Newton method on the factor form, from the GP limit. It was
    chosen by measurement; `benchmarks/optimisers.py` prints the comparison. On the paper's
    problem it needs fewer evaluations than BFGS and L-BFGS in optimistix and scipy, most of
    which stop at gradients near 1e-8, where the rounding of the action blinds line searches.
    L-BFGS of optax is the best of the ready-made ones and as fast there, but, like the others,
    leaves some hard problems (narrow, cold, nearly equal paths) unsolved. Newton's
    method in scipy (trust-exact) solves nearly all, but cannot be compiled or mapped.

    >>> xi = jax.random.normal(jax.random.key(0), (20, 4, 3))
    >>> theory = solve(xi, jnp.sign(xi[:, 0, 0]), heads=(2, 2), width=10, temperature=0.1)
    >>> theory.U.shape, bool(theory.converged)
    ((4, 4), True)
    """
    problem = check(xi, y, heads, temperature, prior_variance)
    width = _inputs.number("width", width, least=1, infinite=True)
    data, *start = _prepare(problem)
    heads, problem = problem.heads, problem._replace(heads=None)
    theory, _ = _minimise(problem, data, width, *start, heads=heads)
    warn_unless_converged([theory])
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
    problem = check(xi, y, heads, temperature, prior_variance)
    levels, entropy = levels_of(action.gp_limit(problem.heads), problem)
    zero, none = jnp.zeros(()), jnp.zeros((), int)
    return Theory(
        U=levels[0],
        levels=levels,
        action=entropy,
        energy=zero,
        entropy=entropy,
        gradient_norm=zero,
        converged=jnp.array(True),
        iterations=none,
        evaluations=none,
        hessian_products=none,
        width=jnp.array(jnp.inf),
        **problem._asdict(),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Sweep:
    """The theory on a grid: `sweep[i, j]` belongs to `widths[i]` and `temperatures[j]`.

    The attributes of `Theory` that differ from point to point are here too, with two leading
    axes `[widths, temperatures]`.
    """

    widths: tuple[float, ...]
    temperatures: tuple[float, ...]
    grid: tuple[tuple[Theory, ...], ...]

    def __getitem__(self, index: tuple[int, int]) -> Theory:
        """The `Theory` at one point of the grid."""
        return self.grid[index[0]][index[1]]

    def __getattr__(self, name: str):
        """An attribute of all theories, with two leading axes."""
        if name not in _GRID_FIELDS:
            raise AttributeError(f"Sweep has no attribute {name!r}")
        return np.array([[getattr(theory, name) for theory in row] for row in self.grid])

    def predict(self, xi: ArrayLike) -> kernels.Prediction:
        """Mean and variance at every point of the grid, `[widths, temperatures, P*]`.

        >>> xi = jax.random.normal(jax.random.key(0), (20, 4, 3))
        >>> grid = sweep(xi, jnp.sign(xi[:, 0, 0]), heads=(2, 2), widths=[10, 100],
        ...              temperatures=[0.1, 1.0], progress=False)
        >>> grid.predict(xi).mean.shape
        (2, 2, 20)
        """
        rows = [[theory.predict(xi) for theory in row] for row in self.grid]
        return jax.tree.map(
            lambda *leaves: jnp.stack(leaves).reshape(
                len(self.widths), len(self.temperatures), *leaves[0].shape
            ),
            *(prediction for row in rows for prediction in row),
        )


_GRID_FIELDS = frozenset(
    "U action energy entropy gradient_norm converged iterations evaluations "
    "hessian_products".split()
)
_POINT_FIELDS = (*_GRID_FIELDS, "levels", "width", "temperature")


def sweep(
    xi: ArrayLike,
    y: ArrayLike,
    *,
    heads: Sequence[int],
    widths: ArrayLike | Sequence[ArrayLike],
    temperatures: ArrayLike | Sequence[ArrayLike],
    prior_variance: ArrayLike = 1.0,
    progress: bool = True,
) -> Sweep:
    """Solve a whole grid of widths and temperatures, each point started from its neighbour.

    Takes ξ `[P, Π, D]`, `y [P]` and the rest as `solve` does, with W widths and K temperatures;
    gives U = argmin S(U) for each, as `U [W, K, Π, Π]`. Kernels are made once, and the solution is
    followed from wide to narrow networks, where it moves little from one width to the next. Shows
    a progress bar unless told not to.

    Temperatures are shared out over all JAX devices, each of which follows its own. On a node
    with several GPUs the same call uses them all; the cores of a CPU already share each
    point, or become devices with `XLA_FLAGS=--xla_force_host_platform_device_count=2`. So does
    a job of several hosts: start the same script everywhere, call `jax.distributed.initialize()`
    before anything else, then `sweep` with the same arguments in every process. Each process
    solves the temperatures of its own devices, and all of them return the whole grid.

    >>> xi = jax.random.normal(jax.random.key(0), (20, 4, 3))
    >>> grid = sweep(xi, jnp.sign(xi[:, 0, 0]), heads=(2, 2), widths=[10, 100],
    ...              temperatures=[0.1, 1.0], progress=False)
    >>> grid.U.shape, grid[0, 1].width.item(), grid.converged.all().item()
    ((2, 2, 4, 4), 10.0, True)
    """
    widths = _inputs.numbers("widths", widths, least=1, infinite=True)
    temperatures = _inputs.numbers("temperatures", temperatures, above=0)
    problem = check(xi, y, heads, min(temperatures), prior_variance)
    data, *limit = _prepare(problem)
    descending = sorted(range(len(temperatures)), key=lambda j: -temperatures[j])

    def work(share, report, move):
        own = move((problem._replace(heads=None), data, limit))
        return _follow(*own, problem.heads, widths, [temperatures[j] for j in share], report)

    total = len(widths) * len(temperatures)
    with tqdm(total=total, desc="theory", unit="point", disable=not progress) as bar:
        columns = sharding.share_out(work, descending, bar.update)
    fixed = problem._asdict()
    del fixed["temperature"]
    columns = [[Theory(**point, **fixed) for point in columns[j]] for j in sorted(columns)]
    grid = tuple(zip(*columns, strict=True))
    warn_unless_converged([theory for row in grid for theory in row])
    return Sweep(tuple(widths), tuple(temperatures), grid)


def _follow(problem, data, limit, heads, widths, temperatures, report) -> list[list[dict]]:
    """What theories do not share, for each temperature in turn, from wide to narrow networks."""
    descending = sorted(range(len(widths)), key=lambda i: -widths[i])
    columns, widest = [], limit
    for value in temperatures:
        temperature = jnp.asarray(value, jnp.float64)
        problem = problem._replace(temperature=temperature)
        data = data._replace(temperature=temperature)
        (start, hessian), ends, loads = widest, [], []
        column = [None] * len(widths)
        for i in descending:
            loads.append(np.log1p(len(problem.y) / widths[i]))
            if len(ends) > 1:
                start = _ahead(ends[-2].point, ends[-1].point, *loads[-3:])
            width = jnp.asarray(widths[i], jnp.float64)
            theory, end = _minimise(problem, data, width, start, hessian, heads=heads)
            if not theory.converged:
                # the neighbour may have led astray: start as `solve` does
                theory, end = _minimise(problem, data, width, *limit, heads=heads)
            column[i] = {name: getattr(theory, name) for name in _POINT_FIELDS}
            start, hessian = end.point, end.hessian
            ends.append(end)
            report()
        widest = ends[0].point, ends[0].hessian
        columns.append(column)
    return columns


@jax.jit
def _ahead(before: action.Factors, now: action.Factors, x_before, x_now, x_next) -> action.Factors:
    """Follow the factors along a line in x, with the logarithms of their diagonals."""
    reach = (x_next - x_now) / jnp.where(x_now == x_before, jnp.inf, x_now - x_before)

    def extend(old, new):
        line = new + reach * (new - old)
        diagonal = jnp.diag(new) * (jnp.diag(new) / jnp.diag(old)) ** reach
        return jnp.tril(line, -1) + jnp.diag(diagonal)

    return jax.tree.map(extend, before, now)


def _prepare(problem: Problem) -> tuple[action.Data, action.Factors, Array]:
    """Kernels, a start and a first Hessian, if the numbers are such that there is an action."""
    data, start, hessian, size = _prepared(problem._replace(heads=None), heads=problem.heads)
    if not _inputs.is_traced(size) and not np.isfinite(size):
        raise ValueError(
            "xi or y is too large beside the temperature: the action overflows double precision; "
            "divide xi and y by a common factor and the temperature by its square"
        )
    return data, start, hessian


@functools.partial(jax.jit, static_argnames="heads")
def _prepared(problem: Problem, *, heads: tuple[int, ...]):
    data = action.prepare(
        problem.xi,
        problem.y,
        layers=len(heads),
        temperature=problem.temperature,
        prior_variance=problem.prior_variance,
    )
    kernel = action.mix(data, action.pairs(jnp.eye(problem.xi.shape[1])))
    ratio = jnp.max(jnp.diag(kernel)) / data.temperature
    size = ratio + problem.y @ problem.y / data.temperature
    # the GP limit, made smaller only where rounding would deny its kernel a Cholesky factor
    shrink = jnp.minimum(_LARGEST_RATIO / ratio, 1.0) ** (0.5 / (len(heads) + 1))
    start = action.gp_limit(heads, shrink)
    dense = _forms_hessian(action.unknowns(heads), len(data.y))
    hessian = action.entropy_hessian(start, heads) if dense else jnp.zeros((0, 0))
    return data, start, hessian, size


def _forms_hessian(unknowns: int, rows: int) -> bool:
    """Whether a whole Hessian is cheaper than products with it, of which many are needed."""
    return unknowns <= 64 or (unknowns <= 512 and unknowns * rows**2 <= 10**7)


@functools.partial(jax.jit, static_argnames="heads")
def _minimise(
    problem: Problem, data: action.Data, width, start, hessian, *, heads: tuple[int, ...]
) -> tuple[Theory, Minimum]:
    """The compiled core: from a start to a `Theory`, and where a similar one may start."""
    problem = problem._replace(heads=heads)
    unknowns = action.unknowns(heads)
    end = minimise(
        lambda B, step: action.value_and_gradient(B, step, data, width, heads),
        lambda B, step: action.move(B, step, heads),
        start,
        unknowns,
        tolerance=_AIM,
        most=_MOST_EVALUATIONS,
        block=max(1, 2**25 // len(data.y) ** 2),
        dense=_forms_hessian(unknowns, len(data.y)),
        hessian=hessian,
    )
    levels, entropy = levels_of(end.point, problem)
    energy = end.value - action.assemble(end.point)[1] + action.unreached(data) / width
    gradient_norm = jnp.max(jnp.abs(end.gradient))
    theory = Theory(
        U=levels[0],
        levels=levels,
        action=entropy + energy,
        energy=energy,
        entropy=entropy,
        gradient_norm=gradient_norm,
        converged=gradient_norm <= _CONVERGED * end.scale,
        iterations=end.iterations,
        evaluations=end.evaluations,
        hessian_products=end.products,
        width=width,
        **problem._asdict(),
    )
    return theory, end
