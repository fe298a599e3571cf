"""The figures of one's own network: heads, and pairs of paths."""

import numpy as np
import pytest

from attnpaths.figures import analysis

NAMES = ["1.1 → 2.1", "1.1", "skip"]
U = np.array([[5.0, -2.5, 0.1], [-2.5, 3.0, 0.2], [0.1, 0.2, 0.4]])
DRAWN = {
    "matrix": analysis.path_matrix(U, NAMES),
    "heads": analysis.head_map({(3, 1): 2.0, (3, 2): 1.0, (4, 1): 0.5}),
}
SAID = {
    "matrix": [
        "3 paths",
        "Strongest path 1.1 → 2.1 with 5.00, weakest skip with 0.40",
        "is -2.50, of 1.1 → 2.1 and 1.1",
    ],
    "heads": ["3 heads of 2 layers", "Largest: head 3.1; lowest: head 4.1, with 0.25 of it"],
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_fits_the_page_and_says_what_it_shows(name, fits_the_page):
    fits_the_page(DRAWN[name], SAID[name])


def test_a_matrix_of_paths_has_zero_in_the_middle():
    (heat,) = DRAWN["matrix"].data
    np.testing.assert_array_equal(heat.z, U)
    assert (heat.zmin, heat.zmax) == (-5.0, 5.0) and list(heat.x) == list(heat.y) == NAMES
    assert DRAWN["matrix"].layout.yaxis.autorange == "reversed"


def test_layers_may_have_different_numbers_of_heads():
    (heat,) = DRAWN["heads"].data
    np.testing.assert_array_equal(heat.z, [[1.0, 0.5], [0.25, np.nan]])
    assert list(heat.y) == ["3", "4"]
