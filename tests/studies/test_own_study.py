"""The study of standard transformers: what it trains, what it measures, what it holds."""

import numpy as np
import pytest
import torch
from torch import nn

from book.studies import engine as results
from book.studies.own import run as own


@pytest.fixture(scope="module")
def task():
    return own.small_task(3)


@pytest.fixture(scope="module")
def model(task):
    (model,) = own.train([task], steps=2)
    return model


def test_networks_trained_together_are_those_trained_alone(task):
    """One step of all is one step of each."""
    state = torch.get_rng_state()
    pair = own.train([task, task], steps=3)
    torch.testing.assert_close(torch.get_rng_state(), state)
    alone, _ = (list(m.parameters()) for m in pair)
    torch.manual_seed(0)
    model = own.Transformer(19)
    adam = torch.optim.Adam(model.parameters())
    rate = torch.optim.lr_scheduler.OneCycleLR(adam, own.RATE, total_steps=3)
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        batch = torch.randint(own.EXAMPLES, (own.BATCH,), generator=generator).numpy()
        x, y = (torch.tensor(np.asarray(a)[batch]).float() for a in (task.train.x, task.train.y))
        adam.zero_grad()
        nn.functional.soft_margin_loss(model(x), y).backward()
        adam.step()
        rate.step()
    for ours, theirs in zip(model.parameters(), alone, strict=True):
        # Adam divides by gradients, and some of them are zero up to rounding
        torch.testing.assert_close(ours, theirs, atol=2e-3, rtol=1e-3)


def test_a_drop_is_what_the_transformer_loses(model, task):
    lost, error = own.drops(model, task.test)
    layer = model.layers[1].self_attn
    before = own.hits(model, task.test)
    with torch.no_grad():
        kept = layer.out_proj.weight.clone()
        layer.out_proj.weight[:, own.WIDTH // 2 :] = 0
        after = own.hits(model, task.test)
        layer.out_proj.weight.copy_(kept)
    assert lost.shape == error.shape == (4,)
    assert lost[3] == pytest.approx(before.mean() - after.mean(), abs=1e-12)
    changed = before.astype(float) - after
    assert error[3] == pytest.approx(changed.std() / np.sqrt(len(changed)))


def test_value_norms_are_those_of_what_a_head_adds(model):
    layer = model.layers[0].self_attn
    value, out = layer.in_proj_weight.detach()[2 * own.WIDTH :], layer.out_proj.weight.detach()
    half = own.WIDTH // 2
    expected = torch.linalg.matrix_norm(out[:, half:] @ value[half:])
    assert own.value_norms(model)[1] == pytest.approx(float(expected), rel=1e-6)


def test_the_residual_stream_is_one_more_head_and_has_no_score(model, task):
    x, y = own.labelled(task)
    assert sorted(set(y)) == [-1, 1] and y.sum() == 0
    xi, heads = own.features(model, x)
    fewer, real = own.features(model, x, residual=False)
    assert (heads, real) == ((3, 3), (2, 2))
    np.testing.assert_allclose(xi[:, [0, 1, 3, 4]], fewer, atol=1e-12)
    assert own.scores(np.eye(9), heads).tolist() == [3, 3, 3, 3]


def test_the_file_holds_forty_networks():
    held = results.read("own")
    assert held["parts"].keys() == own.parts().keys()
    for part in held["parts"].values():
        for name in ("lost", "error", "value norm", "score", "score, no residual"):
            assert np.shape(part[name]) == (own.TOGETHER, 4)
            assert np.min(part[name]) > (-0.1 if name == "lost" else 0)
        assert np.min(part["accuracy"]) > 0.75
        # the theory's network has fewer chains and no MLP, yet is far from chance
        assert 0.65 < np.mean(part["theory"]) < np.mean(part["accuracy"])
