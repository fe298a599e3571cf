"""Python's answers, against the library used directly; the widget without a page; the bundle."""

import functools
import importlib
import itertools
import json
import math
import re
import threading

import jax.numpy as jnp
import numpy as np
import pytest

from attnpaths import explorer, theory
from attnpaths.explorer import bundle
from attnpaths.explorer import widget as front_end
from attnpaths.tasks.markov import make_task

# the package has a function of the same name
module = importlib.import_module("attnpaths.explorer.answers")
SMALL = {"width": 10, "tokens": 7, "temperature": 0.05, "sigma_perp": 2.0, "tasks": 2}
SETTING = module.check(SMALL)


@functools.cache
def features(seed):
    """ξ and labels for training and testing, with nothing lengthened."""
    task = make_task(seed, tokens=SMALL["tokens"], sigma_perp=SMALL["sigma_perp"])
    train, test = (np.asarray(task.network.features(part.x)) for part in (task.train, task.test))
    return train, np.asarray(task.train.y), test, np.asarray(task.test.y)


def directly(seed, off=()):
    """Accuracy, GP accuracy, good path's accuracy, U and alignment; all but U by numpy."""
    train, y, test, test_y = features(seed)
    heads, paths = module.kept(off)
    setting = {"width": SMALL["width"], "temperature": SMALL["temperature"]}
    U = np.asarray(theory.solve(train[:, paths], y, heads=heads, **setting).U)

    def kernel(U, a, b, paths):
        return np.einsum("ipd,pq,jqd->ij", a[:, paths], U, b[:, paths], optimize=True) / (
            len(paths) * a.shape[2]
        )

    def right(U, paths):
        noisy = kernel(U, train, train, paths) + SMALL["temperature"] * np.eye(len(y))
        mean = kernel(U, test, train, paths) @ np.linalg.solve(noisy, y)
        return np.mean(np.sign(mean) == test_y)

    vectors = np.linalg.eigh(kernel(U, train, train, paths))[1][:, ::-1]
    overlaps = np.abs(vectors.T @ y)[: module.COMPONENTS] / np.linalg.norm(y)
    return right(U, paths), right(np.eye(len(paths)), paths), right(np.eye(1), [0]), U, overlaps


@pytest.mark.parametrize("off", [[], ["1.2"]])
def test_an_answer_is_the_mean_of_direct_solves(off):
    # the last answer but one, which has all but the curve
    _, answer = itertools.islice(explorer.answers(SMALL | {"off": off}), SMALL["tasks"])
    each = [directly(seed, off) for seed in (0, 1)]
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
    curve = found[-1]["curve"]["accuracy"]
    at = module.WIDTHS.index(SMALL["width"])
    assert len(curve) == len(module.WIDTHS)
    assert curve[at] == pytest.approx(found[-1]["accuracy"][0], abs=1e-12)
    assert curve[-1] == pytest.approx(found[-1]["accuracy"][1], abs=1e-12)


def test_infinite_width_is_the_gaussian_process():
    answer = next(explorer.answers(SMALL | {"width": "inf"}))
    np.testing.assert_array_equal(answer["U"], np.eye(4))
    assert answer["accuracy"][0] == answer["accuracy"][1]
    assert answer["setting"]["width"] == "inf"


