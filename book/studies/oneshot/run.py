"""The study of one-shot images over all trained networks that are kept.

    python -m book.studies.oneshot.run [--only NAME …] [--again] [--jobs N]

computes what `results.json` does not hold yet, part by part and network by network. Parts of
networks that have changed, and parts made by other code than what is here, are made anew.
"""

import argparse
import functools
import hashlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnpaths.tasks import images as image_sources
from book.studies import engine
from book.studies.oneshot import pruning, theory
from book.studies.oneshot.rules import DEEP, SMALL
from book.studies.oneshot.trained import NETWORKS, Compact, load, names, sources

NAME = "oneshot"
#: Draws of 600 training sequences for each shape; the largest networks are pruned only.
DRAWS: dict[tuple[int, ...], tuple[int, ...]] = {SMALL: (0, 1, 2), DEEP: (0, 1, 2)}
#: So many networks of the smallest shape have their exact posterior sampled, for as long as it
#: takes to bring R-hat below 1.01.
SAMPLED = 3
SAMPLES = {"chains": 2, "warmup": 80, "samples": 800}
#: Test sequences for pruning; the authors' sets out of distribution are whole.
SEQUENCES = {"omniglot": 10_000, "mnist": 4000, "fashion_mnist": 4000}
#: What the results rest on; a change of any of these makes them stale.
CODE = (
    *(f"attnpaths.{room}" for room in ("network", "paths", "kernels", "problem", "theory")),
    *(f"attnpaths.{room}" for room in ("posterior", "pruning", "tasks.oneshot", "tasks.pairs")),
    "attnpaths.tasks.images",
    "book.studies.oneshot.trained",
    "book.studies.oneshot.theory",
    "book.studies.oneshot.pruning",
)


class Study:
    """One trained network and the images; `part_…` are its parts."""

    def __init__(
        self,
        network: Compact,
        images: Mapping[str, image_sources.Images],
        *,
        sampled: bool,
        folder: Path,
    ):
        """Parts find earlier ones in the study's file in `folder`."""
        self.network, self.images, self.folder = network, images, folder
        self.draws = DRAWS.get(network.heads, ())
        self.sampled = sampled and bool(self.draws)

    @property
    def parts(self) -> dict[str, Callable[[], dict[str, Any]]]:
        """The parts of this network, in the order in which they need each other."""
        found: dict[str, Callable[[], dict[str, Any]]] = {"pruning": self.part_pruning}
        found |= {f"draw {d}": functools.partial(self.part_draw, d) for d in self.draws}
        if self.sampled:
            found["sampled"] = self.part_sampled
        return {
            f"{self.network.name}: {part}": functools.partial(self._signed, call)
            for part, call in found.items()
        }

    def _signed(self, call) -> dict[str, Any]:
        return call() | {"checksum": self.network.checksum, "shape": list(self.network.heads)}

    @functools.cached_property
    def first(self) -> theory.Data:
        """The first draw, whose order parameter is looked at."""
        return theory.drawn(self.network, self.images, 0)

    def part_pruning(self) -> dict[str, Any]:
        """All rules, on all test sets."""
        by_rule, again, U = pruning.scores(self.network, self.images, self.first)
        found = pruning.outputs(self.network, self.images, SEQUENCES)
        return pruning.pruned(self.network.heads, found, by_rule, again, U)

    def part_draw(self, seed: int) -> dict[str, Any]:
        """The theory and the Gaussian process on one draw."""
        data = self.first if seed == 0 else theory.drawn(self.network, self.images, seed)
        found = theory.solved(data, describe=seed == 0, progress=True)
        if seed == 0:
            own, U = self.network.U, found["narrow"]["U"]
            equal, renamed = theory.equal_signs(U, own, self.network.heads)
            found["narrow"]["structure"] = theory.structure(U, self.network.heads)
            found["trained"] = {
                "U": own,
                "structure": theory.structure(own, self.network.heads),
                "equal_signs": equal,
                "renamed_signs": float(renamed.mean()),
            }
        return found

    def part_sampled(self) -> dict[str, Any]:
        """Exact samples where the theory's order parameter is looked at."""
        held = engine.read(NAME, self.folder)["parts"][f"{self.network.name}: draw 0"]["narrow"]
        point = {"width": held["width"], "temperature": held["temperature"]}
        return theory.sampled(self.first, held["U"], **point, **SAMPLES, progress=True)


def run(
    *,
    only: Sequence[str] = (),
    again: bool = False,
    networks: Path = NETWORKS,
    folder: Path = engine.HERE,
    jobs: int = 1,
) -> dict[str, Any]:
    """Make the parts that are missing, or stale, of every network, or of those named in `only`.

    So many `jobs` run side by side. Samples are drawn last, network by network, since they need the
    theory's part and have chains to run side by side.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1; got {jobs}")
    known = names(networks)
    unknown = [name for name in only if name not in known]
    if unknown or not known:
        wanted = f"there is no network {unknown[0]!r}" if unknown else "there are no networks"
        raise ValueError(f"{wanted} in {networks}; there are: {', '.join(known) or 'none'}")
    # before images are loaded, and anything is computed
    held = [load(name, networks) for name in known]
    images = sources()
    small = [network.name for network in held if network.heads == SMALL]
    parts: dict[str, Callable[[], Any] | None] = {}
    checksums = {}
    for network in held:
        first = network.name in small[:SAMPLED]
        study = Study(network, images, sampled=first, folder=folder)
        checksums |= dict.fromkeys(study.parts, network.checksum)
        parts |= study.parts if not only or network.name in only else dict.fromkeys(study.parts)
    collect = functools.partial(
        engine.collect,
        NAME,
        data={name: md5(each.pixels.tobytes()) for name, each in images.items()},
        seeds=(0, 1, 2),
        fresh=lambda part, found: found["checksum"] == checksums[part],
        source=engine.fingerprint(*CODE),
        folder=folder,
    )
    last = {part for part in parts if part.endswith(": sampled")}
    first = {part: None if part in last else call for part, call in parts.items()}
    collect(first, again=parts.keys() - last if again else (), jobs=jobs)
    # chains of one network share the cores better than several networks do
    return collect(parts, again=last if again else ())


def md5(content: bytes) -> str:
    """The checksum by which data are known."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog=engine.command(NAME), description="Make what is missing of the study of all networks."
    )
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="these networks only")
    parser.add_argument("--again", action="store_true", help="make everything anew")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="default: all cores")
    parser.add_argument("--networks", type=Path, default=NETWORKS, help="their folder")
    parser.add_argument("--folder", type=Path, default=engine.HERE, help="folder of the results")
    options = vars(parser.parse_args(arguments))
    try:
        run(**options)
    except (ValueError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
