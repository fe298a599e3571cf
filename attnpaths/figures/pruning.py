"""Pictures of pruning: what heads are worth, and what is left without them."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike
from plotly.subplots import make_subplots

from attnpaths.figures.style import ABOVE, ACCENT, NEUTRAL, OPPOSITE, named, rgba

Numbers = ArrayLike | Sequence


def scores_and_drops(
    names: Sequence[str], scores: Numbers, drops: Numbers, errors: Numbers
) -> go.Figure:
    """The score of each head (bars), above the accuracy that its pruning costs (dots).

    All are `[heads]`. Scores are relative to the largest; `errors` are standard errors of the
    drops.

    >>> figure = scores_and_drops(["1.1", "1.2"], [2.0, 1.0], [0.2, 0.0], [0.01, 0.01])
    >>> figure.data[0].y.tolist()
    [1.0, 0.5]
    """
    scores, drops = np.asarray(scores), np.asarray(drops)
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.1)
    figure.add_bar(
        row=1,
        col=1,
        x=list(names),
        y=(scores / scores.max()).round(4),
        name="score",
        marker={"color": rgba(ACCENT), "line": {"width": 0}},
        hovertemplate="head %{x}: %{y:.3f}<extra></extra>",
    )
    figure.add_scatter(
        row=2,
        col=1,
        x=list(names),
        y=drops.round(4),
        error_y={"array": np.asarray(errors).round(4), "thickness": 1.5},
        name="drop",
        mode="markers",
        marker={"color": rgba(OPPOSITE), "size": 10, "symbol": "diamond"},
        hovertemplate="head %{x}: %{y:.3f}<extra></extra>",
    )
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_xaxes(row=2, title="head, as layer.head")
    figure.update_yaxes(row=1, title="score", range=[0, 1.05])
    figure.update_yaxes(row=2, title="drop in accuracy", rangemode="tozero")
    figure.update_layout(height=460, showlegend=False)
    order = np.argsort(scores)
    spoken = ", ".join(f"{names[i]} (score {scores[i] / scores.max():.2f})" for i in order[:2])
    return named(
        figure,
        f"Scores of heads and what pruning each costs. Lowest scores: {spoken}; "
        f"their drops {drops[order[0]]:.3f} and {drops[order[1]]:.3f}; the largest drop "
        f"{drops.max():.3f}, of head {names[int(drops.argmax())]}.",
    )


def pruned_heads(
    order: Sequence[tuple[int, int]],
    head_counts: Sequence[int],
    curves: Mapping[str, Numbers],
    count: int,
    sizes: Mapping[str, Sequence[int]] | None = None,
) -> go.Figure:
    """The network with the first `count` heads of an `order` gone, and its accuracies.

    `order` lists K heads as (layer, head) from 1. `curves` maps a name to the accuracies `[K + 1]`
    after 0, 1, 2, … pruned heads; a larger dot marks `count`. `sizes` maps what a network costs to
    its amount, likewise `[K + 1]`; the share that is saved is written above.

    >>> figure = pruned_heads([(1, 2)], (2, 1), {"letters": [0.9, 0.8]}, 1, {"parameters": [9, 6]})
    >>> figure.data[0].marker.symbol
    ('square', 'x', 'square')
    >>> figure.layout.title.text
    'saved: parameters 33%'
    """
    gone = set(order[:count])
    heads = [(layer, h) for layer, n in enumerate(head_counts, 1) for h in range(1, n + 1)]
    figure = make_subplots(2, 1, row_heights=[0.28, 0.72], vertical_spacing=0.25)
    figure.add_scatter(
        row=1,
        col=1,
        x=[h for _, h in heads],
        y=[layer for layer, _ in heads],
        mode="markers",
        marker={
            "size": 22,
            "symbol": ["x" if head in gone else "square" for head in heads],
            "color": [rgba(NEUTRAL, 0.6) if head in gone else rgba(ACCENT) for head in heads],
        },
        text=["pruned" if head in gone else "kept" for head in heads],
        hovertemplate="layer %{y}, head %{x}: %{text}<extra></extra>",
        showlegend=False,
    )
    styles = [(ACCENT, "solid"), (OPPOSITE, "dash"), (NEUTRAL, "dot"), (OPPOSITE, "dashdot")]
    spoken = []
    for (name, values), (rgb, dash) in zip(curves.items(), styles, strict=False):
        values = np.asarray(values)
        dots = np.full(len(values), 6)
        dots[count] = 13
        figure.add_scatter(
            row=2,
            col=1,
            x=np.arange(len(values)),
            y=values.round(4),
            name=name,
            mode="lines+markers",
            line={"color": rgba(rgb), "width": 2.5, "dash": dash},
            marker={"size": dots},
        )
        spoken.append(f"{name} {values[count]:.3f}")
    figure.update_xaxes(row=1, showgrid=False, dtick=1, range=[0.4, max(head_counts) + 0.6])
    figure.update_xaxes(row=1, title="head")
    figure.update_yaxes(row=1, showgrid=False, dtick=1, range=[0.4, len(head_counts) + 0.6])
    figure.update_yaxes(row=1, title="layer")
    figure.update_xaxes(row=2, title="number of pruned heads", dtick=1)
    figure.update_yaxes(row=2, title="test accuracy")
    figure.update_layout(height=560, legend={**ABOVE, "y": 0.56}, margin={"t": 20})
    which = ", ".join(f"{layer}.{h}" for layer, h in order[:count]) or "none"
    words = f"Heads pruned: {which}. Accuracy: {', '.join(spoken)}."
    if sizes:
        saved = ", ".join(f"{name} {1 - each[count] / each[0]:.0%}" for name, each in sizes.items())
        title = {"text": f"saved: {saved}", "font": {"size": 14}, "x": 0.02}
        figure.update_layout(title=title, margin={"t": 50}, height=590)
        words += f" Saved: {saved}."
    return named(figure, words)


def cumulative(curves: Mapping[str, tuple[Numbers, Numbers | None]]) -> go.Figure:
    """Accuracy against the number of pruned heads for several orders of pruning.

    `curves` maps the name of an order of K heads to accuracies `[K + 1]` after 0, 1, 2, … heads
    and, where there are many orders of the kind, their standard deviation `[K + 1]`.

    >>> cumulative({"by score": ([0.9, 0.8], None)}).data[0].y.tolist()
    [0.9, 0.8]
    """
    figure = go.Figure()
    styles = [(ACCENT, "solid"), (NEUTRAL, "dot"), (OPPOSITE, "dash"), (ACCENT, "dashdot")]
    spoken = []
    for (name, (values, spread)), (rgb, dash) in zip(curves.items(), styles, strict=False):
        values = np.asarray(values)
        figure.add_scatter(
            x=np.arange(len(values)),
            y=values.round(4),
            error_y=None if spread is None else {"array": np.asarray(spread).round(4)},
            name=name,
            mode="lines+markers",
            line={"color": rgba(rgb), "width": 2.5, "dash": dash},
            marker={"size": 7},
        )
        spoken.append(f"{name} {', '.join(f'{value:.3f}' for value in values[:5])}")
    figure.update_xaxes(title="number of pruned heads", dtick=1)
    figure.update_yaxes(title="test accuracy")
    figure.update_layout(legend=ABOVE, height=420)
    return named(figure, f"Accuracy after 0, 1, 2, … pruned heads: {'; '.join(spoken)}.")
