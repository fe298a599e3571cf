"""The Sphinx extension that writes the reference of the library and the index of equations.

Listed in ``_config.yml``; the library itself never imports it.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from book._ext import equations, reference, repository

HERE = Path(__file__).resolve().parent
# how Sphinx writes the arguments of a long signature
_LISTED = re.compile(
    r'<span class="sig-paren">\(</span>\s*<dl>.*?</dl>\s*<span class="sig-paren">', re.DOTALL
)


class _Written(SphinxDirective):
    """A directive that writes Markdown into its page."""

    def parse(self, text: str) -> list[nodes.Node]:
        container = nodes.Element()
        lines = StringList(text.splitlines(), source=self.get_source_info()[0])
        self.state.nested_parse(lines, self.content_offset, container)
        return container.children

    def link(self, text: str, path: Path, line: int | None = None) -> str:
        """Some text, as a link to a source file if the repository has an address."""
        return repository.link(self.env.config, text, path, line)


class Reference(_Written):
    """``{reference} attnpaths.kernels``: all that the module offers."""

    required_arguments = 1

    def run(self):
        """Describe the module's names; a change of its file makes the page new."""
        try:
            text = reference.page(self.arguments[0])
        except ValueError as problem:
            raise self.error(str(problem)) from None
        for entry in reference.entries()[self.arguments[0]]:
            self.env.note_dependency(str(reference.source(entry.home.rpartition(".")[0])))
        return self.parse(text)


class ChapterFigures(_Written):
    """``{chapter-figures}``: figures of single chapters and studies, by module."""

    def run(self):
        """Describe every module of figures that the package does not offer itself."""
        shown = [module for module in reference.FIGURES if reference.entries()[module]]
        for module in shown:
            self.env.note_dependency(str(reference.source(module)))
        return self.parse(
            "\n\n".join(
                f"```{{rubric}} {module}\n```\n\n{reference.page(module)}" for module in shown
            )
        )


class InnerModules(_Written):
    """``{inner-modules}``: a table of the other modules."""

    def run(self):
        """Write the table."""
        rows = [
            f"| {self.link(f'`{m}`', reference.source(m))} | {reference.text(about)} |"
            for m, about in reference.inner()
        ]
        return self.parse("\n".join(["| module | what it does |", "|---|---|", *rows]))


class EquationIndex(_Written):
    """``{equation-index}``: equation of the paper, its page, its functions, its tests."""

    def run(self):
        """Write the table, and make each number of the paper a place to link to."""
        rows = equations.index()
        lines = ["| paper | what it says | page | function | test |", "|---|---|---|---|---|"]
        lines += [self.line(row) for row in rows]
        result = self.parse("\n".join(lines))
        for part in result:
            for table in part.findall(nodes.table):
                table["classes"].append("equation-index")
        labels = self.env.get_domain("std").anonlabels
        drawn = [r for part in result for body in part.findall(nodes.tbody) for r in body]
        for row, shown in zip(rows, drawn, strict=True):
            for number in row.equation.numbers:
                name = f"paper-eq-{number}"
                next(shown.findall(nodes.paragraph)).insert(0, nodes.inline(ids=[name]))
                labels[name] = self.env.docname, name
        return result

    def line(self, row: equations.Row) -> str:
        """One row, as Markdown."""
        first, *others = row.equation.numbers
        number = f"**{first}**" + (f" ({', '.join(map(str, others))})" if others else "")
        pages = [f"[{p.file.stem}]({p.file.name}) {{eq}}`{p.name}`" for p in row.pages]
        functions = [self.function(place) for place in row.functions]
        tests = [
            self.link(p.name.removeprefix("test_").replace("_", " "), p.file, p.line)
            for p in row.tests
        ]
        cells = [
            number,
            reference.text(row.equation.says),
            *map(", ".join, (pages, functions, tests)),
        ]
        return f"| {' | '.join(cells)} |"

    def function(self, place: equations.Place) -> str:
        """A function as a link into the reference, or to its source if it is not in there."""
        known = reference.addresses().get(place.name)
        short = (known or place.name).removeprefix("attnpaths.")
        if known:
            return f"{{py:obj}}`{short} <{known}>`"
        return self.link(f"`{short}`", place.file, place.line)


def configure(app, config):
    """Short names, and one argument a line where a signature is long."""
    config.add_module_names = False
    config.python_maximum_signature_line_length = 80
    config.toc_object_entries_show_parents = "hide"


def plain_arguments(app, pagename, templatename, context, doctree):
    """Take the arguments of long signatures out of a list of definitions that defines nothing."""
    if "sig-object" in context.get("body", ""):
        context["body"] = _LISTED.sub(
            lambda found: (
                found[0]
                .replace("<dl>", "")
                .replace("</dl>", "")
                .replace("<dd>", '<span class="sig-argument">')
                .replace("</dd>", "</span>")
            ),
            context["body"],
        )


def copy_style(app):
    """Put our style beside the pages."""
    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "reference.css", static)


def setup(app):
    """Register everything with Sphinx."""
    app.add_css_file("reference.css", priority=900)
    app.connect("config-inited", configure)
    app.connect("builder-inited", copy_style)
    app.connect("html-page-context", plain_arguments)
    app.add_directive("reference", Reference)
    app.add_directive("chapter-figures", ChapterFigures)
    app.add_directive("inner-modules", InnerModules)
    app.add_directive("equation-index", EquationIndex)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
