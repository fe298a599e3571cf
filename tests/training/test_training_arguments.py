import pytest

from attnpaths.tasks import images
from attnpaths.training import Settings, train
from attnpaths.training.checkpoint import read

SMALL = Settings(
    layers=1,
    heads=1,
    key_dim=2,
    width=2,
    source="glyphs",
    batch=32,
    validate_every=1000,
    validation_examples=8,
)


@pytest.fixture(scope="module")
def glyphs():
    return images.load("glyphs", classes=40)


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    "name",
    ["layers", "heads", "key_dim", "width", "batch", "validate_every", "validation_examples"],
)
@pytest.mark.parametrize("value", [0, -1, 1.5, None, True])
def test_settings_are_whole_numbers(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a whole number ≥ 1; got {value}"):
        Settings(**{name: value})


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoint_every": 0}, "checkpoint_every must be a whole number ≥ 1; got 0"),
        ({"checkpoint_every": -3}, "checkpoint_every must be a whole number ≥ 1; got -3"),
        ({"checkpoint_every": 2.5}, r"checkpoint_every must be a whole number ≥ 1; got 2\.5"),
        ({"until": -5}, "until must be a whole number ≥ 0; got -5"),
        ({"until": 1.5}, r"until must be a whole number ≥ 0; got 1\.5"),
        ({"test_examples": 0}, "test_examples must be a whole number ≥ 1; got 0"),
        ({"test_examples": None}, "test_examples must be a whole number ≥ 1; got None"),
        ({"progress": "no"}, "progress must be True or False; got 'no'"),
        ({"progress": None}, "progress must be True or False; got None"),
    ],
)
def test_bad_options(options, message, tmp_path, monkeypatch):
    """Before images are loaded or anything is written."""
    monkeypatch.setattr(images, "load", None)
    with pytest.raises(ValueError, match=message):
        train(SMALL, tmp_path / "run", **options)
    assert not list(tmp_path.iterdir())


def test_a_test_that_cannot_be_made_is_refused_before_training(glyphs, tmp_path):
    def stop():
        pytest.fail("training has begun")

    with pytest.raises(ValueError, match=r"1,000,000,000,000 sequences would need .* GiB"):
        train(SMALL, tmp_path, images=glyphs, test_examples=10**12, stop=stop, progress=False)


def test_a_run_that_is_past_its_end_stays_there(glyphs, tmp_path):
    def go(until):
        return train(SMALL, tmp_path, images=glyphs, until=until, progress=False)

    checkpoint = tmp_path / "checkpoint.pt"
    assert go(0) is None and checkpoint.exists()
    assert go(2) is None
    assert read(checkpoint)["state"]["step"] == 2
    assert go(1) is None
    assert read(checkpoint)["state"]["step"] == 2
