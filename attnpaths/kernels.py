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
    """Mean and variance of the network's output `[P]`, with leading axes for many at once.

    Several outputs give both as `[P, C]`, and the `covariance [P, C, C]` between them.
    """

    mean: Float[Array, "*batch"]
    variance: Float[Array, "*batch"]
    covariance: Float[Array, "..."] | None = None

    def accuracy(self, y: ArrayLike, by: str | None = None) -> Float[Array, "*grid"]:
        """The fraction of labels `y [P]`, +1 or −1, that have the sign of the mean predictor.

        Several outputs are judged `by` `"argmax"`, whether the largest is where that of `y [P, C]`
        is, or by `"sign"`, each output for itself. By default it is the argmax where every example
        has one largest label, as classes have, and the sign where not.

        >>> float(Prediction(jnp.array([0.3, -2.0]), jnp.ones(2)).accuracy([1, 1]))
        0.5
        """
        return accuracy(self.mean, y, by, several=self.covariance is not None)


def accuracy(mean, y: ArrayLike, by: str | None, several: bool) -> Float[Array, "*grid"]:
    """See `Prediction.accuracy`; `several` outputs are on the last axis of the mean."""
    axes = 1 + several
    y = _checks.array("y", y, "examples outputs" if several else "examples")
    if y.shape != mean.shape[-axes:]:
        wanted = " × ".join(map(str, mean.shape[-axes:]))
        raise ValueError(f"y must hold {wanted} labels; got shape {y.shape}")
    if by is None:
        classes = several and y.shape[1] > 1 and _one_largest(np.asarray(y))
        by = "argmax" if classes else "sign"
    _checks.choice("by", by, ("argmax", "sign") if several else ("sign",))
    if by == "argmax":
        hits, wanted = jnp.argmax(mean, axis=-1), jnp.argmax(y, axis=-1)
        return jnp.mean(hits == jnp.broadcast_to(wanted, hits.shape), axis=-1)
    _checks.signs("y", y)
    hits = jnp.sign(mean) == jnp.broadcast_to(y, mean.shape)
    # what is traced could not be refused
    share = jnp.sum(hits, axis=tuple(range(-axes, 0))) / y.size
    return jnp.where(jnp.all(jnp.abs(y) == 1), share, jnp.nan)


def _one_largest(y) -> bool:
    """Whether each row has one largest entry."""
    return bool(np.all(np.sum(y == y.max(axis=1, keepdims=True), axis=1) == 1))


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
    (a, paths, dim), b = xi_a.shape, len(xi_b)
    what = f"the kernels of {paths}² pairs of paths between {a} and {b} examples"
    remedy = "use kernels.total_kernel, which never stores them, or fewer examples"
    _checks.memory(8 * paths**2 * a * b, what, remedy)
    found = jnp.einsum("api,bqi->pqab", xi_a, xi_b) / dim
    return _checks.representable(found, "xi_a and xi_b")


def pair_kernels(
    xi_a: Float[Array, "a paths dim"], xi_b: Float[Array, "b paths dim"], outputs: int = 1
) -> Float[Array, "pairs a b"]:
    """ξ^π·ξ^π' summed over both orders of each pair of paths, unscaled and unchecked.

    U is symmetric, so that its entries on and below the diagonal weigh these into a kernel. With
    several outputs the two orders count differently, and all pairs are kept.
    """
    first, second = np.tril_indices(xi_a.shape[1])
    if outputs == 1 and xi_a is xi_b:
        # the second order is the transpose of the first
        by_path = jnp.swapaxes(xi_a, 0, 1)

        def both_orders(pair):
            one, other = pair
            kernel = by_path[one] @ by_path[other].T
            return jnp.where(one == other, kernel, kernel + kernel.T)

        return jax.lax.map(both_orders, (jnp.asarray(first), jnp.asarray(second)))
    both = jnp.einsum("api,bqi->pqab", xi_a, xi_b)
    if outputs > 1:
        return both.reshape(-1, *both.shape[2:])
    double = jnp.asarray(first != second)[:, None, None]
    return both[first, second] + jnp.where(double, both[second, first], 0.0)


