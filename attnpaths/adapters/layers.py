"""By weights: queries, keys and values of PyTorch modules in the paper's form."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from attnpaths import _checks
from attnpaths.adapters.attention import multihead, plain
from attnpaths.network import Network, Weights


@dataclasses.dataclass(frozen=True, eq=False)
class Layer:
    """The weights of one attention layer, head by head.

    `query` and `key` `[H, G, D]` give logits (key x_s)·(query x_t + `query_bias`)/√G, with
    `query_bias [H, G]` or None. `value [H, N, N]` takes states to states, Σ_h value_h Σ_s Ω_st
    state_s; it is None where there is no such matrix, and `obstacle` then says why. A key bias
    adds the same to all logits of a query, so the softmax does not see it, and nor does a `Layer`.

    >>> block = nn.ModuleDict({name: nn.Linear(6, 6, bias=False) for name in "qkvo"})
    >>> layer = Layer.from_linear(block["q"], block["k"], block["v"], block["o"], heads=2)
    >>> layer.query.shape, layer.value.shape
    ((2, 3, 6), (2, 6, 6))
    >>> Layer.from_multihead(nn.MultiheadAttention(6, 3)).key.shape
    (3, 2, 6)
    """

    query: Any
    key: Any
    value: Any = None
    query_bias: Any = None
    obstacle: str = "it was made without values"

    def __post_init__(self):
        """Make tensors and lists arrays."""
        axes = {"query": "heads features dim", "key": "heads features dim"}
        axes |= {"value": "heads width width", "query_bias": "heads features"}
        for name, named in axes.items():
            given = getattr(self, name)
            if given is not None or name in ("query", "key"):
                vars(self)[name] = plain(name, given, named)

    @classmethod
    def from_linear(cls, query, key, value=None, output=None, *, heads: int, scale=None) -> "Layer":
        """A layer from its projections, each an `nn.Linear` or a weight `[outputs, inputs]`.

        `query` and `key` have H·G outputs, head after head. So has `value`, whose heads
        `output` takes back to states; without `output`, heads are summed as they are. Logits are
        multiplied by `scale`, 1/√G if it is not given.
        """
        heads = _checks.whole("heads", heads, least=1)
        (q, b_q), (k, _) = _projection("query", query, heads), _projection("key", key, heads)
        if q.shape != k.shape:
            raise ValueError(
                f"query and key must have one shape [heads·G, dim], as both read the same tokens; "
                f"got {q.shape} and {k.shape}; for heads that share keys, repeat the keys"
            )
        key_dim, factor = len(q) // heads, 1.0
        if scale is not None:
            factor = float(_checks.number("scale", scale, above=0.0)) * math.sqrt(key_dim)
        q, b_q = factor * q.reshape(heads, key_dim, -1), factor * b_q.reshape(heads, key_dim)
        values, obstacle = _values(value, output, heads)
        k = k.reshape(heads, key_dim, -1)
        return cls(q, k, values, b_q if b_q.any() else None, obstacle)

    @classmethod
    def from_multihead(cls, module: nn.MultiheadAttention) -> "Layer":
        """A layer from PyTorch's own attention, whose logits have the factor 1/√G."""
        _checks.kind("module", module, nn.MultiheadAttention)
        if module.bias_k is not None or module.add_zero_attn:
            raise ValueError(
                "this MultiheadAttention adds a key that is no token (add_bias_kv or "
                "add_zero_attn); paths run between tokens only, so train it without"
            )
        if module.kdim != module.embed_dim:
            raise ValueError(
                f"this MultiheadAttention has queries of dimension {module.embed_dim} and keys of "
                f"{module.kdim}; in self-attention both read the same tokens"
            )
        separate = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
        rows = separate if module.in_proj_weight is None else module.in_proj_weight.chunk(3)
        biases = (None,) * 3 if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
        q, k, v = map(_Projection, rows, biases)
        return cls.from_linear(q, k, v, module.out_proj, heads=module.num_heads)


def network_from_torch(layers, readout: int | str, *, constant: bool = False) -> Network:
    """The network whose heads are those of `layers`, all attending to the bare tokens.

    `layers` is a module, of which every `nn.MultiheadAttention` is a layer, in the order of
    `module.modules()`, which should be that of use, by which `record_attention` counts. Or it is
    a list of such and of `Layer`s. Logits are Eq. 3 with W = W_Kᵀ W_Q/√G, where W_K and W_Q are
    `[H, G, D]`. A query bias has no place in it and is refused, unless `constant`: then the network
    reads tokens with a 1 appended, `np.pad(x, [(0, 0), (0, 0), (0, 1)], constant_values=1)`, whose
    weights are the bias. Key biases change nothing. Masks and rotary positions are not weights:
    record the attention of such networks.

    >>> stack = nn.ModuleList([nn.MultiheadAttention(6, 2), nn.MultiheadAttention(6, 3)])
    >>> network_from_torch(stack, readout=-1)
    Network(head_counts=(2, 3), dim=6, readout=-1)
    """
    inside = layers.modules() if isinstance(layers, nn.Module) else ()
    if any(isinstance(m, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) for m in inside):
        raise ValueError(
            "the layers of a transformer attend to what earlier layers made of the tokens, and not "
            "to the tokens as they are, so that no Network has their heads; use analyse, or "
            "record_attention and Network.from_attention"
        )
    heads, constant = [], _checks.flag("constant", constant)
    for i, layer in enumerate(_layers(layers), start=1):
        query, key = layer.query, layer.key
        if constant:
            bias = np.zeros(query.shape[:2]) if layer.query_bias is None else layer.query_bias
            query = np.concatenate([query, bias[:, :, None]], axis=2)
            key = np.pad(key, [(0, 0), (0, 0), (0, 1)])
        elif layer.query_bias is not None:
            raise ValueError(
                f"layer {i} has a query bias, which the paper's heads have not; keep it with "
                "constant=True and tokens that end in a 1, or use record_attention"
            )
        heads.append((key, query))
    return Network(heads, readout)


