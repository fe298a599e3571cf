"""Path–path kernels of the training rows, each kept as the half of it on and below its diagonal.

A symmetric matrix is cut into a few rows of blocks, of which only what is left of the diagonal's
block is kept, with that block as a whole: little more than half of the numbers, cut and joined
without looking up single ones. Each row of blocks of all kernels is one array. Both products with
the kernels, Σ u C and tr(C M), read all of them once, and take as long as that.
"""

import itertools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# For each row of blocks, the pair of paths, which is an entry of U, and what is kept of its kernel.
Kept = tuple[Float[Array, "pairs _"], ...]

# Where a row of blocks of all kernels has fewer numbers, matrices are kept whole; larger ones in
# so many rows of blocks.
_WHOLE, _CUTS = 1024, 8


def pair_kernels(features: Float[Array, "rows paths dim"]) -> Kept:
    """ξ^π·ξ^π' summed over both orders of each pair of paths, for one output, cut into blocks."""
    rows, paths, _ = features.shape
    by_path = jnp.swapaxes(features, 0, 1)
    first, second = np.tril_indices(paths)
    # what a path has with itself is met twice
    share = jnp.asarray(np.where(first == second, 0.5, 1.0))[:, None]
    kept, nothing = [], jnp.zeros(())
    for a, b in _cuts(rows, min(rows, _CUTS) if rows * paths >= _WHOLE else 1):
        # as each adds nothing of the one before, they are made in turn, in the same memory
        products = jnp.einsum("pid,qjd->piqj", by_path[:, a:b] + nothing, by_path[:, :b])
        orders = products[first, :, second], products[second, :, first]
        one, other = (order.reshape(len(first), -1) for order in orders)
        kept.append(share * (one + other))
        nothing = 0.0 * kept[-1][0, 0]
    return tuple(kept)


def weigh(u: Float[Array, " pairs"], kept: Kept, rows: int) -> Float[Array, "rows rows"]:
    """The kernel Σ u C. Linear in u, so that its transpose gives all tr(C M)."""
    cuts = _cuts(rows, len(kept))
    parts = [(u @ part).reshape(b - a, b) for part, (a, b) in zip(kept, cuts, strict=True)]
    if len(parts) == 1:
        return parts[0]
    below = jnp.concatenate([jnp.pad(part, ((0, 0), (0, rows - len(part.T)))) for part in parts])
    return jnp.where(np.tri(rows, dtype=bool), below, below.T)


def _cuts(rows: int, count: int) -> list[tuple[int, int]]:
    """Where the rows of blocks start and end."""
    return list(itertools.pairwise(np.linspace(0, rows, count + 1).astype(int).tolist()))
