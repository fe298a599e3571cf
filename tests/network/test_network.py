import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnpaths import Network, Weights, effective_weights, empirical_order_parameter
from attnpaths.network import attention


def make(head_counts, readout=-1, *, kinds="product", dim=5, width=7, seed=0):
    """A random network and weights for it; `kinds` is one for all layers, or one each."""
    rng = np.random.default_rng(seed)
    kinds = [kinds] * len(head_counts) if isinstance(kinds, str) else kinds
    heads = []
    for layer, (h, kind) in enumerate(zip(head_counts, kinds, strict=True)):
        if kind == "product":
            heads.append(rng.normal(size=(h, dim, dim)))
        else:
            heads.append(tuple(rng.normal(size=(2, h, 3 + layer, dim))))
    weights = Weights(
        V0=rng.normal(size=(width, dim)),
        V=tuple(rng.normal(size=(h, width, width)) for h in head_counts),
        a=rng.normal(size=width),
    )
    return Network(heads, readout), weights


def tokens(examples=6, length=4, dim=5, seed=1):
    return np.random.default_rng(seed).normal(size=(examples, length, dim))


def torch_forward(heads, readout, weights, x):
    """The paper's equations, sum by sum."""
    to_torch = functools.partial(jax.tree.map, lambda leaf: torch.tensor(np.asarray(leaf)))
    heads, V0, V, a = map(to_torch, (heads, weights.V0, weights.V, weights.a))
    width, dim = V0.shape
    outputs = []
    for sequence in torch.tensor(np.asarray(x)):
        length = len(sequence)
        state = [V0 @ token / math.sqrt(dim) for token in sequence]
        for layer, values in zip(heads, V, strict=True):
            new = [torch.zeros(width, dtype=torch.float64) for _ in range(length)]
            for h in range(len(values)):
                for t in range(length):
                    logits = []
                    for s in range(length):
                        if isinstance(layer, tuple):
                            w_k, w_q = layer[0][h], layer[1][h]
                            logit = (w_k @ sequence[s]) @ (w_q @ sequence[t])
                            logits.append(logit / math.sqrt(len(w_k)))
                        else:
                            logits.append(sequence[s] @ layer[h] @ sequence[t])
                    omega = torch.softmax(torch.stack(logits), dim=0)
                    for s in range(length):
                        new[t] += values[h] @ state[s] * omega[s]
            state = [token / math.sqrt(width * len(values)) for token in new]
        read = torch.stack(state).mean(dim=0) if readout == "mean" else state[readout]
        outputs.append(a @ read / math.sqrt(width))
    return torch.stack(outputs).numpy()


def close(actual, expected, tolerance=1e-12):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("readout", [-1, "mean"])
@pytest.mark.parametrize(
    ("head_counts", "kinds"),
    [
        ((3,), "pair"),
        ((2, 2), "product"),
        ((1, 3), ("pair", "product")),
        ((2, 3, 1), ("product", "pair", "pair")),
    ],
)
def test_both_forms_and_torch_agree(head_counts, kinds, readout):
    network, weights = make(head_counts, readout, kinds=kinds)
    x = tokens()
    layered, summed = network.apply(weights, x), network.apply_paths(weights, x)
    close(layered, summed)
    close(layered, torch_forward(network.heads, readout, weights, x))


@pytest.mark.parametrize("readout", [0, -3])
def test_any_token_can_be_read(readout):
    network, weights = make((2,), readout)
    x = tokens()
    expected = torch_forward(network.heads, readout, weights, x)
    close(network.apply(weights, x), expected)
    close(network.apply_paths(weights, x), expected)


def test_both_forms_agree_on_the_paper_task(paper):
    weights = Weights.prior(3, width=20, dim=231, heads=paper.network.head_counts)
    x = paper.train.x[:10]
    close(paper.network.apply(weights, x), paper.network.apply_paths(weights, x))


@pytest.mark.parametrize("block", [1, 3, 4, 10, 11, 50])
def test_blocks_of_examples_do_not_show(block):
    x = jnp.asarray(tokens(examples=11))
    numbers = attention._BLOCK // block
    mapped = attention.map_examples(lambda z: (z, z[0]), x, numbers)
    np.testing.assert_array_equal(mapped[0], x)
    np.testing.assert_array_equal(mapped[1], x[:, 0])


