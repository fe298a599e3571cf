"""The reference of the library is whole: all that is public is in it, with an example that runs."""

import ast
import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from book._ext import directives, reference

ROOT = Path(__file__).resolve().parents[2]
PAGES = {path.name: path.read_text("utf-8") for path in sorted((ROOT / "book").glob("api*.md"))}
# what the library promises, however its files are split
PROMISED = """
    Network Network.attention Network.features Network.apply Network.apply_paths Weights
    effective_weights empirical_order_parameter
    paths.paths paths.labels
    kernels.path_kernels kernels.total_kernel kernels.predict kernels.alignment
    theory.solve theory.sweep theory.gp_limit theory.solve_adam theory.Theory
    theory.Theory.kernel theory.Theory.predict
    posterior.sample_order_parameter posterior.sample_weights posterior.complete_weights
    posterior.Posterior posterior.Posterior.predict posterior.Posterior.to_arviz
    tasks.markov.paper_task tasks.markov.make_task tasks.markov.Task
    tasks.oneshot.make_task tasks.images.load training.train training.load_weights
    pruning.head_scores pruning.prune figures.order_parameters explorer.Explorer
""".split()
ENTRIES = {entry.name: entry for found in reference.entries().values() for entry in found}
FUNCTIONS = {name: entry for name, entry in ENTRIES.items() if entry.kind == "function"}
# what has no formula: these read files and look for them
NO_FORMULA = {
    f"attnpaths.{name}"
    for name in (
        *("tasks.images.load", "tasks.images.available"),
        *("theory.load", "posterior.load", "analysis.load"),
    )
}
# axes, as in `x [P, T + 1, D]`; no index, as in `steps[0]`, and no list of pairs
SHAPE = re.compile(r"(?<![\w\])])\[[\w*+−·… ]+(, [\w*+−·… ]+)*\]")
FORMULA = re.compile(r"[=~≤∝√Σ∏·^/]|\bEqs?\. \d")
# a number that is given, as in T = 30 and y = ±1, is none
GIVEN = re.compile(r"= ±?\d[\d,.]*(?![\w/])")
METHODS = {
    method.name: (method, entry)
    for entry in ENTRIES.values()
    for method in entry.methods
    # PyTorch calls it when the model itself is called
    if method.kind != "property" and method.node.name != "forward"
}


def test_what_is_promised_is_public():
    public = {*ENTRIES, *METHODS}
    assert [name for name in PROMISED if f"attnpaths.{name}" not in public] == []
    assert len(ENTRIES) > 80 and len(METHODS) > 15


@pytest.mark.parametrize("name", ENTRIES)
def test_a_public_name_is_documented(name):
    entry = ENTRIES[name]
    assert ast.get_docstring(entry.node), f"{name} has no docstring"
    if entry.kind == "function":
        assert entry.example, f"the docstring of {name} has no example (>>>)"


def before_example(entry):
    return ast.get_docstring(entry.node).split(">>>")[0]


def has_shape(text):
    """Whether a docstring has axes in backticks, or says that there is no array."""
    return any(map(SHAPE.search, re.findall(r"`([^`]+)`", text))) or "no array" in text


def has_formula(text):
    """Whether there is a formula outside of backticks, where it would be code."""
    return bool(FORMULA.search(GIVEN.sub("", re.sub(r"`[^`]+`", "", text))))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_gives_shapes(name):
    assert has_shape(before_example(FUNCTIONS[name])), f"{name}: no `[P, D]`, nor “no array”"


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if ".figures." not in n])
def test_a_public_function_gives_its_formula(name):
    # a formula where none was thought to be should leave the list
    assert has_formula(before_example(FUNCTIONS[name])) == (name not in NO_FORMULA)


def test_shapes_and_formulas_are_told_from_other_text():
    for text in ("`x [P, T + 1, D]`", "`{way: ([W], error)}`", "Takes no array."):
        assert has_shape(text)
    for text in ("[P]", "`steps[0]`", "`f(x, [(0, 0)])`", "`a`, [P] and `b`"):
        assert not has_shape(text)
    for text in ("v ~ N(0, 1)", f"Eq. {3}", "C(n, 2) // batch", "U = σ² I", "p = 1/N"):
        assert has_formula(text)
    for text in ("in `folder/it.npz`", "`f(a=1)`", "labels `y [P]` = ±1", "T = 30, P = 1,000."):
        assert not has_formula(text)


@pytest.mark.parametrize("name", METHODS)
def test_a_public_method_has_an_example(name):
    method, owner = METHODS[name]
    examples = [line for line in ast.get_docstring(owner.node).splitlines() if ">>>" in line]
    in_class = any(f".{method.node.name}(" in line for line in examples)
    assert method.example or in_class, f"neither {name} nor its class has an example of it"


