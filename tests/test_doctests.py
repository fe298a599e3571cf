import doctest
import importlib
import pkgutil

import pytest

import attnpaths

MODULES = sorted(
    module.name for module in pkgutil.walk_packages(attnpaths.__path__, prefix="attnpaths.")
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
    for name in ("theory.solve", "theory.sweep", "kernels.predict", "network.Network"):
        assert f"attnpaths.{name}" in examples
