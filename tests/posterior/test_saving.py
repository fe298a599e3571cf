"""Draws on disk, and how they look in a notebook."""

import dataclasses
import functools
import json
import warnings

import jax
import numpy as np
import pytest

from attnpaths import Network, posterior, theory

HEADS = (2, 2)
RNG = np.random.default_rng(0)
NETWORK = Network([RNG.normal(size=(2, 3, 3)) for _ in HEADS], readout=-1)
X = RNG.normal(size=(12, 4, 3))
Y = np.sign(X[:, 0, 0])
XI = NETWORK.features(X)


@functools.cache
def sampled(how="order parameter", width=4):
    setting = {"width": width, "temperature": 0.5, "prior_variance": 1.3, "seed": 0, "chains": 2}
    setting |= {"samples": 20, "thinning": 2, "progress": False}
    with warnings.catch_warnings():
        # so few draws are not to be trusted, only kept
        warnings.simplefilter("ignore", posterior.DoubtfulSample)
        if how == "weights":
            # warm-ups as in other files, whose compiled code serves here too
            return posterior.sample_weights(NETWORK, X, Y, warmup=100, **setting)
        return posterior.sample_order_parameter(XI, Y, heads=HEADS, **setting)


@pytest.mark.parametrize("width", [4, (2, 7, 5)])
@pytest.mark.parametrize("how", ["order parameter", "weights"])
def test_what_is_saved_comes_back(how, width, tmp_path):
    result = sampled(how, width)
    result.save(tmp_path / "draws.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["draws.npz"]
    again = posterior.load(tmp_path / "draws.npz")
    for field in dataclasses.fields(posterior.Posterior):
        one, other = getattr(result, field.name), getattr(again, field.name)
        assert jax.tree.structure(one) == jax.tree.structure(other), field.name
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=field.name)
            assert np.asarray(a).dtype == np.asarray(b).dtype
    assert repr(again) == repr(result)
    assert again.doubts == result.doubts != ()
    assert again.width == width and again.heads == HEADS and again.thinning == 2
    # it can be asked all that it could be asked before
    np.testing.assert_array_equal(again.predict(XI).mean, result.predict(XI).mean)
    if how == "weights":
        np.testing.assert_array_equal(again.outputs(XI), result.outputs(XI))
        assert again.factors is None
    else:
        pair = (posterior.complete_weights(each, seed=3) for each in (result, again))
        np.testing.assert_array_equal(*(weights.V0 for weights in pair))
        assert again.weights is None


def test_completed_weights_are_saved_too(tmp_path):
    result = sampled()
    whole = result.with_weights(posterior.complete_weights(result, seed=0))
    whole.save(tmp_path / "draws.npz")
    again = posterior.load(tmp_path / "draws.npz")
    np.testing.assert_array_equal(again.weights.V[1], whole.weights.V[1])
    np.testing.assert_array_equal(again.factors[2], whole.factors[2])


def cut(path):
    path.write_bytes(path.read_bytes()[:-200])


def flip(path):
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 3] ^= 255
    path.write_bytes(raw)


def text(path):
    path.write_text("draws")


def empty(path):
    path.write_bytes(b"")


def one_array(path):
    with open(path, "wb") as file:
        np.save(file, np.ones(3))


def other_arrays(path):
    np.savez(path, draws=np.ones(3))


def other_facts(path):
    np.savez(path, facts=np.frombuffer(b"[1, 2]", np.uint8))


def pickled(path):
    np.savez(path, facts=np.array([{"attnpaths": "posterior"}], dtype=object))


DAMAGED = [cut, flip, text, empty, one_array, other_arrays, other_facts, pickled]


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_files_and_files_of_others(damage, tmp_path):
    path = tmp_path / "draws.npz"
    sampled().save(path)
    damage(path)
    with pytest.raises(ValueError, match=r"draws.npz is damaged, or holds no"):
        posterior.load(path)


def test_other_kinds_of_result(tmp_path):
    path = tmp_path / "it.npz"
    theory.solve(XI, Y, heads=HEADS, width=10, temperature=0.5).save(path)
    with pytest.raises(ValueError, match=r"it.npz .* holds no Posterior .*: it holds a Theory"):
        posterior.load(path)


@pytest.mark.parametrize("missing", ["draws", "factors", "problem", "widths", "0", "7"])
def test_files_that_lack_something(missing, tmp_path):
    path = tmp_path / "draws.npz"
    sampled().save(path)
    with np.load(path) as file:
        arrays = dict(file)
    facts = json.loads(arrays["facts"].tobytes())
    for each in (arrays, facts["Posterior"]):
        each.pop(missing, None)
    arrays["facts"] = np.frombuffer(json.dumps(facts).encode(), np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=rf"draws.npz .* holds no Posterior .*{missing}"):
        posterior.load(path)


def test_places_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nothing.npz"):
        posterior.load(tmp_path / "nothing.npz")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        sampled().save(tmp_path / "folder" / "draws.npz")
    with pytest.raises(ValueError, match=r"must end in .npz.*draws.pkl"):
        sampled().save(tmp_path / "draws.pkl")
    assert not list(tmp_path.iterdir())


def test_a_file_stands_until_the_next_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "draws.npz"
    sampled().save(path)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="no space left"):
        sampled("weights").save(path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_a_notebook_shows_the_setting_and_the_order_parameter():
    shown = sampled()._repr_html_()
    assert "(2, 2)" in shown and "2 chains × 10" in shown
    assert shown.count("<table>") == shown.count("</table>") == 2
    # a name for each of four rows and columns, and their sixteen numbers
    for name in ("(1,1)", "(1,2)", "(2,1)", "(2,2)"):
        assert shown.count(f"<th>{name}</th>") == 2
    for number in np.ravel(sampled().U):
        assert f">{number:.4g}</td>" in shown
    assert "effective draws (bulk" in shown
    assert "(2, 7, 5)" in sampled(width=(2, 7, 5))._repr_html_()
