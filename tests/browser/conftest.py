"""Build the book once, serve it, and look at each page with a headless Chromium."""

import contextlib
import functools
import http.server
import importlib.resources
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import laboratory
import pytest
import yaml
from filelock import FileLock

from book._ext import chromium, pdf

ROOT = Path(__file__).resolve().parents[2]
AXE = (importlib.resources.files("selenium_axe_python") / "axe-core" / "axe.min.js").read_text(
    "utf-8"
)
INSPECT = (Path(__file__).parent / "inspect.js").read_text("utf-8")


TOC = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
PAGES = [page for part in pdf.parts_of(TOC) for page in part.pages]
CHAPTERS = [page for page in PAGES if "\nkernelspec:" in (ROOT / f"{page}.md").read_text("utf-8")]


@pytest.fixture(params=PAGES)
def page(request):
    """Name one page of the table of contents."""
    return request.param


@pytest.fixture(scope="module", params=CHAPTERS)
def chapter(request):
    """Name one page that has code."""
    return request.param


@pytest.fixture(scope="session")
def build(tmp_path_factory, worker_id):
    """Build the book with warnings as errors; give its exit code, its pages and its log."""
    # a folder of its own, so that a page or script left over from before cannot help
    out = ROOT / "build" / "book"
    html = out / "_build" / "html"
    # the first process that comes here builds for all
    shared = tmp_path_factory.getbasetemp()
    shared = shared if worker_id == "master" else shared.parent
    built = shared / "book.json"
    with FileLock(shared / "book.lock"):
        if not built.exists():
            shutil.rmtree(out, ignore_errors=True)
            program = Path(sys.executable).with_name("jupyter-book")
            command = [program, "build", "-W", "--keep-going", "--all", "--path-output", out, ROOT]
            run = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            reports = sorted(html.glob("reports/**/*.log"))
            log = [*run.stdout.splitlines()[-60:], *(path.read_text("utf-8") for path in reports)]
            built.write_text(json.dumps([run.returncode, "\n".join(log)]), "utf-8")
    code, log = json.loads(built.read_text("utf-8"))
    return code, html, log


@pytest.fixture(scope="session")
def book(build):
    """Give the folder of the built pages."""
    code, html, _ = build
    if code:
        pytest.fail("the book does not build: see test_build.py", pytrace=False)
    return html


@contextlib.contextmanager
def serving(folder):
    """Serve a folder on this machine; give its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()


@pytest.fixture(scope="session")
def server(book):
    """Serve the book; give its address."""
    with serving(book) as address:
        yield address


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The explorer in a page of its own; give its addresses over http and from disk."""
    folder = tmp_path_factory.mktemp("laboratory")
    laboratory.write(folder)
    with serving(folder) as address:
        yield {"http": address, "file": folder.as_uri()}


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Start Chromium, or skip (in continuous integration: fail) where there is none."""
    if chromium.programs() is None:
        reason = "the pages were NOT looked at: chromium and chromedriver are not installed"
        pytest.fail(reason, pytrace=False) if os.environ.get("CI") else pytest.skip(reason)
    driver = chromium.start(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@dataclass
class Visit:
    """What was seen of one page; ``views`` maps (theme, width) to what inspect.js found."""

    page: str
    origin: str
    chapter: bool
    requests: list = field(default_factory=list)
    console: list = field(default_factory=list)
    views: dict = field(default_factory=dict)


def set_view(driver, theme, width):
    """Give the page a colour scheme and a width."""
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": theme}]},
    )
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )


def inspect(driver, theme, axe):
    """Wait until the page is drawn in this theme, or has had its time; give the findings."""
    deadline, calm = time.monotonic() + 15, 0
    # a page that never settles is described better by its findings than by a timeout
    while calm < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
        calm = calm + 1 if driver.execute_script("return book.settled(...arguments)", theme) else 0
    return driver.execute_async_script("book.inspect(...arguments)", axe)


def requests_in(log):
    """List the addresses that a DevTools log says were asked for."""
    for entry in log:
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            yield message["params"]["request"]["url"]
        elif message["method"] == "Network.webSocketCreated":
            yield message["params"]["url"]


@pytest.fixture(
    scope="session",
    params=itertools.product([*PAGES, "search", "genindex"], ["http", "file"]),
    ids="-".join,
)
def visit(request, book, server, browser):
    """Open one page: over http wide and narrow, light and dark; from disk in two of these ways."""
    page, scheme = request.param
    seen = Visit(page, server if scheme == "http" else book.as_uri(), page in CHAPTERS)
    # opened wide, and made dark and narrow; from disk opened narrow, and made wide
    views = [("light", 1200), ("dark", 1200), ("dark", 390), ("light", 390)]
    views = views if scheme == "http" else [views[2], views[0]]
    browser.get("about:blank")
    browser.get_log("performance"), browser.get_log("browser")
    set_view(browser, *views[0])
    browser.get(f"{seen.origin}/{page}.html")
    browser.execute_script(AXE + INSPECT)
    for theme, width in views:
        set_view(browser, theme, width)
        # axe is slow: over http it judges the page wide and light, from disk narrow and dark
        seen.views[theme, width] = inspect(browser, theme, axe=(theme, width) == views[0])
    seen.requests = list(requests_in(browser.get_log("performance")))
    seen.console = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    return seen
