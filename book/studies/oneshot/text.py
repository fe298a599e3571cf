"""What the paper's text says about one-shot images and costs, from the one-shot study."""

import math

import numpy as np

from attnpaths.tasks import images
from book.studies.oneshot import run as study
from book.studies.oneshot.panels import trained_for
from book.studies.verdicts.claims import Claims, pm
from book.studies.verdicts.rules import agree, bound, larger, number, stated, weakest

CLAIMS = Claims()

GROUP = "Text, images"
HOUR = 3600


@CLAIMS.add(
    "528k",
    GROUP,
    "Sec. 4.2",
    "gradient descent sees P = 528k examples, the entire training set",
    "oneshot",
)
def _pairs(see):
    record = see.images.trained("2_4").record
    seen = record["steps_per_epoch"] * record["settings"]["batch"]
    pairs = math.comb(1028, 2)
    text = f"{pairs:,} pairs of training classes, of which an epoch shows {seen:,}"
    return number(pairs, 0, 528_000, unit=1000, holds=seen <= pairs), text


@CLAIMS.add(
    "432", GROUP, "App. H.1", "Omniglot splits into 1028, 172 and 432 classes", "discrepancies"
)
def _classes(see):
    every = sum(images._CHARACTERS.values())
    left = every - 1028 - 172
    text = f"of {every:,} characters {left} are left to test"
    return number(left, 0, 432, unit=1, holds=False), text


@CLAIMS.add(
    "N < 136",
    GROUP,
    "Sec. 4.2, end",
    "theory and samples agree at N = 10, though U has 16 · 17 / 2 = 136 entries",
    "fig-oneshot-entries",
)
def _few_units(see):
    part, U = see.images["sampled_2_4"], np.asarray(see.images["theory_2_4"]["U"])
    found, error = np.asarray(part["U"]), np.asarray(part["mcse"])
    upper = np.triu_indices(len(U))
    away = np.abs(found - U)[upper] / error[upper]
    nearer = np.linalg.norm(found - U) < np.linalg.norm(found - np.eye(len(U)))
    apart = np.linalg.norm(found - U) / np.linalg.norm(U)
    text = f"{len(away)} entries, N = {part['width']}: off by {apart:.0%} of ‖U‖; "
    text += f"{np.mean(away <= 2):.0%} of entries within two standard errors"
    count = stated(len(away) == 136 and part["width"] < 136)
    return weakest(count, agree(away.max(), nearer=nearer, many=True)), text


@CLAIMS.add(
    "strong ties, images",
    GROUP,
    "Sec. 4.2",
    "U at N = 10 has strong entries off the diagonal, and weighs certain paths more than others",
    "fig-oneshot-U",
)
def _strong_ties(see):
    U = np.asarray(see.images["theory_2_4"]["U"])
    strength = np.diag(U)
    ties = np.abs(U / np.sqrt(np.outer(strength, strength)))[np.triu_indices(len(U), 1)]
    ratio = strength.max() / strength.min()
    text = f"as correlations up to {ties.max():.2f}; strengths from {strength.min():.1f} to "
    text += f"{strength.max():.1f}, in the GP limit 1; full: one above 0.5, and twofold; in kind: "
    return stated(ties.max() > 0.5 and ratio > 2, ties.max() > 0.1 and ratio > 1.2), (
        text + "above 0.1, and 1.2-fold"
    )


@CLAIMS.add(
    "blocks",
    GROUP,
    "Sec. 4.2",
    "correlations mostly occur between paths that share the first head",
    "fig-oneshot-U",
)
def _blocks(see):
    U = np.abs(np.asarray(see.images["theory_2_4"]["U"]))
    first = np.arange(len(U)) // 4
    upper = np.triu_indices(len(U), 1)
    same = (first[:, None] == first)[upper]
    share = U[upper][same].sum() / U[upper].sum()
    ratio = see.images["theory_2_4"]["block_ratio"]
    text = (
        f"{share:.0%} of all |U| off the diagonal, in {same.mean():.0%} of the entries, which are "
    )
    text += f"{ratio:.1f} times the others; full: more than half, in kind: larger than the others"
    return stated(share > 0.5, ratio > 1), text


