"""Run the chapters as tests: nbmake collects only .ipynb files, and ours are MyST text.

What nbmake executed is kept for the build of the book, so that no cell runs twice.
"""

import time

import jupytext
import nbformat
import pytest
from nbmake.pytest_items import NotebookItem

from attnpaths.book import keep_executed


class ChapterItem(NotebookItem):
    """A chapter, executed by nbmake."""

    def runtest(self):
        """Execute the chapter; a failing cell raises, and then nothing is kept."""
        self.config.option.overwrite = True
        start = time.perf_counter()
        super().runtest()
        seconds = time.perf_counter() - start
        executed = nbformat.read(self.filename, as_version=4)
        keep_executed(self.config.rootpath, self.path, executed, seconds)


class Chapter(pytest.File):
    """A MyST notebook."""

    def collect(self):
        """Write the chapter as .ipynb for nbmake, and report it under its own name."""
        notebook = self.config.rootpath / "build" / "chapters" / f"{self.path.stem}.ipynb"
        notebook.parent.mkdir(parents=True, exist_ok=True)
        jupytext.write(jupytext.read(self.path), notebook)
        yield ChapterItem.from_parent(self, filename=str(notebook))


def pytest_collect_file(file_path, parent):
    """Take every .md file whose header names a kernel."""
    if file_path.suffix == ".md":
        text = file_path.read_text(encoding="utf-8")
        header = text.split("\n---", 1)[0] if text.startswith("---") else ""
        if "kernelspec:" in header:
            return Chapter.from_parent(parent, path=file_path)
    return None
