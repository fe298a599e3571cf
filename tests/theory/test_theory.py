import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnpaths import Network, kernels
from attnpaths.tasks.markov import make_task, paper_task
from attnpaths.theory import factors, gp_limit, solve, solve_adam, solver, sweep
from attnpaths.theory import grid as grids
from attnpaths.theory.trust_region import minimise

WIDTHS = {"four": (10, 100, 1000), "two": (10, 100)}
SOLVED = [(name, width) for name, widths in WIDTHS.items() for width in widths]
# one shape for everything that does not depend on it, so that it is compiled once
HEADS, EXAMPLES, DIM = (2, 3), 15, 4


@pytest.fixture(scope="module")
def facts(reference):
    everything = reference("theory")
    return {
        "four": everything["four_paths"] | {"gp": everything["four_paths_gp"]},
        "two": everything["two_paths_uniform_head_sigma_perp_5"]
        | {"gp": everything["two_paths_gp"]},
        "good": {"gp": everything["gp_good_path"]},
        "good+denoising": {"gp": everything["gp_good_and_denoising"]},
    }


class Case:
    """A task with its attentioned inputs, solved where asked."""

    def __init__(self, task):
        self.task, self.heads = task, task.network.head_counts
        self.xi, self.test_xi = (task.network.features(s.x) for s in (task.train, task.test))
        self.solved = {}

    def __getitem__(self, width):
        if width not in self.solved:
            setting = {"heads": self.heads, "temperature": 0.01}
            if width == "gp":
                self.solved[width] = gp_limit(self.xi, self.task.train.y, **setting)
            else:
                self.solved[width] = solve(self.xi, self.task.train.y, width=width, **setting)
        return self.solved[width]


@pytest.fixture(scope="module")
def cases(paper):
    tasks = {
        "four": paper,
        "two": paper_task(paths="good+denoising", denoising="uniform", sigma_perp=5.0),
        "good": paper_task(paths="good"),
        "good+denoising": paper_task(paths="good+denoising"),
    }
    return {name: Case(task) for name, task in tasks.items()}


def close(actual, expected, within):
    expected = np.asarray(expected)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=within * np.abs(expected).max())


def statistics(kernel):
    kernel = np.asarray(kernel)
    eigenvalues = np.linalg.eigvalsh(kernel)
    return {
        "trace": np.trace(kernel),
        "sum": kernel.sum(),
        "fro": np.linalg.norm(kernel),
        "min": kernel.min(),
        "max": kernel.max(),
        "mean": kernel.mean(),
        "K00": kernel[0, 0],
        "K01": kernel[0, 1],
        "K0_50": kernel[0, 50],
        "K99_99": kernel[99, 99],
        "eig_max": eigenvalues[-1],
        "eig_2": eigenvalues[-2],
        "eig_min": eigenvalues[0],
        "logdet_plus_T": np.linalg.slogdet(kernel + 0.01 * np.eye(len(kernel)))[1],
    }


@pytest.mark.parametrize(("name", "width"), SOLVED)
def test_the_papers_order_parameters(cases, facts, name, width):
    result, fact = cases[name][width], facts[name][str(width)]
    assert result.converged
    for level, key in zip(result.levels, ("U1", "U2", "U3"), strict=True):
        close(level, fact[key], 1e-8)
    np.testing.assert_array_equal(result.U, result.levels[0])
    for key in ("action", "energy", "entropy"):
        assert float(getattr(result, key)) == pytest.approx(fact[key], rel=1e-8)
    assert int(result.evaluations) <= (80 if width == 10 else 20)


@pytest.mark.parametrize(("name", "width"), SOLVED)
def test_the_papers_predictions(cases, facts, name, width):
    case, fact = cases[name], facts[name][str(width)]
    prediction = case[width].predict(case.test_xi)
    assert float(prediction.accuracy(case.task.test.y)) == fact["test_accuracy"]
    close(prediction.mean[:10], fact["predictor_mean_first10"], 1e-8)
    # the authors' Adam stopped 1e-5 short of the minimum
    close(prediction.variance[:10], fact["predictor_variance_first10_adam"], 1e-3)
    kernel = statistics(case[width].kernel())
    for key in kernel:
        assert kernel[key] == pytest.approx(fact["kernel_adam"][key], rel=1e-3)
    close(case[width].alignment().overlaps[:30], fact["alignment_first30_adam"], 1e-3)


