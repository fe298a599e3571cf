"""Problems that are hard on purpose: `theory.solve` on random ones of many shapes and sizes.

What says that it converged is judged three times. `hostile_judge` evaluates the gradient of the
paper's action with fifty digits. Labels without what no path reaches must give the same U. And the
minimiser goes again from random starts, none of which may end lower unless `Theory.starts` says
that there may be several minima.
"""

import sys
import warnings

import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from attnpaths import theory
from attnpaths.network.ways import Ways
from attnpaths.theory import solver
from benchmarks.hostile_judge import relative_gradient

#: Numbers of heads, layers with a skip, outputs, examples and dimension.
SHAPES = (
    ((1,), False, None, 1, 1),
    ((2,), False, None, 3, 2),
    ((1, 1, 1), False, None, 5, 2),
    ((2, 2), False, None, 6, 3),
    ((2,), True, None, 5, 2),
    ((2,), False, 2, 4, 2),
    ((2, 1), False, None, 9, 2),
    ((1, 1, 1, 1), False, None, 4, 3),
    ((1, 1), (True, False), 2, 4, 2),
    ((3,), False, None, 8, 4),
    ((2, 1, 2), False, None, 7, 2),
    ((1, 2), (False, True), None, 6, 2),
)
#: What a relative gradient and an action may be off.
LARGEST, APART = 1e-6, 1e-6
WRONG = ("false", "moved", "higher", "nan", "unclear")
KINDS = ("tried", *WRONG, "refused", "unconverged", "projected", "several", "higher, as said")


def draw(rng, shape):
    """A problem from anywhere: xi, y and the setting."""
    heads, residual, outputs, examples, dim = shape
    skips = (residual,) * len(heads) if isinstance(residual, bool) else residual
    paths = Ways(heads, skips).paths
    xi = rng.normal(size=(examples, paths, dim)) * 10.0 ** rng.uniform(-3, 2)
    match rng.integers(8):
        case 0:
            # examples twice
            xi = xi[rng.integers(max(1, examples // 2), size=examples)]
        case 1:
            # few directions for all examples and paths
            flat = xi.reshape(examples, -1)
            xi = (flat[:, :1] * rng.normal(size=(1, paths * dim))).reshape(xi.shape)
        case 2:
            # paths that are nearly equal
            xi = xi[:, :1] + 10.0 ** rng.uniform(-8, -1) * xi
        case 3:
            # paths of different strength
            xi *= 10.0 ** rng.uniform(-3, 3, size=(1, paths, 1))
        case 4:
            # a path, or all of them, without any input
            xi[:, rng.integers(paths)] = 0
    y = rng.normal(size=(examples,) if outputs is None else (examples, outputs))
    match rng.integers(5):
        case 0:
            y = np.sign(y)
        case 1:
            y *= 10.0 ** rng.uniform(-3, 5)
        case 2:
            # one label in reach, and a large one that is not
            y[0] *= 10.0 ** rng.uniform(0, 4)
        case 3:
            y *= 10.0 ** rng.uniform(-1, 2)
    setting = {"heads": heads, "residual": residual}
    setting |= {"width": 1.0 if rng.random() < 0.1 else 10.0 ** rng.uniform(0, 6)}
    setting |= {"temperature": 10.0 ** rng.uniform(-8, 2)}
    setting |= {"prior_variance": 10.0 ** rng.uniform(-3, 2) if rng.random() < 0.5 else 1.0}
    return xi, y, setting


def elsewhere(rng, ways):
    """Random factors: some small, some large, all mixed."""
    common, spread = rng.uniform(-3, 5), rng.uniform(0, 2)
    found = []
    for size, fixed in ways.levels:
        B = np.tril(rng.normal(size=(size, size)), -1) + np.diag(
            np.exp(spread * rng.normal(size=size))
        )
        B *= np.exp(common / (2 * len(ways.levels)))
        B[:fixed] = np.eye(size)[:fixed]
        found.append(jnp.asarray(B))
    return tuple(found)


def drop(found, rng, count):
    """How far below a solution the lowest of so many random starts ends, beside its own action."""
    problem, ways = found.problem, found.problem.ways
    data, spectrum, near = solver.prepare(problem)
    # the value leaves out what no path reaches, and may be far larger than all else
    _, end = solver.minimum(problem, found.width, data, spectrum, near)
    value, lowest = float(end.value), float(end.value)
    for _ in range(count):
        guess = 2 * jnp.eye(len(near.hessian))
        start = solver.Near(elsewhere(rng, ways), guess, jnp.array(False))
        other, end = solver.minimum(problem, found.width, data, spectrum, start)
        if other.converged:
            lowest = min(lowest, float(end.value))
    return (value - lowest) / max(1.0, abs(value))


def moved(found, setting):
    """How far U moves, beside its size, if labels lose what no path reaches; None if nothing."""
    xi, y = np.asarray(found.xi), np.asarray(found.y)
    basis, values, _ = np.linalg.svd(xi.reshape(len(xi), -1), full_matrices=False)
    basis = basis[:, values > 1e-13 * values[0]]
    if basis.shape[1] == len(y):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (RuntimeWarning, UserWarning))
        other = theory.solve(xi, basis @ (basis.T @ y), **setting)
    if not other.converged or other.starts > 1:
        return None
    return float(np.max(np.abs(found.U - other.U)) / np.max(np.abs(other.U)))


def run(count, seed, shapes=SHAPES, starts=2, report=lambda: None):
    """How many of each kind, and what was wrong: number, kind and size."""
    counts, wrong = dict.fromkeys(KINDS, 0), []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        xi, y, setting = draw(rng, shapes[number % len(shapes)])
        counts["tried"] += 1
        for kind, what in judged(xi, y, setting, rng, starts).items():
            counts[kind] += 1
            if kind in WRONG:
                wrong.append(f"problem {number} of seed {seed}: {kind}, {what}")
        report()
    return counts, wrong


def judged(xi, y, setting, rng, starts):
    """What there is to say of one problem, by kind."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = theory.solve(xi, y, **setting)
        except ValueError as error:
            clear = "too large beside the temperature" in str(error)
            return {"refused": ""} if clear else {"unclear": repr(error)}
        except Exception as error:
            return {"unclear": repr(error)}
    if not found.converged:
        warned = any("did not converge" in str(each.message) for each in said)
        return {"unconverged": ""} | ({} if warned else {"unclear": "no warning"})
    numbers = [np.ravel(leaf) for leaf in (*found.levels, found.action, found.energy)]
    if not np.isfinite(np.concatenate(numbers)).all():
        return {"nan": ""}
    result = {"several": int(found.starts)} if found.starts > 1 else {}
    if not (gradient := relative_gradient(found)) <= LARGEST:
        result["false"] = gradient
    if found.starts == 1 and (distance := moved(found, setting)) is not None:
        result["projected"] = ""
        if not distance <= LARGEST:
            result["moved"] = distance
    if starts and (lower := drop(found, rng, starts)) > APART:
        result["higher" if found.starts == 1 else "higher, as said"] = lower
    return result


def main(count=10_000, seed=0):
    """All of them, with what was wrong."""
    with tqdm(total=count, unit="problem") as bar:
        counts, wrong = run(count, seed, report=bar.update)
    print(counts, *wrong, sep="\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
