import doctest
import importlib
import pkgutil

import pytest

import attnpaths
import book._ext
import book.studies

MODULES = sorted(
    module.name
    for room in (attnpaths, book._ext, book.studies)
    for module in pkgutil.walk_packages(room.__path__, prefix=f"{room.__name__}.")
)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.usefixtures("as_users_see_it")
def test_examples_in_docstrings(name):
    failed, _ = doctest.testmod(importlib.import_module(name), raise_on_error=False)
    assert not failed


def test_examples_are_found():
    examples = {
        test.name
        for name in MODULES
        for test in doctest.DocTestFinder().find(importlib.import_module(name))
        if test.examples
    }
    for name in (
        *("theory.solver.solve", "theory.grid.sweep", "kernels.predict", "network.model.Network"),
        *("posterior.sample.sample_order_parameter", "explorer.answers.answers"),
    ):
        assert f"attnpaths.{name}" in examples
    for name in (
        "studies.engine.collect",
        "studies.verdicts.rules.limited",
        "_ext.equations.index",
    ):
        assert f"book.{name}" in examples
