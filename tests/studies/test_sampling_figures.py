"""The figures of sampling and of its corrections: their data, their words, their error bars."""

import numpy as np
import pytest

from attnpaths.figures import PATH_COLOURS
from book.studies.corrections import figures as corrections
from book.studies.sampling import figures as sampling

NAMES = ["good", "denoising"]
U = np.array([[13.4, -5.4], [-5.4, 6.7]])
DRAWS = np.array([[14.0, 15.0, 16.0], [13.0, 14.0, 15.0]])
DISTANCES = {
    "U": np.array([[0.2, 0.2], [0.1, 0.1], [0.05, 0.05]]),
    "predictor": np.array([[0.04, 0.08], [0.02, 0.04], [0.01, 0.02]]),
}
DRAWN = {
    "trace": sampling.trace({"long": DRAWS, "short": DRAWS[:, :2]}, "U of good", 13.4),
    "walk": sampling.walk(np.stack([DRAWS, -DRAWS], axis=-1), [13.4, -5.4], NAMES, steps=2),
    "accuracy": sampling.against_width(
        [4, 10],
        [0.963, 0.964],
        {"exact": ([4, 10], [0.961, 0.965], [0.001, 0.002]), "authors": ([10], [0.961], [0.003])},
    ),
    "entries": sampling.entries(
        U, {"exact": (U + 0.5, 0.1 * U), "weights": (U - 1, U), "authors": (U, U)}, NAMES
    ),
    "predictors": sampling.predictors(
        [-1.0, 0.5, 1.0], {"exact": ([-1.0, 0.5, 1.3], [0.1, 0.1, 0.2])}
    ),
    "falling": corrections.falling(
        [8, 16, 32], DISTANCES, {"U": (-1.0, 0.02), "predictor": (-1.0, 0.05)}, start=16
    ),
    "trust": corrections.trust(
        [1, 10], {"U": ([0.4, 0.1], [0.02, 0.01]), "predictor": ([0.05, 0.02], [0.01, 0.0])}, 0.1
    ),
    "calibration": corrections.calibration(
        {"size": [20, 18, 22, 20], "tie": [5, 30, 25, 20], "volume": [20, 20, 20, 20]}
    ),
}
SAID = {
    "trace": ["long: means of the chains 15.00, 14.00", "short", "Theory 13.40"],
    "walk": ["good and denoising: 14.50", "theory 13.40 and -5.40"],
    "accuracy": [
        "Theory 0.963, 0.964",
        "order parameter, sampled 0.961 ± 0.001 at N = 4",
        "authors’ code 0.961 ± 0.003 at N = 10",
    ],
    "entries": [
        "good 13.40, denoising 6.70",
        "order parameter, sampled 0.50, weights, sampled 1.00, authors’ code 0.00",
    ],
    "predictors": ["3 test examples", "order parameter, sampled 0.173"],
    "falling": ["N = 8 to 32", "U falls from 0.2 to 0.05, U: N^(−1.00 ± 0.02)"],
    "trust": ["U 40.0% at 1, 10.0% at 10", "The rule is 10%"],
    "calibration": ["in 4 bins", "size: 18 to 22, 0 bins outside", "tie: 5 to 30, 2 bins outside"],
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_fits_the_page_and_says_what_it_shows(name, fits_the_page):
    fits_the_page(DRAWN[name], SAID[name])


def test_every_chain_is_a_line_in_every_run():
    lines = DRAWN["trace"].data
    assert [line.name for line in lines] == ["chain 1", "chain 2"] * 2
    assert [line.showlegend for line in lines] == [True, True, False, False]
    np.testing.assert_array_equal(lines[1].y, DRAWS[1])
    assert len({line.line.color for line in lines}) == 2
    # chains are no paths
    assert not {line.line.color for line in lines} & set(PATH_COLOURS.values())
    assert {shape.y0 for shape in DRAWN["trace"].layout.shapes} == {13.4}


def test_the_walk_follows_the_end_of_one_chain():
    cloud, steps, saddle = DRAWN["walk"].data
    np.testing.assert_array_equal(cloud.x, DRAWS.ravel())
    np.testing.assert_array_equal(steps.x, DRAWS[0, -2:])
    assert (saddle.x, saddle.y) == ((13.4,), (-5.4,))


def test_every_sampled_point_has_its_error_bar():
    theory, exact, apart, authors, _ = DRAWN["accuracy"].data
    assert theory.error_y.array is None and list(theory.y) == [0.963, 0.964]
    np.testing.assert_allclose(exact.error_y.array, [0.001, 0.002])
    np.testing.assert_array_equal(exact.customdata, [4, 10])
    # below, in percentage points
    np.testing.assert_allclose(apart.y, [-0.2, 0.1])
    np.testing.assert_allclose(apart.error_y.array, [0.1, 0.2])
    # beside each other, not on each other
    assert exact.x[1] != authors.x[0] != 10


def test_predictors_are_differences_beside_each_other():
    ways = {way: ([-1.0, 1.3], [0.1, 0.2]) for way in ("exact", "weights")}
    exact, weights = sampling.predictors([-1.0, 1.0], ways).data
    np.testing.assert_allclose(exact.y, [0, 0.3])
    np.testing.assert_allclose(exact.error_y.array, [0.1, 0.2])
    assert exact.x[0] < -1 < weights.x[0] and weights.x[0] - exact.x[0] < 0.05


def test_entries_are_the_diagonal_and_every_pair_once():
    figure = DRAWN["entries"]
    theory, _, exact, apart, weights, _, _, _ = figure.data
    assert list(figure.layout.xaxis2.ticktext) == ["good", "denoising", "good × denoising"]
    np.testing.assert_allclose(theory.y, [13.4, 6.7, -5.4])
    np.testing.assert_allclose(exact.y, np.array([13.4, 6.7, -5.4]) + 0.5)
    np.testing.assert_allclose(weights.error_y.array, [13.4, 6.7, -5.4])
    # below, differences in per cent of the strengths of the two paths
    strengths = [13.4, 6.7, np.sqrt(13.4 * 6.7)]
    np.testing.assert_allclose(apart.y, 50 / np.array(strengths), rtol=1e-3)
    np.testing.assert_allclose(apart.error_y.array[:2], 10, rtol=1e-3)
    assert len({(trace.marker.color, trace.marker.symbol) for trace in figure.data}) == 4
    assert len({trace.x[0] for trace in figure.data}) == 4


def test_points_are_geometric_means_and_lines_have_the_fitted_power():
    U, U_line, f, f_line = DRAWN["falling"].data
    np.testing.assert_allclose(U.y, [0.2, 0.1, 0.05])
    np.testing.assert_allclose(U.error_y.array, 0, atol=1e-12)
    np.testing.assert_allclose(f.y[0], np.sqrt(0.04 * 0.08), rtol=1e-3)
    up, down = f.y[0] + f.error_y.array[0], f.y[0] - f.error_y.arrayminus[0]
    np.testing.assert_allclose(up * down, f.y[0] ** 2, rtol=1e-3)
    # the line begins where the fit does, and goes through the points there
    assert list(U_line.x) == [16, 32]
    np.testing.assert_allclose(U_line.y, [0.1, 0.05], rtol=1e-3)
    np.testing.assert_allclose(f_line.y[0] / f_line.y[1], 2, rtol=1e-3)


def test_the_rule_is_a_line_across():
    (line,) = DRAWN["trust"].layout.shapes
    assert line.y0 == line.y1 == 0.1
    np.testing.assert_allclose(DRAWN["trust"].data[0].error_y.array, [0.02, 0.01])


def test_the_band_of_calibration_is_that_of_a_binomial():
    bands = DRAWN["calibration"].layout.shapes
    assert len(bands) == 3
    # 80 in four bins: 20 ± 2 × 3.9
    assert 11 <= bands[0].y0 <= 13 and 27 <= bands[0].y1 <= 29
