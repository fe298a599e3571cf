"""Invented characters, drawn with a pen: an image source that needs no file.

A class is a shape of one to four strokes; a drawing of it is the same strokes by another hand:
moved, slanted, shaky, thick or thin. A stroke is a smooth curve through a few points. All is drawn
from a seed, class by class: the first hundred classes of three hundred are those of a smaller set.
"""

import functools

import numpy as np
from jaxtyping import Float, UInt8

from attnpaths import _checks

# strokes, points that the pen passes through in one, and points at which ink is left
_STROKES, _KNOTS, _DOTS = 4, 5, 80
# drawings that are rendered together; more only takes memory
_BLOCK = 1000


def draw(
    classes: int = 400, examples: int = 20, *, size: int = 32, seed: int = 0
) -> UInt8[np.ndarray, "classes examples height width"]:
    """Images `[classes, examples, size, size]`, bright ink (255) on black paper (0).

    >>> draw(3, 5, size=32).shape
    (3, 5, 32, 32)
    """
    classes = _checks.whole("classes", classes, least=1)
    examples = _checks.whole("examples", examples, least=1)
    size = _checks.whole("size", size, least=8)
    seed = _checks.whole("seed", seed, least=0)
    # small images are drawn on a larger page, and then looked at from afar
    fine, total = 2 * size if size < 64 else size, classes * examples
    # two copies of strokes and images; a block of pages takes more, for a while
    kept, pages = 8 * 2 * _STROKES * _KNOTS + size**2, 40 * min(total, _BLOCK) * fine**2
    what = f"{classes:,} classes of {examples:,} drawings of {size}×{size} pixels"
    remedy = "draw fewer classes or examples, or smaller ones"
    _checks.memory(2 * total * kept + pages, what, remedy)
    writers = (np.random.default_rng([seed, index]) for index in range(classes))
    hands = [_hands(rng, _shape(rng), examples) for rng in writers]
    strokes, pens = map(np.concatenate, zip(*hands, strict=True))
    parts = (slice(i, i + _BLOCK) for i in range(0, total, _BLOCK))
    drawn = [_render(strokes[part], pens[part], size, fine) for part in parts]
    return np.concatenate(drawn).reshape(classes, examples, size, size)


def _shape(rng) -> Float[np.ndarray, "strokes knots 2"]:
    """The strokes of one class in the unit square; strokes that it lacks are NaN."""
    count = rng.choice(_STROKES, p=[0.08, 0.42, 0.33, 0.17]) + 1
    shape = np.full((_STROKES, _KNOTS, 2), np.nan)
    for i in range(count):
        # most strokes start on an earlier one
        joined = i and rng.random() < 0.7
        start = shape[rng.integers(i), rng.integers(_KNOTS)] if joined else rng.uniform(0.1, 0.9, 2)
        # a straight line alone would be every class's look-alike
        tries = [_stroke(rng, start, straight=count > 1) for _ in range(4 if i else 1)]
        # no writer draws one line over another: knots, the first apart, stay far from those before
        ways = np.array(tries)[:, 1:, None] - shape[:i].reshape(-1, 2)
        shape[i] = tries[np.linalg.norm(ways, axis=-1).min(axis=(1, 2), initial=1.0).argmax()]
    low, high = np.nanmin(shape, axis=(0, 1)), np.nanmax(shape, axis=(0, 1))
    # as large as the page allows, and never stretched by more than half
    scale = rng.uniform(0.58, 0.75) / (high - low)
    scale = np.minimum(scale, 1.5 * scale.min())
    return 0.5 + (shape - (low + high) / 2) * scale


def _stroke(rng, start, straight) -> Float[np.ndarray, "knots 2"]:
    """A line, an arc, a wave, a corner or a loop from `start`, towards the middle."""
    inward = np.arctan2(*(0.5 - start)[::-1])
    # people like upright and level lines
    heading = np.round((inward + rng.normal(0, 0.8)) * 4 / np.pi) * np.pi / 4
    heading += rng.normal(0, 0.12)
    likely = np.array([0.3 * straight, 0.28, 0.12, 0.18, 0.12])
    kind = rng.choice(5, p=likely / likely.sum())
    side, length = rng.choice([-1, 1]), rng.uniform(0.12, 0.26)
    steps = np.arange(_KNOTS - 1)
    turns = [
        np.zeros(_KNOTS - 1),
        np.full(_KNOTS - 1, rng.uniform(0.35, 0.9)),
        rng.uniform(0.7, 1.1) * np.where(steps % 3 == 1, -1, 1),
        np.where(steps == rng.integers(1, 4), rng.uniform(1.2, 2.2), 0),
        np.full(_KNOTS - 1, rng.uniform(1.2, 1.7)),
    ][kind]
    angles = heading + side * np.cumsum(turns)
    moves = length * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return start + np.concatenate([np.zeros((1, 2)), np.cumsum(moves, axis=0)])


