import dataclasses
import json
import os
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from attnpaths import training
from attnpaths.network import Network, Weights
from attnpaths.tasks import images, oneshot
from attnpaths.training import Model, Settings, load_weights, loop, save_weights, train
from attnpaths.training import __main__ as command_line
from attnpaths.training import checkpoint as states

SMALL = Settings(
    layers=2,
    heads=2,
    key_dim=4,
    width=6,
    source="glyphs",
    epochs=1.0,
    batch=32,
    validate_every=4,
    validation_examples=50,
)
SHAPES = [(1, 3), (2, 2), (3, 2), (2, 1)]


@pytest.fixture(scope="module")
def glyphs():
    return images.load("glyphs", classes=60)


@pytest.fixture(scope="module")
def encoder(glyphs):
    return oneshot.Encoder(glyphs)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(loop.image_sources, "available", lambda name: name == "glyphs")
    yield
    torch.set_num_threads(threads)


def run(glyphs, folder, settings=SMALL, **options):
    options = {"images": glyphs, "progress": False, "test_examples": 40} | options
    return train(settings, folder, **options)


def inputs(glyphs, encoder, dtype, examples=24):
    sequences = oneshot.draw(glyphs, examples, seed=5)
    pixels = torch.from_numpy(encoder.pixels(sequences)).to(dtype)
    orders = torch.from_numpy(sequences.orders)
    codes = torch.from_numpy(encoder.codes).to(dtype)
    x = pixels.repeat_interleave(3, dim=-1) + codes[orders]
    return x, (pixels, orders, codes), torch.from_numpy(sequences.y).to(dtype)


