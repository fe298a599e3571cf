"""What all studies share: parts that are kept as soon as they are done, with their origin.

A study is a folder of this package, run as `python -m book.studies.NAME.run`. It hands its parts
to `collect`, which keeps each part as soon as it is done in `NAME/results.json`, so that an
interrupted run goes on where it stopped. Pages `read` the file.
"""

import ast
import concurrent.futures
import datetime
import hashlib
import importlib.metadata
import importlib.util
import json
import multiprocessing
import os
import platform
import re
import resource
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

HERE = Path(__file__).parent


def file(name: str, folder: str | os.PathLike = HERE) -> Path:
    """Where the results of a study are.

    >>> file("limits").parts[-2:]
    ('limits', 'results.json')
    """
    return Path(folder) / name / "results.json"


def read(name: str, folder: str | os.PathLike = HERE) -> dict[str, Any]:
    """Read a study: `parts` maps each part's name to its numbers, `provenance` to their origin."""
    path = file(name, folder)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; make it with: {command(name)}")
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        if held["parts"].keys() != held["provenance"].keys():
            raise ValueError("parts and provenance differ")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is damaged, or no file of a study ({error}); restore it, or delete it and "
            f"make it anew: {command(name)}"
        ) from error
    return held


def command(name: str) -> str:
    """How a reader makes the file of this study."""
    return f"python -m book.studies.{name}.run"


def collect(
    name: str,
    parts: Mapping[str, Callable[[], Any] | None],
    *,
    data: Mapping[str, str] | None = None,
    seeds: Sequence[int] = (0,),
    again: bool | Collection[str] = False,
    fresh: Callable[[str, Any], bool] = lambda part, found: True,
    source: str | None = None,
    folder: str | os.PathLike = HERE,
    jobs: int = 1,
) -> dict[str, Any]:
    """Compute what the study's file does not hold yet, and keep each part once it is done.

    `parts` gives for each name a function of no arguments, whose answer is made of numbers,
    texts, lists, dictionaries and arrays; None stands for a part that stays as it is, if it is
    there. `data` names the data sets used, with their checksums; a file made from other data is
    refused. `seeds` are those that all random numbers come from. Parts that are named in `again`,
    all of them if it is true, those that are not `fresh(part, found)` and, where it is given, those
    of another `source`, the `fingerprint` of the code that they rest on, are computed anew. The
    provenance of each part is its date, the seconds that it took, the machine, the most memory
    that the process held until then, seeds, and the versions of what computed it. With several
    `jobs` as many parts are computed side by side, each in a process with a core of its own, which
    is faster than one part on all cores; what they call must then be picklable.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     held = collect("sum", {"a": lambda: 1 + np.arange(3)}, folder=folder)
    ...     read("sum", folder)["parts"], held["provenance"]["a"]["command"]
    ({'a': [1, 2, 3]}, 'python -m book.studies.sum.run')
    """
    path = file(name, folder)
    data = dict(data or {})
    named = set(parts) if again is True else set(again or ())
    held = read(name, folder) if path.exists() else {"parts": {}, "provenance": {}}
    stay = {
        part
        for part, call in parts.items()
        if part in held["parts"]
        and (call is None or (part not in named and fresh(part, held["parts"][part])))
        and (call is None or source in (None, held["provenance"][part].get("source")))
    }
    # what is no longer part of the study goes, but not because the data were mistaken
    gone = set() if again is True else held["parts"].keys() - parts.keys()
    for part, origin in held["provenance"].items():
        if part in stay | gone and origin["data"] != data:
            raise ValueError(
                f"{path}: part {part!r} was made from data {origin['data']}, now {data}; "
                "give the same data, or compute everything again"
            )
    held = {key: {part: each[part] for part in each if part in stay} for key, each in held.items()}
    missing = {part: call for part, call in parts.items() if call and part not in stay}
    for part, found, seconds, memory in tqdm(
        _computed(missing, jobs), total=len(missing), unit="part", disable=None
    ):
        held["parts"][part] = found
        held["provenance"][part] = {
            "command": command(name),
            "date": str(datetime.date.today()),
            "seconds": round(seconds, 1),
            "cores": 1 if jobs > 1 else os.cpu_count(),
            "peak_memory_gib": round(memory, 2),
            "python": platform.python_version(),
            **{each: importlib.metadata.version(each) for each in ("attnpaths", "jax", "numpyro")},
            "seeds": list(seeds),
            "data": data,
            **({} if source is None else {"source": source}),
        }
        _write(path, held)
    return held


def _computed(
    parts: Mapping[str, Callable[[], Any]], jobs: int
) -> Iterator[tuple[str, Any, float, float]]:
    """Names and answers of parts as they are done, with the seconds and the memory they took."""
    if jobs == 1:
        for part, call in parts.items():
            yield part, *_timed(call)
        return
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(
        jobs, context, initializer=_begin, initargs=(context.Value("i", 0),)
    )
    try:
        futures = {pool.submit(_timed, call): part for part, call in parts.items()}
        for future in concurrent.futures.as_completed(futures):
            yield futures[future], *future.result()
    finally:
        # after a failure nothing more is begun
        pool.shutdown(cancel_futures=True)


def _timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    start = time.perf_counter()
    found = _plain(call())
    return found, time.perf_counter() - start, peak_memory()


def _begin(taken) -> None:
    """Bind this process to the next core, where the system can: threads then do not compete.

    It ends with the process that began it, even if that is killed.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if hasattr(os, "sched_setaffinity"):
        with taken.get_lock():
            number, taken.value = taken.value, taken.value + 1
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[number % len(cores)]})


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def fingerprint(*names: str) -> str:
    """The checksum of the code of these modules and packages, whatever their words.

    Comments, docstrings and layout do not count, so that only what computes makes results stale.

    >>> fingerprint("book.studies.small") == fingerprint("book.studies.small")
    True
    """
    digest = hashlib.sha256()
    for name in sorted(names):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise ValueError(f"there is no module {name!r} with code")
        path = Path(spec.origin)
        files = sorted(path.parent.glob("*.py")) if path.name == "__init__.py" else [path]
        for file_ in files:
            tree = ast.parse(file_.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if isinstance(getattr(node, "body", None), list) and _documented(node):
                    del node.body[0]  # pyright: ignore[reportAttributeAccessIssue]
            digest.update(f"{name}/{file_.name}\n{ast.dump(tree)}\n".encode())
    return digest.hexdigest()


def _documented(node: ast.AST) -> bool:
    """True where the first statement of a node is a text that nobody reads but people."""
    first = next(iter(node.body), None)  # pyright: ignore[reportAttributeAccessIssue]
    return (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )


def peak_memory() -> float:
    """The most memory that this process has held, in GiB; counted in bytes on a Mac."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)


def _write(path: Path, held: Mapping[str, Any]) -> None:
    """Write the file, rows of numbers on one line each, and put it in place once it can be read."""
    path.parent.mkdir(exist_ok=True)
    text = json.dumps(held, indent=1, sort_keys=True, allow_nan=False)
    text = re.sub(r"\[[^\[\]{}\"]*\]", lambda row: " ".join(row.group().split()), text)
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(text + "\n", encoding="utf-8")
    json.loads(temporary.read_text(encoding="utf-8"))
    os.replace(temporary, path)


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
