"""The whole book as one PDF: `make pdf` prints the built pages with a headless Chromium.

The pages of `_build/html` are put one after the other into a single document, in which links lead
from page to page, and are printed twice: the second time the contents know the page numbers. No
cell runs again. A figure that came out empty, or a chapter that is missing, is an error.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import html
import io
import posixpath
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag
from pypdf import PdfReader
from selenium.webdriver.support.wait import WebDriverWait

from book._ext import chromium
from book._ext.equations import ROOT

HERE = Path(__file__).resolve().parent
#: How it is printed: A4, in inches, at a size at which lines of code fit.
SHEET = {
    "paperWidth": 8.27,
    "paperHeight": 11.69,
    "marginTop": 0.7,
    "marginBottom": 0.8,
    "marginLeft": 0.8,
    "marginRight": 0.8,
    "scale": 0.78,
}
#: The width of the text in pixels of the page, as figures are drawn.
WIDTH = round((SHEET["paperWidth"] - 2 * SHEET["marginLeft"]) * 96 / SHEET["scale"])
FOOTER = (
    '<div style="width:100%;font-size:8px;text-align:center;font-family:sans-serif">'
    '<span class="pageNumber"></span></div>'
)
#: Seconds until Chromium is thought to be stuck.
PATIENCE = 1800
#: Scripts of a page that draw what is printed.
SCRIPTS = ("mathjax", "plotly.min.js", "explorer", "book.js")
#: What is of no use on paper.
DROPPED = "a.headerlink, button, .page-facts, details.hide, nav, .toctree-wrapper"


class Part(NamedTuple):
    """A part of the table of contents: its caption, and its pages."""

    caption: str
    pages: list[str]


def parts_of(toc: dict) -> list[Part]:
    """The parts of a table of contents, with the pages of each in their order.

    >>> parts_of({"root": "a", "parts": [{"caption": "B", "chapters": [{"file": "b"}]}]})
    [Part(caption='', pages=['a']), Part(caption='B', pages=['b'])]
    """

    def pages(entries) -> list[str]:
        return [p for each in entries for p in (each["file"], *pages(each.get("sections", ())))]

    parts = toc.get("parts") or [{"chapters": toc.get("chapters", ())}]
    found = [Part(part.get("caption", ""), pages(part["chapters"])) for part in parts]
    return [Part("", [toc["root"]]), *found]


def anchor(page: str, name: str = "") -> str:
    """The name of a place of a page, in the one document of all pages."""
    return page.replace("/", "-") + (f"--{name}" if name else "")


class Document:
    """All pages as one HTML document."""

    def __init__(self, site: Path, parts: Sequence[Part], title: str, author: str):
        """Read the built pages of folder `site`."""
        self.site, self.title, self.author = site, title, author
        self.pages = [page for part in parts for page in part.pages]
        self.styles: dict[str, None] = {}
        self.scripts: dict[str, None] = {}
        self.titles: dict[str, str] = {}
        articles = [self.article(page) for page in self.pages]
        self.text = "\n".join(
            [
                "<!DOCTYPE html>",
                '<html lang="en" data-theme="light" data-mode="light"><head><meta charset="utf-8">',
                f"<title>{html.escape(title)}</title>",
                *self.styles,
                f"<style>{(HERE / 'print.css').read_text('utf-8')}</style>",
                f"<style>body {{ width: {WIDTH}px }}</style>",
                *self.scripts,
                "</head><body>",
                self.front(parts),
                *articles,
                f"<script>{(HERE / 'print.js').read_text('utf-8')}</script>",
                "</body></html>",
            ]
        )

    def article(self, page: str) -> str:
        """The text of a page, as it stands in the document."""
        soup = BeautifulSoup((self.site / f"{page}.html").read_text("utf-8"), "html.parser")
        self.collect(page, soup)
        article = soup.select_one("article")
        if article is None:
            raise ValueError(f"{page}.html has no article: is it a page of this book?")
        for node in article.select(DROPPED):
            node.decompose()
        for fold in article.select("details.check"):
            line = soup.new_tag("p", attrs={"class": "check"})
            line.extend(list(fold.summary.children))
            fold.replace_with(line)
        for place in article.select(".explorer-place"):
            note = soup.new_tag("p", attrs={"class": "explorer-note"})
            note.string = f"The controls are on the page “{self.name(article)}” of the built book."
            place.insert_after(note)
        for node in article.select("[id]"):
            node["id"] = anchor(page, node["id"])
        for node in article.select("[src]"):
            node["src"] = self.absolute(page, node["src"])
        for node in article.select("a[href]"):
            self.lead(page, node)
        for script in article.select("script"):
            if script.get("type") != "application/json":
                script.decompose()
        self.titles[page] = self.name(article)
        return f'<article id="{anchor(page)}">{article.decode_contents()}</article>'

    @staticmethod
    def name(article: Tag) -> str:
        """The title of a page."""
        return " ".join(article.h1.get_text().split())

    def collect(self, page: str, soup: BeautifulSoup) -> None:
        """Keep the styles and scripts of a page, each once."""
        for link in soup.select('link[rel="stylesheet"]'):
            address = self.absolute(page, link["href"])
            self.styles[f'<link rel="stylesheet" href="{address}">'] = None
        for script in soup.select("script"):
            source = script.get("src", "")
            if source and any(name in source for name in SCRIPTS):
                address = self.absolute(page, source)
                self.scripts[f'<script defer src="{address}"></script>'] = None
            elif not source and "window.MathJax" in script.text:
                self.scripts[f"<script>{script.text}</script>"] = None

    def absolute(self, page: str, address: str) -> str:
        """The address of a file of the site."""
        found = urlsplit(address)
        if found.scheme:
            return address
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(found.path)))
        return (self.site.resolve() / path).as_uri()

    def lead(self, page: str, link: Tag) -> None:
        """Have a link lead to its place in the document, to the web, or nowhere."""
        found = urlsplit(link["href"])
        if found.scheme in ("http", "https", "mailto"):
            return
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), found.path))
        target = page if not found.path else path.removesuffix(".html")
        if target in self.pages and not set("=&") & set(found.fragment):
            link["href"] = "#" + anchor(target, unquote(found.fragment))
        else:
            link.unwrap()

    def front(self, parts: Sequence[Part]) -> str:
        """The title page and the contents."""
        lines = []
        for part in parts:
            if part.caption:
                lines.append(f"<h2>{html.escape(part.caption)}</h2>")
            lines += [
                f'<a href="#{anchor(page)}"><span>{html.escape(self.titles[page])}</span>'
                f'<i></i><b data-page="{anchor(page)}"></b></a>'
                for page in part.pages
            ]
        return (
            f'<header class="title-page"><p class="title">{html.escape(self.title)}</p>'
            "<p>The interactive companion to <em>Dissecting the Interplay of Attention Paths in a "
            "Statistical Mechanics Theory of Transformers</em></p>"
            f'<p class="author">{html.escape(self.author)}</p>'
            "<p>Printed from the pages of the book. A check is one line here; its code, and the "
            "controls of figures and explorers, are in the pages and notebooks.</p></header>"
            f'<section class="contents"><p class="heading">Contents</p>{"".join(lines)}</section>'
        )


@contextlib.contextmanager
def opened(document: Document) -> Iterator:
    """Chromium with the document in it, drawn and ready to be printed."""
    with tempfile.TemporaryDirectory(prefix="attnpaths-pdf-") as folder:
        path = Path(folder) / "book.html"
        path.write_text(document.text, "utf-8")
        driver = chromium.start(Path(folder) / "chromium")
        try:
            size = {"width": WIDTH, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            # all formulas and figures of a book, perhaps on a machine that has other work
            driver.command_executor.client_config.timeout = PATIENCE
            driver.set_page_load_timeout(PATIENCE)
            driver.get(path.as_uri())
            WebDriverWait(driver, PATIENCE, 0.5).until(
                lambda page: page.execute_script("return document.body.dataset.printed")
            )
            yield driver
        finally:
            driver.quit()


def sheets(driver) -> bytes:
    """The document as it is now, printed."""
    settings = {
        **SHEET,
        "printBackground": True,
        "displayHeaderFooter": True,
        "headerTemplate": "<span></span>",
        "footerTemplate": FOOTER,
        "generateTaggedPDF": True,
        "generateDocumentOutline": True,
    }
    return base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", settings)["data"])


def places(printed: bytes) -> dict[str, int]:
    """The page numbers of all places that a link leads to, from 1 on."""
    reader = PdfReader(io.BytesIO(printed))
    found = reader.named_destinations
    return {
        name.lstrip("/"): reader.get_destination_page_number(place) + 1
        for name, place in found.items()
    }


def missing(printed: bytes, titles: Sequence[str]) -> list[str]:
    """The titles that stand nowhere in the text of a PDF."""
    reader = PdfReader(io.BytesIO(printed))
    text = "".join("".join(page.extract_text().split()) for page in reader.pages)
    return [title for title in titles if "".join(title.split()) not in text]


def make(site: Path, toc: dict, target: Path, *, title: str, author: str) -> int:
    """Print the built pages of folder `site`, and give the number of sheets.

    Raises `ValueError` if a figure was not drawn, or if the title of a page is not in the PDF.
    """
    document = Document(site, parts_of(toc), title, author)
    with opened(document) as driver:
        empty = driver.execute_script("return printing.empty()")
        if empty:
            raise ValueError(f"{len(empty)} figures came out empty, the first is {empty[0]!r}")
        numbers = places(sheets(driver))
        driver.execute_script("printing.number(arguments[0])", numbers)
        printed = sheets(driver)
    lost = missing(printed, list(document.titles.values()))
    if lost:
        raise ValueError(f"the PDF lacks the pages {', '.join(lost)}")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(printed)
    return len(PdfReader(io.BytesIO(printed)).pages)


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m book._ext.pdf`: print `_build/html` to `_build/pdf/attention-paths.pdf`."""
    parser = argparse.ArgumentParser(prog="python -m book._ext.pdf", description=main.__doc__)
    parser.add_argument("--html", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("--toc", type=Path, default=ROOT / "_toc.yml")
    parser.add_argument("--out", type=Path, default=ROOT / "_build" / "pdf" / "attention-paths.pdf")
    parser.add_argument("--ready", action="store_true", help="only say whether Chromium is there")
    given = parser.parse_args(arguments)
    if chromium.programs() is None:
        print("make pdf wants Debian's chromium and chromium-driver: install them", file=sys.stderr)
        return 1
    if given.ready:
        return 0
    if not (given.html / "index.html").exists():
        print(f"there is no built book in {given.html}: run make book first", file=sys.stderr)
        return 1
    settings = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    toc = yaml.safe_load(given.toc.read_text("utf-8"))
    words = {key: settings[key] for key in ("title", "author")}
    print(f"{make(given.html, toc, given.out, **words)} pages: {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
