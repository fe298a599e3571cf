"""Pictures of where the theory breaks: a map of its errors, errors along a setting, stand-ins."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike

from attnpaths.figures.style import ABOVE, ACCENT, NEUTRAL, OPPOSITE, named, rgba

Numbers = ArrayLike | Sequence

# blue may be trusted, orange not; opaque, so that numbers on it read the same on any page
_SCALE = [[0, "#0b559f"], [0.3, "#5b9bd0"], [0.5, "#e9ecef"], [0.7, "#f0a060"], [1, "#b84a00"]]
_INK = "#1b1b1b"
_LOOKS = (
    (rgba(ACCENT), "square", "solid"),
    (rgba(OPPOSITE), "circle", "solid"),
    (rgba(ACCENT), "square-open", "dot"),
    (rgba(OPPOSITE), "circle-open", "dot"),
)


def error_map(widths: Numbers, loads: Numbers, errors: Numbers, rule: float, of: str) -> go.Figure:
    """Relative errors `[loads, widths]` as colours on logarithmic axes, and the rule's contour.

    White is the rule; three times less is blue, three times more is orange.

    >>> figure = error_map([4, 8], [1, 2], [[0.2, 0.1], [0.3, 0.05]], 0.1, "U")
    >>> figure.data[0].text[1].tolist(), float(figure.data[1].contours.start)
    (['30%', '5.0%'], 0.0)
    """
    widths, loads = np.asarray(widths, float), np.asarray(loads, float)
    errors = np.asarray(errors, float)
    x, y = np.log2(widths), np.log2(loads)
    height = np.round(np.log10(errors / rule), 4)
    written = np.vectorize(lambda e: f"{e:.0%}" if e >= 0.095 else f"{e:.1%}")(errors)
    ends = np.array([0.01, 0.03, 0.1, 0.3, 1.0]) * rule / 0.1
    figure = go.Figure()
    figure.add_heatmap(
        x=_edges(x),
        y=_edges(y),
        z=height,
        text=written,
        texttemplate="%{text}",
        hovertemplate="%{text}<extra></extra>",
        colorscale=_SCALE,
        zmin=-1,
        zmax=1,
        colorbar={
            "orientation": "h",
            "y": 1.02,
            "yanchor": "bottom",
            "thickness": 12,
            "tickvals": np.log10(ends / rule),
            "ticktext": [f"{end:.0%}" for end in ends],
        },
    )
    figure.add_contour(
        x=x,
        y=y,
        z=height,
        contours={"start": 0, "end": 0, "size": 1, "coloring": "none"},
        line={"color": _INK, "width": 3, "smoothing": 0},
        showscale=False,
        showlegend=False,
        hoverinfo="skip",
    )
    figure.update_xaxes(
        title="width N", tickvals=x, ticktext=[f"{n:g}" for n in widths], showgrid=False
    )
    figure.update_yaxes(
        title="load P/N", tickvals=y, ticktext=[f"{a:g}" for a in loads], showgrid=False
    )
    figure.update_layout(height=470, margin={"t": 70})
    rows = "; ".join(
        f"P/N = {load:g}: {', '.join(row)}" for load, row in zip(loads, written, strict=True)
    )
    return named(
        figure,
        f"Relative error of the theory's {of} at widths {', '.join(f'{n:g}' for n in widths)}. "
        f"{rows}. A black line is where it is {rule:.0%}.",
    )


def _edges(centres: np.ndarray) -> np.ndarray:
    """Where cells end: half way between their centres."""
    middle = (centres[1:] + centres[:-1]) / 2
    first, last = 2 * centres[0] - middle[0], 2 * centres[-1] - middle[-1]
    return np.concatenate([[first], middle, [last]])


def along(
    setting: str,
    values: Numbers,
    errors: Mapping[str, tuple[Numbers, Numbers]],
    rule: float,
    log: bool = True,
) -> go.Figure:
    """Relative errors against `values [K]` of a setting, `{name: (error [K], its error [K])}`.

    A dotted line is the `rule`.

    >>> figure = along("correlation", [0, 1], {"U": ([0.5, 0.1], [0.1, 0])}, 0.1, log=False)
    >>> figure.data[0].y.tolist(), figure.layout.xaxis.title.text
    ([0.5, 0.1], 'correlation')
    """
    values = np.asarray(values, float)
    figure = go.Figure()
    spoken = []
    for (name, (found, spread)), (colour, symbol, dash) in zip(
        errors.items(), _LOOKS, strict=False
    ):
        found = np.asarray(found, float)
        figure.add_scatter(
            x=values,
            y=_digits(found),
            error_y={"array": _digits(spread), "thickness": 2},
            name=name,
            mode="lines+markers",
            line={"color": colour, "width": 2, "dash": dash},
            marker={"symbol": symbol, "size": 9},
        )
        said = ", ".join(f"{e:.1%} at {v:g}" for v, e in zip(values, found, strict=True))
        spoken.append(f"{name} {said}")
    figure.add_hline(rule, line={"color": rgba(NEUTRAL), "width": 2, "dash": "dot"})
    ticks = {"type": "log", "dtick": 1, "exponentformat": "power"} if log else {}
    figure.update_xaxes(title=setting, **ticks)
    figure.update_yaxes(title="relative error of the theory", rangemode="tozero", tickformat=".0%")
    figure.update_layout(legend=ABOVE, height=400)
    return named(
        figure, f"Error of the theory against {setting}: {'; '.join(spoken)}. Rule {rule:.0%}."
    )


def stand_ins(names: Sequence[str], errors: Mapping[str, tuple[Numbers, Numbers]]) -> go.Figure:
    """Errors `{way: (error [K], its error [K])}` of several theories for each of K `names`.

    >>> figure = stand_ins(["12 · 48"], {"all widths": ([0.1], [0.01]), "mean": ([0.2], [0.01])})
    >>> [trace.name for trace in figure.data]
    ['all widths', 'mean']
    """
    colours = (rgba(ACCENT), rgba(OPPOSITE), "#8a6d3b", "#3c8d93", rgba(NEUTRAL))
    symbols = ("square", "circle", "diamond", "triangle-up", "x")
    figure = go.Figure()
    spoken = []
    for i, (way, (found, spread)) in enumerate(errors.items()):
        figure.add_scatter(
            x=np.arange(len(names)) + 0.12 * (i - (len(errors) - 1) / 2),
            y=_digits(found),
            error_y={"array": _digits(spread), "thickness": 2},
            name=way,
            mode="markers",
            marker={"color": colours[i], "symbol": symbols[i], "size": 9},
        )
        said = ", ".join(f"{e:.1%}" for e in np.asarray(found, float))
        spoken.append(f"{way} {said}")
    figure.update_xaxes(
        title="widths N₁ · N₂ · N₃", tickvals=np.arange(len(names)), ticktext=list(names)
    )
    figure.update_yaxes(title="relative error of U", rangemode="tozero", tickformat=".0%")
    figure.update_layout(legend={**ABOVE, "y": 1.04}, height=430)
    return named(
        figure, f"Error of U for networks of widths {'; '.join(names)}: {'; '.join(spoken)}."
    )


def _digits(values) -> np.ndarray:
    """Four digits are enough to draw."""
    return np.array([float(f"{value:.4g}") for value in np.ravel(values)])