@pytest.mark.parametrize(("layers", "heads"), SHAPES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_three_orders_of_contraction_agree(glyphs, encoder, layers, heads, dtype, tolerance):
    model = Model(layers=layers, heads=heads, key_dim=5, width=7, seed=1).to(dtype)
    x, parts, y = inputs(glyphs, encoder, dtype)
    # not as many of each label, or else gradients cancel and rounding is what is left
    y = torch.linspace(-0.2, 1, len(y), dtype=dtype)
    results = []
    for output in (model.layered(x), model(x), model.from_pixels(*parts)):
        model.zero_grad()
        ((output - y) ** 2).mean().backward()
        results.append((output.detach(), [p.grad.clone() for p in model.parameters()]))
    (wanted, gradients), *others = results
    assert wanted.std() > 1e-3 and all(g.abs().max() > 0 for g in gradients)
    for output, found in others:
        assert (output - wanted).abs().max() < tolerance * wanted.abs().max()
        for a, b in zip(found, gradients, strict=True):
            assert (a - b).abs().max() < tolerance * b.abs().max()


@pytest.mark.parametrize("orders", [[0, 0, 0], [1, 1, 1], [1, 0, 1]])
def test_batches_of_one_order(glyphs, encoder, orders):
    model = Model(layers=2, heads=2, key_dim=5, width=7)
    _, (pixels, _, codes), _ = inputs(glyphs, encoder, torch.float32, 3)
    orders = torch.tensor(orders)
    x = pixels.repeat_interleave(3, dim=-1) + codes[orders]
    torch.testing.assert_close(model.from_pixels(pixels, orders, codes), model(x))


@pytest.mark.parametrize(("layers", "heads"), SHAPES)
def test_export_to_the_library_and_back(glyphs, encoder, layers, heads):
    model = Model(layers=layers, heads=heads, key_dim=5, width=7, seed=2).double()
    x, _, _ = inputs(glyphs, encoder, torch.float64)
    network, weights = model.export()
    assert network.head_counts == (heads,) * layers and network.readout == "mean"
    wanted = model(x).detach().numpy()
    np.testing.assert_allclose(network.apply(weights, x.numpy()), wanted, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(network.apply_paths(weights, x.numpy()), wanted, rtol=1e-11)
    back = Model.from_network(network, weights).double()
    np.testing.assert_allclose(back(x).detach().numpy(), wanted, rtol=1e-4)


def test_models_cannot_be_made_of_every_network():
    network = Network([np.zeros((2, 192, 192))], readout="mean")
    weights = Weights.prior(0, width=4, dim=192, heads=(2,))
    with pytest.raises(ValueError, match=r"pairs \(W_K, W_Q\) of heads; got Network.*products"):
        Model.from_network(network, weights)
    pair = (np.zeros((2, 3, 192)),) * 2
    with pytest.raises(ValueError, match='a Model has the readout "mean"'):
        Model.from_network(Network([pair], readout=0), weights)
    other = (np.zeros((2, 5, 192)),) * 2
    weights = Weights.prior(0, width=4, dim=192, heads=(2, 2))
    with pytest.raises(ValueError, match="heads of one shape in all layers"):
        Model.from_network(Network([pair, other], readout="mean"), weights)
    uneven = Weights.prior(0, width=(4, 5), dim=192, heads=(2,))
    with pytest.raises(ValueError, match=r"one width in all layers; got \(4, 5\)"):
        Model.from_network(Network([pair], readout="mean"), uneven)


def test_initial_weights_are_uniform():
    model = Model(layers=1, heads=2, key_dim=30, width=50, seed=0)
    for weight in model.parameters():
        bound = weight.shape[-1] ** -0.5
        assert weight.abs().max() <= bound
        assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.15)
    assert not torch.equal(model.V0, Model(layers=1, heads=2, key_dim=30, width=50, seed=1).V0)


def test_a_step_is_the_authors(glyphs, encoder):
    """Their optimiser, on their order of contraction, written out."""
    settings = {"layers": 2, "heads": 2, "key_dim": 4, "width": 6, "seed": 3}
    fast, slow = Model(**settings), Model(**settings)
    ours = torch.optim.Adam(fast.parameters(), lr=3e-4, weight_decay=5e-5)
    theirs = torch.optim.Adam(slow.parameters(), lr=3e-4, weight_decay=5e-5)
    codes = torch.from_numpy(encoder.codes)
    for seed in range(3):
        batch = oneshot.draw(glyphs, 16, seed=seed)
        loss = loop._step(fast, ours, encoder, codes, batch)
        theirs.zero_grad()
        f = slow.layered(torch.from_numpy(encoder(batch)))
        wanted = torch.nn.functional.mse_loss(f, torch.tensor(batch.y, dtype=torch.float32))
        wanted.backward()
        theirs.step()
        assert loss == pytest.approx(wanted.item(), rel=1e-5)
    for a, b in zip(fast.parameters(), slow.parameters(), strict=True):
        # Adam divides by the gradient's size, so that its rounding shows where it is tiny
        assert (a - b).abs().max() < 1e-4 and (a - b).abs().mean() < 1e-6


def test_training_fits_what_it_sees(glyphs, encoder):
    codes = torch.from_numpy(encoder.codes)
    model = Model(layers=2, heads=2, key_dim=16, width=32, seed=0)
    adam = torch.optim.Adam(model.parameters(), lr=2e-3)
    batch = oneshot.draw(glyphs, 24, seed=0)
    losses = [loop._step(model, adam, encoder, codes, batch) for _ in range(80)]
    assert losses[0] > 0.8 and losses[-1] < 0.05
    assert training.accuracy(model, encoder, batch)["accuracy"] == 1
    # what it has not seen it cannot tell yet, so that the standard error is not zero
    found = training.accuracy(model, encoder, oneshot.draw(glyphs, 600, seed=1))
    share = found["accuracy"]
    assert 0.3 < share < 0.9 and found["examples"] == 600
    assert found["standard_error"] == pytest.approx((share * (1 - share) / 600) ** 0.5)


def checkpoint(folder):
    return states.read(folder / "checkpoint.pt")


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a if k != "seconds")
    return a == b


def test_interruption_changes_nothing(glyphs, tmp_path):
    straight, halves, crashed = (tmp_path / name for name in ("straight", "halves", "crashed"))
    assert run(glyphs, straight, until=10) is None
    assert checkpoint(straight)["state"]["step"] == 10

    assert run(glyphs, halves, until=5) is None
    assert checkpoint(halves)["state"]["step"] == 5
    assert run(glyphs, halves, until=10) is None
    assert same(checkpoint(straight), checkpoint(halves))

    # no chance to save: the steps since the last checkpoint are done again, and are the same
    calls = iter(range(100))

    def pull_the_plug():
        if next(calls) == 7:
            raise RuntimeError("power cut")
        return False

    with pytest.raises(RuntimeError, match="power cut"):
        run(glyphs, crashed, stop=pull_the_plug, checkpoint_every=3)
    assert checkpoint(crashed)["state"]["step"] == 6
    assert run(glyphs, crashed, until=10) is None
    assert same(checkpoint(straight), checkpoint(crashed))
    assert checkpoint(straight)["state"]["steps"] == [4, 8]


