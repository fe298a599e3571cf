"""Scores of heads: the paper's, and those it has to be compared with. High means: keep.

The output of the network is a sum over paths, f = Σ_π f^π, and a head that is switched off takes
the paths through it with it. All scores that look at outputs therefore start from `path_outputs`,
of a network or, by `theory_outputs`, of the theory itself.
"""

import math
from collections.abc import Iterable, Sequence

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from attnpaths import _checks, paths
from attnpaths.network import Weights
from attnpaths.network.ways import Ways
from attnpaths.network.weights import check
from attnpaths.problem import Problem
from attnpaths.pruning.heads import (
    Head,
    all_heads,
    check_data,
    check_outputs,
    order_by_score,
    surviving,
)
from attnpaths.theory import Theory


def head_scores(
    U: ArrayLike,
    heads: Sequence[int],
    pairs: str = "both",
    *,
    residual: bool | Sequence[bool] = False,
    sizes: ArrayLike | None = None,
) -> dict[Head, float]:
    """The paper's score of every head: how much of the order parameter goes through it.

    s⁽ℓ⁾ʰ = Σ |U_{ππ'}|, over pairs of paths of which, by `pairs`, `"both"` go through that head, as
    the paper's text has it, or `"either"` does, as the authors' code has it. `U [Π, Π]` may be that
    of `theory.solve`, of `sample_order_parameter`, or a network's own, from
    `empirical_order_parameter(weights)`. The paper shows scores divided by the largest. Layers that
    have a skip, by `residual`, have paths along it, but it is no head and has no score. With C
    outputs U is `[ΠC, ΠC]`, and every pair of outputs counts. `sizes [Π, Π]`, of `kernel_sizes`
    for instance, multiply |U|.

    >>> head_scores([[1.0, -0.5], [-0.5, 2.0]], (2, 1))
    {(1, 1): 1.0, (1, 2): 2.0, (2, 1): 4.0}
    >>> head_scores([[1.0, -0.5], [-0.5, 2.0]], (2, 1), pairs="either")
    {(1, 1): 2.0, (1, 2): 3.0, (2, 1): 4.0}
    """
    counts, U = _checks.head_counts("heads", heads), _checks.array("U", U, "paths paths")
    _checks.choice("pairs", pairs, ("both", "either"))
    ways = Ways(counts, _checks.skips(residual, len(counts)))
    count = ways.paths
    if U.shape[0] != U.shape[1] or len(U) % count:
        raise ValueError(
            f"U must be [{count}, {count}] for the {count} paths of {ways}, or a multiple of it "
            f"for several outputs; got {U.shape}"
        )
    _checks.semidefinite("U", U)
    size = np.abs(np.asarray(U)).reshape(count, len(U) // count, count, -1).sum(axis=(1, 3))
    if sizes is not None:
        sizes = np.asarray(_checks.array("sizes", sizes, "paths paths"))
        if sizes.shape != size.shape or sizes.min() < 0:
            raise ValueError(
                f"sizes must be [{count}, {count}], one number ≥ 0 for each pair of paths; got "
                f"shape {sizes.shape}, from {sizes.min():.3g}"
            )
        size = size * sizes
    scores, total = {}, float(size.sum())
    for head, on in _through(ways).items():
        # either: all pairs but those of which neither goes through the head
        counted = size[on][:, on].sum() if pairs == "both" else total - size[~on][:, ~on].sum()
        scores[head] = float(counted)
    return scores


def kernel_sizes(problem: Problem) -> Float[np.ndarray, "paths paths"]:
    """How much each pair of paths could weigh in the kernel: s_π s_π' ‖C_ππ'‖/P, `[Π, Π]`.

    C_ππ' = ξ^π · ξ^π'/D between all P examples, by its Frobenius norm. |U| times this is what a
    pair adds to the kernel of the network, so that paths which see little count little, whatever
    their order parameter. Takes a `Problem`, `theory.problem` for instance.

    >>> xi = np.array([[[1.0], [2.0]]])
    >>> kernel_sizes(Problem.of(xi, [1.0], heads=(2,), temperature=1.0)).round(3).tolist()
    [[0.5, 1.0], [1.0, 2.0]]
    """
    _checks.kind("problem", problem, Problem, "a Problem")
    examples, _, dim = problem.xi.shape
    xi, scales = np.asarray(problem.xi), problem.ways.scales
    # ‖ξ^π ξ^π'ᵀ‖² = tr(ξ^πᵀξ^π · ξ^π'ᵀξ^π')
    moments = np.einsum("pki,pkj->kij", xi, xi, optimize=True).reshape(len(scales), -1)
    norms = np.sqrt(moments @ moments.T)
    return norms * np.outer(scales, scales) / (dim * examples)


def value_norms(weights: Weights) -> dict[Head, float]:
    """A baseline: the size of each head's value weights, ‖V⁽ℓ⁾ʰ‖ = √(Σ_ij V_ij²).

    Takes the values `[H, N, N]` of each layer.

    >>> value_norms(Weights(np.ones((1, 1)), [np.array([[[2.0]], [[1.0]]])], np.ones(1)))
    {(1, 1): 2.0, (1, 2): 1.0}
    """
    norms = [np.linalg.norm(np.asarray(v), axis=(1, 2)) for v in check(weights).V]
    return _named([len(layer) for layer in norms], np.concatenate(norms))


def order_by_norm(weights: Weights) -> list[Head]:
    """Heads whose value weights are smallest go first: ‖V⁽ℓ⁾ʰ‖, as in `value_norms`.

    Gives Σ_ℓ (H_ℓ − 1) pairs (layer, head): `[n, 2]` as an array.

    >>> order_by_norm(Weights(np.ones((1, 1)), [np.array([[[2.0]], [[1.0]]])], np.ones(1)))
    [(1, 2)]
    """
    return order_by_score(value_norms(weights))


def gradient_importance(
    outputs: ArrayLike,
    y: ArrayLike,
    *,
    heads: Sequence[int],
    gone: Iterable[Head] = (),
    by_layer: bool = False,
) -> dict[Head, float]:
    """A baseline: how much the loss feels a head's switch, E|∂(f − y)²/∂m_h| at m = 1.

    The score of Michel et al. (2019): each head is multiplied by m_h, so that the derivative is
    2(f − y) times the sum of f^π over paths through the head. Takes `path_outputs` `[P, Π]` and
    labels `y [P]`. With `gone`, heads that are out already, the others are scored in the network
    that is left, which is how pruning head by head scores again (`one_by_one`). `by_layer`
    divides by the Euclidean norm of each layer's scores, as Michel et al. do.

    >>> gradient_importance([[1.0, 2.0]], [1.0], heads=(2,))
    {(1, 1): 4.0, (1, 2): 8.0}
    >>> gradient_importance([[1.0, 2.0]], [1.0], heads=(2,), gone=[(1, 1)])
    {(1, 1): 0.0, (1, 2): 4.0}
    """
    counts, outputs, y = check_data(outputs, y, heads)
    outputs = outputs * surviving(counts, gone)
    slope = 2 * (outputs.sum(axis=1) - y)
    through = np.array([outputs @ on for on in _through(Ways(counts)).values()])
    scores = np.abs(slope * through).mean(axis=1)
    if _checks.flag("by_layer", by_layer):
        layer = np.repeat(np.arange(len(counts)), counts)
        norms = np.sqrt(np.bincount(layer, scores**2))[layer]
        scores = np.divide(scores, norms, out=np.zeros_like(scores), where=norms > 0)
    return _named(counts, scores)


def head_sizes(outputs: ArrayLike, heads: Sequence[int]) -> dict[Head, float]:
    """A baseline: how much a head adds, the root mean square of Σ f^π over paths through it.

    Takes `path_outputs` `[P, Π]`; needs no labels.

    >>> head_sizes([[3.0, 1.0], [4.0, 1.0]], (2,))[1, 1]  # √(25/2)
    3.5355339059327378
    """
    counts = _checks.head_counts("heads", heads)
    outputs = np.asarray(check_outputs(outputs, counts))
    added = np.array([outputs @ on for on in _through(Ways(counts)).values()])
    return _named(counts, np.sqrt(np.mean(added**2, axis=1)))


def attention_focus(attention: Sequence[ArrayLike]) -> dict[Head, float]:
    """A baseline: how sharply a head attends, ln T + Σ_s Ω_st ln Ω_st, over examples and queries.

    That is ln T minus the mean entropy of its attention: 0 for a head that attends to all tokens
    alike, ln T for one that attends to a single token. Takes Ω of every layer, `[P, H, T, T]`, from
    `network.attention(x)`.

    >>> attention_focus([np.array([[np.eye(2), np.full((2, 2), 0.5)]])])
    {(1, 1): 0.6931471805599453, (1, 2): 0.0}
    """
    layers = _checks.by_layer("attention", attention, _checks.attention)
    focus = [
        math.log(o.shape[2]) + jnp.sum(jnp.where(o > 0, o * jnp.log(o), 0.0), axis=2).mean((0, 2))
        for o in layers
    ]
    return _named([o.shape[1] for o in layers], np.concatenate(focus))


def theory_outputs(theory: Theory, xi: ArrayLike) -> Float[Array, "examples paths *outputs"]:
    """What the theory expects of every path by itself, `[P*, Π]`, on new ξ `[P*, Π, D]`.

    ⟨f^π⟩ = (σ²/D) Σ_π' s_π s_π' U^{ππ'} ξ^π · Σ_μ ξ^π'_μ v_μ with v = (K + 𝒯)⁻¹Y; the sum over
    paths is the mean predictor. With C outputs it is `[P*, Π, C]`. The theory's own pruning is
    that of these outputs: no network is needed.

    >>> from attnpaths.theory import gp_limit
    >>> theory = gp_limit(jnp.ones((1, 2, 1)), [2.0], heads=(2,), temperature=1)
    >>> theory_outputs(theory, jnp.ones((1, 2, 1))).round(9).tolist()
    [[0.5, 0.5]]
    """
    _checks.kind("theory", theory, Theory, "a Theory")
    xi, given = theory.problem.check_features(xi), theory.problem.regression
    paths, dim = xi.shape[1:]
    shifted = theory.kernel() + theory.temperature * jnp.eye(theory.y.size)
    v = jnp.linalg.solve(shifted, theory.y.ravel()).reshape(len(theory.y), -1)
    scale = given["scale"][:, None, None]
    seen = scale * jnp.einsum("mpi,mc->pci", theory.xi, v)
    readouts = (theory.U @ seen.reshape(-1, dim)).reshape(paths, -1, dim)
    found = given["prior_variance"] / dim * jnp.einsum("api,pci->apc", xi, scale * readouts)
    return found.reshape(len(xi), paths, *theory.y.shape[1:])


def _through(ways: Ways) -> dict[Head, Bool[np.ndarray, "paths"]]:
    """Which paths go through each head."""
    names = np.array(paths.paths(ways.heads, residual=ways.residual))
    return {(layer, h): names[:, layer - 1] == h for layer, h in all_heads(ways.heads)}


def _named(counts, scores) -> dict[Head, float]:
    return dict(zip(all_heads(counts), np.asarray(scores).tolist(), strict=True))
