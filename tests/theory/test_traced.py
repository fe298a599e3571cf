"""What cannot be refused, because it is traced, gives NaN; what was solved can be asked."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnpaths import kernels, theory

RNG = np.random.default_rng(0)
XI = RNG.normal(size=(6, 4, 3))
Y = np.sign(XI[:, 0, 0])
GOOD = {"temperature": 0.1, "width": 10.0, "prior_variance": 1.0, "scale": 1.0}
WRONG = [
    {"temperature": -0.1},
    {"temperature": 0.0},
    {"temperature": np.nan},
    {"temperature": np.inf},
    {"width": 0.5},
    {"width": np.nan},
    {"prior_variance": -1.0},
    {"prior_variance": np.inf},
    {"scale": np.nan},
    {"scale": 1e200},
]


@jax.jit
@jax.vmap
def outcome(temperature, width, prior_variance, scale):
    setting = {"heads": (2, 2), "temperature": temperature, "prior_variance": prior_variance}
    found = {}
    for name, result in {
        "solve": theory.solve(scale * XI, Y, width=width, **setting),
        "gp_limit": theory.gp_limit(scale * XI, Y, **setting),
    }.items():
        predicted = result.predict(XI)
        numbers = result.U, result.action, predicted.mean, predicted.variance
        found[name] = result.converged, jnp.concatenate([jnp.ravel(n) for n in numbers])
    return found


def test_invalid_values_under_jit_and_vmap():
    rows = [GOOD, *({**GOOD, **wrong} for wrong in WRONG)]
    found = outcome(**{name: jnp.array([row[name] for row in rows]) for name in GOOD})
    for name, (converged, numbers) in found.items():
        # the GP limit has no width
        bad = np.array([name == "solve" or "width" not in wrong for wrong in WRONG])
        bad = np.concatenate([[False], bad])
        assert (np.asarray(converged) == ~bad).all()
        assert np.isnan(numbers[bad]).all() and np.isfinite(numbers[~bad]).all()


def test_kernels_that_are_none_under_jit():
    skew, negative = jnp.array([[1.0, 0.5], [0.1, 1.0]]), jnp.diag(jnp.array([1.0, -0.2]))
    ones = jnp.ones(2)
    predict = jax.jit(lambda k, t: kernels.predict(k, jnp.eye(2), ones, ones, temperature=t))
    assert np.isfinite(predict(jnp.eye(2), 0.1).mean).all()
    for kernel, temperature in ((skew, 0.1), (negative, 0.5), (jnp.eye(2), -0.5), (skew, 0.0)):
        predicted = predict(kernel, temperature)
        assert np.isnan([predicted.mean, predicted.variance]).all()
    total = jax.jit(lambda U: kernels.total_kernel(U, XI[:, :2]))
    alignment = jax.jit(lambda k: kernels.alignment(k, ones))
    for kernel in (skew, negative):
        assert np.isnan(total(kernel)).all() and np.isnan(alignment(kernel).overlaps).all()
    accuracy = jax.jit(kernels.Prediction(ones, ones).accuracy)
    assert accuracy(ones) == 1 and np.isnan(accuracy(jnp.array([1.0, 0.0])))


@pytest.mark.usefixtures("as_users_see_it")
def test_kernels_that_overflow_or_do_not_belong_together():
    with pytest.raises(ValueError, match="xi_a and xi_b are too large"):
        kernels.path_kernels(1e200 * XI)
    with pytest.raises(ValueError, match="U, xi_a and xi_b are too large"):
        kernels.total_kernel(np.eye(4), 1e200 * XI)
    with pytest.raises(ValueError, match="xi or y is too large beside the temperature"):
        theory.gp_limit(1e200 * XI, Y, heads=(2, 2), temperature=0.1)
    for cross, diagonal in ((9 * np.eye(2), np.ones(2)), (0 * np.eye(2), np.array([1.0, -1.0]))):
        with pytest.raises(ValueError, match="cross and diagonal must be of the same kernel"):
            kernels.predict(np.eye(2), cross, diagonal, [1, 1], temperature=1.0)


def test_what_was_solved_predicts():
    """Features that are nearly equal, and temperatures far below them."""
    solved = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        xi, far = rng.normal(size=(2, 6, 4, 3))
        xi[3:] = xi[:3] + 10.0 ** rng.uniform(-8, -4) * xi[3:]
        temperature, size = 10.0 ** rng.uniform(-12, -6), 10.0 ** rng.uniform(0, 6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found = theory.solve(size * xi, Y, heads=(2, 2), width=10, temperature=temperature)
        if found.converged:
            solved += 1
            assert (found.predict(100 * size * far).variance >= 0).all()
    assert solved > 30


def test_one_width_of_several_cannot_be_infinite():
    setting = {"heads": (1,), "temperature": 0.1}
    solve = jax.jit(lambda width: theory.solve(XI[:, :1], Y, width=(10.0, width), **setting))
    assert solve(10.0).converged and np.isfinite(solve(10.0).U).all()
    for width in (np.inf, 0.5):
        assert not solve(width).converged and np.isnan(solve(width).U).all()
