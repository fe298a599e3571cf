"""Head scores, pruned networks, and the path sum that gives all of them at once."""

import itertools

import numpy as np
import pytest

from attnpaths import Network, Weights, empirical_order_parameter, paths, pruning
from attnpaths.pruning import (
    all_heads,
    curve,
    each_head,
    head_scores,
    order_by_norm,
    order_by_score,
    path_outputs,
    prune,
    pruned_outputs,
    random_order,
)
from book.studies.oneshot.sizes import size

HEADS, EXAMPLES, TOKENS, DIM, WIDTH = (3, 1, 2), 40, 5, 4, 6


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    pair = tuple(rng.standard_normal((2, 2, 3, DIM)))
    layers = [rng.standard_normal((3, DIM, DIM)), rng.standard_normal((1, DIM, DIM)), pair]
    network = Network(layers, readout="mean")
    weights = Weights.prior(0, width=WIDTH, dim=DIM, heads=HEADS)
    x = rng.standard_normal((EXAMPLES, TOKENS, DIM))
    y = rng.choice([1.0, -1.0], EXAMPLES)
    return network, weights, x, y, path_outputs(weights, network.features(x))


def test_heads_are_named_layer_by_layer():
    assert all_heads(HEADS) == [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (3, 2)]


def test_scores_are_the_papers_sum(case):
    U = np.asarray(empirical_order_parameter(case[1]))
    scores = head_scores(U, HEADS)
    assert list(scores) == all_heads(HEADS)
    names = paths.paths(HEADS)
    for (layer, h), score in scores.items():
        pairs = itertools.product(range(len(names)), repeat=2)
        through = [
            abs(U[i, j]) for i, j in pairs if names[i][layer - 1] == names[j][layer - 1] == h
        ]
        assert score == pytest.approx(sum(through), rel=1e-12)
    assert scores[2, 1] == pytest.approx(np.abs(U).sum())


def test_at_the_gp_limit_heads_of_a_layer_score_alike():
    scores = head_scores(np.eye(6), HEADS)
    assert [scores[head] for head in all_heads(HEADS)] == [2, 2, 2, 6, 3, 3]


@pytest.mark.parametrize(
    "gone", [[], [(1, 2)], [(3, 1)], [(1, 3), (1, 1)], [(3, 2), (1, 1), (1, 2)]], ids=str
)
def test_a_pruned_network_is_the_sum_of_its_surviving_paths(case, gone):
    network, weights, x, _, outputs = case
    smaller, fewer = prune(network, weights, gone)
    lost = [sum(layer == one for layer, _ in gone) for one in (1, 2, 3)]
    assert smaller.head_counts == tuple(np.subtract(HEADS, lost))
    f = smaller.apply(fewer, x)
    np.testing.assert_allclose(pruned_outputs(outputs, HEADS, gone), f, rtol=0, atol=1e-12)
    names = paths.paths(HEADS)
    alive = [not any(name[layer - 1] == h for layer, h in gone) for name in names]
    factor = np.prod(np.sqrt(np.divide(HEADS, np.subtract(HEADS, lost))))
    np.testing.assert_allclose(f, factor * np.asarray(outputs)[:, alive].sum(axis=1), atol=1e-12)
    # as in the authors' code, what is left of a layer counts more; no sign depends on it
    plain, same = prune(network, weights, gone, rescale=False)
    np.testing.assert_allclose(factor * plain.apply(same, x), f, atol=1e-12)


def test_a_surviving_head_keeps_its_weights(case):
    network, weights, *_ = case
    smaller, fewer = prune(network, weights, [(1, 2), (3, 1)])
    np.testing.assert_array_equal(smaller.heads[0], np.asarray(network.heads[0])[[0, 2]])
    for left, whole in zip(smaller.heads[2], network.heads[2], strict=True):
        np.testing.assert_array_equal(left, np.asarray(whole)[[1]])
    np.testing.assert_array_equal(fewer.V[0], np.asarray(weights.V[0])[[0, 2]])
    assert smaller.readout == "mean"