@pytest.mark.parametrize("name", ["four", "two", "good", "good+denoising"])
def test_the_papers_gp_limits(cases, facts, name):
    case, fact = cases[name], facts[name]["gp"]
    limit, y = case["gp"], np.asarray(case.task.test.y)
    prediction = limit.predict(case.test_xi)
    mean = np.asarray(prediction.mean)
    assert float(prediction.accuracy(y)) == fact["test_accuracy"]
    close(mean[:10], fact["predictor_mean_first10"], 1e-9)
    numbers = {"predictor_mean_sum": mean.sum()}
    if "test_mse" in fact:
        train = limit.predict(case.xi).accuracy(case.task.train.y)
        numbers["train_accuracy"] = float(train)
        numbers["test_mse"] = np.mean((mean - y) ** 2)
        numbers["predictor_mean_l2"] = np.linalg.norm(mean)
        numbers["predictor_var_mean"] = np.mean(prediction.variance)
    for key, value in numbers.items():
        assert value == pytest.approx(fact[key], rel=1e-9), key
    kernel = statistics(limit.kernel())
    for key, value in kernel.items():
        assert value == pytest.approx(fact["kernel_stats"][key], rel=1e-9), key
    alignment = limit.alignment()
    close(alignment.overlaps[:30], fact["alignment_first30"]["overlaps"], 1e-9)
    close(alignment.eigenvalues[:30], fact["alignment_first30"]["eigenvalues"], 1e-9)
    assert float(jnp.sum(alignment.overlaps**2)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", ["four", "two"])
def test_the_papers_subsets_of_paths(cases, facts, name):
    case = cases[name]
    for key, accuracy in facts[name]["gp"]["isolated_or_subset_paths_gp_accuracy"].items():
        kept = [int(path) for path in key.split("+")]
        limit = gp_limit(case.xi[:, kept], case.task.train.y, heads=(len(kept),), temperature=0.01)
        prediction = limit.predict(case.test_xi[:, kept])
        assert float(prediction.accuracy(case.task.test.y)) == accuracy, key


def test_the_papers_recipe_reaches_the_papers_action(cases):
    case = cases["four"]
    target = case[100].action + 1e-9
    setting = {"heads": case.heads, "width": 100, "temperature": 0.01}
    result = solve_adam(case.xi, case.task.train.y, target=target, steps=4000, **setting)
    assert result.converged
    assert 0 <= float(result.action - case[100].action) <= 1e-8
    close(result.U, case[100].U, 1e-3)
    # 13 rates of ten steps, then the chosen one
    assert int(result.evaluations) == int(result.iterations) + 130


def draw(seed):
    rng = np.random.default_rng(seed)
    xi = rng.standard_normal((EXAMPLES, 6, DIM)) * rng.uniform(0.5, 2, size=(1, 6, 1))
    return xi, np.sign(rng.standard_normal(EXAMPLES)), rng


def solved(xi, y, **setting):
    return solve(xi, y, **({"heads": HEADS, "width": 10.0, "temperature": 0.1} | setting))


SETTINGS = {
    "seed": st.integers(0, 10**6),
    "width": st.floats(0, 4).map(lambda power: 3 * 10**power),
    "temperature": st.floats(-2, 0).map(lambda power: 10**power),
}
few = settings(max_examples=15)


@few
@given(**SETTINGS)
def test_relabelled_heads_permute_the_order_parameter(seed, width, temperature):
    xi, y, rng = draw(seed)
    orders = [rng.permutation(h) for h in HEADS]
    # path (h1, h2) of the relabelled network is path (orders[0][h1], orders[1][h2])
    paths = np.arange(6).reshape(HEADS)[np.ix_(*orders)].ravel()
    before = solved(xi, y, width=width, temperature=temperature)
    after = solved(xi[:, paths], y, width=width, temperature=temperature)
    close(after.U, before.U[np.ix_(paths, paths)], 1e-6)
    close(after.levels[1], before.levels[1][np.ix_(orders[1], orders[1])], 1e-6)
    assert float(after.action) == pytest.approx(float(before.action), rel=1e-10)


@few
@given(**SETTINGS)
def test_flipped_labels_leave_the_order_parameter(seed, width, temperature):
    xi, y, _ = draw(seed)
    before = solved(xi, y, width=width, temperature=temperature)
    after = solved(xi, -y, width=width, temperature=temperature)
    close(after.U, before.U, 1e-9)
    np.testing.assert_allclose(after.predict(xi).mean, -before.predict(xi).mean, atol=1e-9)


@few
@given(**SETTINGS)
def test_rotated_features_leave_the_order_parameter(seed, width, temperature):
    xi, y, rng = draw(seed)
    rotation = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
    before = solved(xi, y, width=width, temperature=temperature)
    after = solved(xi @ rotation, y, width=width, temperature=temperature)
    close(after.U, before.U, 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_tokens_and_heads_rotated_together(seed):
    _, y, rng = draw(seed)
    x = rng.standard_normal((EXAMPLES, 5, DIM))
    rotation = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
    heads = [rng.standard_normal((count, DIM, DIM)) for count in HEADS]
    plain = Network(heads, readout=-1)
    rotated = Network([rotation.T @ w @ rotation for w in heads], readout=-1)
    before = solved(plain.features(x), y)
    close(solved(rotated.features(x @ rotation), y).U, before.U, 1e-6)
    # and the heads matter: tokens rotated alone are another problem
    other = solved(plain.features(x @ rotation), y)
    assert np.abs(other.U - before.U).max() > 1e-3


@few
@given(seed=SETTINGS["seed"], temperature=SETTINGS["temperature"])
def test_the_gp_limit_is_approached_like_one_over_width(seed, temperature):
    xi, y, _ = draw(seed)
    widths = np.logspace(3, 6, 4)
    distance = [
        np.abs(solved(xi, y, width=n, temperature=temperature).U - np.eye(6)).max() for n in widths
    ]
    slope = np.polyfit(np.log(widths), np.log(distance), 1)[0]
    assert slope == pytest.approx(-1, abs=0.05)


@few
@given(**SETTINGS, power=st.floats(-3, 3))
def test_units_of_the_output_do_not_matter(seed, width, temperature, power):
    """Outputs, labels and the square root of the temperature have one unit."""
    xi, y, _ = draw(seed)
    unit = 10.0**power
    before = solved(xi, y, width=width, temperature=temperature)
    after = solved(xi * unit, y * unit, width=width, temperature=temperature * unit**2)
    close(after.U, before.U, 1e-6)
    shift = EXAMPLES / width * 2 * np.log(unit)
    assert float(after.energy) == pytest.approx(float(before.energy) + shift, abs=1e-6, rel=1e-6)
    assert float(after.entropy) == pytest.approx(float(before.entropy), rel=1e-6)
    np.testing.assert_allclose(
        after.predict(xi * unit).mean, unit * before.predict(xi).mean, atol=1e-5 * unit
    )


@few
@given(**SETTINGS, power=st.floats(-1, 1))
def test_the_prior_variance_is_a_unit_too(seed, width, temperature, power):
    xi, y, _ = draw(seed)
    variance, layers = 10.0**power, len(HEADS)
    setting = {"width": width, "temperature": temperature}
    direct = solved(xi, y, prior_variance=variance, **setting)
    rescaled = solved(xi * variance ** ((layers + 2) / 2), y, **setting)
    for i, (one, other) in enumerate(zip(direct.levels, rescaled.levels, strict=True)):
        close(one, variance ** (layers + 1 - i) * other, 1e-6)
    count = sum(factors.level_sizes(HEADS))
    expected = float(rescaled.entropy) - count * np.log(variance)
    assert float(direct.entropy) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert float(direct.energy) == pytest.approx(float(rescaled.energy), rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(
        direct.kernel(), rescaled.kernel(rescaled.xi), rtol=1e-5, atol=1e-5 * direct.kernel().max()
    )


@few
@given(**SETTINGS)
def test_levels_are_symmetric_and_positive(seed, width, temperature):
    xi, y, _ = draw(seed)
    result = solved(xi, y, width=width, temperature=temperature)
    assert [np.shape(level) for level in result.levels] == [(6, 6), (3, 3), ()]
    assert result.levels[2] > 0
    for level in result.levels[:2]:
        np.testing.assert_array_equal(level, level.T)
        assert np.linalg.eigvalsh(level).min() > 0
    assert float(result.action) == pytest.approx(float(result.entropy + result.energy), rel=1e-14)
    assert float(result.entropy) >= sum(factors.level_sizes(HEADS)) - 1e-12


def test_infinite_width_is_the_gp_limit():
    xi, y, _ = draw(0)
    wide, limit = (
        solved(xi, y, width=np.inf, prior_variance=0.7),
        gp_limit(xi, y, heads=HEADS, temperature=0.1, prior_variance=0.7),
    )
    np.testing.assert_allclose(limit.U, 0.7**3 * np.eye(6), rtol=1e-14)
    for one, other in zip(wide.levels, limit.levels, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)
    for key in ("action", "energy", "entropy"):
        assert float(getattr(wide, key)) == pytest.approx(float(getattr(limit, key)), rel=1e-13)
    assert limit.converged and wide.converged and np.isinf(limit.width)
    np.testing.assert_allclose(wide.predict(xi).mean, limit.predict(xi).mean, rtol=1e-11)


def test_compiled_and_mapped():
    xi, y, _ = draw(1)
    widths, temperatures = jnp.array([3.0, 30.0, 1e4]), jnp.array([0.1, 1.0, 0.01])
    many = jax.jit(jax.vmap(lambda n, t: solved(xi, y, width=n, temperature=t)))(
        widths, temperatures
    )
    assert many.U.shape == (3, 6, 6) and many.converged.all()
    assert repr(many) == "Theory(heads=(2, 3), batch=(3,))"
    for i in range(3):
        one = solved(xi, y, width=widths[i], temperature=temperatures[i])
        close(many.U[i], one.U, 1e-8)
        assert float(many.action[i]) == pytest.approx(float(one.action), rel=1e-11)
    assert repr(one).startswith("Theory(heads=(2, 3), width=10000, temperature=0.01, action=")


def test_single_precision_is_promoted():
    xi, y, _ = draw(2)
    single = solved(jnp.asarray(xi, jnp.float32), y.astype(np.int32), width=np.float32(10))
    double = solved(xi.astype(np.float32).astype(float), y, width=10)
    assert single.U.dtype == single.action.dtype == np.float64
    np.testing.assert_array_equal(single.U, double.U)


def test_predictions_are_the_papers_formulas():
    xi, y, rng = draw(3)
    new = rng.standard_normal((7, 6, DIM))
    result = solved(xi, y, prior_variance=0.6)
    U = np.asarray(result.U)

    def kernel(a, b):
        return 0.6 / (6 * DIM) * np.einsum("pq,api,bqi->ab", U, a, b)

    inverse = np.linalg.inv(kernel(xi, xi) + 0.1 * np.eye(EXAMPLES))
    cross = kernel(new, xi)
    prediction = result.predict(new)
    np.testing.assert_allclose(prediction.mean, cross @ inverse @ y, rtol=1e-9)
    variance = np.diag(kernel(new, new)) - np.einsum("ti,ij,tj->t", cross, inverse, cross)
    np.testing.assert_allclose(prediction.variance, variance, rtol=1e-9)
    np.testing.assert_allclose(result.kernel(), kernel(xi, xi), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(result.kernel(new), kernel(new, new), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(result.kernel(new, xi), cross, rtol=1e-10, atol=1e-12)
    assert float(jnp.sum(result.alignment().overlaps ** 2)) == pytest.approx(1, abs=1e-12)


@pytest.fixture
def forget(monkeypatch):
    """Compiles a function of the solver anew, under whatever settings a test has changed."""

    def forget(name):
        plain = getattr(solver, name).__wrapped__
        monkeypatch.setattr(solver, name, jax.jit(lambda *args: plain(*args)))

    return forget


def test_streamed_kernels_give_the_same_minimum(monkeypatch, forget):
    xi, y, _ = draw(4)
    stored = solved(xi, y)
    monkeypatch.setattr(kernels, "STORED_BYTES", 0)
    forget("_prepared")
    streamed = solved(xi, y)
    close(streamed.U, stored.U, 1e-8)
    assert float(streamed.action) == pytest.approx(float(stored.action), rel=1e-11)


def test_conjugate_gradients_find_the_same_minimum(monkeypatch, forget):
    xi, y, _ = draw(5)
    dense = solved(xi, y)
    monkeypatch.setattr(solver, "_forms_hessian", lambda unknowns, data: False)
    forget("minimum")
    again = solved(xi, y)
    assert again.converged
    assert int(again.hessian_products) != int(dense.hessian_products)
    close(again.U, dense.U, 1e-7)
    assert float(again.action) == pytest.approx(float(dense.action), rel=1e-11)


def test_rows_that_others_determine_hide_nothing():
    """Without noise out of the plane U is 10⁵, and plain rows are 2e-7 of it off."""
    task = make_task(2, sigma_perp=0.0, examples=113, test_examples=2)
    xi, y = np.asarray(task.network.features(task.train.x)), np.asarray(task.train.y)
    basis, sizes, rows = np.linalg.svd(xi.reshape(len(xi), -1), full_matrices=False)
    setting = {"heads": (2, 2), "width": 1.02, "temperature": 0.0028}
    there = solve((sizes[:, None] * rows).reshape(xi.shape), basis.T @ y, **setting)
    assert there.converged and np.abs(there.U).max() > 1e5
    close(solve(xi, y, **setting).U, there.U, 1e-9)


def test_the_rotation_does_not_move_the_minimum(monkeypatch, forget):
    xi, y, _ = draw(6)
    plain = solved(xi, y)
    monkeypatch.setattr("attnpaths.problem.GRADED_RATIO", 0.0)
    forget("_prepared")
    rotated = solved(xi, y)
    close(rotated.U, plain.U, 1e-8)
    np.testing.assert_allclose(rotated.predict(xi).mean, plain.predict(xi).mean, atol=1e-8)


def test_more_examples_than_features():
    """The problem is reduced to what the features span; nothing of the answer is lost."""
    rng = np.random.default_rng(0)
    xi, y = rng.standard_normal((40, 6, DIM)), np.sign(rng.standard_normal(40))
    result = solved(xi, y)
    K = np.asarray(result.kernel()) + 0.1 * np.eye(40)
    energy = (np.linalg.slogdet(K)[1] + y @ np.linalg.solve(K, y)) / 10
    assert float(result.energy) == pytest.approx(energy, rel=1e-9)
    # making all of U⁽¹⁾ larger or smaller does not pay, with all examples counted
    v, inverse = np.linalg.solve(K, y), np.linalg.inv(K)
    drift = np.sum(np.asarray(result.kernel()) * (inverse - np.outer(v, v))) / 10
    extended = np.kron(np.eye(2), np.asarray(result.levels[1]))
    slope = np.trace(np.asarray(result.U) @ np.linalg.inv(extended)) - 6
    assert slope + drift == pytest.approx(0, abs=1e-8)


GRID = {"widths": [30.0, np.inf, 3.0, 300.0], "temperatures": [0.1, 1.0, 0.02]}


@pytest.fixture(scope="module")
def grid():
    xi, y, _ = draw(7)
    return sweep(xi, y, heads=HEADS, **GRID, progress=False)


def test_a_sweep_is_its_solutions(grid):
    """Also where the widths and temperatures come in no order."""
    xi, y, _ = draw(7)
    assert grid.widths == tuple(GRID["widths"])
    assert grid.temperatures == tuple(GRID["temperatures"])
    for i, width in enumerate(GRID["widths"]):
        for j, temperature in enumerate(GRID["temperatures"]):
            one = solved(xi, y, width=width, temperature=temperature)
            assert float(grid[i, j].width) == width
            assert float(grid[i, j].temperature) == temperature
            close(grid[i, j].U, one.U, 1e-7)
            for key in ("action", "energy", "entropy"):
                expected = pytest.approx(float(getattr(one, key)), rel=1e-7, abs=1e-9)
                assert float(getattr(grid[i, j], key)) == expected
            mean = grid.predict(xi).mean[i, j] if i == j else grid[i, j].predict(xi).mean
            np.testing.assert_allclose(mean, one.predict(xi).mean, atol=1e-7)


def test_a_sweep_has_the_fields_of_its_solutions(grid):
    xi, y, _ = draw(7)
    assert grid.U.shape == (4, 3, 6, 6)
    scalars = "action energy entropy gradient_norm converged iterations evaluations".split()
    for name in [*scalars, "hessian_products"]:
        values = getattr(grid, name)
        assert values.shape == (4, 3)
        assert values[2, 1] == getattr(grid[2, 1], name)
    assert grid.converged.all()
    prediction = grid.predict(xi[:5])
    assert prediction.mean.shape == prediction.variance.shape == (4, 3, 5)
    assert grid.predict(xi).accuracy(y).shape == (4, 3)
    with pytest.raises(ValueError, match=r"kernel needs one solution.* axes \(4, 3\); pick one"):
        grid.kernel()
    # neighbours are better starts than the GP limit
    single = [solved(xi, y, width=n, temperature=t) for n in GRID["widths"] for t in (0.1, 1, 0.02)]
    work = sum(int(one.evaluations + one.hessian_products) for one in single)
    assert int((grid.evaluations + grid.hessian_products).sum()) < work


def test_a_sweep_shows_its_progress(capsys):
    xi, y, _ = draw(7)
    setting = {"heads": HEADS, "widths": np.array([3]), "temperatures": [0.1]}
    sweep(xi, y, **setting, progress=False)
    assert capsys.readouterr().err == ""
    sweep(xi, y, **setting)
    assert "theory: 100%" in capsys.readouterr().err


@pytest.mark.parametrize(("width", "rate"), [(5, 0.01), (500, None)])
def test_the_papers_recipe_finds_the_same_minimum(width, rate):
    xi, y, _ = draw(8)
    newton = solved(xi, y, width=width)
    setting = {"heads": HEADS, "width": width, "temperature": 0.1}
    adam = solve_adam(xi, y, learning_rate=rate, tolerance=1e-6, **setting)
    assert adam.converged and float(adam.gradient_norm) <= 1e-6
    assert float(adam.action) == pytest.approx(float(newton.action), abs=1e-7)
    for one, other in zip(adam.levels, newton.levels, strict=True):
        assert np.shape(one) == np.shape(other)
        close(one, other, 1e-3)
    assert float(adam.action) == pytest.approx(float(adam.entropy + adam.energy), rel=1e-12)
    assert int(adam.evaluations) > 5 * int(newton.evaluations)


def test_the_papers_recipe_with_settings():
    xi, y, _ = draw(8)
    setting = {"heads": HEADS, "width": 5, "temperature": 0.1, "learning_rate": 0.01}
    with pytest.warns(RuntimeWarning, match="1 of 1 solutions did not converge"):
        short = solve_adam(xi, y, steps=20, **setting)
    assert not short.converged and int(short.evaluations) == 20
    start = gp_limit(xi, y, heads=HEADS, temperature=0.1)
    target = float(short.action) + 1e-3
    early = solve_adam(xi, y, target=target, **setting)
    assert early.converged and int(early.evaluations) <= 20 and float(early.action) <= target
    assert np.abs(early.U - start.U).max() > 0.01


def test_what_did_not_converge_is_said(monkeypatch):
    xi, y, _ = draw(9)
    plain = solver.minimum

    def stopped(*args, **kwargs):
        result, end = plain(*args, **kwargs)
        return dataclasses.replace(result, converged=jnp.array(False)), end

    monkeypatch.setattr(solver, "minimum", stopped)
    monkeypatch.setattr(grids, "minimum", stopped)
    with pytest.warns(RuntimeWarning, match="1 of 1 solutions did not converge; .* width 10 "):
        assert not solved(xi, y).converged
    grid = {"widths": [10, 20.0], "temperatures": np.array([0.1, 1.0]), "progress": False}
    with pytest.warns(RuntimeWarning, match="4 of 4 solutions did not converge"):
        assert not sweep(xi, y, heads=HEADS, **grid).converged.any()


def test_the_minimiser_stops_when_told():
    def height(x):
        return (1 - x[0]) ** 2 + 9 * (x[1] - x[0] ** 2) ** 2

    def valley(x):
        return *jax.value_and_grad(height)(x), jnp.ones(())

    def curvature(x, exact):
        # an estimate that is far off
        return jnp.where(exact, jax.hessian(height)(x), -jnp.eye(2))

    def end(most, **how):
        start = jnp.array([-2.0, 2.0])
        return minimise(valley, jnp.add, start, 2, tolerance=1e-12, most=most, **how)

    for how in ({}, {"curvature": curvature}):
        assert int(end(3, **how).evaluations) == 3 and np.abs(end(3).gradient).max() > 0.1
        full = end(200, **how)
        assert int(full.evaluations) < 50 and int(full.iterations) == full.evaluations - 1
        np.testing.assert_allclose(full.point, 1, atol=1e-11)
    assert int(end(0).evaluations) == 0 and end(0).value == np.inf


XI, Y = np.random.default_rng(0).standard_normal((5, 4, 3)), np.array([1.0, 1, -1, -1, 1])
# shapes without the memory of them
MANY = np.broadcast_to(np.zeros(()), (500_000, 4, 600_000))
BAD = [
    ({"xi": XI[0]}, r"xi must have 3 axes \[examples, paths, dim\]; got shape \(4, 3\)"),
    ({"xi": XI[None]}, "xi must have 3 axes"),
    ({"xi": XI[:, :3]}, r"xi has 3 paths but heads=\(2, 2\) makes 4"),
    ({"xi": XI[:0]}, "xi must not be empty"),
    ({"xi": np.where(XI > 2, np.nan, np.nan)}, "xi must be finite; 60 of its 60 numbers"),
    ({"xi": np.where(XI == XI[0, 0, 0], np.inf, XI)}, "xi must be finite; 1 of its 60 numbers"),
    ({"xi": "features"}, "xi must hold real numbers"),
    ({"xi": XI * 1j}, "xi must hold real numbers; got dtype complex128"),
    ({"xi": [[[1.0], [1.0, 2.0]]]}, "xi must be an array .* ragged"),
    ({"xi": None}, "xi must hold real numbers"),
    ({"y": Y[:4]}, "y must hold one label per example of xi, 5; got 4"),
    ({"y": Y[:, None, None]}, "y must have 1 axes"),
    ({"y": np.array([1, 1, np.nan, 1, 1])}, "y must be finite; 1 of its 5 numbers"),
    ({"y": -Y * np.inf}, "y must be finite; 5 of its 5 numbers"),
    ({"y": list("abcde")}, "y must hold real numbers"),
    ({"heads": (4, 2)}, r"xi has 4 paths but heads=\(4, 2\) makes 8"),
    ({"heads": ()}, "heads must be a list with one entry per layer"),
    ({"heads": 4}, "heads must be a list with one entry per layer; got 4"),
    ({"heads": "22"}, "heads must be a list with one entry per layer; got '22'"),
    ({"heads": (2.0, 2)}, r"heads\[0\] must be a whole number ≥ 1; got 2.0"),
    ({"heads": (4, 0)}, r"heads\[1\] must be a whole number ≥ 1; got 0"),
    ({"heads": (-2, -2)}, r"heads\[0\] must be a whole number ≥ 1; got -2"),
    ({"heads": (4, True)}, r"heads\[1\] must be a whole number ≥ 1; got True"),
    ({"prior_variance": 0}, "prior_variance must be larger than 0 and finite; got 0"),
    ({"prior_variance": -1.0}, "prior_variance must be larger than 0"),
    ({"prior_variance": np.nan}, "prior_variance must be larger than 0"),
    ({"prior_variance": np.inf}, "prior_variance must be larger than 0 and finite"),
    ({"prior_variance": [1.0]}, "prior_variance must be a single number"),
    ({"prior_variance": None}, "prior_variance must be a number"),
    ({"xi": MANY}, r"500000 examples and 4 paths would need [\d,]+\.\d GiB of memory"),
]
TEMPERATURE = [
    ({"temperature": 0}, "temperature must be larger than 0 and finite; got 0"),
    ({"temperature": -0.1}, "temperature must be larger than 0"),
    ({"temperature": np.nan}, "temperature must be larger than 0"),
    ({"temperature": np.inf}, "temperature must be larger than 0 and finite; got inf"),
    ({"temperature": "cold"}, "temperature must be a number .*; got 'cold'"),
    ({"temperature": [0.1, 1.0]}, r"temperature must be a single number .*got shape \(2,\)"),
]
WIDTH = [
    ({"width": 0}, "width must be at least 1; got 0|width must be at least 1 and finite; got 0"),
    ({"width": 0.99}, "width must be at least 1"),
    ({"width": -np.inf}, "width must be at least 1"),
    ({"width": np.nan}, "width must be at least 1.*; got nan"),
    ({"width": np.array([10, 100])}, r"width must be a single number .*got shape \(2,\)"),
    ({"width": "wide"}, "width must be a number"),
    ({"width": None}, "width must be a number"),
    ({"width": True}, "width must be a number .*; got True"),
    ({"width": 1j}, "width must be a number"),
]
GRIDS = [
    ({"widths": []}, "widths must be a non-empty list of numbers"),
    ({"widths": 10}, "widths must be a non-empty list of numbers; got 10"),
    ({"widths": [10, 0.5]}, r"widths\[1\] must be at least 1; got 0.5"),
    ({"widths": [[10, 20]]}, "widths must be a non-empty list"),
    ({"widths": "10"}, "widths must be a non-empty list"),
    ({"widths": [np.nan]}, r"widths\[0\] must be at least 1"),
    ({"temperatures": []}, "temperatures must be a non-empty list of numbers"),
    ({"temperatures": 0.1}, "temperatures must be a non-empty list of numbers; got 0.1"),
    ({"temperatures": [0.1, 0]}, r"temperatures\[1\] must be larger than 0 and finite; got 0"),
    ({"temperatures": [0.1, np.inf]}, r"temperatures\[1\] must be larger than 0 and finite"),
    ({"temperatures": ["a"]}, r"temperatures\[0\] must be a number"),
]
RECIPE = [
    ({"learning_rate": 0.0}, "learning_rate must be larger than 0"),
    ({"learning_rate": "fast"}, "learning_rate must be a number"),
    ({"steps": 0}, "steps must be a whole number ≥ 1; got 0"),
    ({"steps": 1.5}, "steps must be a whole number ≥ 1; got 1.5"),
    ({"tolerance": 0.0}, "tolerance must be larger than 0"),
    ({"width": np.inf}, "width must be at least 1 and finite; got inf"),
]


@pytest.mark.parametrize(
    ("function", "setting", "bad", "message"),
    [
        (function, setting, bad, message)
        for function, setting, cases in [
            (solve, {"width": 10, "temperature": 0.1}, [*BAD, *TEMPERATURE, *WIDTH]),
            (gp_limit, {"temperature": 0.1}, [*BAD, *TEMPERATURE]),
            (sweep, {"widths": [10], "temperatures": [0.1]}, [*BAD, *GRIDS]),
            (
                solve_adam,
                {"width": 10, "temperature": 0.1},
                [*BAD, *TEMPERATURE, *WIDTH, *RECIPE],
            ),
        ]
        for bad, message in cases
    ],
)
@pytest.mark.usefixtures("as_users_see_it")
def test_bad_input(monkeypatch, function, setting, bad, message):
    # nothing long may start before everything is checked
    for name in ("_prepared", "minimum"):
        monkeypatch.delattr(solver, name)
    for name in ("prepare", "minimum"):
        monkeypatch.delattr(grids, name)
    for name in ("_try", "_run"):
        monkeypatch.delattr(f"attnpaths.theory.adam.{name}")
    arguments = {"xi": XI, "y": Y, "heads": (2, 2)} | setting | bad
    with pytest.raises(ValueError, match=message):
        function(arguments.pop("xi"), arguments.pop("y"), **arguments)


@pytest.mark.usefixtures("as_users_see_it")
def test_bad_input_to_predictions(grid):
    limit = gp_limit(XI, Y, heads=(2, 2), temperature=0.1)
    for xi, message in [
        (XI[:, :3], r"xi must have 4 paths of dimension 3 as in training; got shape \(5, 3, 3\)"),
        (XI[..., :2], "xi must have 4 paths of dimension 3"),
        (XI[0], "xi must have 3 axes"),
        (XI * np.nan, "xi must be finite"),
        ("new", "xi must hold real numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            limit.predict(xi)
    with pytest.raises(ValueError, match="xi must have 6 paths of dimension 4"):
        grid.predict(XI)
    with pytest.raises(ValueError, match="xi_a must have 4 paths of dimension 3"):
        limit.kernel(XI[:, :3])
    with pytest.raises(ValueError, match="y must have a non-zero entry"):
        gp_limit(XI, 0 * Y, heads=(2, 2), temperature=0.1).alignment()
    twice = np.concatenate([XI, XI])
    frozen = gp_limit(1e6 * twice, np.tile(Y, 2), heads=(2, 2), temperature=1e-9)
    # rows that repeat each other, far above the temperature: still the labels
    np.testing.assert_allclose(frozen.predict(1e6 * XI).mean, Y, rtol=1e-9)


@pytest.mark.parametrize("scale", [{"xi": 1e160}, {"y": 1e160}])
def test_numbers_that_overflow(scale):
    xi, y, _ = draw(0)
    with pytest.raises(ValueError, match="xi or y is too large beside the temperature"):
        solved(scale.get("xi", 1) * xi, scale.get("y", 1) * y)
