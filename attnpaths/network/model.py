"""The network itself: fixed heads and a readout, applied layer by layer or path by path."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from attnpaths import _checks
from attnpaths.network import attention
from attnpaths.network.attended import Attended
from attnpaths.network.ways import Ways
from attnpaths.network.weights import Weights, check, path_outputs, ways_of


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Network:
    """Fixed attention heads and a readout: all of the network that is not learned.

    `heads` holds one entry per layer: an array `[H, D, D]` of query–key products W, key index
    first, with logits x_sᵀ W x_t; or a pair `(W_K, W_Q)` of arrays `[H, G, D]` with logits
    (W_K x_s)·(W_Q x_t)/√G; or None for a linear block, one head by which every token attends to
    itself. Layers may differ in kind, in H and in G. `readout` is the token t* that is read
    (negative counts from the end) or `"mean"` for the average over tokens. `residual`, one bool or
    one for each layer, says which layers add their input to their output: way 0 of such a layer
    is this skip. Numbers of lower precision are promoted to float64.

    >>> network = Network([jnp.zeros((2, 3, 3)), jnp.zeros((1, 3, 3))], readout=-1)
    >>> network
    Network(head_counts=(2, 1), dim=3, readout=-1)
    >>> weights = network.check_weights(Weights.prior(0, width=5, dim=3, heads=(2, 1)))
    >>> network.check_input(jnp.ones((5, 2, 3), dtype=jnp.float32)).dtype
    dtype('float64')
    >>> Network([jnp.zeros((2, 3, 3)), None], readout=-1, residual=True).features(x := jnp.ones(
    ...     (5, 2, 3))).shape
    (5, 6, 3)
    """

    heads: Any
    readout: Any
    residual: Any = False

    def __post_init__(self):
        """Check the arguments and promote them."""
        heads, readout = _checks.heads(self.heads), _checks.readout(self.readout)
        residual = _checks.skips(self.residual, len(heads))
        vars(self).update(heads=heads, readout=readout, residual=residual)

    def __repr__(self):
        """Sizes only: the heads themselves are too large to read."""
        skips = f", residual={self.residual}" if any(self.residual) else ""
        return (
            f"Network(head_counts={self.head_counts}, dim={self.dim}, readout={self.readout!r}"
            f"{skips})"
        )

    @property
    def layers(self) -> int:
        """The number of attention layers, L."""
        return len(self.heads)

    @property
    def head_counts(self) -> tuple[int, ...]:
        """(H₁, …, H_L): what the theory takes as `heads=`."""
        layers = map(jax.tree.leaves, self.heads)
        return tuple(layer[0].shape[0] if layer else 1 for layer in layers)

    @property
    def dim(self) -> int:
        """The token dimension D, positional part included."""
        return jax.tree.leaves(self.heads)[0].shape[-1]

    @property
    def paths(self) -> int:
        """The number of paths, Π = ∏(H_ℓ + r_ℓ)."""
        return Ways(self.head_counts, self.residual).paths

    @staticmethod
    def from_attention(
        omega, x: ArrayLike, readout: int | str | ArrayLike, residual: bool | Sequence[bool] = False
    ) -> Attended:
        """Attention matrices and tokens of any transformer, as an `Attended`.

        `omega` holds L arrays `[P, H, T, T]`, `[..., s, t]` the weight that query t puts on key
        s; `x [P, T, D]` the tokens; `readout` a token, `"mean"`, one token for each example
        `[P]`, or weights of all tokens `[P, T]`; `residual` the layers with a skip. The result has
        `features()`, `head_counts` and `apply_paths(weights)`, as a network has.

        >>> network = Network([jnp.ones((2, 3, 3)), jnp.ones((2, 3, 3))], readout=0)
        >>> x = jnp.arange(60.0).reshape(5, 4, 3)
        >>> exported = Network.from_attention(network.attention(x), x, readout=0)
        >>> bool(jnp.allclose(exported.features(), network.features(x)))
        True
        """
        return Attended(omega, x, readout, residual)

    def attention(self, x: ArrayLike) -> tuple[Float[Array, "examples heads keys queries"], ...]:
        """Attention matrices of every layer, Ω = softmax over keys s of x_sᵀ W x_t.

        Eq. 3. `x [P, T, D]` gives L arrays `[P, H, T, T]`, where
        `[..., s, t]` is the weight that query t puts on key s: columns sum to one.

        >>> network = Network([jnp.zeros((1, 3, 3))], readout=0)
        >>> network.attention(jnp.ones((5, 2, 3)))[0][0, 0].tolist()
        [[0.5, 0.5], [0.5, 0.5]]
        """
        x = self.check_input(x)
        attention.check_attention(len(x) * sum(self.head_counts), x.shape[1])
        return _checks.representable(_attention(self, x))

    def features(self, x: ArrayLike) -> Float[Array, "examples paths dim"]:
        """Attentioned input ξ `[P, Π, D]`: what the readout token sees along each path.

        Eq. 7: ξ^π = Σ x_{t₀} Ω⁽¹⁾ʰ¹_{t₀t₁} ⋯ Ω⁽ᴸ⁾ʰᴸ_{t_{L−1}t*} over the tokens t₀ … t_{L−1};
        the mean readout averages over t* too. Along a skip Ω is the identity. A token readout
        needs one column of the last layer's Ω. Numbers of `x [P, T, D]` are promoted to float64.

        >>> network = Network([jnp.ones((2, 3, 3)), jnp.ones((2, 3, 3))], readout=0)
        >>> network.features(jnp.ones((5, 4, 3))).shape
        (5, 4, 3)
        """
        x = self.check_input(x)
        attention.check_size(self.paths, x.shape)
        # one example at a time, and of the last layer what is read
        whole = self.head_counts if self.readout == "mean" else self.head_counts[:-1]
        attention.check_attention(max(whole, default=0), x.shape[1])
        return _checks.representable(_features(self, x))

    def apply(self, weights: Weights, x: ArrayLike) -> Float[Array, "examples *outputs"]:
        """The network's output f `[P]`, or `[P, C]`, layer by layer.

        Eqs. 1, 2 and 4: x¹ = V⁰x/√D,
        xˡ⁺¹_t = (N H_ℓ)^(−1/2) Σ_h Σ_s Vˡʰ xˡ_s Ωˡʰ_st, f = a·xᴸ⁺¹_{t*}/√N. A layer with a skip
        adds xˡ_t.

        >>> network = Network([jnp.ones((2, 3, 3)), jnp.ones((2, 3, 3))], readout=0)
        >>> weights = Weights.prior(0, width=5, dim=3, heads=network.head_counts)
        >>> network.apply(weights, jnp.ones((5, 4, 3))).shape
        (5,)
        """
        weights, x = self.check_weights(weights), self.check_input(x)
        attention.check_attention(max(self.head_counts), x.shape[1])
        return _checks.representable(_apply(self, weights, x))

    def apply_paths(self, weights: Weights, x: ArrayLike) -> Float[Array, "examples *outputs"]:
        """The same output f `[P]`, or `[P, C]`, as a sum over attention paths.

        Eq. 5: f = (∏H_ℓ · N · D)^(−1/2) Σ_π V_eff^π V⁰ ξ^π, where H_ℓ is left out along a skip. The
        weights are first contracted into one vector of D numbers for each path.

        >>> network = Network([jnp.ones((2, 3, 3)), jnp.ones((2, 3, 3))], readout=0)
        >>> weights = Weights.prior(0, width=5, dim=3, heads=network.head_counts)
        >>> x = jnp.arange(60.0).reshape(5, 4, 3)
        >>> bool(jnp.allclose(network.apply_paths(weights, x), network.apply(weights, x)))
        True
        """
        weights = self.check_weights(weights)
        return path_outputs(weights, self.features(x), self.residual).sum(axis=1)

    def check_input(self, x: ArrayLike) -> Float[Array, "examples tokens dim"]:
        """`x` as float64, or a ValueError that says why this network cannot read it."""
        x = _checks.array("x", x, "examples tokens dim")
        tokens, dim = x.shape[1:]
        if dim != self.dim:
            raise ValueError(
                f"x has tokens of dimension {dim} but the heads act on dimension {self.dim}; "
                "x is [examples, tokens, dim], positional part included"
            )
        _checks.readout_within(self.readout, tokens)
        return x

    def check_weights(self, weights: Weights) -> Weights:
        """`weights` as float64, or a ValueError that says why they do not fit this network."""
        weights = check(weights)
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
        ways_of(weights, self.residual)
        return weights


def _rebuilt(fixed, children) -> Network:
    """JAX rebuilds networks around its own stand-ins for arrays, hence unchecked."""
    network = object.__new__(Network)
    vars(network).update(zip(("heads", "readout", "residual"), (*children, *fixed), strict=True))
    return network


jax.tree_util.register_pytree_with_keys(
    Network,
    lambda n: (((jax.tree_util.GetAttrKey("heads"), n.heads),), (n.readout, n.residual)),
    _rebuilt,
)


@jax.jit
def _attention(network, x):
    def example(tokens):
        return tuple(attention.layer_attention(layer, tokens) for layer in network.heads)

    numbers = max(network.head_counts) * x.shape[1] * max(x.shape[1:])
    return attention.map_examples(example, x, numbers)


@jax.jit
def _features(network, x):
    tokens, dim = x.shape[1:]
    *lower, last = network.heads

    def example(x):
        if network.readout == "mean":
            read = attention.layer_attention(last, x).mean(axis=2)
        else:
            read = attention.layer_attention(last, x, at=network.readout)[:, :, 0]
        omega = (attention.layer_attention(layer, x) for layer in reversed(lower))
        taken = attention.itself(tokens, network.readout)[:, 0]
        return attention.path_weights(omega, read, network.residual, taken) @ x

    heads, paths = max(network.head_counts), network.paths
    return attention.map_examples(example, x, max(heads * tokens * max(tokens, dim), paths * dim))


@jax.jit
def _apply(network, weights, x):
    def example(tokens):
        state = tokens @ weights.V0.T / math.sqrt(weights.V0.shape[1])
        for layer, values, skip in zip(network.heads, weights.V, network.residual, strict=True):
            attended = jnp.einsum("hst,sn->htn", attention.layer_attention(layer, tokens), state)
            added = jnp.einsum("hmn,htn->tm", values, attended)
            added = added / math.sqrt(values.shape[2] * values.shape[0])
            state = state + added if skip else added
        token = state.mean(axis=0) if network.readout == "mean" else state[network.readout]
        return token @ weights.a.T / math.sqrt(weights.a.shape[-1])

    largest = max(*x.shape[1:], *weights.widths)
    return attention.map_examples(example, x, max(network.head_counts) * x.shape[1] * largest)
