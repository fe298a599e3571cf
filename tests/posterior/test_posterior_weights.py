"""Weights drawn back from the factors of the prior are weights of the prior."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from attnpaths import Problem, Weights, empirical_order_parameter, posterior
from attnpaths.posterior import densities

STATISTICS = {
    "an entry of V0": lambda w: w.V0[:, 0, 0],
    "an entry of V": lambda w: w.V[0][:, 1, 0, 1],
    "the last entry of V": lambda w: w.V[-1][:, -1, -1, -1],
    "an entry of a": lambda w: w.a[:, 0],
    "size of V0": lambda w: np.square(w.V0).sum((1, 2)),
    "size of V": lambda w: np.square(w.V[0]).sum((1, 2, 3)),
    "size of a": lambda w: np.square(w.a).sum(1),
    "two heads": lambda w: jnp.einsum("sij,sij->s", w.V[0][:, 0], w.V[0][:, 1]),
    "two layers": lambda w: jnp.einsum("sij,sji->s", w.V[0][:, 0], w.V[-1][:, 0]),
    "readout of a layer": lambda w: jnp.einsum("si,sij,sj->s", w.a, w.V[-1][:, 0], w.V0[:, :, 0]),
}


@pytest.mark.parametrize(("heads", "width"), [((2, 2), 3), ((2, 2), 6), ((2,), 2), ((3, 1), 1)])
def test_without_data_completed_weights_follow_the_prior(heads, width):
    count, dim, variance = 4000, 2, 1.5
    density = densities.OrderParameter(heads, (width,) * (len(heads) + 1))
    z = density.starts(jax.random.key(0), count)[None]
    factors, draws = density.read(z, jnp.array(variance))
    paths = draws.shape[-1]
    none, chain = jnp.zeros((1, count)), jnp.zeros(1)
    # labels at an infinite temperature say nothing
    given = posterior.Posterior(
        draws=draws,
        weights=None,
        factors=factors,
        problem=Problem.of(
            jax.random.normal(jax.random.key(1), (5, paths, dim)),
            jnp.ones(5),
            heads=heads,
            temperature=1e30,
            prior_variance=variance,
        ),
        widths=density.widths,
        potential=none,
        energy=none,
        leapfrogs=none.astype(int),
        acceptance=none,
        divergences=chain.astype(int),
        step_size=chain,
        bfmi=chain,
        thinning=1,
        at_a_time=1,
    )
    completed = posterior.complete_weights(given, seed=2)
    completed = jax.tree.map(lambda w: w[0], completed)
    prior = jax.vmap(
        lambda key: Weights.prior(key, width=width, dim=dim, heads=heads, prior_variance=variance)
    )(jax.random.split(jax.random.key(3), count))
    for label, statistic in STATISTICS.items():
        if label == "an entry of V" and width == 1:
            continue
        test = scipy.stats.ks_2samp(statistic(completed), statistic(prior))
        assert test.pvalue > 1e-3, label
    # entries have a known distribution, too
    for entry in (completed.V0[:, -1, -1], completed.V[-1][:, 0, 0, 0], completed.a[:, -1]):
        assert scipy.stats.kstest(entry / np.sqrt(variance), "norm").pvalue > 1e-3


@pytest.mark.parametrize("width", [1, 2, 4, 7])
def test_factors_drawn_from_the_prior_are_those_of_weights(width):
    count, heads = 4000, (3, 2)
    density = densities.OrderParameter(heads, (width,) * (len(heads) + 1))
    U = density.read(density.starts(jax.random.key(0), count)[None], jnp.ones(()))[1][0]
    keys = jax.random.split(jax.random.key(1), count)
    prior = jax.vmap(lambda k: Weights.prior(k, width=width, dim=1, heads=heads))(keys)
    V = jax.vmap(empirical_order_parameter)(prior)
    for i, j in ((0, 0), (5, 5), (0, 1), (0, 2), (3, 4)):
        assert scipy.stats.ks_2samp(U[:, i, j], V[:, i, j]).pvalue > 1e-3, (i, j)
    assert scipy.stats.ks_2samp(jnp.trace(U.T), jnp.trace(V.T)).pvalue > 1e-3


@pytest.mark.usefixtures("as_users_see_it")
def test_only_order_parameter_draws_can_be_completed():
    with pytest.raises(ValueError, match="posterior must be a Posterior; got int"):
        posterior.complete_weights(3, seed=0)
    names = [field.name for field in dataclasses.fields(posterior.Posterior)]
    blank = posterior.Posterior(**dict.fromkeys(names))
    with pytest.raises(ValueError, match="must come from sample_order_parameter"):
        posterior.complete_weights(blank, seed=0)
