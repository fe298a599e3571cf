"""The study over many networks, on a small network and drawn characters."""

import functools
import json

import numpy as np
import pytest

from attnpaths import pruning as heads_of
from attnpaths import theory as solver
from attnpaths.tasks import images as image_sources
from attnpaths.tasks import oneshot
from attnpaths.training import Model, Trained
from book.studies import authors, engine
from book.studies.oneshot import claims, pruning, run, theory, trained
from book.studies.oneshot.rules import DEEP, LARGE, RULES, SMALL
from book.studies.verdicts.paired import paired

HEADS = (3, 3)
GRID = {"widths": (10, 1000), "temperatures": (0.1, 1.0)}


@pytest.fixture(scope="module")
def glyphs():
    return {"glyphs": image_sources.load("glyphs", classes=40)}


@pytest.fixture(scope="module")
def arrays():
    network, weights = Model(layers=2, heads=3, key_dim=3, width=8, seed=1).export()
    return trained.compacted(Trained(network, weights, oneshot.label_vectors(), {}))


@pytest.fixture(scope="module")
def network(arrays):
    return trained.made("small", arrays, {"settings": {"seed": 0}, "checksum": "0"})


@pytest.fixture(scope="module")
def data(network, glyphs):
    return theory.drawn(network, glyphs, 0, examples=30, test_examples=20)


def test_accuracies_are_those_of_theory_and_gp(data):
    found = theory.solved(data, **GRID, describe=True)
    assert found["own"] == "glyphs" and found["converged"] == 4
    xi, y = data.tests["glyphs"]
    for i, width in enumerate(GRID["widths"]):
        point = solver.solve(data.xi, data.y, heads=HEADS, width=width, temperature=1.0)
        share = float(point.predict(xi).accuracy(y))
        assert found["accuracy"]["glyphs"][i][1] == pytest.approx(share)
        assert found["strength"][i][1] == pytest.approx(np.trace(point.U) / 9, rel=1e-3)
    limit = solver.gp_limit(data.xi, data.y, heads=HEADS, temperature=0.25)
    at = found["gp_temperatures"].index(0.25)
    assert found["gp_accuracy"]["glyphs"][at] == pytest.approx(float(limit.predict(xi).accuracy(y)))
    narrow = found["narrow"]
    point = solver.solve(data.xi, data.y, heads=HEADS, width=10, temperature=narrow["temperature"])
    np.testing.assert_allclose(narrow["U"], point.U, rtol=2e-3, atol=1e-3)
    assert sum(o**2 for o in narrow["overlaps"]) == pytest.approx(1, abs=0.01)


def test_ties_go_to_the_higher_temperature():
    assert theory.best([0.8, 0.8, 0.7], [0.1, 0.2, 0.3]) == 1
    assert theory.best([0.8, 0.1 + 0.7, 0.7], [0.2, 0.1, 0.3]) == 0


def test_structure_of_an_order_parameter():
    U = np.kron(np.eye(2), np.full((2, 2), 2.0)) + 1 + np.eye(4)
    found = theory.structure(U, (2, 2))
    assert found["largest_tie"] == 0.75 and found["weighting"] == 1
    assert found["block_ratio"] == 3 and found["block_share"] == pytest.approx(12 / 20)
    first = theory.structure(np.diag([1.0, 1, 3, 3]) + 0.1, (2, 2))["first_head"]
    second = theory.structure(np.diag([1.0, 3, 1, 3]) + 0.1, (2, 2))["first_head"]
    assert first == pytest.approx(1) and second == pytest.approx(0)
    rng = np.random.default_rng(0)
    one = rng.standard_normal((4, 4))
    one = one + one.T
    own, renamed = theory.equal_signs(one, 3 * one, (2, 2))
    assert own == 1 and len(renamed) == 4
    # heads 1 and 2 of the first layer change their names
    order = [2, 3, 0, 1]
    above = np.triu_indices(4, 1)
    expected = np.mean(np.sign(one[above]) == np.sign(one[np.ix_(order, order)][above]))
    assert expected in renamed
    assert theory.equal_signs(one, np.diag(np.diag(one)) * 2 - one, (2, 2))[0] == 0


@pytest.fixture(scope="module")
def scored(network, glyphs, data):
    return pruning.scores(network, glyphs, data, examples=60)


@pytest.fixture(scope="module")
def outputs(network, glyphs):
    return pruning.outputs(network, glyphs, {"glyphs": 80})


