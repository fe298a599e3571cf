"""The theory on a grid of widths and temperatures, each point started from its neighbour."""

import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from attnpaths import _checks, _extras, _files, _html
from attnpaths.problem import Problem
from attnpaths.theory import devices
from attnpaths.theory.factors import Factors
from attnpaths.theory.solution import OWN, Theory, own_parts, warn_unless_converged
from attnpaths.theory.solver import Near, minimum, prepare


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Sweep(Theory):
    """The theory on a grid: a `Theory` with leading axes `[widths, temperatures]`.

    `sweep[i, j]` is the `Theory` of `widths[i]` and `temperatures[j]`. `sweep[i]`, `sweep[:, j]`,
    slices, lists and masks give a `Sweep` of the chosen rows and columns, whose arrays have the
    axes that NumPy would leave them; so do `len` and iteration.

    >>> xi = jax.random.normal(jax.random.key(0), (20, 4, 3))
    >>> grid = sweep(xi, jnp.sign(xi[:, 0, 0]), heads=(2, 2), widths=[10, 100],
    ...              temperatures=[0.1, 1.0], progress=False)
    >>> grid[1, 0].width.item(), grid[:, 1].U.shape, len(grid)
    (100.0, (2, 4, 4), 2)
    >>> grid.predict(xi).mean.shape, dict(grid.to_xarray().sizes)["path"]
    ((2, 2, 20), 4)
    """

    widths: tuple[float, ...] = dataclasses.field(metadata={"static": True})
    temperatures: tuple[float, ...] = dataclasses.field(metadata={"static": True})

    def __repr__(self):
        """The grid and how much of it converged."""
        widths, temperatures = ([f"{v:g}" for v in each] for each in self._axes)
        converged = np.asarray(self.converged)
        return (
            f"Sweep({self.problem.ways}, widths=({', '.join(widths)}), "
            f"temperatures=({', '.join(temperatures)}), "
            f"converged={converged.sum()} of {converged.size})"
        )

    def _repr_html_(self) -> str:
        """The action at every point of the grid."""
        converged = np.asarray(self.converged)
        facts = {"heads": self.heads, "converged": f"{converged.sum()} of {converged.size}"}
        if not self._whole:
            return _html.card("Sweep", facts)
        table = np.asarray(self.action).reshape(len(self.widths), len(self.temperatures))
        names = [f"N = {w:g}" for w in self.widths], [f"𝒯 = {t:g}" for t in self.temperatures]
        return _html.card("Sweep", facts, _html.table(table, names[0], names[1], "action S"))

    @property
    def _axes(self):
        return self.widths, self.temperatures

    @property
    def _whole(self) -> bool:
        """Whether its points are every width at every temperature, in this order."""
        wanted = np.meshgrid(*self._axes, indexing="ij")
        found = zip(wanted, (self.width, self.temperature), strict=True)
        return all(np.array_equal(axis.ravel(), np.ravel(own)) for axis, own in found)

    def __len__(self) -> int:
        """The length of the first axis."""
        return self.action.shape[0]

    def __iter__(self) -> "Iterator[Theory | Sweep]":
        """One entry of the first axis after the other."""
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index) -> "Theory | Sweep":
        """A `Theory`, or a `Sweep` of the chosen rows and columns, as NumPy would choose them."""
        shape = self.action.shape
        # NumPy refuses what is out of range, where JAX takes the nearest
        picked = np.arange(self.action.size).reshape(shape)[index]
        own = jax.tree.map(
            lambda leaf: leaf.reshape(-1, *leaf.shape[len(shape) :])[picked], own_parts(self)
        )
        temperature = self.temperature.reshape(-1)[picked]
        problem = dataclasses.replace(self.problem, temperature=temperature)
        if picked.ndim == 0:
            return Theory(**own, problem=problem)
        # where each width and temperature stands among all points of this grid
        places = np.meshgrid(*map(np.arange, map(len, self._axes)), indexing="ij")
        kept = [dict.fromkeys(place.reshape(-1)[picked.ravel()].tolist()) for place in places]
        axes = [tuple(axis[k] for k in keep) for axis, keep in zip(self._axes, kept, strict=True)]
        return Sweep(**own, problem=problem, widths=axes[0], temperatures=axes[1])

    def to_xarray(self) -> Any:
        """All numbers of the grid as an `xarray.Dataset`, with width and temperature as axes.

        Holds U `[W, K, Π, Π]` and action, energy, entropy, gradient and counts `[W, K]`. Needs
        xarray, which comes with `pip install "attnpaths[sampling]"`.
        """
        xarray = _extras.require("xarray", "sampling", "Sweep.to_xarray")
        if not self._whole:
            raise ValueError(
                f"these {self.action.size} points are no grid of {len(self.widths)} widths and "
                f"{len(self.temperatures)} temperatures; choose rows and columns, each once, as in "
                "sweep[:2, [0, 2]], or convert the whole sweep and choose there"
            )
        shape, names = tuple(map(len, self._axes)), self.problem.names
        axes = ("width", "temperature")

        def on_grid(array):
            return np.asarray(array).reshape(shape + np.shape(array)[self.action.ndim :])

        single = [name for name in OWN if name not in ("U", "levels", "width")]
        found: dict[str, Any] = {name: (axes, on_grid(getattr(self, name))) for name in single}
        found["U"] = ((*axes, "path", "other_path"), on_grid(self.U))
        coords = dict(zip(axes, map(list, self._axes), strict=True))
        attrs = {"heads": list(self.heads), "examples": len(self.y)}
        attrs["prior_variance"] = np.asarray(self.prior_variance).tolist()
        return xarray.Dataset(found, coords | {"path": names, "other_path": names}, attrs)


