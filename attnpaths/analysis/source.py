"""What is read of a model: ξ along the paths of a plan, and how much of all paths that is."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from attnpaths import _checks
from attnpaths.adapters import Recording
from attnpaths.adapters.attention import recorded
from attnpaths.analysis.plan import Plan
from attnpaths.network import Network

#: Which tokens a path starts from.
TOKENS = ("normalised", "raw")
#: Readouts that depend on which tokens are padding.
READOUTS = ("first", "last", "mean")
#: Draws of heads from which the error of one draw is estimated.
DRAWS = 20


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """A model, and how its inputs become ξ: readout and tokens."""

    model: Any
    options: Mapping[str, Any] | None
    readout: Any
    tokens: str

    def record(self, inputs, plan: Plan, layers: int) -> Recording:
        """Run the model, of so many layers, and keep its attention from the first of a plan on."""
        return recorded(self.model, inputs, self.options, plan.first, layers)

    def features(
        self, plan: Plan, seen: Recording, inputs, mask=None, tokens=None
    ) -> Float[np.ndarray, "examples paths dim"]:
        """ξ `[P, Π, D]` along the paths of a plan, with what makes blocks count as layers."""
        x, read = self._read(plan, seen, inputs, mask, tokens)
        # by JAX, which else would make a copy of its own
        omega = [
            jnp.stack([seen.omega[layer - 1][:, h - 1] for layer, h in block], axis=1)
            for block in plan.members
        ]
        attended = Network.from_attention(omega, x, read, plan.theory_residual)
        return np.asarray(attended.features()) * plan.scales[None, :, None]

    def share(self, plan: Plan, seen: Recording, inputs, mask, tokens, residual) -> float:
        """How much of the prior variance of f goes along the paths that a plan means, out of 1.

        All are the paths through layers from the plan's first to the model's last. The variance of
        any number of them follows block by block: M ← rM + Σ_h ΩᵀMΩ/H_ℓ from M = xxᵀ `[P, T, T]`.
        """
        x, read = self._read(plan, seen, inputs, mask, tokens)

        def variance(blocks, skips):
            M = x @ x.swapaxes(1, 2)
            for block, skip in zip(blocks, skips, strict=True):
                heads = ((seen.omega[layer - 1], h - 1) for layer, h in block)
                parts = (o[:, h].swapaxes(1, 2) @ M @ o[:, h] / o.shape[1] for o, h in heads)
                M = skip * M + sum(parts)
            return np.einsum("pt,pts,ps->", read, M, read)

        layers = enumerate(seen.omega[plan.first - 1 :], start=plan.first)
        every = [[(n, h + 1) for h in range(omega.shape[1])] for n, omega in layers]
        total = variance(every, residual[plan.first - 1 :])
        return float(min(variance(plan.meant, plan.theory_residual) / total, 1.0))

    def error(self, plan: Plan, seen: Recording, inputs, mask, tokens, seed: int) -> float | None:
        """The relative standard error of the GP limit's kernel for heads drawn at random.

        (Σ_i ‖K_i − K̄‖²/(n − 1))^(1/2)/‖K̄‖ over the kernels `[P, P]` of n other draws of heads, each
        of which is right on average; None if no heads were drawn.
        """
        if not plan.sampled:
            return None
        rng, found = np.random.default_rng([seed, 1]), []
        for _ in range(DRAWS):
            other = plan.drawn(rng)
            xi = self.features(other, seen, inputs, mask, tokens) * plan.ways.scales[None, :, None]
            flat = xi.reshape(len(xi), -1)
            found.append(flat @ flat.T)
        spread = np.sqrt(np.sum(np.var(found, axis=0, ddof=1)))
        return float(spread / np.linalg.norm(np.mean(found, axis=0)))

    def _read(self, plan, seen, inputs, mask, tokens):
        examples, _, count, _ = seen.omega[-1].shape
        tokens = seen_tokens(seen, plan.first, self.tokens) if tokens is None else tokens
        x = np.asarray(_checks.array("tokens", tokens, "examples tokens dim"))
        if x.shape[:2] != (examples, count):
            raise ValueError(
                f"tokens must be [{examples}, {count}, D] as in the model's attention; got "
                f"{x.shape}"
            )
        mask = padding(mask, inputs, self.options, (examples, count))
        return x, by_example(self.readout, mask)


def seen_tokens(seen: Recording, layer: int, which: str) -> np.ndarray:
    """What a layer attended to, `[P, T, D]`, if that is to be seen."""
    found = (seen.raw if which == "raw" else seen.tokens)[layer - 1]
    if found is None:
        why = "no module around it was given tokens [examples, tokens, dim]"
        why = "nothing is normalised right before it" if which == "raw" else why
        raise ValueError(
            f"the {which} tokens of attention layer {layer} are not to be seen: {why}; give them "
            "yourself, as an array `tokens` [examples, tokens, dim]"
        )
    return found


def padding(mask, inputs, options, shape: tuple[int, int]) -> Bool[np.ndarray, "examples tokens"]:
    """Which tokens are real: by `mask`, or as the model was told by its own arguments."""
    name, given = "mask", _checks.untensor(mask)
    if given is None and isinstance(inputs, Mapping):
        name, given = 'inputs["attention_mask"]', _checks.untensor(inputs.get("attention_mask"))
    if given is None and options and options.get("src_key_padding_mask") is not None:
        name = 'options["src_key_padding_mask"]'
        padded = _checks.untensor(options["src_key_padding_mask"])
        # PyTorch marks what is padding, by True or by −∞
        given = (padded == 0) if np.shape(padded) == shape else padded
    if given is None:
        return np.ones(shape, bool)
    found = np.shape(given) if _checks.axes_of(given) >= 0 else "that is ragged"
    if found != shape:
        raise ValueError(
            f"{name} must be [{shape[0]}, {shape[1]}], 1 for a token and 0 for padding, to say "
            f"which tokens are read; got shape {found}; give `mask` yourself"
        )
    real = np.asarray(_checks.array(name, given, "examples tokens")) > 0
    empty = np.flatnonzero(~real.any(axis=1))
    if len(empty):
        raise ValueError(
            f"{name} leaves no token of {len(empty)} examples, of number {empty[0]} for instance: "
            "all of it is padding, so that there is nothing to read; leave such examples out"
        )
    return real


def by_example(readout, mask: Bool[np.ndarray, "P T"]) -> Float[np.ndarray, "P T"]:
    """How much of every token is read: the first, last or mean real one, or those of numbers."""
    examples, tokens = mask.shape
    if isinstance(readout, str):
        _checks.choice("readout", readout, READOUTS)
        if readout == "mean":
            return mask / mask.sum(axis=1, keepdims=True)
        last = tokens - 1 - mask[:, ::-1].argmax(axis=1)
        return np.eye(tokens)[mask.argmax(axis=1) if readout == "first" else last]
    number = np.asarray(None if _checks.masked(readout) else _checks.untensor(readout))
    whole = np.array_equal(number, np.round(number)) if number.dtype.kind in "fiu" else False
    if number.shape not in ((), (examples,)) or not whole:
        raise ValueError(
            f"readout must be {', '.join(map(repr, READOUTS))}, a token's number, or one for each "
            f"of {examples} examples; got {readout!r}"
        )
    if number.min() < -tokens or number.max() >= tokens:
        raise ValueError(
            f"readout names token {int(number.max())} but there are {tokens}, 0 … {tokens - 1}"
        )
    index = np.broadcast_to(number.astype(int), (examples,)) % tokens
    padded = np.flatnonzero(~mask[np.arange(examples), index])
    if len(padded):
        raise ValueError(
            f"readout is a padded token in {len(padded)} examples, number {padded[0]} for "
            'instance; "last" and "first" look for real ones'
        )
    return np.eye(tokens)[index]
