"""Tests run with every annotated shape checked, and with implicit broadcasting forbidden."""

import atexit
import collections
import json
import os
import re
import shutil
import tempfile

# as `make` sets it: a second pool of threads, under XLA's own, makes both wait
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# read when JAX is imported, here and in the processes that run chapters; with a largest size
# JAX locks the folder, so that none reads what another has half written
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    COMPILED = tempfile.mkdtemp(prefix="attnpaths-compiled-")
    atexit.register(shutil.rmtree, COMPILED, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = COMPILED
    os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"] = str(10**9)
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.05"

from jaxtyping import install_import_hook

install_import_hook(["attnpaths", "book"], "beartype.beartype")

import hypothesis  # noqa: E402
import jax  # noqa: E402
import jaxtyping  # noqa: E402
import plotly.graph_objects as go  # noqa: E402
import pytest  # noqa: E402

from attnpaths.tasks import markov  # noqa: E402
from book.studies import authors  # noqa: E402

jax.config.update("jax_numpy_rank_promotion", "raise")

hypothesis.settings.register_profile("tests", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("tests")


def scope(nodeid):
    """Tests of one scope share a process: those of a file, and those of pages opened one way."""
    if not nodeid.startswith("tests/browser/"):
        return nodeid.split("::")[0]
    from_disk = "file" in re.split(r"[\[\]-]", nodeid) or "test_sliders" in nodeid
    return "browser, from disk" if from_disk else "browser, over http"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Chapters first, which the build of the book then shows; next that build; then by size."""
    scopes = [scope(item.nodeid) for item in items]
    sizes = collections.Counter(scopes)

    def place(name):
        return not name.startswith("book/"), name != "browser, over http", -sizes[name], name

    order = sorted(range(len(items)), key=lambda i: place(scopes[i]))
    items[:] = [items[i] for i in order]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Where tests run in parallel, those that share a fixture stay in one process."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFixture(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return scope(nodeid)

    return ByFixture(config, log)


@pytest.fixture(scope="session")
def reference():
    """Reads the authors' numbers: `reference("data")`, `"theory"` or `"sampler"`."""
    return authors.read


@pytest.fixture(scope="session")
def paper():
    """The paper's task, all four paths."""
    return markov.paper_task()


@pytest.fixture
def as_users_see_it(monkeypatch):
    """No shape checks: wrong kinds of argument reach the library's own error messages."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="session")
def fits_the_page():
    """Checks a figure: it says these words, and leaves ink, size and fonts to the page."""
    from book._ext.pages import accessible_name, half_math

    def check(figure, words):
        assert isinstance(figure, go.Figure)
        drawn = json.loads(figure.to_json())
        layout = drawn["layout"]
        assert words and all(word in accessible_name(layout) for word in words)
        assert half_math(drawn) == []
        layout.pop("template")
        assert not {"width", "font", "paper_bgcolor", "plot_bgcolor"} & layout.keys()
        axes = [value for key, value in layout.items() if re.match("[xy]axis", key)]
        assert not any("tickfont" in axis or "color" in axis for axis in axes)

    return check
