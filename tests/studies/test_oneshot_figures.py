"""Figures of the one-shot task: they say what they show, and fit the page."""

import numpy as np
import pytest

from attnpaths import figures
from book.studies.oneshot import figures as oneshot

U = np.array([[2.0, -0.5], [-0.5, 1.0]])


FIGURES = {
    "sequences": (
        lambda: oneshot.sequences(np.zeros((2, 3, 4, 4)), [1, -1], [1, 1]),
        ["labelled +, −, and an image of the class of +; −, +, and an image of the class of +"],
    ),
    "maps": (
        lambda: oneshot.order_parameter_maps({"theory": -U, "two<br>lines": U}, ["1,1", "2,1"], 1),
        ["theory: largest −2.00, at paths 1,1 and 1,1; two lines: largest 2.00"],
    ),
    "fading": (
        lambda: oneshot.fading({"10": U, "∞": np.eye(2)}, ["1,1", "2,1"], 1)[0],
        ["at N = 10: mean diagonal 1.50, largest entry off it 0.50"],
    ),
    "samples": (
        lambda: oneshot.samples_and_theory(
            [10, 99], [0.8, 0.7], 0.6, (10, 0.79), U, U + 0.1, np.full((2, 2), 0.05)
        ),
        ["accuracy 0.790", "same draw 0.800", "differ by 0.10 on average"],
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_fits_the_page(name, fits_the_page):
    make, words = FIGURES[name]
    fits_the_page(make(), words)


def test_maps_side_by_side_name_first_heads_and_alone_all_paths():
    names = ["1,1", "1,2", "2,1", "2,2"]
    U = np.arange(16.0).reshape(4, 4)
    alone = oneshot.order_parameter_maps({"theory": U}, names, 2)
    assert list(alone.layout.xaxis.ticktext) == names
    both = oneshot.order_parameter_maps({"theory": U, "samples": -U}, names, 2)
    assert list(both.layout.xaxis2.ticktext) == ["1", "2"]
    assert list(both.layout.xaxis2.tickvals) == [0.5, 2.5]
    assert both.data[1].customdata[1][2] == "paths 1,2 and 2,1: -6.000"
    # squares at any width of the page
    assert both.layout.yaxis.scaleanchor == "x" and both.layout.xaxis2.matches == "x"


def test_maps_of_all_widths_share_their_scale_and_mark_their_width():
    wide = np.eye(2)
    narrow, limit = oneshot.fading({"10": 4 * wide, "∞": wide}, ["1", "2"], 1)
    assert narrow.data[0].z.max() == 1 and limit.data[0].z.max() == 0.25
    assert narrow.data[2].x == ("10",) and limit.data[2].x == ("∞",)
    turned = figures.with_slider({"10": narrow, "∞": limit}, "width N")
    assert [frame.data[2].y for frame in turned.frames] == [(4.0,), (1.0,)]


def test_samples_stand_beside_the_theory_of_their_width():
    error = np.array([[0.1, 0.2], [0.2, 0.3]])
    figure = oneshot.samples_and_theory([10, 99], [0.8, 0.7], 0.6, (99, 0.7), U, U, error)
    theory, dot, off, diagonal, line = figure.data
    assert list(theory.y) == [0.8, 0.7, 0.6] and dot.x == (theory.x[1],)
    assert list(off.error_y.array) == [0.2] and list(diagonal.error_y.array) == [0.1, 0.3]
    assert line.x == line.y
