"""Where the minimiser starts: the minima of the action along one common scale of all paths.

With all factors B_ℓ = s I the kernel is s^{2(L+1)} times that of the GP limit, so that the action
is a curve in s, known from one spectrum for every width and temperature. Most curves have one
valley, which holds s = 1. Where labels are large beside weak features there are others: a network
that does not try to explain its labels, and one that does.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attnpaths.network.ways import Ways
from attnpaths.theory import energies, factors
from attnpaths.theory.action import Widths
from attnpaths.theory.energies import Data

# Logarithms of s²; one of them is 0, the GP limit.
_SCALES = np.linspace(-32.0, 32.0, 321)
# More rows than these have their spectrum by quadrature, with so many nodes.
_EXACT, _NODES = 256, 48
# With skips, one path alone may have its valley this far from that of all, in ln s².
_APART = 1.0
# So many random factors are kept to start from.
_PATTERNS = 2
# Kernels that exceed the temperature by more than this leave no digits to a Cholesky factor.
_LARGEST_RATIO = 1e11


class Spectrum(NamedTuple):
    """The eigenvalues of the GP limit's kernel, how many of each, and ‖Y‖² along them."""

    values: Float[Array, " nodes"]
    counts: Float[Array, " nodes"]
    labels: Float[Array, " nodes"]
    largest: Float[Array, ""]


def spectrum(data: Data, ways: Ways) -> Spectrum:
    """All eigenvalues, or nodes of Gauss quadratures that stand for them where rows are many."""
    kernel = energies.mix(data, factors.pairs(jnp.eye(ways.paths * ways.readouts)))
    largest = jnp.max(jnp.diag(kernel))
    if len(kernel) <= _EXACT:
        values, vectors = jnp.linalg.eigh(kernel)
        labels = (vectors.T @ data.y) ** 2
        return Spectrum(jnp.maximum(values, 0.0), jnp.ones(len(values)), labels, largest)
    signs = jax.random.rademacher(jax.random.key(0), data.y.shape, float)
    both = jax.vmap(lambda vector: _quadrature(kernel, vector))(jnp.stack([signs, data.y]))
    (of_all, of_labels), (counts, labels) = both
    none = jnp.zeros(_NODES)
    return Spectrum(
        jnp.concatenate([of_all, of_labels]),
        jnp.concatenate([counts, none]),
        jnp.concatenate([none, labels]),
        largest,
    )


def _quadrature(matrix, vector):
    """Nodes and weights with vᵀ f(M) v ≈ Σ w f(x): Lanczos, orthogonal to all that came before."""
    norm = jnp.linalg.norm(vector)
    basis = jnp.zeros((_NODES, len(vector)))

    def step(state, row):
        basis, vector = state
        basis = basis.at[row].set(vector)
        along = matrix @ vector
        for _ in range(2):
            along = along - basis.T @ (basis @ along)
        length = jnp.linalg.norm(along)
        return (basis, along / jnp.maximum(length, 1e-300)), None

    first = vector / jnp.maximum(norm, 1e-300)
    (basis, _), _ = jax.lax.scan(step, (basis, first), jnp.arange(_NODES))
    values, vectors = jnp.linalg.eigh(basis @ matrix @ basis.T)
    return jnp.maximum(values, 0.0), norm**2 * vectors[0] ** 2


def curve(
    spectrum: Spectrum, temperature: Float[Array, ""], widths: Widths, ways: Ways, *, alone: bool
) -> Float[Array, " scales"]:
    """The action at every scale, of all paths together, or as if one path could do it `alone`.

    Such a path goes through a head of every layer, and so grows with all levels.
    """
    scales = jnp.asarray(_SCALES)
    levels = _scaled(ways, alone)
    rows = [1 if alone else rows for rows, _ in ways.levels][:levels]
    entropy = jnp.sum(widths.shares[:levels] * jnp.asarray(rows, float))
    noisy = jnp.exp(levels * scales)[:, None] * spectrum.values[None] + temperature
    energy = jnp.log(noisy / temperature) @ spectrum.counts + (1 / noisy) @ spectrum.labels
    return entropy * (jnp.exp(scales) - scales) + energy / widths.mean


def _scaled(ways: Ways, alone: bool) -> int:
    """How many levels have the common scale: with skips, the last, unless a path is `alone`."""
    return 1 if any(ways.residual) and not alone else len(ways.levels)


