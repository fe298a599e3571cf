"""The weights that are learned, and what they amount to along each path."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from attnpaths import _checks
from attnpaths.network.ways import Ways


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Weights:
    """The weights that are learned: `V0 [N, D]`, `V` (L arrays `[H, N, N]`), `a [N]`.

    Layers may have different widths: with N_ℓ units entering layer ℓ and N_{L+1} the readout,
    these are `V0 [N_1, D]`, `V[ℓ − 1] [H_ℓ, N_{ℓ+1}, N_ℓ]` and `a [N_{L+1}]`. Networks of C
    outputs have `a [C, N]`. A pytree; `jax.vmap` over one with leading axes handles many networks
    at once.

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
        prior_variance: ArrayLike | Sequence[ArrayLike] = 1.0,
        outputs: int | None = None,
    ) -> "Weights":
        """Draw every weight from its prior, N(0, σ²); `seed` is an integer or a JAX key.

        `width` is N, or (N_1, …, N_{L+1}) for layers of different widths. `prior_variance` is σ²,
        or one for each of V⁰, V, a, where V may have one for each layer. `outputs` is C, if there
        are several.
        """
        heads = _checks.head_counts("heads", heads)
        widths = _checks.widths(width, len(heads))
        dim = _checks.whole("dim", dim, least=1)
        variance = _checks.variances(prior_variance, len(heads))
        outputs = None if outputs is None else _checks.whole("outputs", outputs, least=1)
        is_key = isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key)
        if is_key and jnp.shape(seed):
            raise ValueError(f"seed must be one key; got {jnp.shape(seed)} of them; use jax.vmap")
        key = seed if is_key else _checks.key("seed", seed)
        ways = Ways(heads, outputs=outputs)
        sizes = shapes(ways, widths, dim)
        count = sum(map(math.prod, sizes))
        remedy = "take a smaller width, or fewer heads; the theory takes any width"
        # the bits, the numbers, and the matrices cut out of them
        _checks.memory(4 * 8 * count, f"{count:,} weights of width {width}", remedy)
        return _draw(key, ways.variances(variance), count, sizes)


def shapes(ways: Ways, widths: Sequence[int], dim: int) -> tuple[tuple[int, ...], ...]:
    """The shapes of V⁰, of V in every layer, and of a."""
    layers = zip(ways.heads, widths[1:], widths[:-1], strict=True)
    a = (widths[-1],) if ways.outputs is None else (ways.outputs, widths[-1])
    return ((widths[0], dim), *layers, a)


