import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from attnpaths.tasks import images, oneshot
from attnpaths.tasks.images import Images
from attnpaths.tasks.oneshot import (
    Encoder,
    Sequences,
    authors_set,
    draw,
    make_task,
    split_classes,
)
from attnpaths.training import batches_per_epoch, epoch

needs_omniglot = pytest.mark.skipif(
    not (Path(os.environ.get("ATTNPATHS_DATA", "")) / "omniglot").is_dir()
    or not os.environ.get("ATTNPATHS_DATA"),
    reason="OMNIGLOT IS NOT TESTED: set ATTNPATHS_DATA to a folder with omniglot/*.zip in it",
)


@pytest.fixture(scope="module")
def glyphs():
    return images.load("glyphs", classes=60)


def named(*names, source="omniglot"):
    """Images of the given classes, of which only the names matter."""
    pixels = np.zeros((3 * len(names), 32, 32), np.uint8)
    return Images(source, pixels, np.repeat(np.arange(len(names)), 3), names, 0.9, 0.1)


def test_tokens_are_those_of_the_authors(glyphs):
    """The authors' pipeline step by step: scale, normalise, repeat, cut, LayerNorm, add, add."""
    encoder = Encoder(glyphs)
    sequences = draw(glyphs, 6, seed=3)
    raw = torch.tensor(glyphs.pixels[sequences.images] / 255, dtype=torch.float32)
    raw = ((raw - glyphs.mean) / glyphs.std)[:, :, None].repeat(1, 1, 3, 1, 1)
    # images, channels, rows of patches, rows, columns of patches, columns
    cut = raw.reshape(6, 3, 3, 4, 8, 4, 8).permute(0, 1, 3, 5, 4, 6, 2).reshape(6, 48, 192)
    tokens = torch.nn.functional.layer_norm(cut, (192,)).numpy().copy()

    position, k = np.arange(48)[:, None], np.arange(192)
    angle = position / 10_000 ** (2 * (k // 2) / 192)
    table = np.where(k % 2, np.cos(angle), np.sin(angle))
    tokens += (table - table.mean()) / table.std(ddof=1)
    v_plus, v_minus, v_query = encoder.labels
    for x, sign in zip(tokens, sequences.signs, strict=True):
        x[:16] += v_plus if sign == 1 else v_minus
        x[16:32] += v_minus if sign == 1 else v_plus
        x[32:] += v_query
    np.testing.assert_allclose(encoder(sequences), tokens, atol=3e-5)


def test_blank_patches_are_zero_and_others_normalised(glyphs):
    p = Encoder(glyphs).pixels(draw(glyphs, 50, seed=0))
    assert p.shape == (50, 48, 64) and p.dtype == np.float32
    blank = np.abs(p).max(axis=-1) == 0
    assert 0.1 < blank.mean() < 0.8
    np.testing.assert_allclose(p.mean(axis=-1), 0, atol=1e-5)
    # where ink barely touches a patch, it stays fainter than elsewhere
    spread = p[~blank].std(axis=-1)
    assert spread.max() < 1.0001 and np.median(spread) > 0.999 and np.quantile(spread, 0.05) > 0.98


def test_faint_patches_are_normalised_by_source():
    """One grey step in a patch: ε is in the units of the source's own normalisation."""
    pixels = np.full((2, 32, 32), 200, np.uint8)
    pixels[:, 0, 0] = 201
    labels, sequences = np.array([0, 1]), Sequences(np.array([[0, 1, 0]]), *np.ones((2, 1), int))
    for std in (0.084, 0.353):
        source = Images("mnist", pixels, labels, ("0", "1"), 0.5, std)
        found = Encoder(source).pixels(sequences)[0, 0]
        normalised = torch.tensor((pixels[0, :8, :8] / 255 - 0.5) / std).reshape(1, 64)
        wanted = torch.nn.functional.layer_norm(normalised, (64,))[0]
        np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_sequences_follow_the_rules(glyphs):
    chosen = np.array([2, 3, 5, 7, 11])
    s = draw(glyphs, 4001, seed=1, classes=chosen)
    first, second, third = glyphs.labels[s.images].T
    assert (
        (first != second).all() and np.isin(first, chosen).all() and np.isin(second, chosen).all()
    )
    # the third image carries the label of the one whose class it shares
    np.testing.assert_array_equal(s.y, np.where(third == first, s.signs, -s.signs))
    assert ((third == first) | (third == second)).all()
    assert (s.images[:, 2] != s.images[:, 0]).all() and (s.images[:, 2] != s.images[:, 1]).all()
    assert s.y.tolist() == [1] * 2001 + [-1] * 2000
    # neither place nor label gives the answer away
    for giveaway in (s.signs, np.where(third == first, 1, -1), np.where(first < second, 1, -1)):
        assert abs((giveaway * s.y).mean()) < 4 / np.sqrt(4001)
    assert len(np.unique(s.images)) == 100
    np.testing.assert_array_equal(s.images, draw(glyphs, 4001, seed=1, classes=chosen).images)
    assert (s.images != draw(glyphs, 4001, seed=2, classes=chosen).images).any()


def test_classes_of_different_sizes():
    labels = np.repeat([0, 1, 2], [2, 50, 7])
    pixels = np.zeros((59, 32, 32), np.uint8)
    source = Images("mnist", pixels, labels, ("0", "1", "2"), 0.1, 0.3)
    s = draw(source, 2000, seed=0)
    first, second, third = labels[s.images].T
    assert (first != second).all() and ((third == first) | (third == second)).all()
    assert (s.images[:, 2:] != s.images[:, :2]).all()
    assert len(np.unique(s.images)) == 59


def test_an_epoch_is_every_pair_once(glyphs):
    classes = np.arange(10, 30)
    setting = {"seed": 0, "classes": classes, "batch": 19, "sampling": "each"}
    batches = list(epoch(glyphs, number=0, **setting))
    assert len(batches) == batches_per_epoch(20, 19) == 10
    pairs = np.concatenate([np.sort(glyphs.labels[b.images[:, :2]]) for b in batches])
    assert len(np.unique(pairs, axis=0)) == 190
    assert pairs.min() == 10 and pairs.max() == 29
    y = np.concatenate([b.y for b in batches])
    assert 0.35 < (y == 1).mean() < 0.65
    later = list(
        epoch(glyphs, seed=0, number=0, classes=classes, batch=19, sampling="each", start=4)
    )
    assert len(later) == 6
    for a, b in zip(batches[4:], later, strict=True):
        np.testing.assert_array_equal(a.images, b.images)
        np.testing.assert_array_equal(a.signs, b.signs)
        np.testing.assert_array_equal(a.y, b.y)
    other = next(epoch(glyphs, number=1, **setting))
    assert (other.images != batches[0].images).any()


def test_an_epoch_of_the_authors_shows_a_pair_with_the_same_images(glyphs):
    setting = {"seed": 0, "classes": np.arange(10, 20), "batch": 45}
    shown = [b for n in range(40) for b in epoch(glyphs, number=n, **setting)]
    rows = np.concatenate([b.images for b in shown])
    ordered = glyphs.labels[rows[:, :2]] @ [100, 1]
    # 1,800 draws with replacement meet each of the 90 ordered pairs, and three images each time
    assert len(np.unique(ordered)) == len(np.unique(rows, axis=0)) == 90
    one = next(epoch(glyphs, number=0, **setting))
    assert len(np.unique(one.images, axis=0)) < 45
    again = next(epoch(glyphs, number=0, start=0, **setting))
    np.testing.assert_array_equal(one.signs, again.signs)


def test_epoch_of_the_paper():
    assert batches_per_epoch(1028, 1) == 527_878
    assert batches_per_epoch(1028) == 4124


def test_the_split_of_vinyals():
    source = named(
        "Armenian/character01",
        "Gurmukhi/character41",
        "Gurmukhi/character42",
        "Gurmukhi/character45",
        "ULOG/character26",
        "Greek/character01",
        "Mkhedruli_(Georgian)/character01",
        "Old_Church_Slavonic_(Cyrillic)/character01",
    )
    found = {name: part.tolist() for name, part in split_classes(source).items()}
    assert found == {"train": [1, 5], "validation": [0, 6], "test": [2, 3, 4, 7]}


def test_the_split_of_glyphs(glyphs):
    parts = split_classes(glyphs)
    assert np.concatenate(list(parts.values())).tolist() == list(range(60))
    assert [len(p) for p in parts.values()] == [38, 6, 16]
    with pytest.raises(ValueError, match="mnist has no split into training and test classes"):
        split_classes(named("0", "1", source="mnist"))


def test_a_task(glyphs):
    digits = draw_digits()
    settings = {"examples": 10, "test_examples": 7, "out_of_distribution": [digits]}
    task = make_task(0, source=glyphs, **settings)
    assert task.source == "glyphs" and list(task.out_of_distribution) == ["mnist"]
    for split, count in [
        (task.train, 10),
        (task.test, 7),
        (task.out_of_distribution["mnist"], 7),
    ]:
        assert split.x.shape == (count, 48, 192) and split.x.dtype == np.float64
        assert split.y.tolist() == [1.0] * -(-count // 2) + [-1.0] * (count // 2)
    classes = split_classes(glyphs)
    for name in ("train", "test"):
        drawn = glyphs.labels[getattr(task, name).sequences.images]
        assert np.isin(drawn, classes[name]).all()
    assert set(digits.labels[task.out_of_distribution["mnist"].sequences.images].ravel()) == {0, 1}
    again, other = (make_task(seed, source=glyphs, **settings) for seed in (0, 1))
    np.testing.assert_array_equal(task.train.x, again.train.x)
    assert (task.train.sequences.images != other.train.sequences.images).any()
    # the label vectors are the task's, whatever the data
    np.testing.assert_array_equal(task.labels, other.labels)
    mine = make_task(0, source=glyphs, labels=-task.labels, **settings)
    moved = np.asarray(task.train.x - mine.train.x)
    np.testing.assert_allclose(moved[0, 32:], np.tile(2 * task.labels[2], (16, 1)), atol=1e-5)


def draw_digits():
    pixels = np.zeros((12, 32, 32), np.uint8)
    pixels[:, 4:20] = np.arange(12)[:, None, None]
    return Images("mnist", pixels, np.repeat([0, 1, 2], 4), ("0", "1", "2"), 0.1307, 0.3081)


def test_label_vectors():
    v = oneshot.label_vectors()
    np.testing.assert_array_equal(v, oneshot.label_vectors(0))
    assert (v != oneshot.label_vectors(1)).all()
    assert abs(v.mean()) < 0.2 and v.std() == pytest.approx(1, abs=0.1)


@pytest.mark.usefixtures("as_users_see_it")
def test_bad_arguments(glyphs):
    with pytest.raises(ValueError, match=r"images must be of 32×32 pixels.*got 105×105: load them"):
        Encoder(images.load("glyphs", classes=2, size=105))
    with pytest.raises(ValueError, match=r"labels must be \[3, 192\]"):
        Encoder(glyphs, np.zeros((2, 192)))
    one = np.ones(2, int)
    with pytest.raises(ValueError, match=r"y must be \+1 or −1; got \[0\]; write .* as 2 \* y - 1"):
        Sequences(np.zeros((2, 3), int), one, np.array([0, 1]))
    with pytest.raises(ValueError, match=r"signs must be \+1 or −1; got \[2\]"):
        Sequences(np.zeros((2, 3), int), 2 * one, one)
    with pytest.raises(ValueError, match="two classes at least; got 1"):
        draw(glyphs, 4, seed=0, classes=[3])
    with pytest.raises(ValueError, match="examples must be a whole number ≥ 1"):
        draw(glyphs, 0, seed=0)
    with pytest.raises(ValueError, match="the image source must be one of"):
        make_task(0, source="cifar")
    with pytest.raises(ValueError, match="seed must be a whole number"):
        make_task(-1, source=glyphs)
    for bad in (-1, [0, -1], None, 1.5):
        with pytest.raises(ValueError, match="seed must be a whole number ≥ 0; got"):
            draw(glyphs, 4, seed=bad)
    for function in (Encoder, split_classes, lambda source: draw(source, 4, seed=0)):
        with pytest.raises(ValueError, match=r"images must be Images.*images.load.*; got NoneType"):
            function(None)


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": [[0, 1]] * 2}, r"images must be whole numbers \[P, 3\].* of shape \(2, 2\)"),
        ({"images": [0, 1, 2]}, r"images must be whole numbers \[P, 3\].* of shape \(3,\)"),
        ({"images": [[0.0, 1.0, 2.0]] * 2}, r"\[P, 3\], three rows .* got float64"),
        ({"images": [[True, False, True]] * 2}, "images must be whole numbers.* got bool"),
        ({"images": None}, "images must be whole numbers.* got object"),
        ({"images": [[0, 1, -2]] * 2}, "images must be rows of a source, from 0 on; got -2"),
        ({"images": np.ma.array(np.ones((2, 3), int), mask=np.eye(2, 3))}, "images must not be m"),
        ({"y": np.ma.array([1, -1], mask=[1, 0])}, "y must not be masked; leave such seq"),
        ({"signs": [1]}, r"signs must be one label for each of 2 rows of images; got shape \(1,\)"),
        ({"signs": 1}, r"signs must be one label for each of 2 rows of images; got shape \(\)"),
        ({"y": [[1, -1]]}, r"y must be one label for each of 2 rows.*; got shape \(1, 2\)"),
        ({"y": [1, 0]}, r"y must be \+1 or −1; got \[0\]; write labels 0 and 1 as 2 \* y - 1"),
        ({"y": [1, np.nan]}, r"y must be \+1 or −1; got \[nan\]"),
    ],
)
def test_what_are_no_sequences(change, message):
    good = {"images": [[0, 1, 2], [2, 1, 0]], "signs": [1, -1], "y": [1.0, -1.0]}
    made = Sequences(**good)
    # lists become arrays, and labels whole numbers
    assert made.images.shape == (2, 3) and made.y.dtype == int and made.orders.tolist() == [0, 1]
    assert made[1].images.tolist() == [[2, 1, 0]] and len(made[:1]) == len(made[[0]]) == 1
    assert [len(one) for one in made] == [1, 1]
    with pytest.raises(ValueError, match=message):
        Sequences(**(good | change))


@pytest.mark.parametrize("row", [1200, 2**40])
def test_images_that_a_source_does_not_have(glyphs, row):
    assert len(glyphs.pixels) == 1200
    one = np.ones(2, int)
    sequences = Sequences(np.array([[0, 1199, 20], [0, row, 20]]), one, one)
    encoder = Encoder(glyphs)
    for encode in (encoder, encoder.pixels):
        with pytest.raises(ValueError, match=rf"0 to 1199; got \[{row}\]; encode .* drawn from"):
            encode(sequences)
        assert len(encode(sequences[:1])) == 1


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.full((3, 192), np.nan), "labels must be finite; 576 of its 576 numbers are NaN or inf"),
        (np.array([[np.inf, *np.zeros(191)]] * 3), "labels must be finite; 3 of its 576 numbers"),
        (np.zeros((3, 191)), r"labels must be \[3, 192\] \(v₊, v₋, v_\?\); got \(3, 191\)"),
        (np.zeros(192), r"labels must have 2 axes \[vectors, dim\]; got shape \(192,\)"),
        (np.zeros((3, 192), complex), "labels must hold real numbers; got dtype complex128"),
    ],
)
def test_what_are_no_label_vectors(glyphs, labels, message, monkeypatch):
    # nothing is loaded before that
    monkeypatch.setattr(images, "load", None)
    for use in (
        lambda: Encoder(glyphs, labels),
        lambda: oneshot.codes(labels),
        lambda: make_task(0, source="omniglot", labels=labels),
    ):
        with pytest.raises(
            ValueError, match=rf"{message}.*; take label_vectors\(\), or the labels"
        ):
            use()


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"examples": 10**9}, r"1,000,002,000 sequences of 48 tokens .* GiB of memory.*take fewer"),
        ({"test_examples": 10**9}, r"2,000,000,600 sequences of 48 tokens .* GiB of memory"),
        ({"examples": 0}, "examples must be a whole number ≥ 1; got 0"),
        ({"test_examples": 0}, "test_examples must be a whole number ≥ 1; got 0"),
        ({"progress": "no"}, "progress must be True or False; got 'no'"),
        ({"out_of_distribution": None}, r"a list of sources; got None alone; .* \(\) for none"),
        ({"out_of_distribution": 5}, "out_of_distribution must be a list of sources; got 5 alone"),
    ],
)
def test_tasks_are_refused_before_images_are_loaded(change, message, monkeypatch):
    monkeypatch.setattr(images, "load", None)
    with pytest.raises(ValueError, match=message):
        make_task(0, **({"source": "omniglot", "out_of_distribution": ["mnist"]} | change))


