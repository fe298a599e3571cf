"""Hidden Markov chain classification: which of two chains made this noisy sequence?

A chain of T hidden states ± flips with probability 0.3 (class +1) or 0.7 (class −1). Tokens
are v_± plus noise, after a beginning-of-sequence token of zeros, each with its one-hot
position: T+1 tokens of dimension D = dim + T + 1. The network has a good head in each layer,
which together count the steps without a flip, and random heads.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
import torch
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from attnpaths import _inputs
from attnpaths.network import Network
from attnpaths.paths import labels

# Which heads of each layer a choice of paths keeps: 0 is the good head, 1 the random one.
_KEPT = {
    "all": ((0, 1), (0, 1)),
    "good": ((0,), (0,)),
    "good+denoising": ((0, 1), (0,)),
}
_DENOISING = ("random", "uniform")


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Labelled sequences: tokens `x`, labels `y` = ±1, and the hidden `states` ±1."""

    x: Float[Array, "examples tokens dim"]
    y: Float[Array, "examples"]
    states: Int[Array, "examples chain"]


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """Training and test data, the network that sees them, and a name for each of its paths."""

    train: Split
    test: Split
    network: Network
    path_names: tuple[str, ...]


def paper_task(sigma_perp: ArrayLike = 1.0, paths: str = "all", denoising: str = "random") -> Task:
    """The paper's task: the authors' own data and heads, number for number.

    T = 30, N₀ = 200, σ∥ = 1, β = 10, 100 training and 1000 test examples, read out at the last
    token: `x [P, T + 1, D]` with D = N₀ + T + 1, `y [P]`. `paths` is `"all"` (four paths), `"good"`
    or `"good+denoising"`; `denoising` makes the first layer's second head the `"random"` one of
    the main text or the `"uniform"` one of the appendix. Where the paper's text and the authors'
    code differ, this follows the code.

    >>> task = paper_task(paths="good")
    >>> task.train.x.shape, task.path_names
    ((100, 31, 231), ('good',))
    """
    seeds = {"train": 27, "test": 59, "layer 1": 147, "layer 2": 247}
    return _build(seeds, sigma_perp=sigma_perp, paths=paths, denoising=denoising)


def make_task(
    seed: int,
    *,
    tokens: int = 30,
    sigma_parallel: ArrayLike = 1.0,
    sigma_perp: ArrayLike = 1.0,
    examples: int = 100,
    test_examples: int = 1000,
    beta: ArrayLike = 10.0,
    paths: str = "all",
    denoising: str = "random",
    dim: int = 200,
    p_flip: tuple[float, float] = (0.3, 0.7),
) -> Task:
    """The task in any setting: chains of T = `tokens` states in `dim` dimensions, fresh heads.

    Token t in state s_t = ± is x_t = (v_{s_t} + σ∥P∥η_t + σ⊥P⊥η_t, e_t), η ~ N(0, 1), after
    x_0 = (0, e_0), where e_t is one-hot: `x [P, T + 1, D]` with D = dim + T + 1, `y [P]`.
    `sigma_parallel` and `sigma_perp` are the noise in the plane of v₊, v₋ and out of it, `beta`
    the hardness of the softmax, `p_flip` the flip probabilities of the classes +1 and −1.
    Classes are balanced, class +1 first; an odd number of examples gives it one more. Equal
    seeds give equal tasks, and the same underlying noise at every `sigma_parallel` and
    `sigma_perp`; different seeds are independent. See `paper_task` for `paths`, `denoising`.

    >>> task = make_task(0, tokens=5, dim=10, examples=4, test_examples=6)
    >>> task.train.x.shape, task.test.y.shape, task.network
    ((4, 6, 16), (6,), Network(head_counts=(2, 2), dim=16, readout=-1))
    """
    seed = _inputs.whole("seed", seed, least=0)
    names = ("train", "test", "layer 1", "layer 2")
    words = np.random.SeedSequence(seed).generate_state(len(names))
    return _build(
        dict(zip(names, map(int, words), strict=True)),
        tokens=tokens,
        sigma_parallel=sigma_parallel,
        sigma_perp=sigma_perp,
        examples=examples,
        test_examples=test_examples,
        beta=beta,
        paths=paths,
        denoising=denoising,
        dim=dim,
        p_flip=p_flip,
    )


