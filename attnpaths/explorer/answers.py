"""Answers: what the theory says of drawn tasks in one setting, and at all stops of a page."""

import functools
import itertools
import math
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from tqdm.auto import tqdm

from attnpaths import Network, _checks, kernels, theory
from attnpaths.tasks.markov import make_task

SEEDS = (0, 1, 2, 3, 4)
HEADS = (2, 2)
NAMES = ("good", "adversarial (1,2)", "denoising", "adversarial (2,2)")
# how many principal components of the kernel are shown
COMPONENTS = 10
# where the controls stop in a built page; the last width is the GP
STOPS = {
    "width": (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, math.inf),
    "tokens": (10, 20, 30, 40, 50),
    "temperature": (0.001, 0.01, 0.1, 1.0),
    "sigma_perp": (0.1, 0.5, 1.0, 2.0, 3.0, 5.0),
}
# where they stop in a notebook, where every value in between can be had too
FINE_STOPS = {
    "width": (*sorted({round(n) for n in np.geomspace(1, 10_000, 121)}), math.inf),
    "tokens": tuple(range(2, 51)),
    "temperature": tuple(float(f"{t:.3g}") for t in np.geomspace(0.001, 1, 61)),
    "sigma_perp": tuple(round(0.1 * i, 1) for i in range(1, 51)),
}
START = {"width": 10, "tokens": 30, "temperature": 0.01, "sigma_perp": 1.0}
MOST_TOKENS = STOPS["tokens"][-1]


class Draw(NamedTuple):
    """One drawn task, as far as the theory sees it."""

    xi: Float[Array, "examples paths dim"]
    y: Float[Array, "examples"]
    test: Float[Array, "tests paths dim"]
    test_y: Float[Array, "tests"]


@functools.lru_cache(maxsize=2 * len(SEEDS))
def draw(seed: int, tokens: int, sigma_perp: float) -> Draw:
    """Draw a task and give its kernels, in arrays whose shapes do not depend on T.

    New shapes would have to be compiled, for seconds, each time that a slider moves. So
    sequences are lengthened to a multiple of ten tokens, by tokens that no head looks at, and
    ξ to one dimension for all T.

    >>> draw(0, 7, 1.0).xi.shape == draw(0, 30, 1.0).xi.shape
    True
    """
    task = make_task(seed, tokens=tokens, sigma_perp=sigma_perp)
    x = np.concatenate([task.train.x, task.test.x])
    network, x = lengthen(task.network, x, -tokens % 10)
    xi = network.features(x)
    dim, whole = task.network.dim, task.network.dim - tokens + MOST_TOKENS
    # kernels are divided by the dimension; that of the task is meant
    xi = jnp.pad(xi, [(0, 0), (0, 0), (0, max(0, whole - xi.shape[2]))]) * math.sqrt(whole / dim)
    train, test = xi[: len(task.train.y)], xi[len(task.train.y) :]
    return Draw(train, task.train.y, test, task.test.y)


def lengthen(network: Network, x, extra: int) -> tuple[Network, np.ndarray]:
    """Put `extra` tokens before each sequence, with positions of their own, unseen by all heads.

    Attention knows positions from the tokens alone, so ξ stays as it is, but for `extra` zeros
    at its end.

    >>> task = make_task(0, tokens=4, dim=6, examples=2, test_examples=2)
    >>> longer, x = lengthen(task.network, task.train.x, 2)
    >>> xi = longer.features(x)
    >>> bool(jnp.allclose(xi[:, :, :-2], task.network.features(task.train.x)))
    True
    """
    count, tokens, dim = x.shape
    longer = np.zeros((count, extra + tokens, dim + extra))
    longer[:, extra:, :dim] = x
    longer[:, :extra, dim:] = np.eye(extra)
    heads = []
    for layer in network.heads:
        layer = np.pad(layer, [(0, 0), (0, extra), (0, extra)])
        # far below every other score: each query has a one among its positions
        layer[:, dim:, dim - tokens :] = -1e6
        heads.append(layer)
    return Network(heads, readout=network.readout), longer


@jax.jit
def observe(drawn: Draw, U, temperature):
    """Accuracy and alignment of order parameters `U [n, Π, Π]` at `temperature [n]`."""

    one = jnp.ones(())
    setting = {"temperature": temperature, "prior_variance": one}
    predicted = kernels.regress(U, drawn.xi, drawn.y, drawn.test, **setting)

    def align(U):
        kernel = kernels.mixed_kernel(U, drawn.xi, drawn.xi, one)
        return kernels.alignment(kernel, drawn.y).overlaps[:COMPONENTS]

    return predicted.accuracy(drawn.test_y), jax.lax.map(align, U)


@functools.lru_cache(maxsize=4 * len(SEEDS))
def at_widths(seed: int, tokens: int, sigma_perp: float, temperature: float, widths: tuple) -> dict:
    """What one drawn task gives at each width, and what its good path alone gives."""
    drawn = draw(seed, tokens, sigma_perp)
    if len(widths) == 1:
        setting = {"heads": HEADS, "width": widths[0], "temperature": temperature}
        U = theory.solve(drawn.xi, drawn.y, **setting).U[None]
    else:
        U = theory.sweep(
            drawn.xi,
            drawn.y,
            heads=HEADS,
            widths=widths,
            temperatures=[temperature],
            progress=False,
        ).U[:, 0]
    # a network of the good path alone divides by one path, not by four
    good = np.zeros((1, *U.shape[1:]))
    good[0, 0, 0] = len(NAMES)
    U = np.concatenate([U, good])
    accuracy, alignment = map(np.asarray, observe(drawn, U, np.full(len(U), temperature)))
    return {
        "U": U[:-1],
        "accuracy": accuracy[:-1],
        "alignment": alignment[:-1],
        "good": accuracy[-1:],
    }


