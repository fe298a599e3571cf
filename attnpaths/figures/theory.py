"""Pictures of the theory: the posterior, the order parameter, the action, the predictor."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike
from plotly.subplots import make_subplots

from attnpaths.figures.style import ABOVE, ACCENT, BAR, NEUTRAL, OPPOSITE, named, rgba, signed

Numbers = ArrayLike | Sequence


def accuracy_against_width(
    widths: ArrayLike, accuracy: ArrayLike, limits: Mapping[str, float]
) -> go.Figure:
    """Test accuracy `[W]` against N, with the accuracy of each GP in `limits` as a level line.

    >>> figure = accuracy_against_width(np.array([10, 100]), np.ones(2), {"GP limit": 0.7})
    >>> [trace.name for trace in figure.data]
    ['theory', 'GP limit']
    """
    widths, accuracy = np.asarray(widths), np.asarray(accuracy)
    figure = go.Figure()
    figure.add_scatter(
        x=widths,
        y=accuracy,
        name="theory",
        mode="lines+markers",
        line={"color": rgba(ACCENT), "width": 3},
        marker={"size": 8},
    )
    for (name, level), dash in zip(limits.items(), ("solid", "dash", "dot"), strict=False):
        figure.add_scatter(
            x=[widths.min(), widths.max()],
            y=[level, level],
            name=name,
            mode="lines",
            line={"color": rgba(OPPOSITE), "width": 2, "dash": dash},
        )
    figure.update_xaxes(title="width N", type="log", dtick=1)
    figure.update_yaxes(title="test accuracy")
    figure.update_layout(legend=ABOVE)
    levels = ", ".join(f"{name} {level:.3f}" for name, level in limits.items())
    return named(
        figure,
        f"Test accuracy against width: {accuracy[0]:.3f} at N = {widths[0]:g}, "
        f"{accuracy[-1]:.3f} at N = {widths[-1]:g}. Level lines: {levels}.",
    )


def order_parameters(matrices: Mapping[str, ArrayLike], names: Sequence[str]) -> go.Figure:
    """Order parameters U `[Π, Π]` side by side, every entry written out, one title for each.

    The depth of the colour is relative to the largest entry of each matrix.

    >>> figure = order_parameters({"GP limit": np.eye(2)}, ["good", "denoising"])
    >>> figure.data[0].z.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    short = [name.replace(" (", "<br>(") for name in names]
    figure = make_subplots(
        1, len(matrices), shared_yaxes=True, subplot_titles=list(matrices), horizontal_spacing=0.05
    )
    # pale enough for the page's ink to be read on it
    scale = signed(0.75)
    for column, U in enumerate(matrices.values(), start=1):
        U = np.asarray(U)
        largest = np.abs(U).max()
        figure.add_heatmap(
            row=1,
            col=column,
            x=short,
            y=short,
            z=U,
            zmin=-largest,
            zmax=largest,
            colorscale=scale,
            showscale=False,
            xgap=1,
            ygap=1,
            hovertemplate="U = %{z:.4f}<extra></extra>",
        )
        for (i, j), value in np.ndenumerate(U):
            # -0.0 is written as 0.0
            text = f"{round(float(value), 1) + 0.0:.1f}".replace("-", "−")
            figure.add_annotation(
                row=1, col=column, x=short[j], y=short[i], text=text, showarrow=False
            )
    figure.update_xaxes(tickangle=-90, showgrid=False)
    figure.update_yaxes(autorange="reversed", showgrid=False, automargin=True)
    figure.update_layout(height=380, margin={"t": 40, "b": 100})
    spoken = "; ".join(
        f"{title}: {', '.join(f'{n} {u:.2f}' for n, u in zip(names, np.diag(U), strict=True))}"
        for title, U in matrices.items()
    )
    return named(figure, f"Order parameters as matrices. Diagonal entries, {spoken}.")


def weight_density(grid: Numbers, density: Numbers, average: float) -> go.Figure:
    """The posterior of a network f = a·v of two weights, `density [v, a]` on a square grid.

    The colour is relative to the largest density; `average` is the posterior mean of f.

    >>> weight_density(np.linspace(-1, 1, 3), np.eye(3), 0.5).layout.meta["alt"]
    'Posterior density of two weights. Its peak is at a = −1.0, v = −1.0; the average f is 0.50.'
    """
    grid, density = np.asarray(grid), np.asarray(density)
    v, a = np.unravel_index(np.argmax(density), density.shape)
    figure = go.Figure()
    figure.add_heatmap(
        x=grid,
        y=grid,
        z=np.round(density / density.max(), 3),
        zmin=0,
        zmax=1,
        colorscale=[[0, rgba(ACCENT, 0.0)], [1, rgba(ACCENT)]],
        colorbar=BAR | {"tickvals": [0, 1], "ticktext": ["0", "peak"]},
        hovertemplate="a = %{x:.1f}, v = %{y:.1f}: %{z:.2f} of the peak<extra></extra>",
    )
    frame = {"showgrid": False, "zeroline": True, "constrain": "domain"}
    figure.update_xaxes(title="weight a", **frame)
    figure.update_yaxes(title="weight v", scaleanchor="x", **frame)
    figure.update_layout(height=380)
    peak = f"a = {grid[a]:.1f}, v = {grid[v]:.1f}".replace("-", "−")
    return named(
        figure,
        f"Posterior density of two weights. Its peak is at {peak}; the average f is {average:.2f}.",
    )


