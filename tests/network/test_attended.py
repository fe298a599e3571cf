"""Attention that was exported gives what the network that made it gives."""

import numpy as np
import pytest
import torch

from attnpaths import Network, Weights, theory


def exported(readout, counts=(3, 2), examples=6):
    rng = np.random.default_rng(0)
    network = Network([rng.normal(size=(h, 5, 5)) for h in counts], readout=readout)
    x = rng.normal(size=(examples, 4, 5))
    return network, x, Network.from_attention(network.attention(x), x, readout)


@pytest.mark.parametrize("readout", [-1, 0, "mean"])
@pytest.mark.parametrize("counts", [(2,), (3, 2), (2, 1, 3)])
def test_features_are_those_of_the_network(readout, counts):
    network, x, attended = exported(readout, counts)
    np.testing.assert_allclose(attended.features(), network.features(x), rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(attended.features(x), attended.features())
    assert attended.head_counts == counts and attended.layers == len(counts)
    assert attended.dim == network.dim == 5


def test_outputs_are_those_of_the_network():
    network, x, attended = exported("mean")
    weights = Weights.prior(0, width=7, dim=5, heads=(3, 2))
    np.testing.assert_allclose(attended.apply_paths(weights), network.apply(weights, x), rtol=1e-10)


def test_the_theory_takes_it_as_it_is():
    _, x, attended = exported(-1)
    y = np.sign(x[:, 0, 0])
    heads = attended.head_counts
    solved = theory.solve(attended.features(), y, heads=heads, width=10, temperature=0.5)
    assert solved.converged and solved.U.shape == (6, 6)


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_tensors_are_taken_as_they_come(dtype):
    omega = torch.full((3, 2, 4, 4), 0.25, dtype=dtype, requires_grad=True)
    x = torch.ones(3, 4, 5, dtype=dtype, requires_grad=True)
    attended = Network.from_attention([omega], x, -1)
    np.testing.assert_array_equal(attended.features(x), np.ones((3, 2, 5)))


def change(**values):
    _, x, attended = exported(0)
    arguments = {"omega": attended.omega, "x": x, "readout": 0} | values
    return lambda: Network.from_attention(**arguments)


def inputs(change):
    _, x, attended = exported(0)
    return lambda: attended.features(change(x))


def wrong_weights():
    _, _, attended = exported(0)
    return attended.apply_paths(Weights.prior(0, width=7, dim=4, heads=(3, 2)))


MASKED = np.ma.array([0] * 6, mask=[1] + [0] * 5)
ONES = np.ones((6, 3, 4, 4))
NEGATIVE = np.tile(np.array([1.5, -0.5, 0.0, 0.0])[:, None], (6, 3, 1, 4))
QUERIES = np.tile(np.array([0.7, 0.1, 0.1, 0.1]), (6, 3, 4, 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (change(omega=[]), "omega must be a list with one entry per layer"),
        (change(omega=[ONES]), "must sum to 1 over keys, its second last axis; it is off by up"),
        (
            change(omega=[NEGATIVE]),
            "must not be negative, but goes down to -0.5; .*after the softmax",
        ),
        (change(omega=[QUERIES]), "swap its last two axes"),
        (change(omega=[ONES[:2]]), r"must be \[6, H, 4, 4\] for these x; got \(2, 3, 4, 4\)"),
        (change(readout=4), "readout is token 4 but x has 4 tokens"),
        (change(readout="last"), "readout must be a token index"),
        (change(readout=[[0], [0, 1]]), r"readout must be an array \[examples\]; it is ragged"),
        (change(readout=MASKED), "readout must not be masked, but 1 of its numbers are"),
        (inputs(lambda x: np.ma.array(x, mask=x > 1)), r"x must not be masked, but \d+ of its"),
        (inputs(lambda x: [x[0], x[0, 0]]), "x must be an array .*; it is ragged"),
        (inputs(lambda x: x[:2]), "x is not what this attention was computed for"),
        (inputs(lambda x: x + 1), "x is not what this attention was computed for"),
        (wrong_weights, "6 paths and tokens of dimension 4, but xi has 6 paths and dimension 5"),
    ],
)
@pytest.mark.usefixtures("as_users_see_it")
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