def test_attention_is_a_softmax_over_keys():
    network, _ = make((2, 3), kinds=("product", "pair"))
    x = tokens()
    first, second = network.attention(x)
    assert first.shape == (6, 2, 4, 4) and second.shape == (6, 3, 4, 4)
    for omega in (first, second):
        close(omega.sum(axis=-2), np.ones_like(omega.sum(axis=-2)))
    # the ratio of two keys' weights isolates the logits, key index first
    head = np.asarray(network.heads[0][1])
    ratio = np.log(first[2, 1, 3, 0] / first[2, 1, 1, 0])
    close(ratio, x[2, 3] @ head @ x[2, 0] - x[2, 1] @ head @ x[2, 0])


def test_a_pair_equals_its_product():
    network, _ = make((2, 2), kinds="pair")
    products = [
        np.einsum("hgd,hge->hde", w_k, w_q) / math.sqrt(w_k.shape[1]) for w_k, w_q in network.heads
    ]
    x = tokens()
    close(network.features(x), Network(products, -1).features(x))


@pytest.mark.parametrize("head_counts", [(3,), (2, 3), (3, 1, 2)])
def test_effective_weights_against_loops(head_counts):
    _, weights = make(head_counts)
    width = weights.a.shape[0]
    expected = []
    for path in itertools.product(*map(range, head_counts)):
        vector = np.asarray(weights.a)
        for layer in reversed(range(len(path))):
            vector = vector @ np.asarray(weights.V[layer][path[layer]])
        expected.append(vector / width ** (len(path) / 2))
    close(effective_weights(weights), np.stack(expected))
    close(empirical_order_parameter(weights), np.stack(expected) @ np.stack(expected).T / width)


def test_prior_order_parameter_averages_to_the_gp_limit():
    sigma2, draws = 1.3, 400

    def order_parameter(key):
        weights = Weights.prior(key, width=40, dim=2, heads=(2, 2), prior_variance=sigma2)
        return empirical_order_parameter(weights)

    samples = jax.jit(jax.vmap(order_parameter))(jax.random.split(jax.random.key(0), draws))
    samples = np.asarray(samples)
    error = samples.std(axis=0) / math.sqrt(draws)
    limit = sigma2**3 * np.eye(4)
    assert (np.abs(samples.mean(axis=0) - limit) < 4 * error).all()
    assert error.max() < 0.05


@settings(max_examples=10)
@given(
    head_counts=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    length=st.integers(1, 5),
    examples=st.integers(1, 4),
    dim=st.integers(1, 4),
    width=st.integers(1, 4),
    mean=st.booleans(),
    data=st.data(),
)
def test_shapes(head_counts, length, examples, dim, width, mean, data):
    readout = "mean" if mean else data.draw(st.integers(-length, length - 1))
    network, weights = make(tuple(head_counts), readout, dim=dim, width=width)
    x = tokens(examples, length, dim)
    n_paths = math.prod(head_counts)
    assert network.head_counts == tuple(head_counts) and network.dim == dim
    # traced, not run: compiling for each of these shapes would take minutes
    assert [omega.shape for omega in jax.eval_shape(network.attention, x)] == [
        (examples, h, length, length) for h in head_counts
    ]
    assert jax.eval_shape(network.features, x).shape == (examples, n_paths, dim)
    assert jax.eval_shape(effective_weights, weights).shape == (n_paths, width)
    assert jax.eval_shape(empirical_order_parameter, weights).shape == (n_paths, n_paths)
    assert jax.eval_shape(network.apply, weights, x).shape == (examples,)
    assert jax.eval_shape(network.apply_paths, weights, x).shape == (examples,)


def test_usable_under_jit_and_vmap():
    network, weights = make((2, 2), "mean", kinds=("pair", "product"))
    x = tokens()
    f = network.apply(weights, x)
    close(jax.jit(lambda n, w, x: n.apply_paths(w, x))(network, weights, x), f)
    many = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), weights)
    outputs = jax.vmap(lambda w: network.apply(w, x))(many)
    # V0, V of two layers and a: four factors
    close(outputs, np.stack([f, 16 * f]))


