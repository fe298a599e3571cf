"""Sampling all weights and sampling the order parameter alone give one answer."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnpaths import Network, empirical_order_parameter, posterior
from attnpaths.posterior.draws import judged

# heads, width and prior variance
CASES = {
    "as wide as paths": ((2, 2), 4, 1.0),
    "narrower than paths": ((2, 2), 3, 1.0),
    "wider": ((2, 2), 10, 0.8),
    "much wider": ((2, 2), 20, 1.2),
    "one layer": ((2,), 6, 1.2),
    "unequal heads, narrow": ((3, 2), 3, 1.0),
}


@functools.cache
def sampled(name):
    heads, width, variance = CASES[name]
    rng = np.random.default_rng(len(name))
    network = Network([rng.normal(size=(h, 3, 3)) for h in heads], readout=-1)
    x = rng.normal(size=(12, 4, 3))
    y = np.sign(x[:, 0, 0] + 0.3 * x[:, 1, 1])
    setting = {"width": width, "temperature": 0.5, "prior_variance": variance, "progress": False}
    xi = network.features(x)
    order = posterior.sample_order_parameter(xi, y, heads=heads, seed=1, **setting)
    with warnings.catch_warnings():
        # products of few weights have sharp valleys, where NUTS reports divergences; none of
        # the other diagnostics may complain
        warnings.simplefilter("ignore", posterior.DoubtfulSample)
        weights = posterior.sample_weights(network, x, y, seed=2, acceptance=0.95, **setting)
    assert all("divergent" in doubt for doubt in weights.doubts)
    assert weights.divergences.sum() < 0.01 * weights.draws.shape[0] * weights.draws.shape[1]
    return order, weights, network.features(rng.normal(size=(8, 4, 3)))


@pytest.mark.parametrize("name", CASES)
def test_both_samplers_agree_on_the_order_parameter(name):
    order, weights, _ = sampled(name)
    assert np.all(np.abs(order.U - weights.U) < 4 * np.hypot(order.mcse, weights.mcse))
    # and on how it fluctuates
    second = [
        np.square(np.asarray(result.draws) - np.asarray(order.U)) for result in (order, weights)
    ]
    error = np.hypot(*(judged("mcse", square) for square in second))
    assert np.all(np.abs(second[0].mean((0, 1)) - second[1].mean((0, 1))) < 4 * error)


@pytest.mark.parametrize("name", CASES)
def test_both_samplers_agree_on_the_predictor(name):
    order, weights, xi = sampled(name)
    first, second = order.predict(xi), weights.predict(xi)
    assert np.all(np.abs(first.mean - second.mean) < 4 * np.hypot(first.mcse, second.mcse))
    # the sampled V⁰ has not entered so far: the outputs of the networks themselves
    outputs = np.asarray(weights.outputs(xi))
    error = np.hypot(first.mcse, judged("mcse", outputs))
    assert np.all(np.abs(first.mean - outputs.mean((0, 1))) < 4 * error)
    squares = np.square(outputs - np.asarray(first.mean))
    spread = np.abs(first.variance - squares.mean((0, 1)))
    # variances of the two predictions differ by their own Monte Carlo errors, the second's larger
    assert np.all(spread < 5 * judged("mcse", squares))


@pytest.mark.parametrize("name", CASES)
def test_completed_weights_follow_the_posterior_of_all_weights(name):
    order, weights, xi = sampled(name)
    thin = order.thin(2)
    completed = posterior.complete_weights(thin, seed=3)
    U = jax.jit(jax.vmap(jax.vmap(empirical_order_parameter)))(completed)
    np.testing.assert_allclose(U, thin.draws, rtol=1e-10, atol=1e-10)
    outputs = thin.with_weights(completed).outputs(xi)
    statistics = {
        "output": (outputs, weights.outputs(xi)),
        "squared output": (np.square(outputs), np.square(weights.outputs(xi))),
    }
    for label, function in STATISTICS.items():
        statistics[label] = function(completed), function(weights.weights)
    for label, (a, b) in statistics.items():
        error = np.hypot(judged("mcse", a), judged("mcse", b))
        assert np.all(np.abs(a.mean((0, 1)) - b.mean((0, 1))) < 4 * error), label


STATISTICS = {
    "size of V0": lambda w: np.square(w.V0).sum((-1, -2)),
    "size of V": lambda w: np.square(w.V[0]).sum((-1, -2, -3)),
    "size of a": lambda w: np.square(w.a).sum(-1),
    "entry of a": lambda w: np.square(w.a[..., 0]),
    "V twice": lambda w: jnp.einsum("csij,csji->cs", w.V[-1][:, :, 0], w.V[-1][:, :, -1]),
    "V along a": lambda w: np.square(jnp.einsum("csi,csij->csj", w.a, w.V[-1][:, :, 0])).sum(-1),
    "V across V0": lambda w: np.square(w.V[0][:, :, 0] @ w.V0).sum((-1, -2)),
}
