"""Figures of the one-shot task and of pruning: they say what they show, and fit the page."""

import numpy as np
import pytest

from attnpaths import figures
from attnpaths.figures import pruning
from book.studies.oneshot import figures as oneshot

U = np.array([[2.0, -0.5], [-0.5, 1.0]])


def three_panels():
    return oneshot.accuracy_by_source(
        [10, 100],
        {"letters": ([0.9, 0.8], [0.01, 0.01]), "digits": ([0.7, 0.7], [0.01, 0.02])},
        {"letters": (0.75, 0.01), "digits": (0.7, 0.01)},
        {"letters": 0.95},
        {"letters": ([10], [0.89], [0.005])},
    )


FIGURES = {
    "sequences": (
        lambda: oneshot.sequences(np.zeros((2, 3, 4, 4)), [1, -1], [1, 1]),
        ["labelled +, −, and an image of the class of +; −, +, and an image of the class of +"],
    ),
    "accuracy": (
        three_panels,
        ["letters: theory 0.900 at N = 10, GP limit 0.750", "samples 0.890", "descent 0.950"],
    ),
    "maps": (
        lambda: oneshot.order_parameter_maps({"theory": -U, "two<br>lines": U}, ["1,1", "2,1"], 1),
        ["theory: largest −2.00, at paths 1,1 and 1,1; two lines: largest 2.00"],
    ),
    "entries": (
        lambda: oneshot.entries_against(U, {"sampled": 3 * U}, "theory"),
        ["against those of theory", "sampled: same sign in 100%"],
    ),
    "temperatures": (
        lambda: oneshot.best_temperatures([10, 99], {"here": [0.5, 0.1]}, 0.05),
        ["here from 0.5 at N = 10 to 0.1 at N = 99", "GP limit 0.05"],
    ),
    "map": (
        lambda: oneshot.accuracy_map([10, 99], [0.1, 1.0], [[0.5, 0.6], [0.8, 0.7]]),
        ["N = 10: 0.600 at 1", "N = 99: 0.800 at 0.1"],
    ),
    "validation": (
        lambda: oneshot.validation_curves({"L = 2": ([0, 9], [0.5, 0.8])}),
        ["L = 2: best 0.800"],
    ),
    "scores": (
        lambda: pruning.scores_and_drops(["1.1", "1.2"], [2, 1], [0.2, 0], [0.01, 0.01]),
        ["Lowest scores: 1.2 (score 0.50)", "largest drop 0.200, of head 1.1"],
    ),
    "heads": (
        lambda: pruning.pruned_heads(
            [(1, 2)], (2, 1), {"letters": [0.9, 0.8]}, 1, {"parameters": [8, 6]}
        ),
        ["Heads pruned: 1.2", "letters 0.800", "Saved: parameters 25%"],
    ),
    "orders": (
        lambda: pruning.cumulative({"score": ([0.9, 0.8], None), "random": ([0.9, 0.6], [0, 0.1])}),
        ["score 0.900, 0.800; random 0.900, 0.600"],
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_fits_the_page(name, fits_the_page):
    make, words = FIGURES[name]
    fits_the_page(make(), words)


def test_a_slider_prunes_one_head_after_another():
    curves = {"letters": [0.9, 0.8]}
    steps = {f"{n}": pruning.pruned_heads([(1, 2)], (2, 1), curves, n) for n in (0, 1)}
    figure = figures.with_slider(steps, "pruned heads")
    symbols = [frame.data[0].marker.symbol for frame in figure.frames]
    assert symbols == [("square",) * 3, ("square", "x", "square")]


def test_each_source_has_its_own_panel():
    figure = three_panels()
    panels = {trace.name: [] for trace in figure.data}
    for trace in figure.data:
        panels[trace.name].append(trace.yaxis)
    assert panels["theory"] == ["y", "y2"]
    assert panels["exact samples"] == panels["gradient descent"] == ["y"]


def test_maps_side_by_side_name_first_heads_and_alone_all_paths():
    names = ["1,1", "1,2", "2,1", "2,2"]
    U = np.arange(16.0).reshape(4, 4)
    alone = oneshot.order_parameter_maps({"theory": U}, names, 2)
    assert list(alone.layout.xaxis.ticktext) == names
    both = oneshot.order_parameter_maps({"theory": U, "samples": -U}, names, 2)
    assert list(both.layout.xaxis2.ticktext) == ["1", "2"]
    assert list(both.layout.xaxis2.tickvals) == [0.5, 2.5]
    assert both.data[1].customdata[1][2] == "paths 1,2 and 2,1: -6.000"