def test_scores_are_those_of_the_library(network, scored, data):
    by_rule, again, U = scored
    point = solver.solve(data.xi, data.y, heads=HEADS, width=10, temperature=0.5)
    np.testing.assert_allclose(U, point.U)
    assert by_rule["score"] == heads_of.head_scores(point.U, HEADS)
    assert by_rule["score, either"] == heads_of.head_scores(point.U, HEADS, pairs="either")
    assert by_rule["score, shuffled labels"] != by_rule["score"]
    assert list(by_rule["value norm"].values()) == network.norms.tolist()
    names = set(heads_of.all_heads(HEADS))
    assert all(set(each) == names for each in by_rule.values())
    assert all(len(order) == 4 for order in again.values())


def test_no_rule_is_above_the_best(scored, outputs):
    answer = pruning.pruned(HEADS, outputs, *scored)
    parts, y = outputs["glyphs"]
    assert answer["own"] == "glyphs"
    for ablation in ("zero", "mean"):
        one = answer["tests"]["glyphs"][ablation]
        for curve in one["curves"].values():
            assert len(curve) == 5 and np.all(np.array(curve) <= np.array(one["best"]) + 1e-12)
        alone = heads_of.each_head(parts, y, heads=HEADS, ablation=ablation)
        whole = one["curves"]["score"][0]
        np.testing.assert_allclose(one["drop"], whole - np.array(list(alone.values())))
        every = heads_of.subset_accuracies(parts, y, heads=HEADS, ablation=ablation)
        assert sum(one["shapley"]) == pytest.approx(every[1, 1, 1, 1, 1, 1] - every.flat[0])
        assert one["correlation"]["first layer first"]["within"] is None
    # greedy on the same data would start with the best single head
    first = np.argmin(answer["scores"]["measured drop"])
    assert answer["orders"]["measured drop, step by step"][0] == answer["heads"][first]
    # as JSON has it
    assert json.loads(json.dumps(engine._plain(answer)))["own"] == "glyphs"


def test_correlations_within_layers_and_pooled():
    # the layer explains all that scores and drops share
    found = pruning.correlations([1, 2, 3, 11, 12, 13], [3, 2, 1, 13, 12, 11], (3, 3))
    assert found["within"] == -1 and found["pooled"] > 0.5
    assert pruning.correlations([1, 1], [1, 2], (2,)) == {"within": None, "pooled": None}


def test_the_numbers_of_the_authors_in_the_rules():
    rho = pruning.correlations(range(8), authors.DROPS, (8,))["pooled"]
    quoted = {rule.id: rule.measured for rule in RULES}
    assert f"the authors' own is {rho:.3f}".replace("0.", ".") in quoted["score, pooled"]
    first, second = sorted(100 * drop for drop in authors.DROPS[:2])
    assert f"{first:.1f} and {second:.1f} points" in quoted["two lowest"]
    assert set(theory.AUTHORS_GP) == set(authors.read("oneshot")["gp_temperatures"])


def test_heads_that_replace_each_other():
    # heads 1 and 2 say the same, head 3 says something else that matters less
    rng = np.random.default_rng(0)
    y = rng.choice([1.0, -1.0], size=400)
    noise = rng.standard_normal((400, 2))
    parts = np.stack([y + noise[:, 0], y + noise[:, 0], 0.1 * noise[:, 1]], axis=1)
    every = heads_of.subset_accuracies(parts, y, heads=(3,))
    U = np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1.0]])
    found = pruning.stand_in(U, every, (3,))
    assert found["pairs"] == 3 and found["rho"] > 0.8
    assert int(np.argmax(found["extra"])) == int(np.argmax(found["ties"])) == 0


@pytest.fixture
def study(monkeypatch, tmp_path, glyphs, arrays):
    """The command, with parts that count how often they are made."""
    calls = []
    monkeypatch.setattr(run, "sources", lambda: glyphs)
    monkeypatch.setattr(run, "DRAWS", {HEADS: (0, 1)})
    monkeypatch.setattr(run, "SMALL", HEADS)
    monkeypatch.setattr(run, "SAMPLED", 1)
    for part in ("pruning", "draw", "sampled"):

        def called(self, *seed, part=part):
            calls.append(" ".join([self.network.name, part, *map(str, seed)]))
            return {}

        monkeypatch.setattr(run.Study, f"part_{part}", called)
    record = {"settings": {"seed": 0}}
    for name in ("a", "b"):
        trained.write(name, arrays, record, tmp_path / "networks")

    def made(*options):
        calls.clear()
        where = ["--networks", str(tmp_path / "networks"), "--folder", str(tmp_path)]
        assert run.main([*where, "--jobs", "1", *options]) == 0
        return list(calls)

    return made, tmp_path


