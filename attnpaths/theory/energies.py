"""The energy, which is minus twice a log marginal likelihood, with its first two derivatives.

Levels are measured in powers of σ², as in `factors`, which turns every problem into one with
σ = 1 whose ξ is larger by σ^{L+2}, or by the σ of all weights along each path. With C outputs the
PC labels are regressed together: P·ℰ = ln det(K+𝒯) + Yᵀ(K+𝒯)⁻¹Y with K and Y of size PC.
Everything here is a function of u, the entries of U on and below its diagonal.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float

from attnpaths import kernels
from attnpaths.problem import Problem, graded_rows
from attnpaths.theory import stored

# Matrices of so many rows are inverted by halves.
_HALVED = 128
# A number of a stored kernel, which has to be unpacked, costs as much as so many of ξ.
_UNPACKING = 5
# At least so many random vectors stand for all in an estimate of a trace; with the labels 16.
_PROBES = 15
# A careful estimate has so many times as many, or all.
_BLOCKS = 4


class Data(NamedTuple):
    """A problem whose levels are in units of σ², with the kernels of pairs of paths, if they fit.

    Its rows are those of `problem.graded_rows`; `unseen`, `missed` and `unsure` are what these
    leave out. Kernels are kept as `stored` keeps them, or whole where there are several outputs.
    """

    stored: Float[Array, "pairs kept"] | None
    features: Float[Array, "rows paths dim"]
    y: Float[Array, " labels"]
    unseen: Array | int
    missed: Float[Array, ""]
    unsure: Float[Array, ""]
    temperature: Float[Array, ""]


def prepare(problem: Problem) -> Data:
    """Absorb σ and the normalisation of the kernel in ξ; store path–path kernels that fit."""
    rows, ways = graded_rows(problem), problem.ways
    count, paths, _ = rows.xi.shape
    features = rows.xi * jnp.sqrt(problem.path_variances)[None, :, None]
    unsure = rows.unsure * jnp.max(problem.path_variances)
    rest = rows.y.ravel(), rows.unseen, rows.missed, unsure, problem.temperature
    if not kernels.stores(count, paths, ways.readouts):
        return Data(None, features, *rest)
    if ways.readouts == 1:
        return Data(stored.pair_kernels(features), features, *rest)
    pairs_ = kernels.pair_kernels(features, features, ways.readouts)
    return Data(pairs_.reshape(len(pairs_), -1), features, *rest)


def mix(data: Data, u: Float[Array, " entries"]) -> Float[Array, "labels labels"]:
    """The kernel K(U), linear in the entries u of U on and below its diagonal."""
    rows = len(data.features)
    if data.stored is None:
        return kernels.combine(kernels.symmetric(u), data.features, data.features)
    if by_entry(data):
        return stored.whole(u @ data.stored, rows)
    pairs_ = data.stored.reshape(-1, rows, rows)
    return kernels.weigh(u, pairs_, len(data.y) // rows)


def _seen(data: Data, v: Float[Array, " labels"]) -> Float[Array, "entries dim"]:
    """Σ_μ v_μ ξ_μ for every path, and output: vᵀK(U)w is Σ U times the products of two of these."""
    by_row = v.reshape(len(data.features), -1)
    return jnp.einsum("rpd,rc->pcd", data.features, by_row).reshape(-1, data.features.shape[2])


def _pulls(one: Float[Array, "entries dim"], other: Float[Array, "entries dim"]):
    """∂/∂u of vᵀK(u)w, in the entries u of U on and below its diagonal, by what v and w have seen.

    It reads ξ, which is small, and none of the kernels.
    """
    products = one @ other.T
    both = products + products.T
    return (both - jnp.diag(jnp.diag(products)))[np.tril_indices(len(both))]


def _inverse(matrix: Float[Array, "n n"]):
    """The Cholesky factor L of a matrix, L⁻¹, and the inverse L⁻ᵀL⁻¹."""
    factor = jnp.linalg.cholesky(matrix)
    whitening = _inverse_triangle(factor)
    return factor, whitening, _squared(whitening)


def _inverse_triangle(factor: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """L⁻¹ of a lower triangle L, by halves: what is 0 is not used."""
    n, half = len(factor), len(factor) // 2
    if n < _HALVED:
        return solve_triangular(factor, jnp.eye(n), lower=True)
    first, last = (
        _inverse_triangle(block) for block in (factor[:half, :half], factor[half:, half:])
    )
    between = -last @ (factor[half:, :half] @ first)
    return jnp.block([[first, jnp.zeros((half, n - half))], [between, last]])


def _squared(triangle: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """WᵀW of a lower triangle W, by halves."""
    n, half = len(triangle), len(triangle) // 2
    if n < _HALVED:
        return triangle.T @ triangle
    first, between, last = triangle[:half, :half], triangle[half:, :half], triangle[half:, half:]
    # a transpose that is written out first makes a product of matrices twice as fast
    written = jax.lax.optimization_barrier(triangle[half:].T)
    corner = written[half:] @ between
    return jnp.block(
        [[_squared(first) + written[:half] @ between, corner.T], [corner, _squared(last)]]
    )


class Likelihood(NamedTuple):
    """P·ℰ, the two terms of its gradient in u, and what the second derivative needs.

    `whitening` is W with (K+𝒯)⁻¹ = WᵀW, and `v` is (K+𝒯)⁻¹Y.
    """

    energy: Float[Array, ""]
    traces: Float[Array, " entries"]
    pulls: Float[Array, " entries"]
    whitening: Float[Array, "labels labels"]
    v: Float[Array, " labels"]

    @classmethod
    def none(cls, labels: int, entries: int) -> "Likelihood":
        """In the place of one that is not known yet."""
        slopes, square = jnp.zeros(entries), jnp.zeros((labels, labels))
        return cls(jnp.zeros(()), slopes, slopes, square, jnp.zeros(labels))


def likelihood(data: Data, u: Float[Array, " entries"]) -> Likelihood:
    """P·ℰ = ln det(K+𝒯) + Yᵀ(K+𝒯)⁻¹Y and all that follows from its Cholesky factor."""
    return _likelihood(data, u)[0]


def _likelihood(data: Data, u: Float[Array, " entries"]):
    """With the inverse, and how a matrix M becomes tr(C M) for all entries of U."""
    kernel = mix(data, u)
    factor, whitening, inverse = _inverse(kernel + data.temperature * jnp.eye(len(data.y)))
    v = inverse @ data.y
    energy = 2 * jnp.sum(jnp.log(jnp.diag(factor))) + data.y @ v
    transpose = jax.linear_transpose(lambda w: mix(data, w), u)
    (traces,), seen = transpose(inverse), _seen(data, v)
    return Likelihood(energy, traces, _pulls(seen, seen), whitening, v), inverse, transpose


@jax.custom_jvp
def energy_and_slopes(data: Data, u: Float[Array, " entries"]):
    """P·ℰ = ln det(K+𝒯) + Yᵀ(K+𝒯)⁻¹Y, Eq. 12, and the two terms of its gradient in u.

    Directions that no path reaches add the constant `unreached`, which is left out here.

    ∂/∂U_{ππ'} = tr(C_{ππ'} (K+𝒯)⁻¹) − vᵀ C_{ππ'} v with v = (K+𝒯)⁻¹Y; the second is given as it
    stands, without its sign.
    """
    return _likelihood(data, u)[0][:3]


@energy_and_slopes.defjvp
def _(primals, tangents):
    (data, u), (_, du) = primals, tangents
    (energy, traces, pulls, _, v), inverse, transpose = _likelihood(data, u)
    dK = mix(data, du)
    (dtraces,) = transpose(-inverse @ dK @ inverse)
    dpulls = 2 * _pulls(_seen(data, v), _seen(data, -inverse @ (dK @ v)))
    return (energy, traces, pulls), ((traces - pulls) @ du, dtraces, dpulls)


@jax.custom_jvp
def energy(data: Data, u: Float[Array, " entries"]) -> Float[Array, ""]:
    """The energy alone; differentiating it reuses the factorisation of its value."""
    return energy_and_slopes(data, u)[0]


@energy.defjvp
def _(primals, tangents):
    value, traces, pulls = energy_and_slopes(*primals)
    return value, (traces - pulls) @ tangents[1]


def unreached(data: Data) -> Float[Array, ""]:
    """What directions outside the span of the features add to the energy."""
    return data.unseen * jnp.log(data.temperature) + data.missed / data.temperature


def by_entry(data: Data) -> bool:
    """Whether every entry of U on and below its diagonal has one kernel, as with one output."""
    return len(data.features) == len(data.y)


def _spread(data: Data, entries: int, x: Float[Array, "labels columns"]):
    """C_a x `[labels, entries, columns]` for all entries a of U, which are what K is linear in."""
    if not by_entry(data):
        along = jax.lax.map(lambda a: mix(data, a) @ x, jnp.eye(entries))
        return jnp.swapaxes(along, 0, 1)
    rows, paths, dim = data.features.shape
    if data.stored is not None and _UNPACKING * entries * rows < paths**2 * dim:
        pairs_ = jax.vmap(lambda kept: stored.whole(kept, rows))(data.stored)
        return jnp.einsum("apq,qm->pam", pairs_, x)
    # one product for all pairs of paths, in both orders
    along = (data.features.reshape(rows, -1).T @ x).reshape(paths, dim, -1)
    both = jnp.einsum("rpd,qdm->rpqm", data.features, along)
    both = (both + jnp.swapaxes(both, 1, 2)).reshape(rows, paths**2, -1)
    first, second = np.tril_indices(paths)
    # an entry on the diagonal has been counted twice
    share = jnp.asarray(np.where(first == second, 0.5, 1.0))[None, :, None]
    return share * both[:, first * paths + second]


def hessian(
    data: Data, found: Likelihood, careful: Bool[Array, ""]
) -> Float[Array, "entries entries"]:
    """An estimate of the second derivative of P·ℰ in u where this was found; better if `careful`.

    ∂²/∂u_a∂u_b = −tr(C_a (K+𝒯)⁻¹ C_b (K+𝒯)⁻¹) + 2 vᵀ C_a (K+𝒯)⁻¹ C_b v. With (K+𝒯)⁻¹ = WᵀW the
    trace is Σ_i (W C_a Wᵀe_i)·(W C_b Wᵀe_i) over unit vectors e_i, and what random signs z in
    place of these give on average: a few of them stand for all. Where all unit vectors cost no more
    than such a better estimate, it is exact.
    """
    whitening, v, entries = found.whitening, found.v, len(found.traces)
    rows, columns = len(v), probes(len(v), entries)
    blocks = -(-rows // columns)
    most = min(blocks, _BLOCKS)
    count = jnp.where(careful, most, 1)

    def add(number, total):
        key = jax.random.fold_in(jax.random.key(0), number)
        signs = jax.random.rademacher(key, (rows, columns), float) / (columns * count) ** 0.5
        units = _units(rows, columns, number)
        x = whitening.T @ jnp.where(count == blocks, units, signs)
        # the term of the labels goes with the first of these
        along = _spread(data, entries, jnp.concatenate([x, v[:, None]], axis=1))
        along = (whitening @ along.reshape(rows, -1)).reshape(rows, entries, -1)
        along = jnp.swapaxes(along, 0, 1)
        shares = jnp.full((1, 1, columns + 1), -1.0)
        shares = shares.at[..., -1].set(jnp.where(number == 0, 2.0, 0.0))
        return total + (shares * along).reshape(entries, -1) @ along.reshape(entries, -1).T

    return jax.lax.fori_loop(0, count, add, jnp.zeros((entries, entries)))


def _units(rows: int, columns: int, number) -> Float[Array, "rows columns"]:
    """So many unit vectors, after as many times `number`; zeros where there are no more."""
    which = number * columns + jnp.arange(columns)
    return jax.nn.one_hot(which, rows, dtype=float).T


def probes(rows: int, entries: int) -> int:
    """How many random signs stand for all unit vectors: as many as cost a few products of K."""
    return min(rows, max(_PROBES, rows // (3 * entries)))
