"""Pictures of the one-shot image task: sequences, accuracies, order parameters of many paths."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike
from plotly.subplots import make_subplots

from attnpaths.figures.style import ABOVE, ACCENT, BAR, NEUTRAL, OPPOSITE, named, rgba, signed

Numbers = ArrayLike | Sequence


def sequences(images: Numbers, signs: Numbers, y: Numbers) -> go.Figure:
    """Sequences of three images `[E, 3, S, S]`, one a row, with the labels that they carry.

    `signs` = ±1 is the label of the first image of each sequence, `y` = ±1 that of the third,
    which the network must find.

    >>> figure = sequences(np.zeros((1, 3, 2, 2)), [1], [-1])
    >>> [note.text for note in figure.layout.annotations]
    ['+', '−', '? (answer −)']
    """
    images, signs, y = (np.asarray(values) for values in (images, signs, y))
    titles = [
        title
        for first, answer in zip(signs, y, strict=True)
        for title in (_sign(first), _sign(-first), f"? (answer {_sign(answer)})")
    ]
    figure = make_subplots(
        len(images), 3, subplot_titles=titles, horizontal_spacing=0.05, vertical_spacing=0.08
    )
    for row, sequence in enumerate(images, start=1):
        for col, image in enumerate(sequence, start=1):
            figure.add_heatmap(
                row=row,
                col=col,
                z=image,
                colorscale=[[0, rgba(ACCENT, 0.0)], [1, rgba(ACCENT)]],
                showscale=False,
                hoverinfo="skip",
            )
    frame = {"showticklabels": False, "showgrid": False, "zeroline": False, "ticks": ""}
    figure.update_xaxes(showline=True, mirror=True, constrain="domain", **frame)
    figure.update_yaxes(showline=True, mirror=True, autorange="reversed", **frame)
    figure.update_layout(height=60 + 120 * len(images), margin={"t": 40, "b": 20})
    spoken = "; ".join(
        f"{_sign(first)}, {_sign(-first)}, and an image of the class of {_sign(answer)}"
        for first, answer in zip(signs, y, strict=True)
    )
    return named(figure, f"Sequences of three images, labelled {spoken}.")


def order_parameter_maps(
    matrices: Mapping[str, Numbers], labels: Sequence[str], block: int
) -> go.Figure:
    """Order parameters `{name: [Π, Π]}` side by side, with lines around blocks of paths.

    Each is drawn relative to its own largest entry. `block` paths share their first head. One
    matrix alone has all `labels` on its axes, several have only the first heads.

    >>> figure = order_parameter_maps({"theory": np.diag([2.0, 1.0])}, ["1,1", "1,2"], 1)
    >>> figure.data[0].z.tolist()
    [[1.0, 0.0], [0.0, 0.5]]
    """
    figure = make_subplots(
        1,
        len(matrices),
        shared_yaxes=True,
        subplot_titles=list(matrices),
        horizontal_spacing=0.1 / (len(matrices) + 1),
    )
    spoken = []
    for col, (name, U) in enumerate(matrices.items(), start=1):
        U = np.asarray(U)
        bar = BAR | {"title": {"text": "of the<br>largest"}} if col == len(matrices) else None
        figure.add_trace(_map(U, labels, np.abs(U).max(), bar), row=1, col=col)
        _grid(figure, len(U), block, row=1, col=col)
        i, j = np.unravel_index(np.argmax(np.abs(U)), U.shape)
        spoken.append(f"{name}: largest {U[i, j]:.2f}, at paths {labels[i]} and {labels[j]}")
    alone = len(matrices) == 1
    ticks = np.arange(len(labels)) if alone else np.arange(0, len(labels), block) + (block - 1) / 2
    texts = list(labels) if alone else [labels[i].split(",")[0] for i in range(0, len(U), block)]
    frame = {"showgrid": False, "zeroline": False, "tickvals": ticks, "ticktext": texts}
    title = "path" if alone else "first head h₁"
    figure.update_xaxes(title=title, tickangle=-90 if alone else 0, constrain="domain", **frame)
    figure.update_xaxes(matches="x")
    figure.update_yaxes(autorange="reversed", constrain="domain", **frame)
    figure.update_yaxes(col=1, title=title, scaleanchor="x")
    figure.update_layout(height=370 if alone else 360, margin={"t": 50})
    words = "; ".join(spoken).replace("<br>", " ").replace("-", "−")
    return named(figure, f"Order parameters as maps. {words}.")


def fading(solutions: Mapping[str, Numbers], labels: Sequence[str], block: int) -> list[go.Figure]:
    """For each width of `{N: U [Π, Π]}` a map of U, and below it the mean diagonal at all widths.

    The maps are relative to the largest entry of all. `block` paths share their first head.

    >>> one, two = fading({"10": np.eye(2) * 3, "∞": np.eye(2)}, ["1", "2"], 1)
    >>> one.data[1].y.tolist(), two.data[2].y, two.data[0].z.round(2).tolist()
    ([3.0, 1.0], (1.0,), [[0.33, 0.0], [0.0, 0.33]])
    """
    matrices = {name: np.asarray(U, float) for name, U in solutions.items()}
    largest = max(np.abs(U).max() for U in matrices.values())
    means = np.array([np.trace(U) / len(U) for U in matrices.values()]).round(4)
    drawn = []
    for (name, U), mean in zip(matrices.items(), means, strict=True):
        figure = make_subplots(2, 1, row_heights=[0.7, 0.3], vertical_spacing=0.16)
        bar = BAR | {"len": 0.65, "y": 0.68, "title": {"text": "of the<br>largest"}}
        figure.add_trace(_map(U, labels, largest, bar), row=1, col=1)
        _grid(figure, len(U), block, row=1, col=1)
        figure.add_scatter(
            row=2, col=1, x=list(matrices), y=means, mode="lines+markers",
            line={"color": rgba(NEUTRAL), "width": 2}, showlegend=False,
            hovertemplate="N = %{x}: %{y:.2f}<extra></extra>",
        )  # fmt: skip
        figure.add_scatter(
            row=2, col=1, x=[name], y=[float(mean)], mode="markers", showlegend=False,
            marker={"color": rgba(ACCENT), "size": 13}, hoverinfo="skip",
        )  # fmt: skip
        ticks = np.arange(0, len(U), block) + (block - 1) / 2
        heads = [labels[i].split(",")[0] for i in range(0, len(U), block)]
        frame = {"showgrid": False, "zeroline": False, "tickvals": ticks, "ticktext": heads}
        figure.update_xaxes(row=1, title="first head h₁", constrain="domain", **frame)
        figure.update_yaxes(row=1, title="first head h₁", autorange="reversed", **frame)
        figure.update_yaxes(row=1, scaleanchor="x", constrain="domain")
        figure.update_xaxes(row=2, title="width N", type="category")
        figure.update_yaxes(row=2, title="mean of U<sup>ππ</sup>", rangemode="tozero")
        figure.update_layout(height=440, margin={"t": 30})
        away = np.abs(U - np.diag(np.diag(U))).max()
        words = f"Order parameter at N = {name}: mean diagonal {mean:.2f}, largest entry off it "
        drawn.append(named(figure, f"{words}{away:.2f}."))
    return drawn


def samples_and_theory(
    widths: Sequence[int],
    accuracy: Numbers,
    gp: float,
    sampled: tuple[int, float],
    U: Numbers,
    samples: Numbers,
    mcse: Numbers,
) -> go.Figure:
    """Exact samples beside the theory of the same draw: accuracy `[W]` above, entries of U below.

    `sampled` is the width and the accuracy of the samples, `U [Π, Π]` the theory's order parameter
    there, `samples [Π, Π]` their mean with its Monte Carlo standard errors `mcse [Π, Π]`.

    >>> U, error = np.eye(2), np.full((2, 2), 0.1)
    >>> figure = samples_and_theory([10, 99], [0.8, 0.7], 0.6, (10, 0.81), U, U, error)
    >>> figure.data[1].x, figure.data[2].error_y.array.tolist()
    (('10',), [0.1])
    """
    U, samples, mcse = (np.asarray(each, float) for each in (U, samples, mcse))
    across = [f"{width:,}" for width in widths] + ["∞ (GP)"]
    titles = ["accuracy in distribution", "entries of U at the width of the samples"]
    figure = make_subplots(2, 1, row_heights=[0.38, 0.62], vertical_spacing=0.2,
                           subplot_titles=titles)  # fmt: skip
    figure.add_scatter(
        row=1, col=1, x=across, y=np.round([*np.asarray(accuracy), gp], 4), name="theory",
        mode="lines+markers", line={"color": rgba(ACCENT), "width": 2.5}, marker={"size": 7},
    )  # fmt: skip
    figure.add_scatter(
        row=1, col=1, x=[f"{sampled[0]:,}"], y=[round(sampled[1], 4)], name="exact samples",
        mode="markers",
        marker={"color": rgba(OPPOSITE), "size": 13, "symbol": "diamond-open", "line_width": 2.5},
    )  # fmt: skip
    above = np.triu_indices(len(U), 1)
    kinds = (("off the diagonal", above, "circle", ACCENT),
             ("diagonal", np.diag_indices(len(U)), "square", OPPOSITE))  # fmt: skip
    for name, pick, symbol, rgb in kinds:
        figure.add_scatter(
            row=2, col=1, x=U[pick].round(4), y=samples[pick].round(4), name=name, mode="markers",
            error_y={"array": mcse[pick].round(4), "thickness": 1, "width": 0},
            marker={"color": rgba(rgb, 0.7), "size": 7, "symbol": symbol},
        )  # fmt: skip
    reach = [float(min(U.min(), samples.min())), float(max(U.max(), samples.max()))]
    figure.add_scatter(
        row=2, col=1, x=reach, y=reach, name="equal", mode="lines",
        line={"color": rgba(NEUTRAL), "dash": "dash", "width": 1.5},
    )  # fmt: skip
    figure.update_xaxes(row=1, title="width N", type="category", tickangle=-45)
    figure.update_yaxes(row=1, title="accuracy")
    figure.update_xaxes(row=2, title="theory")
    figure.update_yaxes(row=2, title="exact samples")
    figure.update_layout(legend={**ABOVE, "y": 1.06}, height=490, margin={"t": 90})
    off = np.abs(samples - U)[above]
    words = f"At N = {sampled[0]} exact samples have accuracy {sampled[1]:.3f}, the theory of the "
    words += f"same draw {np.asarray(accuracy)[list(widths).index(sampled[0])]:.3f}. "
    return named(
        figure, f"{words}Entries of U off the diagonal differ by {off.mean():.2f} on average."
    )


def _map(U: np.ndarray, labels: Sequence[str], largest: float, bar: dict | None) -> go.Heatmap:
    """Entries relative to the `largest`; blue is positive, orange negative."""
    return go.Heatmap(
        z=(U / largest).round(4), zmin=-1, zmax=1, colorscale=signed(1.0),
        showscale=bar is not None, colorbar=bar,
        customdata=[
            [f"paths {a} and {b}: {u:.3f}" for b, u in zip(labels, row, strict=True)]
            for a, row in zip(labels, U, strict=True)
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip


def _grid(figure: go.Figure, count: int, block: int, *, row: int, col: int) -> None:
    """Lines around blocks of paths."""
    for edge in range(block, count, block):
        line = {"color": rgba(NEUTRAL), "width": 1}
        figure.add_hline(edge - 0.5, line=line, row=row, col=col)
        figure.add_vline(edge - 0.5, line=line, row=row, col=col)


def _sign(label) -> str:
    return "+" if label > 0 else "−"
