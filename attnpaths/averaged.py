"""Predictions averaged over draws of the order parameter.

Given U, the output is Gaussian: mean kᵀ(K+𝒯)⁻¹Y and variance K* − kᵀ(K+𝒯)⁻¹k. Over the draws,
the mean is averaged, and the variance is that average of variances plus the variance of means.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from attnpaths import action, diagnostics
from attnpaths.kernels import Prediction
from attnpaths.network import Weights, effective_weights

# Kernels from test examples to training examples are stored in blocks of so many numbers.
_BLOCK = 2**26


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PosteriorPrediction:
    """The network's output on new examples, averaged over the posterior.

    `mean [P*]` and `variance [P*]` of the output; `mcse [P*]`, the Monte Carlo standard error
    of the mean; and `draws [chains, samples, P*]`, the mean given the U of each draw.

    >>> draws = jnp.array([[[0.5, -1.0], [0.3, -0.2]]])
    >>> prediction = PosteriorPrediction(draws.mean((0, 1)), jnp.ones(2), jnp.zeros(2), draws)
    >>> float(prediction.accuracy([1, 1])), float(prediction.accuracy_mcse([1, 1]))
    (0.5, 0.0)
    """

    mean: Float[Array, " examples"]
    variance: Float[Array, " examples"]
    mcse: Float[Array, " examples"]
    draws: Float[Array, "chains samples examples"]

    def accuracy(self, y: ArrayLike) -> Float[Array, ""]:
        """The fraction of labels `y [P*]`, +1 or −1, that have the sign of the mean predictor."""
        return Prediction(self.mean, self.variance).accuracy(y)

    def accuracy_mcse(self, y: ArrayLike) -> Float[Array, ""]:
        """The Monte Carlo standard error of `accuracy`, by a bootstrap over stretches of chains.

        Every chain is cut into ten stretches; the accuracy of averages over stretches that are
        drawn with replacement, 500 times, has this standard deviation.
        """
        pieces = min(10, self.draws.shape[1])
        means = np.stack(
            [s.mean(axis=1) for s in np.array_split(np.asarray(self.draws), pieces, axis=1)]
        ).reshape(-1, self.draws.shape[2])
        rng = np.random.default_rng(0)
        shares = rng.multinomial(len(means), np.full(len(means), 1 / len(means)), 500) / len(means)
        drawn = jnp.asarray(shares @ means)
        return jnp.std(Prediction(drawn, jnp.zeros_like(drawn)).accuracy(y))


def predict(
    draws: Float[Array, "chains samples paths paths"],
    train: Float[Array, "examples paths dim"],
    y: Float[Array, " examples"],
    xi: Float[Array, "tests paths dim"],
    *,
    temperature: Float[Array, ""],
    prior_variance: Float[Array, ""],
) -> PosteriorPrediction:
    """Average over draws of U; arguments are checked by `Posterior.predict`.

    >>> one = jnp.ones((1, 1, 1))
    >>> predict(jnp.ones((1, 4, 1, 1)), one, jnp.array([2.0]), one, temperature=jnp.array(1.0),
    ...         prior_variance=jnp.array(1.0)).variance
    Array([0.5], dtype=float64)
    """
    reduced = _reduce(train, y, prior_variance)
    flat = draws.reshape(-1, *draws.shape[2:])
    pairs = draws.shape[2] * (draws.shape[2] + 1) // 2
    step = max(1, _BLOCK // (pairs * len(reduced.y)))
    blocks = [
        _predict(flat, reduced, xi[i : i + step], temperature, prior_variance)
        for i in range(0, len(xi), step)
    ]
    means = jnp.concatenate([mean for mean, _ in blocks], axis=1)
    if not jnp.all(jnp.isfinite(means)):
        raise ValueError(
            f"temperature {float(temperature):g} is too small for this kernel, whose Cholesky "
            "factorisation fails in double precision; raise it or rescale xi and y"
        )
    means = means.reshape(*draws.shape[:2], -1)
    within = jnp.concatenate([variance for _, variance in blocks])
    return PosteriorPrediction(
        mean=jnp.mean(means, axis=(0, 1)),
        variance=within + jnp.var(means, axis=(0, 1)),
        mcse=jnp.asarray(diagnostics.mcse(means)),
        draws=means,
    )


class _Reduced(NamedTuple):
    """Training features with the kernel's factor in them, and labels, in as few rows as hold."""

    features: Array
    y: Array


@jax.jit
def _reduce(xi, y, prior_variance) -> _Reduced:
    examples, count, dim = xi.shape
    flat = (xi * jnp.sqrt(prior_variance / (count * dim))).reshape(examples, -1)
    if action.rows(examples, count, dim) < examples:
        basis, flat = jnp.linalg.qr(flat)
        y = basis.T @ y
    return _Reduced(flat.reshape(-1, count, dim), y)


@jax.jit
def _predict(draws, train: _Reduced, xi, temperature, prior_variance):
    """The mean given each draw `[draws, P*]`, and the average of the variance given a draw."""
    count, dim = xi.shape[1:]
    xi = xi * jnp.sqrt(prior_variance / (count * dim))
    first, second = np.tril_indices(count)
    double = jnp.asarray(first != second)[:, None, None]

    def kernels(a, b):
        # for each pair of paths C + Cᵀ, to be weighed by the entry of U below the diagonal
        both = jnp.einsum("api,bqi->pqab", a, b)
        return both[first, second] + jnp.where(double, both[second, first], 0.0)

    cross = kernels(xi, train.features)
    stored = action.stores_kernels(len(train.y), count)
    between = kernels(train.features, train.features) if stored else None
    own = jnp.einsum("api,aqi->pqa", xi, xi)

    def one(U):
        u = U[first, second]
        if stored:
            kernel = jnp.einsum("k,kab->ab", u, between)
        else:
            mixed = jnp.einsum("pq,bqi->bpi", U, train.features)
            kernel = train.features.reshape(len(mixed), -1) @ mixed.reshape(len(mixed), -1).T
        factor = jnp.linalg.cholesky(kernel + temperature * jnp.eye(len(kernel)))
        k = jnp.einsum("k,kab->ab", u, cross)
        whitened = solve_triangular(factor, k.T, lower=True)
        mean = solve_triangular(factor, train.y, lower=True) @ whitened
        return mean, jnp.einsum("pq,pqa->a", U, own) - jnp.sum(whitened**2, axis=0)

    def step(total, U):
        mean, variance = one(U)
        return total + variance, mean

    total, means = jax.lax.scan(step, jnp.zeros(len(xi)), draws)
    return means, total / len(draws)


@jax.jit
def outputs(
    weights: Weights, xi: Float[Array, "examples paths dim"]
) -> Float[Array, "chains samples examples"]:
    """The output of every sampled network, from its weights: Eq. 5."""
    flat = xi.reshape(len(xi), -1)

    def one(weights):
        per_path = effective_weights(weights) @ weights.V0
        return flat @ per_path.ravel() / jnp.sqrt(xi.shape[1] * weights.V0.size)

    return jax.lax.map(lambda chain: jax.lax.map(one, chain), weights)
