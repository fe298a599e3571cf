"""Requests that no machine can serve, and networks without layers, are refused at once."""

import os
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnpaths import (
    Network,
    Problem,
    Weights,
    analysis,
    empirical_order_parameter,
    kernels,
    posterior,
    pruning,
    theory,
)
from attnpaths import paths as path_names
from attnpaths.posterior import prior
from attnpaths.training import load_weights

XI, Y = np.random.default_rng(0).normal(size=(6, 2, 3)), np.array([1.0, -1, 1, -1, 1, -1])


@pytest.fixture
def eight_gigabytes(monkeypatch):
    """A machine of which the size is known."""
    sizes, real = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**21}, os.sysconf
    monkeypatch.setattr(os, "sysconf", lambda name: sizes[name] if name in sizes else real(name))


@pytest.mark.usefixtures("eight_gigabytes")
@pytest.mark.parametrize("function", [path_names.paths, path_names.labels])
def test_paths(function):
    assert len(function((3,) * 10)) == 3**10
    message = r"1,000,000,000 paths .* would need [\d.]+ GiB .* the 8\.0 GiB .*; take fewer layers"
    with pytest.raises(ValueError, match=message):
        function((1000, 1000, 1000))
    assert len(function((1000, 1000, 1000), layer=4)) == 1


@pytest.mark.usefixtures("eight_gigabytes")
def test_names_of_many_heads():
    for call in (
        lambda heads: pruning.all_heads(heads),
        lambda heads: pruning.check_heads([(1, 1)], heads),
        lambda heads: pruning.random_order(heads, seed=0),
        lambda heads: pruning.one_by_one(lambda gone: {}, heads),
    ):
        message = r"1,000,000,000,002 heads of heads=.* would need [\d.,]+ GiB .*; take fewer heads"
        with pytest.raises(ValueError, match=message):
            call((10**12, 2))
    with pytest.raises(ValueError, match=r"make 1,000,000,000,001 paths, above most_paths=100"):
        analysis.Plan.of((2, 10**12))


