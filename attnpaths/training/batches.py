"""Batches of an epoch: every pair of classes once, in an order that can be taken up anywhere."""

import math
from collections.abc import Iterator

import numpy as np

from attnpaths import _checks
from attnpaths.tasks import pairs
from attnpaths.tasks.images import Images
from attnpaths.tasks.oneshot import Sequences


def epoch(
    images: Images, *, seed: int, number: int, classes, batch: int = 128, start: int = 0
) -> Iterator[Sequences]:
    """Every pair of `classes` once, in random order, in batches; an incomplete last one is left.

    Of n classes, C(n, 2) // batch batches: `images [batch, 3]`, `signs [batch]`, `y [batch]`.
    Batch b of epoch `number` depends on `seed` alone, so that training can go on at any batch
    `start` as if it had never stopped.

    >>> from attnpaths.tasks.images import load
    >>> glyphs = load("glyphs", classes=10)
    >>> len(list(epoch(glyphs, seed=0, number=0, classes=range(10), batch=15)))
    3
    """
    classes = pairs.check_classes(images, classes)
    batch = _checks.whole("batch", batch, least=1)
    start = _checks.whole("start", start, least=0)
    one, other = np.triu_indices(len(classes), k=1)
    order = np.random.default_rng([seed, number]).permutation(len(one))
    for b in range(start, len(one) // batch):
        rng = np.random.default_rng([seed, number, b])
        chosen = order[b * batch : (b + 1) * batch]
        swap = rng.integers(2, size=batch).astype(bool)
        first = np.where(swap, one[chosen], other[chosen])
        second = np.where(swap, other[chosen], one[chosen])
        y = rng.choice([1, -1], size=batch)
        yield Sequences(*pairs.choose(images, rng, classes[first], classes[second], y), y)


def batches_per_epoch(classes: int, batch: int = 128) -> int:
    """How many batches `epoch` gives for n classes: C(n, 2) // batch. Takes and gives no array.

    >>> batches_per_epoch(1028)
    4124
    """
    classes = _checks.whole("classes", classes, least=0)
    return math.comb(classes, 2) // _checks.whole("batch", batch, least=1)
