"""Pictures of a network that is not the paper's: its heads, and the pairs of its paths."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike

from attnpaths.figures.style import named, signed

Numbers = ArrayLike | Sequence


def path_matrix(U: Numbers, names: Sequence[str]) -> go.Figure:
    """An order parameter `[Π, Π]` of many paths, as colours around zero.

    >>> path_matrix([[2.0, -1.0], [-1.0, 1.0]], ["1,1", "1,2"]).data[0].zmax
    2.0
    """
    U, names = np.asarray(U), list(names)
    largest = float(np.abs(U).max())
    figure = go.Figure(
        go.Heatmap(
            z=U.round(4),
            x=names,
            y=names,
            zmin=-largest,
            zmax=largest,
            colorscale=signed(1.0),
            colorbar={"thickness": 12, "outlinewidth": 0},
            hovertemplate="paths %{y} and %{x}: %{z:.2f}<extra></extra>",
        )
    )
    figure.update_xaxes(type="category", showgrid=False, title="path")
    figure.update_yaxes(type="category", showgrid=False, title="path", autorange="reversed")
    figure.update_layout(height=430)
    strength = np.diag(U)
    first, last = int(strength.argmax()), int(strength.argmin())
    off = np.where(np.eye(len(U), dtype=bool), 0, np.abs(U))
    i, j = np.unravel_index(off.argmax(), off.shape)
    return named(
        figure,
        f"Order parameter of {len(U)} paths. Strongest path {names[first]} with "
        f"{strength[first]:.2f}, weakest {names[last]} with {strength[last]:.2f}; the largest "
        f"entry off the diagonal is {U[i, j]:.2f}, of {names[i]} and {names[j]}.",
    )


def head_map(scores: Mapping[tuple[int, int], float]) -> go.Figure:
    """The scores of all heads, `{(layer, head): score}`, as a map of layers and heads `[L, H]`.

    Scores are relative to the largest.

    >>> head_map({(1, 1): 2.0, (1, 2): 1.0}).data[0].z.tolist()
    [[1.0, 0.5]]
    """
    layers = sorted({layer for layer, _ in scores})
    most = max(h for _, h in scores)
    largest = max(scores.values()) or 1.0
    z = np.full((len(layers), most), np.nan)
    for (layer, h), score in scores.items():
        z[layers.index(layer), h - 1] = round(score / largest, 4)
    figure = go.Figure(
        go.Heatmap(
            z=z,
            x=[str(h + 1) for h in range(most)],
            y=[str(layer) for layer in layers],
            zmin=-1,
            zmax=1,
            colorscale=signed(1.0),
            showscale=False,
            xgap=1,
            ygap=1,
            hovertemplate="layer %{y}, head %{x}: %{z:.3f}<extra></extra>",
        )
    )
    figure.update_xaxes(type="category", showgrid=False, title="head")
    figure.update_yaxes(type="category", showgrid=False, title="layer", autorange="reversed")
    figure.update_layout(height=160 + 40 * len(layers))
    order = sorted(scores, key=lambda head: scores[head])
    low, high = (f"{layer}.{h}" for layer, h in (order[0], order[-1]))
    return named(
        figure,
        f"Scores of {len(scores)} heads of {len(layers)} layers. Largest: head {high}; lowest: "
        f"head {low}, with {scores[order[0]] / largest:.2f} of it.",
    )
