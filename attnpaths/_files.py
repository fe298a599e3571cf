"""Files that are whole or not there, and results in them without pickle."""

import contextlib
import dataclasses
import json
import math
import os
import textwrap
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from attnpaths import _checks

# What NumPy, zipfile and json raise for damaged files and for files of another kind.
UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError),
    *(ValueError, KeyError, TypeError, AttributeError, tokenize.TokenError),
    *(MemoryError, OverflowError, RecursionError, NotImplementedError),
)
_FACTS = "facts"


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name that takes the place of `path` once it is written whole, and on the disk."""
    temporary = path.with_name(path.name + ".new")
    try:
        yield temporary
        _to_disk(temporary)
        os.replace(temporary, path)
        _to_disk(path.parent)
    except OSError as error:
        raise type(error)(
            f"{path} could not be written ({error.strerror or error}); what was there stands: mend "
            "that, and try again"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def _to_disk(path: Path) -> None:
    """Have the system write out what it still holds in memory, so that a power cut spares it."""
    if path.is_dir() and os.name != "posix":
        return
    opened = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def read_arrays(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """All arrays of a .npz file; raises one of `UNREADABLE` where that is no such file.

    What it says that it unpacks to is looked at first, and each array's checksum last.
    """
    with zipfile.ZipFile(path) as file:
        members = {info.filename.removesuffix(".npy"): info for info in file.infolist()}
        # the bytes of an array, and the array
        stated = 2 * sum(info.file_size for info in members.values())
        _checks.memory(stated, f"what {path} holds", "it is no file of this library")
        return {name: _array(file, info) for name, info in members.items()}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """One array of a .npz file, of which not a byte is unpacked before its size is as it says."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        header = {(1, 0): np.lib.format.read_array_header_1_0}
        header |= {(2, 0): np.lib.format.read_array_header_2_0}
        shape, columns_first, dtype = header[version](file)
        if dtype.hasobject:
            raise ValueError(f"{member.filename} holds objects, not numbers")
        stated = math.prod(shape) * dtype.itemsize
        if file.tell() + stated != member.file_size:
            raise ValueError(
                f"{member.filename} unpacks to {member.file_size:,} bytes, not to the {stated:,} "
                f"of an array {shape} of {dtype}"
            )
        # to the end, where the checksum is looked at
        flat = np.frombuffer(file.read(), dtype, math.prod(shape))
    return flat.reshape(shape, order="F" if columns_first else "C")


def brief(error: BaseException) -> str:
    """The words of an error, without the bytes that some of them quote."""
    return textwrap.shorten(str(error), 200, placeholder=" …") or type(error).__name__


def unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
    """One member of an archive, never more than it says to hold, nor than `most` bytes."""
    if member.file_size > most:
        raise ValueError(f"{member.filename} unpacks to {member.file_size:,} bytes, {most:,} fit")
    with archive.open(member) as file:
        # one byte more: where there is no such byte, the checksum is looked at
        return file.read(member.file_size + 1)


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """A .npz file of these arrays, which stands only once it is written whole."""
    with replacing(path) as temporary, open(temporary, "wb") as file:
        plain: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
        np.savez_compressed(file, **plain)


def save(path: str | os.PathLike, value: Any) -> None:
    """Write a dataclass, with the dataclasses, tuples, arrays, numbers, texts, to a .npz file."""
    path = _checks.path("path", path)
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
    if value is None or isinstance(value, int | float | str):
        return value
    arrays.append(np.asarray(value))
    return {"array": len(arrays) - 1}


def load(path: str | os.PathLike, kinds: tuple[type, ...], parts: tuple[type, ...]) -> Any:
    """What `save` wrote, if it is one of `kinds`, or an error that names the file.

    `parts` are the other dataclasses that may be in it. Nothing else is ever made.
    """
    path = _checks.path("path", path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        raise ValueError(f"path must name a .npz file; {path} is a folder")
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
            f"{path} is damaged, or holds no {wanted} that attnpaths saved: {brief(error)}"
        ) from error
    return result
