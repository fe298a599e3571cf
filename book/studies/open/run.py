"""What the paper left open: skips, outputs, ReLUs. `python -m book.studies.open.run`.

- `prior`: moments of Ũ of networks drawn weight by weight, against the hierarchy;
- `saddle`: a problem with skips and two outputs, in k copies at k times the width; the exact
  posterior by the order parameter and by all weights, and the theory;
- `depth`: the hidden Markov chain with more and more layers, with and without skips;
- `classes, …`: chains of three classes, all outputs together and one by one;
- `images, …`: one-shot with three images, along the paths of kept networks (`images.py`);
- `relu, …`, `linear, …` and `relu, both ways`: the suggestion for nonlinear blocks (`relu.py`).

It takes about forty minutes on two cores that other jobs share.
"""

import warnings
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnpaths import Network, paths, posterior, theory
from attnpaths.posterior import OrderParameter
from attnpaths.tasks import markov
from book.studies.engine import collect
from book.studies.open import images, relu
from book.studies.statistics import chains, distance, steady

SEEDS = (0, 1, 2)
# heads of the networks drawn for each depth, their width, and how many
DRAWN, DRAWN_WIDTH, DRAWS = {1: (2,), 2: (2, 1), 3: (2, 1, 1)}, 8, 10_000
OUTPUTS = (1, 2, 3)
# two layers of one head, both with a skip, and two outputs, at N = 8 k
COPIES, BASE = (1, 2, 4, 8), 8
SMALL: dict[str, Any] = {"heads": (1, 1), "residual": (True, True)}
LAYERS, WIDTH = (2, 3, 4, 5, 6), 10
CHAIN: dict[str, Any] = {"tokens": 30, "dim": 100, "sigma_perp": 0.5, "test_examples": 600}
TEMPERATURE = 0.1
# flip probabilities: three rates, and two rates and a chain that is mostly in +
CLASSES = {"on a line": (0.2, 0.5, 0.8), "not on a line": (0.3, 0.7, (0.2, 0.8))}
CLASS_WIDTHS = (10, 30, 100, 1000)
# widths, loads P/N and dimensions, of which None grows with N
RELU_WIDTHS, RELU_LOADS, RELU_DIMS = (10, 20, 40), (0.5, 2), (4, None)


def networks(seed: int, heads, residual: bool, outputs: int, count: int = DRAWS) -> np.ndarray:
    """Ũ `[count, ΠC, ΠC]` of networks drawn from the prior, by multiplying along every path.

    >>> networks(0, (2, 1), True, 2, count=3).shape
    (3, 12, 12)
    """
    rng, N = np.random.default_rng(seed), DRAWN_WIDTH
    rows = rng.standard_normal((count, outputs, N))
    for h in reversed(heads):
        V = rng.standard_normal((count, h, N, N))
        through = (rows[:, None] @ V / np.sqrt(N)).reshape(count, -1, N)
        rows = np.concatenate([rows, through], axis=1) if residual else through
    return rows @ rows.swapaxes(1, 2) / N


def hierarchy(seed: int, heads, residual: bool, outputs: int, count: int = DRAWS) -> np.ndarray:
    """The same from the chain of Wishart matrices, in its factor form.

    >>> hierarchy(0, (2, 1), True, 2, count=3).shape
    (3, 12, 12)
    """
    widths, skips = (DRAWN_WIDTH,) * (len(heads) + 1), (residual,) * len(heads)
    density = OrderParameter(tuple(heads), widths, skips, outputs)
    z = density.starts(jax.random.key(seed), count)
    return np.asarray(density.read(z[None], jnp.ones(()))[1][0])


