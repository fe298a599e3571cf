"""What the library accepts: every public function passes its arguments through here."""

import functools
import itertools
import operator
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# how far from 1 the attention of a query may sum: exports are often in single precision
_SUM = 1e-3
# what to do where one number is wanted
_MANY = " (for many values at once use jax.vmap or theory.sweep)"


def is_traced(value) -> bool:
    """True inside `jit`, `vmap` or `grad`, where values cannot be looked at."""
    return isinstance(value, jax.core.Tracer)


def untensor(value: Any) -> Any:
    """A tensor of PyTorch, with gradients and of any precision, as NumPy's; all else as it is."""
    if not hasattr(value, "detach"):
        return value
    value = value.detach().cpu()
    return (value.double() if value.is_floating_point() else value).numpy()


def masked(value: Any) -> int:
    """How many numbers masks hide, also those of arrays in a list, which would lose them."""
    if isinstance(value, list | tuple):
        return sum(map(masked, value))
    return int(np.ma.count_masked(value)) if isinstance(value, np.ma.MaskedArray) else 0


def array(name: str, value: Any, axes: str) -> Float[Array, "..."]:
    """`value` as a finite float64 array whose axes are named, as in `"examples paths dim"`."""
    names = axes.split()
    if hidden := masked(value):
        raise ValueError(
            f"{name} must not be masked, but {hidden} of its numbers are; leave "
            "such examples out, or fill them in"
        )
    raw: Any = value
    if not (isinstance(value, jax.Array) or is_traced(value)):
        try:
            raw = np.asarray(untensor(value))
        except (ValueError, TypeError, RuntimeError) as error:
            what = "ragged" if isinstance(error, ValueError) else "none"
            raise ValueError(f"{name} must be an array [{axes}]; it is {what}: {error}") from None
    # bfloat16 and its like are real numbers to JAX alone
    if not (jnp.issubdtype(raw.dtype, np.number) or raw.dtype == bool) or jnp.iscomplexobj(raw):
        raise ValueError(f"{name} must hold real numbers; got dtype {raw.dtype}")
    if raw.ndim != len(names):
        raise ValueError(
            f"{name} must have {len(names)} axes [{', '.join(names)}]; got shape {tuple(raw.shape)}"
        )
    if 0 in raw.shape:
        raise ValueError(f"{name} must not be empty; got shape {tuple(raw.shape)}")
    result = jnp.asarray(raw, dtype=jnp.float64)
    if not is_traced(result) and (bad := int(np.sum(~np.isfinite(np.asarray(result))))):
        raise ValueError(
            f"{name} must be finite; {bad} of its {result.size} numbers are NaN or infinite"
        )
    return result


def number(
    name: str,
    value: Any,
    *,
    above: int | float | None = None,
    least: int | float = 0.0,
    infinite: bool = False,
) -> Float[Array, ""]:
    """`value` as a float64 scalar, larger than `above` or, without it, at least `least`."""
    wanted = f"larger than {above:g}" if above is not None else f"at least {least:g}"
    wanted += "" if infinite else " and finite"
    plain = value
    if not is_traced(value):
        try:
            value = untensor(value)
            plain = np.asarray(value)
            # bfloat16 and its like are real numbers to JAX alone
            real = jnp.issubdtype(plain.dtype, np.floating) or plain.dtype.kind in "iu"
            if not real or masked(value):
                raise TypeError
            plain = plain.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be a number {wanted}; got {value!r}") from None
    if plain.shape:
        raise ValueError(f"{name} must be a single number {wanted}; got shape {plain.shape}{_MANY}")
    fits = (plain > above if above is not None else plain >= least) & (infinite | (plain < np.inf))
    if not is_traced(fits) and not fits:
        raise ValueError(f"{name} must be {wanted}; got {value!r}")
    return jnp.asarray(value, dtype=jnp.float64)


def axes_of(value) -> int:
    """How many axes a list or an array has; −1 where its rows are of different lengths."""
    if isinstance(value, list | tuple) and any(map(is_traced, value)):
        # NumPy cannot look into such a list
        return 1 + max(map(axes_of, value))
    try:
        return np.ndim(list(map(untensor, value)) if isinstance(value, list) else untensor(value))
    except ValueError:
        return -1


