"""Opening and saving chapters as JupyterLab does, by way of the contents manager."""

import json
import shutil
from pathlib import Path

import jupytext
import nbformat
import pytest
from traitlets.utils.importstring import import_item

from book._ext import lab

BOOK = Path(__file__).resolve().parents[2] / "book"
PAGES = sorted(BOOK.glob("*.md"))


@pytest.fixture
def manager(tmp_path):
    for page in PAGES:
        shutil.copy(page, tmp_path)
    return lab.Chapters(root_dir=str(tmp_path))


def test_the_server_takes_this_manager():
    config = json.loads((BOOK / "_ext" / "lab.json").read_text(encoding="utf-8"))
    assert import_item(config["ServerApp"]["contents_manager_class"]) is lab.Chapters


def opened(manager, name):
    """What Lab gets, through JSON and back."""
    return json.loads(json.dumps(manager.get(name, type="notebook"), default=str))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_saved_is_what_was_written(manager, page, tmp_path):
    model = opened(manager, page.name)
    # as Lab sends it: with outputs, what the kernel says of itself, and its own marks
    for cell in model["content"]["cells"]:
        cell["metadata"]["trusted"] = True
        if cell["cell_type"] == "code":
            cell["execution_count"] = 3
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "done"}]
    model["content"]["metadata"]["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    again = manager.save({"type": "notebook", "content": model["content"]}, page.name)
    assert again["type"] == "notebook" and again["name"] == page.name
    assert (tmp_path / page.name).read_bytes() == page.read_bytes()
    assert model["content"]["metadata"]["kernelspec"]["name"] == "python3"


def changed_lines(before, after):
    before, after = before.splitlines(), after.splitlines()
    return len(set(before) ^ set(after))


@pytest.mark.parametrize("name", ["markov.md", "sampling.md", "theory.md"])
def test_a_change_changes_its_lines_alone(manager, name, tmp_path):
    model, before = opened(manager, name), (tmp_path / name).read_text()
    cells = model["content"]["cells"]
    code = next(cell for cell in cells if cell["cell_type"] == "code")
    text = next(cell for cell in reversed(cells) if cell["cell_type"] == "markdown")
    code["source"] += "\nanswer = 42"
    text["source"] += "\n\nOne more sentence."
    cells.insert(3, nbformat.v4.new_code_cell("print('new')"))
    wanted = [(cell["cell_type"], cell["source"]) for cell in cells]
    manager.save({"type": "notebook", "content": model["content"]}, name)
    after = (tmp_path / name).read_text()
    found = jupytext.reads(after, ".md").cells
    assert [(cell.cell_type, cell.source) for cell in found] == wanted
    assert 3 <= changed_lines(before, after) <= 6
    # and back again
    model["content"]["cells"].pop(3)
    code["source"] = code["source"].removesuffix("\nanswer = 42")
    text["source"] = text["source"].removesuffix("\n\nOne more sentence.")
    manager.save({"type": "notebook", "content": model["content"]}, name)
    assert (tmp_path / name).read_text() == before


def test_new_pages_and_other_files_are_saved_as_ever(manager, tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# New")])
    manager.save({"type": "notebook", "content": notebook}, "new.md")
    assert "# New" in (tmp_path / "new.md").read_text()
    manager.save({"type": "file", "format": "text", "content": "plain"}, "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "plain"
