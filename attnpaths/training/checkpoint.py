"""The state of a run on disk: written whole or not at all, read back only if no bit of it changed.

A file is one line of text, which says how long the rest is and what its SHA-256 is, and then what
PyTorch saves, without pickled code. The state before it is kept beside it, as `checkpoint.old.pt`,
until the run is finished.
"""

import contextlib
import dataclasses
import hashlib
import io
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import torch

from attnpaths import _files
from attnpaths.training.files import check_same

_KIND = b"attnpaths checkpoint"
# what PyTorch raises for files that it cannot read
_UNREADABLE = (OSError, EOFError, RuntimeError, pickle.UnpicklingError, struct.error)
_UNREADABLE += (ValueError, LookupError, TypeError, AttributeError)


def write(path: Path, content: Any) -> None:
    """Write `content`, tensors among it, and keep what was there as `before(path)`."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    raw = buffer.getvalue()
    head = b"%s %d %s\n" % (_KIND, len(raw), hashlib.sha256(raw).hexdigest().encode())
    with _files.replacing(path) as temporary:
        temporary.write_bytes(head + raw)
        if path.exists():
            os.replace(path, before(path))


def before(path: Path) -> Path:
    """Where the state before that of `path` is."""
    return path.with_suffix(".old.pt")


def read(path: Path) -> dict[str, Any]:
    """What `write` wrote, or a ValueError that names the file."""
    with _clear_error(path), open(path, "rb") as file:
        kind, length, digest = file.readline(200).rsplit(maxsplit=2)
        size = os.fstat(file.fileno()).st_size - file.tell()
        if kind != _KIND or int(length) != size:
            raise ValueError(f"{size} bytes follow its first line")
        raw = file.read()
        if hashlib.sha256(raw).hexdigest().encode() != digest:
            raise ValueError("its checksum is another")
        return dict(torch.load(io.BytesIO(raw), weights_only=True))


def resume(path: Path, settings, checksum: str, model, adam) -> dict[str, Any]:
    """The state of an interrupted run, with the model and Adam as they were; or a fresh one."""
    fresh = {"step": 0, "seconds": 0.0, "steps": [], "accuracies": []}
    fresh |= {"best": {}, "best_accuracy": 0.0, "best_step": 0}
    # a power cut between two renamings leaves the state before
    path = path if path.exists() else before(path)
    if not path.exists():
        return fresh
    saved = read(path)
    with _clear_error(path):
        found, images = dict(saved["settings"]), saved["checksum"]
        state = {name: type(value)(saved["state"][name]) for name, value in fresh.items()}
        groups = saved["adam"]["param_groups"]
        rates = {"learning_rate": groups[0]["lr"], "weight_decay": groups[0]["weight_decay"]}
    # more epochs do not change a single step of the earlier ones
    wanted = dataclasses.asdict(settings)
    check_same(path, found, wanted | {"epochs": found.get("epochs")})
    check_same(path, rates, {name: wanted[name] for name in rates})
    check_same(path, {"images": images}, {"images": checksum})
    with _clear_error(path):
        # the best weights are needed at the end: better to know now that they fit
        model.load_state_dict(state["best"] or saved["model"])
        check_finite(model)
        model.load_state_dict(saved["model"])
        check_finite(model)
        adam.load_state_dict(saved["adam"])
    return state


def check_finite(model: torch.nn.Module) -> None:
    """Refuse weights that are no numbers."""
    bad = [name for name, weight in model.named_parameters() if not weight.isfinite().all()]
    if bad:
        raise ValueError(f"NaN or infinite weights in {', '.join(bad)}")


@contextlib.contextmanager
def _clear_error(path: Path):
    try:
        yield
    except _UNREADABLE as error:
        # PyTorch's own words are long, and advise to open the file unsafely
        why = str(error) if type(error) is ValueError else type(error).__name__
        old = before(path)
        remedy = "delete it to start anew"
        if old.exists() and old != path:
            remedy = f"delete it to go on from {old.name}, the state before it"
        raise ValueError(
            f"{path} is damaged or no checkpoint of this program ({why}); {remedy}"
        ) from error
