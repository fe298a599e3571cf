"""Coordinates in which the posterior is nearly round: another walk, the same draws."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnpaths import Problem, empirical_order_parameter, posterior
from attnpaths.posterior import densities, nuts

HEADS = (2, 2)
XI = jax.random.normal(jax.random.key(0), (12, 4, 3))
Y = jnp.sign(XI[:, 0, 0] + 0.3 * XI[:, 1, 1])
# as many columns as rows in all factors; and fewer, where one entry has a sign of its own
WIDTHS = [6, 3]


@functools.cache
def sampled(width, whiten):
    setting = {"heads": HEADS, "width": width, "temperature": 0.2, "prior_variance": 1.2}
    return posterior.sample_order_parameter(
        XI, Y, seed=3, chains=2, whiten=whiten, progress=False, **setting
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_whitened_draws_are_of_the_same_distribution(width):
    plain, whitened = sampled(width, False), sampled(width, True)
    assert plain.doubts == whitened.doubts == ()
    assert np.all(plain.draws[:, -1] != whitened.draws[:, -1])
    error = np.hypot(plain.mcse, whitened.mcse)
    assert np.all(np.abs(plain.U - whitened.U) < 4 * error)
    # and completed weights have these draws
    few = whitened.thin(250)
    U = jax.vmap(jax.vmap(empirical_order_parameter))(posterior.complete_weights(few, seed=0))
    np.testing.assert_allclose(U, few.draws, rtol=1e-10, atol=1e-10)


def test_no_draw_is_above_the_mode():
    result = sampled(6, True)
    density = densities.OrderParameter(HEADS, result.widths)
    data = density.data(result.problem)
    centre, scale = densities.shape_of(density, data, density.starts(jax.random.key(0), 1)[0])
    assert np.min(result.potential) > density(data, centre)
    w = jax.random.normal(jax.random.key(1), (density.size,))
    shaped = densities.Shaped(density)
    assert shaped((data, centre, scale), w) == density(data, centre + scale @ w)


@pytest.mark.parametrize("width", [3, 100])
def test_the_posterior_is_round_where_data_say_something(width):
    problem = Problem.of(XI, Y, heads=HEADS, temperature=0.02)
    density = densities.OrderParameter(HEADS, (width,) * 3)
    data = density.data(problem)
    start = density.starts(jax.random.key(2), 1)[0]
    centre, scale = densities.shape_of(density, data, start)

    @jax.jit
    def look(z):
        slope = jax.grad(lambda z: density(data, z))
        return slope(z), jax.jacfwd(slope)(z)

    assert np.max(np.abs(look(start)[0])) > 0.1
    slope, hessian = look(centre)
    assert np.max(np.abs(slope)) < 1e-5
    before = np.linalg.eigvalsh(hessian)
    after = np.linalg.eigvalsh(scale @ hessian @ scale.T)
    # what was narrower than the prior has width one, and nothing has become narrower
    narrow = np.sum(before > 1)
    assert narrow > 0 and before[-1] > 1.2
    np.testing.assert_allclose(after[-narrow:], 1, atol=1e-8)
    assert np.all(after[:-narrow] <= 1 + 1e-8)


@pytest.mark.usefixtures("as_users_see_it")
def test_whiten_is_true_or_false(monkeypatch):
    monkeypatch.setattr(nuts, "run", None)
    with pytest.raises(ValueError, match="whiten must be True or False; got 'yes'"):
        sampled.__wrapped__(6, "yes")
