"""States on disk: no bit of them may change, and a run that cannot be kept says so."""

import dataclasses
import errno
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from attnpaths.tasks import images
from attnpaths.training import Settings, checkpoint, loop, train
from attnpaths.training import __main__ as command_line

SMALL = Settings(layers=1, heads=1, key_dim=2, width=3, source="glyphs", batch=32)
SMALL = dataclasses.replace(SMALL, epochs=1.0, validate_every=4, validation_examples=8)


@pytest.fixture(scope="module")
def glyphs():
    return images.load("glyphs", classes=40)


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setattr(loop.image_sources, "available", lambda name: name == "glyphs")


def run(glyphs, folder, settings=SMALL, **options):
    options = {"images": glyphs, "progress": False, "test_examples": 8} | options
    return train(settings, folder, **options)


@pytest.fixture(scope="module")
def kept(glyphs, tmp_path_factory):
    """A folder with the states of steps 4 and 5."""
    folder = tmp_path_factory.mktemp("run")
    for until in (4, 5):
        assert run(glyphs, folder, until=until) is None
    return folder


@pytest.fixture
def folder(kept, tmp_path):
    return Path(shutil.copytree(kept, tmp_path / "run"))


def test_every_flipped_bit_is_refused(glyphs, folder):
    path = folder / "checkpoint.pt"
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    places = [*range(0, 120, 7), *rng.integers(len(whole), size=60).tolist(), len(whole) - 1]
    for place in places:
        raw = bytearray(whole)
        raw[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(raw)
        with pytest.raises(ValueError, match=r"checkpoint\.pt is damaged .*checkpoint\.old\.pt"):
            checkpoint.read(path)
    with pytest.raises(ValueError, match=r"checkpoint\.pt is damaged"):
        run(glyphs, folder)
    # nothing is lost: it says where to go on from
    assert path.read_bytes() == raw
    path.unlink()
    assert checkpoint.read(folder / "checkpoint.old.pt")["state"]["step"] == 4
    assert run(glyphs, folder, until=5) is None
    fresh = checkpoint.read(path)
    path.write_bytes(whole)
    for name, weight in checkpoint.read(path)["model"].items():
        assert torch.equal(weight, fresh["model"][name])


def changed(folder, change):
    path = folder / "checkpoint.pt"
    saved = checkpoint.read(path)
    change(saved)
    checkpoint.write(path, saved)


def test_weights_that_are_no_numbers(glyphs, folder):
    for where in ("model", "best"):
        shutil.copy(folder / "checkpoint.pt", folder / "kept")

        def spoil(saved, where=where):
            weights = saved["model"] if where == "model" else saved["state"]["best"]
            weights["a"][1] = float("nan")

        changed(folder, spoil)
        with pytest.raises(ValueError, match=r"checkpoint\.pt .*NaN or infinite weights in a\)"):
            run(glyphs, folder)
        shutil.move(folder / "kept", folder / "checkpoint.pt")


def test_an_edited_rate(glyphs, folder):
    changed(folder, lambda saved: saved["adam"]["param_groups"][0].update(lr=1.0))
    with pytest.raises(ValueError, match=r"has learning_rate=1\.0 but learning_rate=0\.0003"):
        run(glyphs, folder)


def test_states_are_on_the_disk_before_they_take_their_place(folder, monkeypatch):
    done, path = [], folder / "checkpoint.pt"
    saved = checkpoint.read(path)
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (done.append("fsync"), fsync(file)))
    monkeypatch.setattr(os, "replace", lambda a, b: (done.append(Path(b).name), replace(a, b)))
    checkpoint.write(path, saved)
    assert done == ["checkpoint.old.pt", "fsync", "checkpoint.pt", "fsync"]


def test_a_power_cut_between_two_names(glyphs, folder):
    """The old state has its new name, the new one has not: the old one is taken up."""
    (folder / "checkpoint.pt").replace(folder / "checkpoint.old.pt")
    (folder / "checkpoint.pt.new").write_bytes(b"half")
    assert run(glyphs, folder, until=6) is None
    assert checkpoint.read(folder / "checkpoint.pt")["state"]["step"] == 6
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["checkpoint.old.pt", "checkpoint.pt"]


def test_a_finished_run_leaves_three_files(glyphs, folder):
    run(glyphs, folder)
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["checkpoint.pt", "weights.json", "weights.npz"]


