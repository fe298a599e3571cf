"""Kernels: from attentioned inputs ξ to predictions.

Each pair of attention paths has a kernel of its own. The order parameter U weighs them into
one total kernel, and Gaussian-process regression with that kernel gives the predictor.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from attnpaths import _checks

__all__ = [
    "Alignment", "Prediction", "alignment", "path_kernels", "predict", "regress", "total_kernel",
]  # fmt: skip

# Path–path kernels up to this many bytes are stored; beyond it each kernel is one product of
# width ΠD, which is slower for few paths and needs no memory of its own.
STORED_BYTES = 2**29
# Kernels from test examples to training rows are stored in blocks of so many numbers.
_BLOCK = 2**26


class Prediction(NamedTuple):
    """Mean and variance of the network's output `[P]`, with leading axes for many at once."""

    mean: Float[Array, "*batch examples"]
    variance: Float[Array, "*batch examples"]

    def accuracy(self, y: ArrayLike) -> Float[Array, "*grid"]:
        """The fraction of labels `y [P]`, +1 or −1, that have the sign of the mean predictor.

        >>> float(Prediction(jnp.array([0.3, -2.0]), jnp.ones(2)).accuracy([1, 1]))
        0.5
        """
        y = _checks.array("y", y, "examples")
        if y.shape != self.mean.shape[-1:]:
            raise ValueError(f"y must hold {self.mean.shape[-1]} labels; got shape {y.shape}")
        _checks.signs("y", y)
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
    _checks.memory(
        8 * xi_a.shape[1] ** 2 * xi_a.shape[0] * xi_b.shape[0],
        f"the kernels of {xi_a.shape[1]}² pairs of paths between {xi_a.shape[0]} and "
        f"{xi_b.shape[0]} examples",
        "use kernels.total_kernel, which never stores them, or fewer examples",
    )
    return jnp.einsum("api,bqi->pqab", xi_a, xi_b) / xi_a.shape[-1]


def pair_kernels(
    xi_a: Float[Array, "a paths dim"], xi_b: Float[Array, "b paths dim"]
) -> Float[Array, "pairs a b"]:
    """ξ^π·ξ^π' summed over both orders of each pair of paths, unscaled and unchecked.

    U is symmetric, so that its entries on and below the diagonal weigh these into a kernel.
    """
    first, second = np.tril_indices(xi_a.shape[1])
    both = jnp.einsum("api,bqi->pqab", xi_a, xi_b)
    double = jnp.asarray(first != second)[:, None, None]
    return both[first, second] + jnp.where(double, both[second, first], 0.0)


def total_kernel(
    U: ArrayLike, xi_a: ArrayLike, xi_b: ArrayLike | None = None, *, prior_variance: ArrayLike = 1.0
) -> Float[Array, "a b"]:
    """The kernel of the whole network, K = σ²/Π Σ_{ππ'} U^{ππ'} C_{ππ'}, Eq. 10.

    The factor σ² is the prior variance of V⁰; the paper, at σ = 1 throughout, does not print
    it. No path–path kernel is stored: the sum is one product of width ΠD. Takes `U [Π, Π]`,
    symmetric and positive semidefinite, ξ `[A, Π, D]` and `[B, Π, D]` (by default the same);
    gives `[A, B]`.

    >>> float(total_kernel(jnp.eye(2), jnp.ones((1, 2, 3)))[0, 0])
    1.0
    """
    xi_a, xi_b = _pair(xi_a, xi_b)
    U = _checks.array("U", U, "paths paths")
    paths = xi_a.shape[1]
    if U.shape != (paths, paths):
        raise ValueError(
            f"U must be [{paths}, {paths}] for the {paths} paths of xi_a; got {U.shape}"
        )
    _checks.semidefinite("U", U)
    variance = _checks.number("prior_variance", prior_variance, above=0)
    return mixed_kernel(U, xi_a, xi_b, variance)