def test_more_sequences_than_memory_holds(glyphs):
    with pytest.raises(ValueError, match=r"1,000,000,000,000 sequences would need .* GiB"):
        draw(glyphs, 10**12, seed=0)
    few = draw(glyphs, 2, seed=0)

    class Endless(Sequences):
        def __len__(self):
            return 10**9

    many = Endless(few.images, few.signs, few.y)
    encoder = Encoder(glyphs)
    for encode in (encoder, encoder.pixels):
        with pytest.raises(ValueError, match=r"1,000,000,000 sequences of 48 tokens .* GiB"):
            encode(many)


@pytest.mark.usefixtures("as_users_see_it")
def test_only_sequences_are_encoded(glyphs):
    encoder = Encoder(glyphs)
    for encode in (encoder, encoder.pixels):
        with pytest.raises(ValueError, match="sequences must be Sequences; got ndarray"):
            encode(np.zeros((4, 3), int))


def test_looks(glyphs):
    """Sizes and sources, no arrays."""
    digits = draw_digits()
    task = make_task(0, source=glyphs, examples=5, test_examples=4, out_of_distribution=[digits])
    train, test = (f"Split(examples={n}, tokens=48, dim=192)" for n in (5, 4))
    assert repr(task.train) == train
    assert repr(task) == f"Task(glyphs: train={train}, test={test}, mnist={test})"
    html = task._repr_html_()
    assert html.startswith('<div class="attnpaths"><b>Task</b><table>')
    for word in ("glyphs", "mnist", train, test):
        assert f"<td>{word}</td>" in html or f">{word}</th>" in html
    assert "Array" not in html and "array" not in html and "[" not in html
    sequences = task.train.sequences
    assert repr(sequences) == "Sequences(examples=5, positive=3)"


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([3, 3], "classes must be different; got 2, of which some are equal"),
        ([3, -1], r"classes must be among the 60 of glyphs, 0 to 59; got \[-1\]"),
        ([3, 60, 61], r"among the 60 of glyphs, 0 to 59; got \[60, 61\]"),
        ([0.5, 1], r"0 to 59; got \[0.5\]"),
        (["a", "b"], r"0 to 59; got \['a', 'b'\]"),
        ([], "two classes at least; got 0"),
    ],
)
def test_classes_that_make_no_sequences(glyphs, classes, message):
    with pytest.raises(ValueError, match=message):
        draw(glyphs, 4, seed=0, classes=classes)
    with pytest.raises(ValueError, match=message):
        next(epoch(glyphs, seed=0, number=0, classes=classes, batch=1))


