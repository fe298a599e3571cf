"""Results that take longer than a page may: small files, with the command that made each.

A study is a module of this package, run as `python -m attnpaths.results.NAME`. It hands its
parts to `collect`, which keeps each part as soon as it is done in `NAME.json` beside it, so that
an interrupted run goes on where it stopped. Pages `read` the file.
"""

import datetime
import importlib.metadata
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from attnpaths.checkpoints import replacing

HERE = Path(__file__).parent


def read(name: str, folder: str | os.PathLike = HERE) -> dict[str, Any]:
    """Read a study: `parts` maps each part's name to its numbers, `provenance` to their origin."""
    path = Path(folder) / f"{name}.json"
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; make it with: {command(name)}")
    return json.loads(path.read_text(encoding="utf-8"))


def command(name: str) -> str:
    """How a reader makes the file of this study."""
    return f"python -m attnpaths.results.{name}"


def collect(
    name: str,
    parts: Mapping[str, Callable[[], Any]],
    *,
    data: Mapping[str, str] | None = None,
    seeds: Sequence[int] = (0,),
    again: bool = False,
    folder: str | os.PathLike = HERE,
) -> dict[str, Any]:
    """Compute what the study's file does not hold yet, and keep each part once it is done.

    `parts` gives for each name a function of no arguments, whose answer is made of numbers,
    texts, lists, dictionaries and arrays. `data` names the data sets used, with their checksums;
    a file made from other data is refused. `seeds` are those that all random numbers come from.
    With `again` everything is computed anew. The provenance of each part is its date, the seconds
    that it took, the machine, the most memory that the process held until then, seeds, and the
    versions of what computed it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     held = collect("sum", {"a": lambda: 1 + np.arange(3)}, folder=folder)
    ...     read("sum", folder)["parts"], held["provenance"]["a"]["command"]
    ({'a': [1, 2, 3]}, 'python -m attnpaths.results.sum')
    """
    path = Path(folder) / f"{name}.json"
    data = dict(data or {})
    held = {"parts": {}, "provenance": {}} if again or not path.exists() else read(name, folder)
    for part, origin in held["provenance"].items():
        if origin["data"] != data:
            raise ValueError(
                f"{path}: part {part!r} was made from data {origin['data']}, now {data}; "
                "give the same data, or compute everything again"
            )
    # what is no longer part of the study goes
    held = {key: {part: held[key][part] for part in parts if part in held[key]} for key in held}
    for part in tqdm(
        [part for part in parts if part not in held["parts"]], unit="part", disable=None
    ):
        start = time.perf_counter()
        held["parts"][part] = _plain(parts[part]())
        held["provenance"][part] = {
            "command": command(name),
            "date": str(datetime.date.today()),
            "seconds": round(time.perf_counter() - start, 1),
            "cores": os.cpu_count(),
            "peak_memory_gib": round(peak_memory(), 2),
            "python": platform.python_version(),
            **{each: importlib.metadata.version(each) for each in ("attnpaths", "jax", "numpyro")},
            "seeds": list(seeds),
            "data": data,
        }
        with replacing(path) as temporary:
            text = json.dumps(held, indent=1, sort_keys=True, allow_nan=False)
            temporary.write_text(text + "\n", encoding="utf-8")
            json.loads(temporary.read_text(encoding="utf-8"))
    return held


def peak_memory() -> float:
    """The most memory that this process has held, in GiB; counted in bytes on a Mac."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)


def _plain(value: Any) -> Any:
    """Numbers with six digits, in the types that JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, str | bool | int) or value is None:
        return value
    if np.ndim(value):
        return [_plain(each) for each in np.asarray(value)]
    value = np.asarray(value)[()]
    if value.dtype.kind in "biu":
        return value.item()
    if not np.isfinite(value):
        raise ValueError(f"a result must be finite, but one is {value}")
    return float(f"{value:.6g}")
