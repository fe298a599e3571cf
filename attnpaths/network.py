"""The network of the paper: linear layers of fixed attention, and its two forms.

`Network.apply` follows the layers; `Network.apply_paths` sums over attention paths. The two
agree to rounding, which is the observation that the whole theory starts from.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from attnpaths import _inputs

# Query vectors of this many numbers (4 MB) stay in cache; larger blocks of examples run slower.
_BLOCK = 2**19


def _pytree(cls, *, data: tuple[str, ...], static: tuple[str, ...] = ()):
    """Register a frozen dataclass; JAX rebuilds it around its own stand-ins, hence unchecked."""

    def flatten(instance):
        children = tuple((jax.tree_util.GetAttrKey(k), getattr(instance, k)) for k in data)
        return children, tuple(getattr(instance, k) for k in static)

    def unflatten(fixed, children):
        instance = object.__new__(cls)
        for name, value in zip(data + static, (*children, *fixed), strict=True):
            object.__setattr__(instance, name, value)
        return instance

    jax.tree_util.register_pytree_with_keys(cls, flatten, unflatten)
    return cls


@functools.partial(_pytree, data=("V0", "V", "a"))
@dataclasses.dataclass(frozen=True, eq=False)
class Weights:
    """The weights that are learned: `V0 [N, D]`, `V` (L arrays `[H, N, N]`), `a [N]`.

    A pytree; `jax.vmap` over one with leading axes handles many networks at once.

    >>> weights = Weights.prior(0, width=5, dim=3, heads=(2, 2))
    >>> weights.V0.shape, [v.shape for v in weights.V], weights.a.shape
    ((5, 3), [(2, 5, 5), (2, 5, 5)], (5,))
    """

    V0: Any
    V: Any
    a: Any

    @classmethod
    def prior(
        cls,
        seed: ArrayLike,
        *,
        width: int,
        dim: int,
        heads: Sequence[int],
        prior_variance: ArrayLike = 1.0,
    ) -> "Weights":
        """Draw every weight from its prior, N(0, σ²); `seed` is an integer or a JAX key.

        >>> Weights.prior(0, width=5, dim=3, heads=(2, 2)).a.shape
        (5,)
        """
        width = _inputs.whole("width", width, least=1)
        dim = _inputs.whole("dim", dim, least=1)
        heads = _inputs.head_counts("heads", heads)
        sigma = jnp.sqrt(_inputs.number("prior_variance", prior_variance, above=0.0))
        is_key = isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key)
        key = seed if is_key else jax.random.key(_inputs.whole("seed", seed, least=0))
        return _draw(key, sigma, width, dim, heads)


@functools.partial(_pytree, data=("heads",), static=("readout",))
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Network:
    """Fixed attention heads and a readout: all of the network that is not learned.

    `heads` holds one entry per layer: an array `[H, D, D]` of query–key products W, key index
    first, with logits x_sᵀ W x_t; or a pair `(W_K, W_Q)` of arrays `[H, G, D]` with logits
    (W_K x_s)·(W_Q x_t)/√G. Layers may differ in kind, in H and in G. `readout` is the token
    t* that is read (negative counts from the end) or `"mean"` for the average over tokens.
    Numbers of lower precision are promoted to float64.

    >>> import numpy as np
    >>> network = Network([np.zeros((2, 3, 3)), np.zeros((1, 3, 3))], readout=-1)
    >>> network
    Network(head_counts=(2, 1), dim=3, readout=-1)
    """

    heads: Any
    readout: Any

    def __post_init__(self):
        """Check the arguments and promote them."""
        object.__setattr__(self, "heads", _inputs.heads(self.heads))
        object.__setattr__(self, "readout", _inputs.readout(self.readout))

    def __repr__(self):
        """Sizes only: the heads themselves are too large to read."""
        return f"Network(head_counts={self.head_counts}, dim={self.dim}, readout={self.readout!r})"

    @property
    def layers(self) -> int:
        """The number of attention layers, L."""
        return len(self.heads)

    @property
    def head_counts(self) -> tuple[int, ...]:
        """(H₁, …, H_L): what the theory takes as `heads=`."""
        return tuple(jax.tree.leaves(layer)[0].shape[0] for layer in self.heads)

    @property
    def dim(self) -> int:
        """The token dimension D, positional part included."""
        return jax.tree.leaves(self.heads)[0].shape[-1]

    @staticmethod
    def from_attention(omega, x: ArrayLike, readout: int | str):
        """Attention matrices and tokens of any transformer, as an `attnpaths.attended.Attended`.

        `omega` holds L arrays `[P, H, T, T]`, `[..., s, t]` the weight that query t puts on key
        s; `x [P, T, D]` the tokens. The result has `features()`, `head_counts` and
        `apply_paths(weights)`, as a network has.

        >>> import numpy as np
        >>> network = Network([np.ones((2, 3, 3)), np.ones((2, 3, 3))], readout=0)
        >>> x = np.arange(60.0).reshape(5, 4, 3)
        >>> exported = Network.from_attention(network.attention(x), x, readout=0)
        >>> bool(np.allclose(exported.features(), network.features(x)))
        True
        """
        # attended builds on this module
        from attnpaths.attended import Attended

        return Attended(omega, x, readout)

    def attention(self, x: ArrayLike) -> tuple[Float[Array, "examples heads keys queries"], ...]:
        """Attention matrices of every layer, Ω = softmax over keys s of x_sᵀ W x_t.

        Eq. 3. `x [P, T, D]` gives L arrays `[P, H, T, T]`, where
        `[..., s, t]` is the weight that query t puts on key s: columns sum to one.

        >>> import numpy as np
        >>> network = Network([np.zeros((1, 3, 3))], readout=0)
        >>> network.attention(np.ones((5, 2, 3)))[0][0, 0].tolist()
        [[0.5, 0.5], [0.5, 0.5]]
        """
        return _inputs.representable(_attention(self, self.check_input(x)))

    def features(self, x: ArrayLike) -> Float[Array, "examples paths dim"]:
        """Attentioned input ξ `[P, Π, D]`: what the readout token sees along each path.

        Eq. 7; see `attnpaths.paths.attentioned_input`.

        >>> import numpy as np
        >>> network = Network([np.ones((2, 3, 3)), np.ones((2, 3, 3))], readout=0)
        >>> network.features(np.ones((5, 4, 3))).shape
        (5, 4, 3)
        """
        # paths builds on this module, so it can only be imported once this one is complete
        from attnpaths import paths

        return paths.attentioned_input(self, x)

    def apply(self, weights: Weights, x: ArrayLike) -> Float[Array, "examples"]:
        """The network's output f `[P]`, layer by layer.

        Eqs. 1, 2 and 4: x¹ = V⁰x/√D,
        xˡ⁺¹_t = (N H_ℓ)^(−1/2) Σ_h Σ_s Vˡʰ xˡ_s Ωˡʰ_st, f = a·xᴸ⁺¹_{t*}/√N.

        >>> import numpy as np
        >>> network = Network([np.ones((2, 3, 3)), np.ones((2, 3, 3))], readout=0)
        >>> weights = Weights.prior(0, width=5, dim=3, heads=network.head_counts)
        >>> network.apply(weights, np.ones((5, 4, 3))).shape
        (5,)
        """
        return _inputs.representable(_apply(self, self.check_weights(weights), self.check_input(x)))

    def apply_paths(self, weights: Weights, x: ArrayLike) -> Float[Array, "examples"]:
        """The same output f `[P]`, as a sum over attention paths.

        Eq. 5: f = (∏H_ℓ · N · D)^(−1/2) Σ_π V_eff^π V⁰ ξ^π. The
        weights are first contracted into one vector of D numbers for each path.

        >>> import numpy as np
        >>> network = Network([np.ones((2, 3, 3)), np.ones((2, 3, 3))], readout=0)
        >>> weights = Weights.prior(0, width=5, dim=3, heads=network.head_counts)
        >>> x = np.arange(60.0).reshape(5, 4, 3)
        >>> bool(np.allclose(network.apply_paths(weights, x), network.apply(weights, x)))
        True
        """
        weights = self.check_weights(weights)
        xi = self.features(x)
        width, dim = weights.V0.shape
        per_path = _effective_weights(weights) @ weights.V0
        return jnp.einsum("kd,pkd->p", per_path, xi) / math.sqrt(xi.shape[1] * width * dim)

    def check_input(self, x: ArrayLike) -> Float[Array, "examples tokens dim"]:
        """`x` as float64, or a ValueError that says why this network cannot read it.

        >>> import numpy as np
        >>> network = Network([np.zeros((1, 3, 3))], readout=0)
        >>> network.check_input(np.ones((5, 2, 3), dtype=np.float32)).dtype
        dtype('float64')
        """
        x = _inputs.array("x", x, "examples tokens dim")
        tokens, dim = x.shape[1:]
        if dim != self.dim:
            raise ValueError(
                f"x has tokens of dimension {dim} but the heads act on dimension {self.dim}; "
                "x is [examples, tokens, dim], positional part included"
            )
        if self.readout != "mean" and not -tokens <= self.readout < tokens:
            raise ValueError(
                f"readout is token {self.readout} but x has {tokens} tokens; "
                f'choose {-tokens} … {tokens - 1}, or "mean"'
            )
        return x

    def check_weights(self, weights: Weights) -> Weights:
        """`weights` as float64, or a ValueError that says why they do not fit this network.

        >>> import numpy as np
        >>> network = Network([np.zeros((1, 3, 3))], readout=0)
        >>> network.check_weights(Weights.prior(0, width=5, dim=3, heads=(1,))).a.shape
        (5,)
        """
        weights = _check(weights)
        counts = tuple(v.shape[0] for v in weights.V)
        if counts != self.head_counts:
            raise ValueError(
                f"weights.V has heads {counts} (one array per layer) but the network has "
                f"{self.head_counts}; give each layer one [N, N] matrix per head"
            )
        if weights.V0.shape[1] != self.dim:
            raise ValueError(
                f"weights.V0 reads tokens of dimension {weights.V0.shape[1]} but the network's "
                f"tokens have dimension {self.dim}; V0 is [width, dim]"
            )
        return weights


def effective_weights(weights: Weights) -> Float[Array, "paths width"]:
    """Effective weights V_eff `[Π, N]`: all the value matrices along a path, and the readout.

    Eq. 6: V_eff^π = N^(−L/2) a·V^{(L)h_L}·…·V^{(1)h₁}; h₁ is the slowest index.

    >>> effective_weights(Weights.prior(0, width=5, dim=3, heads=(2, 2))).shape
    (4, 5)
    """
    return _effective_weights(_check(weights))


def empirical_order_parameter(weights: Weights) -> Float[Array, "paths paths"]:
    """The order parameter of one network, U = V_eff V_effᵀ/N `[Π, Π]`.

    Its average over the posterior is the theory's U: Eq. 13.

    >>> empirical_order_parameter(Weights.prior(0, width=5, dim=3, heads=(2, 2))).shape
    (4, 4)
    """
    v_eff = effective_weights(weights)
    return v_eff @ v_eff.T / v_eff.shape[1]


def queries(layer, x: Float[Array, "tokens dim"]) -> Float[Array, "heads tokens dim"]:
    """What each token asks of the others: logits are x_s · queries[h, t]."""
    if isinstance(layer, tuple):
        w_k, w_q = layer
        asked = jnp.einsum("td,hgd->htg", x, w_q) / math.sqrt(w_q.shape[1])
        return jnp.einsum("htg,hgd->htd", asked, w_k)
    return jnp.einsum("te,hde->htd", x, layer)


def layer_attention(layer, x: Float[Array, "keys dim"], at=None) -> Float[Array, "heads keys _"]:
    """Ω `[H, keys, queries]` of one layer for one example; `at` picks a single query token."""
    asking = x if at is None else x[at][None]
    return jax.nn.softmax(jnp.einsum("sd,htd->hst", x, queries(layer, asking)), axis=1)


def map_examples(function: Callable, x: Float[Array, "examples tokens dim"], numbers: int):
    """`function` of every example, in blocks that fit the cache; each example takes `numbers`."""
    blocks = -(-x.shape[0] * numbers // _BLOCK)
    if blocks == 1:
        return jax.vmap(function)(x)
    # equal blocks, the last filled up with zeros, so that only one has to be compiled
    size = -(-x.shape[0] // min(blocks, x.shape[0]))
    missing = -x.shape[0] % size
    filled = jnp.concatenate([x, jnp.zeros_like(x, shape=(missing, *x.shape[1:]))])
    result = jax.lax.map(jax.vmap(function), filled.reshape(-1, size, *x.shape[1:]))
    return jax.tree.map(lambda r: r.reshape(-1, *r.shape[2:])[: x.shape[0]], result)


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def _draw(key, sigma, width, dim, heads):
    shapes = [(width, dim), *((h, width, width) for h in heads), (width,)]
    ends = list(itertools.accumulate(map(math.prod, shapes)))
    flat = sigma * jax.random.normal(key, ends[-1:])
    parts = zip(jnp.split(flat, ends[:-1]), shapes, strict=True)
    V0, *V, a = (part.reshape(shape) for part, shape in parts)
    return Weights(V0, tuple(V), a)


@jax.jit
def _attention(network, x):
    def example(tokens):
        return tuple(layer_attention(layer, tokens) for layer in network.heads)

    return map_examples(example, x, max(network.head_counts) * x.shape[1] * max(x.shape[1:]))


@jax.jit
def _apply(network, weights, x):
    width, dim = weights.V0.shape

    def example(tokens):
        state = tokens @ weights.V0.T / math.sqrt(dim)
        for layer, values in zip(network.heads, weights.V, strict=True):
            attended = jnp.einsum("hst,sn->htn", layer_attention(layer, tokens), state)
            state = jnp.einsum("hmn,htn->tm", values, attended)
            state = state / math.sqrt(width * values.shape[0])
        token = state.mean(axis=0) if network.readout == "mean" else state[network.readout]
        return token @ weights.a / math.sqrt(width)

    largest = max(*x.shape[1:], width)
    return map_examples(example, x, max(network.head_counts) * x.shape[1] * largest)


@jax.jit
def _effective_weights(weights):
    width = weights.a.shape[0]
    v_eff = weights.a[None]
    for values in reversed(weights.V):
        # the earlier layer's head becomes the slower index
        v_eff = jnp.einsum("kn,hnm->hkm", v_eff, values).reshape(-1, width) / math.sqrt(width)
    return v_eff


def _check(weights) -> Weights:
    if not isinstance(weights, Weights):
        raise ValueError(f"weights must be Weights(V0, V, a); got {type(weights).__name__}")
    return Weights(*_inputs.weights(weights.V0, weights.V, weights.a))
