"""Studies keep what is done, and say where it came from."""

import functools
import json
import multiprocessing
import os
import time

import numpy as np
import psutil
import pytest

from book.studies import authors
from book.studies import engine as results


def test_a_part_is_computed_once(tmp_path):
    calls = []

    def part():
        calls.append(1)
        return {"mean": np.float64(1 / 3), "counts": np.arange(2), "name": "a"}

    for _ in range(2):
        held = results.collect("study", {"one": part}, folder=tmp_path)
    assert calls == [1]
    assert held == results.read("study", tmp_path)
    assert held["provenance"]["one"]["seeds"] == [0]
    assert held["parts"]["one"] == {"mean": 0.333333, "counts": [0, 1], "name": "a"}
    results.collect("study", {"one": part}, folder=tmp_path, again=True)
    assert calls == [1, 1]


def test_an_interrupted_study_keeps_what_it_has(tmp_path):
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        results.collect("study", {"one": lambda: 1, "two": stop}, folder=tmp_path)
    assert results.read("study", tmp_path)["parts"] == {"one": 1}
    results.collect("study", {"two": lambda: 2}, folder=tmp_path)
    assert results.read("study", tmp_path)["parts"] == {"two": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["study"]
    assert list((tmp_path / "study").iterdir()) == [results.file("study", tmp_path)]


@pytest.mark.parametrize("damage", ["cut", "list", "no parts", "another part", "bytes"])
def test_a_damaged_file_is_named(tmp_path, damage):
    results.collect("study", {"one": lambda: 1}, folder=tmp_path)
    path = results.file("study", tmp_path)
    held = json.loads(path.read_text())
    if damage == "cut":
        path.write_text(path.read_text()[:-20])
    if damage == "bytes":
        path.write_bytes(b"\xff\xfe")
    if damage == "list":
        path.write_text("[]")
    if damage == "no parts":
        path.write_text(json.dumps({"provenance": held["provenance"]}))
    if damage == "another part":
        path.write_text(json.dumps(held | {"parts": {"two": 1}}))
    message = r"study.results\.json is damaged, .*; restore it, .* python -m book.studies.study.run"
    with pytest.raises(ValueError, match=message):
        results.read("study", tmp_path)


def test_parts_are_made_again_by_name_or_if_they_are_not_fresh(tmp_path):
    calls = []

    def parts(*names):
        return {name: lambda name=name: calls.append(name) or len(calls) for name in names}

    held = results.collect("study", parts("one", "two", "three"), folder=tmp_path)
    assert held["parts"] == {"one": 1, "two": 2, "three": 3}
    results.collect("study", parts("one", "two", "three"), folder=tmp_path, again=["two"])
    assert calls[3:] == ["two"]
    held = results.collect(
        "study",
        parts("one", "two", "three"),
        fresh=lambda part, found: part != "three" or found != 3,
        folder=tmp_path,
    )
    assert calls[4:] == ["three"]
    # what cannot be made stays as it is, whatever is asked for
    kept = parts("one") | {"two": None, "four": None}
    before = held["parts"]["two"]
    held = results.collect("study", kept, again=True, folder=tmp_path)
    assert calls[5:] == ["one"] and held["parts"] == {"one": 6, "two": before}
    assert held["provenance"].keys() == held["parts"].keys()


def test_rows_of_numbers_take_one_line(tmp_path):
    held = {"U": [[1.5, -2e-9], [3, 4]], "doubts": ["a  b", "c (d)"]}
    results.collect("study", {"one": lambda: held}, folder=tmp_path)
    text = results.file("study", tmp_path).read_text("utf-8")
    assert json.loads(text)["parts"]["one"] == held
    assert "[ 1.5, -2e-09 ]" in text and "[ 3, 4 ]" in text


def test_a_result_that_is_not_finite_is_refused(tmp_path):
    with pytest.raises(ValueError, match="finite"):
        results.collect("study", {"one": lambda: [1.0, np.nan]}, folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_other_data_are_refused(tmp_path):
    results.collect("study", {"one": lambda: 1}, data={"letters": "aa"}, folder=tmp_path)
    with pytest.raises(ValueError, match=r"letters.*again"):
        results.collect("study", {"two": lambda: 2}, data={"letters": "bb"}, folder=tmp_path)
    with pytest.raises(ValueError, match=r"letters.*again"):
        results.collect("study", {"one": None}, data={"letters": "bb"}, folder=tmp_path, again=True)
    held = results.collect(
        "study", {"one": lambda: 3}, data={"letters": "bb"}, folder=tmp_path, again=["one"]
    )
    assert held["parts"] == {"one": 3} and held["provenance"]["one"]["data"] == {"letters": "bb"}


def test_a_missing_study_says_how_to_make_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"python -m book\.studies\.study\.run"):
        results.read("study", tmp_path)


STUDIES = {"corrections", "limits", "oneshot", "open", "own", "sampling"}


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_every_file_says_where_it_came_from(name):
    held = json.loads(results.file(name).read_text("utf-8"))
    # parts that were made when studies were part of the library say so
    commands = (results.command(name), f"python -m attnpaths.results.{name}")
    assert held["parts"] and held["parts"].keys() == held["provenance"].keys()
    for origin in held["provenance"].values():
        assert origin["command"] in commands
        assert origin["seconds"] >= 0 and origin["attnpaths"] and origin["date"]
        assert origin["seeds"] and all(isinstance(seed, int) for seed in origin["seeds"])


def test_every_file_is_that_of_a_study():
    found = {path.parent.name for path in results.HERE.glob("*/results.json")}
    assert found == STUDIES


def test_the_authors_numbers_are_named_where_they_are_damaged(tmp_path, monkeypatch):
    monkeypatch.setattr(authors, "HERE", tmp_path)
    for text in ('{"draws": ', "3"):
        (tmp_path / "sampler.json").write_text(text)
        with pytest.raises(ValueError, match=r"sampler\.json is damaged .*; restore it"):
            authors.read("sampler")


def one_of(number):
    """A part that another process can compute."""
    return {"number": number, "cores": len(os.sched_getaffinity(0))}


def stops():
    raise ValueError("this part fails")


def waits(path):
    """A part that leaves its process number, and goes on for long."""
    path.write_text(str(os.getpid()))
    time.sleep(600)


def test_processes_end_with_the_one_that_began_them(tmp_path):
    parts = {name: functools.partial(waits, tmp_path / name) for name in "ab"}
    context = multiprocessing.get_context("spawn")
    study = context.Process(
        target=results.collect, args=("study", parts), kwargs={"folder": tmp_path, "jobs": 2}
    )
    study.start()
    written = [tmp_path / name for name in parts]
    wait_until(lambda: all(path.exists() and path.read_text() for path in written))
    study.kill()
    study.join()
    numbers = [int(path.read_text()) for path in written]
    wait_until(lambda: not any(map(runs, numbers)))


def runs(number):
    """Whether a process is there, and not only its remains."""
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(true):
    """At most a minute."""
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_parts_side_by_side(tmp_path):
    parts = {f"part {i}": functools.partial(one_of, i) for i in range(3)}
    held = results.collect("study", parts, folder=tmp_path, jobs=2)
    assert {name: each["number"] for name, each in held["parts"].items()} == {
        f"part {i}": i for i in range(3)
    }
    assert {each["cores"] for each in held["parts"].values()} == {1}
    assert held == results.read("study", tmp_path)
    with pytest.raises(ValueError, match="this part fails"):
        results.collect("study", parts | {"fails": stops}, folder=tmp_path, jobs=2)
    assert results.read("study", tmp_path)["parts"] == held["parts"]
