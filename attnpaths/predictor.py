"""An order parameter together with the training set it belongs to: all that predicts.

Every way to an order parameter (theory, GP limit, the paper's recipe) ends in a `Theory`.
"""

import dataclasses
import functools
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from attnpaths import _inputs, action, kernels


class Problem(NamedTuple):
    """A checked training set and setting."""

    xi: Float[Array, "examples paths dim"]
    y: Float[Array, " examples"]
    heads: tuple[int, ...]
    temperature: Float[Array, ""]
    prior_variance: Float[Array, ""]


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=(
        "U levels action energy entropy gradient_norm converged iterations evaluations "
        "hessian_products width temperature prior_variance xi y"
    ).split(),
    meta_fields=["heads"],
)
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Theory:
    """An order parameter with the training set it belongs to: everything needed to predict.

    `U [Π, Π]` is the order parameter and `levels` all of them, U⁽¹⁾ = U, …, U⁽ᴸ⁺¹⁾ (a scalar).
    `action` = `entropy` + `energy` as in Eq. 32: entropy is −Σℒ and energy αℰ.
    `gradient_norm` is the largest derivative of the action in the unknowns of the factor form,
    all of them relative changes; `converged` says that it is zero to what double precision
    gives. `evaluations` counts values with gradient, `hessian_products` products with the
    Hessian (a full Hessian counts as many as it has columns), `iterations` steps.
    """

    U: Float[Array, "*batch paths paths"]
    levels: tuple[Array, ...]
    action: Float[Array, "*batch"]
    energy: Float[Array, "*batch"]
    entropy: Float[Array, "*batch"]
    gradient_norm: Float[Array, "*batch"]
    converged: Bool[Array, "*batch"]
    iterations: Int[Array, "*batch"]
    evaluations: Int[Array, "*batch"]
    hessian_products: Int[Array, "*batch"]
    width: Float[Array, "*batch"]
    temperature: Float[Array, "*batch"]
    prior_variance: Float[Array, "*batch"]
    xi: Float[Array, "*batch examples paths dim"]
    y: Float[Array, "*batch examples"]
    heads: tuple[int, ...]

    def __repr__(self):
        """The setting and the outcome, on one line."""
        if _inputs.is_traced(self.action) or jnp.ndim(self.action):
            return f"Theory(heads={self.heads}, batch={jnp.shape(self.action)})"
        return (
            f"Theory(heads={self.heads}, width={float(self.width):g}, "
            f"temperature={float(self.temperature):g}, action={float(self.action):.6g}, "
            f"converged={bool(self.converged)})"
        )

    def kernel(self, xi_a: ArrayLike | None = None, xi_b: ArrayLike | None = None) -> Array:
        """The kernel 𝒦 between two sets of attentioned inputs, Eq. 10; by default training.

        >>> from attnpaths.theory import gp_limit
        >>> gp_limit(jnp.ones((3, 1, 2)), [1, 1, -1], heads=(1,), temperature=1).kernel().shape
        (3, 3)
        """
        xi_a = self.xi if xi_a is None else xi_a
        xi_b = xi_a if xi_b is None else xi_b
        return kernels.total_kernel(self.U, xi_a, xi_b, prior_variance=self.prior_variance)

    def predict(self, xi: ArrayLike) -> kernels.Prediction:
        """Mean and variance of the network's output, Eqs. 9 and 30.

        Takes the attentioned inputs `[P*, Π, D]` of new examples.

        >>> from attnpaths.theory import gp_limit
        >>> theory = gp_limit(jnp.ones((1, 1, 1)), [2.0], heads=(1,), temperature=1)
        >>> theory.predict(jnp.ones((1, 1, 1)))
        Prediction(mean=Array([1.], dtype=float64), variance=Array([0.5], dtype=float64))
        """
        xi = _inputs.array("xi", xi, "examples paths dim")
        if xi.shape[1:] != self.xi.shape[1:]:
            raise ValueError(
                f"xi must have {self.xi.shape[1]} paths of dimension {self.xi.shape[2]} as in "
                f"training; got shape {xi.shape}"
            )
        result = _predict(self, xi)
        if not _inputs.is_traced(result.mean) and not jnp.all(jnp.isfinite(result.mean)):
            raise ValueError(
                f"temperature {float(self.temperature):g} is too small for this kernel, whose "
                "Cholesky factorisation fails in double precision; raise it or rescale xi and y"
            )
        return result

    def alignment(self) -> kernels.Alignment:
        """How well the principal components of the training kernel point along Y (Fig. 2d).

        >>> from attnpaths.theory import gp_limit
        >>> theory = gp_limit(jnp.ones((2, 1, 1)), [1, 1], heads=(1,), temperature=1)
        >>> round(float(theory.alignment().overlaps[0]), 6)
        1.0
        """
        return kernels.alignment(self.kernel(), self.y)


