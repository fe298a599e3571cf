"""The explorer's answers, against the library used directly, and its widget without a page."""

import importlib
import json
import math
import threading

import jax.numpy as jnp
import numpy as np
import pytest

from attnpaths import explorer, theory
from attnpaths.explorer import widget as front_end
from attnpaths.tasks.markov import make_task

# the package has a function of the same name
module = importlib.import_module("attnpaths.explorer.answers")
SMALL = {"width": 10, "tokens": 7, "temperature": 0.05, "sigma_perp": 2.0}


@pytest.fixture(autouse=True)
def two_small_seeds(monkeypatch):
    """Enough to average over, and no more."""
    monkeypatch.setattr(module, "SEEDS", (0, 1))


def directly(seed, setting):
    """Accuracy, GP accuracy, good path's accuracy, U and alignment, with nothing lengthened."""
    task = make_task(seed, tokens=setting["tokens"], sigma_perp=setting["sigma_perp"])
    train, test = task.network.features(task.train.x), task.network.features(task.test.x)
    heat = {"temperature": setting["temperature"]}
    solved = theory.solve(train, task.train.y, heads=(2, 2), width=setting["width"], **heat)
    gp = theory.gp_limit(train, task.train.y, heads=(2, 2), **heat)
    good = theory.gp_limit(train[:, [0]], task.train.y, heads=(1, 1), **heat)
    return (
        float(solved.predict(test).accuracy(task.test.y)),
        float(gp.predict(test).accuracy(task.test.y)),
        float(good.predict(test[:, [0]]).accuracy(task.test.y)),
        np.asarray(solved.U),
        np.asarray(solved.alignment().overlaps[: module.COMPONENTS]),
    )


def test_an_answer_is_the_mean_of_direct_solves():
    *_, answer = explorer.answers(SMALL)
    each = [directly(seed, SMALL) for seed in module.SEEDS]
    accuracy, gp, good, U, alignment = (
        np.mean(values, axis=0) for values in zip(*each, strict=True)
    )
    np.testing.assert_allclose(answer["accuracy"], [accuracy, gp], atol=1e-12)
    np.testing.assert_allclose(answer["good"][0], good, atol=1e-12)
    np.testing.assert_allclose(answer["U"], U, rtol=1e-6, atol=1e-6 * np.abs(U).max())
    np.testing.assert_allclose(answer["alignment"][0], alignment, atol=1e-6)
    spread = np.std([one[0] for one in each], ddof=1) / math.sqrt(len(each))
    assert answer["error"][0] == pytest.approx(spread) and spread > 0
    json.dumps(answer, allow_nan=False)


def test_answers_get_better_and_end_with_the_curve():
    found = list(explorer.answers(SMALL))
    assert [answer["seeds"] for answer in found] == [1, 2, 2]
    assert [answer["curve"] is None for answer in found] == [True, True, False]
    widths = explorer.STOPS["width"]
    curve = found[-1]["curve"]["accuracy"]
    at = widths.index(SMALL["width"])
    assert len(curve) == len(widths)
    assert curve[at] == pytest.approx(found[-1]["accuracy"][0], abs=1e-12)
    assert curve[-1] == pytest.approx(found[-1]["accuracy"][1], abs=1e-12)


def test_infinite_width_is_the_gaussian_process():
    answer = next(explorer.answers(SMALL | {"width": "inf"}))
    np.testing.assert_array_equal(answer["U"], np.eye(4))
    assert answer["accuracy"][0] == answer["accuracy"][1]
    assert answer["setting"]["width"] == "inf"


@pytest.mark.parametrize("extra", [0, 1, 9])
def test_longer_sequences_have_the_same_features(extra):
    task = make_task(3, tokens=5, dim=20, examples=6, test_examples=2)
    network, x = module.lengthen(task.network, np.asarray(task.train.x), extra)
    xi = network.features(x)
    own = task.network.features(task.train.x)
    assert x.shape[1] == task.train.x.shape[1] + extra
    np.testing.assert_allclose(xi[:, :, : own.shape[2]], own, atol=1e-13)
    assert not np.any(xi[:, :, own.shape[2] :])


