"""Answers: what the theory says of drawn tasks in one setting, by Python.

The page answers the same by itself; its tests hold the two against each other.
"""

import functools
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnpaths import Network, _checks, kernels, theory
from attnpaths.tasks.markov import make_task, paper_task

# how many principal components of the kernel are shown
COMPONENTS = 10
WIDTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, math.inf)
#: Where the explorer starts, and all that can be set.
START: dict[str, Any] = {
    "width": 10,
    "examples": 100,
    "temperature": 0.01,
    "tokens": 30,
    "sigma_perp": 1,
    "sigma_parallel": 1,
    "flip_plus": 0.3,
    "flip_minus": 0.7,
    "seed": 0,
    "tasks": 1,
    "off": [],
    "denoising": "random",
}
#: From where to where; a width may also be infinite, or "inf".
RANGES = {
    "width": (1, 10_000),
    "examples": (4, 300),
    "temperature": (0.001, 1),
    "tokens": (2, 50),
    "sigma_perp": (0, 5),
    "sigma_parallel": (0, 5),
    "flip_plus": (0, 1),
    "flip_minus": (0, 1),
    "seed": (0, 2**53 - 1),
    "tasks": (1, 10),
}
_WHOLE = {"examples", "tokens", "seed", "tasks"}
# what the authors' data cannot have otherwise
_PAPER = ("examples", "tokens", "sigma_parallel", "flip_plus", "flip_minus", "tasks")
_HEADS = ("1.1", "1.2", "2.1", "2.2")
# what stands in place of a number, and how JSON has it
_WORDS = {("seed", "paper"): "paper", ("width", "inf"): "inf", ("width", math.inf): "inf"}


class Draw(NamedTuple):
    """One drawn task, as far as the theory sees it."""

    xi: Float[Array, "examples paths dim"]
    y: Float[Array, "examples"]
    test: Float[Array, "tests paths dim"]
    test_y: Float[Array, "tests"]


@functools.lru_cache(maxsize=10)
def draw(seed: int | str, tokens: int, examples: int, denoising: str, noise: tuple) -> Draw:
    """Draw a task and give its features, in arrays whose shapes do not depend on T.

    `noise` is σ∥, σ⊥ and the two flip probabilities. New shapes would have to be compiled, for
    seconds, each time that a slider moves. So sequences are lengthened to a multiple of ten
    tokens, by tokens that no head looks at, and ξ to one dimension for all T.

    >>> usual = (1.0, 1.0, 0.3, 0.7)
    >>> some = draw(0, 7, 10, "random", usual), draw(0, 30, 10, "random", usual)
    >>> some[0].xi.shape == some[1].xi.shape
    True
    """
    parallel, perp, *p_flip = noise
    if seed == "paper":
        task = paper_task(perp, denoising=denoising)
    else:
        task = make_task(
            int(seed),
            tokens=tokens,
            examples=examples,
            denoising=denoising,
            sigma_parallel=parallel,
            sigma_perp=perp,
            p_flip=(p_flip[0], p_flip[1]),
        )
    x = np.concatenate([task.train.x, task.test.x])
    network, x = lengthen(task.network, x, -tokens % 10)
    xi = network.features(x)
    dim, whole = task.network.dim, task.network.dim - tokens + RANGES["tokens"][1]
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


def kept(off: list[str]) -> tuple[tuple[int, int], list[int]]:
    """The numbers of heads that stay when some are `off`, and the paths that these make.

    >>> kept(["1.2"])
    ((1, 2), [0, 1])
    """
    one, two = ([h for h in (1, 2) if f"{layer}.{h}" not in off] for layer in (1, 2))
    return (len(one), len(two)), [2 * (g - 1) + h - 1 for g in one for h in two]


@jax.jit
def observe(drawn: Draw, U, temperature):
    """Predictions and alignment of order parameters `U [n, Π, Π]` at one temperature."""
    one = jnp.ones(())
    setting = {"temperature": jnp.full(len(U), temperature), "prior_variance": one}
    predicted = kernels.regress(U, drawn.xi, drawn.y, drawn.test, **setting)

    def align(U):
        kernel = kernels.mixed_kernel(U, drawn.xi, drawn.xi, one)
        return kernels.alignment(kernel, drawn.y).overlaps[:COMPONENTS]

    return predicted, jax.lax.map(align, U)


def at_widths(seed: int | str, setting: dict, widths: tuple) -> dict:
    """What one drawn task gives at each width, and what its good path alone gives."""
    names = ("sigma_parallel", "sigma_perp", "flip_plus", "flip_minus")
    noise = tuple(setting[name] for name in names)
    place = setting["tokens"], setting["examples"], setting["denoising"]
    whole = draw(seed, *place, noise)
    heads, paths = kept(setting["off"])
    drawn = whole._replace(xi=whole.xi[:, paths], test=whole.test[:, paths])
    temperature = setting["temperature"]
    solved = theory.sweep(
        drawn.xi,
        drawn.y,
        heads=heads,
        widths=widths,
        temperatures=[temperature],
        progress=False,
    )
    U = solved.U[:, 0]
    predicted, alignment = observe(drawn, U, temperature)
    alone = whole._replace(xi=whole.xi[:, :1], test=whole.test[:, :1])
    good, _ = observe(alone, np.ones((1, 1, 1)), temperature)

    def right(outputs):
        # compiled, a division by 1000 is a product, and its last digit another one than the page's
        return np.mean(np.sign(np.asarray(outputs.mean)) == np.asarray(whole.test_y), axis=-1)

    found = {"U": np.asarray(U), "alignment": np.asarray(alignment)}
    found["rough"] = ~np.asarray(solved.converged[:, 0])
    return found | {"accuracy": right(predicted), "good": right(good)}


