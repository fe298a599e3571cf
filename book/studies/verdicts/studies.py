"""The studies that outlast a page, read only if they are fresh.

A part is fresh if it was made by this version of the package and, where it is about a trained
network, by the code and from the network that are here; and a study if one number of it, computed
again now, comes out as the file has it.
"""

import functools
import importlib.metadata
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attnpaths import pruning, theory
from attnpaths.tasks import markov
from book.studies import engine
from book.studies.corrections import run as corrections
from book.studies.oneshot import claims, trained
from book.studies.oneshot import run as oneshot
from book.studies.sampling import run as sampling


class StaleResult(RuntimeError):
    """A result that is missing or was made by something else than what is here."""


class Study(Mapping):
    """The parts of a study by name; `used` collects those that were asked for."""

    def __init__(self, name: str, folder: str | os.PathLike = engine.HERE):
        """Read the file; nothing is checked until a part is asked for."""
        self.name, self.used = name, []
        try:
            self._held = engine.read(name, folder)
        except FileNotFoundError as missing:
            raise StaleResult(str(missing)) from None

    def __getitem__(self, part: str) -> dict[str, Any]:
        """One part, if it is there and fresh."""
        if part not in self._held["parts"]:
            raise self.stale(f"has no part {part!r}")
        made, here = self.provenance(part)["attnpaths"], importlib.metadata.version("attnpaths")
        if made != here:
            raise self.stale(f"has part {part!r} of version {made}, but this is {here}")
        self.used.append(part)
        return self._held["parts"][part]

    def __iter__(self):
        """Names of all parts."""
        return iter(self._held["parts"])

    def __len__(self) -> int:
        """How many parts there are."""
        return len(self._held["parts"])

    def provenance(self, part: str) -> dict[str, Any]:
        """Where a part came from."""
        return self._held["provenance"][part]

    def stale(self, why: str) -> StaleResult:
        """The error that says what to run."""
        return StaleResult(
            f"the study {self.name!r} {why}; make it anew with: {engine.command(self.name)}"
        )

    def agrees(self, what: str, now, held, *, within) -> None:
        """Raise unless a number, computed now, is what the file holds."""
        now, held = np.asarray(now, float), np.asarray(held, float)
        if now.shape != held.shape or not np.all(np.abs(now - held) <= within):
            raise self.stale(f"holds {what} = {held}, but computed now it is {now}")

    def cost(self, parts: list[str]) -> tuple[float, float]:
        """Seconds that these parts took, and the most memory, in GiB."""
        origins = [self.provenance(part) for part in dict.fromkeys(parts)]
        memory = max(origin["peak_memory_gib"] for origin in origins)
        return float(sum(origin["seconds"] for origin in origins)), float(memory)


def sampled(folder: str | os.PathLike = engine.HERE) -> Study:
    """Theory against samples on the chains; the theory's side is solved again at N = 10."""
    study, task = Study("sampling", folder), markov.paper_task()
    for part in ("exact, N = 10", "weights, N = 10"):
        saddle = theory.solve(
            task.network.features(task.train.x),
            task.train.y,
            heads=(2, 2),
            width=10,
            temperature=sampling.TEMPERATURE,
        )
        now = sampling.apart(study[part]["U"], saddle.U)
        study.agrees(f"U_apart of {part!r}", now, study[part]["U_apart"], within=1e-5)
    return study


def corrected(folder: str | os.PathLike = engine.HERE) -> Study:
    """How the theory's error falls; one of its distances is measured again."""
    study = Study("corrections", folder)
    held = study["fixed P, N = 1024"]
    now = corrections.distances(corrections.gaussian, 1024, held["examples"], [0])
    for key in ("U", "f"):
        error = held[f"{key}_mcse"][0]
        study.agrees(f"{key}[0] of 'fixed P, N = 1024'", now[key], held[key][:1], within=4 * error)
    return study


class Images(Study):
    """The one-shot study, whose parts belong to trained networks and to the code that is here."""

    def __init__(self, folder: str | os.PathLike = engine.HERE, networks: Path = trained.NETWORKS):
        """Read the study's file and the networks."""
        super().__init__(oneshot.NAME, folder)
        self._source = engine.fingerprint(*oneshot.CODE)
        self._networks = {name: trained.load(name, networks) for name in trained.names(networks)}

    def __getitem__(self, part: str) -> dict[str, Any]:
        """One part, if it is there, made by the code that is here, from a network that is here."""
        found = super().__getitem__(part)
        if self.provenance(part).get("source") != self._source:
            raise self.stale(f"has part {part!r} of other code than what is here")
        network = self._networks.get(part.split(": ")[0])
        if network is None or found["checksum"] != network.checksum:
            here = "none of that name is here" if network is None else "here is another"
            raise self.stale(f"has part {part!r} of a trained network, but {here}")
        return found

    def networks(self, heads: tuple[int, ...] | None = None) -> list[trained.Compact]:
        """The trained networks of a shape, or all."""
        return [n for n in self._networks.values() if heads in (None, n.heads)]

    @functools.cached_property
    def findings(self) -> dict[str, claims.Finding]:
        """What was found for every rule of the list."""
        return {found.rule.id: found for found in claims.findings(self)}

    def rests_on(self, found: claims.Finding) -> None:
        """Count only the parts of its networks that a finding was read from."""
        kind = claims.part_of(found.rule)
        self.used[:] = [
            part
            for part in self
            if part.split(": ")[0] in found.values and part.split(": ")[1].startswith(kind)
        ]


def images(folder: str | os.PathLike = engine.HERE, networks: Path = trained.NETWORKS) -> Images:
    """The one-shot study; every network must be in it, and one of its scores comes out again."""
    study = Images(folder, networks)
    for network in study.networks():
        held = study[f"{network.name}: pruning"]["scores"]["score, trained U"]
        now = list(pruning.head_scores(network.U, network.heads).values())
        study.agrees(f"scores of {network.name!r}", now, held, within=1e-4 * max(now))
    return study
