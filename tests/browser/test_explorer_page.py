"""The explorer in the built page: it must show what the library says, to anyone."""

import functools
import gzip
import itertools
import json
import re

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from attnpaths import explorer, theory
from attnpaths.explorer.answers import spelled_stops
from attnpaths.tasks.markov import make_task
from book._ext.pages import EXPLORER_SCRIPT

ROOT = "[data-explorer=markov]"
# all widths, and every value of the others, in settings that share their data where they can
SETTINGS = [
    *(
        {"tokens": 30, "sigma_perp": 1.0, "temperature": 0.01, "width": n}
        for n in (1, 10, 100, 1000)
    ),
    *({"tokens": 30, "sigma_perp": 1.0, "temperature": t, "width": 20} for t in (0.001, 0.1, 1.0)),
    *({"tokens": 30, "sigma_perp": 5.0, "temperature": 0.01, "width": n} for n in (2, 50, 10_000)),
    *({"tokens": 10, "sigma_perp": 0.1, "temperature": 0.1, "width": n} for n in (5, 200, "inf")),
    *({"tokens": 50, "sigma_perp": 2.0, "temperature": 1.0, "width": n} for n in (1, 500, 2000)),
    *({"tokens": 40, "sigma_perp": 3.0, "temperature": 0.001, "width": n} for n in (10, 5000)),
    *({"tokens": 20, "sigma_perp": 0.5, "temperature": 0.01, "width": n} for n in (2, 100)),
]


@pytest.fixture(scope="module", params=["http", "file"])
def page(request, book, server, browser):
    """The landing page, over http or from disk, once its explorer stands."""
    origin = server if request.param == "http" else book.as_uri()
    browser.get(f"{origin}/book/intro.html")
    WebDriverWait(browser, 20).until(lambda driver: driver.find_elements(By.CSS_SELECTOR, ROOT))
    return browser


def choose(driver, **setting):
    """Move the sliders as a hand would: set the value, and tell by an input event."""
    stops = spelled_stops(explorer.STOPS)
    indices = {name: stops[name].index(value) for name, value in setting.items()}
    driver.execute_script(
        """const root = document.querySelector(arguments[0]);
        for (const [name, index] of Object.entries(arguments[1])) {
          const input = root.querySelector(`input[name=${name}]`);
          input.value = index;
          input.dispatchEvent(new Event('input', {bubbles: true}));
        }""",
        ROOT,
        indices,
    )


def seen(driver):
    """What the explorer shows, at full precision, and all its pictures as text."""
    return driver.execute_script(
        """const root = document.querySelector(arguments[0]);
        const all = (selector) => [...root.querySelectorAll(selector)];
        const value = (name) => JSON.parse(all(`[data-output=${name}]`)[0].dataset.value);
        return {
          accuracy: value('accuracy'), gp: value('gp-accuracy'), good: value('good-accuracy'),
          U: value('order-parameter'),
          cells: all('td.entry').map((cell) => cell.textContent),
          shown: all('[data-output=accuracy]')[0].textContent,
          sentence: all('[role=status]')[0].textContent,
          inputs: Object.fromEntries(all('input').map(({name, dataset}) => [name, dataset.value])),
          pictures: all('svg').map((svg) => svg.innerHTML),
        };""",
        ROOT,
    )


@functools.cache
def features(seed, tokens, sigma_perp):
    """ξ and labels of one drawn task, for training and for testing."""
    task = make_task(seed, tokens=tokens, sigma_perp=sigma_perp)
    return [(task.network.features(split.x), split.y) for split in (task.train, task.test)]


@functools.cache
def fresh(tokens, sigma_perp, temperature, width):
    """The same by fresh solves with the library, averaged over the explorer's seeds."""
    found = []
    for seed in explorer.SEEDS:
        (train, y), (test, y_test) = features(seed, tokens, sigma_perp)
        heat = {"temperature": temperature}
        solved = theory.solve(train, y, heads=(2, 2), width=float(width), **heat)
        gp = theory.gp_limit(train, y, heads=(2, 2), **heat)
        good = theory.gp_limit(train[:, [0]], y, heads=(1, 1), **heat)
        found.append(
            (
                solved.predict(test).accuracy(y_test),
                gp.predict(test).accuracy(y_test),
                good.predict(test[:, [0]]).accuracy(y_test),
                solved.U,
            )
        )
    return [np.mean(values, axis=0) for values in zip(*found, strict=True)]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: "-".join(map(str, s.values())))
def test_it_shows_what_the_library_says(page, setting):
    accuracy, gp, good, U = fresh(**setting)
    choose(page, **setting)
    shown = seen(page)
    np.testing.assert_allclose(
        [shown["accuracy"], shown["gp"], shown["good"]], [accuracy, gp, good], atol=1e-6
    )
    np.testing.assert_allclose(shown["U"], U, rtol=1e-6, atol=1e-6 * np.abs(U).max())
    assert shown["shown"] == f"{100 * accuracy:.1f} %"
    assert shown["inputs"] == {
        name: str(value) if value == "inf" else f"{value:g}" for name, value in setting.items()
    }


