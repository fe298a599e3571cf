"""From a model to a report: paths, labels, readouts, guards, choices, and what is kept."""

import dataclasses
import itertools
import os
import types

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnpaths import Weights, analyse, analysis, theory
from attnpaths.adapters import calls, record_attention
from attnpaths.analysis import Plan, choice, source
from attnpaths.analysis.labels import targets
from attnpaths.network import path_outputs

EXAMPLES, TOKENS, DIM = 16, 4, 6
SETTING = {"width": 10, "temperature": 0.1, "progress": False}


def encoder(layers=2, **options):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(DIM, 2, 8, batch_first=True, norm_first=True, **options)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).double().eval()


class Own(nn.Module):
    """Layers of one's own, which call PyTorch's attention as a function, with a causal mask."""

    def __init__(self, layers=2):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(DIM, 3 * DIM) for _ in range(layers))
        self.double()

    def forward(self, x):
        for layer in self.layers:
            q, k, v = layer(x).unflatten(2, (3, 2, -1)).permute(2, 0, 3, 1, 4)
            z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + z.transpose(1, 2).flatten(2)
        return x


MODEL = encoder()
X = torch.randn(
    EXAMPLES, TOKENS, DIM, generator=torch.Generator().manual_seed(1), dtype=torch.float64
)
Y = np.where(X[:, -1, 0].numpy() > 0, 1.0, -1.0)


