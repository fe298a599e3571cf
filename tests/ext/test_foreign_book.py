"""A book of others, in an environment that has ours installed, is what it would be without us."""

import importlib.metadata
import subprocess
import sys

PAGE = """---
jupytext:
  text_representation:
    format_name: myst
kernelspec:
  name: python3
  display_name: Python 3
---

# A page

```{code-cell} python
import plotly.graph_objects as go

figure = go.Figure(layout={"title": "theirs"}).to_plotly_json()
own = "<div id='own'>own html</div>"
display({"application/vnd.plotly.v1+json": figure, "text/html": own}, raw=True)
```
"""
SETTINGS = 'extensions = ["myst_nb"]\nnb_execution_mode = "force"\n'


def test_a_foreign_book_shows_its_figures_its_own_way(tmp_path):
    (tmp_path / "conf.py").write_text(SETTINGS, "utf-8")
    (tmp_path / "index.md").write_text(PAGE, "utf-8")
    command = [sys.executable, "-m", "sphinx", "-b", "html", tmp_path, tmp_path / "html"]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert run.returncode == 0, run.stdout[-3000:]
    assert "Executed notebook in" in run.stdout
    page = (tmp_path / "html" / "index.html").read_text("utf-8")
    assert "<div id='own'>own html</div>" in page
    # what myst-nb says of Plotly's JSON where nobody has a renderer for it
    assert "skipping unknown output mime type: application/vnd.plotly.v1+json" in run.stdout
    for ours in ("plotly-figure", "explorer-place", "book.js", "attnpaths"):
        assert ours not in page
    written = {path.name for path in (tmp_path / "html").rglob("*")}
    assert not {"book.js", "book.css", "explorer.css", "reference.css", "plotly.min.js"} & written


def test_no_renderer_of_ours_is_for_every_book():
    points = importlib.metadata.entry_points(group="myst_nb.mime_renderers")
    assert [p.value for p in points if p.value.startswith(("attnpaths", "book"))] == []
    # one that a book must ask for by name
    (ours,) = importlib.metadata.entry_points(group="myst_nb.renderers", name="attnpaths_book")
    assert ours.value == "book._ext.pages:Renderer"
