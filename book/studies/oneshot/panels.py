"""Rows on one-shot images and pruning: the rules of the list, and what needs no network."""

import math

import numpy as np

from attnpaths import Network
from attnpaths.tasks import images, oneshot
from book.studies.oneshot import claims
from book.studies.oneshot.rules import LARGE, RULES, SMALL, Rule
from book.studies.oneshot.sizes import size
from book.studies.verdicts.claims import Claims
from book.studies.verdicts.rules import bound, number, stated, weakest

CLAIMS = Claims()
HOUR = 3600
#: The figure that shows what was measured for each rule.
SHOWN = {
    "gain": "fig-oneshot-accuracy",
    "gain, deep": "fig-oneshot-deep",
    "sampled accuracy": "fig-oneshot-sampled",
    "sampled U": "fig-oneshot-sampled",
    "ties": "fig-oneshot-structure",
    "ties, deep": "fig-oneshot-deep-U",
    "weighting": "fig-oneshot-structure",
    "blocks": "fig-oneshot-structure",
    "first head": "fig-oneshot-structure",
    "descent, blocks": "fig-descent-U",
    "descent, signs": "fig-descent-signs",
    "alignment, overlap": "fig-oneshot-alignment",
    "alignment, rank": "fig-oneshot-alignment",
    "temperature grows": "fig-oneshot-temperature",
    "temperatures": "fig-oneshot-temperature",
    "magnitude": "fig-oneshot-small",
    "gain, FashionMNIST": "fig-descent-transfer",
    "gain, MNIST": "fig-descent-transfer",
    "gain, MNIST, deep": "fig-descent-transfer",
    "gain, FashionMNIST, deep": "fig-descent-transfer",
    "pruned, FashionMNIST": "fig-pruning-transfer",
    "pruned, FashionMNIST, large": "fig-pruning-transfer",
    "score": "fig-pruning-one",
    "score, large": "fig-pruning-correlations",
    "two lowest": "fig-pruning-one",
    "a quarter": "fig-pruning-slider",
    "a quarter, large": "fig-pruning-regret",
    "identical": "fig-pruning-regret",
}
#: Panels that show the same of the same network again.
ALSO = {"score": "Fig. 7a", "a quarter": "Fig. 7b"}
#: A claim is a row once: other readings of it are told in that row.
BESIDE = {"score": ("score, pooled", "score, text")} | {
    rule.id: (f"{rule.id}, text",)
    for rule in RULES
    if f"{rule.id}, text" in {other.id for other in RULES} and rule.id != "score"
}


@CLAIMS.add(
    "3a",
    "Schematics",
    "Fig. 3a",
    "the task: which of two images is like the third?",
    "fig-oneshot-task",
)
def _task(see):
    glyphs = images.load("glyphs", classes=20, progress=False)
    drawn = oneshot.draw(glyphs, 100, seed=0)
    tokens = oneshot.Encoder(glyphs, oneshot.label_vectors())(drawn[:2]).shape
    classes = glyphs.labels[drawn.images]
    match = np.where(classes[:, 2] == classes[:, 0], drawn.signs, -drawn.signs)
    distinct = np.all(classes[:, 0] != classes[:, 1])
    text = f"100 sequences of glyphs: {tokens[1]} tokens of {tokens[2]} numbers, the label is "
    return (
        stated(np.all(match == drawn.y) and distinct and tokens[1] % 3 == 0),
        text + f"that of the matching image in {np.mean(match == drawn.y):.0%}",
    )


def _add(rule: Rule) -> None:
    place = rule.place + (f", {ALSO[rule.id]}" if rule.id in ALSO else "")

    @CLAIMS.add(rule.id, rule.group, place, rule.says, SHOWN[rule.id])
    def _find(see):
        found = see.images.findings[rule.id]
        see.images.rests_on(found)
        text = claims.summary(found)
        for id in BESIDE.get(rule.id, ()):
            other = see.images.findings[id]
            text += f"; {_other(id)}: {claims.summary(other)}, {other.judgement.verdict}"
        return found.judgement, text


