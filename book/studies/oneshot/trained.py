"""Trained networks, as small as the study needs them: what it takes to prune and to compare.

    python -m book.studies.oneshot.trained FOLDER …

reads the finished runs of `python -m attnpaths.training` in these folders, checks and tests them,
and writes each into `networks/` as NAME.npz, half a megabyte in place of five, with its history,
its test accuracies and the checksum of the arrays in NAME.json. With `--again`, it takes NAMEs of
kept networks and tests these anew.
"""

import argparse
import dataclasses
import hashlib
import io
import json
import math
import os
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from attnpaths import Network, empirical_order_parameter, pruning
from attnpaths.tasks import images as image_sources
from attnpaths.tasks import oneshot
from attnpaths.training import Trained, load_weights

NETWORKS = Path(__file__).parent / "networks"
#: Where networks are trained and tested: in distribution, then out of it.
SOURCES = ("omniglot", "mnist", "fashion_mnist")
#: Random test sequences of each source.
SEQUENCES = 10_000
_LARGEST, _UNPACKED, _BLOCK = 10**6, 4 * 10**6, 500
_DAMAGED = (OSError, EOFError, zipfile.BadZipFile, RuntimeError, NotImplementedError)
_DAMAGED += (ValueError, KeyError, TypeError, AttributeError)
# tells test sequences apart from all else that is drawn from a seed
_TEST = 105


@dataclasses.dataclass(frozen=True, eq=False)
class Compact:
    """A trained network of which only what matters is left.

    Of the weights beyond the heads these are one readout vector for each path, `readouts [Π, D]`,
    so that f^π = ξ^π · r^π; their order parameter `U [Π, Π]`; and the norm of every head's values.
    `labels [3, D]` are the label vectors it knows, `record` its history and its accuracies.
    """

    name: str
    network: Network
    readouts: np.ndarray
    U: np.ndarray
    norms: np.ndarray
    labels: np.ndarray
    record: dict[str, Any]

    @property
    def heads(self) -> tuple[int, ...]:
        """How many heads each layer has."""
        return self.network.head_counts

    @property
    def checksum(self) -> str:
        """The checksum of its arrays, by which results are known to be of this network."""
        return self.record["checksum"]

    def outputs(self, xi) -> np.ndarray:
        """What each path adds to the output, `[P, Π]`, as `pruning.path_outputs` gives."""
        return np.einsum("pkd,kd->pk", np.asarray(xi), self.readouts)


def compacted(trained: Trained) -> dict[str, np.ndarray]:
    """The arrays of a compact network: `heads{ℓ}_0` are products, key first, where those are
    smaller than the pairs W_K, W_Q, `heads{ℓ}_0` and `heads{ℓ}_1`, scaled for logits over √G.
    """
    weights = trained.weights
    if weights is None:
        raise ValueError("the file holds the heads alone, without the weights that are pruned")
    arrays: dict[str, np.ndarray] = {}
    for i, pair in enumerate(trained.network.heads):
        keys, queries = (np.asarray(w, float) for w in pair)
        _, inner, dim = keys.shape
        if dim < 2 * inner:
            parts = [np.einsum("hgi,hgj->hij", keys, queries) / math.sqrt(inner)]
        else:
            parts = [keys, queries]
        arrays |= {f"heads{i}_{j}": part.astype(np.float16) for j, part in enumerate(parts)}
    paths, dim = math.prod(trained.network.head_counts), weights.V0.shape[1]
    unit = np.tile(np.eye(dim)[:, None], (1, paths, 1))
    arrays["readouts"] = np.asarray(pruning.path_outputs(weights, unit)).T.astype(np.float32)
    arrays["U"] = np.asarray(empirical_order_parameter(weights), np.float32)
    arrays["norms"] = np.array(list(pruning.value_norms(weights).values()), np.float32)
    return arrays | {"labels": np.asarray(trained.labels, float)}


def made(name: str, arrays: Mapping[str, np.ndarray], record: dict[str, Any]) -> Compact:
    """The network of these arrays, if they fit each other."""
    layers = 1 + max(int(key[5:].split("_")[0]) for key in arrays if key.startswith("heads"))
    wide = {key: np.asarray(array, float) for key, array in arrays.items()}
    heads = [
        (wide[f"heads{i}_0"], wide[f"heads{i}_1"]) if f"heads{i}_1" in wide else wide[f"heads{i}_0"]
        for i in range(layers)
    ]
    network = Network(heads, readout="mean")
    paths = math.prod(network.head_counts)
    shapes = {"readouts": (paths, network.dim), "U": (paths, paths)}
    shapes |= {"norms": (sum(network.head_counts),), "labels": (3, network.dim)}
    for key, shape in shapes.items():
        if wide[key].shape != shape or not np.isfinite(wide[key]).all():
            raise ValueError(f"{key} must be finite numbers {shape}; got {wide[key].shape}")
    held = {key: wide[key] for key in shapes}
    return Compact(name=name, network=network, record=record, **held)


