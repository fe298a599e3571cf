"""What a number and an array may come as, and what must not pass for one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from attnpaths import _checks
from attnpaths.kernels import Prediction, check_finite
from attnpaths.tasks import images, oneshot

pytestmark = pytest.mark.usefixtures("as_users_see_it")
MASKED = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 0], [0, 1]])


@pytest.mark.parametrize(
    "half",
    [
        torch.tensor(0.5, requires_grad=True),
        torch.tensor(0.5, dtype=torch.bfloat16),
        jnp.asarray(0.5, jnp.bfloat16),
        np.float16(0.5),
    ],
    ids=["gradient", "bfloat16", "JAX's bfloat16", "float16"],
)
def test_numbers_of_any_precision_and_with_gradients(half):
    found = _checks.number("temperature", half, above=0)
    assert found.dtype == jnp.float64 and found == 0.5
    assert _checks.variances([half, 1.0, half], 2).tolist() == [0.5, 1.0, 1.0, 0.5]
    assert _checks.by_level(half, 2, lambda name, n: n) is half


@pytest.mark.parametrize("value", [torch.tensor(1j), torch.tensor(True), jax.random.key(0)])
def test_what_is_no_number(value):
    with pytest.raises(ValueError, match=r"width must be a number at least 0 and finite; got"):
        _checks.number("width", value)


def test_masks_are_seen_in_lists():
    for value in (
        MASKED,
        list(MASKED),
        tuple(MASKED),
        [[1.0, 2.0], MASKED[1]],
        [list(MASKED[1])] * 1,
    ):
        with pytest.raises(ValueError, match=r"x must not be masked, but 1 of its numbers are"):
            _checks.array("x", value, "examples dim")
    assert _checks.array("x", list(MASKED[:1]), "examples dim").tolist() == [[1.0, 2.0]]


def test_lists_of_traced_numbers():
    @jax.jit
    def stacked(a):
        given = (10.0, a, 5.0)
        assert _checks.axes_of(given) == 1
        widths = _checks.by_level(given, 2, lambda name, n: _checks.number(name, n, least=1))
        _checks.skip_widths(widths, (False, True))
        return jnp.stack([*widths, *_checks.variances((a, 1.0, 1.0), 2)])

    assert stacked(3.0).tolist() == [10.0, 3.0, 5.0, 3.0, 1.0, 1.0, 1.0]


def test_lists_of_different_lengths_are_named():
    ragged = [[1.0], [1.0, 2.0]]
    for call, name in (
        (lambda: _checks.variances(ragged, 2), "prior_variance"),
        (lambda: _checks.labels(ragged, 2, "xi"), "y"),
        (lambda: _checks.widths(ragged, 2), "width"),
        (lambda: images.load("glyphs", classes=ragged), "classes"),
        (lambda: oneshot.draw(images.load("glyphs", classes=3), 2, seed=ragged), "seed"),
    ):
        with pytest.raises(ValueError, match=rf"^{name} must"):
            call()


def test_predictions_that_overflow():
    one, large = jnp.ones((1, 1, 1)), jnp.full((1, 1, 1), 1e200)
    with pytest.raises(ValueError, match="the features xi are too large"):
        check_finite(Prediction(jnp.ones(1), jnp.full(1, jnp.nan)), jnp.ones(()), large)
    with pytest.raises(ValueError, match="U and xi are too large"):
        check_finite(Prediction(jnp.ones(1), jnp.full(1, jnp.inf)), jnp.ones(()), one)
    with pytest.raises(ValueError, match="temperature 1 is too small for this kernel"):
        check_finite(Prediction(jnp.full(1, jnp.nan), jnp.ones(1)), jnp.ones(()), one)
