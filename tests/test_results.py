"""Studies keep what is done, and say where it came from."""

import json

import numpy as np
import pytest

from attnpaths import results


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
    assert [path.name for path in tmp_path.iterdir()] == ["study.json"]


def test_a_result_that_is_not_finite_is_refused(tmp_path):
    with pytest.raises(ValueError, match="finite"):
        results.collect("study", {"one": lambda: [1.0, np.nan]}, folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_other_data_are_refused(tmp_path):
    results.collect("study", {"one": lambda: 1}, data={"letters": "aa"}, folder=tmp_path)
    with pytest.raises(ValueError, match=r"letters.*again"):
        results.collect("study", {"two": lambda: 2}, data={"letters": "bb"}, folder=tmp_path)


def test_a_missing_study_says_how_to_make_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"python -m attnpaths\.results\.study"):
        results.read("study", tmp_path)


@pytest.mark.parametrize("path", sorted(results.HERE.glob("*.json")), ids=lambda path: path.stem)
def test_every_file_says_where_it_came_from(path):
    held = json.loads(path.read_text("utf-8"))
    assert held["parts"] and held["parts"].keys() == held["provenance"].keys()
    for origin in held["provenance"].values():
        assert origin["command"] == results.command(path.stem)
        assert origin["seconds"] >= 0 and origin["attnpaths"] and origin["date"]
        assert origin["seeds"] and all(isinstance(seed, int) for seed in origin["seeds"])
