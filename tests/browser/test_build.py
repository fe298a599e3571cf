import os
import re
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

import nbformat
import pytest

from book._ext import wheels


def test_builds_without_warnings(build):
    code, html, log = build
    if code:
        pytest.fail(log, pytrace=False)
    assert (html / "index.html").exists()


def facts_of(book, page):
    """Give the line under a page's title, and the files that it links to."""
    html = (book / f"{page}.html").read_text("utf-8")
    facts = re.search(r'<p class="page-facts">(.*?)</p>', html)[1]
    return facts, [(book / page).parent / link for link in re.findall(r'href="(.*?)"', facts)]


def test_a_page_links_to_its_source(book, page):
    _, files = facts_of(book, page)
    assert files[-1].suffix == ".md"
    assert all(file.is_file() for file in files)


def test_a_chapter_says_its_run_time_and_links_to_its_notebook(book, chapter):
    facts, files = facts_of(book, chapter)
    assert re.search(r"ran in \d+\.\d (s|min)", facts)
    assert [file.suffix for file in files if file.suffix != ".whl"] == [".ipynb", ".md"]


def test_scripts_and_styles_are_local(book, page):
    html = (book / f"{page}.html").read_text("utf-8")
    loads = re.findall(r'<(?:script|img|link|iframe)\b[^>]*?(?:src|href)="([^"]*)"', html)
    assert [url for url in loads if re.match(r"(\w+:)?//", url)] == []


@pytest.fixture
def notebook(book, chapter):
    """The notebook that a chapter offers."""
    return nbformat.read(book / "_sources" / f"{chapter}.ipynb", as_version=4)


def test_every_captioned_figure_is_in_the_page(book, chapter):
    html = (book / f"{chapter}.html").read_text("utf-8")
    drawn = re.findall(r"<figure\b.*?</figure>", html, flags=re.DOTALL)
    source = (book / "_sources" / f"{chapter}.md").read_text("utf-8")
    captioned = re.findall(r"^mystnb:\n  figure:$", source, flags=re.MULTILINE)
    assert sum('class="plotly-figure"' in it or "<img" in it for it in drawn) >= len(captioned)


#: MyST that a plain Jupyter would show as it is written: roles, directives, labels, comments.
RAW = re.compile(
    r"\{[a-zA-Z][\w:-]*\}`|^\s*(?:`{3,}|:{3,}) ?\{|^\([\w:-]+\)=|\$\$ \([\w:-]+\)|^% ", re.M
)


def test_raw_markup_is_noticed():
    for text in ("see {eq}`a`", "{cite:t}`b`", "```{note}\nx", ":::{note}", "(sec)=", "$$ (eq:a)"):
        assert RAW.search(text)
    assert not RAW.search("$U^{(l)}$ and `x`, $\\mathbf{x}$, 5 % of {a}, (b)\n```python\n```")


def test_a_notebook_is_plain_markdown(notebook):
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert texts[0].startswith("# ")
    assert [found[0] for text in texts for found in RAW.finditer(text)] == []


def test_a_notebook_installs_first_and_has_its_outputs(chapter, notebook):
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert notebook.metadata.kernelspec.name == "python3" and "%pip install" in code[0].source
    shown = [output.get("data", {}) for cell in code for output in cell.outputs]
    assert shown and all("text/html" in data for data in shown if any("plotly" in m for m in data))
    captions = [c for c in notebook.cells if re.match(r"\*\*Fig\. [\d.]+\*\* ", c.source)]
    drawn = [data for data in shown if any("plotly" in mime for mime in data)]
    assert len(drawn) >= len(captions)


def environment(folder):
    """An environment with all that is installed here, except for the library and the studies."""
    venv.create(folder, with_pip=False, symlinks=True)
    (target,) = folder.glob("lib/python*/site-packages")
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not re.match("attnpaths|__editable__|__pycache__", entry.name):
            (target / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def test_a_notebook_runs_as_downloaded(book, tmp_path):
    """Outside of the repository, without the library: with its files beside it, and without."""
    python = environment(tmp_path / "environment")
    outside = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    run = (
        "import nbclient, nbformat; n = nbformat.read('model.ipynb', 4)\n"
        "n.cells.append(nbformat.v4.new_code_cell('import attnpaths, book; "
        "print(attnpaths.__file__, book.__file__)'))\n"
        "nbclient.NotebookClient(n, timeout=300).execute(); nbformat.write(n, 'done.ipynb')"
    )

    def execute(folder):
        command = [python, "-c", run]
        return subprocess.run(command, cwd=folder, env=outside, capture_output=True, text=True)

    bare, whole = tmp_path / "bare", tmp_path / "whole"
    for folder in (bare, whole):
        folder.mkdir()
        shutil.copy(book / "_sources" / "book" / "model.ipynb", folder)
    for wheel in (book / wheels.FOLDER).glob("*.whl"):
        shutil.copy(wheel, whole)
    alone = execute(bare)
    assert alone.returncode and "put attnpaths-" in alone.stderr, alone.stderr[-2000:]
    together = execute(whole)
    assert together.returncode == 0, together.stderr[-2000:]
    done = nbformat.read(whole / "done.ipynb", as_version=4)
    places = done.cells[-1].outputs[0].text.split()
    assert all(place.startswith(str(tmp_path / "environment")) for place in places)
    before = nbformat.read(whole / "model.ipynb", as_version=4)
    for old, new in zip(before.cells[3:], done.cells[3:-1], strict=True):
        if old.cell_type == "code":
            assert len(old.outputs) == len(new.outputs) or not old.outputs


def test_text_is_shown_in_checks_only(book, chapter):
    html = (book / f"{chapter}.html").read_text("utf-8")
    story = re.sub(r'<details class="check">.*?</details>', "", html, flags=re.DOTALL)
    shown = re.findall(r'<div class="output (?:stream|text_plain)[^"]*"', story)
    assert not shown
    assert len(re.findall(r'<details class="[^"]*\bhide\b', html)) <= 5
