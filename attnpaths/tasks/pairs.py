"""Pairs of classes: which can make one-shot sequences, and the images chosen for them."""

import numpy as np
from jaxtyping import Int

from attnpaths import _checks
from attnpaths.tasks.images import Images

# Images of classes 0 and 1 in the published training files; those of the test files come after.
TRAINING = {"mnist": (5923, 6742), "fashion_mnist": (6000, 6000)}


def check_source(images) -> None:
    """Refuse what are no images."""
    _checks.kind("images", images, Images, "Images, as images.load gives")


def check_classes(images, classes) -> Int[np.ndarray, "classes"]:
    """The classes to draw from (all by default), if sequences can be made of them."""
    check_source(images)
    total, counts = len(images.names), images.counts
    listed = list(range(total)) if classes is None else np.ravel(classes).tolist()
    outside = [c for c in listed if c not in range(total)]
    if outside:
        wanted = f"classes must be among the {total} of {images.source}, 0 to {total - 1}"
        raise ValueError(f"{wanted}; got {outside[:5]}")
    if len(listed) < 2:
        raise ValueError(f"sequences need two classes at least; got {len(listed)}")
    if len(set(listed)) < len(listed):
        raise ValueError(f"classes must be different; got {len(listed)}, of which some are equal")
    listed = np.array(listed, dtype=int)
    few = listed[counts[listed] < 2]
    if len(few):
        wanted = "a class needs two images at least, one shown and one asked for"
        got = f"class {few[0]} of {images.source} has {counts[few[0]]}"
        raise ValueError(f"{wanted}; {got}: leave it out")
    return listed


def choose(images: Images, rng, first, second, y):
    """Images and signs for pairs of classes; `y` is the label of the third image."""
    starts, counts = np.searchsorted(images.labels, np.arange(len(images.names))), images.counts
    signs = rng.choice([1, -1], size=len(y))
    shown = [rng.integers(counts[first]), rng.integers(counts[second])]
    third, beside = np.where(signs == y, [first, shown[0]], [second, shown[1]])
    query = (beside + 1 + rng.integers(counts[third] - 1)) % counts[third]
    rows = [starts[first] + shown[0], starts[second] + shown[1], starts[third] + query]
    return np.stack(rows, axis=1), signs


def fixed(images: Images, each: int | None):
    """Images, signs and labels of the authors' set out of distribution, `each` of either label."""
    check_source(images)
    if images.source not in TRAINING or len(images.names) < 2:
        wanted = f"the authors' set is of classes 0 and 1 of {' or '.join(TRAINING)}"
        raise ValueError(f"{wanted}; got {len(images.names)} classes of {images.source}")
    train = np.array(TRAINING[images.source])
    tests = images.counts[:2] - train
    if (tests < 1).any():
        wanted = f"classes 0 and 1 of {images.source} must be whole, with more than {train} images"
        raise ValueError(f"{wanted}; got {images.counts[:2]}; take images.load({images.source!r})")
    most = tests.min()
    if each is not None and each > most:
        wanted = f"examples must be at most {2 * most}, as the authors' set of {images.source} has "
        wanted += f"{most} sequences of one label"
        raise ValueError(f"{wanted}; got {2 * each}")
    counts = tests if each is None else [each, each]
    first, second = np.searchsorted(images.labels, [0, 1])
    i = np.concatenate([np.arange(count) for count in counts])
    own = np.repeat(np.add([first, second], train), counts)
    rows = np.stack([first + i, second + i, own + i], axis=1)
    return rows, np.full(len(rows), -1), np.repeat([-1, 1], counts)