def average(parts: list[dict]) -> dict:
    """Means over tasks, and standard errors of the accuracies.

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
    """Check a setting, fill it up from `START`, and give it in plain numbers, as JSON has them.

    >>> check({"width": math.inf, "seed": 3})["width"]
    'inf'
    """
    if not isinstance(setting, Mapping):
        raise ValueError(f"a setting must be a dict of {', '.join(START)}; got {setting!r}")
    if unknown := set(map(str, setting)) - set(START):
        raise ValueError(f"a setting may have {', '.join(START)}; got {', '.join(unknown)}")
    full, checked = START | dict(setting), {}
    for name, (least, most) in RANGES.items():
        value = full[name]
        if isinstance(value, str | float) and (name, value) in _WORDS:
            checked[name] = _WORDS[name, value]
            continue
        number = (
            _checks.whole(name, value, least=int(least))
            if name in _WHOLE
            else float(_checks.number(name, value, least=least))
        )
        if number > most:
            raise ValueError(f"{name} must be at most {most}; got {value}")
        # JSON of the page has 1 where Python has 1.0
        checked[name] = int(number) if number == int(number) else number
    off = full["off"]
    known = isinstance(off, list | tuple) and all(isinstance(head, str) for head in off)
    known = known and set(off) <= set(_HEADS)
    if not known or {"1.1", "1.2"} <= set(off) or {"2.1", "2.2"} <= set(off):
        wanted = f"a list of some of {', '.join(_HEADS)}, that leaves one in each layer"
        raise ValueError(f"off must be {wanted}; got {off!r}")
    checked["off"] = sorted(set(off))
    _checks.choice("denoising", full["denoising"], ("random", "uniform"))
    checked["denoising"] = full["denoising"]
    wrong = [name for name in _PAPER if checked[name] != START[name]]
    if checked["seed"] == "paper" and wrong:
        raise ValueError(f"the authors' data have one {wrong[0]}, {START[wrong[0]]}; give a seed")
    return {name: checked[name] for name in START}


def answers(setting: Mapping) -> Iterator[dict]:
    """Answer a setting, at once from one drawn task and then better and better from all.

    What is not set is as in `START`; `tasks` are drawn from seeds `seed`, `seed + 1`, …. Means
    over them, as lists: `U [Π, Π]`; at the given width and in the GP limit `accuracy [2]`, its
    `error [2]` = (standard deviation)/√tasks, 0 for one task, and `alignment [2, 10]`; `good [2]`,
    the accuracy of the good path alone and its error; `rough`, whether rounding hides where the
    action is least, in one task at least. The last answer brings the `curve` of
    accuracy and error against 14 widths, `[14]` each; the ones before lack it.

    >>> first = next(answers({"tokens": 5, "examples": 10}))
    >>> first["seeds"], len(first["U"]), first["curve"]
    (1, 4, None)
    """
    setting = check(setting)
    first = setting["seed"]
    seeds = ["paper"] if first == "paper" else range(first, first + setting["tasks"])
    own: list[dict] = []
    answer = {"curve": None}
    for seed in seeds:
        own.append(at_widths(seed, setting, (float(setting["width"]), math.inf)))
        answer = answer | _written(setting, average(own), len(own))
        yield answer
    curve = average([at_widths(seed, setting, WIDTHS) for seed in seeds])
    yield answer | {"curve": {key: curve[key].tolist() for key in ("accuracy", "error")}}


def _written(setting: dict, mean: dict, seeds: int) -> dict:
    """An answer in the words of the front end: the given width first, then the GP."""
    return {
        "setting": setting,
        "seeds": seeds,
        "U": mean["U"][0].tolist(),
        "accuracy": mean["accuracy"].tolist(),
        "error": mean["error"].tolist(),
        "good": mean["good"].tolist() + mean["good_error"].tolist(),
        "alignment": mean["alignment"].tolist(),
        "rough": bool(mean["rough"][0]),
    }


def store() -> None:
    """Write what pages show before they have computed anything, front/stored.js."""
    found = [list(answers(setting))[-1] for setting in (START, START | {"seed": "paper"})]
    head = "// Made by attnpaths.explorer.answers.store: shown before anything is computed.\n"
    path = Path(__file__).parent / "front" / "stored.js"
    text = json.dumps(found, separators=(",", ":"))
    path.write_text(f"{head}export const STORED = {text};\n", "utf-8")
