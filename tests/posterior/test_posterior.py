"""What the samplers accept and give: seeds, thinning, predictions, warnings, interruptions."""

import _thread
import dataclasses
import functools
import signal
import threading
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnpaths import Network, kernels, posterior
from attnpaths.posterior import nuts
from attnpaths.posterior.draws import judged

HEADS = (2, 2)
RNG = np.random.default_rng(0)
NETWORK = Network([RNG.normal(size=(2, 3, 3)) for _ in HEADS], readout=-1)
X = RNG.normal(size=(12, 4, 3))
Y = np.sign(X[:, 0, 0])
XI = NETWORK.features(X)
NEW = NETWORK.features(RNG.normal(size=(7, 4, 3)))


def sample(**changes):
    setting = {"heads": HEADS, "width": 6, "temperature": 0.5, "seed": 0, "progress": False}
    return posterior.sample_order_parameter(XI, Y, **setting | changes)


def sample_weights(**changes):
    setting = {"width": 4, "temperature": 0.5, "seed": 0, "warmup": 100, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", posterior.DoubtfulSample)
        return posterior.sample_weights(NETWORK, X, Y, **setting | changes)


@functools.cache
def sampled():
    return sample()


def test_the_seed_decides():
    first, again, other = sampled().draws, sample().draws, sample(seed=1).draws
    np.testing.assert_array_equal(first, again)
    assert np.all(first[:, 0] != other[:, 0])
    chains = first[:, 0, 0, 0]
    assert len(set(chains.tolist())) == len(chains)


def test_thinning_keeps_every_third_draw():
    every = sampled().draws
    third = sample(thinning=3)
    assert third.draws.shape == (4, 333, 4, 4)
    np.testing.assert_array_equal(third.draws, every[:, 2::3][:, :333])
    np.testing.assert_array_equal(sampled().thin(3).draws, third.draws)
    # leapfrogs are those since the draw before
    assert np.mean(third.leapfrogs) > 2 * np.mean(sampled().leapfrogs)
    # steps are of the same size, all but the last one that is left out
    steps = [p.bfmi * np.var(p.energy, axis=1) for p in (third, sampled())]
    np.testing.assert_allclose(*steps, rtol=0.02)


def test_all_weights_have_seeds_and_thinning_too():
    first, again = sample_weights(samples=60), sample_weights(samples=60)
    np.testing.assert_array_equal(first.weights.V0, again.weights.V0)
    third = sample_weights(samples=60, thinning=3)
    np.testing.assert_array_equal(third.weights.V[1], first.weights.V[1][:, 2::3])
    assert third.weights.V0.shape == (4, 20, 4, 3)
    assert third.factors is None
    assert third.draws.dtype == third.weights.a.dtype == jnp.float64


def test_without_data_the_prior_comes_back():
    # labels at a huge temperature say nothing: E[U] = σ^{2(L+1)} I, and the variance of U₁₁ is
    # σ^{4(L+1)} [(1 + 2/N)^{L+1} − 1]
    result = sample(temperature=1e12, prior_variance=1.3)
    scale = 1.3**3
    assert np.all(np.abs(result.U - scale * np.eye(4)) < 4 * result.mcse)
    square = np.square(np.asarray(result.draws)[..., 0, 0] / scale)
    error = judged("mcse", square)
    assert abs(square.mean() - (1 + 2 / 6) ** 3) < 4 * error


def test_the_prediction_obeys_the_law_of_total_variance():
    few = sampled().thin(100)
    prediction = few.predict(NEW)
    means, variances = [], []
    for U in few.draws.reshape(-1, 4, 4):
        own = jnp.diag(kernels.total_kernel(U, NEW))
        given = kernels.predict(
            kernels.total_kernel(U, XI),
            kernels.total_kernel(U, NEW, XI),
            own,
            Y,
            temperature=0.5,
        )
        means.append(given.mean)
        variances.append(given.variance)
    np.testing.assert_allclose(prediction.draws.reshape(-1, 7), means, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(prediction.mean, np.mean(means, axis=0), rtol=1e-9, atol=1e-12)
    total = np.mean(variances, axis=0) + np.var(means, axis=0)
    np.testing.assert_allclose(prediction.variance, total, rtol=1e-9)
    # against networks themselves, none of whose weights are averaged out
    networks = sampled().with_weights(posterior.complete_weights(sampled(), seed=1)).outputs(NEW)
    squares = np.square(np.asarray(networks) - np.asarray(sampled().predict(NEW).mean))
    spread = np.abs(squares.mean((0, 1)) - sampled().predict(NEW).variance)
    assert np.all(spread < 4 * judged("mcse", squares))


def test_accuracy_comes_with_an_error():
    prediction = sampled().predict(NEW)
    right = np.sign(prediction.mean)
    assert prediction.accuracy(right) == 1
    assert prediction.accuracy(-right) == 0
    assert 0 <= prediction.accuracy_mcse(right) < 0.1
    # means that are all but zero are right half of the time, and their error says so
    noise = jnp.asarray(np.random.default_rng(0).normal(size=(4, 1000, 400)))
    blank = posterior.PosteriorPrediction(noise.mean((0, 1)), noise[0, 0], noise[0, 0], noise)
    labels = np.random.default_rng(1).choice([-1, 1], 400)
    np.testing.assert_allclose(blank.accuracy(labels), 0.5, atol=0.08)
    np.testing.assert_allclose(blank.accuracy_mcse(labels), 0.025, rtol=0.5)
    with pytest.raises(ValueError, match="y must hold 7 labels"):
        prediction.accuracy(np.ones(3))
    for accuracy in (prediction.accuracy, prediction.accuracy_mcse):
        with pytest.raises(ValueError, match=r"\+1 or −1; got \[0.0\]; write labels"):
            accuracy(right > 0)


def test_arviz_reads_the_draws_and_agrees_on_them():
    data = sampled().to_arviz()
    import arviz

    first = data.posterior["U"].sel(path="(1,1)", other_path="(2,1)")
    np.testing.assert_array_equal(first, sampled().draws[:, :, 0, 2])
    np.testing.assert_allclose(arviz.bfmi(data), sampled().bfmi, rtol=0.02)
    assert set(data.sample_stats) >= {"lp", "energy", "n_steps", "acceptance_rate", "step_size"}


def autoregressive(rho, shape):
    """x_t = ρ x_{t−1} + noise, of variance one: (1 − ρ)/(1 + ρ) of its draws are effective."""
    noise = np.random.default_rng(0).normal(size=shape)
    result = noise.copy()
    for t in range(1, shape[1]):
        result[:, t] = rho * result[:, t - 1] + np.sqrt(1 - rho**2) * noise[:, t]
    return result


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8, -0.3])
def test_diagnostics_of_chains_whose_memory_is_known(rho):
    shape = (4, 1000, 4, 4)
    result = dataclasses.replace(sampled(), draws=jnp.asarray(autoregressive(rho, shape)))
    effective = shape[0] * shape[1] * (1 - rho) / (1 + rho)
    np.testing.assert_allclose(np.mean(result.ess_bulk), effective, rtol=0.05)
    np.testing.assert_allclose(result.ess_bulk, effective, rtol=0.25)
    np.testing.assert_allclose(np.mean(result.mcse), effective**-0.5, rtol=0.05)
    np.testing.assert_allclose(result.mcse, effective**-0.5, rtol=0.2)
    assert np.all(np.abs(result.rhat - 1) < 0.03)
    # means do err by this much
    means = np.mean(result.draws, axis=(0, 1))
    assert 0.5 < np.std(means) / effective**-0.5 < 1.6
    # a common mean and scale change nothing but the error
    other = dataclasses.replace(result, draws=5 - 3 * result.draws)
    np.testing.assert_allclose(other.rhat, result.rhat, rtol=1e-4)
    np.testing.assert_allclose(other.ess_bulk, result.ess_bulk, rtol=1e-9)
    np.testing.assert_allclose(other.mcse, 3 * result.mcse, rtol=1e-9)


