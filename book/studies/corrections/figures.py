"""Pictures of how exact things are: distances that fall with the width, ranks that are uniform."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike
from plotly.subplots import make_subplots
from scipy.stats import binom

from attnpaths.figures.style import ABOVE, ACCENT, NEUTRAL, OPPOSITE, named, rgba

Numbers = ArrayLike | Sequence

_LOOKS = ((rgba(ACCENT), "square"), (rgba(OPPOSITE), "circle"))


def falling(
    widths: Numbers,
    distances: Mapping[str, Numbers],
    slopes: Mapping[str, tuple[float, float]],
    start: int = 0,
) -> go.Figure:
    """Distances `{name: [W, S]}` of S tasks against N, on logarithmic axes, with fitted powers.

    Points are geometric means over tasks, with their standard error; `slopes` are (power, error)
    of fits from width `start` on, drawn as lines through the points.

    >>> figure = falling([8, 16], {"U": [[0.2, 0.2], [0.1, 0.1]]}, {"U": (-1.0, 0.1)})
    >>> figure.data[1].name
    'U: N^(−1.00 ± 0.10)'
    """
    widths = np.asarray(widths, float)
    figure = go.Figure()
    spoken = []
    for (name, values), (colour, symbol) in zip(distances.items(), _LOOKS, strict=False):
        logs = np.log(np.asarray(values, float))
        centre, error = logs.mean(axis=1), logs.std(axis=1, ddof=1) / np.sqrt(logs.shape[1])
        points = np.exp(centre)
        figure.add_scatter(
            x=widths,
            y=_digits(points),
            error_y={
                "array": _digits(points * np.expm1(error)),
                "arrayminus": _digits(-points * np.expm1(-error)),
                "thickness": 2,
            },
            name=name,
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 9},
        )
        power, uncertain = slopes[name]
        used = widths >= start
        middle = centre[used].mean() + power * (np.log(widths) - np.log(widths[used]).mean())
        label = f"{name}: N^(−{-power:.2f} ± {uncertain:.2f})"
        figure.add_scatter(
            x=widths[used],
            y=_digits(np.exp(middle[used])),
            name=label,
            mode="lines",
            line={"color": colour, "width": 2, "dash": "dash"},
        )
        spoken.append(f"{name} falls from {points[0]:.3g} to {points[-1]:.3g}, {label}")
    figure.update_xaxes(title="width N", type="log", tickvals=widths)
    figure.update_yaxes(
        title="distance to the saddle point", type="log", dtick=1, exponentformat="power"
    )
    figure.update_layout(legend=ABOVE, height=450)
    return named(
        figure,
        f"Relative distance of the exact posterior mean to the saddle point, from N = "
        f"{widths[0]:g} to {widths[-1]:g}: {'; '.join(spoken)}.",
    )


def trust(widths: Numbers, errors: Mapping[str, tuple[Numbers, Numbers]], rule: float) -> go.Figure:
    """Relative errors of the theory against N, `{name: (error [W], its error [W])}`, and a rule.

    >>> figure = trust([1, 10], {"U": ([0.5, 0.1], [0.1, 0.0])}, 0.2)
    >>> figure.data[0].y.tolist(), figure.layout.shapes[0].y0
    ([0.5, 0.1], 0.2)
    """
    widths = np.asarray(widths, float)
    figure = go.Figure()
    spoken = []
    for (name, (values, spread)), (colour, symbol) in zip(errors.items(), _LOOKS, strict=False):
        values = np.asarray(values, float)
        figure.add_scatter(
            x=widths,
            y=_digits(values),
            error_y={"array": _digits(spread), "thickness": 2},
            name=name,
            mode="lines+markers",
            line={"color": colour, "width": 2},
            marker={"symbol": symbol, "size": 9},
        )
        said = ", ".join(f"{v:.1%} at {n:g}" for n, v in zip(widths, values, strict=True))
        spoken.append(f"{name} {said}")
    figure.add_hline(rule, line={"color": rgba(NEUTRAL), "width": 2, "dash": "dot"})
    figure.update_xaxes(title="width N", type="log", tickvals=widths)
    figure.update_yaxes(
        title="relative error of the theory", type="log", dtick=1, exponentformat="power"
    )
    figure.update_layout(legend=ABOVE, height=430)
    return named(
        figure, f"Error of the theory by width: {'; '.join(spoken)}. The rule is {rule:.0%}."
    )


def _digits(values) -> np.ndarray:
    """Four digits are enough to draw."""
    return np.array([float(f"{value:.4g}") for value in np.ravel(values)])


def calibration(counts: Mapping[str, Numbers]) -> go.Figure:
    """Ranks of true values among posterior draws, `{statistic: counts [bins]}`, two in a row.

    The band is where counts of a uniform distribution lie 19 times out of 20.

    >>> calibration({"size": [9, 11], "volume": [10, 10]}).data[0].y.tolist()
    [9, 11]
    """
    columns = min(2, len(counts))
    rows = -(-len(counts) // columns)
    figure = make_subplots(
        rows, columns, subplot_titles=list(counts), shared_yaxes="all", vertical_spacing=0.22
    )
    spoken = []
    for i, (name, heights) in enumerate(counts.items()):
        where = {"row": i // columns + 1, "col": i % columns + 1}
        heights = np.asarray(heights)
        low, high = binom.interval(0.95, int(heights.sum()), 1 / len(heights))
        figure.add_bar(
            **where,
            x=(np.arange(len(heights)) + 0.5) / len(heights),
            y=heights,
            marker={"color": rgba(ACCENT), "line": {"width": 0}},
            hovertemplate="%{y} data sets<extra></extra>",
        )
        figure.add_hrect(low, high, **where, fillcolor=rgba(NEUTRAL, 0.35), line_width=0)
        outside = int(np.sum((heights < low) | (heights > high)))
        spoken.append(f"{name}: {heights.min()} to {heights.max()}, {outside} bins outside")
    figure.update_xaxes(range=[0, 1], nticks=5)
    figure.update_xaxes(row=rows, title="rank of the truth")
    figure.update_yaxes(col=1, title="data sets")
    figure.update_layout(height=90 + 220 * rows, showlegend=False, bargap=0.05, margin={"t": 40})
    return named(
        figure,
        f"How often the truth has each rank among posterior draws, in {len(heights)} bins; a "
        f"uniform count lies between {low:.0f} and {high:.0f}. {'; '.join(spoken)}.",
    )
