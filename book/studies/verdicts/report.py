"""How much of the paper stands: every panel and claim, what we find, and a verdict by rule.

`report()` computes the whole table. What takes milliseconds is computed now; what takes hours is
read from the other studies, if they are fresh.
"""

import dataclasses
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from book.studies import engine
from book.studies.markov import panels as chain_panels
from book.studies.markov import text as chain_text
from book.studies.markov.problems import Chains
from book.studies.oneshot import panels as images
from book.studies.oneshot.trained import NETWORKS
from book.studies.sampling import claims as sampled
from book.studies.verdicts.claims import GROUPS, RESULTS, Claim, Claims
from book.studies.verdicts.rules import Judgement
from book.studies.verdicts.studies import Images, Study
from book.studies.verdicts.studies import corrected as _corrected
from book.studies.verdicts.studies import images as _images
from book.studies.verdicts.studies import sampled as _sampled

#: All claims of the paper that this book judges.
CLAIMS = Claims(*(m.CLAIMS for m in (chain_panels, chain_text, images, sampled)))


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """What findings rest on: problems to solve, and the studies."""

    chains: Chains
    sampling: Study
    corrections: Study
    images: Images

    @property
    def studies(self) -> tuple[Study, ...]:
        """The studies that were not computed now."""
        return self.sampling, self.corrections, self.images


def evidence(
    folder: str | os.PathLike = engine.HERE, networks: str | os.PathLike = NETWORKS
) -> Evidence:
    """Make the problems and check the studies in `folder`; raises `StaleResult`.

    The study that is most easily stale, of the trained `networks`, is checked first.
    """
    images = _images(folder, Path(networks))
    return Evidence(Chains(), _sampled(folder), _corrected(folder), images)


@dataclasses.dataclass(frozen=True)
class Row:
    """A claim with its verdict, what we find, and what finding it cost.

    `live` rows were computed now; the seconds of others are those of the parts they rest on.
    `memory` is in GiB, the most that the computing process had held until then.
    """

    claim: Claim
    judgement: Judgement
    finds: str
    live: bool
    seconds: float
    memory: float

    @property
    def markdown(self) -> str:
        """A row of a Markdown table, with links to figures and pages of the book."""
        shown = self.claim.shown
        link = f"{{numref}}`{shown}`" if shown.startswith("fig-") else f"{{doc}}`{shown}`"
        verdict, rule = self.judgement
        cells = (
            f"**{self.claim.place}**: {self.claim.says}",
            f"{self.finds} ({link})",
            f"**{verdict}**" + (f" ({rule})" if rule else ""),
            f"{_time(self.seconds)}, {self.memory:.1f} GiB",
        )
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


@dataclasses.dataclass(frozen=True)
class Report:
    """All rows, in the order of the table."""

    rows: tuple[Row, ...]

    def group(self, name: str) -> "Report":
        """The rows of one group."""
        return Report(tuple(row for row in self.rows if row.claim.group == name))

    @property
    def results(self) -> "Report":
        """The rows that are results: neither schematic pictures nor costs."""
        return Report(tuple(row for row in self.rows if row.claim.group in RESULTS))

    def count(self, verdict: str) -> int:
        """How many rows have this verdict."""
        return sum(row.judgement.verdict == verdict for row in self.rows)

    def __getitem__(self, id: str) -> Row:
        """The row of one claim."""
        return next(row for row in self.rows if row.claim.id == id)

    @property
    def markdown(self) -> str:
        """The rows as a table, which scrolls in its box where a page is narrow."""
        head = ("the paper says", "this book finds", "verdict (rule)", "cost")
        options = [":class: status", ":widths: 29 41 16 14", ""]
        lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
        lines += [row.markdown for row in self.rows]
        return "\n".join(["```{table}", *options, *lines, "```"])

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        """A table in notebooks and in the book."""
        return {"text/markdown": self.markdown, "text/plain": f"{len(self.rows)} rows"}


def report(see: Evidence, claims: Callable[[Claim], bool] = lambda claim: True) -> Report:
    """Judge all claims, or those that `claims` picks, and note what each cost."""
    found = [_row(each, see) for each in CLAIMS.values() if claims(each)]
    return Report(tuple(sorted(found, key=_place)))


def _place(row: Row) -> tuple[int, bool, str]:
    """By group and panel or section; within one, as the claims are listed."""
    place = row.claim.place.split(",")[0]
    return GROUPS.index(row.claim.group), place.startswith("App."), place


def _row(claim: Claim, see: Evidence) -> Row:
    for study in see.studies:
        study.used.clear()
    start = time.perf_counter()
    judgement, finds = claim.find(see)
    seconds, memory = time.perf_counter() - start, engine.peak_memory()
    read = [study for study in see.studies if study.used]
    if read:
        costs = [study.cost(study.used) for study in read]
        seconds, memory = sum(each for each, _ in costs), max(each for _, each in costs)
    # a minus sign, but not that of an exponent
    finds = re.sub(r"(?<![\de])-(?=\d)", "−", finds)
    return Row(claim, judgement, finds, not read, seconds, memory)


def _time(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60), ("s", 1)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{1000 * seconds:.0f} ms"
