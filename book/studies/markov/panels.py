"""Panels on hidden Markov chains, computed as the page is built: Figs. 1, 2, 4 and 5."""

import jax.numpy as jnp
import numpy as np

from attnpaths import Weights, kernels
from book.studies import authors
from book.studies.markov.problems import away, paired, path_sums
from book.studies.verdicts.claims import Claims, to
from book.studies.verdicts.rules import larger, same, stated, weakest

CLAIMS = Claims()


def statistics(kernel) -> dict[str, float]:
    """What is kept of the authors' kernels."""
    kernel = np.asarray(kernel)
    eigenvalues = np.linalg.eigvalsh(kernel)
    return {
        "trace": np.trace(kernel),
        "sum": kernel.sum(),
        "fro": np.linalg.norm(kernel),
        "min": kernel.min(),
        "max": kernel.max(),
        "eig_max": eigenvalues[-1],
        "eig_2": eigenvalues[-2],
        "eig_min": eigenvalues[0],
    }


def by_hand(network, weights, x) -> np.ndarray:
    """The network's output token by token and head by head, as the appendix writes it."""
    answers = []
    width = len(weights.a)
    for tokens in np.asarray(x):
        state = tokens @ np.asarray(weights.V0).T / np.sqrt(tokens.shape[1])
        for heads, values in zip(network.heads, weights.V, strict=True):
            summed = np.zeros_like(state)
            for head, value in zip(np.asarray(heads), np.asarray(values), strict=True):
                logits = tokens @ head @ tokens.T
                attention = np.exp(logits - logits.max(axis=0))
                attention /= attention.sum(axis=0)
                summed += attention.T @ state @ value.T
            state = summed / np.sqrt(width * len(heads))
        answers.append(np.asarray(weights.a) @ state[network.readout] / np.sqrt(width))
    return np.array(answers)


@CLAIMS.add("1a", "Schematics", "Fig. 1a", "the output is a sum over attention paths", "model")
def _sum_over_paths(see):
    problem = see.chains.four.task
    weights = Weights.prior(0, width=10, dim=problem.network.dim, heads=(2, 2))
    layered, summed = (
        np.asarray(apply(weights, problem.train.x))
        for apply in (problem.network.apply, problem.network.apply_paths)
    )
    off = away(summed, layered)
    return same(off), f"layer by layer and path by path agree {to(off)}"


@CLAIMS.add(
    "1c",
    "Schematics",
    "Fig. 1c",
    "at finite width the kernel's components align better",
    "fig-markov-alignment",
)
def _alignment_of_fresh_tasks(see):
    tops = np.array([[each.max() for each in pair] for pair in see.chains.fresh])
    gain, error = paired(*tops.T)
    text = f"largest overlap {tops[:, 0].mean():.2f} against {tops[:, 1].mean():.2f} (GP); "
    return larger(gain, error), text + f"gain {gain:.2f} ± {error:.2f} over {len(tops)} fresh tasks"


@CLAIMS.add(
    "1d",
    "Schematics",
    "Fig. 1d",
    "the GP limit weighs same-path kernels equally and drops cross-path kernels; finite width "
    "does neither",
    "fig-combination",
)
def _gp_is_the_identity(see):
    four = see.chains.four
    off, U = away(four.gp().U, np.eye(4)), np.asarray(four.solve(10).U)
    cross = np.abs(U - np.diag(np.diag(U))).max()
    text = f"GP: U is the identity {to(off)}; N = 10: strengths "
    text += f"{np.diag(U).min():.2f} to {np.diag(U).max():.2f}, cross-path up to {cross:.2f}"
    return weakest(same(off), stated(cross > 0.1 and np.ptp(np.diag(U)) > 0.1)), text


@CLAIMS.add(
    "2a", "Schematics", "Fig. 2a", "the task: noisy chains of two classes", "fig-markov-task"
)
def _data(see):
    task = see.chains.four.task
    off = 0.0
    for name, sums in authors.DATA.items():
        x = np.asarray(getattr(task, name).x)
        ours = {"sum": x.sum(), "sum_sq": np.sum(x**2), "abs_sum": np.abs(x).sum()}
        off = max(off, *(away(ours[key], value) for key, value in sums.items()))
    return same(off), f"the authors' {len(task.train.y)} and {len(task.test.y)} chains {to(off)}"


@CLAIMS.add("2b", "Schematics", "Fig. 2b, Fig. 5a", "the network and its four paths", "fig-paths")
def _paths(see):
    ours = path_sums(see.chains.four)
    off = max(away(ours[key], held) for key, held in authors.PATH_KERNELS.items())
    return same(off), f"traces, sums and entries of all path–path kernels {to(off)}"


@CLAIMS.add(
    "2c, accuracy",
    "Chains",
    "Fig. 2c, top",
    "accuracy of the theory against N, and of three Gaussian processes",
    "fig-markov-accuracy",
)
def _accuracies(see):
    four = see.chains.four
    cases = [(four.solve(N), None, fact) for N, fact in authors.FOUR.items()]
    cases += [
        (four.gp(paths), paths, fact)
        for paths, fact in (
            (None, authors.FOUR_GP),
            ([0], authors.GOOD_GP),
            ([0, 2], authors.GOOD_DENOISING_GP),
        )
    ]
    off, shares = 0.0, []
    for solution, paths, fact in cases:
        shares.append(four.right(solution, paths).mean())
        off = max(off, away(shares[-1], fact["accuracy"]))
        off = max(off, away(four.mean(solution, paths)[:10], fact["mean"]))
    widths = ", ".join(f"{N}: {a:.3f}" for N, a in zip(authors.FOUR, shares[:3], strict=True))
    text = f"N = {widths}; GP {', '.join(f'{a:.3f}' for a in shares[3:])}; "
    return same(off), text + f"accuracies and predictions {to(off)}"


