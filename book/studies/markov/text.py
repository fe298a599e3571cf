"""What the paper's text says about hidden Markov chains, computed as the page is built."""

import math

import numpy as np

from attnpaths import kernels
from book.studies.markov.problems import TEMPERATURE, paired
from book.studies.verdicts.claims import Claims, pm
from book.studies.verdicts.rules import (
    REPRODUCED,
    comparable,
    larger,
    no_worse,
    number,
    same,
    stated,
    weakest,
)

CLAIMS = Claims()

WIDTHS = (10, 20, 50, 100, 200, 500, 1000, 10_000)
GROUP = "Chains"


def _share(right) -> tuple[float, float]:
    """Accuracy, and its standard error over test chains."""
    return float(right.mean()), float(right.std(ddof=1) / np.sqrt(len(right)))


@CLAIMS.add("94 %", GROUP, "Sec. 4.1", "the good path alone: A ∼ 94 %", "fig-one-path")
def _good_path(see):
    four = see.chains.four
    share, error = _share(four.right(four.gp([0]), [0]))
    judged = number(share, error, 0.94, unit=0.01, holds=share > 0.75)
    return judged, pm(share, error)


@CLAIMS.add(
    "50 %", GROUP, "Sec. 4.1", "each other path alone is at chance: A ∼ 50 %", "fig-one-path"
)
def _other_paths(see):
    four = see.chains.four
    found = [_share(four.right(four.gp([path]), [path])) for path in (1, 2, 3)]
    good = four.right(four.gp([0]), [0]).mean()
    near = all(share < (0.5 + good) / 2 for share, _ in found)
    judged = [number(share, error, 0.5, unit=0.01, holds=near) for share, error in found]
    text = "; ".join(
        f"{four.task.path_names[path]} {pm(*each)}"
        for path, each in zip((1, 2, 3), found, strict=True)
    )
    return weakest(*judged), text


@CLAIMS.add(
    "adversarial",
    GROUP,
    "Sec. 4.1",
    "adversarial paths make the Gaussian process worse than the good path alone",
    "fig-markov-accuracy",
)
def _adversarial(see):
    four = see.chains.four
    gap, error = paired(four.right(four.gp([0]), [0]), four.right(four.gp()))
    return larger(gap, error), f"worse by {pm(gap, error)}"


@CLAIMS.add(
    "denoising",
    GROUP,
    "Sec. 4.1",
    "the denoising path makes the Gaussian process better than the good path alone",
    "fig-markov-accuracy",
)
def _denoising(see):
    four = see.chains.four
    gap, error = paired(four.right(four.gp([0, 2]), [0, 2]), four.right(four.gp([0]), [0]))
    return larger(gap, error), f"better by {pm(gap, error)}"


@CLAIMS.add(
    "improvement",
    GROUP,
    "Sec. 4.1",
    "in the finite-width regime performance is considerably better than in the GP limit",
    "fig-markov-accuracy",
)
def _improvement(see):
    four = see.chains.four
    gap, error = paired(four.right(four.solve(10)), four.right(four.gp()))
    return larger(gap, error), f"N = 10 is better by {pm(gap, error)}"


@CLAIMS.add(
    "not a scalar",
    GROUP,
    "Sec. 5",
    "a matrix U changes the mean predictor, as opposed to a single factor, and generalises better",
    "fig-combination",
)
def _matrix(see):
    four = see.chains.four
    U = np.asarray(four.solve(10).U)
    factor = float(np.trace(U)) / len(U)
    scaled = four.gp(temperature=TEMPERATURE / factor)
    gap, error = paired(four.right(four.solve(10)), four.right(scaled))
    other, spread = paired(four.right(scaled), four.right(four.gp()))
    text = f"U better by {pm(gap, error)} than its mean strength {factor:.1f} for all paths alike, "
    return larger(gap, error), text + f"which changes the GP limit by {pm(other, spread)}"


@CLAIMS.add(
    "boost",
    GROUP,
    "Sec. 4.1",
    "at finite width the boost is even higher than from good and denoising paths in the GP limit",
    "fig-markov-accuracy",
)
def _boost(see):
    four = see.chains.four
    gap, error = paired(four.right(four.solve(10)), four.right(four.gp([0, 2]), [0, 2]))
    return larger(gap, error), f"N = 10 is better by {pm(gap, error)}"


@CLAIMS.add(
    "noisier",
    GROUP,
    "Sec. 4.1",
    "that improvement is more apparent with noisier data",
    "fig-markov-noise",
)
def _noisier(see):
    calm = see.chains.calm_pair
    gaps = [
        paired(each.right(each.solve(10)), each.right(each.gp()))
        for each in (see.chains.pair, calm)
    ]
    gap = gaps[0][0] - gaps[1][0]
    error = float(np.hypot(gaps[0][1], gaps[1][1]))
    text = f"two paths gain {pm(*gaps[0])} at σ⊥ = 5, {pm(*gaps[1])} at σ⊥ = 1"
    return larger(gap, error), text


@CLAIMS.add(
    "suppressed",
    GROUP,
    "Sec. 4.1",
    "N = 10: all kernels of the adversarial paths are suppressed",
    "fig-markov-entries",
)
def _suppressed(see):
    U = np.abs(np.asarray(see.chains.four.solve(10).U))
    adversarial = U[[1, 3]].max()
    others = U[np.ix_([0, 2], [0, 2])].min()
    text = f"their entries of U are at most {adversarial:.2f}, others {others:.2f} or more"
    return stated(adversarial < 1 < others, adversarial < others), text