def names(folder: Path = NETWORKS) -> list[str]:
    """The networks that are there: small ones first, then by seed."""
    return sorted(path.stem for path in folder.glob("*.npz"))


def load(name: str, folder: Path = NETWORKS) -> Compact:
    """Read a network by its name; its size and checksum are looked at first."""
    path = folder / f"{name}.npz"
    if not path.exists():
        held = ", ".join(names(folder)) or "none"
        raise FileNotFoundError(f"there is no network {name!r} in {folder}; there are {held}")
    try:
        if max(path.stat().st_size, path.with_suffix(".json").stat().st_size) > _LARGEST:
            raise ValueError(f"it or its record is larger than {_LARGEST:,} bytes")
        record = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        raw = path.read_bytes()
        if _checksum(raw) != record["checksum"]:
            raise ValueError("its checksum is not that of the record")
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            if sum(info.file_size for info in archive.infolist()) > _UNPACKED:
                raise ValueError(f"it unpacks to more than {_UNPACKED:,} bytes")
        with np.load(io.BytesIO(raw), allow_pickle=False) as held:
            return made(name, dict(held), record)
    except _DAMAGED as error:
        raise ValueError(
            f"{path}, or {name}.json beside it, is damaged or holds no compact network: {error}; "
            "restore both, or make them anew: python -m book.studies.oneshot.trained FOLDER"
        ) from error


def sources() -> dict[str, image_sources.Images]:
    """The images of all sources; of those out of distribution only the classes 0 and 1."""
    return {
        name: image_sources.load(name, classes=None if name == SOURCES[0] else (0, 1))
        for name in SOURCES
    }


def tests(
    images: Mapping[str, image_sources.Images], seed: int, sequences: int | Mapping[str, int]
) -> dict[str, tuple[str, oneshot.Sequences]]:
    """Test sets by name, each with its source: random ones, then the authors' out of distribution.

    The first source is split by class, and only its test classes serve.
    """
    found = {}
    for number, (name, source) in enumerate(images.items()):
        classes = oneshot.split_classes(source)["test"] if number == 0 else None
        count = sequences if isinstance(sequences, int) else sequences[name]
        drawn = oneshot.draw(source, count, seed=[seed, _TEST, number], classes=classes)
        found[name] = name, drawn
    for name in list(images)[1:]:
        found[f"{name}, authors"] = name, oneshot.authors_set(images[name])
    return found


def blocks(
    network: Compact, images: image_sources.Images, sequences: oneshot.Sequences
) -> Iterator[np.ndarray]:
    """ξ `[500, Π, D]` of sequences, block by block."""
    encoder = oneshot.Encoder(images, network.labels)
    for i in range(0, len(sequences), _BLOCK):
        yield np.asarray(network.network.features(encoder(sequences[i : i + _BLOCK])))


def tested(
    network: Compact, images: Mapping[str, image_sources.Images], sequences: int = SEQUENCES
) -> dict[str, dict[str, Any]]:
    """Accuracies of a network on every test set, with their binomial errors.

    The random sequences out of distribution are shown a second time, with ink and paper exchanged.
    """
    found = tests(images, network.record["settings"]["seed"], sequences)
    shown = {name: (images[source], drawn) for name, (source, drawn) in found.items()}
    for name in list(images)[1:]:
        shown[f"{name}, other ink"] = images[name].inverted(), found[name][1]
    return {name: _accuracy(network, *each) for name, each in shown.items()}


def _accuracy(
    network: Compact, images: image_sources.Images, sequences: oneshot.Sequences
) -> dict[str, Any]:
    parts = [network.outputs(xi).sum(axis=1) for xi in blocks(network, images, sequences)]
    share = float(np.mean(np.where(np.concatenate(parts) > 0, 1, -1) == sequences.y))
    error = math.sqrt(share * (1 - share) / len(sequences))
    return {"accuracy": share, "standard_error": error, "examples": len(sequences)}


def compact(
    folder: str | os.PathLike,
    images: Mapping[str, image_sources.Images],
    *,
    out: Path = NETWORKS,
    sequences: int = SEQUENCES,
) -> Compact:
    """Check, test and write the finished run in `folder`; gives what was written."""
    folder = Path(folder)
    trained = load_weights(folder / "weights.npz")
    record = dict(trained.record)
    own, *_ = images.values()
    _check(folder, record, own)
    settings = record["settings"]
    sizes = "-".join(str(settings[key]) for key in ("layers", "heads", "key_dim"))
    name = f"{settings['source']}-{sizes}-seed{settings['seed']}"
    arrays = compacted(trained)
    small = made(name, arrays, record)
    record["tested"] = tested(small, images, sequences)
    _compare(folder, trained, small, own)
    return write(name, arrays, record, out)


