"""From the results of all networks to a verdict on every rule of the list."""

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from book.studies.oneshot.rules import RULES, SMALL, Rule
from book.studies.oneshot.theory import AUTHORS_GP, PAPER_TEMPERATURES, best
from book.studies.verdicts.paired import Paired, below, comparable, paired, positive, student
from book.studies.verdicts.rules import Judgement, unchecked

Parts = Mapping[str, Any]
#: The head scores of the authors' code, at least one path of a pair through the head, and of the
#: text, both.
CODE, TEXT = "score, either", "score"
#: What the table of findings has.
COLUMNS = ("the paper's claim", "place", "what is measured", "mean effect (95 % interval)")
COLUMNS += ("limit", "holds in", "p-value", "verdict")
#: What of it stands in a page, which says below it what is measured.
SHOWN = (
    "the paper's claim",
    "verdict",
    "mean effect (95 % interval)",
    "limit",
    "holds in",
    "p-value",
)


class Finding(NamedTuple):
    """A rule, the number of every network by its name, and the verdict."""

    rule: Rule
    values: dict[str, float]
    judgement: Judgement

    @property
    def summary(self) -> Paired | None:
        """Mean, interval, p-value and share; None without networks."""
        return paired(list(self.values.values())) if self.values else None

    @property
    def margins(self) -> list[list[float]]:
        """By how much each network fulfils the rule; two lists where it has two sides."""
        numbers, limit = list(self.values.values()), self.rule.limit
        if self.rule.rule == "positive":
            return [numbers]
        below = [limit - x for x in numbers]
        return [below] if self.rule.rule == "below" else [below, [limit + x for x in numbers]]

    @property
    def p_value(self) -> float:
        """Of the exact sign-flip test that the mean fulfils the rule; of two sides the larger."""
        return max(paired(side).p_value for side in self.margins)

    @property
    def holds(self) -> int:
        """In how many networks it holds."""
        return sum(min(each) > 0 for each in zip(*self.margins, strict=True))


def effect(found: Finding) -> str:
    """The mean over networks with its interval: accuracies in points, all else as measured."""
    assert found.summary is not None
    scale, unit, digits = (100, " points", 1) if found.rule.id in POINTS else (1, "", 2)
    mean, low, high = (
        f"{scale * x:+.{digits}f}".replace("-", "−")
        for x in (found.summary.mean, found.summary.low, found.summary.high)
    )
    # one network has no interval
    bounds = f" ({low} to {high})" if len(found.values) > 1 else ""
    return f"{mean}{unit}{bounds}"


def open_by_student(found: Finding) -> bool:
    """Whether Student's 95 % interval contains the rule's limit, or one of its two, 90 % there."""
    level = 0.9 if found.rule.rule == "comparable" else 0.95
    return any(student(side, level)[0] <= 0 <= student(side, level)[1] for side in found.margins)


def limit(found: Finding) -> str:
    """What the effect is judged by, in its unit: above zero, below a limit, or within a margin."""
    number = f"{found.rule.limit:g}"
    if found.rule.id in POINTS:
        number = f"{100 * found.rule.limit:g} point{'s' * (found.rule.limit != 0.01)}"
    return {"positive": "> 0", "below": f"< {number}", "comparable": f"± {number}"}[found.rule.rule]


def summary(found: Finding) -> str:
    """What was found, in words: of how many networks, effect, p-value, and how often it holds."""
    if found.summary is None:
        return "no network was studied"
    count = len(found.values)
    judged_by = f"; limit {found.rule.limit:g}" if found.rule.limit else ""
    return (
        f"{effect(found)}, {count} network{'s'[: count > 1]}, p = {found.p_value:.3f}, "
        f"holds in {found.holds}{judged_by}"
    )


def columns(found: Iterable[Finding]) -> dict[str, list]:
    """Findings as the columns of a table: accuracies in points, all else as it is measured."""
    rows = []
    for each in found:
        judged = [each.rule.says, each.rule.place, each.rule.measured]
        if each.summary is None:
            rows.append([*judged, "", "", "", "", each.judgement.verdict])
            continue
        share = f"{each.holds} of {len(each.values)}"
        p_value = f"{each.p_value:.3f}" if len(each.values) > 1 else "–"
        numbers = [effect(each), limit(each), share, p_value]
        rows.append([*judged, *numbers, each.judgement.verdict])
    return {name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)}


def shown(found: Iterable[Finding]) -> dict[str, list]:
    """The columns that a page shows."""
    every = columns(found)
    return {name: every[name] for name in SHOWN}


