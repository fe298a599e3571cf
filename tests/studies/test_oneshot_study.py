"""The one-shot study, on glyphs and a small network that was never trained."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnpaths import Problem, empirical_order_parameter, posterior, pruning, theory
from attnpaths.posterior import prior
from attnpaths.tasks import images as image_sources
from attnpaths.tasks import oneshot
from attnpaths.training.files import Trained, load_weights, save_weights
from attnpaths.training.model import Model
from book.studies import engine as results
from book.studies.oneshot import run as study
from book.studies.oneshot import sizes

HEADS, WIDTHS, TEMPERATURES = (2, 2), (10, 1000), (0.1, 1.0)


@pytest.fixture(scope="module")
def glyphs():
    return image_sources.load("glyphs", classes=30)


@pytest.fixture(scope="module")
def trained():
    model = Model(layers=2, heads=2, key_dim=3, width=8, seed=1)
    network, weights = model.export()
    return Trained(network, weights, oneshot.label_vectors(3), {})


@pytest.fixture(scope="module")
def make(glyphs, trained):
    @functools.cache
    def make(seed):
        setting = {"examples": 30, "test_examples": 20, "labels": trained.labels}
        other = dataclasses.replace(glyphs, source="other")
        task = oneshot.make_task(seed, source=glyphs, out_of_distribution=[other], **setting)
        return study.features(trained.network, task)

    return make


@pytest.fixture(scope="module")
def found(glyphs, trained):
    return study.outputs(trained, {"glyphs": glyphs}, examples=60)


def test_features_are_those_of_the_task(glyphs, trained):
    setting = {"examples": 30, "test_examples": 20, "labels": trained.labels}
    task = oneshot.make_task(0, source=glyphs, out_of_distribution=(), **setting)
    data = study.features(trained.network, task)
    assert data.heads == HEADS and list(data.tests) == ["glyphs"]
    np.testing.assert_array_equal(data.xi, trained.network.features(task.train.x))
    np.testing.assert_array_equal(data.tests["glyphs"][1], task.test.y)


def test_a_sweep_chooses_temperatures_by_its_own_test_set(make):
    data = make(0)
    answer = study.sweep(data, widths=WIDTHS, temperatures=TEMPERATURES)
    grid = theory.sweep(
        data.xi, data.y, heads=HEADS, widths=WIDTHS, temperatures=TEMPERATURES, progress=False
    )
    xi, y = data.tests["glyphs"]
    np.testing.assert_allclose(
        answer["accuracy"]["glyphs"], grid.predict(xi).accuracy(y), atol=1e-4
    )
    limit = theory.gp_limit(data.xi, data.y, heads=HEADS, temperature=1.0)
    other, signs = data.tests["other"]
    expected = float(limit.predict(other).accuracy(signs))
    assert answer["gp_accuracy"]["other"][1] == pytest.approx(expected)
    best = [TEMPERATURES[int(np.argmax(row))] for row in answer["accuracy"]["glyphs"]]
    assert answer["best_temperature"] == best
    assert answer["converged"] == 4 and answer["largest_gradient"] < 1e-6
    assert 0 < answer["peak_memory_gib"] < 100 and answer["seconds"] > 0


def test_draws_compare_with_the_gp_of_the_same_draw(make):
    setting = {"widths": WIDTHS, "temperatures": TEMPERATURES, "gp_temperatures": TEMPERATURES}
    answer = study.draws(make, seeds=(0, 1, 2), **setting)
    alone = [study.sweep(make(s), widths=WIDTHS, temperatures=TEMPERATURES) for s in range(3)]
    best = answer["best"]
    for d, each in enumerate(alone):
        for i in range(2):
            assert best["accuracy"]["glyphs"][d][i] == max(each["accuracy"]["glyphs"][i])
        assert best["gp_accuracy"]["glyphs"][d] == max(each["gp_accuracy"]["glyphs"])
    gains = np.subtract(
        best["accuracy"]["glyphs"], np.array(best["gp_accuracy"]["glyphs"])[:, None]
    )
    np.testing.assert_allclose(best["gain"]["glyphs"]["mean"], gains.mean(axis=0), atol=1e-3)
    error = gains.std(axis=0, ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(best["gain"]["glyphs"]["standard_error"], error, atol=1e-3)
    # held out: the temperature that the other draws like best, whatever the own test says
    table = np.array([each["accuracy"]["glyphs"] for each in alone])
    for d in range(3):
        others = np.delete(table, d, axis=0).mean(axis=0).round(9)
        chosen = [TEMPERATURES[j] for j in others.argmax(axis=1)]
        assert answer["held_out"]["temperature"][d] == chosen
        own = [table[d, i, TEMPERATURES.index(t)] for i, t in enumerate(chosen)]
        assert list(answer["held_out"]["accuracy"]["glyphs"][d]) == own


def test_order_parameters_are_compared(make, trained):
    data, own = make(0), empirical_order_parameter(trained.weights)
    point = theory.solve(data.xi, data.y, heads=HEADS, width=10, temperature=0.1)
    beside = {"self": point.U, "descent": own}
    answer = study.order_parameter(data, width=10, temperature=0.1, beside=beside)
    np.testing.assert_allclose(answer["U"], point.U, rtol=1e-3)
    scores = list(pruning.head_scores(point.U, HEADS).values())
    np.testing.assert_allclose(answer["scores"], scores, rtol=1e-3)
    assert answer["agreement"]["self"] == dict.fromkeys(answer["agreement"]["self"], 1.0)
    assert -1 <= answer["agreement"]["descent"]["correlation"] < 1
    assert len(answer["alignment"]) == len(answer["gp_alignment"]) == 30
    assert sum(a**2 for a in answer["alignment"]) == pytest.approx(1, abs=0.01)


def test_agreement_sees_signs_and_blocks():
    rng = np.random.default_rng(0)
    U = rng.standard_normal((4, 4))
    U = U + U.T
    opposite = study.agreement(U, np.diag(3 * np.diag(U)) - U)
    assert opposite["correlation"] == -1 and opposite["signs"] == opposite["weighted_signs"] == 0
    one = np.kron(np.eye(2), np.full((2, 2), 3.0)) + 1
    assert study.block_ratio(one, (2, 2)) == 4
    assert study.block_ratio(np.kron(np.full((2, 2), 3.0), np.eye(2)) + 1, (2, 2)) < 1
    big = study.described(np.eye(64) + 1, (8, 8))
    assert "U" not in big and len(big["scores"]) == 16 and big["block_ratio"] == 1


@pytest.fixture(scope="module")
def small():
    """Three paths and a handful of examples: quick to sample."""
    rng = np.random.default_rng(0)
    xi = jnp.asarray(rng.standard_normal((8, 3, 3)))
    y = jnp.sign(xi[:, 0, 0])
    setting = {"heads": (3,), "width": 5, "temperature": 1.0, "seed": 0, "progress": False}
    length = {"chains": 2, "warmup": 200, "samples": 1500, "acceptance": 0.8}
    result = posterior.sample_order_parameter(xi, y, **setting, **length, whiten=True)
    return study.Features((3,), xi, y, {"own": (xi[:5], y[:5])}), result


def test_round_coordinates_sample_the_same_posterior(small):
    data, result = small
    assert not result.divergences.sum() and np.max(result.rhat) < 1.02
    # weighted draws of the prior know nothing of modes and chains
    density = posterior.OrderParameter((3,), (5, 5))
    inner = density.data(Problem.of(data.xi, data.y, heads=(3,), temperature=1.0))
    z = density.starts(jax.random.key(1), 20_000)
    potential = jax.vmap(lambda z: density(inner, z) + prior.log_prior(z, (3,), (5, 5)))(z)
    weight = np.exp(-np.asarray(potential - potential.min()))
    weight /= weight.sum()
    U = np.asarray(density.read(z[None], jnp.ones(()))[1])[0]
    mean = np.einsum("k,kij->ij", weight, U)
    error = np.sqrt(np.einsum("k,kij->ij", weight**2, (U - mean) ** 2))
    within = 4 * np.hypot(error, np.asarray(result.mcse))
    assert np.all(np.abs(np.asarray(result.U) - mean) < within)
    assert within.max() < 0.1 * np.abs(mean).max()


def test_samples_come_with_their_diagnostics(small, monkeypatch):
    data, result = small
    asked = {}
    monkeypatch.setattr(
        posterior,
        "sample_order_parameter",
        lambda xi, y, **setting: asked.update(setting) or result,
    )
    setting = {"width": 5, "temperature": 1.0, "chains": 2, "warmup": 200, "samples": 1500}
    answer = study.sampled(data, **setting, beside={"itself": result.U + jnp.eye(3)})
    walk = {"acceptance": 0.8, "whiten": True}
    assert asked == setting | walk | {"heads": (3,), "seed": 0, "progress": False}
    np.testing.assert_allclose(answer["U"], result.U, rtol=1e-3)
    np.testing.assert_allclose(answer["mcse"], result.mcse, rtol=1e-2)
    assert answer["largest_rhat"] == float(np.max(result.rhat))
    assert answer["leapfrogs"] == result.leapfrogs.sum() and answer["doubts"] == [*result.doubts]
    own = result.thin(60).predict(data.tests["own"][0])
    assert answer["accuracy"] == {"own": float(own.accuracy(data.tests["own"][1]))}
    assert answer["accuracy_mcse"]["own"] >= 0
    assert answer["agreement"]["itself"]["correlation"] == 1


def test_outputs_are_those_of_the_network_on_test_classes(glyphs, trained, found):
    parts, y = found["glyphs"]
    classes = oneshot.split_classes(glyphs)["test"]
    drawn = oneshot.draw(glyphs, 60, seed=[0, 100], classes=classes)
    x = oneshot.Encoder(glyphs, trained.labels)(drawn)
    f = trained.network.apply(trained.weights, x)
    np.testing.assert_allclose(parts.sum(axis=1), f, atol=1e-10)
    np.testing.assert_array_equal(y, drawn.y)
    answer = study.trained_accuracy(trained, found)
    share = np.mean(np.sign(f) == y)
    assert answer["accuracy"]["glyphs"]["mean"] == pytest.approx(share, abs=1e-4)
    error = np.sqrt(share * (1 - share) / 59)
    assert answer["accuracy"]["glyphs"]["standard_error"] == pytest.approx(error, rel=0.01)
    assert answer["accuracy"]["glyphs"]["examples"] == 60


def test_pruning_in_several_orders(trained, found):
    parts, y = found["glyphs"]
    network, weights = trained.network, trained.weights
    scores = {"theory": [4.0, 1.0, 2.0, 3.0]}
    answer = study.pruned(network, weights, found, scores, tokens=48, orders=30)
    assert answer["heads"] == [[1, 1], [1, 2], [2, 1], [2, 2]] and answer["quarter"] == 1
    assert answer["orders"]["theory"] == [[1, 2], [2, 1]]
    assert set(answer["curves"]["glyphs"]) == {"theory", "norm"}
    curve = answer["curves"]["glyphs"]["theory"]
    single = pruning.each_head(parts, y, heads=HEADS)
    assert curve[1] == pytest.approx(single[1, 2], abs=1e-4)
    drop = answer["drop"]["glyphs"]
    assert drop == pytest.approx([curve[0] - each for each in single.values()], abs=2e-4)
    # paired: sequences that are right before and after, or wrong, say nothing
    whole = np.sign(parts.sum(axis=1)) == y
    without = np.sign(np.asarray(pruning.pruned_outputs(parts, HEADS, [(2, 2)]))) == y
    gained, lost = np.mean(without & ~whole), np.mean(whole & ~without)
    error = np.sqrt((gained + lost - (gained - lost) ** 2) / 59)
    assert answer["drop_error"]["glyphs"][3] == pytest.approx(error, rel=0.01)
    first = answer["first"]["glyphs"]
    assert first["theory"]["mean"] == pytest.approx(curve[1] - curve[0], abs=2e-4)
    mean = np.mean(
        [
            pruning.curve(parts, y, heads=HEADS, order=pruning.random_order(HEADS, seed=i))
            for i in range(30)
        ],
        axis=0,
    )
    assert answer["random"]["glyphs"]["mean"] == pytest.approx(list(mean), abs=1e-3)
    whole = sizes.size(network, width=8, tokens=48)
    left = answer["sizes"]
    assert left["parameters"][0] == whole.parameters
    assert left["head_parameters"][2] == whole.head_parameters / 2
    expected = study.rank_correlation(scores["theory"], drop)
    assert answer["rank_correlation"]["glyphs"]["theory"]["value"] == expected["value"]


def test_the_rank_correlation_has_an_error_and_a_chance():
    rng = np.random.default_rng(1)
    score = rng.standard_normal(16)
    perfect = study.rank_correlation(score, np.exp(score))
    assert perfect["value"] == 1 and perfect["standard_error"] < 1e-6 and perfect["p_value"] < 1e-3
    opposite = study.rank_correlation(score, -score)
    assert opposite["value"] == -1 and opposite["p_value"] == 1
    noise = study.rank_correlation(score, rng.standard_normal(16))
    assert 0.1 < noise["standard_error"] < 0.5 and noise["p_value"] > 0.01
    # few heads: every order counts
    few = study.rank_correlation([1, 2, 3, 4], [1, 4, 2, 3])
    by_hand = [
        np.corrcoef([1, 2, 3, 4], order)[0, 1] for order in itertools.permutations([1, 2, 3, 4])
    ]
    assert few["value"] == 0.4
    assert few["p_value"] == pytest.approx(np.mean(np.array(by_hand) > 0.4 - 1e-9), rel=1e-3)


@pytest.fixture
def small_study(monkeypatch, tmp_path, glyphs, trained):
    """The whole command, with parts that only count how often they are made."""
    calls = []
    monkeypatch.setattr(study, "SOURCES", ("glyphs",))
    monkeypatch.setattr(image_sources, "load", lambda name, classes=None: glyphs)
    for name in study.names("2_4"):
        part = functools.partial(lambda name, self: calls.append(f"{name}_{self.key}") or {}, name)
        monkeypatch.setattr(
            study.Study,
            f"part_{name}",
            functools.partialmethod(lambda self, part: part(self), part),
        )
    folder = tmp_path / "weights"
    folder.mkdir()
    save_weights(folder / study.NETWORKS["3_3"], trained)

    def run(*options):
        calls.clear()
        where = ["--weights", str(folder), "--folder", str(tmp_path)]
        assert study.main([*where, *options]) == 0
        return list(calls)

    return run, folder, tmp_path


def test_wider_networks_are_sampled_at_their_best_temperature(small, monkeypatch):
    data, _ = small
    one = object.__new__(study.Study)
    one.first, best = data, dict(zip((10, *study.WIDER), (0.5, 0.25, 0.1), strict=True))
    sweep = {"widths": list(best), "best_temperature": list(best.values())}
    monkeypatch.setattr(study.Study, "_held", lambda self, name: {"sweep": sweep}[name])

    def sampled(data, *, beside, progress, **setting):
        theory_ = study.solved(data, **setting)
        np.testing.assert_array_equal(beside["theory"], theory_.U)
        return setting | {"U": theory_.U, "mcse": 0, "accuracy": 0.5}

    monkeypatch.setattr(study, "sampled", sampled)
    found = one.part_wider()["runs"]
    wanted = [{"width": N, "temperature": best[N], "accuracy": 0.5} for N in study.WIDER]
    assert found == wanted


def test_the_study_makes_what_is_missing(small_study, trained):
    run, folder, out = small_study
    mine = ["trained_3_3", "sweep_3_3", "theory_3_3", "pruning_3_3"]
    assert run() == mine and run() == []
    assert run("--only", "theory_3_3") == ["theory_3_3"]
    assert run("--again") == mine
    held = results.read("oneshot", out)
    assert set(held["parts"]) == set(mine)
    stored = load_weights(folder / study.NETWORKS["3_3"])
    assert held["parts"]["sweep_3_3"]["weights_md5"] == study.heads_md5(stored)
    assert list(held["provenance"]["sweep_3_3"]["data"]) == ["glyphs"]
    # another network comes, and this one goes: its results stay
    save_weights(folder / study.NETWORKS["2_4"], trained)
    (folder / study.NETWORKS["3_3"]).unlink()
    assert len(run()) == 7
    assert len(results.read("oneshot", out)["parts"]) == 11
    # other weights make their parts anew, and only these
    network, weights = Model(layers=2, heads=2, key_dim=3, width=8, seed=2).export()
    save_weights(folder / study.NETWORKS["2_4"], Trained(network, weights, trained.labels, {}))
    assert len(run()) == 7 and run() == []


def test_heads_alone_keep_what_needs_the_other_weights(small_study, trained, capsys):
    run, folder, out = small_study
    path, content = folder / study.NETWORKS["3_3"], results.file("oneshot", out)
    run()
    save_weights(path, trained, values=False)
    assert load_weights(path).weights is None
    assert run() == [] and run("--again") == ["sweep_3_3"]
    assert run("--only", "sweep_3_3") == ["sweep_3_3"]
    before = content.read_bytes()

    def refused(*options):
        where = ["--weights", str(folder), "--folder", str(out)]
        assert study.main([*where, *options]) == 2
        said = capsys.readouterr().err
        assert f"{path} holds the heads alone" in said and "--weights" in said
        return said

    assert "are needed for trained_3_3;" in refused("--only", "trained_3_3")
    # other heads: what was made with the old ones does not serve
    other = Model(layers=2, heads=2, key_dim=3, width=8, seed=2).export()[0]
    save_weights(path, Trained(other, None, trained.labels, {}), values=False)
    assert "needed for pruning_3_3, theory_3_3, trained_3_3;" in refused()
    assert content.read_bytes() == before
    content.unlink()
    refused()
    assert run("--only", "sweep_3_3") == ["sweep_3_3"]


def test_the_networks_see_the_ink_that_they_were_trained_with(glyphs):
    dark = study.dark(glyphs)
    np.testing.assert_array_equal(dark.pixels, 255 - glyphs.pixels)
    assert glyphs.pixels.mean() < 64 and dark.pixels.mean() > 191
    drawn = oneshot.draw(glyphs, 3, seed=0)
    bright, inverted = (oneshot.Encoder(each).pixels(drawn) for each in (glyphs, dark))
    np.testing.assert_allclose(inverted, -bright, atol=1e-5)


def test_bad_calls_of_the_study(tmp_path, capsys):
    assert study.main(["--weights", str(tmp_path), "--folder", str(tmp_path)]) == 2
    assert "no trained network in" in capsys.readouterr().err
    assert study.main(["--only", "everything", "--folder", str(tmp_path)]) == 2
    assert "there is no part 'everything'; the parts are trained_2_4," in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_kept_results_are_small_and_whole():
    assert results.file("oneshot").stat().st_size < 64_000
    parts = results.read("oneshot")["parts"]
    assert set(parts) == {f"{name}_{key}" for key in study.NETWORKS for name in study.names(key)}
    for key in study.NETWORKS:
        grid = parts[f"sweep_{key}"]
        shape = len(grid["widths"]), len(grid["temperatures"])
        assert all(np.shape(each) == shape for each in grid["accuracy"].values())
        assert grid["converged"] == np.prod(shape) and grid["largest_gradient"] < 1e-6
        assert np.mean(grid["evaluations"]) <= 40
        # a best temperature at the edge of the grid would not be known to be one
        ends = grid["temperatures"][0], grid["temperatures"][-1]
        assert not {*grid["best_temperature"]} & {*ends}
        assert parts[f"trained_{key}"]["accuracy"]["omniglot"]["examples"] >= 10_000
    assert tuple(parts["sweep_2_4"]["widths"]) == study.WIDTHS
    assert tuple(parts["sweep_2_4"]["temperatures"]) == study.TEMPERATURES
