"""What the paper's score is compared with, each against its definition written out."""

import itertools
import math

import numpy as np
import pytest

from attnpaths import Network, Weights, paths, pruning, theory

HEADS, EXAMPLES, DIM = (3, 1, 2), 60, 4
NAMES = pruning.all_heads(HEADS)


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(1)
    network = Network([rng.standard_normal((n, DIM, DIM)) for n in HEADS], readout=-1)
    weights = Weights.prior(3, width=7, dim=DIM, heads=HEADS)
    x = rng.standard_normal((EXAMPLES, 5, DIM))
    y = rng.choice([1.0, -1.0], EXAMPLES)
    return network, weights, x, y, np.asarray(pruning.path_outputs(weights, network.features(x)))


def through(head):
    return np.array([path[head[0] - 1] == head[1] for path in paths.paths(HEADS)])


def test_either_counts_pairs_of_which_one_goes_through(case):
    U = np.random.default_rng(2).standard_normal((6, 6))
    U = U @ U.T
    scores = pruning.head_scores(U, HEADS, pairs="either")
    for head, score in scores.items():
        on = through(head)
        assert score == pytest.approx(np.abs(U)[on[:, None] | on[None]].sum(), rel=1e-12)
        # as the authors' code has it: rows, and columns, less what was counted twice
        rows, both = np.abs(U)[on].sum(), np.abs(U)[on][:, on].sum()
        assert score == pytest.approx(2 * rows - both, rel=1e-12)
    with pytest.raises(ValueError, match="pairs must be one of 'both', 'either'"):
        pruning.head_scores(U, HEADS, pairs="all")


@pytest.mark.parametrize("gone", [[], [(1, 2)], [(1, 1), (3, 2)]], ids=str)
def test_importance_is_the_derivative_by_the_switch(case, gone):
    *_, y, outputs = case
    found = pruning.gradient_importance(outputs, y, heads=HEADS, gone=gone)

    def losses(switch):
        factors = [math.prod(switch[layer, h] for layer, h in enumerate(path, start=1))
                   for path in paths.paths(HEADS)]  # fmt: skip
        return (outputs @ np.array(factors) - y) ** 2

    on = {head: 0.0 if head in gone else 1.0 for head in NAMES}
    for head in NAMES:
        step = 1e-6 if head not in gone else 0.0
        slopes = losses(on | {head: on[head] + step}) - losses(on | {head: on[head] - step})
        expected = np.abs(slopes / 2e-6).mean() if step else 0.0
        assert found[head] == pytest.approx(expected, rel=1e-6, abs=1e-12)
    by_layer = pruning.gradient_importance(outputs, y, heads=HEADS, gone=gone, by_layer=True)
    for layer, count in enumerate(HEADS, start=1):
        norm = math.hypot(*(found[layer, h] for h in range(1, count + 1)))
        for h in range(1, count + 1):
            assert by_layer[layer, h] == pytest.approx(found[layer, h] / norm, rel=1e-12)


def test_what_a_head_adds_is_lost_without_it(case):
    network, weights, x, _, outputs = case
    sizes = pruning.head_sizes(outputs, HEADS)
    smaller, fewer = pruning.prune(network, weights, [(1, 3)], rescale=False)
    lost = network.apply(weights, x) - smaller.apply(fewer, x)
    assert sizes[1, 3] == pytest.approx(float(np.sqrt(np.mean(np.asarray(lost) ** 2))), rel=1e-10)


def test_focus_is_the_entropy_that_attention_lacks(case):
    network, _, x, *_ = case
    omegas = network.attention(x)
    for (layer, h), focus in pruning.attention_focus(omegas).items():
        columns = np.asarray(omegas[layer - 1])[:, h - 1]
        entropy = -(columns * np.log(columns)).sum(axis=1).mean()
        assert focus == pytest.approx(math.log(5) - entropy, abs=1e-12)
        assert 0 <= focus <= math.log(5)
    for wrong, said in (
        ([], "attention must be a list with one entry per layer"),
        ([-omegas[0]], r"attention\[0\] must not be negative"),
        ([2 * omegas[0]], r"attention\[0\] must sum to 1 over keys"),
    ):
        with pytest.raises(ValueError, match=said):
            pruning.attention_focus(wrong)


def test_the_theorys_paths_add_up_to_its_predictor(case):
    network, _, x, y, _ = case
    xi = network.features(x)
    found = theory.solve(xi[:40], y[:40], heads=HEADS, width=5, temperature=0.1, prior_variance=1.3)
    outputs = pruning.theory_outputs(found, xi[40:])
    np.testing.assert_allclose(outputs.sum(axis=1), found.predict(xi[40:]).mean, rtol=1e-9)
    # with skips and two outputs, too
    skips = Network(network.heads, readout=-1, residual=True).features(x)
    both = np.stack([y, np.roll(y, 1)], axis=1)
    setting = {"heads": HEADS, "residual": True, "width": 5, "temperature": 0.1}
    found = theory.solve(skips[:40], both[:40], **setting)
    outputs = pruning.theory_outputs(found, skips[40:])
    assert outputs.shape == (20, 24, 2)
    np.testing.assert_allclose(outputs.sum(axis=1), found.predict(skips[40:]).mean, atol=1e-9)
    # no input, no output
    gp = theory.gp_limit(xi[:40], y[:40], heads=HEADS, temperature=0.1)
    assert np.abs(np.asarray(pruning.theory_outputs(gp, 0 * xi[40:]))).max() == 0


