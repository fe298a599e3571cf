"""Layers of different widths: the prior, completed weights and both samplers, as for one width."""

import functools
import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnpaths import Network, Weights, empirical_order_parameter, posterior
from attnpaths.posterior import densities
from attnpaths.posterior.draws import judged

# heads and (N_1, …, N_{L+1}): a narrow entrance, a narrow middle, a narrow readout
CASES = [
    ((2, 2), (2, 7, 5)),
    ((2, 2), (9, 1, 4)),
    ((2, 2), (5, 8, 1)),
    ((3, 1), (2, 6, 3)),
    ((3, 1), (8, 2, 5)),
]


def moments(U):
    """First and second moments of the entries of U `[draws, Π, Π]`, and their errors."""
    first, second = np.tril_indices(U.shape[-1])
    entries = np.asarray(U)[:, first, second]
    one, other = np.tril_indices(entries.shape[1])
    values = np.concatenate([entries, entries[:, one] * entries[:, other]], axis=1)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(len(values))


@pytest.mark.parametrize(("heads", "widths"), CASES)
def test_the_prior_is_that_of_drawn_networks(heads, widths):
    count, variance = 20_000, 1.3
    density = densities.OrderParameter(heads, widths)
    z = density.starts(jax.random.key(0), count)[None]
    mean, error = moments(density.read(z, jnp.array(variance))[1][0])

    def drawn(key):
        setting = {"width": widths, "dim": 1, "heads": heads, "prior_variance": variance}
        return empirical_order_parameter(Weights.prior(key, **setting))

    networks = jax.jit(jax.vmap(drawn))(jax.random.split(jax.random.key(1), count))
    wanted, spread = moments(networks)
    assert np.all(np.abs(mean - wanted) < 4.5 * np.hypot(error, spread))
    # known: E[U] = σ^{2(L+1)} I and E[U₁₁²] = σ^{4(L+1)} ∏ (1 + 2/N_ℓ)
    paths = networks.shape[-1]
    scale = variance ** (len(heads) + 1)
    exact = scale * np.eye(paths)[np.tril_indices(paths)]
    entries = len(exact)
    assert np.all(np.abs(mean[:entries] - exact) < 4.5 * error[:entries])
    square = scale**2 * math.prod(1 + 2 / n for n in widths)
    assert abs(mean[entries] - square) < 4.5 * error[entries]


def test_the_order_of_the_widths_matters():
    # the same widths in another order are another prior: U₁₁U₂₂ of two heads in the first layer
    def product(widths):
        density = densities.OrderParameter((2, 1), widths)
        U = density.read(density.starts(jax.random.key(0), 20_000)[None], jnp.ones(()))[1][0]
        values = np.asarray(U[:, 0, 0] * U[:, 1, 1])
        return values.mean(), values.std() / math.sqrt(len(values))

    (wide, error), (narrow, spread) = product((9, 2, 2)), product((2, 2, 9))
    # they share the levels above: E = (1 + 2/N_2)(1 + 2/N_3)
    assert abs(wide - 4) < 4.5 * error
    assert abs(narrow - 2 * 11 / 9) < 4.5 * spread


@functools.cache
def problem(heads=(2, 2), dim=3):
    rng = np.random.default_rng(4)
    network = Network([rng.normal(size=(h, dim, dim)) for h in heads], readout=-1)
    x = rng.normal(size=(12, 4, dim))
    return network, x, np.sign(x[:, 0, 0] + 0.3 * x[:, 1, 1])


@pytest.mark.parametrize(("heads", "widths"), CASES)
def test_layers_and_paths_agree(heads, widths):
    network, x, _ = problem(heads)
    weights = Weights.prior(0, width=widths, dim=3, heads=heads)
    assert weights.widths == widths
    f = network.apply(weights, x)
    np.testing.assert_allclose(network.apply_paths(weights, x), f, rtol=0, atol=1e-12)
    assert np.std(f) > 1e-3


@pytest.mark.parametrize(("heads", "widths"), CASES[::4])
def test_completed_weights_have_their_order_parameter(heads, widths):
    network, x, y = problem(heads)
    with warnings.catch_warnings():
        # few draws do, since each is completed exactly
        warnings.simplefilter("ignore", posterior.DoubtfulSample)
        draws = posterior.sample_order_parameter(
            network.features(x),
            y,
            heads=heads,
            width=widths,
            temperature=0.5,
            seed=0,
            chains=2,
            samples=10,
            progress=False,
        )
    assert draws.width == draws.widths == widths
    weights = posterior.complete_weights(draws, seed=1)
    n_1, n_2, n_3 = widths
    assert weights.V0.shape == (2, 10, n_1, 3)
    assert weights.V[0].shape == (2, 10, heads[0], n_2, n_1)
    assert weights.V[1].shape == (2, 10, heads[1], n_3, n_2)
    assert weights.a.shape == (2, 10, n_3)
    U = jax.vmap(jax.vmap(empirical_order_parameter))(weights)
    np.testing.assert_allclose(U, draws.draws, rtol=1e-10, atol=1e-10)
    # and are networks: their outputs are what the layers say
    outputs = draws.with_weights(weights).outputs(network.features(x))
    last = jax.tree.map(lambda w: w[1, -1], weights)
    np.testing.assert_allclose(outputs[1, -1], network.apply(last, x), rtol=0, atol=1e-12)


def test_both_samplers_agree():
    (network, x, y), widths = problem(), (3, 6, 4)
    setting = {"width": widths, "temperature": 0.5, "chains": 2, "progress": False}
    order = posterior.sample_order_parameter(
        network.features(x), y, heads=(2, 2), seed=1, **setting
    )
    with warnings.catch_warnings():
        # divergences, as for one width
        warnings.simplefilter("ignore", posterior.DoubtfulSample)
        weights = posterior.sample_weights(network, x, y, seed=2, acceptance=0.95, **setting)
    assert all("divergent" in doubt for doubt in weights.doubts)
    assert weights.weights.widths == widths
    assert np.all(np.abs(order.U - weights.U) < 4 * np.hypot(order.mcse, weights.mcse))
    xi = network.features(np.random.default_rng(5).normal(size=(8, 4, 3)))
    first, outputs = order.predict(xi), np.asarray(weights.outputs(xi))
    error = np.hypot(first.mcse, judged("mcse", outputs))
    assert np.all(np.abs(first.mean - outputs.mean((0, 1))) < 4 * error)


@pytest.mark.usefixtures("as_users_see_it")
def test_widths_that_do_not_fit_are_refused():
    network, x, y = problem()
    setting = {"temperature": 0.5, "seed": 0}
    for width, words in [
        ((3, 4), r"width must be a single number at least 1, or 3 of them for 2 layers"),
        ((3, 4, 5, 6), "or 3 of them"),
        ((3, 4, 0), r"width\[2\] must be a whole number ≥ 1; got 0"),
        ((3, 4.5, 5), r"width\[1\] must be a whole number"),
    ]:
        with pytest.raises(ValueError, match=words):
            posterior.sample_order_parameter(
                network.features(x), y, heads=(2, 2), width=width, **setting
            )
        with pytest.raises(ValueError, match=words):
            posterior.sample_weights(network, x, y, width=width, **setting)
