"""The study of where the theory breaks: whole, precise enough, and made again in part."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnpaths import Problem, posterior, theory
from book.studies import engine as results
from book.studies.limits import run as limits

RULE = 0.1
TABLES = {
    "temperature, P < ΠD": (len(limits.TEMPERATURES), len(limits.SEEDS)),
    "temperature, P > ΠD": (len(limits.TEMPERATURES), len(limits.SEEDS)),
    "correlation": (len(limits.CORRELATIONS), len(limits.SEEDS)),
    "signal": (len(limits.SIGNALS), len(limits.SEEDS)),
    "widths": (len(limits.LAYERS), len(limits.SEEDS)),
    "grown": (len(limits.GROWN), 1),
} | {f"map, N = {N}": (len(limits.LOADS), len(limits.SEEDS)) for N in limits.WIDTHS}


@functools.cache
def parts():
    return results.read("limits")["parts"]


def same(now, then, keys=("U", "f")):
    """The same draws, on whatever processor: far closer than the Monte Carlo error."""
    for key in keys:
        error = then[f"{key}_mcse"]
        assert np.all(np.abs(np.subtract(now[key], then[key])) < 0.2 * np.asarray(error) + 1e-4)


def test_the_file_has_every_part_and_is_small():
    assert parts().keys() == limits.parts().keys()
    assert results.file("limits").stat().st_size < 60_000
    origins = results.read("limits")["provenance"].values()
    commands = {"python -m book.studies.limits.run", "python -m attnpaths.results.limits"}
    assert {origin["command"] for origin in origins} <= commands


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_one_number_for_every_setting_and_seed(name):
    for key, values in parts()[name].items():
        assert np.shape(values) == TABLES[name], key
        assert np.all(np.asarray(values) >= 0)


@pytest.mark.parametrize("name", [name for name in TABLES if name not in ("widths", "grown")])
def test_monte_carlo_errors_are_small_beside_the_rule(name):
    held = {key: np.asarray(values) for key, values in parts()[name].items()}
    for key in ("U", "f"):
        noise = held[f"{key}_mcse"]
        assert noise.max() < 0.07 and np.median(noise) < 0.03
    # the worst, at N = 6, still has some 180 effective draws
    assert held["efficiency"].min() > 0.03


def test_the_map_falls_with_the_width():
    for key in ("U", "f"):
        table = np.array([parts()[f"map, N = {N}"][key] for N in limits.WIDTHS]).mean(axis=2)
        assert np.all(table[0] > table[-1])


def test_a_cell_made_now_is_that_of_the_file():
    then = {key: values[2][0] for key, values in parts()["map, N = 12"].items()}
    now = {key: values[0][0] for key, values in limits.of_map(12, (1,), (0,)).items()}
    same(now, then)
    assert now["accuracy"] == pytest.approx(then["accuracy"], abs=0.011)
    assert now.keys() == then.keys()


@pytest.mark.parametrize(
    ("name", "make", "setting", "index"),
    [
        ("temperature, P < ΠD", functools.partial(limits.of_temperature, 16), 1e-3, 3),
        ("temperature, P > ΠD", functools.partial(limits.of_temperature, 4), 1.0, 6),
        ("correlation", limits.of_correlation, 0.9, 4),
        ("signal", limits.of_signal, 0.0, 0),
    ],
)
def test_a_point_of_a_sweep_made_now_is_that_of_the_file(name, make, setting, index):
    now = make((setting,), (1,))
    then = {key: values[index][1] for key, values in parts()[name].items()}
    same({key: values[0][0] for key, values in now.items()}, then)


def test_widths_made_now_are_those_of_the_file():
    now = limits.of_widths(limits.LAYERS[3:4], (1,))
    then = {key: values[3][1] for key, values in parts()["widths"].items()}
    same({key: values[0][0] for key, values in now.items()}, then, ("own U", "mean U", "weighed f"))


def test_a_network_narrower_than_its_paths_is_sampled_too():
    now = limits.compare(limits.gaussian(0, 32), 2)
    assert now.keys() == parts()["signal"].keys()
    # far from the theory, by more than noise
    assert now["U"] > RULE > 3 * now["U_mcse"] > 0


def test_importance_and_the_library_agree():
    task = limits.gaussian(1, 16)
    U, draws = limits.layered(task.problem, (8, 8, 8))
    mean, error = limits.steady(np.asarray(U).reshape(1, -1, 16), draws)
    run = posterior.sample_order_parameter(
        **task.problem.arguments,
        width=8,
        seed=0,
        chains=2,
        warmup=300,
        samples=600,
        progress=False,
    )
    apart = np.abs(np.ravel(run.U) - mean) / np.hypot(np.ravel(run.mcse), error)
    assert apart.max() < 4


def test_padding_changes_nothing():
    padded = limits.gaussian(3, 12).problem
    xi, y = np.asarray(padded.xi)[:12, :, :6] * np.sqrt(6 / 16), np.asarray(padded.y)[:12]
    assert np.all(np.asarray(padded.xi)[12:] == 0) and np.all(np.asarray(padded.y)[12:] == 0)
    plain = theory.solve(xi, y, heads=(2, 2), width=8, temperature=0.1)
    wanted = theory.solve(**padded.arguments, width=8)
    np.testing.assert_allclose(plain.U, wanted.U, rtol=1e-6)


def test_the_predictor_is_that_of_the_theory():
    task = limits.gaussian(0, 20)
    saddle = theory.solve(**task.problem.arguments, width=8)
    found = limits._predict(task, saddle.U[None, None])[0, 0]
    np.testing.assert_allclose(found, saddle.predict(task.test).mean, rtol=1e-8, atol=1e-10)


def test_tasks_are_what_they_say():
    alike = limits.gaussian(0, 96, correlation=0.8)
    a, b = (alike.test[:, path].ravel() for path in (0, 3))
    assert np.corrcoef(a, b)[0, 1] == pytest.approx(0.8, abs=0.03)
    # without signal no linear function of the inputs knows the label
    plain, none = (limits.gaussian(0, 96, signal=signal) for signal in (1.0, 0.0))
    for task, least, most in ((plain, 0.95, 1.0), (none, 0.3, 0.7)):
        flat = task.test.reshape(len(task.test), -1)
        half = len(flat) // 2
        direction = np.random.default_rng(0).normal(size=48)
        seen = (
            flat.reshape(-1, 4, 48)[half:, 0] - flat.reshape(-1, 4, 48)[half:, 2] / 2
        ) @ direction
        assert least <= np.mean(np.sign(seen) == task.labels[half:]) <= most


@pytest.mark.usefixtures("as_users_see_it")
def test_bad_settings_are_refused_at_once():
    with pytest.raises(ValueError, match="correlation must be between 0 and 1; got 2"):
        limits.gaussian(0, 8, correlation=2)
    with pytest.raises(ValueError, match="at most 96 examples"):
        limits.gaussian(0, 100)
    problem = limits.gaussian(0, 8).problem
    for widths in ((8, 8), (8, 8, 8, 8)):
        with pytest.raises(ValueError, match=r"width must be .* \(N_1, …, N_3\)"):
            limits.saddle(problem, widths)
    with pytest.raises(ValueError, match=r"width\[1\] must be"):
        limits.saddle(problem, (8, 0, 8))


def test_prior_variances_are_those_of_the_theory_too():
    problem = dataclasses.replace(limits.gaussian(2, 32).problem, prior_variance=jnp.array(2.0))
    wanted = theory.solve(**problem.arguments, width=9).U
    np.testing.assert_allclose(limits.saddle(problem, (9, 9, 9)), wanted, rtol=1e-6)


def test_equal_widths_give_the_theory():
    problem = limits.gaussian(2, 32).problem
    wanted = theory.solve(**problem.arguments, width=9).U
    np.testing.assert_allclose(limits.saddle(problem, (9, 9, 9)), wanted, rtol=1e-6)


def test_the_posterior_of_different_widths_is_that_of_networks():
    held = {key: np.asarray(values) for key, values in parts()["networks"].items()}
    apart = np.abs(held["U"] - held["drawn"]) / np.hypot(held["U_mcse"], held["drawn_mcse"])
    assert apart.max() < 4
    again = limits.of_networks(count=4000)
    apart = np.abs(again["U"] - again["drawn"]) / np.hypot(again["U_mcse"], again["drawn_mcse"])
    assert apart.max() < 4.5


def test_effective_widths_answer_weak_data_alike():
    """To first order in 1/N, U moves along each direction as with one width."""
    problem = limits.gaussian(0, 8).problem
    widths = (4000, 1000, 16000)
    U = np.asarray(limits.saddle(problem, widths)) - np.eye(4)
    first, second, last = limits.effective((2, 2), widths)
    one = {N: np.asarray(limits.saddle(problem, (N,) * 3)) - np.eye(4) for N in (first, last)}
    np.testing.assert_allclose(np.trace(U), np.trace(one[last]), rtol=0.01)
    # a tie between paths of different first heads is made at level 1 alone
    np.testing.assert_allclose(U[0, 2], one[first][0, 2], rtol=0.02)
    assert second == pytest.approx(3 / (1 / 4000 + 2 / 1000))


def test_networks_whose_labels_say_nothing_are_those_of_the_prior():
    xi = jax.random.normal(jax.random.key(0), (1, 4, 3))
    problem = Problem.of(xi, np.ones(1), heads=(2, 2), temperature=1e6)
    mean, error = limits.networks(problem, (6, 5, 4), 1, 4000)
    assert np.all(np.abs(mean - np.eye(4)) < 4 * error) and error.max() < 0.05
    # the variance of a path's strength: (1 + 2/N_1)(1 + 2/N_2)(1 + 2/N_3) − 1
    wanted = (1 + 2 / 6) * (1 + 2 / 5) * (1 + 2 / 4) - 1
    np.testing.assert_allclose(4000 * np.diag(error) ** 2, wanted, rtol=0.3)