def test_interruption_across_epochs(glyphs, tmp_path):
    settings = Settings(**(vars(SMALL) | {"batch": 300, "epochs": 3.0}))
    whole = run(glyphs, tmp_path / "whole", settings)
    assert whole.record["steps_per_epoch"] == 2 and whole.record["steps"] == 6
    calls = iter([0, 0, 0, 1])
    assert run(glyphs, tmp_path / "parts", settings, stop=lambda: bool(next(calls))) is None
    parts = run(glyphs, tmp_path / "parts", settings)
    np.testing.assert_array_equal(parts.weights.a, whole.weights.a)
    assert same(checkpoint(tmp_path / "whole"), checkpoint(tmp_path / "parts"))


def test_a_run_and_its_files(glyphs, tmp_path):
    trained = run(glyphs, tmp_path)
    record = trained.record
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "checkpoint.pt",
        "weights.json",
        "weights.npz",
    ]
    assert json.loads((tmp_path / "weights.json").read_text()) == record
    assert record["steps"] == record["steps_per_epoch"] == 703 // 32
    curve = record["validation"]
    assert curve["steps"] == [4, 8, 12, 16, 20, 21]
    # the first of the best is kept
    assert record["best_step"] == curve["steps"][int(np.argmax(curve["accuracy"]))]
    assert record["accuracy"]["glyphs"]["examples"] == 40
    assert record["command"].startswith("python -m attnpaths.training --layers 2 --heads 2")
    for key in ("images_md5", "attnpaths", "torch", "seconds", "threads", "settings"):
        assert record[key]

    loaded = load_weights(tmp_path / "weights.npz", layers=2, heads=2, key_dim=4, width=6)
    assert loaded.record == record
    np.testing.assert_array_equal(loaded.labels, trained.labels)
    np.testing.assert_array_equal(loaded.labels, oneshot.label_vectors(0))
    for a, b in zip(loaded.weights.V, trained.weights.V, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6)
    task = oneshot.make_task(
        0,
        source=glyphs,
        examples=20,
        test_examples=2,
        out_of_distribution=(),
        labels=loaded.labels,
    )
    f, wanted = (t.network.apply(t.weights, task.train.x) for t in (loaded, trained))
    np.testing.assert_allclose(f, wanted, atol=5e-3 * float(np.abs(wanted).max()))
    with np.load(tmp_path / "weights.npz", allow_pickle=False) as file:
        assert {file[k].dtype for k in file.files if k != "labels"} == {np.dtype(np.float16)}

    # a finished run stays as it is; more epochs go on from it
    again = run(glyphs, tmp_path)
    np.testing.assert_array_equal(again.weights.a, trained.weights.a)
    longer = run(glyphs, tmp_path, Settings(**(vars(SMALL) | {"epochs": 1.5})))
    assert longer.record["steps"] == 32
    assert longer.record["validation"]["steps"] == [4, 8, 12, 16, 20, 21, 24, 28, 32]


def test_heads_alone(glyphs, tmp_path):
    trained = run(glyphs, tmp_path / "run")
    save_weights(tmp_path / "heads.npz", trained, values=False)
    loaded = load_weights(tmp_path / "heads.npz", heads=2)
    assert loaded.weights is None
    np.testing.assert_allclose(loaded.network.heads[1][0], trained.network.heads[1][0], atol=1e-3)
    with pytest.raises(ValueError, match="width=None but width=6 was asked for"):
        load_weights(tmp_path / "heads.npz", width=6)


