"""Where does the theory break? `python -m book.studies.limits.run`.

Exact posterior means against the saddle point on problems made to be hard for it:

- `map, N = …`: a width and all loads P/N, the problem otherwise the same;
- `temperature, …`: 𝒯 → 0, with fewer and with more examples than features;
- `correlation`: paths that become the same;
- `signal`: labels that depend less and less on any path;
- `widths`, `grown` and `networks`: layers of different widths.

Each answer holds distances δ_U and δ_f with their Monte Carlo errors, and accuracies. Draws are
weighed by importance, or come from NUTS where the network is narrower than `WIDE`, and have
control variates. About two minutes on one core.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnpaths import Problem, Weights, empirical_order_parameter, kernels, theory
from attnpaths.posterior import OrderParameter
from book.studies.engine import collect
from book.studies.statistics import Draws, chains, distance, effective_draws, importance, steady

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
    return Task(Problem.of(xi, y, heads=heads, temperature=temperature), test, labels)


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
    saddle = theory.solve(**task.problem.arguments, width=width)
    widths = (width,) * (task.problem.layers + 1)
    return judge(task, *layered(task.problem, widths, seed=seed, samples=samples), saddle.U)


def layered(problem: Problem, widths, *, seed: int = 0, samples: int | None = None):
    """Draws of U for layers of any widths."""
    density = OrderParameter(problem.heads, tuple(widths))
    data = density.data(problem)
    # a proposal fits 14 unknowns well, and more than a hundred badly
    if problem.paths <= 4 and min(widths) >= WIDE:
        # the narrower, the further from a Gaussian
        many = samples or (1000 if min(widths) >= 10 else 5000)
        draws = importance(density, data, seed, samples=many, freedom=10)
    else:
        draws = chains(density, data, seed, warmup=200, samples=samples or 300)
    return density.read(jnp.asarray(draws.z), problem.prior_variance)[1], draws


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
        found[name], found[f"{name}_mcse"] = distance(mean, error, reference)
    found["accuracy"] = np.mean(np.sign(mean) == task.labels)
    found["promised"] = np.mean(np.sign(promised) == task.labels)
    return found


def _predict(task: Task, U):
    """The mean predictor given each U."""
    problem, test = task.problem, jnp.asarray(task.test)
    setting = {k: problem.arguments[k] for k in ("temperature", "prior_variance")}
    return kernels.regress(jnp.asarray(U), problem.xi, problem.y, test, **setting).mean


def _plain(values, draws):
    return values.mean(axis=(0, 1)), np.asarray(draws.error(values))


def _efficiency(U, draws):
    """Effective draws per draw: of the chains, at their worst, or of the weights."""
    if len(draws.z) > 1:
        return float(effective_draws(U).min()) / draws.weight.size
    return draws.efficiency


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
    width, the harmonic mean, the least, the first, and the last of `effective`.
    """
    return table(layers, seeds, _one_of_widths)


def saddle(problem: Problem, widths):
    """The order parameter of the theory that knows all widths.

    >>> problem = gaussian(0, 12).problem
    >>> one, all_ = (theory.solve(**problem.arguments, width=w).U for w in (10, (10, 10, 10)))
    >>> bool(jnp.allclose(one, all_))
    True
    """
    return theory.solve(**problem.arguments, width=widths).U


def _one_of_widths(widths, seed) -> dict:
    task = gaussian(seed, 32)
    U, draws = layered(task.problem, widths, seed=seed)
    found = {"own": judge(task, U, draws, saddle(task.problem, widths))}
    for name, width in single(task.problem.heads, widths).items():
        one = theory.solve(**task.problem.arguments, width=width)
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
    scores = effective(heads, widths)
    return {
        "mean": float(widths.mean()),
        "harmonic mean": float(round(1 / np.mean(1 / widths), 9)),
        "least": float(widths.min()),
        "first": float(widths[0]),
        "weighed": float(scores[-1]),
    }


def effective(heads, widths) -> list[float]:
    """Widths N(1), …, N(L+1) of the network of one width that answers weak data in the same way.

    Level ℓ answers with the mean of the force over all paths that it cannot tell apart, and with
    a strength 1/N_ℓ. What only level 1 can do, such as telling paths apart by their first head,
    has the width N_1. What all levels can do has the mean of all 1/N_ℓ, weighed by the number of
    paths that level ℓ moves together: Σ_{m≤k} w_m/N(k) = Σ_{m≤k} w_m/N_m with w_m = Π/|Π_m|.

    With weights 1, 2 and 4 the last is 7 / (1/10 + 2/100 + 4/1000):

    >>> [round(N, 1) for N in effective((2, 2), (10, 100, 1000))]
    [10.0, 25.0, 56.5]
    """
    sizes = np.array([np.prod(heads[i:]) for i in range(len(heads) + 1)], float)
    together = sizes[0] / sizes
    inverse = np.cumsum(together / np.asarray(widths, float)) / np.cumsum(together)
    return (1 / inverse).tolist()


def networks(problem: Problem, widths, seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean of Ũ and its standard error, from networks drawn from the prior.

    Each network counts by the likelihood of the labels given its Ũ. Slow and plain: nothing of
    the hierarchy is used.
    """
    keys = jax.random.split(jax.random.key(seed), count)
    shape = {"width": tuple(widths), "dim": 1, "heads": problem.heads}
    C = kernels.path_kernels(problem.xi) / problem.paths
    noise, y = problem.temperature * jnp.eye(len(problem.y)), problem.y

    @jax.jit
    def one(key):
        U = empirical_order_parameter(Weights.prior(key, **shape))
        K = jnp.einsum("pq,pqab->ab", U, C) + noise
        return U, -(jnp.linalg.slogdet(K)[1] + y @ jnp.linalg.solve(K, y)) / 2

    U, logs = map(np.asarray, jax.lax.map(one, keys, batch_size=1000))
    share = np.exp(logs - logs.max())
    share /= share.sum()
    mean = np.einsum("c,cpq->pq", share, U)
    return mean, np.sqrt(np.einsum("c,cpq->pq", share**2, (U - mean) ** 2))


def of_networks(widths=(10, 8, 12), count: int = 20_000) -> dict:
    """Is the posterior for different widths right? Against networks drawn one by one."""
    problem = gaussian(0, 6, temperature=0.5).problem
    U, draws = layered(problem, widths)
    values = np.asarray(U).reshape(*U.shape[:2], -1)
    mean, error = steady(values, draws)
    drawn, drawn_error = networks(problem, widths, 0, count)
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
