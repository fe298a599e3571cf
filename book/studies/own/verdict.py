"""What would count as success of a guess which heads matter, fixed before any network was trained.

A guess is compared with the accuracy that is lost without each head by Spearman's rank
correlation: within the layers of a network first, since a guess that only says which layer matters
is no guide to its heads, and over all heads of a network second. A guess that is constant has the
correlation 0. Networks give a mean and its standard error.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.stats

#: A network counts if it has learned: the accuracy that it must reach.
LEARNED = 0.7
#: A guess is a guide if its mean correlation is above this, and by so many standard errors above 0.
USEFUL, ERRORS = 0.25, 2.0
#: The guesses of the theory; of them, the paper's own decides.
SCORES = ("both", "either", "both, weighed", "either, weighed")
BASELINES = ("value norm", "gradient")
SHUFFLED = ", shuffled labels"


class Found(NamedTuple):
    """A mean over networks, and its standard error."""

    mean: float
    error: float

    @property
    def above(self) -> bool:
        """Whether it is above 0 by more than chance."""
        return self.mean > ERRORS * self.error


def average(values: Sequence[float] | np.ndarray) -> Found:
    """Mean and standard error over networks.

    >>> average([0.0, 1.0])
    Found(mean=0.5, error=0.5)
    """
    values = np.asarray(values, float)
    return Found(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))


def rank(guess, lost) -> float:
    """Spearman's correlation; 0 where one of them is constant.

    >>> round(rank([1, 2, 3], [0.1, 0.2, 0.5]), 9), rank([1, 1], [0.1, 0.2])
    (1.0, 0.0)
    """
    if np.ptp(guess) == 0 or np.ptp(lost) == 0:
        return 0.0
    return float(scipy.stats.spearmanr(guess, lost).statistic)


def within_layers(guess, lost, layers: int) -> float:
    """The mean over layers of the rank correlation of the heads of a layer."""
    pairs = zip(
        np.split(np.asarray(guess), layers), np.split(np.asarray(lost), layers), strict=True
    )
    return float(np.mean([rank(*pair) for pair in pairs]))


def correlations(networks: Sequence[Mapping], layers: int = 2) -> dict[str, dict[str, np.ndarray]]:
    """Of every guess, `"within"` layers and `"pooled"`: one correlation for each network.

    The dummy `"layer"` says only which layer comes later; within a layer it is constant.
    """
    names = [*SCORES, *(score + SHUFFLED for score in SCORES), *BASELINES]
    guesses = [
        {name: row[name] for name in names}
        | {"layer": np.repeat(np.arange(layers), len(row["lost"]) // layers)}
        for row in networks
    ]
    pairs = list(zip(guesses, networks, strict=True))
    return {
        "within": {
            name: np.array([within_layers(g[name], row["lost"], layers) for g, row in pairs])
            for name in guesses[0]
        },
        "pooled": {
            name: np.array([rank(g[name], row["lost"]) for g, row in pairs]) for name in guesses[0]
        },
    }


def judge(within: Mapping[str, np.ndarray], score: str = "both") -> dict[str, bool]:
    """Whether a score is a guide in one make of network, and beats what it has to be held against.

    `useful`: its mean correlation within layers is above `USEFUL`, and above 0 by two standard
    errors. `labels`: it is better than with shuffled labels, by two standard errors of the
    difference. `value norm` and `gradient`: it is better than these, likewise. Success is the first
    two in all makes.
    """
    others = {"labels": score + SHUFFLED, "value norm": "value norm", "gradient": "gradient"}
    better = {name: average(within[score] - within[o]).above for name, o in others.items()}
    return {"useful": is_guide(within[score]), **better}


def is_guide(values: np.ndarray) -> bool:
    """Whether correlations of networks are above `USEFUL`, and above 0 by more than chance.

    >>> is_guide(np.array([0.4, 0.5])), is_guide(np.array([0.1, 0.2]))
    (True, False)
    """
    found = average(values)
    return found.above and found.mean > USEFUL


def spoken(judged: Mapping[str, Mapping[str, bool]], guides: Mapping[str, Sequence[str]]) -> str:
    """The outcome in two sentences: of the paper's score, and of all guesses.

    `judged` is what `judge` says of each make, `guides` in which makes each guess is a guide.

    >>> said = spoken({"A": {"useful": True, "labels": False}}, {"both": ["A"], "gradient": []})
    >>> said.split(": ")[0], said.split(": ")[2]
    ("By the rule the paper's score does not succeed", 'both (1 of 1), and never gradient.')
    """
    count = len(judged)
    useful = sum(found["useful"] for found in judged.values())
    labels = sum(found["labels"] for found in judged.values())
    done = all(found["useful"] and found["labels"] for found in judged.values())
    some = [f"{name} ({len(makes)} of {count})" for name, makes in guides.items() if makes]
    none = [name for name, makes in guides.items() if not makes]
    named = "; ".join(some) or "none at all"
    rest = f", and never {'; '.join(none)}" if none and some else ""
    return (
        f"By the rule the paper's score {'succeeds' if done else 'does not succeed'}: it is a "
        f"guide in {useful} of {count} kinds of network, and better than with shuffled labels in "
        f"{labels}. Of all guesses, guides are, by the number of makes: {named}{rest}."
    )
