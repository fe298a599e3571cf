"""What pages show of the study: numbers of all networks of one shape, network first."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from book.studies.oneshot.claims import at_best, best_temperatures, networks, of_network
from book.studies.oneshot.theory import best, equal_signs

Parts = Mapping[str, Any]


def of(parts: Parts, heads: tuple[int, ...], part: str) -> dict[str, Any]:
    """One part of every network of a shape that has it, by the network's name."""
    every = {name: f"{name}: {part}" for name in networks(parts, heads)}
    return {name: parts[key] for name, key in every.items() if key in parts}


def accuracies(
    parts: Parts,
    heads: tuple[int, ...],
    test: str | None = None,
    gp: Sequence[float] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Accuracies `[S, W]` of the theory and `[S]` of the GP, as `at_best`, means over draws."""
    theory, limit = [], []
    for name in networks(parts, heads):
        own = of_network(parts, name).items()
        found = [at_best(part, test, gp) for key, part in own if key.startswith("draw")]
        if found:
            theory.append(np.mean([rows for rows, _ in found], axis=0))
            limit.append(np.mean([end for _, end in found]))
    return np.array(theory), np.array(limit)


def temperatures(parts: Parts, heads: tuple[int, ...]) -> np.ndarray:
    """The best temperature in distribution at every width, `[S, W]`, geometric mean over draws."""
    every = (best_temperatures(of_network(parts, name)) for name in networks(parts, heads))
    return np.array([np.exp(each.mean(axis=0)) for each in every if len(each)])


def limits(parts: Parts, heads: tuple[int, ...]) -> np.ndarray:
    """The best temperature of the GP in distribution, `[S]`, geometric mean over draws."""
    found = []
    for name in networks(parts, heads):
        chosen = [
            part["gp_temperatures"][best(part["gp_accuracy"][part["own"]], part["gp_temperatures"])]
            for key, part in of_network(parts, name).items()
            if key.startswith("draw")
        ]
        if chosen:
            found.append(np.exp(np.mean(np.log(chosen))))
    return np.array(found)


def signs(parts: Parts, heads: tuple[int, ...]) -> dict[str, tuple[float, np.ndarray]]:
    """Equal signs of trained U and theory, and those of all renamings, by the network's name."""
    return {
        name: equal_signs(part["trained"]["U"], part["narrow"]["U"], heads)
        for name, part in of(parts, heads, "draw 0").items()
    }


def regrets(
    parts: Parts,
    heads: tuple[int, ...],
    rules: Iterable[str],
    test: str | None = None,
    ablation: str = "zero",
) -> dict[str, np.ndarray]:
    """How far each rule stays below the best subset, `{rule: [S, K]}` for 1, 2, … heads gone."""
    found: dict[str, np.ndarray] = {}
    for rule in rules:
        rows = []
        for part in of(parts, heads, "pruning").values():
            one = part["tests"][test or part["own"]][ablation]
            curve = np.array(one["curves"][rule])
            rows.append(np.array(one["best"])[1 : len(curve)] - curve[1:])
        found[rule] = np.array(rows)
    return found


def correlations(
    parts: Parts, heads: tuple[int, ...], rules: Iterable[str], key: str = "within"
) -> dict[str, list[float]]:
    """Spearman's ρ of scores and drops, `{rule: [S]}`; networks without one are left out."""
    found = {}
    for rule in rules:
        each = (
            part["tests"][part["own"]]["zero"]["correlation"][rule][key]
            for part in of(parts, heads, "pruning").values()
        )
        found[rule] = [rho for rho in each if rho is not None]
    return found


def drops(parts: Parts, heads: tuple[int, ...], score: str) -> np.ndarray:
    """What each head alone costs, `[S, heads]`, from the lowest score to the highest."""
    rows = []
    for part in of(parts, heads, "pruning").values():
        order = np.argsort(part["scores"][score], kind="stable")
        rows.append(np.array(part["tests"][part["own"]]["zero"]["drop"])[order])
    return np.array(rows)
