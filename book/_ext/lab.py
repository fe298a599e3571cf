"""JupyterLab's way to the chapters: a page is shown as a notebook, and saved as it was written.

Other contents managers write a page in a style of their own, which changes lines that nobody
touched. Here only the lines are written that differ between the notebook that was opened and the
one that is saved; a page that nobody changed stays as it is, byte for byte. Pages without code name
a kernel, so that Lab does not ask for one.
"""

import difflib
from pathlib import Path

import jupytext
import nbformat

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


class Chapters(jupytext.TextFileContentsManager):
    """The contents manager of `make lab`."""

    def get(self, path, content=True, type=None, format=None, **more):
        """A file or folder; pages get a kernel, if they name none."""
        model = super().get(path, content, type, format, **more)
        if model["type"] == "notebook" and model["content"] and path.endswith(".md"):
            model["content"]["metadata"].setdefault("kernelspec", KERNEL)
        return model

    def save(self, model, path=""):
        """Write a file; of a page that is there, those lines that were changed."""
        if model.get("type") != "notebook" or not path.endswith(".md") or not self.exists(path):
            return super().save(model, path)
        text = Path(self._get_os_path(path)).read_bytes().decode()
        found = saved(text, nbformat.from_dict(model["content"]))
        if found is None:
            return super().save(model, path)
        if found != text:
            super().save({"type": "file", "format": "text", "content": found}, path)
        return self.get(path, content=False, type="notebook")


def saved(text: str, notebook: nbformat.NotebookNode) -> str | None:
    """The text of a page with what was changed in its notebook; None if that cannot be told.

    >>> page = "# Title\\n\\n```{code-cell} python\\nx  =  1\\n```\\n"
    >>> notebook = jupytext.reads(page, "md:myst")
    >>> saved(page, notebook) == page
    True
    >>> notebook.cells[1].source = "x  =  2"
    >>> saved(page, notebook) == page.replace("1", "2")
    True
    """
    before = jupytext.reads(text, ".md")
    if _cells(before) == _cells(notebook):
        return text
    form = before.metadata.get("jupytext", {}).get("text_representation", {})
    form = {"extension": ".md", "format_name": form.get("format_name", "markdown")}
    after = nbformat.v4.new_notebook(metadata=before.metadata, cells=_plain(notebook))
    found = merged(text, jupytext.writes(before, form), jupytext.writes(after, form))
    return found if _cells(jupytext.reads(found, ".md")) == _cells(notebook) else None


def merged(text: str, base: str, wanted: str) -> str:
    """`text` with the changes that lead from `base`, which says the same, to `wanted`.

    >>> merged("a\\nB\\nc\\n", "a\\nb\\nc\\n", "a\\nb\\nc\\nd\\n")
    'a\\nB\\nc\\nd\\n'
    """
    lines, old, new = (each.splitlines(keepends=True) for each in (text, base, wanted))
    place = {}
    for a, b, count in difflib.SequenceMatcher(None, old, lines, False).get_matching_blocks():
        place |= {a + k: b + k for k in range(count)}
    # beyond the end of one is beyond the end of the other
    place |= {-1: -1, len(old): len(lines)}
    result, at = [], 0
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        if tag == "equal":
            continue
        # from the last line before it that both have, to the first after it
        first, last = i1, i2
        while first - 1 not in place:
            first -= 1
        while last not in place:
            last += 1
        result += lines[at : place[first - 1] + 1]
        result += old[first:i1] + new[j1:j2] + old[i2:last]
        at = place[last]
    return "".join(result + lines[at:])


def _plain(notebook) -> list:
    """Cells with their sources and tags alone."""
    cells = []
    for cell in notebook.cells:
        made = getattr(nbformat.v4, f"new_{cell.cell_type}_cell")(cell.source)
        made.metadata.update({k: v for k, v in cell.metadata.items() if k != "trusted"})
        cells.append(made)
    return cells


def _cells(notebook) -> list[tuple]:
    return [(cell.cell_type, cell.source, dict(cell.metadata)) for cell in _plain(notebook)]
