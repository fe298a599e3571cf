"""Pictures of sampling: chains, and theory beside samples with error bars."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike
from plotly.subplots import make_subplots

from attnpaths.figures.style import ABOVE, ACCENT, NEUTRAL, OPPOSITE, named, rgba

Numbers = ArrayLike | Sequence

# chains are alike, and no paths: they differ in depth and dash alone
_CHAINS = (
    (rgba(ACCENT), "solid"),
    (rgba(OPPOSITE), "solid"),
    (rgba(NEUTRAL), "solid"),
    (rgba(ACCENT, 0.55), "dot"),
)
# how each way to an answer is drawn, in all figures
STYLES = {
    "theory": (rgba(ACCENT), "x"),
    "exact": (rgba(OPPOSITE), "circle"),
    "weights": (rgba(NEUTRAL), "square"),
    "authors": ("#8a6d3b", "diamond"),
}


def trace(runs: Mapping[str, Numbers], of: str, level: float) -> go.Figure:
    """Chains of one number, `{title: [chains, samples]}`, one row for each run.

    The dashed line, `level`, is where the theory puts it.

    >>> figure = trace({"short": [[1, 2, 1], [3, 2, 3]]}, "U of good", 1.5)
    >>> [line.name for line in figure.data]
    ['chain 1', 'chain 2']
    """
    figure = make_subplots(len(runs), 1, subplot_titles=list(runs), vertical_spacing=0.2)
    spoken = []
    for row, (title, draws) in enumerate(runs.items(), start=1):
        draws = np.asarray(draws, float)
        for i, chain in enumerate(draws):
            figure.add_scatter(
                row=row,
                col=1,
                x=np.arange(1, len(chain) + 1),
                y=chain.round(3),
                name=f"chain {i + 1}",
                legendgroup=f"chain {i + 1}",
                showlegend=row == 1,
                mode="lines",
                line={
                    "color": _CHAINS[i % len(_CHAINS)][0],
                    "dash": _CHAINS[i % len(_CHAINS)][1],
                    "width": 1,
                },
            )
        figure.add_hline(
            level, row=row, col=1, line={"color": rgba(NEUTRAL), "width": 2, "dash": "dash"}
        )
        means = ", ".join(f"{mean:.2f}" for mean in draws.mean(axis=1))
        spoken.append(f"{title}: means of the chains {means}")
    figure.update_xaxes(title="draw", row=len(runs))
    figure.update_yaxes(title=of)
    figure.update_layout(
        height=130 + 200 * len(runs), legend={**ABOVE, "y": 1.08}, margin={"t": 60}
    )
    return named(figure, f"Chains of {of}. {'; '.join(spoken)}. Theory {level:.2f}.")


def walk(draws: Numbers, saddle: Numbers, names: Sequence[str], steps: int = 30) -> go.Figure:
    """All draws `[chains, samples, 2]` of two numbers as a cloud, and one chain's last steps.

    `saddle [2]` is marked by a cross.

    >>> figure = walk(np.zeros((2, 50, 2)), [0, 1], ["a", "b"], steps=10)
    >>> len(figure.data[0].x), len(figure.data[1].x)
    (100, 10)
    """
    draws = np.asarray(draws, float)
    cloud, path = draws.reshape(-1, 2).round(3), draws[0, -steps:].round(3)
    colour, symbol = STYLES["theory"]
    figure = go.Figure()
    figure.add_scattergl(
        x=cloud[:, 0],
        y=cloud[:, 1],
        name=f"{len(cloud):,} draws",
        mode="markers",
        marker={"size": 4, "color": rgba(NEUTRAL, 0.35)},
    )
    figure.add_scattergl(
        x=path[:, 0],
        y=path[:, 1],
        name=f"{steps} steps of one chain",
        mode="lines+markers",
        line={"color": rgba(OPPOSITE), "width": 1},
        marker={"size": 4},
    )
    figure.add_scattergl(
        x=[float(saddle[0])],
        y=[float(saddle[1])],
        name="theory",
        mode="markers",
        # a rim, so that it is seen on the cloud; of one kind with it, or the cloud would cover it
        marker={
            "color": colour,
            "symbol": symbol,
            "size": 18,
            "line": {"color": "white", "width": 2},
        },
    )
    figure.update_xaxes(title=names[0])
    figure.update_yaxes(title=names[1])
    figure.update_layout(legend=ABOVE, height=430)
    mean, spread = cloud.mean(axis=0), cloud.std(axis=0)
    return named(
        figure,
        f"Draws of {names[0]} and {names[1]}: {mean[0]:.2f} ± {spread[0]:.2f} and {mean[1]:.2f} ± "
        f"{spread[1]:.2f}, standard deviations; theory {saddle[0]:.2f} and {saddle[1]:.2f}. "
        f"Successive draws of a chain are far apart.",
    )


def against_width(
    widths: Numbers, theory: Numbers, sampled: Mapping[str, tuple], title: str = "test accuracy"
) -> go.Figure:
    """One number against N: the theory as a line, samples `{way: (widths, values, errors)}`.

    The theory is `[W]`; the three of a way are `[K]`, at K widths of its own, which the theory
    must have. Below, the differences to the theory in percentage points, where error bars show.

    >>> figure = against_width([4, 10], [0.9, 1], {"exact": ([4], [0.8], [0.1])})
    >>> figure.data[2].y.round(1).tolist(), figure.data[2].error_y.array.tolist()
    ([-10.0], [10.0])
    """
    at = dict(zip(map(float, np.asarray(widths)), np.asarray(theory, float), strict=True))
    colour, symbol = STYLES["theory"]
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.06)
    figure.add_scatter(
        row=1,
        col=1,
        x=list(at),
        y=np.round(list(at.values()), 5),
        name="theory",
        mode="lines+markers",
        line={"color": colour, "width": 2.5},
        marker={"symbol": symbol, "size": 9},
    )
    spoken = []
    for i, (way, (x, values, errors)) in enumerate(sampled.items()):
        x, values, errors = (np.asarray(each, float) for each in (x, values, errors))
        colour, symbol = STYLES[way]
        apart = 100 * (values - [at[n] for n in x])
        for row, shown, bars in ((1, values, errors), (2, apart, 100 * errors)):
            figure.add_scatter(
                row=row,
                col=1,
                # beside each other, where points would lie on each other
                x=(x * 1.09 ** (i + 1)).round(2),
                y=shown.round(5),
                error_y={"array": bars.round(5), "thickness": 2},
                name=_NAMES[way],
                legendgroup=way,
                showlegend=row == 1,
                mode="markers",
                marker={"color": colour, "symbol": symbol, "size": 8},
                customdata=x,
                hovertemplate="N = %{customdata}: %{y:.4g}<extra></extra>",
            )
        said = ", ".join(
            f"{v:.3f} ± {e:.3f} at N = {n:g}" for n, v, e in zip(x, values, errors, strict=True)
        )
        spoken.append(f"{_NAMES[way]} {said}")
    figure.add_hline(0, row=2, col=1, line={"color": STYLES["theory"][0], "width": 2})
    figure.update_xaxes(type="log", dtick=1)
    figure.update_xaxes(row=2, title="width N")
    figure.update_yaxes(row=1, title=title)
    figure.update_yaxes(row=2, title="minus theory, points")
    figure.update_layout(legend=ABOVE, height=520)
    line = ", ".join(f"{v:.3f}" for v in at.values())
    said = "; ".join(spoken)
    return named(figure, f"{title.capitalize()} against width. Theory {line}; {said}.")


_NAMES = {
    "theory": "theory",
    "exact": "order parameter, sampled",
    "weights": "weights, sampled",
    "authors": "authors’ code",
}


def entries(
    theory: Numbers, sampled: Mapping[str, tuple[Numbers, Numbers]], names: Sequence[str]
) -> go.Figure:
    """Every entry of U `[Π, Π]`, from the theory and as `{way: (mean, error)}`.

    Below, the differences to the theory in per cent of √(U_ππ U_π'π'), where error bars show.

    >>> figure = entries(np.eye(2), {"exact": (np.eye(2), np.eye(2))}, ["a", "b"])
    >>> list(figure.layout.xaxis2.ticktext)
    ['a', 'b', 'a × b']
    """
    theory = np.asarray(theory, float)
    count = len(names)
    pairs = [(i, i) for i in range(count)]
    pairs += [(i, j) for i in range(count) for j in range(i + 1, count)]
    # long labels would take the height of a narrow page
    short = [name.replace("adversarial", "adv.") for name in names]
    labels = [short[i] if i == j else f"{short[i]} × {short[j]}" for i, j in pairs]
    row, column = np.transpose(pairs)
    unit = np.sqrt(theory[row, row] * theory[column, column]) / 100
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.06)
    spoken = []
    ways = {"theory": (theory, np.zeros((count, count))), **sampled}
    for k, (way, (mean, error)) in enumerate(ways.items()):
        mean, error = np.asarray(mean)[row, column], np.asarray(error)[row, column]
        colour, symbol = STYLES[way]
        apart = mean - theory[row, column]
        for line, values, bars in ((1, mean, error), (2, apart / unit, np.abs(error) / unit)):
            figure.add_scatter(
                row=line,
                col=1,
                # beside each other, where they would lie on each other
                x=np.arange(len(pairs)) + 0.16 * (k - (len(ways) - 1) / 2),
                y=values.round(4),
                error_y={"array": bars.round(4), "thickness": 2, "visible": way != "theory"},
                name=_NAMES[way],
                legendgroup=way,
                showlegend=line == 1,
                mode="markers",
                marker={"color": colour, "symbol": symbol, "size": 7},
                customdata=labels,
                hovertemplate="%{customdata}: %{y:.3g}<extra></extra>",
            )
        if way != "theory":
            spoken.append(f"{_NAMES[way]} {np.abs(apart).max():.2f}")
    figure.update_xaxes(tickvals=np.arange(len(pairs)), ticktext=labels, zeroline=False)
    figure.update_xaxes(row=2, tickangle=-50, automargin=True)
    figure.update_yaxes(row=1, title="entry of U")
    figure.update_yaxes(row=2, title="minus theory, %")
    figure.update_layout(legend=ABOVE, height=620)
    strengths = ", ".join(
        f"{name} {value:.2f}" for name, value in zip(names, np.diag(theory), strict=True)
    )
    named(
        figure,
        f"Entries of U. Theory: {strengths}. Largest difference to the theory: "
        f"{', '.join(spoken)}.",
    )
    # on a narrow page the legend goes below, past the long labels
    figure.layout.meta = figure.layout.meta | {"below": -0.55}
    return figure


def predictors(theory: Numbers, sampled: Mapping[str, tuple[Numbers, Numbers]]) -> go.Figure:
    """Predictors on test examples `[K]` minus the theory's, against it: `{way: (mean, error)}`.

    >>> figure = predictors([-1, 1], {"exact": ([-1, 0.9], [0.1, 0.1])})
    >>> figure.data[0].name, figure.data[0].y.round(2).tolist()
    ('order parameter, sampled', [0.0, -0.1])
    """
    theory = np.asarray(theory, float)
    # beside each other, where they would lie on each other
    step = 0.006 * np.ptp(theory)
    figure = go.Figure()
    spoken = []
    for k, (way, (mean, error)) in enumerate(sampled.items()):
        apart, error = np.asarray(mean, float) - theory, np.asarray(error, float)
        colour, symbol = STYLES[way]
        figure.add_scatter(
            x=(theory + step * (2 * k - len(sampled) + 1)).round(4),
            y=apart.round(4),
            error_y={"array": error.round(4), "thickness": 1.5},
            name=_NAMES[way],
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 7},
        )
        spoken.append(f"{_NAMES[way]} {np.sqrt(np.mean(apart**2)):.3f}")
    figure.add_hline(0, line={"color": STYLES["theory"][0], "width": 2})
    figure.update_xaxes(title="predictor f, theory", zeroline=False)
    figure.update_yaxes(title="sampled minus theory")
    figure.update_layout(legend=ABOVE, height=400)
    return named(
        figure,
        f"Predictors of {len(theory)} test examples against the theory’s. Root mean square "
        f"difference: {', '.join(spoken)}.",
    )
