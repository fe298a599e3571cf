"""How large a network is, with and without some of its heads."""

import dataclasses
import math

from attnpaths import Network


@dataclasses.dataclass(frozen=True)
class Size:
    """How large a network is: `parameters`, and multiply–adds for one sequence of T tokens.

    Parameters are those of heads (keys and queries 2GD each, or D² as a product), values (N²
    each), input projection (ND) and readout (N). Multiply–adds are those of matrix products:
    in `layered` order V⁰x (TND), and for each head queries and keys (2TGD, or TD²), logits
    (T²G, or T²D), values (TN²) and their mean (T²N); then the readout (N). In the order of
    `by_paths`, attention is followed by shares of tokens (T²·∏_{m ≥ ℓ} H_m for each layer ℓ < L),
    ξ (ΠTD) and one readout vector per path (ΠD), which is contracted once for all data.
    """

    parameters: int
    head_parameters: int
    layered: int
    by_paths: int


def size(network: Network, *, width: int, tokens: int) -> Size:
    """Count the parameters and multiply–adds of a network of this width, on so many tokens.

    Parameters are Σ_ℓ H_ℓ (N² + 2GD) + ND + N for heads as pairs of `[H, G, D]`, and with D² in
    place of 2GD for heads `[H, D, D]`; `Size` says what is multiplied.

    >>> import numpy as np
    >>> size(Network([np.ones((2, 3, 3))], readout="mean"), width=5, tokens=4)
    Size(parameters=88, head_parameters=68, layered=593, by_paths=198)
    """
    N, T = width, tokens
    D, counts = network.dim, network.head_counts
    in_heads, attention = 0, 0
    for layer, H in zip(network.heads, counts, strict=True):
        G = layer[0].shape[1] if isinstance(layer, tuple) else None
        in_heads += H * (N * N + (D * D if G is None else 2 * G * D))
        attention += H * (T * D * D + T * T * D if G is None else 2 * T * G * D + T * T * G)
    number = math.prod(counts)
    shares = sum(T * T * math.prod(counts[i:]) for i in range(len(counts) - 1))
    return Size(
        parameters=in_heads + N * D + N,
        head_parameters=in_heads,
        layered=attention + T * N * D + sum(counts) * (T * N * N + T * T * N) + N,
        by_paths=attention + shares + number * T * D + number * D,
    )
