"""The studies of sampling: complete, consistent with each other, and made again in part."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

from attnpaths import posterior
from attnpaths.posterior import OrderParameter
from book.studies import engine as results
from book.studies import statistics
from book.studies.corrections import run as corrections
from book.studies.sampling import run as sampling


@functools.cache
def parts(name):
    return results.read(name)["parts"]


def in_errors(a, b, key):
    gap = np.abs(np.subtract(a[key], b[key]))
    return np.max(gap / np.hypot(a[f"{key}_mcse"], b[f"{key}_mcse"]))


@pytest.mark.parametrize("study", [sampling, corrections])
def test_the_file_has_every_part_of_the_study(study):
    assert parts(study.__name__.split(".")[-2]).keys() == study.parts().keys()


@pytest.mark.parametrize("name", ["sampling", "corrections"])
def test_the_file_is_small(name):
    assert results.file(name).stat().st_size < 60_000


@pytest.mark.parametrize("kind", ["", "pair "])
def test_both_samplers_agree_at_every_width(kind):
    held = parts("sampling")
    widths = sampling.PAIR_LENGTHS if kind else sampling.WIDTHS
    for N in widths:
        exact, weights = (held[f"{kind}{way}, N = {N}"] for way in ("exact", "weights"))
        assert max(in_errors(exact, weights, key) for key in ("U", "f")) < 4
        assert weights["rhat"] < 1.1


@pytest.mark.parametrize("width", sampling.WIDTHS)
def test_the_exact_runs_converged(width):
    exact = parts("sampling")[f"exact, N = {width}"]
    assert exact["rhat"] < 1.01 and exact["ess"] > 1000
    assert exact["divergences"] == 0 and exact["doubts"] == []


def test_a_run_made_now_agrees_with_the_file(paper):
    result = posterior.sample_order_parameter(
        paper.network.features(paper.train.x),
        paper.train.y,
        heads=(2, 2),
        width=10,
        temperature=sampling.TEMPERATURE,
        seed=5,
        chains=2,
        warmup=300,
        samples=400,
        progress=False,
    )
    now = sampling.compare(result, paper.network.features(paper.test.x), paper.test.y)
    then = parts("sampling")["exact, N = 10"]
    assert max(in_errors(now, then, key) for key in ("U", "f", "U_apart", "f_apart")) < 4
    assert abs(now["accuracy"] - then["accuracy"]) < 0.01
    assert now.keys() == then.keys()


def test_distances_made_now_are_those_of_the_file():
    now = corrections.distances(corrections.gaussian, 256, 32, [1])
    then = parts("corrections")["fixed P, N = 256"]
    for key in ("U", "f"):
        # another processor may round otherwise
        assert abs(now[key][0] - then[key][1]) < 0.1 * then[f"{key}_mcse"][1]
    assert now["efficiency"][0] > 0.5


def test_chains_and_importance_give_the_same_means_with_less_noise():
    problem, _ = corrections.gaussian(0, 32)
    density = OrderParameter(corrections.HEADS, (64,) * 3)
    data, found = density.data(problem), []
    for draws in (
        statistics.chains(density, data, 3, warmup=300, samples=300),
        statistics.importance(density, data, 3, samples=800, freedom=20),
    ):
        U = np.asarray(density.read(jnp.asarray(draws.z), jnp.ones(()))[1])
        U = U.reshape(*U.shape[:2], -1)
        found.append(statistics.steady(U, draws))
        plain = draws.error(U)
        assert np.median(plain / found[-1][1]) > 3
        # control variates change the noise of a mean, not what it is the mean of
        mean = np.average(U, axis=(0, 1), weights=np.broadcast_to(draws.weight[..., None], U.shape))
        assert np.all(np.abs(mean - found[-1][0]) < 4 * np.hypot(plain, found[-1][1]))
    (a, a_error), (b, b_error) = found
    assert np.all(np.abs(a - b) < 4 * np.hypot(a_error, b_error))


def test_control_variates_are_exact_for_a_gaussian():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(4, 100, 2)) @ np.array([[2.0, 0.0], [1.0, 0.5]])
    precision = np.linalg.inv(np.array([[5.0, 0.5], [0.5, 0.25]]))
    draws = statistics.Draws(z, -z @ precision, np.ones((4, 100)), statistics.mcse)
    values = np.stack([z[..., 0] + 3, z[..., 0] * z[..., 1]], axis=-1)
    mean, error = statistics.steady(values, draws)
    np.testing.assert_allclose(mean, [3.0, 0.5], atol=1e-9)
    assert error.max() < 1e-9


def falls(kind, key, widths):
    held = parts("corrections")
    return statistics.slope(widths, [held[f"{kind}, N = {N}"][key] for N in widths])


def test_the_saddle_point_is_off_by_one_over_the_width():
    for key in ("U", "f"):
        power, error = falls("growing P", key, corrections.GROWING)
        assert error < 0.05 and abs(power + 1) < 0.1
        power, error = falls("growing P", key, corrections.GROWING[2:])
        assert abs(power + 1) < 4 * error


def test_at_fixed_examples_the_order_parameter_falls_faster_and_the_predictor_does_not():
    far = corrections.FIXED[-3:]
    assert falls("fixed P", "U", far)[0] < -1.8
    assert -1.05 < falls("fixed P", "f", far)[0] < -0.85
