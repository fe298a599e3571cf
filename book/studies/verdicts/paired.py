"""One number for each trained network, and what all of them say together.

The unit of replication is the network: a number here is a difference between two things that
were measured on the same network with the same data. Rules turn such numbers into verdicts.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.stats

from book.studies.verdicts.rules import (
    IN_KIND,
    NOT_CHECKED,
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDED,
    Judgement,
)

#: One number for each network.
Numbers = Sequence[int | float] | np.ndarray
#: With fewer networks than these a claim is never reproduced, nor refuted.
FEWEST = 3
# all resamples, or all patterns of signs, are taken where there are no more than so many
_MANY = 50_000


class Paired(NamedTuple):
    """Numbers of several networks: their mean with its standard error and bootstrap interval.

    `p_value` is that of the exact sign-flip test for a positive mean: the share of all 2ⁿ
    patterns of signs whose mean is at least as large. `share` is that of positive numbers.
    """

    values: tuple[float, ...]
    mean: float
    standard_error: float
    low: float
    high: float
    p_value: float
    share: float

    def text(self, scale: float = 100, unit: str = "points", digits: int = 1) -> str:
        """The mean with its interval, and how often it is positive."""
        mean, low, high = (f"{scale * x:+.{digits}f}" for x in (self.mean, self.low, self.high))
        count = len(self.values)
        return (
            f"{mean} {unit} ({low} to {high}), positive in {round(self.share * count)} of {count} "
            f"networks, p = {self.p_value:.3f}"
        )


def paired(values: Numbers, *, level: float = 0.95, seed: int = 0) -> Paired:
    """Mean, bootstrap interval, exact sign-flip p-value and share, of one number per network.

    All nⁿ resamples are taken for up to six networks, 50,000 random ones for more.

    >>> found = paired([0.01, 0.03, 0.02])
    >>> found.mean, found.p_value, found.share, found.low, found.high
    (0.02, 0.125, 1.0, 0.01, 0.03)
    """
    x = np.asarray(values, float)
    if x.ndim != 1 or not len(x) or not np.isfinite(x).all():
        raise ValueError(f"values must be finite, one for each network; got {values!r}")
    n = len(x)
    if n**n <= _MANY:
        picks = np.array(list(itertools.product(range(n), repeat=n)))
    else:
        picks = np.random.default_rng(seed).integers(n, size=(_MANY, n))
    ends = (1 - level) / 2, (1 + level) / 2
    low, high = np.quantile(x[picks].mean(axis=1), ends, method="inverted_cdf")
    error = x.std(ddof=1) / np.sqrt(n) if n > 1 else 0.0
    numbers = (x.mean(), error, low, high, _flips(x, seed), np.mean(x > 0))
    return Paired(tuple(x.tolist()), *(round(float(each), 12) for each in numbers))


def student(values: Numbers, level: float = 0.95) -> tuple[float, float]:
    """Student's interval for the mean, which is exact for normal numbers, however few.

    >>> low, high = student([0.01, 0.03, 0.02])
    >>> round(low, 4), round(high, 4)
    (-0.0048, 0.0448)
    """
    x = np.asarray(values, float)
    half = scipy.stats.t.ppf((1 + level) / 2, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x))
    return float(x.mean() - half), float(x.mean() + half)


def _flips(x, seed: int) -> float:
    """The share of patterns of signs for which the mean is at least what it is."""
    n = len(x)
    if 2**n <= _MANY:
        signs = np.array(list(itertools.product((1, -1), repeat=n)))
    else:
        signs = np.random.default_rng(seed).choice([1, -1], size=(_MANY, n))
        signs[0] = 1
    return float(np.mean(signs @ np.abs(x) >= x.sum() - 1e-12 * np.abs(x).sum()))


#: The rules in words: reproduced, in kind, not reproduced; whatever is left is undecided.
RULES = {
    "positive": (
        "the 95 % interval over networks lies above zero",
        "the mean is at least one standard error above zero",
        "the interval lies below zero",
    ),
    "below": (
        "the 95 % interval over networks lies below the limit",
        "the mean is at least one standard error below the limit",
        "the interval lies above the limit",
    ),
    "comparable": (
        "the 90 % interval lies within the margin on both sides (two one-sided tests)",
        "the mean is within the margin by at least one standard error",
        "the 95 % interval lies outside the margin",
    ),
}


def positive(values: Numbers) -> Judgement:
    """A difference that the paper says is positive.

    >>> positive([0.01, 0.03, 0.02]).verdict, positive([0.03, -0.02, 0.0]).verdict
    ('reproduced', 'undecided')
    """
    found = paired(values)
    kind = found.mean >= found.standard_error and found.mean > 0
    return _judge("positive", found, found.low > 0, kind, found.high < 0)


def below(values: Numbers, limit: int | float) -> Judgement:
    """A loss or a distance that the paper says is small; here, below `limit`.

    >>> below([0.01, 0.03, 0.02], 0.05).verdict, below([0.06, 0.08, 0.09], 0.05).verdict
    ('reproduced', 'not reproduced')
    """
    found = paired(values)
    kind = found.mean + found.standard_error <= limit
    return _judge("below", found, found.high < limit, kind, found.low > limit)


def comparable(values: Numbers, margin: int | float) -> Judgement:
    """A difference that the paper says is none; here, smaller than `margin` either way.

    >>> comparable([0.001, -0.002, 0.0], 0.01).verdict
    'reproduced'
    >>> comparable([0.02, -0.02, 0.0], 0.01).verdict
    'undecided'
    """
    found, inner = paired(values), paired(values, level=0.9)
    within = -margin < inner.low and inner.high < margin
    kind = abs(found.mean) + found.standard_error <= margin
    outside = found.low > margin or found.high < -margin
    return _judge("comparable", found, within, kind, outside)


def _judge(rule: str, found: Paired, full, kind, refuted) -> Judgement:
    """One network decides nothing; of two, at most the kind."""
    count = len(found.values)
    if count < 2:
        return Judgement(NOT_CHECKED, rule)
    if count >= FEWEST and (full or refuted):
        return Judgement(REPRODUCED if full else NOT_REPRODUCED, rule)
    return Judgement(IN_KIND if kind else UNDECIDED, rule)
