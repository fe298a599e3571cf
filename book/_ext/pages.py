"""The Sphinx extension of the book: figures, scripts served locally, run times, cache.

Listed in ``_config.yml``; the library itself never imports it. What myst-nb draws outputs with
is chosen here, for this book alone: other books of the same environment are as they were.
"""

from __future__ import annotations

import atexit
import hashlib
import html
import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from importlib import metadata, resources
from pathlib import Path

from docutils import nodes
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from myst_nb.core.read import read_myst_markdown_notebook
from myst_nb.core.render import MimeData, NbElementRenderer
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.util import docname_join, logging
from sphinx.util.docutils import SphinxRole

from attnpaths import explorer
from attnpaths.explorer import bundle
from attnpaths.tasks import images
from book._ext import notebooks, repository, wheels
from book._ext.equations import ROOT
from book._ext.notebooks import PLOTLY_MIME

HERE = Path(__file__).resolve().parent
LIBRARY = ROOT / "attnpaths"
#: What cells import: the library, the studies with their results, and the tables.
SOURCES = (LIBRARY, ROOT / "book" / "studies", ROOT / "book" / "show")
#: The name of `Renderer` in book/pyproject.toml.
RENDERER = "attnpaths_book"
EXPLORER_SCRIPT = "explorer-markov.js"
DEFAULT_HEIGHT = 400
# of MathJax's 24 MB, what the SVG build can ask for
MATHJAX_PARTS = ("tex-mml-svg.js", "input/tex/extensions", "output/svg/fonts", "a11y", "sre")

logger = logging.getLogger(__name__)


def accessible_name(layout: dict) -> str:
    """Give the words a screen reader says for a figure: ``layout.meta["alt"]``, else the title."""
    meta = layout.get("meta")
    if isinstance(meta, dict) and meta.get("alt"):
        return str(meta["alt"]).strip()
    title = layout.get("title")
    text = title.get("text") if isinstance(title, dict) else title
    return " ".join(re.sub(r"<[^>]+>", " ", text or "").split())


def half_math(part) -> list[str]:
    """List the texts of a figure that mix words with ``$math$``: Plotly drops the words."""
    if isinstance(part, dict):
        return [text for key, value in part.items() if key != "meta" for text in half_math(value)]
    if isinstance(part, list):
        return [text for value in part for text in half_math(value)]
    if isinstance(part, str) and re.search(r"\$[^$]+\$", part):
        return [] if re.fullmatch(r"\$[^$]+\$", part) else [part]
    return []


def figure_html(figure: dict) -> str:
    """Write the empty box of a Plotly figure and, after it, the JSON that ``book.js`` draws."""
    layout = figure.get("layout") or {}
    # controls must stay reachable, and role="img" hides what is inside it; sliders are moved out
    role = "group" if layout.get("updatemenus") else "img"
    label = html.escape(accessible_name(layout), quote=True)
    # so that no text of the figure can end the script element
    body = json.dumps(figure, separators=(",", ":")).replace("</", "<\\/")
    return (
        f'<div class="plotly-figure" role="{role}" aria-label="{label}"'
        f' style="height:{layout.get("height") or DEFAULT_HEIGHT}px"></div>\n'
        f'<script type="application/json">{body}</script>'
    )


