"""How much of the paper stands, one mark for each claim; and what differs between two readings."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from attnpaths.figures.style import ABOVE, ACCENT, NEUTRAL, OPPOSITE, named, rgba

# told apart by shape as well as by colour
_MARKS = {
    "reproduced": ("square", ACCENT, 1.0),
    "in kind": ("diamond", ACCENT, 0.3),
    "undecided": ("diamond", NEUTRAL, 0.3),
    "not reproduced": ("x", OPPOSITE, 1.0),
    "not checked": ("circle", NEUTRAL, 0.0),
}


def standing(groups: Mapping[str, Sequence[tuple[str, str]]]) -> go.Figure:
    """One row for each group; a mark for each of its claims, `(what, verdict)`, best first.

    Takes words and no array.

    >>> figure = standing({"Fig. 2": [("2a", "reproduced"), ("2b", "in kind")]})
    >>> [(trace.name, trace.x) for trace in figure.data if trace.x]
    [('reproduced (1)', (1,)), ('in kind (1)', (2,))]
    """
    unknown = {verdict for rows in groups.values() for _, verdict in rows} - set(_MARKS)
    if unknown:
        raise ValueError(f"verdicts are {', '.join(_MARKS)}; got {', '.join(sorted(unknown))}")
    places = {verdict: ([], [], []) for verdict in _MARKS}
    for group, rows in groups.items():
        ordered = sorted(rows, key=lambda row: list(_MARKS).index(row[1]))
        for position, (what, verdict) in enumerate(ordered, start=1):
            for values, value in zip(places[verdict], (position, group, what), strict=True):
                values.append(value)
    figure = go.Figure()
    for verdict, (x, y, what) in places.items():
        symbol, rgb, depth = _MARKS[verdict]
        figure.add_scatter(
            x=x,
            y=y,
            text=what,
            name=f"{verdict} ({len(x)})",
            mode="markers",
            marker={
                "symbol": symbol,
                "size": 9,
                "color": rgba(rgb, depth),
                "line": {"width": 1.5, "color": rgba(rgb)},
            },
            hovertemplate=f"%{{text}}: {verdict}<extra></extra>",
        )
    longest = max(map(len, groups.values()))
    figure.update_xaxes(range=[0.3, longest + 0.7], visible=False)
    figure.update_yaxes(
        autorange="reversed",
        automargin=True,
        type="category",
        categoryorder="array",
        categoryarray=list(groups),
        showgrid=False,
    )
    figure.update_layout(height=150 + 38 * len(groups), legend=ABOVE)
    spoken = "; ".join(
        f"{group}: " + ", ".join(f"{_count(rows, v)} {v}" for v in _MARKS if _count(rows, v))
        for group, rows in groups.items()
    )
    return named(figure, f"Verdicts on the paper's panels and claims. {spoken}.")


def _count(rows, verdict: str) -> int:
    return sum(each == verdict for _, each in rows)


def two_readings(rows: Mapping[str, tuple[float, float]], title: str) -> go.Figure:
    """A number under the first reading and under the second, joined by a line, one row each.

    Takes pairs of numbers, `{name: [2]}`.

    >>> figure = two_readings({"readout": (0.9, 0.7)}, "accuracy")
    >>> figure.data[1].x, figure.data[2].x
    ((0.9,), (0.7,))
    """
    names = list(rows)
    first, second = zip(*rows.values(), strict=True)
    figure = go.Figure()
    # None lifts the pen
    figure.add_scatter(
        x=[x for pair in rows.values() for x in (*pair, None)],
        y=[y for name in names for y in (name, name, None)],
        mode="lines",
        line={"color": rgba(NEUTRAL), "width": 2},
        showlegend=False,
        hoverinfo="skip",
    )
    for label, values, rgb, symbol in (
        ("code", first, ACCENT, "circle"),
        ("text", second, OPPOSITE, "diamond"),
    ):
        figure.add_scatter(
            x=values,
            y=names,
            name=label,
            mode="markers",
            marker={"color": rgba(rgb), "size": 11, "symbol": symbol},
            hovertemplate="%{y}: %{x:.3f}<extra></extra>",
        )
    figure.update_xaxes(title=title)
    figure.update_yaxes(autorange="reversed", automargin=True, type="category")
    figure.update_layout(height=130 + 42 * len(names), legend=ABOVE)
    spoken = "; ".join(f"{name}: {a:.3f} and {b:.3f}" for name, (a, b) in rows.items())
    return named(figure, f"The {title} as the code and as the text have it. {spoken}.")
