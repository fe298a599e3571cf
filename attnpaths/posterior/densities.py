"""The two posterior densities that are sampled: of the order parameter, and of all weights.

Each is minus the logarithm of a density, a function of data and coordinates z whose priors are
N(0, 1) or close to it; equal settings share compiled code. They say how data are prepared, where
chains start and how coordinates are read.
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnpaths.network import weights
from attnpaths.network.ways import Ways
from attnpaths.posterior import prior
from attnpaths.problem import Problem, reduce_rows
from attnpaths.theory import energies
from attnpaths.theory.trust_region import minimise


@dataclasses.dataclass(frozen=True)
class OrderParameter:
    """Of the order parameter, in the coordinates of `attnpaths.posterior.prior`.

    `widths` are (N_1, …, N_{L+1}): what enters each layer, and the readout; `residual` the layers
    with a skip, and `outputs` is C, if there are several.

    >>> density = OrderParameter(heads=(2, 2), widths=(10, 10, 10))
    >>> data = density.data(Problem.of(jnp.ones((2, 4, 5)), [1, -1], heads=(2, 2), temperature=1))
    >>> z = density.starts(jax.random.key(0), 6)
    >>> z.shape, density(data, z[0]).shape, density.read(z[None], jnp.ones(()))[1].shape
    ((6, 14), (), (1, 6, 4, 4))
    """

    heads: tuple[int, ...]
    widths: tuple[int, ...]
    residual: tuple[bool, ...] = ()
    outputs: int | None = None

    @property
    def ways(self) -> Ways:
        """Heads, skips and outputs."""
        return Ways(self.heads, self.residual, self.outputs)

    def __call__(self, data: energies.Data, z: Float[Array, " size"]) -> Float[Array, ""]:
        """½[ln det(K+𝒯) + Yᵀ(K+𝒯)⁻¹Y] − ln p(z), up to a constant."""
        U = prior.order_parameter(prior.factors(z, self.ways, self.widths))
        # the energy brings its gradient along: both come from one Cholesky factor
        likelihood = energies.energy(data, U[np.tril_indices(len(U))])
        return likelihood / 2 - prior.log_prior(z, self.ways, self.widths)

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return prior.size(self.ways, self.widths)

    def data(self, problem: Problem) -> energies.Data:
        """Kernels of all pairs of paths, with σ in them."""
        return jax.jit(energies.prepare)(problem)

    @functools.partial(jax.jit, static_argnums=(0, 2))
    def starts(self, key: Array, chains: int) -> Float[Array, "chains size"]:
        """Draws from the prior, far from the posterior where data say much."""
        keys = jax.random.split(key, chains)
        return jax.vmap(lambda k: prior.draw(k, self.ways, self.widths))(keys)

    @functools.partial(jax.jit, static_argnums=0)
    def read(self, z: Float[Array, "chains samples size"], prior_variance: Float[Array, "..."]):
        """The factors B_{L+1}, …, B_1 and the order parameter U of every draw."""
        sigmas = jnp.sqrt(self.ways.variances(prior_variance))[:0:-1]
        fixed = [level.fixed for level in prior.levels(self.ways, self.widths)]

        def one(z):
            found = zip(prior.factors(z, self.ways, self.widths), sigmas, fixed, strict=True)
            B = tuple(b.at[rows:].multiply(sigma) for b, sigma, rows in found)
            return B, prior.order_parameter(B)

        return jax.vmap(jax.vmap(one))(z)


@dataclasses.dataclass(frozen=True)
class AllWeights:
    """Of all weights V⁰, V and a, in units of σ: Eq. 8.

    >>> AllWeights(heads=(2, 2), widths=(10, 10, 10), dim=231).size
    2720
    """

    heads: tuple[int, ...]
    widths: tuple[int, ...]
    dim: int
    residual: tuple[bool, ...] = ()
    outputs: int | None = None

    @property
    def ways(self) -> Ways:
        """Heads, skips and outputs."""
        return Ways(self.heads, self.residual, self.outputs)

    def __call__(self, data: tuple[Array, Array], z: Float[Array, " size"]) -> Float[Array, ""]:
        """‖f − Y‖²/(2𝒯) + ‖z‖²/2; a gradient costs one product with ξ and one with ξᵀ."""
        features, y = data
        gap = features @ weights.flat_readouts(weights.unpack(z, self.shapes), self.ways) - y
        return (jnp.sum(gap**2) + jnp.sum(z**2)) / 2

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of V⁰, of V in every layer, and of a."""
        return weights.shapes(self.ways, self.widths, self.dim)

    @property
    def size(self) -> int:
        """The number of weights."""
        return sum(map(math.prod, self.shapes))

    @functools.partial(jax.jit, static_argnums=0)
    def data(self, problem: Problem) -> tuple[Array, Array]:
        """ξ and Y in units of √𝒯, with σ of all weights along a path in ξ."""
        # directions of Y that no path reaches only add a constant
        rows, ways = reduce_rows(problem), problem.ways
        by_path = ways.units(problem.prior_variance)[-1][:: ways.readouts]
        by_path *= ways.variances(problem.prior_variance)[0] / problem.temperature
        flat = (rows.xi * jnp.sqrt(by_path)[None, :, None]).reshape(len(rows.y), -1)
        return flat, rows.y / jnp.sqrt(problem.temperature)

    @functools.partial(jax.jit, static_argnums=(0, 2))
    def starts(self, key: Array, chains: int) -> Float[Array, "chains size"]:
        """Draws from the prior."""
        return jax.random.normal(key, (chains, self.size))

    @functools.partial(jax.jit, static_argnums=0)
    def read(self, z: Float[Array, "chains samples size"], prior_variance: Float[Array, "..."]):
        """The weights and the order parameter U = V_eff V_effᵀ/N of every draw."""
        variances = self.ways.variances(prior_variance)

        def one(flat):
            drawn = weights.in_units(weights.unpack(flat, self.shapes), variances)
            return drawn, weights.empirical_order_parameter(drawn, self.ways.residual)

        return jax.vmap(jax.vmap(one))(z)


