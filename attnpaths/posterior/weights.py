"""From the order parameter back to weights: exact draws of V⁰, V and a given the factors.

The posterior touches the weights only through U⁽¹⁾ and V⁰. Given the factors B_ℓ, everything
else is as in the prior, and V⁰ is the posterior of a linear model:

- V_eff at every level is √N_ℓ A_ℓ O_ℓ, where the rows of O_ℓ are orthonormal and uniform among
  all such (Haar), independently for each level;
- V⁽ℓ⁾ʰ obeys the linear equations O_{ℓ+1} V⁽ℓ⁾ʰ = √N_ℓ B_ℓʰ O_ℓ and is Gaussian otherwise;
- V⁰ reaches the outputs by f = (∏H_ℓ·D)^(−1/2) Σ_π A₁^π (O₁V⁰) ξ^π plus noise of variance 𝒯.

Across a skip, V_eff of the level above is kept, and with it the frame: the first rows of O_ℓ are
O_{ℓ+1}, the others are uniform among those orthogonal to them.

Conditioning is done on a draw from the prior, which is shifted until the equations hold.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from attnpaths import _checks
from attnpaths.network.weights import Weights, cut, shapes
from attnpaths.posterior import prior
from attnpaths.posterior.draws import Posterior
from attnpaths.problem import Problem, reduce_rows
from attnpaths.theory.factors import assemble


def complete_weights(posterior: Posterior, *, seed: int) -> Weights:
    """Exact draws of all weights, one network for every draw of the order parameter.

    Draws Θ = (V⁰, V, a) ~ p(Θ | U, Y). Takes what `sample_order_parameter` gave and returns
    `Weights` with leading axes `[chains, samples]`, whose `empirical_order_parameter`,
    V_eff V_effᵀ/N, is the draw itself to rounding, and whose distribution is that which
    `sample_weights` samples. Thin the posterior first when there are more networks than memory
    (`posterior.thin(10)`).

    >>> from attnpaths.posterior import sample_order_parameter
    >>> xi = jax.random.normal(jax.random.key(0), (10, 2, 3))
    >>> draws = sample_order_parameter(xi, jnp.sign(xi[:, 0, 0]), heads=(2,), width=5,
    ...                                temperature=0.5, seed=0, chains=2, progress=False)
    >>> weights = complete_weights(draws.thin(100), seed=1)
    >>> weights.V0.shape, weights.V[0].shape, weights.a.shape
    ((2, 10, 5, 3), (2, 10, 2, 5, 5), (2, 10, 5))
    """
    _checks.kind("posterior", posterior, Posterior, "a Posterior")
    if posterior.factors is None:
        raise ValueError(
            "posterior must come from sample_order_parameter; that of sample_weights has its "
            "own weights, in `posterior.weights`"
        )
    key = _checks.key("seed", seed)
    chains, samples = posterior.draws.shape[:2]
    ways, widths, dim = posterior.problem.ways, posterior.widths, posterior.xi.shape[2]
    size = sum(map(math.prod, shapes(ways, widths, dim)))
    what = f"{chains} × {samples} networks of {size} weights"
    remedy = "thin the posterior first, as in posterior.thin(10)"
    _checks.memory(16 * chains * samples * size, what, remedy)
    keys = jax.random.split(key, chains * samples)
    flat = jax.tree.map(lambda b: b.reshape(-1, *b.shape[2:]), posterior.factors)
    weights = _complete(keys, flat, posterior.problem, widths=widths)
    return jax.tree.map(lambda w: w.reshape(chains, samples, *w.shape[1:]), weights)


@functools.partial(jax.jit, static_argnames="widths")
def _complete(keys, factors, problem: Problem, *, widths):
    ways, temperature = problem.ways, problem.temperature
    variance, *others = ways.variances(problem.prior_variance)
    # directions of Y that no path reaches say nothing about the weights
    rows = reduce_rows(problem)
    dim = rows.xi.shape[2]
    features, y = rows.xi * (ways.scales[None, :, None] / math.sqrt(dim)), rows.y.ravel()
    # in the order of use: a frame for a; a frame and values for every layer; V⁰; noise
    first, *below = prior.levels(ways, widths)
    sizes = [(widths[-1], first.columns)]
    layers = list(zip(ways.heads, widths[1:], widths[:-1], strict=True))
    for shape, level in zip(reversed(layers), below, strict=True):
        sizes += [(shape[2], level.columns - level.fixed), shape]
    sizes += [(widths[0], dim), y.shape]

    def one(key_and_factors):
        key, B = key_and_factors
        # one call for all: each takes a second to compile
        normal = iter(cut(jax.random.normal(key, (sum(map(math.prod, sizes)),)), sizes))
        frame = _haar(next(normal), jnp.zeros((0, widths[-1])))
        a = math.sqrt(widths[-1]) * (B[0] @ frame)
        V = []
        each = zip(reversed(ways.heads), B[1:], below, reversed(others[:-1]), strict=True)
        for h, b, level, own in each:
            columns = next(normal)
            # layers without a skip may have another width, and begin a frame of their own
            kept = frame if level.fixed else jnp.zeros((0, len(columns)))
            lower = jnp.concatenate([kept, _haar(columns, kept)])
            width = lower.shape[1]
            wanted = math.sqrt(width) * (b[level.fixed :] @ lower).reshape(h, -1, width)
            free = jnp.sqrt(own) * next(normal)
            V.append(free + frame.T @ (wanted - frame @ free))
            frame = lower
        A = assemble(B)[-1].reshape(ways.paths, ways.readouts, -1)
        seen = jnp.einsum("api,pcr->acri", features, A).reshape(len(y), -1)
        free = jnp.sqrt(variance) * next(normal)
        noise = jnp.sqrt(temperature) * next(normal)
        gap = y - seen @ (frame @ free).ravel() - noise
        kernel = variance * seen @ seen.T + temperature * jnp.eye(len(y))
        shift = variance * seen.T @ cho_solve(cho_factor(kernel, lower=True), gap)
        V0 = free + frame.T @ shift.reshape(-1, dim)
        return Weights(V0, tuple(reversed(V)), a[0] if ways.outputs is None else a)

    return jax.lax.map(one, (keys, factors))


def _haar(normal, kept):
    """Orthonormal rows `[rows, N]`, uniform among all such, from Gaussian columns `[N, rows]`.

    They are orthogonal to the rows that are `kept`.
    """
    # twice, against rounding
    for _ in range(2):
        normal = normal - kept.T @ (kept @ normal)
    basis, upper = jnp.linalg.qr(normal)
    return (basis * jnp.sign(jnp.diag(upper))[None]).T
