"""The action: entropy of the factor form, and energy with closed first and second derivatives.

Levels are measured in powers of σ², as in `factors`, which turns every problem into one with
σ = 1 whose ξ is larger by σ^{L+2}, or by the σ of all weights along each path. With C outputs the
PC labels are regressed together, and everything else is as with one: S = Σ_ℓ (N_ℓ/N)(−ℒ_ℓ) +
[ln det(K+𝒯) + Yᵀ(K+𝒯)⁻¹Y]/N with K and Y of size PC.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float

from attnpaths import kernels
from attnpaths.network.ways import Ways
from attnpaths.problem import Problem, graded_rows
from attnpaths.theory import stored
from attnpaths.theory.factors import (
    Factors,
    assemble,
    entropies,
    in_steps,
    logarithms,
    pairs,
    ranges,
    towards,
    unknowns,
)

# Matrices of so many rows are inverted by halves.
_HALVED = 128
# At least so many random vectors stand for all in an estimate of a trace.
_PROBES = 16
# A careful estimate has so many times as many, or all.
_BLOCKS = 4


class Widths(NamedTuple):
    """The width N that energies are divided by, and each level's share N_ℓ/N of the entropy.

    Shares are in the order of the factors, from level L+1 to level 1; all are 1 where all layers
    have one width. Where they differ, N is their mean: S = Σ_ℓ (N_ℓ/N)(−ℒ_ℓ) + (P/N) ℰ.
    """

    mean: Float[Array, ""]
    shares: Float[Array, " levels"]

    @classmethod
    def of(cls, width: Float[Array, "*levels"], layers: int) -> "Widths":
        """From one width, or from (N_1, …, N_{L+1})."""
        if jnp.ndim(width) == 0:
            return cls(width, jnp.ones(layers + 1))
        mean = jnp.mean(width)
        return cls(mean, width[::-1] / mean)


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


def doubt(B: Factors, data: Data, widths: Widths) -> Float[Array, ""]:
    """What rounding may hide of the gradient: vᵀKv of labels that seem out of reach."""
    U = assemble(B)[-1]
    return 2 * data.unsure * jnp.sum(U**2) / (data.temperature**2 * widths.mean)


def resolution(B: Factors, data: Data) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The smallest part of a diagonal entry of a level that the entries above do not determine.

    As much of the relative precision of its numbers is left to the level, U⁽ℓ⁾ = A_ℓ A_ℓᵀ. Beside
    it, by how much the kernel exceeds the temperature.
    """
    levels = assemble(B)
    parts = [jnp.min(jnp.diag(A) ** 2 / jnp.sum(A**2, axis=1)) for A in levels]
    kernel = mix(data, pairs(levels[-1]))
    return jnp.min(jnp.stack(parts)), jnp.max(jnp.diag(kernel)) / data.temperature


def action(B: Factors, data: Data, widths: Widths, ways: Ways | None = None) -> Float[Array, ""]:
    """S = −Σℒ + αℰ, Eq. 32, at σ = 1 and without the constant `unreached`."""
    entropy = jnp.sum(widths.shares * entropies(B, ways))
    return entropy + energy(data, pairs(assemble(B)[-1])) / widths.mean


def value_and_gradient(
    B: Factors, data: Data, widths: Widths, heads: tuple[int, ...] | Ways
) -> tuple[Array, Array, Array, Likelihood]:
    """The action, its gradient in the `step` of `move`, and the scale of what cancels in it.

    Then what they come from, of which `hessian` needs all.

    A gradient has terms of the entropy, which is ‖B_ℓ‖² − 2 Σ ln diag B_ℓ, and of the two parts of
    the energy. The scale of all entries of a level is the sum of the largest of each: levels that
    matter little have small ones. Labels that no path reaches have no part in it.
    """
    ways = Ways.of(heads)
    (entropy, u), back = _parts_and_back(B, widths, ways)
    found = likelihood(data, u)
    value = entropy + found.energy / widths.mean
    slopes = _through(back, found.traces, found.pulls, widths)
    entropic, *energies = (in_steps(B, slope, ways) for slope in slopes)
    sizes = []
    for b, share, (start, end) in zip(B, widths.shares, ranges(ways), strict=True):
        parts = (jnp.max(jnp.abs(each[start:end]), initial=0.0) / 2 for each in energies)
        largest = jnp.max(jnp.sum(b**2, axis=0))
        sizes.append(jnp.full(end - start, share * jnp.maximum(1.0, largest) + sum(parts)))
    return value, entropic + sum(energies), jnp.concatenate(sizes), found


def _through(back, traces, pulls, widths: Widths) -> list[Factors]:
    """The gradient in the factors in three parts: entropy, ln det, and labels."""
    none = jnp.zeros_like(traces)
    each = jnp.array([1.0, 0.0, 0.0]), jnp.stack([none, traces, -pulls]) / widths.mean
    (slopes,) = jax.vmap(back)(each)
    return [tuple(b[i] for b in slopes) for i in range(3)]


def _parts_and_back(B: Factors, widths: Widths, ways: Ways):
    """The entropy and the entries of U, and how slopes in these become slopes in the factors."""
    return jax.vjp(lambda B: _parts(B, widths, ways), B)


def _parts(B: Factors, widths: Widths, ways: Ways):
    """The entropy, and the entries of U that the energy depends on."""
    return jnp.sum(widths.shares * entropies(B, ways)), pairs(assemble(B)[-1])