def test_tails_are_judged_by_themselves():
    # signs are independent, sizes are not: the bulk is well known, the tails are not
    shape = (4, 1000, 4, 4)
    sign = np.random.default_rng(1).choice([-1.0, 1.0], size=shape)
    draws = sign * np.exp(autoregressive(0.98, shape))
    result = dataclasses.replace(sampled(), draws=jnp.asarray(draws))
    assert np.all(result.ess_bulk > 3000)
    assert np.all(result.ess_tail < 500)


def test_chains_that_disagree_are_seen():
    rng = np.random.default_rng(0)
    good = rng.normal(size=(4, 500, 2))
    apart = good + np.array([0, 0, 0, 1.0])[:, None, None]
    assert np.all(judged("rhat", good) < 1.01)
    assert np.all(judged("rhat", apart) > 1.05)
    # one chain wider than the others, which means alone do not show
    wide = good * np.array([1, 1, 1, 3.0])[:, None, None]
    assert np.all(judged("rhat", wide) > 1.05)
    walk = np.cumsum(good, axis=1)
    assert np.all(judged("ess", walk, method="bulk") < 50)
    # a chain alone is compared with itself
    assert np.all(judged("rhat", good.reshape(1, 2000, 2)) < 1.01)
    assert np.all(judged("rhat", apart.reshape(1, 2000, 2)) > 1.05)
    still = np.where([True, False], good, 1.0)
    assert np.isnan(judged("rhat", still)).tolist() == [False, True]
    # too few to judge, whichever way they are asked; many chains are no reason to complain
    for how in ("rhat", "ess", "mcse"):
        assert np.all(np.isnan(judged(how, good[:, :3])))
        assert np.all(np.isnan(judged(how, good[:1, :1])))
        assert np.all(np.isfinite(judged(how, good.reshape(400, 5, 2))))


