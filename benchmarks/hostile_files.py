"""Damaged files: checkpoints, saved results, weights and images, with bits flipped, cut or zeroed.

A damaged file must be refused by an error that names it. A change that no reader could notice, in
the padding of an archive, is allowed where what is read is the same to the last bit.
"""

import os
import random
import shutil
import tempfile
import warnings
import zipfile
from pathlib import Path

import jax
import numpy as np
import torch

from attnpaths import Network, Weights, analysis, posterior, theory
from attnpaths.tasks import images
from attnpaths.training import Settings, Trained, checkpoint, load_weights, save_weights, train

_PAGE = 512


def flipped(raw, chance):
    """One bit is another."""
    place = chance.randrange(len(raw))
    raw[place] ^= 1 << chance.randrange(8)
    return raw


def cut(raw, chance):
    """The end is missing."""
    return raw[: chance.randrange(len(raw))]


def zeroed(raw, chance):
    """A page is zero, as after a power cut."""
    start = chance.randrange(max(len(raw) - _PAGE, 1))
    raw[start : start + _PAGE] = bytes(len(raw[start : start + _PAGE]))
    return raw


def doubled(raw, chance):
    """A stretch stands twice."""
    start = chance.randrange(len(raw))
    return raw[:start] + raw[start : start + 64] * 2 + raw[start + 64 :]


DAMAGES = (flipped, flipped, flipped, cut, zeroed, doubled)


def same(one, other):
    """Whether two things read from files are equal to the last bit."""
    leaves = jax.tree.leaves(one), jax.tree.leaves(other)
    if len(leaves[0]) != len(leaves[1]):
        return False
    pairs = zip(*leaves, strict=True)
    return all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) else np.array_equal(a, b) for a, b in pairs
    )


def _numbers(result):
    """All that a result of the theory, of sampling or of an analysis holds."""
    return [vars(result), vars(getattr(result, "theory", result).problem)]


def _network(trained: Trained):
    return [trained.network.heads, vars(trained.weights), trained.labels]


def samples(folder, sampled):
    """By name: a file and the function that reads it; fewer kinds unless `sampled`."""
    rng = np.random.default_rng(0)
    xi = rng.normal(size=(6, 4, 3))
    setting = {"heads": (2, 2), "temperature": 0.5}
    theory.solve(xi, xi[:, 0, 0], width=10, **setting).save(folder / "theory.npz")
    if sampled:
        grid = {"widths": [10, 100], "temperatures": [0.5], "progress": False}
        theory.sweep(xi, xi[:, 0, 0], heads=(2, 2), **grid).save(folder / "sweep.npz")
        layer = torch.nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True).eval()
        tokens = torch.from_numpy(rng.normal(size=(6, 4, 6))).float()
        given = {"readout": "last", "width": 10, "temperature": 0.5}
        analysis.analyse(layer, tokens, [-1, 1] * 3, **given).save(folder / "report.npz")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", posterior.DoubtfulSample)
            few = {"chains": 1, "warmup": 10, "samples": 20, "seed": 0, "progress": False}
            drawn = posterior.sample_order_parameter(xi, xi[:, 0, 0], width=5, **setting, **few)
        drawn.save(folder / "draws.npz")
    pair = rng.normal(size=(2, 2, 4, 192))
    weights = Weights.prior(0, width=6, dim=192, heads=(2,))
    trained = Trained(
        Network([tuple(pair)], readout="mean"), weights, rng.normal(size=(3, 192)), {}
    )
    save_weights(folder / "weights.npz", trained)
    small = Settings(layers=1, heads=1, key_dim=2, width=3, source="glyphs", batch=8)
    glyphs = images.load("glyphs", classes=30)
    train(small, folder, images=glyphs, until=2, progress=False)
    found = {
        "theory.npz": lambda path: _numbers(theory.load(path)),
        "sweep.npz": lambda path: _numbers(theory.load(path)),
        "report.npz": lambda path: _numbers(analysis.load(path)),
        "draws.npz": lambda path: _numbers(posterior.load(path)),
        "weights.npz": lambda path: _network(load_weights(path)),
        "checkpoint.pt": checkpoint.read,
    }
    return {name: read for name, read in found.items() if (folder / name).exists()}


def archives(count, chance):
    """Outcomes of damaged Omniglot archives; none where there are no whole ones."""
    if not images.available("omniglot"):
        return []
    source = images._local("omniglot", "images_evaluation.zip")
    found = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "omniglot")
        folder.mkdir()
        path = folder / source.name
        whole = _drawings(Path(shutil.copy(source, path))) if count else None
        for number in range(count):
            if number % 2:
                raw = DAMAGES[number % len(DAMAGES)](bytearray(source.read_bytes()), chance)
                path.write_bytes(raw)
            else:
                _redrawn(source, path, chance)
            found.append(_outcome(_drawings, path, whole))
    return found


def _drawings(path):
    """The pixels of one archive; the other is whole, and need not be read each time."""
    before = os.environ.get(images.ENVIRONMENT), images._CHARACTERS
    os.environ[images.ENVIRONMENT] = str(path.parent.parent)
    images._CHARACTERS = {path.name: before[1][path.name]}
    try:
        return images.load("omniglot", progress=False).pixels
    finally:
        images._CHARACTERS = before[1]
        os.environ.pop(images.ENVIRONMENT)
        if before[0] is not None:
            os.environ[images.ENVIRONMENT] = before[0]


def _redrawn(source, path, chance):
    """A whole archive, in which one drawing is another one."""
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(path, "w") as copy:
        names = [name for name in archive.namelist() if images._MEMBER.fullmatch(name)]
        one, other = chance.sample(names, 2)
        for name in names:
            copy.writestr(name, archive.read(other if name == one else name))


def _outcome(read, path, whole):
    """ "refused", "the same", "accepted" or "unclear"."""
    try:
        found = read(path)
    except (ValueError, FileNotFoundError) as error:
        return "refused" if path.name in str(error) and len(str(error)) < 2000 else "unclear"
    except Exception:
        return "unclear"
    return "the same" if same(found, whole) else "accepted"


def run(count=1200, drawings=6, sampled=True, seed=0):
    """What became of so many damaged files, and those that went wrong."""
    chance = random.Random(seed)
    counts = dict.fromkeys(("refused", "the same", "accepted", "unclear"), 0)
    bad = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, read in (kinds := samples(folder, sampled)).items():
            path = folder / name
            whole, raw = read(path), path.read_bytes()
            for number in range(-(-count // len(kinds))):
                damage = DAMAGES[number % len(DAMAGES)]
                path.write_bytes(damage(bytearray(raw), chance))
                found = "the same" if path.read_bytes() == raw else _outcome(read, path, whole)
                counts[found] += 1
                if found in ("accepted", "unclear"):
                    shutil.copy(path, Path(tempfile.gettempdir(), f"attnpaths-{found}-{name}"))
                    bad.append(f"{found}: {name} {damage.__name__}")
            path.write_bytes(raw)
    for found in archives(drawings, chance):
        counts[found] += 1
        if found in ("accepted", "unclear"):
            bad.append(f"{found}: an archive of Omniglot")
    return counts, bad


if __name__ == "__main__":
    print(*run())
