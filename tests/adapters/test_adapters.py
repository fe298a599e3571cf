"""Networks of PyTorch and what the library makes of them: the same attention, the same outputs."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from attnpaths import Network, pruning
from attnpaths.adapters import (
    Layer,
    gated_heads,
    keys_first,
    network_from_torch,
    record_attention,
    weights_from_torch,
    without_heads,
)
from attnpaths.training.model import Model

EXAMPLES, TOKENS, DIM = 5, 4, 6


class Stack(nn.Module):
    """The paper's network, out of PyTorch's own attention: all layers attend to the tokens."""

    def __init__(self, heads=(2, 3), residual=False, readout=-1, **options):
        super().__init__()
        torch.manual_seed(0)
        options = {"bias": False, "batch_first": True} | options
        self.embed = nn.Linear(DIM, DIM, bias=False)
        self.layers = nn.ModuleList(nn.MultiheadAttention(DIM, h, **options) for h in heads)
        self.read = nn.Linear(DIM, 1, bias=False)
        self.residual, self.readout = residual, readout
        self.double()

    def forward(self, x):
        state = self.embed(x)
        for layer in self.layers:
            state = layer(x, x, state)[0] + (state if self.residual else 0)
        tokens_first = state if self.layers[0].batch_first else state.transpose(0, 1)
        picked = tokens_first.mean(1) if self.readout == "mean" else tokens_first[:, self.readout]
        return self.read(picked)[:, 0]


def tokens(seed=1, dim=DIM):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(EXAMPLES, TOKENS, dim, generator=generator, dtype=torch.float64)


def randomise(*biases):
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for bias in biases:
            bias.copy_(torch.randn(bias.shape, generator=generator))


@pytest.mark.parametrize("readout", [-1, 1, "mean"])
@pytest.mark.parametrize("batch_first", [True, False])
def test_a_stack_of_multihead_attention_is_a_network(readout, batch_first):
    stack, x = Stack(readout=readout, batch_first=batch_first), tokens()
    network = network_from_torch(stack, readout)
    weights = weights_from_torch(stack, stack.embed, stack.read)
    seen = record_attention(stack, x if batch_first else x.transpose(0, 1))
    np.testing.assert_allclose(network.apply(weights, x.numpy()), seen.output, atol=1e-13)
    for ours, theirs in zip(network.attention(x.numpy()), seen.omega, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-14)
    np.testing.assert_array_equal(seen.x, x)


@pytest.mark.parametrize("readout", [0, "mean"])
def test_features_from_recorded_attention_are_those_from_the_weights(readout):
    stack, x = Stack((3, 2, 2), readout=readout), tokens()
    seen = record_attention(stack, x)
    exported = Network.from_attention(seen.omega, seen.x, readout)
    network = network_from_torch(stack, readout)
    assert exported.head_counts == network.head_counts == (3, 2, 2)
    np.testing.assert_allclose(exported.features(), network.features(x.numpy()), atol=1e-12)
    weights = weights_from_torch(stack, stack.embed, stack.read)
    np.testing.assert_allclose(exported.apply_paths(weights), seen.output, atol=1e-12)


def test_values_of_another_dimension_leave_the_heads_as_they_are():
    layer = nn.MultiheadAttention(DIM, 2, vdim=3, bias=False, batch_first=True).double()
    assert layer.in_proj_weight is None
    x = tokens()
    _, attention = layer(x, x, x[:, :, :3], average_attn_weights=False)
    ours = network_from_torch(layer, -1).attention(x.numpy())
    np.testing.assert_allclose(ours[0], keys_first([attention])[0], atol=1e-14)
    with pytest.raises(ValueError, match=r"values of layer 1 .* form.*: got shape \(2, 6, 3\)"):
        weights_from_torch(layer, torch.eye(DIM), torch.ones(DIM))


def test_key_biases_cancel_and_query_biases_need_a_constant():
    stack, x = Stack((2,), bias=True), tokens()
    queries, keys, _ = stack.layers[0].in_proj_bias.chunk(3)
    randomise(keys)
    seen = record_attention(stack, x)
    network = network_from_torch(stack, -1)
    np.testing.assert_allclose(network.attention(x.numpy())[0], seen.omega[0], atol=1e-14)

    randomise(queries)
    seen = record_attention(stack, x)
    off = np.abs(network.attention(x.numpy())[0] - seen.omega[0]).max()
    assert off > 0.01
    with pytest.raises(ValueError, match="layer 1 has a query bias"):
        network_from_torch(stack, -1)
    network = network_from_torch(stack, -1, constant=True)
    longer = np.pad(x.numpy(), [(0, 0), (0, 0), (0, 1)], constant_values=1)
    np.testing.assert_allclose(network.attention(longer)[0], seen.omega[0], atol=1e-14)
    # what a path sees of the tokens is the same, and it sees the constant as it is
    exported = Network.from_attention(seen.omega, seen.x, -1).features()
    np.testing.assert_allclose(network.features(longer)[:, :, :DIM], exported, atol=1e-12)
    np.testing.assert_allclose(network.features(longer)[:, :, DIM], 1, atol=1e-12)


def test_value_biases_are_not_of_the_papers_form():
    stack = Stack((2, 2), bias=True)
    randomise(stack.layers[1].out_proj.bias)
    assert network_from_torch(stack, -1).head_counts == (2, 2)
    with pytest.raises(ValueError, match=r"values of layer 2 .* they have a bias"):
        weights_from_torch(stack, stack.embed, stack.read)


def test_layers_of_ones_own_module():
    """The library's own PyTorch model, exported by itself and by the adapter."""
    model = Model(layers=2, heads=3, key_dim=2, width=5, seed=0, dim=DIM)
    layers = [
        Layer.from_linear(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1) / math.sqrt(3), heads=3)
        for q, k, v in zip(model.queries, model.keys, model.V, strict=True)
    ]
    network, weights = model.export()
    ours, found = network_from_torch(layers, "mean"), weights_from_torch(layers, model.V0, model.a)
    x = tokens().numpy()
    np.testing.assert_allclose(ours.features(x), network.features(x), atol=1e-13)
    np.testing.assert_allclose(ours.apply(found, x), network.apply(weights, x), rtol=1e-6)


