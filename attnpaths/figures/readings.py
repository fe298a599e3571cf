"""One picture of what differs between two readings of a paper."""

from collections.abc import Mapping

import plotly.graph_objects as go

from attnpaths.figures.style import ABOVE, ACCENT, NEUTRAL, OPPOSITE, named, rgba


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
