"""What a transformer of PyTorch attends to while it runs, and what it does without some heads."""

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
import torch
from torch import nn

from attnpaths import _checks
from attnpaths.adapters.calls import Call, Watch, watching
from attnpaths.pruning.heads import Head


def plain(name: str, value, axes: str) -> np.ndarray:
    """A tensor, or anything like an array, as a NumPy array in float64 with these axes."""
    return np.asarray(_checks.array(name, value, axes))


class Recording(NamedTuple):
    """What `record_attention` saw, and the module's own `output`.

    `omega` holds one Ω `[P, H, T, T]` per attention layer, keys before queries; `tokens` what each
    of them attended to, `[P, T, D]` or None where that is not to be seen; `raw` the same before
    the normalisation that comes first in many layers, or None where there is none.
    """

    omega: tuple[np.ndarray, ...]
    output: Any
    tokens: tuple[np.ndarray | None, ...]
    raw: tuple[np.ndarray | None, ...]

    @property
    def x(self) -> np.ndarray:
        """The tokens `[P, T, D]` that the first layer attended to."""
        if self.tokens[0] is None:
            raise ValueError(
                "the first attention layer does not show which tokens it attends to: no module "
                "around it was given tokens [examples, tokens, dim]; give them yourself"
            )
        return self.tokens[0]


def record_attention(
    module: nn.Module,
    inputs: torch.Tensor | tuple | Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
) -> Recording:
    """Run `module(inputs, **options)` without gradients, and keep its attention matrices.

    A tuple of `inputs` is passed on as several arguments, a dictionary as named ones. Works for
    every module whose attention is `nn.MultiheadAttention`, also inside `nn.TransformerEncoder`, or
    PyTorch's `scaled_dot_product_attention`, as in the models of Hugging Face (those that are set
    to another way of computing attention are set to this one for the moment), with or without
    masks, rotary positions and shared keys; Ω⁽ℓ⁾ʰ_st, Eq. 3, is then that of processed tokens.
    Layers are numbered as they are called. Gives one Ω `[P, H, T, T]` per layer, in float64
    whatever the model's precision, and the tokens `x [P, T, D]` that the first layer attended to,
    after the normalisation where the network normalises first. What memory does not hold is
    refused before it is made.

    >>> from attnpaths import Network
    >>> encoder = nn.TransformerEncoderLayer(6, 2, dropout=0.0, batch_first=True)
    >>> seen = record_attention(encoder, torch.randn(5, 4, 6))
    >>> Network.from_attention(seen.omega, seen.x, readout=-1, residual=True)
    Attended(head_counts=(2,), examples=5, tokens=4, dim=6, readout=-1, residual=(True,))
    """
    return recorded(module, inputs, options, 1, len(declared(module)[0] or ()))


def recorded(module, inputs, options, first: int, layers: int) -> Recording:
    """What `record_attention` gives, but of layers before `first` sizes alone, Ω `[P, H, 0, 0]`.

    `layers` is how many there will be, as far as known.
    """
    seen, output = _calls(module, inputs, options, first, layers)
    kept = [call.weights for call in seen[first - 1 :]]
    omega = keys_first(kept) if kept else ()
    shapes = {(len(layer), layer.shape[2]) for layer in omega}
    if len(shapes) > 1:
        raise ValueError(
            "all attention layers must see the same examples and tokens, but [examples, tokens] "
            f"are {sorted(shapes)}; paths run through layers of one sequence"
        )
    sizes = next(iter(shapes), (0, 0))
    below = (call.weights.numpy() for call in seen[: first - 1])
    tokens = tuple(_fitting(call.tokens, sizes) for call in seen)
    raw = tuple(_fitting(call.raw, sizes) for call in seen)
    return Recording((*below, *omega), output, tokens, raw)


def called_heads(module, inputs, options) -> tuple[int, ...]:
    """How many heads each layer has, as they are called, by a run of which nothing is kept."""
    seen, _ = _calls(module, inputs, options, first=sys.maxsize, layers=0)
    return tuple(call.weights.shape[1] for call in seen)


