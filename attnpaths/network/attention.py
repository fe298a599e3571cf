"""Attention of one example, and how much of each token it takes along each path."""

import math
from collections.abc import Callable, Iterable, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnpaths import _checks

# Query vectors of this many numbers (4 MB) stay in cache; larger blocks of examples run slower.
_BLOCK = 2**19


def queries(layer, x: Float[Array, "tokens dim"]) -> Float[Array, "heads tokens dim"]:
    """What each token asks of the others: logits are x_s · queries[h, t]."""
    if isinstance(layer, tuple):
        w_k, w_q = layer
        asked = jnp.einsum("td,hgd->htg", x, w_q) / math.sqrt(w_q.shape[1])
        return jnp.einsum("htg,hgd->htd", asked, w_k)
    return jnp.einsum("te,hde->htd", x, layer)


def layer_attention(layer, x: Float[Array, "keys dim"], at=None) -> Float[Array, "heads keys _"]:
    """Ω `[H, keys, queries]` of one layer for one example; `at` picks a single query token.

    In a linear block, a layer that is None, every token attends to itself.
    """
    if layer is None:
        return itself(len(x), at)[None]
    asking = x if at is None else x[at][None]
    return jax.nn.softmax(jnp.einsum("sd,htd->hst", x, queries(layer, asking)), axis=1)


def itself(tokens: int, at: int | str | None = None) -> Float[Array, "keys _"]:
    """The attention of tokens to themselves: of all, of the one `at` alone, or their "mean"."""
    if at == "mean":
        return jnp.full((tokens, 1), 1 / tokens)
    return jnp.eye(tokens) if at is None else jnp.eye(tokens)[:, at][:, None]


def path_weights(
    lower: Iterable[Float[Array, "heads keys queries"]],
    last: Float[Array, "heads keys"],
    residual: Sequence[bool],
    read: Float[Array, " keys"],
) -> Float[Array, "paths keys"]:
    """How much of each token reaches the readout along each path of one example, `[Π, T]`.

    `read` is what the readout takes of each token, and `last` what it takes through each head of
    the last layer; `lower` are the matrices Ω of the layers before it, from the second last to the
    first. The sum of Eq. 7 is done from the readout's side, on vectors over tokens. Way 0 of a
    layer with a skip takes what reaches it as it is.
    """
    *others, skip = residual
    reach = jnp.concatenate([read[None], last]) if skip else last
    for omega, skip in zip(lower, reversed(others), strict=True):
        # the earlier layer's head becomes the slower index
        ways = jnp.einsum("hst,kt->hks", omega, reach).reshape(-1, omega.shape[1])
        reach = jnp.concatenate([reach, ways]) if skip else ways
    return reach


def check_size(paths: int, shape: tuple[int, ...]) -> None:
    """Refuse features of more paths than memory holds; `shape` is that of x, `[P, T, D]`."""
    examples, tokens, dim = shape
    # the blocks of examples and their union, and the path weights of one example
    needed = 16 * paths * (examples * dim + tokens)
    what = f"the features of {examples:,} examples along {paths:,} paths"
    _checks.memory(needed, what, "take fewer examples, layers or heads")


def check_attention(maps: int, tokens: int) -> None:
    """Refuse so many matrices Ω `[T, T]` at once that memory does not hold them."""
    what = f"attention between the {tokens:,} tokens of x, {maps:,} matrices at once,"
    # with what they are the softmax of
    _checks.memory(16 * maps * tokens**2, what, "take fewer tokens, examples or heads")


def map_examples(function: Callable, x: Float[Array, "examples tokens dim"], numbers: int):
    """`function` of every example, in blocks that fit the cache; each example takes `numbers`."""
    blocks = -(-x.shape[0] * numbers // _BLOCK)
    if blocks == 1:
        return jax.vmap(function)(x)
    # equal blocks, the last filled up with zeros, so that only one has to be compiled
    size = -(-x.shape[0] // min(blocks, x.shape[0]))
    missing = -x.shape[0] % size
    filled = jnp.concatenate([x, jnp.zeros_like(x, shape=(missing, *x.shape[1:]))])
    result = jax.lax.map(jax.vmap(function), filled.reshape(-1, size, *x.shape[1:]))
    return jax.tree.map(lambda r: r.reshape(-1, *r.shape[2:])[: x.shape[0]], result)