@CLAIMS.add(
    "first head decides",
    GROUP,
    "Sec. 4.2",
    "the first head determines which paths are enhanced or suppressed (there 1, 3 and 2, 4)",
    "fig-oneshot-U",
)
def _enhanced(see):
    strength = np.diag(np.asarray(see.images["theory_2_4"]["U"])).reshape(4, 4)
    by = [np.var(strength.mean(axis=axis)) / np.var(strength) for axis in (1, 0)]
    heads = " > ".join(str(1 + h) for h in np.argsort(-strength.mean(axis=1)))
    text = f"h₁ explains {by[0]:.0%} of the variance of strengths, h₂ {by[1]:.0%}; h₁ = {heads}; "
    return stated(by[0] > 0.5, by[0] > by[1]), text + "full: more than half, in kind: more than h₂"


@CLAIMS.add(
    "optimal temperatures",
    GROUP,
    "App. H.2",
    "best temperatures 0.5 (N ≤ 100), 0.25 (to 1000), 0.1 (to 5000), 0.075 (10000)",
    "fig-oneshot-temperature",
)
def _temperatures(see):
    part = see.images["draws_2_4"]
    chosen = np.array(part["best"]["temperature"])
    inside = [
        column.min() <= said <= column.max()
        for column, said in zip(chosen.T, study.PAPER_TEMPERATURES, strict=True)
    ]
    typical = np.exp(np.log(chosen).mean(axis=0))
    falls = typical[0] > typical[-1]
    text = f"in the range of {len(chosen)} draws at {sum(inside)} of {len(inside)} widths; typical "
    text += (
        f"{typical[0]:.2f} at N = 10, {typical[-1]:.2f} at N = 10000; full: at all, in kind: falls"
    )
    return stated(all(inside), falls), text


@CLAIMS.add(
    "temperature grows",
    GROUP,
    "App. H.2",
    "the best temperature grows consistently as N gets smaller",
    "fig-oneshot-temperature",
)
def _temperature_grows(see):
    part = see.images["draws_2_4"]
    slopes = np.polyfit(np.log(part["widths"]), np.log(part["best"]["temperature"]).T, 1)[0]
    slope, error = slopes.mean(), slopes.std(ddof=1) / np.sqrt(len(slopes))
    typical = np.exp(np.log(part["best"]["temperature"]).mean(axis=0))
    steps = np.diff(typical)
    text = f"as N to the power {pm(slope, error, 2)}; the mean over draws falls, or stays, in "
    text += f"{np.sum(steps <= 0)} of {len(steps)} steps from one width to the next; full: in all"
    return weakest(
        larger(-slope, error), stated(np.all(steps <= 0), typical[0] > typical[-1])
    ), text


@CLAIMS.add(
    "magnitude, images",
    GROUP,
    "App. H.2",
    "the order parameter grows as N gets smaller, here too",
    "fig-oneshot-small",
)
def _magnitude(see):
    strengths = {
        key: np.trace(see.images[f"theory_{key}"]["U"]) / len(see.images[f"theory_{key}"]["U"])
        for key in ("2_4", "3_3")
    }
    text = "; ".join(f"{key.replace('_', ' × ')}: {value:.1f}" for key, value in strengths.items())
    text = f"mean strength of a path at N = 10, layers × heads {text}; in the GP limit 1"
    return stated(all(value > 1 for value in strengths.values())), text


@CLAIMS.add(
    "theory hours",
    "Costs",
    "App. E",
    "100 widths and temperatures, each below 12 hours of an A100",
    "fig-oneshot-map",
)
def _theory_hours(see):
    part = see.images["sweep_2_4"]
    points = len(part["widths"]) * len(part["temperatures"])
    text = f"all {points} in {part['seconds'] / 60:.1f} minutes, {part['converged']} converged, "
    text += f"{np.mean(part['evaluations']):.1f} evaluations each"
    judged = bound(part["seconds"] / points, 12 * HOUR)
    return weakest(stated(points == 100 == part["converged"]), judged), text


@CLAIMS.add(
    "training hours",
    "Costs",
    "App. H.1",
    "every network trains in less than 2 hours of an A100",
    "fig-oneshot-training",
)
def _training_hours(see):
    hours, rows = [], []
    for key in study.NETWORKS:
        record = see.images.trained(key).record
        whole = record["seconds"] * 10 / record["settings"]["epochs"] / HOUR
        hours.append(whole)
        row = f"{key.replace('_', ' × ')} {record['seconds'] / HOUR:.1f} hours"
        rows.append(row + trained_for(see, key))
    text = f"on a CPU with {record['threads']} thread(s), layers × heads: {', '.join(rows)}"
    return bound(max(hours) * HOUR, 2 * HOUR), text + "; no A100 here"
