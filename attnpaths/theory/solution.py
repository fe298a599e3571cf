"""An order parameter together with the problem it belongs to: all that predicts.

Every way to an order parameter (theory, GP limit, the paper's recipe) ends in a `Theory`, and a
grid of them in one with leading axes.
"""

import dataclasses
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from attnpaths import _checks, _html, kernels
from attnpaths.problem import OfProblem, Problem, graded_rows
from attnpaths.theory.factors import Factors, assemble, entropies


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Theory(OfProblem):
    """An order parameter with the problem it belongs to: everything needed to predict.

    `U [Π, Π]` is the order parameter and `levels` all of them, U⁽¹⁾ = U, …, U⁽ᴸ⁺¹⁾ (a scalar).
    With labels `y [P, C]`, U is `[ΠC, ΠC]`, output fastest, and U⁽ᴸ⁺¹⁾ `[C, C]`.
    `action` = `entropy` + `energy` as in Eq. 32: entropy is −Σℒ and energy αℰ.
    `gradient_norm` is the largest derivative of the action in the unknowns of the factor form,
    all of them relative changes, with what rounding may hide of it; `converged` says that it is
    zero to what double precision gives, beside those terms of it that U can change.
    `evaluations` counts values with gradient, `hessian_products` products with the
    Hessian (a full Hessian counts as many as it has columns), `iterations` steps. `starts` is how
    many times the minimiser began: more than once where the action has, or may have, several
    minima, as with labels that are large beside weak features. U is then the lowest minimum that
    was found, and there may be others. `width` is N,
    or (N_1, …, N_{L+1}); `problem` holds ξ, labels and the rest of the setting.

    Under `jax.vmap`, and in a `Sweep`, all of these have leading axes. `save(path)` writes all of
    it to a .npz file, without pickle; `theory.load` reads it.

    >>> from attnpaths.theory import gp_limit
    >>> theory = gp_limit(jnp.ones((2, 1, 1)), [1.0, 1.0], heads=(1,), temperature=1)
    >>> theory.kernel().shape, theory.predict(jnp.ones((3, 1, 1))).mean.round(9).tolist()
    ((2, 2), [0.666666667, 0.666666667, 0.666666667])
    >>> round(float(theory.alignment().overlaps[0]), 6)
    1.0
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
    starts: Int[Array, "*batch"]
    width: Float[Array, "..."]
    problem: Problem

    def __repr__(self):
        """The setting and the outcome, on one line."""
        if _checks.is_traced(self.action) or jnp.ndim(self.action):
            return f"Theory({self.problem.ways}, batch={jnp.shape(self.action)})"
        return (
            f"Theory({self.problem.ways}, width={spelled(self.width)}, "
            f"temperature={float(self.temperature):g}, action={float(self.action):.6g}, "
            f"converged={bool(self.converged)})"
        )

    def _repr_html_(self) -> str:
        """The setting, the outcome and U as a coloured table."""
        if _checks.is_traced(self.action) or jnp.ndim(self.action):
            return _html.text(repr(self))
        facts = {
            "heads": self.heads,
            "width N": spelled(self.width),
            "temperature 𝒯": f"{float(self.temperature):g}",
            "action S": f"{float(self.action):.6g}",
            "entropy + energy": f"{float(self.entropy):.6g} + {float(self.energy):.6g}",
            "converged": f"{bool(self.converged)} (gradient {float(self.gradient_norm):.1e})",
            "starts": f"{int(self.starts)}",
        }
        U = _html.matrix(self.U, self.problem.names, "order parameter U")
        return _html.card("Theory", facts, U)

    def kernel(self, xi_a: ArrayLike | None = None, xi_b: ArrayLike | None = None) -> Array:
        """The kernel 𝒦 between two sets of attentioned inputs, Eq. 10; by default training.

        Gives `[A, B]`, or with C outputs `[AC, BC]`, output fastest: Cov(f_c(x), f_c'(x')).
        """
        self._single("kernel")
        a = self.xi if xi_a is None else self.problem.check_features(xi_a, "xi_a")
        b = a if xi_b is None else self.problem.check_features(xi_b, "xi_b")
        given = self.problem.regression
        found = kernels.mixed_kernel(self.U, a, b, given["prior_variance"], given["scale"])
        return _checks.representable(found, "xi_a and xi_b")

    def predict(self, xi: ArrayLike) -> kernels.Prediction:
        """Mean and variance of the network's output, Eqs. 9 and 30.

        Takes the attentioned inputs `[P*, Π, D]` of new examples; gives both as `[P*]`, or with C
        outputs as `[P*, C]`, together with the covariance between outputs.
        """
        if jnp.ndim(self.y) > (1 if self.problem.outputs is None else 2):
            self._single("predict")
        xi = self.problem.check_features(xi)
        result = _predict(self, xi)
        kernels.check_finite(result, self.temperature, xi)
        return result

    def alignment(self) -> kernels.Alignment:
        """How well the principal components of the training kernel point along Y (Fig. 2d)."""
        return kernels.alignment(self.kernel(), self.y.ravel())

    def _single(self, what: str) -> None:
        if jnp.ndim(self.action) and not _checks.is_traced(self.action):
            raise ValueError(
                f"{what} needs one solution, but this one has axes {jnp.shape(self.action)}; pick "
                "one first, as in sweep[0, 0], or use jax.vmap"
            )


@jax.jit
def _predict(theory: Theory, xi: Float[Array, "tests paths dim"]) -> kernels.Prediction:
    rows = graded_rows(theory.problem)
    return kernels.regress(theory.U, rows.xi, rows.y, xi, **theory.problem.regression)


def levels_of(B: Factors, problem: Problem) -> tuple[Array, ...]:
    """All levels U⁽¹⁾, …, U⁽ᴸ⁺¹⁾, in the units of the problem."""
    units = problem.ways.units(problem.prior_variance)
    factors = [jnp.sqrt(u)[:, None] * A for u, A in zip(units, assemble(B), strict=True)]
    last, *others = (A @ A.T for A in factors)
    return (*reversed(others), last[0, 0] if problem.outputs is None else last)


def entropy_of(B: Factors, shares: Float[Array, " levels"], problem: Problem) -> Float[Array, ""]:
    """The entropy −Σℒ, each level by its share, in the units of the problem."""
    ways = problem.ways
    free = jnp.asarray([float(rows - fixed) for rows, fixed in ways.levels])
    variances = ways.variances(problem.prior_variance)[:0:-1]
    return jnp.sum(shares * (entropies(B, ways) - free * jnp.log(variances)))


#: What belongs to each solution by itself; the problem may be shared by many.
OWN = [field.name for field in dataclasses.fields(Theory) if field.name != "problem"]


def own_parts(theory: Theory) -> dict[str, Any]:
    """What belongs to a solution, or to a grid of them, without the problem."""
    return {name: getattr(theory, name) for name in OWN}


def spelled(width) -> str:
    """One width, or one for each layer."""
    values = [f"{float(each):g}" for each in np.ravel(width)]
    return values[0] if np.ndim(width) == 0 else f"({', '.join(values)})"


def warn_unless_converged(
    theory: Theory,
    advice: str = "Such problems need more steps than the minimiser takes or more digits than "
    "double precision has: raise the temperature or the width",
) -> None:
    """Say so when a result, or one of a grid, is not a minimum."""
    if _checks.is_traced(theory.converged):
        return
    failed = ~np.asarray(theory.converged)
    if failed.any():
        gradients = np.where(failed, np.asarray(theory.gradient_norm), -np.inf)
        worst = np.unravel_index(np.argmax(gradients), failed.shape)
        temperature = np.broadcast_to(np.asarray(theory.temperature), failed.shape)[worst]
        width = np.asarray(theory.width)
        width = spelled(width[worst] if width.shape == failed.shape else width)
        warnings.warn(
            f"{failed.sum()} of {failed.size} solutions did not converge; the worst, at width "
            f"{width} and temperature {temperature:g}, has a gradient of {gradients[worst]:.1e} "
            f"after {np.asarray(theory.evaluations)[worst]} evaluations. {advice}",
            RuntimeWarning,
            stacklevel=3,
        )