@pytest.fixture
def machine(monkeypatch):
    """Sets how many bytes of memory there are."""
    system = os.sysconf

    def of(size):
        sizes = {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": size}
        monkeypatch.setattr(os, "sysconf", lambda name: sizes.get(name) or system(name))

    return of


@pytest.fixture(scope="module")
def report():
    return analyse(MODEL, X, Y, readout="last", **SETTING)


def layered(seen, weights, read, used):
    """The linear network with this attention, layer by layer, only through the layers `used`."""
    width, dim = weights.V0.shape
    state = seen.x @ np.asarray(weights.V0).T / np.sqrt(dim)
    for i, (omega, values) in enumerate(zip(seen.omega, weights.V, strict=True)):
        attended = np.einsum("phst,psn->phtn", omega, state)
        added = np.einsum("hmn,phtn->ptm", values, attended) / np.sqrt(width * len(values))
        state = state + added * (i in used)
    return np.einsum("pt,ptn,n->p", read, state, weights.a) / np.sqrt(width)


@pytest.mark.parametrize("readout", ["last", "mean"])
def test_paths_are_the_layered_linear_network(readout):
    model = encoder(3)
    seen, way = record_attention(model, X), source.Source(model, None, readout, "normalised")
    read = source.by_example(readout, np.ones((EXAMPLES, TOKENS), bool))
    weights = Weights.prior(0, width=5, dim=DIM, heads=(2, 2, 2))
    plan = Plan.of((2, 2, 2))
    f = path_outputs(weights, way.features(plan, seen, X), True).sum(axis=1)
    np.testing.assert_allclose(f, layered(seen, weights, read, {0, 1, 2}), atol=1e-12)
    # one block: the skips, and what each layer adds to them alone
    plan = Plan.of((2, 2, 2), blocks=1)
    single = Weights(weights.V0, [np.concatenate(weights.V)], weights.a)
    f = path_outputs(single, way.features(plan, seen, X), True).sum(axis=1)
    skip, *each = (layered(seen, weights, read, used) for used in (set(), {0}, {1}, {2}))
    np.testing.assert_allclose(f, sum(each) - 2 * skip, atol=1e-12)
    # a window whose later layers are passed: it starts from the tokens of its first layer
    plan = Plan.of((2, 2, 2), layers=(2, 2))
    xi = way.features(plan, seen, X)
    first = np.einsum("pt,ptd->pd", read, seen.tokens[1])
    np.testing.assert_allclose(xi[:, 0], first, atol=1e-13)
    head = np.einsum("pst,pt,psd->pd", seen.omega[1][:, 1], read, seen.tokens[1])
    np.testing.assert_allclose(xi[:, 2], head, atol=1e-13)


def test_the_share_is_that_of_the_prior_variance():
    model = encoder(3)
    seen, way = record_attention(model, X), source.Source(model, None, "mean", "normalised")

    def variance(plan):
        return np.einsum("pki,k->", way.features(plan, seen, X) ** 2, plan.ways.scales**2)

    def share(plan):
        return way.share(plan, seen, X, None, None, (True,) * 3)

    whole, blocks = Plan.of((2, 2, 2)), Plan.of((2, 2, 2), blocks=2)
    assert share(whole) == pytest.approx(1, abs=1e-12)
    assert share(blocks) == pytest.approx(variance(blocks) / variance(whole), abs=1e-12)
    assert 0.1 < share(Plan.of((2, 2, 2), blocks=1)) < share(blocks) < 0.99


def test_chosen_heads_are_the_network_without_the_others():
    model = encoder(3)
    seen, way = record_attention(model, X), source.Source(model, None, "last", "normalised")
    read = source.by_example("last", np.ones((EXAMPLES, TOKENS), bool))
    weights = Weights.prior(0, width=5, dim=DIM, heads=(2, 2, 2))
    plan = Plan.of((2, 2, 2), chosen=[(3, 1), (1, 2)])
    assert plan.path_names == ["skip", "3.1", "1.2", "1.2 → 3.1"] and plan.blocks == (2, 1)
    few = Weights(weights.V0, [weights.V[0][1:], weights.V[2][:1]], weights.a)
    f = path_outputs(few, way.features(plan, seen, X), True).sum(axis=1)
    first, last = np.array(weights.V[0]), np.array(weights.V[2])
    first[0], last[1] = 0, 0
    left = Weights(weights.V0, [first, weights.V[1], last], weights.a)
    np.testing.assert_allclose(f, layered(seen, left, read, {0, 2}), atol=1e-12)
    xi = way.features(plan, seen, X) * plan.ways.scales[None, :, None]
    whole = Plan.of((2, 2, 2))
    every = way.features(whole, seen, X) * whole.ways.scales[None, :, None]
    share = way.share(plan, seen, X, None, None, (True,) * 3)
    assert share == pytest.approx(np.sum(xi**2) / np.sum(every**2), abs=1e-12)
    assert way.error(plan, seen, X, None, None, 0) is None


@pytest.mark.parametrize("blocks", [3, 2])
def test_sampled_heads_have_the_kernel_of_all_on_average(blocks):
    """Over all draws there are, exactly; and the error is the spread between them."""
    model = encoder(3)
    seen, way = record_attention(model, X), source.Source(model, None, "mean", "normalised")

    def kernel(plan):
        xi = way.features(plan, seen, X) * plan.ways.scales[None, :, None]
        return np.einsum("pki,qki->pq", xi, xi)

    whole, plan = (Plan.of((2, 2, 2), blocks=blocks, sampled=n) for n in (None, 1))
    assert plan.paths == 2**blocks and plan.meant == whole.members
    every = [
        kernel(dataclasses.replace(plan, kept=tuple((head,) for head in heads)))
        for heads in itertools.product(*whole.members)
    ]
    np.testing.assert_allclose(np.mean(every, axis=0), kernel(whole), atol=1e-12)
    shares = [way.share(each, seen, X, None, None, (True,) * 3) for each in (plan, whole)]
    assert shares[0] == pytest.approx(shares[1], abs=1e-12)
    spread = np.sqrt(np.sum(np.var(every, axis=0))) / np.linalg.norm(kernel(whole))
    assert way.error(plan, seen, X, None, None, 0) == pytest.approx(spread, rel=0.4)
    drawn = {plan.drawn(np.random.default_rng(i)).kept for i in range(80)}
    assert len(drawn) == len(every)


def test_twelve_layers_of_twelve_heads_give_an_answer_with_its_error(tmp_path):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(12, 12, 8, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).double().eval()
    x = torch.cat([X, X], dim=2)
    found = analyse(model, x, Y, readout="last", sampled=1, layers=(10, 12), **SETTING)
    assert found.plan.paths == 8 and len(found.scores()) == 3
    assert found.share == pytest.approx(1)
    assert found.error is not None and 0 < found.error < 1
    assert f"share 1.00 within layers 10 to 12, error {found.error:.2f}, " in repr(found)
    assert found.to_xarray().share_of == "the prior variance within layers 10 to 12"
    shown = found._repr_html_()
    assert "share of the prior variance within layers 10 to 12<" in shown
    assert "heads that were drawn" in shown and ">–</td>" in shown and "nan" not in shown
    found.save(tmp_path / "it.npz")
    again = analysis.load(tmp_path / "it.npz", model)
    assert again.plan == found.plan and again.error == found.error
    np.testing.assert_array_equal(again.predict(x[:3]).mean, found.predict(x[:3]).mean)
    with pytest.raises(ValueError, match=r"12 blocks .* make 4,096 paths, above most_paths=100"):
        analyse(model, x, Y, readout="last", sampled=1, blocks=12, **SETTING)


def test_a_report_says_what_it_found(report):
    assert repr(report) == (
        "Report(TransformerEncoder, layers 1–2 of 2, 9 paths, share 1.00, N = 10, 𝒯 = 0.1)"
    )
    assert report.theory.residual == (True, True) and report.theory.converged
    table = report.heads()
    assert table[["layer", "head"]].values.tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]
    # by hand, from U and the names of paths
    names, U = report.plan.path_names, np.abs(report.theory.U)
    assert names[:3] == ["skip", "2.1", "2.2"] and names[5] == "1.1 → 2.2"
    on = np.array(["1.2" in name for name in names])
    np.testing.assert_allclose(table.score[1], U[on][:, on].sum())
    np.testing.assert_allclose(table.either[1], U.sum() - U[~on][:, ~on].sum())
    xi, scale = np.asarray(report.theory.xi), report.plan.ways.scales
    C = np.einsum("pki,qli->klpq", xi, xi) / DIM
    sizes = np.linalg.norm(C, axis=(2, 3)) / EXAMPLES * np.outer(scale, scale)
    np.testing.assert_allclose(table.weighed[1], (U * sizes)[on][:, on].sum())
    data = report.to_xarray()
    assert data.U.sel(path="skip", other_path="2.1") == report.theory.U[0, 1]
    assert data.score.sel(head="2.2") == report.scores()[2, 2]
    assert "share of the prior variance<" in report._repr_html_()
    assert data.share_of == "the prior variance"
    assert report.figure().data[0].z.shape == (2, 2)
    assert report.figure("order").data[0].z.shape == (9, 9)


