"""The table of what stands covers the paper, rests on fresh results, and judges by rule."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from book.studies import authors
from book.studies import engine as results
from book.studies.oneshot import panels, trained
from book.studies.oneshot.rules import RULES
from book.studies.verdicts import claims, rules, studies
from book.studies.verdicts import report as status
from book.studies.verdicts.figures import standing, two_readings
from book.studies.verdicts.paired import RULES as PAIRED

BOOK = Path(__file__).parents[2] / "book"

# The paper's panels, from its captions. Where a caption names several things, each has a row.
PANELS = {
    "Fig. 1a": 1,
    "Fig. 1b": 1,
    "Fig. 1c": 1,
    "Fig. 1d": 1,
    "Fig. 2a": 1,
    "Fig. 2b": 1,
    "Fig. 2c": 4,  # accuracy and order parameter, theory and samples
    "Fig. 2d": 1,
    "Fig. 2e": 2,  # theory and samples
    "Fig. 3a": 1,
    "Fig. 3b": 3,  # in distribution, out of distribution, samples
    "Fig. 3c": 4,  # samples, ties, blocks and signs of gradient descent
    "Fig. 3d": 2,  # overlap and rank
    "Fig. 3e": 2,  # all heads, and the two lowest
    "Fig. 3f": 2,  # in distribution and out of it
    "Fig. 4": 1,
    "Fig. 5a": 1,
    "Fig. 5b": 1,
    "Fig. 5c": 1,
    "Fig. 6a": 4,  # the curves that Fig. 3b does not show
    "Fig. 6b": 1,
    "Fig. 7a": 1,
    "Fig. 7b": 1,
    "Fig. 7c": 1,
    "Fig. 7d": 2,  # in distribution and out of it
}
# What its text says in numbers or so that numbers can decide, by section: words of each row.
TEXT = {
    "Sec. 3.1": ("P < N₀Hᴸ", "−U + ln U"),
    "Sec. 4.1": (
        "94 %",
        "50 %",
        "considerably better",
        "worse than the good path",
        "better than the good path",
        "boost",
        "noisier",
        "N = 10: all kernels of the adversarial paths are suppressed",
        "anti-correlated",
        "N = 1000",
    ),
    "Sec. 4.2": ("528k", "certain paths weigh more", "share h₁", "enhanced"),
    "Sec. 4.2, pruning": ("25 % of the parameters",),
    "Sec. 4.2, end": ("agree even at N = 10", "exact as N and P grow"),
    "Sec. 5": ("as opposed to a single factor",),
    "App. E": ("100 widths and temperatures, each below 12 hours",),
    "App. F": ("no temperature improves", "one in ten", "12 sampling runs, each below 12 hours"),
    "App. G": ("completely analogous",),
    "App. H.1": ("432", "2 hours"),
    "App. H.2": (
        "the order parameter always grows as N gets smaller",
        "the order parameter grows as N gets smaller",
        "the best temperature grows",
        "the best temperatures are",
        "25 % of the network",
        "identical to that of two of eight",
    ),
}
# Rows that compare with numbers of the authors' code: all that the code gives of Fig. 2 and 5.
TO_SIX_DIGITS = ("2a", "2b", "2c, accuracy", "2c, U", "2d", "2e", "5b", "5c")


@pytest.fixture(scope="module")
def see():
    return status.evidence()


@pytest.fixture(scope="module")
def report(see):
    return status.report(see)


def test_every_panel_has_its_rows():
    places = [claim.place for claim in status.CLAIMS.values()]
    figures = [panel for place in places for panel in re.findall(r"Fig\. \d[a-f]?", place)]
    assert {place: figures.count(place) for place in figures} == PANELS


def test_every_statement_has_its_row():
    rows = [claim for claim in status.CLAIMS.values() if not claim.place.startswith("Fig.")]
    left = {claim.id for claim in rows}
    for place, statements in TEXT.items():
        for words in statements:
            found = [c.id for c in rows if c.place == place and words in c.says and c.id in left]
            assert len(found) == 1, f"{place}, {words!r}: rows {found}"
            left -= set(found)
    assert not left


def test_no_row_stands_twice(report):
    found = [row.finds for row in report.rows]
    assert len(set(found)) == len(found)
    # every rule of the list has a row, or is told in the row of another
    rows = {row.claim.id for row in report.rows}
    beside = {id for others in panels.BESIDE.values() for id in others}
    assert {rule.id for rule in RULES} - rows <= beside | {"score, pooled, text"}


def test_every_row_points_at_a_figure_or_page_of_the_book():
    pages = {page.stem: page.read_text("utf-8") for page in BOOK.glob("*.md")}
    labels = set(re.findall(r"^    name: (fig-[\w-]+)$", "\n".join(pages.values()), re.MULTILINE))
    shown = {claim.shown for claim in status.CLAIMS.values()}
    assert {name for name in shown if name.startswith("fig-")} <= labels
    assert {name for name in shown if not name.startswith("fig-")} <= set(pages)


def test_a_claim_is_listed_once_and_in_a_known_group():
    held = claims.Claims(status.CLAIMS)
    with pytest.raises(ValueError, match="already"):
        held.add("2a", "Chains", "Fig. 2a", "", "model")(None)
    with pytest.raises(ValueError, match="group must be one of Schematics"):
        held.add("new", "Fig. 9", "Fig. 9", "", "model")
    with pytest.raises(ValueError, match="already"):
        claims.Claims(held, status.CLAIMS)


def test_every_claim_is_judged(report):
    assert {row.claim.id for row in report.rows} == set(status.CLAIMS)
    assert [row.claim.group for row in report.rows] == sorted(
        (row.claim.group for row in report.rows), key=claims.GROUPS.index
    )
    for row in report.rows:
        assert row.judgement.verdict in rules.VERDICTS
        assert set(row.judgement.rule.split(", ")) <= {*rules.RULES, *PAIRED, ""}
        assert row.finds and "nan" not in row.finds and row.seconds > 0
        assert row.memory > 0
        assert len(re.findall(r"(?<!\\)\|", row.markdown)) == 5
    assert sum(map(report.count, rules.VERDICTS)) == len(report.rows)


@pytest.mark.parametrize("id", TO_SIX_DIGITS)
def test_fig_2_and_its_appendix_are_the_authors_numbers(report, id):
    judgement = report[id].judgement
    assert judgement.verdict == "reproduced" and "same" in judgement.rule
    assert report[id].live


def test_other_numbers_of_the_authors_would_be_noticed(see, monkeypatch):
    shifted = {
        width: fact | {"U": (1 + 1e-5) * np.asarray(fact["U"])}
        for width, fact in authors.FOUR.items()
    }
    monkeypatch.setattr(authors, "FOUR", shifted)
    again = status.report(see, lambda claim: claim.id == "2c, U")
    assert again["2c, U"].judgement.verdict == "in kind"


def test_known_differences_between_paper_and_code_are_not_called_reproduced(report):
    for id in ("50 %", "one head", "432", "uniform is analogous"):
        assert report[id].judgement.verdict in ("in kind", "not reproduced"), id
    assert report["sampler settings"].judgement.verdict == "not checked"


@pytest.fixture
def held(tmp_path):
    """Copies of all studies, to be spoilt."""
    for name in ("sampling", "corrections", "oneshot"):
        (tmp_path / name).mkdir()
        shutil.copy(results.file(name), results.file(name, tmp_path))
    return tmp_path


def spoil(path, change):
    held = json.loads(path.read_text("utf-8"))
    change(held)
    path.write_text(json.dumps(held), "utf-8")


def test_a_missing_study_stops_the_page(tmp_path):
    with pytest.raises(studies.StaleResult, match=r"python -m book\.studies\.oneshot\.run"):
        status.evidence(tmp_path)


def test_a_missing_part_stops_the_page(held):
    name = f"{trained.names()[0]}: pruning"

    def without(held):
        for each in held.values():
            each.pop(name)

    spoil(results.file("oneshot", held), without)
    with pytest.raises(studies.StaleResult, match=rf"no part '{name}'.*studies\.oneshot"):
        studies.images(held)


def test_a_part_of_other_code_stops_the_page(held):
    def other(held):
        for each in held["provenance"].values():
            each["source"] = "0"

    spoil(results.file("oneshot", held), other)
    with pytest.raises(studies.StaleResult, match=r"of other code than what is here.*oneshot\.run"):
        studies.images(held)


def test_a_part_of_another_version_stops_the_page(held):
    def older(held):
        held["provenance"]["exact, N = 10"]["attnpaths"] = "0.0.1"

    spoil(results.file("sampling", held), older)
    with pytest.raises(studies.StaleResult, match=r"of version 0\.0\.1.*studies\.sampling"):
        studies.sampled(held)


def test_a_part_of_another_network_stops_the_page(held, tmp_path):
    networks = tmp_path / "networks"
    shutil.copytree(trained.NETWORKS, networks)
    name = trained.names()[0]
    before = trained.load(name)
    with np.load(networks / f"{name}.npz") as arrays:
        others = dict(arrays) | {"norms": before.norms + 1}
    trained.write(name, others, before.record, networks)
    with pytest.raises(studies.StaleResult, match=r"of a trained network, but here is another"):
        studies.images(held, networks)


def test_a_number_that_does_not_come_out_again_stops_the_page(held):
    name = trained.names()[0]

    def other(held):
        value = np.asarray(held["parts"]["exact, N = 10"]["U_apart"])
        held["parts"]["exact, N = 10"]["U_apart"] = (1.1 * value).tolist()

    def scored(held):
        scores = held["parts"][f"{name}: pruning"]["scores"]
        scores["score, trained U"] = [1.1 * each for each in scores["score, trained U"]]

    spoil(results.file("sampling", held), other)
    with pytest.raises(studies.StaleResult, match=r"U_apart of 'exact, N = 10'.*but computed now"):
        studies.sampled(held)
    spoil(results.file("oneshot", held), scored)
    with pytest.raises(studies.StaleResult, match=rf"scores of '{name}'.*but computed now"):
        studies.images(held)


@pytest.mark.parametrize(
    ("judged", "verdict"),
    [
        (rules.same(1e-6), "reproduced"),
        (rules.same(2e-6), "in kind"),
        (rules.same(0.02), "not reproduced"),
        (rules.number(0.95, 0.0, 0.94, unit=0.01, holds=True), "in kind"),
        (rules.number(0.9449, 0.0, 0.94, unit=0.01, holds=True), "reproduced"),
        (rules.number(0.96, 0.01, 0.94, unit=0.01, holds=False), "reproduced"),
        (rules.number(0.97, 0.01, 0.94, unit=0.01, holds=False), "not reproduced"),
        (rules.larger(0.021, 0.01), "reproduced"),
        (rules.larger(0.019, 0.01), "in kind"),
        (rules.larger(0.0, 0.01), "undecided"),
        (rules.larger(-0.019, 0.01), "undecided"),
        (rules.larger(-0.021, 0.01), "not reproduced"),
        (rules.larger(0.0, 0.0), "not reproduced"),
        (rules.no_worse(0.05, 0.001), "reproduced"),
        (rules.no_worse(-0.001, 0.005), "reproduced"),
        (rules.no_worse(-0.001, 0.006), "in kind"),
        (rules.no_worse(-0.001, 0.01), "undecided"),
        (rules.no_worse(-0.021, 0.01), "undecided"),
        (rules.no_worse(-0.027, 0.01), "not reproduced"),
        (rules.comparable(-0.001, 0.005), "reproduced"),
        (rules.comparable(0.001, 0.006), "in kind"),
        (rules.comparable(0.02, 0.01), "undecided"),
        (rules.comparable(0.027, 0.01), "not reproduced"),
        (rules.comparable(-0.027, 0.01), "not reproduced"),
        (rules.agree(1.9), "reproduced"),
        (rules.agree(2.1, nearer=1.0), "in kind"),
        (rules.agree(2.1, nearer=0.9), "not reproduced"),
        (rules.agree(4.1, many=True), "not reproduced"),
        (rules.stated(True), "reproduced"),
        (rules.stated(False), "not reproduced"),
        (rules.bound(1.0, 2.0), "reproduced"),
        (rules.bound(2.0, 2.0), "not checked"),
        (rules.unchecked(), "not checked"),
        (rules.weakest(rules.stated(True), rules.stated(False, True)), "in kind"),
        (rules.weakest(rules.stated(False), rules.stated(True)), "not reproduced"),
    ],
)
def test_verdicts_follow_the_rules(judged, verdict):
    assert judged.verdict == verdict


def test_other_limits_hold_for_one_block_only():
    def judged():
        one, many = rules.larger(0.025, 0.01), rules.agree(4.5, nearer=2.0, many=True)
        return one.verdict, many.verdict

    assert judged() == ("reproduced", "in kind")
    with rules.limited(one=3):
        assert judged() == ("in kind", "in kind")
        with rules.limited(many=5):
            assert judged() == ("in kind", "reproduced")
        assert judged() == ("in kind", "in kind")
    with pytest.raises(KeyError), rules.limited(one=3):
        raise KeyError
    assert judged() == ("reproduced", "in kind")


def test_no_verdict_from_what_is_not_a_number():
    for judge in (
        lambda: rules.same(np.nan),
        lambda: rules.larger(np.nan, 0.1),
        lambda: rules.larger(0.1, np.inf),
        lambda: rules.number(np.nan, 0.1, 0.5, unit=0.1, holds=True),
        lambda: rules.agree(np.inf, nearer=1.0),
        lambda: rules.agree(1.0, nearer=np.nan),
        lambda: rules.comparable(0.0, np.inf),
        lambda: rules.bound(np.nan, 1.0),
    ):
        with pytest.raises(ValueError, match="finite"):
            judge()


def test_the_picture_has_a_mark_for_each_row(fits_the_page):
    rows = [("a", "in kind"), ("b", "reproduced"), ("c", "not checked")]
    figure = standing({"Fig. 2": rows, "Fig. 3": rows[:1]})
    fits_the_page(figure, ["Fig. 2: 1 reproduced, 1 in kind, 1 not checked", "Fig. 3: 1 in kind"])
    marks = {
        trace.name: list(zip(trace.x, trace.y, trace.text, strict=True)) for trace in figure.data
    }
    assert marks["reproduced (1)"] == [(1, "Fig. 2", "b")]
    assert marks["in kind (2)"] == [(2, "Fig. 2", "a"), (1, "Fig. 3", "a")]
    with pytest.raises(ValueError, match="got splendid"):
        standing({"Fig. 2": [("a", "splendid")]})


def test_two_readings_are_joined_by_a_line(fits_the_page):
    figure = two_readings({"readout": (0.9, 0.7), "scale": (0.5, 0.6)}, "accuracy")
    fits_the_page(figure, ["readout: 0.900 and 0.700", "scale: 0.500 and 0.600"])
    line, code, text = figure.data
    assert line.x == (0.9, 0.7, None, 0.5, 0.6, None)
    assert line.y == ("readout", "readout", None, "scale", "scale", None)
    assert (code.name, code.x) == ("code", (0.9, 0.5))
    assert (text.name, text.x) == ("text", (0.7, 0.6))