def test_curves_and_single_heads_are_the_accuracies_of_pruned_networks(case):
    network, weights, x, y, outputs = case
    order = [(1, 2), (3, 1), (1, 1)]
    found = curve(outputs, y, heads=HEADS, order=order)
    for n, accuracy in enumerate(found):
        smaller, fewer = prune(network, weights, order[:n])
        assert accuracy == np.mean(np.sign(smaller.apply(fewer, x)) == y)
    assert found.shape == (4,) and len(set(found)) > 1
    single = each_head(outputs, y, heads=HEADS)
    # the only head of layer 2 cannot go
    assert list(single) == [(1, 1), (1, 2), (1, 3), (3, 1), (3, 2)]
    assert single[1, 2] == found[1]


def test_no_head_can_go_where_each_is_alone():
    assert each_head(np.ones((3, 1)), np.array([1, -1, 1]), heads=(1, 1)) == {}


@pytest.mark.usefixtures("as_users_see_it")
def test_heads_may_be_named_by_floats(case):
    named = [(1.0, 2.0), np.array([3, 1])]
    found, wanted = (pruned_outputs(case[4], HEADS, gone) for gone in (named, [(1, 2), (3, 1)]))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.usefixtures("as_users_see_it")
def test_weights_may_be_lists(case):
    network, weights, x, _, outputs = case
    lists = Weights(weights.V0.tolist(), [v.tolist() for v in weights.V], weights.a.tolist())
    np.testing.assert_array_equal(path_outputs(lists, network.features(x)), outputs)
    assert order_by_norm(lists) == order_by_norm(weights)


def test_orders_leave_one_head_in_every_layer(case):
    scores = dict(zip(all_heads(HEADS), [5.0, 1.0, 3.0, 0.1, 4.0, 2.0], strict=True))
    assert order_by_score(scores) == [(1, 2), (3, 2), (1, 3)]
    orders = [random_order(HEADS, seed=seed) for seed in range(200)]
    assert random_order(HEADS, seed=3) == orders[3]
    for order in orders:
        assert len(set(order)) == 3 and [layer for layer, _ in order].count(1) == 2
    first = [order[0] for order in orders]
    assert set(first) == set(all_heads(HEADS)) - {(2, 1)}


def test_the_norm_that_orders_is_that_of_the_values():
    weights = Weights.prior(1, width=WIDTH, dim=DIM, heads=(3, 2))
    scaled = [np.asarray(v) for v in weights.V]
    scaled[0] = scaled[0] * np.array([3.0, 0.1, 1.0])[:, None, None]
    scaled[1] = scaled[1] * np.array([0.5, 5.0])[:, None, None]
    assert order_by_norm(Weights(weights.V0, scaled, weights.a)) == [(1, 2), (2, 1), (1, 3)]


def test_sizes_are_those_of_the_arrays(case):
    network, weights, *_ = case
    count = size(network, width=WIDTH, tokens=TOKENS)
    in_heads = sum(h.size for layer in network.heads for h in layer) + sum(
        v.size for v in weights.V
    )
    assert count.head_parameters == in_heads
    assert count.parameters == in_heads + weights.V0.size + weights.a.size


def test_two_heads_of_eight_are_a_quarter():
    heads = [(np.zeros((4, 128, 192)),) * 2] * 2
    weights = Weights(np.zeros((512, 192)), [np.zeros((4, 512, 512))] * 2, np.zeros(512))
    network = Network(heads, readout="mean")
    smaller, _ = prune(network, weights, [(1, 1), (2, 4)])
    before, after = (size(n, width=512, tokens=48) for n in (network, smaller))
    assert after.head_parameters / before.head_parameters == 0.75
    assert after.parameters == before.parameters - 2 * (2 * 128 * 192 + 512**2)
    one = 2 * 48 * 128 * 192 + 48**2 * 128
    assert before.layered - after.layered == 2 * (one + 48 * 512**2 + 48**2 * 512)
    assert before.by_paths - after.by_paths == 2 * one + 7 * (48**2 + 48 * 192 + 192)


