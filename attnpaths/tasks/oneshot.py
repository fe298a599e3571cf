"""One-shot image classification: which of two labelled images is of the third one's class?

A sequence is three images. The first two are of two classes, labelled + and − in no particular
order; the third, labelled ?, is another image of one of these classes, whose label is to be
told. Each image of 32×32 pixels is cut into 16 patches of 8×8, grey repeated in three channels:
48 tokens of dimension D = 192. A token is its patch, normalised to zero mean and unit variance,
plus the sinusoidal code of its position, plus one of three fixed random vectors v₊, v₋, v_?.
"""

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int

from attnpaths import _inputs
from attnpaths.tasks import images as image_sources
from attnpaths.tasks.images import Images

SIDE = 32
PATCH = 8
CHANNELS = 3
PATCHES = (SIDE // PATCH) ** 2
PIXELS = PATCH**2
TOKENS = 3 * PATCHES
DIM = CHANNELS * PIXELS
# What the authors' layer normalisation adds to the variance.
_EPSILON = 1e-5

# Alphabets of Vinyals et al. that do not train; what is not named here does.
_VALIDATION = {"Armenian", "Bengali", "Early_Aramaic", "Hebrew", "Mkhedruli_(Georgian)"}
_TEST = {
    "Kannada",
    "Keble",
    "Malayalam",
    "Manipuri",
    "Mongolian",
    "Old_Church_Slavonic_(Cyrillic)",
    "Oriya",
    "Sylheti",
    "Syriac_(Serto)",
    "Tengwar",
    "Tibetan",
    "ULOG",
}
_TEST_CHARACTERS = {f"Gurmukhi/character{i}" for i in range(42, 46)}


@dataclasses.dataclass(frozen=True, eq=False)
class Sequences:
    """Which images follow each other: rows of a source, and the labels they carry.

    `images [P, 3]` are indices into `Images.pixels`; `signs [P]` = ±1 is the label of the first
    image, the second has the other one; `y [P]` = ±1 is the label that the third should get.
    """

    images: Int[np.ndarray, "examples 3"]
    signs: Int[np.ndarray, "examples"]
    y: Int[np.ndarray, "examples"]

    def __post_init__(self):
        """Refuse labels other than ±1."""
        for name in ("signs", "y"):
            bad = np.setdiff1d(getattr(self, name), [1, -1])
            if len(bad):
                raise ValueError(
                    f"{name} must be +1 or −1; got {bad[:5].tolist()}; write 0/1 labels as 2*y - 1"
                )

    def __len__(self) -> int:
        """The number of sequences, P."""
        return len(self.y)

    @property
    def orders(self) -> Int[np.ndarray, "examples"]:
        """0 where the first image is labelled +, 1 where it is labelled −."""
        return (1 - self.signs) // 2

    def __getitem__(self, rows) -> "Sequences":
        """Some of the sequences."""
        return Sequences(self.images[rows], self.signs[rows], self.y[rows])


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Labelled sequences: tokens `x`, labels `y` = ±1, and the `sequences` they were made of."""

    x: Float[Array, "examples tokens dim"]
    y: Float[Array, "examples"]
    sequences: Sequences


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """Training and test data, tests on other sources by name, and the label vectors."""

    train: Split
    test: Split
    out_of_distribution: dict[str, Split]
    labels: Float[np.ndarray, "3 dim"]
    source: str


class Encoder:
    """Turns sequences of one source into tokens, quickly: patches are normalised once.

    `labels [3, 192]` holds v₊, v₋ and v_?, by default those of `label_vectors()`. Patches are
    kept as bytes with their own mean and scale, 36 MB for the whole of Omniglot.

    >>> glyphs = image_sources.load("glyphs", classes=10)
    >>> encoder = Encoder(glyphs)
    >>> x = encoder(draw(glyphs, 4, seed=0))
    >>> x.shape, x.dtype
    ((4, 48, 192), dtype('float32'))
    >>> encoder.pixels(draw(glyphs, 4, seed=0)).shape
    (4, 48, 64)
    """

    def __init__(self, images: Images, labels=None):
        """Cut the images into patches."""
        if images.pixels.shape[1:] != (SIDE, SIDE):
            height, width = images.pixels.shape[1:]
            raise ValueError(
                f"images must be of {SIDE}×{SIDE} pixels for {PATCHES} patches of {PATCH}×{PATCH}; "
                f"got {height}×{width}: load them with size={SIDE}"
            )
        labels = label_vectors() if labels is None else np.asarray(labels)
        if labels.shape != (3, DIM):
            raise ValueError(f"labels must be [3, {DIM}] (v₊, v₋, v_?); got {labels.shape}")
        self.labels = labels
        cells = SIDE // PATCH
        patches = images.pixels.reshape(-1, cells, PATCH, cells, PATCH).transpose(0, 1, 3, 2, 4)
        self.patches = patches.reshape(-1, PATCHES, PIXELS)
        self.means = self.patches.mean(axis=-1, dtype=np.float32)
        # the authors normalise pixels by source first, which matters for faint patches alone
        floor = _EPSILON * (255 * images.std) ** 2
        variances = np.concatenate(
            [
                block.var(axis=-1, dtype=np.float32)
                for block in np.array_split(self.patches, -(-len(self.patches) // 2000))
            ]
        )
        self.scales = (variances + np.float32(floor)) ** np.float32(-0.5)
        self.codes = codes(labels)

    def __call__(self, sequences: Sequences) -> Float32[np.ndarray, "examples tokens dim"]:
        """Tokens `[P, 48, 192]` in single precision."""
        normalised = self.pixels(sequences)
        x = np.repeat(normalised, CHANNELS, axis=-1)
        x += self.codes[sequences.orders]
        return x

    def pixels(self, sequences: Sequences) -> Float32[np.ndarray, "examples tokens pixels"]:
        """Normalised patches `[P, 48, 64]`, one channel, without position and label."""
        rows = sequences.images.ravel()
        normalised = self.patches[rows].astype(np.float32)
        normalised -= self.means[rows][..., None]
        normalised *= self.scales[rows][..., None]
        return normalised.reshape(len(sequences), TOKENS, PIXELS)


def label_vectors(seed: int = 0) -> Float[np.ndarray, "3 dim"]:
    """The vectors v₊, v₋ and v_? `[3, 192]`, whose entries are independent: v ~ N(0, 1).

    A trained network knows the vectors it was trained with, and needs them.

    >>> label_vectors().shape
    (3, 192)
    """
    seed = _inputs.whole("seed", seed, least=0)
    return np.random.default_rng([seed, 0x1ABE1]).standard_normal((3, DIM))


@functools.cache
def positions() -> Float[np.ndarray, "tokens dim"]:
    """Sinusoidal position code `[48, 192]`, shifted and scaled to zero mean and unit variance.

    Before that, columns 2i and 2i + 1 of p_t are sin and cos of t/10000^(2i/D).

    >>> bool(abs(positions().mean()) < 1e-12), round(float(positions().std(ddof=1)), 4)
    (True, 1.0)
    """
    rates = np.exp(-math.log(10_000) * np.arange(0, DIM, 2) / DIM)
    angles = np.arange(TOKENS)[:, None] * rates
    table = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(TOKENS, DIM)
    return (table - table.mean()) / (table.std(ddof=1) + 1e-6)


def codes(labels) -> Float32[np.ndarray, "2 tokens dim"]:
    """Position plus label of every token, for the orders (+, −, ?) and (−, +, ?).

    Takes `labels [3, 192]`, the vectors v; gives c_t = p_t + v as `[2, 48, 192]`.

    >>> codes(label_vectors()).shape
    (2, 48, 192)
    """
    orders = np.array([[0, 1, 2], [1, 0, 2]])
    labels = np.repeat(np.asarray(labels)[orders], PATCHES, axis=1)
    return (positions() + labels).astype(np.float32)


def split_classes(images: Images) -> dict[str, Int[np.ndarray, "classes"]]:
    """The classes `[n]` that serve `"train"`, `"validation"` and `"test"`: no class serves two.

    Omniglot is split as Vinyals et al. did: n = 1028, 172 and 423, by alphabet. Of C glyphs, class
    c tests if (c + ½)/C > 0.74, and else validates if (c + ½)/C > 0.63: shares as in Omniglot.

    >>> {k: len(v) for k, v in split_classes(image_sources.load("glyphs", classes=100)).items()}
    {'train': 63, 'validation': 11, 'test': 26}
    """
    count = len(images.names)
    if images.source == "omniglot":
        alphabets = [name.split("/")[0] for name in images.names]
        validation = np.array([a in _VALIDATION for a in alphabets])
        pairs = zip(images.names, alphabets, strict=True)
        test = np.array([a in _TEST or name in _TEST_CHARACTERS for name, a in pairs])
    elif images.source == "glyphs":
        place = (np.arange(count) + 0.5) / count
        test = place > 0.74
        validation = (place > 0.63) & ~test
    else:
        raise ValueError(
            f"{images.source} has no split into training and test classes: it only tests; "
            "train on 'omniglot' or 'glyphs'"
        )
    parts = {"train": ~(validation | test), "validation": validation, "test": test}
    return {name: np.flatnonzero(part) for name, part in parts.items()}


def draw(
    images: Images,
    examples: int,
    *,
    seed: int | Sequence[int],
    classes: Sequence[int] | Int[np.ndarray, "classes"] | None = None,
) -> Sequences:
    """Random sequences of two of the `classes` (all of them by default), half of each label.

    Gives `images [P, 3]`, `signs [P]` and `y [P]`, whose first ⌈P/2⌉ entries are +1. Classes, the
    order of + and −, and images are random; the third image is never one of the first two.

    >>> draw(image_sources.load("glyphs", classes=10), 5, seed=0).y.tolist()
    [1, 1, 1, -1, -1]
    """
    examples = _inputs.whole("examples", examples, least=1)
    classes = _classes(images, classes)
    rng = np.random.default_rng(seed)
    first = rng.integers(len(classes), size=examples)
    second = (first + rng.integers(1, len(classes), size=examples)) % len(classes)
    plus = (examples + 1) // 2
    y = np.repeat([1, -1], [plus, examples - plus])
    return _compose(images, rng, classes[first], classes[second], y)


def epoch(
    images: Images, *, seed: int, number: int, classes, batch: int = 128, start: int = 0
) -> Iterator[Sequences]:
    """Every pair of `classes` once, in random order, in batches; an incomplete last one is left.

    Of n classes, C(n, 2) // batch batches: `images [batch, 3]`, `signs [batch]`, `y [batch]`.
    Batch b of epoch `number` depends on `seed` alone, so that training can go on at any batch
    `start` as if it had never stopped.

    >>> glyphs = image_sources.load("glyphs", classes=10)
    >>> len(list(epoch(glyphs, seed=0, number=0, classes=range(10), batch=15)))
    3
    """
    classes = _classes(images, classes)
    batch = _inputs.whole("batch", batch, least=1)
    start = _inputs.whole("start", start, least=0)
    one, other = np.triu_indices(len(classes), k=1)
    order = np.random.default_rng([seed, number]).permutation(len(one))
    for b in range(start, len(one) // batch):
        rng = np.random.default_rng([seed, number, b])
        pairs = order[b * batch : (b + 1) * batch]
        swap = rng.integers(2, size=batch).astype(bool)
        first = np.where(swap, one[pairs], other[pairs])
        second = np.where(swap, other[pairs], one[pairs])
        y = rng.choice([1, -1], size=batch)
        yield _compose(images, rng, classes[first], classes[second], y)


def batches_per_epoch(classes: int, batch: int = 128) -> int:
    """How many batches `epoch` gives for n classes: C(n, 2) // batch. Takes and gives no array.

    >>> batches_per_epoch(1028)
    4124
    """
    classes = _inputs.whole("classes", classes, least=0)
    return math.comb(classes, 2) // _inputs.whole("batch", batch, least=1)


def make_task(
    seed: int,
    *,
    source: str | Images = "omniglot",
    examples: int = 600,
    test_examples: int = 1000,
    out_of_distribution: Sequence[str | Images] = ("mnist", "fashion_mnist"),
    labels=None,
    progress: bool = True,
) -> Task:
    """Training and test data of the paper's theory: P = 600 and 1000 sequences, half of each label.

    `x [P, 48, 192]` is (z − mean z)/√(var z + ε) + p_t + v, z a patch in three channels; `y [P]`.
    Training sequences are of the training classes of `source`, test sequences of its test
    classes; `out_of_distribution` lists sources of which classes 0 and 1 are told apart. Give
    `Images` in place of names to spare loading them again, and `labels` to match a trained
    network. Equal seeds give equal tasks; different seeds are independent.

    >>> task = make_task(0, source="glyphs", examples=6, test_examples=4, out_of_distribution=())
    >>> task.train.x.shape, task.test.y.tolist()
    ((6, 48, 192), [1.0, 1.0, -1.0, -1.0])
    """
    seed = _inputs.whole("seed", seed, least=0)
    if isinstance(out_of_distribution, str | Images):
        raise ValueError(
            f"out_of_distribution must be a list of sources; got {out_of_distribution!r} alone; "
            "put it in a list"
        )
    images = _load(source, progress)
    classes = split_classes(images)
    encoder = Encoder(images, labels)
    train = draw(images, examples, seed=[seed, 0], classes=classes["train"])
    test = draw(images, test_examples, seed=[seed, 1], classes=classes["test"])
    others = {}
    for number, other in enumerate(out_of_distribution, start=2):
        other = _load(other, progress, classes=(0, 1))
        if other.source in (images.source, *others):
            raise ValueError(
                f"the task has {other.source!r} twice, and its test sets go by their source; "
                "leave one out, or rename it: dataclasses.replace(images, source=...)"
            )
        sequences = draw(other, test_examples, seed=[seed, number], classes=(0, 1))
        others[other.source] = _split(Encoder(other, encoder.labels), sequences)
    return Task(
        train=_split(encoder, train),
        test=_split(encoder, test),
        out_of_distribution=others,
        labels=encoder.labels,
        source=images.source,
    )


def _load(source, progress, classes=None) -> Images:
    if isinstance(source, Images):
        return source
    return image_sources.load(source, classes=classes, progress=progress)


def _classes(images, classes) -> Int[np.ndarray, "classes"]:
    """The classes to draw from (all by default), if sequences can be made of them."""
    total, counts = len(images.names), images.counts
    listed = list(range(total)) if classes is None else np.ravel(classes).tolist()
    outside = [c for c in listed if c not in range(total)]
    if outside:
        raise ValueError(
            f"classes must be among the {total} of {images.source}, 0 to {total - 1}; "
            f"got {outside[:5]}"
        )
    if len(listed) < 2:
        raise ValueError(f"sequences need two classes at least; got {len(listed)}")
    if len(set(listed)) < len(listed):
        raise ValueError(f"classes must be different; got {len(listed)}, of which some are equal")
    listed = np.array(listed, dtype=int)
    few = listed[counts[listed] < 2]
    if len(few):
        raise ValueError(
            f"a class needs two images at least, one shown and one asked for; class {few[0]} of "
            f"{images.source} has {counts[few[0]]}: leave it out"
        )
    return listed


def _split(encoder, sequences) -> Split:
    x, y = encoder(sequences), sequences.y
    return Split(jnp.asarray(x, dtype=float), jnp.asarray(y, dtype=float), sequences)


def _compose(images, rng, first, second, y) -> Sequences:
    """Choose labels and images for pairs of classes; `y` is the label of the third image."""
    starts = np.searchsorted(images.labels, np.arange(len(images.names)))
    counts = images.counts
    signs = rng.choice([1, -1], size=len(y))
    third = np.where(signs == y, first, second)

    def pick(of):
        return rng.integers(counts[of])

    chosen = np.stack([pick(first), pick(second)], axis=1)
    beside = np.where(signs == y, chosen[:, 0], chosen[:, 1])
    query = (beside + 1 + rng.integers(counts[third] - 1)) % counts[third]
    rows = np.stack([starts[first] + chosen[:, 0], starts[second] + chosen[:, 1]], axis=1)
    rows = np.concatenate([rows, (starts[third] + query)[:, None]], axis=1)
    return Sequences(rows, signs, y)
