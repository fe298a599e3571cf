"""Sampling the posterior: all weights by NUTS, as the paper does, or the order parameter alone.

`sample_weights` walks through all weights. `sample_order_parameter` draws from the exact
posterior of the order parameter at finite width, in which no weights are left: a prior that is
a hierarchy of Wishart matrices (`attnpaths.hierarchy`) times the marginal likelihood of a
Gaussian process. Both sample the same distribution of U; `complete_weights` goes from the
second to the first.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from attnpaths import _inputs, densities, hierarchy, nuts
from attnpaths.averaged import PosteriorPrediction
from attnpaths.completion import complete_weights
from attnpaths.network import Network
from attnpaths.predictor import Problem, check
from attnpaths.sampled import DoubtfulSample, Posterior, warn_if_doubtful

__all__ = [
    "DoubtfulSample",
    "Interrupted",
    "Posterior",
    "PosteriorPrediction",
    "complete_weights",
    "sample_order_parameter",
    "sample_weights",
]


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
    width: int,
    temperature: ArrayLike,
    seed: int,
    chains: int = 4,
    warmup: int = 500,
    samples: int = 1000,
    thinning: int = 1,
    prior_variance: ArrayLike = 1.0,
    acceptance: float = 0.9,
    progress: bool = True,
) -> Posterior:
    """Sample the exact posterior of the order parameter at width N, by NUTS.

    p(Ũ | Y) ∝ p(Ũ) · 𝒩(Y; 0, K(Ũ) + 𝒯I), where Ũ⁽ᴸ⁺¹⁾ ~ (σ²/N) χ²_N and
    Ũ⁽ℓ⁾ | Ũ⁽ℓ⁺¹⁾ ~ Wishart(N, σ² I ⊗ Ũ⁽ℓ⁺¹⁾)/N a priori. No limit of large N is taken: the
    paper's action, Eq. 32, is what −(2/N) ln p becomes in that limit.

    Takes the attentioned inputs ξ `[P, Π, D]`, labels `y [P]`, the numbers of heads
    (H₁, …, H_L) with ∏H_ℓ = Π, the width N (a whole number, also below the number of paths), the
    temperature 𝒯 > 0 and the prior variance σ². After `warmup` steps, each of `chains` chains
    makes `samples` steps and keeps one in `thinning` of them. Chains start at draws from the
    prior, one per core or JAX device at a time. The same seed gives the same draws. NUTS adapts
    its steps until it accepts this fraction, `acceptance`; nearer to 1 are smaller steps, which
    help against divergences.

    Warns with `DoubtfulSample` when the diagnostics are bad. Ctrl-C raises `Interrupted`, whose
    `posterior` holds the draws made so far; nothing is written to disk.

    >>> xi = jax.random.normal(jax.random.key(0), (10, 2, 3))
    >>> result = sample_order_parameter(xi, jnp.sign(xi[:, 0, 0]), heads=(2,), width=5,
    ...                                 temperature=0.5, seed=0, chains=2, progress=False)
    >>> result.draws.shape, result.predict(xi).mean.shape
    ((2, 1000, 2, 2), (10,))
    """
    run = _Run.checked(seed, chains, warmup, samples, thinning, acceptance, progress)
    width = _inputs.whole("width", width, least=1)
    problem = check(xi, y, heads, temperature, prior_variance)
    heads = problem.heads
    size = hierarchy.size(heads, width)
    _inputs.memory(
        8 * run.chains * run.kept * (size + 3 * problem.xi.shape[1] ** 2),
        f"{run.chains} × {run.kept} draws of {problem.xi.shape[1]}² numbers",
        "take fewer samples or a larger thinning",
    )
    density = densities.OrderParameter(heads, width)
    start_key, key = jax.random.split(jax.random.key(run.seed))
    starts = density.starts(start_key, run.chains)

    def finish(trace):
        factors, draws = density.read(jnp.asarray(trace.position), problem.prior_variance)
        return _posterior(problem, width, run, trace, draws, factors=factors)

    # a dense mass matrix halved the leapfrogs at 14 unknowns; its cost grows as their square
    dense = size <= 256
    return _sample(density, density.data(problem), starts, key, run, finish, dense=dense)


def sample_weights(
    network: Network,
    x: ArrayLike,
    y: ArrayLike,
    *,
    width: int,
    temperature: ArrayLike,
    seed: int,
    chains: int = 4,
    warmup: int = 1000,
    samples: int = 1000,
    thinning: int = 1,
    prior_variance: ArrayLike = 1.0,
    acceptance: float = 0.9,
    progress: bool = True,
) -> Posterior:
    """Sample all weights Θ = (V⁰, V, a) from their posterior, by NUTS: the paper's way.

    p(Θ | Y) ∝ exp(−‖f(Θ) − Y‖²/(2𝒯) − ‖Θ‖²/(2σ²)), Eq. 8. Attention does not depend
    on the weights, so that tokens are contracted once, before sampling: each gradient takes the
    weights to one vector of D numbers per path, and those to outputs by one product with ξ. Its
    cost does not depend on the number of tokens.

    Takes the network, `x [P, T, D]`, `y [P]` and what `sample_order_parameter` takes, which
    samples the same order parameter at a small part of the cost.

    >>> import numpy as np
    >>> network = Network([np.ones((2, 3, 3))], readout=0)
    >>> x = np.random.default_rng(0).normal(size=(8, 4, 3))
    >>> result = sample_weights(network, x, x[:, 0, 0], width=9, temperature=1.0, seed=0,
    ...                         chains=2, warmup=300, samples=600, progress=False)
    >>> result.weights.V0.shape, result.draws.shape
    ((2, 600, 9, 3), (2, 600, 2, 2))
    """
    run = _Run.checked(seed, chains, warmup, samples, thinning, acceptance, progress)
    width = _inputs.whole("width", width, least=1)
    if not isinstance(network, Network):
        raise ValueError(f"network must be an attnpaths.Network; got {type(network).__name__}")
    x = network.check_input(x)
    y = _inputs.array("y", y, "examples")
    if len(y) != len(x):
        raise ValueError(f"y must hold one label per example of x, {len(x)}; got {len(y)}")
    temperature = _inputs.number("temperature", temperature, above=0)
    prior_variance = _inputs.number("prior_variance", prior_variance, above=0)
    heads, dim = network.head_counts, network.dim
    density = densities.AllWeights(heads, width, dim)
    _inputs.memory(
        8 * 2 * run.chains * run.kept * density.size,
        f"{run.chains} × {run.kept} draws of {density.size} weights",
        "take fewer samples or a larger thinning",
    )
    problem = check(network.features(x), y, heads, temperature, prior_variance)
    start_key, key = jax.random.split(jax.random.key(run.seed))
    starts = density.starts(start_key, run.chains)

    def finish(trace):
        weights, draws = density.read(jnp.asarray(trace.position), problem.prior_variance)
        return _posterior(problem, width, run, trace, draws, weights=weights)

    return _sample(density, density.data(problem), starts, key, run, finish, dense=False)


@dataclasses.dataclass(frozen=True)
class _Run:
    """How long to sample, checked."""

    seed: int
    chains: int
    warmup: int
    thinning: int
    kept: int
    acceptance: float
    progress: bool

    @classmethod
    def checked(cls, seed, chains, warmup, samples, thinning, acceptance, progress) -> "_Run":
        seed = _inputs.whole("seed", seed, least=0)
        chains = _inputs.whole("chains", chains, least=1)
        warmup = _inputs.whole("warmup", warmup, least=1)
        samples = _inputs.whole("samples", samples, least=1)
        thinning = _inputs.whole("thinning", thinning, least=1)
        if thinning > samples:
            raise ValueError(
                f"thinning keeps one in {thinning} draws, of which samples={samples} makes none; "
                "thinning must be at most samples"
            )
        acceptance = float(_inputs.number("acceptance", acceptance, above=0))
        if acceptance >= 1:
            raise ValueError(f"acceptance must be between 0 and 1; got {acceptance}")
        if not isinstance(progress, bool):
            raise ValueError(f"progress must be True or False; got {progress!r}")
        return cls(seed, chains, warmup, thinning, samples // thinning, acceptance, progress)


def _sample(density, data, starts, key, run, finish, *, dense) -> Posterior:
    """Run the chains and judge them; Ctrl-C keeps what there is."""
    try:
        trace = nuts.run(
            density,
            data,
            starts,
            key,
            warmup=run.warmup,
            kept=run.kept,
            thinning=run.thinning,
            dense=dense,
            acceptance=run.acceptance,
            progress=run.progress,
        )
    except nuts.Stopped as stopped:
        if stopped.trace is None:
            raise Interrupted(f"sampling was {stopped}", None) from None
        raise Interrupted(
            f"sampling was {stopped}; the draws are in this exception's `posterior`",
            finish(stopped.trace),
        ) from None
    result = finish(trace)
    warn_if_doubtful(result)
    return result


def _posterior(problem: Problem, width, run, trace, draws, *, weights=None, factors=None):
    return Posterior(
        draws=draws,
        weights=weights,
        factors=factors,
        width=width,
        potential=jnp.asarray(trace.potential),
        energy=jnp.asarray(trace.energy),
        leapfrogs=jnp.asarray(trace.leapfrogs),
        acceptance=jnp.asarray(trace.acceptance),
        divergences=jnp.asarray(trace.divergences.sum(axis=1)),
        step_size=jnp.asarray(trace.step_size[:, -1]),
        bfmi=jnp.asarray(nuts.bfmi(trace, run.thinning)),
        thinning=run.thinning,
        at_a_time=nuts.at_a_time(run.chains),
        **problem._asdict(),
    )
