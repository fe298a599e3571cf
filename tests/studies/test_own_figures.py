"""The figures of one's own network: their data, their words, their colours."""

import numpy as np
import pytest

from attnpaths.figures.style import ACCENT, OPPOSITE, rgba
from book.studies.own import figures as own

SCORES = np.array([[4.0, 2.0, 1.0, 3.0], [1.0, 10.0, 5.0, 2.0]])
DROPS = np.array([[0.2, 0.1, 0.0, -0.01], [0.02, 0.04, 0.06, 0.08]])
LAYERS = [1, 1, 2, 2]
RHO = {"score": np.array([0.8, 0.4, 0.0]), "norm": np.array([0.2, -0.2, 0.6])}
DRAWN = {
    "drops": own.scores_against_drops(SCORES, DROPS, np.full((2, 4), 0.01), LAYERS),
    "correlations": own.by_network(RHO, "rank correlation"),
}
SAID = {
    "drops": ["8 heads of 2 networks", "Scores from 0.10 to 1, drops from -0.010 to 0.200"],
    "correlations": ["score 0.40 ± 0.23, norm 0.20 ± 0.23", "3 networks", "Chance is 0"],
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_fits_the_page_and_says_what_it_shows(name, fits_the_page):
    fits_the_page(DRAWN[name], SAID[name])


def test_scores_are_relative_and_layers_have_their_own_marks():
    first, second = DRAWN["drops"].data
    np.testing.assert_allclose(first.x, [1.0, 0.5, 0.1, 1.0])
    np.testing.assert_allclose(second.x, [0.25, 0.75, 0.5, 0.2])
    np.testing.assert_allclose(second.y, [0.0, -0.01, 0.06, 0.08])
    np.testing.assert_allclose(first.error_y.array, 0.01)
    assert (first.marker.symbol, second.marker.symbol) == ("circle", "square")
    assert first.marker.color == rgba(ACCENT, 0.85) and second.marker.color == rgba(OPPOSITE, 0.85)


def test_the_halves_of_the_scores_are_compared():
    # relative scores 0.1, 0.2, 0.25, 0.5 (of the first network) and 0.5, 0.75, 1, 1
    said = DRAWN["drops"].layout.meta["alt"]
    relative = SCORES / SCORES.max(axis=1, keepdims=True)
    order = np.argsort(relative.ravel())
    low, high = DROPS.ravel()[order[:4]].mean(), DROPS.ravel()[order[4:]].mean()
    assert f"{low:.3f} for the lower half of the scores, {high:.3f} for the upper" in said


def test_rows_have_their_mean_and_its_error():
    dots, mean = DRAWN["correlations"].data
    np.testing.assert_allclose(dots.x, [*RHO["score"], *RHO["norm"]])
    assert list(DRAWN["correlations"].layout.yaxis.ticktext) == ["score", "norm"]
    # beside each other in their row, in the order of their numbers
    np.testing.assert_allclose(np.round(dots.y), [0] * 3 + [-1] * 3)
    for row in (slice(0, 3), slice(3, 6)):
        assert np.all(np.diff(np.asarray(dots.y)[row][np.argsort(dots.x[row])]) > 0.1)
    np.testing.assert_allclose(mean.x, [0.4, 0.2])
    np.testing.assert_allclose(mean.error_x.array, 0.4 / np.sqrt(3), atol=1e-4)
    assert DRAWN["correlations"].layout.shapes[0].x0 == 0