def test_again(
    name: str,
    images: Mapping[str, image_sources.Images],
    *,
    out: Path = NETWORKS,
    sequences: int = SEQUENCES,
) -> Compact:
    """Test a kept network anew; only its record changes."""
    network = load(name, out)
    _put(out / f"{name}.json", network.record | {"tested": tested(network, images, sequences)})
    return load(name, out)


def write(
    name: str, arrays: Mapping[str, np.ndarray], record: dict[str, Any], out: Path = NETWORKS
) -> Compact:
    """Write a network, the record last; neither file is ever there in part."""
    packed = io.BytesIO()
    plain: dict[str, Any] = dict(arrays)
    np.savez_compressed(packed, **plain)
    raw = packed.getvalue()
    if len(raw) > _LARGEST:
        raise ValueError(f"{name} takes {len(raw):,} bytes, more than {_LARGEST:,}")
    out.mkdir(parents=True, exist_ok=True)
    _put(out / f"{name}.npz", raw)
    _put(out / f"{name}.json", record | {"checksum": _checksum(raw)})
    return load(name, out)


def _check(folder: Path, record: Mapping[str, Any], images: image_sources.Images) -> None:
    """Refuse what was not trained to its end, or on other images."""
    missing = {"settings", "steps", "steps_per_epoch", "validation", "accuracy"} - record.keys()
    if missing:
        raise ValueError(f"{folder}/weights.json has no {', '.join(sorted(missing))}")
    settings = record["settings"]
    asked = round(settings["epochs"] * record["steps_per_epoch"])
    if record["steps"] != asked:
        raise ValueError(f"{folder} has {record['steps']} of {asked} steps: let it finish")
    now = hashlib.md5(images.pixels.tobytes(), usedforsecurity=False).hexdigest()
    if settings["source"] != images.source or record["images_md5"] != now:
        raise ValueError(
            f"{folder} was trained on {settings['source']} with checksum {record['images_md5']}, "
            f"but {images.source} here has {now}: train on these images"
        )


def _compare(folder: Path, trained: Trained, small: Compact, images) -> None:
    """Refuse a compact network that does not do what the trained one does."""
    drawn = oneshot.draw(images, 100, seed=[0, _TEST])
    x = oneshot.Encoder(images, trained.labels)(drawn)
    assert trained.weights is not None, "compacted has refused this"
    wanted = np.asarray(trained.network.apply(trained.weights, x))
    found = small.outputs(small.network.features(x)).sum(axis=1)
    apart = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    if not apart < 0.02:
        raise ValueError(f"half precision moves the outputs of {folder} by {apart:.1%}")
    for name, before in small.record["accuracy"].items():
        if "missing" in before or name not in small.record["tested"]:
            continue
        now = small.record["tested"][name]
        error = math.hypot(before["standard_error"], now["standard_error"], 1 / now["examples"])
        if abs(now["accuracy"] - before["accuracy"]) > 5 * error:
            raise ValueError(
                f"{folder} has accuracy {now['accuracy']:.3f} on {name}, but its record has "
                f"{before['accuracy']:.3f}: they are not of one network, or of other images"
            )


def _put(path: Path, content: bytes | Mapping[str, Any]) -> None:
    """Write a file, or a record as JSON, under another name, and put it in place."""
    if not isinstance(content, bytes):
        content = (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
    temporary = path.with_name(path.name + ".new")
    temporary.write_bytes(content)
    os.replace(temporary, path)


def _checksum(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m book.studies.oneshot.trained",
        description="Make compact networks of finished training runs.",
    )
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="folder of a training run")
    parser.add_argument("--again", action="store_true", help="test kept networks, by NAME, anew")
    parser.add_argument("--out", type=Path, default=NETWORKS, help="where they go")
    parser.add_argument("--sequences", type=int, default=SEQUENCES, help="random test sequences")
    options = parser.parse_args(arguments)
    try:
        images = sources()
        for folder in tqdm(options.folders, unit="network", disable=None):
            make = test_again if options.again else compact
            found = make(folder, images, out=options.out, sequences=options.sequences)
            accuracies = (f"{k} {v['accuracy']:.3f}" for k, v in found.record["tested"].items())
            print(f"{found.name}: {'; '.join(accuracies)}")
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
