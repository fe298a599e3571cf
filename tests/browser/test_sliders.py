"""Sliders of figures, in the built page: every one must change its figure, also by keyboard."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

DRAWN = "return arguments[0].querySelector('.main-svg').outerHTML"


@pytest.fixture
def sliders(book, server, browser, chapter):
    """The sliders of one chapter, each with its figure."""
    html = (book / f"{chapter}.html").read_text("utf-8")
    browser.get(f"{server}/{chapter}.html")
    ready = "return document.documentElement.dataset.book === 'ready'"
    WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(ready))
    found = browser.find_elements(By.CSS_SELECTOR, ".figure-slider")
    assert len(found) == html.count('"sliders":[')
    return [
        (control, control.find_element(By.XPATH, "following-sibling::div[1]")) for control in found
    ]


def test_a_slider_changes_its_figure(browser, sliders):
    for control, figure in sliders:
        slider = control.find_element(By.TAG_NAME, "input")
        assert slider.accessible_name and slider.accessible_name != "setting"
        slider.send_keys(Keys.HOME)
        looks, names, values = set(), set(), set()
        steps = int(slider.get_attribute("max")) + 1
        for _ in range(steps):
            settled = "return arguments[0].dataset.drawn !== ''"
            WebDriverWait(browser, 20).until(lambda d, f=figure, s=settled: d.execute_script(s, f))
            looks.add(browser.execute_script(DRAWN, figure))
            names.add(figure.get_attribute("aria-label"))
            values.add(slider.get_attribute("aria-valuetext"))
            slider.send_keys(Keys.ARROW_RIGHT)
        assert len(looks) == len(names) == len(values) == steps


def test_some_chapter_has_a_slider(book):
    pages = [path.read_text("utf-8") for path in (book / "book").glob("*.html")]
    assert sum(page.count('"sliders":[') for page in pages) >= 2
