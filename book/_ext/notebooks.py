"""Chapters as notebooks to take away: executed, in plain Markdown, with one cell that installs.

What a reader downloads must read well where MyST is unknown, in Colab and in a plain Jupyter. So
its text is written from the finished page, in which every number, reference and citation already
stands, and its code cells are those that were executed, with their outputs.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import plotly.io
from docutils import nodes
from jupyter_cache import get_cache
from sphinx import addnodes
from sphinx_exercise import nodes as exercises

from attnpaths import explorer
from book._ext import checks, wheels

PLOTLY_MIME = "application/vnd.plotly.v1+json"
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
#: Tags of cells whose code a page does not show at once.
QUIET = {"remove-input", "remove-cell", "hide-input", "hide-cell"}
EXERCISES = (exercises.exercise_node, exercises.exercise_enumerable_node)
SOLUTIONS = (exercises.solution_node,)
# what means itself in plain text, and must go on doing so in Markdown
_SPECIAL = re.compile(r"([\\`*_$])")
_SVG = re.compile(r"<svg\b.*?</svg>", re.DOTALL)


def plain(text: str) -> str:
    """A text in which nothing means anything to Markdown.

    >>> print(plain("2 * x_1 < 5 $"))
    2 \\* x\\_1 &lt; 5 \\$
    """
    return _SPECIAL.sub(r"\\\1", text).replace("<", "&lt;")


class Cell:
    """The place of a code cell in the text, with the line that a check shows."""

    def __init__(self, index: int, says: str = "", caption: str = ""):
        """`index` counts all cells of the executed notebook."""
        self.index, self.says, self.caption = index, says, caption


class Heading(str):
    """A line that begins a cell of its own; `folded` has JupyterLab close what follows it."""

    folded = False


class Markdown:
    """Writes the parts of one resolved page as Markdown."""

    def __init__(self, numbers: dict, site: str = ""):
        """`numbers` are those of the page's figures and equations, `site` the book's address."""
        self.numbers, self.site = numbers, site

    def parts(self, node: nodes.Node, level: int = 0) -> Iterator[str | Cell]:
        """The page from top to bottom: texts, headings and places of code cells."""
        if _is_cell(node):
            yield self.cell(node)
        elif isinstance(node, checks.check):
            (cell,) = (each for each in node.findall(nodes.container) if _is_cell(each))
            yield self.cell(cell, checks.line(node))
        elif isinstance(node, nodes.section):
            for child in node.children:
                if isinstance(child, nodes.title):
                    yield Heading("#" * (level + 1) + " " + self.inline(child))
                else:
                    yield from self.parts(child, level + 1)
        elif isinstance(node, EXERCISES + SOLUTIONS):
            title, *rest = node.children
            words = self.inline(title).strip()
            if isinstance(node, EXERCISES) and not words.startswith("Exercise"):
                words = f"Exercise {self.number('exercise', node)} {words}".strip()
            heading = Heading("#" * max(level + 1, 3) + " " + words)
            heading.folded = isinstance(node, SOLUTIONS)
            yield heading
            for child in rest:
                yield from self.parts(child, level + 1)
        elif any(_is_cell(each) for each in node.findall(nodes.container)):
            for child in node.children:
                yield from self.parts(child, level)
        elif isinstance(node, nodes.document | nodes.container) or type(node) is nodes.Element:
            for child in node.children:
                yield from self.parts(child, level)
        else:
            text = self.block(node)
            if text:
                yield text

    def cell(self, node: nodes.Element, says: str = "") -> Cell:
        """A code cell; the caption of its figure becomes text."""
        figure = next(iter(node.findall(nodes.figure)), None)
        return Cell(node["cell_index"], says, self.caption(figure) if figure else "")

    def caption(self, figure: nodes.Element) -> str:
        """The number and the words of a figure."""
        number = self.number("figure", figure)
        words = [self.block(n) for n in figure if isinstance(n, nodes.caption | nodes.legend)]
        return f"**Fig. {number}.** " * bool(number) + " ".join(words)

    def number(self, kind: str, node: nodes.Element) -> str:
        """The number of a figure or an equation, as the page shows it."""
        known = self.numbers.get(kind, {})
        found = next((known[each] for each in node["ids"] if each in known), ())
        return ".".join(map(str, found))

    def blocks(self, node: nodes.Element) -> str:
        """What stands inside of a block, paragraph by paragraph."""
        return "\n\n".join(filter(None, (self.block(child) for child in node.children)))

    def block(self, node: nodes.Node) -> str:
        """One paragraph, list, table, formula or box."""
        match node:
            case nodes.comment() | nodes.target() | nodes.substitution_definition():
                return ""
            case nodes.math_block():
                return self.formula(node)
            case nodes.literal_block() | nodes.doctest_block():
                language = re.sub(r"^(ipython|default|none)\d*$", "", node.get("language", ""))
                return f"```{language}\n{node.astext()}\n```"
            case nodes.bullet_list() | nodes.enumerated_list():
                return self.list(node)
            case nodes.definition_list():
                return self.blocks(node)
            case nodes.definition_list_item():
                term = " ".join(self.inline(n) for n in node if isinstance(n, nodes.term))
                return f"**{term}**\n\n" + self.blocks(node[-1])
            case nodes.table():
                return self.table(node)
            case nodes.figure():
                pictures = [self.block(n) for n in node if isinstance(n, nodes.image | nodes.raw)]
                return "\n\n".join([*pictures, self.caption(node)])
            case nodes.raw():
                return self.raw(node)
            case nodes.rubric():
                return f"**{self.inline(node)}**"
            case nodes.transition():
                return "---"
            case nodes.block_quote():
                return _quoted(self.blocks(node))
            case nodes.Admonition():
                title = next((n for n in node if isinstance(n, nodes.title)), None)
                name = self.inline(title) if title is not None else type(node).__name__.title()
                rest = [self.block(child) for child in node if child is not title]
                return _quoted("\n\n".join([f"**{name}**", *filter(None, rest)]))
            case nodes.paragraph() | nodes.caption() | nodes.TextElement():
                return self.inline(node).strip()
            case nodes.Element():
                return self.blocks(node)
        return ""

    def formula(self, node: nodes.Element) -> str:
        """A formula on lines of its own, with its number."""
        body = "\n".join(line for line in node.astext().strip().splitlines() if line.strip())
        if "\\\\" in body and "\\begin{" not in body:
            body = f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"
        number = self.number("displaymath", node)
        return "$$\n" + body + (f" \\tag{{{number}}}" if number else "") + "\n$$"

    def list(self, node: nodes.Element) -> str:
        """A list; what belongs to an item is indented below its sign."""
        lines, start = [], node.get("start", 1)
        for i, item in enumerate(node.children):
            sign = "- " if isinstance(node, nodes.bullet_list) else f"{start + i}. "
            body = self.blocks(item).replace("\n", "\n" + " " * len(sign))
            lines.append(sign + re.sub(r"\n +(?=\n)", "\n", body))
        return "\n".join(lines)

    def table(self, node: nodes.Element) -> str:
        """A table with pipes, which every notebook shows."""
        rows = [
            [self.inside_table(entry) for entry in row.findall(nodes.entry)]
            for row in node.findall(nodes.row)
        ]
        lines = [f"| {' | '.join(row)} |" for row in rows]
        lines.insert(1, "|" + "---|" * len(rows[0]))
        title = next((self.inline(n) for n in node if isinstance(n, nodes.title)), "")
        return "\n\n".join(filter(None, [title and f"**{title}**", "\n".join(lines)]))

    def inside_table(self, entry: nodes.Element) -> str:
        """The text of one field, in which a line or a bar of its own would end it."""
        text = " ".join(self.blocks(entry).split())
        in_math = re.compile(r"\$[^$]*\$")
        text = in_math.sub(lambda m: m[0].replace(r"\|", r"\Vert ").replace("|", r"\vert "), text)
        return text.replace("|", r"\|")

    def raw(self, node: nodes.Element) -> str:
        """HTML of the page's author; drawings become images, which no notebook takes out."""
        if node.get("format") != "html" or "page-facts" in node.astext():
            return ""
        return _SVG.sub(lambda found: _image(found[0]), node.astext().strip())

    def inline(self, node: nodes.Node) -> str:
        """The words of a paragraph."""
        match node:
            case nodes.Text():
                return plain(node.astext())
            case nodes.math():
                return f"${node.astext().strip()}$"
            case nodes.literal():
                return f"`{node.astext()}`"
            case nodes.strong():
                return f"**{self.inlines(node)}**"
            case nodes.emphasis() | nodes.title_reference():
                return f"*{self.inlines(node)}*"
            case nodes.reference():
                return self.link(node)
            case nodes.image():
                return ""
            case nodes.raw():
                # what an author's link in HTML sets is a part of the page, and not of a notebook
                return re.sub(r"</?a\b[^>]*>", "", node.astext())
            case addnodes.download_reference():
                return self.inlines(node)
        return self.inlines(node)

    def inlines(self, node: nodes.Node) -> str:
        """The words of all children."""
        return "".join(self.inline(child) for child in node.children)

    def link(self, node: nodes.Element) -> str:
        """A link where it leads somewhere from a notebook; else its words."""
        words, address = self.inlines(node), node.get("refuri", "")
        if node.get("internal"):
            address = self.site and address and self.site + "/" + address.removeprefix("../")
        return f"[{words}]({address})" if address else words