def load(path: str | os.PathLike) -> Theory | Sweep:
    """What `Theory.save` or `Sweep.save` wrote to `path`: U `[Π, Π]`, levels, action, problem.

    >>> import tempfile
    >>> from attnpaths.theory import gp_limit
    >>> theory = gp_limit(jnp.ones((2, 1, 1)), [1, 1], heads=(1,), temperature=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     theory.save(f"{folder}/it.npz")
    ...     load(f"{folder}/it.npz").U.shape
    (1, 1)
    """
    return _files.load(path, (Theory, Sweep), (Problem,))


def sweep(
    xi: ArrayLike,
    y: ArrayLike,
    *,
    heads: Sequence[int],
    widths: ArrayLike | Sequence[ArrayLike],
    temperatures: ArrayLike | Sequence[ArrayLike],
    prior_variance: ArrayLike | Sequence[ArrayLike] = 1.0,
    residual: bool | Sequence[bool] = False,
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
    widths = _checks.numbers("widths", widths, least=1, infinite=True)
    temperatures = _checks.numbers("temperatures", temperatures, above=0)
    progress = _checks.flag("progress", progress)
    setting = {"temperature": min(temperatures), "prior_variance": prior_variance}
    problem = Problem.of(xi, y, heads=heads, residual=residual, **setting)
    points, entries = len(widths) * len(temperatures), problem.ways.paths * problem.ways.readouts
    what = f"a grid of {len(widths)} widths and {len(temperatures)} temperatures"
    # U and the levels above it, kept by column and then as one grid
    _checks.memory(32 * points * entries**2, what, "use fewer of them")
    data, *limit = prepare(problem)
    descending = sorted(range(len(temperatures)), key=lambda j: -temperatures[j])

    def work(share, report, move):
        mine, values = move((problem, data, limit)), [temperatures[j] for j in share]
        return _follow(*mine, widths=widths, temperatures=values, report=report)

    # slow to import, and only needed here
    from tqdm.auto import tqdm

    with tqdm(total=points, desc="theory", unit="point", disable=not progress) as bar:
        columns = devices.share_out(work, descending, bar.update)
    columns = [columns[j] for j in sorted(columns)]
    own = jax.tree.map(lambda *leaves: jnp.stack(leaves, axis=1), *columns)
    grid = jnp.broadcast_to(jnp.asarray(temperatures)[None], (len(widths), len(temperatures)))
    problem = dataclasses.replace(problem, temperature=grid)
    result = Sweep(**own, problem=problem, widths=tuple(widths), temperatures=tuple(temperatures))
    warn_unless_converged(result)
    return result


def _follow(problem, data, limit, widths, temperatures, report) -> list[dict]:
    """What theories do not share, `[widths, …]` for each temperature, from wide to narrow."""
    descending = sorted(range(len(widths)), key=lambda i: -widths[i])
    spectrum, alone = limit
    columns, widest = [], alone
    for value in temperatures:
        temperature = jnp.asarray(value, jnp.float64)
        problem = dataclasses.replace(problem, temperature=temperature)
        data = data._replace(temperature=temperature)
        near, ends, loads, column = widest, [], [], {}
        for i in descending:
            loads.append(np.log1p(len(problem.y) / widths[i]))
            if len(ends) > 1:
                near = near._replace(point=_ahead(ends[-2].point, ends[-1].point, *loads[-3:]))
            width = jnp.asarray(widths[i], jnp.float64)
            theory, end = minimum(problem, width, data, spectrum, near)
            column[i] = own_parts(theory)
            near = Near(end.point, end.hessian, jnp.array(False))
            ends.append(end)
            report()
        widest = Near(ends[0].point, ends[0].hessian, jnp.array(False))
        rows = [column[i] for i in range(len(widths))]
        columns.append(jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows))
    return columns


@jax.jit
def _ahead(before: Factors, now: Factors, x_before, x_now, x_next) -> Factors:
    """Follow the factors along a line in x, with the logarithms of their diagonals."""
    reach = (x_next - x_now) / jnp.where(x_now == x_before, jnp.inf, x_now - x_before)

    def extend(old, new):
        line = new + reach * (new - old)
        diagonal = jnp.diag(new) * (jnp.diag(new) / jnp.diag(old)) ** reach
        return jnp.tril(line, -1) + jnp.diag(diagonal)

    return jax.tree.map(extend, before, now)
