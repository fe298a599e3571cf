"""The list of claims: what the paper says, where, and the function that finds out."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from book.studies.verdicts.rules import Judgement

#: What claims are about, in the order of the table; the first and the last are no results.
GROUPS = ("Schematics", "Chains", "Images", "Out of distribution", "Pruning", "Costs")
RESULTS = GROUPS[1:-1]


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


class Claims(Mapping):
    """The claims that one module judges, by name; `add` puts a finding into it.

    >>> chains = Claims()
    >>> @chains.add("2a", "Schematics", "Fig. 2a", "the task", "model")
    ... def found(see):
    ...     return None
    >>> chains["2a"].place
    'Fig. 2a'
    """

    def __init__(self, *others: "Claims"):
        """An empty list, or the claims of several modules together."""
        self._held: dict[str, Claim] = {}
        for each in others:
            for claim in each.values():
                self._put(claim)

    def add(self, id: str, group: str, place: str, says: str, shown: str):
        """Put a finding into the list, under a claim's name."""
        if group not in GROUPS:
            raise ValueError(f"group must be one of {', '.join(GROUPS)}; got {group!r}")

        def listed(find):
            self._put(Claim(id, group, place, says, shown, find))
            return find

        return listed

    def _put(self, claim: Claim) -> None:
        if claim.id in self._held:
            before = self._held[claim.id].says
            raise ValueError(f"claim {claim.id!r} is already {before!r}: choose another name")
        self._held[claim.id] = claim

    def __getitem__(self, id: str) -> Claim:
        """One claim."""
        return self._held[id]

    def __iter__(self):
        """The names of all claims, in the order in which they were added."""
        return iter(self._held)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._held)


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