def _hands(rng, shape, examples):
    """The same strokes by many hands, and the width of each hand's pen."""
    shaky = shape + rng.normal(0, 0.014, (examples, *shape.shape))
    # each stroke as a whole is a little out of place
    shaky += rng.normal(0, 0.018, (examples, _STROKES, 1, 2))
    tilt, slant = rng.normal(0, 0.09, examples), rng.normal(0, 0.11, examples)
    wide, high = np.exp(rng.normal(0, 0.09, (2, examples)))
    across = [wide * np.cos(tilt), wide * (slant - np.sin(tilt))]
    down = [high * np.sin(tilt), high * np.cos(tilt)]
    linear = np.stack([*across, *down], axis=1).reshape(-1, 2, 2)
    moved = 0.5 + np.einsum("eij,eskj->eski", linear, shaky - 0.5)
    moved += rng.normal(0, 0.03, (examples, 1, 1, 2))
    return moved, np.exp(np.clip(rng.normal(0, 0.15, examples), -0.25, 0.4))


def _render(strokes, pens, size, fine) -> UInt8[np.ndarray, "images height width"]:
    """Leave ink along the strokes, spread it to the pen's width, and look at it from afar."""
    path = np.einsum("dk,iskx->isdx", _spline(), strokes) * fine - 0.5
    # as much ink on a slow part of the curve as on a fast one
    ink = np.nan_to_num(np.linalg.norm(np.diff(path, axis=2), axis=3))
    path = np.nan_to_num((path[:, :, 1:] + path[:, :, :-1]) / 2)
    x, y = np.moveaxis(np.clip(path, 0, fine - 1.001), -1, 0)
    column, row = x.astype(int), y.astype(int)
    page = np.arange(len(strokes))[:, None, None]
    canvas = np.zeros(len(strokes) * fine * fine)
    for right, down in np.ndindex(2, 2):
        where = (page * fine + row + down) * fine + column + right
        share = np.abs(1 - right - (x - column)) * np.abs(1 - down - (y - row))
        canvas += np.bincount(where.ravel(), (ink * share).ravel(), minlength=len(canvas))
    spread = _blur(fine)
    canvas = spread @ canvas.reshape(-1, fine, fine).astype(np.float32) @ spread.T
    # a line alone peaks at 1: cut it where it is as wide as the pen, softly
    cut = 0.55 / pens.astype(np.float32)[:, None, None]
    canvas = np.clip((canvas - cut) / 0.3 + 0.5, 0, 1)
    if fine != size:
        canvas = canvas.reshape(-1, size, 2, size, 2).mean(axis=(2, 4))
    return np.round(255 * canvas).astype(np.uint8)


@functools.cache
def _spline() -> Float[np.ndarray, "dots knots"]:
    """Weights of the knots at each dot of a stroke: a Catmull–Rom spline, ends repeated."""
    at = np.linspace(0, _KNOTS - 1, _DOTS)
    piece = np.minimum(at.astype(int), _KNOTS - 2)
    t = at - piece
    pulls = {
        -1: -(t**3) / 2 + t**2 - t / 2,
        0: 1.5 * t**3 - 2.5 * t**2 + 1,
        1: -1.5 * t**3 + 2 * t**2 + t / 2,
        2: t**3 / 2 - t**2 / 2,
    }
    weights = np.zeros((_DOTS, _KNOTS))
    for offset, pull in pulls.items():
        weights[np.arange(_DOTS), np.clip(piece + offset, 0, _KNOTS - 1)] += pull
    return weights


@functools.cache
def _blur(fine: int) -> Float[np.ndarray, "height height"]:
    """A Gaussian pen for one direction; a straight line of ink, blurred, peaks at 1."""
    width = 0.017 * fine
    distance = np.subtract.outer(np.arange(fine), np.arange(fine))
    kernel = np.exp(-(distance**2) / (2 * width**2)).astype(np.float32)
    return kernel / (kernel.sum(axis=1).max() ** 0.5)