def test_too_few_draws_are_warned_of():
    with pytest.warns(posterior.DoubtfulSample, match="effective draws"):
        result = sample(samples=40, chains=1)
    assert issubclass(posterior.DoubtfulSample, UserWarning)
    assert result.doubts
    with pytest.warns(posterior.DoubtfulSample, match="2 draws per chain are too few to judge"):
        sample(samples=2, chains=1)


def test_every_reason_for_doubt_is_named():
    good = sampled()
    assert good.doubts == ()
    shift = jnp.arange(4.0)[:, None, None, None]
    for words, change in {
        "3 divergent": {"divergences": jnp.array([0, 3, 0, 0])},
        "BFMI is 0.10": {"bfmi": jnp.array([1.0, 0.1, 1.0, 1.0])},
        "R-hat is": {"draws": good.draws + jnp.broadcast_to(shift, good.draws.shape)},
    }.items():
        assert any(words in doubt for doubt in dataclasses.replace(good, **change).doubts)


@pytest.fixture
def interruptible():
    """A shell that starts tests in the background has them ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("phase", ["warm-up", "draws"])
def test_an_interrupted_run_says_how_far_it_came(phase, monkeypatch):
    before = {thread for thread in threading.enumerate() if not thread.daemon}
    advance, calls = nuts._compiled, []

    def interrupting(*arguments):
        begin, go = advance(*arguments)

        def counted(state, data, thinning, count):
            calls.append(count)
            if len(calls) == (4 if phase == "warm-up" else 60):
                _thread.interrupt_main()
                time.sleep(0.2)
            return go(state, data, thinning, count)

        return begin, counted

    monkeypatch.setattr(nuts, "_compiled", interrupting)
    with pytest.raises(KeyboardInterrupt) as caught:
        sample(samples=20000, chains=2)
    stopped = caught.value
    assert isinstance(stopped, posterior.Interrupted)
    assert "nothing was written" in str(stopped)
    if phase == "warm-up":
        assert "of 500 warm-up steps and 0 of 20000 draws" in str(stopped)
        assert stopped.posterior is None
    else:
        assert "interrupted after 500 of 500 warm-up steps" in str(stopped)
        drawn = stopped.posterior.draws.shape[1]
        assert 0 < drawn < 20000 and f"{drawn} of 20000 draws" in str(stopped)
        # what there is, is what a whole run would have begun with
        monkeypatch.undo()
        some = min(drawn, 1000)
        np.testing.assert_array_equal(
            stopped.posterior.draws[:, :some], sample(chains=2).draws[:, :some]
        )
    # the progress bar's monitor, a daemon, may have come
    assert {thread for thread in threading.enumerate() if not thread.daemon} <= before


def test_more_chains_than_cores_take_turns_and_say_so(capsys, monkeypatch):
    monkeypatch.setattr(nuts.os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", posterior.DoubtfulSample)
        result = sample(chains=3, progress=True)
    assert result.at_a_time == 2
    assert "3 chains, 2 at a time" in capsys.readouterr().err


def test_many_examples_and_paths():
    # 600 examples of 16 paths span 48 directions, and no others are factorised
    xi = jax.random.normal(jax.random.key(0), (600, 16, 3))
    y = jnp.sign(xi[:, 0, 0] + xi[:, 1, 1])
    setting = {"heads": (4, 4), "width": 20, "temperature": 0.5, "seed": 0, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", posterior.DoubtfulSample)
        # each of the first steps takes a thousand leapfrogs
        result = posterior.sample_order_parameter(xi, y, chains=1, warmup=10, samples=5, **setting)
    assert result.draws.shape == (1, 5, 16, 16)
    U, new = result.draws[0, -1], xi[:5]
    given = kernels.predict(
        kernels.total_kernel(U, xi),
        kernels.total_kernel(U, new, xi),
        jnp.diag(kernels.total_kernel(U, new)),
        y,
        temperature=0.5,
    )
    np.testing.assert_allclose(result.predict(new).draws[0, -1], given.mean, rtol=1e-7)
    completed = posterior.complete_weights(result, seed=0)
    assert completed.V[0].shape == (1, 5, 4, 20, 20)


BAD = {
    "seed": [(-1, "seed must be a whole number ≥ 0"), (0.5, "seed must be a whole")],
    "chains": [(0, "chains must be a whole number ≥ 1; got 0"), (-2, "chains"), (1.5, "chains")],
    "warmup": [(0, "warmup must be a whole number ≥ 1; got 0"), (-1, "warmup")],
    "samples": [(0, "samples must be a whole number ≥ 1; got 0"), (True, "samples")],
    "thinning": [(0, "thinning must be"), (-1, "thinning must be"), (1001, "at most samples")],
    "width": [(2.5, "width must be a whole number ≥ 1; got 2.5"), (0, "width"), (np.inf, "width")],
    "temperature": [(0, "temperature must be larger than 0"), (np.nan, "temperature")],
    "prior_variance": [(-1, "prior_variance must be larger than 0")],
    "acceptance": [(1.0, "acceptance must be between 0 and 1"), (0, "acceptance must be")],
    "progress": [("yes", "progress must be True or False")],
}
CASES = [(name, value, words) for name, cases in BAD.items() for value, words in cases]


@pytest.mark.parametrize(("name", "value", "words"), CASES)
@pytest.mark.usefixtures("as_users_see_it")
def test_wrong_settings_are_refused(name, value, words, monkeypatch):
    monkeypatch.setattr(nuts, "run", None)  # nothing long has begun
    setting = {"width": 4, "temperature": 0.5, "seed": 0, name: value}
    with pytest.raises(ValueError, match=words):
        posterior.sample_order_parameter(XI, Y, heads=HEADS, **setting)
    with pytest.raises(ValueError, match=words):
        posterior.sample_weights(NETWORK, X, Y, **setting)


@pytest.mark.usefixtures("as_users_see_it")
def test_wrong_data_are_refused(monkeypatch):
    monkeypatch.setattr(nuts, "run", None)
    setting = {"width": 4, "temperature": 0.5, "seed": 0}
    for xi, y, heads, words in [
        (XI, Y[:5], HEADS, "y must hold one label per example of xi, 12; got 5"),
        (XI, Y, (3, 2), "xi has 4 paths but heads=\\(3, 2\\) makes 6"),
        (XI, Y * np.nan, HEADS, "y must be finite; 12 of its 12"),
        (np.asarray(XI)[0], Y, HEADS, "xi must have 3 axes"),
        (XI, Y, (), "heads must be a list with one entry per layer"),
    ]:
        with pytest.raises(ValueError, match=words):
            posterior.sample_order_parameter(xi, y, heads=heads, **setting)
    for network, x, y, words in [
        ("network", X, Y, "network must be an attnpaths.Network; got str"),
        (NETWORK, X[..., :2], Y, "x has tokens of dimension 2"),
        (NETWORK, X, Y[:5], "y must hold one label per example of x, 12; got 5"),
        (NETWORK, X * np.inf, Y, "x must be finite"),
    ]:
        with pytest.raises(ValueError, match=words):
            posterior.sample_weights(network, x, y, **setting)
    with pytest.raises(ValueError, match=r"would need .* GiB of memory.*fewer samples"):
        posterior.sample_weights(NETWORK, X, Y, **setting | {"width": 3000}, samples=10**6)


@pytest.mark.usefixtures("as_users_see_it")
def test_results_refuse_what_does_not_fit():
    result = sampled()
    with pytest.raises(ValueError, match="xi must have 4 paths of dimension 3 as in training"):
        result.predict(np.ones((2, 3, 3)))
    with pytest.raises(ValueError, match="these draws have no weights: use complete_weights"):
        result.outputs(NEW)
    with pytest.raises(ValueError, match="every must be at most 1000 draws"):
        result.thin(1001)
    with pytest.raises(ValueError, match="leading axes"):
        result.with_weights(posterior.complete_weights(result.thin(500), seed=0))
    assert result.weights is None


def test_numbers_beyond_double_precision_are_refused():
    with pytest.raises(ValueError, match="too large beside the temperature"):
        posterior.sample_order_parameter(
            1e160 * XI, Y, heads=HEADS, width=6, temperature=0.5, seed=0, progress=False
        )