def weights_from_torch(layers, V0, a) -> Weights:
    """Value weights in the paper's scaling, for `network_from_torch(layers, readout)`.

    Where PyTorch computes state = `V0` x, then state_t ← Σ_h value_h Σ_s Ω_st state_s in each
    layer, and f = `a`·state, these are V⁰√D, value √(N H) and a√N, so that `network.apply` gives
    the same f. `V0 [N, D]` and `a [N]` are tensors or `nn.Linear`s without bias.

    >>> layer = nn.MultiheadAttention(6, 2, batch_first=True).double()
    >>> x, a = torch.randn(4, 5, 6, dtype=torch.float64), torch.ones(6)
    >>> f = layer(x, x, x)[0][:, -1] @ a.double()
    >>> weights = weights_from_torch(layer, torch.eye(6), a)
    >>> found = network_from_torch(layer, readout=-1).apply(weights, x.numpy())
    >>> bool(np.allclose(found, f.detach().numpy()))
    True
    """
    (V0, bias), (a, offset) = _projection("V0", V0), _projection("a", a)
    if bias.any() or offset.any():
        raise ValueError("V0 and a must have no bias, as the paper's network has none")
    if len(a) != 1:
        raise ValueError(f"a must read one number out of the state; got {len(a)} outputs")
    width, dim = V0.shape
    values = []
    for i, layer in enumerate(_layers(layers), start=1):
        if layer.value is None or layer.value.shape[1:] != (width, width):
            found = layer.obstacle if layer.value is None else f"got shape {layer.value.shape}"
            raise ValueError(
                f"the values of layer {i} do not have the paper's form, one [{width}, {width}] "
                f"matrix for each head, for V0 of width {width}: {found}"
            )
        values.append(layer.value * math.sqrt(width * len(layer.value)))
    return Weights(*_checks.weights(V0 * math.sqrt(dim), values, a[0] * math.sqrt(width)))


class _Projection(NamedTuple):
    weight: torch.Tensor
    bias: torch.Tensor | None


def _projection(name, given, heads=1) -> tuple[np.ndarray, np.ndarray]:
    """The weight `[outputs, inputs]` of a projection, and its bias, zero if it has none."""
    has_bias = isinstance(given, nn.Linear | _Projection)
    if isinstance(given, nn.Module) and not has_bias:
        raise ValueError(
            f"{name} must be an nn.Linear, or a weight [outputs, inputs]; got "
            f"{type(given).__name__}; for a Conv1D, as in GPT-2, give .weight.T, which leaves its "
            "bias out, or copy both into an nn.Linear"
        )
    weight = given.weight if has_bias else given
    weight = weight[None] if getattr(weight, "ndim", 0) == 1 else weight
    weight = plain(name, weight, "outputs inputs")
    if len(weight) % heads:
        raise ValueError(f"{name} has {len(weight)} outputs, not a multiple of {heads=}")
    bias = given.bias if has_bias else None
    if bias is None:
        return weight, np.zeros(len(weight))
    return weight, plain(f"the bias of {name}", bias, "outputs")


def _values(value, output, heads) -> tuple[np.ndarray | None, str]:
    """One matrix for each head, from states to states; or None, and why."""
    if value is None and output is not None:
        raise ValueError("output takes values back to states, and there are none; give value too")
    if value is None:
        return None, Layer.obstacle
    (v, b_v), offset = _projection("value", value, heads), np.zeros(1)
    v = v.reshape(heads, -1, v.shape[1])
    if output is not None:
        o, offset = _projection("output", output)
        if o.shape[1] != (size := v[:, :, 0].size):
            raise ValueError(
                f"output must read the {size} numbers of all heads' values; it reads {o.shape[1]}"
            )
        v = np.einsum("nhg,hgm->hnm", o.reshape(len(o), heads, -1), v)
    if b_v.any() or offset.any():
        return None, "they have a bias, and the paper's network has none"
    return v, ""


def _layers(layers) -> Iterator[Layer]:
    """Every attention layer as a `Layer`, or a ValueError that says which is none."""
    whole = isinstance(layers, nn.Module)
    for i, layer in enumerate(multihead(layers) if whole else _checks.layers("layers", layers)):
        if isinstance(layer, nn.MultiheadAttention):
            layer = Layer.from_multihead(layer)
        if not isinstance(layer, Layer):
            raise ValueError(
                "layers must be a module, or a list of MultiheadAttention and Layer; "
                f"layers[{i}] is {type(layer).__name__}; see Layer.from_linear"
            )
        yield layer
