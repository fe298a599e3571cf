"""Attention as PyTorch computes it: every call of a forward pass, seen, and changed where asked.

All attention of PyTorch ends in one of two functions, `multi_head_attention_forward`, which
`nn.MultiheadAttention` calls, or `scaled_dot_product_attention`, which nearly everybody else
does. Both are intercepted here for as long as one module runs, so that it matters neither which
class a layer has nor whether it would hand out its attention by itself. Layers are numbered from 1
in the order in which they are called.
"""

import contextlib
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from attnpaths import _checks

_MULTIHEAD = inspect.signature(F.multi_head_attention_forward)
_DOT_PRODUCT = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale")


class Call(NamedTuple):
    """One layer's attention `[P, H, queries, keys]`, and the tokens `[P, T, D]` that it read.

    `raw` is what the normalisation right before it was given, or None where there was none. Of a
    layer that is only counted, attention is `[P, H, 0, 0]`, and tokens are None.
    """

    weights: torch.Tensor
    tokens: torch.Tensor | None
    raw: torch.Tensor | None


class Watch(TorchFunctionMode):
    """Sees every attention of `module`; `keep` is given each `Call`, `gates` multiply heads.

    Layers before `first` are only counted; `layers` is how many there will be, as far as known.
    `gates` maps (layer, head) to a factor, a number or a tensor of no axes.
    """

    def __init__(
        self, module: nn.Module, keep: Callable | None = None, gates=None, first=1, layers=0
    ):
        """Nothing is watched until the block is entered."""
        super().__init__()
        self.module, self.keep, self.gates = module, keep, dict(gates or {})
        self.first, self.layers = first, layers
        self.layer, self.frames, self.normed = 0, [], (None, None)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        """Attention is looked at, all else is done as it is."""
        kwargs = kwargs or {}
        if self.frames and func is F.multi_head_attention_forward:
            return self._multihead(func, args, kwargs)
        if self.frames and func is F.scaled_dot_product_attention:
            return self._dot_product(func, args, kwargs)
        return func(*args, **kwargs)

    def _multihead(self, func, args, kwargs):
        bound = _MULTIHEAD.bind(*args, **kwargs)
        bound.apply_defaults()
        given, heads = bound.arguments, bound.arguments["num_heads"]
        asked, averaged = given["need_weights"], given["average_attn_weights"]
        query, key = given["query"], given["key"]
        gates, out = self._next(heads), given["out_proj_weight"]
        if gates:
            # a head's columns of the output projection
            factor = _factors(gates, heads, out)
            given["out_proj_weight"] = out * factor.repeat_interleave(out.shape[1] // heads)
        if self.keep and query.ndim != 3:
            raise ValueError(
                f"attention layer {self.layer} got an input of shape {tuple(query.shape)}; give a "
                "batch, [examples, tokens, dim]"
            )
        if self.keep and (query.shape != key.shape or not torch.equal(query, key)):
            raise ValueError(
                f"attention layer {self.layer} attends from one sequence to another; paths need "
                "self-attention, where queries and keys are the same tokens"
            )
        if not self._keeps(query.shape[1], heads, query.shape[0]):
            return func(**given)
        given["need_weights"], given["average_attn_weights"] = True, False
        result, weights = func(**given)
        exact = weights.detach().double()
        self._kept(exact / exact.sum(dim=-1, keepdim=True), query.transpose(0, 1))
        if not asked:
            return result, None
        return result, weights.mean(dim=1) if averaged else weights

    def _dot_product(self, func, args, kwargs):
        given = dict(zip(_DOT_PRODUCT, args, strict=False)) | kwargs
        query, key = given["query"], given["key"]
        alone = query.ndim == 3
        heads = 1 if alone else query.shape[-3]
        gates = self._next(heads)
        if self.keep and (query.ndim not in (3, 4) or query.shape[-2] != key.shape[-2]):
            raise ValueError(
                f"attention layer {self.layer} attends from queries of shape "
                f"{tuple(query.shape)} to keys of shape {tuple(key.shape)}; paths need "
                "self-attention [examples, heads, tokens, features] of all tokens at once: "
                "no cache of earlier tokens, and no second sequence"
            )
        if self._keeps(query.shape[0], heads, query.shape[-2]):
            weights = dot_product_weights(given)
            self._kept(weights[:, None] if alone else weights, None)
        result = func(*args, **kwargs)
        return result * _factors(gates, heads, result)[:, None, None] if gates else result

    def _next(self, heads: int) -> dict[int, Any]:
        """Count one more layer, and give the factors of its heads, which count from 0 here."""
        self.layer += 1
        mine = {head - 1: m for (layer, head), m in self.gates.items() if layer == self.layer}
        if beyond := [h + 1 for h in mine if h >= heads]:
            raise ValueError(
                f"there is no head {(self.layer, beyond[0])}: attention layer {self.layer} of "
                f"{type(self.module).__name__} has {heads} heads"
            )
        return mine

    def _keeps(self, examples: int, heads: int, tokens: int) -> bool:
        """Whether this layer's attention is kept; refuses, before it is there, what is too much."""
        if not self.keep:
            return False
        layers = max(self.layers, self.layer) + 1 - self.first
        what = f"the attention of {layers} layers of {heads} heads, in {examples:,} examples of "
        what += f"{tokens:,} tokens,"
        remedy = "take fewer or shorter examples or, in analyse, a window of the last layers"
        # with the copy that goes along the paths
        _checks.memory(16 * max(layers, 0) * examples * heads * tokens**2, what, remedy)
        if self.layer >= self.first:
            return True
        self.keep(Call(torch.empty(examples, heads, 0, 0), None, None))
        return False

    def _kept(self, weights, tokens) -> None:
        assert self.keep
        frame = self.frames[-1]
        if tokens is None:
            found = [frame[name] for name in ("projected", "normed", "input")]
            tokens = next((t for t in found if t is not None), None)
        output, raw = self.normed
        fits = output is not None and tokens is not None and _same(output, tokens)
        self.keep(Call(weights, tokens, raw if fits else None))

    # Where a forward pass is: one frame for every module that runs, the innermost last.

    def enter(self, module, args, kwargs) -> None:
        """Before a module runs: note what it reads, also as a projection of its parent."""
        found = next((t for t in (*args, *kwargs.values()) if _is_tokens(t)), None)
        weight = getattr(module, "weight", None)
        projects = isinstance(weight, torch.Tensor) and weight.ndim == 2
        if self.frames and found is not None and projects and not isinstance(module, nn.Embedding):
            self.frames[-1]["projected"] = found
        self.frames.append({"input": found, "projected": None, "normed": None})

    def leave(self, module, args, kwargs, output) -> None:
        """After a module has run; what it gives is the input of attention if it normalises."""
        frame = self.frames.pop()
        if "norm" in type(module).__name__.lower() and _is_tokens(output):
            self.normed = output, frame["input"]
            if self.frames:
                self.frames[-1]["normed"] = output

    def start(self, module, args, kwargs) -> None:
        """Layers of every forward pass are counted anew."""
        self.layer, self.frames, self.normed = 0, [], (None, None)

    def end(self, module, args, kwargs, output) -> None:
        """Heads of layers that were not called cannot have been changed."""
        missed = [head for head in self.gates if head[0] > self.layer]
        if missed and output is not None:
            raise ValueError(
                f"there is no head {missed[0]}: {type(module).__name__} called {self.layer} "
                "attention layers"
            )


@contextlib.contextmanager
def watching(watch: Watch) -> Iterator[Watch]:
    """For the length of a `with` block, attention of the watched module goes through `watch`."""
    module = watch.module
    with contextlib.ExitStack() as undo:
        undo.enter_context(_by_dot_product(module))
        hook = {"with_kwargs": True}
        undo.callback(module.register_forward_pre_hook(watch.start, prepend=True, **hook).remove)
        for each in module.modules():
            undo.callback(each.register_forward_pre_hook(watch.enter, **hook).remove)
            leave = each.register_forward_hook(watch.leave, prepend=True, always_call=True, **hook)
            undo.callback(leave.remove)
        undo.callback(module.register_forward_hook(watch.end, **hook).remove)
        undo.enter_context(watch)
        yield watch


@contextlib.contextmanager
def _by_dot_product(module: nn.Module) -> Iterator[None]:
    """Models of Hugging Face compute attention in one of several ways: here by PyTorch's own."""
    models: list[Any] = [module, *module.children()]
    models = [each for each in models if hasattr(each, "set_attn_implementation")]
    ways = {each: each.config._attn_implementation for each in models}
    changed = {each: way for each, way in ways.items() if way not in (None, "sdpa")}
    try:
        for each in changed:
            each.set_attn_implementation("sdpa")
        yield
    finally:
        for each, way in changed.items():
            each.set_attn_implementation(way)


def dot_product_weights(given) -> torch.Tensor:
    """The attention `[..., queries, keys]` of a call of `scaled_dot_product_attention`, in float64.

    Queries and keys are taken as they come, in bfloat16 for instance; the softmax is exact. A
    query that may attend to nothing, a padded one, attends to itself.
    """
    query, key = (given[name].detach().double() for name in ("query", "key"))
    if given.get("enable_gqa"):
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], dim=-3)
    scale = given.get("scale")
    # all in place: such a matrix may take a good part of the memory
    logits = (query @ key.mT).mul_(1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    mask = given.get("attn_mask")
    if given.get("is_causal"):
        mask = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).tril()
    if mask is not None and mask.dtype == torch.bool:
        logits.masked_fill_(~mask, -math.inf)
    elif mask is not None:
        logits.add_(mask.double())
    nothing = (logits == -math.inf).all(dim=-1, keepdim=True)
    itself = torch.eye(*logits.shape[-2:], dtype=torch.bool, device=logits.device)
    return torch.softmax(logits.masked_fill_(nothing & itself, 0.0), dim=-1)


def _is_tokens(value) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim == 3 and value.is_floating_point()


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors are views of the same numbers."""
    return a.numel() == b.numel() and a.data_ptr() == b.data_ptr()


def _factors(gates, heads: int, like: torch.Tensor) -> torch.Tensor:
    """What each head is multiplied by, 1 if nothing is given."""
    return torch.stack([torch.as_tensor(gates.get(h, 1.0)).to(like) for h in range(heads)])