def numbers(name: str, value, **limits) -> list[float]:
    """`value` as a non-empty list of numbers, each within the limits that `number` takes."""
    if axes_of(value) != 1 or not len(value):
        raise ValueError(f"{name} must be a non-empty list of numbers; got {value!r}")
    return [float(number(f"{name}[{i}]", v, **limits)) for i, v in enumerate(value)]


def whole(name: str, value, *, least: int, most: int | None = None) -> int:
    """`value` as a Python integer that is at least `least`, and not larger than `most`."""
    wanted = f"{name} must be a whole number ≥ {least}"
    wanted += "" if most is None else f" and ≤ {most}"
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        result = operator.index(value)
    except TypeError:
        raise ValueError(f"{wanted}; got {value!r}") from None
    if result < least or (most is not None and result > most):
        raise ValueError(f"{wanted}; got {result}")
    return result


def key(name: str, value) -> Array:
    """A JAX key of its own, from a whole number that JAX can start from."""
    return jax.random.key(whole(name, value, least=0, most=2**63 - 1))


def path(name: str, value) -> Path:
    """`value` as the name of a file or folder."""
    try:
        return Path(value)
    except TypeError:
        raise ValueError(f"{name} must name a file or folder; got {value!r}") from None


def flag(name: str, value) -> bool:
    """`value`, if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}")
    return bool(value)


def choice(name: str, value, choices: Collection[str]) -> None:
    """Refuse what is none of the words to choose from."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def signs(name: str, value) -> None:
    """Refuse labels other than ±1."""
    bad = np.setdiff1d([] if is_traced(value) else value, (1, -1))
    if len(bad):
        raise ValueError(
            f"{name} must be +1 or −1; got {bad[:5].tolist()}; write labels 0 and 1 as 2 * y - 1"
        )


def kind(name: str, value, wanted: type, spelled: str = "") -> None:
    """Refuse what is not of this kind, which errors call as it is `spelled`."""
    if not isinstance(value, wanted):
        spelled = spelled or wanted.__name__
        raise ValueError(f"{name} must be {spelled}; got {type(value).__name__}")


def layers(name: str, value) -> tuple:
    """`value` as a tuple with one entry for each layer, at least one."""
    try:
        entries = tuple(value)
    except TypeError:
        entries = ()
    if not entries or isinstance(value, str | dict):
        raise ValueError(f"{name} must be a list with one entry per layer; got {value!r}")
    return entries


def by_layer(name: str, value, check: Callable, *more) -> tuple:
    """`value` as a tuple of what the check, given `more`, makes of the entry of each layer."""
    return tuple(check(f"{name}[{i}]", v, *more) for i, v in enumerate(layers(name, value)))


def head_counts(name: str, value) -> tuple[int, ...]:
    """`value` as (H₁, …, H_L), the number of heads in each layer."""
    return by_layer(name, value, functools.partial(whole, least=1))


def skips(value, layers: int) -> tuple[bool, ...]:
    """Which layers have a skip: `value` is one bool for all, or one for each."""
    if isinstance(value, bool | np.bool_):
        return (bool(value),) * layers
    if not isinstance(value, tuple | list | np.ndarray) or len(value) != layers:
        raise ValueError(
            f"residual must be True, False, or one of them for each of {layers} layers; got "
            f"{value!r}"
        )
    return tuple(flag(f"residual[{i}]", skip) for i, skip in enumerate(value))


def skip_widths(widths, residual: tuple[bool, ...]) -> None:
    """Refuse (N_1, …, N_{L+1}) that change across a skip, which adds input to output."""
    for i, skip in enumerate(residual if axes_of(widths) else ()):
        before, after = widths[i], widths[i + 1]
        if skip and not (is_traced(before) or is_traced(after)) and before != after:
            raise ValueError(
                f"layer {i + 1} adds its input to its output, so that both need one width; got "
                f"width[{i}] = {before} and width[{i + 1}] = {after}; make them equal, or take "
                "the skip out of `residual`"
            )


