"""Sliders of figures, in the built page: every one must change its figure, also by keyboard."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

DRAWN = "return arguments[0].querySelector('.main-svg').outerHTML"


@pytest.fixture(scope="module")
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
        first, *others = control.find_elements(By.TAG_NAME, "input")
        if first.get_attribute("type") == "range":
            assert first.accessible_name and first.accessible_name != "setting"
            first.send_keys(Keys.HOME)
            moves = [lambda s=first: s.send_keys(Keys.ARROW_RIGHT)] * int(
                first.get_attribute("max")
            )
        else:
            assert control.find_element(By.TAG_NAME, "legend").text not in ("", "setting")
            # an arrow key chooses the next one
            first.send_keys(Keys.SPACE)
            moves = [
                lambda b=before: b.send_keys(Keys.ARROW_RIGHT) for before in (first, *others[:-1])
            ]
        looks, names = set(), set()
        for move in [lambda: None, *moves]:
            move()
            settled = "return arguments[0].dataset.drawn !== ''"
            WebDriverWait(browser, 60).until(lambda d, f=figure, s=settled: d.execute_script(s, f))
            looks.add(browser.execute_script(DRAWN, figure))
            names.add(figure.get_attribute("aria-label"))
        assert len(looks) == len(names) == len(moves) + 1


STOPS = """
return [...document.querySelectorAll('.figure-slider')].map((control) => {
  const inputs = [...control.querySelectorAll('input')];
  const chosen = inputs[0].type === 'range' ? inputs[0].value : inputs.findIndex((i) => i.checked);
  const texts = [...control.querySelectorAll('label, legend')].map((each) => each.textContent);
  return [JSON.stringify([inputs[0].max, texts]), Number(chosen)];
});
"""


def test_controls_of_one_name_move_together(browser, sliders):
    for control, _ in sliders:
        chosen = control.find_elements(By.TAG_NAME, "input")[0]
        chosen.send_keys(Keys.HOME if chosen.get_attribute("type") == "range" else Keys.SPACE)
        stops = browser.execute_script(STOPS)
        for name in {name for name, _ in stops}:
            assert len({stop for other, stop in stops if other == name}) == 1


def test_some_chapter_has_a_slider(book):
    pages = [path.read_text("utf-8") for path in (book / "book").glob("*.html")]
    assert sum(page.count('"sliders":[') for page in pages) >= 2