def declared(module) -> tuple[tuple[int, ...] | None, int | None]:
    """The heads of every layer and the dimension D of tokens, where they are known before a run.

    They are in the `config` of models of Hugging Face, or in the layers of `nn.MultiheadAttention`
    if there are several: one alone may be called any number of times. A promise, no more: a model
    may leave layers out, or call them in another order.
    """
    names = ("num_hidden_layers", "num_attention_heads", "hidden_size")
    config = getattr(module, "config", None)
    layers, heads, dim = (getattr(config, name, None) for name in names)
    if isinstance(layers, int) and isinstance(heads, int):
        return (heads,) * layers, dim if isinstance(dim, int) else None
    found = _multiheads(module) if isinstance(module, nn.Module) else []
    if len(found) < 2:
        return None, None
    return tuple(layer.num_heads for layer in found), found[0].embed_dim


def _calls(module, inputs, options, first: int, layers: int) -> tuple[list[Call], Any]:
    """What is seen of every layer, from `first` on with its attention, and the module's output."""
    _checks.kind("module", module, nn.Module, "a torch.nn.Module")
    _check_inputs(inputs, options)
    if getattr(getattr(module, "config", None), "is_encoder_decoder", False) and any(
        name.rpartition(".")[2] == "decoder" for name, _ in module.named_modules()
    ):
        raise ValueError(
            f"{type(module).__name__} has a decoder that attends to what its encoder gives; paths "
            "need self-attention, so give the encoder alone, model.get_encoder()"
        )
    if any(m.training and _dropout(m) > 0 for m in module.modules()):
        raise ValueError(
            f"{type(module).__name__} is in training mode with dropout, so its attention is "
            "random; call module.eval() first"
        )
    seen: list[Call] = []
    watch = Watch(module, keep=seen.append, first=first, layers=layers)
    with watching(watch), torch.no_grad():
        if isinstance(inputs, Mapping):
            output = module(**inputs, **(options or {}))
        else:
            arguments = inputs if isinstance(inputs, tuple) else (inputs,)
            output = module(*arguments, **(options or {}))
    if not seen:
        raise ValueError(
            f"{type(module).__name__} ran, but called neither torch.nn.MultiheadAttention nor "
            "torch.nn.functional.scaled_dot_product_attention; give its attention matrices to "
            "adapters.keys_first, or its weights as a list of adapters.Layer.from_linear(...)"
        )
    return seen, output


def _fitting(tokens: torch.Tensor | None, sizes: tuple[int, int]) -> np.ndarray | None:
    """Tokens `[P, T, D]` as an array; None if they are others than those of attention."""
    if tokens is None or sizes not in (tuple(tokens.shape[:2]), tuple(tokens.shape[1::-1])):
        return None
    tokens = tokens if tuple(tokens.shape[:2]) == sizes else tokens.transpose(0, 1)
    return plain("tokens", tokens, "examples tokens dim")


def keys_first(attentions: Iterable) -> tuple[np.ndarray, ...]:
    """Attention matrices as PyTorch libraries give them, in the order of this library.

    Takes one tensor A `[P, H, queries, keys]` per layer, such as `.attentions` of a transformer
    that was called with `output_attentions=True`; gives Ω `[P, H, keys, queries]` in float64,
    Ω_st = A_ts.

    >>> omega = keys_first([torch.tensor([[[[1.0, 0.0], [0.5, 0.5]]]])])
    >>> omega[0][0, 0].tolist()
    [[1.0, 0.5], [0.0, 0.5]]
    """
    layers = _checks.by_layer("attentions", attentions, plain, "examples heads tokens tokens")
    for i, layer in enumerate(layers):
        if layer.shape[2] != layer.shape[3]:
            raise ValueError(
                f"attentions[{i}] must be [examples, heads, tokens, tokens]; got {layer.shape}"
            )
    return tuple(layer.swapaxes(2, 3) for layer in layers)


