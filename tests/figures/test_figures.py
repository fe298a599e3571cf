"""The figures: what they show, what they say to those who cannot see it, and their colours."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest

from attnpaths import figures
from attnpaths.figures.style import ACCENT, NEUTRAL, OPPOSITE

ROOT = Path(__file__).resolve().parents[2]
NAMES = list(figures.PATH_COLOURS)
RNG = np.random.default_rng(0)
U = np.array(
    [[13.37, 0.0, -5.4, -0.34], [0.0, 0.55, 0, 0], [-5.4, 0, 6.75, 0.02], [-0.34, 0, 0.02, 0.34]]
)
OMEGA = RNG.dirichlet(np.ones(5), size=5).T
REACH = RNG.dirichlet(np.ones(7), size=4)
DRAWN = {
    "accuracy": figures.accuracy_against_width(
        np.array([10, 100]), np.array([0.964, 0.911]), {"GP, all paths": 0.826}
    ),
    "order parameters": figures.order_parameters({"N = 10": U, "GP limit": np.eye(4)}, NAMES),
    "chain": figures.chain(np.array([1, 1, -1, -1, 1]), RNG.normal(size=(5, 6))),
    "attention": figures.attention_maps({"good": OMEGA, "uniform": np.full((5, 5), 0.2)}),
    "paths": figures.path_tokens(REACH, NAMES),
    "one path": figures.one_path(OMEGA, REACH[0][:5], "denoising"),
    "count": figures.path_count(range(1, 5), [2, 3]),
}
# words that must be in the accessible name: numbers of the data, not only its kind
SAID = {
    "accuracy": ["0.964 at N = 10", "0.911 at N = 100", "GP, all paths 0.826"],
    "order parameters": ["N = 10: good 13.37", "denoising 6.75", "GP limit: good 1.00"],
    "chain": ["5 hidden states", "flips 2 times", "6 noisy features"],
    "attention": [f"good, largest weight {OMEGA.max():.2f}", "uniform, largest weight 0.20"],
    "paths": [f"good mostly on token {REACH[0].argmax()}, with {REACH[0].max():.2f}"],
    "one path": ["The denoising path", f"token {(OMEGA @ REACH[0][:5]).argmax()} arrives"],
    "count": ["H = 3: 81 paths, 12 heads"],
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_fits_the_page_and_says_what_it_shows(name, fits_the_page):
    fits_the_page(DRAWN[name], SAID[name])


def test_accuracy_and_level_lines():
    theory, gp = DRAWN["accuracy"].data
    assert list(theory.x) == [10, 100] and list(theory.y) == [0.964, 0.911]
    assert list(gp.y) == [0.826, 0.826] and list(gp.x) == [10, 100]
    assert DRAWN["accuracy"].layout.xaxis.type == "log"


def test_every_entry_of_the_order_parameter_is_written_out():
    figure = DRAWN["order parameters"]
    np.testing.assert_array_equal(figure.data[0].z, U)
    np.testing.assert_array_equal(figure.data[1].z, np.eye(4))
    # a colour is zero where U is, whatever the largest entry
    assert [(trace.zmin, trace.zmax) for trace in figure.data] == [(-13.37, 13.37), (-1, 1)]
    titles, written = figure.layout.annotations[:2], figure.layout.annotations[2:]
    assert [title.text for title in titles] == ["N = 10", "GP limit"]
    expected = ["13.4", "0.0", "−5.4", "−0.3", "0.0", "0.6"]
    assert [entry.text for entry in written][:6] == expected
    assert (written[2].x, written[2].y) == ("denoising", "good")
    assert figure.layout.yaxis.autorange == "reversed"


def test_zero_has_no_colour_on_either_side():
    scale = DRAWN["order parameters"].data[0].colorscale
    middle = [colour for at, colour in scale if at == 0.5]
    assert len(middle) == 2 and all(colour.endswith(", 0)") for colour in middle)


def test_a_chain_is_drawn_over_its_tokens():
    states, tokens = DRAWN["chain"].data
    assert list(states.y) == [1, 1, -1, -1, 1] and list(states.x) == [1, 2, 3, 4, 5]
    assert tokens.z.shape == (6, 5) and list(tokens.x) == [1, 2, 3, 4, 5]
    assert tokens.zmin == -tokens.zmax


def test_attention_has_keys_down_and_queries_across():
    figure = DRAWN["attention"]
    np.testing.assert_array_equal(figure.data[0].z, OMEGA)
    np.testing.assert_allclose(figure.data[0].z.sum(axis=0), 1)
    assert figure.layout.yaxis.autorange == "reversed"
    assert {(trace.zmin, trace.zmax) for trace in figure.data} == {(0, 1)}


def test_paths_keep_their_colours():
    bars = DRAWN["paths"].data
    assert [bar.name for bar in bars] == NAMES
    assert [bar.marker.color for bar in bars] == list(figures.PATH_COLOURS.values())
    np.testing.assert_array_equal([bar.y for bar in bars], REACH)
    other = figures.path_tokens(np.ones((1, 1)), ["(1,3)"])
    assert other.data[0].marker.color == "rgba(128, 136, 144, 1)"


def test_paths_multiply_and_heads_add():
    paths, heads = DRAWN["count"].data[:2]
    assert list(paths.y) == [2, 4, 8, 16] and list(heads.y) == [2, 4, 6, 8]


def test_the_task_names_the_paths_that_have_colours(paper):
    assert list(paper.path_names) == NAMES


def linear(colour):
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def luminance(colour):
    return linear(colour) @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize(
    "colour",
    [
        *figures.PATH_COLOURS.values(),
        *("#" + bytes(c).hex() for c in (ACCENT, OPPOSITE, NEUTRAL)),
    ],
)
@pytest.mark.parametrize("page", ["#ffffff", "#14181e"])
def test_colours_are_seen_on_light_and_on_dark(colour, page):
    dark, light = sorted([luminance(colour), luminance(page)])
    assert (light + 0.05) / (dark + 0.05) >= 3


def lab(rgb):
    """CIE L*a*b* of linear sRGB, whose distances are differences that one sees."""
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    x, y, z = np.cbrt(to_xyz @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


# what is left of linear sRGB without one kind of cone: Machado, Oliveira and Fernandes (2009)
VISION = {
    "all cones": np.eye(3),
    "no red cones": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "no green cones": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "no blue cones": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}


@pytest.mark.parametrize("kind", VISION)
def test_paths_are_told_apart_with_any_colour_vision(kind):
    seen = [lab(VISION[kind] @ linear(colour)) for colour in figures.PATH_COLOURS.values()]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 20


@pytest.mark.parametrize("page", sorted((ROOT / "book").glob("*.md")), ids=lambda page: page.stem)
def test_drawings_in_the_pages_use_the_same_colours(page):
    used = set(re.findall(r'="(#[0-9a-fA-F]{6})"', page.read_text("utf-8")))
    ours = {"#" + bytes(colour).hex() for colour in (ACCENT, OPPOSITE, NEUTRAL)}
    assert used <= ours | set(figures.PATH_COLOURS.values())


def test_a_slider_turns_one_figure_into_others():
    shown = {name: figures.one_path(OMEGA, REACH[i][:5], name) for i, name in enumerate(NAMES)}
    figure = figures.with_slider(shown, "path", active=2)
    assert figure.data == shown["denoising"].data
    slider = figure.layout.sliders[0]
    assert slider.active == 2 and slider.currentvalue.prefix == "path: "
    assert [step.label for step in slider.steps] == [frame.name for frame in figure.frames] == NAMES
    for frame, name in zip(figure.frames, NAMES, strict=True):
        assert frame.layout.meta == shown[name].layout.meta
        assert frame.data[1].marker.color == figures.PATH_COLOURS[name]
    # the template is long, and the same for all
    assert all(
        "template" not in frame["layout"] for frame in json.loads(figure.to_json())["frames"]
    )


@pytest.mark.parametrize(
    ("shown", "active", "said"),
    [
        ({"a": go.Figure(go.Bar(y=[1])), "b": go.Figure(go.Scatter(y=[1]))}, 0, "same traces"),
        ({"a": go.Figure()}, 1, "active must be one of the 1 figures; got 1"),
    ],
)
def test_a_slider_needs_figures_of_one_kind(shown, active, said):
    with pytest.raises(ValueError, match=said):
        figures.with_slider(shown, "kind", active)