def test_files_of_another_shape(glyphs, tmp_path):
    run(glyphs, tmp_path, until=2)
    with pytest.raises(ValueError, match="it has heads=2, key_dim=4 but heads=3, key_dim=5 was"):
        run(glyphs, tmp_path, Settings(**(vars(SMALL) | {"heads": 3, "key_dim": 5})))
    with pytest.raises(ValueError, match=r"it has images=.* but images=.* was asked for"):
        run(images.load("glyphs", classes=50), tmp_path)
    model = Model(layers=2, heads=2, key_dim=4, width=6)
    trained = training.Trained(*model.export(), oneshot.label_vectors(), {})
    path = tmp_path / "weights.npz"
    save_weights(path, trained)
    with pytest.raises(ValueError, match="it has layers=2 but layers=3 was asked for"):
        load_weights(path, layers=3)
    with pytest.raises(ValueError, match="heads must be a whole number ≥ 1; got True"):
        load_weights(path, heads=True)
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **(arrays | {"a": arrays["a"][:-1]}))
    with pytest.raises(ValueError, match="does not hold the weights of a network"):
        load_weights(path)
    np.savez(path, **{k: v for k, v in arrays.items() if k != "labels"})
    with pytest.raises(ValueError, match="does not hold the weights of a network"):
        load_weights(path)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ValueError, match="does not hold the weights of a network"):
        load_weights(path)
    with pytest.raises(FileNotFoundError, match=r"no weights at .*; train them with"):
        load_weights(tmp_path / "nothing.npz")
    large = Weights(1e6 * trained.weights.V0, trained.weights.V, trained.weights.a)
    with pytest.raises(ValueError, match=r"V0 of trained .* do not fit in half precision"):
        save_weights(path, training.Trained(trained.network, large, trained.labels, {}))


def test_sizes_are_those_of_all_layers(tmp_path):
    pairs = [(np.ones((h, g, 3)),) * 2 for h, g in ((4, 2), (2, 5))]
    save_weights(tmp_path / "two.npz", heads_of(pairs), values=False)
    for asked in ({"heads": 4}, {"key_dim": 2}):
        with pytest.raises(ValueError, match=r"it has \w+=\(\d, \d\) but \w+=\d was asked for"):
            load_weights(tmp_path / "two.npz", **asked)
    assert load_weights(tmp_path / "two.npz", layers=2).network.head_counts == (4, 2)
    uneven = Weights.prior(0, width=(4, 5, 6), dim=3, heads=(4, 2))
    save_weights(tmp_path / "uneven.npz", dataclasses.replace(heads_of(pairs), weights=uneven))
    assert load_weights(tmp_path / "uneven.npz").weights.widths == (4, 5, 6)
    with pytest.raises(ValueError, match=r"width=\(4, 5, 6\) but width=4 was asked for"):
        load_weights(tmp_path / "uneven.npz", width=4)


def heads_of(heads, readout="mean"):
    return training.Trained(Network(heads, readout=readout), None, np.ones((3, 3)), {})


def test_what_a_file_cannot_hold_is_not_saved(tmp_path):
    pair, product = (np.ones((2, 1, 3)),) * 2, np.ones((2, 3, 3))
    for bad in (heads_of([pair], readout=0), heads_of([product]), heads_of([pair, product])):
        with pytest.raises(ValueError, match='only a network with the readout "mean" and heads'):
            save_weights(tmp_path / "it.npz", bad, values=False)
    with pytest.raises(ValueError, match="no weights to save; give values=False"):
        save_weights(tmp_path / "it.npz", heads_of([pair]))
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("as_users_see_it")
def test_what_could_not_be_read_back_is_not_saved(tmp_path):
    whole = heads_of([(np.ones((2, 1, 3)),) * 2])
    whole = dataclasses.replace(whole, weights=Weights.prior(0, width=4, dim=3, heads=(2,)))
    for wrong, message in (
        ({"labels": np.full((3, 3), np.nan)}, r"trained\.labels must be finite"),
        ({"labels": None}, r"trained\.labels must hold real numbers"),
        ({"labels": np.ma.array(np.ones((3, 3)), mask=True)}, r"trained\.labels must not be mask"),
        ({"weights": Weights.prior(0, width=4, dim=3, heads=(3,))}, r"weights\.V has heads \(3,\)"),
        ({"network": None}, r"trained\.network must be Network; got NoneType"),
        ({"record": {"curve": np.ones(2)}}, r"trained\.record must hold what JSON can"),
        ({"record": None}, r"trained\.record must be dict; got NoneType"),
    ):
        with pytest.raises(ValueError, match=message):
            save_weights(tmp_path / "it.npz", dataclasses.replace(whole, **wrong))
    assert not list(tmp_path.iterdir())
    save_weights(tmp_path / "it.npz", whole)
    assert load_weights(tmp_path / "it.npz").weights.widths == (4, 4)


