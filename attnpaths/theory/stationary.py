"""How well a solution satisfies the paper's own equations, level by level.

The minimiser moves factors, and with one of them all levels below it. The paper's action is a
function of the levels themselves, and asks more: each U⁽ℓ⁾ alone must not want to change. Where a
level is pulled by large forces that cancel, what is small beside these may be large beside the
forces on the next level.
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from attnpaths import kernels
from attnpaths.network.ways import Ways
from attnpaths.theory.action import Widths
from attnpaths.theory.factors import Factors, assemble


def relative_gradient(
    B: Factors,
    traces: Float[Array, " entries"],
    pulls: Float[Array, " entries"],
    widths: Widths,
    ways: Ways,
) -> Float[Array, ""]:
    """The largest derivative of S, Eq. 32, in a relative change of one level, beside its terms.

    `traces` and `pulls` are the two terms of the energy's gradient, as `energies.energy_and_slopes`
    gives them. A change is relative if U⁽ℓ⁾ = AAᵀ becomes A(1 + X)Aᵀ; the terms of its derivative
    are those of Eqs. 33 and 34: two of its own entropy, two of that of the level below, and, on
    the first level, two of the energy. Where a layer has a skip, the first block of its level is
    the level above, and moves with it.
    """
    above = (jnp.eye(ways.readouts), *assemble(B)[:-1])
    worst, handed, counts = jnp.zeros(()), [], (1, *ways.counts[::-1])
    for i in reversed(range(len(B))):
        b, (size, fixed), share = B[i], ways.levels[i], widths.shares[i]
        inverse = solve_triangular(b, jnp.eye(size), lower=True)
        own = jnp.where(np.arange(size) < fixed, 0.0, share)
        # all in units of the level above, repeated for every way
        terms = [jnp.diag(own), -share * inverse.T @ inverse]
        terms += [inverse.T @ term @ inverse for term in handed]
        if i == len(B) - 1:
            copies = jnp.kron(jnp.eye(size // len(above[i])), above[i])
            for entries in (traces, -pulls):
                both = kernels.symmetric(entries)
                # an entry off the diagonal stands for two
                halved = jnp.where(np.eye(size, dtype=bool), both, both / 2)
                terms.append(copies.T @ halved @ copies / widths.mean)
        n, count = len(above[i]), counts[i]
        handed = [term[:fixed, :fixed] for term in terms] if fixed else []
        blocks = (b @ b.T).reshape(-1, n, size // n, n)
        inside = sum(blocks[way, :, way] for way in range(int(fixed > 0), size // n))
        handed += [-share * inside, share * count * jnp.eye(n)]
        free = jnp.asarray(~((np.arange(size) < fixed)[:, None] & (np.arange(size) < fixed)))
        moved = [b.T @ jnp.where(free, term, 0.0) @ b for term in terms]
        sizes = sum(jnp.max(jnp.abs(term)) for term in moved)
        worst = jnp.maximum(worst, jnp.max(jnp.abs(sum(moved))) / sizes)
    return worst
