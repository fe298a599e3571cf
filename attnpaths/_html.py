"""How results look in a notebook: a small card of facts, and tables with a tint for size."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# larger order parameters would fill the screen
_LARGEST = 16


class Sized:
    """Tokens `x [P, T, D]` that show their sizes only."""

    x: Any

    def __repr__(self):
        """Not the numbers, which are many."""
        examples, tokens, dim = self.x.shape
        return f"{type(self).__name__}({examples=}, {tokens=}, {dim=})"


def text(plain: str) -> str:
    """One line, as it is."""
    return f"<code>{html.escape(plain)}</code>"


def card(title: str, facts: Mapping[str, Any], *below: str) -> str:
    """A title, what there is to know in a line each, and what follows."""
    rows = "".join(
        f'<tr><th style="text-align:left">{html.escape(str(name))}</th>'
        f"<td>{html.escape(str(fact))}</td></tr>"
        for name, fact in facts.items()
    )
    return f'<div class="attnpaths"><b>{title}</b><table>{rows}</table>{"".join(below)}</div>'


def table(
    values, rows: Sequence[str], columns: Sequence[str], caption: str, *, missing: str = "nan"
) -> str:
    """Numbers with named rows and columns, tinted by size: blue above zero, orange below.

    Where there is none, the table says `missing`.
    """
    values = np.asarray(values, float)
    largest = np.max(np.abs(values), initial=0.0, where=np.isfinite(values)) or 1.0

    def cell(value):
        depth = min(abs(value) / largest, 1.0) * 0.5 if np.isfinite(value) else 0.0
        colour = "31, 119, 190" if value > 0 else "213, 94, 0"
        style = f"background:rgba({colour}, {depth:.2f});text-align:right"
        shown = html.escape(missing) if np.isnan(value) else f"{value:.4g}"
        return f'<td style="{style}">{shown}</td>'

    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(
        f"<tr><th>{html.escape(name)}</th>{''.join(map(cell, row))}</tr>"
        for name, row in zip(rows, values, strict=True)
    )
    caption = f"<caption style='color:inherit'>{html.escape(caption)}</caption>"
    return f"<table>{caption}<tr><th></th>{head}</tr>{body}</table>"


def matrix(U, names: Sequence[str], caption: str) -> str:
    """An order parameter by its paths, unless it is too large to read."""
    U = np.asarray(U)
    if len(U) > _LARGEST:
        return f"<p>{html.escape(caption)}: {len(U)} × {len(U)}, see <code>.U</code></p>"
    return table(U, names, names, caption)