def variances(value, layers: int) -> Float[Array, "*kinds"]:
    """σ² of all weights, or of each kind: V⁰, V, a, or V⁰, V of every layer, a."""
    wanted = (
        f"a single number larger than 0, three of them for V⁰, V and a, or {layers + 2} for V⁰, V "
        f"of each of {layers} layers, and a"
    )
    check = functools.partial(number, above=0)
    found = _one_or_each("prior_variance", value, check, (3, layers + 2), wanted)
    if not isinstance(found, list):
        return found
    return jnp.stack([found[0], *(found[1:-1] * (layers if len(found) == 3 else 1)), found[-1]])


def labels(value, examples: int, of: str) -> Float[Array, "..."]:
    """`value` as labels [examples], or [examples, outputs] for several outputs."""
    several = axes_of(value) == 2
    y = array("y", value, "examples outputs" if several else "examples")
    if len(y) != examples:
        raise ValueError(f"y must hold one label per example of {of}, {examples}; got {len(y)}")
    return y


def attention(
    name: str, value, sizes: tuple[int, int] | None = None
) -> Float[Array, "examples heads keys queries"]:
    """Attention of one layer: not negative, and what a query puts on all keys sums to 1.

    `sizes` are the examples and tokens of the inputs that it is of, where these are known.
    """
    layer = array(name, value, "examples heads keys queries")
    examples, tokens = sizes or (layer.shape[0], layer.shape[2])
    if layer.shape[0] != examples or layer.shape[2:] != (tokens, tokens):
        raise ValueError(
            f"{name} must be [{examples}, H, {tokens}, {tokens}]{' for these x' if sizes else ''}; "
            f"got {layer.shape}"
        )
    if layer.min() < 0:
        raise ValueError(
            f"{name} must not be negative, but goes down to {float(layer.min()):.2g}; "
            "give attention as it is after the softmax"
        )
    off, other = (float(jnp.abs(layer.sum(axis=axis) - 1).max()) for axis in (2, 3))
    if off > _SUM:
        hint = "; it does over queries: swap its last two axes" if other <= _SUM else ""
        raise ValueError(
            f"{name} must sum to 1 over keys, its second last axis; it is off by up "
            f"to {off:.2g}{hint}"
        )
    return layer


def heads(value) -> tuple:
    """The heads of a network: per layer an array [H, D, D], or a tuple of W_K, W_Q [H, G, D].

    None is a linear block: one head, by which every token attends to itself.
    """
    checked = by_layer("heads", value, _heads)
    dims = [jax.tree.leaves(layer)[0].shape[-1] for layer in checked if layer is not None]
    if not dims:
        raise ValueError("heads must hold at least one layer of attention; all are linear blocks")
    if len(set(dims)) > 1:
        raise ValueError(f"heads must act on one token dimension D in all layers; got {dims}")
    return checked


def _heads(name: str, layer) -> Any:
    """The heads of one layer."""
    if layer is None:
        return None
    if isinstance(layer, tuple | list) and len(layer) == 2 and axes_of(layer[0]) == 3:
        pair = zip(("W_K", "W_Q"), layer, strict=True)
        w_k, w_q = (array(f"{name} {role}", w, "heads features dim") for role, w in pair)
        if w_k.shape != w_q.shape:
            shapes = f"{w_k.shape} and {w_q.shape}"
            raise ValueError(f"{name} needs W_K and W_Q of one shape [H, G, D]; got {shapes}")
        return w_k, w_q
    product = array(name, layer, "heads dim dim")
    if product.shape[1] != product.shape[2]:
        raise ValueError(
            f"{name} must be square products [H, D, D]; got shape {product.shape}; "
            "for query and key weights give the layer as a pair (W_K, W_Q)"
        )
    return product


def _one_or_each(name: str, value, check, lengths: Collection[int], wanted: str, hint="") -> Any:
    """What passes the check: one number, or a list of them that is of one of these lengths."""
    axes = axes_of(value)
    if axes == 0:
        return check(name, value)
    if axes != 1 or len(value) not in lengths:
        got = f"shape {np.shape(value)}" if axes > 0 else f"{value!r}, which is ragged"
        raise ValueError(f"{name} must be {wanted}; got {got}{hint}")
    return [check(f"{name}[{i}]", n) for i, n in enumerate(value)]


