"""The study of what was left open: its problems are what they say, its file is what they give."""

import functools

import numpy as np
import pytest

from attnpaths import kernels
from attnpaths.tasks import markov, oneshot
from attnpaths.tasks.images import load
from book.studies import engine
from book.studies.open import images, relu, run


@functools.cache
def parts():
    return engine.read("open")["parts"]


def test_the_file_is_of_this_study():
    assert parts().keys() == run.parts().keys()


def test_drawn_networks_are_the_hierarchy():
    setting = (run.DRAWN[2], True, 2, 3000)
    mean, error = run.moments(run.networks(5, *setting))
    wanted, spread = run.moments(run.hierarchy(6, *setting))
    assert np.all(np.abs(mean - wanted) < 4.5 * np.hypot(error, spread))
    # and a wrong hierarchy is seen: without the skip's rows kept, squares differ
    other = run.moments(run.networks(5, (3, 2), False, 2, 3000))
    assert np.any(np.abs(other[0] - wanted) > 6 * np.hypot(other[1], spread))


def test_copies_do_not_see_each_other():
    """The kernel of k copies is k times that of one, on the diagonal: P times the energy is too."""
    root = np.random.default_rng(0).normal(size=(8, 8))
    found = []
    for k in (1, 3):
        network, x, y = run.copies(k)
        xi = np.asarray(network.features(x)).reshape(6 * k, 4, 2 * k)
        K = kernels.total_kernel(root @ root.T, xi, scale=np.ones(4))
        found.append((np.asarray(K), y))
    np.testing.assert_allclose(found[1][0], np.kron(np.eye(3), found[0][0]), atol=1e-10)
    np.testing.assert_array_equal(found[1][1], np.tile(found[0][1], (3, 1)))


def test_the_good_path_is_there_at_every_depth():
    task, network = run.deep(0, 4, True)
    plain = markov.make_task(0, **run.CHAIN)
    few = task.train.x[:3]
    wanted = plain.network.features(few)[:, 0]
    # good, skip, skip, counting: way 1, 0, 0, 1 of two each
    np.testing.assert_allclose(network.features(few)[:, 0b1001], wanted, atol=1e-12)
    assert len(parts()["depth, 4, True"]["share"][0]) == 5
    assert np.sum(parts()["depth, 4, True"]["share"], axis=1) == pytest.approx(1, abs=1e-4)


def test_kernels_of_wide_blocks_are_those_of_drawn_units():
    of = relu.task(0, 3, 4)
    units = relu.Hidden("relu", 40_000, 4)
    z = np.append(np.random.default_rng(0).normal(size=160_000), 0.0)
    F, u = units.units(z, of.read[:5], of.x[:5])
    drawn = np.asarray(F).reshape(5, 2, -1)
    xi = relu.features(of, "relu")[:5]
    wanted = np.einsum("phi,qgi->phqg", xi, xi) / xi.shape[-1] / relu.HEADS
    np.testing.assert_allclose(np.einsum("phn,qgn->phqg", drawn, drawn), wanted, atol=0.03)
    assert float(u) == 1.0
    linear = relu.features(of, "linear")[:5]
    seen = np.einsum("phs,psd->phd", of.read[:5], of.x[:5])
    np.testing.assert_allclose(
        np.einsum("phi,qgi->phqg", linear, linear) / linear.shape[-1],
        np.einsum("phi,qgi->phqg", seen, seen) / 4,
        atol=1e-7,
    )


def test_integrating_the_readout_out_changes_nothing():
    """Given V⁰ and ‖a‖, minus the logarithm of the likelihood is that of a Gaussian f."""
    of, density = relu.task(1, 6, 3), relu.Hidden("relu", 5, 3)
    rng = np.random.default_rng(0)
    z = rng.normal(size=density.size)
    read, x, y = of.split(train=True)
    F, u = map(np.asarray, density.units(z, read, x))
    K = u * F @ F.T + relu.TEMPERATURE * np.eye(6)
    fit = (np.linalg.slogdet(K)[1] + y @ np.linalg.solve(K, y)) / 2
    prior = (np.sum(z[:-1] ** 2) + 5 * (u - np.log(u))) / 2
    assert float(density((read, x, y), z)) == pytest.approx(float(fit + prior))
    # all weights: the same units, read by a V
    whole = relu.Everything("relu", 5, 3)
    theta = rng.normal(size=whole.size)
    U, f = whole.read(theta, read, x)
    V, a = theta[15:65].reshape(2, 5, 5), theta[65:]
    v_eff = np.stack([a @ v for v in V]) / np.sqrt(5)
    F = density.units(np.append(theta[:15], 0.0), read, x)[0]
    np.testing.assert_allclose(f, F @ v_eff.ravel(), atol=1e-12)
    np.testing.assert_allclose(U, v_eff @ v_eff.T / 5, atol=1e-12)


def test_both_samplers_of_the_block_agree():
    one, other = (parts()["relu, both ways"][name] for name in ("hidden", "everything"))
    apart = np.abs(np.subtract(one["mean"], other["mean"])) / np.hypot(one["mcse"], other["mcse"])
    assert len(apart) == 4 + relu.TESTS and np.max(apart) < 4.5


def test_three_images_are_of_three_classes_and_the_query_is_another_of_one():
    glyphs = load("glyphs", classes=6)
    shown = images.draw(glyphs, np.arange(1, 6), 200, seed=0)
    kinds = glyphs.labels[shown.rows]
    assert all(len(set(row[:3])) == 3 and row[3] in row[:3] and 0 not in row for row in kinds)
    assert all(row[3] not in row[:3] for row in shown.rows)
    matching = (kinds[:, :3] == kinds[:, 3:]).argmax(axis=1)
    np.testing.assert_array_equal(shown.orders[np.arange(200), matching], shown.asked)
    assert np.bincount(shown.asked, minlength=3).min() > 40
    np.testing.assert_array_equal(shown.y.sum(axis=1), -1)


def test_tokens_of_two_images_and_the_query_are_the_tasks_own():
    glyphs = load("glyphs", classes=6)
    encoder, third = oneshot.Encoder(glyphs), np.full(oneshot.DIM, 3.0)
    shown = images.draw(glyphs, np.arange(6), 30, seed=1)
    x = images.tokens(encoder, shown, third)
    one = next(i for i, order in enumerate(shown.orders.tolist()) if order == [0, 1, 2])
    usual = oneshot.Sequences(shown.rows[[one]][:, [0, 1, 3]], np.array([1]), np.array([1]))
    np.testing.assert_allclose(x[one, :48], encoder(usual)[0], atol=1e-5)
    other = oneshot.Sequences(shown.rows[[one]][:, [2, 1, 3]], np.array([1]), np.array([1]))
    wanted = encoder(other)[0, :16] - encoder.labels[0] + third
    np.testing.assert_allclose(x[one, 48:], wanted, atol=1e-5)


def test_the_rule_of_sharing_can_say_all_that_it_may():
    close, far = np.array([0.8, 0.9, 0.85]), np.array([0.1, 0.2, 0.1])
    assert images.verdict(close, far) == "share"
    assert images.verdict(close, close) == "without meaning"
    assert images.verdict(far, close) == "of their own"
    assert images.verdict(np.array([0.2, 0.9, 0.5]), far) == "open"
    for name in images.NETWORKS:
        held = parts()[f"images, {name}"]
        np.testing.assert_allclose(
            images.overlaps(np.array(held["U"])), held["overlaps"][0], atol=1e-3
        )