def test_a_class_of_one_image():
    pixels, labels = np.zeros((5, 32, 32), np.uint8), np.repeat([0, 1, 2], [2, 2, 1])
    source = Images("mnist", pixels, labels, ("0", "1", "2"), 0.1, 0.3)
    assert len(draw(source, 4, seed=0, classes=[0, 1])) == 4
    with pytest.raises(ValueError, match=r"two images at least.*class 2 of mnist has 1: leave"):
        draw(source, 4, seed=0)


@pytest.mark.usefixtures("as_users_see_it")
def test_batches_have_sequences(glyphs):
    for call in (
        lambda batch: next(epoch(glyphs, seed=0, number=0, classes=range(9), batch=batch)),
        lambda batch: batches_per_epoch(9, batch),
    ):
        for batch in (0, 1.5):
            with pytest.raises(ValueError, match=f"batch must be a whole number ≥ 1; got {batch}"):
                call(batch)
    with pytest.raises(ValueError, match="start must be a whole number ≥ 0; got -1"):
        next(epoch(glyphs, seed=0, number=0, classes=range(9), batch=4, start=-1))


@pytest.mark.usefixtures("as_users_see_it")
def test_other_sources_go_by_their_names(glyphs):
    digits, few = draw_digits(), {"examples": 2, "test_examples": 2}
    renamed = dataclasses.replace(digits, source="more")
    task = make_task(0, source=glyphs, out_of_distribution=[digits, renamed], **few)
    assert list(task.out_of_distribution) == ["mnist", "more"]
    for clash in ([digits, digits], [glyphs]):
        with pytest.raises(
            ValueError, match="' twice, and its test sets go by their source; leave"
        ):
            make_task(0, source=glyphs, out_of_distribution=clash, **few)
    for alone in ("mnist", digits):
        with pytest.raises(ValueError, match=r"a list of sources; got .*mnist.* alone; put it in"):
            make_task(0, source=glyphs, out_of_distribution=alone, **few)