def measured(found: Iterable[Finding]) -> str:
    """What is measured of every network for these rules, row by row, folded."""
    listed = [f"({row}) {each.rule.measured}" for row, each in enumerate(found, start=1)]
    said = html.escape("; ".join(listed))
    return f"<details><summary>what is measured, row by row</summary><p>{said}</p></details>"


def findings(parts: Parts) -> list[Finding]:
    """All rules, judged from the parts of the study, however many networks there are."""
    return [_finding(rule, parts) for rule in RULES]


def networks(parts: Parts, heads: tuple[int, ...] | None = None) -> list[str]:
    """The networks of a shape, or all, that have results."""
    names = {n.split(": ")[0] for n in parts if heads in (None, tuple(parts[n]["shape"]))}
    return sorted(names)


def of_network(parts: Parts, name: str) -> dict[str, Any]:
    """The parts of one network, by their own names."""
    return {n.split(": ")[1]: p for n, p in parts.items() if n.startswith(f"{name}: ")}


def _finding(rule: Rule, parts: Parts) -> Finding:
    values = {}
    for name in networks(parts, rule.heads):
        value = MEASURES[rule.id](of_network(parts, name), parts)
        if value is not None:
            values[name] = float(value)
    if not values:
        return Finding(rule, {}, unchecked())
    numbers = list(values.values())
    if rule.rule == "positive":
        return Finding(rule, values, positive(numbers))
    judge = {"below": below, "comparable": comparable}[rule.rule]
    return Finding(rule, values, judge(numbers, rule.limit))


def at_best(
    part: Parts, test: str | None = None, gp: Sequence[float] | None = None
) -> tuple[list[float], float]:
    """Accuracies of a draw at every width, and of the GP, each at its best temperature.

    That is the best in distribution, where `test` None looks, too; the GP's is among `gp`, by
    default all.
    """
    own, here = part["own"], test or part["own"]
    chosen = [best(row, part["temperatures"]) for row in part["accuracy"][own]]
    kept = [i for i, t in enumerate(part["gp_temperatures"]) if gp is None or t in gp]
    at = best(
        [part["gp_accuracy"][own][i] for i in kept], [part["gp_temperatures"][i] for i in kept]
    )
    theory = [part["accuracy"][here][i][j] for i, j in enumerate(chosen)]
    return theory, part["gp_accuracy"][here][kept[at]]


def gain(own: Parts, test: str | None = None, gp: Sequence[float] | None = None) -> float | None:
    """Accuracy at the narrowest width minus the GP's, as `at_best`, mean over draws."""
    found = [at_best(p, test, gp) for n, p in own.items() if n.startswith("draw")]
    return float(np.mean([theory[0] - limit for theory, limit in found])) if found else None


def authors_gain(own: Parts, test: str | None = None) -> float | None:
    """The same against the GP at the temperatures of the authors' plots."""
    return gain(own, test, AUTHORS_GP)


def _lost(own: Parts, gone: int, score: str, test: str | None = None) -> float:
    """Accuracy before pruning minus that without so many heads, by a score, zero ablation."""
    part = own["pruning"]
    curve = part["tests"][test or part["own"]]["zero"]["curves"][score]
    return float(curve[0] - curve[gone])


def _narrow(key: str, change: Callable[[float], float]) -> Callable:
    def measure(own, parts):
        if "draw 0" not in own:
            return None
        return change(own["draw 0"]["narrow"]["structure"][key])

    return measure


def _overlaps(reduce: Callable[[np.ndarray], float]) -> Callable:
    def measure(own, parts):
        if "draw 0" not in own:
            return None
        held = own["draw 0"]["narrow"]
        ours, gp = (np.square(held[key]) for key in ("overlaps", "gp_overlaps"))
        return reduce(ours) - reduce(gp)

    return measure


def best_temperatures(own: Parts) -> np.ndarray:
    """ln of the best temperature in distribution, `[draws, widths]`."""
    found = []
    for part in (p for n, p in own.items() if n.startswith("draw")):
        rows = part["accuracy"][part["own"]]
        found.append([part["temperatures"][best(row, part["temperatures"])] for row in rows])
    return np.log(found)


def _slope(own, parts):
    chosen = best_temperatures(own)
    if not len(chosen):
        return None
    widths = np.log(own["draw 0"]["widths"])
    return -float(np.mean(np.polyfit(widths, chosen.T, 1)[0]))


def _temperatures(own, parts):
    chosen = best_temperatures(own)
    if not len(chosen):
        return None
    apart = chosen.mean(axis=0) - np.log(PAPER_TEMPERATURES)
    return float(np.mean(np.abs(apart)) / math.log(2))


