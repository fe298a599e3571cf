"""Theory against sampling on the hidden Markov chain: `python -m book.studies.sampling.run`.

- `exact, N = …` and `weights, N = …`: both samplers on the paper's task with four paths;
  `pair exact, …` and `pair weights, …`: the same for the two-path network in strong noise.
- `calibration`: ranks of true order parameters among posterior draws.
- `authors`: what the authors' own sampler gave.

About three quarters of an hour on one core.
"""

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attnpaths import kernels, posterior, theory
from attnpaths.tasks.markov import paper_task
from book.studies import authors
from book.studies.engine import collect

TEMPERATURE = 0.01
WIDTHS = (4, 10, 30, 100, 300)
NARROW = (1, 2, 3)
# chains, warm-up steps, steps and thinning for `sample_weights`: as long as patience allows
LENGTHS = {
    4: (2, 300, 500, 1),
    10: (2, 300, 500, 1),
    30: (2, 200, 400, 1),
    100: (2, 150, 250, 1),
    300: (2, 100, 100, 1),
}
PAIR_LENGTHS = {10: (2, 200, 300, 1), 100: (2, 150, 150, 1)}
SHOWN = slice(20, None, 40)  # test examples whose predictor is kept, of both classes
# simulation-based calibration: heads, width, temperature, examples, data sets, draws of each
CALIBRATION = ((2, 2), 5, 0.2, 10, 400, 99)


def apart(ours, theirs) -> float:
    """Distance relative to the size of the second, ‖a − b‖/‖b‖.

    >>> apart([3.0, 4.0], [0.0, 4.0])
    0.75
    """
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def spread(draws, statistic) -> float:
    """Monte Carlo standard error of a statistic of the mean of `draws [chains, samples, ...]`.

    By a bootstrap over ten stretches of each chain, as `PosteriorPrediction.accuracy_mcse`.

    >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
    >>> bool(0.7 < spread(draws, float) * np.sqrt(4000) < 1.3)
    True
    """
    pieces = np.array_split(np.asarray(draws), 10, axis=1)
    means = np.concatenate([piece.mean(axis=1) for piece in pieces])
    rng = np.random.default_rng(0)
    picks = rng.integers(len(means), size=(300, len(means)))
    return float(np.std([statistic(means[pick].mean(axis=0)) for pick in picks]))


def compare(result: posterior.Posterior, test, labels) -> dict:
    """All that the page shows of one run, beside the theory's answer to the same question."""
    saddle = theory.solve(
        result.xi,
        result.y,
        heads=result.heads,
        width=result.width,
        temperature=result.temperature,
    )
    prediction, wanted = result.predict(test), saddle.predict(test)
    kept = {
        "U": result.U,
        "U_mcse": result.mcse,
        "U_sd": np.std(np.asarray(result.draws), axis=(0, 1)),
        "U_apart": apart(result.U, saddle.U),
        "U_apart_mcse": spread(result.draws, lambda U: apart(U, saddle.U)),
        "f": prediction.mean[SHOWN],
        "f_mcse": prediction.mcse[SHOWN],
        "f_apart": apart(prediction.mean, wanted.mean),
        "f_apart_mcse": spread(prediction.draws, lambda f: apart(f, wanted.mean)),
        "variance": jnp.mean(prediction.variance),
        "accuracy": prediction.accuracy(labels),
        "accuracy_mcse": prediction.accuracy_mcse(labels),
        "rhat": np.max(result.rhat),
        "ess": np.min(result.ess_bulk),
        "divergences": int(result.divergences.sum()),
        "bfmi": np.min(result.bfmi),
        "leapfrogs": np.mean(result.leapfrogs),
        "chains": result.draws.shape[0],
        "samples": result.draws.shape[1],
        "doubts": list(result.doubts),
    }
    if result.weights is not None:
        outputs = np.asarray(result.outputs(test)).mean(axis=(0, 1))
        kept["accuracy_of_outputs"] = np.mean(np.sign(outputs) == np.asarray(labels))
    return kept


