"""Run the chapters as tests: nbmake collects only .ipynb files, and ours are MyST text.

What nbmake executed is kept for the build of the book, so that no cell runs twice.
"""

import time

import jupytext
import nbformat
import pytest
from nbmake.pytest_items import NotebookItem

from attnpaths.tasks import images
from book._ext.pages import keep_executed

# chapters whose text changes where Omniglot is missing
ON_IMAGES = ("oneshot", "pruning")


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


class WithoutImages(NotebookItem):
    """A chapter, executed as on a machine that has no images, and at a small size."""

    def runtest(self):
        """Hide all image files from the kernel."""
        nowhere = self.config.rootpath / "build" / "no images"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(images.ENVIRONMENT, str(nowhere))
            patch.setenv("XDG_CACHE_HOME", str(nowhere))
            patch.setenv("ATTNPATHS_EXAMPLES", "40")
            super().runtest()


class Chapter(pytest.File):
    """A MyST notebook."""

    def collect(self):
        """Write the chapter as .ipynb for nbmake, and report it under its own name."""
        yield ChapterItem.from_parent(self, filename=self.notebook(self.path.stem))
        if self.path.stem in ON_IMAGES and images.available("omniglot"):
            again = WithoutImages.from_parent(
                self, filename=self.notebook(f"{self.path.stem}, no images")
            )
            again.name += ", no images"
            yield again

    def notebook(self, name):
        """Write the chapter under this name; give its path."""
        path = self.config.rootpath / "build" / "chapters" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        jupytext.write(jupytext.read(self.path), path)
        return str(path)


def pytest_collect_file(file_path, parent):
    """Take every .md file whose header names a kernel."""
    if file_path.suffix == ".md":
        text = file_path.read_text(encoding="utf-8")
        header = text.split("\n---", 1)[0] if text.startswith("---") else ""
        if "kernelspec:" in header:
            return Chapter.from_parent(parent, path=file_path)
    return None
