"""Pictures of what was left open: the factor with a skip, depth, shares, outputs, errors."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike
from plotly.subplots import make_subplots

from attnpaths.figures.style import ABOVE, ACCENT, NEUTRAL, OPPOSITE, named, rgba, signed

Numbers = ArrayLike | Sequence
_KINDS = ("zero", "free", "diagonal", "fixed to 1")


def factor(panels: Mapping[str, tuple[int, int]]) -> go.Figure:
    """Which entries of a factor B `[rows, rows]` are free: `{title: (rows, of which fixed)}`.

    >>> figure = factor({"a skip": (3, 1)})
    >>> figure.data[0].z.tolist()
    [[3.0, 0.0, 0.0], [1.0, 2.0, 0.0], [1.0, 1.0, 2.0]]
    """
    figure = make_subplots(1, len(panels), subplot_titles=list(panels), horizontal_spacing=0.06)
    steps = [
        rgba(NEUTRAL, 0.06),
        rgba(ACCENT, 0.35),
        rgba(ACCENT, 0.85),
        rgba(OPPOSITE, 0.75),
    ]
    scale = [[(i + end) / 4, colour] for i, colour in enumerate(steps) for end in (0, 1)]
    spoken = []
    for column, (title, (rows, fixed)) in enumerate(panels.items(), start=1):
        z = np.tril(np.ones((rows, rows)))
        z[np.diag_indices(rows)] = 2
        z[:fixed] = 3 * np.eye(rows)[:fixed]
        figure.add_heatmap(
            row=1,
            col=column,
            z=z,
            zmin=-0.5,
            zmax=3.5,
            colorscale=scale,
            showscale=False,
            xgap=2,
            ygap=2,
            customdata=[[_KINDS[int(kind)] for kind in row] for row in z],
            hovertemplate="row %{y}, column %{x}: %{customdata}<extra></extra>",
        )
        free = int(np.isin(z, (1, 2)).sum())
        spoken.append(f"{title}: {rows} rows, the first {fixed} fixed, {free} free entries")
    for name, colour in zip(_KINDS[1:], steps[1:], strict=True):
        marker = {"color": colour, "symbol": "square", "size": 12}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=name)
    figure.update_xaxes(showticklabels=False, showgrid=False, zeroline=False)
    figure.update_yaxes(showticklabels=False, showgrid=False, zeroline=False, autorange="reversed")
    legend = {"orientation": "h", "x": 0, "y": -0.04, "yanchor": "top"}
    figure.update_layout(height=300, margin={"t": 40, "b": 40, "l": 10, "r": 10}, legend=legend)
    return named(figure, f"Entries of the factor B. {'; '.join(spoken)}.")


def against_depth(layers: Numbers, curves: Mapping[str, Numbers]) -> go.Figure:
    """Accuracies `[L, seeds]` against depth: the mean as a line, every task as a dot.

    Names that begin with "GP" are dashed; those that end with "skips" are of one colour.

    >>> figure = against_depth([2, 3], {"skips": [[0.8, 0.9], [0.7, 0.7]]})
    >>> figure.data[0].y.round(2).tolist()
    [0.85, 0.7]
    """
    layers = np.asarray(layers, float)
    figure, spoken = go.Figure(), []
    for name, values in curves.items():
        values = np.asarray(values, float)
        colour = OPPOSITE if "no skip" in name else ACCENT
        dash = "dot" if name.startswith("GP") else "solid"
        mean = values.mean(axis=1)
        figure.add_scatter(
            x=layers,
            y=mean,
            name=name,
            mode="lines+markers",
            line={"color": rgba(colour), "width": 2, "dash": dash},
            marker={"size": 9, "symbol": "circle-open" if dash == "dot" else "circle"},
        )
        figure.add_scatter(
            x=np.repeat(layers, values.shape[1]),
            y=values.ravel(),
            mode="markers",
            marker={"size": 4, "color": rgba(colour, 0.6)},
            showlegend=False,
            hoverinfo="skip",
        )
        said = ", ".join(f"{m:.3f} at L = {n:g}" for n, m in zip(layers, mean, strict=True))
        spoken.append(f"{name} {said}")
    figure.update_xaxes(title="layers L", dtick=1)
    figure.update_yaxes(title="test accuracy")
    figure.update_layout(legend=ABOVE, height=400)
    return named(figure, f"Test accuracy against depth: {'; '.join(spoken)}.")


def shares(prior: Numbers, learned: Numbers) -> go.Figure:
    """Shares `[heads + 1]` of U's trace by the number of heads passed, before learning and after.

    >>> shares([0.25, 0.5, 0.25], [0.1, 0.2, 0.7]).data[1].y.tolist()
    [0.1, 0.2, 0.7]
    """
    figure = go.Figure()
    heads, spoken = np.arange(len(np.asarray(prior))), []
    for name, values, colour in (("GP limit", prior, NEUTRAL), ("theory", learned, ACCENT)):
        values = np.asarray(values, float)
        figure.add_bar(x=heads, y=values, name=name, marker={"color": rgba(colour)})
        spoken.append(f"{name} {', '.join(f'{v:.0%}' for v in values)}")
    figure.update_xaxes(title="heads that a path goes through", dtick=1)
    figure.update_yaxes(title="share of the trace of U", tickformat=".0%", range=[0, 0.7])
    figure.update_layout(legend=ABOVE, height=360, bargap=0.3)
    return named(
        figure, f"Share of the trace of U by heads passed, 0 to {heads[-1]}: {'; '.join(spoken)}."
    )


def outputs(U: ArrayLike, paths: Sequence[str], classes: Sequence[str]) -> go.Figure:
    """U `[ΠC, ΠC]` as colours, a block for every pair of paths, in it a row for every output.

    >>> figure = outputs(np.eye(4), ["good", "bad"], ["A", "B"])
    >>> figure.data[0].z.shape, figure.layout.xaxis.ticktext
    ((4, 4), ('good', 'bad'))
    """
    U, C = np.asarray(U), len(classes)
    largest = np.abs(U).max()
    names = [f"{path} → {kind}" for path in paths for kind in classes]
    figure = go.Figure()
    figure.add_heatmap(
        z=U,
        zmin=-largest,
        zmax=largest,
        colorscale=signed(0.95),
        colorbar={"thickness": 12, "title": "U"},
        xgap=1,
        ygap=1,
        customdata=[[f"{a}, {b}" for b in names] for a in names],
        hovertemplate="%{customdata}: %{z:.2f}<extra></extra>",
    )
    middle = C * np.arange(len(paths)) + (C - 1) / 2
    short = [path.replace(" (", "<br>(") for path in paths]
    for axis in (figure.update_xaxes, figure.update_yaxes):
        axis(tickvals=middle, ticktext=short, showgrid=False, zeroline=False)
    for edge in C * np.arange(1, len(paths)) - 0.5:
        line = {"color": rgba(NEUTRAL), "width": 2}
        figure.add_hline(edge, line=line)
        figure.add_vline(edge, line=line)
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_layout(height=440, margin={"t": 20})
    strength = np.diag(U).reshape(-1, C)
    spoken = "; ".join(
        f"{path}: {', '.join(f'{k} {u:.1f}' for k, u in zip(classes, row, strict=True))}"
        for path, row in zip(paths, strength, strict=True)
    )
    return named(figure, f"Order parameter of {len(paths)} paths and {C} outputs. {spoken}.")


def errors(widths: Numbers, curves: Mapping[str, tuple[Numbers, Numbers]], rule: float):
    """Relative errors `{name: (error [W], its error [W])}` against width, and the rule.

    >>> figure = errors([10, 50], {"ReLU": ([0.2, 0.1], [0.01, 0.01])}, 0.1)
    >>> figure.data[0].error_y.array.tolist()
    [0.01, 0.01]
    """
    widths = np.asarray(widths, float)
    looks = (
        (ACCENT, "circle", "solid"),
        (ACCENT, "circle-open", "dash"),
        (OPPOSITE, "square", "solid"),
        (OPPOSITE, "square-open", "dash"),
        (NEUTRAL, "diamond", "solid"),
        (NEUTRAL, "diamond-open", "dash"),
    )
    figure, spoken = go.Figure(), []
    for (name, (found, spread)), (colour, symbol, dash) in zip(curves.items(), looks, strict=False):
        found = np.asarray(found, float)
        figure.add_scatter(
            x=widths,
            y=found,
            error_y={"array": np.asarray(spread, float), "thickness": 2},
            name=name,
            mode="lines+markers",
            line={"color": rgba(colour), "width": 2, "dash": dash},
            marker={"symbol": symbol, "size": 9},
        )
        said = ", ".join(f"{e:.1%} at {n:g}" for n, e in zip(widths, found, strict=True))
        spoken.append(f"{name} {said}")
    figure.add_hline(rule, line={"color": rgba(NEUTRAL), "width": 2, "dash": "dot"})
    figure.update_xaxes(title="width N", type="log", tickvals=widths, tickformat="d")
    figure.update_yaxes(title="relative error", rangemode="tozero", tickformat=".0%")
    figure.update_layout(height=430, legend=ABOVE)
    return named(figure, f"Relative error against width: {'; '.join(spoken)}. Rule {rule:.0%}.")