def test_another_scale_of_the_logits():
    torch.manual_seed(0)
    query, key = nn.Linear(DIM, 4).double(), nn.Linear(DIM, 4, bias=False).double()
    x = tokens()
    q, k = query(x).unflatten(2, (2, 2)), key(x).unflatten(2, (2, 2))
    logits = 0.3 * torch.einsum("pthg,pshg->phst", q, k)
    layer = Layer.from_linear(query, key, heads=2, scale=0.3)
    longer = np.pad(x.numpy(), [(0, 0), (0, 0), (0, 1)], constant_values=1)
    ours = network_from_torch([layer], 0, constant=True).attention(longer)
    np.testing.assert_allclose(ours[0], torch.softmax(logits, 2).detach().numpy(), atol=1e-14)


def encoder(**options):
    torch.manual_seed(0)
    options = {"dropout": 0.1, "batch_first": True} | options
    layer = nn.TransformerEncoderLayer(DIM, 2, 8, **options)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).double()


def test_recording_changes_nothing():
    module, x = encoder().eval(), tokens()
    with torch.no_grad():
        before = module(x)
    seen = record_attention(module, x)
    torch.testing.assert_close(seen.output, before)
    assert [w.shape for w in seen.omega] == [(EXAMPLES, 2, TOKENS, TOKENS)] * 2
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in module.modules())
    with pytest.raises(TypeError):
        record_attention(module, x, {"no_such_option": 1})
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in module.modules())
    assert torch.backends.mha.get_fastpath_enabled()


def test_masks_are_recorded_as_attention():
    module, x = encoder().eval(), tokens()
    later = torch.triu(torch.ones(TOKENS, TOKENS, dtype=torch.bool), 1)
    missing = torch.zeros(EXAMPLES, TOKENS, dtype=torch.bool)
    missing[:, -1] = True
    padding = {"src_key_padding_mask": missing}
    causal = record_attention(module, x, {"mask": later}).omega
    padded = record_attention(module, (x, None), padding).omega
    for layer in causal:
        np.testing.assert_array_equal(np.tril(layer, -1), 0)
    for layer in padded:
        np.testing.assert_array_equal(layer[:, :, -1], 0)
    for layer in (*causal, *padded):
        np.testing.assert_allclose(layer.sum(axis=2), 1, atol=1e-12)


class InOrder(nn.Module):
    """Attention layers that are called in another order than they are registered in."""

    def __init__(self, *order):
        super().__init__()
        self.late, self.early = (nn.MultiheadAttention(DIM, h).double() for h in (3, 2))
        self.order = order

    def forward(self, x):
        for name in self.order:
            x = x + getattr(self, name)(x, x, x)[0]
        return x


