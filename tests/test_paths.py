import itertools
import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnpaths import Network
from attnpaths.paths import labels, paths


def random_network(head_counts, readout=-1, dim=4, seed=0):
    rng = np.random.default_rng(seed)
    return Network([rng.normal(size=(h, dim, dim)) for h in head_counts], readout)


X = np.random.default_rng(1).normal(size=(5, 3, 4))


def by_loops(network, x):
    """ξ as the paper writes it: a sum over all tokens t₀ … t_{L−1}, path by path."""
    omegas = [np.asarray(omega) for omega in network.attention(x)]
    examples, length, dim = x.shape
    ends = range(length) if network.readout == "mean" else [network.readout % length]
    result = []
    for path in itertools.product(*map(range, network.head_counts)):
        xi = np.zeros((examples, dim))
        for walk in itertools.product(range(length), repeat=network.layers):
            for end in ends:
                stops = (*walk, end)
                weight = np.ones(examples)
                for layer, head in enumerate(path):
                    weight = weight * omegas[layer][:, head, stops[layer], stops[layer + 1]]
                xi += x[:, stops[0]] * weight[:, None] / len(ends)
        result.append(xi)
    return np.stack(result, axis=1)


def test_paths_are_in_row_major_order():
    assert paths((2, 2)) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert paths([2, 3]) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    assert paths((2, 1, 2), layer=2) == [(1, 1), (1, 2)]
    assert paths((2, 2), layer=3) == [()]
    assert labels((2, 2)) == ["(1,1)", "(1,2)", "(2,1)", "(2,2)"]
    assert labels((3,)) == ["(1)", "(2)", "(3)"]


@pytest.mark.parametrize(("head_counts", "readout"), [((2,), 1), ((3, 2), "mean"), ((2, 1, 3), -1)])
def test_attentioned_input_against_loops(head_counts, readout):
    network = random_network(head_counts, readout)
    xi = network.features(X)
    assert xi.shape == (5, math.prod(head_counts), 4)
    np.testing.assert_allclose(xi, by_loops(network, X), rtol=0, atol=1e-14)


def test_a_token_readout_forms_one_column_of_the_last_attention():
    length, dim = 11, 3

    def largest_operand(network):
        text = str(jax.make_jaxpr(network.features)(np.ones((1, length, dim))))
        return f"1,{network.head_counts[-1]},{length},{length}" in text.replace(" ", "")

    assert not largest_operand(random_network((1, 2), -1, dim))
    assert largest_operand(random_network((1, 2), "mean", dim))


@settings(max_examples=30)
@given(
    order1=st.permutations(range(2)),
    order2=st.permutations(range(3)),
    readout=st.sampled_from([0, "mean"]),
)
def test_relabelling_heads_permutes_the_paths(order1, order2, readout):
    network = random_network((2, 3), readout)
    relabelled = Network(
        [network.heads[0][np.array(order1)], network.heads[1][np.array(order2)]], readout
    )
    index = [paths((2, 3)).index((h1 + 1, h2 + 1)) for h1 in order1 for h2 in order2]
    np.testing.assert_allclose(
        relabelled.features(X), network.features(X)[:, np.array(index)], atol=1e-14
    )


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), readout=st.sampled_from([-1, "mean"]))
def test_rotating_tokens_and_heads_rotates_xi(seed, readout):
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    network = random_network((2, 2), readout, seed=seed)
    turned = Network([rotation @ np.asarray(w) @ rotation.T for w in network.heads], readout)
    np.testing.assert_allclose(
        turned.features(X @ rotation.T), network.features(X) @ rotation.T, atol=1e-12
    )


@settings(max_examples=20)
@given(order=st.permutations(range(3)), shift=st.floats(-5, 5))
def test_tokens_have_no_order_of_their_own(order, shift):
    network = random_network((2, 2), "mean")
    moved = network.features(X[:, np.array(order)])
    np.testing.assert_allclose(moved, network.features(X), atol=1e-13)
    # the weights of the tokens sum to one along each path, so a constant passes through
    constant = np.full((1, 3, 4), shift)
    np.testing.assert_allclose(network.features(constant), np.full((1, 4, 4), shift), atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((2, 0),), r"head_counts\[1\] must be a whole number ≥ 1; got 0"),
        (((),), "head_counts must be a list"),
        ((4,), "head_counts must be a list"),
        (((2.0,),), r"head_counts\[0\] must be a whole number"),
        (((2, 2), 0), "layer must be a whole number ≥ 1"),
        (((2, 2), 4), "layer must be 1 … 3 for 2 layers"),
    ],
)
@pytest.mark.usefixtures("as_users_see_it")
def test_bad_paths(arguments, message):
    for function in (paths, labels):
        with pytest.raises(ValueError, match=message):
            function(*arguments)
