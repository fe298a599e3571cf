"""Pictures of the model: a chain, attention maps, and what each path looks at."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jax.typing import ArrayLike
from plotly.subplots import make_subplots

from attnpaths.figures.style import (
    ACCENT,
    BAR,
    NEUTRAL,
    OPPOSITE,
    PATH_COLOURS,
    named,
    rgba,
    signed,
)


def chain(states: ArrayLike, tokens: ArrayLike) -> go.Figure:
    """One hidden Markov chain `[T]` of states ±1, over the features of its tokens `[T, D]`.

    >>> figure = chain(np.array([1, 1, -1]), np.zeros((3, 4)))
    >>> figure.data[0].y.tolist(), figure.data[1].z.shape
    ([1, 1, -1], (4, 3))
    """
    states, tokens = np.asarray(states), np.asarray(tokens)
    steps = np.arange(1, len(states) + 1)
    figure = make_subplots(2, 1, shared_xaxes=True, row_heights=[0.3, 0.7], vertical_spacing=0.06)
    figure.add_scatter(
        row=1,
        col=1,
        x=steps,
        y=states,
        mode="lines+markers",
        line={"color": rgba(NEUTRAL), "width": 1},
        marker={
            "size": 9,
            "color": np.where(states > 0, rgba(ACCENT), rgba(OPPOSITE)),
            "symbol": np.where(states > 0, "circle", "square"),
        },
        hovertemplate="token %{x}<extra></extra>",
    )
    largest = np.abs(tokens).max() or 1
    figure.add_heatmap(
        row=2,
        col=1,
        x=steps,
        z=tokens.T,
        zmin=-largest,
        zmax=largest,
        colorscale=signed(1.0),
        colorbar=BAR | {"len": 0.66, "y": 0, "yanchor": "bottom"},
        hovertemplate="token %{x}, feature %{y}: %{z:.2f}<extra></extra>",
    )
    figure.update_yaxes(row=1, col=1, title="state", tickvals=[-1, 1], ticktext=["−", "+"])
    figure.update_yaxes(row=1, col=1, range=[-1.6, 1.6], zeroline=False)
    figure.update_yaxes(row=2, col=1, title="feature", autorange="reversed", showgrid=False)
    figure.update_xaxes(showgrid=False, range=[0.5, len(states) + 0.5])
    figure.update_xaxes(row=2, col=1, title="token t")
    figure.update_layout(height=430, showlegend=False)
    flips = int(np.sum(states[1:] != states[:-1]))
    return named(
        figure,
        f"A chain of {len(states)} hidden states, plus or minus, which flips {flips} times; below "
        f"it the {tokens.shape[1]} noisy features of each token.",
    )


def attention_maps(maps: Mapping[str, ArrayLike]) -> go.Figure:
    """Attention matrices Ω `[T, T]`, key down and query across, two in a row.

    Names may have two parts, as in "layer 1, head 1: good".

    >>> figure = attention_maps({"head 1": np.eye(3), "head 2": np.ones((3, 3)) / 3})
    >>> len(figure.data), figure.data[0].zmax
    (2, 1)
    """
    columns = min(2, len(maps))
    rows = -(-len(maps) // columns)
    figure = make_subplots(
        rows,
        columns,
        shared_xaxes=True,
        shared_yaxes=True,
        subplot_titles=[name.replace(": ", "<br>") for name in maps],
        horizontal_spacing=0.06,
        vertical_spacing=0.1,
    )
    for i, omega in enumerate(maps.values()):
        figure.add_heatmap(
            row=i // columns + 1,
            col=i % columns + 1,
            z=np.asarray(omega),
            zmin=0,
            zmax=1,
            colorscale=faint(),
            # one for all, which have one scale
            showscale=i == 0,
            colorbar=BAR | {"tickvals": [0, 0.5, 1]},
            hovertemplate="key %{y}, query %{x}: %{z:.3f}<extra></extra>",
        )
    frame = {"showgrid": False, "zeroline": False, "showline": True, "mirror": True}
    figure.update_xaxes(**frame)
    figure.update_yaxes(autorange="reversed", **frame)
    figure.update_xaxes(row=rows, title="query t")
    figure.update_yaxes(col=1, title="key s")
    figure.update_layout(height=100 + 290 * rows, margin={"t": 50})
    spoken = "; ".join(
        f"{name}, largest weight {np.max(omega):.2f}" for name, omega in maps.items()
    )
    return named(figure, f"Attention maps, key by query: {spoken}.")


def path_tokens(weights: ArrayLike, names: Sequence[str]) -> go.Figure:
    """How much of each token reaches the readout along each path: bars from `[Π, T]` weights.

    Each path has a scale of its own, and its colour from `PATH_COLOURS`.

    >>> figure = path_tokens(np.eye(2), ["good", "denoising"])
    >>> figure.data[0].marker.color == PATH_COLOURS["good"]
    True
    """
    weights = np.asarray(weights)
    figure = make_subplots(
        len(names), 1, shared_xaxes=True, subplot_titles=list(names), vertical_spacing=0.09
    )
    for row, (name, heights) in enumerate(zip(names, weights, strict=True), start=1):
        figure.add_bar(
            row=row,
            col=1,
            x=np.arange(len(heights)),
            y=heights,
            name=name,
            marker={"color": PATH_COLOURS.get(name, rgba(NEUTRAL)), "line": {"width": 0}},
            hovertemplate="token %{x}: %{y:.3f}<extra></extra>",
        )
    figure.update_xaxes(showgrid=False)
    figure.update_xaxes(row=len(names), title="token s (0 is the empty first token)")
    figure.update_yaxes(nticks=4, rangemode="tozero")
    figure.update_layout(height=90 + 120 * len(names), showlegend=False, margin={"t": 30})
    spoken = "; ".join(
        f"{name} mostly on token {int(np.argmax(heights))}, with {np.max(heights):.2f}"
        for name, heights in zip(names, weights, strict=True)
    )
    return named(figure, f"Weight of each input token along each path: {spoken}.")


def one_path(first: ArrayLike, last: ArrayLike, name: str) -> go.Figure:
    """What one path of two layers looks at: its first map `[T, T]`, and where it reads it, `[T]`.

    `last` is the column of the second head's map at the token that is read. Below both are the
    weights with which the input tokens arrive, `first @ last`.

    >>> one_path(np.eye(3), np.array([0.2, 0.3, 0.5]), "good").data[2].y.tolist()
    [0.2, 0.3, 0.5]
    """
    first, last = np.asarray(first), np.asarray(last)
    arrived = first @ last
    tokens = np.arange(len(last))
    figure = make_subplots(
        3,
        1,
        subplot_titles=["first head: key by query", "second head: queries it reads", "together"],
        row_heights=[0.56, 0.22, 0.22],
        vertical_spacing=0.12,
    )
    colour = PATH_COLOURS.get(name, rgba(NEUTRAL))
    figure.add_heatmap(
        row=1,
        col=1,
        z=first,
        zmin=0,
        zmax=1,
        colorscale=faint(),
        colorbar=BAR | {"len": 0.5, "y": 1, "yanchor": "top", "tickvals": [0, 0.5, 1]},
        hovertemplate="key %{y}, query %{x}: %{z:.3f}<extra></extra>",
    )
    for row, heights in ((2, last), (3, arrived)):
        figure.add_bar(
            row=row,
            col=1,
            x=tokens,
            y=heights,
            marker={"color": colour, "line": {"width": 0}},
            hovertemplate="token %{x}: %{y:.3f}<extra></extra>",
        )
    figure.update_xaxes(showgrid=False, range=[-0.5, len(tokens) - 0.5])
    figure.update_yaxes(row=1, title="key s", autorange="reversed", showgrid=False)
    figure.update_xaxes(row=1, title="query t")
    figure.update_xaxes(row=3, title="input token s")
    for row in (2, 3):
        figure.update_yaxes(row=row, rangemode="tozero", nticks=4)
    figure.update_layout(height=620, showlegend=False, margin={"t": 40})
    return named(
        figure,
        f"The {name} path. Its second head gives at most {last.max():.2f} to one query; of the "
        f"input, token {int(arrived.argmax())} arrives with the largest weight, "
        f"{arrived.max():.2f}.",
    )


def path_count(layers: Sequence[int], heads: Sequence[int]) -> go.Figure:
    """The number of paths H^L (lines) beside the number of heads H·L (dots), against L `[K]`.

    >>> path_count([1, 2], [3]).data[0].y.tolist()
    [3, 9]
    """
    depth = np.asarray(layers)
    figure = go.Figure()
    for h, rgb in zip(heads, (ACCENT, OPPOSITE, NEUTRAL), strict=False):
        for name, count, dash in (("paths", h**depth, "solid"), ("heads", h * depth, "dot")):
            figure.add_scatter(
                x=depth,
                y=count,
                name=f"{name}, H = {h}",
                mode="lines+markers",
                line={"color": rgba(rgb), "dash": dash},
            )
    figure.update_xaxes(title="layers L", dtick=1)
    figure.update_yaxes(title="number", type="log", dtick=2, exponentformat="power")
    spoken = "; ".join(
        f"H = {h}: {h ** int(depth[-1])} paths, {h * int(depth[-1])} heads" for h in heads
    )
    return named(
        figure, f"Numbers of paths and of heads against depth. At L = {depth[-1]}, {spoken}."
    )


def faint() -> list:
    """A colour scale `[7, 2]` from 0 to 1; opacity √z shows a few per cent beside a one.

    >>> faint()[-1]
    [1.0, 'rgba(31, 119, 190, 1)']
    """
    return [[z, rgba(ACCENT, z**0.5)] for z in (0.0, 0.01, 0.04, 0.1, 0.25, 0.5, 1.0)]