def test_the_reference_reads_what_python_imports():
    """Names, homes and arguments are read from sources; Python must agree."""
    for module, found in reference.entries().items():
        loaded = importlib.import_module(module)
        for entry in found:
            thing = inspect.unwrap(getattr(loaded, entry.node.name))
            assert f"{thing.__module__}.{thing.__qualname__}" == entry.home
            assert inspect.getdoc(thing) == ast.get_docstring(entry.node)
            if entry.kind == "function":
                arguments = inspect.signature(thing).parameters
                written = entry.node.args
                assert [a.arg for a in (*written.args, *written.kwonlyargs)] == list(arguments)


def test_every_public_module_is_on_a_page_once_in_the_order_of_the_picture():
    text = "\n".join(PAGES[name] for name in ("api.md", "api-experiments.md", "api-figures.md"))
    listed = re.findall(r"^```\{reference\} (\S+)$", text, re.MULTILINE)
    chapters = [module for module in reference.MODULES if module in reference.FIGURES]
    assert listed == [module for module in reference.MODULES if module not in chapters]
    assert text.count("\n```{chapter-figures}\n") == 1
    assert len(PAGES) == 3


@pytest.mark.parametrize("module", reference.MODULES)
def test_a_page_describes_all_that_a_module_offers(module):
    page = reference.page(module)
    for entry in reference.entries()[module]:
        assert f"{{py:{entry.kind}}} {entry.node.name}(" in page
        for method in entry.methods:
            assert re.search(rf"{{py:\w+}} {method.node.name}\b", page)


def test_a_module_that_is_not_public_is_refused():
    with pytest.raises(ValueError, match=r"attnpaths.theory.trust_region is not in .*MODULES"):
        reference.page("attnpaths.theory.trust_region")
    assert not {module for module, _ in reference.inner()} & set(reference.MODULES)
    assert all(about for _, about in reference.inner())


def test_text_means_itself_and_examples_are_code():
    docstring = (
        f"Mean k_a* of `y [P]`, U^{{ππ'}}; Eqs. {9} and {30}.\n\n    x = 1\n\n"
        "See `kernels.predict`.\n\n>>> f(1)\n2\n\n>>> f(2)\n3"
    )
    assert reference.markdown(docstring).split("\n\n", 3) == [
        r"Mean k\_a\* of `y [P]`, U\^\{ππ′\}; "
        "Eqs. {ref}`9 <paper-eq-9>` and {ref}`30 <paper-eq-30>`.",
        "```text\n    x = 1\n```",
        "See {py:obj}`kernels.predict <attnpaths.kernels.predict>`.",
        "```pycon\n>>> f(1)\n2\n\n>>> f(2)\n3\n```",
    ]


def test_long_signatures_are_not_lists_of_definitions():
    """Screen readers would announce a list of terms that has none."""
    paren = '<span class="sig-paren">{}</span>'
    arguments = "\n\n<dl>\n<dd>a,</dd>\n<dd>b,</dd>\n</dl>\n\n"
    signature = f"<dt class='sig-object'>f{paren.format('(')}{arguments}{paren.format(')')}</dt>"
    context = {"body": f"<dl>{signature}<dd>Text.</dd></dl>"}
    directives.plain_arguments(None, "page", "page.html", context, None)
    assert re.findall(r"<d.", context["body"]) == ["<dl", "<dt", "<dd"]
    for name in "ab":
        assert f'<span class="sig-argument">{name},</span>' in context["body"]


def test_how_a_field_is_stored_is_not_shown():
    (sweep,) = [e for e in reference.entries()["attnpaths.theory"] if e.name.endswith(".Sweep")]
    assert reference.signature(sweep).startswith("Sweep(widths: tuple[float, ...], temperatures: ")
    assert "field(" not in reference.signature(sweep)


def test_citation_and_changelog_name_this_version():
    page = (ROOT / "book" / "changelog.md").read_text("utf-8")
    page += (ROOT / "CHANGELOG.md").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    newest = re.search(r"^## (\d\S+)$", page, re.MULTILINE)[1]
    assert newest == project["version"] == cited["version"]
    assert f"version = {{{newest}}}" in page
    words = " ".join(page.split())
    paper = cited["preferred-citation"]
    for author in paper["authors"]:
        assert f"{author['family-names']}, {author['given-names']}" in words
    for part in (paper["title"], paper["collection-title"], str(paper["year"]), cited["title"]):
        assert part in words
