"""Parts of the one-shot study on trained networks; `book.studies.oneshot.run` runs them."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.stats

from attnpaths import empirical_order_parameter, pruning
from attnpaths.network import Network, Weights
from attnpaths.tasks import images as image_sources
from attnpaths.tasks import oneshot
from attnpaths.training import Trained
from book.studies.oneshot.sizes import Size, size
from book.studies.oneshot.theory import described, mean_and_error, rounded

_BLOCK = 1000
#: Orders of the heads that a rank correlation is held against; eight heads have 40,320.
ORDERS = 50_000


def outputs(
    trained: Trained, images: Mapping[str, image_sources.Images], *, examples: int, seed: int = 0
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """`pruning.path_outputs` and labels of many test sequences from each source.

    The first of `images` is split by class, and only its test classes serve.
    """
    found = {}
    for number, (name, source) in enumerate(images.items()):
        classes = oneshot.split_classes(source)["test"] if number == 0 else None
        drawn = oneshot.draw(source, examples, seed=[seed, 100 + number], classes=classes)
        encoder = oneshot.Encoder(source, trained.labels)
        blocks = [drawn[i : i + _BLOCK] for i in range(0, examples, _BLOCK)]
        parts = [
            np.asarray(pruning.path_outputs(trained.weights, trained.network.features(encoder(b))))
            for b in blocks
        ]
        found[name] = np.concatenate(parts), drawn.y.astype(float)
    return found


def trained_accuracy(trained: Trained, found: Mapping[str, tuple]) -> dict[str, Any]:
    """The trained network's accuracies, and its own order parameter."""
    heads = trained.network.head_counts
    return {
        "heads": list(heads),
        "width": trained.weights.a.shape[0],
        "accuracy": {
            name: _share(np.sign(parts.sum(axis=1)) == y) for name, (parts, y) in found.items()
        },
        **described(empirical_order_parameter(trained.weights), heads, most=16),
    }


def pruned(
    network: Network,
    weights: Weights,
    found: Mapping[str, tuple],
    scores: Mapping[str, Sequence[int | float]],
    *,
    tokens: int,
    orders: int = 200,
    seed: int = 0,
) -> dict[str, Any]:
    """What pruning costs: of each head alone, and of more and more heads in several orders.

    `scores` gives head scores by the name of the order parameter they came from, in the order of
    `pruning.all_heads`. `"random"` averages over `orders` random orders. `drop` is what each head
    alone costs, and `first` the change of accuracy without the first quarter of the heads; their
    standard errors are over the test sequences, which are the same before and after. `sizes` has
    parameters and multiply–adds with 0, 1, 2, … heads pruned in the first order.
    """
    heads = network.head_counts
    names = pruning.all_heads(heads)
    quarter = len(names) // 4
    chosen = {
        k: pruning.order_by_score(dict(zip(names, s, strict=True))) for k, s in scores.items()
    }
    chosen["norm"] = pruning.order_by_norm(weights)
    many = [pruning.random_order(heads, seed=seed + i) for i in range(orders)]
    answer = {
        "heads": [list(head) for head in names],
        "quarter": quarter,
        "orders": {name: [list(head) for head in order] for name, order in chosen.items()},
        "sizes": _sizes(network, weights, next(iter(chosen.values())), tokens),
        "whole": {},
        "drop": {},
        "drop_error": {},
        "rank_correlation": {},
        "curves": {},
        "random": {},
        "first": {},
    }
    for source, (parts, y) in found.items():
        right = functools.partial(_right, parts, y, heads)
        whole = right([])
        answer["whole"][source] = _share(whole)
        # the same sequences before and after: their difference is what has an error
        losses = [whole.astype(float) - right([head]) for head in names]
        drop = [loss.mean() for loss in losses]
        answer["drop"][source] = rounded(drop)
        answer["drop_error"][source] = [mean_and_error(loss)["standard_error"] for loss in losses]
        answer["rank_correlation"][source] = {
            name: rank_correlation(score, drop, seed=seed) for name, score in scores.items()
        }
        answer["curves"][source] = {
            name: rounded(pruning.curve(parts, y, heads=heads, order=order))
            for name, order in chosen.items()
        }
        curves = np.array([pruning.curve(parts, y, heads=heads, order=o) for o in many])
        answer["random"][source] = {
            "mean": rounded(curves.mean(axis=0)),
            "deviation": rounded(curves.std(axis=0, ddof=1)),
        }
        changes = {
            name: mean_and_error(right(order[:quarter]).astype(float) - whole)
            for name, order in chosen.items()
        }
        every = [curve[quarter] - curve[0] for curve in curves]
        changes["random"] = {
            "mean": rounded(np.mean(every)),
            "deviation": rounded(np.std(every, ddof=1)),
        }
        answer["first"][source] = changes
    return answer


def rank_correlation(score, drop, *, seed: int = 0, resamples: int = 2000) -> dict[str, float]:
    """Spearman's ρ between scores and drops, its bootstrap error over heads, and its chance.

    `p_value` is the share of orders of the heads whose ρ is at least as large: of all orders for
    up to eight heads, of `ORDERS` random ones for more.

    >>> found = rank_correlation([1, 2, 3, 4], [1, 2, 3, 5], resamples=200)
    >>> found["value"], found["p_value"] == round(1 / 24, 5)
    (1.0, True)
    """
    score, drop = np.asarray(score, float), np.asarray(drop, float)
    rng, count = np.random.default_rng(seed), len(score)

    def rho(scores, drops):
        a, b = (scipy.stats.rankdata(each, axis=1) - (count + 1) / 2 for each in (scores, drops))
        spread = np.sqrt(np.sum(a**2, axis=1) * np.sum(b**2, axis=1))
        # a resample that holds one head alone has no correlation
        return np.sum(a * b, axis=1)[spread > 0] / spread[spread > 0]

    picks = rng.integers(count, size=(resamples, count))
    ranks = scipy.stats.rankdata(score)
    # Spearman's ρ grows with this sum; all orders are taken where there are no more than ORDERS
    chance = scipy.stats.permutation_test(
        (scipy.stats.rankdata(drop),),
        lambda other, axis: np.sum(ranks * other, axis=axis),
        permutation_type="pairings",
        alternative="greater",
        n_resamples=ORDERS,
        vectorized=True,
        rng=rng,
    )
    return {
        "value": rounded(rho(score[None], drop[None])[0]),
        "standard_error": rounded(np.std(rho(score[picks], drop[picks]), ddof=1)),
        "p_value": rounded(chance.pvalue),
    }


def _right(parts, y, heads, gone):
    """Which test sequences a pruned network gets right."""
    return np.sign(np.asarray(pruning.pruned_outputs(parts, heads, gone))) == y


def _sizes(network, weights, order, tokens) -> dict[str, list[int]]:
    smaller = (pruning.prune(network, weights, order[:n])[0] for n in range(len(order) + 1))
    counts = [size(each, width=len(weights.a), tokens=tokens) for each in smaller]
    fields = [field.name for field in dataclasses.fields(Size)]
    return {name: [getattr(count, name) for count in counts] for name in fields}


def _share(right) -> dict[str, Any]:
    return mean_and_error(right.astype(float)) | {"examples": len(right)}