@pytest.mark.parametrize("order", [("early", "late"), ("late", "early", "late")])
def test_layers_are_numbered_as_they_are_called(order):
    module, x = InOrder(*order), tokens().transpose(0, 1)
    before = record_attention(module, x)
    assert [layer.shape[1] for layer in before.omega] == [2 + (name == "late") for name in order]
    np.testing.assert_array_equal(before.x, tokens())
    # a head changes what comes after its own layer, also where a layer is used twice
    for layer in range(1, len(order) + 1):
        with without_heads(module, [(layer, 1)]):
            after = record_attention(module, x)
        same = [np.array_equal(a, b) for a, b in zip(after.omega, before.omega, strict=True)]
        assert same == [number <= layer for number in range(1, len(order) + 1)]


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((), {"need_weights": False}),
        ((), {"average_attn_weights": False}),
        ((None, False), {}),
        ((None, True, None, False), {}),
    ],
)
def test_a_module_gets_the_weights_that_it_asks_for(args, kwargs):
    torch.manual_seed(0)
    layer, x = nn.MultiheadAttention(DIM, 2, batch_first=True).double().eval(), tokens()
    late = []

    def hook(module, inputs, output):
        assert inputs[0] is x
        late.append(output[1])

    layer.register_forward_hook(hook)
    with torch.no_grad():
        result, weights = layer(x, x, x, *args, **kwargs)
    seen = record_attention(layer, (x, x, x, *args), kwargs)
    torch.testing.assert_close(seen.output[0], result)
    assert seen.omega[0].shape == (EXAMPLES, 2, TOKENS, TOKENS)
    # hooks of its own see the same
    for found in (seen.output[1], late[1]):
        assert (found is None) == (weights is None)
        if weights is not None:
            torch.testing.assert_close(found, weights)


def test_a_layer_may_be_given_as_lists_and_tensors():
    query, key = torch.ones(2, 3, 4, requires_grad=True), np.ones((2, 3, 4)).tolist()
    layer = Layer(query, key, torch.ones(2, 5, 5, dtype=torch.bfloat16))
    assert network_from_torch([layer], -1).head_counts == (2,)
    assert weights_from_torch([layer], torch.ones(5, 4), torch.ones(5)).V[0].shape == (2, 5, 5)


def test_pruning_in_pytorch_is_pruning_in_the_library():
    stack, x = Stack((2, 3)), tokens()
    network = network_from_torch(stack, -1)
    weights = weights_from_torch(stack, stack.embed, stack.read)
    gone = [(1, 2), (2, 1)]
    smaller, fewer = pruning.prune(network, weights, gone, rescale=False)
    before = [layer.out_proj.weight.clone() for layer in stack.layers]
    with without_heads(stack, gone) as pruned, torch.no_grad():
        f = pruned(x)
    np.testing.assert_allclose(smaller.apply(fewer, x.numpy()), f, atol=1e-13)
    with pytest.raises(KeyboardInterrupt), without_heads(stack, gone):
        raise KeyboardInterrupt
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in stack.modules())
    for layer, weight in zip(stack.layers, before, strict=True):
        assert torch.equal(layer.out_proj.weight, weight)


@pytest.mark.usefixtures("as_users_see_it")
def test_heads_may_be_named_by_floats():
    stack, x, found = Stack((2, 3)), tokens(), []
    for gone in ([(1, 2), (2, 1)], [(1.0, 2.0), np.array([2, 1])]):
        with without_heads(stack, gone), torch.no_grad():
            found.append(stack(x))
    assert torch.equal(*found)


