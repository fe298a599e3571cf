"""Figures of the derivation: a saddle point, and how its error falls with the width."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike

from attnpaths.figures.style import ACCENT, NEUTRAL, named, rgba, signed


def saddle_point(
    real: ArrayLike, imaginary: ArrayLike, height: ArrayLike, at: float, name: str = "R"
) -> go.Figure:
    """The height `[imaginary, real]` of an exponent over the complex plane, and its saddle.

    Colours are relative to the height at the saddle, a point of the real axis: blue is above it
    and orange below. The vertical line is the path of integration: on it the saddle is a maximum.

    >>> line = np.linspace(-1, 1, 5)
    >>> figure = saddle_point(line, line, line**2 - line[:, None] ** 2, at=0.0)
    >>> float(figure.data[0].z[2, 2])
    0.0
    """
    real, imaginary, height = map(np.asarray, (real, imaginary, height))
    row = np.abs(imaginary).argmin()
    above = height - np.interp(at, real, height[row])
    largest = min(np.abs(above[np.isfinite(above)]).max(), 1.0)
    figure = go.Figure()
    figure.add_heatmap(
        x=real,
        y=imaginary,
        z=np.clip(above, -largest, largest),
        zmin=-largest,
        zmax=largest,
        colorscale=signed(0.75),
        showscale=False,
        hovertemplate=f"{name} = %{{x:.2f}} + %{{y:.2f}} i<extra></extra>",
    )
    figure.add_contour(
        x=real,
        y=imaginary,
        z=np.clip(above, -largest, largest),
        contours={
            "coloring": "none",
            "start": -largest,
            "end": largest,
            "size": largest / 10,
        },
        line={"color": rgba(NEUTRAL, 0.7), "width": 1},
        showscale=False,
        showlegend=False,
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=[at, at],
        y=[imaginary.min(), imaginary.max()],
        name="path of integration",
        mode="lines",
        line={"color": rgba(NEUTRAL), "width": 3, "dash": "dash"},
    )
    figure.add_scatter(
        x=[at],
        y=[0],
        name="saddle point",
        mode="markers",
        marker={"size": 13, "color": rgba(NEUTRAL), "symbol": "diamond"},
    )
    figure.update_xaxes(title=f"real part of {name}", range=[real.min(), real.max()])
    figure.update_yaxes(title=f"imaginary part of {name}", range=[imaginary.min(), imaginary.max()])
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    figure.update_layout(height=380, legend=legend)
    return named(
        figure,
        f"Height of the exponent over the complex plane of {name}: a saddle at {at:.2f}, higher "
        f"to its left and right on the real axis, lower above and below it.",
    )


def error_against_width(
    widths: ArrayLike | Sequence,
    errors: Mapping[str, tuple[ArrayLike, ArrayLike]],
) -> go.Figure:
    """Errors `{name: (error [W], standard error [W])}` of an approximation against N, log–log.

    A grey line, at twice the last point of the first curve, falls as 1/N.

    >>> figure = error_against_width([10, 100], {"U": (np.array([0.1, 0.01]), np.zeros(2))})
    >>> [trace.name for trace in figure.data], figure.data[1].y[0].round(6).item()
    (['U', '1/N'], 0.2)
    """
    widths = np.asarray(widths, float)
    figure = go.Figure()
    looks = zip(("circle", "diamond", "square"), ("solid", "dash", "dot"), strict=True)
    for (name, (error, deviation)), (symbol, dash) in zip(errors.items(), looks, strict=False):
        figure.add_scatter(
            x=widths,
            y=np.asarray(error),
            error_y={"type": "data", "array": np.asarray(deviation), "width": 4},
            name=name,
            mode="lines+markers",
            line={"color": rgba(ACCENT), "width": 2, "dash": dash},
            marker={"size": 9, "symbol": symbol},
        )
    first = np.asarray(next(iter(errors.values()))[0])
    figure.add_scatter(
        x=widths,
        y=2 * first[-1] * widths[-1] / widths,
        name="1/N",
        mode="lines",
        line={"color": rgba(NEUTRAL), "width": 2},
    )
    figure.update_xaxes(title="width N", type="log", tickvals=widths, tickformat="d")
    figure.update_yaxes(title="error", type="log", dtick=1, exponentformat="power")
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    figure.update_layout(height=400, legend=legend)
    # a curve may begin later, or end earlier, than the others
    there = {name: np.flatnonzero(np.isfinite(np.asarray(e))) for name, (e, _) in errors.items()}
    spoken = "; ".join(
        f"{name}: {np.asarray(error)[there[name][0]]:.2g} at N = {widths[there[name][0]]:g}, "
        f"{np.asarray(error)[there[name][-1]]:.2g} at N = {widths[there[name][-1]]:g}"
        for name, (error, _) in errors.items()
    )
    return named(figure, f"Error against width on logarithmic axes. {spoken}.")
