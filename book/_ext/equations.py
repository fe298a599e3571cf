"""Where an equation of the paper is in this project: on which page, in what function and test.

The index is not written by hand. It is read from markers, the words *Eq. 9*, in three places:
in the docstring of a function or class; in a page, as the comment `% Eq. 9` on the line after
the label of a displayed equation; and anywhere inside a test. *Eqs. 1, 2 and 4* and *Eqs. 32–34*
mark several. Numbers are those printed in the paper; one that is not in `PAPER` is an error.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

#: The project: its pages, library, studies and tests are read where they are written.
ROOT = Path(__file__).resolve().parents[2]


class Equation(NamedTuple):
    """An equation of the paper: every number that it is printed under, and what it says."""

    numbers: tuple[int, ...]
    says: str


#: The numbered equations of the main text (1 to 13) and of the appendix up to the end of its
#: results (14 to 35), which repeats most of the main text. The derivation follows from 36 on.
PAPER = (
    Equation((1, 14), "input projection"),
    Equation((2, 15), "layer of attention heads"),
    Equation((3, 16), "attention matrix"),
    Equation((4, 17, 18), "readout, of one token or of the mean"),
    Equation((20,), "attention path"),
    Equation((5, 21), "output as a sum over paths"),
    Equation((6, 22), "effective weights"),
    Equation((7, 23), "attentioned input"),
    Equation((24, 25, 26, 27, 28), "partial paths, and what arrives along them"),
    Equation((8, 19), "posterior of the weights"),
    Equation((9, 29), "mean predictor"),
    Equation((30,), "variance of the predictor"),
    Equation((10, 31), "kernel, a weighted sum of path–path kernels"),
    Equation((11,), "order parameter, at the minimum of the action"),
    Equation((32,), "action of all levels"),
    Equation((33,), "entropy of a level"),
    Equation((12, 34), "energy"),
    Equation((13, 35), "order parameter as the covariance of effective weights"),
)
_BY_NUMBER = {number: equation for equation in PAPER for number in equation.numbers}

#: Pages that derive what others explain.
DERIVING = ("derivation", "route")

MARKER = re.compile(r"\bEqs?\.\s+(\d+(?:(?:\s*[–-]\s*|,\s+(?:and\s+)?|\s+and\s+)\d+)*)")
_LABEL = re.compile(r"^\$\$ \((eq:[\w-]+)\)$")


class Place(NamedTuple):
    """Something marked: an equation's label, a function's or a test's name, and where it is."""

    name: str
    file: Path
    line: int


class Row(NamedTuple):
    """One line of the index."""

    equation: Equation
    pages: tuple[Place, ...]
    functions: tuple[Place, ...]
    tests: tuple[Place, ...]


def numbers(text: str) -> list[int]:
    """The numbers of all equations that a text marks, in its order.

    >>> numbers("Eqs. 1, 2 and 4, then Eq. 7; Eqs. 32–34.")
    [1, 2, 4, 7, 32, 33, 34]
    """
    found = []
    for marker in MARKER.finditer(text):
        for first, last in re.findall(r"(\d+)(?:\s*[–-]\s*(\d+))?", marker[1]):
            found += range(int(first), int(last or first) + 1)
    return found


def index(root: Path = ROOT) -> list[Row]:
    """Read the markers of the project in folder `root`; one row for each equation of `PAPER`.

    >>> row = next(row for row in index() if 7 in row.equation.numbers)
    >>> [place.name for place in row.pages]
    ['eq:attentioned-input']
    """
    folders = {name: root / name for name in ("book", "attnpaths", "tests")}
    for name, folder in folders.items():
        if not folder.is_dir():
            raise FileNotFoundError(
                f"the index reads the project's {name}/ folder, which is not at {folder}; "
                "install attnpaths from its repository with pip install --editable ."
            )
    pages = _collect(_in_pages(folders["book"]))
    functions = _collect(_in_docstrings(folders["attnpaths"]))
    tests = _collect(_in_tests(folders["tests"]))
    return [
        Row(e, *(tuple(found.get(e, ())) for found in (pages, functions, tests))) for e in PAPER
    ]


def _collect(marked: Iterator[tuple[Place, str]]) -> dict[Equation, list[Place]]:
    found = {}
    for place, text in marked:
        for number in dict.fromkeys(numbers(text)):
            if number not in _BY_NUMBER:
                raise ValueError(
                    f"{place.file}:{place.line} ({place.name}) marks Eq. {number}, but "
                    f"book._ext.equations.PAPER lists 1 to {max(_BY_NUMBER)}; correct the number "
                    "or add the equation there"
                )
            places = found.setdefault(_BY_NUMBER[number], [])
            if place not in places:
                places.append(place)
    return found


def _in_pages(folder: Path) -> Iterator[tuple[Place, str]]:
    # a page that explains comes before those that derive
    for file in sorted(folder.glob("*.md"), key=lambda f: (f.stem in DERIVING, f)):
        before = ""
        for line, text in enumerate(file.read_text("utf-8").splitlines(), start=1):
            if text.startswith("% Eq"):
                label = _LABEL.match(before)
                if not label:
                    raise ValueError(
                        f"{file}:{line}: the marker {text!r} must stand on the line after the "
                        f"label of an equation, $$ (eq:...); there is {before!r}"
                    )
                yield Place(label[1], file, line - 1), text
            before = text


def _definitions(node, prefix="") -> Iterator[tuple[str, ast.AST]]:
    for child in node.body:
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield prefix + child.name, child
            if isinstance(child, ast.ClassDef):
                yield from _definitions(child, f"{prefix}{child.name}.")


def _in_docstrings(folder: Path) -> Iterator[tuple[Place, str]]:
    for file in sorted(folder.glob("**/*.py")):
        parts = file.relative_to(folder.parent).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        for name, node in _definitions(ast.parse(file.read_text("utf-8"))):
            yield Place(f"{module}.{name}", file, node.lineno), ast.get_docstring(node) or ""


def _in_tests(folder: Path) -> Iterator[tuple[Place, str]]:
    for file in sorted(folder.glob("**/test_*.py")):
        text = file.read_text("utf-8")
        lines = text.splitlines()
        for name, node in _definitions(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                body = "\n".join(lines[node.lineno : node.end_lineno])
                yield Place(name, file, node.lineno), body
