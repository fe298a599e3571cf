"""Pruning one trained network by every rule there is, beside the best that any rule could do.

The output is a sum over paths, so that every pruned network is a sum over stored numbers, and the
best subset of every size is found by looking at all of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.stats

from attnpaths import pruning, theory
from attnpaths.tasks import images as image_sources
from attnpaths.tasks import oneshot
from book.studies.oneshot.theory import NARROW, Data
from book.studies.oneshot.trained import Compact, blocks, tests

#: Where the authors take the order parameter for pruning.
TEMPERATURE = 0.5
ABLATIONS = ("zero", "mean")
ORDERS = 200
_CALIBRATION = 106


def outputs(
    network: Compact, images: Mapping[str, image_sources.Images], sequences: Mapping[str, int]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Path outputs `[P, Π]` and labels of every test set."""
    seed = network.record["settings"]["seed"]
    found = {}
    for name, (source, drawn) in tests(images, seed, sequences).items():
        parts = [network.outputs(xi) for xi in blocks(network, images[source], drawn)]
        found[name] = np.concatenate(parts), drawn.y.astype(float)
    return found


def scores(
    network: Compact,
    images: Mapping[str, image_sources.Images],
    data: Data,
    *,
    examples: int = 2000,
    seed: int = 0,
) -> tuple[dict[str, dict], dict[str, list], np.ndarray]:
    """Scores of all heads by rule, orders of rules that score again, and the theory's U.

    Rules that look at data see sequences of the training classes alone.
    """
    heads, own = network.heads, next(iter(images.values()))
    classes = oneshot.split_classes(own)["train"]
    seen = oneshot.draw(own, examples, seed=[seed, _CALIBRATION], classes=classes)
    xi = np.concatenate(list(blocks(network, own, seen)))
    parts, y = network.outputs(xi), seen.y.astype(float)
    shuffled = np.random.default_rng(seed).permutation(np.asarray(data.y))
    setting = {"heads": heads, "width": NARROW, "temperature": TEMPERATURE}
    point = theory.solve(data.xi, data.y, **setting)
    null = theory.solve(data.xi, shuffled, **setting)
    expected = np.asarray(pruning.theory_outputs(point, xi))
    names = pruning.all_heads(heads)
    few = oneshot.Encoder(own, network.labels)(seen[:100])
    by_rule = {
        "score": pruning.head_scores(point.U, heads),
        "score, either": pruning.head_scores(point.U, heads, pairs="either"),
        "score, trained U": pruning.head_scores(network.U, heads),
        "score, shuffled labels": pruning.head_scores(null.U, heads),
        "theory's own pruning": _drops(expected, y, heads),
        "measured drop": _drops(parts, y, heads),
        "value norm": dict(zip(names, network.norms.tolist(), strict=True)),
        "gradient": pruning.gradient_importance(parts, y, heads=heads),
        "gradient by layer": pruning.gradient_importance(parts, y, heads=heads, by_layer=True),
        "attention focus": pruning.attention_focus(network.network.attention(few)),
        "size": pruning.head_sizes(parts, heads),
        "first layer first": {head: float(head[0]) for head in names},
        "last layer first": {head: -float(head[0]) for head in names},
    }
    again = {
        "gradient, step by step": pruning.one_by_one(
            lambda gone: pruning.gradient_importance(parts, y, heads=heads, gone=gone), heads
        ),
        "measured drop, step by step": pruning.one_by_one(
            lambda gone: _further(parts, y, heads, gone), heads
        ),
    }
    return by_rule, again, np.asarray(point.U)