@needs_omniglot
def test_the_whole_of_omniglot_and_its_split():
    omniglot = images.load("omniglot", progress=False)
    assert repr(omniglot) == "Images(omniglot: 32,460 images of 32×32 in 1,623 classes)"
    assert set(omniglot.counts) == {20}
    assert len({name.split("/")[0] for name in omniglot.names}) == 50
    # the authors' own number for the mean; their deviation is not that of these pixels
    assert omniglot.pixels.mean() / 255 == pytest.approx(omniglot.mean, abs=0.005)
    parts = split_classes(omniglot)
    assert {name: len(part) for name, part in parts.items()} == {
        "train": 1028,
        "validation": 172,
        "test": 423,
    }
    assert len(np.unique(np.concatenate(list(parts.values())))) == 1623
    task = make_task(0, source=omniglot, test_examples=100, out_of_distribution=())
    assert task.train.x.shape == (600, 48, 192) and float(task.train.y.sum()) == 0
    seen = set(omniglot.labels[task.train.sequences.images].ravel())
    assert not seen & set(omniglot.labels[task.test.sequences.images].ravel())


@needs_omniglot
def test_ink_is_bright_and_no_test_class_trains():
    omniglot = images.load("omniglot", progress=False)
    assert 0 < omniglot.pixels.mean() < 64
    parts = split_classes(omniglot)
    assert not set(parts["train"]) & set(parts["test"])
    assert not set(parts["validation"]) & (set(parts["train"]) | set(parts["test"]))
    drawn = next(epoch(omniglot, seed=0, number=0, classes=parts["train"], batch=1000))
    shown = omniglot.labels[drawn.images]
    assert np.isin(shown, parts["train"]).all() and not np.isin(shown, parts["test"]).any()


