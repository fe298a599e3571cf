"""The figures of the theory chapter: what they show and say, and their colours."""

import json
import re

import numpy as np
import plotly.graph_objects as go
import pytest

from attnpaths.figures import theory as figures
from attnpaths.figures.style import ACCENT, OPPOSITE, rgba
from book._ext.pages import accessible_name, half_math

GRID = np.linspace(-2, 2, 5)
DENSITY = np.exp(-((GRID[:, None] - 1) ** 2) - GRID[None, :] ** 2)
STEPS = np.linspace(0, 1.5, 4)
MEAN, VARIANCE = np.array([0.2, 0.9, -0.7, -1.4]), np.array([0.04, 0.04, 0.16, 0.01])
Y = np.array([1, 1, -1, -1])
DRAWN = {
    "density": figures.weight_density(GRID, DENSITY, 0.84),
    "trade-off": figures.trade_off([10, 100], [2.68, 0.27], [-0.13, 0.58], 1.53),
    "line": figures.action_along_line(STEPS, 4 * STEPS**2, -6 * STEPS, (-9, 9)),
    "accuracies": figures.accuracies_against_width(
        [10, 100], {"whole": [0.964, 0.911], "weights": [0.96, 0.903], "identity": [0.826, 0.826]}
    ),
    "alignments": figures.alignments({"N = 10": [0.1, 0.2, 0.85], "GP limit": [0.3, 0.2, 0.1]}),
    "predictions": figures.predictions(
        {"N = 10": (MEAN, VARIANCE), "GP limit": (MEAN / 2, VARIANCE)}, Y
    ),
}
# words that must be in the accessible name: numbers of the data, not only its kind
SAID = {
    "density": ["peak is at a = 0.0, v = 1.0", "average f is 0.84"],
    "trade-off": ["entropy cost 2.68 at N = 10", "energy −0.13 at N = 10 and 0.58", "energy 1.53"],
    "line": ["minimum is at 0.50", "entropy is 1.0 and energy −3.0"],
    "accuracies": ["whole 0.964 and 0.911", "identity 0.826 and 0.826"],
    "alignments": ["N = 10, 0.85 at component 3", "GP limit, 0.30 at component 1"],
    "predictions": ["4 test chains", "N = 10: the label is within one standard deviation for 50%"],
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_says_what_it_shows(name):
    figure = json.loads(DRAWN[name].to_json())
    spoken = accessible_name(figure["layout"])
    assert [words for words in SAID[name] if words not in spoken] == []
    assert half_math(figure) == []


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_leaves_ink_and_size_to_the_page(name):
    assert isinstance(DRAWN[name], go.Figure)
    layout = json.loads(DRAWN[name].to_json())["layout"]
    layout.pop("template")
    assert not {"width", "font", "paper_bgcolor", "plot_bgcolor"} & set(layout)
    axes = [value for key, value in layout.items() if re.match("[xy]axis", key)]
    assert not any("tickfont" in axis or "color" in axis for axis in axes)


def test_density_is_relative_to_its_peak_and_has_a_across():
    heat = DRAWN["density"].data[0]
    assert heat.z.max() == 1 and (heat.zmin, heat.zmax) == (0, 1)
    row, column = np.unravel_index(np.argmax(heat.z), heat.z.shape)
    assert (heat.y[row], heat.x[column]) == (1, 0)
    assert DRAWN["density"].layout.yaxis.scaleanchor == "x"


def test_trade_off_has_one_panel_for_each_side_of_the_bargain():
    cost, energy, free, limit = DRAWN["trade-off"].data
    assert list(cost.y) == [2.68, 0.27] and list(energy.y) == [-0.13, 0.58]
    assert (cost.yaxis, energy.yaxis) == (free.yaxis, limit.yaxis) == ("y", "y2")
    assert list(free.y) == [0, 0] and list(limit.y) == [1.53, 1.53]
    assert limit.line.color == rgba(OPPOSITE)


def test_the_sum_is_drawn_with_its_minimum_and_the_gp_limit():
    entropy, energy, total, limit, lowest = DRAWN["line"].data
    np.testing.assert_allclose(total.y, np.add(entropy.y, energy.y))
    assert (limit.x[0], limit.y[0]) == (0, 0) and limit.marker.color == rgba(OPPOSITE)
    assert lowest.y[0] == min(total.y) and lowest.x[0] == 0.5
    assert lowest.marker.color == total.line.color == rgba(ACCENT)
    assert list(DRAWN["line"].layout.yaxis.range) == [-9, 9]


def test_the_theory_and_the_gp_are_told_apart_from_what_is_between():
    lines = [trace.line for trace in DRAWN["accuracies"].data]
    assert lines[0].color == rgba(ACCENT) and lines[-1].color == rgba(OPPOSITE)
    assert lines[1].color not in (rgba(ACCENT), rgba(OPPOSITE)) and lines[1].dash == "dash"
    assert DRAWN["accuracies"].layout.xaxis.type == "log"


def test_components_are_counted_from_one():
    narrow, wide = DRAWN["alignments"].data
    assert list(narrow.x) == list(wide.x) == [1, 2, 3]
    assert (narrow.marker.color, wide.marker.color) == (rgba(ACCENT), rgba(OPPOSITE))


def test_predictions_are_sorted_within_a_class_and_share_an_order():
    labels, narrow, _, wide = DRAWN["predictions"].data
    assert list(labels.y) == [1, 1, -1, -1]
    assert list(narrow.y) == [0.9, 0.2, -0.7, -1.4]
    np.testing.assert_allclose(wide.y, np.array(narrow.y) / 2)
    np.testing.assert_allclose(narrow.error_y.array, [0.2, 0.2, 0.4, 0.1])
    assert (narrow.marker.color, wide.marker.color) == (rgba(ACCENT), rgba(OPPOSITE))


def test_a_single_predictor_is_a_theory():
    _, only = figures.predictions({"N = 10": (MEAN, VARIANCE)}, Y).data
    assert only.marker.color == rgba(ACCENT)
