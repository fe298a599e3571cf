"""Results as tables: what a page shows in place of printed lines, in the book and in JupyterLab."""

import html
from collections.abc import Mapping, Sequence
from typing import Any


class Table:
    """Columns by name, shown as a table; numbers are written by `format`, and stand right.

    `formats` gives a format for some of the columns, as in `{"accuracy": ".3f"}`; others are
    written as they are. A pair `(mean, error)` becomes "mean ± error". `best` marks the largest
    number of these columns.

    >>> table = Table({"path": ["good", "bad"], "accuracy": [0.91, 0.5]}, {"accuracy": ".2f"})
    >>> print(table)
    path | accuracy
    good | 0.91
    bad | 0.50
    """

    def __init__(
        self,
        columns: Mapping[str, Sequence],
        formats: Mapping[str, str] | None = None,
        *,
        best: Sequence[str] = (),
    ):
        """Check that all columns are of one length."""
        self.columns = {name: list(values) for name, values in columns.items()}
        self.formats, self.best = dict(formats or {}), tuple(best)
        lengths = {name: len(values) for name, values in self.columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns must be of one length; got {lengths}")
        unknown = {*self.formats, *self.best} - self.columns.keys()
        if unknown:
            raise ValueError(f"there is no column {', '.join(sorted(unknown))}; got {lengths}")

    @property
    def rows(self) -> list[list[str]]:
        """All cells as texts."""
        texts = [[self._text(name, v) for v in values] for name, values in self.columns.items()]
        return [list(row) for row in zip(*texts, strict=True)]

    def __str__(self):
        """Plain text, for a terminal."""
        return "\n".join(" | ".join(row) for row in [list(self.columns), *self.rows])

    def _repr_html_(self) -> str:
        """A table that scrolls in its own box where a page is narrow."""
        head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in self.columns)
        largest = {name: max(range(len(v)), key=v.__getitem__)
                   for name, v in self.columns.items() if name in self.best and v}  # fmt: skip
        lines = []
        for i, row in enumerate(self.rows):
            cells = []
            for name, text in zip(self.columns, row, strict=True):
                kind = ' class="number"' if _is_number(self.columns[name][i]) else ""
                shown = html.escape(text)
                shown = f"<strong>{shown}</strong>" if largest.get(name) == i else shown
                cells.append(f"<td{kind}>{shown}</td>")
            lines.append(f"<tr>{''.join(cells)}</tr>")
        body = "\n".join(lines)
        return (
            '<div class="table-box" role="group" tabindex="0" aria-label="table of results">'
            f'<table class="table"><thead><tr>{head}</tr></thead>\n'
            f"<tbody>{body}</tbody></table></div>"
        )

    def _text(self, name: str, value: Any) -> str:
        how = self.formats.get(name, "")
        if isinstance(value, tuple):
            text = " ± ".join(format(float(each), how) for each in value)
        elif isinstance(value, str) or not how:
            text = str(value)
        else:
            text = format(float(value) if "d" not in how else int(value), how)
        return text.replace("-", "−") if _is_number(value) else text


def _is_number(value: Any) -> bool:
    return not isinstance(value, str)
