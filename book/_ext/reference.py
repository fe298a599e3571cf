"""What of the library is public, and its reference as Markdown.

Everything is read from the sources, without importing them: names, signatures as they are
written, and docstrings, which are plain text with code in backticks and examples.
`book._ext.directives` puts the result into pages.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import NamedTuple

from book._ext import equations

PACKAGE = equations.ROOT / "attnpaths"
STUDIES = equations.ROOT / "book" / "studies"
#: Figures that the library's `figures` does not offer itself, then those of single studies.
FIGURES = (
    *(
        f"attnpaths.figures.{path.stem}"
        for path in sorted((PACKAGE / "figures").glob("*.py"))
        if path.stem not in ("__init__", "style")
    ),
    *(f"book.studies.{path.parent.name}.figures" for path in sorted(STUDIES.glob("*/figures.py"))),
)
#: The modules whose names are for users, in the order of the picture: from inputs to predictions,
#: then data, experiments and figures. A name belongs to the first module that offers it.
MODULES = (
    "attnpaths",
    "attnpaths.network",
    "attnpaths.adapters",
    "attnpaths.paths",
    "attnpaths.kernels",
    "attnpaths.problem",
    "attnpaths.theory",
    "attnpaths.posterior",
    "attnpaths.posterior.nuts",
    "attnpaths.tasks.markov",
    "attnpaths.tasks.oneshot",
    "attnpaths.tasks.images",
    "attnpaths.training",
    "attnpaths.pruning",
    "attnpaths.analysis",
    "attnpaths.figures",
    *FIGURES,
    "attnpaths.explorer",
)


class Entry(NamedTuple):
    """A public function or class: its name for users, where it is defined, and its source."""

    name: str
    home: str
    node: ast.FunctionDef | ast.ClassDef

    @property
    def example(self) -> bool:
        """Whether its docstring has an example that runs."""
        return ">>>" in (ast.get_docstring(self.node) or "")

    @property
    def methods(self) -> list[Entry]:
        """The public methods and properties of a class, in their order."""
        return [
            Entry(f"{self.name}.{part.name}", f"{self.home}.{part.name}", part)
            for part in self.node.body
            if isinstance(self.node, ast.ClassDef)
            and isinstance(part, ast.FunctionDef)
            and not part.name.startswith("_")
        ]

    @property
    def kind(self) -> str:
        """The word by which Sphinx calls it."""
        if isinstance(self.node, ast.ClassDef):
            bases = " ".join(map(ast.unparse, self.node.bases))
            return "exception" if re.search("Warning|Error|Interrupt", bases) else "class"
        marks = " ".join(map(ast.unparse, self.node.decorator_list))
        return "property" if "property" in marks else "function"


def source(module: str) -> Path:
    """The file of a module.

    >>> source("attnpaths.kernels").name
    'kernels.py'
    """
    path = equations.ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@functools.cache
def parse(module: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(source(module).read_text("utf-8"))


def names(module: str) -> list[str]:
    """The names that a module offers: its `__all__`, functions first, or all without underscore.

    >>> names("attnpaths.paths")
    ['paths', 'labels']
    """
    body = parse(module).body
    listed = [
        name
        for node in body
        # a long list goes on with +=
        if isinstance(node, ast.Assign | ast.AugAssign) and ast.unparse(node).startswith("__all__")
        for name in ast.literal_eval(node.value)
    ]
    if listed:
        return sorted(listed, key=lambda name: name[0].isupper())
    return [
        node.name
        for node in body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]


def find(module: str, name: str) -> tuple[str, ast.FunctionDef | ast.ClassDef] | None:
    """Where a name is defined, here or in the module that it is imported from; else None."""
    for node in parse(module).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return f"{module}.{name}", node
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            ("attnpaths", "book")
        ):
            imported = {alias.asname or alias.name: alias.name for alias in node.names}
            if name in imported and not source(f"{node.module}.{imported[name]}").exists():
                return find(node.module, imported[name])
    return None


@functools.cache
def entries() -> dict[str, list[Entry]]:
    """What each of `MODULES` offers, every function and class once.

    >>> [entry.name for entry in entries()["attnpaths.paths"]][0]
    'attnpaths.paths.paths'
    """
    seen, result = set(), {}
    for module in MODULES:
        result[module] = []
        for name in names(module):
            found = find(module, name)
            if found and found[0] not in seen:
                seen.add(found[0])
                result[module].append(Entry(f"{module}.{name}", *found))
    return result


@functools.cache
def addresses() -> dict[str, str]:
    """From where a thing is defined to its name in the reference, methods included."""
    every = [entry for found in entries().values() for entry in found]
    every += [method for entry in every for method in entry.methods]
    return {entry.home: entry.name for entry in every}


def signature(entry: Entry) -> str:
    """Arguments and result as the source has them; for a record, its fields.

    >>> signature(entries()["attnpaths.paths"][1]).split(", ")[:2]
    ['labels(head_counts: Sequence[int]', 'layer: int=1']
    """
    node, result, arguments = entry.node, "", ""
    if isinstance(node, ast.ClassDef):
        marks = " ".join(ast.unparse(part) for part in (*node.decorator_list, *node.bases))
        init = [part for part in node.body if getattr(part, "name", "") == "__init__"]
        if "dataclass" in marks or "NamedTuple" in marks:
            arguments = ", ".join(_field(p) for p in node.body if isinstance(p, ast.AnnAssign))
        elif init:
            arguments = _arguments(init[0])
    else:
        arguments = _arguments(node)
        result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    # jaxtyping wants a space before a single axis; a reader does not
    return re.sub(r"' (\w+)'", r"'\1'", f"{node.name}({arguments}){result}")


def _field(node: ast.AnnAssign) -> str:
    """A field of a record; how it is stored, `dataclasses.field(...)`, is no default value."""
    stored = isinstance(node.value, ast.Call) and "field" in ast.unparse(node.value.func)
    return ast.unparse(node).split(" = ")[0] if stored else ast.unparse(node)


def _arguments(node: ast.FunctionDef) -> str:
    arguments = ast.unparse(node.args)
    return re.sub(r"^(self|cls)(, )?", "", arguments)


def markdown(docstring: str, module: str = "attnpaths") -> str:
    r"""A docstring as Markdown: text is text, not markup, and examples are code.

    >>> markdown("Takes `x [P]`, y_1 and *z*.")
    'Takes `x [P]`, y\\_1 and \\*z\\*.'
    """
    blocks = []
    for block in re.split(r"\n\s*\n", docstring.strip("\n")):
        if block.startswith(">>>"):
            if blocks and blocks[-1].startswith("```pycon"):
                block = blocks.pop()[len("```pycon\n") : -len("\n```")] + "\n\n" + block
            blocks.append(f"```pycon\n{block}\n```")
        elif block.startswith("    "):
            blocks.append(f"```text\n{block}\n```")
        else:
            parts = re.split(r"(`+[^`]+`+)", " ".join(block.split()))
            blocks.append("".join(_code(p, module) if p[:1] == "`" else text(p) for p in parts))
    return "\n\n".join(blocks)


def text(plain: str) -> str:
    r"""Text that means itself, with links from the paper's equations to their index.

    >>> text(f"a*, Eq. {9}")
    'a\\*, Eq. {ref}`9 <paper-eq-9>`'
    """
    parts, end = [], 0
    for marker in equations.MARKER.finditer(plain):
        parts.append(_escaped(plain[end : marker.start(1)]))
        parts.append(re.sub(r"(\d+)", r"{ref}`\1 <paper-eq-\1>`", marker[1]))
        end = marker.end()
    return "".join([*parts, _escaped(plain[end:])])


def _escaped(text: str) -> str:
    # a prime after a symbol is no closing quote
    text = re.sub(r"(?<=[^\x00-\x7f])'", "′", text)
    return re.sub(r"([\\*_\[\]<>{}$|#~^&!`])", r"\\\1", text)


def _code(code: str, module: str) -> str:
    """Code, which is a link if it names something in this reference and nothing else."""
    name = code.strip("`")
    known = set(addresses().values())
    same = [full for full in (f"{module}.{name}", f"attnpaths.{name}", name) if full in known]
    # a plain word is more often an argument than a method of some class
    telling = re.search("[A-Z._]", name)
    ends = same[:1] or [full for full in known if telling and full.endswith(f".{name}")]
    return f"{{py:obj}}`{name} <{ends[0]}>`" if len(ends) == 1 else f"`{name}`"


def described(entry: Entry, module: str, fence: str = "``````") -> str:
    """One entry in the words of Sphinx's Python domain, its methods inside it."""
    marks = [ast.unparse(part) for part in entry.node.decorator_list]
    kind, options = entry.kind, []
    head = signature(entry)
    if kind == "property":
        head = entry.node.name
        if entry.node.returns:
            options = [f":type: {ast.unparse(entry.node.returns)}"]
    elif entry.name.count(".") > module.count(".") + 1:
        kind = "classmethod" if "classmethod" in marks else "method"
    body = markdown(ast.get_docstring(entry.node) or "", module)
    inside = [described(method, module, fence[1:]) for method in entry.methods]
    lines = [f"{fence}{{py:{kind}}} {head}", *options, "", body, "", *inside, fence, ""]
    return "\n".join(lines)


def page(module: str) -> str:
    """The reference of one module, as Markdown.

    >>> "{py:function} total_kernel(U: ArrayLike" in page("attnpaths.kernels")
    True
    """
    if module not in entries():
        raise ValueError(f"{module} is not in book._ext.reference.MODULES, the public modules")
    about = markdown(ast.get_docstring(parse(module)) or "", module)
    listed = [described(entry, module) for entry in entries()[module]]
    # of two classes with one name, such as Task, an annotation means that of its own module
    here, left = (f"```{{py:currentmodule}} {name}\n```" for name in (module, None))
    return "\n\n".join([f"In `{module}`. {about}", here, *listed, left])


def inner() -> list[tuple[str, str]]:
    """The other modules, which users need not know, and the first sentence of each.

    >>> "attnpaths.theory.trust_region" in dict(inner()), "attnpaths.kernels" in dict(inner())
    (True, False)
    """
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        if module not in MODULES and not parts[-1].startswith("_"):
            about = (ast.get_docstring(parse(module)) or "").split("\n\n")[0]
            found.append((module, " ".join(about.split())))
    return found
