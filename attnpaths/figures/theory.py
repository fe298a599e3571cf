"""Pictures of the theory: accuracy against width, and the order parameter."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike
from plotly.subplots import make_subplots

from attnpaths.figures.style import ACCENT, OPPOSITE, named, rgba, signed


def accuracy_against_width(
    widths: ArrayLike, accuracy: ArrayLike, limits: Mapping[str, float]
) -> go.Figure:
    """Test accuracy against N, with the accuracy of each GP in `limits` as a level line.

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
    figure.update_layout(legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"})
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
