"""The book's own machinery: what it must notice, and when it must run the cells again."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from attnpaths import explorer
from attnpaths.explorer import bundle
from attnpaths.tasks import images
from book._ext import execute
from book._ext.pages import (
    EXPLORER_SCRIPT,
    SOURCES,
    accessible_name,
    cache_folder,
    figure_html,
    half_math,
    keep_executed,
    source_key,
)
from book.studies import engine

ROOT = Path(__file__).resolve().parents[2]
PAGE = """---
jupytext:
  text_representation:
    format_name: myst
kernelspec:
  name: python3
  display_name: Python 3
---

# A page

{}
"""
CELL = "```{{code-cell}} python\n{}\n```"
FIGURE = "import plotly.graph_objects as go\ngo.Figure(layout={})"

# what an author may get wrong, and what the build must then say
MISTAKES = {
    "cell": (CELL.format("1 / 0"), "Executing notebook failed: CellExecutionError"),
    "stderr": (CELL.format("import sys; print('!', file=sys.stderr)"), "stderr was found"),
    "mime": (
        CELL.format("display({'application/x-none': '1'}, raw=True)"),
        "skipping unknown output mime type",
    ),
    "unnamed": (CELL.format(FIGURE.format("{}")), "no accessible name"),
    "halfmath": (CELL.format(FIGURE.format("{'title': 'the $x$'}")), "only the math would be"),
    "equation": ("See {eq}`eq:none`.", "equation not found: eq:none"),
    "reference": ("See {ref}`none`.", "undefined label: 'none'"),
    "number": ("See {numref}`fig-none`.", "undefined label: 'fig-none'"),
    "citation": ("See {cite}`none`.", 'could not find bibtex key "none"'),
    "link": ("See [it](none.md).", "cross-reference target not found: 'none.md'"),
    "page": ("It takes {runtime}`none`.", "book/none is no page with code"),
    "check": ("```{code-cell} python\n:check: it holds\nprint(1)\n```", "asserts nothing"),
    "exercise": ("```{solution} none\n```", "undefined label: none"),
}


def build(folder, pages, repository=""):
    """Build a book of these pages with our settings; give the exit code and the log."""
    (folder / "book").mkdir(exist_ok=True)
    for name in ("book/references.bib", "book/favicon.svg"):
        shutil.copy(ROOT / name, folder / name)
    settings = (ROOT / "_config.yml").read_text("utf-8")
    settings, count = re.subn("^  url: .*$", f'  url: "{repository}"', settings, flags=re.MULTILINE)
    assert count == 1
    (folder / "_config.yml").write_text(settings, "utf-8")
    for name, text in pages.items():
        (folder / "book" / f"{name}.md").write_text(text, "utf-8")
    first, *rest = pages
    chapters = "".join(f"  - file: book/{name}\n" for name in rest)
    toc = f"format: jb-book\nroot: book/{first}\n" + ("chapters:\n" + chapters if rest else "")
    (folder / "_toc.yml").write_text(toc, "utf-8")
    command = [Path(sys.executable).with_name("jupyter-book"), "build", "-W", "--keep-going"]
    run = subprocess.run(
        [*command, "--all", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return run.returncode, re.sub(r"\x1b\[[\d;]*m", "", run.stdout)


@pytest.fixture(scope="session")
def book_of_mistakes(tmp_path_factory):
    pages = {name: PAGE.format(text) for name, (text, _) in MISTAKES.items()}
    return build(tmp_path_factory.mktemp("mistakes"), pages)


@pytest.mark.parametrize("name", MISTAKES)
def test_the_build_stops_at(name, book_of_mistakes):
    code, log = book_of_mistakes
    warnings = [line for line in log.splitlines() if ": WARNING: " in line]
    assert code
    assert any(MISTAKES[name][1] in line for line in warnings), warnings or log[-3000:]


def test_figures_and_explorers_are_drawn_by_the_book(tmp_path):
    figure = FIGURE.format("{'title': 'A figure'}")
    start = "{'setting': {'width': 7}, 'look': {}}"
    shown = f"display({{'{explorer.MIME}': {start}}}, raw=True)"
    page = PAGE.format(f"{CELL.format(figure)}\n\n{CELL.format(shown)}")
    code, log = build(tmp_path, {"page": page})
    assert code == 0, log[-3000:]
    html = (tmp_path / "_build" / "html" / "book" / "page.html").read_text("utf-8")
    assert html.count('class="plotly-figure" role="img" aria-label="A figure"') == 1
    written = "{&quot;setting&quot;: {&quot;width&quot;: 7}, &quot;look&quot;: {}}"
    assert html.count(f'class="explorer-place" data-start="{written}"') == 1
    for script in ("plotly.min.js", "book.js", EXPLORER_SCRIPT):
        assert re.search(rf'<script[^>]* src="\.\./_static/{script}', html)
    script = tmp_path / "_build" / "html" / "_static" / EXPLORER_SCRIPT
    assert script.read_text("utf-8") == bundle.script()


def test_a_check_is_one_line_that_opens(tmp_path):
    options = "---\ncheck: both sums agree\n---"
    cell = f"```{{code-cell}} python\n{options}\nassert 1 + 1 == 2\nprint('off by', 0)\n```"
    code, log = build(tmp_path, {"page": PAGE.format(cell)})
    assert code == 0, log[-3000:]
    html = (tmp_path / "_build" / "html" / "book" / "page.html").read_text("utf-8")
    fold = re.search(r'<details class="check">(.*?)</details>', html, re.DOTALL)[1]
    line, inside = fold.split("</summary>")
    assert "Checked: both sums agree (off by 0)" in line
    assert "assert" in inside and "off by 0" in inside


def test_cells_run_again_for_new_code_only(tmp_path):
    page = PAGE.format(CELL.format("print(6 * 7)"))
    code, log = build(tmp_path, {"page": page})
    assert code == 0, log[-3000:]
    assert "Executed notebook in" in log
    code, log = build(tmp_path, {"page": page + "\nMore prose.\n"})
    assert code == 0
    assert "Using cached notebook" in log
    (tmp_path / "requirements.txt").write_text("numpy==0\n")
    _, log = build(tmp_path, {"page": page})
    assert "Executed notebook in" in log
    assert len(list((tmp_path / "_build").glob(".jupyter_cache*"))) == 1


def test_a_chapter_that_was_executed_elsewhere_is_shown(tmp_path):
    (tmp_path / "book").mkdir()
    page = PAGE.format(CELL.format("print(6 * 7)"))
    chapter = tmp_path / "book" / "page.md"
    chapter.write_text(page, "utf-8")
    output = nbformat.v4.new_output("stream", text="what nbmake saw")
    cell = nbformat.v4.new_code_cell("print(6 * 7)", outputs=[output])
    executed = nbformat.v4.new_notebook(cells=[cell])
    executed.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    keep_executed(tmp_path, chapter, executed, 1.5)
    code, log = build(tmp_path, {"page": page})
    assert code == 0, log[-3000:]
    assert "Using cached notebook" in log
    html = (tmp_path / "_build" / "html" / "book" / "page.html").read_text("utf-8")
    assert "what nbmake saw" in html
    assert "ran in 1.5 s" in html
    cell.source = "print(1)"
    with pytest.raises(ValueError, match="run it again"):
        keep_executed(tmp_path, chapter, executed, 1.5)


def test_chapters_are_executed_side_by_side_before_the_build(tmp_path, capsys):
    pages = {name: PAGE.format(CELL.format(f"print('{name}')")) for name in ("one", "two")}
    (tmp_path / "book").mkdir()
    shutil.copy(ROOT / "_config.yml", tmp_path)
    for name, page in pages.items():
        (tmp_path / "book" / f"{name}.md").write_text(page, "utf-8")
    assert len(execute.missing(tmp_path)) == 2
    assert execute.main([str(tmp_path)]) == 0 and execute.missing(tmp_path) == []
    code, log = build(tmp_path, pages)
    assert code == 0 and log.count("Using cached notebook") == 2, log[-3000:]
    changed = pages["two"].replace("print('two')", "raise OSError('no luck')")
    (tmp_path / "book" / "two.md").write_text(changed, "utf-8")
    assert [path.stem for path in execute.missing(tmp_path)] == ["two"]
    assert execute.main([str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "two.md fails" in said and "no luck" in said and "one.md" not in said


def test_the_settings_choose_the_cache(tmp_path, monkeypatch):
    before = cache_folder(tmp_path)
    monkeypatch.setattr(images, "available", lambda name: name == "mnist")
    with_digits = cache_folder(tmp_path)
    monkeypatch.setenv("ATTNPATHS_DATA", "elsewhere")
    assert len({before, with_digits, cache_folder(tmp_path)}) == 3


def test_the_cache_key_follows_library_and_studies(tmp_path):
    package, studies = tmp_path / "attnpaths", tmp_path / "book" / "studies"
    requirements = tmp_path / "requirements.txt"
    (package / "tasks" / "__pycache__").mkdir(parents=True)
    (package / "explorer").mkdir()
    (studies / "oneshot" / "networks").mkdir(parents=True)
    files = [package / "paths.py", package / "tasks" / "markov.py", package / "data.json"]
    files += [studies / "engine.py", studies / "oneshot" / "results.json"]
    files += [studies / "oneshot" / "networks" / "net.npz"]
    for path in [*files, requirements]:
        path.write_text("a")

    def key():
        return source_key(requirements, (package, studies))

    first = key()
    for name in ("book.js", "explorer/front.js", "explorer/explorer.css"):
        (package / name).write_text("layout only")
    (package / "tasks" / "__pycache__" / "markov.pyc").write_text("x")
    assert key() == first
    for path in [*files, requirements]:
        path.write_text("b")
        assert key() != first
        path.write_text("a")
    assert key() == first
    files[0].rename(package / "action.py")
    assert key() != first


def test_the_cache_key_is_of_what_cells_import():
    held = {path for folder in SOURCES for path in folder.rglob("*") if path.is_file()}
    assert Path(explorer.__file__) in held and Path(engine.__file__) in held
    assert engine.file("limits") in held
    assert not any(folder.is_relative_to(ROOT / "book" / "_ext") for folder in SOURCES)
    assert not any(path.is_relative_to(ROOT / "book" / "_ext") for path in held)


def test_a_figure_is_named_by_its_alt_text_or_its_title():
    title = {"text": "The <b>order</b> parameter"}
    assert accessible_name({"title": title}) == "The order parameter"
    assert accessible_name({"title": title, "meta": {"alt": "A matrix"}}) == "A matrix"
    assert accessible_name({}) == ""


def test_a_figure_cannot_break_out_of_its_page():
    title = {"text": 'a "quoted" </script><script>alert(1)</script>'}
    html = figure_html({"data": [], "layout": {"title": title}})
    assert html.count("<script") == 1 + 1  # ours, and the text inside the JSON string
    assert html.count("</script>") == 1
    assert 'aria-label="a &quot;quoted&quot; alert(1)"' in html


def test_words_beside_math_are_found():
    layout = {"title": {"text": "$x$ of $y$"}, "xaxis": {"title": {"text": "$N$"}}}
    assert half_math({"data": [{"name": "at $N$"}], "layout": layout}) == ["at $N$", "$x$ of $y$"]
    assert half_math({"layout": {"meta": {"alt": "at $N$"}, "title": "5 $"}}) == []