def test_a_report_is_kept_without_its_model(report, tmp_path):
    report.save(tmp_path / "it.npz")
    bare, again = (analysis.load(tmp_path / "it.npz", model) for model in (None, MODEL))
    assert repr(bare) == repr(report) and bare.plan == report.plan
    with pytest.raises(ValueError, match=r"holds no model: load\(path, model=model\)"):
        bare.predict(X)
    new = X.flip(0)[:5]
    np.testing.assert_array_equal(again.predict(new).mean, report.predict(new).mean)
    assert report.hits(X, Y).mean() > 0.8
    # new labels may be of one class, and two classes may be written either way
    right = report.hits(X, Y)
    for one in (-1, 1):
        chosen = np.asarray(Y) == one
        some = X[torch.as_tensor(chosen)]
        for written in (one, (one + 1) // 2):
            np.testing.assert_array_equal(report.hits(some, [written] * len(some)), right[chosen])
    with pytest.raises(ValueError, match=r"names become numbers by np\.unique"):
        report.hits(X, ["a"] * len(X))
    with pytest.raises(ValueError, match=r"labels must hold one label per example, 5; got 4"):
        report.hits(new, Y[:4])
    with pytest.raises(ValueError, match=rf"tokens must have dimension {X.shape[2]}.*; got 2"):
        report.predict(new, tokens=np.ones((*new.shape[:2], 2)))


def test_a_report_knows_its_model_and_inputs_are_numbers(tmp_path, report):
    report.save(tmp_path / "it.npz")
    with pytest.raises(ValueError, match=r"must be the TransformerEncoder that was .*; got a Own"):
        analysis.load(tmp_path / "it.npz", Own())
    holed = X.clone()
    holed[0, 1, 2] = torch.nan
    message = rf"must not hold NaN; 1 of the {X.numel()} numbers of a tensor \[{EXAMPLES}, "
    with pytest.raises(ValueError, match=message):
        report.predict(holed)


def test_a_small_share_is_not_said_to_be_nothing(report):
    assert "share < 0.01" in repr(dataclasses.replace(report, share=0.003))
    assert "share 0.50" in repr(dataclasses.replace(report, share=0.5))


def test_classes_become_outputs_that_add_up_to_zero(monkeypatch):
    assert targets([0, 1, 1])[1].tolist() == [-1, 1, 1]
    kind, y = targets([0, 2, 1])
    assert kind == "classes"
    np.testing.assert_allclose(y, np.eye(3)[[0, 2, 1]] - 1 / 3)
    # infinite width will do, and compiles faster
    monkeypatch.setattr(theory, "solve", lambda *a, width, **k: theory.gp_limit(*a, **k))
    found = analyse(MODEL, X, np.arange(EXAMPLES) % 3, readout="mean", layers=(2, 2), **SETTING)
    assert found.theory.U.shape == (9, 9) and found.predict(X[:2]).mean.shape == (2, 3)
    np.testing.assert_allclose(found.predict(X).mean.sum(axis=1), 0, atol=1e-9)
    assert found.hits(X[:3], [0, 1, 2]).shape == (3,)


@pytest.mark.parametrize("labels", [[0, 2], [0.5, 1], [-1, 0], [3, 3]])
def test_labels_that_are_neither_are_refused(labels):
    with pytest.raises(ValueError, match=r"labels must be −1 and \+1, or the numbers of classes"):
        targets(labels)


MASK = np.array([[1, 1, 1, 0], [0, 1, 1, 1]])


@pytest.mark.parametrize(
    ("readout", "expected"),
    [
        ("first", [[1, 0, 0, 0], [0, 1, 0, 0]]),
        ("last", [[0, 0, 1, 0], [0, 0, 0, 1]]),
        ("mean", [[1 / 3, 1 / 3, 1 / 3, 0], [0, 1 / 3, 1 / 3, 1 / 3]]),
        (1, [[0, 1, 0, 0], [0, 1, 0, 0]]),
        ([2, -1], [[0, 0, 1, 0], [0, 0, 0, 1]]),
    ],
)
def test_readouts_leave_padding_out(readout, expected):
    np.testing.assert_allclose(source.by_example(readout, MASK > 0), expected)


def test_padding_is_found_where_the_model_finds_it():
    inputs = {"attention_mask": torch.tensor(MASK)}
    options = {"src_key_padding_mask": torch.tensor(MASK == 0)}
    floats = {"src_key_padding_mask": torch.where(torch.tensor(MASK == 0), -torch.inf, 0.0)}
    for given in ((MASK, None, None), (None, inputs, None), (None, X, options), (None, X, floats)):
        np.testing.assert_array_equal(source.padding(*given, (2, 4)), MASK > 0)
    with pytest.raises(ValueError, match=r"no token of 1 examples, of number 1 .* leave such"):
        source.padding([[1, 1], [0, 0]], None, None, (2, 2))
    with pytest.raises(ValueError, match=r"mask must be \[2, 3\]"):
        source.padding(MASK, None, None, (2, 3))
    hole = np.array([[True, False], [False, False]])
    for bad, message in (
        (np.ma.array(np.ones((2, 2)), mask=hole), "mask must not be masked"),
        (np.where(hole, np.nan, 1.0), "mask must be finite"),
        (np.full((2, 2), "1"), "mask must hold real numbers"),
        ([[1, 1], [1]], r"mask must be \[2, 2\].* that is ragged"),
    ):
        with pytest.raises(ValueError, match=message):
            source.padding(bad, None, None, (2, 2))
    with pytest.raises(ValueError, match="readout must be 'first', 'last'"):
        source.by_example(np.ma.array([0, 0], mask=[1, 0]), np.ones((2, 2), bool))


def test_padded_tokens_change_nothing(report):
    """Chains that are filled up give the features of those that are not."""
    longer = torch.cat([X, 9 * torch.ones(EXAMPLES, 2, DIM, dtype=X.dtype)], dim=1)
    padded = torch.zeros(EXAMPLES, TOKENS + 2, dtype=torch.bool)
    padded[:, TOKENS:] = True
    found = report.predict(longer, options={"src_key_padding_mask": padded})
    np.testing.assert_allclose(found.mean, report.predict(X).mean, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"readout": 3, "mask": MASK}, r"mask must be \[16, 4\]"),
        ({"readout": 3, "mask": np.tile(MASK[:1], (16, 1))}, "padded token in 16 examples"),
        ({"readout": 4}, "readout names token 4 but there are 4"),
        ({"readout": "middle"}, "readout must be one of 'first', 'last', 'mean'"),
        ({"readout": [0.5]}, "readout must be 'first', 'last', 'mean', a token's number"),
        ({"labels": Y[:8]}, "one label per example, 16; got 8"),
        ({"tokens": "embedded"}, "tokens must be one of 'normalised', 'raw'"),
        ({"tokens": np.ones((2, 3, 4))}, r"tokens must be \[16, 4, D\]"),
        ({"layers": (2, 3)}, r"layers\[1\] must be a whole number ≥ 2 and ≤ 2"),
        ({"layers": 2}, r"layers must be \(first, last\)"),
        ({"blocks": 1, "residual": False}, "blocks pass layers by their skips"),
        ({"layers": (1, 1), "residual": False}, "layers must end with the last layer, 2"),
        ({"most_paths": 2}, r"make 3 paths, .* takes 72 bytes, .*; take a larger most_paths"),
        ({"blocks": 2, "most_paths": 8}, r"make 9 paths, .* take blocks=1 \(5 paths\), or layers"),
        ({"chosen": [(1, 3)]}, r"chosen must be heads of the model: there is no head \(1, 3\)"),
        ({"chosen": []}, "chosen must name a head at least"),
        ({"chosen": [(1, 1)], "layers": (1, 2)}, "leave `layers` and `sampled` out"),
        ({"chosen": [(1, 1)], "sampled": 1}, "leave `layers` and `sampled` out"),
        ({"chosen": [(1, 1)], "residual": (True, False)}, "must end with the last layer, 2"),
        ({"sampled": 0}, "sampled must be a whole number ≥ 1; got 0"),
        ({"seed": -1}, "seed must be a whole number ≥ 0; got -1"),
        ({"progress": "no"}, "progress must be True or False; got 'no'"),
        ({"choose": "luck"}, "choose must be one of 'cross-validation', 'evidence'"),
        ({"choose": "evidence", "width": None}, "evidence always prefers the narrowest"),
    ],
)
@pytest.mark.usefixtures("as_users_see_it")
def test_bad_input(change, message):
    given = {"labels": Y, "readout": "last", **SETTING} | change
    with pytest.raises(ValueError, match=message):
        analyse(MODEL, X, **given)


