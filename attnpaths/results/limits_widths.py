"""Layers of different widths: exact posterior, saddle point, and networks that check both.

Let x⁽ℓ⁾, which enters layer ℓ, have N_ℓ units, and the readout N_{L+1}. Then, a priori,

    Ũ⁽ᴸ⁺¹⁾ ~ χ²/N_{L+1} with N_{L+1} degrees of freedom,
    Ũ⁽ℓ⁾ | Ũ⁽ℓ⁺¹⁾ ~ Wishart(N_ℓ, I ⊗ Ũ⁽ℓ⁺¹⁾)/N_ℓ,

so that the entropy of each level comes with its own width: N·S = Σ_ℓ N_ℓ(−ℒ_ℓ) + P·ℰ. Here σ = 1,
and no level is narrower than the number of its partial paths. Widths are data, not settings: one
compiled function serves all of them.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnpaths import action, kernels
from attnpaths.minimise import minimise
from attnpaths.predictor import Problem


@dataclasses.dataclass(frozen=True)
class Layers:
    """Minus the logarithm of the posterior density of the order parameter, for any widths.

    Its data are those of the action and the widths (N_1, …, N_{L+1}); coordinates are those of
    `attnpaths.hierarchy`.

    >>> density = Layers((2, 2))
    >>> density.starts(jax.random.key(0), 4).shape
    (4, 14)
    """

    heads: tuple[int, ...]

    def __call__(self, data: tuple, z: Float[Array, " size"]) -> Float[Array, ""]:
        """½[ln det(K+𝒯) + Yᵀ(K+𝒯)⁻¹Y] − ln p(z), up to a constant."""
        problem, widths = data
        prior, B = self._split(z, widths)
        A = action.assemble(B)[0][-1]
        return action.energy(problem, action.pairs(A)) / 2 - prior

    def data(self, problem: Problem, widths) -> tuple:
        """Kernels of all pairs of paths, and the widths, checked."""
        widths, least = np.asarray(widths, float), action.level_sizes(self.heads)[::-1]
        if widths.shape != (len(least),) or np.any(widths < least):
            raise ValueError(
                f"widths must be (N_1, …, N_{len(least)}), at least {least} for heads="
                f"{self.heads}; got {widths.tolist()}. Narrower networks of one width: "
                "posterior.sample_order_parameter"
            )
        if problem.prior_variance != 1:
            raise ValueError(f"prior_variance must be 1; got {float(problem.prior_variance)}")
        return _prepared(problem._replace(heads=None), layers=len(self.heads)), jnp.asarray(widths)

    def starts(self, key: Array, chains: int) -> Float[Array, "chains size"]:
        """Close to draws from the prior, whose coordinates are nearly N(0, 1)."""
        return jax.random.normal(key, (chains, action.unknowns(self.heads)))

    @functools.partial(jax.jit, static_argnums=0)
    def order_parameters(self, z: Float[Array, "chains samples size"], widths) -> Array:
        """U of every draw."""

        def one(z):
            A = action.assemble(self._split(z, widths)[1])[0][-1]
            return A @ A.T

        return jax.vmap(jax.vmap(one))(z)

    def _split(self, z, widths):
        """The logarithm of the prior density, and the factors B_{L+1}, …, B_1."""
        prior, B, start = jnp.zeros(()), [], 0
        for size, width in zip(action.level_sizes(self.heads), widths[::-1], strict=True):
            middle, end = start + size, start + size * (size + 1) // 2
            freedom = width - jnp.arange(size, dtype=float)
            x = z[start:middle] / jnp.sqrt(2 * freedom)
            below = z[middle:end]
            prior -= jnp.sum(freedom * (jnp.expm1(2 * x) - 2 * x)) / 2 + jnp.sum(below**2) / 2
            matrix = jnp.diag(jnp.sqrt(freedom) * jnp.exp(x))
            B.append(matrix.at[np.tril_indices(size, -1)].set(below) / jnp.sqrt(width))
            start = end
        return prior, tuple(B)


@functools.partial(jax.jit, static_argnames="layers")
def _prepared(problem: Problem, *, layers: int) -> action.Data:
    return action.prepare(
        problem.xi,
        problem.y,
        layers=layers,
        temperature=problem.temperature,
        prior_variance=problem.prior_variance,
    )


def saddle(problem: Problem, widths) -> Float[Array, "paths paths"]:
    """The order parameter that minimises Σ_ℓ N_ℓ(−ℒ_ℓ) + P·ℰ.

    >>> from attnpaths import theory
    >>> from attnpaths.predictor import check
    >>> xi = jax.random.normal(jax.random.key(0), (20, 4, 3))
    >>> problem = check(xi, jnp.sign(xi[:, 0, 0]), (2, 2), 0.1, 1.0)
    >>> wanted = theory.solve(**problem._asdict(), width=10).U
    >>> bool(jnp.allclose(saddle(problem, (10, 10, 10)), wanted, rtol=1e-6))
    True
    """
    data = Layers(problem.heads).data(problem, widths)
    U, gradient, scale = _minimise(*data, heads=problem.heads)
    if not gradient < 1e-8 * scale:
        raise ValueError(f"the saddle point of widths {widths} was not found: {gradient:.1e}")
    return U


@functools.partial(jax.jit, static_argnames="heads")
def _minimise(data: action.Data, widths, *, heads):
    mean = jnp.mean(widths)
    shares = widths[::-1] / mean

    def objective(B, step):
        def inner(step):
            moved = action.move(B, step, heads)
            terms = [jnp.sum(b**2) - 2 * jnp.sum(jnp.log(jnp.diag(b))) for b in moved]
            return action.pairs(action.assemble(moved)[0][-1]), shares @ jnp.stack(terms)

        (u, entropy), pull = jax.vjp(inner, step)
        energy, gradient, fit = action.energy_and_gradient(data, u)
        (total,) = pull((gradient / mean, jnp.ones(())))
        return entropy + energy / mean, total, 1 + (len(data.y) + jnp.abs(fit)) / mean

    end = minimise(
        objective,
        lambda B, step: action.move(B, step, heads),
        action.gp_limit(heads),
        action.unknowns(heads),
        tolerance=1e-10,
        most=1000,
    )
    A = action.assemble(end.point)[0][-1]
    return A @ A.T, jnp.max(jnp.abs(end.gradient)), end.scale


def effective(heads, widths) -> list[float]:
    """Widths N(1), …, N(L+1) of the network of one width that answers weak data in the same way.

    Level ℓ answers with the mean of the force over all paths that it cannot tell apart, and with
    a strength 1/N_ℓ. What only level 1 can do, such as telling paths apart by their first head,
    has the width N_1. What all levels can do has the mean of all 1/N_ℓ, weighed by the number of
    paths that level ℓ moves together: Σ_{m≤k} w_m/N(k) = Σ_{m≤k} w_m/N_m with w_m = Π/|Π_m|.

    With weights 1, 2 and 4 the last is 7 / (1/10 + 2/100 + 4/1000):

    >>> [round(N, 1) for N in effective((2, 2), (10, 100, 1000))]
    [10.0, 25.0, 56.5]
    """
    sizes = np.array(action.level_sizes(heads)[::-1], float)
    together = sizes[0] / sizes
    inverse = np.cumsum(together / np.asarray(widths, float)) / np.cumsum(together)
    return (1 / inverse).tolist()


def networks(problem: Problem, widths, seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean of Ũ and its standard error, from networks drawn from the prior.

    Weights a, V⁽ᴸ⁾, …, V⁽¹⁾ are drawn and multiplied along every path; each network counts by the
    likelihood of the labels given its Ũ. Slow and plain: nothing of the hierarchy is used.
    """
    rng = np.random.default_rng(seed)
    xi, y = np.asarray(problem.xi), np.asarray(problem.y)
    C = np.asarray(kernels.path_kernels(xi))
    paths = xi.shape[1]
    U, logs = [], []
    for _ in range(0, count, 1000):
        # [networks, partial paths, units], from the readout down; the first head is slowest
        rows = rng.normal(size=(1000, 1, widths[-1])) / np.sqrt(widths[-1])
        for layer in range(len(problem.heads) - 1, -1, -1):
            shape = (1000, problem.heads[layer], widths[layer + 1], widths[layer])
            V = rng.normal(size=shape) / np.sqrt(widths[layer])
            rows = np.einsum("cpn,chnm->chpm", rows, V).reshape(1000, -1, widths[layer])
        U.append(rows @ rows.swapaxes(1, 2))
        K = np.einsum("cpq,pqab->cab", U[-1], C) / paths + float(problem.temperature) * np.eye(
            len(y)
        )
        fit = y @ np.linalg.solve(K, np.broadcast_to(y[:, None], (1000, len(y), 1)))[..., 0].T
        logs.append(-(np.linalg.slogdet(K)[1] + fit) / 2)
    U, logs = np.concatenate(U), np.concatenate(logs)
    share = np.exp(logs - logs.max())
    share /= share.sum()
    mean = np.einsum("c,cpq->pq", share, U)
    return mean, np.sqrt(np.einsum("c,cpq->pq", share**2, (U - mean) ** 2))