def weigh(
    u: Float[Array, " entries"], pairs: Float[Array, "pairs a b"], outputs: int
) -> Float[Array, "ac bc"]:
    """The kernel Σ U C of `pair_kernels`, by the entries u of U on and below its diagonal.

    Its rows are those of `pairs`, each for all outputs in turn.
    """
    a, b = pairs.shape[1:]
    if outputs == 1:
        # flat, so that the transpose is as fast as this is
        return (u @ pairs.reshape(len(u), -1)).reshape(a, b)
    U = symmetric(u).reshape(-1, outputs, len(symmetric(u)) // outputs, outputs)
    by_output = U.transpose(1, 3, 0, 2).reshape(outputs**2, -1) @ pairs.reshape(len(pairs), -1)
    split = by_output.reshape(outputs, outputs, a, b)
    return split.transpose(2, 0, 3, 1).reshape(a * outputs, b * outputs)


def combine(
    U: Float[Array, "n n"], xi_a: Float[Array, "a paths dim"], xi_b: Float[Array, "b paths dim"]
) -> Float[Array, "ac bc"]:
    """The same from ξ, as one product of width ΠD: no path–path kernel is stored."""
    (a, paths, _), b = xi_a.shape, len(xi_b)
    flat, outputs = xi_a.reshape(a, -1), len(U) // paths
    if outputs == 1:
        return flat @ jnp.einsum("pq,bqi->bpi", U, xi_b).reshape(b, -1).T
    mixed = jnp.einsum("pcqe,bqi->becpi", U.reshape(paths, outputs, paths, outputs), xi_b)
    split = (flat @ mixed.reshape(-1, flat.shape[1]).T).reshape(a, b, outputs, outputs)
    return split.transpose(0, 3, 1, 2).reshape(a * outputs, b * outputs)


def symmetric(u: Float[Array, " entries"]) -> Float[Array, "n n"]:
    """The matrix U of which these are the entries on and below the diagonal."""
    count = int(np.sqrt(2 * len(u)))
    first, second = np.tril_indices(count)
    entry = np.zeros((count, count), int)
    entry[first, second] = entry[second, first] = np.arange(len(first))
    return u[entry]


def total_kernel(
    U: ArrayLike,
    xi_a: ArrayLike,
    xi_b: ArrayLike | None = None,
    *,
    prior_variance: ArrayLike = 1.0,
    scale: ArrayLike | None = None,
) -> Float[Array, "ac bc"]:
    """The kernel of the whole network, K = σ²/Π Σ_{ππ'} U^{ππ'} C_{ππ'}, Eq. 10.

    The factor σ² is the prior variance of V⁰; the paper, at σ = 1 throughout, does not print
    it. No path–path kernel is stored: the sum is one product of width ΠD. Takes `U [Π, Π]`,
    symmetric and positive semidefinite, ξ `[A, Π, D]` and `[B, Π, D]` (by default the same);
    gives `[A, B]`. Paths that count differently, as with skips, have their s_π as `scale [Π]` in
    place of Π^(−1/2). With C outputs U is `[ΠC, ΠC]` and K `[AC, BC]`, output fastest.

    >>> round(float(total_kernel(jnp.eye(2), jnp.ones((1, 2, 3)))[0, 0]), 12)
    1.0
    """
    xi_a, xi_b = _pair(xi_a, xi_b)
    U = _checks.array("U", U, "paths paths")
    paths = xi_a.shape[1]
    if len(U) % paths or U.shape[0] != U.shape[1]:
        raise ValueError(
            f"U must be [{paths}, {paths}] for the {paths} paths of xi_a; got {U.shape}"
        )
    U = _checks.semidefinite("U", U)
    variance = _checks.number("prior_variance", prior_variance, above=0)
    if scale is not None:
        scale = _checks.array("scale", scale, "paths")
        if len(scale) != paths:
            raise ValueError(f"scale must hold one number for each of {paths} paths; got {scale}")
    found = mixed_kernel(U, xi_a, xi_b, variance, scale)
    return _checks.representable(found, "U, xi_a and xi_b")


@jax.jit
def mixed_kernel(U, xi_a, xi_b, prior_variance, scale=None) -> Float[Array, "ac bc"]:
    """`total_kernel` without its checks, but for its size."""
    a, b, outputs = len(xi_a), len(xi_b), len(U) // xi_a.shape[1]
    what = f"a kernel between {a:,} examples of xi_a and {b:,} of xi_b"
    _checks.memory(8 * a * b * outputs**2, what, "take fewer examples at a time")
    return combine(U, *(_scaled(xi, prior_variance, scale) for xi in (xi_a, xi_b)))


def _scaled(xi, prior_variance, scale):
    """ξ with the normalisation of the kernel in it."""
    paths, dim = xi.shape[1:]
    by_path = jnp.full(paths, paths**-0.5) if scale is None else jnp.asarray(scale)
    return xi * (jnp.sqrt(prior_variance / dim) * by_path)[None, :, None]


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
    kernel = _checks.semidefinite("kernel", kernel)
    # k(x, x')² ≤ k(x, x) k(x', x') for every kernel
    beyond = cross**2 > (1 + 1e-6) * jnp.outer(diagonal, jnp.diag(kernel))
    beyond = jnp.any(beyond) | jnp.any(diagonal < 0)
    if not _checks.is_traced(beyond) and beyond:
        raise ValueError(
            "cross and diagonal must be of the same kernel as kernel itself, where no entry of "
            "cross is larger than the root of the product of the two diagonal ones"
        )
    return _given_kernel(kernel, jnp.where(beyond, jnp.nan, cross), diagonal, y, temperature)


def _given_kernel(kernel, cross, own, y, temperature) -> Prediction:
    """The one place where a kernel becomes a prediction; NaN where the temperature is none."""
    temperature = jnp.where((temperature > 0) & jnp.isfinite(temperature), temperature, jnp.nan)
    factor = jnp.linalg.cholesky(kernel + temperature * jnp.eye(y.size))
    whitened = solve_triangular(factor, cross.T, lower=True)
    mean = solve_triangular(factor, y.ravel(), lower=True) @ whitened
    # rounding must not make a variance negative
    if own.ndim == 1:
        return Prediction(mean, jnp.maximum(own - jnp.sum(whitened**2, axis=0), 0.0))
    whitened = whitened.reshape(y.size, *own.shape[:2])
    covariance = own - jnp.einsum("kac,kae->ace", whitened, whitened)
    variance = jnp.maximum(jnp.einsum("acc->ac", covariance), 0.0)
    return Prediction(mean.reshape(own.shape[:2]), variance, covariance)


def regress(
    U: Float[Array, "*batch n n"],
    train: Float[Array, "rows paths dim"],
    y: Float[Array, "rows *outputs"],
    xi: Float[Array, "tests paths dim"],
    *,
    temperature: Float[Array, "..."],
    prior_variance: Float[Array, ""],
    scale: ArrayLike | None = None,
) -> Prediction:
    """The prediction on `xi [P*, Π, D]` given each of many order parameters, unchecked.

    Mean kᵀ(K+𝒯)⁻¹Y, Eq. 9, and variance, Eq. 30, `[*batch, P*]` each, at one temperature or at
    one for each U. Where there are several U, kernels of pairs of paths are made once and weighed
    for each, as far as they fit. `scale [Π]` is s_π, by default Π^(−1/2). Labels `y [P, C]` are
    regressed together, and give `[*batch, P*, C]`.

    >>> one = jnp.ones((1, 1, 1))
    >>> regress(jnp.ones((4, 1, 1)), one, jnp.array([2.0]), one, temperature=jnp.ones(()),
    ...         prior_variance=jnp.ones(())).mean.round(9).tolist()
    [[1.0], [1.0], [1.0], [1.0]]
    """
    paths, rows = train.shape[1], len(train)
    many = U.size > U.shape[-1] ** 2
    temperature = jnp.broadcast_to(temperature, U.shape[:-2])
    # kernels from test examples to training rows are stored in blocks
    step = max(1, _BLOCK // (rows * pair_count(paths, y[0].size))) if many else len(xi)
    parts = [
        _regress(U, train, y, xi[i : i + step], temperature, prior_variance, scale, many)
        for i in range(0, len(xi), step)
    ]
    return jax.tree.map(lambda *each: jnp.concatenate(each, axis=U.ndim - 2), *parts)


@functools.partial(jax.jit, static_argnames="many")
def _regress(U, train, y, xi, temperature, prior_variance, scale, many) -> Prediction:
    train, xi = (_scaled(each, prior_variance, scale) for each in (train, xi))
    paths, size, outputs = xi.shape[1], U.shape[-1], y[0].size
    own = jnp.einsum("api,aqi->pqa", xi, xi)
    lower = np.tril_indices(size)
    cross = pair_kernels(xi, train, outputs) if many else None
    stored = many and stores(len(train), paths, outputs)
    between = pair_kernels(train, train, outputs) if stored else None

    def kernel(U, pairs, a, b):
        return combine(U, a, b) if pairs is None else weigh(U[lower], pairs, outputs)

    def one(point):
        U, temperature = point
        if y.ndim == 1:
            diagonal = jnp.einsum("pq,pqa->a", U, own)
        else:
            by_output = U.reshape(paths, outputs, paths, outputs)
            diagonal = jnp.einsum("pcqe,pqa->ace", by_output, own)
        k, among = kernel(U, cross, xi, train), kernel(U, between, train, train)
        return _given_kernel(among, k, diagonal, y, temperature)

    flat = jax.lax.map(one, (U.reshape(-1, size, size), temperature.reshape(-1)))
    return jax.tree.map(lambda leaf: leaf.reshape(*U.shape[:-2], *leaf.shape[1:]), flat)


def check_finite(found: Prediction, temperature: Float[Array, "..."], xi) -> None:
    """Refuse a prediction on `xi` that double precision could not give."""
    if _checks.is_traced(found.mean):
        return
    _checks.representable(jnp.vdot(xi, xi), "the features xi")
    if not jnp.all(jnp.isfinite(found.mean)):
        last = -1 if found.covariance is None else (-2, -1)
        bad = ~np.isfinite(np.asarray(found.mean)).all(axis=last)
        coldest = np.broadcast_to(np.asarray(temperature), bad.shape)[bad].min()
        raise ValueError(
            f"temperature {coldest:g} is too small for this kernel, whose Cholesky factorisation "
            "fails in double precision; raise it or rescale xi and y"
        )
    _checks.representable(found, "U and xi")


def pair_count(paths: int, outputs: int = 1) -> int:
    """How many kernels `pair_kernels` gives."""
    return paths**2 if outputs > 1 else paths * (paths + 1) // 2


def stores(rows: int, paths: int, outputs: int = 1) -> bool:
    """Whether the kernels of all pairs of paths between so many rows are few enough to keep."""
    return 8 * pair_count(paths, outputs) * rows**2 <= STORED_BYTES


def alignment(kernel: ArrayLike, y: ArrayLike) -> Alignment:
    """Cosine between each principal component of the kernel and the labels (Fig. 2d).

    Component i, of the i-th largest eigenvalue, has the overlap |v_i·Y| / ‖Y‖; the squares of
    all overlaps sum to 1. Takes `kernel [P, P]`, symmetric and positive semidefinite, and `y [P]`;
    gives overlaps and eigenvalues `[P]`.

    >>> alignment([[2.0, 0.0], [0.0, 1.0]], [0.0, 3.0]).overlaps
    Array([0., 1.], dtype=float64)
    """
    kernel = _checks.array("kernel", kernel, "examples examples")
    y = _checks.array("y", y, "examples")
    if kernel.shape != (len(y), len(y)):
        raise ValueError(f"kernel must be [{len(y)}, {len(y)}] to fit y; got {kernel.shape}")
    if not _checks.is_traced(y) and not np.any(np.asarray(y) != 0):
        raise ValueError("y must have a non-zero entry: nothing aligns with a zero vector")
    eigenvalues, vectors = jnp.linalg.eigh(_checks.semidefinite("kernel", kernel))
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
