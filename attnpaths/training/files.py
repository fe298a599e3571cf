"""Trained networks on disk: half-precision arrays, no pickle, with their history beside them."""

import dataclasses
import json
import os
from typing import Any

import numpy as np

from attnpaths import _checks, _files
from attnpaths.network import Network, Weights

#: Larger weights cannot be kept.
LARGEST = float(np.finfo(np.float16).max)


@dataclasses.dataclass(frozen=True, eq=False)
class Trained:
    """A trained network, its weights, the label vectors it knows, and how it came about.

    `record` holds the settings and command, the validation curve, the final accuracies, the
    checksum of the images, the versions and the seconds taken.
    """

    network: Network
    weights: Weights | None
    labels: np.ndarray
    record: dict[str, Any]


def save_weights(path: str | os.PathLike, trained: Trained, *, values: bool = True) -> None:
    """Write a network as half-precision arrays to `path` (.npz), its record beside it (.json).

    These are W_K and W_Q `[H, G, D]` of every layer, for logits (W_K x_s)·(W_Q x_t)/√G, its
    `V [H, N, N]`, then `V0 [N, D]`, `a [N]` and, in full precision, `labels [3, D]`. Without
    `values`, V, V0 and a are left out: heads are all that the theory needs of a trained network.
    The file has room for the readout `"mean"` and for heads as pairs (W_K, W_Q), nothing else.

    >>> import tempfile
    >>> network = Network([(np.ones((1, 2, 3)), np.ones((1, 2, 3)))], readout="mean")
    >>> weights = Weights.prior(0, width=5, dim=3, heads=(1,))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_weights(f"{folder}/it.npz", Trained(network, weights, np.ones((3, 3)), {}))
    ...     load_weights(f"{folder}/it.npz").weights.V0.shape
    (5, 3)
    """
    path, values = _checks.path("path", path), _checks.flag("values", values)
    if not isinstance(trained, Trained):
        raise ValueError(f"trained must be training.Trained; got {type(trained).__name__}")
    if path.suffix != ".npz":
        raise ValueError(f"path must end in .npz, the kind of file that this is; got {path}")
    network = trained.network
    _checks.kind("trained.network", network, Network)
    if network.readout != "mean" or not all(isinstance(h, tuple) for h in network.heads):
        kinds = ["pairs" if isinstance(h, tuple) else "products" for h in network.heads]
        raise ValueError(
            'only a network with the readout "mean" and heads as pairs (W_K, W_Q) in all layers '
            f"can be saved; got {network!r}, heads as {', '.join(kinds)}"
        )
    weights = trained.weights if values else None
    if values and weights is None:
        raise ValueError("there are no weights to save; give values=False to keep the heads alone")
    # what could not be read back is not written
    labels = _checks.array("trained.labels", trained.labels, "vectors dim")
    _checks.kind("trained.record", trained.record, dict)
    large = {}
    for i, (k, q) in enumerate(network.heads):
        large |= {f"keys{i}": k, f"queries{i}": q}
    if weights is not None:
        weights = network.check_weights(weights)
        large |= {"V0": weights.V0, "a": weights.a}
        large |= {f"V{i + 1}": v for i, v in enumerate(weights.V)}
    arrays = {"labels": np.asarray(labels)} | {k: _half(k, each) for k, each in large.items()}
    try:
        record = json.dumps(trained.record, indent=1, ensure_ascii=False) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"trained.record must hold what JSON can: numbers, texts, lists and dicts; {error}"
        ) from error
    _files.write_arrays(path, arrays)
    with _files.replacing(path.with_suffix(".json")) as temporary:
        temporary.write_text(record, encoding="utf-8")


def load_weights(
    path: str | os.PathLike,
    *,
    layers: int | None = None,
    heads: int | None = None,
    key_dim: int | None = None,
    width: int | None = None,
) -> Trained:
    """Read what `save_weights` wrote; sizes that are given must be those of all its layers.

    Gives float64: heads W_K and W_Q `[H, G, D]`, for logits (W_K x_s)·(W_Q x_t)/√G, and `weights`
    `V0 [N, D]`, `V [H, N, N]`, `a [N]`, or None where the file holds the heads alone.

    >>> import tempfile
    >>> network = Network([(np.ones((1, 2, 3)), np.ones((1, 2, 3)))], readout="mean")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     heads = Trained(network, None, np.ones((3, 3)), {})
    ...     save_weights(f"{folder}/it.npz", heads, values=False)
    ...     load_weights(f"{folder}/it.npz", layers=1).network
    Network(head_counts=(1,), dim=3, readout='mean')
    """
    path = _checks.path("path", path)
    sizes = {"layers": layers, "heads": heads, "key_dim": key_dim, "width": width}
    wanted = {k: _checks.whole(k, size, least=1) for k, size in sizes.items() if size is not None}
    try:
        beside = path.with_suffix(".json")
        stored = _files.read_arrays(path)
        arrays = {name: array.astype(np.float64) for name, array in stored.items()}
        count = sum(name.startswith("keys") for name in arrays)
        pairs = [(arrays[f"keys{i}"], arrays[f"queries{i}"]) for i in range(count)]
        network = Network(pairs, readout="mean")
        labels = np.asarray(_checks.array("labels", arrays["labels"], "vectors dim"))
        weights = None
        if "V0" in arrays:
            values = tuple(arrays[f"V{i + 1}"] for i in range(count))
            weights = network.check_weights(Weights(arrays["V0"], values, arrays["a"]))
        record = json.loads(beside.read_text(encoding="utf-8")) if beside.exists() else {}
        if not isinstance(record, dict):
            raise ValueError(f"{beside.name} holds a {type(record).__name__}")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"no weights at {path}; train them with python -m attnpaths.training --out FOLDER"
        ) from None
    except _files.UNREADABLE as error:
        raise ValueError(
            f"{path} does not hold the weights of a network, or {path.stem}.json beside it no "
            f"record: {_files.brief(error)}; train with python -m attnpaths.training --out "
            "FOLDER, or fetch the file again"
        ) from error
    found = {
        "layers": network.layers,
        "heads": _common(network.head_counts),
        "key_dim": _common(tuple(keys.shape[1] for keys, _ in pairs)),
        "width": None if weights is None else _common(weights.widths),
    }
    check_same(path, found, wanted)
    return Trained(network, weights, labels, record)


def check_same(path, found: dict, wanted: dict) -> None:
    """Refuse a file whose settings are not those that are wanted, and name the differences."""
    differing = {k: v for k, v in wanted.items() if found.get(k) != v}
    if differing:
        is_ = ", ".join(f"{k}={found.get(k)}" for k in differing)
        asked = ", ".join(f"{k}={v}" for k, v in differing.items())
        raise ValueError(
            f"{path} is of another network or run: it has {is_} but {asked} was asked for; "
            "use its settings, or another folder"
        )


def _common(sizes: tuple[int, ...]) -> int | tuple[int, ...]:
    """The size that all layers have; where they differ, the size of each."""
    return sizes[0] if len(set(sizes)) == 1 else sizes


def _half(name: str, array) -> np.ndarray:
    array = np.asarray(array)
    with np.errstate(over="ignore"):
        half = array.astype(np.float16)
    if not np.isfinite(half).all():
        raise ValueError(
            f"{name} of trained holds weights up to {np.abs(array).max():g}, which do not fit in "
            f"half precision, up to {LARGEST:g}; train with a smaller learning rate"
        )
    return half
