"""The picture of how much of the paper stands: one mark for each panel and claim."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from attnpaths.figures.style import ABOVE, ACCENT, NEUTRAL, OPPOSITE, named, rgba

# told apart by shape as well as by colour
_MARKS = {
    "reproduced": ("square", ACCENT, 1.0),
    "in kind": ("diamond", ACCENT, 0.3),
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