def average(parts: list[dict]) -> dict:
    """Means over seeds, and standard errors of the accuracies.

    >>> average([{"accuracy": np.array([0.5])}, {"accuracy": np.array([0.7])}])["error"].round(3)
    array([0.1])
    """
    mean = {key: np.mean([part[key] for part in parts], axis=0) for key in parts[0]}
    for key, error in (("accuracy", "error"), ("good", "good_error")):
        if key in mean:
            spread = [part[key] for part in parts]
            mean[error] = (
                np.std(spread, axis=0, ddof=1) / math.sqrt(len(parts))
                if len(parts) > 1
                else np.zeros_like(mean[key])
            )
    return mean


def check(setting: Mapping) -> dict:
    """Check a setting, and give it with plain numbers.

    >>> check({"width": 10, "tokens": 30, "temperature": 0.01, "sigma_perp": 1})["sigma_perp"]
    1.0
    """
    if set(setting) != set(START):
        raise ValueError(f"a setting must have {', '.join(START)}; got {', '.join(setting)}")
    width = math.inf if setting["width"] == "inf" else setting["width"]
    tokens = _checks.whole("tokens", setting["tokens"], least=2)
    checked = {
        "width": float(_checks.number("width", width, least=1, infinite=True)),
        "tokens": tokens,
        "temperature": float(_checks.number("temperature", setting["temperature"], above=0)),
        "sigma_perp": float(_checks.number("sigma_perp", setting["sigma_perp"], least=0)),
    }
    if tokens > MOST_TOKENS:
        raise ValueError(f"tokens must be at most {MOST_TOKENS}; got {tokens}")
    return checked


def answers(setting: Mapping) -> Iterator[dict]:
    """Answer a setting, at once from one drawn task and then better and better from all.

    Means over S drawn tasks, as lists: `U [4, 4]`; at the given width and in the GP limit
    `accuracy [2]`, its `error [2]` = (standard deviation)/√S, 0 for one task, and
    `alignment [2, 10]`; `good [2]`, the accuracy of the good path alone and its error. The last
    answer brings the `curve` of accuracy and error against 14 widths, `[14]` each; the ones before
    lack it.

    >>> first = next(answers(START | {"tokens": 5}))
    >>> first["seeds"], len(first["U"]), first["curve"]
    (1, 4, None)
    """
    setting = check(setting)
    place = setting["tokens"], setting["sigma_perp"], setting["temperature"]
    width = setting["width"]
    own, curves = [], []
    answer = {"curve": None}
    for seed in SEEDS:
        own.append(at_widths(seed, *place, (width, math.inf)))
        answer = answer | written(setting, average(own), len(own))
        yield answer
    for seed in SEEDS:
        curves.append(at_widths(seed, *place, STOPS["width"]))
    curve = average(curves)
    yield answer | {"curve": {key: curve[key].tolist() for key in ("accuracy", "error")}}


def written(setting: dict, mean: dict, seeds: int) -> dict:
    """An answer in the words of the front end: the given width first, then the GP."""
    return {
        "setting": setting | {"width": spelled(setting["width"])},
        "seeds": seeds,
        "U": mean["U"][0].tolist(),
        "accuracy": mean["accuracy"].tolist(),
        "error": mean["error"].tolist(),
        "good": mean["good"].tolist() + mean["good_error"].tolist(),
        "alignment": mean["alignment"].tolist(),
    }


def spelled(width: float | int) -> float | int | str:
    """JSON has no infinity."""
    return "inf" if math.isinf(width) else width


def spelled_stops(stops: Mapping) -> dict:
    """Stops as the front end takes them."""
    return {name: [spelled(value) for value in values] for name, values in stops.items()}


def grid(progress: bool = True) -> dict:
    """Answers at every stop, for the built page: nested lists `[tokens][sigma][temperature][…]`.

    Takes minutes. Accuracies and U have nine significant digits, alignments four.
    """
    axes = STOPS["tokens"], STOPS["sigma_perp"], STOPS["temperature"]
    cells = []
    with tqdm(total=len(SEEDS) * math.prod(map(len, axes[:2])), disable=not progress) as bar:
        bar.set_description("explorer")
        for place in itertools.product(*axes[:2]):

            def one(seed, place=place):
                found = [at_widths(seed, *place, t, STOPS["width"]) for t in axes[2]]
                bar.update()
                return found

            # XLA does the work outside of Python's lock
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                parts = list(pool.map(one, SEEDS))
            cells.extend(average(list(part)) for part in zip(*parts, strict=True))
    upper = np.triu_indices(len(NAMES))
    shape = tuple(map(len, axes))

    def table(key, digits):
        values = np.array([cell[key] for cell in cells])
        values = values[..., upper[0], upper[1]] if key == "U" else values
        values = np.array([float(f"{value:.{digits}g}") for value in values.ravel()]).reshape(
            shape + values.shape[1:]
        )
        return values.tolist()

    digits = {"U": 9, "accuracy": 9, "error": 9, "good": 9, "good_error": 9, "alignment": 4}
    return {
        "seeds": len(SEEDS),
        "stops": spelled_stops(STOPS),
        **{key: table(key, places) for key, places in digits.items()},
    }
