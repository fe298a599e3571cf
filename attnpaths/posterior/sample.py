"""The two samplers: what they are asked for, checked, and what they give."""

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from attnpaths import _checks
from attnpaths.network import Network, Weights
from attnpaths.posterior import densities, nuts
from attnpaths.posterior.draws import DoubtfulSample, Posterior
from attnpaths.posterior.stopping import asking
from attnpaths.problem import Problem


class Interrupted(KeyboardInterrupt):
    """A run was stopped by Ctrl-C; `posterior` holds what it had drawn, or is None."""

    def __init__(self, message: str, posterior: Posterior | None):
        """Keep the draws beside the message."""
        super().__init__(message)
        self.posterior = posterior


def sample_order_parameter(
    xi: ArrayLike,
    y: ArrayLike,
    *,
    heads: Sequence[int],
    width: int | Sequence[int],
    temperature: ArrayLike,
    seed: int,
    chains: int = 4,
    warmup: int = 500,
    samples: int = 1000,
    thinning: int = 1,
    prior_variance: ArrayLike | Sequence[ArrayLike] = 1.0,
    residual: bool | Sequence[bool] = False,
    acceptance: float = 0.9,
    whiten: bool = False,
    progress: bool = True,
) -> Posterior:
    """Sample the exact posterior of the order parameter at width N, by NUTS.

    p(Ũ | Y) ∝ p(Ũ) · 𝒩(Y; 0, K(Ũ) + 𝒯I), where Ũ⁽ᴸ⁺¹⁾ ~ (σ²/N) χ²_N and
    Ũ⁽ℓ⁾ | Ũ⁽ℓ⁺¹⁾ ~ Wishart(N, σ² I ⊗ Ũ⁽ℓ⁺¹⁾)/N a priori. No limit of large N is taken: the
    paper's action, Eq. 32, is what −(2/N) ln p becomes in that limit.

    Takes the attentioned inputs ξ `[P, Π, D]`, labels `y [P]`, the numbers of heads
    (H₁, …, H_L) with ∏H_ℓ = Π, the width N (a whole number, also below the number of paths; or
    (N_1, …, N_{L+1}), what enters each layer and the readout), the temperature 𝒯 > 0 and the
    prior variance σ². Skips (`residual`), labels `y [P, C]` and a σ² for each kind of weight are as
    in `theory.solve`. After `warmup` steps, each of `chains` chains makes `samples` steps and
    keeps one in `thinning` of them. Chains start at draws from the prior, one per core or JAX
    device at a time. The same seed gives the same draws. NUTS adapts its steps until it accepts
    this fraction, `acceptance`; nearer to 1 are smaller steps, which help against divergences.

    With `whiten`, which pays where there are many paths, the walk is in coordinates in which the
    posterior is nearly round, by its mode and curvature there. Chains start around the mode, twice
    as far out as the posterior is wide, so that R-hat can tell whether they have met. The draws
    are of the same distribution.

    Warns with `DoubtfulSample` when the diagnostics are bad. Ctrl-C, at any moment and however
    often, ends the run after the blocks of draws that are being made, and raises `Interrupted`,
    whose `posterior` holds all draws made so far; nothing is written to disk.

    >>> xi = jax.random.normal(jax.random.key(0), (10, 2, 3))
    >>> result = sample_order_parameter(xi, jnp.sign(xi[:, 0, 0]), heads=(2,), width=5,
    ...                                 temperature=0.5, seed=0, chains=2, progress=False)
    >>> result.draws.shape, result.predict(xi).mean.shape
    ((2, 1000, 2, 2), (10,))
    """
    keys, chains, walk = _checked(seed, chains, warmup, samples, thinning, acceptance, progress)
    whiten = _checks.flag("whiten", whiten)
    setting = {"temperature": temperature, "prior_variance": prior_variance}
    problem = Problem.of(xi, y, heads=heads, residual=residual, **setting)
    widths = _checks.widths(width, problem.layers)
    _checks.skip_widths(widths, problem.residual)
    density = densities.OrderParameter(problem.heads, widths, problem.residual, problem.outputs)
    rows = problem.paths * problem.ways.readouts
    _check_memory(chains, walk, density.size + 3 * rows**2, f"{rows}² numbers")
    data = density.data(problem)
    if whiten:
        centre, scale = densities.shape_of(density, data, density.starts(keys[0], 1)[0])
        starts = 2 * jax.random.normal(keys[0], (chains, len(centre)))
        shaped, data = densities.Shaped(density), (data, centre, scale)

        def unshaped(w, prior_variance):
            return density.read(centre[None, None] + w @ scale.T, prior_variance)

        return _sample(shaped, data, starts, keys[1], walk, problem, widths, unshaped)
    # a dense mass matrix halved the leapfrogs at 14 unknowns; its cost grows as their square
    walk["dense"] = density.size <= 256
    starts = density.starts(keys[0], chains)
    return _sample(density, data, starts, keys[1], walk, problem, widths, density.read)