def test_gradients_of_both_forms():
    network, weights = make((2, 1), kinds=("pair", "product"))
    x = tokens()

    @functools.partial(jax.jit, static_argnums=0)
    @functools.partial(jax.value_and_grad, argnums=(1, 2, 3))
    def loss(form, network, weights, x):
        return jnp.sum(getattr(network, form)(weights, x) ** 2)

    layered, summed = (loss(form, network, weights, x) for form in ("apply", "apply_paths"))
    jax.tree.map(lambda a, b: close(a, b, 1e-10), layered, summed)
    _, (by_heads, by_weights, by_x) = layered

    def at(step):
        moved = Weights(weights.V0 + step[1], weights.V, weights.a)
        return loss("apply", jax.tree.map(lambda w: w + step[0], network), moved, x + step[2])[0]

    def slope(direction):
        step = 1e-6 * np.array(direction)
        return float(at(step) - at(-step)) / 2e-6

    total = sum(float(leaf.sum()) for leaf in jax.tree.leaves(by_heads))
    assert slope((1, 0, 0)) == pytest.approx(total, rel=1e-6)
    assert slope((0, 1, 0)) == pytest.approx(float(by_weights.V0.sum()), rel=1e-6)
    assert slope((0, 0, 1)) == pytest.approx(float(by_x.sum()), rel=1e-6)


def test_network_is_a_frozen_pytree_with_static_readout():
    network, weights = make((2, 1), 1, kinds=("pair", "product"))
    leaves, structure = jax.tree.flatten(network)
    assert len(leaves) == 3
    rebuilt = jax.tree.unflatten(structure, leaves)
    assert rebuilt.readout == 1 and rebuilt.layers == 2
    assert len(jax.tree.leaves(weights)) == 4
    with pytest.raises(AttributeError):
        network.readout = 0
    with pytest.raises(AttributeError):
        weights.a = 0


def test_lower_precision_is_promoted():
    network, weights = make((2,))
    x = tokens().astype(np.float32)
    single = Network([np.asarray(network.heads[0], dtype=np.float32)], np.int64(-1))
    assert single.heads[0].dtype == np.float64
    for result in (network.features(x), network.apply(weights, x), network.attention(x)[0]):
        assert result.dtype == np.float64
    close(network.features(x), network.features(x.astype(np.float64)))


def test_prior_is_reproducible():
    draw = {"width": 4, "dim": 3, "heads": (2,)}
    jax.tree.map(close, Weights.prior(5, **draw), Weights.prior(jax.random.key(5), **draw))
    first, second = Weights.prior(5, **draw), Weights.prior(6, **draw)
    assert not np.allclose(first.a, second.a)
    wide = Weights.prior(5, prior_variance=4.0, **draw)
    close(wide.V0, 2 * first.V0)


SQUARE = np.ones((2, 3, 3))
BAD_NETWORKS = {
    "heads must be a list": (5, 0),
    r"heads must be a list with one entry per layer; got \[\]": ([], 0),
    r"heads\[0\] must have 3 axes": (SQUARE, 0),
    r"heads\[1\] must be square": ([SQUARE, np.ones((2, 4, 3))], 0),
    "pair": ([np.ones((2, 4, 3)), np.ones((2, 4, 3))], 0),
    r"heads\[0\] needs W_K and W_Q of one shape": ([(SQUARE, np.ones((2, 4, 3)))], 0),
    r"heads must act on one token dimension.*\[3, 4\]": ([SQUARE, np.ones((2, 4, 4))], 0),
    r"heads\[0\] must be finite": ([SQUARE * np.nan], 0),
    r"heads\[0\] W_Q must be finite": ([(SQUARE, SQUARE * np.inf)], 0),
    r"heads\[0\] must not be empty": ([np.ones((0, 3, 3))], 0),
    r"heads\[0\] must hold real numbers": ([SQUARE * 1j], 0),
    "readout must be a token index or \"mean\"; got 'last'": ([SQUARE], "last"),
    "readout must be a token index.*1.5": ([SQUARE], 1.5),
    "readout must be a token index.*True": ([SQUARE], True),
    "readout must be a token index.*None": ([SQUARE], None),
}


@pytest.mark.parametrize("message", BAD_NETWORKS)
@pytest.mark.usefixtures("as_users_see_it")
def test_bad_network(message):
    with pytest.raises(ValueError, match=message):
        Network(*BAD_NETWORKS[message])


