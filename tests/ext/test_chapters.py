"""Every chapter is a story: results as tables and figures, checks folded, a summary, exercises."""

import ast
import re
from pathlib import Path

import jupytext
import pytest

# characters of code that the column of a page holds
WIDEST = 80
BOOK = Path(__file__).resolve().parents[2] / "book"
CHAPTERS = sorted(
    path.stem for path in BOOK.glob("*.md") if "\nkernelspec:" in path.read_text("utf-8")
)


def cells_of(chapter):
    """The code cells of a chapter."""
    cells = jupytext.read(BOOK / f"{chapter}.md").cells
    return [cell for cell in cells if cell.cell_type == "code"]


def tags_of(cell):
    return set(cell.metadata.get("tags", []))


def prints(source):
    """Whether some code would write plain text into the page."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return any(isinstance(call.func, ast.Name) and call.func.id == "print" for call in calls)


def raw_outputs(chapter):
    """Cells whose text the page would show as it is, outside of a check."""
    hidden = {"remove-cell", "remove-output"}
    return [
        cell.source.splitlines()[0]
        for cell in cells_of(chapter)
        if "check" not in cell.metadata and not hidden & tags_of(cell) and prints(cell.source)
    ]


def bars(chapter):
    """Cells that a page folds under a bar to show their code or output."""
    folds = {"hide-input", "hide-output", "hide-cell"}
    return [cell for cell in cells_of(chapter) if folds & tags_of(cell)]


def wide(chapter):
    """Lines of code that a page shows, and that would be cut off."""
    hidden = {"remove-cell", "remove-input", "hide-cell", "hide-input"}
    shown = [
        cell.source
        for cell in cells_of(chapter)
        if "check" not in cell.metadata and not hidden & tags_of(cell)
    ]
    return [line for source in shown for line in source.splitlines() if len(line) > WIDEST]


def section(chapter, title):
    """The text under a heading."""
    text = (BOOK / f"{chapter}.md").read_text("utf-8")
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return found[1].strip() if found else ""


def sentences(text):
    """Sentences of a paragraph; a point within a formula or a number ends none."""
    text = re.sub(r"\$[^$]*\$", "$$", " ".join(text.split()))
    return re.findall(r".+?[.!?](?= |$)", text.replace("  ", " ").strip())


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_raw_text_outside_of_checks(chapter):
    assert raw_outputs(chapter) == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_at_most_five_bars(chapter):
    assert len(bars(chapter)) <= 5


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_code_that_shows_is_no_wider_than_the_page(chapter):
    assert wide(chapter) == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_exercises(chapter):
    text = (BOOK / f"{chapter}.md").read_text("utf-8")
    asked = re.findall(r"exercise-start\}.*?\n:label: ([\w-]+)", text)
    solved = re.findall(r"solution-start\} ([\w-]+)\n:class: dropdown", text)
    assert asked and asked == solved


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_summary_has_three_sentences(chapter):
    assert len(sentences(section(chapter, "Summary"))) == 3


def test_what_breaks_the_rules_is_noticed():
    assert prints("for x in y:\n    print(x)") and not prints("log('print(x)')")
    assert len(sentences("Of order $1/N$. At 0.5 it ends, i.e., here. So be it.")) == 3
    assert section("markov", "Nothing") == ""
