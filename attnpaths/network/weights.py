"""The weights that are learned, and what they amount to along each path."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from attnpaths import _checks


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Weights:
    """The weights that are learned: `V0 [N, D]`, `V` (L arrays `[H, N, N]`), `a [N]`.

    Layers may have different widths: with N_ℓ units entering layer ℓ and N_{L+1} the readout,
    these are `V0 [N_1, D]`, `V[ℓ − 1] [H_ℓ, N_{ℓ+1}, N_ℓ]` and `a [N_{L+1}]`. A pytree;
    `jax.vmap` over one with leading axes handles many networks at once.

    >>> weights = Weights.prior(0, width=5, dim=3, heads=(2, 2))
    >>> weights.V0.shape, [v.shape for v in weights.V], weights.a.shape
    ((5, 3), [(2, 5, 5), (2, 5, 5)], (5,))
    """

    V0: Any
    V: Any
    a: Any

    @property
    def widths(self) -> tuple[int, ...]:
        """(N_1, …, N_{L+1}): what enters each layer, and the readout."""
        return (*(v.shape[-1] for v in self.V), self.a.shape[-1])

    @classmethod
    def prior(
        cls,
        seed: ArrayLike,
        *,
        width: int | Sequence[int],
        dim: int,
        heads: Sequence[int],
        prior_variance: ArrayLike = 1.0,
    ) -> "Weights":
        """Draw every weight from its prior, N(0, σ²); `seed` is an integer or a JAX key.

        `width` is N, or (N_1, …, N_{L+1}) for layers of different widths.
        """
        heads = _checks.head_counts("heads", heads)
        widths = _checks.widths(width, len(heads))
        dim = _checks.whole("dim", dim, least=1)
        sigma = jnp.sqrt(_checks.number("prior_variance", prior_variance, above=0.0))
        is_key = isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key)
        key = seed if is_key else jax.random.key(_checks.whole("seed", seed, least=0))
        sizes = shapes(heads, widths, dim)
        count = sum(map(math.prod, sizes))
        _checks.memory(
            # the bits, the numbers, and the matrices cut out of them
            4 * 8 * count,
            f"{count:,} weights of width {width}",
            "take a smaller width, or fewer heads; the theory takes any width",
        )
        return _draw(key, sigma, count, sizes)


def shapes(heads: Sequence[int], widths: Sequence[int], dim: int) -> tuple[tuple[int, ...], ...]:
    """The shapes of V⁰, of V in every layer, and of a."""
    layers = zip(heads, widths[1:], widths[:-1], strict=True)
    return ((widths[0], dim), *layers, (widths[-1],))


def unpack(flat: Float[Array, " size"], shapes: Sequence[tuple[int, ...]]) -> Weights:
    """Weights of these `shapes` from all their entries, one after the other."""
    ends = list(itertools.accumulate(map(math.prod, shapes)))
    parts = zip(jnp.split(flat, ends[:-1]), shapes, strict=True)
    V0, *V, a = (part.reshape(shape) for part, shape in parts)
    return Weights(V0, tuple(V), a)


@functools.partial(jax.jit, static_argnums=(2, 3))
def _draw(key, sigma, count, shapes):
    return unpack(sigma * jax.random.normal(key, (count,)), shapes)


def check(weights: Weights) -> Weights:
    """`weights` as float64, or a ValueError that says what does not fit."""
    if not isinstance(weights, Weights):
        raise ValueError(f"weights must be Weights(V0, V, a); got {type(weights).__name__}")
    return Weights(*_checks.weights(weights.V0, weights.V, weights.a))


def effective_weights(weights: Weights) -> Float[Array, "paths width"]:
    """Effective weights V_eff `[Π, N]`: all the value matrices along a path, and the readout.

    Eq. 6: V_eff^π = N^(−L/2) a·V^{(L)h_L}·…·V^{(1)h₁}; h₁ is the slowest index. Where layers have
    different widths, N is N_1, and N^L the product of N_2, …, N_{L+1}.

    >>> effective_weights(Weights.prior(0, width=5, dim=3, heads=(2, 2))).shape
    (4, 5)
    """
    return along_paths(check(weights))


@jax.jit
def along_paths(weights: Weights) -> Float[Array, "paths width"]:
    """`effective_weights` without its checks."""
    v_eff = weights.a[None]
    for values in reversed(weights.V):
        above, below = values.shape[1:]
        # the earlier layer's head becomes the slower index
        v_eff = jnp.einsum("kn,hnm->hkm", v_eff, values).reshape(-1, below) / math.sqrt(above)
    return v_eff


def empirical_order_parameter(weights: Weights) -> Float[Array, "paths paths"]:
    """The order parameter of one network, U = V_eff V_effᵀ/N `[Π, Π]`.

    Its average over the posterior is the theory's U: Eq. 13.

    >>> empirical_order_parameter(Weights.prior(0, width=5, dim=3, heads=(2, 2))).shape
    (4, 4)
    """
    weights = check(weights)
    count = math.prod(v.shape[0] for v in weights.V)
    _checks.memory(
        16 * count**2, f"the order parameter of {count:,} paths", "take fewer layers or heads"
    )
    v_eff = along_paths(weights)
    return v_eff @ v_eff.T / v_eff.shape[1]


def path_outputs(weights: Weights, xi: ArrayLike) -> Float[Array, "examples paths"]:
    """What each path adds to the output, `[P, Π]`: f = Σ_π f^π.

    f^π = (Π·N·D)^(−1/2) V_eff^π V⁰ ξ^π, one term of Eq. 5. Takes the
    attentioned inputs ξ `[P, Π, D]`, which `network.features(x)` gives.

    >>> from attnpaths import Network
    >>> network = Network([jnp.ones((2, 3, 3)), jnp.ones((2, 3, 3))], readout=0)
    >>> weights = Weights.prior(0, width=5, dim=3, heads=(2, 2))
    >>> x = jnp.arange(60.0).reshape(5, 4, 3)
    >>> parts = path_outputs(weights, network.features(x))
    >>> bool(jnp.allclose(parts.sum(axis=1), network.apply(weights, x)))
    True
    """
    xi = _checks.array("xi", xi, "examples paths dim")
    weights = check(weights)
    count, dim = math.prod(v.shape[0] for v in weights.V), weights.V0.shape[1]
    if xi.shape[1:] != (count, dim):
        raise ValueError(
            f"weights are for {count} paths and tokens of dimension {dim}, but xi has "
            f"{xi.shape[1]} paths and dimension {xi.shape[2]}; both must be of one network"
        )
    return _path_outputs(weights, xi)


@jax.jit
def _path_outputs(weights, xi):
    return jnp.einsum("kd,pkd->pk", path_readouts(weights), xi)


def path_readouts(weights: Weights) -> Float[Array, "paths dim"]:
    """The vector `[Π, D]` that each path reads ξ out with, every factor of Eq. 5 in it."""
    v_eff = along_paths(weights)
    width, dim = weights.V0.shape
    return v_eff @ weights.V0 / math.sqrt(len(v_eff) * width * dim)
