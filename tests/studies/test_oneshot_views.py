"""What pages show of many networks is what the study holds of each."""

import numpy as np
import pytest

from book.studies.oneshot import claims, views
from book.studies.oneshot.rules import DEEP, LARGE, SMALL

TESTS = ("omniglot", "mnist")


def drawn(narrow, wide, shift=0.0):
    """A draw with two widths and two temperatures; MNIST is lower by 0.1."""
    own = np.array([narrow, wide])
    limit = np.array([0.6, 0.7, 0.65]) + shift
    return {
        "own": "omniglot",
        "shape": [4, 4],
        "temperatures": [0.1, 0.5],
        "gp_temperatures": [0.05, 0.1, 0.5],
        "accuracy": {"omniglot": own.tolist(), "mnist": (own - 0.1).tolist()},
        "gp_accuracy": {"omniglot": limit.tolist(), "mnist": limit[::-1].tolist()},
    }


def pruned(scores, drop, curve):
    one = {
        "curves": {"score": curve, "norm": [0.8, 0.6, 0.5]},
        "best": [0.8, 0.79, 0.78, 0.5],
        "drop": drop,
        "correlation": {
            "score": {"within": 0.5, "pooled": 0.2},
            "norm": {"within": None, "pooled": 0.1},
        },
    }
    tests = {"omniglot": {"zero": one}}
    return {"own": "omniglot", "shape": [4, 4], "scores": {"score": scores}, "tests": tests}


PARTS = {
    "a: draw 0": drawn([0.7, 0.8], [0.75, 0.7]),
    "a: draw 1": drawn([0.9, 0.8], [0.75, 0.7], 0.1),
    "a: pruning": pruned([3, 1, 2], [0.3, 0.1, 0.2], [0.8, 0.78, 0.7]),
    "b: draw 0": drawn([0.7, 0.8], [0.75, 0.75]),
    "b: pruning": pruned([1, 2, 3], [0.3, 0.1, 0.2], [0.8, 0.79, 0.75]),
    "l: pruning": pruned([1], [0], [0.8]) | {"shape": [8, 8]},
}


def test_accuracies_at_the_best_temperature_in_distribution():
    theory, gp = views.accuracies(PARTS, SMALL)
    np.testing.assert_allclose(theory, [[0.85, 0.75], [0.8, 0.75]])
    np.testing.assert_allclose(gp, [0.75, 0.7])
    # the temperature is not chosen on the other source
    other, limit = views.accuracies(PARTS, SMALL, "mnist")
    np.testing.assert_allclose(other, theory - 0.1)
    np.testing.assert_allclose(limit, [0.75, 0.7])
    _, few = views.accuracies(PARTS, SMALL, gp=(0.05, 0.5))
    np.testing.assert_allclose(few, [0.7, 0.65])
    # the gain of the claims is the same number
    own = {name.split(": ")[1]: part for name, part in PARTS.items() if name.startswith("a: d")}
    assert claims.gain(own, "mnist") == pytest.approx((other[:, 0] - limit)[0])
    assert views.accuracies(PARTS, DEEP)[0].size == 0


def test_best_temperatures_are_geometric_means_over_draws():
    found = views.temperatures(PARTS, SMALL)
    np.testing.assert_allclose(found, [[np.sqrt(0.1 * 0.5), 0.1], [0.5, 0.5]])


def test_best_temperatures_of_the_limit():
    # the best of three in distribution is 0.1 for every draw of both
    np.testing.assert_allclose(views.limits(PARTS, SMALL), [0.1, 0.1])
    assert views.limits(PARTS, DEEP).size == 0


def test_signs_beside_those_of_all_renamings():
    U = [[2, -1], [-1, 1]]
    held = {"trained": {"U": U}, "narrow": {"U": [[1, -3], [-3, 5]]}, "shape": [2]}
    ((own, renamed),) = views.signs({"a: draw 0": held, "a: draw 1": {"shape": [2]}}, (2,)).values()
    assert own == 1 and list(renamed) == [1, 1]


def test_regrets_and_correlations_of_every_network():
    found = views.regrets(PARTS, SMALL, ["score", "norm"])
    np.testing.assert_allclose(found["score"], [[0.01, 0.08], [0.0, 0.03]])
    np.testing.assert_allclose(found["norm"], [[0.19, 0.28]] * 2)
    rho = views.correlations(PARTS, SMALL, ["score", "norm"])
    assert rho == {"score": [0.5, 0.5], "norm": []}
    assert views.correlations(PARTS, LARGE, ["norm"], "pooled") == {"norm": [0.1]}


def test_drops_stand_in_the_order_of_the_scores():
    np.testing.assert_allclose(
        views.drops(PARTS, SMALL, "score"), [[0.1, 0.2, 0.3], [0.3, 0.1, 0.2]]
    )
