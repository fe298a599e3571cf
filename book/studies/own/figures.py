"""Pictures of a network that is not the paper's: its paths, and what its head scores are worth."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike

from attnpaths.figures.style import ABOVE, ACCENT, NEUTRAL, OPPOSITE, named, rgba

Numbers = ArrayLike | Sequence
_LAYERS = ((ACCENT, "circle"), (OPPOSITE, "square"), (NEUTRAL, "diamond"))


def scores_against_drops(
    scores: Numbers, drops: Numbers, errors: Numbers, layers: Sequence[int]
) -> go.Figure:
    """The drop of each head against its score, for S networks: three arrays `[S, heads]`.

    `layers` says in which layer each head is. Scores are divided by the largest of their
    network; `errors` are standard errors of the drops.

    >>> figure = scores_against_drops([[2.0, 1.0]], [[0.1, 0.0]], [[0.01, 0.01]], [1, 1])
    >>> figure.data[0].x.tolist()
    [1.0, 0.5]
    """
    scores, drops, errors = (np.asarray(a, float) for a in (scores, drops, errors))
    relative = scores / scores.max(axis=1, keepdims=True)
    figure = go.Figure()
    for layer in sorted(set(layers)):
        of = np.asarray(layers) == layer
        rgb, symbol = _LAYERS[(layer - 1) % len(_LAYERS)]
        figure.add_scatter(
            x=relative[:, of].ravel().round(4),
            y=drops[:, of].ravel().round(4),
            error_y={"array": errors[:, of].ravel().round(4), "thickness": 1, "width": 2},
            name=f"heads of layer {layer}",
            mode="markers",
            marker={"color": rgba(rgb, 0.85), "size": 9, "symbol": symbol},
            hovertemplate="score %{x:.2f}, drop %{y:.3f}<extra></extra>",
        )
    figure.update_xaxes(title="score, relative to the largest of its network")
    figure.update_yaxes(title="drop in accuracy", zeroline=True)
    figure.update_layout(legend=ABOVE, height=420)
    order = np.argsort(relative.ravel())
    half = len(order) // 2
    low, high = drops.ravel()[order[:half]], drops.ravel()[order[half:]]
    return named(
        figure,
        f"Drop in accuracy against score for {drops.size} heads of {len(drops)} networks. "
        f"Scores from {relative.min():.2f} to 1, drops from {drops.min():.3f} to "
        f"{drops.max():.3f}. Mean drop {low.mean():.3f} for the lower half of the scores, "
        f"{high.mean():.3f} for the upper half.",
    )


def by_network(values: Mapping[str, Numbers], title: str, chance: float = 0.0) -> go.Figure:
    """Numbers `{name: [S]}` of S networks, one row each, with their mean and its standard error.

    A vertical line marks `chance`, where a row would lie if it meant nothing.

    >>> figure = by_network({"score": [0.2, 0.4, 0.6]}, "rank correlation")
    >>> figure.data[1].x.tolist()
    [0.4]
    """
    names = list(values)
    rows = [np.asarray(row, float) for row in values.values()]
    mean = np.array([row.mean() for row in rows])
    error = np.array([row.std(ddof=1) / np.sqrt(len(row)) for row in rows])
    figure = go.Figure()
    # dots of a row stand apart, in the order of their numbers, so that none hides another
    ranks = [np.argsort(np.argsort(row, kind="stable")) for row in rows]
    apart = [np.linspace(-0.28, 0.28, len(rank))[rank] for rank in ranks]
    places = -np.arange(len(names))
    figure.add_scatter(
        x=np.concatenate(rows).round(4),
        y=np.concatenate([place + off for place, off in zip(places, apart, strict=True)]).round(3),
        name="one network",
        mode="markers",
        marker={"color": rgba(NEUTRAL, 0.55), "size": 8},
    )
    figure.add_scatter(
        x=mean.round(4),
        y=places,
        error_x={"array": error.round(4), "thickness": 2},
        name="mean and standard error",
        mode="markers",
        marker={"color": rgba(ACCENT), "size": 11, "symbol": "diamond"},
    )
    figure.add_vline(chance, line={"color": rgba(NEUTRAL), "width": 1.5, "dash": "dash"})
    figure.update_xaxes(title=title)
    figure.update_yaxes(
        tickvals=places, ticktext=names, automargin=True, showgrid=False, zeroline=False
    )
    figure.update_layout(legend=ABOVE, height=150 + 55 * len(names))
    spoken = ", ".join(
        f"{name} {m:.2f} ± {e:.2f}" for name, m, e in zip(names, mean, error, strict=True)
    )
    return named(
        figure,
        f"{title.capitalize()} over {len(rows[0])} networks, mean and standard error: {spoken}. "
        f"Chance is {chance:g}.",
    )
