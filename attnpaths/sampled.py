"""What sampling gives: draws of the order parameter, what they predict, and whether to trust them.

Both samplers of `attnpaths.posterior` end in a `Posterior`. Given the order parameter U of a
draw, the network's output is a Gaussian process: the weights V⁰ of the input projection are
integrated out exactly, whichever sampler the draw came from.
"""

import dataclasses
import functools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from attnpaths import _inputs, averaged, diagnostics, paths
from attnpaths.network import Weights

# Thresholds of Vehtari et al. (2021), Betancourt (2016) and Stan.
_LARGEST_RHAT, _FEWEST_PER_CHAIN, _LOWEST_BFMI = 1.01, 100, 0.3


class DoubtfulSample(UserWarning):
    """The diagnostics of a run say that its draws should not be trusted."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Draws of the order parameter from its posterior, with all that they can be asked.

    `draws [chains, samples, Π, Π]` are draws of U = V_eff V_effᵀ/N and `U [Π, Π]` their mean.
    `weights` holds the sampled `Weights` with leading axes `[chains, samples]`, or None after
    `sample_order_parameter`: `posterior.complete_weights` then draws them. `factors` are the
    B_{L+1}, …, B_1 of the draws, or None after `sample_weights`.

    Diagnostics: `rhat`, `ess_bulk`, `ess_tail` and `mcse`, `[Π, Π]` each; `bfmi [chains]`;
    `divergences [chains]`; `leapfrogs`, `acceptance`, `potential` (minus the logarithm of the
    posterior density) and `energy`, `[chains, samples]` each; `step_size [chains]`. `doubts`
    lists in words what speaks against trusting the draws. `at_a_time` chains ran side by side,
    and of `thinning` steps one was kept.

    >>> from attnpaths.posterior import complete_weights, sample_order_parameter
    >>> xi = jax.random.normal(jax.random.key(0), (10, 2, 3))
    >>> draws = sample_order_parameter(xi, jnp.sign(xi[:, 0, 0]), heads=(2,), width=5,
    ...                                temperature=0.5, seed=0, chains=2, progress=False)
    >>> few = draws.thin(100)
    >>> few.draws.shape, few.predict(xi).mean.shape
    ((2, 10, 2, 2), (10,))
    >>> few.with_weights(complete_weights(few, seed=1)).outputs(xi).shape
    (2, 10, 10)
    >>> draws.to_arviz().posterior["U"].dims
    ('chain', 'draw', 'path', 'other_path')
    """

    draws: Float[Array, "chains samples paths paths"]
    weights: Weights | None
    factors: tuple[Array, ...] | None
    xi: Float[Array, "examples paths dim"]
    y: Float[Array, " examples"]
    heads: tuple[int, ...]
    width: int
    temperature: Float[Array, ""]
    prior_variance: Float[Array, ""]
    potential: Float[Array, "chains samples"]
    energy: Float[Array, "chains samples"]
    leapfrogs: Int[Array, "chains samples"]
    acceptance: Float[Array, "chains samples"]
    divergences: Int[Array, " chains"]
    step_size: Float[Array, " chains"]
    bfmi: Float[Array, " chains"]
    thinning: int
    at_a_time: int

    def __repr__(self):
        """The setting and the worst of the diagnostics, on one line."""
        chains, samples = self.draws.shape[:2]
        return (
            f"Posterior(heads={self.heads}, width={self.width}, "
            f"temperature={float(self.temperature):g}, chains={chains}, samples={samples}, "
            f"rhat={float(np.max(self.rhat)):.3f}, ess={float(np.min(self.ess_bulk)):.0f}, "
            f"divergences={int(self.divergences.sum())})"
        )

    @functools.cached_property
    def U(self) -> Float[Array, "paths paths"]:
        """The posterior mean of the order parameter."""
        return jnp.mean(self.draws, axis=(0, 1))

    @functools.cached_property
    def rhat(self) -> Float[Array, "paths paths"]:
        """Rank-normalised split R-hat of every entry of U."""
        return self._judged(diagnostics.rhat)

    @functools.cached_property
    def ess_bulk(self) -> Float[Array, "paths paths"]:
        """Effective draws of every entry of U, for its centre."""
        return self._judged(diagnostics.ess_bulk)

    @functools.cached_property
    def ess_tail(self) -> Float[Array, "paths paths"]:
        """Effective draws of every entry of U, for its 5 % and 95 % quantiles."""
        return self._judged(diagnostics.ess_tail)

    @functools.cached_property
    def mcse(self) -> Float[Array, "paths paths"]:
        """The Monte Carlo standard error of every entry of the mean U."""
        return self._judged(diagnostics.mcse)

    @functools.cached_property
    def doubts(self) -> tuple[str, ...]:
        """Reasons not to trust these draws; empty when the diagnostics are good."""
        chains, samples = self.draws.shape[:2]
        if samples < 4:
            return (f"{samples} draws per chain are too few to judge",)
        found = []
        if not np.max(self.rhat) <= _LARGEST_RHAT:
            found.append(f"R-hat is {float(np.max(self.rhat)):.3f} (more than {_LARGEST_RHAT})")
        for name, ess in (("bulk", self.ess_bulk), ("tail", self.ess_tail)):
            if not np.min(ess) >= _FEWEST_PER_CHAIN * chains:
                found.append(
                    f"only {float(np.min(ess)):.0f} effective draws ({name}; fewer than "
                    f"{_FEWEST_PER_CHAIN} per chain)"
                )
        if count := int(self.divergences.sum()):
            found.append(f"{count} divergent {'trajectory' if count == 1 else 'trajectories'}")
        if not np.min(self.bfmi) >= _LOWEST_BFMI:
            found.append(f"BFMI is {float(np.min(self.bfmi)):.2f} (less than {_LOWEST_BFMI})")
        return tuple(found)

    def predict(self, xi: ArrayLike) -> averaged.PosteriorPrediction:
        """Mean and variance of the network's output on new examples ξ `[P*, Π, D]`.

        The mean averages kᵀ(K+𝒯)⁻¹Y, Eq. 9, over the draws of U; the variance is, by
        the law of total variance, the average of K* − kᵀ(K+𝒯)⁻¹k, Eq. 30, plus the
        variance of that mean. The time grows with the number of draws: `thin` first if it
        matters. V⁰ is integrated out, also after `sample_weights`, whose own V⁰ `outputs` uses.
        """
        return averaged.predict(
            self.draws,
            self.xi,
            self.y,
            self._check(xi),
            temperature=self.temperature,
            prior_variance=self.prior_variance,
        )

    def outputs(self, xi: ArrayLike) -> Float[Array, "chains samples examples"]:
        """The output of every sampled network itself, f `[chains, samples, P*]`, from its weights.

        Eq. 5. Only for draws that have weights.
        """
        if self.weights is None:
            raise ValueError(
                "these draws have no weights: use complete_weights(posterior, seed=...), and "
                "`with_weights` to attach the result"
            )
        return averaged.outputs(self.weights, self._check(xi))

    def with_weights(self, weights: Weights) -> "Posterior":
        """The same draws together with weights, such as `complete_weights` gives."""
        if weights.a.shape[:2] != self.draws.shape[:2]:
            raise ValueError(
                f"weights must have leading axes {self.draws.shape[:2]}, one network for each "
                f"draw; got {weights.a.shape[:2]}"
            )
        return dataclasses.replace(self, weights=weights)

    def thin(self, every: int) -> "Posterior":
        """One of `every` draws of each chain.

        Counts of divergences and BFMI stay those of the whole run.
        """
        every = _inputs.whole("every", every, least=1)
        if every > self.draws.shape[1]:
            raise ValueError(f"every must be at most {self.draws.shape[1]} draws; got {every}")
        names = "draws weights factors potential energy leapfrogs acceptance".split()
        cut = {
            name: jax.tree.map(lambda x: x[:, every - 1 :: every], getattr(self, name))
            for name in names
        }
        return dataclasses.replace(self, **cut, thinning=self.thinning * every)

    def to_arviz(self) -> Any:
        """The draws of U and the sampler's statistics as an `arviz.InferenceData`."""
        with warnings.catch_warnings():
            # arviz announces its next version once a day
            warnings.simplefilter("ignore", FutureWarning)
            import arviz

        names = paths.labels(self.heads)
        samples = self.draws.shape[1]
        steps = np.repeat(np.asarray(self.step_size)[:, None], samples, axis=1)
        result = arviz.from_dict(
            posterior={"U": np.asarray(self.draws)},
            sample_stats={
                "lp": -np.asarray(self.potential),
                "energy": np.asarray(self.energy),
                "n_steps": np.asarray(self.leapfrogs),
                "acceptance_rate": np.asarray(self.acceptance),
                "step_size": steps,
            },
            observed_data={"y": np.asarray(self.y)},
            coords={"path": names, "other_path": names},
            dims={"U": ["path", "other_path"], "y": ["example"]},
        )
        setting = {"width": self.width, "temperature": float(self.temperature)}
        result.posterior.attrs.update(
            setting,
            prior_variance=float(self.prior_variance),
            heads=list(self.heads),
            divergences=np.asarray(self.divergences).tolist(),
            bfmi=np.asarray(self.bfmi).tolist(),
        )
        return result

    def _judged(self, judge):
        return jnp.asarray(judge(np.asarray(self.draws)))

    def _check(self, xi):
        xi = _inputs.array("xi", xi, "examples paths dim")
        if xi.shape[1:] != self.xi.shape[1:]:
            raise ValueError(
                f"xi must have {self.xi.shape[1]} paths of dimension {self.xi.shape[2]} as in "
                f"training; got shape {xi.shape}"
            )
        return xi


def warn_if_doubtful(result: Posterior) -> None:
    """Say so when the diagnostics are bad."""
    if result.doubts:
        warnings.warn(
            "do not trust these draws: " + "; ".join(result.doubts) + ". Take more samples and "
            "warm-up; against divergences raise `acceptance` towards 1",
            DoubtfulSample,
            stacklevel=4,
        )
