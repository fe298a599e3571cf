import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnpaths import kernels
from attnpaths.problem import Problem, row_count
from attnpaths.theory import action, energies, factors
from attnpaths.theory.action import Widths
from attnpaths.theory.solution import entropy_of, levels_of

HEADS = [(3,), (2, 3), (3, 1, 2)]
WIDTH, TEMPERATURE, VARIANCE = 3.0, 0.3, 0.7


def problem(heads, examples=9, dim=4, *, temperature=TEMPERATURE, variance=VARIANCE, scale=1.0):
    rng = np.random.default_rng([examples, dim, *heads])
    xi = scale * rng.standard_normal((examples, int(np.prod(heads)), dim))
    y = np.sign(rng.standard_normal(examples))
    numbers = (jnp.array(temperature), jnp.array(variance))
    return Problem(jnp.asarray(xi), jnp.asarray(y), heads, *numbers)


def prepare(p):
    # compiled in one piece, and anew whenever a test changes a setting of the module
    return jax.jit(lambda p: energies.prepare(p))(p)


def one_width(heads, width=WIDTH):
    return Widths.of(jnp.array(width), len(heads))


def total_entropy(B):
    return jnp.sum(factors.entropies(B))


def somewhere(heads, seed=0, size=0.4):
    """Factors and a step that are nothing special."""
    B, step = size * np.random.default_rng(seed).standard_normal((2, factors.unknowns(heads)))
    return factors.triangular(jnp.asarray(B), heads), jnp.asarray(step)


