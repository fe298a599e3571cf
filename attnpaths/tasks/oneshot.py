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
from collections.abc import Iterable, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int

from attnpaths import _checks, _html
from attnpaths.tasks import images as image_sources
from attnpaths.tasks import pairs
from attnpaths.tasks.images import Images

SIDE, PATCH, CHANNELS = 32, 8, 3
PATCHES, PIXELS = (SIDE // PATCH) ** 2, PATCH**2
TOKENS, DIM = 3 * PATCHES, CHANNELS * PIXELS
# What the authors' layer normalisation adds to the variance.
_EPSILON = 1e-5
# Alphabets of Vinyals et al. that do not train; what is not named here does.
_VALIDATION = ["Armenian", "Bengali", "Early_Aramaic", "Hebrew", "Mkhedruli_(Georgian)"]
_TEST = ["Kannada", "Keble", "Malayalam", "Manipuri", "Mongolian", "Old_Church_Slavonic_(Cyrillic)"]
_TEST += ["Oriya", "Sylheti", "Syriac_(Serto)", "Tengwar", "Tibetan", "ULOG"]
_TEST_CHARACTERS = [f"Gurmukhi/character{i}" for i in range(42, 46)]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Sequences:
    """Which images follow each other: rows of a source, and the labels they carry.

    `images [P, 3]` are indices into `Images.pixels`; `signs [P]` = ±1 is the label of the first
    image, the second has the other one; `y [P]` = ±1 is the label that the third should get.
    """

    images: Int[np.ndarray, "examples 3"]
    signs: Int[np.ndarray, "examples"]
    y: Int[np.ndarray, "examples"]

    def __post_init__(self):
        """Refuse what are no rows of three images, and labels other than ±1."""
        for name in ("images", "signs", "y"):
            if _checks.masked(getattr(self, name)):
                raise ValueError(f"{name} must not be masked; leave such sequences out")
        images = np.asarray(self.images)
        if images.ndim != 2 or images.shape[1] != 3 or images.dtype.kind not in "iu":
            wanted = "images must be whole numbers [P, 3], three rows of a source for each sequence"
            got = f"{images.dtype} of shape {images.shape}"
            raise ValueError(f"{wanted}; got {got}; `draw` makes them")
        if images.size and images.min() < 0:
            raise ValueError(f"images must be rows of a source, from 0 on; got {images.min()}")
        vars(self)["images"] = images
        for name in ("signs", "y"):
            values = np.asarray(getattr(self, name))
            if values.shape != images.shape[:1]:
                wanted = f"{name} must be one label for each of {len(images)} rows of images"
                raise ValueError(f"{wanted}; got shape {values.shape}")
            _checks.signs(name, values)
            vars(self)[name] = values.astype(int)

    def __repr__(self):
        """Sizes only."""
        return f"Sequences(examples={len(self)}, positive={np.sum(self.y == 1)})"

    def __len__(self) -> int:
        """The number of sequences, P."""
        return len(self.y)

    @property
    def orders(self) -> Int[np.ndarray, "examples"]:
        """0 where the first image is labelled +, 1 where it is labelled −."""
        return (1 - self.signs) // 2

    def __getitem__(self, rows) -> "Sequences":
        """Some of the sequences; a single one is a row of its own."""
        rows = np.atleast_1d(np.arange(len(self))[rows])
        return Sequences(self.images[rows], self.signs[rows], self.y[rows])


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Split(_html.Sized):
    """Labelled sequences: tokens `x`, labels `y` = ±1, and the `sequences` they were made of."""

    x: Float[Array, "examples tokens dim"]
    y: Float[Array, "examples"]
    sequences: Sequences


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Training and test data, tests on other sources by name, and the label vectors."""

    train: Split
    test: Split
    out_of_distribution: dict[str, Split]
    labels: Float[np.ndarray, "3 dim"]
    source: str

    def __repr__(self):
        """Sizes and sources."""
        splits = {"train": self.train, "test": self.test} | self.out_of_distribution
        listed = ", ".join(f"{name}={split}" for name, split in splits.items())
        return f"Task({self.source}: {listed})"

    def _repr_html_(self) -> str:
        """The same, as a table."""
        facts = {"source": self.source, "training": self.train, "test": self.test}
        return _html.card("Task", facts | self.out_of_distribution)


class Encoder:
    """Turns sequences of one source into tokens, quickly: patches are normalised once.

    `labels [3, 192]` holds v₊, v₋ and v_?, by default those of `label_vectors()`. Patches are
    kept as bytes with their own mean and scale, 36 MB for the whole of Omniglot.

    >>> glyphs = image_sources.load("glyphs", classes=10)
    >>> encoder, four = Encoder(glyphs), draw(glyphs, 4, seed=0)
    >>> encoder(four).shape, encoder.pixels(four).shape
    ((4, 48, 192), (4, 48, 64))
    """

    def __init__(self, images: Images, labels=None):
        """Cut the images into patches."""
        pairs.check_source(images)
        height, width = images.pixels.shape[1:]
        if (height, width) != (SIDE, SIDE):
            wanted = f"{SIDE}×{SIDE} pixels for {PATCHES} patches of {PATCH}×{PATCH}"
            got = f"{height}×{width}: load them with size={SIDE}"
            raise ValueError(f"images must be of {wanted}; got {got}")
        self.labels = label_vectors() if labels is None else _vectors(labels)
        cells = images.pixels.reshape(-1, SIDE // PATCH, PATCH, SIDE // PATCH, PATCH)
        self.patches = cells.swapaxes(2, 3).reshape(-1, PATCHES, PIXELS)
        self.means = self.patches.mean(axis=-1, dtype=np.float32)
        # the authors normalise pixels by source first, which matters for faint patches alone
        floor = _EPSILON * (255 * images.std) ** 2
        blocks = np.array_split(self.patches, -(-len(self.patches) // 2000))
        variances = np.concatenate([block.var(axis=-1, dtype=np.float32) for block in blocks])
        self.scales = (variances + np.float32(floor)) ** np.float32(-0.5)
        self.codes = codes(self.labels)

    def __call__(self, sequences: Sequences) -> Float32[np.ndarray, "examples tokens dim"]:
        """Tokens `[P, 48, 192]` in single precision."""
        _checks.kind("sequences", sequences, Sequences)
        _fits(len(sequences), 8)
        x = np.repeat(self.pixels(sequences), CHANNELS, axis=-1)
        x += self.codes[sequences.orders]
        return x

    def pixels(self, sequences: Sequences) -> Float32[np.ndarray, "examples tokens pixels"]:
        """Normalised patches `[P, 48, 64]`, one channel, without position and label."""
        _checks.kind("sequences", sequences, Sequences)
        rows, count = sequences.images.ravel(), len(self.patches)
        outside = rows[rows >= count]
        if len(outside):
            wanted = f"sequences.images must be rows of this source, 0 to {count - 1}"
            remedy = "encode sequences with the images they were drawn from"
            raise ValueError(f"{wanted}; got {outside[:5].tolist()}; {remedy}")
        _fits(len(sequences), 2)
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
    seed = _checks.whole("seed", seed, least=0)
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
    labels = np.repeat(_vectors(labels)[orders], PATCHES, axis=1)
    return (positions() + labels).astype(np.float32)


def split_classes(images: Images) -> dict[str, Int[np.ndarray, "classes"]]:
    """The classes `[n]` that serve `"train"`, `"validation"` and `"test"`: no class serves two.

    Omniglot is split as Vinyals et al. did: n = 1028, 172 and 423, by alphabet. Of C glyphs, class
    c tests if (c + ½)/C > 0.74, and else validates if (c + ½)/C > 0.63: shares as in Omniglot.

    >>> {k: len(v) for k, v in split_classes(image_sources.load("glyphs", classes=100)).items()}
    {'train': 63, 'validation': 11, 'test': 26}
    """
    pairs.check_source(images)
    if images.source == "omniglot":
        alphabets = [name.split("/")[0] for name in images.names]
        validation = np.isin(alphabets, _VALIDATION)
        test = np.isin(alphabets, _TEST) | np.isin(images.names, _TEST_CHARACTERS)
    elif images.source == "glyphs":
        place = (np.arange(len(images.names)) + 0.5) / len(images.names)
        test, validation = place > 0.74, (place > 0.63) & (place <= 0.74)
    else:
        problem = f"{images.source} has no split into training and test classes: it only tests"
        raise ValueError(f"{problem}; train on 'omniglot' or 'glyphs'")
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
    examples = _checks.whole("examples", examples, least=1)
    several = _checks.axes_of(seed) == 1
    for word in list(seed) if several else [seed]:  # pyright: ignore[reportArgumentType]
        _checks.whole("seed", word, least=0)
    classes = pairs.check_classes(images, classes)
    # classes, labels and images of each, and what they are made from
    _checks.memory(120 * examples, f"{examples:,} sequences", "draw fewer examples")
    rng = np.random.default_rng(seed)
    first = rng.integers(len(classes), size=examples)
    second = (first + rng.integers(1, len(classes), size=examples)) % len(classes)
    y = np.repeat([1, -1], [(examples + 1) // 2, examples // 2])
    return Sequences(*pairs.choose(images, rng, classes[first], classes[second], y), y)


def authors_set(images: Images, examples: int | None = None) -> Sequences:
    """The sequences on which the authors test out of distribution: always the same.

    `images [P, 3]`: the i-th image of class 0 in the training file, labelled −, then the i-th of
    class 1, labelled +, then the i-th of either class in the test file, label y = ∓1. There are
    2,115 of MNIST and 2,000 of FashionMNIST; `examples` keeps so many, the first half of each.

    >>> labels = np.repeat([0, 1], [5925, 6743])  # two test images of class 0, one of class 1
    >>> pixels = np.zeros((len(labels), 8, 8), np.uint8)
    >>> found = authors_set(Images("mnist", pixels, labels, ("0", "1"), 0.13, 0.31))
    >>> found.images.tolist(), found.y.tolist()
    ([[0, 5925, 5923], [1, 5926, 5924], [0, 5925, 12667]], [-1, -1, 1])
    """
    if examples is not None and _checks.whole("examples", examples, least=2) % 2:
        raise ValueError(f"examples must be even, half of them of each label; got {examples}")
    return Sequences(*pairs.fixed(images, None if examples is None else examples // 2))


def make_task(
    seed: int,
    *,
    source: str | Images = "omniglot",
    examples: int = 600,
    test_examples: int = 1000,
    out_of_distribution: Sequence[str | Images] = ("mnist", "fashion_mnist"),
    out_of_distribution_set: str = "random",
    labels=None,
    progress: bool = True,
) -> Task:
    """Training and test data of the paper's theory: P = 600 and 1000 sequences, half of each label.

    `x [P, 48, 192]` is (z − mean z)/√(var z + ε) + p_t + v, z a patch in three channels; `y [P]`.
    Sequences are of the training and the test classes of `source`; `out_of_distribution` lists
    sources of which classes 0 and 1 are told apart, in sequences that are `"random"` or, by
    `out_of_distribution_set`, those of the `"authors"` (`authors_set`). Give `Images`, not names,
    to spare loading, and `labels` to match a trained network. Equal seeds give equal tasks, others
    independent ones.

    >>> task = make_task(0, source="glyphs", examples=6, test_examples=4, out_of_distribution=())
    >>> task.train.x.shape, task.test.y.tolist()
    ((6, 48, 192), [1.0, 1.0, -1.0, -1.0])
    """
    seed = _checks.whole("seed", seed, least=0)
    examples = _checks.whole("examples", examples, least=1)
    test_examples = _checks.whole("test_examples", test_examples, least=1)
    _checks.choice("out_of_distribution_set", out_of_distribution_set, ("random", "authors"))
    labels = label_vectors() if labels is None else _vectors(labels)
    progress = _checks.flag("progress", progress)
    others = out_of_distribution
    if isinstance(others, str | Images) or not isinstance(others, Iterable):
        problem = f"out_of_distribution must be a list of sources; got {others!r} alone"
        raise ValueError(f"{problem}; put it in a list, or give () for none")
    others = tuple(others)
    # tokens are made in single precision, and kept in double
    _fits(examples + test_examples * (1 + len(others)), 16)
    images = _load(source, progress)
    classes, encoder = split_classes(images), Encoder(images, labels)
    train = _split(encoder, draw(images, examples, seed=[seed, 0], classes=classes["train"]))
    test = _split(encoder, draw(images, test_examples, seed=[seed, 1], classes=classes["test"]))
    more = {}
    for number, other in enumerate(others, start=2):
        other = _load(other, progress, classes=(0, 1))
        if other.source in (images.source, *more):
            problem = f"the task has {other.source!r} twice, and its test sets go by their source"
            remedy = "leave one out, or rename it: dataclasses.replace(images, source=...)"
            raise ValueError(f"{problem}; {remedy}")
        if out_of_distribution_set == "authors":
            sequences = authors_set(other, test_examples)
        else:
            sequences = draw(other, test_examples, seed=[seed, number], classes=(0, 1))
        more[other.source] = _split(Encoder(other, labels), sequences)
    return Task(train, test, more, labels, images.source)


def _load(source, progress, classes=None) -> Images:
    if isinstance(source, Images):
        return source
    return image_sources.load(source, classes=classes, progress=progress)


def _vectors(labels) -> Float[np.ndarray, "3 dim"]:
    """v₊, v₋ and v_?, if that is what they are."""
    try:
        found = np.array(_checks.array("labels", labels, "vectors dim"))
        if found.shape != (3, DIM):
            raise ValueError(f"labels must be [3, {DIM}] (v₊, v₋, v_?); got {found.shape}")
    except ValueError as error:
        advice = "take label_vectors(), or the labels that a network was trained with"
        raise ValueError(f"{error}; {advice}") from None
    return found


def _fits(examples: int, each: int) -> None:
    """Refuse more tokens than memory holds, where each number of them takes so many bytes."""
    what = f"{examples:,} sequences of {TOKENS} tokens of dimension {DIM}"
    _checks.memory(each * examples * TOKENS * DIM, what, "take fewer examples")


def _split(encoder, sequences) -> Split:
    x, y = encoder(sequences), sequences.y
    return Split(jnp.asarray(x, dtype=float), jnp.asarray(y, dtype=float), sequences)