@jax.jit
def mixed_kernel(U, xi_a, xi_b, prior_variance) -> Float[Array, "a b"]:
    """`total_kernel` without its checks."""
    paths, dim = xi_a.shape[1:]
    mixed = jnp.einsum("pq,bqi->bpi", U, xi_b)
    flat = xi_a.reshape(len(xi_a), -1) @ mixed.reshape(len(xi_b), -1).T
    return prior_variance / (paths * dim) * flat


def predict(
    kernel: ArrayLike,
    cross: ArrayLike,
    diagonal: ArrayLike,
    y: ArrayLike,
    *,
    temperature: ArrayLike,
) -> Prediction:
    """Kernel regression: mean kᵀ(K+𝒯)⁻¹Y, Eq. 9, and variance K* − kᵀ(K+𝒯)⁻¹k, Eq. 30.

    `kernel [P, P]` between training examples, symmetric and positive semidefinite,
    `cross [P*, P]` from test to training examples, `diagonal [P*]` the kernel of each test
    example with itself, labels `y [P]`.

    >>> predict([[1.0]], [[1.0]], [1.0], [3.0], temperature=0.5).mean
    Array([2.], dtype=float64)
    """
    kernel = _checks.array("kernel", kernel, "examples examples")
    cross = _checks.array("cross", cross, "tests examples")
    diagonal = _checks.array("diagonal", diagonal, "tests")
    y = _checks.array("y", y, "examples")
    temperature = _checks.number("temperature", temperature, above=0)
    if kernel.shape != (len(y), len(y)) or cross.shape != (len(diagonal), len(y)):
        raise ValueError(
            f"kernel, cross, diagonal and y must be [P, P], [P*, P], [P*] and [P]; got "
            f"{kernel.shape}, {cross.shape}, {diagonal.shape} and {y.shape}"
        )
    _checks.semidefinite("kernel", kernel)
    return _given_kernel(kernel, cross, diagonal, y, temperature)


def _given_kernel(kernel, cross, diagonal, y, temperature) -> Prediction:
    """The one place where a kernel becomes a prediction."""
    factor = jnp.linalg.cholesky(kernel + temperature * jnp.eye(len(y)))
    whitened = solve_triangular(factor, cross.T, lower=True)
    mean = solve_triangular(factor, y, lower=True) @ whitened
    # rounding must not make a variance negative
    return Prediction(mean, jnp.maximum(diagonal - jnp.sum(whitened**2, axis=0), 0.0))


