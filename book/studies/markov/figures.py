"""Pictures of the hidden Markov chain: the task, one published run beside many fresh ones."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike
from plotly.subplots import make_subplots

from attnpaths.figures.style import ABOVE, ACCENT, BAR, NEUTRAL, OPPOSITE, PATH_COLOURS, named, rgba

Numbers = ArrayLike | Sequence

_DASHES = ("solid", "dash", "dot", "dashdot")


def two_chains(signals: Numbers, states: Numbers, names: Sequence[str]) -> go.Figure:
    """Chains of hidden states ±1 `[C, T]`, drawn at a signal `[C, T]` seen in their tokens.

    >>> figure = two_chains([[0.9, -1.1, 1]], [[1, -1, 1]], ["class −1"])
    >>> figure.layout.annotations[0].text
    'class −1: 2 flips in 2 steps'
    """
    signals, states = np.asarray(signals, float), np.asarray(states)
    flips = np.sum(states[:, 1:] != states[:, :-1], axis=1)
    titles = [
        f"{name}: {count} flips in {states.shape[1] - 1} steps"
        for name, count in zip(names, flips, strict=True)
    ]
    figure = make_subplots(
        len(names), 1, shared_xaxes=True, subplot_titles=titles, vertical_spacing=0.16
    )
    for row, (signal, chain) in enumerate(zip(signals, states, strict=True), start=1):
        plus = chain > 0
        figure.add_scatter(
            row=row,
            col=1,
            x=np.arange(1, len(chain) + 1),
            y=signal.round(3),
            mode="lines+markers",
            line={"color": rgba(NEUTRAL), "width": 1},
            marker={
                "size": 9,
                "color": np.where(plus, rgba(ACCENT), rgba(OPPOSITE)),
                "symbol": np.where(plus, "circle", "square"),
            },
            customdata=np.where(plus, "+", "−"),
            hovertemplate="token %{x}: %{y:.2f}, hidden state %{customdata}<extra></extra>",
        )
    largest = 1.15 * np.abs(signals).max()
    figure.update_xaxes(showgrid=False, range=[0.3, states.shape[1] + 0.7])
    figure.update_xaxes(row=len(names), title="token t")
    figure.update_yaxes(title="signal", range=[-largest, largest], nticks=4)
    figure.update_layout(height=90 + 150 * len(names), showlegend=False, margin={"t": 30})
    return named(figure, f"Signals of hidden Markov chains. {'; '.join(titles)}.")


def accuracy_with_seeds(
    widths: Numbers,
    published: Numbers,
    seeds: Numbers,
    limits: Mapping[str, float],
    ceiling: float,
) -> go.Figure:
    """Accuracy against N: one published curve `[W]`, and the spread of fresh ones `[S, W]`.

    Error bars are standard deviations over the S tasks. `limits` are level lines, as is
    `ceiling`, the best that any classifier is expected to reach.

    >>> figure = accuracy_with_seeds([10, 99], [1, 0.8], [[0.9, 0.7], [0.7, 0.7]], {}, 1)
    >>> [trace.name for trace in figure.data]
    ['authors’ data', '2 fresh tasks', 'ceiling']
    >>> figure.data[1].y.tolist()
    [0.8, 0.7]
    """
    widths, published, seeds = np.asarray(widths), np.asarray(published), np.asarray(seeds)
    mean, spread = seeds.mean(axis=0), seeds.std(axis=0, ddof=1)
    figure = go.Figure()
    figure.add_scatter(
        x=widths,
        y=published,
        name="authors’ data",
        mode="lines+markers",
        line={"color": rgba(ACCENT), "width": 3},
        marker={"symbol": "x", "size": 9},
    )
    figure.add_scatter(
        # a little to the side, where the two would lie on each other
        x=(1.08 * widths).round(1),
        y=mean.round(4),
        error_y={"array": spread.round(4), "thickness": 1.5},
        name=f"{len(seeds)} fresh tasks",
        mode="lines+markers",
        line={"color": rgba(NEUTRAL), "width": 1.5},
        marker={"size": 6},
    )
    levels = [(n, v, OPPOSITE, d) for (n, v), d in zip(limits.items(), _DASHES, strict=False)]
    for name, level, colour, dash in [*levels, ("ceiling", ceiling, NEUTRAL, "longdash")]:
        figure.add_scatter(
            x=[widths.min(), widths.max()],
            y=[level, level],
            name=name,
            mode="lines",
            line={"color": rgba(colour), "width": 2, "dash": dash},
        )
    figure.update_xaxes(title="width N", type="log", dtick=1)
    figure.update_yaxes(title="test accuracy")
    figure.update_layout(legend=ABOVE, height=400)
    spoken = ", ".join(f"{name} {level:.3f}" for name, level in limits.items())
    return named(
        figure,
        f"Test accuracy against width. At N = {widths[0]:g}: authors’ data {published[0]:.3f}, "
        f"fresh tasks {mean[0]:.3f} ± {spread[0]:.3f}. At N = {widths[-1]:g}: "
        f"{published[-1]:.3f}, {mean[-1]:.3f} ± {spread[-1]:.3f}. "
        f"Level lines: {spoken}; ceiling {ceiling:.3f}.",
    )


def entries_with_seeds(
    widths: Numbers, published: Numbers, seeds: Numbers, names: Sequence[str], pair=(0, 2)
) -> go.Figure:
    """Entries of U against N: the diagonal and one pair, from `[W, Π, Π]` and `[S, W, Π, Π]`.

    Lines are the published run; points with error bars are mean and standard deviation over
    the S fresh tasks.

    >>> figure = entries_with_seeds([10], np.eye(2)[None], np.ones((3, 1, 2, 2)),
    ...                             ["good", "denoising"], pair=(0, 1))
    >>> [trace.name for trace in figure.data[::2]]
    ['good', 'denoising', 'good × denoising']
    """
    widths, published, seeds = np.asarray(widths), np.asarray(published), np.asarray(seeds)
    entries = [(name, (i, i), PATH_COLOURS.get(name)) for i, name in enumerate(names)]
    entries.append((f"{names[pair[0]]} × {names[pair[1]]}", pair, None))
    figure = go.Figure()
    for name, (i, j), colour in entries:
        colour = colour or rgba(NEUTRAL)
        fresh = seeds[:, :, i, j]
        figure.add_scatter(
            x=widths,
            y=published[:, i, j].round(4),
            name=name,
            legendgroup=name,
            mode="lines",
            line={"color": colour, "width": 2.5, "dash": "solid" if i == j else "dash"},
        )
        figure.add_scatter(
            x=widths,
            y=fresh.mean(axis=0).round(4),
            error_y={"array": fresh.std(axis=0, ddof=1).round(4), "thickness": 1.5},
            name=f"{name}, fresh",
            legendgroup=name,
            showlegend=False,
            mode="markers",
            marker={"color": colour, "size": 7, "symbol": "circle" if i == j else "diamond"},
        )
    figure.update_xaxes(title="width N", type="log", dtick=1)
    figure.update_yaxes(title="entry of U")
    figure.update_layout(legend=ABOVE, height=390)
    spoken = "; ".join(
        f"{name} {published[0, i, j]:.2f}, fresh tasks {seeds[:, 0, i, j].mean():.2f} "
        f"± {seeds[:, 0, i, j].std(ddof=1):.2f}"
        for name, (i, j), _ in entries
    )
    return named(figure, f"Entries of U against width. At N = {widths[0]:g}: {spoken}.")


def standing(rows: Mapping[str, tuple[float, Numbers]]) -> go.Figure:
    """Where one published number lies among fresh ones: `{name: (published, [S])}`.

    Each row is centred on the mean of the fresh numbers and scaled by their standard deviation.

    >>> figure = standing({"accuracy": (0.9, [0.7, 0.8, 0.9])})
    >>> figure.data[1].x.round(2).tolist()
    [1.0]
    """
    scores, dots = [], []
    for published, seeds in rows.values():
        seeds = np.asarray(seeds, float)
        centre, scale = seeds.mean(), seeds.std(ddof=1)
        dots.append(((seeds - centre) / scale).round(2))
        scores.append(round(float((published - centre) / scale), 2))
    names = list(rows)
    count = len(dots[0])
    figure = go.Figure()
    figure.add_scatter(
        x=np.concatenate(dots),
        y=np.repeat(names, [len(row) for row in dots]),
        name=f"{count} fresh tasks",
        mode="markers",
        marker={"color": rgba(NEUTRAL, 0.55), "size": 7},
    )
    figure.add_scatter(
        x=np.array(scores),
        y=names,
        name="authors’ data",
        mode="markers",
        marker={"color": rgba(ACCENT), "size": 11, "symbol": "diamond"},
    )
    figure.update_xaxes(title="standard deviations from the mean", dtick=1)
    figure.update_yaxes(autorange="reversed", automargin=True, type="category")
    figure.update_layout(legend=ABOVE, height=120 + 25 * len(names))
    spoken = ", ".join(f"{name} {score:+.1f}" for name, score in zip(names, scores, strict=True))
    return named(
        figure,
        f"Where the published numbers lie among {count} fresh tasks, in standard deviations "
        f"from their mean: {spoken}.",
    )


def overlaps(
    published: Mapping[str, Numbers], seeds: Mapping[str, Numbers], count: int = 30
) -> go.Figure:
    """Overlap of each principal component with the labels, one row for each kernel.

    Bars are the published run `[P]`, points the mean over fresh tasks `[S, P]`, with their
    standard deviation.

    >>> figure = overlaps({"GP": [0.6, 0.8]}, {"GP": [[1, 0], [0, 1]]}, count=2)
    >>> figure.data[0].y.tolist(), figure.data[1].y.tolist()
    ([0.6, 0.8], [0.5, 0.5])
    """
    rank = np.arange(1, count + 1)
    figure = make_subplots(
        len(published),
        1,
        shared_xaxes=True,
        shared_yaxes="all",
        vertical_spacing=0.12,
        subplot_titles=list(published),
    )
    spoken = []
    for row, (name, bars) in enumerate(published.items(), start=1):
        bars, fresh = np.asarray(bars)[:count], np.asarray(seeds[name])[:, :count]
        figure.add_bar(
            row=row,
            col=1,
            x=rank,
            y=bars.round(4),
            name="authors’ data",
            showlegend=row == 1,
            marker={"color": rgba((ACCENT, OPPOSITE)[row % 2 - 1]), "line": {"width": 0}},
            hovertemplate="component %{x}: %{y:.3f}<extra></extra>",
        )
        figure.add_scatter(
            row=row,
            col=1,
            x=rank,
            y=fresh.mean(axis=0).round(4),
            error_y={"array": fresh.std(axis=0, ddof=1).round(4), "thickness": 1, "width": 2},
            name=f"{len(fresh)} fresh tasks",
            showlegend=row == 1,
            mode="markers",
            marker={"color": rgba(NEUTRAL), "size": 5},
            hovertemplate="component %{x}: %{y:.3f}<extra></extra>",
        )
        best = int(np.argmax(bars))
        spoken.append(f"{name}: largest {bars[best]:.2f}, at component {best + 1}")
    figure.update_xaxes(row=len(published), title="principal component, largest first")
    figure.update_yaxes(title="overlap", range=[0, 1])
    figure.update_layout(
        height=120 + 190 * len(published), legend={**ABOVE, "y": 1.08}, margin={"t": 60}
    )
    return named(figure, f"Overlap of kernel components with the labels. {'; '.join(spoken)}.")


def kernel_maps(kernels: Mapping[str, Numbers], split: int) -> go.Figure:
    """Kernels `[P, P]` as maps, two in a row; lines where the class changes, after `split`.

    Colour runs from the smallest to the largest entry off the diagonal of each kernel, which
    stand in its title. Numbers are kept in single precision, which halves the page.

    >>> figure = kernel_maps({"good": [[9.0, 1, 2], [1, 9, 3], [2, 3, 9]]}, 1)
    >>> figure.data[0].zmin, figure.data[0].zmax, figure.layout.annotations[0].text
    (1.0, 3.0, 'good: 1.00 to 3.00')
    """
    columns = min(2, len(kernels))
    rows = -(-len(kernels) // columns)
    arrays = {name: np.asarray(kernel, np.float32) for name, kernel in kernels.items()}
    ends = {}
    for name, kernel in arrays.items():
        off = kernel[~np.eye(len(kernel), dtype=bool)]
        ends[name] = float(off.min()), float(off.max())
    figure = make_subplots(
        rows,
        columns,
        shared_xaxes=True,
        shared_yaxes=True,
        subplot_titles=[f"{name}: {low:.2f} to {high:.2f}" for name, (low, high) in ends.items()],
        horizontal_spacing=0.06,
        vertical_spacing=0.2 / (rows + 1),
    )
    for i, (name, kernel) in enumerate(arrays.items()):
        where = {"row": i // columns + 1, "col": i % columns + 1}
        low, high = ends[name]
        figure.add_heatmap(
            **where,
            z=kernel,
            zmin=low,
            zmax=high,
            colorscale=[[0, rgba(ACCENT, 0.0)], [1, rgba(ACCENT)]],
            # one bar serves all maps: its ends are those of each
            showscale=i == 0,
            colorbar=BAR
            | {
                "orientation": "h",
                "len": 0.6,
                "y": 1.04,
                "yanchor": "bottom",
                "tickvals": [low, high],
                "ticktext": ["smallest entry", "largest"],
            },
            hovertemplate="examples %{y} and %{x}: %{z:.3f}<extra></extra>",
        )
        line = {"color": rgba(OPPOSITE), "width": 1}
        figure.add_hline(split - 0.5, line=line, **where)
        figure.add_vline(split - 0.5, line=line, **where)
    frame = {"showgrid": False, "zeroline": False, "showline": True, "mirror": True, "nticks": 4}
    figure.update_xaxes(**frame)
    figure.update_yaxes(autorange="reversed", **frame)
    figure.update_xaxes(row=rows, title="example")
    figure.update_yaxes(col=1, title="example")
    figure.update_layout(height=120 + 195 * rows, margin={"t": 80})
    figure.update_annotations(font_size=13)
    spoken = "; ".join(f"{name} from {low:.2f} to {high:.2f}" for name, (low, high) in ends.items())
    return named(figure, f"Kernels between examples, without the diagonal: {spoken}.")


def sides(amounts: Mapping[str, Numbers], y: Numbers) -> go.Figure:
    """One number for each example, `{name: [P]}`, in a row for each name and class `y [P]` = ±1.

    Ticks do not hide each other; the line at zero is where a network without a bias divides.

    >>> figure = sides({"good": [0.6, 0.4, 0.3]}, [1, 1, -1])
    >>> figure.data[0].x.tolist(), figure.data[1].x.tolist()
    ([0.6, 0.4], [0.3])
    """
    y = np.asarray(y)
    figure = go.Figure()
    spoken = []
    for name, values in amounts.items():
        values = np.asarray(values, float)
        means = []
        for sign, colour, word in ((1, ACCENT, "class +1"), (-1, OPPOSITE, "class −1")):
            some = values[y == sign].round(4)
            figure.add_scatter(
                x=some,
                y=[[name] * len(some), [word] * len(some)],
                name=word,
                legendgroup=word,
                showlegend=name == next(iter(amounts)),
                mode="markers",
                marker={
                    "symbol": "line-ns-open",
                    "size": 22,
                    "color": rgba(colour, 0.8),
                    "line": {"width": 1.5},
                },
                hovertemplate="%{x:.2f}<extra></extra>",
            )
            means.append(f"{some.mean():+.2f} in {word}")
        spoken.append(f"{name}: means {' and '.join(means)}")
    figure.add_vline(0, line={"color": rgba(NEUTRAL), "width": 2, "dash": "dash"})
    figure.update_xaxes(title="amount of the constant vector", zeroline=False)
    figure.update_yaxes(showgrid=False, automargin=True, autorange="reversed")
    figure.update_layout(legend=ABOVE, height=110 + 110 * len(amounts))
    return named(figure, f"What each chain carries. {'; '.join(spoken)}.")


def accuracy_against_noise(
    sigmas: Numbers, curves: Mapping[str, Numbers], ceiling: float
) -> go.Figure:
    """Accuracy `{name: [K]}` against σ⊥ `[K]`: names with "GP" in front have a colour of their own.

    >>> figure = accuracy_against_noise([1, 5], {"GP, good": [0.9, 0.6], "N = 10": [1, 0.9]}, 1)
    >>> [trace.name for trace in figure.data]
    ['GP, good', 'N = 10', 'ceiling']
    """
    sigmas = np.asarray(sigmas)
    figure = go.Figure()
    seen = {True: 0, False: 0}
    for name, curve in curves.items():
        gp = name.startswith("GP")
        figure.add_scatter(
            x=sigmas,
            y=np.asarray(curve),
            name=name,
            mode="lines+markers",
            line={
                "color": rgba(OPPOSITE if gp else ACCENT),
                "width": 2.5,
                "dash": _DASHES[seen[gp]],
            },
            marker={"symbol": ("circle", "square", "diamond", "x")[seen[gp]], "size": 7},
        )
        seen[gp] += 1
    figure.add_scatter(
        x=[sigmas.min(), sigmas.max()],
        y=[ceiling, ceiling],
        name="ceiling",
        mode="lines",
        line={"color": rgba(NEUTRAL), "width": 2, "dash": "longdash"},
    )
    figure.update_xaxes(title="noise out of the plane, σ⊥")
    figure.update_yaxes(title="test accuracy")
    figure.update_layout(legend=ABOVE, height=390)
    spoken = "; ".join(
        f"{name} from {curve[0]:.3f} to {curve[-1]:.3f}" for name, curve in curves.items()
    )
    return named(
        figure,
        f"Test accuracy as the noise grows from {sigmas[0]:g} to {sigmas[-1]:g}: {spoken}. "
        f"Ceiling {ceiling:.3f}.",
    )
