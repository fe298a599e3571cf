"""What all figures share: colours, names for those who cannot see, and sliders."""

from collections.abc import Mapping

import plotly.graph_objects as go

# The paper's colours, told apart with any kind of colour vision and on any background.
PATH_COLOURS = {
    "good": "#25a777",
    "adversarial (1,2)": "#ee2f2a",
    "denoising": "#1f5ed8",
    "adversarial (2,2)": "#c96ebf",
}
# for what belongs to no path
ACCENT, OPPOSITE, NEUTRAL = (31, 119, 190), (213, 94, 0), (128, 136, 144)
# where a legend takes no width, which a narrow page does not have
ABOVE = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
# a colour bar that leaves the width to the picture
BAR = {"thickness": 10, "outlinewidth": 0, "xpad": 4}


def named(figure: go.Figure, alt: str) -> go.Figure:
    """Say in words what the figure shows."""
    return figure.update_layout(meta={"alt": alt})


def signed(depth: float) -> list:
    """A colour scale around zero, where the page shows through."""
    return [
        [0, rgba(OPPOSITE, depth)],
        [0.5, rgba(OPPOSITE, 0.0)],
        [0.5, rgba(ACCENT, 0.0)],
        [1, rgba(ACCENT, depth)],
    ]


def rgba(rgb: tuple[int, int, int], alpha: float = 1.0) -> str:
    """A colour as Plotly writes it."""
    return f"rgba({', '.join(map(str, rgb))}, {alpha:g})"


def with_slider(figures: Mapping[str, go.Figure], label: str, active: int = 0) -> go.Figure:
    """One figure with a slider that turns it into each of `figures`, by name. Takes no array.

    All must have the same traces in the same order. In a notebook the slider is Plotly's; in
    the book it becomes a native, labelled one. Each setting keeps its own accessible name.

    >>> flat, tall = (named(go.Figure(go.Bar(y=[y])), f"A bar of {y}") for y in (1, 9))
    >>> figure = with_slider({"flat": flat, "tall": tall}, "shape")
    >>> figure.layout.sliders[0].steps[1].label, figure.frames[1].data[0].y
    ('tall', (9,))
    """
    names, shown = list(figures), list(figures.values())
    if not 0 <= active < len(shown):
        raise ValueError(f"active must be one of the {len(shown)} figures; got {active}")
    kinds = {tuple(type(trace).__name__ for trace in figure.data) for figure in shown}
    if len(kinds) != 1:
        raise ValueError(f"the figures must have the same traces; got {sorted(kinds)}")
    whole = go.Figure(shown[active])
    # the template is the same for all, and long
    layouts = [figure.layout.to_plotly_json() | {"template": None} for figure in shown]
    whole.frames = [
        go.Frame(name=name, data=figure.data, layout=layout)
        for name, figure, layout in zip(names, shown, layouts, strict=True)
    ]
    still = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}}
    steps = [{"label": name, "method": "animate", "args": [[name], still]} for name in names]
    whole.update_layout(
        sliders=[{"active": active, "currentvalue": {"prefix": f"{label}: "}, "steps": steps}]
    )
    return whole


def with_choice(figures: Mapping[str, go.Figure], label: str, active: int = 0) -> go.Figure:
    """The same as `with_slider`, for kinds of something, which have no order. Takes no array.

    In the book the stops are buttons; in a notebook they are Plotly's slider.

    >>> flat, tall = (named(go.Figure(go.Bar(y=[y])), f"A bar of {y}") for y in (1, 9))
    >>> with_choice({"flat": flat, "tall": tall}, "shape").layout.sliders[0].name
    'choice'
    """
    whole = with_slider(figures, label, active)
    whole.layout.sliders[0].name = "choice"
    return whole