def broken_record(path):
    path.with_suffix(".json").write_text('{"steps": ')


def one_array(path):
    with open(path, "wb") as file:
        np.save(file, np.ones(3))


def flipped_byte(path):
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 3] ^= 255
    path.write_bytes(raw)


@pytest.mark.parametrize("damage", [broken_record, one_array, flipped_byte])
def test_damaged_weights(tmp_path, damage):
    path = tmp_path / "it.npz"
    model = Model(layers=1, heads=1, key_dim=2, width=3)
    save_weights(path, training.Trained(*model.export(), oneshot.label_vectors(), {}))
    damage(path)
    with pytest.raises(ValueError, match=r"it.npz does not hold .*it.json .*fetch the file"):
        load_weights(path)


def without(key, of=None):
    def damage(saved):
        del (saved[of] if of else saved)[key]
        return saved

    return damage


def other_model(saved):
    return saved | {"model": Model(layers=1, heads=1, key_dim=2, width=3).state_dict()}


def other_best(saved):
    saved["state"]["best"] = other_model(saved)["model"]
    return saved


DAMAGED = {
    "text": lambda raw: b"nonsense",
    "empty": lambda raw: b"",
    "half": lambda raw: raw[: len(raw) // 2],
    "end": lambda raw: raw[:-100],
}
ALTERED = {
    "tensor": lambda saved: torch.ones(3),
    "list": lambda saved: [1, 2],
    "settings": lambda saved: saved | {"settings": "none"},
    "no settings": without("settings"),
    "no checksum": without("checksum"),
    "no state": without("state"),
    "no step": without("step", of="state"),
    "no model": without("model"),
    "no adam": without("adam"),
    "no groups": without("param_groups", of="adam"),
    "state": lambda saved: saved | {"state": torch.ones(3)},
    "other model": other_model,
    "other best": other_best,
}


@pytest.fixture(scope="module")
def four_steps(glyphs, tmp_path_factory):
    """The bytes of a checkpoint."""
    folder = tmp_path_factory.mktemp("run")
    train(SMALL, folder, images=glyphs, until=4, progress=False)
    return (folder / "checkpoint.pt").read_bytes()


@pytest.mark.parametrize("damage", [*DAMAGED, *ALTERED])
def test_damaged_checkpoints(glyphs, four_steps, tmp_path, damage):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(DAMAGED[damage](four_steps) if damage in DAMAGED else four_steps)
    if damage in ALTERED:
        # with a checksum that fits
        states.write(path, ALTERED[damage](checkpoint(tmp_path)))
        states.before(path).unlink()
    with pytest.raises(ValueError, match=r"damaged or no checkpoint .*; delete it to start anew$"):
        run(glyphs, tmp_path)


def test_a_run_is_not_shortened(glyphs, four_steps, tmp_path):
    (tmp_path / "checkpoint.pt").write_bytes(four_steps)
    shorter = dataclasses.replace(SMALL, epochs=0.1)
    with pytest.raises(ValueError, match=r"has 4 steps already, but epochs=0.1 .* asks for 2; ask"):
        run(glyphs, tmp_path, shorter)
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint.pt"]


def test_images_of_another_source(glyphs, tmp_path):
    settings = dataclasses.replace(SMALL, source="omniglot")
    with pytest.raises(ValueError, match=r"of 'glyphs' but settings.source is 'omniglot'; give"):
        run(glyphs, tmp_path / "run", settings)
    assert not list(tmp_path.iterdir())


def test_the_recorded_command_can_be_run():
    settings = dataclasses.replace(SMALL, learning_rate=1e-5, seed=3)
    words = shlex.split(settings.command)
    assert words[:3] == ["python", "-m", "attnpaths.training"]
    options = vars(command_line._parser().parse_args(words[3:]))
    assert options.pop("out") == "FOLDER"
    names = [field.name for field in dataclasses.fields(Settings)]
    assert Settings(**{name: options[name] for name in names}) == settings


def test_other_sources_are_tested_or_said_to_be_missing(glyphs, encoder, monkeypatch):
    model = Model(layers=1, heads=1, key_dim=4, width=6, seed=1)
    digits = dataclasses.replace(images.load("glyphs", classes=(3, 5)), source="mnist", std=0.3)
    asked = []

    def load(name, **options):
        asked.append((name, options["classes"]))
        return digits

    monkeypatch.setattr(loop.image_sources, "available", lambda name: name == "mnist")
    monkeypatch.setattr(loop.image_sources, "load", load)
    classes = oneshot.split_classes(glyphs)
    found = loop._accuracies(model, encoder, glyphs, classes, SMALL, 50)
    assert asked == [("mnist", (0, 1))]
    assert found["fashion_mnist"] == {"missing": "no files of fashion_mnist on this machine"}
    seed = [SMALL.seed, loop._TEST]
    for name, source, kept in (("glyphs", glyphs, classes["test"]), ("mnist", digits, None)):
        sequences = oneshot.draw(source, 50, seed=seed, classes=kept)
        other = oneshot.Encoder(source, encoder.labels)
        assert found[name] == training.accuracy(model, other, sequences)


def test_pickles_are_not_opened(tmp_path):
    path = tmp_path / "weights.npz"
    np.savez(path, keys0=np.array([{"not": "numbers"}], dtype=object))
    with pytest.raises(ValueError, match=r"keys0\.npy holds objects, not numbers"):
        load_weights(path)


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": 0}, "layers must be a whole number ≥ 1; got 0"),
        ({"heads": 1.5}, "heads must be a whole number ≥ 1; got 1.5"),
        ({"epochs": 0}, "epochs must be larger than 0"),
        ({"learning_rate": -1.0}, "learning_rate must be larger than 0"),
        ({"weight_decay": -1.0}, "weight_decay must be at least 0"),
        ({"seed": -1}, "seed must be a whole number ≥ 0"),
        ({"source": "mnist"}, "source must be one of 'omniglot', 'glyphs'; got 'mnist'"),
        ({"source": "cifar"}, "source must be one of 'omniglot', 'glyphs'; got 'cifar'"),
        ({"source": "glyphs", "batch": 10**6}, "fewer pairs than one batch of 1000000"),
    ],
)
def test_bad_settings(settings, message, tmp_path, monkeypatch):
    small = images.load("glyphs", classes=10)
    monkeypatch.setattr(images, "load", lambda name, **_: small)
    with pytest.raises(ValueError, match=message):
        train(Settings(**settings), tmp_path, progress=False)