def sample_weights(
    network: Network,
    x: ArrayLike,
    y: ArrayLike,
    *,
    width: int | Sequence[int],
    temperature: ArrayLike,
    seed: int,
    chains: int = 4,
    warmup: int = 1000,
    samples: int = 1000,
    thinning: int = 1,
    prior_variance: ArrayLike | Sequence[ArrayLike] = 1.0,
    acceptance: float = 0.9,
    progress: bool = True,
) -> Posterior:
    """Sample all weights Θ = (V⁰, V, a) from their posterior, by NUTS: the paper's way.

    p(Θ | Y) ∝ exp(−‖f(Θ) − Y‖²/(2𝒯) − ‖Θ‖²/(2σ²)), Eq. 8. Attention does not depend
    on the weights, so that tokens are contracted once, before sampling, and the cost of a gradient
    does not grow with them: the weights become D numbers per path, and these outputs, by ξ.

    Takes the network, `x [P, T, D]`, `y [P]` or `[P, C]`, and what `sample_order_parameter` takes,
    which samples the same order parameter at a small part of the cost.

    >>> import numpy as np
    >>> network = Network([np.ones((2, 3, 3))], readout=0)
    >>> x = np.random.default_rng(0).normal(size=(8, 4, 3))
    >>> result = sample_weights(network, x, x[:, 0, 0], width=9, temperature=1.0, seed=0,
    ...                         chains=2, warmup=300, samples=600, progress=False)
    >>> result.weights.V0.shape, result.draws.shape
    ((2, 600, 9, 3), (2, 600, 2, 2))
    """
    keys, chains, walk = _checked(seed, chains, warmup, samples, thinning, acceptance, progress)
    _checks.kind("network", network, Network, "an attnpaths.Network")
    widths = _checks.widths(width, network.layers)
    _checks.skip_widths(widths, network.residual)
    x = network.check_input(x)
    y = _checks.labels(y, len(x), "x")
    outputs = y.shape[1] if y.ndim == 2 else None
    heads, residual = network.head_counts, network.residual
    density = densities.AllWeights(heads, widths, network.dim, residual, outputs)
    _check_memory(chains, walk, 2 * density.size, f"{density.size} weights")
    setting = {"temperature": temperature, "prior_variance": prior_variance}
    problem = Problem.of(network.features(x), y, heads=heads, residual=residual, **setting)
    data, starts = density.data(problem), density.starts(keys[0], chains)
    return _sample(density, data, starts, keys[1], walk, problem, widths, density.read)


def _checked(
    seed, chains, warmup, samples, thinning, acceptance, progress
) -> tuple[Array, int, dict[str, Any]]:
    """Keys for the starts and for the walk, the number of chains, and how `nuts.run` is to walk."""
    key = _checks.key("seed", seed)
    counts = {"chains": chains, "warmup": warmup, "samples": samples, "thinning": thinning}
    whole = (_checks.whole(name, count, least=1) for name, count in counts.items())
    chains, warmup, samples, thinning = whole
    if thinning > samples:
        raise ValueError(
            f"thinning keeps one in {thinning} draws, of which samples={samples} makes none; "
            "thinning must be at most samples"
        )
    acceptance = float(_checks.number("acceptance", acceptance, above=0))
    if acceptance >= 1:
        raise ValueError(f"acceptance must be between 0 and 1; got {acceptance}")
    walk = {"warmup": warmup, "kept": samples // thinning, "thinning": thinning, "dense": False}
    walk |= {"acceptance": acceptance, "progress": _checks.flag("progress", progress)}
    return jax.random.split(key), chains, walk


def _check_memory(chains: int, walk, numbers: int, what: str) -> None:
    """Refuse more draws of so many numbers than the machine can hold."""
    draws, remedy = f"{chains} × {walk['kept']} draws", "take fewer samples or a larger thinning"
    _checks.memory(8 * chains * walk["kept"] * numbers, f"{draws} of {what}", remedy)


def _sample(density, data, starts, key, walk, problem: Problem, widths, read) -> Posterior:
    """Run the chains and judge them; Ctrl-C keeps what there is. `read` is that of a density."""

    def posterior(trace: nuts.Trace) -> Posterior:
        names = ("potential", "energy", "leapfrogs", "acceptance")
        found: dict[str, Any] = {name: jnp.asarray(getattr(trace, name)) for name in names}
        parts, draws = read(jnp.asarray(trace.position), problem.prior_variance)
        weighed = isinstance(parts, Weights)
        return Posterior(
            draws=draws,
            weights=parts if weighed else None,
            factors=None if weighed else parts,
            **found,
            problem=problem,
            widths=widths,
            divergences=jnp.asarray(trace.divergences.sum(axis=1)),
            step_size=jnp.asarray(trace.step_size[:, -1]),
            bfmi=jnp.asarray(nuts.bfmi(trace, walk["thinning"])),
            thinning=walk["thinning"],
            at_a_time=nuts.at_a_time(len(starts)),
        )

    # until draws and diagnostics are in hand, compiled code for them included
    with asking() as stop:
        where = "; the draws are in this exception's `posterior`"
        try:
            result = posterior(nuts.run(density, data, starts, key, **walk, stop=stop))
        except nuts.Stopped as stopped:
            drawn = None if stopped.trace is None else posterior(stopped.trace)
            where = "" if drawn is None else where
            raise Interrupted(f"sampling was {stopped}{where}", drawn) from None
        doubts = result.doubts
        if stop():
            raise Interrupted(f"sampling was interrupted when it was finished{where}", result)
    if doubts:
        advice = "Take more samples and warm-up; against divergences raise `acceptance` towards 1"
        message = f"do not trust these draws: {'; '.join(doubts)}. {advice}"
        warnings.warn(message, DoubtfulSample, stacklevel=3)
    return result
