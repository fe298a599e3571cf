"""What a transformer of PyTorch attends to while it runs, and what it does without some heads."""

import contextlib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from attnpaths import _checks
from attnpaths.pruning import Head, check_heads

_ARGUMENTS = inspect.signature(nn.MultiheadAttention.forward)
# query, key, value and key_padding_mask come before what a recording asks for
_BEFORE = list(_ARGUMENTS.parameters).index("need_weights") - 1


def plain(value) -> np.ndarray:
    """A tensor, or anything like an array, as a NumPy array in float64."""
    return np.asarray(_checks.untensor(value), float)


class Recording(NamedTuple):
    """What `record_attention` saw, and the module's own `output`.

    `omega` holds one Ω `[P, H, T, T]` per attention layer, keys before queries; `x [P, T, D]` are
    the tokens that the first of them attended to.
    """

    omega: tuple[np.ndarray, ...]
    x: np.ndarray
    output: Any


def record_attention(
    module: nn.Module, inputs: torch.Tensor | tuple, options: Mapping[str, Any] | None = None
) -> Recording:
    """Run `module(inputs, **options)` without gradients, and keep its attention matrices.

    A tuple of `inputs` is passed on as several arguments. Works for every `nn.MultiheadAttention`
    that attends from tokens to themselves, also inside `nn.TransformerEncoder`, with or without
    masks; Ω⁽ℓ⁾ʰ_st, Eq. 3, is then that of processed tokens. Layers must be called in the order
    in which they are registered, each once: heads would have two names otherwise. Other
    transformers hand out their attention themselves: see `keys_first`. Gives one Ω
    `[P, H, T, T]` per layer, and the tokens `x [P, T, D]` that the first layer attended to.

    >>> from attnpaths import Network
    >>> encoder = nn.TransformerEncoderLayer(6, 2, dropout=0.0, batch_first=True)
    >>> seen = record_attention(encoder, torch.randn(5, 4, 6))
    >>> Network.from_attention(seen.omega, seen.x, readout=-1)
    Attended(head_counts=(2,), examples=5, tokens=4, dim=6, readout=-1)
    """
    layers = multihead(module)
    if any(m.training and _dropout(m) > 0 for m in module.modules()):
        raise ValueError(
            f"{type(module).__name__} is in training mode with dropout, so its attention is "
            "random; call module.eval() first"
        )
    seen, asked = [], {}

    def ask(layer, args, kwargs):
        given = _ARGUMENTS.bind(layer, *args, **kwargs)
        given.apply_defaults()
        asked[layer] = dict(given.arguments)
        after = dict(list(given.arguments.items())[1 + _BEFORE :])
        return args[:_BEFORE], kwargs | after | {
            "need_weights": True,
            "average_attn_weights": False,
        }

    def keep(layer, args, kwargs, output):
        given, (result, weights) = asked[layer], output
        seen.append((layer, given["query"].detach(), given["key"].detach(), weights))
        # the module goes on with what it asked for itself
        if not given["need_weights"]:
            return result, None
        return result, weights.mean(dim=-3) if given["average_attn_weights"] else weights

    arguments, mha = inputs if isinstance(inputs, tuple) else (inputs,), torch.backends.mha
    with contextlib.ExitStack() as undo, torch.no_grad():
        # PyTorch's fast path has no place for hooks
        undo.callback(mha.set_fastpath_enabled, mha.get_fastpath_enabled())
        mha.set_fastpath_enabled(False)
        for layer in layers:
            undo.callback(layer.register_forward_pre_hook(ask, with_kwargs=True).remove)
            undo.callback(layer.register_forward_hook(keep, with_kwargs=True, prepend=True).remove)
        output = module(*arguments, **(options or {}))
    _check_calls(module, seen, layers)
    first, tokens = seen[0][:2]
    x = plain(tokens if first.batch_first else tokens.transpose(0, 1))
    return Recording(keys_first([attention for *_, attention in seen]), x, output)


def keys_first(attentions: Iterable) -> tuple[np.ndarray, ...]:
    """Attention matrices as PyTorch libraries give them, in the order of this library.

    Takes one tensor A `[P, H, queries, keys]` per layer, such as `.attentions` of a transformer
    that was called with `output_attentions=True`; gives Ω `[P, H, keys, queries]` in float64,
    Ω_st = A_ts.

    >>> omega = keys_first([torch.tensor([[[[1.0, 0.0], [0.5, 0.5]]]])])
    >>> omega[0][0, 0].tolist()
    [[1.0, 0.5], [0.0, 0.5]]
    """
    return tuple(layer.swapaxes(2, 3) for layer in _matrices("attentions", attentions))


