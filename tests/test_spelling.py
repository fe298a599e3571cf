"""Words of the book, the README and the docstrings that neither a dictionary nor we know.

`words.txt` lists the words that are right although the dictionary does not have them.
"""

import ast
import re
from pathlib import Path

import jupytext
import pytest
from spellchecker import SpellChecker

ROOT = Path(__file__).resolve().parents[1]
OWN = (Path(__file__).parent / "words.txt").read_text("utf-8").split()
PAGES = [*sorted((ROOT / "book").glob("*.md")), *sorted(ROOT.glob("*.md"))]
MODULES = [path for room in ("attnpaths", "book") for path in sorted((ROOT / room).rglob("*.py"))]
DICTIONARY = SpellChecker("en", distance=1)

NOT_PROSE = [
    r"\A---\n.*?\n---\n",  # the header
    r"^( *)(`{3,})(\{math\}|\{bibliography\}|[a-z]+)\b.*?^\1\2",
    r"^ *>>> .*?(\n *\n|\Z)",
    r"^ *(:[\w-]+:|%).*?$|^ *\([\w:-]+\)=$",  # options, comments, labels
    r"\$\$.*?\$\$|\$[^$]+\$",
    r"(\{[\w:-]+\})?(`+)[^`]+\2",  # code, and roles, whose text is a name
    r"<!--.*?-->|</?[a-z][^>]*>|&\w+;",
    r"\]\([^)]*\)|https?://\S+",
]
# lower case, or a capital in front: the rest are names of things, and abbreviations
WORD = re.compile(r"(?<![\w\\.@])[A-Za-z][a-z]+(?:['’][a-z]+)?(?![\w(]|\.\w)")


def words_of(text):
    """The words of some text without code, formulas and names."""
    for pattern in NOT_PROSE:
        text = re.sub(pattern, " ", text, flags=re.DOTALL | re.MULTILINE)
    return {word.replace("’", "'").removesuffix("'s").lower() for word in WORD.findall(text)}


def words_of_page(path):
    """The words of a page, captions of figures included."""
    cells = jupytext.read(path).cells
    captions = [
        cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "") for cell in cells
    ]
    prose = [cell.source for cell in cells if cell.cell_type == "markdown"]
    return set().union(*map(words_of, captions + prose))


def words_of_module(path):
    """The words of a module's docstrings."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if type(node) in kinds]
    return set().union(*(words_of(ast.get_docstring(node) or "") for node in nodes))


def unknown(words):
    """Those that neither the dictionary nor our list has."""
    return sorted(DICTIONARY.unknown(words) - set(OWN))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_words_of_a_page_are_known(path):
    assert unknown(words_of_page(path)) == []


def test_the_words_of_docstrings_are_known():
    found = {str(path.relative_to(ROOT)): unknown(words_of_module(path)) for path in MODULES}
    assert {name: words for name, words in found.items() if words} == {}


def test_a_mistake_is_found():
    page = "A *sentense* with `kode`, $\\matth$ and [a lnik](it.md).\n\n```python\nteh\n```\n\nTeh"
    assert unknown(words_of(page)) == ["lnik", "sentense", "teh"]


def test_our_list_has_no_word_too_many():
    used = set().union(*map(words_of_page, PAGES), *map(words_of_module, MODULES))
    assert sorted(set(OWN) - used) == []
    assert sorted(DICTIONARY.known(OWN)) == []
    assert sorted(OWN) == OWN
