"""A small part of `make hostile`: what it counts, and that nothing gets through."""

import dataclasses
import datetime
import warnings

import numpy as np
import pytest

from attnpaths import theory
from attnpaths.theory import action, energies, stationary
from attnpaths.theory.action import Widths
from attnpaths.theory.solution import levels_of
from benchmarks import hostile, hostile_calls, hostile_files, hostile_judge, hostile_problems


@pytest.fixture(autouse=True)
def as_they_come(as_users_see_it):
    """Bad calls reach the library's own words."""


def test_hard_problems():
    """A deep network, and one with a skip: two shapes that are compiled and judged fast."""
    shapes = [hostile_problems.SHAPES[i] for i in (2, 4)]
    counts, wrong = hostile_problems.run(1000, 1, shapes, starts=0)
    assert not wrong
    assert counts["tried"] == 1000 and counts["unconverged"] + counts["refused"] < 50
    assert counts["projected"] > 100 and counts["several"] > 10
    counts, wrong = hostile_problems.run(100, 2, shapes, starts=3)
    assert not wrong


def test_what_the_digits_of_an_order_parameter_do_not_hold():
    """Without a look at them this one is called converged with a relative gradient of 6e-6."""
    shape = hostile_problems.SHAPES[4]
    xi, y, setting = hostile_problems.draw(np.random.default_rng([0, 4084]), shape)
    with pytest.warns(RuntimeWarning, match="did not converge"):
        assert not theory.solve(xi, y, **setting).converged


def test_every_level_is_asked():
    """Forces on the factors may cancel where those on a level do not: here 2e-5 were left once."""
    shape = hostile_problems.SHAPES[11]
    xi, y, setting = hostile_problems.draw(np.random.default_rng([5, 2963]), shape)
    with warnings.catch_warnings():
        # where it ends is a matter of rounding, and it may say that it did not converge
        warnings.filterwarnings("ignore", ".*did not converge", RuntimeWarning)
        found = theory.solve(xi, y, **setting)
    assert not found.converged or hostile_judge.relative_gradient(found) <= 1e-6


@pytest.mark.parametrize("number", [3, 4, 5, 8, 10, 11])
def test_the_library_measures_what_the_judge_does(number):
    """The same relative gradient by factors in double precision, anywhere."""
    rng = np.random.default_rng(number)
    xi, y, setting = hostile_problems.draw(rng, hostile_problems.SHAPES[number])
    setting |= {"temperature": 0.1, "width": 5.0, "prior_variance": 0.7}
    found = theory.solve(rng.normal(size=xi.shape), np.sign(y), **setting)
    problem, widths = found.problem, Widths.of(found.width, found.problem.layers)
    B = hostile_problems.elsewhere(rng, problem.ways)
    *_, last = action.value_and_gradient(B, energies.prepare(problem), widths, problem.ways)
    off = dataclasses.replace(found, levels=levels_of(B, problem))
    expected = hostile_judge.relative_gradient(off)
    got = stationary.relative_gradient(B, last.traces, last.pulls, widths, problem.ways)
    assert expected > 1e-3 and got == pytest.approx(expected, rel=1e-9)


def test_the_judge_sees_what_is_no_minimum():
    rng = np.random.default_rng(0)
    for shape in (hostile_problems.SHAPES[2], hostile_problems.SHAPES[4]):
        xi, y, setting = hostile_problems.draw(rng, shape)
        setting |= {"temperature": 0.1, "width": 5.0}
        found = theory.solve(rng.normal(size=xi.shape), np.sign(y), **setting)
        assert hostile_judge.relative_gradient(found) < 1e-8
        for i in range(len(found.levels)):
            levels = [level * (1 + 1e-4 * (i == j)) for j, level in enumerate(found.levels)]
            off = dataclasses.replace(found, levels=tuple(levels))
            assert hostile_judge.relative_gradient(off) > 1e-5