U, OUTPUTS, Y = np.eye(4), np.ones((3, 4)), np.array([1.0, -1.0, 1.0])
ATTENDED = Network.from_attention([np.full((5, 2, 4, 4), 0.25)], np.ones((5, 4, 3)), -1)
VALUES = {"2-D": np.ones((2, 2)), "NaN": np.full((1, 2, 2), np.nan)}
BROKEN = {name: Weights(np.ones((2, 3)), [v], np.ones(2)) for name, v in VALUES.items()}
BAD = [
    (lambda n, w: head_scores(np.eye(3), (2, 2)), r"U must be \[4, 4\] for the 4 paths .*\(3, 3\)"),
    (lambda n, w: head_scores(np.ones(4), (2, 2)), "U must have 2 axes"),
    (lambda n, w: head_scores(U * np.nan, (2, 2)), "U must be finite"),
    (lambda n, w: head_scores(U, 4), "heads must be a list"),
    (lambda n, w: prune(n, w, [(1, 1), (1, 2), (1, 3)]), "would leave no head in layer 1"),
    (lambda n, w: prune(n, w, [(2, 1)]), "would leave no head in layer 2"),
    (lambda n, w: prune(n, w, [(1, 4)]), r"there is no head \(1, 4\) in .*heads=\(3, 1, 2\)"),
    (lambda n, w: prune(n, w, [(0, 1)]), r"there is no head \(0, 1\)"),
    (lambda n, w: prune(n, w, [(4, 1)]), r"there is no head \(4, 1\)"),
    (lambda n, w: prune(n, w, [3]), "there is no head 3"),
    (lambda n, w: prune(n, w, (1, 2)), "there is no head 1 "),
    (lambda n, w: prune(n, w, [(1, 2), (1, 2)]), r"head \(1, 2\) is pruned twice"),
    (lambda n, w: path_outputs(w, np.ones((2, 5, DIM))), "for 6 paths .* xi has 5 paths"),
    (
        lambda n, w: path_outputs(w.V, OUTPUTS[:, :, None]),
        r"must be Weights\(V0, V, a\); got tuple",
    ),
    (
        lambda n, w: prune(ATTENDED, w, []),
        "which alone has heads .* got Attended; .*pruned_outputs",
    ),
    (lambda n, w: order_by_norm(BROKEN["2-D"]), r"weights.V\[0\] must have 3 axes"),
    (lambda n, w: order_by_norm(BROKEN["NaN"]), r"weights.V\[0\] must be finite"),
    (lambda n, w: order_by_norm(None), "weights must be Weights"),
    (lambda n, w: order_by_score({(1, 1): np.nan, (1, 2): 1.0}), "scores must be finite; 1 of"),
    (lambda n, w: pruned_outputs(OUTPUTS, (3, 2), []), r"has 4 paths but heads=\(3, 2\) makes 6"),
    (lambda n, w: curve(OUTPUTS, Y[:2], heads=(2, 2), order=[]), "one label per row"),
    (lambda n, w: curve(OUTPUTS, Y / 2, heads=(2, 2), order=[]), r"y must be \+1 or −1; got \[-0"),
    (lambda n, w: each_head(OUTPUTS, Y > 0, heads=(2, 2)), r"0 and 1 as 2 \* y - 1"),
    (lambda n, w: random_order((2, 2), seed=-1), "seed must be a whole number ≥ 0"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
@pytest.mark.usefixtures("as_users_see_it")
def test_bad_input(case, call, message):
    with pytest.raises(ValueError, match=message):
        call(*case[:2])


def test_the_weights_must_fit_the_network(case):
    with pytest.raises(ValueError, match=r"weights.V has heads \(2, 2\)"):
        pruning.prune(case[0], Weights.prior(0, width=5, dim=DIM, heads=(2, 2)), [])