def exact(task, width: int) -> dict:
    """The exact posterior of the order parameter, with the default lengths.

    A network with one unit has signs to change, and valleys between them: smaller steps.
    """
    result = posterior.sample_order_parameter(
        task.network.features(task.train.x),
        task.train.y,
        heads=task.network.head_counts,
        width=width,
        temperature=TEMPERATURE,
        seed=0,
        acceptance=0.9 if width > 1 else 0.99,
        progress=False,
    )
    return compare(result, task.network.features(task.test.x), task.test.y)


def weights(task, width: int, lengths) -> dict:
    """All weights by NUTS; doubts are kept with the result."""
    chains, warmup, samples, thinning = lengths
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", posterior.DoubtfulSample)
        result = posterior.sample_weights(
            task.network,
            task.train.x,
            task.train.y,
            width=width,
            temperature=TEMPERATURE,
            seed=1,
            chains=chains,
            warmup=warmup,
            samples=samples,
            thinning=thinning,
            acceptance=0.8,
            progress=False,
        )
    return compare(result, task.network.features(task.test.x), task.test.y)


def calibration() -> dict:
    """Counts, in ten bins, of the rank of the true U among draws given data made from it."""
    heads, width, temperature, examples, runs, kept = CALIBRATION
    xi = jax.random.normal(jax.random.key(0), (examples, int(np.prod(heads)), 3))
    density = posterior.OrderParameter(heads, (width,) * (len(heads) + 1))
    truths = density.read(density.starts(jax.random.key(1), runs)[None], jnp.ones(()))[1][0]
    rng = np.random.default_rng(0)
    ranks = []
    for seed, truth in enumerate(np.asarray(truths)):
        covariance = kernels.total_kernel(truth, xi) + temperature * np.eye(examples)
        y = rng.multivariate_normal(np.zeros(examples), covariance)
        with warnings.catch_warnings():
            # one short chain for each data set; their ranks are judged together
            warnings.simplefilter("ignore", posterior.DoubtfulSample)
            draws = posterior.sample_order_parameter(
                xi,
                y,
                heads=heads,
                width=width,
                temperature=temperature,
                seed=seed,
                chains=1,
                warmup=150,
                samples=5 * kept,
                thinning=5,
                progress=False,
            ).draws[0]
        statistics = [_statistics(U) for U in (np.asarray(draws), truth)]
        ranks.append([np.sum(of[0] < of[1]) for of in zip(*statistics, strict=True)])
    names = ("strength of a path", "tie of two paths", "size of U", "volume of U")
    return {
        name: np.histogram(each, bins=10, range=(0, kept + 1))[0]
        for name, each in zip(names, np.transpose(ranks), strict=True)
    }


def _statistics(U):
    trace = np.trace(U, axis1=-2, axis2=-1)
    return U[..., 0, 0], U[..., 0, 1], trace, np.linalg.slogdet(U)[1]


def published() -> dict:
    """What the authors' own sampler gave: one chain at N = 10."""
    found = authors.read("sampler")
    return {"width": 10} | {key: found[key] for key in ("draws", "accuracy", "U")}


def parts() -> dict:
    """Every part of the study, with the function that computes it."""
    task = paper_task()
    pair = paper_task(sigma_perp=5, paths="good+denoising")
    result = {"authors": published}
    result |= {f"exact, N = {N}": partial(exact, task, N) for N in (*WIDTHS, *NARROW)}
    result["calibration"] = calibration
    result |= {f"weights, N = {N}": partial(weights, task, N, LENGTHS[N]) for N in WIDTHS}
    result |= {f"pair exact, N = {N}": partial(exact, pair, N) for N in WIDTHS}
    result |= {
        f"pair weights, N = {N}": partial(weights, pair, N, lengths)
        for N, lengths in PAIR_LENGTHS.items()
    }
    return result


if __name__ == "__main__":
    collect("sampling", parts(), seeds=(0, 1))
