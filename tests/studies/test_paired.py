"""Numbers of several networks, and the verdicts they give."""

import itertools

import numpy as np
import pytest
import scipy.stats

from book.studies.oneshot.rules import RULES
from book.studies.verdicts import paired as rules


def test_the_sign_flip_test_is_exact():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 9):
        x = rng.normal(0.3, 1, size=n)
        flipped = [np.dot(s, x) for s in itertools.product((1, -1), repeat=n)]
        expected = np.mean(np.array(flipped) >= x.sum() - 1e-12)
        assert rules.paired(x).p_value == pytest.approx(expected, abs=1e-12)
    x = rng.normal(0.3, 1, size=9)
    other = scipy.stats.permutation_test(
        (x,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative="greater"
    )
    assert rules.paired(x).p_value == pytest.approx(other.pvalue, abs=1e-12)
    # more networks than patterns can be listed: a sample of them, the true one among them
    many = rules.paired(np.ones(20))
    assert 0 < many.p_value < 1e-3 and many.low == many.high == 1


def test_the_interval_is_that_of_all_resamples():
    x = np.array([0.3, -0.1, 0.2, 0.7])
    means = np.sort([np.mean(pick) for pick in itertools.product(x, repeat=4)])
    found = rules.paired(x)
    assert found.low == pytest.approx(means[int(np.ceil(0.025 * 256)) - 1])
    assert found.high == pytest.approx(means[int(np.ceil(0.975 * 256)) - 1])
    assert found.mean == pytest.approx(0.275) and found.share == 0.75
    assert found.standard_error == pytest.approx(np.std(x, ddof=1) / 2)
    drawn = rules.paired(np.random.default_rng(0).normal(1, 1, size=40))
    assert drawn.low == pytest.approx(drawn.mean - 1.96 * drawn.standard_error, abs=0.05)
    for wrong in ([], [np.nan, 1.0], np.ones((1, 1))):
        with pytest.raises(ValueError, match="one for each network"):
            rules.paired(wrong)


@pytest.mark.parametrize(
    ("judged", "verdict"),
    [
        (rules.positive([1, 2, 3]), "reproduced"),
        (rules.positive([1, 2]), "in kind"),
        (rules.positive([1]), "not checked"),
        (rules.positive([-1, 2, 3]), "in kind"),
        (rules.positive([-1, 2, 0]), "undecided"),
        (rules.positive([0, 0, 0]), "undecided"),
        (rules.positive([-1, -2, -3]), "not reproduced"),
        (rules.positive([-1, -2]), "undecided"),
        (rules.below([1, 2, 3], 4), "reproduced"),
        (rules.below([1, 2, 5], 4), "in kind"),
        (rules.below([1, 4, 8], 4), "undecided"),
        (rules.below([5, 6, 7], 4), "not reproduced"),
        (rules.below([5, 6], 4), "undecided"),
        (rules.comparable([-1, 1, 0], 2), "reproduced"),
        (rules.comparable([-4, 2, 2], 2), "in kind"),
        (rules.comparable([-3, 5, 1], 2), "undecided"),
        (rules.comparable([3, 5, 4], 2), "not reproduced"),
        (rules.comparable([-3, -5, -4], 2), "not reproduced"),
    ],
)
def test_verdicts(judged, verdict):
    assert judged.verdict == verdict


def test_a_summary_in_words():
    text = rules.paired([0.01, 0.03, -0.01]).text()
    assert text == "+1.0 points (-1.0 to +3.0), positive in 2 of 3 networks, p = 0.375"


def test_the_list_of_rules():
    assert len({rule.id for rule in RULES}) == len(RULES)
    # what is judged by the score of the code is judged by that of the text, too
    by_code = {rule.id for rule in RULES if rule.measured.endswith("; by the code's score")}
    by_text = {rule.id for rule in RULES if rule.measured.endswith("; by the text's score")}
    assert by_text == {f"{id}, text" for id in by_code} and len(by_code) == 9
    assert len(RULES) == 38
    for rule in RULES:
        assert rule.rule in rules.RULES
        assert (rule.limit > 0) == (rule.rule != "positive")
