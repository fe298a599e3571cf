"""All subsets of heads at once: what the best choice would be, and what each head is worth.

A network of n heads has 2ⁿ pruned networks. Since its output is a sum over paths, each of them is
a sum over stored numbers, and no rule has to be compared with a guess of the best.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float

from attnpaths import _checks
from attnpaths.pruning.heads import Head, all_heads, check_data

_MOST = 20


def subset_accuracies(
    outputs: ArrayLike, y: ArrayLike, *, heads: Sequence[int], ablation: str = "zero"
) -> Float[np.ndarray, "..."]:
    """Accuracy with every subset of heads, `[2, …, 2]`, one axis for each of `all_heads(heads)`.

    Index 1 keeps a head and 0 takes it out: `[1, …, 1]` is the whole network. Takes `path_outputs`
    `[P, Π]` and `y [P]` = ±1; an example is right where sign(Σ f^π) = y, and half right where the
    sum is 0, as it is without any head of a layer. With `ablation` `"mean"`, paths that are gone
    leave their mean over examples behind, a constant.

    >>> subset_accuracies([[1.0, -3.0], [1.0, -3.0]], [1, -1], heads=(2,)).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    counts = _checks.head_counts("heads", heads)
    _checks.choice("ablation", ablation, ("zero", "mean"))
    if sum(counts) > _MOST:
        raise ValueError(
            f"heads must be at most {_MOST} in all, for 2^{_MOST} subsets; got {sum(counts)}: "
            "score single heads with each_head, or orders with curve"
        )
    _, outputs, y = check_data(outputs, y, counts)
    left = outputs.mean(axis=0) if ablation == "mean" else np.zeros(outputs.shape[1])
    # what is kept changes from its stand-in to itself
    cube = ((outputs - left) * y[:, None]).reshape(len(y), *counts)
    constant = (left.sum() * y)[:, None]
    *first, last = [np.array(list(itertools.product((0.0, 1.0), repeat=n))) for n in counts]
    found = []
    for masks in itertools.product(*first):
        rest = cube
        for mask in masks:
            rest = np.einsum("h,ph...->p...", mask, rest)
        signs = np.sign(rest @ last.T + constant)
        found.append((1 + signs.mean(axis=0)) / 2)
    return np.reshape(found, (2,) * sum(counts))


def shapley_values(accuracies: ArrayLike, heads: Sequence[int]) -> dict[Head, float]:
    """What each head adds to the accuracy, averaged over all orders in which heads may come.

    φ_h = Σ_S |S|!(n−|S|−1)!/n! (v(S ∪ h) − v(S)), over the subsets S of the other n − 1 heads and
    with v from `subset_accuracies`, `[2, …, 2]`. They add up to the accuracy of all heads minus
    that of none, and are exact: no order is sampled.

    >>> shapley_values([[0.5, 0.7], [0.6, 1.0]], (2,))
    {(1, 1): 0.2, (1, 2): 0.3}
    """
    values, names = _subsets(accuracies, heads)
    n = len(names)
    sizes = np.indices((2,) * (n - 1)).sum(axis=0)
    weights = [math.factorial(s) * math.factorial(n - s - 1) / math.factorial(n) for s in range(n)]
    weights = np.array(weights)[sizes]
    gains = (weights * (values.take(1, axis) - values.take(0, axis)) for axis in range(n))
    return {head: float(gain.sum().round(12)) for head, gain in zip(names, gains, strict=True)}


def best_subsets(accuracies: ArrayLike, heads: Sequence[int]) -> list[tuple[float, list[Head]]]:
    """The best that pruning 0, 1, 2, … heads can do, and the heads that go; one stays per layer.

    The largest v(S) with |S| = n − k, for every k: no rule can be above these. Takes v, what
    `subset_accuracies` gives, `[2, …, 2]`; of equals, the first.

    >>> best_subsets([[0.5, 0.7], [0.6, 1.0]], (2,))
    [(1.0, []), (0.7, [(1, 1)])]
    """
    values, names = _subsets(accuracies, heads)
    kept = np.indices(values.shape).reshape(len(names), -1).T.astype(bool)
    layers = np.array([layer for layer, _ in names])
    whole = np.all([kept[:, layers == layer].any(axis=1) for layer in set(layers)], axis=0)
    gone = (~kept).sum(axis=1)
    found = []
    for count in range(int(gone[whole].max()) + 1):
        rows = np.flatnonzero(whole & (gone == count))
        best = rows[np.argmax(values.ravel()[rows])]
        pruned = [head for head, k in zip(names, kept[best], strict=True) if not k]
        found.append((float(values.ravel()[best]), pruned))
    return found


def _subsets(accuracies, heads) -> tuple[np.ndarray, list[Head]]:
    names = all_heads(heads)
    axes = _checks.axes_of(accuracies)
    if axes != len(names) or np.shape(accuracies) != (2,) * axes:
        got = np.shape(accuracies) if axes >= 0 else "a ragged list"
        raise ValueError(
            f"accuracies must have one axis of 2 for each of the {len(names)} heads of "
            f"heads={tuple(heads)}, as subset_accuracies gives; got {got}"
        )
    values = np.asarray(_checks.array("accuracies", accuracies, " ".join("2" * axes)))
    return values, names
