"""Everything that a hostile user tries, in one table: `make hostile`.

    python -m benchmarks.hostile [--again] [ROW …]

makes the rows that `benchmarks/hostile.md` lacks, so that a run that was interrupted goes on; named
rows are made anew, and with `--again` all. The rows are problems, calls, files and interruptions.
It fails if anything was wrong in silence, lost or unclear, and says what.
"""

import argparse
import datetime
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.run import replace
from benchmarks.timing import table

PATH = Path(__file__).with_suffix(".md")
#: What must be 0 in every row.
ZEROS = ("wrong in silence", "lost", "unclear")
HEAD = ("tried", "on", "number", "right, refused or kept", "said not to converge", *ZEROS)


class Part(NamedTuple):
    """A row of the table: its title, how many there must be at least, and what makes it."""

    title: str
    least: int
    make: Callable[[], tuple[dict[str, int], list[str]]]


def counted(number, right, *, unconverged=0, silent=0, lost=0, unclear=0) -> dict[str, int]:
    """The numbers of a row, by the titles of its columns."""
    return dict(zip(HEAD[2:], (number, right, unconverged, silent, lost, unclear), strict=True))


def problems(count):
    """Hard problems."""
    from benchmarks import hostile_problems

    found, bad = hostile_problems.run(count, 0)
    silent = sum(found[name] for name in ("false", "moved", "higher", "nan"))
    right = found["tried"] - found["unclear"] - found["unconverged"] - silent
    rest = {"unconverged": found["unconverged"], "unclear": found["unclear"]}
    return counted(found["tried"], right, silent=silent, **rest), bad


def calls(every):
    """Calls that make no sense, or one in so many of them."""
    from benchmarks import hostile_calls

    found, bad = hostile_calls.run(every)
    rest = {"silent": found["accepted"], "unclear": found["unclear"]}
    return counted(sum(found.values()), found["refused"], **rest), bad


def files(count, drawings, sampled=True):
    """Damaged files."""
    from benchmarks import hostile_files

    found, bad = hostile_files.run(count, drawings, sampled)
    rest = {"silent": found["accepted"], "unclear": found["unclear"]}
    return counted(sum(found.values()), found["refused"] + found["the same"], **rest), bad


def interruptions(sampling, training):
    """Interrupted runs."""
    from benchmarks import hostile_interruptions

    found, bad = hostile_interruptions.run(sampling, training)
    rest = {"lost": found["lost"], "unclear": found["unclear"]}
    return counted(sum(found.values()), found["kept"], **rest), bad


PARTS = {
    "problems": Part("hard problems", 10_000, lambda: problems(10_000)),
    "calls": Part("calls that make no sense", 400, lambda: calls(1)),
    "files": Part("damaged files", 1000, lambda: files(1500, 6)),
    "interruptions": Part("interruptions", 50, lambda: interruptions(42, 12)),
}


def read(text: str) -> dict[str, dict[str, Any]]:
    """The rows of a table, by name: the date they were made on, and their numbers."""
    names, found = {part.title: name for name, part in PARTS.items()}, {}
    for line in text.splitlines()[2:]:
        title, date, *numbers = (cell.strip() for cell in line.strip("| ").split("|"))
        whole = [int(number.replace(",", "")) for number in numbers]
        found[names[title]] = {"on": date} | dict(zip(HEAD[2:], whole, strict=True))
    return found


def written(rows: dict[str, dict[str, Any]]) -> str:
    """The table of these rows, in their order."""
    lines = [
        [part.title, row["on"], *(f"{row[name]:,}" for name in HEAD[2:])]
        for name, part in PARTS.items()
        if (row := rows.get(name))
    ]
    return table(HEAD, lines) + "\n"


def main(arguments=None):
    """Make rows, and write each as soon as it is there; 1 if any has something that must not be."""
    parser = argparse.ArgumentParser(description="Try what a hostile user tries.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(PARTS))
    parser.add_argument("--again", action="store_true", help="make all rows anew")
    wanted = parser.parse_args(arguments)
    if unknown := set(wanted.rows) - set(PARTS):
        parser.error(f"no row {sorted(unknown)[0]}; the rows are {', '.join(PARTS)}")
    rows = {} if wanted.again or not PATH.exists() else read(PATH.read_text("utf-8"))
    replace(PATH, written(rows))
    for name in wanted.rows or [name for name in PARTS if name not in rows]:
        print(f"{PARTS[name].title} …", file=sys.stderr, flush=True)
        numbers, bad = PARTS[name].make()
        print(*bad, sep="\n", end="\n" * bool(bad), file=sys.stderr, flush=True)
        made = {"on": datetime.date.today().isoformat()} | numbers
        # others may have been made meanwhile
        rows = read(PATH.read_text("utf-8")) | {name: made}
        replace(PATH, written(rows))
    print(PATH.read_text("utf-8"), end="")
    return int(any(row[zero] for row in rows.values() for zero in ZEROS))


if __name__ == "__main__":
    sys.exit(main())