@pytest.mark.parametrize("ablation", ["zero", "mean"])
def test_all_subsets_are_the_pruned_networks(case, ablation):
    *_, y, outputs = case
    found = pruning.subset_accuracies(outputs, y, heads=HEADS, ablation=ablation)
    assert found.shape == (2,) * 6
    for kept in itertools.product((0, 1), repeat=6):
        alive = np.all([through(h) <= k for h, k in zip(NAMES, kept, strict=True)], axis=0)
        left = outputs[:, ~alive].mean(axis=0).sum() if ablation == "mean" else 0.0
        signs = np.sign((outputs[:, alive].sum(axis=1) + left) * y)
        assert found[kept] == pytest.approx(np.mean((1 + signs) / 2), abs=1e-12)
    order = [(1, 2), (3, 1), (1, 1)]
    steps = [found[tuple(int(h not in order[:n]) for h in NAMES)] for n in range(4)]
    curve = pruning.curve(outputs, y, heads=HEADS, order=order, ablation=ablation)
    np.testing.assert_allclose(curve, steps, atol=1e-12)
    each = pruning.each_head(outputs, y, heads=HEADS, ablation=ablation)
    assert each[1, 2] == pytest.approx(steps[1])


def test_shapley_values_are_means_over_all_orders(case):
    *_, y, outputs = case
    values = pruning.subset_accuracies(outputs, y, heads=HEADS)
    found = pruning.shapley_values(values, HEADS)
    gains = dict.fromkeys(NAMES, 0.0)
    for order in itertools.permutations(range(6)):
        kept = [0] * 6
        for head in order:
            before, kept[head] = values[tuple(kept)], 1
            gains[NAMES[head]] += (values[tuple(kept)] - before) / 720
    assert found == pytest.approx(gains, abs=1e-10)
    assert sum(found.values()) == pytest.approx(values[(1,) * 6] - values[(0,) * 6], abs=1e-10)


def test_no_order_is_better_than_the_best(case):
    *_, y, outputs = case
    best = pruning.best_subsets(pruning.subset_accuracies(outputs, y, heads=HEADS), HEADS)
    assert [len(gone) for _, gone in best] == [0, 1, 2, 3]
    for accuracy, gone in best:
        assert pruning.curve(outputs, y, heads=HEADS, order=gone)[-1] == pytest.approx(accuracy)
    curves = [
        pruning.curve(outputs, y, heads=HEADS, order=pruning.random_order(HEADS, seed=seed))
        for seed in range(50)
    ]
    np.testing.assert_allclose(np.max(curves, axis=0), [a for a, _ in best])


def test_scoring_again_takes_the_lowest_of_what_is_left(case):
    *_, y, outputs = case
    # by the measured drop: the greedy order
    order = pruning.one_by_one(
        lambda gone: {
            head: -pruning.curve(outputs, y, heads=HEADS, order=[*gone, head])[-1]
            if head not in gone and head[0] != 2 and sum(g[0] == head[0] for g in gone) + 1
            < HEADS[head[0] - 1] else 0.0
            for head in NAMES
        },
        HEADS,
    )  # fmt: skip
    assert len(order) == 3
    greedy = []
    for _ in range(3):
        free = [h for h in NAMES if h not in greedy
                and sum(g[0] == h[0] for g in greedy) + 1 < HEADS[h[0] - 1]]  # fmt: skip
        greedy.append(
            max(free, key=lambda h: pruning.curve(outputs, y, heads=HEADS, order=[*greedy, h])[-1])
        )
    assert order == greedy


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda o, y: pruning.subset_accuracies(o, y, heads=(6,), ablation="drop"),
         "ablation must be one of 'zero', 'mean'; got 'drop'"),
        (lambda o, y: pruning.subset_accuracies(np.ones((3, 121)), y[:3], heads=(11, 11)),
         "heads must be at most 20 in all"),
        (lambda o, y: pruning.subset_accuracies(o, 0 * y, heads=(6,)), r"y must be \+1 or −1"),
        (lambda o, y: pruning.curve(o, y, heads=(6,), order=[], ablation=None), "ablation must be"),
        (lambda o, y: pruning.shapley_values(np.ones((2, 2)), (3,)), "one axis of 2 for each"),
        (lambda o, y: pruning.best_subsets(np.full((2, 2), np.nan), (2,)), "must be finite"),
        (lambda o, y: pruning.best_subsets([["a", "b"]] * 2, (2,)), "accuracies must hold real"),
        (lambda o, y: pruning.one_by_one(None, (2,)), "score must be a function"),
        (lambda o, y: pruning.one_by_one(lambda gone: {(1, 1): 1.0}, (2,)), "of all heads"),
        (lambda o, y: pruning.one_by_one(lambda gone: {(1, 1): np.nan, (1, 2): 1.0}, (2,)),
         "scores must be finite"),
        (lambda o, y: pruning.kernel_sizes(None), "problem must be a Problem; got NoneType"),
        (lambda o, y: pruning.theory_outputs(None, o), "theory must be a Theory; got NoneType"),
        (lambda o, y: pruning.gradient_importance(o, y, heads=(6,), by_layer="no"), "by_layer"),
        (lambda o, y: pruning.gradient_importance(o, y, heads=(6,), gone=[(2, 1)]), "no head"),
    ],
)  # fmt: skip
def test_bad_input(case, call, message):
    *_, y, outputs = case
    with pytest.raises(ValueError, match=message):
        call(outputs, y)
