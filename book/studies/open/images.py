"""One-shot with three images: a query and three labelled ones, of which one is of its class.

The images are the library's own glyphs, so that no data are needed, and the heads are those of kept
networks, which were trained on Omniglot with two labelled images. Such a network knows two places
of labelled images and two label vectors, so that the third image stands in the place of the first,
with a label vector of its own, which no head has seen. The labels A, B and C of the three images
are in no particular order; the three outputs say of each label whether it is the query's.

Whether outputs *share* their paths is judged by a rule that was written before any order parameter
of this task had been seen; accuracies had been, to choose the place of the third image. What output
c prefers among paths is its own block of U less a multiple of the identity, D_c = U_cc − u_c 1
`[Π, Π]`, with u_c the mean of its diagonal; the overlap of two outputs is the cosine between these.

- They *share* their paths if the mean overlap is above `RULE` by two standard errors over draws,
  and above that of the same sequences with shuffled labels by two standard errors, too.
- They share *without meaning* if it is above `RULE`, but not above that of shuffled labels: paths
  then differ in what they see of any labels.
- They have paths *of their own* if it is below `RULE` by two standard errors; else it is *open*.
"""

from typing import NamedTuple

import numpy as np

from attnpaths import theory
from attnpaths.tasks import oneshot
from attnpaths.tasks.images import Images, load
from book.studies.oneshot.trained import load as load_network

#: Kept networks, draws of sequences with each, and the overlap from which outputs share.
NETWORKS = tuple(f"omniglot-2-4-128-seed{i}" for i in (1, 2, 3))
DRAWS, RULE = (0, 1, 2), 0.5
LABELS = ("A", "B", "C")
WIDTH, TEMPERATURE, EXAMPLES, TESTS = 10, 0.1, 240, 600


class Shown(NamedTuple):
    """Sequences: rows of three labelled images and a query, the label of each, and of the query."""

    rows: np.ndarray
    orders: np.ndarray
    asked: np.ndarray

    @property
    def y(self) -> np.ndarray:
        """+1 for the label of the query and −1 for the others, `[P, 3]`."""
        return 2 * np.eye(len(LABELS))[self.asked] - 1


def draw(images: Images, classes: np.ndarray, examples: int, seed: int | list[int]) -> Shown:
    """Random sequences of three of the classes; the query is never one of the images shown.

    >>> draw(load("glyphs", classes=5), np.arange(5), 7, seed=0).rows.shape
    (7, 4)
    """
    rng, every, count = np.random.default_rng(seed), np.arange(examples), len(LABELS)
    kinds = np.stack([rng.choice(classes, count, replace=False) for _ in every])
    orders = rng.permuted(np.tile(np.arange(count), (examples, 1)), axis=1)
    which = rng.integers(count, size=examples)
    starts, counts = np.searchsorted(images.labels, kinds), images.counts[kinds]
    shown = rng.integers(counts)
    start, many, beside = (each[every, which] for each in (starts, counts, shown))
    query = start + (beside + 1 + rng.integers(many - 1)) % many
    return Shown(np.column_stack([starts + shown, query]), orders, orders[every, which])


def tokens(encoder: oneshot.Encoder, shown: Shown, third: np.ndarray) -> np.ndarray:
    """Tokens `[P, 64, 192]`: two images, the query and the third image in the first one's place.

    `third [192]` is the label vector of C; those of A, B and the query are the encoder's.

    >>> glyphs = load("glyphs", classes=5)
    >>> shown = draw(glyphs, np.arange(5), 7, seed=0)
    >>> tokens(oneshot.Encoder(glyphs), shown, np.ones(192)).shape
    (7, 64, 192)
    """
    signs, patches = np.ones(len(shown.rows), int), oneshot.PATCHES
    usual, other = (
        encoder.pixels(oneshot.Sequences(shown.rows[:, which], signs, signs))
        for which in ([0, 1, 3], [2, 1, 3])
    )
    pixels = np.concatenate([usual, other[:, :patches]], axis=1)
    place = oneshot.positions()
    place = np.concatenate([place, place[:patches]])
    plus, minus, query = encoder.labels
    vectors = np.stack([plus, minus, third, query])
    asked = np.full(len(shown.rows), len(LABELS))
    labels = vectors[np.insert(shown.orders, 2, asked, axis=1)]
    return np.repeat(pixels, oneshot.CHANNELS, axis=2) + place + np.repeat(labels, patches, axis=1)


