"""What the library accepts: every public function passes its arguments through here."""

import operator
import os
from collections.abc import Callable, Collection
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def is_traced(value) -> bool:
    """True inside `jit`, `vmap` or `grad`, where values cannot be looked at."""
    return isinstance(value, jax.core.Tracer)


def untensor(value: Any) -> Any:
    """A tensor of PyTorch, with gradients and of any precision, as NumPy's; all else as it is."""
    return value.detach().cpu().double().numpy() if hasattr(value, "detach") else value


def array(name: str, value: Any, axes: str) -> Float[Array, "..."]:
    """`value` as a finite float64 array whose axes are named, as in `"examples paths dim"`."""
    names = axes.split()
    raw: Any = untensor(value)
    if not (isinstance(value, jax.Array) or is_traced(value)):
        try:
            raw = np.asarray(raw)
        except ValueError as error:
            raise ValueError(f"{name} must be an array [{axes}]; it is ragged: {error}") from None
    kind = np.dtype(raw.dtype).kind
    if kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers; got dtype {raw.dtype}")
    if raw.ndim != len(names):
        raise ValueError(
            f"{name} must have {len(names)} axes [{', '.join(names)}]; got shape {tuple(raw.shape)}"
        )
    if 0 in raw.shape:
        raise ValueError(f"{name} must not be empty; got shape {tuple(raw.shape)}")
    result = jnp.asarray(raw, dtype=jnp.float64)
    if not is_traced(result):
        bad = int(np.size(raw) - np.isfinite(np.asarray(result)).sum())
        if bad:
            raise ValueError(
                f"{name} must be finite; {bad} of its {np.size(raw)} numbers are NaN or infinite"
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
    if not is_traced(value):
        try:
            plain = np.asarray(value)
            if plain.dtype.kind not in "fiu":
                raise TypeError
            shape, plain = plain.shape, plain.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be a number {wanted}; got {value!r}") from None
        if shape:
            raise ValueError(
                f"{name} must be a single number {wanted}; got shape {shape}"
                " (for many values at once use jax.vmap or theory.sweep)"
            )
        fits = plain > above if above is not None else plain >= least
        if not fits or (plain == np.inf and not infinite):
            raise ValueError(f"{name} must be {wanted}; got {value!r}")
    elif jnp.shape(value):
        raise ValueError(f"{name} must be a single number {wanted}; got shape {jnp.shape(value)}")
    return jnp.asarray(value, dtype=jnp.float64)


def numbers(name: str, value, **limits) -> list[float]:
    """`value` as a non-empty list of numbers, each within the limits that `number` takes."""
    if np.ndim(value) != 1 or not len(value):
        raise ValueError(f"{name} must be a non-empty list of numbers; got {value!r}")
    return [float(number(f"{name}[{i}]", v, **limits)) for i, v in enumerate(value)]


def whole(name: str, value, *, least: int) -> int:
    """`value` as a Python integer that is at least `least`."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        result = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be a whole number ≥ {least}; got {value!r}") from None
    if result < least:
        raise ValueError(f"{name} must be a whole number ≥ {least}; got {result}")
    return result


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


def layers(name: str, value) -> tuple:
    """`value` as a tuple with one entry for each layer, at least one."""
    try:
        entries = tuple(value)
    except TypeError:
        entries = ()
    if not entries or isinstance(value, str | dict):
        raise ValueError(f"{name} must be a list with one entry per layer; got {value!r}")
    return entries


def head_counts(name: str, value) -> tuple[int, ...]:
    """`value` as (H₁, …, H_L), the number of heads in each layer."""
    return tuple(whole(f"{name}[{i}]", h, least=1) for i, h in enumerate(layers(name, value)))


def heads(value) -> tuple:
    """The heads of a network: per layer an array [H, D, D], or a tuple of W_K, W_Q [H, G, D]."""
    checked = []
    for i, layer in enumerate(layers("heads", value)):
        name = f"heads[{i}]"
        if isinstance(layer, tuple | list) and len(layer) == 2 and np.ndim(layer[0]) == 3:
            pair = zip(("W_K", "W_Q"), layer, strict=True)
            w_k, w_q = (array(f"{name} {role}", w, "heads features dim") for role, w in pair)
            if w_k.shape != w_q.shape:
                shapes = f"{w_k.shape} and {w_q.shape}"
                raise ValueError(f"{name} needs W_K and W_Q of one shape [H, G, D]; got {shapes}")
            checked.append((w_k, w_q))
            continue
        product = array(name, layer, "heads dim dim")
        if product.shape[1] != product.shape[2]:
            raise ValueError(
                f"{name} must be square products [H, D, D]; got shape {product.shape}; "
                "for query and key weights give the layer as a pair (W_K, W_Q)"
            )
        checked.append(product)
    dims = [jax.tree.leaves(layer)[0].shape[-1] for layer in checked]
    if len(set(dims)) > 1:
        raise ValueError(f"heads must act on one token dimension D in all layers; got {dims}")
    return tuple(checked)


def by_level(value, layers: int, check: Callable[[str, Any], Any]) -> Any:
    """One width, or the list of (N_1, …, N_{L+1}), each of which passes the check."""
    if np.ndim(value) == 0:
        return check("width", value)
    if np.ndim(value) != 1 or len(value) != layers + 1:
        raise ValueError(
            f"width must be a single number at least 1, or {layers + 1} of them for {layers} "
            f"layers, (N_1, …, N_{layers + 1}): what enters each layer, and the readout; got shape "
            f"{np.shape(value)} (for many values at once use jax.vmap or theory.sweep)"
        )
    return [check(f"width[{i}]", n) for i, n in enumerate(value)]


def widths(value, layers: int) -> tuple[int, ...]:
    """(N_1, …, N_{L+1}) of a network: `value` is one whole number for all, or one for each."""
    found = by_level(value, layers, lambda name, n: whole(name, n, least=1))
    return tuple(found) if isinstance(found, list) else (found,) * (layers + 1)


def weights(V0, V, a) -> tuple:
    """The weights of a network, each layer of which reads what the one before it gives."""
    a = array("weights.a", a, "width")
    V0 = array("weights.V0", V0, "width dim")
    per_layer = enumerate(layers("weights.V", V))
    V = tuple(array(f"weights.V[{i}]", v, "heads width width") for i, v in per_layer)
    # each is read by the next
    chain = [("weights.V0", V0.shape[0])]
    readers = [(f"weights.V[{i}]", v.shape[2]) for i, v in enumerate(V)]
    chain += [(f"weights.V[{i}]", v.shape[1]) for i, v in enumerate(V)]
    readers.append(("weights.a", a.shape[0]))
    for (name, made), (reader, read) in zip(chain, readers, strict=True):
        if made != read:
            raise ValueError(
                f"{name} is for width {made} but {reader} is for width {read}; V0 is [N, D], each "
                "V is [H, N, N] and a is [N]; layers may differ, if each reads what the one "
                "before it gives"
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
        return int(operator.index(value))
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
    """`matrix`, unless it is not symmetric or has a negative eigenvalue beyond rounding."""
    if is_traced(matrix):
        return matrix
    size = float(jnp.max(jnp.abs(matrix)))
    skew = float(jnp.max(jnp.abs(matrix - matrix.T)))
    if skew > 1e-8 * size:
        raise ValueError(
            f"{name} must be symmetric; it differs from its transpose by up to {skew:.2g}; "
            f"give ({name} + {name}.T) / 2 if that is meant"
        )
    least = float(jnp.linalg.eigvalsh(matrix)[0])
    if least < -1e-8 * len(matrix) * size:
        raise ValueError(
            f"{name} must be positive semidefinite, as a covariance is; its smallest eigenvalue "
            f"is {least:.2g}"
        )
    return matrix


def representable(result):
    """`result` of a network, unless its numbers left the range of float64 on the way."""
    leaves = jax.tree.leaves(result)
    if not any(map(is_traced, leaves)) and not all(bool(jnp.isfinite(r).all()) for r in leaves):
        raise ValueError(
            "x and the heads are too large: attention logits or outputs overflow float64; "
            "scale x or the heads down"
        )
    return result
