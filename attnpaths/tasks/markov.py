"""Hidden Markov chain classification: which of two chains, or more, made this noisy sequence?

A chain of T hidden states ± flips with probability 0.3 (class +1) or 0.7 (class −1). Tokens
are v_± plus noise, after a beginning-of-sequence token of zeros, each with its one-hot
position: T+1 tokens of dimension D = dim + T + 1. The network has a good head in each layer,
which together count the steps without a flip, and random heads.
"""

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from attnpaths import _checks, _html
from attnpaths.network import Network
from attnpaths.paths import labels
from attnpaths.tasks.stream import Stream

# Which heads of each layer a choice of paths keeps: 0 is the good head, 1 the random one.
_KEPT = {"all": ((0, 1), (0, 1)), "good": ((0,), (0,)), "good+denoising": ((0, 1), (0,))}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Split(_html.Sized):
    """Labelled sequences: tokens `x`, labels `y` = ±1, and the hidden `states` ±1.

    With C > 2 classes `y [P, C]` is +1 in the column of its class and −1 elsewhere.
    """

    x: Float[Array, "examples tokens dim"]
    y: Float[Array, "examples *classes"]
    states: Int[Array, "examples chain"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Training and test data, the network that sees them, and a name for each of its paths."""

    train: Split
    test: Split
    network: Network
    path_names: tuple[str, ...]

    def __repr__(self):
        """Sizes and the names of the paths."""
        return f"Task(train={self.train}, test={self.test}, paths={', '.join(self.path_names)})"

    def _repr_html_(self) -> str:
        """The same, as a table."""
        facts = {"training": self.train, "test": self.test, "network": self.network}
        return _html.card("Task", facts | {"paths": ", ".join(self.path_names)})


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
    sizes = {"tokens": 30, "dim": 200, "examples": 100, "test_examples": 1000}
    noise = {"sigma_parallel": 1.0, "sigma_perp": sigma_perp}
    return _build((27, 59, 147, 247), sizes, noise, 10.0, (0.3, 0.7), paths, denoising)


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
    p_flip: Sequence[float | tuple[float, float]] = (0.3, 0.7),
) -> Task:
    """The task in any setting: chains of T = `tokens` states in `dim` dimensions, fresh heads.

    Token t in state s_t = ± is x_t = (v_{s_t} + σ∥P∥η_t + σ⊥P⊥η_t, e_t), η ~ N(0, 1), after
    x_0 = (0, e_0), where e_t is one-hot: `x [P, T + 1, D]` with D = dim + T + 1, `y [P]`.
    `sigma_parallel` and `sigma_perp` are the noise in the plane of v₊, v₋ and out of it, `beta`
    the hardness of the softmax, `p_flip` the flip probabilities of the classes +1 and −1. Classes
    are balanced, +1 first, with one more if the number is odd. Equal seeds give equal tasks, and
    equal noise η at every σ; others are independent. See `paper_task` for `paths`, `denoising`.

    A flip probability may be a pair, out of + and out of −. Three or more of them make so many
    classes, in their order, and labels `y [P, C]`: +1 in the column of the class, else −1.

    >>> task = make_task(0, tokens=5, dim=10, examples=4, test_examples=6)
    >>> task.train.x.shape, task.test.y.shape, task.network
    ((4, 6, 16), (6,), Network(head_counts=(2, 2), dim=16, readout=-1))
    >>> make_task(0, tokens=5, dim=10, examples=4, p_flip=(0.2, 0.8, (0.2, 0.8))).train.y[0]
    Array([ 1., -1., -1.], dtype=float64)
    """
    seed = _checks.whole("seed", seed, least=0)
    seeds = map(int, np.random.SeedSequence(seed).generate_state(4))
    sizes = {"tokens": tokens, "dim": dim, "examples": examples, "test_examples": test_examples}
    noise = {"sigma_parallel": sigma_parallel, "sigma_perp": sigma_perp}
    return _build(seeds, sizes, noise, beta, p_flip, paths, denoising)


def _build(seeds, sizes, noise, beta, p_flip, paths, denoising) -> Task:
    """The task of four seeds: of training data, test data and the random head of each layer."""
    seed_train, seed_test, seed1, seed2 = seeds
    tokens, dim, train, test = (_checks.whole(name, n, least=2) for name, n in sizes.items())
    if dim % 2:
        raise ValueError(f"dim must be even, half for each of v₊ and v₋; got {dim}")
    noise = [float(_checks.number(name, sigma, least=0.0)) for name, sigma in noise.items()]
    hardness = float(_checks.number("beta", beta, above=0.0))
    p_flip = _probabilities(p_flip)
    _checks.choice("paths", paths, _KEPT)
    _checks.choice("denoising", denoising, ("random", "uniform"))
    size = dim + tokens + 1
    # drawing takes four times what is kept: PyTorch's numbers come from two words each
    needed = 8 * (4 * (train + test) * (tokens + 1) * size + 8 * size**2)
    what = f"{train:,} + {test:,} sequences of {tokens + 1} tokens of dimension {size}"
    _checks.memory(needed, what, "take fewer examples, tokens or dimensions")
    random1, random2 = (_random_head(seed, tokens, dim) for seed in (seed1, seed2))
    denoiser = random1 if denoising == "random" else np.zeros_like(random1)
    # attends to all positions alike, in the authors' form
    counting = np.pad(np.ones((tokens + 1,) * 2), (dim, 0))
    layers = (_good_head(tokens, dim), denoiser), (counting, random2)
    kept = [[heads[i] for i in of] for heads, of in zip(layers, _KEPT[paths], strict=True)]
    names = {"(1,1)": "good", "(2,1)": "denoising"}
    return Task(
        train=_split(seed_train, train, tokens, dim, noise, p_flip),
        test=_split(seed_test, test, tokens, dim, noise, p_flip),
        network=Network([hardness * np.stack(heads) for heads in kept], readout=-1),
        path_names=tuple(names.get(p, f"adversarial {p}") for p in labels([len(k) for k in kept])),
    )


def _probabilities(p_flip) -> Float[np.ndarray, "classes states"]:
    """The flip probabilities of every class, out of + and out of −."""
    try:
        found = np.stack([np.broadcast_to(np.asarray(each, float), 2) for each in p_flip])
        if _checks.masked(p_flip) or len(found) < 2 or not np.all((found >= 0) & (found <= 1)):
            raise ValueError
    except (TypeError, ValueError):
        wanted = "p_flip must be two probabilities, for the classes +1 and −1"
        more = "or more, for so many classes; each may be a pair, out of + and out of −"
        raise ValueError(f"{wanted}, {more}; got {p_flip!r}") from None
    return found


def _split(seed, examples, tokens, dim, noise, p_flip) -> Split:
    """Chains and noise, drawn in the order in which the authors' code draws them."""
    stream, classes = Stream(seed), len(p_flip)
    # balanced, the first classes with one more where the number does not divide
    kind = np.sort(np.arange(examples) % classes)
    y = 2.0 * np.eye(classes)[kind] - 1
    draws = stream.rand(examples, tokens)
    p_stay = 1 - p_flip[kind]
    states = np.where(draws >= 0.5, 1, -1)
    for t in range(1, tokens):
        before = states[:, t - 1]
        stays = draws[:, t] < np.where(before == 1, *p_stay.T)
        states[:, t] = np.where(stays, before, -before)
    # v₊ and v₋ are constant, one on each half of the features, and zero on the other: the part
    # P∥η of the noise in their plane is its mean over each half, and σ∥P∥η + σ⊥P⊥η is
    (sigma_parallel, sigma_perp), halves = noise, stream.randn(examples, 2, dim // 2, tokens)
    in_plane = halves.mean(axis=2, keepdims=True)
    halves *= sigma_perp
    halves += (sigma_parallel - sigma_perp) * in_plane
    halves += np.sqrt(2) * np.stack([states == 1, states == -1], axis=1)[:, :, None]
    x = np.zeros((examples, tokens + 1, dim + tokens + 1))
    x[:, 1:, :dim] = halves.reshape(examples, dim, tokens).transpose(0, 2, 1)
    x[:, :, dim:] = np.eye(tokens + 1)
    return Split(jnp.asarray(x), jnp.asarray(y if classes > 2 else y[:, 0]), jnp.asarray(states))


def _good_head(tokens, dim):
    """Attend to the token before if it is in the same state, else to the empty first token."""
    head = np.zeros((dim + tokens + 1,) * 2)
    difference = np.sqrt(2) * np.repeat([1.0, -1.0], dim // 2)
    head[:dim, :dim] = np.outer(difference, difference) / dim**2
    head[dim:, dim:] = np.eye(tokens + 1, k=1)
    head[dim, dim + 1 :] = 1.5
    return head


def _random_head(seed, tokens, dim):
    """Gaussian blocks, each scaled by what it acts upon: features or one-hot positions."""
    stream, positions = Stream(seed), tokens + 1
    features = stream.randn(dim, dim) / dim
    positional = stream.randn(positions, positions)
    head = stream.randn(dim + positions, dim + positions) / np.sqrt(dim)
    head[:dim, :dim], head[dim:, dim:] = features, positional
    return head
