"""Inputs whose attention is known: all that the theory needs of somebody else's transformer."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from attnpaths import _checks
from attnpaths.network.attention import check_size, path_weights
from attnpaths.network.weights import Weights, path_outputs

# how far from 1 the attention of a query may sum: exports are often in single precision
_SUM = 1e-3


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Attended:
    """Attention matrices of some inputs, wherever they came from, and the inputs themselves.

    `omega` holds one array `[P, H, T, T]` per layer, `[..., s, t]` being the weight that query t
    puts on key s; `x [P, T, D]` are the tokens; `readout` is the token that is read, or `"mean"`.
    Arrays may be tensors of PyTorch. Made by `Network.from_attention`. It knows no other inputs:
    attention is not computed here.

    >>> omega = [np.full((5, 2, 4, 4), 0.25), np.full((5, 1, 4, 4), 0.25)]
    >>> attended = Attended(omega, np.ones((5, 4, 3)), readout="mean")
    >>> attended
    Attended(head_counts=(2, 1), examples=5, tokens=4, dim=3, readout='mean')
    >>> weights = Weights.prior(0, width=2, dim=3, heads=attended.head_counts)
    >>> attended.attention()[1].shape, attended.apply_paths(weights).shape
    ((5, 1, 4, 4), (5,))
    >>> attended.features().shape
    (5, 2, 3)
    """

    omega: Any
    x: Any
    readout: Any

    def __post_init__(self):
        """Check the arguments and promote them."""
        x = _checks.array("x", self.x, "examples tokens dim")
        readout = _checks.readout(self.readout)
        examples, tokens, _ = x.shape
        _checks.readout_within(readout, tokens)
        omega = []
        for i, layer in enumerate(_checks.layers("omega", self.omega)):
            layer = _checks.array(f"omega[{i}]", layer, "examples heads keys queries")
            if layer.shape[0] != examples or layer.shape[2:] != (tokens, tokens):
                raise ValueError(
                    f"omega[{i}] must be [{examples}, H, {tokens}, {tokens}] for these x; "
                    f"got {layer.shape}"
                )
            if layer.min() < 0:
                raise ValueError(
                    f"omega[{i}] must not be negative, but goes down to {float(layer.min()):.2g}; "
                    "give attention as it is after the softmax"
                )
            off = float(jnp.abs(layer.sum(axis=2) - 1).max())
            if off > _SUM:
                other = float(jnp.abs(layer.sum(axis=3) - 1).max())
                hint = "; it does over queries: swap its last two axes" if other <= _SUM else ""
                raise ValueError(
                    f"omega[{i}] must sum to 1 over keys, its second last axis; it is off by up "
                    f"to {off:.2g}{hint}"
                )
            omega.append(layer)
        object.__setattr__(self, "omega", tuple(omega))
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "readout", readout)

    def __repr__(self):
        """Sizes only."""
        examples, tokens, dim = self.x.shape
        return (
            f"Attended(head_counts={self.head_counts}, examples={examples}, tokens={tokens}, "
            f"dim={dim}, readout={self.readout!r})"
        )

    @property
    def layers(self) -> int:
        """The number of attention layers, L."""
        return len(self.omega)

    @property
    def head_counts(self) -> tuple[int, ...]:
        """(H₁, …, H_L): what the theory takes as `heads=`."""
        return tuple(layer.shape[1] for layer in self.omega)

    @property
    def dim(self) -> int:
        """The token dimension D."""
        return self.x.shape[2]

    def attention(self, x: ArrayLike | None = None) -> tuple[Array, ...]:
        """The attention matrices it was made of; `x`, where given, must be its own inputs."""
        self._own(x)
        return self.omega

    def features(self, x: ArrayLike | None = None) -> Float[Array, "examples paths dim"]:
        """Attentioned input ξ `[P, Π, D]`, Eq. 7; see `Network.features`.

        `x`, where given, must be its own inputs.
        """
        self._own(x)
        check_size(self.head_counts, self.x.shape)
        return _features(self.omega, self.x, self.readout)

    def apply_paths(self, weights: Weights, x: ArrayLike | None = None) -> Float[Array, "examples"]:
        """The output f `[P]` of value weights over this attention, Eq. 5."""
        return path_outputs(weights, self.features(x)).sum(axis=1)

    def _own(self, x) -> None:
        x = _checks.untensor(x)
        if x is not None and (np.shape(x) != self.x.shape or not np.array_equal(x, self.x)):
            raise ValueError(
                "x is not what this attention was computed for; give its attention too, with "
                "Network.from_attention(omega, x, readout)"
            )


@functools.partial(jax.jit, static_argnames="readout")
def _features(omega, x, readout):
    def example(omega, x):
        *lower, last = omega
        read = last.mean(axis=2) if readout == "mean" else last[..., readout]
        return path_weights(reversed(lower), read) @ x

    return jax.vmap(example)(omega, x)