def _magnitude(own, parts):
    if "draw 0" not in own:
        return None
    part = own["draw 0"]
    rows = part["accuracy"][part["own"]]
    ends = [part["strength"][i][best(rows[i], part["temperatures"])] for i in (0, -1)]
    return math.log(ends[0] / ends[1])


def _descent(read: Callable[[Parts], float]) -> Callable:
    return lambda own, parts: read(own["draw 0"]["trained"]) if "draw 0" in own else None


def _sampled(read: Callable[[Parts], float]) -> Callable:
    return lambda own, parts: read(own["sampled"]) if "sampled" in own else None


def _of(test: str) -> Callable:
    return lambda own, parts: gain(own, test)


def _by_score(measure: Callable[..., float | None]) -> Callable[[str], Callable]:
    """A measure of pruning for any score, by its name; None without that part."""

    def by(score: str) -> Callable:
        return lambda own, parts: measure(own, parts, score) if "pruning" in own else None

    return by


def _correlation(key: str) -> Callable:
    @_by_score
    def measure(own, parts, score):
        part = own["pruning"]
        return part["tests"][part["own"]]["zero"]["correlation"][score][key]

    return measure


@_by_score
def _two_lowest(own, parts, score):
    part = own["pruning"]
    drop = part["tests"][part["own"]]["zero"]["drop"]
    return max(drop[i] for i in np.argsort(part["scores"][score], kind="stable")[:2])


@_by_score
def _up_to_three(own, parts, score):
    return -max(_lost(own, n, score, "fashion_mnist, authors") for n in (1, 2, 3))


@_by_score
def _improves(own, parts, score):
    return -_lost(own, 2, score, "fashion_mnist, authors")


@_by_score
def _identical(own, parts, score):
    every = (f"{name}: pruning" for name in networks(parts, SMALL))
    small = [_lost({"pruning": parts[part]}, 2, score) for part in every if part in parts]
    return _lost(own, 4, score) - float(np.mean(small)) if small else None


def _a_quarter(gone: int) -> Callable:
    return _by_score(lambda own, parts, score: _lost(own, gone, score))


#: Claims on pruning, each by the score of the authors' code and by that of the text.
_PRUNED = {
    "pruned, FashionMNIST": _improves,
    "pruned, FashionMNIST, large": _up_to_three,
    "score": _correlation("within"),
    "score, pooled": _correlation("pooled"),
    "score, large": _correlation("within"),
    "two lowest": _two_lowest,
    "a quarter": _a_quarter(2),
    "a quarter, large": _a_quarter(4),
    "identical": _identical,
}
#: One function for every rule: the parts of a network, and all parts, to its number or None.
MEASURES: dict[str, Callable[[Parts, Parts], float | None]] = {
    "gain": lambda own, parts: gain(own),
    "gain, deep": lambda own, parts: gain(own),
    "sampled accuracy": _sampled(
        lambda p: p["accuracy"]["omniglot"] - p["theory_accuracy"]["omniglot"]
    ),
    "sampled U": _sampled(lambda p: p["to_theory"] / p["to_gp"]),
    "ties": _narrow("largest_tie", lambda x: x - 0.5),
    "ties, deep": _narrow("largest_tie", lambda x: x - 0.5),
    "weighting": _narrow("weighting", lambda x: math.log(x / 2)),
    "blocks": _narrow("block_share", lambda x: x - 0.5),
    "first head": _narrow("first_head", lambda x: x - 0.5),
    "descent, blocks": _descent(lambda p: math.log(p["structure"]["block_ratio"])),
    "descent, signs": _descent(lambda p: p["equal_signs"] - p["renamed_signs"]),
    "alignment, overlap": _overlaps(np.max),
    "alignment, rank": _overlaps(lambda x: float(x[:10].sum())),
    "temperature grows": _slope,
    "temperatures": _temperatures,
    "magnitude": _magnitude,
    "gain, FashionMNIST": _of("fashion_mnist, authors"),
    "gain, MNIST": _of("mnist, authors"),
    "gain, MNIST, deep": _of("mnist, authors"),
    "gain, FashionMNIST, deep": _of("fashion_mnist, authors"),
    **{id: by(CODE) for id, by in _PRUNED.items()},
    **{f"{id}, text": by(TEXT) for id, by in _PRUNED.items()},
}


def part_of(rule: Rule) -> str:
    """How the names of the parts begin that a rule is measured in."""
    if rule.id.removesuffix(", text") in _PRUNED:
        return "pruning"
    return "sampled" if rule.id.startswith("sampled") else "draw"


#: Rules whose numbers are accuracies, shown in points.
POINTS = {
    id
    for id in MEASURES
    if id.startswith(("gain", "sampled accuracy", "pruned", "two lowest", "a quarter", "identical"))
}
