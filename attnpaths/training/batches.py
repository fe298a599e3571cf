"""Batches of an epoch, pairs of classes in an order that can be taken up anywhere."""

import math
from collections.abc import Iterator

import numpy as np

from attnpaths import _checks
from attnpaths.tasks import pairs
from attnpaths.tasks.images import Images
from attnpaths.tasks.oneshot import Sequences

#: How pairs of classes are chosen: as the authors do, or each pair once.
SAMPLING = ("authors", "each")
# tells the authors' fixed choice of images apart from what else is drawn from a seed
_FIXED = 104


def epoch(
    images: Images,
    *,
    seed: int,
    number: int,
    classes,
    batch: int = 128,
    start: int = 0,
    sampling: str = "authors",
) -> Iterator[Sequences]:
    """C(n, 2) pairs of the n `classes`, in batches; an incomplete last one is left.

    C(n, 2) // batch batches: `images [batch, 3]`, `signs [batch]`, `y [batch]`. With `sampling`
    `"authors"`, ordered pairs are drawn with replacement, so that an epoch shows 63 % of all pairs,
    and an ordered pair always shows the same three images; only the signs are drawn anew. With
    `"each"`, every pair comes once, with other images each time. Batch b of epoch `number` depends
    on `seed` alone, so that training can go on at any batch `start` as if it had never stopped.

    >>> from attnpaths.tasks.images import load
    >>> glyphs = load("glyphs", classes=10)
    >>> len(list(epoch(glyphs, seed=0, number=0, classes=range(10), batch=15)))
    3
    """
    classes = pairs.check_classes(images, classes)
    seed = _checks.whole("seed", seed, least=0)
    number = _checks.whole("number", number, least=0)
    batch = _checks.whole("batch", batch, least=1)
    start = _checks.whole("start", start, least=0)
    _checks.choice("sampling", sampling, SAMPLING)
    draw = _authors if sampling == "authors" else _each
    count = batches_per_epoch(len(classes), batch)
    return (Sequences(*found) for found in draw(images, seed, number, classes, batch, start, count))


def _authors(images, seed, number, classes, batch, start, count):
    n = len(classes)
    fixed = np.random.default_rng([seed, _FIXED])
    first, second = np.divmod(np.arange(n * (n - 1)), n - 1)
    second += second >= first
    y = fixed.choice([1, -1], size=len(first))
    rows, signs = pairs.choose(images, fixed, classes[first], classes[second], y)
    for b in range(start, count):
        rng = np.random.default_rng([seed, number, b])
        chosen = rng.integers(len(first), size=batch)
        flip = rng.choice([1, -1], size=batch)
        yield rows[chosen], flip * signs[chosen], flip * y[chosen]


def _each(images, seed, number, classes, batch, start, count):
    one, other = np.triu_indices(len(classes), k=1)
    order = np.random.default_rng([seed, number]).permutation(len(one))
    for b in range(start, count):
        rng = np.random.default_rng([seed, number, b])
        chosen = order[b * batch : (b + 1) * batch]
        swap = rng.integers(2, size=batch).astype(bool)
        first = np.where(swap, one[chosen], other[chosen])
        second = np.where(swap, other[chosen], one[chosen])
        y = rng.choice([1, -1], size=batch)
        yield *pairs.choose(images, rng, classes[first], classes[second], y), y


def batches_per_epoch(classes: int, batch: int = 128) -> int:
    """How many batches `epoch` gives for n classes: C(n, 2) // batch. Takes and gives no array.

    >>> batches_per_epoch(1028)
    4124
    """
    classes = _checks.whole("classes", classes, least=0)
    return math.comb(classes, 2) // _checks.whole("batch", batch, least=1)
