"""The two posterior densities that are sampled: of the order parameter, and of all weights.

Each is minus the logarithm of a density, a function of data and coordinates z whose priors are
N(0, 1) or close to it. They are compared by their settings, so that equal ones share compiled
code, and say how data are prepared, where chains start and how coordinates are read.
"""

import dataclasses
import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnpaths import action, hierarchy
from attnpaths.network import Weights, empirical_order_parameter
from attnpaths.predictor import Problem


@dataclasses.dataclass(frozen=True)
class OrderParameter:
    """Of the order parameter at width N, in the coordinates of `attnpaths.hierarchy`.

    >>> density = OrderParameter(heads=(2, 2), width=10)
    >>> density.starts(jax.random.key(0), 4).shape
    (4, 14)
    """

    heads: tuple[int, ...]
    width: int

    def __call__(self, data: action.Data, z: Float[Array, " size"]) -> Float[Array, ""]:
        """½[ln det(K+𝒯) + Yᵀ(K+𝒯)⁻¹Y] − ln p(z), up to a constant."""
        U = hierarchy.order_parameter(hierarchy.factors(z, self.heads, self.width))
        # the energy brings its gradient along: both come from one Cholesky factor
        likelihood = action.energy(data, U[np.tril_indices(len(U))])
        return likelihood / 2 - hierarchy.log_prior(z, self.heads, self.width)

    def data(self, problem: Problem) -> action.Data:
        """Kernels of all pairs of paths, with σ in them."""
        return _kernels(problem._replace(heads=None), layers=len(self.heads))

    @functools.partial(jax.jit, static_argnums=(0, 2))
    def starts(self, key: Array, chains: int) -> Float[Array, "chains size"]:
        """Draws from the prior, far from the posterior where data say much."""
        return jax.vmap(lambda k: hierarchy.draw(k, self.heads, self.width))(
            jax.random.split(key, chains)
        )

    @functools.partial(jax.jit, static_argnums=0)
    def read(self, z: Float[Array, "chains samples size"], prior_variance: Float[Array, ""]):
        """The factors B_{L+1}, …, B_1 and the order parameter U of every draw."""

        def one(z):
            B = hierarchy.factors(z, self.heads, self.width)
            B = tuple(b * jnp.sqrt(prior_variance) for b in B)
            return B, hierarchy.order_parameter(B)

        return jax.vmap(jax.vmap(one))(z)


@dataclasses.dataclass(frozen=True)
class AllWeights:
    """Of all weights V⁰, V and a, in units of σ: Eq. 8.

    >>> AllWeights(heads=(2, 2), width=10, dim=231).size
    2720
    """

    heads: tuple[int, ...]
    width: int
    dim: int

    def __call__(self, data: tuple[Array, Array], z: Float[Array, " size"]) -> Float[Array, ""]:
        """‖f − Y‖²/(2𝒯) + ‖z‖²/2; a gradient costs one product with ξ and one with ξᵀ."""
        features, y = data
        weights = self.weights(z)
        per_path = weights.a[None]
        for values in reversed(weights.V):
            per_path = jnp.einsum("kn,hnm->hkm", per_path, values).reshape(-1, self.width)
        residual = features @ (per_path @ weights.V0).ravel() - y
        return (jnp.sum(residual**2) + jnp.sum(z**2)) / 2

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of V⁰, of V in every layer, and of a."""
        layers = [(h, self.width, self.width) for h in self.heads]
        return [(self.width, self.dim), *layers, (self.width,)]

    @property
    def size(self) -> int:
        """The number of weights."""
        return sum(map(math.prod, self.shapes))

    def weights(self, z: Float[Array, " size"]) -> Weights:
        """The weights that coordinates stand for, in units of σ."""
        ends = list(itertools.accumulate(map(math.prod, self.shapes)))
        parts = zip(jnp.split(z, ends[:-1]), self.shapes, strict=True)
        V0, *V, a = (part.reshape(shape) for part, shape in parts)
        return Weights(V0, tuple(V), a)

    def data(self, problem: Problem) -> tuple[Array, Array]:
        """ξ and Y in units of √𝒯, with every factor of Eq. 5 in ξ."""
        return _linear(problem._replace(heads=None), width=self.width, layers=len(self.heads))

    @functools.partial(jax.jit, static_argnums=(0, 2))
    def starts(self, key: Array, chains: int) -> Float[Array, "chains size"]:
        """Draws from the prior."""
        return jax.random.normal(key, (chains, self.size))

    @functools.partial(jax.jit, static_argnums=0)
    def read(self, z: Float[Array, "chains samples size"], prior_variance: Float[Array, ""]):
        """The weights and the order parameter U = V_eff V_effᵀ/N of every draw."""
        weights = jax.vmap(jax.vmap(self.weights))(z * jnp.sqrt(prior_variance))
        return weights, jax.vmap(jax.vmap(empirical_order_parameter))(weights)


@functools.partial(jax.jit, static_argnames="layers")
def _kernels(problem: Problem, *, layers: int) -> action.Data:
    return action.prepare(
        problem.xi,
        problem.y,
        layers=layers,
        temperature=problem.temperature,
        prior_variance=problem.prior_variance,
    )


@functools.partial(jax.jit, static_argnames=("width", "layers"))
def _linear(problem: Problem, *, width: int, layers: int) -> tuple[Array, Array]:
    examples, paths, dim = problem.xi.shape
    factor = problem.prior_variance ** (layers + 2) / (paths * dim * width ** (layers + 1.0))
    flat = (problem.xi * jnp.sqrt(factor / problem.temperature)).reshape(examples, -1)
    y = problem.y / jnp.sqrt(problem.temperature)
    if action.rows(examples, paths, dim) < examples:
        # directions of Y that no path reaches only add a constant
        basis, flat = jnp.linalg.qr(flat)
        y = basis.T @ y
    return flat, y