@CLAIMS.add(
    "anti-correlated",
    GROUP,
    "Sec. 4.1",
    "N = 10: good and denoising paths are strongly anti-correlated",
    "fig-markov-entries",
)
def _anticorrelated(see):
    U = np.asarray(see.chains.four.solve(10).U)
    r = U[0, 2] / np.sqrt(U[0, 0] * U[2, 2])
    off = np.abs(U[np.triu_indices(4, 1)])
    text = f"U = {U[0, 2]:.2f}, the largest off the diagonal; as a correlation {r:.2f}"
    text += "; full: below −0.5, in kind: below −0.25"
    return stated(r < -0.5 and off.max() == abs(U[0, 2]), r < -0.25), text


@CLAIMS.add(
    "N = 1000",
    GROUP,
    "Sec. 4.1",
    "N = 1000: the order parameter is very close to the identity",
    "fig-markov-entries",
)
def _wide(see):
    far = [np.abs(np.asarray(see.chains.four.solve(N).U) - np.eye(4)).max() for N in (1000, 10)]
    text = f"largest deviation {far[0]:.2f}, against {far[1]:.1f} at N = 10; full: below 0.1, "
    text += "in kind: less than half of that at N = 10"
    return stated(far[0] < 0.1, far[0] < far[1] / 2), text


#: Temperatures beside 0.01, the paper's.
_OTHERS = (0.001, 0.05, 0.1, 0.2, 0.5, 1.0)


@CLAIMS.add(
    "temperature",
    GROUP,
    "App. F",
    "no temperature improves the accuracy over that at 0.01",
    "discrepancies",
)
def _temperature(see):
    four = see.chains.four
    base = four.right(four.solve(10))
    gains = {t: paired(four.right(four.solve(10, t)), base) for t in _OTHERS}
    best = max(gains, key=lambda t: gains[t][0])
    gap, error = gains[best]
    return no_worse(
        -gap, error
    ), f"best of {len(_OTHERS)} others, 𝒯 = {best:g}: {gap:+.3f} ± {error:.3f}"


@CLAIMS.add(
    "uniform is analogous",
    GROUP,
    "App. G",
    "a uniform head in the denoising path gives completely analogous results",
    "fig-markov-pair",
)
def _analogous(see):
    random, uniform = see.chains.pair, see.chains.uniform
    gaps, kinds = {}, []
    for N in (10, 100, 1000, None):
        one, other = (
            each.right(each.gp() if N is None else each.solve(N)) for each in (uniform, random)
        )
        gaps[N] = paired(one, other)
        kinds.append((one.mean(), other.mean()))
    full = all(comparable(*each).verdict == REPRODUCED for each in gaps.values())
    rises = all(kinds[0][i] > kinds[1][i] > kinds[-1][i] for i in (0, 1))
    text = (
        f"uniform minus random head: {pm(*gaps[10])} at N = 10, {pm(*gaps[None])} in the GP limit"
    )
    text += "; full: comparable at four widths, in kind: both curves rise from the GP to N = 10"
    return stated(full, rises), text


@CLAIMS.add(
    "magnitude, chains",
    GROUP,
    "App. H.2",
    "the order parameter always grows as N gets smaller",
    "fig-markov-entries",
)
def _magnitude(see):
    curves = {
        name: [float(np.trace(problem.solve(N).U)) / problem.xi.shape[1] for N in WIDTHS]
        for name, problem in (("four", see.chains.four), ("two", see.chains.pair))
    }
    grows = {name: bool(np.all(np.diff(curve) < 0)) for name, curve in curves.items()}
    text = "; ".join(
        f"{name} paths: mean strength {curve[-1]:.2f} at N = {WIDTHS[-1]}, {curve[0]:.2f} at N = 10"
        for name, curve in curves.items()
    )
    return stated(all(grows.values()), any(grows.values())), text


@CLAIMS.add(
    "overparameterised",
    GROUP,
    "Sec. 3.1",
    "the networks have more capacity than examples, P < N₀Hᴸ",
    "model",
)
def _capacity(see):
    task = see.chains.four.task
    examples, paths, dim = len(task.train.y), see.chains.four.xi.shape[1], task.network.dim
    network = see.images.networks()[0]
    drawn = see.images[f"{network.name}: draw 0"]["examples"]
    images = drawn, math.prod(network.heads), network.network.dim
    text = f"chains: {examples} < {paths * dim}; images: {images[0]} < {images[1] * images[2]}"
    return stated(examples < paths * dim and images[0] < images[1] * images[2]), text


@CLAIMS.add(
    "one head",
    GROUP,
    "Sec. 3.1",
    "with one head per layer the entropy is −U + ln U (σ = 1)",
    "discrepancies",
)
def _one_head(see):
    good, y = see.chains.four.xi[:, :1], np.asarray(see.chains.four.task.train.y)
    values, vectors = np.linalg.eigh(np.asarray(kernels.path_kernels(good)[0, 0]))
    u = np.geomspace(0.1, 100, 10_001)
    spectrum = u[:, None] * values + TEMPERATURE
    energy = np.sum(np.log(spectrum) + (vectors.T @ y) ** 2 / spectrum, axis=1) / 10
    printed, derived = (
        u[np.argmin(entropy + energy)] for entropy in (u - np.log(u), 3 * u ** (1 / 3) - np.log(u))
    )
    off = abs(printed / derived - 1)
    text = (
        f"good path, N = 10: U = {printed:.2f} with that entropy, {derived:.2f} with the appendix's"
    )
    return same(off), text