def trade_off(widths: Numbers, entropy: Numbers, energy: Numbers, limit: float) -> go.Figure:
    """What the minimum of the action pays in entropy and gets in energy, against N.

    `entropy [W]` is −ℒ above its value in the GP limit; `energy [W]` is ℰ, `limit` its GP value.

    >>> figure = trade_off([10, 100], [2.0, 0.1], [0.0, 1.0], 1.5)
    >>> [trace.name for trace in figure.data]
    ['entropy cost', 'energy', 'GP limit', 'GP limit']
    """
    widths = np.asarray(widths)
    curves = {"entropy cost": np.asarray(entropy), "energy": np.asarray(energy)}
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.08)
    for row, (name, values) in enumerate(curves.items(), start=1):
        figure.add_scatter(
            row=row,
            col=1,
            x=widths,
            y=values,
            name=name,
            mode="lines+markers",
            line={"color": rgba(ACCENT), "width": 3},
        )
    for row, level in ((1, 0.0), (2, limit)):
        figure.add_scatter(
            row=row,
            col=1,
            x=[widths.min(), widths.max()],
            y=[level, level],
            name="GP limit",
            mode="lines",
            line={"color": rgba(OPPOSITE), "width": 2, "dash": "dash"},
        )
    figure.update_xaxes(type="log", dtick=1)
    figure.update_xaxes(row=2, title="width N")
    figure.update_yaxes(row=1, title="entropy cost")
    figure.update_yaxes(row=2, title="energy ℰ")
    figure.update_layout(height=400, showlegend=False)
    ends = "; ".join(
        f"{name} {values[0]:.2f} at N = {widths[0]:g} and {values[-1]:.2f} at N = {widths[-1]:g}"
        for name, values in curves.items()
    )
    spoken = f"The minimum of the action: {ends}. GP limit: energy {limit:.2f}."
    return named(figure, spoken.replace("-", "−"))


def action_along_line(
    steps: Numbers, entropy: Numbers, energy: Numbers, span: Sequence
) -> go.Figure:
    """Entropy, energy and their sum along a line from the GP limit, whose point is `steps[0]`.

    All are `[K]`, differences to the GP limit; `span` is the range of the vertical axis.

    >>> figure = action_along_line([0, 1, 2], [0, 1, 4], [0, -3, -4], (-5, 5))
    >>> figure.data[-1].x, figure.data[-1].y
    ((1,), (-2,))
    """
    steps, entropy, energy = (np.asarray(values) for values in (steps, entropy, energy))
    total = entropy + energy
    lowest = int(np.argmin(total))
    figure = go.Figure()
    for name, values, line in (
        ("entropy", entropy, {"color": rgba(NEUTRAL), "width": 2, "dash": "dash"}),
        ("energy", energy, {"color": rgba(NEUTRAL), "width": 2, "dash": "dot"}),
        ("sum", total, {"color": rgba(ACCENT), "width": 3}),
    ):
        figure.add_scatter(x=steps, y=values, name=name, mode="lines", line=line)
    for name, at, colour in (("GP limit", 0, OPPOSITE), ("minimum", lowest, ACCENT)):
        figure.add_scatter(
            x=[steps[at]],
            y=[total[at]],
            name=name,
            mode="markers",
            marker={"color": rgba(colour), "size": 13},
        )
    figure.update_xaxes(title="0 is the GP limit, 1 the solution")
    figure.update_yaxes(title="N/2 times the action", range=span)
    figure.update_layout(legend=ABOVE, height=380)
    spoken = (
        f"The action along a line from the GP limit: its minimum is at {steps[lowest]:.2f}, "
        f"where entropy is {entropy[lowest]:.1f} and energy {energy[lowest]:.1f}."
    )
    return named(figure, spoken.replace("-", "−"))