class Renderer(NbElementRenderer):
    """What myst-nb draws outputs with in this book: Plotly figures and explorers are ours.

    myst-nb knows renderers by entry points. One of the group `myst_nb.renderers` is used only
    by a book that asks for it by name, as `choose_renderer` does; one of the group
    `myst_nb.mime_renderers` would be used by every book of the environment.
    """

    def render_mime_type(self, data: MimeData) -> list[nodes.Element]:
        """Give the nodes of one output."""
        if data.mime_type == PLOTLY_MIME:
            return self.render_plotly(data)
        if data.mime_type == explorer.MIME:
            return self.render_explorer(data)
        return super().render_mime_type(data)

    def render_plotly(self, data: MimeData) -> list[nodes.Element]:
        """Turn Plotly's JSON into a figure of the page."""
        figure = data.content if isinstance(data.content, dict) else json.loads(data.content)
        problems = [
            f"of {text!r} only the math would be drawn: write it all as math, $\\text{{...}} x$"
            for text in half_math(figure)
        ]
        if not accessible_name(figure.get("layout") or {}):
            problems.append(
                "the figure has no accessible name: give it a title, or "
                "fig.update_layout(meta={'alt': '...'})"
            )
        for problem in problems:
            self.logger.warning(problem, subtype="figure", line=data.line)
        self.add_js_file("plotly", "plotly.min.js", {"defer": "defer"})
        return [nodes.raw(text=figure_html(figure), format="html", classes=["output"])]

    def render_explorer(self, data: MimeData) -> list[nodes.Element]:
        """Give a page the place and the script of an explorer."""
        content = data.content if isinstance(data.content, dict) else json.loads(data.content)
        self.add_js_file("explorer", EXPLORER_SCRIPT, {"defer": "defer"})
        start = html.escape(json.dumps({k: content[k] for k in ("setting", "look")}), quote=True)
        without = "<noscript>The explorer computes in this page, and needs JavaScript.</noscript>"
        place = f'<div class="explorer-place" data-start="{start}">{without}</div>'
        return [nodes.raw(text=place, format="html", classes=["output"])]


def choose_renderer(app, config):
    """Have this book's outputs drawn by `Renderer`; pages show what it drew before all else."""
    config.nb_render_plugin = RENDERER
    config.nb_mime_priority_overrides = [
        *config.nb_mime_priority_overrides,
        *(("html", mime, 1) for mime in (PLOTLY_MIME, explorer.MIME)),
    ]


def source_key(requirements: Path, folders: Sequence[Path] = SOURCES) -> str:
    """Hash all that can change a cell's output besides the cell: library, studies and pins."""
    digest = hashlib.sha256(requirements.read_bytes() if requirements.exists() else b"")
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            # scripts and styles only lay out what the cells gave
            laid_out = path.suffix in (".js", ".css")
            if path.is_file() and "__pycache__" not in path.parts and not laid_out:
                name = path.relative_to(folder.parent).as_posix()
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                digest.update(f"{name} {content}\n".encode())
    return digest.hexdigest()[:16]


def cache_folder(root: Path) -> Path:
    """Where executed chapters are kept, for the present library and settings."""
    settings = {k: v for k, v in sorted(os.environ.items()) if k.startswith("ATTNPATHS_")}
    # pages differ where images are at hand
    settings |= {name: images.available(name) for name in images.SOURCES}
    chosen = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:8]
    key = source_key(root / "requirements.txt")
    return root / "_build" / f".jupyter_cache-{key}-{chosen}"


def keep_executed(root: Path, chapter: Path, executed, seconds: float) -> None:
    """Put a chapter that was executed elsewhere into the cache, for the next build to show."""
    notebook = read_myst_markdown_notebook(chapter.read_text("utf-8"), path=chapter)
    notebook.metadata["language_info"] = executed.metadata["language_info"]
    own, cells = (
        [cell for cell in each.cells if cell.cell_type == "code"] for each in (notebook, executed)
    )
    if [cell.source for cell in own] != [cell.source for cell in cells]:
        raise ValueError(f"{chapter} was changed after it was executed: run it again")
    for cell, done in zip(own, cells, strict=True):
        cell.outputs, cell.execution_count = done.outputs, done.execution_count
    bundle = CacheBundleIn(notebook, str(chapter), data={"execution_seconds": seconds})
    get_cache(cache_folder(root)).cache_notebook_bundle(
        bundle, check_validity=False, overwrite=True
    )


def choose_cache(app, config):
    """Point myst-nb at the cache of the present library, and drop the caches of older ones."""
    folder = cache_folder(Path(app.srcdir))
    for other in folder.parent.glob(".jupyter_cache*"):
        if other != folder:
            shutil.rmtree(other)
    config.nb_execution_cache_path = str(folder)


