"""Pictures of pruning many networks: which heads of each are gone, and what every rule misses."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike
from plotly.subplots import make_subplots

from attnpaths.figures import with_choice
from attnpaths.figures.style import ABOVE, ACCENT, NEUTRAL, OPPOSITE, named, rgba
from book.studies.oneshot.comparisons import effects

Numbers = ArrayLike | Sequence
Orders = Mapping[str, Sequence[Sequence[int]]]
# for means of several test sets, the first of which also has a thin line for each network
_LINES = ((ACCENT, "solid"), (OPPOSITE, "dash"), (NEUTRAL, "dashdot"))


def networks_without(
    orders: Orders, heads: Sequence[int], curves: Mapping[str, Numbers], count: int
) -> go.Figure:
    """S networks with the first `count` heads of their own orders gone, and their accuracies.

    `orders` has for each network its heads as (layer, head), in the order in which they go;
    `curves` for each test set the accuracies `[S, K + 1]` after 0, 1, 2, … heads. Above, a row for
    each network and a cross for each head that is gone; below, a thin line for each network on the
    first test set, and the means of all sets.

    >>> one = {"seed 1": [(1, 2)], "seed 2": [(1, 1)]}
    >>> figure = networks_without(one, (2, 1), {"letters": [[0.9, 0.8], [0.8, 0.6]]}, 1)
    >>> figure.data[0].marker.symbol, figure.data[-1].y.tolist()
    (('square', 'x', 'square', 'x', 'square', 'square'), [0.85, 0.7])
    """
    names = [(layer, h) for layer, n in enumerate(heads, start=1) for h in range(1, n + 1)]
    gone = [{tuple(head) for head in order[:count]} for order in orders.values()]
    cells = [(row, head, head in out) for row, out in enumerate(gone) for head in names]
    figure = make_subplots(2, 1, row_heights=[0.4, 0.6], vertical_spacing=0.17)
    figure.add_scatter(
        row=1,
        col=1,
        x=[names.index(head) for _, head, _ in cells],
        y=[-row for row, _, _ in cells],
        mode="markers",
        marker={
            "size": 13,
            "symbol": ["x" if out else "square" for _, _, out in cells],
            "color": [rgba(OPPOSITE) if out else rgba(ACCENT, 0.55) for _, _, out in cells],
        },
        text=[f"head {head[0]}.{head[1]}, {'gone' if out else 'kept'}" for _, head, out in cells],
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )
    first, *_ = curves.values()
    for i, curve in enumerate(np.asarray(first, float)):
        figure.add_scatter(
            row=2, col=1, x=np.arange(len(curve)), y=curve.round(4), name="one network",
            mode="lines", legendgroup="one", showlegend=i == 0,
            line={"color": rgba(NEUTRAL, 0.5), "width": 1},
        )  # fmt: skip
    spoken = []
    for (name, each), (rgb, dash) in zip(curves.items(), _LINES, strict=False):
        mean = np.asarray(each, float).mean(axis=0)
        dots = np.full(len(mean), 5)
        dots[count] = 13
        figure.add_scatter(
            row=2, col=1, x=np.arange(len(mean)), y=mean.round(4), name=name,
            mode="lines+markers", marker={"size": dots},
            line={"color": rgba(rgb), "width": 2.5, "dash": dash},
        )  # fmt: skip
        spoken.append(f"{name} {mean[count]:.3f}, before {mean[0]:.3f}")
    figure.update_xaxes(
        row=1,
        tickvals=list(range(len(names))),
        ticktext=[f"{layer}.{h}" for layer, h in names],
        range=[-0.6, len(names) - 0.4],
        showgrid=False,
        zeroline=False,
        title="head, as layer.head",
    )
    figure.update_yaxes(
        row=1,
        tickvals=[-row for row in range(len(gone))],
        ticktext=list(orders),
        range=[0.6 - len(gone), 0.6],
        showgrid=False,
        zeroline=False,
        automargin=True,
    )
    figure.update_xaxes(row=2, title="heads gone", dtick=1)
    figure.update_yaxes(row=2, title="test accuracy")
    figure.update_layout(height=300 + 24 * len(gone), legend=ABOVE)
    return named(
        figure,
        f"{len(gone)} networks without {count} heads each. Mean accuracy: {'; '.join(spoken)}.",
    )


def rules_apart(
    regrets: Mapping[int, Mapping[str, Numbers]],
    stops: Sequence[tuple[int, int]],
    *,
    active: int = 0,
) -> go.Figure:
    """How far every rule stays below the best subset, with buttons for how many heads are gone.

    `regrets` has for each number of heads `{rule: [S, K]}`, where column k is for k + 1 heads gone;
    `stops` are pairs, so many gone of so many. A row is a rule, a dot a network; numbers are in
    points. Without any network, or before there are some, the picture says so.

    >>> figure = rules_apart({4: {"score": [[0.0, 0.02], [0.02, 0.04]]}}, [(1, 4), (2, 4)])
    >>> [frame.data[1].x.tolist() for frame in figure.frames]
    [[1.0], [3.0]]
    """
    each = {
        (gone, heads): {
            rule: np.asarray(values, float)[:, gone - 1] for rule, values in regrets[heads].items()
        }
        for gone, heads in stops
        if all(np.size(values) for values in regrets[heads].values())
    }
    if not each:
        return none_yet()
    reach = 100 * max(values.max() for rules in each.values() for values in rules.values())
    drawn = {}
    for (gone, heads), rules in each.items():
        figure = effects(rules, "points below the best choice", scale=100.0, digits=1)
        figure.update_xaxes(range=[-0.04 * reach, 1.04 * reach])
        drawn[f"{gone} of {heads}"] = figure.update_layout(height=120 + 19 * len(rules))
    return with_choice(drawn, "heads gone", active)


def none_yet() -> go.Figure:
    """A picture that says that no network of a shape has been studied. Takes no array.

    >>> none_yet().layout.annotations[0].text
    'no network yet'
    """
    figure = go.Figure(go.Scatter(x=[0], y=[0], mode="markers", marker={"opacity": 0}))
    figure.add_annotation(text="no network yet", showarrow=False, x=0, y=0)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return named(figure.update_layout(height=120), "No network of this shape has been studied yet.")