@dataclasses.dataclass(frozen=True)
class Shaped:
    """Another density in coordinates w, z = z₀ + S w; its data are (data, z₀, S).

    With the mode as z₀ and S = H^(−1/2), H the Hessian of the potential there, the density is
    nearly round, which makes long and narrow ones cheap to walk through.
    """

    density: Any

    def __call__(self, data, w: Float[Array, " size"]) -> Float[Array, ""]:
        """The potential at z(w)."""
        inner, centre, scale = data
        return self.density(inner, centre + scale @ w)


def shape_of(density: OrderParameter, data, start: Float[Array, " size"]) -> tuple[Array, Array]:
    """The mode z₀ of a posterior and S = H^(−1/2) there, from a start that may be far."""
    centre, hessian = _mode(density, data, start)
    values, vectors = jnp.linalg.eigh((hessian + hessian.T) / 2)
    # flat directions are left as wide as the prior, whose potential is |z|²/2
    return centre, (vectors * jnp.maximum(values, 1.0)[None] ** -0.5) @ vectors.T


@functools.partial(jax.jit, static_argnums=0)
def _mode(density: OrderParameter, data, start):
    """The minimum of the potential, and its Hessian there."""

    def objective(point):
        value, gradient = jax.value_and_grad(lambda z: density(data, z))(point)
        return value, gradient, 1 + jnp.abs(value)

    end = minimise(objective, jnp.add, start, len(start), tolerance=1e-7, most=400)
    product = jax.linearize(jax.grad(lambda z: density(data, z)), end.point)[1]
    return end.point, jax.lax.map(product, jnp.eye(len(start)), batch_size=8)