TEXTS = ["a text", "another"] * 8


@pytest.mark.parametrize(
    ("inputs", "kind"),
    [
        (TEXTS, "list"),
        (tuple(TEXTS), "tuple"),
        ({"text": TEXTS, "input_ids": [[1, 2]] * 16}, "dict"),
        (X.numpy(), "ndarray"),
        (None, "NoneType"),
    ],
)
def test_inputs_without_tensors_are_refused(inputs, kind):
    message = rf"inputs must be a tensor, .*; got {kind} without; texts go through a tokenizer"
    with pytest.raises(ValueError, match=message):
        analyse(MODEL, inputs, Y, readout="last", **SETTING)


class Unrun(nn.Module):
    """A model that says how many heads it has, and must not be run."""

    def __init__(self, layers=None, **config):
        super().__init__()
        self.layers, self.config = layers, types.SimpleNamespace(**config)

    def forward(self, x):
        raise AssertionError("it ran")


UNRUN = [
    Unrun(num_hidden_layers=12, num_attention_heads=2, hidden_size=DIM),
    Unrun(layers=encoder(12)),
]


@pytest.mark.parametrize("model", UNRUN, ids=["config", "modules"])
def test_what_is_too_much_is_refused_before_the_model_runs(model, machine):
    with pytest.raises(ValueError, match=r"make 531,441 paths.* 2,104\.3 GiB.* blocks=1 \(25 p"):
        analyse(model, X, Y, readout="last", blocks=12)
    with pytest.raises(ValueError, match="theory of 16 examples along 531,441 paths would need"):
        analyse(model, X, Y, readout="last", blocks=12, most_paths=10**6)
    window = {"readout": "last", "layers": (12, 12)}
    with pytest.raises(AssertionError, match="it ran"):
        analyse(model, X, Y, **window)
    # too much because of the dimension of tokens alone
    machine(20 * 2**10)
    with pytest.raises(ValueError, match="theory of 16 examples along 3 paths would need"):
        analyse(model, X, Y, **window)