@CLAIMS.add("2c, U", "Chains", "Fig. 2c, bottom", "the order parameter against N", "fig-markov-U")
def _order_parameters(see):
    off, largest = 0.0, []
    for N, fact in authors.FOUR.items():
        solution = see.chains.four.solve(N)
        for ours, key in zip(solution.levels, ("U", "U2", "U3"), strict=True):
            off = max(off, away(np.ravel(ours), np.ravel(fact[key])))
        largest.append(f"{N}: {float(solution.U[0, 0]):.3f}")
    return same(off), f"U of the good path, N = {', '.join(largest)}; all levels {to(off)}"


@CLAIMS.add(
    "2d",
    "Chains",
    "Fig. 2d",
    "overlaps of 30 kernel components with the labels, N = 10 and GP",
    "fig-markov-alignment",
)
def _overlaps(see):
    four = see.chains.four
    limit = away(four.gp().alignment().overlaps[:30], authors.GP_OVERLAPS)
    # the authors' numbers at N = 10 are of where their Adam stopped
    there = kernels.total_kernel(jnp.asarray(authors.STOPPED["U"]), four.xi)
    stopped = kernels.alignment(there, four.task.train.y).overlaps[:30]
    narrow = away(stopped, authors.STOPPED["overlaps"])
    at_minimum = away(four.solve(10).alignment().overlaps[:30], authors.STOPPED["overlaps"])
    text = f"GP {to(limit)}; N = 10 {to(narrow)} at the U where their Adam stopped, "
    return same(max(limit, narrow)), text + f"{to(at_minimum)} at the minimum"


@CLAIMS.add(
    "2e",
    "Chains",
    "Fig. 2e",
    "two paths in strong noise: accuracy rises far above the Gaussian process",
    "fig-markov-pair",
)
def _strong_noise(see):
    pair, good = see.chains.pair, [0]
    off = max(
        away(pair.right(pair.gp(good), good).mean(), authors.UNIFORM_ALONE[0]),
        away(path_sums(pair)["sum"][0, 0], authors.UNIFORM_PATH_KERNELS["sum"][0][0]),
    )
    narrow, limit = pair.right(pair.solve(10)), pair.right(pair.gp())
    gain, error = paired(narrow, limit)
    text = (
        f"{narrow.mean():.3f} at N = 10, {limit.mean():.3f} (GP), gain {gain:.3f} ± {error:.3f}; "
    )
    text += f"the good path alone {to(off)}; the published code has no numbers of the other head"
    return weakest(same(off), larger(gain, error)), text


@CLAIMS.add(
    "4", "Schematics", "Fig. 4", "the architecture, token by token and head by head", "model"
)
def _architecture(see):
    task = see.chains.four.task
    weights = Weights.prior(1, width=10, dim=task.network.dim, heads=(2, 2))
    few = task.train.x[::20]
    off = away(task.network.apply(weights, few), by_hand(task.network, weights, few))
    return same(off), f"the library and the appendix's formulas, written out, agree {to(off)}"


@CLAIMS.add(
    "5b",
    "Chains",
    "Fig. 5b",
    "kernels of single paths, and total kernels of the GP and at N = 10",
    "fig-markov-kernels",
)
def _kernels(see):
    four = see.chains.four
    there = kernels.total_kernel(jnp.asarray(authors.STOPPED["U"]), four.xi)
    off = 0.0
    for ours, theirs in (
        (four.gp().kernel(), authors.GP_KERNEL),
        (there, authors.STOPPED["kernel"]),
    ):
        found = statistics(ours)
        off = max(off, *(away(found[key], value) for key, value in theirs.items()))
    return same(off), f"{len(found)} statistics of both total kernels {to(off)}"


@CLAIMS.add(
    "5c",
    "Chains",
    "Fig. 5c",
    "two paths with a uniform head in strong noise: accuracy against N",
    "fig-markov-pair",
)
def _uniform_head(see):
    uniform = see.chains.uniform
    off, shares = 0.0, []
    for N, fact in [*authors.UNIFORM.items(), (None, authors.UNIFORM_GP)]:
        solution = uniform.gp() if N is None else uniform.solve(N)
        shares.append(f"{uniform.right(solution).mean():.3f}")
        off = max(off, away(uniform.right(solution).mean(), fact["accuracy"]))
        off = max(off, away(uniform.mean(solution)[:10], fact["mean"]))
        if N is not None:
            for ours, key in zip(solution.levels, ("U", "U2", "U3"), strict=True):
                off = max(off, away(np.ravel(ours), np.ravel(fact[key])))
    return same(off), f"N = 10: {shares[0]}, N = 100: {shares[1]}, GP {shares[2]}; all {to(off)}"