def test_the_stored_start_is_what_the_library_says():
    """What pages show before they have computed anything; `answers.store` makes it anew."""
    text = (bundle.HERE / "front" / "stored.js").read_text("utf-8")
    kept = json.loads(re.search(r"STORED = (.*);\n", text)[1])
    starts = explorer.START, explorer.START | {"seed": "paper"}
    for stored, start in zip(kept, starts, strict=True):
        *_, answer = explorer.answers(start)
        exact = ("setting", "accuracy", "curve", "good", "seeds", "error")
        assert {key: stored[key] for key in exact} == {key: answer[key] for key in exact}
        np.testing.assert_allclose(stored["U"], answer["U"], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(stored["alignment"], answer["alignment"], atol=1e-8)


@pytest.mark.parametrize("extra", [0, 1, 9])
def test_longer_sequences_have_the_same_features(extra):
    task = make_task(3, tokens=5, dim=20, examples=6, test_examples=2)
    network, x = module.lengthen(task.network, np.asarray(task.train.x), extra)
    xi = network.features(x)
    own = task.network.features(task.train.x)
    assert x.shape[1] == task.train.x.shape[1] + extra
    np.testing.assert_allclose(xi[:, :, : own.shape[2]], own, atol=1e-13)
    assert not np.any(xi[:, :, own.shape[2] :])


def test_page_and_python_start_alike_and_have_the_same_ranges():
    text = (bundle.HERE / "front" / "settings.js").read_text("utf-8")
    start = re.search(r"START = \{(.*?)\};", text, flags=re.DOTALL)[1].replace("'", '"')
    assert (
        json.loads(re.sub(r"(\w+):", r'"\1":', f"{{{start.strip().rstrip(',')}}}")) == module.START
    )
    for name, (least, most) in explorer.RANGES.items():
        found = re.search(rf"{name}: {{ .*least: ([\de.-]+), most: ([\de.-]+)", text)
        if found:
            assert (float(found[1]), float(found[2])) == (least, most)
    views = re.search(r"VIEWS = \[(.*?)\];", text, flags=re.DOTALL)[1]
    assert tuple(re.findall(r"\['(\w+)',", views)) == front_end.VIEWS


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"width": 0.5}, "width must be at least 1"),
        ({"width": 20_000}, "width must be at most 10000; got 20000"),
        ({"width": "wide"}, "width must be"),
        ({"tokens": 1}, "tokens must be"),
        ({"tokens": 51}, "tokens must be at most 50; got 51"),
        ({"tokens": 3.5}, "tokens must be"),
        ({"temperature": 0}, "temperature must be"),
        ({"sigma_perp": -1}, "sigma_perp must be"),
        ({"sigma_perp": math.nan}, "sigma_perp must be"),
        ({"off": ["1.1", "1.2"]}, "off must be a list of some of 1.1, 1.2, 2.1, 2.2, that leaves"),
        ({"off": "1.1"}, "off must be a list"),
        ({"denoising": "none"}, "denoising must be"),
        ({"seed": "paper", "tokens": 20}, "the authors' data have one tokens, 30; give a seed"),
        ({"sigma": 1}, "a setting may have width, examples, temperature, .*; got sigma"),
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


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (None, "a setting must be a dict of width, examples, .*; got None"),
        ({3: 3}, "a setting may have width, examples, .*; got 3"),
        ({"seed": np.array([1, 2])}, "seed must be a whole number"),
        ({"width": np.array([1, 2])}, "width must be a single number"),
        ({"off": [["1.1"]]}, "off must be a list"),
    ],
)
def test_what_is_no_setting_is_refused(setting, said):
    with pytest.raises(ValueError, match=said):
        next(explorer.answers(setting))


@pytest.mark.usefixtures("as_users_see_it")
def test_an_unknown_view_is_refused():
    with pytest.raises(ValueError, match="view must be"):
        explorer.Explorer(view="everything")


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


def test_python_computes_nothing_until_it_is_asked(widget):
    widget.setting = widget.setting | {"width": 20}
    assert widget.answer == {} and widget._thread is None
    said = []
    widget.observe(lambda change: said.append(change["new"]), names="working")
    widget.by = "python"
    assert widget.done.wait(120)
    widget._thread and widget._thread.join(120)
    assert widget.seen[0]["setting"] == widget.setting
    assert "compiled" in said[0] and said[-1] == "" and widget.problem == ""


def test_it_answers_the_last_of_many_settings(widget):
    widget.by = "python"
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
    widget.by = "python"
    widget._thread and widget._thread.join(120)
    assert widget.problem == "RuntimeError: no more memory" and widget.working == ""


def test_it_says_to_the_page_that_it_is_there(widget):
    data, _ = widget._repr_mimebundle_()
    words = {"explorer": "markov", "setting": SETTING, "look": {"view": "accuracy"}}
    assert data[explorer.MIME] == words
    assert "application/vnd.jupyter.widget-view+json" in data
    assert jnp.isfinite(widget.setting["width"])


def test_the_bundle_holds_every_module_once():
    """And neither import nor export, which a classic script may not have."""
    script, lines = bundle.script(), bundle.script().splitlines()
    for folder in ("engine", "front"):
        for path in (bundle.HERE / folder).glob("*.js"):
            assert lines.count(f"const ${path.stem} = (() => {{") == 1, path
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    assert bundle.module().splitlines()[-1].startswith("export default { render:")


def test_a_module_that_cannot_be_bundled_is_refused(tmp_path):
    (tmp_path / "odd.js").write_text("import everything from 'elsewhere';\n", "utf-8")
    with pytest.raises(ValueError, match=r"odd\.js: write each import and export in the form of"):
        bundle.bundle(tmp_path, "odd")
