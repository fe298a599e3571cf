"""The loop: batches, Adam, validation, and a state on disk from which it goes on.

Attention depends on the input alone, so a step can follow the paths: attention first, down to
the share of each token in each path; the weights, which know nothing of the batch, down to one
readout vector for each path; then one product. `Model.layered` goes through the layers instead
and gives the same numbers and gradients, many times more slowly.
"""

import dataclasses
import hashlib
import importlib.metadata
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tqdm

from attnpaths import _checks
from attnpaths.tasks import images as image_sources
from attnpaths.tasks import oneshot
from attnpaths.tasks.images import Images
from attnpaths.tasks.oneshot import Encoder
from attnpaths.tasks.pairs import check_source
from attnpaths.training import checkpoint
from attnpaths.training.batches import SAMPLING, batches_per_epoch, epoch
from attnpaths.training.files import LARGEST, Trained, save_weights
from attnpaths.training.model import Model

# sequences that are evaluated together; validation of the authors' size is 101 batches of 128
_EVALUATED = 512
_VALIDATION = 101 * 128
# the numbers that tell apart what is drawn from one seed
_INITIAL, _VALIDATE, _TEST = 101, 102, 103


#: What can be trained on; other sources only test.
SOURCES = ("omniglot", "glyphs")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to train, and how: by default the paper's network of four heads, its way.

    Adam with the authors' learning rate and weight decay (the decay is in their code, not in
    the paper's text), squared error to ±1. An epoch is as many pairs of training classes as there
    are, by default drawn as the authors do (`epoch`).
    """

    layers: int = 2
    heads: int = 4
    key_dim: int = 128
    width: int = 512
    source: str = "omniglot"
    epochs: float = 10.0
    batch: int = 128
    learning_rate: float = 3e-4
    weight_decay: float = 5e-5
    seed: int = 0
    validate_every: int = 1000
    validation_examples: int = _VALIDATION
    sampling: str = "authors"

    def __post_init__(self):
        """Check the arguments."""
        for name in ("layers", "heads", "key_dim", "width", "batch"):
            _checks.whole(name, getattr(self, name), least=1)
        for name in ("validate_every", "validation_examples"):
            _checks.whole(name, getattr(self, name), least=1)
        _checks.choice("source", self.source, SOURCES)
        _checks.choice("sampling", self.sampling, SAMPLING)
        _checks.whole("seed", self.seed, least=0)
        _checks.number("epochs", self.epochs, above=0.0)
        _checks.number("learning_rate", self.learning_rate, above=0.0)
        _checks.number("weight_decay", self.weight_decay, least=0.0)

    @property
    def command(self) -> str:
        """The command that trains with these settings, in a folder of your choice."""
        options = dataclasses.asdict(self).items()
        words = [f"--{name.replace('_', '-')} {value}" for name, value in options]
        return " ".join(["python -m attnpaths.training", *words, "--out FOLDER"])


def train(
    settings: Settings,
    folder: str | os.PathLike,
    *,
    images: Images | None = None,
    checkpoint_every: int = 200,
    until: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    test_examples: int = 20_000,
    progress: bool = True,
) -> Trained | None:
    """Train, or go on training, in `folder`; returns the best network, or None if stopped early.

    Adam follows the gradient of Σ (f − y)²/B + λ‖Θ‖²/2 on batches `x [B, 48, 192]`, `y [B]`, where
    λ is `weight_decay` and Θ all weights. The state is written to `folder/checkpoint.pt` every
    `checkpoint_every` steps, and before returning when step `until` is reached or `stop()` is
    true; the state before it is kept until the run is finished. A folder or a disk that cannot
    hold them is refused before training, and weights that are no longer finite end it. Every
    batch depends on the seed and its number alone: a run that was interrupted, however roughly,
    ends with the same weights as one that was not. Longer `epochs` go on from a shorter run.
    `images`, which must be of `settings.source`, spares loading them.

    >>> import tempfile
    >>> glyphs = image_sources.load("glyphs", classes=30)
    >>> sizes = {"layers": 1, "heads": 1, "key_dim": 2, "width": 2}
    >>> small = Settings(**sizes, source="glyphs", batch=4, validation_examples=4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(train(small, folder, images=glyphs, until=2, progress=False))
    None
    """
    checkpoint_every = _checks.whole("checkpoint_every", checkpoint_every, least=1)
    last = math.inf if until is None else _checks.whole("until", until, least=0)
    test_examples = _checks.whole("test_examples", test_examples, least=1)
    progress = _checks.flag("progress", progress)
    if not isinstance(settings, Settings):
        raise ValueError(f"settings must be training.Settings; got {type(settings).__name__}")
    if not callable(stop):
        raise ValueError(f"stop must be a function that says when to stop; got {stop!r}")
    folder = _checks.path("folder", folder)
    if images is not None:
        check_source(images)
    if images is not None and images.source != settings.source:
        raise ValueError(
            f"images are of {images.source!r} but settings.source is {settings.source!r}; "
            f"give Settings(source={images.source!r}), or leave images out"
        )
    if images is None:
        images = image_sources.load(settings.source, progress=progress)
    classes = oneshot.split_classes(images)
    encoder = Encoder(images, oneshot.label_vectors(settings.seed))
    codes = torch.from_numpy(encoder.codes)
    per_epoch = batches_per_epoch(len(classes["train"]), settings.batch)
    if not per_epoch:
        raise ValueError(
            f"{len(classes['train'])} training classes make fewer pairs than one batch of "
            f"{settings.batch}; choose a smaller batch"
        )
    total = round(settings.epochs * per_epoch)
    held_out = oneshot.draw(
        images,
        settings.validation_examples,
        seed=[settings.seed, _VALIDATE],
        classes=classes["validation"],
    )
    # better to know now that the end of training can draw these
    oneshot.draw(images, test_examples, seed=[settings.seed, _TEST], classes=classes["test"])
    model = Model(
        layers=settings.layers,
        heads=settings.heads,
        key_dim=settings.key_dim,
        width=settings.width,
        seed=int(np.random.SeedSequence([settings.seed, _INITIAL]).generate_state(1)[0]),
    )
    adam = torch.optim.Adam(
        model.parameters(),
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        fused=True,
    )
    checksum = hashlib.md5(images.pixels.tobytes(), usedforsecurity=False).hexdigest()
    path = folder / "checkpoint.pt"
    _prepare(folder, model)
    state = checkpoint.resume(path, settings, checksum, model, adam)
    step, began = state["step"], time.perf_counter() - state["seconds"]
    if step > total:
        raise ValueError(
            f"{path} has {step} steps already, but epochs={settings.epochs:g} of {per_epoch} "
            f"steps asks for {total}; ask for more epochs, or train in another folder"
        )

    def save():
        state["seconds"] = time.perf_counter() - began
        _check_diverged(settings, state, model, path)
        content = {"settings": dataclasses.asdict(settings), "checksum": checksum}
        content |= {"model": model.state_dict(), "adam": adam.state_dict(), "state": state}
        checkpoint.write(path, content)

    bar = tqdm.tqdm(total=total, initial=step, unit="step", disable=not progress)
    with bar:
        batches = iter(())
        while step < total:
            if step >= last or stop():
                save()
                return None
            batch = next(batches, None)
            if batch is None:
                number, start = divmod(step, per_epoch)
                batches = epoch(
                    images,
                    seed=settings.seed,
                    number=number,
                    classes=classes["train"],
                    batch=settings.batch,
                    start=start,
                    sampling=settings.sampling,
                )
                batch = next(batches)
            loss = _step(model, adam, encoder, codes, batch)
            _check_diverged(settings, state, loss, path)
            step = state["step"] = step + 1
            bar.update()
            if step % settings.validate_every == 0 or step == total:
                # what may be the best is what is kept in the end
                _check_diverged(settings, state, model, path)
                _validate(model, encoder, held_out, state)
            if step % 50 == 0:
                bar.set_postfix(loss=f"{loss:.3f}", best=f"{state['best_accuracy']:.4f}")
            if step % checkpoint_every == 0 or step == total:
                save()
    if not state["best"]:
        _validate(model, encoder, held_out, state)
    model.load_state_dict(state["best"])
    network, weights = model.export()
    record = {
        "command": settings.command,
        "settings": dataclasses.asdict(settings),
        "steps": step,
        "steps_per_epoch": per_epoch,
        "best_step": state["best_step"],
        "validation": {"steps": state["steps"], "accuracy": state["accuracies"]},
        "accuracy": _accuracies(model, encoder, images, classes, settings, test_examples),
        "images_md5": checksum,
        "attnpaths": importlib.metadata.version("attnpaths"),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "seconds": round(state["seconds"], 1),
    }
    trained = Trained(network, weights, encoder.labels, record)
    save_weights(folder / "weights.npz", trained)
    checkpoint.before(path).unlink(missing_ok=True)
    return trained


def accuracy(
    model: Model, encoder: Encoder, sequences: oneshot.Sequences
) -> dict[str, float | int]:
    """The share p of outputs f `[P]` whose sign is y `[P]`, and its standard error √(p(1 − p)/P).

    >>> glyphs = image_sources.load("glyphs", classes=30)
    >>> model = Model(layers=1, heads=1, key_dim=2, width=2)
    >>> accuracy(model, Encoder(glyphs), oneshot.draw(glyphs, 8, seed=0)).keys()
    dict_keys(['accuracy', 'standard_error', 'examples'])
    """
    _checks.kind("model", model, Model)
    _checks.kind("encoder", encoder, Encoder)
    _checks.kind("sequences", sequences, oneshot.Sequences)
    codes = torch.from_numpy(encoder.codes)
    right = 0
    with torch.no_grad():
        for start in range(0, len(sequences), _EVALUATED):
            part = sequences[start : start + _EVALUATED]
            f = model.from_pixels(*_tensors(encoder, part), codes)
            right += int((torch.where(f > 0, 1, -1).numpy() == part.y).sum())
    share = right / len(sequences)
    error = math.sqrt(share * (1 - share) / len(sequences))
    return {"accuracy": share, "standard_error": error, "examples": len(sequences)}


def _step(model, adam, encoder, codes, batch) -> float:
    adam.zero_grad(set_to_none=True)
    f = model.from_pixels(*_tensors(encoder, batch), codes)
    loss = (f - torch.from_numpy(batch.y).to(f.dtype)).square().mean()
    loss.backward()
    adam.step()
    return loss.item()


def _tensors(encoder, sequences):
    return torch.from_numpy(encoder.pixels(sequences)), torch.from_numpy(sequences.orders)


def _validate(model, encoder, held_out, state) -> None:
    now = accuracy(model, encoder, held_out)["accuracy"]
    state["steps"].append(state["step"])
    state["accuracies"].append(now)
    if now > state["best_accuracy"]:
        best = {name: weight.clone() for name, weight in model.state_dict().items()}
        state |= {"best": best, "best_accuracy": now, "best_step": state["step"]}


def _accuracies(model, encoder, images, classes, settings, examples) -> dict[str, dict]:
    """On test classes of the same source, and on other sources, or why these are missing."""
    seed = [settings.seed, _TEST]
    sequences = oneshot.draw(images, examples, seed=seed, classes=classes["test"])
    found: dict[str, dict] = {images.source: accuracy(model, encoder, sequences)}
    for name in ("mnist", "fashion_mnist"):
        if not image_sources.available(name):
            found[name] = {"missing": f"no files of {name} on this machine"}
            continue
        try:
            other = image_sources.load(name, classes=(0, 1), progress=False)
        except (ValueError, OSError) as error:
            # a damaged file of another source must not cost the weights
            found[name] = {"missing": str(error)}
            continue
        sequences = oneshot.draw(other, examples, seed=seed)
        found[name] = accuracy(model, Encoder(other, encoder.labels), sequences)
    return found


def _prepare(folder: Path, model) -> None:
    """Make the folder, if it can be written to and its disk holds what training leaves."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "checkpoint.pt.new").unlink(missing_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(
            f"folder must be one that can be written to; got {folder}: {error.strerror}"
        ) from error
    # three states, each with the model, its best weights and Adam's two moments, in four bytes
    needed = 3 * 4 * 4 * sum(weight.numel() for weight in model.parameters())
    # those that are there already are among the three
    free = shutil.disk_usage(folder).free
    free += sum(path.stat().st_size for path in folder.glob("checkpoint*.pt"))
    if needed > free:
        raise ValueError(
            f"training would need {needed / 2**20:,.1f} MiB of disk, more than the "
            f"{free / 2**20:,.1f} MiB that are free in folder {folder}; free some, or choose "
            "another folder"
        )


def _check_diverged(settings, state, found: Any, path: Path) -> None:
    """Stop when the loss is no longer a number, or a weight of the model none that can be kept."""
    if isinstance(found, float):
        fine, why = math.isfinite(found), "its loss is no longer finite"
    else:
        largest = max(float(weight.detach().abs().max()) for weight in found.parameters())
        # NaN is no larger than anything, nor smaller
        fine, why = largest <= LARGEST, f"weights up to {largest:g} do not fit in half precision"
    if not fine:
        kept = f"the last good state is in {path}" if path.exists() else "nothing was written"
        raise ValueError(
            f"training diverged after step {state['step']} at "
            f"learning_rate={settings.learning_rate:g}: {why}; {kept}; "
            "train with a smaller learning_rate, in another folder"
        )
