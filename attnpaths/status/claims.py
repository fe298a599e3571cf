"""The list of claims: what the paper says, where, and the function that finds out."""

from collections.abc import Callable
from typing import Any, NamedTuple

from attnpaths.status.rules import Judgement

#: What claims are about, in the order of the table.
GROUPS = ("Fig. 1", "Fig. 2", "Fig. 3", "Appendix figures", "Text, chains", "Text, images", "Costs")


class Claim(NamedTuple):
    """One panel or statement of the paper.

    `says` is what the paper claims, in our words. `shown` is the label of the figure that shows
    what we find, or the name of a page. `find` takes the `Evidence` and gives a judgement and the
    finding in words.
    """

    id: str
    group: str
    place: str
    says: str
    shown: str
    find: Callable[[Any], tuple[Judgement, str]]


CLAIMS: dict[str, Claim] = {}


def claim(id: str, group: str, place: str, says: str, shown: str):
    """Put a finding into the list, under a claim's name.

    >>> from attnpaths import status
    >>> status.CLAIMS["2a"].place
    'Fig. 2a'
    """
    if group not in GROUPS:
        raise ValueError(f"group must be one of {', '.join(GROUPS)}; got {group!r}")

    def listed(find):
        if id in CLAIMS:
            raise ValueError(f"claim {id!r} is already {CLAIMS[id].says!r}: choose another name")
        CLAIMS[id] = Claim(id, group, place, says, shown, find)
        return find

    return listed


def pm(value, error, digits: int = 3) -> str:
    """A number with its standard error.

    >>> pm(0.12345, 0.002)
    '0.123 ± 0.002'
    """
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def to(distance) -> str:
    """How closely two numbers agree.

    >>> to(3.2e-9), to(0)
    ('to 3e-09', 'exactly')
    """
    return f"to {distance:.0e}" if distance else "exactly"