class Starts(NamedTuple):
    """Factors to start from, along a first axis, and of what kind each is.

    `wanted` are worth it whatever the others find; `near` is where a neighbour ended; `mixed` are
    patterns, to be made as large as the best that is known.
    """

    point: factors.Factors
    wanted: Bool[Array, " starts"]
    near: Bool[Array, " starts"]
    mixed: Bool[Array, " starts"]

    @classmethod
    def of(
        cls,
        spectrum: Spectrum,
        temperature: Float[Array, ""],
        widths: Widths,
        ways: Ways,
        near: factors.Factors,
        alone: Bool[Array, ""],
    ) -> "Starts":
        """First a neighbour, unless `alone`; else the valley of the GP limit; then all others.

        These are the GP limit, and the lowest points outside of its valley, with the entropy of all
        paths and with that of one. Where there are such, the valley counts also beside a neighbour.
        """
        values = curve(spectrum, temperature, widths, ways, alone=False)
        inside, others = _valley(values)
        cheaper = curve(spectrum, temperature, widths, ways, alone=True)
        _, far = _valley(cheaper)
        if any(ways.residual):
            # skips hold up the levels below: a path may go far where all together have no valley
            scales = jnp.asarray(_SCALES)
            lowest = jnp.argmin(jnp.where(inside, values, jnp.inf))
            apart = jnp.abs(scales - scales[lowest]) > _APART
            far |= apart & (jnp.arange(len(scales)) == jnp.argmin(cheaper))
        several = (jnp.any(others) | jnp.any(far)) & jnp.isfinite(widths.mean)
        places = [
            jnp.argmin(jnp.where(inside, values, jnp.inf)),
            jnp.asarray(len(_SCALES) // 2),
            jnp.argmin(jnp.where(others, values, jnp.inf)),
            jnp.argmin(jnp.where(far, cheaper, jnp.inf)),
        ]
        # no larger than rounding grants a Cholesky factor
        most = jnp.log(_LARGEST_RATIO * temperature / spectrum.largest)
        scaled = []
        for place, deep in zip(places, (False, False, False, True), strict=True):
            levels = _scaled(ways, deep)
            log = jnp.minimum(jnp.asarray(_SCALES)[place], jnp.maximum(most / levels, _SCALES[0]))
            scaled.append(_common(ways, jnp.exp(log / 2), levels))
        listed = jax.tree.map(lambda *points: jnp.stack(points), near, *scaled)
        point = jax.tree.map(lambda *all: jnp.concatenate(all), listed, _patterns(ways))
        no = jnp.array(False)
        own = [~alone, alone | several, no, several & jnp.any(others), several & jnp.any(far)]
        number = jnp.arange(len(own) + _PATTERNS)
        wanted = jnp.stack(own + [no] * _PATTERNS)
        return cls(point, wanted, number == 0, number >= len(own))

    def beside(self, best: factors.Factors, ways: Ways) -> factors.Factors:
        """One of these: as it is, or a pattern with the sizes of the best that is known."""

        def sized(point, B, fixed):
            free = point * jnp.sqrt(jnp.sum(B[fixed:] ** 2) / jnp.sum(point[fixed:] ** 2))
            return jnp.where(self.mixed, free.at[:fixed].set(point[:fixed]), point)

        fixed = [rows for _, rows in ways.levels]
        return tuple(map(sized, self.point, best, fixed))


def growth(B: factors.Factors, ways: Ways) -> Float[Array, ""]:
    """The largest square of a row of a factor, which is 1 in the GP limit."""
    found = [
        jnp.max(jnp.sum(b[fixed:] ** 2, axis=1))
        for b, (_, fixed) in zip(B, ways.levels, strict=True)
    ]
    return jnp.max(jnp.stack(found))


def _patterns(ways: Ways) -> tuple[Float[Array, "patterns _ _"], ...]:
    """Random factors, the same each time, which mix all paths."""
    rng, found = np.random.default_rng(0), []
    for size, fixed in ways.levels:
        B = np.tril(rng.normal(size=(_PATTERNS, size, size)), -1) + np.eye(size)
        B[:, :fixed] = np.eye(size)[:fixed]
        found.append(jnp.asarray(B))
    return tuple(found)


def _common(ways: Ways, scale: Float[Array, ""], levels: int) -> factors.Factors:
    """The factors sI of so many levels from the last, and I of the others, but for skips."""
    return tuple(
        jnp.diag(jnp.where(np.arange(n) < fixed, 1.0, scale)) if i < levels else jnp.eye(n)
        for i, (n, fixed) in enumerate(ways.levels)
    )


def _valley(values):
    """The points of a curve between the two heights around s = 1, and all minima elsewhere."""
    middle = len(_SCALES) // 2
    inner = values[1:-1]
    edge = jnp.zeros(1, bool)
    bottom = jnp.concatenate([edge, (inner < values[:-2]) & (inner <= values[2:]), edge])
    height = jnp.concatenate([edge, (inner > values[:-2]) & (inner >= values[2:]), edge])
    number = jnp.arange(len(values))
    left = jnp.max(jnp.where(height & (number < middle), number, -1))
    right = jnp.min(jnp.where(height & (number > middle), number, len(values)))
    inside = (number > left) & (number < right)
    return inside, bottom & ~inside
