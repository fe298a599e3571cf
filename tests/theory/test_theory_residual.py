"""Skips, several outputs, widths and variances of their own, all together, in the theory."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from attnpaths import Network, Problem, Weights, kernels, theory
from attnpaths.network.ways import Ways
from attnpaths.theory import energies

DIM, EXAMPLES = 3, 9
# heads, skips, outputs, widths, prior variance
CASES = {
    "skip below": ((1, 2), (True, False), None, (4.0, 4.0, 7.0), 1.3),
    "skip above": ((2, 1), (False, True), 2, (9.0, 5.0, 5.0), (0.7, 1.2, 0.8, 1.5)),
    "three layers": ((1, 1, 1), (True, False, True), 1, 6.0, (0.9, 1.1, 1.3)),
}


def problem(name):
    heads, residual, outputs, width, variance = CASES[name]
    rng = np.random.default_rng(len(name))
    skips = (residual,) * len(heads) if isinstance(residual, bool) else residual
    ways = Ways(heads, skips, outputs)
    xi = rng.normal(size=(EXAMPLES, ways.paths, DIM))
    y = 2 * rng.normal(size=EXAMPLES if outputs is None else (EXAMPLES, outputs))
    setting = {"heads": heads, "residual": residual, "prior_variance": variance}
    return ways, xi, y, setting | {"temperature": 0.2}, width


def variances(ways, given):
    """σ² of V⁰, every V and a."""
    layers = len(ways.heads)
    if np.ndim(given) == 0:
        return [given] * (layers + 2)
    return [given[0], *([given[1]] * layers if len(given) == 3 else given[1:-1]), given[-1]]


def kernel(U, ways, a, b, given):
    """Cov(f_c(x), f_c'(x')), entry by entry."""
    C = ways.readouts
    way = np.stack(np.unravel_index(np.arange(ways.paths), ways.counts), 1)
    scale = [
        math.prod(
            1 if skip and not w else h**-0.5
            for w, h, skip in zip(row, ways.heads, ways.residual, strict=True)
        )
        for row in way
    ]
    K = np.zeros((len(a), C, len(b), C))
    for p in range(ways.paths):
        for q in range(ways.paths):
            inner = scale[p] * scale[q] * a[:, p] @ b[:, q].T
            for c in range(C):
                for e in range(C):
                    K[:, c, :, e] += U[p * C + c, q * C + e] * inner
    return variances(ways, given)[0] / DIM * K.reshape(len(a) * C, len(b) * C)


def paper_action(levels, ways, xi, y, setting, width):
    """The action of levels U⁽ᴸ⁺¹⁾, …, U⁽¹⁾ by traces and determinants, as the paper prints it.

    A level with a skip holds the level above as its first block: given this, its other rows have
    the trace of their own block and the determinant of all.
    """
    widths = np.broadcast_to(width, len(ways.heads) + 1)
    N, total = widths.mean(), 0.0
    sigma2 = variances(ways, setting["prior_variance"])[:0:-1]
    upper = np.eye(ways.readouts)
    counts, skips = (1, *ways.counts[::-1]), (False, *ways.residual[::-1])
    for level, n, s, count, skip in zip(levels, widths[::-1], sigma2, counts, skips, strict=True):
        free = len(upper) * skip
        block = level[free:, free:]
        inverse = np.kron(np.eye(count - skip), np.linalg.inv(upper))
        logs = np.linalg.slogdet(level)[1] - count * np.linalg.slogdet(upper)[1]
        total += n / N * (np.sum(block * inverse) / s - logs)
        upper = level
    noisy = kernel(levels[-1], ways, xi, xi, setting["prior_variance"])
    noisy += setting["temperature"] * np.eye(len(noisy))
    flat = y.ravel()
    return total + (np.linalg.slogdet(noisy)[1] + flat @ np.linalg.solve(noisy, flat)) / N


def levels_of(theta, ways):
    """Levels by Cholesky factors of their own; that of a level with a skip begins with the last."""
    found, at, last = [], 0, None
    for rows, fixed in ways.levels:
        factor, (row, column) = np.zeros((rows, rows)), np.tril_indices(rows)
        free = row >= fixed
        factor[row[free], column[free]] = theta[at : at + free.sum()]
        at += free.sum()
        if fixed:
            factor[:fixed, :fixed] = last
        found.append(factor @ factor.T)
        last = factor
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_minimum_of_the_action_as_printed(name):
    """Eqs. 32–34, in other coordinates, by SciPy."""
    ways, xi, y, setting, width = problem(name)
    solved = theory.solve(xi, y, width=width, **setting)
    assert solved.converged
    start = []
    for rows, fixed in ways.levels:
        row, column = np.tril_indices(rows)
        start += list((row == column)[row >= fixed].astype(float))

    def value(theta):
        return paper_action(levels_of(theta, ways), ways, xi, y, setting, width)

    found = scipy.optimize.minimize(value, start, method="BFGS", options={"gtol": 1e-6})
    levels = levels_of(found.x, ways)
    assert float(solved.action) == pytest.approx(found.fun, abs=1e-8)
    assert float(solved.action) == pytest.approx(float(solved.entropy + solved.energy), rel=1e-13)
    for level, wanted in zip(solved.levels[::-1], levels, strict=True):
        size = np.abs(wanted).max()
        np.testing.assert_allclose(np.atleast_2d(level), wanted, rtol=0, atol=2e-4 * size)
    # and the formula itself, at the minimum of the library
    exact = [np.atleast_2d(level) for level in solved.levels[::-1]]
    assert paper_action(exact, ways, xi, y, setting, width) == pytest.approx(
        float(solved.action), rel=1e-12, abs=1e-11
    )


@pytest.mark.parametrize("name", CASES)
def test_predictions_are_those_of_all_labels_together(name):
    """Eqs. 9 and 30 with PC labels."""
    ways, xi, y, setting, width = problem(name)
    new, C = np.random.default_rng(1).normal(size=(5, ways.paths, DIM)), ways.readouts
    for solved in (theory.solve(xi, y, width=width, **setting), theory.gp_limit(xi, y, **setting)):
        U, given = np.asarray(solved.U), setting["prior_variance"]
        among, cross, own = (
            kernel(U, ways, *pair, given) for pair in ((xi, xi), (new, xi), (new, new))
        )
        inverse = np.linalg.inv(among + setting["temperature"] * np.eye(len(among)))
        mean = (cross @ inverse @ y.ravel()).reshape((5, *y.shape[1:]))
        spread = (own - cross @ inverse @ cross.T).reshape(5, C, 5, C)
        covariance = np.einsum("acae->ace", spread)
        found = solved.predict(new)
        np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-9)
        variance = np.einsum("acc->ac", covariance).reshape(mean.shape)
        np.testing.assert_allclose(found.variance, variance, rtol=0, atol=1e-9)
        if ways.outputs is None:
            assert found.covariance is None
        else:
            np.testing.assert_allclose(found.covariance, covariance, rtol=0, atol=1e-9)
        np.testing.assert_allclose(solved.kernel(), among, rtol=0, atol=1e-10)
        np.testing.assert_allclose(solved.kernel(new, xi), cross, rtol=0, atol=1e-10)
        scale = np.ravel(ways.scales)
        total = kernels.total_kernel(
            U, new, xi, prior_variance=variances(ways, given)[0], scale=scale
        )
        np.testing.assert_allclose(total, cross, rtol=0, atol=1e-10)
        overlaps = solved.alignment().overlaps
        assert overlaps.shape == (y.size,) and float(jnp.sum(overlaps**2)) == pytest.approx(1)


@pytest.mark.parametrize("name", ["skip above", "three layers"])
def test_the_gp_limit_is_the_covariance_of_drawn_networks(name):
    ways, _, y, setting, width = problem(name)
    rng = np.random.default_rng(2)
    network = Network(
        [rng.normal(size=(h, DIM, DIM)) for h in ways.heads], -1, residual=ways.residual
    )
    x = rng.normal(size=(EXAMPLES, 4, DIM))
    limit = theory.gp_limit(network.features(x), y, **setting)
    widths = tuple(4 * int(n) for n in np.broadcast_to(width, len(ways.heads) + 1))

    def output(key):
        given = {"width": widths, "dim": DIM, "heads": ways.heads, "outputs": ways.outputs}
        weights = Weights.prior(key, prior_variance=setting["prior_variance"], **given)
        return network.apply(weights, x).ravel()

    f = np.asarray(jax.jit(jax.vmap(output))(jax.random.split(jax.random.key(0), 20_000)))
    products = f[:, :, None] * f[:, None, :]
    error = products.std(axis=0) / math.sqrt(len(f))
    assert np.all(np.abs(products.mean(axis=0) - limit.kernel()) < 4 * error)
    # a path has the variances of the weights that it goes through
    U = np.asarray(limit.U)
    sigma2 = variances(ways, setting["prior_variance"])
    through = np.repeat(ways.through_heads, ways.readouts, axis=0)
    wanted = sigma2[-1] * np.prod(np.where(through, sigma2[1:-1], 1.0), axis=1)
    np.testing.assert_allclose(U, np.diag(wanted), rtol=1e-12, atol=1e-12)
    if np.ndim(width) == 0:
        wide = theory.solve(network.features(x), y, width=np.inf, **setting)
        np.testing.assert_allclose(wide.U, U, rtol=1e-12, atol=1e-12)
        assert float(wide.action) == pytest.approx(float(limit.action), rel=1e-12)


def test_one_column_of_labels_is_one_output():
    _, xi, y, setting, width = problem("three layers")
    one = theory.solve(xi, y[:, 0], width=width, **setting)
    column = theory.solve(xi, y, width=width, **setting)
    np.testing.assert_allclose(column.U, one.U, rtol=1e-12, atol=1e-12)
    assert column.levels[-1].shape == (1, 1) and one.levels[-1].shape == ()
    assert column.predict(xi).mean.shape == (EXAMPLES, 1)
    np.testing.assert_allclose(column.predict(xi).mean[:, 0], one.predict(xi).mean, rtol=1e-10)
    signs = np.sign(one.predict(xi).mean)
    assert column.predict(xi).accuracy(signs[:, None]) == 1


def test_outputs_may_be_rotated():
    """Rotated outputs rotate U: they have no order and no basis."""
    ways, xi, y, setting, width = problem("skip above")
    before = theory.solve(xi, y, width=width, **setting)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2)))[0]
    after = theory.solve(xi, y @ turn.T, width=width, **setting)
    whole = np.kron(np.eye(ways.paths), turn)
    np.testing.assert_allclose(after.U, whole @ before.U @ whole.T, rtol=0, atol=1e-6)
    assert float(after.action) == pytest.approx(float(before.action), rel=1e-10)


def test_grids_and_files(tmp_path):
    _, xi, y, setting, _ = problem("three layers")
    rest = {key: value for key, value in setting.items() if key != "temperature"}
    grid = theory.sweep(xi, y, widths=[4, 40], temperatures=[0.2, 1.0], progress=False, **rest)
    assert grid.converged.all() and grid.predict(xi).mean.shape == (2, 2, EXAMPLES, 1)
    assert "residual=(True, False, True), outputs=1" in repr(grid)
    one = theory.solve(xi, y, width=4, **setting)
    np.testing.assert_allclose(grid[0, 0].U, one.U, rtol=0, atol=1e-7)
    spread = grid.predict(xi).covariance[0, 0]
    np.testing.assert_allclose(spread, one.predict(xi).covariance, atol=1e-7)
    assert list(grid.to_xarray()["path"].values[:2]) == ["(0,1,0)→1", "(0,1,1)→1"]
    one.save(tmp_path / "it.npz")
    again = theory.load(tmp_path / "it.npz")
    assert repr(again) == repr(one) and again.residual == (True, False, True)
    np.testing.assert_array_equal(again.predict(xi).mean, one.predict(xi).mean)
    assert "(0,1,0)→1" in one._repr_html_()
    np.testing.assert_array_equal(theory.solve(**one.problem.arguments, width=4).U, one.U)


def test_kernels_stored_or_not_are_the_same():
    """Both ways to the kernel and to the slope in U, for several outputs."""
    ways, xi, y, setting, _ = problem("skip above")
    data = energies.prepare(Problem.of(xi, y, **setting))
    bare = data._replace(stored=None)
    np.testing.assert_allclose(data.features, features(ways, xi, setting), rtol=1e-12)
    rng = np.random.default_rng(0)
    A = rng.normal(size=(len(ways.scales) * 2,) * 2)
    u = jnp.asarray((A @ A.T)[np.tril_indices(len(A))])
    for one, other in zip(*(energies.energy_and_slopes(d, u) for d in (data, bare)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def features(ways, xi, setting):
    """ξ in units in which all prior variances are 1."""
    sigma2 = variances(ways, setting["prior_variance"])
    along = np.prod(np.where(ways.through_heads, sigma2[1:-1], 1.0), axis=1) * sigma2[-1]
    return jnp.asarray(xi * (ways.scales * np.sqrt(sigma2[0] * along / DIM))[None, :, None])


def test_accuracy_of_classes():
    mean = jnp.array([[0.1, 0.5, 0.2], [-1.0, -2.0, -3.0], [0.3, 0.2, 0.1]])
    found = kernels.Prediction(mean, mean**2, jnp.zeros((3, 3, 3)))
    classes = np.array([1, 0, 2])
    for y in (np.eye(3)[classes], 2 * np.eye(3)[classes] - 1, np.eye(3)[classes] * 7 + 0.1):
        assert float(found.accuracy(y)) == pytest.approx(2 / 3)
    # labels that are no classes: each output for itself
    both = np.array([[1.0, 1, 1], [-1, -1, 1], [1, -1, 1]])
    assert float(found.accuracy(both)) == pytest.approx(7 / 9)
    one_hot = 2 * np.eye(3)[classes] - 1
    assert float(found.accuracy(one_hot, by="sign")) == pytest.approx(4 / 9)
    with pytest.raises(ValueError, match="y must hold 3 × 3 labels"):
        found.accuracy(both[:2])
    with pytest.raises(ValueError, match="by must be one of 'argmax', 'sign'"):
        found.accuracy(both, by="luck")
    with pytest.raises(ValueError, match=r"y must be \+1 or −1"):
        found.accuracy(np.eye(3), by="sign")


XI, Y = np.random.default_rng(0).normal(size=(5, 6, 2)), np.ones((5, 2))


@pytest.mark.usefixtures("as_users_see_it")
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"residual": (True, True)}, r"heads=\(2, 2\), residual=\(True, True\) makes 9"),
        ({"residual": (True,)}, "residual must be True, False, or one of them for each of 2"),
        ({"residual": (1, 0)}, r"residual\[0\] must be True or False; got 1"),
        ({"width": (4, 5, 5)}, r"layer 1 adds its input .*width\[0\] = 4.0 and width\[1\] = 5.0"),
        ({"prior_variance": (1, 2)}, "prior_variance must be a single number .* or 4 for V⁰"),
        ({"prior_variance": (1, 2, 0)}, r"prior_variance\[2\] must be larger than 0"),
        ({"y": Y[:4]}, "y must hold one label per example of xi, 5; got 4"),
        ({"y": Y[:, :0]}, "y must not be empty"),
    ],
)
def test_bad_input(bad, message):
    arguments = {"xi": XI, "y": Y, "heads": (2, 2), "residual": (True, False), "width": 5}
    with pytest.raises(ValueError, match=message):
        theory.solve(**{**arguments, "temperature": 1.0, **bad})


@pytest.mark.usefixtures("as_users_see_it")
def test_the_papers_recipe_is_for_the_papers_networks():
    for more in ({"y": Y}, {"prior_variance": (1, 2, 3)}):
        arguments = {"y": Y[:, 0], "heads": (2, 3), "width": 5, "temperature": 1.0} | more
        with pytest.raises(ValueError, match="solve_adam is the paper's recipe"):
            theory.solve_adam(XI, **arguments)


def test_labels_of_classes_are_fine_and_names_of_classes_are_not():
    Problem.of(XI, np.eye(2)[[0, 1, 0, 1, 1]], heads=(2, 3), temperature=1.0)
    with pytest.warns(UserWarning, match="look like names of classes"):
        Problem.of(XI, np.array([[0], [1], [0], [1], [1]]), heads=(2, 3), temperature=1.0)
