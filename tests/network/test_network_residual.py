"""Skips, linear blocks and several outputs: layers and paths agree, and are what they say."""

import itertools
import math

import jax
import numpy as np
import pytest

from attnpaths import (
    Network,
    Weights,
    effective_weights,
    empirical_order_parameter,
    paths,
    pruning,
)
from attnpaths.network import path_outputs

DIM = 3
# heads (0 is a linear block), skips, widths, outputs, readout
CASES = [
    ((2,), True, 5, None, -1),
    ((2, 1), (True, False), (4, 4, 6), 1, "mean"),
    ((2, 2), (False, True), (6, 3, 3), 2, 0),
    ((1, 0, 2), True, 4, 3, -1),
    ((2, 0, 1), (True, False, True), (4, 4, 2, 2), None, "mean"),
    ((2, 2), False, (2, 5, 3), 3, 1),
]


def make(heads, residual, readout, seed=0):
    rng = np.random.default_rng(seed)
    layers = [rng.normal(size=(h, DIM, DIM)) if h else None for h in heads]
    return Network(layers, readout=readout, residual=residual), rng.normal(size=(6, 4, DIM))


def drawn(network, width, outputs, seed=1):
    return Weights.prior(seed, width=width, dim=DIM, heads=network.head_counts, outputs=outputs)


@pytest.mark.parametrize(("heads", "residual", "width", "outputs", "readout"), CASES)
def test_layers_and_paths_agree(heads, residual, width, outputs, readout):
    network, x = make(heads, residual, readout)
    weights = drawn(network, width, outputs)
    f = network.apply(weights, x)
    assert f.shape == ((6,) if outputs is None else (6, outputs)) and np.std(f) > 1e-3
    np.testing.assert_allclose(network.apply_paths(weights, x), f, rtol=0, atol=1e-12)
    parts = path_outputs(weights, network.features(x), network.residual)
    assert parts.shape == (6, network.paths, *f.shape[1:])
    np.testing.assert_allclose(parts.sum(axis=1), f, rtol=0, atol=1e-12)
    recorded = Network.from_attention(network.attention(x), x, readout, residual)
    np.testing.assert_allclose(recorded.apply_paths(weights), f, rtol=0, atol=1e-12)
    assert ("residual" in repr(network)) == ("residual" in repr(recorded)) == any(network.residual)
    moved = jax.jit(lambda network, x: network.features(x))(network, x)
    np.testing.assert_allclose(moved, network.features(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("heads", "residual", "width", "outputs", "readout"), CASES)
def test_paths_one_by_one(heads, residual, width, outputs, readout):
    """Features and effective weights by matrices along each path, in the order of `paths`."""
    network, x = make(heads, residual, readout)
    weights = drawn(network, width, outputs)
    omega = [np.asarray(layer) for layer in network.attention(x)]
    read = np.full(4, 0.25) if readout == "mean" else np.eye(4)[readout]
    names = paths.paths(network.head_counts, residual=network.residual)
    assert len(names) == network.paths
    features, rows = [], []
    for path in names:
        features.append([])
        for i in range(len(x)):
            along = x[i].T
            for layer, way in enumerate(path):
                along = along @ omega[layer][i, way - 1] if way else along
            features[-1].append(along @ read)
        row = np.atleast_2d(weights.a)
        for layer, way in reversed(list(enumerate(path))):
            v = np.asarray(weights.V[layer])
            row = row @ v[way - 1] / math.sqrt(v.shape[1]) if way else row
        rows.append(row)
    np.testing.assert_allclose(network.features(x), np.swapaxes(features, 0, 1), atol=1e-12)
    v_eff = np.concatenate(rows)
    np.testing.assert_allclose(effective_weights(weights, network.residual), v_eff, atol=1e-12)
    U = empirical_order_parameter(weights, residual)
    np.testing.assert_allclose(U, v_eff @ v_eff.T / v_eff.shape[1], atol=1e-12)


def test_a_linear_block_is_a_head_that_looks_at_itself():
    network, x = make((2, 0), (False, True), -1)
    plain = list(itertools.chain(network.attention(x)[:1], [np.tile(np.eye(4), (6, 1, 1, 1))]))
    np.testing.assert_array_equal(network.attention(x)[1], plain[1])
    wanted = Network.from_attention(plain, x, -1, (False, True)).features()
    np.testing.assert_allclose(network.features(x), wanted, atol=1e-13)


def test_labels_of_paths():
    assert paths.labels((1, 1), residual=(False, True)) == ["(1,0)", "(1,1)"]
    assert paths.labels((1,), outputs=2) == ["(1)→1", "(1)→2"]
    assert paths.paths((2, 1), 2, residual=True) == [(0,), (1,)]


def test_pruned_networks_keep_their_skips():
    network, x = make((3, 2), (True, False), -1)
    weights = drawn(network, 4, 2)
    smaller, fewer = pruning.prune(network, weights, [(1, 2)], rescale=False)
    assert smaller.residual == (True, False)
    parts = path_outputs(weights, network.features(x), network.residual)
    gone = [path[0] == 2 for path in paths.paths((3, 2), residual=network.residual)]
    wanted = parts[:, ~np.array(gone)].sum(axis=1)
    np.testing.assert_allclose(smaller.apply(fewer, x), wanted, atol=1e-12)


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda n, w, x: Network(n.heads, -1, residual=[True]), "one of them for each of 2 layers"),
        (lambda n, w, x: Network(n.heads, -1, residual="all"), "residual must be True, False"),
        (lambda n, w, x: Network(n.heads, -1, [1, 0]), r"residual\[0\] must be True or False"),
        (lambda n, w, x: Network([None, None], -1), "at least one layer of attention"),
        (lambda n, w, x: n.apply(drawn(n, (4, 5, 5), None), x), "layer 1 adds its input .* width"),
        (lambda n, w, x: effective_weights(drawn(n, (5, 4, 5), 2), (False, True)), "layer 2 adds"),
        (lambda n, w, x: path_outputs(w, n.features(x)), "weights are for 4 paths .* xi has 6"),
        (lambda n, w, x: drawn(n, 4, 0), "outputs must be a whole number ≥ 1; got 0"),
    ],
)
def test_what_does_not_fit_is_refused(wrong, message):
    network, x = make((2, 2), (True, False), -1)
    with pytest.raises(ValueError, match=message):
        wrong(network, drawn(network, 4, None), x)
