"""The paper's equations, one by one: written out as printed, held against the library.

Every number of the paper's main text and of its results has a page, a function and a test; the
last tests here see to it.
"""

import itertools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from attnpaths import (
    Network,
    Problem,
    Weights,
    effective_weights,
    empirical_order_parameter,
    kernels,
    paths,
    theory,
)
from attnpaths.posterior import densities
from attnpaths.theory import action
from book._ext import equations

L, H, N, D, T, G, P = 2, 2, 5, 3, 4, 2, 6
TEMPERATURE, WIDTH = 0.3, 4.0
HEADS = range(1, H + 1)
PATHS = list(itertools.product(HEADS, HEADS))


def draw(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


W_K, W_Q = draw(0, L, H, G, D), draw(1, L, H, G, D)
X, Y = 2 * draw(2, P, T, D), 2 * np.sign(draw(3, P))
V0, V, A = draw(4, N, D), draw(5, L, H, N, N), draw(6, N)


@pytest.fixture(scope="module", params=[1, "mean"])
def network(request):
    # the paper's logits carry 1/(N₀√G); the library asks for weights with 1/√G only
    return Network([(k / D, q) for k, q in zip(W_K, W_Q, strict=True)], readout=request.param)


@pytest.fixture(scope="module")
def weights():
    return Weights(V0, tuple(V), A)


@pytest.fixture(scope="module")
def omega(network):
    """Ω[ℓ−1][example, h−1, s, t]."""
    return [np.asarray(layer) for layer in network.attention(X)]


def readouts(network):
    """The tokens t* that are averaged over."""
    return range(T) if network.readout == "mean" else [network.readout]


def test_attention_is_a_softmax_over_keys(omega):
    """Eq. 3."""
    for layer, h, mu, t in np.ndindex(L, H, P, T):
        products = [
            X[mu, s] @ W_K[layer, h].T @ W_Q[layer, h] @ X[mu, t] / (D * np.sqrt(G))
            for s in range(T)
        ]
        expected = np.exp(products) / np.sum(np.exp(products))
        np.testing.assert_allclose(omega[layer][mu, h, :, t], expected, rtol=1e-12)


def test_the_output_layer_by_layer(network, weights, omega):
    """Eqs. 1, 2 and 4, and 18 for the mean readout."""
    outputs = []
    for mu in range(P):
        x = [V0 @ X[mu, t] / np.sqrt(D) for t in range(T)]
        for layer in range(L):
            x = [
                sum(V[layer, h] @ x[s] * omega[layer][mu, h, s, t] for h, s in np.ndindex(H, T))
                / np.sqrt(N * H)
                for t in range(T)
            ]
        read = np.mean([x[t] for t in readouts(network)], axis=0)
        outputs.append(A @ read / np.sqrt(N))
    np.testing.assert_allclose(network.apply(weights, X), outputs, rtol=1e-11)


def test_paths_pick_one_head_in_every_layer():
    """Eqs. 20 and 24."""
    assert paths.paths((H, H)) == PATHS
    assert paths.paths((H, H), layer=2) == [(h,) for h in HEADS]
    assert paths.paths((H, H), layer=3) == [()]


def test_effective_weights_are_products_along_a_path(weights):
    """Eq. 6."""
    for found, (h1, h2) in zip(effective_weights(weights), PATHS, strict=True):
        expected = A @ V[1, h2 - 1] @ V[0, h1 - 1] / np.sqrt(N**L)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_attentioned_input_sums_over_tokens(network, omega):
    """Eq. 7."""
    xi = network.features(X)
    for mu, (i, (h1, h2)) in itertools.product(range(P), enumerate(PATHS)):
        expected = sum(
            X[mu, t0] * omega[0][mu, h1 - 1, t0, t1] * omega[1][mu, h2 - 1, t1, t]
            for t0, t1, t in itertools.product(range(T), range(T), readouts(network))
        ) / len(readouts(network))
        np.testing.assert_allclose(xi[mu, i], expected, rtol=1e-11, atol=1e-14)


def test_the_output_as_a_sum_over_paths(network, weights):
    """Eq. 5."""
    xi, v_eff = np.asarray(network.features(X)), np.asarray(effective_weights(weights))
    for mu, found in enumerate(network.apply_paths(weights, X)):
        total = sum(v_eff[i] @ V0 @ xi[mu, i] for i in range(H**L))
        assert found == pytest.approx(total / np.sqrt(H**L * N * D), rel=1e-11)
    np.testing.assert_allclose(
        network.apply(weights, X), network.apply_paths(weights, X), rtol=1e-9
    )


def test_what_arrives_along_partial_paths(network, weights):
    """Eqs. 26, 27 (with ξ⁽⁰⁾ and ξ⁽¹⁾ in their right places) and 28."""
    arriving = {
        path: V0 @ np.asarray(xi) / np.sqrt(D)
        for path, xi in zip(paths.paths((H, H)), network.features(X)[0], strict=True)
    }
    for layer in range(1, L + 1):
        arriving = {
            rest: sum(V[layer - 1, h - 1] @ arriving[h, *rest] for h in HEADS) / np.sqrt(N * H)
            for rest in paths.paths((H, H), layer=layer + 1)
        }
    assert list(arriving) == [()]
    f = network.apply(weights, X)[0]
    assert A @ arriving[()] / np.sqrt(N) == pytest.approx(float(f), rel=1e-10)


def test_the_posterior_of_the_weights(network):
    """Eq. 8, as a ratio of two densities: its normalisation is unknown."""
    sigma2 = 1.7
    xi = network.features(X)
    problem = Problem.of(xi, Y, heads=(H, H), temperature=TEMPERATURE, prior_variance=sigma2)
    density = densities.AllWeights(heads=(H, H), widths=(N,) * (L + 1), dim=D)
    found, expected = [], []
    for seed in (7, 8):
        z = jnp.asarray(draw(seed, density.size))
        found.append(float(density(density.data(problem), z)))
        drawn, _ = density.read(z[None, None], jnp.asarray(sigma2))
        units = jax.tree.map(lambda values: values[0, 0], drawn)
        f = network.apply(units, X)
        square = sum(float(jnp.sum(w**2)) for w in (units.V0, *units.V, units.a))
        loss = float(jnp.sum((f - Y) ** 2))
        expected.append(loss / (2 * TEMPERATURE) + square / (2 * sigma2))
    assert found[1] - found[0] == pytest.approx(expected[1] - expected[0], rel=1e-10)


@pytest.fixture(scope="module")
def xi():
    return draw(9, P, H**L, D)


@pytest.fixture(scope="module")
def solved(xi):
    return theory.solve(xi, Y, heads=(H, H), width=WIDTH, temperature=TEMPERATURE)


def kernel(U, a, b):
    """𝒦(x, x') as printed."""
    C = [[a[i] @ b[j] / D for j in range(H**L)] for i in range(H**L)]
    return sum(U[i, j] * C[i][j] for i, j in np.ndindex(H**L, H**L)) / H**L


def matrix(U, xi):
    return np.array([[kernel(U, a, b) for b in xi] for a in xi])


def test_the_kernel_weighs_pairs_of_paths(solved, xi):
    """Eq. 10."""
    U = np.asarray(solved.U)
    assert abs(U - np.diag(np.diag(U))).max() > 0.1  # cross-path kernels take part
    np.testing.assert_allclose(solved.kernel(), matrix(U, xi), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(kernels.total_kernel(U, xi), matrix(U, xi), rtol=1e-11, atol=1e-12)


def test_mean_and_variance_of_the_predictor(solved, xi):
    """Eqs. 9 and 30."""
    U, new = np.asarray(solved.U), draw(10, 2, H**L, D)
    inverse = np.linalg.inv(matrix(U, xi) + TEMPERATURE * np.eye(P))
    found = solved.predict(new)
    for mean, variance, x in zip(found.mean, found.variance, new, strict=True):
        k = np.array([kernel(U, x, a) for a in xi])
        assert mean == pytest.approx(k @ inverse @ Y, rel=1e-10)
        assert variance == pytest.approx(kernel(U, x, x) - k @ inverse @ k, rel=1e-9)


def script_L(M):
    return -np.trace(M) + np.linalg.slogdet(M)[1]


def energy_of(U, xi):
    noisy = matrix(U, xi) + TEMPERATURE * np.eye(P)
    return (np.linalg.slogdet(noisy)[1] + Y @ np.linalg.inv(noisy) @ Y) / P


def entropy_of(levels):
    extended = [np.kron(np.eye(H), upper) for upper in levels[1:]]
    inner = zip(levels[:-1], extended, strict=True)
    return -script_L(levels[-1]) - sum(script_L(U @ np.linalg.inv(ext)) for U, ext in inner)


def test_the_energy(solved, xi):
    """Eq. 12."""
    alpha = P / WIDTH
    expected = alpha * energy_of(np.asarray(solved.U), xi)
    assert float(solved.energy) == pytest.approx(expected, rel=1e-10)


def test_entropy_and_action_of_all_levels(solved, xi):
    """Eqs. 32 and 33, in the library's factor form and in its printed form."""
    levels = [np.atleast_2d(level) for level in solved.levels]
    assert [len(level) for level in levels] == [4, 2, 1]
    expected = entropy_of(levels)
    assert float(solved.entropy) == pytest.approx(expected, rel=1e-10)
    total = expected + P / WIDTH * energy_of(levels[0], xi)
    assert float(solved.action) == pytest.approx(total, rel=1e-10)
    printed = action.paper_action(
        solved.levels,
        solved.kernel(),
        jnp.asarray(Y),
        width=solved.width,
        temperature=solved.temperature,
        prior_variance=solved.prior_variance,
    )
    assert float(sum(printed)) == pytest.approx(total, rel=1e-10)


def test_the_order_parameter_minimises_the_action(solved, xi):
    """Eq. 11, by a minimiser that knows neither gradient nor factor form."""
    sizes = [H**2, H, 1]
    C = np.einsum("aid,bjd->abij", xi, xi) / D

    def levels_of(unknowns):
        result, start = [], 0
        for n in sizes:
            lower = np.zeros((n, n))
            lower[np.tril_indices(n)] = unknowns[start : start + n * (n + 1) // 2]
            result.append(lower @ lower.T)
            start += n * (n + 1) // 2
        return result

    def S(unknowns):
        levels = levels_of(unknowns)
        noisy = np.einsum("ij,abij->ab", levels[0], C) / H**L + TEMPERATURE * np.eye(P)
        energy = (np.linalg.slogdet(noisy)[1] + Y @ np.linalg.solve(noisy, Y)) / P
        return entropy_of(levels) + P / WIDTH * energy

    start = np.concatenate([np.eye(n)[np.tril_indices(n)] for n in sizes])
    found = optimize.minimize(S, start, method="BFGS", options={"gtol": 1e-6, "maxiter": 2000})
    assert found.fun == pytest.approx(float(solved.action), rel=1e-9)
    assert found.fun < S(start) - 0.1
    for level, expected in zip(solved.levels, levels_of(found.x), strict=True):
        np.testing.assert_allclose(np.atleast_2d(level), expected, rtol=1e-3, atol=1e-3)


def effective_draws(seed, width, count):
    """Effective weights of random networks `[count, Π, N]`, drawn layer by layer."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, 1, width))
    for _ in range(L):
        # times a Gaussian matrix over √N: rows that are Gaussian with their covariance
        root = np.linalg.cholesky(np.einsum("cpn,cqn->cpq", rows, rows) / width)
        fresh = rng.standard_normal((H, count, rows.shape[1], width))
        rows = np.concatenate(root @ fresh, axis=1)
    return rows


def test_the_order_parameter_is_the_covariance_of_effective_weights(weights, xi):
    """Eq. 13: the average over trained networks nears the theory's U as 1/N."""
    v_eff = np.asarray(effective_weights(weights))
    one = [[v_eff[i] @ v_eff[j] / N for j in range(H**L)] for i in range(H**L)]
    np.testing.assert_allclose(empirical_order_parameter(weights), one, rtol=1e-11, atol=1e-12)

    C = np.einsum("aid,bjd->abij", xi, xi) / D
    distances = []
    for width in (12, 48):
        rows = effective_draws(0, width, 60_000)
        U = np.einsum("cpn,cqn->cpq", rows, rows) / width
        noisy = np.einsum("cij,abij->cab", U, C) / H**L + TEMPERATURE * np.eye(P)
        fit = np.linalg.solve(noisy, np.broadcast_to(Y[:, None], (len(U), P, 1)))[..., 0] @ Y
        chances = np.exp(-(np.linalg.slogdet(noisy)[1] + fit) / 2)
        mean = np.einsum("c,cij->ij", chances, U) / chances.sum()
        expected = theory.solve(xi, Y, heads=(H, H), width=width, temperature=TEMPERATURE)
        distances.append(np.abs(mean - np.asarray(expected.U)).max())
    assert np.abs(np.asarray(expected.U) - np.eye(H**L)).max() > 3 * distances[1]
    assert distances[1] < 0.4 * distances[0]


INDEX = {row.equation: row for row in equations.index()}
# what the paper prints: 13 in its main text, then its definitions and, from 29 on, its results
REQUIRED = [*range(1, 14), *range(29, 36)]


def test_the_list_of_equations_is_the_paper_s():
    printed = sorted(number for equation in equations.PAPER for number in equation.numbers)
    assert printed == list(range(1, 36))


@pytest.mark.parametrize("number", REQUIRED)
def test_an_equation_has_a_page_a_function_and_a_test(number):
    row = next(row for equation, row in INDEX.items() if number in equation.numbers)
    for kind in ("pages", "functions", "tests"):
        assert getattr(row, kind), f"equation {number} ({row.equation.says}) has none of its {kind}"


@pytest.fixture
def project(tmp_path):
    """A project of one page, one module and one test, made of texts."""

    def make(page="", module="", test=""):
        for name, text in {
            "book/page.md": page,
            "attnpaths/module.py": module,
            "tests/test_it.py": test,
        }.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text, "utf-8")
        return tmp_path

    return make


def test_markers_are_found_where_they_count(project):
    # not written out, or this test would be in the index
    eq, two = "Eq.", f"Eqs. {2} and {3}"
    root = project(
        page=f"$$\nx\n$$ (eq:it)\n% {two}\n\nSee {eq} 5 of the paper.\n",
        module=f'# {eq} 6\nclass A:\n    def b(self):\n        """As in {two}."""\n',
        test=f"# {eq} 6\ndef test_b():\n    # {two}\n    pass\n\n\ndef helper():\n    '{eq} 7'\n",
    )
    rows = {row.equation.numbers[0]: row for row in equations.index(root)}
    for number, row in rows.items():
        names = [[place.name for place in places] for places in row[1:]]
        wanted = [["eq:it"], ["attnpaths.module.A.b"], ["test_b"]] if number in (2, 3) else [[]] * 3
        assert names == wanted
    assert rows[2].pages[0].line == 3 and rows[2].tests[0].file == root / "tests" / "test_it.py"


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("$$\nx\n$$ (eq:it)\n% Eq. {}\n", r"page.md:3 \(eq:it\) marks Eq. 99, but .* 1 to 35"),
        ("$$\nx\n$$ (eq:it)\n\n% Eq. {}\n", "page.md:5: the marker '% Eq. 99' must stand"),
    ],
)
def test_a_wrong_marker_is_refused(page, says, project):
    with pytest.raises(ValueError, match=says):
        equations.index(project(page=page.format(99)))


def test_without_the_project_s_folders_the_index_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="install attnpaths from its repository"):
        equations.index(Path(tmp_path))