def cut(flat: Float[Array, " size"], shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Arrays of these `shapes` from all their entries, one after the other."""
    ends = list(itertools.accumulate(map(math.prod, shapes)))
    parts = zip(jnp.split(flat, ends[:-1]), shapes, strict=True)
    return [part.reshape(shape) for part, shape in parts]


def unpack(flat: Float[Array, " size"], shapes: Sequence[tuple[int, ...]]) -> Weights:
    """Weights of these `shapes` from all their entries."""
    V0, *V, a = cut(flat, shapes)
    return Weights(V0, tuple(V), a)


def in_units(weights: Weights, variances: Float[Array, " kinds"]) -> Weights:
    """Weights drawn from N(0, 1) as those from N(0, σ²), by σ² of V⁰, of every V, and of a."""
    first, *others, last = jnp.sqrt(variances)
    values = tuple(sigma * v for sigma, v in zip(others, weights.V, strict=True))
    return Weights(first * weights.V0, values, last * weights.a)


@functools.partial(jax.jit, static_argnums=(2, 3))
def _draw(key, variances, count, shapes):
    return in_units(unpack(jax.random.normal(key, (count,)), shapes), variances)


def check(weights: Weights) -> Weights:
    """`weights` as float64, or a ValueError that says what does not fit."""
    _checks.kind("weights", weights, Weights, "Weights(V0, V, a)")
    return Weights(*_checks.weights(weights.V0, weights.V, weights.a))


def ways_of(weights: Weights, residual: bool | Sequence[bool]) -> Ways:
    """The ways through a network of these weights, or a ValueError where a skip does not fit."""
    heads = tuple(v.shape[-3] for v in weights.V)
    skips = _checks.skips(residual, len(heads))
    _checks.skip_widths(weights.widths, skips)
    return Ways(heads, skips, weights.a.shape[0] if weights.a.ndim > 1 else None)


def effective_weights(
    weights: Weights, residual: bool | Sequence[bool] = False
) -> Float[Array, "rows width"]:
    """Effective weights V_eff `[Π, N]`: all the value matrices along a path, and the readout.

    Eq. 6: V_eff^π = N^(−L/2) a·V^{(L)h_L}·…·V^{(1)h₁}; h₁ is the slowest index. Where layers have
    different widths, N is N_1, and N^L the product of N_2, …, N_{L+1}. Along the skip of a layer
    that has one, by `residual`, V/√N is the identity. With C outputs there are ΠC rows, output
    fastest.

    >>> effective_weights(Weights.prior(0, width=5, dim=3, heads=(2, 2))).shape
    (4, 5)
    """
    weights = check(weights)
    return along_paths(weights, ways_of(weights, residual).residual)


@functools.partial(jax.jit, static_argnames="residual")
def along_paths(weights: Weights, residual: tuple[bool, ...]) -> Float[Array, "rows width"]:
    """`effective_weights` without its checks."""
    v_eff = jnp.atleast_2d(weights.a)
    for values, skip in zip(reversed(weights.V), reversed(residual), strict=True):
        above, below = values.shape[1:]
        # the earlier layer's head becomes the slower index
        ways = jnp.einsum("kn,hnm->hkm", v_eff, values).reshape(-1, below) / math.sqrt(above)
        v_eff = jnp.concatenate([v_eff, ways]) if skip else ways
    return v_eff


def empirical_order_parameter(
    weights: Weights, residual: bool | Sequence[bool] = False
) -> Float[Array, "rows rows"]:
    """The order parameter of one network, U = V_eff V_effᵀ/N `[Π, Π]`.

    Its average over the posterior is the theory's U: Eq. 13. `residual` and several outputs are as
    in `effective_weights`.

    >>> empirical_order_parameter(Weights.prior(0, width=5, dim=3, heads=(2, 2))).shape
    (4, 4)
    """
    weights = check(weights)
    ways = ways_of(weights, residual)
    count = ways.paths * ways.readouts
    what = f"the order parameter of {count:,} paths"
    _checks.memory(16 * count**2, what, "take fewer layers or heads")
    v_eff = along_paths(weights, ways.residual)
    return v_eff @ v_eff.T / v_eff.shape[1]


def path_outputs(
    weights: Weights, xi: ArrayLike, residual: bool | Sequence[bool] = False
) -> Float[Array, "examples paths *outputs"]:
    """What each path adds to the output, `[P, Π]`, or `[P, Π, C]`: f = Σ_π f^π.

    f^π = s_π (N·D)^(−1/2) V_eff^π V⁰ ξ^π, one term of Eq. 5, where s_π is Π^(−1/2), or without the
    layers that the path skips. Takes the attentioned inputs ξ `[P, Π, D]`, which
    `network.features(x)` gives.

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
    ways = ways_of(weights, residual)
    count, dim = ways.paths, weights.V0.shape[1]
    if xi.shape[1:] != (count, dim):
        raise ValueError(
            f"weights are for {count} paths and tokens of dimension {dim}, but xi has "
            f"{xi.shape[1]} paths and dimension {xi.shape[2]}; both must be of one network"
        )
    return _path_outputs(weights, xi, ways)


@functools.partial(jax.jit, static_argnames="ways")
def _path_outputs(weights, xi, ways: Ways):
    return jnp.einsum("k...d,pkd->pk...", path_readouts(weights, ways), xi)


def path_readouts(weights: Weights, ways: Ways) -> Float[Array, "paths *outputs dim"]:
    """The vector `[Π, D]` that each path reads ξ out with, every factor of Eq. 5 in it.

    With C outputs there are C of them, `[Π, C, D]`.
    """
    v_eff = along_paths(weights, ways.residual)
    width, dim = weights.V0.shape
    scale = np.repeat(ways.scales, ways.readouts)[:, None] / math.sqrt(width * dim)
    found = scale * (v_eff @ weights.V0)
    return found if ways.outputs is None else found.reshape(-1, ways.outputs, dim)


def flat_readouts(weights: Weights, ways: Ways) -> Float[Array, "features *outputs"]:
    """What ξ, as a matrix `[P, ΠD]`, is multiplied by to give the outputs `[P]`, or `[P, C]`."""
    found = path_readouts(weights, ways)
    return found.ravel() if ways.outputs is None else found.swapaxes(1, 2).reshape(-1, ways.outputs)
