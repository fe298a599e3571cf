"""The wheels that the built book carries, and the cell of a notebook that installs them.

A reader who has the built book alone can run its notebooks: the library and the studies lie in
`_static/wheels`. With the address of a repository, notebooks install from there instead.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from book._ext.equations import ROOT

#: Where the built book keeps its wheels, from its top.
FOLDER = "_static/wheels"
#: What the wheel of each project is made of, in the repository.
SOURCES = {
    ROOT: ("pyproject.toml", "README.md", "LICENSE", "attnpaths"),
    ROOT / "book": ("pyproject.toml", "__init__.py", "_ext", "show", "studies"),
}
_BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
_WANTED = """\
# Run this first: it installs what the page imports, unless that is here already.
from importlib.util import find_spec
from pathlib import Path

wanted = {wanted}
specs = {{name: find_spec(name) for name in wanted}}
# a folder of this name is no package
missing = [name for name, spec in specs.items() if spec is None or spec.origin is None]
"""
_FROM_REPOSITORY = """\
if missing:
    sources = " ".join(f'"{{wanted[name]}}"' for name in missing)
    %pip install --quiet {{sources}}
"""
_FROM_FILES = """\
places = [Path(), Path("{folder}")]  # beside this notebook, or in the built book
found = {{}}
for name in missing:
    files = [place / wanted[name] for place in places if (place / wanted[name]).exists()]
    if not files:
        raise FileNotFoundError(
            f"put {{wanted[name]}} beside this notebook: the page that you have the notebook from "
            "links to it under its title. In Colab, upload it under Files, the folder at the left. "
            "Then run this cell again."
        )
    found[name] = files[0].resolve()
if found:
    extras = {{"attnpaths": "[all]"}}
    sources = " ".join(f'"{{path}}{{extras.get(name, "")}}"' for name, path in found.items())
    %pip install --quiet {{sources}}
"""


def projects(studies: bool) -> dict[str, Path]:
    """The projects that a page needs, by the package that it imports of each.

    >>> list(projects(studies=True))
    ['attnpaths', 'book']
    """
    return {"attnpaths": ROOT} | ({"book": ROOT / "book"} if studies else {})


def _project(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]


def file(folder: Path) -> str:
    """The name of a project's wheel.

    >>> file(ROOT).endswith("-py3-none-any.whl")
    True
    """
    project = _project(folder)
    return f"{project['name'].replace('-', '_')}-{project['version']}-py3-none-any.whl"


def make(folder: Path, target: Path) -> Path:
    """Build the wheel of a project, from a copy, so that its own folder stays as it is."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="attnpaths-wheel-") as copy:
        for part in SOURCES[folder]:
            source = folder / part
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, Path(copy) / part, ignore=ignored)
            else:
                shutil.copy(source, copy)
        command = [sys.executable, "-c", _BUILD, str(target.resolve())]
        run = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"the wheel of {folder} could not be built:\n{run.stderr[-2000:]}")
    return target / file(folder)


def words(address: str, studies: bool) -> str:
    """What a notebook says above the cell that installs."""
    text = (
        "This is a page of *Attention paths* as a notebook, with the outputs that it has in the "
        "book. Before you run it, run the next cell once"
    )
    if not address:
        files = " and ".join(f"`{file(each)}`" for each in projects(studies).values())
        text += f"; it wants {files} beside this notebook, which the page links to under its title"
    return text + ". In Colab, open it with *File, Upload notebook*."


def cell(address: str, branch: str, studies: bool) -> str:
    """The code that installs what a page imports."""
    folders = projects(studies)
    if address:
        git = f"git+{address}@{branch}"
        wanted = {"attnpaths": f"attnpaths[all] @ {git}"}
        if studies:
            wanted["book"] = f"{_project(folders['book'])['name']} @ {git}#subdirectory=book"
        then = _FROM_REPOSITORY
    else:
        wanted = {module: file(folder) for module, folder in folders.items()}
        then = _FROM_FILES
    lines = "".join(f'    "{key}": "{value}",\n' for key, value in wanted.items())
    text = _WANTED + then
    return text.format(wanted="{\n" + lines + "}", folder="../../" + FOLDER).strip()


def ship(app, problem) -> None:
    """Put the wheels into the built book, if its notebooks install from there."""
    installed = app.config.html_theme_options.get("repository_url")
    # a book of others, or of a test, has other things to ship
    if problem is None and not installed and Path(app.srcdir).resolve() == ROOT:
        for folder in SOURCES:
            make(folder, Path(app.outdir) / FOLDER)
