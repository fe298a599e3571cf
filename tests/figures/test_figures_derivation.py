"""The figures of the derivation: what they show, and what they say to those who cannot see it."""

import numpy as np
import pytest

from attnpaths.figures.derivation import error_against_width, saddle_point
from attnpaths.figures.style import ACCENT, NEUTRAL, rgba

REAL, IMAGINARY = np.linspace(-0.9, 2, 59), np.linspace(-1, 1, 21)
PLANE = REAL + 1j * IMAGINARY[:, None]
HEIGHT = (PLANE / 1.5 - np.log(1 + PLANE)).real
WIDTHS = [20, 80]
ERRORS = {
    "order parameter": (np.array([0.04, 0.01]), np.array([0.004, 0.001])),
    "mean predictor": (np.array([0.02, 0.005]), np.array([0.002, 0.0005])),
}
DRAWN = {
    "saddle": saddle_point(REAL, IMAGINARY, HEIGHT, at=0.5),
    "error": error_against_width(WIDTHS, ERRORS),
}
SAID = {
    "saddle": ["a saddle at 0.50"],
    "error": ["order parameter: 0.04 at N = 20, 0.01 at N = 80", "mean predictor: 0.02"],
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_fits_the_page_and_says_what_it_shows(name, fits_the_page):
    fits_the_page(DRAWN[name], SAID[name])


def test_heights_are_relative_to_the_saddle():
    heat, lines, path, point = DRAWN["saddle"].data
    z = np.asarray(heat.z)
    row, column = np.abs(IMAGINARY).argmin(), np.abs(REAL - 0.5).argmin()
    assert abs(z[row, column]) < 1e-3
    # a minimum along the real axis, a maximum across it
    assert z[row, column - 5] > 0 < z[row, column + 5]
    assert z[row - 5, column] < 0 > z[row + 5, column]
    assert heat.zmin == -heat.zmax and np.abs(z).max() <= heat.zmax
    np.testing.assert_array_equal(lines.z, z)
    assert list(path.x) == [0.5, 0.5] and list(path.y) == [-1, 1]
    assert list(point.x) == [0.5] and list(point.y) == [0]


def test_errors_with_bars_beside_a_line_that_falls_as_one_over_the_width():
    first, second, guide = DRAWN["error"].data
    for curve, (error, deviation) in zip((first, second), ERRORS.values(), strict=True):
        np.testing.assert_array_equal(curve.y, error)
        np.testing.assert_array_equal(curve.error_y.array, deviation)
        assert curve.line.color == rgba(ACCENT)
    assert first.marker.symbol != second.marker.symbol and first.line.dash != second.line.dash
    np.testing.assert_allclose(np.asarray(guide.y) * WIDTHS, 2 * 0.01 * 80)
    assert guide.line.color == rgba(NEUTRAL)
    layout = DRAWN["error"].layout
    assert layout.xaxis.type == layout.yaxis.type == "log"
    assert list(layout.xaxis.tickvals) == WIDTHS
