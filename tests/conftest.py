"""Tests run with every annotated shape checked, and with implicit broadcasting forbidden."""

import atexit
import collections
import contextlib
import gc
import json
import os
import re
import shutil
import tempfile
from pathlib import Path

# as `make` sets them: a second pool of threads, under XLA's own, makes both wait; and what runs
# once should be compiled quickly
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0"
)
# Compiled code is kept, for the processes that run chapters too, which read this when they import
# JAX. With a largest size JAX would look at every file it has kept before it keeps one more, for
# minutes in all; without one it writes in place, and another process could read half a file.
# So each worker has a folder of its own, and others are given what is in it when it is whole.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    COMPILED = tempfile.mkdtemp(prefix="attnpaths-compiled-")
    atexit.register(shutil.rmtree, COMPILED, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = os.path.join(COMPILED, "own")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.05"
elif "PYTEST_XDIST_WORKER" in os.environ:
    given = Path(os.environ["JAX_COMPILATION_CACHE_DIR"])
    if given.parent.name.startswith("attnpaths-compiled-"):
        own = given.with_name(os.environ["PYTEST_XDIST_WORKER"])
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(own)

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


# What samples, solves or trains, so that no worker is left alone with it in the end.
SLOW = ("theory", "studies", "training", "analysis", "adapters", "pruning", "explorer")
SLOW = tuple(f"tests/{name}" for name in (*SLOW, "test_hostile", "test_doctests", "test_wheel"))
# What calls again what smaller tests call, for long: counting lines makes Python a third slower.
UNCOUNTED = (
    *(f"tests/{name}/" for name in ("studies", "browser")),
    *(f"tests/test_{name}" for name in ("hostile", "doctests")),
    *(f"tests/posterior/test_{n}" for n in ("posterior_agreement", "posterior_calibration")),
    *(f"tests/posterior/test_{n}" for n in ("posterior_paper", "posterior_residual", "widths")),
    *(f"tests/theory/test_{n}" for n in ("theory", "theory_residual", "convergence")),
)
# What a worker does while another runs the last chapter, so that the build need not run it too.
MEANWHILE = "tests/posterior/"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Chapters first, which the build of the book then shows; that build; then what is slow."""
    scopes = [scope(item.nodeid) for item in items]
    sizes = collections.Counter(scopes)
    order = ("book/", MEANWHILE, "browser, over http", "browser, from disk", SLOW, "")

    def place(name):
        first = next(i for i, kind in enumerate(order) if name.startswith(kind))
        return first, -sizes[name], name

    for item in items:
        if item.nodeid.startswith(UNCOUNTED):
            item.add_marker("no_cover")
    items[:] = [items[i] for i in sorted(range(len(items)), key=lambda i: place(scopes[i]))]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Where tests run in parallel, those that share a fixture stay in one process."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFixture(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return scope(nodeid)

    return ByFixture(config, log)


class Compiled:
    """After a file or a chapter nothing is being compiled, so that what there is, is whole."""

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item, nextitem):
        if nextitem is None or nextitem.path != item.path:
            self.share(Path(os.environ["JAX_COMPILATION_CACHE_DIR"]))
            self.let_go()

    def share(self, own):
        """Files of one folder under their names in all: a link is there at once, or not at all."""
        whole = own.with_name("whole")
        if own.parent.name.startswith("attnpaths-compiled-") and own.exists():
            whole.mkdir(exist_ok=True)
            mine, all_of_them = ({path.name for path in each.iterdir()} for each in (own, whole))
            for name in mine ^ all_of_them:
                source, target = (own, whole) if name in mine else (whole, own)
                with contextlib.suppress(FileExistsError):
                    os.link(source / name, target / name)

    def let_go(self):
        """Every compiled function takes pieces of memory, and a process may have 65,000 of them."""
        maps = Path("/proc/self/maps")
        if maps.exists() and len(maps.read_bytes().splitlines()) > 15_000:
            jax.clear_caches()
            gc.collect()


def pytest_configure(config):
    """Not as hooks of this file, which would not see the chapters."""
    config.pluginmanager.register(Compiled())


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