@jax.jit
def _predict(theory: Theory, xi: Float[Array, "tests paths dim"]) -> kernels.Prediction:
    mixed = jnp.einsum("pq,aqi->api", theory.U, xi)
    own = theory.prior_variance * jnp.mean(jnp.sum(xi * mixed, axis=1), axis=-1) / xi.shape[1]
    return kernels.predict(
        theory.kernel(), theory.kernel(xi, theory.xi), own, theory.y, temperature=theory.temperature
    )


def check(xi, y, heads, temperature, prior_variance) -> Problem:
    """Check everything that a theory needs, before any long work."""
    heads = _inputs.head_counts("heads", heads)
    if not hasattr(xi, "shape"):
        xi = _inputs.array("xi", xi, "examples paths dim")
    if len(np.shape(xi)) == 3:
        examples, paths, dim = np.shape(xi)
        rows = action.rows(examples, paths, dim)
        stored = action.stores_kernels(rows, paths)
        kept = rows**2 * paths**2 if stored else 4 * rows * paths * dim
        _inputs.memory(
            8 * (kept + 8 * rows**2 + 3 * examples * paths * dim + examples**2),
            f"a theory of {examples} examples and {paths} paths",
            "use fewer examples",
        )
    xi = _inputs.array("xi", xi, "examples paths dim")
    y = _inputs.array("y", y, "examples")
    if len(y) != len(xi):
        raise ValueError(f"y must hold one label per example of xi, {len(xi)}; got {len(y)}")
    count = int(np.prod(heads))
    if xi.shape[1] != count:
        raise ValueError(
            f"xi has {xi.shape[1]} paths but heads={heads} makes {count}; heads is (H₁, …, H_L) "
            "and xi [examples, paths, dim] has one path for every choice of a head per layer"
        )
    temperature = _inputs.number("temperature", temperature, above=0)
    prior_variance = _inputs.number("prior_variance", prior_variance, above=0)
    return Problem(xi, y, heads, temperature, prior_variance)


def levels_of(B: action.Factors, problem: Problem):
    """All levels U⁽¹⁾, …, U⁽ᴸ⁺¹⁾ and the entropy, in the units of the problem."""
    triangular, entropy = action.assemble(B)
    scaled = [problem.prior_variance ** (i + 1) * (A @ A.T) for i, A in enumerate(triangular)]
    count = sum(action.level_sizes(problem.heads))
    entropy = entropy - count * jnp.log(problem.prior_variance)
    return (*reversed(scaled[1:]), scaled[0][0, 0]), entropy


def warn_unless_converged(
    theories: Sequence[Theory],
    advice: str = "Such problems need more steps than the minimiser takes or more digits than "
    "double precision has: raise the temperature or the width",
) -> None:
    """Say so when a result is not a minimum."""
    if any(_inputs.is_traced(theory.converged) for theory in theories):
        return
    failed = [theory for theory in theories if not theory.converged]
    if failed:
        worst = max(failed, key=lambda theory: float(theory.gradient_norm))
        warnings.warn(
            f"{len(failed)} of {len(theories)} solutions did not converge; the worst, at width "
            f"{float(worst.width):g} and temperature {float(worst.temperature):g}, has a gradient "
            f"of {float(worst.gradient_norm):.1e} after {int(worst.evaluations)} evaluations. "
            + advice,
            RuntimeWarning,
            stacklevel=3,
        )