def test_the_command_line(tmp_path, monkeypatch, capsys):
    small = images.load("glyphs", classes=40)
    monkeypatch.setattr(images, "load", lambda name, **_: small)
    words = "--layers 1 --heads 2 --key-dim 4 --width 6 --source glyphs --epochs 0.5 --batch 32"
    words += " --validation-examples 20 --test-examples 30 --threads 1 --out"
    handlers = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    assert command_line.main([*words.split(), str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("glyphs: 0.") and "(30 sequences)" in out
    assert out.endswith("fashion_mnist: not tested, no files of fashion_mnist on this machine\n")
    assert "100%" in err
    assert load_weights(tmp_path / "weights.npz", layers=1, heads=2).record["steps"] == 4
    assert command_line.main([*words.split(), str(tmp_path), "--heads", "3", "--quiet"]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("error: ") and "heads=2 but heads=3" in err
    assert handlers == [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]


def test_a_signal_saves_and_stops(tmp_path):
    """The real command, interrupted, says how to go on, and goes on."""
    words = "-m attnpaths.training --layers 1 --heads 1 --key-dim 4 --width 4 --source glyphs"
    words += " --epochs 2000 --batch 8 --validate-every 1000000 --validation-examples 8 --threads 1"
    command = [sys.executable, *words.split(), "--out", str(tmp_path)]
    environment = {k: v for k, v in os.environ.items() if k != "ATTNPATHS_DATA"}
    environment |= {"JAX_PLATFORMS": "cpu"}
    running = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True)
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "checkpoint.pt").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        running.send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130
    assert "stopped; the same command goes on from" in err
    saved = checkpoint(tmp_path)
    assert saved["state"]["step"] > 200
    # Adam has taken exactly as many steps as were counted
    assert saved["adam"]["state"][0]["step"].item() == saved["state"]["step"]
