"""What sampling gives: draws of the order parameter, what they predict, and whether to trust them.

Both samplers of `attnpaths.posterior` end in a `Posterior`. Given the order parameter U of a
draw, the network's output is a Gaussian process: the weights V⁰ of the input projection are
integrated out exactly, whichever sampler the draw came from.
"""

import dataclasses
import functools
import os
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from attnpaths import _checks, _extras, _files, _html, kernels
from attnpaths.network.ways import Ways
from attnpaths.network.weights import Weights, flat_readouts
from attnpaths.problem import OfProblem, Problem, graded_rows

# Thresholds of Vehtari et al. (2021), Betancourt (2016) and Stan.
_LARGEST_RHAT, _FEWEST_PER_CHAIN, _LOWEST_BFMI = 1.01, 100, 0.3
# Fewer draws of a chain than this cannot be judged.
_FEWEST = 4


class DoubtfulSample(UserWarning):
    """The diagnostics of a run say that its draws should not be trusted."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PosteriorPrediction:
    """The network's output on new examples, averaged over the posterior.

    `mean [P*]` and `variance [P*]` of the output; `mcse [P*]`, the Monte Carlo standard error
    of the mean; and `draws [chains, samples, P*]`, the mean given the U of each draw. With C
    outputs all have one more axis, and there is the `covariance [P*, C, C]` between outputs.

    >>> draws = jnp.array([[[0.5, -1.0], [0.3, -0.2]]])
    >>> prediction = PosteriorPrediction(draws.mean((0, 1)), jnp.ones(2), jnp.zeros(2), draws)
    >>> float(prediction.accuracy([1, 1])), float(prediction.accuracy_mcse([1, 1]))
    (0.5, 0.0)
    """

    mean: Float[Array, "examples *outputs"]
    variance: Float[Array, "examples *outputs"]
    mcse: Float[Array, "examples *outputs"]
    draws: Float[Array, "chains samples examples *outputs"]
    covariance: Float[Array, "examples outputs outputs"] | None = None

    def accuracy(self, y: ArrayLike, by: str | None = None) -> Float[Array, ""]:
        """The fraction of labels `y [P*]`, +1 or −1, that have the sign of the mean predictor.

        Several outputs are judged as `kernels.Prediction.accuracy` says.
        """
        return kernels.accuracy(self.mean, y, by, several=self.covariance is not None)

    def accuracy_mcse(self, y: ArrayLike, by: str | None = None) -> Float[Array, ""]:
        """The Monte Carlo standard error of `accuracy`, by a bootstrap over stretches of chains.

        Every chain is cut into ten stretches; the accuracy of averages over stretches that are
        drawn with replacement, 500 times, has this standard deviation.
        """
        stretches = np.array_split(np.asarray(self.draws), min(10, self.draws.shape[1]), axis=1)
        means = np.concatenate([stretch.mean(axis=1) for stretch in stretches])
        rng = np.random.default_rng(0)
        shares = rng.multinomial(len(means), np.full(len(means), 1 / len(means)), 500) / len(means)
        drawn = jnp.asarray(np.tensordot(shares, means, 1))
        return jnp.std(kernels.accuracy(drawn, y, by, several=self.covariance is not None))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Posterior(OfProblem):
    """Draws of the order parameter from its posterior, with all that they can be asked.

    `draws` are draws of U = V_eff V_effᵀ/N and `U [Π, Π]` their mean. `weights` holds the sampled
    `Weights` with leading axes `[chains, samples]`, or None after `sample_order_parameter`:
    `posterior.complete_weights` then draws them. `factors` are the B_{L+1}, …, B_1 of the draws,
    or None after `sample_weights`. `widths` are (N_1, …, N_{L+1}); `potential` is minus the
    logarithm of the posterior density. `doubts` lists in words what speaks against trusting the
    draws. `at_a_time` chains ran side by side, and of `thinning` steps one was kept.

    >>> from tempfile import TemporaryDirectory
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
    >>> with TemporaryDirectory() as folder: few.save(f"{folder}/draws.npz")
    """

    draws: Float[Array, "chains samples paths paths"]
    weights: Weights | None
    factors: tuple[Array, ...] | None
    problem: Problem
    widths: tuple[int, ...]
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
            f"Posterior({self.problem.ways}, width={self.width}, "
            f"temperature={float(self.temperature):g}, chains={chains}, samples={samples}, "
            f"rhat={float(np.max(self.rhat)):.3f}, ess={float(np.min(self.ess_bulk)):.0f}, "
            f"divergences={int(self.divergences.sum())})"
        )

    def _repr_html_(self) -> str:
        """The setting, the diagnostics and the mean of U as a coloured table."""
        chains, samples = self.draws.shape[:2]
        facts = {
            "heads": self.heads,
            "width N": self.width,
            "temperature 𝒯": f"{float(self.temperature):g}",
            "draws": f"{chains} chains × {samples}",
            "worst R-hat": f"{float(np.max(self.rhat)):.3f}",
            "fewest effective draws": f"{float(np.min(self.ess_bulk)):.0f}",
            "doubts": "; ".join(self.doubts) or "none",
        }
        U = _html.matrix(self.U, self.problem.names, "mean of U")
        return _html.card("Posterior", facts, U)

    @property
    def width(self) -> int | tuple[int, ...]:
        """N, or (N_1, …, N_{L+1}) where layers differ."""
        return self.widths[0] if len(set(self.widths)) == 1 else self.widths

    @functools.cached_property
    def U(self) -> Float[Array, "paths paths"]:
        """The posterior mean of the order parameter."""
        return jnp.mean(self.draws, axis=(0, 1))

    @functools.cached_property
    def rhat(self) -> Float[Array, "paths paths"]:
        """Rank-normalised split R-hat of every entry of U."""
        return judged("rhat", self.draws)

    @functools.cached_property
    def ess_bulk(self) -> Float[Array, "paths paths"]:
        """Effective draws of every entry of U, for its centre."""
        return judged("ess", self.draws, method="bulk")

    @functools.cached_property
    def ess_tail(self) -> Float[Array, "paths paths"]:
        """Effective draws of every entry of U, for its 5 % and 95 % quantiles."""
        return judged("ess", self.draws, method="tail")

    @functools.cached_property
    def mcse(self) -> Float[Array, "paths paths"]:
        """The Monte Carlo standard error of every entry of the mean U."""
        return judged("mcse", self.draws)

    @functools.cached_property
    def doubts(self) -> tuple[str, ...]:
        """Reasons not to trust these draws; empty when the diagnostics are good."""
        chains, samples = self.draws.shape[:2]
        if samples < _FEWEST:
            return (f"{samples} draws per chain are too few to judge",)
        found, rhat, bfmi = [], float(np.max(self.rhat)), float(np.min(self.bfmi))
        if not rhat <= _LARGEST_RHAT:
            found.append(f"R-hat is {rhat:.3f} (more than {_LARGEST_RHAT})")
        for name, each in (("bulk", self.ess_bulk), ("tail", self.ess_tail)):
            if not (ess := float(np.min(each))) >= _FEWEST_PER_CHAIN * chains:
                why = f"{name}; fewer than {_FEWEST_PER_CHAIN} per chain"
                found.append(f"only {ess:.0f} effective draws ({why})")
        if count := int(self.divergences.sum()):
            found.append(f"{count} divergent {'trajectory' if count == 1 else 'trajectories'}")
        if not bfmi >= _LOWEST_BFMI:
            found.append(f"BFMI is {bfmi:.2f} (less than {_LOWEST_BFMI})")
        return tuple(found)

    def predict(self, xi: ArrayLike) -> PosteriorPrediction:
        """Mean and variance of the network's output on new examples ξ `[P*, Π, D]`.

        The mean averages kᵀ(K+𝒯)⁻¹Y, Eq. 9, over the draws of U; the variance is, by
        the law of total variance, the average of K* − kᵀ(K+𝒯)⁻¹k, Eq. 30, plus the
        variance of that mean. The time grows with the number of draws: `thin` first if it
        matters. V⁰ is integrated out, also after `sample_weights`, whose own V⁰ `outputs` uses.
        """
        rows, xi = graded_rows(self.problem), self.problem.check_features(xi)
        found = kernels.regress(self.draws, rows.xi, rows.y, xi, **self.problem.regression)
        kernels.check_finite(found, self.temperature, xi)
        mean = jnp.mean(found.mean, axis=(0, 1))
        variance = jnp.mean(found.variance, axis=(0, 1)) + jnp.var(found.mean, axis=(0, 1))
        covariance = found.covariance
        if covariance is not None:
            apart = found.mean - mean[None, None]
            spread = jnp.einsum("ksac,ksae->ace", apart, apart) / apart[..., 0, 0].size
            covariance = jnp.mean(covariance, axis=(0, 1)) + spread
        mcse = judged("mcse", found.mean)
        return PosteriorPrediction(mean, variance, mcse, found.mean, covariance)

    def outputs(self, xi: ArrayLike) -> Float[Array, "chains samples examples *outputs"]:
        """The output f of every sampled network itself, from its weights, if it has any: Eq. 5."""
        if self.weights is None:
            raise ValueError(
                "these draws have no weights: use complete_weights(posterior, seed=...), and "
                "`with_weights` to attach the result"
            )
        return _outputs(self.weights, self.problem.check_features(xi), self.problem.ways)

    def with_weights(self, weights: Weights) -> "Posterior":
        """The same draws together with weights, such as `complete_weights` gives."""
        _checks.kind("weights", weights, Weights, "Weights(V0, V, a)")
        if weights.a.shape[:2] != self.draws.shape[:2]:
            raise ValueError(
                f"weights must have leading axes {self.draws.shape[:2]}, one network for each "
                f"draw; got {weights.a.shape[:2]}"
            )
        return dataclasses.replace(self, weights=weights)

    def thin(self, every: int) -> "Posterior":
        """One of `every` draws of each chain; divergences and BFMI stay those of the whole run."""
        every = _checks.whole("every", every, least=1)
        if every > self.draws.shape[1]:
            raise ValueError(f"every must be at most {self.draws.shape[1]} draws; got {every}")
        names = "draws weights factors potential energy leapfrogs acceptance".split()
        whole = {name: getattr(self, name) for name in names}
        cut = jax.tree.map(lambda x: x[:, every - 1 :: every], whole)
        return dataclasses.replace(self, **cut, thinning=self.thinning * every)

    def to_arviz(self) -> Any:
        """The draws of U and the sampler's statistics as an `arviz.InferenceData`."""
        arviz, names = _arviz(), self.problem.names
        steps = np.repeat(np.asarray(self.step_size)[:, None], self.draws.shape[1], axis=1)
        stats = {"lp": -self.potential, "energy": self.energy, "n_steps": self.leapfrogs}
        stats |= {"acceptance_rate": self.acceptance, "step_size": steps}
        result = arviz.from_dict(
            posterior={"U": np.asarray(self.draws)},
            sample_stats={name: np.asarray(each) for name, each in stats.items()},
            observed_data={"y": np.asarray(self.y)},
            coords={"path": names, "other_path": names},
            dims={"U": ["path", "other_path"], "y": ["example", "output"][: self.y.ndim]},
        )
        result.posterior.attrs.update(
            width=self.width,
            temperature=float(self.temperature),
            prior_variance=np.asarray(self.prior_variance).tolist(),
            heads=list(self.heads),
            divergences=np.asarray(self.divergences).tolist(),
            bfmi=np.asarray(self.bfmi).tolist(),
        )
        return result


