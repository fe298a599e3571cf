"""The one-shot study: theory at P = 600, the order parameter three ways, and pruning.

    python -m book.studies.oneshot.run [--weights FOLDER] [--only PART …] [--again]

computes what `results.json` does not hold yet, for every trained network whose weights are in
FOLDER (by default `weights/` beside this file). Parts are named after their network:
`sweep_2_4` is of two layers of four heads. Parts that were made with other weights than those
in FOLDER are made anew; where a file holds the heads alone, what needs its other weights is kept.
"""

import argparse
import functools
import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from attnpaths import empirical_order_parameter
from attnpaths.tasks import images as image_sources
from attnpaths.tasks import oneshot
from attnpaths.training import Trained, load_weights
from book.studies import engine
from book.studies.oneshot.pruning import outputs, pruned, rank_correlation, trained_accuracy
from book.studies.oneshot.theory import (
    TEMPERATURES,
    WIDTHS,
    Features,
    against_renamed,
    agreement,
    block_ratio,
    described,
    draws,
    features,
    order_parameter,
    renamings,
    sampled,
    solved,
    sweep,
)

__all__ = [
    "NETWORKS",
    "PAPER_TEMPERATURES",
    "TEMPERATURES",
    "WIDTHS",
    "Features",
    "against_renamed",
    "agreement",
    "block_ratio",
    "dark",
    "described",
    "draws",
    "features",
    "order_parameter",
    "outputs",
    "pruned",
    "rank_correlation",
    "renamings",
    "sampled",
    "solved",
    "sweep",
    "trained_accuracy",
]

NAME = "oneshot"
WEIGHTS = engine.HERE / NAME / "weights"
NETWORKS = {
    "2_4": "omniglot-2-4-128.npz",
    "3_3": "omniglot-3-3-128.npz",
    "2_8": "omniglot-2-8-64.npz",
}
SOURCES = ("omniglot", "mnist", "fashion_mnist")
#: The paper's optimal temperatures of the network (2, 4), for each of `WIDTHS`.
PAPER_TEMPERATURES = (0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.1, 0.1, 0.075)
#: The width at which order parameters are compared.
NARROW = 10
#: Further widths whose exact posterior is sampled, for its accuracy.
WIDER = (100, 1000)
#: Draws of training and test examples; the first is that of the sweep.
SEEDS = (0, 1, 2, 3, 4, 5)
TEST_SEQUENCES = 10_000
# Parts that compare with the trained network, or prune it: heads alone do not make them.
_OF_VALUES = ("trained", "theory", "sampled", "pruning")
# The larger networks are solved at a few points near the best of the smaller one.
_FEW = {
    "3_3": {"widths": (10, 100, 1000, 10_000), "temperatures": (0.1, 0.25, 0.5, 0.75, 1.0)},
    "2_8": {"widths": (10, 100, 1000), "temperatures": (0.05, 0.1, 0.25, 0.5, 1.0)},
}


class Study:
    """One trained network and the images it is tested on; `part_…` are the parts."""

    def __init__(self, key: str, path: Path, images: Mapping[str, Any], folder: Path):
        """Read the weights; `folder` holds the study's file, where parts find earlier ones."""
        self.key, self.images, self.folder = key, images, folder
        self.path, self.trained = path, load_weights(path)
        self.md5 = heads_md5(self.trained)

    @property
    def parts(self) -> dict[str, Callable[[], dict]]:
        """The parts of this network, in the order in which they need each other."""
        return {
            f"{name}_{self.key}": functools.partial(self._made, name) for name in names(self.key)
        }

    @property
    def impossible(self) -> set[str]:
        """The parts that cannot be made, since the file holds the heads alone."""
        if self.trained.weights is not None:
            return set()
        return {f"{name}_{self.key}" for name in names(self.key) if name in _OF_VALUES}

    def _made(self, name: str) -> dict[str, Any]:
        return getattr(self, f"part_{name}")() | {"weights_md5": self.md5}

    def _held(self, name: str) -> dict[str, Any]:
        return engine.read(NAME, self.folder)["parts"].get(f"{name}_{self.key}")

    def task(self, seed: int) -> Features:
        """Features of one draw of 600 training sequences and 1000 of each test."""
        own, *others = self.images.values()
        task = oneshot.make_task(
            seed, source=own, out_of_distribution=others, labels=self.trained.labels
        )
        return features(self.trained.network, task)

    @functools.cached_property
    def first(self) -> Features:
        """The features of the sweep."""
        return self.task(SEEDS[0])

    @functools.cached_property
    def outputs(self) -> dict[str, tuple]:
        """Outputs of every path on many test sequences."""
        return outputs(self.trained, self.images, examples=TEST_SEQUENCES)

    @functools.cached_property
    def own(self):
        """The order parameter of the trained weights."""
        return empirical_order_parameter(self.trained.weights)

    def at_best(self, width: int = NARROW) -> dict[str, int | float]:
        """A width with its best temperature; by default where order parameters are compared."""
        found = self._held("sweep")
        best = found["best_temperature"][found["widths"].index(width)]
        return {"width": width, "temperature": best}

    def part_trained(self) -> dict[str, Any]:
        """Accuracies of the trained network, and its own order parameter."""
        return trained_accuracy(self.trained, self.outputs)

    def part_sweep(self) -> dict[str, Any]:
        """The theory on a grid: the paper's for the network (2, 4)."""
        if self.key in _FEW:
            return sweep(self.first, **_FEW[self.key], progress=True)
        return sweep(self.first, progress=True) | {"paper_temperature": PAPER_TEMPERATURES}

    def part_theory(self) -> dict[str, Any]:
        """The theory's order parameter of a narrow network, beside gradient descent's."""
        return order_parameter(self.first, **self.at_best(), beside={"gradient_descent": self.own})

    def part_draws(self) -> dict[str, Any]:
        """Narrow networks against the GP, over independent draws."""
        return draws(self.task, seeds=SEEDS)

    def part_sampled(self) -> dict[str, Any]:
        """The order parameter from its exact posterior."""
        beside = {"theory": self._held("theory")["U"], "gradient_descent": self.own}
        return sampled(self.first, **self.at_best(), beside=beside, progress=True)

    def part_wider(self) -> dict[str, Any]:
        """Accuracies from the exact posterior of wider networks, and how near its U is."""
        found = [
            sampled(
                self.first,
                **self.at_best(width),
                beside={"theory": solved(self.first, **self.at_best(width)).U},
                progress=True,
            )
            for width in WIDER
        ]
        # what only one width is looked at for
        bulky = ("U", "mcse", "scores", "block_ratio")
        return {"runs": [{k: run[k] for k in run if k not in bulky} for run in found]}

    def part_pruning(self) -> dict[str, Any]:
        """Pruning by the scores of every order parameter there is, and by the baselines."""
        sources = {"theory": "theory", "sampled": "sampled", "gradient_descent": "trained"}
        held = {name: self._held(part) for name, part in sources.items()}
        scores = {name: part["scores"] for name, part in held.items() if part}
        return pruned(
            self.trained.network, self.trained.weights, self.outputs, scores, tokens=oneshot.TOKENS
        )


