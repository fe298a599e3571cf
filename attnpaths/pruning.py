"""Pruning: which attention heads matter, and what is left of a network without the others.

A head is named (layer, head), both counted from 1 as in the paper. Removing a head removes all
paths through it, and nothing is trained again. Every surviving path goes through every layer
once: the rescaling of a layer that has lost heads therefore multiplies the whole output, and one
pass over the data gives the outputs of all pruned networks (`path_outputs`, `curve`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import jax
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from attnpaths import _checks, paths
from attnpaths.network import Network, Weights
from attnpaths.network import path_outputs as path_outputs  # pruning starts from these
from attnpaths.network.weights import check

Head = tuple[int, int]


def all_heads(heads: Sequence[int]) -> list[Head]:
    """The names of all heads of a network with `heads` = (H₁, …, H_L), layer by layer.

    Gives Σ_ℓ H_ℓ pairs (layer, head): `[n, 2]` as an array.

    >>> all_heads((2, 1))
    [(1, 1), (1, 2), (2, 1)]
    """
    counts = _checks.head_counts("heads", heads)
    return [(layer, h) for layer, n in enumerate(counts, start=1) for h in range(1, n + 1)]


def check_heads(named: Iterable[Head], heads: Sequence[int]) -> list[Head]:
    """Names as pairs of integers, or a ValueError if a network with `heads` has no such head.

    Takes and gives pairs (ℓ, h) `[n, 2]`, where 1 ≤ ℓ ≤ L and 1 ≤ h ≤ H_ℓ.

    >>> check_heads([(1.0, 2.0)], (2, 1))
    [(1, 2)]
    """
    counts, named = _checks.head_counts("heads", heads), list(named)
    known = all_heads(counts)
    for head in named:
        if np.shape(head) != (2,) or tuple(head) not in known:
            raise ValueError(
                f"there is no head {head!r} in a network with heads={counts}; a head is "
                "(layer, head), both counted from 1"
            )
    return [(int(layer), int(h)) for layer, h in named]


def head_scores(U: ArrayLike, heads: Sequence[int]) -> dict[Head, float]:
    """The paper's score of every head: how much of the order parameter goes through it.

    s⁽ℓ⁾ʰ = Σ_{π,π' ∈ Π⁽ℓ⁾ʰ} |U_{ππ'}|, over the paths through that head. `U [Π, Π]` may be that
    of `theory.solve`, of `sample_order_parameter`, or a network's own, from
    `empirical_order_parameter(weights)`. The paper shows scores divided by the largest.

    >>> head_scores([[1.0, -0.5], [-0.5, 2.0]], (2, 1))
    {(1, 1): 1.0, (1, 2): 2.0, (2, 1): 4.0}
    """
    counts, U = _checks.head_counts("heads", heads), _checks.array("U", U, "paths paths")
    count = math.prod(counts)
    if U.shape != (count, count):
        raise ValueError(
            f"U must be [{count}, {count}] for the {count} paths of heads={counts}; got {U.shape}"
        )
    size, names = np.abs(np.asarray(U)), np.array(paths.paths(counts))
    through = {(layer, h): names[:, layer - 1] == h for layer, h in all_heads(counts)}
    return {head: float(size[on][:, on].sum()) for head, on in through.items()}


def order_by_score(scores: Mapping[Head, int | float]) -> list[Head]:
    """All heads that can go, lowest score first; the last head of a layer cannot.

    `scores` has one entry for every head of the network, as `head_scores` gives. Gives
    Σ_ℓ (H_ℓ − 1) pairs (layer, head): `[n, 2]` as an array.

    >>> order_by_score({(1, 1): 3.0, (1, 2): 1.0, (2, 1): 0.5, (2, 2): 2.0})
    [(2, 1), (1, 2)]
    """
    # NaN has no place in an order
    _checks.array("scores", np.array(list(scores.values())), "heads")
    return _one_left(sorted(scores, key=lambda head: (scores[head], head)))


def order_by_norm(weights: Weights) -> list[Head]:
    """A baseline: heads whose value weights are smallest, ‖V⁽ℓ⁾ʰ‖ (Frobenius), go first.

    ‖V‖ = √(Σ_ij V_ij²), of the values `[H, N, N]` of each layer; gives what `order_by_score` does.

    >>> order_by_norm(Weights(np.ones((1, 1)), [np.array([[[2.0]], [[1.0]]])], np.ones(1)))
    [(1, 2)]
    """
    norms = [np.linalg.norm(np.asarray(v), axis=(1, 2)) for v in check(weights).V]
    names = all_heads([len(layer) for layer in norms])
    return order_by_score(dict(zip(names, np.concatenate(norms).tolist(), strict=True)))


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
            f"only a Network has heads that can be taken out; got {type(network).__name__}; for "
            "recorded attention use pruned_outputs, or without_heads on the module itself"
        )
    weights = network.check_weights(weights)
    keep = _kept(network.head_counts, heads)
    left = [jax.tree.map(lambda w, k=k: w[k], h) for h, k in zip(network.heads, keep, strict=True)]
    factors = [1.0 if rescale else math.sqrt(k.sum() / len(k)) for k in keep]
    values = tuple(f * v[k] for f, v, k in zip(factors, weights.V, keep, strict=True))
    return Network(left, network.readout), Weights(weights.V0, values, weights.a)


def pruned_outputs(
    outputs: ArrayLike, heads: Sequence[int], pruned: Iterable[Head]
) -> Float[Array, "examples"]:
    """The output f `[P]` of `prune(network, weights, pruned)`, from `path_outputs`.

    f = ∏_ℓ (H_ℓ/(H_ℓ − p_ℓ))^(1/2) · Σ f^π over the paths that survive.

    >>> pruned_outputs([[1.0, 2.0, 4.0, 8.0]], (4,), [(1, 3), (1, 4), (1, 1)]).tolist()
    [4.0]
    """
    counts = _checks.head_counts("heads", heads)
    outputs, keep = _outputs(outputs, counts), _kept(counts, pruned)
    factor = math.prod(math.sqrt(len(k) / k.sum()) for k in keep)
    return factor * outputs @ _surviving(keep).astype(float)


def curve(
    outputs: ArrayLike, y: ArrayLike, *, heads: Sequence[int], order: Sequence[Head]
) -> Float[np.ndarray, "pruned_heads"]:
    """Accuracy with the first 0, 1, 2, … heads of `order` pruned, `[K + 1]` for K heads.

    Takes `path_outputs` `[P, Π]` and labels `y [P]` = ±1. An example is right where
    sign(Σ f^π) = y, summed over the paths that survive.

    >>> curve([[1.0, -3.0], [1.0, -3.0]], [1, -1], heads=(2,), order=[(1, 1)])
    array([0.5, 0.5])
    """
    return _accuracies(outputs, y, heads, [order[:n] for n in range(len(order) + 1)])


def each_head(outputs: ArrayLike, y: ArrayLike, *, heads: Sequence[int]) -> dict[Head, float]:
    """Accuracy with one head pruned, for every head that is not the only one of its layer.

    Takes `path_outputs` `[P, Π]` and `y [P]`; sign(Σ f^π) = y is right, as in `curve`. If each
    layer has only one head, none can go, and the result is `{}`.

    >>> each_head([[1.0, -3.0], [-1.0, -3.0]], [1, -1], heads=(2,))
    {(1, 1): 0.5, (1, 2): 1.0}
    """
    counts = _checks.head_counts("heads", heads)
    removable = [(layer, h) for layer, h in all_heads(counts) if counts[layer - 1] > 1]
    found = _accuracies(outputs, y, counts, [[head] for head in removable])
    return dict(zip(removable, found.tolist(), strict=True))


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


def _surviving(keep) -> Bool[np.ndarray, "paths"]:
    """Which paths go through none of the pruned heads."""
    chosen = paths.paths([len(k) for k in keep])
    return np.array([all(k[h - 1] for k, h in zip(keep, path, strict=True)) for path in chosen])


def _outputs(outputs, counts) -> Float[Array, "examples paths"]:
    outputs = _checks.array("outputs", outputs, "examples paths")
    if outputs.shape[1] != math.prod(counts):
        raise ValueError(
            f"outputs has {outputs.shape[1]} paths but heads={counts} makes {math.prod(counts)}; "
            "outputs is what path_outputs(weights, xi) gives"
        )
    return outputs


def _accuracies(outputs, y, heads, sets) -> Float[np.ndarray, "sets"]:
    """The accuracy after pruning each set of heads; rescaling changes no sign."""
    counts = _checks.head_counts("heads", heads)
    survive = [_surviving(_kept(counts, pruned)) for pruned in sets]
    # the shape matters where there are no sets
    survive = np.array(survive, float).reshape(len(sets), math.prod(counts))
    outputs = np.asarray(_outputs(outputs, counts))
    y = np.asarray(_checks.array("y", y, "examples"))
    if len(y) != len(outputs):
        raise ValueError(f"y must hold one label per row of outputs, {len(outputs)}; got {len(y)}")
    _checks.signs("y", y)
    return np.mean(np.sign(outputs @ survive.T) == y[:, None], axis=0)