def test_a_full_disk(glyphs, folder, monkeypatch, capsys):
    before = (folder / "checkpoint.pt").read_bytes()

    def full(path, content):
        with open(path, "wb") as file:
            file.write(content[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=r"checkpoint\.pt could .* \(No space left.*\); what was"):
        run(glyphs, folder, until=7)
    assert (folder / "checkpoint.pt").read_bytes() == before
    assert sorted(p.name for p in folder.iterdir()) == ["checkpoint.old.pt", "checkpoint.pt"]
    # the command says it in one line
    monkeypatch.setattr(images, "load", lambda name, **_: glyphs)
    words = (
        "--layers 1 --heads 1 --key-dim 2 --width 3 --source glyphs --batch 32 --epochs 1 --quiet"
    )
    words += " --validate-every 4 --validation-examples 8 --test-examples 8 --out"
    assert command_line.main([*words.split(), str(folder)]) == 2
    said = capsys.readouterr().err
    assert re.match(r"error: .*checkpoint\.pt could not be written", said)
    assert "Traceback" not in said


def test_a_disk_that_is_full_at_the_end(glyphs, folder, monkeypatch):
    def full(file, **arrays):
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez_compressed", full)
        with pytest.raises(OSError, match=r"weights\.npz could not be written \(No space left"):
            run(glyphs, folder)
    assert sorted(p.name for p in folder.iterdir()) == ["checkpoint.old.pt", "checkpoint.pt"]
    assert run(glyphs, folder) and (folder / "weights.npz").exists()


def test_a_disk_that_is_too_small(glyphs, folder, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=20_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(ValueError, match=r"0\.1 MiB of disk, more than the 0\.0 MiB .* in folder"):
        run(glyphs, tmp_path / "fresh", stop=lambda: pytest.fail("training has begun"))
    # a run that has two of its three states there needs no more room than for the third
    assert run(glyphs, folder, until=6) is None


@pytest.mark.parametrize("place", ["a file", "inside a file", "/proc/attnpaths"])
def test_folders_that_cannot_be_written_to(glyphs, tmp_path, place):
    (tmp_path / "file").write_text("here")
    found = {"a file": tmp_path / "file", "inside a file": tmp_path / "file" / "run"}
    with pytest.raises(ValueError, match="folder must be one that can be written to; got"):
        run(glyphs, found.get(place, place), stop=lambda: pytest.fail("training has begun"))


def test_divergence_ends_a_run_when_it_happens(glyphs, folder):
    def spoil(saved):
        saved["model"]["a"] *= 1e30

    changed(folder, spoil)
    before = (folder / "checkpoint.pt").read_bytes()
    with pytest.raises(ValueError, match=r"diverged after step \d+ .*learning_rate=0\.0003.*last"):
        run(glyphs, folder, checkpoint_every=1)
    # what is kept is finite
    assert (folder / "checkpoint.pt").read_bytes() == before
    assert all(
        w.isfinite().all() for w in checkpoint.read(folder / "checkpoint.pt")["model"].values()
    )


@pytest.mark.parametrize("until", [None, 4])
def test_weights_that_could_not_be_kept_end_a_run_when_they_appear(glyphs, tmp_path, until):
    """Finite, and too large for half precision: known at the next validation, not at the end."""
    fast = dataclasses.replace(SMALL, learning_rate=1e5, epochs=50.0)
    message = (
        r"diverged after step 4 at learning_rate=100000: weights up to \S+ do not fit in half "
    )
    with pytest.raises(ValueError, match=message + r"precision; nothing was written"):
        run(glyphs, tmp_path, fast, until=until)
    assert not list(tmp_path.iterdir())


def test_damaged_files_of_another_source_do_not_cost_the_weights(glyphs, folder, monkeypatch):
    def broken(name, **_):
        raise FileNotFoundError(f"{name} is not here")

    monkeypatch.setattr(loop.image_sources, "available", lambda name: True)
    monkeypatch.setattr(loop.image_sources, "load", broken)
    found = run(glyphs, folder).record["accuracy"]
    assert found["mnist"] == {"missing": "mnist is not here"}


@pytest.mark.parametrize("threads", ["-1", "0"])
def test_threads(tmp_path, threads, capsys):
    assert command_line.main(["--out", str(tmp_path / "run"), "--threads", threads]) == 2
    said = capsys.readouterr().err
    assert said == f"error: --threads must be a whole number ≥ 1; got {threads}\n"
    assert not list(tmp_path.iterdir())