def _build(
    seeds: dict[str, int],
    *,
    tokens=30,
    sigma_parallel=1.0,
    sigma_perp=1.0,
    examples=100,
    test_examples=1000,
    beta=10.0,
    paths="all",
    denoising="random",
    dim=200,
    p_flip=(0.3, 0.7),
) -> Task:
    tokens = _inputs.whole("tokens", tokens, least=2)
    examples = _inputs.whole("examples", examples, least=2)
    test_examples = _inputs.whole("test_examples", test_examples, least=2)
    dim = _inputs.whole("dim", dim, least=2)
    if dim % 2:
        raise ValueError(f"dim must be even, half for each of v₊ and v₋; got {dim}")
    noise = (
        float(_inputs.number("sigma_parallel", sigma_parallel, least=0.0)),
        float(_inputs.number("sigma_perp", sigma_perp, least=0.0)),
    )
    beta = float(_inputs.number("beta", beta, above=0.0))
    p_flip = _probabilities(p_flip)
    _known("paths", paths, _KEPT)
    _known("denoising", denoising, _DENOISING)

    layer1, layer2 = _KEPT[paths]
    heads = (
        _layer(layer1, _good_head(tokens, dim), seeds["layer 1"], tokens, dim, denoising),
        _layer(layer2, _uniform_head(tokens, dim), seeds["layer 2"], tokens, dim, "random"),
    )
    network = Network([beta * layer for layer in heads], readout=-1)
    return Task(
        train=_split(seeds["train"], examples, tokens, dim, noise, p_flip),
        test=_split(seeds["test"], test_examples, tokens, dim, noise, p_flip),
        network=network,
        path_names=_path_names(layer1, layer2),
    )


def _known(name: str, value, choices) -> None:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def _probabilities(p_flip) -> tuple[float, float]:
    try:
        plus, minus = map(float, p_flip)
        if not (0 <= plus <= 1 and 0 <= minus <= 1):
            raise ValueError
    except (TypeError, ValueError):
        raise ValueError(
            f"p_flip must be two probabilities, for the classes +1 and −1; got {p_flip!r}"
        ) from None
    return plus, minus


def _path_names(layer1, layer2) -> tuple[str, ...]:
    named = {"(1,1)": "good", "(2,1)": "denoising"}
    return tuple(
        named.get(label, f"adversarial {label}") for label in labels((len(layer1), len(layer2)))
    )


def _generator(seed: int) -> torch.Generator:
    # the same stream as torch.manual_seed(seed), without touching the caller's
    return torch.Generator().manual_seed(seed)


def _split(seed, examples, tokens, dim, noise, p_flip) -> Split:
    """Chains and noise, drawn in the order in which the authors' code draws them."""
    generator = _generator(seed)
    plus = (examples + 1) // 2
    y = np.repeat([1, -1], [plus, examples - plus])
    draws = torch.rand(examples, tokens, generator=generator, dtype=torch.float64).numpy()
    p_stay = 1 - np.where(y == 1, *p_flip)
    steps = np.where(draws < p_stay[:, None], 1, -1)
    steps[:, 0] = np.where(draws[:, 0] >= 0.5, 1, -1)
    states = np.cumprod(steps, axis=1)

    # v₊ and v₋ are constant, one on each half of the features, and zero on the other
    halves = torch.randn(examples, 2, dim // 2, tokens, generator=generator, dtype=torch.float64)
    halves = _scale_noise(halves.numpy(), *noise)
    halves += np.sqrt(2) * np.stack([states == 1, states == -1], axis=1)[:, :, None]
    x = np.zeros((examples, tokens + 1, dim + tokens + 1))
    x[:, 1:, :dim] = halves.reshape(examples, dim, tokens).transpose(0, 2, 1)
    x[:, :, dim:] = np.eye(tokens + 1)
    return Split(jnp.asarray(x), jnp.asarray(y, dtype=float), jnp.asarray(states))


def _scale_noise(halves, sigma_parallel, sigma_perp):
    """σ∥ P∥η + σ⊥ P⊥η, in place; the in-plane part P∥η is the mean over each half."""
    if sigma_parallel != sigma_perp:
        in_plane = halves.mean(axis=2, keepdims=True)
        halves *= sigma_perp
        halves += (sigma_parallel - sigma_perp) * in_plane
    elif sigma_perp != 1:
        halves *= sigma_perp
    return halves


def _layer(kept, good, seed, tokens, dim, kind):
    """The kept heads of one layer, `[H, D, D]`."""
    second = _random_head(seed, tokens, dim) if kind == "random" else np.zeros_like(good)
    return np.stack([(good, second)[i] for i in kept])


def _good_head(tokens, dim):
    """Attend to the token before if it is in the same state, else to the empty first token."""
    head = np.zeros((dim + tokens + 1,) * 2)
    difference = np.sqrt(2) * np.repeat([1.0, -1.0], dim // 2)
    head[:dim, :dim] = np.outer(difference, difference) / dim**2
    head[dim:, dim:] = np.eye(tokens + 1, k=1)
    head[dim, dim + 1 :] = 1.5
    return head


def _uniform_head(tokens, dim):
    """Attend to all positions alike, in the authors' form."""
    head = np.zeros((dim + tokens + 1,) * 2)
    head[dim:, dim:] = 1
    return head


def _random_head(seed, tokens, dim):
    """Gaussian blocks, each scaled by what it acts upon: features or one-hot positions."""
    generator = _generator(seed)
    positions = tokens + 1

    def randn(n):
        return torch.randn(n, n, generator=generator, dtype=torch.float64).numpy()

    features, positional = randn(dim) / dim, randn(positions)
    head = randn(dim + positions) / np.sqrt(dim)
    head[:dim, :dim], head[dim:, dim:] = features, positional
    return head