def names(key: str) -> list[str]:
    """The parts of a network; only the smallest is drawn again and sampled.

    >>> names("3_3")
    ['trained', 'sweep', 'theory', 'pruning']
    """
    longer = ["draws", "sampled", "wider"] if key == "2_4" else []
    return ["trained", "sweep", "theory", *longer, "pruning"]


def run(
    weights: Path = WEIGHTS,
    *,
    only: Sequence[str] = (),
    again: bool = False,
    folder: Path = engine.HERE,
) -> dict[str, Any]:
    """Make the parts that are missing, or stale, of every network whose weights are there."""
    known = [f"{name}_{key}" for key in NETWORKS for name in names(key)]
    unknown = [part for part in only if part not in known]
    if unknown:
        raise ValueError(f"there is no part {unknown[0]!r}; the parts are {', '.join(known)}")
    paths = {key: weights / file for key, file in NETWORKS.items()}
    present = {key: path for key, path in paths.items() if path.exists()}
    if not present:
        wanted = ", ".join(NETWORKS.values())
        raise FileNotFoundError(
            f"no trained network in {weights}: it needs one of {wanted}; "
            "train them with python -m attnpaths.training --out FOLDER"
        )
    images = {
        name: image_sources.load(name, classes=None if name == SOURCES[0] else (0, 1))
        for name in SOURCES
    }
    images[SOURCES[0]] = dark(images[SOURCES[0]])
    studies = {key: Study(key, path, images, folder) for key, path in present.items()}
    current = {f"{n}_{k}": study.md5 for k, study in studies.items() for n in names(k)}

    def fresh(part, found):
        return found["weights_md5"] == current[part]

    exists = engine.file(NAME, folder).exists()
    held = engine.read(NAME, folder)["parts"] if exists else {}
    # parts of networks whose weights are not here stay as they are
    parts: dict[str, Callable[[], Any] | None] = dict.fromkeys(known)
    for study in studies.values():
        missing = []
        for part, call in study.parts.items():
            stays = part in held and fresh(part, held[part])
            if part not in study.impossible:
                parts[part] = call if not only or part in only or stays else None
            elif part in only or not (only or stays):
                missing.append(part)
        if missing:
            raise ValueError(
                f"{study.path} holds the heads alone, without the weights that are needed for "
                f"{', '.join(sorted(missing))}; give a folder with all weights (--weights), or "
                "name other parts (--only)"
            )
    data = {name: md5(each.pixels.tobytes()) for name, each in images.items()}
    chosen = again or [part for part in only if parts[part]]
    return engine.collect(
        NAME, parts, data=data, seeds=SEEDS, again=chosen, fresh=fresh, folder=folder
    )


def dark(images: image_sources.Images) -> image_sources.Images:
    """Characters with dark ink on white paper, with which the networks of this study were trained.

    Images are loaded with bright ink on black, as the authors have them.
    """
    return images.inverted()


def md5(content: bytes) -> str:
    """The checksum by which data and weights are known."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def heads_md5(trained: Trained) -> str:
    """The checksum of what the theory takes from a trained network: heads and label vectors.

    Value weights and history do not count: the file without them is of the same network.
    """
    arrays = [*jax.tree.leaves(trained.network.heads), trained.labels]
    return md5(b"".join(np.asarray(array, np.float64).tobytes() for array in arrays))


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog=engine.command(NAME), description="Make what is missing of the one-shot study."
    )
    parser.add_argument("--weights", type=Path, default=WEIGHTS, help="folder of trained networks")
    parser.add_argument("--only", nargs="+", default=(), metavar="PART", help="make these anew")
    parser.add_argument("--again", action="store_true", help="make everything anew")
    parser.add_argument("--folder", type=Path, default=engine.HERE, help="folder of the results")
    options = parser.parse_args(arguments)
    try:
        run(options.weights, only=options.only, again=options.again, folder=options.folder)
    except (ValueError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
