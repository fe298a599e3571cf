"""The study of transformers of three makes: what it trains, what it measures, how it judges."""

import numpy as np
import pytest
import torch
from torch import nn

from book.studies import engine as results
from book.studies.own import networks, verdict
from book.studies.own import run as own


@pytest.fixture(scope="module")
def task():
    return networks.small_task(3)


@pytest.fixture(scope="module", params=networks.ARCHITECTURES)
def model(request, task):
    return networks.train(task, request.param, steps=2)


def projection(model, layer):
    """The output projection of a layer, as a weight `[D, heads · G]` that may be changed."""
    if model.architecture == "encoder":
        return model.body.layers[layer].self_attn.out_proj.weight
    if model.architecture == "GPT-2":
        return model.body.h[layer].attn.c_proj.weight.T
    return model.body.encoder.layer[layer].attention.output.dense.weight


def test_training_leaves_the_random_numbers_of_others_alone(task):
    state = torch.get_rng_state()
    first, second = (networks.train(task, "encoder", steps=2) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_drop_is_what_the_transformer_loses(model, task):
    lost, error = own.drops(model, task.test)
    before, size = own.hits(model, task.test), networks.WIDTH // networks.HEADS
    weight = projection(model, 1)
    with torch.no_grad():
        kept = weight.clone()
        weight[:, -size:] = 0
        after = own.hits(model, task.test)
        weight.copy_(kept)
    assert lost.shape == error.shape == (8,)
    assert lost[7] == pytest.approx(before.mean() - after.mean(), abs=1e-12)
    changed = before.astype(float) - after
    assert error[7] == pytest.approx(changed.std() / np.sqrt(len(changed)))


def test_value_norms_are_those_of_what_a_head_adds(model):
    """What comes out of layer 1 when only one head is on is W_O W_V times what it attends to."""
    size = networks.WIDTH // networks.HEADS
    value, out = model._values(0)
    expected = torch.linalg.matrix_norm(out[:, size : 2 * size] @ value[size : 2 * size])
    assert model.value_norms()[1] == pytest.approx(float(expected), rel=1e-6)
    torch.testing.assert_close(out, projection(model, 0).detach())
    # the values themselves: those that change when the tokens that are attended to do
    assert value.shape == out.T.shape == (networks.WIDTH, networks.WIDTH)


def test_gradient_importance_is_the_slope_of_the_loss(model, task):
    x, y = own.labelled(task)
    found = own.gradient_importance(model, x[:1], y[:1])
    inputs, labels, step = networks.single(x[:1]), networks.single(y[:1]), 0.05
    losses = []
    for factor in (1 + step, 1 - step):
        with own.gated_heads(model, {(1, 2): factor}), torch.no_grad():
            losses.append(float(nn.functional.soft_margin_loss(model(inputs), labels)))
    slope = abs(losses[0] - losses[1]) / (2 * step)
    assert found[1] == pytest.approx(slope, rel=0.05, abs=1e-5)


def test_the_theory_learns_from_half_of_each_class(task):
    x, y = own.labelled(task)
    assert len(x) == own.LABELS and sorted(set(y)) == [-1, 1] and y.sum() == 0


LOST = np.array([0.1, 0.2, 0.3, 0.4, 0.01, 0.02, 0.03, 0.04])
ROWS = [
    dict.fromkeys([*verdict.SCORES, *(s + verdict.SHUFFLED for s in verdict.SCORES)], LOST)
    | {"lost": LOST, "value norm": LOST[::-1], "gradient": LOST}
] * 3


def test_guesses_are_ranked_within_layers():
    found = verdict.correlations(ROWS)
    np.testing.assert_allclose(found["within"]["both"], 1)
    np.testing.assert_allclose(found["within"]["value norm"], -1)
    np.testing.assert_array_equal(found["within"]["layer"], 0)
    np.testing.assert_allclose(found["pooled"]["layer"], verdict.rank([0] * 4 + [1] * 4, LOST))
    assert found["pooled"]["layer"][0] < -0.8


@pytest.mark.parametrize(
    ("score", "shuffled", "expected"),
    [
        ([0.5, 0.6, 0.7], [0.0, 0.1, -0.1], (True, True)),
        ([0.2, 0.2, 0.22], [0.0, 0.0, 0.1], (False, True)),
        ([0.9, -0.5, 0.9], [0.0, 0.1, -0.1], (False, False)),
        ([0.5, 0.6, 0.7], [0.5, 0.7, 0.6], (True, False)),
    ],
)
def test_the_rule_can_fail(score, shuffled, expected):
    values = {"both": np.array(score), "both" + verdict.SHUFFLED: np.array(shuffled)}
    values |= {"value norm": np.zeros(3), "gradient": np.ones(3)}
    found = verdict.judge(values)
    assert (found["useful"], found["labels"]) == expected
    assert not found["gradient"]


def test_the_file_holds_twelve_networks_of_each_make():
    held = results.read("own")
    assert held["parts"].keys() == own.parts().keys() and len(held["parts"]) == 36
    for row in held["parts"].values():
        for name in ("lost", "error", *verdict.BASELINES, *verdict.SCORES):
            assert np.shape(row[name]) == (8,)
            assert np.min(row[name]) > (-0.1 if name == "lost" else -1e-9)
        assert row["accuracy"] > 0.5
