import json
import re

import pytest


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
    assert [file.suffix for file in files] == [".ipynb", ".md"]


def test_scripts_and_styles_are_local(book, page):
    html = (book / f"{page}.html").read_text("utf-8")
    loads = re.findall(r'<(?:script|img|link|iframe)\b[^>]*?(?:src|href)="([^"]*)"', html)
    assert [url for url in loads if re.match(r"(\w+:)?//", url)] == []


@pytest.fixture
def notebook(book, chapter):
    return json.loads((book / "_sources" / f"{chapter}.ipynb").read_text("utf-8"))


def test_every_captioned_figure_is_in_the_page(book, chapter, notebook):
    html = (book / f"{chapter}.html").read_text("utf-8")
    drawn = re.findall(r"<figure\b.*?</figure>", html, flags=re.DOTALL)
    captioned = [
        cell for cell in notebook["cells"] if "figure" in cell["metadata"].get("mystnb", {})
    ]
    assert sum('class="plotly-figure"' in it or "<img" in it for it in drawn) >= len(captioned)


def test_the_notebook_is_runnable(notebook):
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert any(cell["cell_type"] == "code" for cell in notebook["cells"])
