"""How time and peak memory of `solve` grow with examples and with paths, and how near it is to
what its evaluations must cost: a Cholesky factor and the product that makes a kernel, each."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

EXAMPLES = [(p, (2, 2), 600) for p in (100, 200, 500, 1000, 2000)]
PATHS = [(100, h, 60) for h in ((2, 2), (4, 2), (4, 4), (8, 4), (8, 8))]
FLOOR = [(600, (2, 2), 600), (1000, (2, 2), 600), (2000, (2, 2), 600), (600, (4, 4), 192)]


def measure(examples, heads, dim):
    """One solve in this process: seconds, evaluations, and mebibytes beyond the data.

    Beside it a Cholesky factor with the product of width ΠD that makes a kernel from ξ, or with a
    product of two P × P matrices; and the kernels of all pairs of paths, which are made once.
    """
    import jax

    from attnpaths import theory
    from attnpaths.theory import solver
    from benchmarks.timing import milliseconds

    paths = int(np.prod(heads))
    rng = np.random.default_rng(0)
    y = np.where(np.arange(examples) % 2, 1.0, -1.0)
    direction = rng.standard_normal((paths, dim)) / np.sqrt(dim)
    xi = rng.standard_normal((examples, paths, dim)) + y[:, None, None] * direction
    xi = jax.block_until_ready(jax.numpy.asarray(xi))
    before = _status("VmRSS")
    repeats = 3 if examples > 1000 else 9
    result, time, _ = milliseconds(
        lambda: theory.solve(xi, y, heads=heads, width=100, temperature=0.1), repeats=repeats
    )
    assert result.converged
    peak = _status("VmHWM") - before
    matrix = jax.jit(lambda a: a @ a.T / examples + jax.numpy.eye(examples))(xi[:, 0])
    flat = xi.reshape(examples, -1)
    _, prepared, _ = milliseconds(lambda: solver.prepare(result.problem), repeats=repeats)
    _, cholesky, _ = milliseconds(lambda: jax.numpy.linalg.cholesky(matrix))
    _, wide, _ = milliseconds(lambda: flat @ flat.T)
    _, square, _ = milliseconds(lambda: matrix @ matrix)
    evaluations = int(result.evaluations)
    return {
        "seconds": time / 1e3,
        "prepared": prepared / 1e3,
        "wide": evaluations * (cholesky + wide) / 1e3,
        "square": evaluations * (cholesky + square) / 1e3,
        "evaluations": evaluations,
        "products": int(result.hessian_products),
        "mebibytes": peak,
    }


def _status(field):
    """Memory of this process in mebibytes, as Linux counts it, now or at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(field + ":")]
    return int(line.split()[1]) / 1024


def _in_its_own_process(case):
    command = [sys.executable, "-m", "benchmarks.growth", json.dumps(case)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def report():
    """Two tables with the exponents of power laws fitted to the larger half of each."""
    from benchmarks.timing import table

    parts = []
    for name, cases, size in (
        ("P", EXAMPLES, lambda case: case[0]),
        ("paths", PATHS, lambda case: int(np.prod(case[1]))),
    ):
        results = [_in_its_own_process(case) for case in cases]
        sizes = [size(case) for case in cases]
        slopes = {
            key: np.polyfit(
                np.log(sizes[-3:]),
                np.log([r[key] for r in results[-3:]]),
                1,
            )[0]
            for key in ("seconds", "mebibytes")
        }
        rows = [
            [
                n,
                f"{r['seconds']:.3f} s",
                f"{r['mebibytes']:.0f} MiB",
                r["evaluations"],
                r["products"],
            ]
            for n, r in zip(sizes, results, strict=True)
        ]
        fixed = "4 paths, D = 600" if name == "P" else "P = 100, D = 60"
        parts.append(
            f"**Growth with {name}** ({fixed}, N = 100, 𝒯 = 0.1; over the last three rows "
            f"time grows like {name}^{slopes['seconds']:.1f}, "
            f"memory like {name}^{slopes['mebibytes']:.1f})\n\n"
            + table(
                [name, "time", "peak memory (with compiling)", "evaluations", "Hessian products"],
                rows,
            )
        )
    return "\n\n".join([*parts, _floors()])


def _floors():
    from benchmarks.timing import table

    rows = []
    for case in FLOOR:
        found = _in_its_own_process(case)
        seconds = found["seconds"]
        rows.append(
            [
                case[0],
                int(np.prod(case[1])),
                f"{seconds:.2f} s",
                f"{found['prepared']:.2f} s",
                found["evaluations"],
                f"{found['wide']:.2f} s",
                f"{seconds / found['wide']:.1f}",
                f"{seconds / found['square']:.1f}",
            ]
        )
    head = ["P", "paths", "`solve`", "of it kernels", "evaluations", "floor", "ratio"]
    return (
        "**`solve` beside its floor**, which is its evaluations × (Cholesky + the product of width "
        "ΠD that makes a kernel from ξ), at most 2.5 times which is wanted; in the last column the "
        "product is that of two P × P matrices (N = 100, 𝒯 = 0.1)\n\n"
        + table([*head, "ratio, P × P"], rows)
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        examples, heads, dim = json.loads(sys.argv[1])
        print(json.dumps(measure(examples, tuple(heads), dim)))
    else:
        print(report())
