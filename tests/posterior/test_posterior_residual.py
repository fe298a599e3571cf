"""Skips, several outputs, widths and variances of their own: the prior, and both samplers."""

import functools
import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnpaths import Network, Weights, empirical_order_parameter, posterior, theory
from attnpaths.posterior import densities
from attnpaths.posterior.draws import judged

# heads, skips, outputs, widths
DRAWN = [
    ((2,), (True,), None, (5, 5)),
    ((2,), (False,), 3, (6, 4)),
    ((1,), (True,), 3, (2, 2)),
    ((2, 1), (True, False), 1, (7, 7, 5)),
    ((1, 1), (True, True), 2, (6, 6, 6)),
    ((2, 2), (False, True), None, (4, 6, 6)),
    ((1, 2), (True, False), 2, (3, 3, 8)),
    ((1, 1, 1), (True, False, True), 2, (6, 6, 9, 9)),
    ((2, 1, 1), (False, True, True), None, (5, 8, 8, 8)),
    ((1, 1, 2), (True, False, False), 2, (7, 7, 9, 9)),
    ((2, 1, 1), (False, False, False), 3, (8, 6, 7, 9)),
]


def moments(U):
    """First and second moments of the entries of U `[draws, n, n]`, and their errors."""
    entries = np.asarray(U)[:, *np.tril_indices(U.shape[-1])]
    one, other = np.tril_indices(entries.shape[1])
    values = np.concatenate([entries, entries[:, one] * entries[:, other]], axis=1)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(len(values))


@pytest.mark.parametrize(("heads", "residual", "outputs", "widths"), DRAWN)
def test_the_prior_is_that_of_drawn_networks(heads, residual, outputs, widths):
    """All moments of Ũ up to the second."""
    count = 10_000
    variance = np.linspace(0.8, 1.3, len(heads) + 2)
    density = densities.OrderParameter(heads, widths, residual, outputs)
    z = density.starts(jax.random.key(0), count)[None]
    mean, error = moments(density.read(z, jnp.asarray(variance))[1][0])

    def drawn(key):
        setting = {"width": widths, "dim": 1, "heads": heads, "outputs": outputs}
        weights = Weights.prior(key, prior_variance=variance, **setting)
        return empirical_order_parameter(weights, residual)

    wanted, spread = moments(jax.jit(jax.vmap(drawn))(jax.random.split(jax.random.key(1), count)))
    assert np.all(np.abs(mean - wanted) <= 4 * np.hypot(error, spread))


HEADS, RESIDUAL, WIDTHS, VARIANCE = (2, 1), (True, False), (4, 4, 5), (1.2, 0.8, 1.1)


@functools.cache
def problem():
    rng = np.random.default_rng(4)
    network = Network([rng.normal(size=(2, 3, 3)), None], readout=-1, residual=RESIDUAL)
    x, new = rng.normal(size=(10, 4, 3)), rng.normal(size=(6, 4, 3))
    y = np.stack([np.sign(x[:, 0, 0]), x[:, 1, 1]], axis=1)
    return network, x, y, network.features(new)


@functools.cache
def sampled():
    network, x, y, _ = problem()
    setting = {"width": WIDTHS, "temperature": 0.5, "prior_variance": VARIANCE, "progress": False}
    order = posterior.sample_order_parameter(
        network.features(x), y, heads=HEADS, residual=RESIDUAL, seed=1, chains=2, **setting
    )
    with warnings.catch_warnings():
        # divergences, as for the paper's networks
        warnings.simplefilter("ignore", posterior.DoubtfulSample)
        weights = posterior.sample_weights(
            network, x, y, seed=2, chains=2, acceptance=0.95, **setting
        )
    assert all("divergent" in doubt for doubt in weights.doubts)
    return order, weights


def test_both_samplers_agree():
    order, weights = sampled()
    xi = problem()[-1]
    assert order.draws.shape == weights.draws.shape == (2, 1000, 6, 6)
    assert np.all(np.abs(order.U - weights.U) < 4 * np.hypot(order.mcse, weights.mcse))
    second = [np.square(np.asarray(r.draws) - np.asarray(order.U)) for r in (order, weights)]
    error = np.hypot(*(judged("mcse", square) for square in second))
    assert np.all(np.abs(second[0].mean((0, 1)) - second[1].mean((0, 1))) < 4 * error)
    # the predictor, from U alone and by the networks themselves
    found, outputs = order.predict(xi), np.asarray(weights.outputs(xi))
    error = np.hypot(found.mcse, judged("mcse", outputs))
    assert found.mean.shape == (6, 2)
    assert np.all(np.abs(found.mean - outputs.mean((0, 1))) < 4 * error)
    apart = outputs - np.asarray(found.mean)
    squares = apart[..., :, None] * apart[..., None, :]
    off = np.abs(found.covariance - squares.mean((0, 1)))
    assert np.all(off < 5 * judged("mcse", squares))
    np.testing.assert_allclose(found.variance, np.einsum("acc->ac", found.covariance), rtol=1e-10)
    labels = 2 * np.eye(2)[np.argmax(found.mean, axis=1)] - 1
    assert found.accuracy(labels) == 1 and float(found.accuracy_mcse(labels)) < 0.2