def printed(levels, p, width):
    """Entropy and energy exactly as the paper prints them, in NumPy."""
    entropy, upper = 0.0, np.ones((1, 1))
    for level in reversed(levels):
        level = np.atleast_2d(level)
        extended = np.kron(np.eye(len(level) // len(upper)), upper)
        M = level @ np.linalg.inv(extended)
        entropy += np.trace(M) / float(p.prior_variance) - np.linalg.slogdet(M)[1]
        upper = level
    xi, y = np.asarray(p.xi), np.asarray(p.y)
    paths, dim = xi.shape[1:]
    C = np.einsum("api,bqi->pqab", xi, xi) / dim
    K = float(p.prior_variance) / paths * np.einsum("pq,pqab->ab", levels[0], C)
    noisy = K + float(p.temperature) * np.eye(len(K))
    energy = np.linalg.slogdet(noisy)[1] + y @ np.linalg.inv(noisy) @ y
    return entropy, energy / width, K


def factor_form(B, p, width):
    @jax.jit
    def compiled(B, data):
        levels, entropy = levels_of(B, p), entropy_of(B, jnp.ones(len(B)), p)
        u = factors.pairs(factors.assemble(B)[-1])
        return levels, entropy, (energies.energy(data, u) + energies.unreached(data)) / width

    return compiled(B, prepare(p))


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize(("variance", "examples"), [(1.0, 9), (0.7, 30)])
def test_the_factor_form_is_the_papers_action(heads, variance, examples):
    p = problem(heads, examples, variance=variance)
    B, _ = somewhere(heads)
    levels, entropy, energy = factor_form(B, p, WIDTH)
    assert [np.size(level) ** 0.5 for level in levels] == factors.level_sizes(heads)[::-1]
    expected_entropy, expected_energy, K = printed(levels, p, WIDTH)
    assert entropy == pytest.approx(expected_entropy, rel=1e-10)
    assert energy == pytest.approx(expected_energy, rel=1e-10)
    again = action.paper_action(
        levels,
        jnp.asarray(K),
        p.y,
        width=jnp.array(WIDTH),
        temperature=p.temperature,
        prior_variance=p.prior_variance,
    )
    np.testing.assert_allclose(again, (expected_entropy, expected_energy), rtol=1e-10)


def test_all_examples_count_when_features_are_fewer():
    p = problem((2,), examples=20, dim=3)
    data = prepare(p)
    assert len(data.y) == 6 and int(data.unseen) == 14
    # what the features span and what they miss make up all of the labels
    assert float(data.y @ data.y + data.missed) == pytest.approx(20, rel=1e-12)
    assert len(prepare(problem((2,), examples=5, dim=3)).y) == 5


@pytest.mark.parametrize("heads", HEADS)
def test_gradient_and_hessian_against_finite_differences(heads):
    p = problem(heads, variance=1.0)
    data, (start, step) = prepare(p), somewhere(heads)
    B, width = factors.move(start, step, heads), one_width(heads)

    def value(step):
        levels = levels_of(factors.move(B, step, heads), p)
        return sum(printed(levels, p, WIDTH)[:2])

    slope = jax.jit(jax.grad(lambda step: action.action(factors.move(B, step, heads), data, width)))
    got, gradient, scale, found = jax.jit(action.value_and_gradient, static_argnums=3)(
        B, data, width, heads
    )
    origin, h, directions = 0 * step, 1e-5, jnp.eye(len(step))
    assert got == pytest.approx(value(origin), rel=1e-11)
    differences = [(value(h * d) - value(-h * d)) / (2 * h) for d in directions]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(gradient, slope(origin), rtol=1e-10, atol=1e-12)
    differences = [(slope(h * d) - slope(-h * d)) / (2 * h) for d in directions]
    compiled = jax.jit(action.hessian, static_argnums=5)
    whole = compiled(B, jnp.array(True), found, data, width, heads)
    product = jax.jit(jax.vmap(action.hessian_product(B, data, width, heads)))
    for hessian in (whole, product(jnp.eye(len(step)))):
        np.testing.assert_allclose(hessian, differences, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(hessian, hessian.T, rtol=1e-10, atol=1e-10)
    # the one unknown of the last level is the scale of all of U
    K = printed(levels_of(B, p), p, WIDTH)[2]
    noisy = K + TEMPERATURE * np.eye(len(p.y))
    v = np.linalg.solve(noisy, p.y)
    terms = float(np.trace(K @ np.linalg.inv(noisy)) + v @ K @ v)
    assert scale[0] == pytest.approx(max(1, float(B[0][0, 0]) ** 2) + terms / WIDTH, rel=1e-10)
    assert all(len(set(np.asarray(scale[a:b]).tolist())) == 1 for a, b in factors.ranges(heads))


def test_an_estimated_hessian_is_near_the_exact_one():
    heads, width = (2, 2), one_width((2, 2))
    p = problem(heads, examples=120, dim=200)
    data, (B, _) = prepare(p), somewhere(heads)
    u = factors.pairs(factors.assemble(B)[-1])
    assert energies.probes(len(data.y), len(u)) < len(data.y) / 3
    compiled, found = jax.jit(action.hessian, static_argnums=5), energies.likelihood(data, u)
    rest = found, data, width, heads
    estimate, exact = (compiled(B, jnp.array(each), *rest) for each in (False, True))
    apart = np.linalg.norm(estimate - exact) / np.linalg.norm(exact)
    assert 1e-6 < apart < 0.2
    # with as many vectors as rows there is nothing to estimate
    assert energies.probes(10, 3) == 10


def test_inverses_by_halves(monkeypatch):
    rng = np.random.default_rng(0)
    for size in (2, 3, 7, 16):
        matrix = rng.normal(size=(size, 2 * size))
        matrix = jnp.asarray(matrix @ matrix.T)
        monkeypatch.setattr(energies, "_HALVED", 2)
        factor, whitening, inverse = energies._inverse(matrix)
        np.testing.assert_allclose(factor @ factor.T, matrix, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(whitening @ factor, np.eye(size), atol=1e-12)
        np.testing.assert_allclose(inverse, np.linalg.inv(matrix), rtol=1e-9, atol=1e-12)


def test_all_outputs_of_the_energy_differentiate():
    p = problem((3,))
    data, (B, _) = prepare(p), somewhere((3,))
    u = factors.pairs(factors.assemble(B)[-1])
    du, h = jnp.asarray(np.random.default_rng(1).standard_normal(len(u))), 1e-5
    values, tangents = jax.jvp(lambda u: energies.energy_and_slopes(data, u), (u,), (du,))
    ahead = energies.energy_and_slopes(data, u + h * du)
    behind = energies.energy_and_slopes(data, u - h * du)
    assert values[0] == pytest.approx(float(energies.energy(data, u)))
    for tangent, a, b in zip(tangents, ahead, behind, strict=True):
        np.testing.assert_allclose(tangent, (a - b) / (2 * h), rtol=1e-7, atol=1e-7)


def test_the_entropy_is_least_at_the_gp_limit():
    for heads in HEADS:
        count = sum(factors.level_sizes(heads))
        best = total_entropy(factors.gp_limit(heads))
        assert best == count
        for seed in range(3):
            assert total_entropy(somewhere(heads, seed)[0]) > best


def same_energy(p, other_data):
    """Value, gradient and second derivative from two ways to hold the same problem."""
    data = prepare(p)
    B, _ = somewhere(p.heads)
    u = factors.pairs(factors.assemble(B)[-1])
    du = jnp.asarray(np.random.default_rng(1).standard_normal(len(u)))
    results = [
        jax.tree.leaves(
            jax.jvp(jax.jit(lambda u, d=d: energies.energy_and_slopes(d, u)), (u,), (du,))
        )
        for d in (data, other_data)
    ]
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10 * np.abs(one).max())
    assert energies.unreached(data) == pytest.approx(
        float(energies.unreached(other_data)), rel=1e-11
    )


def test_streamed_kernels_are_stored_kernels(monkeypatch):
    p = problem((2, 3), 30)
    assert prepare(p).stored is not None
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "STORED_BYTES", 0)
        streamed = prepare(p)
    assert streamed.stored is None
    same_energy(p, streamed)
    u = factors.pairs(jnp.asarray(np.random.default_rng(0).standard_normal((6, 6))))
    np.testing.assert_allclose(
        energies.mix(streamed, u), energies.mix(prepare(p), u), rtol=1e-10, atol=1e-11
    )
    # the Hessian takes them from ξ, whatever is kept
    for careful in (False, True):
        one, other = (
            energies.hessian(data, energies.likelihood(data, u), jnp.array(careful))
            for data in (streamed, prepare(p))
        )
        assert jnp.isfinite(other).all()
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8 * np.abs(other).max())


def test_kernels_are_stored_up_to_a_limit():
    assert kernels.stores(100, 4)
    assert not kernels.stores(2000, 64)
    assert row_count(1000, 4, 231) == 924 and row_count(100, 4, 231) == 100


def test_the_rotation_changes_nothing(monkeypatch):
    p = problem((2, 3), 30)
    with monkeypatch.context() as patch:
        patch.setattr("attnpaths.problem.GRADED_RATIO", 0.0)
        rotated = prepare(p)
    assert not np.allclose(rotated.y, prepare(p).y)
    same_energy(p, rotated)


def test_the_rotation_keeps_small_directions(monkeypatch):
    """One path is 10⁷ times larger than the other; both decide about the energy."""
    p = problem((2,), 6, temperature=1e-4, variance=1.0)
    p = dataclasses.replace(p, xi=p.xi * jnp.array([1e7, 1.0])[None, :, None])
    u = jnp.array([1.0, 0.0, 1.0])
    # to leading order the large path leaves the directions outside its span to the small one
    large, small = (np.asarray(p.xi[:, i]) / np.sqrt(8) for i in (0, 1))
    basis, values, _ = np.linalg.svd(large, full_matrices=True)
    rest = basis[:, 4:].T
    inside = small @ small.T + 1e-4 * np.eye(6)
    outside = rest @ inside @ rest.T
    seen = rest @ np.asarray(p.y)
    fit = seen @ np.linalg.solve(outside, seen)
    expected = np.log(values**2).sum() + np.linalg.slogdet(outside)[1] + fit
    assert energies.energy(prepare(p), u) == pytest.approx(expected, rel=1e-8)
    # rows that nearly combine are rotated for two reasons; without either, digits are lost
    monkeypatch.setattr("attnpaths.problem.GRADED_RATIO", np.inf)
    monkeypatch.setattr("attnpaths.problem.DEFICIENT_ROWS", 0)
    assert abs(float(energies.energy(prepare(p), u)) / expected - 1) > 1e-7
