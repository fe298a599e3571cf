"""The figures of the hidden Markov chain: their data, their words, their colours."""

import numpy as np
import pytest

from attnpaths import figures
from attnpaths.figures.style import ACCENT, NEUTRAL, OPPOSITE, rgba
from book.studies.markov import figures as markov

NAMES = list(figures.PATH_COLOURS)
WIDTHS = np.array([10, 1000])
CURVE = np.array([0.964, 0.834])
SEEDS = np.array([[0.95, 0.84], [0.97, 0.86], [0.96, 0.88]])
U = np.stack([np.diag([13.37, 0.55, 6.75, 0.34]), np.eye(4)])
U[0, 0, 2] = U[0, 2, 0] = -5.4
FRESH_U = np.stack([U - 1, U, U + 1])
STATES = np.array([[1, 1, -1, -1, 1], [1, -1, 1, -1, 1]])
KERNEL = np.array([[9.0, 0.5, 0.1], [0.5, 8.0, 0.2], [0.1, 0.2, 7.0]])
DRAWN = {
    "chains": markov.two_chains(1.1 * STATES, STATES, ["class +1", "class −1"]),
    "accuracy": markov.accuracy_with_seeds(WIDTHS, CURVE, SEEDS, {"GP, all": 0.826}, 0.988),
    "entries": markov.entries_with_seeds(WIDTHS, U, FRESH_U, NAMES),
    "standing": markov.standing({"accuracy": (0.964, SEEDS[:, 0]), "GP": (0.8, SEEDS[:, 1])}),
    "overlaps": markov.overlaps(
        {"N = 10": [0.1, 0.8, 0.3], "GP limit": [0.4, 0.2, 0.1]},
        {"N = 10": SEEDS, "GP limit": SEEDS},
        count=2,
    ),
    "kernels": markov.kernel_maps({"good": KERNEL, "denoising": 2 * KERNEL, "GP": KERNEL}, 1),
    "sides": markov.sides({"good": [0.6, 0.4, 0.3], "less": [0.2, 0.0, -0.1]}, [1, 1, -1]),
    "noise": markov.accuracy_against_noise(
        [0, 5], {"GP, good": [0.98, 0.56], "N = 10": [0.94, 0.95], "GP, all": [0.9, 0.5]}, 0.988
    ),
}
SAID = {
    "chains": ["class +1: 2 flips in 4 steps", "class −1: 4 flips in 4 steps"],
    "accuracy": [
        "At N = 10: authors’ data 0.964, fresh tasks 0.960 ± 0.010",
        "At N = 1000: 0.834, 0.860 ± 0.020",
        "GP, all 0.826",
        "ceiling 0.988",
    ],
    "entries": ["At N = 10: good 13.37, fresh tasks 13.37 ± 1.00", "good × denoising -5.40"],
    "standing": ["3 fresh tasks", "accuracy +0.4", "GP -3.0"],
    "overlaps": ["N = 10: largest 0.80, at component 2", "GP limit: largest 0.40, at component 1"],
    "kernels": ["good from 0.10 to 0.50", "denoising from 0.20 to 1.00"],
    "sides": ["good: means +0.50 in class +1 and +0.30 in class −1", "less: means +0.10"],
    "noise": ["from 0 to 5", "N = 10 from 0.940 to 0.950", "Ceiling 0.988"],
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_fits_the_page_and_says_what_it_shows(name, fits_the_page):
    fits_the_page(DRAWN[name], SAID[name])


def test_hidden_states_are_told_by_colour_and_by_shape():
    above, below = DRAWN["chains"].data
    assert list(below.marker.symbol) == ["circle", "square", "circle", "square", "circle"]
    assert set(above.marker.color) == {rgba(ACCENT), rgba(OPPOSITE)}
    np.testing.assert_allclose(above.y, 1.1 * STATES[0])


def test_error_bars_are_standard_deviations_over_tasks():
    published, fresh, gp, ceiling = DRAWN["accuracy"].data
    np.testing.assert_array_equal(published.y, CURVE)
    np.testing.assert_allclose(fresh.y, SEEDS.mean(axis=0))
    np.testing.assert_allclose(fresh.error_y.array, [0.01, 0.02])
    assert list(gp.y) == [0.826, 0.826] and list(ceiling.y) == [0.988, 0.988]
    assert (published.line.color, fresh.line.color) == (rgba(ACCENT), rgba(NEUTRAL))
    assert gp.line.color == rgba(OPPOSITE)


def test_strengths_have_the_colours_of_their_paths():
    data = DRAWN["entries"].data
    lines, points = data[::2], data[1::2]
    assert [line.name for line in lines] == [*NAMES, "good × denoising"]
    assert [line.line.color for line in lines[:4]] == list(figures.PATH_COLOURS.values())
    np.testing.assert_allclose([line.y[0] for line in lines], [13.37, 0.55, 6.75, 0.34, -5.4])
    np.testing.assert_allclose([point.error_y.array for point in points], 1)
    assert lines[4].line.dash == "dash"


def test_a_standing_is_in_standard_deviations():
    fresh, published = DRAWN["standing"].data
    np.testing.assert_allclose(fresh.x, [-1, 1, 0, -1, 0, 1], atol=0.01)
    np.testing.assert_allclose(published.x, [0.4, -3.0], atol=0.01)
    assert list(published.y) == ["accuracy", "GP"]


def test_overlaps_have_one_row_for_each_kernel():
    narrow, _, gp, fresh = DRAWN["overlaps"].data
    assert list(narrow.x) == [1, 2] and list(narrow.y) == [0.1, 0.8] and list(gp.y) == [0.4, 0.2]
    np.testing.assert_allclose(fresh.y, SEEDS.mean(axis=0))
    assert (narrow.marker.color, gp.marker.color) == (rgba(ACCENT), rgba(OPPOSITE))


def test_the_diagonal_of_a_kernel_does_not_set_its_scale():
    good, denoising, _ = DRAWN["kernels"].data
    assert good.zmin == pytest.approx(0.1) and good.zmax == pytest.approx(0.5)
    assert denoising.zmax == pytest.approx(1.0)
    np.testing.assert_allclose(good.z, KERNEL, rtol=1e-6)
    assert good.z.dtype == np.float32
    assert {shape.x0 for shape in DRAWN["kernels"].layout.shapes} >= {0.5}
    # one bar for all, whose ends the titles give for each
    assert [trace.showscale for trace in DRAWN["kernels"].data] == [True, False, False]
    assert DRAWN["kernels"].layout.annotations[1].text == "denoising: 0.20 to 1.00"


def test_each_class_of_each_path_has_a_row_of_its_own():
    up, down, *_ = DRAWN["sides"].data
    assert list(up.x) == [0.6, 0.4] and list(down.x) == [0.3]
    assert up.marker.color != down.marker.color and up.y != down.y
    assert {shape.x0 for shape in DRAWN["sides"].layout.shapes} == {0}


def test_gaussian_processes_have_a_colour_of_their_own():
    good, narrow, everything, _ = DRAWN["noise"].data
    assert good.line.color == everything.line.color == rgba(OPPOSITE)
    assert narrow.line.color == rgba(ACCENT) and good.line.dash != everything.line.dash
