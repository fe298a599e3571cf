"""The explorer in JupyterLab itself: the page answers at once, and Python when it is asked to."""

import os
import secrets
import socket
import subprocess
import sys
import time
from pathlib import Path

import laboratory
import nbformat
import numpy as np
import pytest
from laboratory import ROOT
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from attnpaths.explorer import START

# a setting of which nothing is stored, and which is soon compiled
CELL = "from attnpaths.explorer import Explorer\n\nExplorer(width=10, tokens=6, examples=20)"
SETTING = START | {"tokens": 6, "examples": 20}
# gives the cell the focus; true if it can run and does not
WAITS = """
const idle = document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status === 'idle';
const cell = document.querySelector('.jp-Notebook .jp-CodeCell');
const waits = idle && cell && !/[0-9*]/.test(cell.querySelector('.jp-InputPrompt').textContent);
if (waits) cell.querySelector('.cm-content').focus();
return waits;"""
SAYS = f"return document.querySelector('{ROOT} .line > [aria-live]').textContent"


def until(driver, script, *arguments):
    """Wait until a script gives something, however slow the machine, and give it."""
    wait = WebDriverWait(driver, 240, poll_frequency=0.05)
    return wait.until(lambda page: page.execute_script(script, *arguments))


def run(driver):
    """Run the notebook's cell; JupyterLab forgets what is pressed too early."""
    for _ in range(120):
        if driver.execute_script(f"return document.querySelector('{ROOT}')"):
            return
        if driver.execute_script(WAITS):
            keys = ActionChains(driver).key_down(Keys.SHIFT).send_keys(Keys.ENTER)
            keys.key_up(Keys.SHIFT).perform()
        time.sleep(2)
    pytest.fail("the cell does not run, or shows no explorer")


@pytest.fixture
def notebook(tmp_path):
    """The address of a notebook with one cell, in a JupyterLab of its own."""
    cells = [nbformat.v4.new_code_cell(CELL)]
    kernel = {"name": "python3", "display_name": "Python 3"}
    whole = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    (tmp_path / "notes").mkdir()
    nbformat.write(whole, tmp_path / "notes" / "one.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(8)
    # nothing of the user's own
    own = {"JUPYTER_CONFIG_DIR": f"{tmp_path}/config", "JUPYTER_DATA_DIR": f"{tmp_path}/data"}
    own |= {"IPYTHONDIR": f"{tmp_path}/ipython", "JUPYTER_PREFER_ENV_PATH": "1"}
    command = [Path(sys.executable).with_name("jupyter"), "lab", "--no-browser", "--allow-root"]
    command += [f"--ServerApp.root_dir={tmp_path}/notes", f"--ServerApp.port={port}"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={token}"]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(command, env=os.environ | own, stdout=log, stderr=log)
    try:
        for _ in range(600):
            with socket.socket() as there:
                if there.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None, (tmp_path / "log").read_text("utf-8")
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/lab/tree/one.ipynb?token={token}"
    finally:
        server.terminate()
        server.wait(60)


def test_the_page_answers_at_once_and_python_when_asked(browser, notebook):
    size = {"width": 1200, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(notebook)
    run(browser)
    until(browser, f"return document.querySelector('{ROOT}').dataset.engine")
    first = until(browser, laboratory.SEEN, False)
    wanted = laboratory.fresh(SETTING)
    # numbers of the page's own engine, and not a word of Python
    assert first["engine"] == "WebAssembly" and browser.execute_script(SAYS) == ""
    largest = np.abs(wanted.U).max()
    np.testing.assert_allclose(first["U"], wanted.U, rtol=0, atol=1e-8 * largest)
    browser.execute_script(f"document.querySelector('{ROOT} [data-choice=python]').click()")
    assert "compiled" in until(browser, SAYS)
    note = f"return document.querySelector('{ROOT}').innerText.includes('Computed by Python')"
    until(browser, note)
    second = until(browser, laboratory.SEEN, False)
    np.testing.assert_allclose(second["U"], wanted.U, rtol=0, atol=1e-8 * largest)
    assert [second[key] for key in ("accuracy", "gp", "good")] == wanted.accuracies
    # JupyterLab takes no key from a slider
    slider = browser.find_element("css selector", f"{ROOT} input[name=width]")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert until(browser, laboratory.SHOWN)["inputs"]["width"] != "10"
    # leaves no question behind for the next page
    browser.execute_script("window.onbeforeunload = null")
    browser.execute_cdp_cmd("Page.navigate", {"url": "about:blank"})
