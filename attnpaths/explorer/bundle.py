"""The explorer's ES modules as one script: browsers refuse module files in pages opened from disk.

No tool but Python is needed. The modules keep to what this can read: on a line of its own
`import { a, b } from './x.js';`, and `export` before a `const` or a `class`.
"""

import re
from pathlib import Path

HERE = Path(__file__).parent
_IMPORT = re.compile(r"^import \{ (.*) \} from '\./(\w+)\.js';$", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|class) (\w+))", re.MULTILINE)


def bundle(folder: Path, entry: str) -> str:
    """The body of a function that runs a module and all that it imports, and returns its exports.

    >>> bundle(HERE / "engine", "random").splitlines()[-1]
    'return $random;'
    """
    written: dict[str, str] = {}

    def add(name: str) -> None:
        text = (folder / f"{name}.js").read_text("utf-8")
        for _, other in _IMPORT.findall(text):
            if other not in written:
                add(other)
        body = _IMPORT.sub(lambda found: f"const {{ {found[1]} }} = ${found[2]};", text)
        body = _EXPORT.sub("", body)
        if re.search(r"^(import|export)\b", body, re.MULTILINE):
            raise ValueError(f"{name}.js: write each import and export in the form of bundle.py")
        # comments and margins are for readers of the source
        lines = (line.strip() for line in body.splitlines())
        short = "\n".join(line for line in lines if line and not line.startswith("//"))
        exports = ", ".join(_EXPORT.findall(text))
        written[name] = f"const ${name} = (() => {{\n{short}\nreturn {{ {exports} }};\n}})();"

    add(entry)
    return "\n".join([*written.values(), f"return ${entry};"])


def engine() -> str:
    """A function that gives the engine: called in the page, or its text sent to a worker."""
    return f"() => {{\n{bundle(HERE / 'engine', 'worker')}\n}}"


def _both() -> str:
    front = bundle(HERE / "front", "explorer")
    return f"const engine = {engine()};\nconst front = (() => {{\n{front}\n}})();\n"


def script() -> str:
    """A classic script for pages: `attnpathsExplorer.start(element, {setting, look, address})`."""
    start = "(el, given) => front.start(el, { engine, ...given })"
    tail = f"window.attnpathsExplorer = {{ engine, start: {start} }};\n"
    return f"(() => {{\n{_both()}{tail}}})();\n"


def module() -> str:
    """An ES module for anywidget."""
    given = "{ engine, setting: model.get('setting'), look: model.get('look'), model }"
    return f"{_both()}export default {{ render: ({{ model, el }}) => front.start(el, {given}) }};\n"