def copy_scripts(app):
    """Put MathJax, Plotly and our own scripts and styles into the pages' ``_static``."""
    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    shutil.copy(resources.files("plotly") / "package_data" / "plotly.min.js", static)
    for path in (HERE / "book.js", HERE / "book.css", LIBRARY / "explorer" / "explorer.css"):
        shutil.copy(path, static)
    (static / EXPLORER_SCRIPT).write_text(bundle.script(), "utf-8")
    # the folder's name has hyphens, so it cannot be found by importing it
    mathjax = metadata.distribution("sphinx-mathjax-offline").locate_file(
        "sphinx-mathjax-offline/static/mathjax"
    )
    for part in MATHJAX_PARTS:
        source, target = Path(mathjax) / part, static / "mathjax" / part
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(source, target)


def runtime_text(env, docname: str) -> str | None:
    """Say how long a page's cells ran (when they last did), or None if it has none."""
    seconds = (NbMetadataCollector.get_exec_data(env, docname) or {}).get("runtime")
    if seconds is None:
        return None
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def add_page_facts(app, doctree):
    """Write under the page's title its run time and links to its source and its notebook."""
    docname = app.env.docname
    title = next(doctree.findall(nodes.title), None)
    if title is None:
        return
    here = "../" * docname.count("/") + "_sources/" + docname
    source = f'<a href="{here}{Path(app.env.doc2path(docname)).suffix}">source</a>'
    runtime = runtime_text(app.env, docname)
    if runtime is None:
        text = f"This page: {source}"
    else:
        links = [f'<a href="{here}.ipynb" download>notebook</a>', *wheel_links(app), source]
        text = " · ".join([f"This page ran in {runtime}", *links])
    line = nodes.raw(text=f'<p class="page-facts">{text}</p>', format="html")
    title.parent.insert(title.parent.index(title) + 1, line)


def wheel_links(app) -> list[str]:
    """Links to the files that a page's notebook installs, where it has no repository to ask."""
    if app.config.html_theme_options.get("repository_url"):
        return []
    up = "../" * app.env.docname.count("/") + wheels.FOLDER
    cells = notebooks.executed(app, app.env.docname)
    needed = wheels.projects(notebooks.imports_book(notebooks.code_of(cells))).values()
    return [
        f'<a href="{up}/{wheels.file(folder)}" download>{word}</a>'
        for folder, word in zip(needed, ("library", "studies"), strict=False)
    ]


def offer_notebook(app, pagename, templatename, context, doctree):
    """Name a page's notebook to the theme, which does so only where it launches it."""
    if runtime_text(app.env, pagename) is not None:
        context["ipynb_source"] = f"{pagename}.ipynb"


class RuntimeRole(SphinxRole):
    """``{runtime}`model``: how long another page of the book takes to run."""

    def run(self):
        """Leave a mark that `fill_runtimes` replaces once every page has been read."""
        page = docname_join(self.env.docname, self.text)
        node = nodes.inline(self.rawtext, "", classes=["runtime"], page=page)
        self.set_source_info(node)
        return [node], []


def fill_runtimes(app, doctree, docname):
    """Replace the marks of the ``{runtime}`` role."""
    for node in list(doctree.findall(lambda n: isinstance(n, nodes.inline) and "page" in n)):
        text = runtime_text(app.env, node["page"])
        if text is None:
            logger.warning("%s is no page with code", node["page"], location=node)
        node += nodes.Text(text or "?")
        del node["page"]


def name_citations(app, pagename, templatename, context, doctree):
    """Give the entries of the bibliography the role that the list around them must hold."""
    if "body" in context:
        context["body"] = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')


def share_compilations(app):
    """Let the kernels of all pages share what JAX compiles, for this build only."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    folder = tempfile.mkdtemp(prefix="attnpaths-compiled-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.05"


def setup(app):
    """Register everything with Sphinx."""
    app.add_css_file("book.css", priority=900)
    app.add_css_file("explorer.css", priority=900)
    app.add_js_file("book.js", loading_method="defer")
    app.add_role("runtime", RuntimeRole())
    app.connect("config-inited", choose_cache)
    app.connect("config-inited", choose_renderer)
    app.connect("config-inited", repository.choose_buttons)
    app.connect("builder-inited", share_compilations)
    app.connect("builder-inited", copy_scripts)
    app.connect("doctree-read", add_page_facts)
    app.connect("doctree-resolved", fill_runtimes)
    app.connect("html-page-context", name_citations)
    app.connect("html-page-context", offer_notebook)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