def test_plans_are_as_large_as_may_be():
    with pytest.raises(ValueError, match=r"make 169 paths, .* parameter alone takes 223\.1 KiB"):
        Plan.of((12,) * 2, blocks=2)
    plan = Plan.of((12,) * 12)
    assert (plan.first, plan.heads, plan.paths) == (12, (12,), 13)
    assert Plan.of((12,) * 12, most_paths=169).first == 11
    assert Plan.of((12,) * 12, layers=(1, 12), most_paths=145).blocks == (12,)
    plan = Plan.of((3, 2, 2), layers=(2, 3), blocks=1)
    assert plan.members == [[(2, 1), (2, 2), (3, 1), (3, 2)]]
    np.testing.assert_allclose(plan.scales, [1, *[np.sqrt(2)] * 4])


def test_width_and_temperature_are_chosen_on_examples_left_out(monkeypatch):
    monkeypatch.setattr(choice, "WIDTHS", (10.0, 100.0))
    monkeypatch.setattr(choice, "TEMPERATURES", (0.01, 3.0))
    found = analyse(MODEL, X, Y, readout="last", layers=(2, 2), folds=2, progress=False)
    tried = found.choice
    assert tried.by == "cross-validation" and tried.values.shape == (2, 2)
    i, j = tried.best
    assert float(found.theory.width) == tried.widths[i]
    assert float(found.theory.temperature) == pytest.approx(tried.temperatures[j])
    # by hand, for one point of the grid
    order = np.random.default_rng(0).permutation(EXAMPLES)
    order = order[np.argsort(Y[order], kind="stable")]
    xi, error = np.asarray(found.theory.xi), 0.0
    for fold in range(2):
        out = order[fold::2]
        kept = np.setdiff1d(order, out)
        solved = theory.solve(xi[kept], Y[kept], heads=(2,), residual=True, width=10,
                              temperature=tried.temperatures[1])  # fmt: skip
        error += np.sum((np.asarray(solved.predict(xi[out]).mean) - Y[out]) ** 2)
    assert tried.values[0, 1] == pytest.approx(-error / EXAMPLES, rel=1e-6)


