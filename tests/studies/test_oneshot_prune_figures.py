"""Pictures of pruning many networks: whose heads are gone, and what every rule misses."""

import numpy as np
import pytest

from book.studies.oneshot import prune_figures

RNG = np.random.default_rng(0)
ORDERS = {"seed 1": [(1, 2), (2, 1)], "seed 2": [(2, 1), (1, 1)], "seed 3": [(1, 1), (2, 2)]}
CURVES = {name: RNG.uniform(0.5, 0.9, (3, 3)) for name in ("letters", "digits")}


@pytest.mark.parametrize("count", [0, 1, 2])
def test_every_network_loses_its_own_heads(count, fits_the_page):
    figure = prune_figures.networks_without(ORDERS, (2, 2), CURVES, count)
    mean = CURVES["digits"][:, count].mean()
    fits_the_page(figure, ["3 networks", f"without {count} heads", f"digits {mean:.3f}"])
    heads = figure.data[0]
    gone = {
        (row, head)
        for row, head, symbol in zip(heads.y, heads.x, heads.marker.symbol, strict=True)
        if symbol == "x"
    }
    place = {(1, 1): 0, (1, 2): 1, (2, 1): 2, (2, 2): 3}
    assert gone == {
        (-row, place[head]) for row, order in enumerate(ORDERS.values()) for head in order[:count]
    }


def test_means_are_over_networks_and_the_thin_lines_are_of_the_first_test():
    figure = prune_figures.networks_without(ORDERS, (2, 2), CURVES, 1)
    _, *thin, letters, digits = figure.data
    np.testing.assert_allclose([line.y for line in thin], CURVES["letters"], atol=1e-4)
    np.testing.assert_allclose(letters.y, CURVES["letters"].mean(axis=0), atol=1e-4)
    np.testing.assert_allclose(digits.y, CURVES["digits"].mean(axis=0), atol=1e-4)
    assert [size == 13 for size in letters.marker.size] == [False, True, False]


def test_rules_by_number_of_heads_gone(fits_the_page):
    names, stops = ("score", "random", "size"), [(1, 6), (2, 6), (4, 6), (3, 9)]
    regrets = {
        heads: {name: RNG.uniform(0, 0.2, (networks, 4)) for name in names}
        for heads, networks in ((6, 6), (9, 2))
    }
    figure = prune_figures.rules_apart(regrets, stops, active=1)
    fits_the_page(figure, ["score", "random", "size", "6 networks"])
    labels = [step.label for step in figure.layout.sliders[0].steps]
    assert labels == ["1 of 6", "2 of 6", "4 of 6", "3 of 9"]
    shown = [[values[:, gone - 1] for values in regrets[heads].values()] for gone, heads in stops]
    for expected, frame in zip(shown, figure.frames, strict=True):
        means = [100 * values.mean() for values in expected]
        np.testing.assert_allclose(frame.data[1].x, means, atol=1e-3)
    # one scale for all stops, else a button would move the axis and not the dots
    ranges = {tuple(frame.layout.xaxis.range) for frame in figure.frames}
    largest = max(values.max() for stop in shown for values in stop)
    assert len(ranges) == 1 and ranges.pop()[1] > 100 * largest


def test_one_network_is_enough_and_none_is_said(fits_the_page):
    none = {"score": np.zeros(0), "size": np.zeros(0)}
    one = prune_figures.rules_apart({2: {"score": [[0.01, 0.02]]}, 4: none}, [(1, 2), (1, 4)])
    fits_the_page(one, ["1 networks"])
    assert [step.label for step in one.layout.sliders[0].steps] == ["1 of 2"]
    empty = prune_figures.rules_apart({4: none}, [(1, 4)])
    fits_the_page(empty, ["No network"])
