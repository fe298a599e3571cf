"""Attention paths: which there are, and their names.

A path π = (h₁, …, h_L) picks one head in every layer. Paths are listed with h₁ slowest, and
heads are numbered from 1, both as in the paper; 0 is the skip of a layer that has one.
"""

import itertools
import math
from collections.abc import Sequence

from attnpaths import _checks
from attnpaths.network.ways import Ways


def paths(
    head_counts: Sequence[int], layer: int = 1, residual: bool | Sequence[bool] = False
) -> list[tuple[int, ...]]:
    """All paths through `head_counts` = (H₁, …, H_L), h₁ slowest; heads count from 1.

    Gives Π = ∏H_ℓ paths, each a tuple: `[Π, L]` as an array. With `layer` = ℓ, the partial paths
    π_ℓ = (h_ℓ, …, h_L) that index U⁽ℓ⁾; at ℓ = L+1 there is one, which is empty. Eqs. 20 and 24
    of the paper. Layers that add their input to their output, by `residual`, have way 0, too.

    >>> paths((2, 2))
    [(1, 1), (1, 2), (2, 1), (2, 2)]
    >>> paths((2, 3), layer=2)
    [(1,), (2,), (3,)]
    >>> paths((1, 2), residual=(True, False))
    [(0, 1), (0, 2), (1, 1), (1, 2)]
    """
    counts = _checks.head_counts("head_counts", head_counts)
    layer = _checks.whole("layer", layer, least=1)
    if layer > len(counts) + 1:
        raise ValueError(
            f"layer must be 1 … {len(counts) + 1} for {len(counts)} layers of heads; got {layer}"
        )
    ways = Ways(counts, _checks.skips(residual, len(counts)))
    number = math.prod(ways.counts[layer - 1 :])
    what = f"a list of the {number:,} paths of heads={counts}"
    _checks.memory((56 + 8 * len(counts)) * number, what, "take fewer layers or heads")
    each = zip(counts[layer - 1 :], ways.residual[layer - 1 :], strict=True)
    return list(itertools.product(*(range(1 - skip, h + 1) for h, skip in each)))


def labels(
    head_counts: Sequence[int],
    layer: int = 1,
    residual: bool | Sequence[bool] = False,
    outputs: int | None = None,
) -> list[str]:
    """The names of `paths(head_counts, layer)`, for axes and legends.

    Gives one text for each π_ℓ = (h_ℓ, …, h_L), in the same order: `[Π]` where ℓ is 1. With C
    `outputs`, there is one for each path and output, which count from 1: `[ΠC]`.

    >>> labels((2, 1))
    ['(1,1)', '(2,1)']
    >>> labels((1,), residual=True, outputs=2)
    ['(0)→1', '(0)→2', '(1)→1', '(1)→2']
    """
    outputs = None if outputs is None else _checks.whole("outputs", outputs, least=1)
    names = [f"({','.join(map(str, path))})" for path in paths(head_counts, layer, residual)]
    ends = [""] if outputs is None else [f"→{c + 1}" for c in range(outputs)]
    return [name + end for name in names for end in ends]
