"""The house has one rule: imports point one way, and each room brings what it alone needs."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from book._ext import reference

ROOT = Path(__file__).resolve().parents[1]
TOOLS = {"_checks", "_extras", "_files"}
THEORY = TOOLS | {"network", "paths", "kernels", "problem", "_html", "theory"}
# what each room of the library may import of the others
ALLOWED = {
    "_checks": set(),
    "_extras": set(),
    "_files": {"_checks"},
    "network": TOOLS,
    "paths": TOOLS | {"network"},
    "_html": TOOLS | {"paths"},
    "kernels": TOOLS | {"network", "paths"},
    "problem": TOOLS | {"network", "paths", "kernels"},
    "theory": THEORY,
    "posterior": THEORY,
    "pruning": THEORY,
    "tasks": THEORY,
    "adapters": THEORY | {"pruning"},
    "analysis": THEORY | {"pruning", "adapters", "figures"},
    "training": THEORY | {"tasks"},
    "figures": THEORY,
    "explorer": THEORY | {"tasks"},
}
CORE = {"jax", "jaxtyping", "numpy", "scipy", "tqdm"}
# what more each room may import; other rooms ask for it with _extras.require, when they need it
EXTRAS = {
    "adapters": {"torch"},
    "training": {"torch"},
    "figures": {"plotly"},
    "explorer": {"anywidget", "traitlets"},
}
# what all studies may use of each other: the engine, the counting, the authors' numbers, the rules,
# and the trained networks
SHARED = {"engine", "statistics", "authors", "verdicts.rules", "verdicts.claims"}
SHARED |= {"verdicts.paired", "oneshot.trained"}


def imports(path):
    """Every module that a file imports, at any depth, with the names taken from it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            yield node.module, tuple(alias.name for alias in node.names)


def rooms(module, names):
    """The rooms of the library that an import reaches."""
    parts = module.split(".")
    return {parts[1]} if len(parts) > 1 else set(names)


LIBRARY = sorted((ROOT / "attnpaths").rglob("*.py"))
STUDIES = sorted((ROOT / "book" / "studies").rglob("*.py"))


@pytest.mark.parametrize("path", LIBRARY, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path):
    room = path.relative_to(ROOT / "attnpaths").parts[0].removesuffix(".py")
    if room == "__init__":
        return  # the front door opens to all
    for module, names in imports(path):
        top = module.split(".")[0]
        if top == "attnpaths":
            reached = rooms(module, names) - {room}
            # public names of the front door come from the network
            reached = {"network" if name[0].isupper() else name for name in reached} - {room}
            assert reached <= ALLOWED[room], f"{room} must not import {reached - ALLOWED[room]}"
        else:
            known = sys.stdlib_module_names | CORE | EXTRAS.get(room, set())
            assert top in known, f"{room} must not import {top}"


@pytest.mark.parametrize("path", STUDIES, ids=lambda p: str(p.relative_to(ROOT)))
def test_studies_use_public_names_and_not_each_other(path):
    own = path.relative_to(ROOT / "book" / "studies").parts
    study = own[0].removesuffix(".py")
    for module, names in imports(path):
        if module == "attnpaths" or module.startswith("attnpaths."):
            assert module in {*reference.MODULES, "attnpaths.tasks", "attnpaths.figures.style"}
            assert not any(name.startswith("_") for name in names), f"{module}: {names}"
        if module.startswith("book."):
            assert module.startswith("book.studies"), f"a study must not import {module}"
            inner = module.removeprefix("book.studies").lstrip(".")
            reached = {inner} if inner else set(names)
            # the table of verdicts rests on all studies
            if own[:2] in {("verdicts", "report.py"), ("verdicts", "studies.py")}:
                continue
            for each in reached:
                assert each in SHARED or each.split(".")[0] == study, f"{study} imports {each}"


def test_a_wrong_arrow_would_be_seen(tmp_path):
    """The walk sees imports at any depth, and all of their forms."""
    file = tmp_path / "wrong.py"
    file.write_text("import attnpaths.theory\nif 1:\n    from attnpaths import paths, posterior\n")
    found = set().union(*(rooms(*each) for each in imports(file)))
    assert found == {"theory", "posterior", "paths"}
    assert not found <= ALLOWED["network"]


def run(code):
    settings = {k: v for k, v in os.environ.items() if k != "ATTNPATHS_DATA"}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env=settings
    ).stdout.strip()


def test_importing_the_library_is_light():
    heavy = "torch numpyro optax PIL pooch requests plotly anywidget arviz matplotlib xarray pandas"
    code = f"import attnpaths, sys; print(*[m for m in {heavy.split()} if m in sys.modules])"
    assert run(code) == ""
    # as do the task of the paper and everything that solves it
    code = (
        "from attnpaths import tasks, theory; task = tasks.markov.paper_task(paths='good'); "
        "import sys; print(*[m for m in " + repr(heavy.split()) + " if m in sys.modules])"
    )
    assert run(code) == ""


def test_importing_the_library_changes_no_threads():
    code = (
        "import os, jax, scipy.linalg, threading; before = dict(os.environ); "
        "import attnpaths; print(before == dict(os.environ), threading.active_count())"
    )
    assert run(code) == "True 1"
    sources = "\n".join(path.read_text("utf-8") for path in LIBRARY)
    assert "threadpoolctl" not in sources and "set_num_threads" not in sources.replace(
        "torch.set_num_threads", ""
    )


def test_rooms_are_reached_from_the_front_door():
    code = (
        "import attnpaths; print(attnpaths.__version__, attnpaths.adapters.Layer.__name__, "
        "attnpaths.figures.chain.__name__, attnpaths.posterior.Posterior.__name__, "
        "'adapters' in dir(attnpaths))"
    )
    assert run(code).split()[1:] == ["Layer", "chain", "Posterior", "True"]


@pytest.mark.parametrize(
    ("blocked", "use", "extra"),
    [
        ("torch", "attnpaths.adapters", "torch"),
        ("torch", "attnpaths.analyse", "torch"),
        ("torch", "attnpaths.training", "torch"),
        ("plotly", "attnpaths.figures", "figures"),
        ("anywidget", "attnpaths.explorer", "figures"),
        ("optax", "attnpaths.theory.solve_adam([[[1.]]], [1.], heads=(1,), width=9, "
         "temperature=1.)", "sampling"),
        ("numpyro", "attnpaths.posterior.sample_order_parameter([[[1.]]], [1.], heads=(1,), "
         "width=9, temperature=1., seed=0)", "sampling"),
        ("pooch", "attnpaths.tasks.images.load('omniglot')", "images"),
    ],
)  # fmt: skip
def test_what_is_missing_is_asked_for_by_the_line_that_installs_it(blocked, use, extra):
    code = (
        f"import sys; sys.modules[{blocked!r}] = None\n"
        "import attnpaths, attnpaths.posterior, attnpaths.tasks\n"
        f"try:\n    {use}\nexcept ModuleNotFoundError as error:\n    print(error)"
    )
    assert f'pip install "attnpaths[{extra}]"' in run(code)
