"""The picture of pruning: it says what is gone, and fits the page."""

import numpy as np
import pytest

from attnpaths import figures
from attnpaths.figures.pruning import pruned_heads

CURVES = {"letters": [0.9, 0.8], "digits": [0.7, 0.75]}


def test_it_says_what_is_gone_and_fits_the_page(fits_the_page):
    figure = pruned_heads([(1, 2)], (2, 1), CURVES, 1, {"parameters": [8, 6]})
    words = ["Heads pruned: 1.2", "letters 0.800", "digits 0.750", "Saved: parameters 25%"]
    fits_the_page(figure, words)
    assert figure.layout.title.text == "saved: parameters 25%"
    fits_the_page(pruned_heads([(1, 2)], (2, 1), CURVES, 0), ["Heads pruned: none"])


@pytest.mark.parametrize("count", [0, 1])
def test_the_accuracy_that_is_left_has_the_larger_dot(count):
    _, letters, digits = pruned_heads([(1, 2)], (2, 1), CURVES, count).data
    np.testing.assert_allclose([letters.y, digits.y], list(CURVES.values()))
    assert np.argmax(letters.marker.size) == np.argmax(digits.marker.size) == count


def test_a_slider_prunes_one_head_after_another():
    steps = {f"{n}": pruned_heads([(1, 2)], (2, 1), CURVES, n) for n in (0, 1)}
    figure = figures.with_slider(steps, "pruned heads")
    symbols = [frame.data[0].marker.symbol for frame in figure.frames]
    assert symbols == [("square",) * 3, ("square", "x", "square")]