def test_evidence_is_that_of_the_gaussian_process_in_wide_networks(report):
    """It falls with the width, and ends at the marginal likelihood of the GP limit."""
    xi, setting = report.theory.xi, {"heads": (2, 2), "residual": True, "temperature": 0.1}
    found = [
        float(choice.log_evidence(theory.solve(xi, Y, width=n, **setting)))
        for n in (3, 10, 100, 1e6)
    ]
    assert found == sorted(found, reverse=True)
    K = np.asarray(theory.gp_limit(xi, Y, **setting).kernel()) + 0.1 * np.eye(EXAMPLES)
    exact = -(Y @ np.linalg.solve(K, Y) + np.linalg.slogdet(2 * np.pi * K)[1]) / 2
    assert found[-1] == pytest.approx(exact, abs=1e-3)
    assert report.evidence == pytest.approx(found[1])
    wide = dataclasses.replace(report, theory=theory.solve(xi, Y, width=np.inf, **setting))
    assert wide.evidence == pytest.approx(exact, rel=1e-10)
    # two outputs with one kernel each are independent
    both = theory.gp_limit(xi, np.stack([Y, Y], axis=1), **setting)
    assert float(choice.log_evidence(both)) == pytest.approx(2 * exact, rel=1e-10)


def test_an_own_module_from_the_call_to_the_file(tmp_path):
    """Against ξ by the formula, and bfloat16 against double precision."""
    model, state, ways = Own(), X, []
    for layer in model.layers:
        q, k, v = (part.unflatten(2, (2, 3)) for part in layer(state).detach().chunk(3, dim=2))
        logits = torch.einsum("pshg,pthg->phst", k, q) / 3**0.5
        logits[:, :, *np.tril_indices(TOKENS, -1)] = -torch.inf
        omega = logits.softmax(dim=2)
        state = state + torch.einsum("phst,pshg->pthg", omega, v).flatten(2)
        ways.append([torch.eye(TOKENS, dtype=X.dtype), *omega.unbind(dim=1)])
    xi = [(X.mT @ first @ second)[:, :, -1] for first, second in itertools.product(*ways)]
    xi = np.stack(xi, axis=1)
    found = analyse(model, X, Y, readout="last", **SETTING)
    np.testing.assert_allclose(found.theory.xi, xi, atol=1e-12)
    by_hand = theory.solve(
        xi, Y, heads=(2, 2), residual=True, width=10, temperature=SETTING["temperature"]
    )
    assert found.theory.converged
    np.testing.assert_allclose(found.theory.U, by_hand.U, atol=1e-6)
    found.save(tmp_path / "it.npz")
    again = analysis.load(tmp_path / "it.npz", model)
    np.testing.assert_array_equal(again.predict(X).mean, found.predict(X).mean)
    assert again.scores() == found.scores() and again.share == pytest.approx(1)
    # what it declares is no more than a promise
    model.config = types.SimpleNamespace(num_hidden_layers=12, num_attention_heads=12)
    assert analyse(model, X, Y, readout="last", **SETTING).scores() == found.scores()
    half = analyse(Own().bfloat16(), X.bfloat16(), Y, readout="last", **SETTING)
    assert half.theory.converged and half.theory.U.dtype == np.float64
    np.testing.assert_allclose(half.theory.U, found.theory.U, atol=0.01)
    assert not np.array_equal(half.theory.U, found.theory.U)
    means = half.predict(X.bfloat16()).mean, found.predict(X).mean
    np.testing.assert_allclose(*means, atol=0.02)