def test_enough_settings_are_compared():
    assert len({json.dumps(setting) for setting in SETTINGS}) >= 20
    for name, stops in spelled_stops(explorer.STOPS).items():
        if name != "width":
            assert {setting[name] for setting in SETTINGS} == set(stops)


@pytest.mark.parametrize("name", explorer.START)
def test_every_control_moves_every_picture(page, name):
    stops = spelled_stops(explorer.STOPS)[name]
    start = spelled_stops({key: [value] for key, value in explorer.START.items()})
    start = {key: value for key, [value] in start.items()}
    choose(page, **start)
    before = seen(page)
    for value in {stops[0], stops[-1]} - {start[name]}:
        choose(page, **(start | {name: value}))
        after = seen(page)
        pairs = zip(before["pictures"], after["pictures"], strict=True)
        assert len(after["pictures"]) == 2 and all(old != new for old, new in pairs)
        assert before["cells"] != after["cells"] and before["sentence"] != after["sentence"]


def test_it_moves_within_a_frame(page):
    """The new numbers are there when the event's handlers have run, before the next frame."""
    choose(page, width=10, tokens=30, temperature=0.01, sigma_perp=1.0)
    before, after = page.execute_script(
        """const root = document.querySelector(arguments[0]);
        const shown = () => root.querySelector('[data-output=accuracy]').dataset.value;
        const input = root.querySelector('input[name=sigma_perp]');
        const before = shown();
        input.value = input.max;
        input.dispatchEvent(new Event('input'));
        return [before, shown()];""",
        ROOT,
    )
    assert before != after


def test_scenes_set_the_controls_and_reset_brings_them_back(page):
    choose(page, width=100, tokens=10, temperature=1.0, sigma_perp=0.1)
    page.find_element(By.CSS_SELECTOR, f"{ROOT} .reset").click()
    first = seen(page)
    assert first["inputs"] == {
        "width": "10",
        "tokens": "30",
        "temperature": "0.01",
        "sigma_perp": "1",
    }
    sentences = {first["sentence"]}
    for button in page.find_elements(By.CSS_SELECTOR, f"{ROOT} .scene"):
        button.click()
        shown = seen(page)
        value = re.search(r"(N|σ⊥|T|𝒯) = ([\d.]+)$", button.text)
        if value:
            name = {"N": "width", "σ⊥": "sigma_perp", "T": "tokens", "𝒯": "temperature"}[value[1]]
            assert shown["inputs"][name] == value[2]
        sentences.add(shown["sentence"])
    assert len(sentences) >= 6
    page.find_element(By.CSS_SELECTOR, f"{ROOT} .reset").click()
    assert seen(page) == first


def test_it_works_by_keyboard_and_says_its_values(page):
    page.find_element(By.CSS_SELECTOR, f"{ROOT} .reset").click()
    slider = page.find_element(By.CSS_SELECTOR, f"{ROOT} input[name=width]")
    assert slider.accessible_name == "width N"
    slider.send_keys(Keys.ARROW_RIGHT)
    assert seen(page)["inputs"]["width"] == "20" and slider.get_attribute("aria-valuetext") == "20"
    slider.send_keys(Keys.END)
    shown = seen(page)
    assert shown["inputs"]["width"] == "inf" and slider.get_attribute("aria-valuetext") == "∞ = GP"
    assert shown["U"] == np.eye(4).tolist() and shown["accuracy"] == shown["gp"]
    assert "Gaussian process" in shown["sentence"]
    status = page.find_element(By.CSS_SELECTOR, f"{ROOT} [role=status]")
    assert status.get_attribute("aria-live") == "polite"


def test_the_sentence_is_true(page):
    stops = spelled_stops(explorer.STOPS)
    for width, sigma_perp in itertools.product(stops["width"][:-1:3], stops["sigma_perp"]):
        choose(page, width=width, tokens=30, temperature=0.01, sigma_perp=sigma_perp)
        shown = seen(page)
        U, words = np.array(shown["U"]), shown["sentence"].lower()
        assert ("both adversarial paths are suppressed" in words) == (
            max(U[1, 1], U[3, 3]) < 1 / 1.25
        )
        assert ("good path is amplified" in words) == (U[0, 0] > 1.25)
        tie = U[0, 2] / np.sqrt(U[0, 0] * U[2, 2])
        assert ("anti-correlated" in words) == (tie <= -0.1)
        points = re.search(r"([\d.]+) points (above|below)", words)
        gain = 100 * (shown["accuracy"] - shown["gp"])
        assert (points is None) == (abs(gain) < 0.05)
        if points:
            assert float(points[1]) == pytest.approx(abs(gain), abs=0.0501)
            assert (points[2] == "above") == (gain > 0)


def test_what_ships_with_the_page_is_small(book):
    assert len(gzip.compress((book / "_static" / EXPLORER_SCRIPT).read_bytes())) < 400_000