def test_completed_weights_follow_the_posterior_of_all_weights(tmp_path):
    order, weights = sampled()
    network, x, _, xi = problem()
    thin = order.thin(2)
    completed = posterior.complete_weights(thin, seed=3)
    assert completed.a.shape == (2, 500, 2, 5)
    U = jax.jit(jax.vmap(jax.vmap(lambda w: empirical_order_parameter(w, RESIDUAL))))(completed)
    np.testing.assert_allclose(U, thin.draws, rtol=1e-10, atol=1e-10)
    whole = thin.with_weights(completed)
    outputs = whole.outputs(xi)
    last = jax.tree.map(lambda w: w[1, -1], completed)
    wanted = network.apply(last, x)
    np.testing.assert_allclose(whole.outputs(network.features(x))[1, -1], wanted, atol=1e-10)
    statistics = {
        "output": (outputs, weights.outputs(xi)),
        "squared output": (np.square(outputs), np.square(weights.outputs(xi))),
    }
    for label, function in STATISTICS.items():
        statistics[label] = function(completed), function(weights.weights)
    for label, (a, b) in statistics.items():
        error = np.hypot(judged("mcse", a), judged("mcse", b))
        assert np.all(np.abs(a.mean((0, 1)) - b.mean((0, 1))) < 4 * error), label
    whole.save(tmp_path / "draws.npz")
    again = posterior.load(tmp_path / "draws.npz")
    np.testing.assert_array_equal(again.predict(xi).mean, whole.predict(xi).mean)
    assert repr(again) == repr(whole) and "outputs=2" in repr(again)
    assert again.to_arviz().observed_data["y"].dims == ("example", "output")
    assert "(0,1)→2" in again._repr_html_()


STATISTICS = {
    "size of V0": lambda w: np.square(w.V0).sum((-1, -2)),
    "size of V": lambda w: np.square(w.V[0]).sum((-1, -2, -3)),
    "size of a": lambda w: np.square(w.a).sum((-1, -2)),
    "two outputs": lambda w: (w.a[..., 0, :] * w.a[..., 1, :]).sum(-1),
    "entry of a": lambda w: np.square(w.a[..., 0, 0]),
    "V along a": lambda w: np.square(jnp.einsum("csi,csij->csj", w.a[:, :, 0], w.V[1][:, :, 0])),
    "V once": lambda w: jnp.einsum("csii->cs", w.V[0][:, :, 1]) ** 2,
    "V across V0": lambda w: np.square(w.V[0][:, :, 0] @ w.V0).sum((-1, -2)),
}


def test_the_saddle_point_is_approached_like_one_over_width():
    """k copies of a problem in dimensions of their own, at k times the width: S stays as it is."""
    rng = np.random.default_rng(0)
    xi, y = rng.normal(size=(6, 2, 2)), rng.normal(size=(6, 2))
    y += 2 * xi[:, :2, 0]

    def copies(k):
        many = np.zeros((6 * k, 2, 2 * k))
        for i in range(k):
            many[6 * i : 6 * (i + 1), :, 2 * i : 2 * (i + 1)] = xi * math.sqrt(k)
        return many, np.tile(y, (k, 1))

    distances, saddles = [], []
    for k in (1, 4):
        setting = {"heads": (1,), "residual": True, "width": 8 * k, "temperature": 0.3}
        saddle = theory.solve(*copies(k), **setting)
        draws = posterior.sample_order_parameter(
            *copies(k), seed=k, chains=2, progress=False, **setting
        )
        distances.append(np.linalg.norm(draws.U - saddle.U))
        saddles.append(saddle.U)
        assert distances[-1] > 3 * np.linalg.norm(draws.mcse) / 2
    np.testing.assert_allclose(*saddles, atol=1e-7)
    assert np.log(distances[0] / distances[1]) / np.log(4) == pytest.approx(1, abs=0.35)


@pytest.mark.usefixtures("as_users_see_it")
def test_widths_across_a_skip_are_refused():
    network, x, y, _ = problem()
    setting = {"width": (3, 4, 4), "temperature": 1.0, "seed": 0}
    with pytest.raises(ValueError, match="layer 1 adds its input to its output"):
        posterior.sample_weights(network, x, y, **setting)
    with pytest.raises(ValueError, match="layer 1 adds its input to its output"):
        posterior.sample_order_parameter(
            network.features(x), y, heads=HEADS, residual=RESIDUAL, **setting
        )
