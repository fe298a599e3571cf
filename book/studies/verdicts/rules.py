"""Verdicts by rule: what counts as reproduced, and what does not.

Every rule takes numbers and gives a `Judgement`. Nothing else does, so that no verdict is
written by hand.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np

REPRODUCED, IN_KIND, UNDECIDED, NOT_REPRODUCED, NOT_CHECKED = VERDICTS = (
    "reproduced",
    "in kind",
    "undecided",
    "not reproduced",
    "not checked",
)
#: How close to a number of the authors' code is the same number.
SAME = 1e-6
#: Accuracies that differ by less than this are comparable, here as for trained networks.
MARGIN = 0.01
# the standard errors to either side of a number in a one-sided test at 5 %
_ONE_SIDED = 1.645


class Limits(NamedTuple):
    """How many standard errors one number may be off, and the largest of many."""

    one: float = 2
    many: float = 4


USUAL = Limits()
_LIMITS: ContextVar[Limits] = ContextVar("limits", default=USUAL)


def limits() -> Limits:
    """The limits in force."""
    return _LIMITS.get()


@contextlib.contextmanager
def limited(**changes: float | int) -> Iterator[Limits]:
    """For the length of a `with` block, judge by other limits.

    >>> with limited(one=1):
    ...     larger(0.015, 0.01).verdict
    'reproduced'
    >>> larger(0.015, 0.01).verdict
    'in kind'
    """
    token = _LIMITS.set(_LIMITS.get()._replace(**changes))
    try:
        yield _LIMITS.get()
    finally:
        _LIMITS.reset(token)


#: The rules in words, for the page: reproduced if the first, in kind if the second.
RULES = {
    "same": (
        f"differs from the output of the authors' code by at most {SAME:.0e}".replace(
            "e-06", "e-6"
        ),
        "by at most 0.01",
    ),
    "number": (
        f"within {USUAL.one} standard errors of the printed number, as it is rounded there",
        "not, but what the number stands for holds",
    ),
    "larger": (
        f"the difference has the stated sign, by more than {USUAL.one} standard errors",
        f"by at least one; undecided if by less, or by less than {USUAL.one} on the other side",
    ),
    "comparable": (
        f"within {100 * MARGIN:g} point, up or down, by two one-sided tests at 5 %",
        "within it by at least one standard error; undecided unless a test shows that it is not",
    ),
    "no worse": (
        f"worse by less than {100 * MARGIN:g} point, by a one-sided test at 5 %",
        "so by at least one standard error; undecided unless a test shows that it is worse",
    ),
    "agree": (
        f"within {USUAL.one} standard errors of each other; the largest of many differences, "
        f"{USUAL.many}",
        "the samples are nearer to the theory than to the Gaussian process by at least one "
        "standard error; never where two samplers are compared",
    ),
    "stated": ("the statement holds in full", "a weaker form holds, which the row names"),
    "bound": ("this machine stays below the bound as well", "never; above it, not checked"),
}


class Judgement(NamedTuple):
    """A verdict, and the rule that gave it."""

    verdict: str
    rule: str


def _judge(rule: str, full, weak) -> Judgement:
    verdict = REPRODUCED if full else IN_KIND if weak else NOT_REPRODUCED
    return Judgement(verdict, rule)


def same(distance) -> Judgement:
    """A distance to numbers of the authors' code.

    >>> same(3e-9).verdict, same(1e-4).verdict, same(0.1).verdict
    ('reproduced', 'in kind', 'not reproduced')
    """
    return _judge("same", _finite(distance) <= SAME, distance <= 0.01)


def number(found, error, said, *, unit, holds) -> Judgement:
    """A number that the paper prints to the nearest `unit`; `holds`: what it stands for does.

    >>> number(0.937, 0.004, 0.94, unit=0.01, holds=True)
    Judgement(verdict='reproduced', rule='number')
    """
    off = abs(_finite(found) - said)
    return _judge("number", off <= limits().one * _finite(error) + unit / 2, holds)


def larger(difference, error) -> Judgement:
    """A difference that the paper says is positive; its sign alone decides nothing.

    >>> [larger(difference, 0.01).verdict for difference in (0.03, 0.01, -0.01, -0.03)]
    ['reproduced', 'in kind', 'undecided', 'not reproduced']
    """
    difference, error = _finite(difference), _finite(error)
    if -limits().one * error < difference < error:
        return Judgement(UNDECIDED, "larger")
    return _judge("larger", difference > limits().one * error, difference > 0)


def comparable(difference, error) -> Judgement:
    """A difference of accuracies that the paper says is none: an interval has to be small enough.

    >>> [comparable(0.001, error).verdict for error in (0.005, 0.008, 0.02)]
    ['reproduced', 'in kind', 'undecided']
    """
    return _within("comparable", abs(_finite(difference)), _finite(error))


def no_worse(difference, error) -> Judgement:
    """A difference of accuracies that the paper says is not negative.

    >>> [no_worse(difference, 0.004).verdict for difference in (0.1, -0.005, -0.01, -0.03)]
    ['reproduced', 'in kind', 'undecided', 'not reproduced']
    """
    return _within("no worse", -_finite(difference), _finite(error))


def _within(rule: str, off: float, error: float) -> Judgement:
    if off + error > MARGIN >= off - _ONE_SIDED * error:
        return Judgement(UNDECIDED, rule)
    return _judge(rule, off + _ONE_SIDED * error < MARGIN, off < MARGIN)


def agree(errors, *, nearer=0.0, many=False) -> Judgement:
    """Theory and samples, or two samplers: how many standard errors they are apart.

    `nearer` is by how many of them the samples are nearer to the theory than to the GP.

    >>> agree(3.0, nearer=1.0).verdict, agree(3.0, many=True).verdict, agree(3.0).verdict
    ('in kind', 'reproduced', 'not reproduced')
    """
    most = limits().many if many else limits().one
    return _judge("agree", _finite(errors) <= most, _finite(nearer) >= 1)


def stated(full, weaker=False) -> Judgement:
    """A statement that is true or false, and a weaker form of it.

    >>> stated(False, weaker=True).verdict
    'in kind'
    """
    return _judge("stated", full, weaker)


def bound(found, most) -> Judgement:
    """A cost on other hardware, which this machine can only confirm from below.

    >>> bound(60, most=3600).verdict, bound(7200, most=3600).verdict
    ('reproduced', 'not checked')
    """
    return Judgement(REPRODUCED if _finite(found) < most else NOT_CHECKED, "bound")


def unchecked() -> Judgement:
    """A claim that this book cannot check; the row says why."""
    return Judgement(NOT_CHECKED, "")


def weakest(*judgements: Judgement) -> Judgement:
    """A claim of several parts is worth as much as the weakest.

    >>> weakest(same(0), larger(1, 1))
    Judgement(verdict='in kind', rule='same, larger')
    """
    verdict = max((j.verdict for j in judgements), key=VERDICTS.index)
    return Judgement(verdict, ", ".join(dict.fromkeys(j.rule for j in judgements)))


def _finite(value) -> float:
    """A comparison with NaN is false without a word: refuse it."""
    value = float(value)
    if not np.isfinite(value):
        raise ValueError(f"a verdict needs finite numbers; got {value}")
    return value
