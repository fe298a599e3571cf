"""Pictures of many trained networks: each of them a dot or a line, and what they say together."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike
from plotly.subplots import make_subplots

from attnpaths.figures.style import ABOVE, ACCENT, NEUTRAL, OPPOSITE, named, rgba
from book.studies.verdicts.paired import paired

Numbers = ArrayLike | Sequence
_THIN = {"color": rgba(NEUTRAL, 0.5), "width": 1}
_STYLES = ((ACCENT, "solid"), (OPPOSITE, "dash"), (NEUTRAL, "dot"), (OPPOSITE, "dashdot"))
_STYLES += ((ACCENT, "dot"), (NEUTRAL, "solid"))


def effects(
    rows: Mapping[str, Numbers],
    title: str,
    *,
    margin: tuple[float, float] | None = None,
    scale: int | float = 1,
    digits: int = 2,
) -> go.Figure:
    """One number of each of S networks, `{what: [S]}`, a row each, with mean and 95 % interval.

    A line marks zero, and `margin` shades what a rule allows. Numbers are multiplied by `scale`.

    >>> figure = effects({"gain": [0.01, 0.03, 0.02]}, "points", scale=100)
    >>> figure.data[1].x.tolist(), figure.data[1].error_x.array.tolist()
    ([2.0], [1.0])
    """
    names = list(rows)
    found = [paired(np.asarray(values, float) * scale) for values in rows.values()]
    # dots of one row stand a little above each other, so that none hides another
    heights = [-i + 0.28 * _spread(len(each.values)) for i, each in enumerate(found)]
    mean = np.array([each.mean for each in found])
    figure = go.Figure()
    figure.add_scatter(
        x=np.concatenate([each.values for each in found]).round(4),
        y=np.concatenate(heights).round(3),
        name="one network",
        mode="markers",
        marker={"color": rgba(NEUTRAL, 0.7), "size": 7},
        hovertemplate="%{x}<extra></extra>",
    )
    figure.add_scatter(
        x=mean.round(4),
        y=[-i for i in range(len(names))],
        error_x={
            "array": (np.array([each.high for each in found]) - mean).round(4),
            "arrayminus": (mean - np.array([each.low for each in found])).round(4),
            "thickness": 2,
        },
        name="mean and 95 % interval",
        mode="markers",
        marker={"color": rgba(ACCENT), "size": 11, "symbol": "diamond"},
        hovertemplate="mean %{x}<extra></extra>",
    )
    figure.add_vline(0, line={"color": rgba(NEUTRAL), "width": 1.5, "dash": "dash"})
    if margin is not None:
        figure.add_vrect(
            *(scale * end for end in margin), fillcolor=rgba(ACCENT, 0.12), line_width=0
        )
    figure.update_xaxes(title=title)
    figure.update_yaxes(
        tickvals=[-i for i in range(len(names))],
        ticktext=names,
        range=[-len(names) + 0.4, 0.6],
        automargin=True,
        showgrid=False,
        zeroline=False,
    )
    figure.update_layout(legend=ABOVE, height=120 + 42 * len(names))
    spoken = "; ".join(
        f"{name} {each.mean:.{digits}f} ({each.low:.{digits}f} to {each.high:.{digits}f}) over "
        f"{len(each.values)} networks"
        for name, each in zip(names, found, strict=True)
    )
    return named(figure, f"{title}, mean and 95 % interval: {spoken}.".replace("-", "−"))


def against_width(
    widths: Sequence[int], panels: Mapping[str, tuple[Numbers, Numbers, Numbers | None]]
) -> go.Figure:
    """Accuracy against N of S networks, a panel for each test set, the Gaussian process last.

    Each panel is `(theory [S, W], gp [S], descent [S] or None)`: what the theory expects with the
    heads of each network, its limit, and the network itself as gradient descent left it.

    >>> figure = against_width([10, 99], {"letters": ([[0.9, 0.8], [0.7, 0.6]], [0.6, 0.5], None)})
    >>> figure.data[-1].y.round(2).tolist()
    [0.8, 0.7, 0.55]
    """
    across = [f"{width:,}" for width in widths] + ["∞ (GP)"]
    figure = make_subplots(
        len(panels), 1, shared_xaxes=True, subplot_titles=list(panels), vertical_spacing=0.09
    )
    spoken = []
    for row, (name, (theory, gp, descent)) in enumerate(panels.items(), start=1):
        each = np.column_stack([np.asarray(theory, float), np.asarray(gp, float)])
        for i, curve in enumerate(each):
            figure.add_scatter(
                row=row, col=1, x=across, y=curve.round(4), name="one network", mode="lines",
                legendgroup="one", showlegend=row == 1 and i == 0, line=_THIN,
            )  # fmt: skip
        words = (
            f"{name}: theory {each[:, 0].mean():.3f} at N = {widths[0]}, {each[:, -1].mean():.3f}"
        )
        words += " in the GP limit"
        if descent is not None:
            level = float(np.mean(np.asarray(descent)))
            figure.add_scatter(
                row=row, col=1, x=[across[0], across[-1]], y=[round(level, 4)] * 2,
                name="gradient descent, mean", mode="lines", legendgroup="descent",
                showlegend=row == 1, line={"color": rgba(OPPOSITE), "width": 2, "dash": "dash"},
            )  # fmt: skip
            words += f", gradient descent {level:.3f}"
        figure.add_scatter(
            row=row, col=1, x=across, y=each.mean(axis=0).round(4), name="theory, mean",
            mode="lines+markers", legendgroup="mean", showlegend=row == 1,
            line={"color": rgba(ACCENT), "width": 3}, marker={"size": 8},
        )  # fmt: skip
        spoken.append(words)
    figure.update_xaxes(type="category", tickangle=-45)
    figure.update_xaxes(row=len(panels), title="width N")
    figure.update_yaxes(title="test accuracy")
    figure.update_layout(
        height=130 + 200 * len(panels),
        legend={**ABOVE, "y": 1 + 0.1 / len(panels)},
        margin={"t": 80},
    )
    return named(
        figure, f"Accuracy against width, mean over {len(each)} networks. {'; '.join(spoken)}."
    )


def temperatures(widths: Sequence[int], each: Numbers, paper: Numbers, limit: Numbers) -> go.Figure:
    """The temperature of the best accuracy against N, `each [S, W]`, beside the paper's `[W]`.

    `limit [S]` are those of the Gaussian process. Means are geometric.

    >>> temperatures([10, 99], [[0.5, 0.1], [2, 0.1]], [0.5, 0.075], [0.1, 0.1]).data[-2].y.tolist()
    [1.0, 0.1, 0.1]
    """
    across = [f"{width:,}" for width in widths] + ["∞ (GP)"]
    each = np.column_stack([np.asarray(each, float), np.asarray(limit, float)])
    figure = go.Figure()
    for i, curve in enumerate(each):
        figure.add_scatter(
            x=across, y=curve.round(4), name="one network", mode="lines", line=_THIN,
            legendgroup="one", showlegend=i == 0,
        )  # fmt: skip
    mean = np.exp(np.log(each).mean(axis=0))
    figure.add_scatter(
        x=across, y=mean.round(4), name="mean", mode="lines+markers",
        line={"color": rgba(ACCENT), "width": 3}, marker={"size": 8},
    )  # fmt: skip
    figure.add_scatter(
        x=across[:-1], y=np.asarray(paper, float), name="paper", mode="markers",
        marker={"color": rgba(OPPOSITE), "size": 11, "symbol": "x"},
    )  # fmt: skip
    figure.update_xaxes(title="width N", type="category", tickangle=-45)
    ticks = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]
    figure.update_yaxes(
        title="best temperature 𝒯", type="log", tickvals=ticks, ticktext=[f"{t:g}" for t in ticks]
    )
    figure.update_layout(legend=ABOVE, height=340)
    spoken = f"mean over {len(each)} networks from {mean[0]:.2g} at N = {widths[0]} to "
    spoken += f"{mean[-2]:.2g} at N = {widths[-1]}, {mean[-1]:.2g} in the GP limit; "
    spoken += f"paper from {paper[0]:g} to {paper[-1]:g}"
    return named(figure, f"Best temperature against width: {spoken}.")


def signs(networks: Mapping[str, tuple[float, Numbers]]) -> go.Figure:
    """Equal signs of two order parameters beside what renamed heads share, `{name: (own, all)}`.

    A row for each network: its own share minus the mean over all renamings, and the middle 95 % of
    these; numbers are in points.

    >>> figure = signs({"seed 1": (0.7, [0.7, 0.5, 0.6])})
    >>> figure.data[1].x.tolist(), figure.data[0].error_x.array.round(1).tolist()
    ([10.0], [9.5])
    """
    names = list(networks)
    heights = [-i for i in range(len(names))]
    own, low, high = [], [], []
    for share, renamed in networks.values():
        renamed = np.asarray(renamed, float)
        middle = renamed.mean()
        own.append(100 * (share - middle))
        ends = np.quantile(renamed, [0.025, 0.975]) - middle
        low.append(-100 * ends[0])
        high.append(100 * ends[1])
    figure = go.Figure()
    figure.add_scatter(
        x=np.zeros(len(names)), y=heights, name="heads renamed, middle 95 %", mode="markers",
        marker={"color": rgba(NEUTRAL, 0.8), "size": 7, "symbol": "line-ns-open"},
        error_x={"array": np.round(high, 3), "arrayminus": np.round(low, 3), "thickness": 6,
                 "width": 0, "color": rgba(NEUTRAL, 0.45)},
        hoverinfo="skip",
    )  # fmt: skip
    figure.add_scatter(
        x=np.round(own, 3), y=heights, name="heads as they are", mode="markers",
        marker={"color": rgba(ACCENT), "size": 11, "symbol": "diamond"},
        hovertemplate="%{x:.1f} points<extra></extra>",
    )  # fmt: skip
    figure.update_xaxes(title="equal signs minus the mean over renamings, points")
    figure.update_yaxes(
        tickvals=heights, ticktext=names, range=[-len(names) + 0.4, 0.6], automargin=True,
        showgrid=False, zeroline=False,
    )  # fmt: skip
    figure.update_layout(legend=ABOVE, height=120 + 30 * len(names))
    spoken = "; ".join(f"{name} {value:+.1f}" for name, value in zip(names, own, strict=True))
    return named(
        figure, f"Share of equal signs minus its mean over renamings, in points: {spoken}."
        .replace("-", "−")
    )  # fmt: skip


def one_at_a_time(drops: Numbers, authors: Sequence[float], error: float) -> go.Figure:
    """What each head alone costs, `[S, heads]`, heads in ascending order of their score.

    `authors` are the same eight numbers of their single run, each with a standard `error`.

    >>> figure = one_at_a_time([[0.0, 0.1], [0.02, 0.2]], [0.02, 0.01], 0.009)
    >>> figure.data[2].y.tolist()
    [0.01, 0.15]
    """
    drops = np.asarray(drops, float)
    across = np.arange(1, drops.shape[1] + 1)
    figure = go.Figure()
    for i, curve in enumerate(drops):
        figure.add_scatter(
            x=across, y=curve.round(4), name="one network", mode="lines+markers", line=_THIN,
            marker={"size": 5}, legendgroup="one", showlegend=i == 0,
        )  # fmt: skip
    figure.add_scatter(
        x=across, y=drops.mean(axis=0).round(4), name="mean", mode="lines+markers",
        line={"color": rgba(ACCENT), "width": 3}, marker={"size": 8},
    )  # fmt: skip
    figure.add_scatter(
        x=across, y=np.asarray(authors).round(4), name="the authors' network",
        error_y={"array": [error] * len(across), "thickness": 1.5}, mode="markers",
        marker={"color": rgba(OPPOSITE), "size": 10, "symbol": "diamond"},
    )  # fmt: skip
    figure.update_xaxes(title="head, from the lowest score to the highest", dtick=1)
    figure.update_yaxes(title="drop in accuracy", rangemode="tozero")
    figure.update_layout(legend=ABOVE, height=340)
    mean = drops.mean(axis=0)
    return named(
        figure,
        f"Drop in accuracy without one head, in ascending order of score: mean over {len(drops)} "
        f"networks {', '.join(f'{x:.3f}' for x in mean)}; the authors' "
        f"{', '.join(f'{x:.3f}' for x in authors)}.",
    )


def regrets(curves: Mapping[str, Numbers], title: str = "points below the best") -> go.Figure:
    """How far every rule stays below the best possible choice, `{rule: [S, K]}`, in points.

    Column k is for k + 1 heads gone; the lines are means over S networks with 95 % intervals.

    >>> regrets({"score": [[0.0, 0.02], [0.02, 0.04]]}).data[0].y.tolist()
    [1.0, 3.0]
    """
    figure = go.Figure()
    spoken = []
    shift = 0.06 * _spread(len(curves))
    for (name, each), (rgb, dash), move in zip(curves.items(), _STYLES, shift, strict=False):
        each = 100 * np.asarray(each, float)
        found = [paired(column) for column in each.T]
        mean = np.array([one.mean for one in found])
        figure.add_scatter(
            x=(np.arange(1, len(found) + 1) + move).round(3),
            y=mean.round(3),
            error_y={
                "array": (np.array([one.high for one in found]) - mean).round(3),
                "arrayminus": (mean - np.array([one.low for one in found])).round(3),
                "thickness": 1.5,
                "width": 3,
            },
            name=name,
            mode="lines+markers",
            line={"color": rgba(rgb), "width": 2.5, "dash": dash},
            marker={"size": 7},
        )
        spoken.append(f"{name} {', '.join(f'{x:.1f}' for x in mean)}")
    figure.update_xaxes(title="heads gone", dtick=1)
    figure.update_yaxes(title=title, rangemode="tozero")
    figure.update_layout(legend=ABOVE, height=380)
    return named(
        figure, f"Points below the best choice, for 1, 2, … heads gone: {'; '.join(spoken)}."
    )


def training_curves(groups: Mapping[str, Sequence[tuple[Numbers, Numbers]]]) -> go.Figure:
    """Validation accuracy during gradient descent, `{shape: [(epochs [K], accuracy [K]), …]}`.

    >>> figure = training_curves({"L = 2": [([1, 2], [0.6, 0.8]), ([1, 2], [0.6, 0.7])]})
    >>> len(figure.data), figure.data[1].showlegend
    (2, False)
    """
    figure = go.Figure()
    spoken = []
    for (name, runs), (rgb, dash) in zip(groups.items(), _STYLES, strict=False):
        for i, (epochs, accuracy) in enumerate(runs):
            figure.add_scatter(
                x=np.asarray(epochs).round(3), y=np.asarray(accuracy).round(4), name=name,
                mode="lines", line={"color": rgba(rgb, 0.8), "width": 1.5, "dash": dash},
                legendgroup=name, showlegend=i == 0,
            )  # fmt: skip
        best = [float(np.max(np.asarray(accuracy))) for _, accuracy in runs]
        spoken.append(f"{name}: best {min(best):.3f} to {max(best):.3f} over {len(runs)} networks")
    figure.update_xaxes(title="epoch")
    figure.update_yaxes(title="validation accuracy")
    figure.update_layout(legend=ABOVE, height=340)
    return named(figure, f"Validation accuracy during training. {'; '.join(spoken)}.")


def _spread(count: int) -> np.ndarray:
    """Numbers between −1 and 1, evenly."""
    return np.linspace(-1, 1, count) if count > 1 else np.zeros(count)