def by_level(value, layers: int, check: Callable[[str, Any], Any]) -> Any:
    """One width, or the list of (N_1, …, N_{L+1}), each of which passes the check."""
    wanted = (
        f"a single number at least 1, or {layers + 1} of them for {layers} layers, (N_1, …, "
        f"N_{layers + 1}): what enters each layer, and the readout"
    )
    return _one_or_each("width", value, check, (layers + 1,), wanted, _MANY)


def widths(value, layers: int) -> tuple[int, ...]:
    """(N_1, …, N_{L+1}) of a network: `value` is one whole number for all, or one for each."""
    found = by_level(value, layers, lambda name, n: whole(name, n, least=1))
    return tuple(found) if isinstance(found, list) else (found,) * (layers + 1)


def weights(V0, V, a) -> tuple:
    """The weights of a network, each layer of which reads what the one before it gives."""
    a = array("weights.a", a, "outputs width" if np.ndim(a) == 2 else "width")
    V0 = array("weights.V0", V0, "width dim")
    V = by_layer("weights.V", V, array, "heads width width")
    names = (f"weights.V[{i}]" for i in range(len(V)))
    chain = itertools.pairwise(("weights.V0", *names, "weights.a"))
    widths = [V0.shape[0], *(n for v in V for n in (v.shape[2], v.shape[1])), a.shape[-1]]
    for (name, reader), made, read in zip(chain, widths[::2], widths[1::2], strict=True):
        if made != read:
            raise ValueError(
                f"{name} is for width {made} but {reader} is for width {read}; V0 is [N, D], each "
                "V is [H, N, N] and a is [N], or [C, N] for C outputs; layers may differ, if each "
                "reads what the one before it gives"
            )
    return V0, V, a


def readout_within(value: int | str, tokens: int) -> None:
    """Refuse the readout of a token that sequences of so many tokens do not have."""
    if isinstance(value, int) and not -tokens <= value < tokens:
        raise ValueError(
            f"readout is token {value} but x has {tokens} tokens; "
            f'choose {-tokens} … {tokens - 1}, or "mean"'
        )


def readout(value: Any) -> int | str:
    """The readout of a network: a token index, or "mean"."""
    if isinstance(value, str) and value == "mean":
        return value
    try:
        if isinstance(value, bool | np.bool_ | str):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise ValueError(f'readout must be a token index or "mean"; got {value!r}') from None


def memory(needed: int, what: str, remedy: str) -> None:
    """Refuse, before it starts, a computation that needs more bytes than the machine has."""
    try:
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        # this system does not say: let it try
        return
    if needed > available:
        raise ValueError(
            f"{what} would need {needed / 2**30:,.1f} GiB of memory, more than the "
            f"{available / 2**30:,.1f} GiB of this machine; {remedy}"
        )


def semidefinite(name: str, matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """`matrix`, unless it is not symmetric or has a negative eigenvalue beyond rounding.

    Where it is traced, and cannot be refused, it is NaN then.
    """
    size = jnp.max(jnp.abs(matrix))
    skew = jnp.max(jnp.abs(matrix - matrix.T))
    least = jnp.linalg.eigvalsh(matrix)[0]
    uneven, negative = skew > 1e-8 * size, ~(least >= -1e-8 * len(matrix) * size)
    # inside `jit` even what is made of known numbers is traced
    if is_traced(negative):
        return jnp.where(uneven | negative, jnp.nan, matrix)
    if uneven:
        raise ValueError(
            f"{name} must be symmetric; it differs from its transpose by up to {skew:.2g}; "
            f"give ({name} + {name}.T) / 2 if that is meant"
        )
    if negative:
        raise ValueError(
            f"{name} must be positive semidefinite, as a covariance is; its smallest eigenvalue "
            f"is {least:.2g}"
        )
    return matrix


def representable(result, what: str = "x and the heads"):
    """`result`, unless its numbers left the range of float64 on the way."""
    leaves = jax.tree.leaves(result)
    if not any(map(is_traced, leaves)) and not all(bool(jnp.isfinite(r).all()) for r in leaves):
        raise ValueError(
            f"{what} are too large: numbers made from them overflow float64; scale them down"
        )
    return result