def load(path: str | os.PathLike) -> Posterior:
    """What `Posterior.save` wrote to `path`: draws of U `[chains, samples, Π, Π]` and the rest.

    >>> import tempfile
    >>> from attnpaths.posterior import sample_order_parameter
    >>> xi = jax.random.normal(jax.random.key(0), (10, 2, 3))
    >>> draws = sample_order_parameter(xi, jnp.sign(xi[:, 0, 0]), heads=(2,), width=5,
    ...                                temperature=0.5, seed=0, chains=2, progress=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     draws.save(f"{folder}/draws.npz")
    ...     again = load(f"{folder}/draws.npz")
    >>> bool((again.draws == draws.draws).all()), again.width
    (True, 5)
    """
    return _files.load(path, (Posterior,), (Problem, Weights))


def judged(how: str, draws, **options) -> Float[Array, "..."]:
    """R-hat, effective draws or the standard error of `draws [chains, samples, ...]`, by arviz.

    Fewer than four draws per chain, and draws that never change, give NaN. A chain alone has the
    R-hat of its two halves.
    """
    draws = np.asarray(draws)
    if how == "rhat" and len(draws) == 1:
        # arviz wants something to compare
        half = draws.shape[1] // 2
        draws = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    if draws.shape[1] < _FEWEST:
        return jnp.full(draws.shape[2:], jnp.nan)
    arviz = _arviz()
    with np.errstate(invalid="ignore", divide="ignore"), warnings.catch_warnings():
        # more chains than draws are few draws, not axes in the wrong order
        warnings.filterwarnings("ignore", message="More chains")
        found = getattr(arviz, how)(arviz.convert_to_dataset({"x": draws}), **options)
    still = (draws == draws[:1, :1]).all(axis=(0, 1))
    return jnp.asarray(np.where(still, np.nan, found["x"].values))


def _arviz() -> Any:
    with warnings.catch_warnings():
        # arviz announces its next version once a day
        warnings.simplefilter("ignore", FutureWarning)
        return _extras.require("arviz", "sampling", "judging draws")


@functools.partial(jax.jit, static_argnames="ways")
def _outputs(weights: Weights, xi, ways: Ways) -> Float[Array, "chains samples examples *outputs"]:
    """The output of every sampled network, from its weights: Eq. 5."""
    flat = xi.reshape(len(xi), -1)
    of_chain = functools.partial(jax.lax.map, lambda w: flat @ flat_readouts(w, ways))
    return jax.lax.map(of_chain, weights)
