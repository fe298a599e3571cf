"""`make` says what is missing before it installs, and begins anew what was not finished."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# an interpreter that only says what it was asked, and makes an environment of such programs
PYTHON = """#!/bin/sh
echo "{name} $*" >> "{log}"
case "$*" in
  -VV) echo "Python of {name}" ;;
  *version_info*) exit {old} ;;
  *ensurepip*) exit {bare} ;;
  *flock*) exec "{real}" "$@" ;;
  "-m venv .venv")
    while test -e "{hold}"; do sleep 0.02; done
    mkdir -p .venv/bin
    for each in pip jupytext-config jupyter-book python; do
      printf '#!/bin/sh\\necho "%s $*" >> "{log}"\\ntest ! -e "{fail}"\\n' $each > .venv/bin/$each
      chmod +x .venv/bin/$each
    done ;;
esac
"""
pytestmark = pytest.mark.skipif(
    not shutil.which("make"), reason="MAKE IS NOT TESTED: it is missing"
)


class Place:
    """A copy of what `make` reads, and interpreters that say what they did."""

    def __init__(self, folder):
        self.folder, self.log, self.fail = folder, folder / "log", folder / "fail"
        # as long as it is there, environments are not finished
        self.hold = folder / "hold"
        self.log.touch()
        (folder / "book" / "_ext").mkdir(parents=True)
        (folder / "bin").mkdir()
        for name in ("Makefile", "requirements.txt", "pyproject.toml"):
            shutil.copy(ROOT / name, folder / name)
        for name in ("pyproject.toml", "_ext/lab.json"):
            shutil.copy(ROOT / "book" / name, folder / "book" / name)
        # no other interpreter than those that are put there
        for name in ("python3", "python3.11", "python3.12", "python3.13"):
            self.python(name, old=1)

    def python(self, name, old=0, bare=0):
        path = self.folder / "bin" / name
        words = {"name": name, "log": self.log, "fail": self.fail, "real": sys.executable}
        words |= {"hold": self.hold, "old": old, "bare": bare}
        path.write_text(PYTHON.format(**words))
        path.chmod(0o755)

    def begin(self, *words):
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        said = self.folder / f"said{len(list(self.folder.glob('said*')))}"
        with open(said, "w") as file:
            running = subprocess.Popen(
                ["make", "book", *words],
                cwd=self.folder,
                env={"PATH": path},
                stdout=subprocess.DEVNULL,
                stderr=file,
            )
        running.said = said
        return running

    def make(self, *words):
        self.log.write_text("")
        running = self.begin(*words)
        return running.wait(60), running.said.read_text(), self.log.read_text()

    def wait_for(self, file, words):
        deadline = time.monotonic() + 60
        while words not in file.read_text():
            assert time.monotonic() < deadline, file.read_text()
            time.sleep(0.02)


@pytest.fixture
def place(tmp_path):
    found = Place(tmp_path)
    yield found
    found.hold.unlink(missing_ok=True)


def test_no_interpreter_fits(place):
    code, said, done = place.make()
    assert code and "Python 3.11, 3.12 or 3.13 is needed, and none was found" in said
    assert "venv" not in done and not (place.folder / ".venv").exists()
    code, said, _ = place.make("PYTHON=python3")
    assert code and "python3 is not Python 3.11, 3.12 or 3.13; name another" in said
    assert not (place.folder / ".venv").exists()


def test_what_is_missing_is_said_before_anything_is_installed(place):
    place.python("python3.12", bare=1)
    code, said, done = place.make()
    assert code and "modules venv and ensurepip are missing" in said
    assert "-m venv" not in done and not (place.folder / ".venv").exists()
    place.python("python3.12")
    code, said, done = place.make("NEEDED=10000000")
    assert code and "less than 10000000 GB are free here" in said
    assert "-m venv" not in done and not (place.folder / ".venv").exists()


def test_a_try_that_failed_may_have_filled_the_disk(place):
    """What it left is no reason not to ask for room, and is room that the next try has."""
    place.python("python3.12")
    place.fail.touch()
    assert place.make("NEEDED=0")[0]
    place.fail.unlink()
    code, said, done = place.make("NEEDED=10000000")
    assert code and "less than 10000000 GB are free here" in said and "-m venv" not in done
    for name, kilobytes in {"df": "a 9 9 1000000 9 .", "du": "2000000 .venv"}.items():
        tool = place.folder / "bin" / name
        tool.write_text(f"#!/bin/sh\necho {kilobytes}\n")
        tool.chmod(0o755)
    assert "less than 4 GB are free here" in place.make("NEEDED=4")[1]
    code, said, done = place.make("NEEDED=3")
    assert code == 0 and "-m venv .venv" in done, said


def test_a_try_that_failed_does_not_poison_the_next(place):
    place.python("python3.12")
    place.fail.touch()
    assert place.make("NEEDED=0")[0]
    stale = place.folder / ".venv" / "stale"
    stale.touch()
    place.fail.unlink()
    code, said, done = place.make("NEEDED=0")
    assert code == 0, said
    assert "-m venv .venv" in done and not stale.exists()
    # Lab is told how to save chapters
    told = place.folder / ".venv" / "etc" / "jupyter" / "jupyter_server_config.json"
    assert told.read_bytes() == (ROOT / "book" / "_ext" / "lab.json").read_bytes()
    # what is whole is not installed again
    assert "pip install" not in place.make()[2]
    # another interpreter begins anew, and the newest is taken
    stale.touch()
    place.python("python3.13")
    os.utime(place.folder / "requirements.txt", (2e9, 2e9))
    code, said, done = place.make("NEEDED=0")
    assert code == 0 and "python3.13 -m venv .venv" in done and not stale.exists()


def test_the_cpu_build_of_torch(place):
    place.python("python3.11")
    done = place.make("TORCH_INDEX=https://example.org/cpu", "NEEDED=0")[2]
    pins = (place.folder / "requirements.txt").read_text().splitlines()
    (torch,) = (line for line in pins if line.startswith("torch=="))
    first, second, *_ = (line for line in done.splitlines() if line.startswith("pip"))
    assert first == f"pip install --quiet --no-deps --index-url https://example.org/cpu {torch}"
    assert second == "pip install --quiet -r requirements.txt"


def test_the_second_of_two_at_once_waits(place):
    """And takes what the first has installed, instead of deleting it half made."""
    place.python("python3.12")
    place.hold.touch()
    first = place.begin("NEEDED=0")
    place.wait_for(place.log, "-m venv .venv")
    second = place.begin("NEEDED=0")
    place.wait_for(second.said, "another make installs here; waiting until it is done")
    place.hold.unlink()
    assert (first.wait(60), second.wait(60)) == (0, 0)
    done = place.log.read_text()
    assert done.count("-m venv .venv") == 1 and done.count("-r requirements.txt") == 1
    assert done.count("jupyter-book build") == 2


def test_one_that_is_killed_holds_nobody_up(place):
    place.python("python3.12")
    place.hold.touch()
    first = place.begin("NEEDED=0")
    place.wait_for(place.log, "-m venv .venv")
    first.kill()
    first.wait(60)
    place.hold.unlink()
    code, said, done = place.make("NEEDED=0")
    assert code == 0, said
    assert (place.folder / ".venv" / ".installed").read_text() == "Python of python3.12\n"
    assert "jupyter-book build" in done
