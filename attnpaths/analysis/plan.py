"""Which paths of a deep network are followed: a window of its layers, in blocks, or some heads.

A network of L residual layers has ∏(H_ℓ + 1) paths, more than any machine holds where L is 12.
Layers can be put together in blocks, in each of which a path goes through at most one head and
passes the other layers by their skips. These are some of the network's own paths, and their
theory is exact: along them, a block is one layer with a skip and with the heads of all its layers,
but for the factors H_ℓ^(−1/2), which `scales` puts right. The same holds of the paths through
some of the heads alone. Heads may be chosen, or drawn at random; those that are drawn stand for all
heads of their block, and are weighed so that the kernel of the GP limit is right on average.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attnpaths import _checks, pruning
from attnpaths.network.ways import Ways

_Heads = tuple[tuple[int, int], ...]


@dataclasses.dataclass(frozen=True)
class Plan:
    """The layers that are analysed: their `heads`, `residual`, the `first`'s number, and `blocks`.

    `blocks` counts the layers of each block; `kept` are the heads of each that are followed,
    (layer, head), or None for all; `sampled` is how many of each block were drawn at random.

    >>> plan = Plan.of((12,) * 12, blocks=1, most_paths=200)
    >>> plan.paths, plan.theory_heads, plan.head_names[12], plan.path_names[:2]
    (145, (144,), (2, 1), ['skip', '1.1'])
    >>> Plan.of((12,) * 12).first, Plan.of((4, 4, 2, 2), layers=(3, 4)).bytes(100, 16) < 10**6
    (12, True)
    >>> Plan.of((12,) * 12, chosen=[(3, 1), (3, 7), (12, 2)]).path_names
    ['skip', '12.2', '3.1', '3.1 → 12.2', '3.7', '3.7 → 12.2']
    >>> plan = Plan.of((12,) * 12, sampled=1)
    >>> plan.paths, len(plan.head_names), plan.first
    (64, 6, 7)
    >>> other = plan.drawn(np.random.default_rng(1))
    >>> other.paths, other.head_names == plan.head_names
    (64, False)
    """

    heads: tuple[int, ...]
    residual: tuple[bool, ...]
    first: int
    blocks: tuple[int, ...]
    kept: tuple[_Heads, ...] | None = None
    sampled: int = 0

    @classmethod
    def of(
        cls,
        heads: Sequence[int],
        *,
        layers: Sequence[int] | None = None,
        blocks: int | None = None,
        residual: bool | Sequence[bool] = True,
        chosen: Sequence[tuple[int, int]] | None = None,
        sampled: int | None = None,
        outputs: int = 1,
        most_paths: int = 100,
        seed: int = 0,
    ) -> "Plan":
        """The window `layers` = (first, last) of a network with these `heads`, in so many `blocks`.

        Both count from 1. Without either, it is every path of as many of the last layers as keep
        within `most_paths`, counted once for each of the outputs; with `layers` alone, as many
        blocks as do; with `blocks` alone, all layers. With `chosen` heads, [(layer, head), …], the
        paths through these alone, in as many blocks as keep within; with `sampled`, so many heads
        of each block, drawn by `seed`. Asks for nothing but these numbers, so that what is too
        large is refused before anything is computed.
        """
        heads = _checks.head_counts("heads", heads)
        skips = _checks.skips(residual, len(heads))
        most = _checks.whole("most_paths", most_paths, least=1)
        outputs = _checks.whole("outputs", outputs, least=1)
        seed = _checks.whole("seed", seed, least=0)
        if chosen is not None:
            if layers is not None or sampled is not None:
                raise ValueError(
                    "chosen heads say which layers are followed, and are not drawn: leave `layers` "
                    "and `sampled` out"
                )
            return _largest(_through(heads, skips, chosen, blocks), outputs, most, len(heads))
        count = 0 if sampled is None else _checks.whole("sampled", sampled, least=1)
        whole = layers is None and blocks is None
        windows = [(first, len(heads)) for first in range(len(heads), 0, -1)]
        plans = []
        for first, last in windows if whole else [_window(layers, len(heads))]:
            _passable(skips, first, last, range(first, last + 1))
            window, skip = heads[first - 1 : last], skips[first - 1 : last]
            for n in [len(window)] if whole else _choices(blocks, skip):
                plans.append(cls(window, skip, first, _sizes(len(window), n), sampled=count))
        plan = _largest(plans, outputs, most, len(heads))
        return plan.drawn(np.random.default_rng(seed)) if count else plan

    def drawn(self, rng: np.random.Generator) -> "Plan":
        """The same plan with other heads drawn, `sampled` of each block without replacement."""
        kept = []
        for span, many in zip(self.spans, self.theory_heads, strict=True):
            ends = np.cumsum([0, *(self.heads[n - self.first] for n in span)])
            picked = np.sort(rng.choice(int(ends[-1]), many, replace=False))
            place = np.searchsorted(ends, picked, side="right") - 1
            numbers = (picked - ends[place] + 1).tolist()
            kept.append(tuple((span[i], h) for i, h in zip(place, numbers, strict=True)))
        return dataclasses.replace(self, kept=tuple(kept))

    @property
    def spans(self) -> list[range]:
        """The layers of each block, numbered as in the network."""
        ends = itertools.accumulate(self.blocks, initial=self.first)
        return [range(first, end) for first, end in itertools.pairwise(ends)]

    @property
    def members(self) -> list[list[tuple[int, int]]]:
        """The heads of each block that are followed, named (layer, head) as in the network."""
        return self.meant if self.kept is None else [list(block) for block in self.kept]

    @property
    def meant(self) -> list[list[tuple[int, int]]]:
        """The heads of each block that the answer is about: if some were drawn, all of them."""
        if self.kept is not None and not self.sampled:
            return self.members
        counts = dict(enumerate(self.heads, start=self.first))
        return [[(n, h + 1) for n in span for h in range(counts[n])] for span in self.spans]

    @property
    def head_names(self) -> list[tuple[int, int]]:
        """All heads that are analysed, (layer, head) from 1, layer by layer."""
        return [head for block in self.members for head in block]

    @property
    def theory_heads(self) -> tuple[int, ...]:
        """What the theory takes as `heads=`: how many are followed in each block."""
        if self.kept is not None:
            return tuple(map(len, self.kept))
        counts = (sum(self.heads[n - self.first] for n in span) for span in self.spans)
        return tuple(min(count, self.sampled or count) for count in counts)

    @property
    def theory_residual(self) -> tuple[bool, ...]:
        """What the theory takes as `residual=`."""
        return self.residual if len(self.blocks) == len(self.heads) else (True,) * len(self.blocks)

    @property
    def ways(self) -> Ways:
        """The ways through the blocks."""
        return Ways(self.theory_heads, self.theory_residual)

    @property
    def paths(self) -> int:
        """The number of paths that are followed, Π."""
        return self.ways.paths

    @property
    def path_names(self) -> list[str]:
        """Names of the paths, such as "3.1 → 4.2": the heads on the way; "skip" is without any."""
        ways = []
        for block, skip in zip(self.members, self.theory_residual, strict=True):
            ways.append([*[""] * skip, *(f"{layer}.{h}" for layer, h in block)])
        return [" → ".join(filter(None, names)) or "skip" for names in itertools.product(*ways)]

    @property
    def scales(self) -> Float[np.ndarray, " paths"]:
        """By what ξ is multiplied, ∏(H_block/H_ℓ)^(1/2): a layer counts by its own heads.

        H_block counts the heads that are meant: one that was drawn with n out of H_block has the
        weight H_block/n, the inverse of its probability, of which the theory knows the 1/n.
        """
        found = np.ones(1)
        for block, meant, skip in zip(self.members, self.meant, self.theory_residual, strict=True):
            own = [math.sqrt(len(meant) / self.heads[layer - self.first]) for layer, _ in block]
            found = np.outer(found, [*[1.0] * skip, *own]).ravel()
        return found

    def bytes(self, examples: int, dim: int, outputs: int = 1) -> int:
        """About how much memory the theory needs for so many examples of dimension D."""
        rows, unknown = examples * outputs, self.paths * outputs
        return 8 * (3 * examples * self.paths * dim + 8 * rows**2 + 12 * unknown**2)

    def _refuse(self, outputs: int, most: int, layers: int):
        """Say how many paths there would be, and what would do."""
        advice, total = [], self.paths * outputs
        if len(self.blocks) > 1 and all(self.residual):
            kept = None if self.kept is None else (tuple(self.head_names),)
            single = dataclasses.replace(self, blocks=(len(self.heads),), kept=kept)
            advice.append(f"blocks=1 ({single.paths * outputs:,} paths)")
        if len(self.heads) > 1 and self.first + len(self.heads) - 1 == layers:
            window = Plan(self.heads[-1:], self.residual[-1:], layers, (1,))
            advice.append(f"layers=({layers}, {layers}) ({window.paths * outputs:,} paths)")
        if len(self.blocks) > 1 and not self.sampled and self.kept is None:
            few = dataclasses.replace(self, sampled=1).paths * outputs
            advice += [f"sampled=1 ({few:,} paths)"] * (few <= most)
        by = f" for {outputs} outputs" if outputs > 1 else ""
        raise ValueError(
            f"{len(self.blocks)} blocks of {len(self.heads)} layers with heads {self.heads} make "
            f"{total:,} paths{by}, above most_paths={most}: their order parameter alone takes "
            f"{_spelled(8 * total**2)}, a solution a dozen times that; take "
            f"{', or '.join([*advice, 'a larger most_paths'])}"
        )


def _largest(plans: list[Plan], outputs: int, most: int, layers: int) -> Plan:
    """The last plan with few enough paths, or a refusal that speaks of the first."""
    fitting = [plan for plan in plans if plan.paths * outputs <= most]
    if not fitting:
        plans[0]._refuse(outputs, most, layers)
    return fitting[-1]


def _through(heads, skips, chosen, blocks: int | None) -> list[Plan]:
    """Plans of the paths through these heads alone, in ever more blocks."""
    try:
        named = sorted(set(pruning.check_heads(chosen, heads)))
    except ValueError as error:
        raise ValueError(f"chosen must be heads of the model: {error}") from None
    if not named:
        raise ValueError("chosen must name a head at least; got none")
    used = sorted({layer for layer, _ in named})
    first, last = used[0], used[-1]
    _passable(skips, first, last, used)
    plans, window = [], skips[first - 1 : last]
    for n in _choices(blocks, tuple(skips[layer - 1] for layer in used)):
        # a layer that is passed belongs to the block below it
        starts = [used[i] for i in itertools.accumulate((0, *_sizes(len(used), n)[:-1]))]
        sizes = tuple(b - a for a, b in itertools.pairwise([*starts, last + 1]))
        plan = Plan(heads[first - 1 : last], window, first, sizes)
        kept = tuple(tuple(head for head in named if head[0] in span) for span in plan.spans)
        plans.append(dataclasses.replace(plan, kept=kept))
    return plans


def _passable(skips: tuple[bool, ...], first: int, last: int, used: Sequence[int]) -> None:
    """Refuse a window where layers above it, or between those used, have no skip to pass by."""
    if not all(skips[last:]):
        raise ValueError(
            f"layers must end with the last layer, {len(skips)}, where later layers have "
            f"no skip to pass them by; got {(first, last)}"
        )
    stuck = [n for n in range(first, last + 1) if n not in used and not skips[n - 1]]
    if stuck:
        raise ValueError(
            f"layers {stuck} have no skip by `residual` and no chosen head, so that no path passes "
            "them; choose a head of each"
        )


def _window(layers, count: int) -> tuple[int, int]:
    if layers is None:
        return 1, count
    if np.shape(layers) != (2,):
        raise ValueError(f"layers must be (first, last), both from 1; got {layers!r}")
    first = _checks.whole("layers[0]", layers[0], least=1, most=count)
    return first, _checks.whole("layers[1]", layers[1], least=first, most=count)


def _choices(blocks: int | None, residual: tuple[bool, ...]) -> list[int]:
    """In how many blocks so many layers may be put."""
    count, passable = len(residual), all(residual)
    if not passable and blocks not in (None, count):
        raise ValueError(
            "blocks pass layers by their skips, which not all layers have by `residual`; leave "
            "`blocks` out"
        )
    if blocks is not None:
        return [_checks.whole("blocks", blocks, least=1, most=count)]
    return list(range(1 if passable else count, count + 1))


def _spelled(size: int) -> str:
    """A number of bytes, in the largest unit of which there is one at least."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 2**power:
            return f"{size / 2**power:,.1f} {unit}"
    return f"{size} bytes"


def _sizes(layers: int, blocks: int) -> tuple[int, ...]:
    """So many layers in blocks of nearly one size."""
    ends = [round(i * layers / blocks) for i in range(blocks + 1)]
    return tuple(b - a for a, b in itertools.pairwise(ends))
