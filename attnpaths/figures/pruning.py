"""A picture of pruning: which heads are gone, and what is left of the accuracy without them."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike
from plotly.subplots import make_subplots

from attnpaths.figures.style import ABOVE, ACCENT, NEUTRAL, OPPOSITE, named, rgba

Numbers = ArrayLike | Sequence


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
    figure.update_layout(height=480, legend={**ABOVE, "y": 0.56}, margin={"t": 20})
    which = ", ".join(f"{layer}.{h}" for layer, h in order[:count]) or "none"
    words = f"Heads pruned: {which}. Accuracy: {', '.join(spoken)}."
    if sizes:
        saved = ", ".join(f"{name} {1 - each[count] / each[0]:.0%}" for name, each in sizes.items())
        title = {"text": f"saved: {saved}", "font": {"size": 14}, "x": 0.02}
        figure.update_layout(title=title, margin={"t": 50}, height=510)
        words += f" Saved: {saved}."
    return named(figure, words)
