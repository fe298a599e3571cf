"""Pages lead to the repository where `_config.yml` gives its address, and nowhere else."""

import re
import types

import pytest
import yaml
from test_pages_machinery import CELL, PAGE, ROOT, build

from book._ext import directives, equations

ADDRESS = "https://github.com/someone/somewhere"
BUTTONS = ("launch-buttons", "source-repository-button", "source-issues-button")
PAGES = {
    "page": PAGE.format(CELL.format("print(6 * 7)")),
    "inner": "# Inner modules\n\n```{inner-modules}\n```\n",
}


def test_no_address_stands_anywhere_else():
    """Today there is none: nothing may lead to a place that does not exist."""
    settings = (ROOT / "_config.yml").read_text("utf-8")
    assert yaml.safe_load(settings)["repository"]["url"] == ""
    files = [ROOT / name for name in ("_config.yml", "CITATION.cff", "README.md", "pyproject.toml")]
    files += [*(ROOT / "book").glob("*.md"), *(ROOT / "book").glob("*.toml")]
    for path in files:
        assert "github.com/attnpaths" not in path.read_text("utf-8"), path
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert not {"url", "repository", "repository-code"} & cited.keys()


@pytest.fixture(scope="module", params=["", ADDRESS], ids=["nowhere", "somewhere"])
def book(request, tmp_path_factory):
    """A built book with and without an address: the address, and its pages."""
    folder = tmp_path_factory.mktemp("book")
    code, log = build(folder, PAGES, repository=request.param)
    assert code == 0, log[-3000:]
    html = folder / "_build" / "html"
    return request.param, html, {n: (html / "book" / f"{n}.html").read_text() for n in PAGES}


@pytest.mark.parametrize("name", BUTTONS)
def test_buttons_come_with_an_address(name, book):
    address, _, pages = book
    assert (name in pages["page"]) == bool(address)
    if name != "launch-buttons":
        assert (name in pages["inner"]) == bool(address)


def test_links_to_sources_come_with_an_address(book):
    address, _, pages = book
    links = re.findall(r'href="(https?://[^"]*)"', "".join(pages.values()))
    elsewhere = [link for link in links if re.search("github|mybinder", link)]
    if not address:
        assert elsewhere == []
        return
    assert f"{ADDRESS}/blob/main/attnpaths/theory/trust_region.py" in elsewhere
    assert any(link.startswith("https://mybinder.org/v2/gh/someone/somewhere/") for link in links)
    assert all("someone/somewhere" in link for link in elsewhere)


def test_a_page_s_own_source_and_notebook_are_always_there(book):
    _, html, pages = book
    for name in ("page.md", "page.ipynb"):
        # the line under the title, and the button
        assert pages["page"].count(f'href="../_sources/book/{name}"') == 2
        assert (html / "_sources" / "book" / name).exists()


@pytest.mark.parametrize("address", ["", ADDRESS])
def test_the_equation_index_links_to_sources_of_a_known_repository(address):
    options = {"repository_url": address, "repository_branch": "main"}
    config = types.SimpleNamespace(html_theme_options=options)
    settings = types.SimpleNamespace(env=types.SimpleNamespace(config=config))
    index = directives.EquationIndex.__new__(directives.EquationIndex)
    index.state = types.SimpleNamespace(document=types.SimpleNamespace(settings=settings))
    inner = equations.Place("attnpaths.theory.action.it", ROOT / "attnpaths/theory/action.py", 7)
    test = equations.Place("test_the_energy", ROOT / "tests/test_equations.py", 5)
    line = index.line(equations.Row(equations.PAPER[0], (), (inner,), (test,)))
    code, words = "`theory.action.it`", "the energy"
    if address:
        code = f"[{code}]({ADDRESS}/blob/main/attnpaths/theory/action.py#L7)"
        words = f"[{words}]({ADDRESS}/blob/main/tests/test_equations.py#L5)"
    assert line.endswith(f"|  | {code} | {words} |")
