"""Kernels: from attentioned inputs ξ to predictions.

Each pair of attention paths has a kernel of its own. The order parameter U weighs them into
one total kernel, and Gaussian-process regression with that kernel gives the predictor.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve, solve_triangular
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from attnpaths import _inputs


class Prediction(NamedTuple):
    """Mean and variance of the network's output, one entry per example."""

    mean: Float[Array, " examples"]
    variance: Float[Array, " examples"]

    def accuracy(self, y: ArrayLike) -> Float[Array, "*grid"]:
        """The fraction of labels `y [P]`, +1 or −1, that have the sign of the mean predictor.

        >>> float(Prediction(jnp.array([0.3, -2.0]), jnp.ones(2)).accuracy([1, 1]))
        0.5
        """
        y = _inputs.array("y", y, "examples")
        if y.shape != self.mean.shape[-1:]:
            raise ValueError(f"y must hold {self.mean.shape[-1]} labels; got shape {y.shape}")
        if not _inputs.is_traced(y) and not np.isin(y, (1, -1)).all():
            raise ValueError(
                f"y must be +1 or −1; got {np.setdiff1d(y, (1, -1))[:5].tolist()}; write labels "
                "0 and 1 as 2 * y - 1"
            )
        hits = jnp.sign(self.mean) == jnp.broadcast_to(y, self.mean.shape)
        return jnp.sum(hits, axis=-1) / len(y)


class Alignment(NamedTuple):
    """Principal components of a kernel, largest first, and how well each points along Y."""

    overlaps: Float[Array, " components"]
    eigenvalues: Float[Array, " components"]


def path_kernels(xi_a: ArrayLike, xi_b: ArrayLike | None = None) -> Float[Array, "p q a b"]:
    """One kernel for every pair of paths, C_{ππ'}(x, x') = ξ^π(x)·ξ^π'(x') / D, Eq. 10.

    Takes ξ `[A, Π, D]` and `[B, Π, D]` (by default the same); gives `[Π, Π, A, B]`.

    >>> path_kernels(jnp.ones((5, 2, 3))).shape
    (2, 2, 5, 5)
    """
    xi_a, xi_b = _pair(xi_a, xi_b)
    _inputs.memory(
        8 * xi_a.shape[1] ** 2 * xi_a.shape[0] * xi_b.shape[0],
        f"the kernels of {xi_a.shape[1]}² pairs of paths between {xi_a.shape[0]} and "
        f"{xi_b.shape[0]} examples",
        "use kernels.total_kernel, which never stores them, or fewer examples",
    )
    return jnp.einsum("api,bqi->pqab", xi_a, xi_b) / xi_a.shape[-1]


def total_kernel(
    U: ArrayLike, xi_a: ArrayLike, xi_b: ArrayLike | None = None, *, prior_variance: ArrayLike = 1.0
) -> Float[Array, "a b"]:
    """The kernel of the whole network, K = σ²/Π Σ_{ππ'} U^{ππ'} C_{ππ'}, Eq. 10.

    The factor σ² is the prior variance of V⁰; the paper, at σ = 1 throughout, does not print
    it. No path–path kernel is stored: the sum is one product of width ΠD. Takes `U [Π, Π]`, ξ
    `[A, Π, D]` and `[B, Π, D]` (by default the same); gives `[A, B]`.

    >>> float(total_kernel(jnp.eye(2), jnp.ones((1, 2, 3)))[0, 0])
    1.0
    """
    xi_a, xi_b = _pair(xi_a, xi_b)
    U = _inputs.array("U", U, "paths paths")
    paths, dim = xi_a.shape[1:]
    if U.shape != (paths, paths):
        raise ValueError(
            f"U must be [{paths}, {paths}] for the {paths} paths of xi_a; got {U.shape}"
        )
    variance = _inputs.number("prior_variance", prior_variance, above=0)
    mixed = jnp.einsum("pq,bqi->bpi", U, xi_b)
    flat = xi_a.reshape(len(xi_a), -1) @ mixed.reshape(len(xi_b), -1).T
    return variance / (paths * dim) * flat


def predict(
    kernel: ArrayLike,
    cross: ArrayLike,
    diagonal: ArrayLike,
    y: ArrayLike,
    *,
    temperature: ArrayLike,
) -> Prediction:
    """Kernel regression: mean kᵀ(K+𝒯)⁻¹Y, Eq. 9, and variance K* − kᵀ(K+𝒯)⁻¹k, Eq. 30.

    `kernel [P, P]` between training examples, `cross [P*, P]` from test to training examples,
    `diagonal [P*]` the kernel of each test example with itself, labels `y [P]`.

    >>> predict([[1.0]], [[1.0]], [1.0], [3.0], temperature=0.5).mean
    Array([2.], dtype=float64)
    """
    kernel = _inputs.array("kernel", kernel, "examples examples")
    cross = _inputs.array("cross", cross, "tests examples")
    diagonal = _inputs.array("diagonal", diagonal, "tests")
    y = _inputs.array("y", y, "examples")
    temperature = _inputs.number("temperature", temperature, above=0)
    if kernel.shape != (len(y), len(y)) or cross.shape != (len(diagonal), len(y)):
        raise ValueError(
            f"kernel, cross, diagonal and y must be [P, P], [P*, P], [P*] and [P]; got "
            f"{kernel.shape}, {cross.shape}, {diagonal.shape} and {y.shape}"
        )
    factor, _ = cho_factor(kernel + temperature * jnp.eye(len(y)), lower=True)
    whitened = solve_triangular(factor, cross.T, lower=True)
    mean = cross @ cho_solve((factor, True), y)
    return Prediction(mean, diagonal - jnp.sum(whitened**2, axis=0))


def alignment(kernel: ArrayLike, y: ArrayLike) -> Alignment:
    """Cosine between each principal component of the kernel and the labels (Fig. 2d).

    Component i, of the i-th largest eigenvalue, has the overlap |v_i·Y| / ‖Y‖; the squares of
    all overlaps sum to 1. Takes `kernel [P, P]` and `y [P]`; gives overlaps and eigenvalues `[P]`.

    >>> alignment([[2.0, 0.0], [0.0, 1.0]], [0.0, 3.0]).overlaps
    Array([0., 1.], dtype=float64)
    """
    kernel = _inputs.array("kernel", kernel, "examples examples")
    y = _inputs.array("y", y, "examples")
    if kernel.shape != (len(y), len(y)):
        raise ValueError(f"kernel must be [{len(y)}, {len(y)}] to fit y; got {kernel.shape}")
    if not _inputs.is_traced(y) and not jnp.any(y != 0):
        raise ValueError("y must have a non-zero entry: nothing aligns with a zero vector")
    eigenvalues, vectors = jnp.linalg.eigh(kernel)
    overlaps = jnp.abs(y @ vectors) / jnp.linalg.norm(y)
    return Alignment(overlaps[::-1], eigenvalues[::-1])


def _pair(xi_a: ArrayLike, xi_b: ArrayLike | None) -> tuple[jax.Array, jax.Array]:
    """Both sets of attentioned inputs, checked against each other."""
    xi_a = _inputs.array("xi_a", xi_a, "examples paths dim")
    xi_b = xi_a if xi_b is None else _inputs.array("xi_b", xi_b, "examples paths dim")
    if xi_a.shape[1:] != xi_b.shape[1:]:
        raise ValueError(
            f"xi_a and xi_b must share paths and dim; got {xi_a.shape} and {xi_b.shape}"
        )
    return xi_a, xi_b