@pytest.mark.usefixtures("eight_gigabytes")
def test_features_of_many_paths():
    network = Network([np.zeros((3, 50, 50))] * 10, readout=-1)
    x = np.zeros((5000, 2, 50))
    weights = Weights.prior(0, width=1, dim=50, heads=network.head_counts)
    recorded = Network.from_attention([np.full((5000, 3, 2, 2), 0.5)] * 10, x, readout=-1)
    message = (
        r"the features of 5,000 examples along 59,049 paths would need [\d.]+ GiB .*; take few"
    )
    for make in (
        lambda: network.features(x),
        lambda: network.apply_paths(weights, x),
        lambda: recorded.features(),
        lambda: recorded.apply_paths(weights),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    # layer by layer there are no paths
    assert network.apply(weights, x[:2]).shape == (2,)


@pytest.mark.usefixtures("eight_gigabytes")
def test_features_are_measured_with_what_making_them_takes():
    """Twice the result: 5 GiB of features fit on a machine of 8 GiB, but not their making."""
    network = Network([np.zeros((3, 4, 4))] * 10, readout=-1)
    examples = 5 * 2**30 // (8 * 3**10 * 4)
    with pytest.raises(ValueError, match=r"would need 10\.0 GiB of memory"):
        network.features(np.zeros((examples, 2, 4)))


@pytest.mark.usefixtures("eight_gigabytes")
def test_attention_between_many_tokens():
    """Of all examples where it is the result; elsewhere of one at a time."""
    two, x = np.zeros((2, 1, 1)), np.zeros((1, 20_000, 1))
    deep, mean = Network([two, two], readout=-1), Network([two], readout="mean")
    weights = Weights.prior(0, width=1, dim=1, heads=(2,))
    message = r"20,000 tokens of x, 2 matrices at once, would need 11\.9 GiB .*; take fewer tokens"
    for make in (
        lambda: mean.attention(x),
        lambda: mean.features(x),
        lambda: deep.features(x),
        lambda: mean.apply(weights, x),
        lambda: mean.apply_paths(weights, x),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    with pytest.raises(ValueError, match=r"100 tokens of x, 400,000 matrices at once"):
        deep.attention(np.zeros((100_000, 100, 1)))
    # a single layer that is read at one token needs no more than that token's attention
    assert Network([two], readout=-1).features(x).shape == (1, 2, 1)


@pytest.mark.usefixtures("eight_gigabytes")
def test_kernels_of_many_examples():
    many, one = np.ones((40_000, 2, 1)), np.eye(2)
    message = r"40,000 examples of xi_a and 40,000 of xi_b would need 11\.9 GiB .*; take fewer ex"
    solved = theory.gp_limit(XI[:, :, :1], Y, heads=(2,), temperature=1.0)
    for make in (lambda: kernels.total_kernel(one, many), lambda: solved.kernel(many)):
        with pytest.raises(ValueError, match=message):
            make()
    assert kernels.total_kernel(one, many, many[:3]).shape == (40_000, 3)


@pytest.mark.usefixtures("eight_gigabytes")
def test_theories_of_many_paths():
    """The features are small, the order parameter is not."""
    xi, y = np.ones((2, 3**10, 1)), np.array([1.0, -1.0])
    setting = {"heads": (3,) * 10, "temperature": 1.0}
    message = r"2 examples and 59049 paths would need [\d.]+ GiB .*; use fewer examples or paths"
    for call in (
        lambda: theory.solve(xi, y, width=10, **setting),
        lambda: theory.gp_limit(xi, y, **setting),
        lambda: posterior.sample_order_parameter(xi, y, width=10, seed=0, **setting),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("width", [10**6, (10**6, 10**6, 3), 10**9])
def test_weights_of_a_huge_network(width):
    with pytest.raises(
        ValueError, match=r"weights of width .* GiB of memory.*; take a smaller wid"
    ):
        Weights.prior(0, width=width, dim=3, heads=(2, 2))


def test_order_parameter_of_many_paths():
    weights = Weights(np.ones((1, 2)), [np.ones((3, 1, 1))] * 13, np.ones(1))
    with pytest.raises(ValueError, match=r"order parameter of 1,594,323 paths would need .* GiB"):
        empirical_order_parameter(weights)


def test_prior_draws_of_usual_widths_are_what_they_were():
    found = prior.draw(jax.random.key(3), (2, 2), (10, 10, 10))[jnp.array([0, 1, -1])]
    wanted = [-0.6493179681303035, -0.9996786287662006, 1.081537102466934]
    np.testing.assert_allclose(found, wanted, rtol=1e-10)
    found = prior.draw(jax.random.key(3), (2,), (10_000, 7))[jnp.array([0, 1, -1])]
    wanted = [-1.1090444578745873, 0.45031595068114577, -1.0076105488953095]
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


@pytest.mark.parametrize("widths", [(10**9,) * 3, (3, 10_001, 5)])
def test_prior_draws_of_any_width(widths):
    """Moments of the order parameter: E U⁽¹⁾ = I, and E tr(B Bᵀ) = rows of each factor."""
    count = 20_000

    @jax.jit
    def factors(keys):
        draw = jax.vmap(lambda key: prior.draw(key, (2, 2), widths))(keys)
        return draw, jax.vmap(lambda z: prior.factors(z, (2, 2), widths))(draw)

    z, B = factors(jax.random.split(jax.random.key(0), count))
    if min(widths) > 10**6:
        # coordinates are such that wide networks have N(0, 1) priors
        np.testing.assert_allclose(z.mean(axis=0), 0, atol=5 / count**0.5)
        np.testing.assert_allclose(z.std(axis=0), 1, atol=5 / count**0.5)
    for b in B:
        mean = jnp.einsum("kij,klj->il", b, b) / count
        np.testing.assert_allclose(mean, np.eye(len(mean)), atol=0.05)


@pytest.mark.filterwarnings("ignore::attnpaths.posterior.DoubtfulSample")
def test_the_order_parameter_of_a_huge_network_is_sampled():
    found = posterior.sample_order_parameter(
        XI,
        Y,
        heads=(2,),
        width=10**9,
        temperature=0.5,
        seed=0,
        chains=2,
        warmup=50,
        samples=50,
        progress=False,
    )
    # as wide as that, data cannot move it: the Gaussian process
    np.testing.assert_allclose(found.draws, np.broadcast_to(np.eye(2), (2, 50, 2, 2)), atol=5e-4)
    assert float(np.std(found.draws)) > 0


@pytest.mark.parametrize("load", [theory.load, posterior.load, load_weights])
def test_arrays_that_are_larger_than_they_say(load, tmp_path):
    """Refused before a byte is unpacked."""
    path = tmp_path / "it.npz"
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("facts.npy", "w") as file:
            np.save(file, np.ones(3))
        archive.getinfo("facts.npy").file_size = 2**30
    wanted = (
        r"it\.npz .*facts\.npy unpacks to 1,073,741,824 bytes, not to the 24 of an array \(3,\)"
    )
    with pytest.raises(ValueError, match=wanted):
        load(path)


SETTING = {"heads": (), "temperature": 1.0}
NO_LAYERS = {
    "Network": lambda: Network([], readout=0),
    "Network.from_attention": lambda: Network.from_attention([], np.ones((2, 3, 4)), readout=0),
    "Weights.prior": lambda: Weights.prior(0, width=3, dim=2, heads=()),
    "Weights": lambda: empirical_order_parameter(Weights(np.ones((2, 3)), (), np.ones(2))),
    "Problem.of": lambda: Problem.of(XI[:, :1], Y, **SETTING),
    "solve": lambda: theory.solve(XI[:, :1], Y, width=10, **SETTING),
    "gp_limit": lambda: theory.gp_limit(XI[:, :1], Y, **SETTING),
    "sweep": lambda: theory.sweep(XI[:, :1], Y, heads=(), widths=[10], temperatures=[1.0]),
    "sample_order_parameter": lambda: posterior.sample_order_parameter(
        XI[:, :1], Y, width=10, seed=0, **SETTING
    ),
    "paths": lambda: path_names.paths(()),
    "labels": lambda: path_names.labels([]),
    "all_heads": lambda: pruning.all_heads(()),
    "head_scores": lambda: pruning.head_scores([[1.0]], ()),
    "random_order": lambda: pruning.random_order([], seed=0),
    "curve": lambda: pruning.curve([[1.0]], [1], heads=(), order=[]),
    "each_head": lambda: pruning.each_head([[1.0]], [1], heads=()),
}


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize("call", NO_LAYERS)
def test_no_layers(call):
    message = r"(heads|head_counts|omega|weights\.V) must be a list with one entry per layer; got"
    with pytest.raises(ValueError, match=message):
        NO_LAYERS[call]()