def counted(zero, one, source="fashion_mnist"):
    """Images of two classes, of which only the numbers matter."""
    labels = np.repeat([0, 1], [zero, one])
    pixels = np.zeros((len(labels), 32, 32), np.uint8)
    return Images(source, pixels, labels, ("0", "1"), 0.3, 0.3)


def test_the_authors_set_is_always_the_same():
    found = authors_set(counted(6003, 6002))
    assert found.images.tolist() == [
        [0, 6003, 6000],
        [1, 6004, 6001],
        [2, 6005, 6002],
        [0, 6003, 12003],
        [1, 6004, 12004],
    ]
    # class 0 comes first and is always labelled −, class 1 +
    assert set(found.signs) == {-1} and found.y.tolist() == [-1, -1, -1, 1, 1]
    assert authors_set(counted(6003, 6002), 2).images[:, 2].tolist() == [6000, 12003]
    with pytest.raises(
        ValueError, match=r"examples must be at most 4, as .* has 2 sequences of one label; got 6"
    ):
        authors_set(counted(6003, 6002), 6)
    with pytest.raises(ValueError, match="must be even"):
        authors_set(counted(6003, 6002), 3)
    with pytest.raises(ValueError, match="must be whole, with more than"):
        authors_set(counted(6000, 6002))
    with pytest.raises(ValueError, match="is of classes 0 and 1 of mnist or fashion_mnist; got"):
        authors_set(images.load("glyphs", classes=30))