def moments(U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of the entries of U and of their squares, and standard errors of both.

    >>> moments(np.ones((5, 2, 2)))[0].tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    entries = U[:, *np.tril_indices(U.shape[-1])]
    values = np.concatenate([entries, entries**2], axis=1)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def of_prior(depths=tuple(DRAWN), outputs=OUTPUTS, count: int = DRAWS) -> dict:
    """Largest distance of any moment, in standard errors, for every architecture."""
    found: dict[str, list] = {key: [] for key in ("L", "skips", "C", "moments", "apart")}
    for L in depths:
        for residual in (False, True):
            for C in outputs:
                setting = (DRAWN[L], residual, C, count)
                mean, error = moments(networks(1, *setting))
                wanted, spread = moments(hierarchy(2, *setting))
                apart = np.abs(mean - wanted) / np.hypot(error, spread)
                row = (L, residual, C, apart.size, apart.max())
                for key, each in zip(found, row, strict=True):
                    found[key].append(each)
    return found


def copies(k: int) -> tuple[Network, np.ndarray, np.ndarray]:
    """A network, inputs and labels of two outputs: k copies of six examples, in own dimensions.

    The action at k times the width is the same function for every k.

    >>> copies(3)[1].shape
    (18, 3, 6)
    """
    rng = np.random.default_rng(5)
    heads = [rng.normal(size=(2, 2)) for _ in range(2)]
    x, y = rng.normal(size=(6, 3, 2)), rng.normal(size=(6, 2))
    y += 2 * x[:, -1]
    many = np.sqrt(k) * np.einsum("ab,ptd->aptbd", np.eye(k), x).reshape(6 * k, 3, 2 * k)
    layers = [np.kron(np.eye(k), W)[None] / k for W in heads]
    return Network(layers, readout=-1, residual=True), many, np.tile(y, (k, 1))


def of_saddle(k: int, by_weights: bool, samples: int = 1500) -> dict:
    """The exact posterior mean of U by one sampler or both, and the theory's U."""
    network, x, y = copies(k)
    xi, N = network.features(x), BASE * k
    solved = theory.solve(xi, y, **SMALL, width=N, temperature=0.3)
    density = OrderParameter(SMALL["heads"], (N,) * 3, SMALL["residual"], y.shape[1])
    draws = chains(density, density.data(solved.problem), k, warmup=300, samples=samples)
    U = np.asarray(density.read(jnp.asarray(draws.z), jnp.ones(()))[1])
    mean, error = steady(U.reshape(*U.shape[:2], -1), draws)
    found = {"saddle": np.ravel(solved.U), "U": mean, "mcse": error}
    found["apart"] = distance(mean, error, found["saddle"])
    if by_weights:
        with warnings.catch_warnings():
            # a few divergences, as for the paper's networks; they are kept with the result
            warnings.simplefilter("ignore", posterior.DoubtfulSample)
            run = posterior.sample_weights(
                network, x, y, width=N, temperature=0.3, seed=k, acceptance=0.95, progress=False,
                samples=samples,
            )  # fmt: skip
        found |= {"weights": np.ravel(run.U), "weights_mcse": np.ravel(run.mcse)}
        found["weights_apart"] = distance(np.ravel(run.U), np.ravel(run.mcse), found["saddle"])
        found |= {"divergences": int(run.divergences.sum()), "rhat": float(np.max(run.rhat))}
    return found


def deep(seed: int, layers: int, residual: bool) -> tuple[markov.Task, Network]:
    """The chain, and one head a layer: good, random ones, counting.

    >>> task, network = deep(0, 4, True)
    >>> network.head_counts, network.paths
    ((1, 1, 1, 1), 16)
    """
    task = markov.make_task(seed, **CHAIN)
    few = {**CHAIN, "examples": 2, "test_examples": 2}
    between = [
        markov.make_task(1000 + 10 * seed + i, **few).network.heads[0][1:]
        for i in range(layers - 2)
    ]
    first, last = (layer[:1] for layer in task.network.heads)
    return task, Network([first, *between, last], readout=-1, residual=residual)


def of_depth(layers: int, residual: bool, seeds=SEEDS, width: int = WIDTH) -> dict:
    """Accuracies, and the shares of U's trace by the number of heads that a path goes through."""
    rows: list[dict] = []
    for seed in seeds:
        task, network = deep(seed, layers, residual)
        xi, new = network.features(task.train.x), network.features(task.test.x)
        setting = {"heads": network.head_counts, "residual": residual, "temperature": TEMPERATURE}
        learned = theory.solve(xi, task.train.y, width=width, **setting)
        limit = theory.gp_limit(xi, task.train.y, **setting)
        names = paths.paths(network.head_counts, residual=network.residual)
        passed = np.array([sum(way > 0 for way in path) for path in names])
        strength = np.diag(np.asarray(learned.U))
        good = names.index((1, *[0] * (layers - 2), 1)) if residual else 0
        rows.append(
            {
                "share": [strength[passed == k].sum() / strength.sum() for k in range(layers + 1)],
                "good": strength[good] / strength.sum(),
                "rank": int(np.sum(strength > strength[good])) + 1,
                "strength": strength.mean(),
                "accuracy": float(learned.predict(new).accuracy(task.test.y)),
                "GP": float(limit.predict(new).accuracy(task.test.y)),
                "converged": bool(learned.converged),
            }
        )
    return {key: [row[key] for row in rows] for key in rows[0]}


def of_classes(flips, widths=CLASS_WIDTHS, seeds=SEEDS) -> dict:
    """Three classes: accuracies of all outputs together, of each alone and of the GP; and U."""
    rows: list[dict] = []
    for seed in seeds:
        task = markov.make_task(seed, p_flip=flips, examples=120, **CHAIN)
        xi, new = (task.network.features(s.x) for s in (task.train, task.test))
        y, labels = task.train.y, np.asarray(task.test.y)
        setting = {"heads": task.network.head_counts, "temperature": TEMPERATURE}
        together = [theory.solve(xi, y, width=N, **setting) for N in widths]
        alone = [
            [theory.solve(xi, y[:, c], width=N, **setting) for c in range(y.shape[1])]
            for N in widths
        ]
        means = [np.asarray(each.predict(new).mean) for each in together]
        apart = [np.stack([t.predict(new).mean for t in each], axis=1) for each in alone]
        limit = np.asarray(theory.gp_limit(xi, y, **setting).predict(new).mean)
        rows.append(
            {
                "together": [accuracy(mean, labels) for mean in means],
                "alone": [accuracy(mean, labels) for mean in apart],
                "GP": accuracy(limit, labels),
                "recall": recall(means[0], labels),
                "differ": np.mean(np.argmax(means[0], 1) != np.argmax(apart[0], 1)),
                "U": together[0].U,
                "U alone": [t.U for t in alone[0]],
            }
        )
    return {key: [row[key] for row in rows] for key in rows[0]}


def accuracy(mean, y) -> float:
    """The share of examples whose largest output is that of their class.

    >>> accuracy(np.eye(2), np.eye(2)[::-1])
    0.0
    """
    return float(np.mean(np.argmax(mean, axis=1) == np.argmax(y, axis=1)))


def recall(mean, y) -> list[float]:
    """The same, of the examples of each class.

    >>> recall(np.eye(2), np.array([[1, -1], [1, -1]]))[0]
    0.5
    """
    kind = np.argmax(y, axis=1)
    return [accuracy(mean[kind == c], y[kind == c]) for c in np.unique(kind)]


def parts() -> dict:
    """Every part of the study, with the function that computes it."""
    result: dict[str, Any] = {"prior": of_prior}
    result |= {f"saddle, {k}": partial(of_saddle, k, by_weights=k <= 4) for k in COPIES}
    for L in LAYERS:
        for residual in (False, True):
            result[f"depth, {L}, {residual}"] = partial(of_depth, L, residual)
    result |= {f"classes, {name}": partial(of_classes, p) for name, p in CLASSES.items()}
    result |= {f"images, {name}": partial(images.of_images, name) for name in images.NETWORKS}
    result["relu, both ways"] = relu.both_ways
    for N in RELU_WIDTHS:
        for dim in RELU_DIMS:
            # the linear network, as a control, where few directions meet many examples
            for kind in ("relu", "linear") if dim else ("relu",):
                for load in RELU_LOADS if kind == "relu" else RELU_LOADS[-1:]:
                    name = f"{kind}, N = {N}, P/N = {load:g}, D = {dim or 'N'}"
                    result[name] = partial(relu.compare, kind, N, load, dim or N)
    return result


if __name__ == "__main__":
    collect("open", parts(), seeds=SEEDS)