def with_residual(omega: Iterable) -> tuple[np.ndarray, ...]:
    """Attention with one more head in every layer, the last: the residual stream.

    A layer that adds its input to its output has a way past attention, on which each token
    stays where it is. As a head this is Ω_st = δ_st. Takes L arrays `[P, H, T, T]` and gives L
    arrays `[P, H + 1, T, T]`.

    >>> [layer.shape for layer in with_residual([np.full((5, 2, 4, 4), 0.25)])]
    [(5, 3, 4, 4)]
    """
    layers = _matrices("omega", omega)
    stay = [np.broadcast_to(np.eye(len(w[0, 0])), (len(w), 1, *w.shape[2:])) for w in layers]
    return tuple(np.concatenate(pair, axis=1) for pair in zip(layers, stay, strict=True))


@contextlib.contextmanager
def without_heads(module: nn.Module, heads: Iterable[Head]):
    """For the length of a `with` block, `module` without what these heads put out.

    Heads are named (layer, head) from 1, as in `attnpaths.pruning`; layers are the
    `nn.MultiheadAttention`s of `module.modules()`, as in `record_attention`. A layer puts out
    Σ_h Oʰ zʰ plus a bias, where Oʰ `[D, G]` are the head's columns of the output projection:
    Oʰ = 0 inside the block, and what it was after it.

    >>> layer, x = nn.MultiheadAttention(6, 2), torch.randn(4, 5, 6)
    >>> with without_heads(layer, [(1, 1), (1, 2)]):
    ...     bool((layer(x, x, x)[0] == 0).all())
    True
    """
    layers = multihead(module)
    heads = check_heads(heads, [layer.num_heads for layer in layers])
    before = [layer.out_proj.weight.detach().clone() for layer in layers]
    try:
        with torch.no_grad():
            for i, h in heads:
                size = layers[i - 1].head_dim
                layers[i - 1].out_proj.weight[:, (h - 1) * size : h * size] = 0
        yield module
    finally:
        with torch.no_grad():
            for layer, weight in zip(layers, before, strict=True):
                layer.out_proj.weight.copy_(weight)


def multihead(module: nn.Module) -> list[nn.MultiheadAttention]:
    """The attention layers of a module, or a ValueError that says how else to bring them."""
    if not isinstance(module, nn.Module):
        raise ValueError(f"module must be a torch.nn.Module; got {type(module).__name__}")
    found = [m for m in module.modules() if isinstance(m, nn.MultiheadAttention)]
    if not found:
        raise ValueError(
            f"{type(module).__name__} has no torch.nn.MultiheadAttention in it; give its weights "
            "as a list of Layer.from_linear(...), or its attention matrices to keys_first"
        )
    return found


def _matrices(name, value) -> list[np.ndarray]:
    """One array `[P, H, T, T]` per layer, checked."""
    layers = [plain(layer) for layer in _checks.layers(name, value)]
    for i, layer in enumerate(layers):
        if layer.ndim != 4 or layer.shape[2] != layer.shape[3]:
            raise ValueError(
                f"{name}[{i}] must be [examples, heads, tokens, tokens]; got {layer.shape}"
            )
    return layers


def _check_calls(module, seen, registered) -> None:
    """Self-attention of layers with one number, among the calls and in `module.modules()`."""
    called = [layer for layer, *_ in seen]
    if not called:
        raise ValueError("the module ran, but called none of its attention layers")
    if called != registered[: len(called)]:
        name = {layer: name for name, layer in module.named_modules()}
        raise ValueError(
            f"attention layers were called in the order {[name[m] for m in called]} but are "
            f"registered as {[name[m] for m in registered]}, so that layer numbers would not fit; "
            "register layers in the order of use, each for one use, or wrap the module in one "
            "that first registers an nn.ModuleList of its layers in that order"
        )
    for i, (_, query, key, _) in enumerate(seen, start=1):
        if query.ndim != 3:
            raise ValueError(
                f"attention layer {i} got an input of shape {tuple(query.shape)}; give a batch, "
                "[examples, tokens, dim]"
            )
        if query.shape != key.shape or not torch.equal(query, key):
            raise ValueError(
                f"attention layer {i} attends from one sequence to another; paths need "
                "self-attention, where queries and keys are the same tokens"
            )


def _dropout(module) -> float:
    if isinstance(module, nn.MultiheadAttention):
        return module.dropout
    return module.p if isinstance(module, nn.Dropout) else 0.0
