"""Figures of many networks show every one of them, and fit the page."""

import numpy as np
import pytest

from book.studies.oneshot import comparisons
from book.studies.verdicts.paired import paired

RNG = np.random.default_rng(0)


def test_effects_show_all_networks_and_the_interval(fits_the_page):
    values = RNG.normal(size=6)
    figure = comparisons.effects({"gain": values, "loss": -values}, "change", margin=(-0.1, 0.1))
    fits_the_page(figure, ["gain", "loss", "6 networks"])
    dots, means = figure.data
    np.testing.assert_allclose(dots.x, np.r_[values, -values], atol=1e-4)
    # no two dots of a row stand at one height
    assert len(set(dots.y[:6])) == 6
    found = paired(values)
    assert means.x[0] == pytest.approx(found.mean, abs=1e-4)
    assert means.error_x.array[0] == pytest.approx(found.high - found.mean, abs=2e-4)
    assert means.error_x.arrayminus[0] == pytest.approx(found.mean - found.low, abs=2e-4)
    kinds = [shape.type for shape in figure.layout.shapes]
    assert kinds == ["line", "rect"]


def test_every_network_is_a_line_against_width(fits_the_page):
    theory, gp = RNG.uniform(0.6, 0.9, (3, 2)), np.array([0.5, 0.6, 0.7])
    panels = {"Omniglot": (theory, gp, [0.8, 0.9, 0.7]), "MNIST": (theory, gp, None)}
    figure = comparisons.against_width([10, 1000], panels)
    fits_the_page(figure, ["Omniglot", "MNIST", "gradient descent 0.800", "3 networks"])
    assert len(figure.data) == 3 + 1 + 1 + 3 + 1
    np.testing.assert_allclose(figure.data[1].y, [*theory[1], gp[1]], atol=1e-4)
    np.testing.assert_allclose(figure.data[-1].y, [*theory.mean(axis=0), gp.mean()], atol=1e-4)


def test_the_authors_run_stands_beside_ours(fits_the_page):
    drops = RNG.uniform(0, 0.2, (6, 8))
    figure = comparisons.one_at_a_time(drops, [0.01] * 8, 0.009)
    fits_the_page(figure, ["6 networks", "the authors'"])
    assert len(figure.data) == 8 and figure.data[-1].error_y.array[0] == 0.009


def test_regrets_are_means_over_networks(fits_the_page):
    curves = {name: RNG.uniform(0, 0.1, (6, 4)) for name in "abcdef"}
    figure = comparisons.regrets(curves)
    fits_the_page(figure, list("abcdef"))
    np.testing.assert_allclose(figure.data[2].y, 100 * curves["c"].mean(axis=0), atol=1e-2)
    # lines of different rules never stand exactly behind each other
    assert len({trace.x[0] for trace in figure.data}) == 6
    styles = {(trace.line.color, trace.line.dash) for trace in figure.data}
    assert len(styles) == 6


def test_training_curves(fits_the_page):
    runs = [([1, 2, 3], [0.6, 0.7, 0.8]), ([1, 2, 3], [0.5, 0.7, 0.75])]
    figure = comparisons.training_curves({"L = 2, H = 4": runs, "L = 3, H = 3": runs[:1]})
    fits_the_page(figure, ["0.750 to 0.800 over 2 networks", "L = 3"])
    assert sum(trace.showlegend for trace in figure.data) == 2


def test_best_temperatures_of_all_networks_beside_the_papers(fits_the_page):
    each = [[0.5, 0.1], [0.25, 0.1]]
    figure = comparisons.temperatures([10, 10_000], each, [0.5, 0.075], [0.1, 0.05])
    fits_the_page(figure, ["2 networks", "0.35 at N = 10", "paper from 0.5 to 0.075"])
    one, two, mean, paper = figure.data
    assert list(two.y) == [0.25, 0.1, 0.05] and not two.showlegend
    np.testing.assert_allclose(mean.y, [np.sqrt(0.125), 0.1, np.sqrt(0.005)], atol=1e-4)
    # the paper says nothing about the limit
    assert list(paper.y) == [0.5, 0.075] and len(paper.x) == 2 and len(one.x) == 3


def test_signs_stand_beside_those_of_renamed_heads(fits_the_page):
    renamed = np.linspace(0.4, 0.6, 101)
    figure = comparisons.signs({"seed 1": (0.7, renamed), "seed 2": (0.45, renamed)})
    fits_the_page(figure, ["seed 1 +20.0", "seed 2 −5.0"])
    chance, own = figure.data
    np.testing.assert_allclose(own.x, [20, -5])
    np.testing.assert_allclose(chance.error_x.array, 9.5)
    np.testing.assert_allclose(chance.error_x.arrayminus, 9.5)
    assert list(own.y) == list(chance.y) == [0, -1]
