import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnpaths.kernels import Prediction, alignment, path_kernels, predict, total_kernel


@pytest.fixture(scope="module")
def facts(reference):
    return reference("theory")


def draw(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def spd(seed, size):
    root = draw(seed, size, size)
    return root @ root.T + np.eye(size)


def test_path_kernels_are_scalar_products():
    a, b = draw(0, 5, 3, 4), draw(1, 6, 3, 4)
    kernel = path_kernels(a, b)
    assert kernel.shape == (3, 3, 5, 6)
    for p, q, i, j in np.ndindex(3, 3, 5, 6):
        assert kernel[p, q, i, j] == pytest.approx(a[i, p] @ b[j, q] / 4, rel=1e-13)
    np.testing.assert_array_equal(path_kernels(a), path_kernels(a, a))


@pytest.mark.parametrize("variance", [1.0, 0.3])
def test_the_total_kernel_weighs_path_kernels(variance):
    a, b, U = draw(0, 5, 3, 4), draw(1, 6, 3, 4), spd(2, 3)
    expected = variance / 3 * np.einsum("pq,pqab->ab", U, path_kernels(a, b))
    np.testing.assert_allclose(
        total_kernel(U, a, b, prior_variance=variance), expected, rtol=1e-12, atol=1e-13
    )
    own = total_kernel(U, a, prior_variance=variance)
    np.testing.assert_allclose(own, total_kernel(U, a, a, prior_variance=variance), rtol=1e-14)
    np.testing.assert_allclose(own, own.T, rtol=1e-12, atol=1e-13)
    assert np.linalg.eigvalsh(own).min() > 0


@pytest.mark.usefixtures("as_users_see_it")
def test_matrices_that_are_no_covariance_are_refused():
    xi, skew = draw(0, 5, 2, 3), np.array([[1.0, 0.5], [0.1, 1.0]])
    negative = np.diag([1.0, -0.2])
    with pytest.raises(ValueError, match=r"U must be symmetric; .* up to 0\.4"):
        total_kernel(skew, xi)
    with pytest.raises(ValueError, match=r"U must be positive semidefinite.* is -0\.2"):
        total_kernel(negative, xi)
    for kernel, message in ((skew, "kernel must be symmetric"), (negative, "positive semidefin")):
        with pytest.raises(ValueError, match=message):
            predict(kernel, np.ones((1, 2)), [1.0], [1.0, -1.0], temperature=1.0)
    # rounding is forgiven
    total_kernel(np.eye(2) + 1e-12 * skew, xi)


def test_kernel_regression_is_the_textbook_formula():
    xi, tests, y = draw(0, 9, 2, 3), draw(1, 4, 2, 3), draw(2, 9)
    kernel, cross = total_kernel(np.eye(2), xi), total_kernel(np.eye(2), tests, xi)
    own = np.diag(total_kernel(np.eye(2), tests))
    result = predict(kernel, cross, own, y, temperature=0.2)
    inverse = np.linalg.inv(np.asarray(kernel) + 0.2 * np.eye(9))
    np.testing.assert_allclose(result.mean, cross @ inverse @ y, rtol=1e-11)
    variance = own - np.einsum("ti,ij,tj->t", cross, inverse, cross)
    np.testing.assert_allclose(result.variance, variance, rtol=1e-11)
    assert (result.variance > 0).all() and (result.variance < own).all()


def test_without_noise_labels_are_interpolated():
    xi, y = draw(0, 5, 2, 3), draw(1, 5)
    kernel = total_kernel(np.eye(2), xi)
    result = predict(kernel, kernel, np.diag(kernel), y, temperature=1e-12)
    np.testing.assert_allclose(result.mean, y, rtol=1e-9)
    np.testing.assert_allclose(result.variance, 0, atol=1e-9)


def test_accuracy_counts_signs():
    result = Prediction(jnp.array([0.5, -0.1, 2.0, -3.0]), jnp.ones(4))
    assert float(result.accuracy(np.array([1, 1, 1, -1]))) == 0.75
    assert float(result.accuracy(np.array([-1.0, -1, -1, 1]))) == 0.25
    grid = Prediction(jnp.array([[1.0, 1.0], [1.0, -1.0]]), jnp.ones((2, 2)))
    assert grid.accuracy(np.array([1, -1])).tolist() == [0.5, 1.0]
    many = jnp.array([[1, 1, 1, -1], [-1, -1, -1, 1]])
    assert jax.jit(jax.vmap(result.accuracy))(many).tolist() == [0.75, 0.25]


@given(st.sampled_from([1, 2, 7]), st.integers(0, 10**6))
def test_overlaps_with_all_components_are_complete(size, seed):
    kernel, y = spd(seed, size), draw(seed + 1, size)
    result = alignment(kernel, y)
    assert float(jnp.sum(result.overlaps**2)) == pytest.approx(1, abs=1e-12)
    assert (result.overlaps >= 0).all()
    assert (np.diff(result.eigenvalues) <= 0).all()
    # the components diagonalise the kernel: its mean over y is that of its eigenvalues
    mean = float(jnp.sum(result.overlaps**2 * result.eigenvalues))
    assert mean == pytest.approx(y @ kernel @ y / (y @ y), rel=1e-10)
    again = alignment(kernel, -7 * y)
    np.testing.assert_allclose(again.overlaps, result.overlaps, atol=1e-12)


def test_everything_works_compiled_and_mapped():
    xi, y, U = draw(0, 6, 2, 3), draw(1, 6), np.stack([spd(2, 2), spd(3, 2)])
    mapped = jax.jit(jax.vmap(lambda u: total_kernel(u, xi)))(U)
    np.testing.assert_allclose(mapped[1], total_kernel(U[1], xi), rtol=1e-13, atol=1e-14)
    by_temperature = jax.jit(
        jax.vmap(lambda t: predict(mapped[0], mapped[0], jnp.diag(mapped[0]), y, temperature=t))
    )(jnp.array([0.1, 1.0]))
    single = predict(mapped[0], mapped[0], jnp.diag(mapped[0]), y, temperature=1.0)
    np.testing.assert_allclose(by_temperature.mean[1], single.mean, rtol=1e-12)
    overlaps = jax.jit(lambda k: alignment(k, y).overlaps)(mapped[0])
    np.testing.assert_allclose(overlaps, alignment(mapped[0], y).overlaps, atol=1e-12)


def test_single_precision_is_promoted():
    xi = draw(0, 5, 2, 3).astype(np.float32)
    for result in (path_kernels(xi), total_kernel(np.eye(2, dtype=np.float32), jnp.asarray(xi))):
        assert result.dtype == np.float64
    np.testing.assert_array_equal(path_kernels(xi), path_kernels(xi.astype(float)))
    assert alignment(np.eye(2, dtype=int), np.array([1, 2])).overlaps.dtype == np.float64


def test_the_authors_path_kernels(paper, facts):
    C = path_kernels(paper.network.features(paper.train.x))
    for key, values in [
        ("prekernel_trace", jnp.trace(C, axis1=2, axis2=3)),
        ("prekernel_sum", C.sum(axis=(2, 3))),
        ("prekernel_00", C[:, :, 0, 0]),
        ("prekernel_01", C[:, :, 0, 1]),
    ]:
        np.testing.assert_allclose(values, facts["four_paths_gp"][key], rtol=1e-9)


ONES = np.ones((3, 2, 4))
# a shape without the memory of it
HUGE = np.broadcast_to(np.zeros(()), (10**6, 10, 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: path_kernels(ONES[0]), r"xi_a must have 3 axes .*; got shape \(2, 4\)"),
        (lambda: path_kernels(ONES, ONES[0]), "xi_b must have 3 axes"),
        (lambda: path_kernels(ONES, ONES[:, :1]), "xi_a and xi_b must share paths and dim"),
        (lambda: path_kernels(ONES, ONES[..., :2]), "xi_a and xi_b must share paths and dim"),
        (lambda: path_kernels(ONES * np.nan), "xi_a must be finite; 24 of its 24"),
        (lambda: path_kernels(ONES, ONES * np.inf), "xi_b must be finite"),
        (lambda: path_kernels(ONES[:0]), "xi_a must not be empty"),
        (lambda: path_kernels("ones"), "xi_a must hold real numbers"),
        (lambda: path_kernels(ONES * 1j), "xi_a must hold real numbers; got dtype complex128"),
        (lambda: path_kernels([[[1.0], [1.0, 2.0]]]), "xi_a must be an array .*ragged"),
        (lambda: path_kernels(None), "xi_a must hold real numbers"),
        (lambda: path_kernels(HUGE), r"10² pairs of paths .* would need 745,058\.1 GiB"),
        (
            lambda: total_kernel(np.eye(3), ONES),
            r"U must be \[2, 2\] for the 2 paths of xi_a; got \(3, 3\)",
        ),
        (lambda: total_kernel(np.ones((2, 3)), ONES), r"U must be \[2, 2\]"),
        (lambda: total_kernel(np.ones(2), ONES), "U must have 2 axes"),
        (lambda: total_kernel(np.eye(2) * np.nan, ONES), "U must be finite; 4 of its 4"),
        (lambda: total_kernel(np.eye(2), ONES, ONES[:, :1]), "xi_a and xi_b must share"),
        (lambda: total_kernel(np.eye(2), ONES, prior_variance=0), "prior_variance must be larger"),
        (lambda: total_kernel(np.eye(2), ONES, prior_variance="1"), "prior_variance must be a num"),
        (lambda: predict(np.eye(3), np.eye(3), np.ones(3), np.ones(2), temperature=1), "kernel"),
        (lambda: predict(np.eye(3), np.eye(3), np.ones(2), np.ones(3), temperature=1), "diagonal"),
        (lambda: predict(np.eye(3), np.eye(2), np.ones(2), np.ones(3), temperature=1), "cross"),
        (lambda: predict(np.eye(2), np.eye(2), [1, 1], [1, np.nan], temperature=1), "y must be fi"),
        (lambda: predict(np.eye(2), np.eye(2), [1, 1], [1, 1], temperature=0), "temperature must"),
        (lambda: predict(np.eye(2), np.eye(2), [1, 1], [1, 1], temperature=-1), "temperature must"),
        (lambda: predict(np.ones(2), np.eye(2), [1, 1], [1, 1], temperature=1), "kernel must have"),
        (lambda: alignment(np.eye(3), np.ones(2)), r"kernel must be \[2, 2\] to fit y"),
        (lambda: alignment(np.eye(2), np.zeros(2)), "y must have a non-zero entry"),
        (lambda: alignment(np.eye(2), [1, np.inf]), "y must be finite; 1 of its 2"),
        (lambda: alignment(np.full((2, 2), np.inf), [1, 1]), "kernel must be finite"),
        (
            lambda: Prediction(jnp.ones(2), jnp.ones(2)).accuracy([1, 0]),
            r"y must be \+1 or −1; got \[0.0\]; write labels 0 and 1 as 2 \* y - 1",
        ),
        (lambda: Prediction(jnp.ones(2), jnp.ones(2)).accuracy([1]), "y must hold 2 labels"),
        (lambda: Prediction(jnp.ones(2), jnp.ones(2)).accuracy([[1, 1]]), "y must have 1 axes"),
    ],
)
@pytest.mark.usefixtures("as_users_see_it")
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
