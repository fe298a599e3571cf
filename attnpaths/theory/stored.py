"""Path–path kernels of the training rows, each kept as the half of it on and below its diagonal.

A symmetric matrix is cut into a few rows of blocks, of which only what is left of the diagonal's
block is kept, with that block as a whole: little more than half of the numbers, cut and joined
without looking up single ones. Both products with the kernels, Σ u C and tr(C M), read all of
them once, and take as long as that.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# Matrices of fewer rows are kept whole; larger ones in so many rows of blocks.
_WHOLE, _CUTS = 128, 8


def lower(matrix: Float[Array, "rows rows"]) -> Float[Array, " kept"]:
    """A symmetric matrix without what lies to the right of the diagonal's blocks."""
    return jnp.concatenate([matrix[a:b, :b].ravel() for a, b in _cuts(len(matrix))])


def whole(kept: Float[Array, " kept"], rows: int) -> Float[Array, "rows rows"]:
    """The symmetric matrix again. Linear, so that its transpose is what `traces` needs."""
    cuts = _cuts(rows)
    if len(cuts) == 1:
        return kept.reshape(rows, rows)
    ends = np.cumsum([(b - a) * b for a, b in cuts])
    parts = [
        jnp.pad(part.reshape(b - a, b), ((0, 0), (0, rows - b)))
        for part, (a, b) in zip(jnp.split(kept, ends[:-1]), cuts, strict=True)
    ]
    below = jnp.concatenate(parts)
    return jnp.where(np.tri(rows, dtype=bool), below, below.T)


def pair_kernels(features: Float[Array, "rows paths dim"]) -> Float[Array, "pairs kept"]:
    """ξ^π·ξ^π' summed over both orders of each pair of paths, for one output, as `lower` keeps it.

    The pairs are the entries of U on and below its diagonal.
    """
    by_path = jnp.swapaxes(features, 0, 1)
    first, second = np.tril_indices(len(by_path))

    def both_orders(pair):
        one, other = pair
        kernel = by_path[one] @ by_path[other].T
        # the second order is the transpose of the first
        return lower(jnp.where(one == other, kernel, kernel + kernel.T))

    return jax.lax.map(both_orders, (jnp.asarray(first), jnp.asarray(second)))


def _cuts(rows: int) -> list[tuple[int, int]]:
    """Where the rows of blocks start and end."""
    count = _CUTS if rows >= _WHOLE else 1
    return list(itertools.pairwise(np.linspace(0, rows, count + 1).astype(int).tolist()))
