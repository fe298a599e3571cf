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
from attnpaths.network.attention import check_size, itself, path_weights
from attnpaths.network.ways import Ways
from attnpaths.network.weights import Weights, path_outputs


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Attended:
    """Attention matrices of some inputs, wherever they came from, and the inputs themselves.

    `omega` holds one array `[P, H, T, T]` per layer, `[..., s, t]` being the weight that query t
    puts on key s; `x [P, T, D]` are the tokens; `readout` is the token that is read, or `"mean"`,
    or differs by example: one token for each, `[P]`, or the weight of every token, `[P, T]`;
    `residual`, one bool or one for each layer, says which layers add their input to their output.
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
    residual: Any = False

    def __post_init__(self):
        """Check the arguments and promote them."""
        x = _checks.array("x", self.x, "examples tokens dim")
        examples, tokens, _ = x.shape
        readout = _readout(self.readout, examples, tokens)
        omega = _checks.by_layer("omega", self.omega, _checks.attention, (examples, tokens))
        residual = _checks.skips(self.residual, len(omega))
        vars(self).update(omega=omega, x=x, readout=readout, residual=residual)

    def __repr__(self):
        """Sizes only."""
        examples, tokens, dim = self.x.shape
        readout = "by example" if np.ndim(self.readout) else repr(self.readout)
        skips = f", residual={self.residual}" if any(self.residual) else ""
        return (
            f"Attended(head_counts={self.head_counts}, {examples=}, {tokens=}, {dim=}, "
            f"readout={readout}{skips})"
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
        check_size(Ways(self.head_counts, self.residual).paths, self.x.shape)
        read = self.readout
        if not np.ndim(read):
            tokens = self.x.shape[1]
            read = jnp.broadcast_to(itself(tokens, read)[:, 0], (len(self.x), tokens))
        return _features(self.omega, self.x, read, self.residual)

    def apply_paths(
        self, weights: Weights, x: ArrayLike | None = None
    ) -> Float[Array, "examples *outputs"]:
        """The output f `[P]`, or `[P, C]`, of value weights over this attention, Eq. 5."""
        return path_outputs(weights, self.features(x), self.residual).sum(axis=1)

    def _own(self, x) -> None:
        if x is None:
            return
        x = _checks.array("x", x, "examples tokens dim")
        if not np.array_equal(x, self.x):
            raise ValueError(
                "x is not what this attention was computed for; give its attention too, with "
                "Network.from_attention(omega, x, readout)"
            )


def _readout(value, examples: int, tokens: int):
    """A token, "mean", or the weight of every token in every example."""
    value = _checks.untensor(value)
    axes = _checks.axes_of(value)
    if axes == 0:
        value = _checks.readout(value)
        _checks.readout_within(value, tokens)
        return value
    wanted = f"readout by example must be one token for each, [{examples}], or one weight for "
    wanted += f"every token, [{examples}, {tokens}]"
    read = _checks.array("readout", value, "examples tokens" if axes == 2 else "examples")
    if read.shape not in ((examples,), (examples, tokens)):
        raise ValueError(f"{wanted}; got shape {read.shape}")
    if axes == 2:
        return read
    value = np.asarray(value)
    if value.dtype.kind not in "iu" or value.min() < -tokens or value.max() >= tokens:
        raise ValueError(f"{wanted}, tokens from {-tokens} to {tokens - 1}; got {value!r}")
    return jnp.eye(tokens)[value]


@functools.partial(jax.jit, static_argnames="residual")
def _features(omega, x, by_token, residual):
    def example(omega, x, read):
        *lower, last = omega
        return path_weights(reversed(lower), last @ read, residual, read) @ x

    return jax.vmap(example)(omega, x, by_token)
