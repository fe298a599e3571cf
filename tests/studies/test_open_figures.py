"""The figures of what was left open: data, words and bars."""

import numpy as np
import pytest

from book.studies.open import figures as pictures

U = np.arange(36.0).reshape(6, 6) - 10
DRAWN = {
    "factor": pictures.factor({"plain": (2, 0), "a skip": (6, 2)}),
    "depth": pictures.against_depth(
        [2, 4], {"skips": [[0.9, 0.8], [0.7, 0.9]], "GP, no skips": [[0.6, 0.6], [0.5, 0.5]]}
    ),
    "shares": pictures.shares([0.25, 0.5, 0.25], [0.1, 0.3, 0.6]),
    "outputs": pictures.outputs(U, ["good", "denoising"], ["A", "B", "C"]),
    "errors": pictures.errors(
        [10, 50], {"ReLU": ([0.2, 0.15], [0.02, 0.01]), "linear": ([0.1, 0.02], [0.01, 0.0])}, 0.1
    ),
}
SAID = {
    "factor": ["plain: 2 rows, the first 0 fixed, 3 free", "6 rows, the first 2 fixed, 18 free"],
    "depth": ["skips 0.850 at L = 2, 0.800 at L = 4", "GP, no skips 0.600"],
    "shares": ["0 to 2", "GP limit 25%, 50%, 25%", "theory 10%, 30%, 60%"],
    "outputs": ["2 paths and 3 outputs", "good: A -10.0, B -3.0, C 4.0"],
    "errors": ["ReLU 20.0% at 10, 15.0% at 50", "Rule 10%"],
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_fits_the_page_and_says_what_it_shows(name, fits_the_page):
    fits_the_page(DRAWN[name], SAID[name])


def test_a_skip_fixes_rows_and_nothing_else():
    plain, skip = (np.asarray(trace.z) for trace in DRAWN["factor"].data[:2])
    np.testing.assert_array_equal(plain, [[2, 0], [1, 2]])
    np.testing.assert_array_equal(skip[:2], 3 * np.eye(6)[:2])
    np.testing.assert_array_equal(np.diag(skip)[2:], 2)
    assert np.all(skip[np.triu_indices(6, 1)] == 0) and np.all(skip[2:, :2] == 1)


def test_lines_are_means_and_every_task_is_a_dot():
    line, dots, dotted, _ = DRAWN["depth"].data
    np.testing.assert_allclose(line.y, [0.85, 0.8])
    np.testing.assert_allclose(dots.x, [2, 2, 4, 4])
    np.testing.assert_allclose(dots.y, [0.9, 0.8, 0.7, 0.9])
    assert (line.line.dash, dotted.line.dash) == ("solid", "dot")
    assert line.line.color != dotted.line.color


def test_blocks_of_paths_are_apart_and_colours_are_around_zero():
    figure = DRAWN["outputs"]
    np.testing.assert_array_equal(figure.data[0].z, U)
    assert figure.data[0].zmax == -figure.data[0].zmin == 25
    assert [shape.y0 for shape in figure.layout.shapes] == [2.5, 0]
    np.testing.assert_allclose(figure.layout.xaxis.tickvals, [1, 4])
    assert figure.data[0].customdata[0][4] == "good → A, denoising → B"


def test_errors_have_bars_and_the_rule():
    relu, linear = DRAWN["errors"].data
    np.testing.assert_allclose(relu.error_y.array, [0.02, 0.01])
    (rule,) = DRAWN["errors"].layout.shapes
    assert rule.y0 == rule.y1 == 0.1 and relu.marker.symbol != linear.marker.symbol