def test_the_study_makes_what_is_missing(study, arrays, monkeypatch):
    made, folder = study
    of = {n: [f"{n} pruning", f"{n} draw 0", f"{n} draw 1"] for n in "ab"}
    assert made("--only", "b") == of["b"]
    # one network is sampled: the first
    assert made() == [*of["a"], "a sampled"] and made() == []
    assert made("--again") == [*of["a"], *of["b"], "a sampled"]
    held = engine.read(run.NAME, folder)
    assert held["parts"]["a: sampled"]["shape"] == [3, 3]
    assert held["provenance"]["a: draw 0"]["source"] == engine.fingerprint(*run.CODE)
    other = arrays | {"norms": arrays["norms"] + 1}
    trained.write("b", other, {"settings": {"seed": 0}}, folder / "networks")
    assert made() == of["b"]
    # other code makes all of it stale
    monkeypatch.setattr(run, "CODE", run.CODE[1:])
    assert len(made()) == 7
    for end in (".npz", ".json"):
        (folder / "networks" / f"a{end}").unlink()
    assert made() == ["b sampled"]
    assert all(part.startswith("b: ") for part in engine.read(run.NAME, folder)["parts"])


def test_bad_calls(study, capsys):
    _, folder = study
    where = ["--networks", str(folder / "networks"), "--folder", str(folder)]
    assert run.main([*where, "--only", "c"]) == 2
    assert "there is no network 'c' in" in capsys.readouterr().err
    assert run.main(["--networks", str(folder / "nowhere")]) == 2
    assert "there are no networks in" in capsys.readouterr().err
    assert run.main([*where, "--jobs", "0"]) == 2
    assert "jobs must be at least 1; got 0" in capsys.readouterr().err
    (folder / "networks" / "a.json").write_text("{}")
    assert run.main(where) == 2
    assert "is damaged" in capsys.readouterr().err
    assert not engine.file(run.NAME, folder).exists()