def test_tasks_with_the_authors_set(glyphs):
    sizes = {"source": glyphs, "examples": 4, "test_examples": 4}
    sizes["out_of_distribution"] = [counted(6003, 6002)]
    task = make_task(0, **sizes, out_of_distribution_set="authors")
    rows = task.out_of_distribution["fashion_mnist"].sequences.images
    assert rows.tolist() == authors_set(counted(6003, 6002), 4).images.tolist()
    usual = make_task(0, **sizes)
    assert usual.out_of_distribution["fashion_mnist"].sequences.images.tolist() != rows.tolist()
    np.testing.assert_array_equal(task.test.x, usual.test.x)
    with pytest.raises(ValueError, match="out_of_distribution_set must be"):
        make_task(0, **sizes, out_of_distribution_set="all")


@pytest.mark.parametrize(("source", "count"), [("mnist", 2115), ("fashion_mnist", 2000)])
def test_the_authors_sets_of_real_images(source, count):
    if not images.available(source):
        pytest.skip(f"{source} IS NOT TESTED: set ATTNPATHS_DATA to a folder with {source}/ in it")
    loaded = images.load(source, classes=(0, 1), progress=False)
    found = authors_set(loaded)
    assert len(found) == count
    classes = loaded.labels[found.images]
    assert set(classes[:, 0]) == {0} and set(classes[:, 1]) == {1}
    np.testing.assert_array_equal(2 * classes[:, 2] - 1, found.y)
    assert not set(found.images[:, :2].ravel()) & set(found.images[:, 2])