def test_the_grid_holds_the_answers(monkeypatch):
    heats = (0.05, 1.0)
    stops = {"width": (10, math.inf), "tokens": (7,), "temperature": heats, "sigma_perp": (2.0,)}
    monkeypatch.setattr(module, "STOPS", stops)
    grid = json.loads(json.dumps(explorer.grid(progress=False), allow_nan=False))
    assert grid["stops"]["width"] == [10, "inf"] and grid["seeds"] == 2
    for j, temperature in enumerate(heats):
        *_, answer = explorer.answers(SMALL | {"temperature": temperature})
        upper = np.asarray(answer["U"])[np.triu_indices(4)]
        np.testing.assert_allclose(grid["U"][0][0][j][0], upper, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(grid["accuracy"][0][0][j], answer["accuracy"], rtol=1e-8)
        np.testing.assert_allclose(grid["error"][0][0][j], answer["error"], rtol=1e-8)
        np.testing.assert_allclose(grid["good"][0][0][j], answer["good"][:1], rtol=1e-8)
        np.testing.assert_allclose(grid["alignment"][0][0][j], answer["alignment"], rtol=1e-3)


def test_the_page_has_the_stops_that_were_promised():
    sizes = {name: len(stops) for name, stops in explorer.STOPS.items()}
    assert sizes["width"] >= 13 + 1 and sizes["tokens"] >= 5
    assert sizes["temperature"] >= 4 and sizes["sigma_perp"] >= 6
    for name, stops in explorer.FINE_STOPS.items():
        assert stops[0] <= explorer.STOPS[name][0] and stops[-1] == explorer.STOPS[name][-1]
        assert list(stops) == sorted(stops)
        assert explorer.START[name] in explorer.STOPS[name]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"width": 0.5}, "width must be at least 1; got 0.5"),
        ({"width": "wide"}, "width must be"),
        ({"tokens": 1}, "tokens must be"),
        ({"tokens": 51}, "tokens must be at most 50; got 51"),
        ({"tokens": 3.5}, "tokens must be"),
        ({"temperature": 0}, "temperature must be"),
        ({"sigma_perp": -1}, "sigma_perp must be"),
        ({"sigma_perp": math.nan}, "sigma_perp must be"),
        ({"sigma": 1}, "a setting must have width, tokens, temperature, sigma_perp; got"),
    ],
)
@pytest.mark.usefixtures("as_users_see_it")
def test_a_bad_setting_is_refused(change, said):
    with pytest.raises(ValueError, match=said):
        explorer.Explorer(**change)
    widget = explorer.Explorer()
    before = widget.setting
    with pytest.raises(ValueError, match=said):
        widget.setting = widget.setting | change
    assert widget.setting == before


@pytest.fixture
def widget():
    """An explorer, and what it has answered; wait for `done`."""
    widget = explorer.Explorer(**SMALL)
    widget.seen, widget.done = [], threading.Event()

    def note(change):
        widget.seen.append(change["new"])
        if change["new"]["curve"]:
            widget.done.set()

    widget.observe(note, names="answer")
    yield widget
    widget.close()


def test_it_computes_nothing_until_a_page_asks(widget):
    assert widget.answer == {} and widget.seen == []
    widget._handle_custom_msg({"kind": "ready"}, [])
    assert widget.done.wait(120)
    assert widget.seen[0]["setting"] == widget.setting
    assert widget.problem == ""


def test_it_answers_the_last_of_many_settings(widget):
    for width in (20, 50, 100, 200, "inf", 500):
        widget.setting = widget.setting | {"width": width}
    assert widget.done.wait(120)
    widget._thread and widget._thread.join(120)
    assert widget.answer["setting"]["width"] == 500
    assert len([answer for answer in widget.seen if answer["curve"]]) < 6


def test_it_shows_what_went_wrong(widget, monkeypatch):
    def broken(setting):
        raise RuntimeError("no more memory")
        yield

    monkeypatch.setattr(front_end, "answers", broken)
    widget.setting = widget.setting | {"width": 20}
    widget._thread and widget._thread.join(120)
    assert widget.problem == "RuntimeError: no more memory"


def test_it_says_to_the_page_that_it_is_there(widget):
    data, _ = widget._repr_mimebundle_()
    assert data[explorer.MIME] == {"explorer": "markov", "setting": widget.setting}
    assert "application/vnd.jupyter.widget-view+json" in data
    assert jnp.isfinite(widget.setting["width"])