def _is_cell(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _image(drawing: str) -> str:
    """A drawing as an image, dark on white in every theme, with the words that describe it."""
    label = re.search(r'aria-label="([^"]*)"', drawing) or re.search(
        r"<title[^>]*>([^<]*)<", drawing
    )
    if "xmlns=" not in drawing:
        drawing = drawing.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    data = base64.b64encode(drawing.encode()).decode()
    return (
        f'<img src="data:image/svg+xml;base64,{data}" style="background:white;width:100%"'
        f' alt="{(label[1] or label[2]) if label else ""}">'
    )


def shown_outputs(cell) -> list:
    """The outputs of a cell in forms that Colab and a plain Jupyter show.

    JupyterLab draws Plotly's JSON; for others the same figure stands there as HTML. A widget
    lives with its kernel: a sentence stands for it until the cell is run.
    """
    outputs = [nbformat.from_dict(dict(output)) for output in cell.outputs]
    for output in outputs:
        data = output.get("data", {})
        if explorer.MIME in data:
            words = "The explorer appears here when you run this cell."
            output.data = {"text/html": f"<p><em>{words}</em></p>", "text/plain": words}
        elif PLOTLY_MIME in data:
            figure = {k: v for k, v in data[PLOTLY_MIME].items() if k != "config"}
            math = "cdn" if "$" in str(figure.get("layout")) else False
            drawn = plotly.io.to_html(
                figure,
                include_plotlyjs="cdn",
                include_mathjax=math,
                full_html=False,
                validate=False,
            )
            output.data = {**data, "text/html": drawn}
    return outputs


def imports_book(sources: list[str]) -> bool:
    """Whether some cells import the studies or the tables of the book, besides the library.

    >>> imports_book(["import numpy", "from book.show import Table"])
    True
    >>> imports_book(["from attnpaths import theory"])
    False
    """
    found = set()
    for node in (node for source in sources for node in ast.walk(ast.parse(source))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return "book" in found


def notebook(parts: list[str | Cell], done, *, address: str, branch: str) -> nbformat.NotebookNode:
    """Put the texts of a page and the cells that were executed together.

    Cells that the page leaves out come back at their places, since others need what they define;
    code that the page does not show at once is folded here too.
    """
    code = {i: cell for i, cell in enumerate(done.cells) if cell.cell_type == "code"}
    cells, pending = [], []

    def write():
        if pending:
            made = nbformat.v4.new_markdown_cell("\n\n".join(pending))
            if getattr(pending[0], "folded", False):
                made.metadata["jp-MarkdownHeadingCollapsed"] = True
            cells.append(made)
            pending.clear()

    def run_until(last: int):
        for i in [i for i in sorted(code) if i <= last]:
            cells.append(_code_cell(code.pop(i)))

    # what all cells need comes first
    run_until(min((part.index for part in parts if isinstance(part, Cell)), default=0) - 1)
    first, cells[:] = cells[:], []
    for part in parts:
        if isinstance(part, Cell):
            if part.says:
                pending.append("✓ *Checked:* " + plain(part.says))
            write()
            run_until(part.index)
            if part.caption:
                pending.append(part.caption)
                write()
        else:
            if isinstance(part, Heading):
                write()
            pending.append(part)
    write()
    run_until(max(code, default=-1))
    studies = imports_book(code_of(done))
    install = [
        nbformat.v4.new_markdown_cell(wheels.words(address, studies)),
        nbformat.v4.new_code_cell(wheels.cell(address, branch, studies)),
    ]
    # under the title, which is the first cell
    cells[1:1] = [*install, *first]
    for i, cell in enumerate(cells):
        cell.id = f"cell-{i}"
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    made = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    nbformat.validate(made)
    return made


def _code_cell(cell):
    made = nbformat.v4.new_code_cell(cell.source, outputs=shown_outputs(cell))
    made.execution_count = cell.execution_count
    tags = set(cell.metadata.get("tags", []))
    checked = "check" in cell.metadata
    if QUIET & tags or checked:
        # JupyterLab's way to fold code, and Colab's; a check's output is in the line above it
        made.metadata.update(jupyter={"source_hidden": True}, cellView="form")
        if checked:
            made.metadata["jupyter"]["outputs_hidden"] = True
    if "remove-cell" in tags or "remove-output" in tags:
        made.outputs = []
    return made


def references(env, docname: str) -> str:
    """The works that a page cites, as a list."""
    domain = env.get_domain("cite")
    found = [each for each in domain.citation_refs if each.docname == docname]
    cited = {target.key for each in found for target in each.targets}
    entries = {
        citation.key: " ".join(citation.formatted_entry.text.render_as("markdown").split())
        for citation in domain.citations
        if citation.key in cited
    }
    # pybtex escapes points and hyphens, which mean nothing here
    return "\n".join("- " + re.sub(r"\\([.-])", r"\1", entries[key]) for key in sorted(entries))


def executed(app, docname: str) -> nbformat.NotebookNode | None:
    """A page's cells with their outputs; None if the page has no cells.

    The notebook that myst-nb writes has no outputs where these come from its cache.
    """
    path = Path(app.outdir).parent / "jupyter_execute" / f"{docname}.ipynb"
    if not path.exists():
        return None
    notebook = nbformat.read(path, as_version=4)
    # a page whose cells fail is in no cache
    with contextlib.suppress(KeyError):
        notebook = get_cache(app.config.nb_execution_cache_path).merge_match_into_notebook(
            notebook
        )[1]
    return notebook


def code_of(cells: nbformat.NotebookNode) -> list[str]:
    """The sources of all code cells of a notebook."""
    return [cell.source for cell in cells.cells if cell.cell_type == "code"]


def write(app, doctree, docname: str) -> None:
    """Write the notebook of a page that has code, beside the page's source."""
    if app.builder.name != "html" or not any(map(_is_cell, doctree.findall(nodes.container))):
        return
    options = app.config.html_theme_options
    site = app.config.html_baseurl.rstrip("/") + "/" + docname.rpartition("/")[0]
    text = Markdown(
        app.env.toc_fignumbers.get(docname, {}), site if app.config.html_baseurl else ""
    )
    parts = list(text.parts(doctree))
    works = references(app.env, docname)
    if works:
        parts += [Heading("## Works cited"), works]
    made = notebook(
        parts,
        executed(app, docname),
        address=options.get("repository_url", ""),
        branch=options.get("repository_branch", "main"),
    )
    offered = Path(app.outdir) / "_sources" / f"{docname}.ipynb"
    offered.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(made, offered)


def setup(app):
    """Register everything with Sphinx."""
    # after all else has been filled into the page
    app.connect("doctree-resolved", write, priority=900)
    app.connect("build-finished", wheels.ship)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
