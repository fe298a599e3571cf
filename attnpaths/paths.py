"""Attention paths: which there are, and their names.

A path π = (h₁, …, h_L) picks one head in every layer. Paths are listed with h₁ slowest, and
heads are numbered from 1, both as in the paper.
"""

import itertools
import math
from collections.abc import Sequence

from attnpaths import _checks


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
    counts = _checks.head_counts("head_counts", head_counts)
    layer = _checks.whole("layer", layer, least=1)
    if layer > len(counts) + 1:
        raise ValueError(
            f"layer must be 1 … {len(counts) + 1} for {len(counts)} layers of heads; got {layer}"
        )
    number = math.prod(counts[layer - 1 :])
    _checks.memory(
        (56 + 8 * len(counts)) * number,
        f"a list of the {number:,} paths of heads={counts}",
        "take fewer layers or heads",
    )
    return list(itertools.product(*(range(1, h + 1) for h in counts[layer - 1 :])))


def labels(head_counts: Sequence[int], layer: int = 1) -> list[str]:
    """The names of `paths(head_counts, layer)`, for axes and legends.

    Gives one text for each π_ℓ = (h_ℓ, …, h_L), in the same order: `[Π]` where ℓ is 1.

    >>> labels((2, 1))
    ['(1,1)', '(2,1)']
    """
    return [f"({','.join(map(str, path))})" for path in paths(head_counts, layer)]
