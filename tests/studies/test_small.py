"""The small network of the derivation: its draws are those of the library's network."""

import numpy as np
import pytest

from attnpaths import Weights, effective_weights
from book.studies import small
from book.studies.small import D, H, N, Sampled


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_random_networks_are_networks(layers):
    outputs, effective = small.random_networks(np.random.default_rng(0), 2, layers)
    again = np.random.default_rng(0)  # from the readout down
    shapes = [(2, 1, N), *[(2, H, N, N)] * layers, (2, N, D)]
    a, *V, V0 = (small.normal(again, *shape) for shape in shapes)
    for i in range(2):
        below = tuple(layer[i] for layer in reversed(V))
        weights = Weights(V0[i], below, a[i, 0])
        np.testing.assert_allclose(outputs[i], small.network(layers).apply(weights, small.X))
        np.testing.assert_allclose(effective[i], effective_weights(weights))


def test_one_layer_adds_up_its_heads():
    rng = np.random.default_rng(1)
    V, below = rng.normal(size=(7, H, N, N)), rng.normal(size=(H * 3, N))
    found = small.next_layer(V, below)
    expected = sum(V[4, h] @ below[3 * h + 2] for h in range(H)) / np.sqrt(N * H)
    np.testing.assert_allclose(found[4, 2], expected)
    U = rng.normal(size=(3, 3))
    pairs = sum(U[p, q] * found[4, p] @ found[4, q] for p in range(3) for q in range(3))
    np.testing.assert_allclose(small.quadratic(U, found)[4], pairs)
    assert small.features().shape[-1] == D != N  # or a misprint could not be seen


def test_weights_count_as_repetitions_do():
    values, counts = np.array([1.0, 4.0, 2.0]), np.array([2, 1, 3])
    weighed, repeated = Sampled.of(values, counts / 7), np.repeat(values, counts)
    assert weighed.mean == pytest.approx(repeated.mean())
    alike = Sampled.of(values, np.full(3, 5.0))
    assert alike == pytest.approx(Sampled.of(values))
    assert Sampled.of(np.tile(values, 4)).error == pytest.approx(alike.error / 2)


def test_agreement_needs_precision_and_contradiction_distance():
    found = Sampled(1.0, 0.005)
    assert found.agrees(1.019) and not found.agrees(1.021)
    assert not Sampled(1.0, 0.1).agrees(1.0) and Sampled(1.0, 0.1).agrees(1.0, precision=0.2)
    assert found.contradicts(1.06) and not found.contradicts(1.04)
    assert found.distance(Sampled(1.025, 0.012)) == pytest.approx(0.025 / 0.013)
