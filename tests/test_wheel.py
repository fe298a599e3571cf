"""What a reader installs is small, and runs with the core dependencies alone."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from book._ext import wheels

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
# refuses everything that the core does not ask for, as an environment without it would
CORE_ONLY = """
import importlib.metadata, re, sys
needed, queue = set(), ["jax", "jaxtyping", "numpy", "scipy", "tqdm"]
while queue:
    name = queue.pop()
    if name not in needed:
        needed.add(name)
        try:
            requires = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # asked for on other systems only
        queue += [re.match(r"[\\w.-]+", r)[0] for r in requires if "extra ==" not in r]
installed = importlib.metadata.packages_distributions()
tops = {top for top, names in installed.items()
        if needed & {n.lower().replace("_", "-") for n in names} | needed & set(names)}

class Refuse:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top in installed.keys() - tops - {"attnpaths"}:
            raise ModuleNotFoundError(f"not a core dependency: {top}", name=top)

sys.meta_path.insert(0, Refuse())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", folder, ROOT], check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


def test_the_wheel_is_small_and_holds_the_library_only(wheel):
    assert wheel.stat().st_size < 400_000
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"attnpaths"}
    assert not [n for n in names if n.endswith((".npz", ".json", ".ipynb")) or "results" in n]
    for wanted in (
        "py.typed",
        "explorer/engine/theory.js",
        "explorer/explorer.css",
        "theory/grid.py",
    ):
        assert f"attnpaths/{wanted}" in names
    here = {str(p.relative_to(ROOT)) for p in (ROOT / "attnpaths").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == here


def test_the_book_s_wheel_holds_all_that_its_pages_import(tmp_path):
    made = wheels.make(ROOT / "book", tmp_path)
    held = {name for name in zipfile.ZipFile(made).namelist() if ".dist-info" not in name}
    here = {
        path.relative_to(ROOT).as_posix()
        for room in ("_ext", "show", "studies")
        for path in (ROOT / "book" / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    # a study that is not in book/pyproject.toml cannot be imported by a notebook
    assert held == here | {"book/__init__.py"}


def test_it_names_its_dependencies(wheel):
    with zipfile.ZipFile(wheel) as file:
        (path,) = [name for name in file.namelist() if name.endswith("METADATA")]
        text = file.read(path).decode()
    requires = re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*(;.*)?$", text, re.MULTILINE)
    assert {name for name, extra in requires if not extra} == {
        "jax", "jaxtyping", "numpy", "scipy", "tqdm",
    }  # fmt: skip
    assert {"torch", "transformers", "sampling", "figures", "images", "all"} == set(
        re.findall(r"^Provides-Extra: (\w+)$", text, re.MULTILINE)
    )
    assert "entry_points" not in "".join(zipfile.ZipFile(wheel).namelist())


def test_the_readme_s_example_runs_from_it_with_the_core_alone(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path)
    code, *_ = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    code += (
        "\nimport attnpaths\nprint(attnpaths.__file__, solved.predict(test).accuracy(task.test.y))"
    )
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{CORE_ONLY}\n{code}"
    # an editable installation would otherwise come first
    program = (
        "import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in "
        "getattr(f, '__module__', '') + getattr(f, '__name__', '')]\n" + program
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
    place, accuracy = run.stdout.split()
    assert Path(place).is_relative_to(tmp_path) and float(accuracy) == 0.964


def test_the_map_of_the_readme_is_the_tree():
    (tree,) = re.findall(r"\n    attnpaths/ .*?\n\n", README, flags=re.DOTALL)
    library = tree[: tree.index("    book/\n")]
    rooms = {
        path.stem + "/" * path.is_dir()
        for path in (ROOT / "attnpaths").iterdir()
        if not path.name.startswith(("_", ".")) and path.suffix in (".py", "")
    }
    assert set(re.findall(r"^      ([\w/]+)", library, re.MULTILINE)) == rooms
    for folder in ("book/_ext", "book/studies", "tests/browser", "benchmarks"):
        assert folder.split("/")[-1] in tree and (ROOT / folder).is_dir()