def cross(x):
    layer = nn.MultiheadAttention(DIM, 2, batch_first=True).double()

    class Cross(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(x, x.flip(1), x)[0]

    return record_attention(Cross(), x)


def multihead(**options):
    return nn.MultiheadAttention(DIM, 2, **options)


def gated(module, factor):
    return gated_heads(module, {(1, 1): factor}).__enter__()


def without(module, *gone):
    with without_heads(module, gone):
        module(tokens())


class Alone(nn.Module):
    """A layer that calls PyTorch's attention as it is."""

    def __init__(self):
        super().__init__()
        self.layer = multihead().double()

    def forward(self, x):
        return self.layer(x, x, x)[0] if x.ndim == 2 else x


WIDE, NARROW = torch.ones(4, DIM), torch.ones(2, DIM)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: network_from_torch(nn.Linear(2, 2), 0), "no torch.nn.MultiheadAttention in it"),
        (lambda: network_from_torch([nn.Linear(2, 2)], 0), r"layers\[0\] is Linear; see Layer"),
        (lambda: network_from_torch([], 0), "layers must be a list with one entry per layer"),
        (lambda: network_from_torch(encoder(), 0), "what earlier layers made of the tokens"),
        (lambda: Layer.from_multihead(multihead(kdim=4)), "queries of dimension 6 and keys of 4"),
        (lambda: Layer.from_multihead(multihead(add_bias_kv=True)), "a key that is no token"),
        (lambda: Layer.from_multihead(multihead(add_zero_attn=True)), "a key that is no token"),
        (lambda: Layer.from_multihead(nn.Linear(2, 2)), "module must be MultiheadAttention; got L"),
        (lambda: Layer.from_linear(WIDE, WIDE, None, WIDE, heads=2), "output .*; give value too"),
        (lambda: Layer.from_linear(WIDE, NARROW, heads=2), r"got \(4, 6\) and \(2, 6\)"),
        (lambda: Layer.from_linear(WIDE, WIDE, heads=3), "query has 4 outputs, not a multiple"),
        (lambda: Layer.from_linear(WIDE, WIDE, torch.ones(3, 2), heads=2), "value has 3 outputs"),
        (lambda: Layer.from_linear(WIDE, WIDE, WIDE, NARROW, heads=2), "read the 4 numbers"),
        (lambda: Layer.from_linear(WIDE[None], WIDE, heads=2), "query must have 2 axes"),
        (
            lambda: Layer.from_linear(nn.Identity(), WIDE, heads=2),
            r"query must be an nn.Linear, .* got Identity; .*give .weight.T",
        ),
        (
            lambda: weights_from_torch([Layer(*np.ones((3, 2, 3, 6)))], WIDE, WIDE[0, :4]),
            r"values of layer 1 .* one \[4, 4\] .*: got shape \(2, 3, 6\)",
        ),
        (lambda: Layer.from_linear(WIDE, WIDE, heads=2, scale=0), "scale must be larger than 0"),
        (
            lambda: weights_from_torch([Layer.from_linear(WIDE, WIDE, heads=2)], WIDE, WIDE[0]),
            "it was made without values",
        ),
        (lambda: weights_from_torch(Stack(), nn.Linear(6, 6), WIDE[0]), "must have no bias"),
        (lambda: weights_from_torch(Stack(), Stack().embed, WIDE), "one number .* 4 outputs"),
        (lambda: record_attention(encoder(), tokens()), r"call module.eval\(\) first"),
        (lambda: record_attention(multihead, tokens()), "must be a torch.nn.Module; got function"),
        (lambda: cross(tokens()), "layer 1 attends from one sequence to another"),
        (lambda: record_attention(Alone(), tokens()), "called neither torch.nn.MultiheadAttention"),
        (
            lambda: record_attention(Alone(), tokens()[0]),
            r"an input of shape \(4, 6\); give a batch",
        ),
        (
            lambda: keys_first([torch.ones(2, 3, 3)]),
            r"attentions\[0\] must have 4 axes \[examples, heads",
        ),
        (lambda: keys_first([np.ones((2, 1, 3, 4))]), r"\[0\] must be .* \(2, 1, 3, 4\)"),
        (lambda: without(Stack(), (1, 3)), r"no head \(1, 3\): attention layer 1 of Stack has 2"),
        (lambda: without(Stack(), (3, 1)), r"no head \(3, 1\): Stack called 2 attention layers"),
        (lambda: without(Stack(), (0, 1)), r"named \(layer, head\), both from 1; got \(0, 1\)"),
        (lambda: without(Stack(), 1), r"named \(layer, head\)"),
        (lambda: gated_heads(Stack(), [(1, 1)]).__enter__(), "gates must map .* got list"),
        (lambda: gated(Stack(), float("nan")), r"gates\[\(1, 1\)\] must be at least -inf and fin"),
        (lambda: gated(Stack(), "half"), r"gates\[\(1, 1\)\] must be a number"),
        (lambda: gated(Stack(), torch.ones(2)), r"gates\[\(1, 1\)\] must be a single number"),
    ],
)
@pytest.mark.usefixtures("as_users_see_it")
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