@pytest.mark.parametrize("method", ["attention", "features", "apply", "apply_paths"])
@pytest.mark.parametrize(
    ("x", "readout", "message"),
    [
        (np.ones((4, 5)), 0, "x must have 3 axes"),
        (np.ones((2, 4, 6)), 0, "x has tokens of dimension 6.*dimension 5"),
        (np.full((2, 4, 5), np.nan), 0, "x must be finite; 40 of its 40"),
        (np.ones((0, 4, 5)), 0, "x must not be empty"),
        (np.ones((2, 4, 5)), 4, "readout is token 4 but x has 4 tokens; choose -4 … 3"),
        (np.ones((2, 4, 5)), -5, "readout is token -5"),
        (np.array([["a"]]), 0, "x must hold real numbers"),
        ([[[1.0, 2.0], [1.0]]], 0, "x must be an array"),
        (np.full((2, 4, 5), 1e200), 0, "x and the heads are too large"),
    ],
)
@pytest.mark.usefixtures("as_users_see_it")
def test_bad_input(method, x, readout, message):
    network, weights = make((2, 1), readout)
    arguments = (weights, x) if method.startswith("apply") else (x,)
    with pytest.raises(ValueError, match=message):
        getattr(network, method)(*arguments)


def good_weights(**changes):
    parts = {"V0": np.ones((7, 5)), "V": [np.ones((2, 7, 7)), np.ones((1, 7, 7))], "a": np.ones(7)}
    return Weights(**(parts | changes))


@pytest.mark.parametrize("method", ["apply", "apply_paths", effective_weights])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), "weights must be Weights"),
        (good_weights(a=np.ones((1, 1, 7))), r"weights.a must have 1 axes"),
        (good_weights(a=np.ones(6)), r"weights.V\[1\] is for width 7 but weights.a is for width 6"),
        (good_weights(V0=np.ones((6, 5))), r"weights.V0 is for width 6"),
        (
            good_weights(V=[np.ones((2, 7, 6)), np.ones((1, 7, 7))]),
            r"weights.V0 is for width 7 but weights.V\[0\] is for width 6",
        ),
        (good_weights(V=np.ones((2, 7, 7))), r"weights.V\[0\] must have 3 axes"),
        (good_weights(V=()), "weights.V must be a list"),
        (good_weights(V0=np.full((7, 5), np.nan)), "weights.V0 must be finite"),
    ],
)
@pytest.mark.usefixtures("as_users_see_it")
def test_bad_weights(method, weights, message):
    network, _ = make((2, 1))
    with pytest.raises(ValueError, match=message):
        if callable(method):
            method(weights)
        else:
            getattr(network, method)(weights, tokens())


@pytest.mark.parametrize("method", ["apply", "apply_paths"])
def test_weights_of_another_network(method):
    network, _ = make((2, 1))
    _, wrong_heads = make((1, 2))
    _, wrong_dim = make((2, 1), dim=4)
    with pytest.raises(ValueError, match=r"weights.V has heads \(1, 2\).*\(2, 1\)"):
        getattr(network, method)(wrong_heads, tokens())
    with pytest.raises(ValueError, match=r"weights.V0 reads tokens of dimension 4"):
        getattr(network, method)(wrong_dim, tokens())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 0}, "width must be a whole number ≥ 1; got 0"),
        ({"width": 2.5}, "width must be a whole number"),
        ({"dim": -1}, "dim must be"),
        ({"heads": ()}, "heads must be a list"),
        ({"heads": (2, 0)}, r"heads\[1\] must be a whole number ≥ 1"),
        ({"heads": 2}, "heads must be a list"),
        ({"prior_variance": 0.0}, "prior_variance must be larger than 0"),
        ({"seed": -1}, "seed must be a whole number ≥ 0"),
        ({"seed": "x"}, "seed must be a whole number ≥ 0"),
    ],
)
@pytest.mark.usefixtures("as_users_see_it")
def test_bad_prior(changes, message):
    arguments = {"seed": 0, "width": 4, "dim": 3, "heads": (2,)} | changes
    with pytest.raises(ValueError, match=message):
        Weights.prior(arguments.pop("seed"), **arguments)
