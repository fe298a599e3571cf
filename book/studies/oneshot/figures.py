"""Pictures of the one-shot image task: sequences, accuracies, order parameters of many paths."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike
from plotly.subplots import make_subplots

from attnpaths.figures.style import ABOVE, ACCENT, NEUTRAL, OPPOSITE, named, rgba, signed

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
    figure.update_layout(height=60 + 190 * len(images), margin={"t": 40, "b": 20})
    spoken = "; ".join(
        f"{_sign(first)}, {_sign(-first)}, and an image of the class of {_sign(answer)}"
        for first, answer in zip(signs, y, strict=True)
    )
    return named(figure, f"Sequences of three images, labelled {spoken}.")


def accuracy_by_source(
    widths: Numbers,
    theory: Mapping[str, tuple[Numbers, Numbers]],
    limits: Mapping[str, tuple[float, float]],
    trained: Mapping[str, float] | None = None,
    samples: Mapping[str, tuple[Numbers, Numbers, Numbers]] | None = None,
) -> go.Figure:
    """Accuracy against N, one panel for each source of test images.

    `theory` maps a source to mean and standard error `[W]`, `limits` to those of the GP,
    `trained` to the accuracy of the network trained by gradient descent, and `samples` to
    widths, accuracies and standard errors of exact finite-width samples.

    >>> figure = accuracy_by_source([10, 99], {"letters": ([0.9, 0.8], [0.1, 0.1])},
    ...                             {"letters": (0.7, 0.1)})
    >>> [trace.name for trace in figure.data]
    ['theory', 'GP limit', 'GP limit ± standard error']
    """
    widths, trained, samples = np.asarray(widths), trained or {}, samples or {}
    figure = make_subplots(
        len(theory), 1, shared_xaxes=True, subplot_titles=list(theory), vertical_spacing=0.09
    )
    ends = [widths.min(), widths.max()]
    spoken = []
    for row, (name, (mean, error)) in enumerate(theory.items(), start=1):
        mean, error = np.asarray(mean), np.asarray(error)
        level, spread = limits[name]
        where = {"row": row, "col": 1, "showlegend": row == 1}
        figure.add_scatter(
            **where,
            x=widths,
            y=mean.round(4),
            error_y={"array": error.round(4), "thickness": 1.5},
            name="theory",
            legendgroup="theory",
            mode="lines+markers",
            line={"color": rgba(ACCENT), "width": 2.5},
            marker={"symbol": "x", "size": 8},
        )
        figure.add_scatter(
            **where,
            x=ends,
            y=[level, level],
            name="GP limit",
            legendgroup="GP limit",
            mode="lines",
            line={"color": rgba(OPPOSITE), "width": 2},
        )
        figure.add_scatter(
            **(where | {"showlegend": False}),
            x=[*ends, *ends[::-1]],
            y=[level - spread] * 2 + [level + spread] * 2,
            name="GP limit ± standard error",
            legendgroup="GP limit",
            fill="toself",
            fillcolor=rgba(OPPOSITE, 0.2),
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
        )
        words = f"{name}: theory {mean[0]:.3f} at N = {widths[0]:g}, GP limit {level:.3f}"
        if name in samples:
            at, values, errors = samples[name]
            figure.add_scatter(
                **where,
                x=at,
                y=values,
                error_y={"array": errors, "thickness": 1.5},
                name="exact samples",
                legendgroup="exact samples",
                mode="markers",
                marker={"color": rgba(NEUTRAL), "size": 10},
            )
            words += f", exact samples {values[0]:.3f} at N = {at[0]:g}"
        if name in trained:
            figure.add_scatter(
                **where,
                x=ends,
                y=[trained[name]] * 2,
                name="gradient descent",
                legendgroup="gradient descent",
                mode="lines",
                line={"color": rgba(NEUTRAL), "width": 2, "dash": "dash"},
            )
            words += f", gradient descent {trained[name]:.3f}"
        spoken.append(words)
    figure.update_xaxes(type="log", dtick=1)
    figure.update_xaxes(row=len(theory), title="width N")
    figure.update_yaxes(title="test accuracy")
    figure.update_layout(
        height=110 + 230 * len(theory),
        legend={**ABOVE, "y": 1 + 0.1 / len(theory)},
        margin={"t": 80},
    )
    return named(figure, f"Test accuracy against width. {'; '.join(spoken)}.")


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
        figure.add_heatmap(
            row=1,
            col=col,
            z=(U / np.abs(U).max()).round(4),
            zmin=-1,
            zmax=1,
            colorscale=signed(1.0),
            showscale=False,
            customdata=[
                [f"paths {a} and {b}: {u:.3f}" for b, u in zip(labels, row, strict=True)]
                for a, row in zip(labels, U, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
        for edge in range(block, len(U), block):
            line = {"color": rgba(NEUTRAL), "width": 1}
            figure.add_hline(edge - 0.5, line=line, row=1, col=col)
            figure.add_vline(edge - 0.5, line=line, row=1, col=col)
        i, j = np.unravel_index(np.argmax(np.abs(U)), U.shape)
        spoken.append(f"{name}: largest {U[i, j]:.2f}, at paths {labels[i]} and {labels[j]}")
    alone = len(matrices) == 1
    ticks = np.arange(len(labels)) if alone else np.arange(0, len(labels), block) + (block - 1) / 2
    texts = list(labels) if alone else [labels[i].split(",")[0] for i in range(0, len(U), block)]
    frame = {"showgrid": False, "zeroline": False, "tickvals": ticks, "ticktext": texts}
    title = "path" if alone else "first head h₁"
    figure.update_xaxes(title=title, tickangle=-90 if alone else 0, constrain="domain", **frame)
    figure.update_yaxes(autorange="reversed", constrain="domain", **frame)
    figure.update_yaxes(col=1, title=title)
    if alone:
        figure.update_yaxes(scaleanchor="x")
    figure.update_layout(height=480 if alone else 320, margin={"t": 50})
    words = "; ".join(spoken).replace("<br>", " ").replace("-", "−")
    return named(figure, f"Order parameters as maps. {words}.")


def entries_against(reference: Numbers, others: Mapping[str, Numbers], title: str) -> go.Figure:
    """Entries off the diagonal of order parameters `{name: [Π, Π]}`, against a `reference [Π, Π]`.

    All are relative to the largest entry of their matrix.

    >>> figure = entries_against(np.ones((2, 2)), {"sampled": -np.ones((2, 2))}, "theory")
    >>> figure.data[0].x.tolist(), figure.data[0].y.tolist()
    ([1.0], [-1.0])
    """
    reference = np.asarray(reference)
    pair = np.triu_indices(len(reference), k=1)
    across = (reference / np.abs(reference).max())[pair]
    figure = go.Figure()
    spoken = []
    for (name, U), rgb, symbol in zip(
        others.items(), (ACCENT, OPPOSITE, NEUTRAL), ("circle", "diamond", "square"), strict=False
    ):
        U = np.asarray(U)
        up = (U / np.abs(U).max())[pair]
        figure.add_scatter(
            x=across.round(4),
            y=up.round(4),
            name=name,
            mode="markers",
            marker={"color": rgba(rgb, 0.7), "size": 7, "symbol": symbol},
        )
        spoken.append(f"{name}: same sign in {np.mean(np.sign(up) == np.sign(across)):.0%}")
    reach = [float(across.min()), float(across.max())]
    figure.add_scatter(
        x=reach,
        y=reach,
        name="equal",
        mode="lines",
        line={"color": rgba(NEUTRAL), "dash": "dash", "width": 1.5},
    )
    figure.update_xaxes(title=f"{title}, relative to its largest entry")
    figure.update_yaxes(title="the other, likewise")
    figure.update_layout(legend=ABOVE, height=440)
    return named(
        figure,
        f"Off-diagonal entries of order parameters against those of {title}. {'; '.join(spoken)}.",
    )


def best_temperatures(widths: Numbers, curves: Mapping[str, Numbers], limit: float) -> go.Figure:
    """The temperature of the best accuracy, `{name: [W]}`, against N; `limit` is that of the GP.

    >>> best_temperatures([10, 99], {"here": [0.5, 0.1]}, 0.075).data[1].y
    (0.075, 0.075)
    """
    widths = np.asarray(widths)
    figure = go.Figure()
    styles = zip((ACCENT, NEUTRAL), ("circle", "x"), ("solid", "dash"), strict=True)
    for (name, values), (rgb, symbol, dash) in zip(curves.items(), styles, strict=False):
        figure.add_scatter(
            x=widths,
            y=np.asarray(values),
            name=name,
            mode="lines+markers",
            line={"color": rgba(rgb), "width": 2.5, "dash": dash, "shape": "hvh"},
            marker={"size": 9, "symbol": symbol},
        )
    figure.add_scatter(
        x=[widths.min(), widths.max()],
        y=[limit, limit],
        name="GP limit",
        mode="lines",
        line={"color": rgba(OPPOSITE), "width": 2},
    )
    figure.update_xaxes(title="width N", type="log", dtick=1)
    ticks = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]
    figure.update_yaxes(title="best temperature 𝒯", type="log", tickvals=ticks)
    figure.update_layout(legend=ABOVE, height=400)
    spoken = "; ".join(
        f"{name} from {values[0]:g} at N = {widths[0]:g} to {values[-1]:g} at N = {widths[-1]:g}"
        for name, values in curves.items()
    )
    return named(figure, f"Best temperature against width: {spoken}; GP limit {limit:g}.")


def accuracy_map(widths: Numbers, temperatures: Numbers, accuracy: Numbers) -> go.Figure:
    """Accuracy `[W, K]` over width and temperature; crosses mark the best of each width.

    >>> figure = accuracy_map([10, 99], [0.1, 1], [[0.5, 0.6], [0.8, 0.7]])
    >>> figure.data[1].y
    ('1', '0.1')
    """
    accuracy = np.asarray(accuracy)
    across = [f"{width:g}" for width in widths]
    up = [f"{temperature:g}" for temperature in temperatures]
    best = accuracy.argmax(axis=1)
    figure = go.Figure()
    figure.add_heatmap(
        x=across,
        y=up,
        z=accuracy.T.round(4),
        colorscale=[[0, rgba(ACCENT, 0.0)], [1, rgba(ACCENT)]],
        colorbar={"title": "accuracy", "thickness": 12},
        hovertemplate="N = %{x}, 𝒯 = %{y}: %{z:.3f}<extra></extra>",
    )
    figure.add_scatter(
        x=across,
        y=[up[k] for k in best],
        mode="markers",
        marker={"symbol": "x", "size": 10, "color": rgba(OPPOSITE)},
        name="best",
        hoverinfo="skip",
    )
    figure.update_xaxes(title="width N", type="category")
    figure.update_yaxes(title="temperature 𝒯", type="category")
    figure.update_layout(height=430, showlegend=False)
    spoken = "; ".join(
        f"N = {n}: {accuracy[i, best[i]]:.3f} at {up[best[i]]}" for i, n in enumerate(across)
    )
    return named(figure, f"Accuracy over width and temperature. Best temperature, {spoken}.")


def validation_curves(curves: Mapping[str, tuple[Numbers, Numbers]]) -> go.Figure:
    """Accuracy on validation classes during gradient descent, `{name: (steps [K], accuracy [K])}`.

    >>> validation_curves({"L = 2": ([0, 9], [0.5, 0.8])}).data[0].y.tolist()
    [0.5, 0.8]
    """
    figure = go.Figure()
    spoken = []
    for (name, (steps, accuracy)), rgb in zip(
        curves.items(), (ACCENT, OPPOSITE, NEUTRAL), strict=False
    ):
        accuracy = np.asarray(accuracy)
        figure.add_scatter(
            x=np.asarray(steps),
            y=accuracy,
            name=name,
            mode="lines",
            line={"color": rgba(rgb), "width": 2},
        )
        spoken.append(f"{name}: best {accuracy.max():.3f}")
    figure.update_xaxes(title="training step")
    figure.update_yaxes(title="validation accuracy")
    figure.update_layout(legend=ABOVE, height=380)
    return named(figure, f"Validation accuracy during training. {'; '.join(spoken)}.")


def _sign(label) -> str:
    return "+" if label > 0 else "−"
