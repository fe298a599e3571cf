"""Where does the theory break? `python -m attnpaths.results.limits`.

Exact posterior means against the saddle point on problems made to be hard for it:

- `map, N = …`: a width and all loads P/N, the problem otherwise the same;
- `temperature, …`: 𝒯 → 0, with fewer and with more examples than features;
- `correlation`: paths that become the same;
- `signal`: labels that depend less and less on any path;
- `widths`, `grown` and `networks`: layers of different widths, see `limits_widths`.

Each answer holds distances δ_U and δ_f with their Monte Carlo errors, and accuracies. Draws are
weighed by importance, or come from NUTS where the network is narrower than `WIDE`, and have the
control variates of `corrections`. About two minutes on one core.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnpaths import densities, diagnostics, theory
from attnpaths.predictor import Problem, check
from attnpaths.results import collect, limits_widths
from attnpaths.results.corrections import Draws, steady
from attnpaths.results.limits_sampling import chains, importance

HEADS = (2, 2)
TESTS = 200
# from this width on by importance, if there are four paths
WIDE = 6
WIDTHS, LOADS, SEEDS = (6, 8, 10, 12, 16, 24), (0.25, 0.5, 1, 2, 4), (0, 1)
TEMPERATURES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
CORRELATIONS = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.99)
SIGNALS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
# (N_1, N_2, N_3): what enters layers 1 and 2, and the readout
LAYERS = ((12, 12, 12), (48, 12, 12), (12, 48, 12), (12, 12, 48), (48, 48, 12), (12, 48, 48))
GROWN = (1, 2, 4, 8)
# problems are padded to one of these dimensions and twice as many rows: few shapes are compiled
_DIMS = (16, 48)


class Task(NamedTuple):
    """A training problem, and test inputs `[P*, Π, D]` with labels."""

    problem: Problem
    test: np.ndarray
    labels: np.ndarray


def gaussian(
    seed: int,
    examples: int,
    *,
    dim: int | None = None,
    heads=HEADS,
    temperature: float = 0.1,
    correlation: float = 0.0,
    signal: float = 1.0,
) -> Task:
    """Gaussian vectors of dimension P/2; the label is the sign of a sum of two paths and noise.

    Any two paths have the given `correlation`, and `signal` is the share of the sum's variance
    that the paths explain.

    >>> task = gaussian(0, 12)
    >>> task.problem.xi.shape, task.test.shape
    ((32, 4, 16), (200, 4, 16))
    """
    for name, share in (("correlation", correlation), ("signal", signal)):
        if not 0 <= share <= 1:
            raise ValueError(f"{name} must be between 0 and 1; got {share}")
    rng = np.random.default_rng(seed)
    dim, paths = dim or max(examples // 2, 1), int(np.prod(heads))
    direction = rng.normal(size=dim)
    sets = []
    for count in (examples, TESTS):
        own, common = rng.normal(size=(count, paths, dim)), rng.normal(size=(count, 1, dim))
        xi = np.sqrt(1 - correlation) * own + np.sqrt(correlation) * common
        seen = (xi[:, 0] - xi[:, 2] / 2) @ direction
        size = np.sqrt(1.25 - correlation) * np.linalg.norm(direction)
        noise = rng.normal(size=count)
        y = np.sign(np.sqrt(signal) * seen / size + np.sqrt(1 - signal) * noise)
        sets.append(_padded(xi, y, rows=count == examples))
    (xi, y), (test, labels) = sets
    return Task(check(xi, y, heads, temperature, 1.0), test, labels)


def _padded(xi, y, rows: bool):
    """The same problem in a shape that others have too, which saves compiling.

    An example with ξ = 0 and y = 0 says nothing; neither does a dimension that is always zero,
    if the others are scaled up to keep ξ·ξ/D.
    """
    count, paths, dim = xi.shape
    shape = (2 * _up(-(-count // 2)) if rows else count, paths, _up(dim))
    wide, long = np.zeros(shape), np.zeros(shape[0])
    wide[:count, :, :dim] = xi * np.sqrt(shape[2] / dim)
    long[:count] = y
    return wide, long


def _up(size: int) -> int:
    """The next of a few sizes."""
    if size > _DIMS[-1]:
        raise ValueError(
            f"problems have at most {2 * _DIMS[-1]} examples of dimension {_DIMS[-1]}; got "
            f"{size}: add a larger size to _DIMS"
        )
    return next(each for each in _DIMS if each >= size)


def compare(task: Task, width: int, *, seed: int = 0, samples: int | None = None) -> dict:
    """Distances of the exact posterior mean from the theory at one width, and accuracies."""
    problem = task.problem
    saddle = theory.solve(**problem._asdict(), width=width)
    if width < problem.xi.shape[1]:
        density = densities.OrderParameter(problem.heads, width)
        draws = chains(density, density.data(problem), seed, samples)
        U = density.read(jnp.asarray(draws.z), problem.prior_variance)[1]
    else:
        widths = (width,) * (len(problem.heads) + 1)
        U, draws = layered(problem, widths, seed=seed, samples=samples)
    return judge(task, U, draws, saddle.U)


def layered(problem: Problem, widths, *, seed: int = 0, samples: int | None = None):
    """Draws of U for layers of any widths that are not below their numbers of partial paths."""
    density = limits_widths.Layers(problem.heads)
    data = density.data(problem, widths)
    # a proposal fits 14 unknowns well, and more than a hundred badly
    few = problem.xi.shape[1] <= 4
    sample = importance if few and min(widths) >= WIDE else chains
    draws = sample(density, data, seed, samples)
    return density.order_parameters(jnp.asarray(draws.z), data[1]), draws


def judge(task: Task, U, draws: Draws, wanted) -> dict:
    """How far means over draws of U and of the predictor are from those of one order parameter."""
    outputs = _predict(task, U)
    promised = np.asarray(_predict(task, jnp.asarray(wanted)[None, None]))[0, 0]
    found = {"efficiency": _efficiency(U, draws)}
    pairs = {
        "U": (np.asarray(U).reshape(*U.shape[:2], -1), np.ravel(wanted)),
        "f": (np.asarray(outputs), promised),
    }
    for name, (values, reference) in pairs.items():
        mean, error = steady(values, draws) if draws.z.shape[-1] < 20 else _plain(values, draws)
        # noise adds to a distance; its expected share goes
        square = np.sum((mean - reference) ** 2) - np.sum(error**2)
        size = np.linalg.norm(reference)
        found |= {name: np.sqrt(max(square, 0.0)) / size}
        found |= {f"{name}_mcse": np.linalg.norm(error) / size}
    found["accuracy"] = np.mean(np.sign(mean) == task.labels)
    found["promised"] = np.mean(np.sign(promised) == task.labels)
    return found


def _predict(task: Task, U):
    """The mean predictor given each U, without the variance that `averaged.predict` adds."""
    problem = task.problem
    draws = jnp.asarray(U).reshape(-1, *U.shape[2:])
    flat = _means(draws, problem.xi, problem.y, jnp.asarray(task.test), problem.temperature)
    return flat.reshape(*U.shape[:2], -1)


@jax.jit
def _means(draws, xi, y, test, temperature):
    """kᵀ(K+𝒯)⁻¹Y for every draw: one Cholesky factor each."""
    scale = 1 / (xi.shape[1] * xi.shape[2])

    def one(U):
        mixed = scale * jnp.einsum("pq,aqi->api", U, xi).reshape(len(xi), -1)
        K = mixed @ xi.reshape(len(xi), -1).T + temperature * jnp.eye(len(xi))
        v = jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(K), True), y)
        return test.reshape(len(test), -1) @ (v @ mixed)

    return jax.lax.map(one, draws)


def _plain(values, draws):
    return values.mean(axis=(0, 1)), np.asarray(draws.error(values))


def _efficiency(U, draws):
    """Effective draws per draw: of the chains, at their worst, or of the weights."""
    if len(draws.z) > 1:
        return np.min(diagnostics.ess_bulk(np.asarray(U))) / draws.weight.size
    return draws.weight.sum() ** 2 / np.sum(draws.weight**2) / draws.weight.size


def table(settings, seeds, make) -> dict:
    """`make(setting, seed)` for all of them: `{key: [settings, seeds]}`."""
    rows = [[make(setting, seed) for seed in seeds] for setting in settings]
    return {key: [[each[key] for each in row] for row in rows] for key in rows[0][0]}


def of_map(width: int, loads=LOADS, seeds=SEEDS) -> dict:
    """One width, all loads."""
    return table(
        loads, seeds, lambda load, seed: compare(gaussian(seed, round(load * width)), width)
    )


def of_temperature(dim: int, temperatures=TEMPERATURES, seeds=SEEDS) -> dict:
    """Ever colder, at P = 32 and N = 12."""
    return table(
        temperatures,
        seeds,
        lambda each, seed: compare(gaussian(seed, 32, dim=dim, temperature=each), 12),
    )


def of_correlation(correlations=CORRELATIONS, seeds=SEEDS) -> dict:
    """Ever more alike, at P = 32 and N = 12."""
    return table(
        correlations,
        seeds,
        lambda each, seed: compare(gaussian(seed, 32, correlation=each), 12),
    )


def of_signal(signals=SIGNALS, seeds=SEEDS) -> dict:
    """Less and less signal, at P = 32 and N = 12."""
    return table(signals, seeds, lambda each, seed: compare(gaussian(seed, 32, signal=each), 12))


def of_widths(layers=LAYERS, seeds=SEEDS) -> dict:
    """Layers of different widths, P = 32, against saddle points with one width and with all.

    `own` is the saddle point that knows all widths; the others are `theory.solve` with the mean
    width, the harmonic mean, the least, the first, and the last of `limits_widths.effective`.
    """
    return table(layers, seeds, _one_of_widths)


def _one_of_widths(widths, seed) -> dict:
    task = gaussian(seed, 32)
    U, draws = layered(task.problem, widths, seed=seed)
    found = {"own": judge(task, U, draws, limits_widths.saddle(task.problem, widths))}
    for name, width in single(task.problem.heads, widths).items():
        one = theory.solve(**task.problem._asdict(), width=width)
        found[name] = judge(task, U, draws, one.U)
    keys = ("U", "U_mcse", "f", "f_mcse")
    flat = {f"{name} {key}": each[key] for name, each in found.items() for key in keys}
    return flat | {key: found["own"][key] for key in ("efficiency", "accuracy", "promised")}


def single(heads, widths) -> dict[str, float]:
    """Single widths that might stand for several.

    >>> single((2, 2), (10, 10, 10))["harmonic mean"]
    10.0
    """
    widths = np.asarray(widths, float)
    scores = limits_widths.effective(heads, widths)
    return {
        "mean": float(widths.mean()),
        "harmonic mean": float(round(1 / np.mean(1 / widths), 9)),
        "least": float(widths.min()),
        "first": float(widths[0]),
        "weighed": float(scores[-1]),
    }


def of_networks(widths=(10, 8, 12), count: int = 20_000) -> dict:
    """Is the posterior for different widths right? Against networks drawn one by one."""
    problem = gaussian(0, 6, temperature=0.5).problem
    U, draws = layered(problem, widths)
    values = np.asarray(U).reshape(*U.shape[:2], -1)
    mean, error = steady(values, draws)
    drawn, drawn_error = limits_widths.networks(problem, widths, 0, count)
    return {
        "widths": list(widths),
        "U": mean,
        "U_mcse": error,
        "drawn": drawn.ravel(),
        "drawn_mcse": drawn_error.ravel(),
    }


def parts() -> dict:
    """Every part of the study, with the function that computes it."""
    result = {f"map, N = {N}": partial(of_map, N) for N in WIDTHS}
    result["temperature, P < ΠD"] = partial(of_temperature, 16)
    result["temperature, P > ΠD"] = partial(of_temperature, 4)
    result |= {"correlation": of_correlation, "signal": of_signal, "widths": of_widths}
    result["grown"] = partial(
        of_widths, tuple(tuple(g * N for N in LAYERS[1]) for g in GROWN), (0,)
    )
    result["networks"] = of_networks
    return result


if __name__ == "__main__":
    collect("limits", parts(), seeds=SEEDS)