def accuracies_against_width(widths: Numbers, curves: Mapping[str, Numbers]) -> go.Figure:
    """Test accuracy `{name: [W]}` against N for several uses of one order parameter.

    The first is the theory itself, the last the GP; those between have lost a part of U.

    >>> figure = accuracies_against_width([10, 100], {"U": [0.9, 0.8], "identity": [0.7, 0.7]})
    >>> [trace.name for trace in figure.data]
    ['U', 'identity']
    """
    widths = np.asarray(widths)
    figure = go.Figure()
    for i, (name, accuracy) in enumerate(curves.items()):
        first, last = i == 0, i == len(curves) - 1
        colour = ACCENT if first else OPPOSITE if last else NEUTRAL
        figure.add_scatter(
            x=widths,
            y=np.asarray(accuracy),
            name=name,
            mode="lines" if last else "lines+markers",
            line={
                "color": rgba(colour),
                "width": 3 if first else 2,
                "dash": "solid" if first or last else ("dash", "dot")[i % 2 - 1],
            },
            marker={"size": 8, "symbol": ("circle", "square", "diamond")[i % 3]},
        )
    figure.update_xaxes(title="width N", type="log", dtick=1)
    figure.update_yaxes(title="test accuracy")
    figure.update_layout(legend=ABOVE, height=380)
    spoken = "; ".join(
        f"{name} {np.asarray(curve)[0]:.3f} and {np.asarray(curve)[-1]:.3f}"
        for name, curve in curves.items()
    )
    return named(
        figure,
        f"Test accuracy at N = {widths[0]:g} and at N = {widths[-1]:g}: {spoken}.",
    )


def alignments(overlaps: Mapping[str, Numbers]) -> go.Figure:
    """Overlaps `{name: [K]}` of K kernel components with the labels, as bars; the last is the GP.

    >>> figure = alignments({"N = 10": [0.1, 0.8], "GP limit": [0.2, 0.1]})
    >>> figure.data[0].x.tolist(), figure.data[0].y.tolist()
    ([1, 2], [0.1, 0.8])
    """
    figure = go.Figure()
    spoken = []
    for i, (name, values) in enumerate(overlaps.items()):
        values = np.asarray(values)
        colour = OPPOSITE if i == len(overlaps) - 1 else ACCENT
        figure.add_bar(
            x=np.arange(1, len(values) + 1),
            y=values,
            name=name,
            marker={"color": rgba(colour), "line": {"width": 0}},
            hovertemplate="component %{x}: %{y:.3f}<extra></extra>",
        )
        spoken.append(f"{name}, {values.max():.2f} at component {int(values.argmax()) + 1}")
    figure.update_xaxes(title="component of the kernel, largest first", showgrid=False)
    figure.update_yaxes(title="overlap with the labels")
    figure.update_layout(legend=ABOVE, bargap=0.25, bargroupgap=0)
    return named(figure, f"Largest overlap with the labels: {'; '.join(spoken)}.")


def predictions(predictors: Mapping[str, tuple[Numbers, Numbers]], y: Numbers) -> go.Figure:
    """Predictor mean ± standard deviation of some examples, one panel each, over labels `y [P]`.

    `predictors` maps a name to mean and variance `[P]`; the last is the GP. Within each label the
    examples are sorted by the first predictor's mean.

    >>> mean, variance = np.array([0.5, 1.0, -0.8]), np.full(3, 0.04)
    >>> figure = predictions({"N = 10": (mean, variance)}, np.array([1, 1, -1]))
    >>> figure.data[1].y.tolist(), figure.data[1].error_y.array.tolist()
    ([1.0, 0.5, -0.8], [0.2, 0.2, 0.2])
    """
    y = np.asarray(y)
    order = np.lexsort((-np.asarray(next(iter(predictors.values()))[0]), -y))
    figure = make_subplots(
        len(predictors), 1, shared_xaxes=True, subplot_titles=list(predictors), vertical_spacing=0.1
    )
    spoken = []
    for row, (name, (mean, variance)) in enumerate(predictors.items(), start=1):
        mean, spread = np.asarray(mean)[order], np.sqrt(np.asarray(variance)[order])
        last = row == len(predictors) and row > 1
        figure.add_scatter(
            row=row,
            col=1,
            x=np.arange(len(y)),
            y=y[order],
            name="label",
            mode="lines",
            line={"color": rgba(NEUTRAL), "width": 2, "shape": "hvh"},
        )
        figure.add_scatter(
            row=row,
            col=1,
            x=np.arange(len(y)),
            y=mean,
            name=name,
            mode="markers",
            marker={"size": 5, "color": rgba(OPPOSITE if last else ACCENT)},
            error_y={"array": spread, "thickness": 1.5, "width": 0},
        )
        inside = np.mean(np.abs(mean - y[order]) < spread)
        spoken.append(f"{name}: the label is within one standard deviation for {inside:.0%}")
    figure.update_xaxes(showgrid=False, zeroline=False, showticklabels=False)
    figure.update_xaxes(row=len(predictors), title="test chains, class +1 then class −1")
    figure.update_yaxes(title="f", range=[-2.4, 2.4])
    figure.update_layout(height=90 + 190 * len(predictors), showlegend=False, margin={"t": 30})
    return named(figure, f"Predictor and spread on {len(y)} test chains. {'; '.join(spoken)}.")
