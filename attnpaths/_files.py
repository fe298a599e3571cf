"""Files that are whole or not there, and results in them without pickle."""

import contextlib
import dataclasses
import json
import os
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

# What NumPy, zipfile and json raise for damaged files and for files of another kind.
UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError),
    *(ValueError, KeyError, TypeError, AttributeError, tokenize.TokenError),
)
_FACTS = "facts"


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name that takes the place of `path` once it is written whole."""
    temporary = path.with_name(path.name + ".new")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read_arrays(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """All arrays of a .npz file; raises one of `UNREADABLE` where that is no such file."""
    with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """A .npz file of these arrays, which stands only once it is written whole."""
    with replacing(path) as temporary, open(temporary, "wb") as file:
        plain: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
        np.savez_compressed(file, **plain)


def save(path: str | os.PathLike, value: Any) -> None:
    """Write a dataclass, with the dataclasses, tuples, arrays and numbers in it, to a .npz file."""
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"path must end in .npz, the kind of file that this is; got {path}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into")
    arrays: list[np.ndarray] = []
    facts = np.frombuffer(json.dumps(_described(value, arrays)).encode(), np.uint8)
    write_arrays(path, {_FACTS: facts, **{str(i): array for i, array in enumerate(arrays)}})


def _described(value: Any, arrays: list[np.ndarray]) -> Any:
    """`value` as JSON holds it, with places in `arrays` for its arrays."""
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value)]
        return {type(value).__name__: {f: _described(getattr(value, f), arrays) for f in fields}}
    if isinstance(value, tuple):
        return [_described(each, arrays) for each in value]
    if value is None or isinstance(value, int | float):
        return value
    arrays.append(np.asarray(value))
    return {"array": len(arrays) - 1}


def load(path: str | os.PathLike, kinds: tuple[type, ...], parts: tuple[type, ...]) -> Any:
    """What `save` wrote, if it is one of `kinds`, or an error that names the file.

    `parts` are the other dataclasses that may be in it. Nothing else is ever made.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    known = {kind.__name__: kind for kind in (*kinds, *parts)}
    try:
        arrays = read_arrays(path)

        def made(facts):
            if isinstance(facts, list):
                return tuple(map(made, facts))
            if not isinstance(facts, dict):
                return facts
            ((name, content),) = facts.items()
            if name == "array":
                return jnp.asarray(arrays[str(content)])
            if name not in known:
                raise ValueError(f"it holds a {name}")
            return known[name](**{field: made(each) for field, each in content.items()})

        result = made(json.loads(arrays.pop(_FACTS).tobytes()))
        if not isinstance(result, kinds):
            raise ValueError(f"it holds a {type(result).__name__}")
    except UNREADABLE as error:
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(
            f"{path} is damaged, or holds no {wanted} that attnpaths saved: {error}"
        ) from error
    return result