def pruned(
    heads: Sequence[int],
    found: Mapping[str, tuple[np.ndarray, np.ndarray]],
    by_rule: Mapping[str, dict],
    again: Mapping[str, list],
    U,
    *,
    seed: int = 0,
) -> dict[str, Any]:
    """What every rule loses, beside the best subset of every size, for each test set.

    `curves` are accuracies with 0, 1, 2, … heads gone, `best` those of the best subsets, both by
    ablation; `random` averages over random orders. `drop` is what each head alone costs, `shapley`
    its exact Shapley value. `correlation` has Spearman's ρ of scores and drops, within layers
    (mean over layers) and pooled, and `stand_in` whether U finds pairs that replace each other.
    """
    names = pruning.all_heads(heads)
    orders = {rule: pruning.order_by_score(s) for rule, s in by_rule.items()} | dict(again)
    many = [pruning.random_order(heads, seed=seed + i) for i in range(ORDERS)]
    answer: dict[str, Any] = {
        "own": next(iter(found)),
        "heads": [list(head) for head in names],
        "scores": {rule: [s[head] for head in names] for rule, s in by_rule.items()},
        "orders": {rule: [list(head) for head in order] for rule, order in orders.items()},
        "tests": {},
    }
    for test, (parts, y) in found.items():
        one: dict[str, Any] = {"examples": len(y)}
        answer["tests"][test] = one
        for ablation in ABLATIONS:
            setting = {"heads": heads, "ablation": ablation}
            every = pruning.subset_accuracies(parts, y, **setting)
            curves = {
                rule: pruning.curve(parts, y, order=order, **setting)
                for rule, order in orders.items()
            }
            chance = [pruning.curve(parts, y, order=order, **setting) for order in many]
            curves["random"] = np.mean(chance, axis=0)
            alone = pruning.each_head(parts, y, **setting)
            drop = [curves["random"][0] - alone[head] for head in names]
            one[ablation] = {
                "curves": curves,
                "random_deviation": np.std(chance, axis=0, ddof=1),
                "best": [value for value, _ in pruning.best_subsets(every, heads)],
                "drop": drop,
                "shapley": list(pruning.shapley_values(every, heads).values()),
                "correlation": {
                    rule: correlations([s[head] for head in names], drop, heads)
                    for rule, s in by_rule.items()
                },
                "stand_in": stand_in(U, every, heads),
            }
    return answer


def correlations(score, drop, heads: Sequence[int]) -> dict[str, float | None]:
    """Spearman's ρ within layers, mean over layers, and over all heads; None where it has none.

    >>> correlations([1, 2, 5, 6], [2, 4, 1, 0], (2, 2))
    {'within': 0.0, 'pooled': -0.8}
    """
    score, drop = np.asarray(score, float), np.asarray(drop, float)
    ends = np.cumsum(heads)[:-1]
    layers = zip(np.split(score, ends), np.split(drop, ends), strict=True)
    within = [rho for s, d in layers if (rho := _spearman(s, d)) is not None]
    return {
        "within": float(np.mean(within).round(12)) if within else None,
        "pooled": _spearman(score, drop),
    }


def stand_in(U, accuracies, heads: Sequence[int]) -> dict[str, Any]:
    """Do entries of U find pairs of heads of one layer that replace each other?

    Two heads replace each other if both together cost more than one and the other:
    v(−i) + v(−j) − v(−i−j) − v is positive. The tie of two heads is Σ|U_ππ'| over paths through
    the one and the other, over the root of their scores. Spearman's ρ over all pairs within layers.
    """
    names, U = pruning.all_heads(heads), np.abs(np.asarray(U))
    grid = np.indices(heads).reshape(len(heads), -1).T + 1
    on = {(layer, h): grid[:, layer - 1] == h for layer, h in names}
    whole = (1,) * len(names)

    def without(*gone):
        return accuracies[tuple(int(i not in gone) for i in range(len(names)))]

    ties, extra = [], []
    for i, one in enumerate(names):
        for j, other in enumerate(names[:i]):
            if one[0] == other[0] and heads[one[0] - 1] > 2:
                own = [U[on[head]][:, on[head]].sum() for head in (one, other)]
                ties.append(U[on[one]][:, on[other]].sum() / np.sqrt(np.prod(own)))
                extra.append(without(i) + without(j) - without(i, j) - accuracies[whole])
    return {"pairs": len(ties), "ties": ties, "extra": extra, "rho": _spearman(ties, extra)}


def _spearman(one, other) -> float | None:
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    rho, _ = scipy.stats.spearmanr(one, other)
    return round(float(np.asarray(rho)), 12)


def _drops(parts, y, heads) -> dict:
    whole = np.mean(np.sign(parts.sum(axis=1)) == y)
    return {h: whole - a for h, a in pruning.each_head(parts, y, heads=heads).items()}


def _further(parts, y, heads, gone) -> dict:
    """What each head would cost beyond those that are gone; the last of a layer cannot go."""
    found = {}
    for head in pruning.all_heads(heads):
        left = [h for h in pruning.all_heads(heads) if h not in gone and h[0] == head[0]]
        if head in gone or left == [head]:
            found[head] = 1.0
        else:
            found[head] = -pruning.curve(parts, y, heads=heads, order=[*gone, head])[-1]
    return found