def hessian_product(
    B: Factors, data: Data, widths: Widths, heads: tuple[int, ...] | Ways
) -> Callable[[Float[Array, " unknowns"]], Float[Array, " unknowns"]]:
    """Products with the second derivative of the action in `step`."""
    ways = Ways.of(heads)

    def slope(B):
        (_, u), back = _parts_and_back(B, widths, ways)
        _, *terms = energy_and_slopes(data, u)
        return jax.tree.map(lambda *parts: sum(parts), *_through(back, *terms, widths))

    slopes, product = jax.linearize(slope, B)
    bent = _bent(B, slopes, ways)
    return lambda step: in_steps(B, product(towards(B, step, ways)), ways) + bent * step


def _bent(B: Factors, slopes: Factors, ways: Ways) -> Float[Array, " unknowns"]:
    """What the second derivative has on its diagonal since some steps are logarithms."""
    return logarithms(ways) * in_steps(B, slopes, ways)


def by_entry(data: Data) -> bool:
    """Whether every entry of U on and below its diagonal has one kernel, as with one output."""
    return len(data.features) == len(data.y)


def _spread(data: Data, entries: int, x: Float[Array, "labels columns"]):
    """C_a x for all entries a of U on and below its diagonal, which are what K is linear in."""
    if not by_entry(data):
        return jax.lax.map(lambda a: mix(data, a) @ x, jnp.eye(entries))
    rows, paths, dim = data.features.shape
    if data.stored is not None and entries * rows < paths**2 * dim:
        pairs_ = jax.vmap(lambda kept: stored.whole(kept, rows))(data.stored)
        return jnp.einsum("apq,qm->apm", pairs_, x)
    # many paths of few directions, or no kernels: one product for all pairs, in both orders
    by_path = jnp.swapaxes(data.features, 0, 1)
    along = jnp.swapaxes(jnp.swapaxes(by_path, 1, 2) @ x, 0, 1).reshape(dim, -1)
    both = (by_path.reshape(-1, dim) @ along).reshape(paths, rows, paths, -1)
    first, second = np.tril_indices(paths)
    double = jnp.asarray(first != second)[:, None, None]
    return both[first, :, second] + jnp.where(double, both[second, :, first], 0.0)


def energy_hessian(
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

    def whitened(x):
        along = jnp.einsum("pq,aqm->apm", whitening, _spread(data, entries, x))
        return along.reshape(entries, -1)

    def add(number, total):
        key = jax.random.fold_in(jax.random.key(0), number)
        signs = jax.random.rademacher(key, (rows, columns), float) / (columns * count) ** 0.5
        units = _units(rows, columns, number)
        along = whitened(whitening.T @ jnp.where(count == blocks, units, signs))
        return total + along @ along.T

    bend = jax.lax.fori_loop(0, count, add, jnp.zeros((entries, entries)))
    labels = whitened(v[:, None])
    return 2 * labels @ labels.T - bend


def _units(rows: int, columns: int, number) -> Float[Array, "rows columns"]:
    """So many unit vectors, after as many times `number`; zeros where there are no more."""
    which = number * columns + jnp.arange(columns)
    return jax.nn.one_hot(which, rows, dtype=float).T


def probes(rows: int, entries: int) -> int:
    """How many random signs stand for all unit vectors: as many as cost a few products of K."""
    return min(rows, max(_PROBES, rows // (3 * entries)))


def hessian(
    B: Factors,
    careful: Bool[Array, ""],
    found: Likelihood,
    data: Data,
    widths: Widths,
    heads: tuple[int, ...] | Ways,
) -> Float[Array, "unknowns unknowns"]:
    """An estimate of the second derivative of the action in `step`, better if `careful`.

    `found` is what `value_and_gradient` found at the same factors. Only that of the energy in U is
    expensive: what the factors add is exact either way.
    """
    ways = Ways.of(heads)
    gradient, curvature = found.traces - found.pulls, energy_hessian(data, found, careful)

    def rest(B):
        """Derivatives of what is linear in U, and U itself."""
        (_, u), back = jax.vjp(lambda B: _parts(B, widths, ways), B)
        return back((jnp.ones(()), gradient / widths.mean))[0], u

    (slopes, _), product = jax.linearize(rest, B)

    def column(step):
        bending, along = product(towards(B, step, ways))
        return in_steps(B, bending, ways), along

    small, along = jax.vmap(column)(jnp.eye(unknowns(ways)))
    small += jnp.diag(_bent(B, slopes, ways))
    return small + along @ curvature @ along.T / widths.mean


def paper_action(
    levels,
    K: Float[Array, "examples examples"],
    y: Float[Array, " examples"],
    *,
    width: Float[Array, ""],
    temperature: Float[Array, ""],
    prior_variance: Float[Array, ""],
):
    """Entropy and energy as the paper prints them, Eqs. 32–34: U_ext, its inverse, determinants.

    `levels` are U⁽¹⁾, …, U⁽ᴸ⁺¹⁾ and `K` the kernel of U⁽¹⁾. This form serves the paper's own
    recipe, `theory.solve_adam`, and checks the factor form.
    """
    entropy, upper = jnp.zeros(()), jnp.ones((1, 1))
    for level in reversed(levels):
        level = jnp.atleast_2d(level)
        extended = jnp.kron(jnp.eye(len(level) // len(upper)), upper)
        trace = jnp.trace(level @ jnp.linalg.inv(extended))
        entropy += trace / prior_variance - _log_det(level) + _log_det(extended)
        upper = level
    noisy = K + temperature * jnp.eye(len(y))
    return entropy, (_log_det(noisy) + y @ jnp.linalg.solve(noisy, y)) / width


def _log_det(matrix: Float[Array, "n n"]) -> Float[Array, ""]:
    """ln det, NaN where the matrix is not positive definite."""
    return 2 * jnp.sum(jnp.log(jnp.diag(jnp.linalg.cholesky(matrix))))