def test_the_fingerprint_sees_code_and_not_words(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "some_module_of_this_test.py"
    fingerprint = functools.partial(engine.fingerprint, file.stem)
    file.write_text('"""Words."""\n\n\ndef f(x):\n    """More."""\n    return x + 1\n')
    before = fingerprint()
    file.write_text("def f(x):\n    # other words\n    return x + 1\n")
    assert fingerprint() == before
    file.write_text("def f(x):\n    return x + 2\n")
    assert fingerprint() != before
    with pytest.raises(ValueError, match="there is no module"):
        engine.fingerprint("no_such_module_anywhere")


def draw(gain=0.02, best=1):
    """A part with a gain at the best temperature, made up."""
    rows = [[0.7, 0.7 + gain], [0.7, 0.7]]
    tests = ("omniglot", "mnist, authors", "fashion_mnist, authors")
    structure = {"largest_tie": 0.8, "weighting": 4.0, "block_share": 0.4, "first_head": 0.7}
    return {
        "own": "omniglot",
        "shape": [4, 4],
        "widths": [10, 10_000],
        "temperatures": [0.1, 0.5],
        "gp_temperatures": [0.1, 0.25, 0.5],
        "accuracy": {test: rows for test in tests},
        "gp_accuracy": {test: [0.6, 0.7, 0.65] for test in tests},
        "strength": [[3.0, 4.0], [1.0, 2.0]],
        "narrow": {
            "structure": structure,
            "overlaps": [0.1, 0.8],
            "gp_overlaps": [0.3, 0.5],
        },
        "trained": {
            "structure": structure | {"block_ratio": 2.0},
            "equal_signs": 0.9,
            "renamed_signs": 0.6,
        },
    }


def cut(shape, lost=0.03):
    """A part of pruning, made up."""
    count = sum(shape)
    one = {
        "curves": {
            "score, either": [0.8, 0.79, 0.8 - lost, 0.7, 0.8 - 2 * lost],
            "score": [0.8, 0.78, 0.7, 0.7, 0.6],
        },
        "drop": [0.01 * i for i in range(count)],
        "correlation": {
            "score, either": {"within": 0.4, "pooled": 0.6},
            "score": {"within": 0.1, "pooled": 0.2},
        },
    }
    tests = {test: {"zero": one} for test in ("omniglot", "fashion_mnist, authors")}
    scores = {"score, either": list(range(count)), "score": list(range(count))[::-1]}
    return {"own": "omniglot", "shape": list(shape), "scores": scores, "tests": tests}


def test_findings(monkeypatch):
    monkeypatch.setattr(claims, "PAPER_TEMPERATURES", (0.5, 0.25))
    parts = {}
    for i, gain in enumerate((0.01, 0.02, 0.06)):
        parts |= {f"s{i}: draw 0": draw(gain), f"s{i}: pruning": cut(SMALL, 0.02 + gain)}
    parts["l: pruning"] = cut(LARGE)
    found = {each.rule.id: each for each in claims.findings(parts)}
    assert set(found) == {rule.id for rule in RULES} == set(claims.MEASURES)
    assert found["gain"].values == pytest.approx({"s0": 0.01, "s1": 0.02, "s2": 0.06})
    assert found["gain"].judgement == ("reproduced", "positive")
    assert found["gain"].summary.mean == pytest.approx(0.03)
    assert found["gain, MNIST"].judgement.verdict == "undecided"
    assert found["ties"].values["s0"] == pytest.approx(0.3)
    assert found["blocks"].judgement.verdict == "not reproduced"
    assert found["weighting"].values["s1"] == pytest.approx(np.log(2))
    assert found["alignment, overlap"].values["s0"] == pytest.approx(0.39)
    assert found["alignment, rank"].values["s0"] == pytest.approx(0.31)
    assert found["temperature grows"].values["s0"] == pytest.approx(0)  # ties go up
    assert found["temperatures"].values["s0"] == pytest.approx(0.5)
    assert found["magnitude"].values["s0"] == pytest.approx(np.log(2))
    assert found["a quarter"].values == pytest.approx({"s0": 0.03, "s1": 0.04, "s2": 0.08})
    assert found["a quarter"].judgement.verdict == "undecided"
    assert found["pruned, FashionMNIST"].judgement.verdict == "not reproduced"
    assert found["pruned, FashionMNIST, large"].values == pytest.approx({"l": -0.1})
    assert found["identical"].values == pytest.approx({"l": 0.06 - 0.05})
    assert found["two lowest"].values["s0"] == pytest.approx(0.01)
    assert found["score"].values["s2"] == 0.4 and found["score, pooled"].values["s2"] == 0.6
    # the text's score is another
    assert found["score, text"].values["s2"] == 0.1
    assert found["a quarter, text"].values["s0"] == pytest.approx(0.1)
    assert found["two lowest, text"].values["s0"] == pytest.approx(0.07)
    assert found["identical, text"].values == pytest.approx({"l": 0.1})
    # one network decides nothing, and none is not judged
    assert found["a quarter, large"].judgement.verdict == "not checked"
    assert not found["gain, deep"].values and found["gain, deep"].summary is None
    assert claims.networks(parts) == ["l", "s0", "s1", "s2"]
    assert claims.networks(parts, DEEP) == []
    assert claims.authors_gain({"draw 0": draw(0.02)}) == pytest.approx(0.02)


def test_the_table_of_findings(monkeypatch):
    monkeypatch.setattr(claims, "PAPER_TEMPERATURES", (0.5, 0.25))
    parts = {}
    for i, gain in enumerate((0.01, 0.02, 0.06)):
        parts |= {f"s{i}: draw 0": draw(gain), f"s{i}: pruning": cut(SMALL, 0.02 + gain)}
    found = {each.rule.id: each for each in claims.findings(parts)}
    shown = claims.columns(found[id] for id in ("gain", "gain, MNIST", "a quarter", "gain, deep"))
    effect, limits, holds, p = (shown[name] for name in claims.COLUMNS[3:7])
    assert effect[0] == "+3.0 points (+1.0 to +6.0)" and holds == ["3 of 3", "0 of 3", "2 of 3", ""]
    assert limits == ["> 0", "± 1 point", "< 5 points", ""]
    # all three are positive: one pattern of signs of eight is as large
    assert p[0] == "0.125"
    # comparable has two sides, of which the worse counts
    sides = [paired([0.01 - x for x in (0.01, 0.02, 0.06)]).p_value,
             paired([0.01 + x for x in (0.01, 0.02, 0.06)]).p_value]  # fmt: skip
    assert p[1] == f"{max(sides):.3f}"
    assert shown["verdict"][3] == "not checked" and effect[3] == ""
    assert len(claims.columns([])) == 8