def blocks(U: np.ndarray) -> np.ndarray:
    """The block of each output, `[C, Π, Π]`, of U `[ΠC, ΠC]`."""
    count = len(LABELS)
    return np.einsum("pcqc->cpq", U.reshape(len(U) // count, count, -1, count))


def overlaps(U: np.ndarray) -> np.ndarray:
    """Cosines between what A and B, A and C, B and C prefer, `[3]`.

    >>> strengths = np.array([[2.0, 2.0, 1.0], [1.0, 1.0, 2.0]])
    >>> overlaps(np.diag(strengths.ravel())).round(2).tolist()
    [1.0, -1.0, -1.0]
    """
    own = blocks(U)
    means = np.trace(own, axis1=1, axis2=2) / own.shape[1]
    apart = (own - means[:, None, None] * np.eye(own.shape[1])[None]).reshape(len(own), -1)
    apart /= np.linalg.norm(apart, axis=1, keepdims=True)
    return (apart @ apart.T)[np.triu_indices(len(own), 1)]


def verdict(found: np.ndarray, shuffled: np.ndarray) -> str:
    """What the rule says of the overlaps of draws `[n]`, and of those of shuffled labels.

    >>> verdict(np.array([0.8, 0.9, 0.85]), np.array([0.1, 0.2, 0.1]))
    'share'
    """

    def beyond(values, limit):
        return values.mean() - limit > 2 * values.std(ddof=1) / np.sqrt(len(values))

    if beyond(-found, -RULE):
        return "of their own"
    if not beyond(found, RULE):
        return "open"
    return "share" if beyond(found - shuffled, 0.0) else "without meaning"


def of_images(name: str, draws=DRAWS, examples: int = EXAMPLES, tests: int = TESTS) -> dict:
    """Accuracies together, one by one and in the GP limit; overlaps; strengths of all paths."""
    kept, glyphs = load_network(name), load("glyphs")
    encoder, split = oneshot.Encoder(glyphs, kept.labels), oneshot.split_classes(glyphs)
    rows: list[dict] = []
    for seed in draws:
        train = draw(glyphs, split["train"], examples, [seed, 0])
        test = draw(glyphs, split["test"], tests, [seed, 1])
        rng = np.random.default_rng([seed, 2])
        third = rng.standard_normal(oneshot.DIM)
        xi, new = (
            np.asarray(kept.network.features(tokens(encoder, each, third)))
            for each in (train, test)
        )
        setting = {"heads": kept.heads, "temperature": TEMPERATURE}
        together = theory.solve(xi, train.y, width=WIDTH, **setting)
        alone = [theory.solve(xi, y, width=WIDTH, **setting) for y in train.y.T]
        other = theory.solve(xi, rng.permutation(train.y), width=WIDTH, **setting)
        limit = theory.gp_limit(xi, train.y, **setting)
        U = np.asarray(together.U)
        means = {"together": together.predict(new).mean, "GP": limit.predict(new).mean}
        means["alone"] = np.stack([each.predict(new).mean for each in alone], axis=1)
        rows.append(
            {key: float(np.mean(np.argmax(f, axis=1) == test.asked)) for key, f in means.items()}
            | {"overlaps": overlaps(U), "shuffled": overlaps(np.asarray(other.U))}
            | {"strengths": np.diag(U).reshape(-1, len(LABELS))}
            | {"converged": all(bool(each.converged) for each in (together, other, *alone))}
            | {"U": U}
        )
    # one order parameter is enough to look at
    return {key: [row[key] for row in rows] for key in rows[0]} | {"U": rows[0]["U"]}
