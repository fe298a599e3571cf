"""The book on paper: all of its pages, nothing empty, and links that lead somewhere."""

import io

import pytest
from pypdf import PdfReader

from book._ext import pdf

# a page with figures, formulas, checks and tables, and one of plain text
TOC = {"root": "book/model", "chapters": [{"file": "book/principles"}]}


@pytest.fixture(scope="module")
def printed(book, browser, tmp_path_factory):
    """Two pages of the book, printed; `browser` says if there is none."""
    path = tmp_path_factory.mktemp("pdf") / "book.pdf"
    count = pdf.make(book, TOC, path, title="Two pages", author="Nobody")
    reader = PdfReader(io.BytesIO(path.read_bytes()))
    assert len(reader.pages) == count > 4
    return path.read_bytes(), reader


def test_titles_captions_and_checks_are_in_the_text(printed):
    data, _ = printed
    assert pdf.missing(data, ["The model", "Design principles", "✓ Checked:"]) == []
    assert pdf.missing(data, ["A chapter that is not there"]) == ["A chapter that is not there"]
    # a check is its line alone
    assert pdf.missing(data, ["assert "]) == ["assert "]


def test_the_contents_lead_to_their_pages(printed):
    data, reader = printed
    contents, found = reader.pages[1], pdf.places(data)
    for page, title in (("book/model", "The model"), ("book/principles", "Design principles")):
        number = found[pdf.anchor(page)]
        lines = [line.split() for line in contents.extract_text().splitlines() if title in line]
        assert lines and lines[0][-1] == str(number)
        assert title in reader.pages[number - 1].extract_text()
    assert len(reader.outline) > 0


def test_an_empty_figure_is_noticed(book, browser):
    document = pdf.Document(book, pdf.parts_of(TOC), "Two pages", "Nobody")
    with pdf.opened(document) as driver:
        assert driver.execute_script("return printing.empty()") == []
        wide = "return [...document.querySelectorAll('article *')].filter((node) => !node.closest("
        wide += "'svg, mjx-assistive-mml') && node.getBoundingClientRect().right > innerWidth + 2)"
        assert driver.execute_script(wide + ".map((node) => node.outerHTML.slice(0, 200))") == []
        driver.execute_script("Plotly.newPlot(document.querySelector('.plotly-figure'), [])")
        assert len(driver.execute_script("return printing.empty()")) == 1