def test_calls_that_make_no_sense():
    row, bad = hostile.calls(every=23)
    assert not bad and row["number"] > 150
    assert row["right, refused or kept"] == row["number"]


def test_damaged_files():
    row, bad = hostile.files(120, drawings=0, sampled=False)
    assert not bad and row["right, refused or kept"] == row["number"] == 120


def test_the_table_that_the_book_shows():
    """Every row that is shown is of so many, and has nothing wrong in silence, lost or unclear."""
    rows = hostile.read(hostile.PATH.read_text("utf-8"))
    assert hostile.written(rows) == hostile.PATH.read_text("utf-8")
    assert list(rows) == list(hostile.PARTS)
    for name, row in rows.items():
        assert row["number"] >= hostile.PARTS[name].least
        assert {zero: row[zero] for zero in hostile.ZEROS} == dict.fromkeys(hostile.ZEROS, 0)
        assert row["right, refused or kept"] + row["said not to converge"] == row["number"]
        datetime.date.fromisoformat(row["on"])


def test_a_run_goes_on_where_it_ended(tmp_path, monkeypatch, capsys):
    made = []

    def part(name, **numbers):
        def make():
            made.append(name)
            if name == "files" and made.count("files") == 1:
                raise KeyboardInterrupt
            return hostile.counted(1234, 1234 - sum(numbers.values()), **numbers), ["this"] * len(
                numbers
            )

        return hostile.Part(f"some {name}", 1, make)

    parts = {"calls": part("calls"), "files": part("files"), "last": part("last", lost=2)}
    monkeypatch.setattr(hostile, "PARTS", parts)
    monkeypatch.setattr(hostile, "PATH", tmp_path / "hostile.md")
    with pytest.raises(KeyboardInterrupt):
        hostile.main([])
    assert list(hostile.read(hostile.PATH.read_text())) == ["calls"]
    # what is wrong is written, said, and a failure
    assert hostile.main([]) == 1
    assert made == ["calls", "files", "files", "last"]
    rows = hostile.read(hostile.PATH.read_text())
    assert rows["last"]["lost"] == 2 and rows["last"]["number"] == 1234
    assert "this" in capsys.readouterr().err
    hostile.main(["calls"])
    assert made[4:] == ["calls"]
    hostile.main(["--again"])
    assert made[5:] == list(parts)
    with pytest.raises(SystemExit):
        hostile.main(["nothing"])
    assert "no row nothing; the rows are calls, files, last" in capsys.readouterr().err


def test_rows_that_are_made_at_once_are_both_kept(tmp_path, monkeypatch):
    def slow():
        hostile.main(["files"])
        return hostile.counted(2, 2), []

    parts = {"calls": hostile.Part("slow", 1, slow)}
    parts |= {"files": hostile.Part("fast", 1, lambda: (hostile.counted(3, 3), []))}
    monkeypatch.setattr(hostile, "PARTS", parts)
    monkeypatch.setattr(hostile, "PATH", tmp_path / "hostile.md")
    hostile.main(["calls"])
    rows = hostile.read(hostile.PATH.read_text())
    assert {name: row["number"] for name, row in rows.items()} == {"calls": 2, "files": 3}


def test_a_call_that_is_accepted_is_counted():
    good = hostile_calls.Call("it", ("x",), lambda: 3)
    assert hostile_calls.outcome(good)[0] == "accepted"

    def other():
        raise TypeError("x")

    def nameless():
        raise ValueError("something is wrong")

    for make in (other, nameless):
        assert hostile_calls.outcome(good._replace(make=make))[0] == "unclear"


def test_a_file_that_is_accepted_is_counted(tmp_path):
    path = tmp_path / "it.npz"
    path.write_bytes(b"")
    assert hostile_files._outcome(lambda path: [1.0], path, [2.0]) == "accepted"
    assert hostile_files._outcome(lambda path: [1.0], path, [1.0]) == "the same"

    def nameless(path):
        raise ValueError("damaged")

    assert hostile_files._outcome(nameless, path, [1.0]) == "unclear"