@contextlib.contextmanager
def gated_heads(module: nn.Module, gates: Mapping[Head, Any]) -> Iterator[nn.Module]:
    """For the length of a `with` block, what these heads put out is multiplied by a factor.

    A layer puts out Σ_h m_h Oʰ zʰ plus a bias, where Oʰ `[D, G]` are the head's columns of the
    output projection; m_h = 1 if it is not given. Heads are named (layer, head) from 1, layers
    as they are called, as in `record_attention`. A factor may be a tensor of no axes that has a
    gradient: ∂loss/∂m_h is how much the loss feels the head. The module's weights stay as they
    are.

    >>> layer, x = nn.MultiheadAttention(6, 2, bias=False), torch.randn(4, 5, 6)
    >>> with gated_heads(layer, {(1, 1): 2.0, (1, 2): 2.0}), torch.no_grad():
    ...     twice = layer(x, x, x)[0]
    >>> bool(torch.allclose(twice, 2 * layer(x, x, x)[0], atol=1e-6))
    True
    """
    _checks.kind("module", module, nn.Module, "a torch.nn.Module")
    if not isinstance(gates, Mapping):
        raise ValueError(f"gates must map (layer, head) to a factor; got {type(gates).__name__}")
    named = {_head(head): factor for head, factor in gates.items()}
    for head, factor in gates.items():
        # tensors stay as they are, for their gradients
        _checks.number(f"gates[{head}]", factor, least=-np.inf)
    with watching(Watch(module, gates=named)):
        yield module


@contextlib.contextmanager
def without_heads(module: nn.Module, heads: Iterable[Head]) -> Iterator[nn.Module]:
    """For the length of a `with` block, `module` without what these heads put out.

    Heads are named (layer, head) from 1, as in `attnpaths.pruning`, layers as they are called, as
    in `record_attention`. A layer puts out Σ_h Oʰ zʰ plus a bias, where Oʰ `[D, G]` are the head's
    columns of the output projection: inside the block it is as if Oʰ = 0. Works for all that
    `record_attention` does. A head that the network does not have is refused when it runs.

    >>> layer, x = nn.MultiheadAttention(6, 2), torch.randn(4, 5, 6)
    >>> with without_heads(layer, [(1, 1), (1, 2)]):
    ...     bool((layer(x, x, x)[0] == 0).all())
    True
    """
    try:
        named = [_head(head) for head in heads]
    except TypeError:
        raise ValueError(f"heads to name must be pairs (layer, head); got {heads!r}") from None
    with gated_heads(module, dict.fromkeys(named, 0.0)):
        yield module


def _head(head) -> Head:
    """A name (layer, head) as two whole numbers, or a ValueError."""
    if np.shape(head) != (2,) or any(int(n) != n or n < 1 for n in head):
        raise ValueError(
            f"a head is named (layer, head), both from 1; got {head!r}; several are given as a "
            "list, [(1, 1), (2, 3)]"
        )
    return int(head[0]), int(head[1])


def _check_inputs(inputs, options) -> None:
    """Refuse what no tensor is in, such as texts, on which a model would fail anywhere."""
    given = [dict(each) if isinstance(each, Mapping) else each for each in (inputs, options)]
    tensors = [leaf for leaf in jax.tree.leaves(given) if isinstance(leaf, torch.Tensor)]
    for tensor in tensors:
        if bad := int(torch.isnan(tensor).sum()):
            raise ValueError(
                f"inputs must not hold NaN; {bad} of the {tensor.numel()} numbers of a tensor "
                f"{list(tensor.shape)} are"
            )
    if not tensors:
        raise ValueError(
            "inputs must be a tensor, a tuple of arguments or a dictionary of named ones, with "
            f"tensors in it; got {type(inputs).__name__} without; texts go through a tokenizer "
            'first, tokenizer(texts, padding=True, return_tensors="pt"), arrays through '
            "torch.as_tensor"
        )


def multihead(module: nn.Module) -> list[nn.MultiheadAttention]:
    """The attention layers of a module, or a ValueError that says how else to bring them."""
    _checks.kind("module", module, nn.Module, "a torch.nn.Module")
    found = _multiheads(module)
    if not found:
        raise ValueError(
            f"{type(module).__name__} has no torch.nn.MultiheadAttention in it; give its weights "
            "as a list of Layer.from_linear(...), or record its attention"
        )
    return found


def _multiheads(module: nn.Module) -> list[nn.MultiheadAttention]:
    return [m for m in module.modules() if isinstance(m, nn.MultiheadAttention)]


def _dropout(module) -> float:
    if isinstance(module, nn.MultiheadAttention):
        return module.dropout
    return module.p if isinstance(module, nn.Dropout) else 0.0
