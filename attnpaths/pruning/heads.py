"""Heads by name, the order in which they go, and what is left of a network without them.

A head is named (layer, head), both counted from 1 as in the paper. Removing a head removes all
paths through it, and nothing is trained again. Every surviving path goes through every layer
once: the rescaling of a layer that has lost heads therefore multiplies the whole output, and one
pass over the data gives the outputs of all pruned networks (`path_outputs`, `curve`).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import jax
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from attnpaths import _checks, paths
from attnpaths.network import Network, Weights

Head = tuple[int, int]


def all_heads(heads: Sequence[int]) -> list[Head]:
    """The names of all heads of a network with `heads` = (H₁, …, H_L), layer by layer.

    Gives Σ_ℓ H_ℓ pairs (layer, head): `[n, 2]` as an array.

    >>> all_heads((2, 1))
    [(1, 1), (1, 2), (2, 1)]
    """
    counts = _checks.head_counts("heads", heads)
    what = f"a list of the {sum(counts):,} heads of heads={counts}"
    _checks.memory(96 * sum(counts), what, "take fewer heads")
    return [(layer, h) for layer, n in enumerate(counts, start=1) for h in range(1, n + 1)]


def check_heads(named: Iterable[Head], heads: Sequence[int]) -> list[Head]:
    """Names as pairs of integers, or a ValueError if a network with `heads` has no such head.

    Takes and gives pairs (ℓ, h) `[n, 2]`, where 1 ≤ ℓ ≤ L and 1 ≤ h ≤ H_ℓ.

    >>> check_heads([(1.0, 2.0)], (2, 1))
    [(1, 2)]
    """
    counts = _checks.head_counts("heads", heads)
    try:
        named = list(named)
    except TypeError:
        raise ValueError(f"heads to name must be pairs (layer, head); got {named!r}") from None
    known = all_heads(counts)
    for head in named:
        if np.shape(head) != (2,) or tuple(head) not in known:
            raise ValueError(
                f"there is no head {head!r} in a network with heads={counts}; a head is "
                "(layer, head), both counted from 1"
            )
    return [(int(layer), int(h)) for layer, h in named]


def order_by_score(scores: Mapping[Head, int | float]) -> list[Head]:
    """All heads that can go, lowest score first; the last head of a layer cannot.

    `scores` has one entry for every head of the network, as `head_scores` gives. Gives
    Σ_ℓ (H_ℓ − 1) pairs (layer, head): `[n, 2]` as an array.

    >>> order_by_score({(1, 1): 3.0, (1, 2): 1.0, (2, 1): 0.5, (2, 2): 2.0})
    [(2, 1), (1, 2)]
    """
    scores = _checked(scores)
    return _one_left(sorted(scores, key=lambda head: (scores[head], head)))


def one_by_one(
    score: Callable[[list[Head]], Mapping[Head, float]], heads: Sequence[int]
) -> list[Head]:
    """Heads in the order in which they go if the others are scored again after each.

    `score(gone)` gives the scores s_h of all heads where those of `gone` are out already. The
    lowest of the heads that can go goes next: Σ_ℓ (H_ℓ − 1) pairs, `[n, 2]` as an array.

    >>> one_by_one(lambda gone: {(1, 1): 1.0, (1, 2): 3.0 - 3 * len(gone), (1, 3): 2.0}, (3,))
    [(1, 1), (1, 2)]
    """
    left, gone = all_heads(heads), []
    if not callable(score):
        raise ValueError(f"score must be a function of the heads that are gone; got {score!r}")
    while free := [h for h in left if sum(h[0] == other[0] for other in left) > 1]:
        scores = _checked(score(list(gone)))
        if missing := set(free) - set(scores):
            raise ValueError(f"scores must be of all heads; score({gone}) has none of {missing}")
        gone.append(min(free, key=lambda head: (scores[head], head)))
        left.remove(gone[-1])
    return gone


def random_order(heads: Sequence[int], *, seed: int) -> list[Head]:
    """A baseline: heads go in random order, the same for equal seeds.

    Gives Σ_ℓ (H_ℓ − 1) pairs (layer, head), `[n, 2]` as an array: one head of each layer stays.

    >>> len(random_order((4, 4), seed=0))
    6
    """
    names = all_heads(heads)
    rng = np.random.default_rng(_checks.whole("seed", seed, least=0))
    return _one_left([names[i] for i in rng.permutation(len(names))])


def prune(
    network: Network, weights: Weights, heads: Iterable[Head], *, rescale: bool = True
) -> tuple[Network, Weights]:
    """The network and weights without these heads, otherwise as they were.

    A layer that loses p of its H heads sums the others, values `[H − p, N, N]`, with (H − p)^(−1/2)
    in place of H^(−1/2), as the authors' code does. Without `rescale` the others count as before:
    one positive factor for the whole output, which changes no sign and no accuracy.

    >>> network = Network([np.ones((2, 3, 3)), np.ones((2, 3, 3))], readout=0)
    >>> weights = Weights.prior(0, width=5, dim=3, heads=(2, 2))
    >>> smaller, fewer = prune(network, weights, [(1, 2)])
    >>> smaller.head_counts, fewer.V[0].shape
    ((1, 2), (1, 5, 5))
    """
    if not isinstance(network, Network):
        raise ValueError(
            "network must be an attnpaths.Network, which alone has heads that can be taken out; "
            f"got {type(network).__name__}; for recorded attention use pruned_outputs, or "
            "without_heads on the module itself"
        )
    rescale = _checks.flag("rescale", rescale)
    weights = network.check_weights(weights)
    keep = _kept(network.head_counts, heads)
    left = [jax.tree.map(lambda w, k=k: w[k], h) for h, k in zip(network.heads, keep, strict=True)]
    factors = [1.0 if rescale else math.sqrt(k.sum() / len(k)) for k in keep]
    values = tuple(f * v[k] for f, v, k in zip(factors, weights.V, keep, strict=True))
    smaller = Network(left, network.readout, network.residual)
    return smaller, Weights(weights.V0, values, weights.a)


def pruned_outputs(
    outputs: ArrayLike, heads: Sequence[int], pruned: Iterable[Head]
) -> Float[Array, "examples"]:
    """The output f `[P]` of `prune(network, weights, pruned)`, from `path_outputs`.

    f = ∏_ℓ (H_ℓ/(H_ℓ − p_ℓ))^(1/2) · Σ f^π over the paths that survive.

    >>> pruned_outputs([[1.0, 2.0, 4.0, 8.0]], (4,), [(1, 3), (1, 4), (1, 1)]).tolist()
    [4.0]
    """
    counts = _checks.head_counts("heads", heads)
    outputs, keep = check_outputs(outputs, counts), _kept(counts, pruned)
    factor = math.prod(math.sqrt(len(k) / k.sum()) for k in keep)
    return factor * outputs @ surviving(counts, pruned).astype(float)


def curve(
    outputs: ArrayLike,
    y: ArrayLike,
    *,
    heads: Sequence[int],
    order: Sequence[Head],
    ablation: str = "zero",
) -> Float[np.ndarray, "pruned_heads"]:
    """Accuracy with the first 0, 1, 2, … heads of `order` pruned, `[K + 1]` for K heads.

    Takes `path_outputs` `[P, Π]` and labels `y [P]` = ±1. An example is right where
    sign(Σ f^π) = y, summed over the paths that survive. With `ablation` `"mean"`, the others leave
    their mean over examples behind, a constant.

    >>> curve([[1.0, -3.0], [1.0, -3.0]], [1, -1], heads=(2,), order=[(1, 1)])
    array([0.5, 0.5])
    """
    order = check_heads(order, heads)
    return _accuracies(outputs, y, heads, [order[:n] for n in range(len(order) + 1)], ablation)


def each_head(
    outputs: ArrayLike, y: ArrayLike, *, heads: Sequence[int], ablation: str = "zero"
) -> dict[Head, float]:
    """Accuracy with one head pruned, for every head that is not the only one of its layer.

    Takes `path_outputs` `[P, Π]` and `y [P]`; sign(Σ f^π) = y is right, as in `curve`. If each
    layer has only one head, none can go, and the result is `{}`.

    >>> each_head([[1.0, -3.0], [-1.0, -3.0]], [1, -1], heads=(2,))
    {(1, 1): 0.5, (1, 2): 1.0}
    """
    counts = _checks.head_counts("heads", heads)
    removable = [(layer, h) for layer, h in all_heads(counts) if counts[layer - 1] > 1]
    found = _accuracies(outputs, y, counts, [[head] for head in removable], ablation)
    return dict(zip(removable, found.tolist(), strict=True))


def _checked(scores: Mapping[Head, int | float]) -> Mapping[Head, int | float]:
    """Scores by the names of heads; NaN has no place in an order."""
    if not isinstance(scores, Mapping) or not all(np.shape(head) == (2,) for head in scores):
        raise ValueError(f"scores must be a dict {{(layer, head): score}}; got {scores!r}")
    _checks.array("scores", list(scores.values()), "heads")
    return scores


def _one_left(order: list[Head]) -> list[Head]:
    """`order` without the last head of every layer, so that no layer is left empty."""
    last = {layer: (layer, h) for layer, h in order}
    return [head for head in order if head not in last.values()]


def _kept(counts, pruned) -> list[Bool[np.ndarray, "heads"]]:
    """Which heads of each layer stay, or a ValueError that says why these cannot go."""
    keep = [np.ones(n, bool) for n in counts]
    for layer, h in check_heads(pruned, counts):
        if not keep[layer - 1][h - 1]:
            raise ValueError(f"head {(layer, h)} is pruned twice; name each head once")
        keep[layer - 1][h - 1] = False
    for layer, k in enumerate(keep, start=1):
        if not k.any():
            raise ValueError(
                f"pruning would leave no head in layer {layer}, and no path through the network; "
                "keep at least one head in every layer"
            )
    return keep


def surviving(counts, gone) -> Bool[np.ndarray, "paths"]:
    """Which paths go through none of the heads that are gone."""
    keep, chosen = _kept(counts, gone), paths.paths(counts)
    return np.array([all(k[h - 1] for k, h in zip(keep, path, strict=True)) for path in chosen])


def check_outputs(outputs, counts) -> Float[Array, "examples paths"]:
    """What `path_outputs` gives for a network with so many heads, or a ValueError."""
    outputs = _checks.array("outputs", outputs, "examples paths")
    if outputs.shape[1] != math.prod(counts):
        raise ValueError(
            f"outputs has {outputs.shape[1]} paths but heads={counts} makes {math.prod(counts)}; "
            "outputs is what path_outputs(weights, xi) gives"
        )
    return outputs


def check_data(outputs, y, heads) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
    """(H₁, …, H_L), the outputs `[P, Π]`, and labels ±1, `[P]`, or a ValueError."""
    counts = _checks.head_counts("heads", heads)
    outputs = np.asarray(check_outputs(outputs, counts))
    y = np.asarray(_checks.array("y", y, "examples"))
    if len(y) != len(outputs):
        raise ValueError(f"y must hold one label per row of outputs, {len(outputs)}; got {len(y)}")
    _checks.signs("y", y)
    return counts, outputs, y


def _accuracies(outputs, y, heads, sets, ablation) -> Float[np.ndarray, "sets"]:
    """The accuracy after pruning each set of heads; rescaling changes no sign."""
    counts, outputs, y = check_data(outputs, y, heads)
    _checks.choice("ablation", ablation, ("zero", "mean"))
    survive = [surviving(counts, pruned) for pruned in sets]
    # the shape matters where there are no sets
    survive = np.array(survive, float).reshape(len(sets), outputs.shape[1])
    left = (1 - survive) @ outputs.mean(axis=0) if ablation == "mean" else 0.0
    return np.mean(np.sign(outputs @ survive.T + left) == y[:, None], axis=0)