def test_attention_is_kept_of_the_layers_of_a_plan_if_memory_holds_it(monkeypatch, machine):
    made, real = [], calls.dot_product_weights
    monkeypatch.setattr(calls, "dot_product_weights", lambda given: made.append(0) or real(given))
    model = Own(12)
    whole = record_attention(model, X).omega
    made.clear()
    # with a copy, 8 KiB of every layer: 16 examples, 2 heads, 4 · 4 tokens
    machine(64 * 2**10)
    message = r"attention of 12 layers of 2 heads, in 16 examples of 4 tokens, .*; take fewer or"
    with pytest.raises(ValueError, match=message):
        analyse(model, X, Y, readout="last", chosen=[(1, 1)], **SETTING)
    with pytest.raises(ValueError, match=message):
        record_attention(encoder(12), X)
    assert not made
    with pytest.raises(ValueError, match="attention of 9 layers of 2 heads"):
        record_attention(model, X)
    made.clear()
    window = Plan.of((2,) * 12, layers=(12, 12))
    seen = source.Source(model, None, "last", "normalised").record(X, window, 12)
    assert len(made) == 1 and {layer.shape for layer in seen.omega[:-1]} == {(EXAMPLES, 2, 0, 0)}
    np.testing.assert_array_equal(seen.omega[-1], whole[-1])


def test_raw_tokens_that_drown_are_said():
    seen = record_attention(MODEL, X)
    np.testing.assert_array_equal(seen.raw[0], X)
    with pytest.warns(UserWarning, match="far below the temperature 0.1: .* tokens=.normalised"):
        faint = analyse(MODEL, 1e-3 * X, Y, readout="last", tokens="raw", **SETTING)
    np.testing.assert_allclose(faint.predict(1e-3 * X).mean, 0, atol=1e-3)
