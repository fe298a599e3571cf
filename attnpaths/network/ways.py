"""The ways through a network: heads, skips and outputs, and what they make of paths."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float


@dataclasses.dataclass(frozen=True)
class Ways:
    """What a path chooses from: `heads` (H₁, …, H_L), skips, and `outputs` C, or None for f `[P]`.

    A layer whose `residual` is true adds its input to its output: way 0 of it is this skip,
    the heads come after. Paths, Π = ∏(H_ℓ + r_ℓ) of them, are listed with the first layer slowest.
    A level of the order parameter has a row for every partial path and output, output fastest.

    >>> ways = Ways((2, 1), residual=(True, False), outputs=3)
    >>> ways.counts, ways.paths, ways.levels
    ((3, 1), 3, [(3, 0), (3, 0), (9, 3)])
    >>> ways.scales.round(3).tolist()
    [1.0, 0.707, 0.707]
    """

    heads: tuple[int, ...]
    residual: tuple[bool, ...] = ()
    outputs: int | None = None

    def __post_init__(self):
        """No skips, unless told otherwise."""
        vars(self)["residual"] = self.residual or (False,) * len(self.heads)

    @classmethod
    def of(cls, heads: "Heads") -> "Ways":
        """From the numbers of heads alone, or what is one already."""
        return heads if isinstance(heads, Ways) else cls(tuple(heads))

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of ways through each layer, H_ℓ + r_ℓ."""
        return tuple(h + r for h, r in zip(self.heads, self.residual, strict=True))

    @property
    def paths(self) -> int:
        """The number of paths, Π."""
        return math.prod(self.counts)

    @property
    def readouts(self) -> int:
        """The number of rows of the readout: C, or 1."""
        return self.outputs or 1

    @property
    def levels(self) -> list[tuple[int, int]]:
        """Rows of each level, from L+1 to 1, and how many of them are those of the level above."""
        found = [(self.readouts, 0)]
        for count, skip in zip(reversed(self.counts), reversed(self.residual), strict=True):
            above = found[-1][0]
            found.append((count * above, skip * above))
        return found

    @property
    def through_heads(self) -> Bool[np.ndarray, "paths layers"]:
        """Whether each path goes through a head of each layer, and not along its skip."""
        way = np.stack(np.unravel_index(np.arange(self.paths), self.counts), axis=1)
        return (way > 0) | ~np.array(self.residual)[None]

    @property
    def scales(self) -> Float[np.ndarray, " paths"]:
        """s_π = ∏ H_ℓ^(−1/2), over the layers that the path goes through a head of."""
        return np.prod(np.where(self.through_heads, self.heads, 1) ** -0.5, axis=1)

    def variances(self, prior_variance: Float[Array, "..."]) -> Float[Array, " kinds"]:
        """σ² of V⁰, of V in every layer, and of a, where one may stand for all."""
        return jnp.broadcast_to(prior_variance, (len(self.heads) + 2,))

    def units(self, prior_variance: Float[Array, "..."]) -> list[Float[Array, " rows"]]:
        """The prior mean of every diagonal entry of the levels L+1, …, 1: products of σ²."""
        _, *values, last = self.variances(prior_variance)
        found = [jnp.full(self.readouts, last)]
        for variance, heads, skip in zip(
            reversed(values), reversed(self.heads), reversed(self.residual), strict=True
        ):
            found.append(jnp.concatenate([found[-1]] * skip + [variance * found[-1]] * heads))
        return found

    def __str__(self):
        """As arguments, those that are not the paper's."""
        more = f", residual={self.residual}" if any(self.residual) else ""
        more += f", outputs={self.outputs}" if self.outputs else ""
        return f"heads={self.heads}{more}"


# either may be given
Heads = tuple[int, ...] | Ways
