"""Attention paths: their names, and what the network sees along each of them.

A path π = (h₁, …, h_L) picks one head in every layer. Paths are listed with h₁ slowest, and
heads are numbered from 1, both as in the paper.
"""

import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from attnpaths import _inputs
from attnpaths.network import Network, layer_attention, map_examples


def paths(head_counts: Sequence[int], layer: int = 1) -> list[tuple[int, ...]]:
    """All paths through `head_counts` = (H₁, …, H_L), h₁ slowest; heads count from 1.

    Gives Π = ∏H_ℓ paths, each a tuple: `[Π, L]` as an array. With `layer` = ℓ, the partial paths
    π_ℓ = (h_ℓ, …, h_L) that index U⁽ℓ⁾; at ℓ = L+1 there is one, which is empty. Eqs. 20 and 24
    of the paper.

    >>> paths((2, 2))
    [(1, 1), (1, 2), (2, 1), (2, 2)]
    >>> paths((2, 3), layer=2)
    [(1,), (2,), (3,)]
    """
    counts = _inputs.head_counts("head_counts", head_counts)
    layer = _inputs.whole("layer", layer, least=1)
    if layer > len(counts) + 1:
        raise ValueError(
            f"layer must be 1 … {len(counts) + 1} for {len(counts)} layers of heads; got {layer}"
        )
    return list(itertools.product(*(range(1, h + 1) for h in counts[layer - 1 :])))


def labels(head_counts: Sequence[int], layer: int = 1) -> list[str]:
    """The names of `paths(head_counts, layer)`, for axes and legends.

    Gives one text for each π_ℓ = (h_ℓ, …, h_L), in the same order: `[Π]` where ℓ is 1.

    >>> labels((2, 1))
    ['(1,1)', '(2,1)']
    """
    return [f"({','.join(map(str, path))})" for path in paths(head_counts, layer)]


def attentioned_input(network: Network, x: ArrayLike) -> Float[Array, "examples paths dim"]:
    """Attentioned input ξ `[P, Π, D]` of `x [P, T, D]`, promoted to float64.

    Eq. 7: ξ^π = Σ x_{t₀} Ω⁽¹⁾ʰ¹_{t₀t₁} ⋯ Ω⁽ᴸ⁾ʰᴸ_{t_{L−1}t*} over the tokens
    t₀ … t_{L−1}; the mean readout averages over t* too. The sum is done from the readout's
    side, on vectors over tokens: a token readout needs one column of the last layer's Ω.

    >>> import numpy as np
    >>> network = Network([np.zeros((2, 3, 3)), np.zeros((1, 3, 3))], readout=-1)
    >>> attentioned_input(network, np.ones((5, 4, 3))).shape
    (5, 2, 3)
    """
    return _inputs.representable(_attentioned_input(network, network.check_input(x)))


@jax.jit
def _attentioned_input(network, x):
    tokens, dim = x.shape[1:]
    n_paths = math.prod(network.head_counts)

    def example(x):
        return _path_weights(network, x) @ x

    heads = max(network.head_counts)
    return map_examples(example, x, max(heads * tokens * max(tokens, dim), n_paths * dim))


def _path_weights(network, x: Float[Array, "tokens dim"]) -> Float[Array, "paths tokens"]:
    """How much of each token reaches the readout along each path."""
    *lower, last = network.heads
    if network.readout == "mean":
        reach = layer_attention(last, x).mean(axis=2)
    else:
        reach = layer_attention(last, x, at=network.readout)[:, :, 0]
    for layer in reversed(lower):
        reach = jnp.einsum("hst,kt->hks", layer_attention(layer, x), reach)
        # the earlier layer's head becomes the slower index
        reach = reach.reshape(-1, x.shape[0])
    return reach
