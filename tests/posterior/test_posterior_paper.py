"""The paper's task: the defaults converge, and find what the authors' sampler found."""

import functools

import numpy as np
import pytest

from attnpaths import posterior, theory
from attnpaths.tasks import markov


@functools.cache
def sampled(width):
    task = markov.paper_task()
    xi = task.network.features(task.train.x)
    result = posterior.sample_order_parameter(
        xi, task.train.y, heads=(2, 2), width=width, temperature=0.01, seed=0, progress=False
    )
    return task, result


@pytest.mark.parametrize("width", [10, 100])
def test_the_defaults_converge(width):
    _, result = sampled(width)
    assert np.max(result.rhat) < 1.01
    assert result.divergences.sum() == 0
    assert result.doubts == ()
    assert np.min(result.ess_bulk) > 1000


def test_the_order_parameter_is_that_of_the_authors_sampler(reference):
    _, result = sampled(10)
    facts = reference("sampler")
    theirs = np.array(facts["U"])
    # their standard error is not known; at best their draws are independent
    error = np.std(np.asarray(result.draws), axis=(0, 1)) / np.sqrt(facts["draws"])
    assert np.all(np.abs(result.U - theirs) < 4 * np.hypot(error, result.mcse))
    assert abs(result.U[0, 0] - 14.89) < 4 * np.hypot(result.mcse[0, 0], 0.05)
    assert abs(result.U[0, 2] + 5.95) < 4 * np.hypot(result.mcse[0, 2], 0.03)


@pytest.mark.parametrize("width", [10, 100])
def test_the_saddle_point_differs_and_comes_closer_with_width(width):
    _, result = sampled(width)
    saddle = theory.solve(
        result.xi, result.y, heads=(2, 2), width=width, temperature=result.temperature
    )
    apart = np.abs(result.U - saddle.U)[0, 0] / saddle.U[0, 0]
    assert 0.05 < apart < 0.2 if width == 10 else apart < 0.05
    assert apart * saddle.U[0, 0] > 4 * result.mcse[0, 0]


def test_the_predictor_is_as_accurate_as_that_of_the_authors_sampler(reference):
    task, result = sampled(10)
    prediction = result.thin(20).predict(task.network.features(task.test.x))
    accuracy, error = prediction.accuracy(task.test.y), prediction.accuracy_mcse(task.test.y)
    assert 0 < error < 0.01
    # 300 draws of theirs, so that their error is like ours
    assert abs(accuracy - reference("sampler")["accuracy"]) < 4 * error * np.sqrt(2)
