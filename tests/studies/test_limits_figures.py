"""The figures of where the theory breaks: data, words, contour and error bars."""

import numpy as np
import pytest

from book.studies.limits import figures as limits

ERRORS = np.array([[0.2, 0.1, 0.05], [0.4, 0.2, 0.1]])
BOTH = {"U": ([0.3, 0.08], [0.02, 0.01]), "predictor": ([0.05, 0.02], [0.01, 0.0])}
DRAWN = {
    "map": limits.error_map([4, 8, 16], [1, 2], ERRORS, 0.1, "U"),
    "along": limits.along("temperature", [1e-3, 0.1], BOTH, 0.1),
    "stand-ins": limits.stand_ins(
        ["12 · 12 · 48", "48 · 12 · 12"],
        {"all widths": ([0.1, 0.09], [0.01, 0.01]), "mean": ([0.2, 0.3], [0.01, 0.02])},
    ),
}
SAID = {
    "map": ["theory's U at widths 4, 8, 16", "P/N = 2: 40%, 20%, 10%", "where it is 10%"],
    "along": ["temperature", "U 30.0% at 0.001, 8.0% at 0.1", "Rule 10%"],
    "stand-ins": ["12 · 12 · 48; 48 · 12 · 12", "all widths 10.0%, 9.0%", "mean 20.0%, 30.0%"],
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_fits_the_page_and_says_what_it_shows(name, fits_the_page):
    fits_the_page(DRAWN[name], SAID[name])


def test_cells_surround_their_widths_and_the_contour_goes_through_the_rule():
    cells, line = DRAWN["map"].data
    np.testing.assert_allclose(cells.x, [1.5, 2.5, 3.5, 4.5])
    np.testing.assert_allclose(cells.y, [-0.5, 0.5, 1.5])
    np.testing.assert_allclose(10 ** np.asarray(cells.z) * 0.1, ERRORS, rtol=1e-3)
    assert cells.zmin == -cells.zmax
    assert line.contours.start == line.contours.end == 0
    np.testing.assert_allclose(line.x, [2, 3, 4])
    assert list(DRAWN["map"].layout.xaxis.ticktext) == ["4", "8", "16"]


def test_the_scale_is_written_in_per_cent_of_error():
    bar = DRAWN["map"].data[0].colorbar
    assert list(bar.ticktext) == ["1%", "3%", "10%", "30%", "100%"]
    np.testing.assert_allclose(bar.tickvals[2], 0, atol=1e-12)


def test_lines_have_error_bars_and_the_rule():
    U, f = DRAWN["along"].data
    np.testing.assert_allclose(U.y, [0.3, 0.08])
    np.testing.assert_allclose(f.error_y.array, [0.01, 0.0])
    (rule,) = DRAWN["along"].layout.shapes
    assert rule.y0 == rule.y1 == 0.1
    assert DRAWN["along"].layout.xaxis.type == "log"
    assert limits.along("share", [0, 1], BOTH, 0.1, log=False).layout.xaxis.type is None
    assert (U.line.color, U.marker.symbol) != (f.line.color, f.marker.symbol)


def test_stand_ins_lie_beside_each_other():
    own, mean = DRAWN["stand-ins"].data
    assert np.all(np.abs(np.subtract(own.x, mean.x)) > 0.05)
    np.testing.assert_allclose(np.round(own.x), [0, 1])
    np.testing.assert_allclose(mean.error_y.array, [0.01, 0.02])
    assert own.marker.symbol != mean.marker.symbol
