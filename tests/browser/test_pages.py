"""Every page, over http wide and narrow, light and dark, and from disk in two of these ways."""

# pixels at a width of 1200, with all checks and solutions closed
LONGEST = 14_000


def findings(visit, key):
    return {view: seen[key] for view, seen in visit.views.items() if seen[key]}


def test_it_asks_nobody_else(visit):
    assert visit.requests
    strangers = [
        url for url in visit.requests if not url.startswith((visit.origin, "data:", "blob:"))
    ]
    assert strangers == []


def test_its_console_is_silent(visit):
    assert visit.console == []


def test_it_follows_the_colour_scheme(visit):
    assert all(seen["ready"] for seen in visit.views.values())
    assert [seen["theme"] for seen in visit.views.values()] == [theme for theme, _ in visit.views]
    assert findings(visit, "wrongInk") == {}


def test_its_formulas_are_drawn(visit):
    assert findings(visit, "undrawnMath") == {}
    assert findings(visit, "brokenMath") == {}
    assert findings(visit, "rawMath") == {}


def test_its_figures_are_drawn(visit):
    assert findings(visit, "undrawnFigures") == {}
    assert findings(visit, "wideFigures") == {}
    assert findings(visit, "brokenImages") == {}
    assert findings(visit, "deadWidgets") == {}


def test_it_does_not_scroll_sideways(visit):
    assert {view: over for view, over in findings(visit, "overflow").items() if over > 0} == {}


def test_what_scrolls_sideways_shows_it(visit):
    assert findings(visit, "cut") == {}


def test_a_chapter_is_not_too_long(visit):
    height = visit.views["light", 1200]["height"]
    # other pages are there to look things up
    assert 0 < height <= LONGEST or not visit.chapter


def test_it_is_accessible(visit):
    assert findings(visit, "unnamedFigures") == {}
    judged = [seen["violations"] for seen in visit.views.values() if seen["violations"] is not None]
    assert judged == [[]]