def _other(id: str) -> str:
    return "by the text's score" if id.endswith(", text") else "over both layers together"


for _rule in RULES:
    if _rule.id in SHOWN:
        _add(_rule)


@CLAIMS.add(
    "528k",
    "Images",
    "Sec. 4.2",
    "gradient descent sees P = 528k examples, the entire training set",
    "descent",
)
def _pairs(see):
    record = see.images.networks(SMALL)[0].record
    seen = record["steps_per_epoch"] * record["settings"]["batch"]
    pairs = math.comb(1028, 2)
    text = (
        f"{pairs:,} pairs of training classes, of which an epoch draws {seen:,}, with replacement"
    )
    return number(pairs, 0, 528_000, unit=1000, holds=seen <= pairs), text


@CLAIMS.add(
    "432", "Images", "App. H.1", "Omniglot splits into 1028, 172 and 432 classes", "discrepancies"
)
def _classes(see):
    every = sum(images._CHARACTERS.values())
    left = every - 1028 - 172
    text = f"of {every:,} characters {left} are left to test"
    return number(left, 0, 432, unit=1, holds=False), text


def _share_of_parameters(heads, place: str, says: str) -> None:
    @CLAIMS.add(f"25 %, {sum(heads)} heads", "Pruning", place, says, "pruning")
    def _find(see):
        settings = see.images.networks(heads)[0].record["settings"]
        dim = see.images.networks(heads)[0].network.dim

        def parameters(counts):
            shapes = ((count, settings["key_dim"], dim) for count in counts)
            network = Network([(np.zeros(shape),) * 2 for shape in shapes], readout="mean")
            return size(network, width=settings["width"], tokens=48)

        first, *rest = heads
        before, after = parameters(heads), parameters((first - sum(heads) // 4, *rest))
        all_, own = (
            1 - getattr(after, name) / getattr(before, name)
            for name in ("parameters", "head_parameters")
        )
        text = f"{all_:.1%} of all parameters, {own:.1%} of those in heads"
        return number(all_, 0, 0.25, unit=0.01, holds=abs(own - 0.25) < 0.005), text


_share_of_parameters(SMALL, "Sec. 4.2, pruning", "two of eight heads are 25 % of the parameters")
_share_of_parameters(LARGE, "App. H.2", "four of sixteen heads are 25 % of the network")


@CLAIMS.add(
    "theory hours",
    "Costs",
    "App. E",
    "100 widths and temperatures, each below 12 hours of an A100",
    "fig-oneshot-temperature",
)
def _theory_hours(see):
    parts = [see.images[f"{network.name}: draw 0"] for network in see.images.networks(SMALL)]
    points = [len(part["widths"]) * len(part["temperatures"]) for part in parts]
    seconds = max(part["sweep_seconds"] for part in parts)
    text = f"all {points[0]} in {seconds / 60:.1f} minutes at most, on one core; "
    text += f"{sum(part['converged'] for part in parts)} of {sum(points)} converged, "
    text += f"{sum(part['evaluations'] for part in parts) / sum(points):.1f} evaluations each"
    whole = all(part["converged"] == 100 == n for part, n in zip(parts, points, strict=True))
    return weakest(stated(whole), bound(seconds / points[0], 12 * HOUR)), text


@CLAIMS.add(
    "training hours",
    "Costs",
    "App. H.1",
    "every network trains in less than 2 hours of an A100",
    "fig-descent-training",
)
def _training_hours(see):
    records = [network.record for network in see.images.networks()]
    hours = [each["seconds"] / HOUR for each in records]
    whole = [h * 10 / each["settings"]["epochs"] for h, each in zip(hours, records, strict=True)]
    text = f"{len(hours)} networks, each on one core of a CPU: {min(hours):.1f} to "
    text += f"{max(hours):.1f} hours, ten epochs of the slowest {max(whole):.1f}; no A100 here"
    return bound(max(whole) * HOUR, 2 * HOUR), text
