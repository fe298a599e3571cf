"""Run the chapters as tests: nbmake collects only .ipynb files, and ours are MyST text."""

import jupytext
import pytest
from nbmake.pytest_items import NotebookItem


class Chapter(pytest.File):
    """A MyST notebook."""

    def collect(self):
        """Write the chapter as .ipynb for nbmake, and report it under its own name."""
        notebook = self.config.rootpath / "build" / "chapters" / f"{self.path.stem}.ipynb"
        notebook.parent.mkdir(parents=True, exist_ok=True)
        jupytext.write(jupytext.read(self.path), notebook)
        yield NotebookItem.from_parent(self, filename=str(notebook))


def pytest_collect_file(file_path, parent):
    """Take every .md file whose header names a kernel."""
    if file_path.suffix == ".md":
        text = file_path.read_text(encoding="utf-8")
        header = text.split("\n---", 1)[0] if text.startswith("---") else ""
        if "kernelspec:" in header:
            return Chapter.from_parent(parent, path=file_path)
    return None