def regress(
    U: Float[Array, "*batch paths paths"],
    train: Float[Array, "rows paths dim"],
    y: Float[Array, " rows"],
    xi: Float[Array, "tests paths dim"],
    *,
    temperature: Float[Array, "..."],
    prior_variance: Float[Array, ""],
) -> Prediction:
    """The prediction on `xi [P*, Π, D]` given each of many order parameters, unchecked.

    Mean kᵀ(K+𝒯)⁻¹Y, Eq. 9, and variance, Eq. 30, `[*batch, P*]` each, at one temperature or at
    one for each U. Where there are several U, kernels of pairs of paths are made once and weighed
    for each, as far as they fit.

    >>> one = jnp.ones((1, 1, 1))
    >>> regress(jnp.ones((4, 1, 1)), one, jnp.array([2.0]), one, temperature=jnp.ones(()),
    ...         prior_variance=jnp.ones(())).mean.round(9).tolist()
    [[1.0], [1.0], [1.0], [1.0]]
    """
    paths, rows = train.shape[1], len(train)
    many = U.size > paths**2
    temperature = jnp.broadcast_to(temperature, U.shape[:-2])
    # kernels from test examples to training rows are stored in blocks
    step = max(1, _BLOCK // (rows * paths * (paths + 1) // 2)) if many else len(xi)
    parts = [
        _regress(U, train, y, xi[i : i + step], temperature, prior_variance, many)
        for i in range(0, len(xi), step)
    ]
    if len(parts) == 1:
        return parts[0]
    return Prediction(*(jnp.concatenate(each, axis=-1) for each in zip(*parts, strict=True)))


@functools.partial(jax.jit, static_argnames="many")
def _regress(U, train, y, xi, temperature, prior_variance, many) -> Prediction:
    paths, dim = xi.shape[1:]
    scale = jnp.sqrt(prior_variance / (paths * dim))
    train, xi = scale * train, scale * xi
    own = jnp.einsum("api,aqi->pqa", xi, xi)
    lower = np.tril_indices(paths)
    stored = many and stores(len(train), paths)
    cross = pair_kernels(xi, train) if many else None
    between = pair_kernels(train, train) if stored else None

    def product(U, a, b):
        mixed = jnp.einsum("pq,bqi->bpi", U, b)
        return a.reshape(len(a), -1) @ mixed.reshape(len(b), -1).T

    def one(point):
        U, temperature = point
        u = U[lower]
        kernel = product(U, train, train) if between is None else jnp.tensordot(u, between, 1)
        k = product(U, xi, train) if cross is None else jnp.tensordot(u, cross, 1)
        return _given_kernel(kernel, k, jnp.einsum("pq,pqa->a", U, own), y, temperature)

    batch = U.shape[:-2]
    flat = jax.lax.map(one, (U.reshape(-1, paths, paths), temperature.reshape(-1)))
    return jax.tree.map(lambda leaf: leaf.reshape(*batch, len(xi)), flat)


def check_finite(found: Prediction, temperature: Float[Array, "..."]) -> None:
    """Refuse a prediction whose Cholesky factor double precision could not give."""
    if not _checks.is_traced(found.mean) and not jnp.all(jnp.isfinite(found.mean)):
        bad = ~np.isfinite(np.asarray(found.mean)).all(axis=-1)
        coldest = np.broadcast_to(np.asarray(temperature), bad.shape)[bad].min()
        raise ValueError(
            f"temperature {coldest:g} is too small for this kernel, whose Cholesky factorisation "
            "fails in double precision; raise it or rescale xi and y"
        )


def stores(rows: int, paths: int) -> bool:
    """Whether the kernels of all pairs of paths between so many rows are few enough to keep."""
    return 8 * (paths * (paths + 1) // 2) * rows**2 <= STORED_BYTES


def alignment(kernel: ArrayLike, y: ArrayLike) -> Alignment:
    """Cosine between each principal component of the kernel and the labels (Fig. 2d).

    Component i, of the i-th largest eigenvalue, has the overlap |v_i·Y| / ‖Y‖; the squares of
    all overlaps sum to 1. Takes `kernel [P, P]` and `y [P]`; gives overlaps and eigenvalues `[P]`.

    >>> alignment([[2.0, 0.0], [0.0, 1.0]], [0.0, 3.0]).overlaps
    Array([0., 1.], dtype=float64)
    """
    kernel = _checks.array("kernel", kernel, "examples examples")
    y = _checks.array("y", y, "examples")
    if kernel.shape != (len(y), len(y)):
        raise ValueError(f"kernel must be [{len(y)}, {len(y)}] to fit y; got {kernel.shape}")
    if not _checks.is_traced(y) and not jnp.any(y != 0):
        raise ValueError("y must have a non-zero entry: nothing aligns with a zero vector")
    eigenvalues, vectors = jnp.linalg.eigh(kernel)
    overlaps = jnp.abs(y @ vectors) / jnp.linalg.norm(y)
    return Alignment(overlaps[::-1], eigenvalues[::-1])


def _pair(xi_a: ArrayLike, xi_b: ArrayLike | None) -> tuple[jax.Array, jax.Array]:
    """Both sets of attentioned inputs, checked against each other."""
    xi_a = _checks.array("xi_a", xi_a, "examples paths dim")
    xi_b = xi_a if xi_b is None else _checks.array("xi_b", xi_b, "examples paths dim")
    if xi_a.shape[1:] != xi_b.shape[1:]:
        raise ValueError(
            f"xi_a and xi_b must share paths and dim; got {xi_a.shape} and {xi_b.shape}"
        )
    return xi_a, xi_b
