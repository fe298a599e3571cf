"""The notation page names things that exist, and every page's symbols find their place there."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

import attnpaths

PAGE = (Path(__file__).resolve().parents[1] / "book" / "notation.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("| \n").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| $")
]
NAMES = sorted(
    {name for row in ROWS for name in re.findall(r"`([A-Za-z][\w.]*\w(?:\(\w+=\))?)`", row[-2])}
    - {"x", "y", "xi"}
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_library_exists(name):
    path, _, argument = name.rstrip("=)").partition("(")
    found = attnpaths
    for part in path.split("."):
        if dataclasses.is_dataclass(found) and part in found.__dataclass_fields__:
            found = None
        elif hasattr(found, "_fields") and part in found._fields:
            found = None
        else:
            found = getattr(found, part)
    if argument:
        assert argument in inspect.signature(found).parameters


def test_the_page_is_complete():
    assert len(ROWS) > 35 and len(NAMES) > 25
    assert all(re.search(r"\{eq\}`|\]\(", row[-1]) for row in ROWS)
    symbols = [row[0] for row in ROWS]
    assert len(set(symbols)) == len(symbols)
