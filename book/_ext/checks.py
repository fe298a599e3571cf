"""Checks as one line each: what was checked and the number, open to the cell and its output.

A code cell with the option `check: what it checks` is run as any other, and stops the build if it
fails. The page shows it folded, "✓ what it checks (number)"; the number is the last line that the
cell prints. A cell that cannot fail is no check, and is warned of.
"""

import ast
import html

from docutils import nodes
from sphinx.util import logging

logger = logging.getLogger(__name__)


class check(nodes.General, nodes.Element):
    """A cell folded under one line; `says` and `number` are its words."""


def can_fail(source: str) -> bool:
    """Whether a cell asserts something that is not plainly true.

    >>> can_fail("assert 1 < x"), can_fail("print(x)"), can_fail("assert True")
    (True, False, False)
    """
    asserts = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Assert)]
    return any(not isinstance(each.test, ast.Constant) for each in asserts)


def fold_checks(app, doctree):
    """Put every cell that is a check under its line."""
    for cell in list(doctree.findall(nodes.container)):
        says = (cell.get("cell_metadata") or {}).get("check")
        if cell.get("nb_element") != "cell_code" or says is None:
            continue
        source = next((n.astext() for n in cell.findall(nodes.literal_block)), "")
        if not can_fail(source):
            logger.warning("the check %r asserts nothing", says, location=cell, type="check")
        printed = [
            line
            for block in cell.findall(nodes.literal_block)
            if "stream" in block["classes"]
            for line in block.astext().splitlines()
            if line.strip()
        ]
        fold = check("", says=str(says).strip(), number=printed[-1].strip() if printed else "")
        cell.replace_self(fold)
        fold += cell


def line(node: check) -> str:
    """The words of a check.

    >>> line(check("", says="both agree", number="3e-16"))
    'both agree (3e-16)'
    """
    return node["says"] + (f" ({node['number']})" if node["number"] else "")


def visit_html(self, node):
    """Open the fold."""
    words = html.escape(line(node))
    mark = '<span class="check-mark" aria-hidden="true">✓</span>'
    self.body.append(f'<details class="check"><summary>{mark} Checked: {words}</summary>\n')


def depart_html(self, node):
    """Close it."""
    self.body.append("</details>\n")


def visit_latex(self, node):
    """On paper nothing opens: the line alone."""
    self.body.append("\n\n" + r"\noindent\textsc{checked:} " + self.encode(line(node)) + "\n\n")
    raise nodes.SkipNode


def setup(app):
    """Register everything with Sphinx."""
    nothing = (lambda self, node: None,) * 2
    app.add_node(check, html=(visit_html, depart_html), latex=(visit_latex, None), text=nothing)
    app.connect("doctree-read", fold_checks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
