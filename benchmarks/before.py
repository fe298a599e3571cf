"""This code beside that of the first version, on the same problems, in one run.

    python -m benchmarks.before

takes the first version's library from the history of this repository, into a temporary folder.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np

from book.studies.oneshot.theory import TEMPERATURES, WIDTHS

#: The last commit of the first version.
FIRST = "12964bc"
HERE = Path(__file__).parent.parent
GRID = {"widths": list(WIDTHS), "temperatures": list(TEMPERATURES)}
CASES = {
    "images, P = 600, 16 paths: 10 × 10 grid": {"images": 600, "heads": [4, 4], **GRID},
    "P = 2000, 4 paths: `solve`": {"examples": 2000, "heads": [2, 2], "dim": 600},
    "P = 300, 169 paths: `solve`": {"examples": 300, "heads": [13, 13], "dim": 60},
}

WORKER = """
import json, sys, time
from pathlib import Path
import jax, numpy as np
from attnpaths import theory

case = json.loads(sys.argv[1])
arrays = np.load(sys.argv[2])
xi, y, heads = jax.numpy.asarray(arrays["xi"]), arrays["y"], tuple(case["heads"])

def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return [int(line.split()[1]) / 1024 for line in lines if line.startswith(field + ":")][0]

def call():
    if "images" in case:
        axes = {name: case[name] for name in ("widths", "temperatures")}
        grid = theory.sweep(xi, y, heads=heads, **axes, progress=False)
        widths, temperatures = (range(len(each)) for each in axes.values())
        return [grid[i, j] for i in widths for j in temperatures]
    return [theory.solve(xi, y, heads=heads, width=100, temperature=0.1)]

before, seconds = status("VmRSS"), []
for _ in range(2):
    start = time.perf_counter()
    points = call()
    found = jax.block_until_ready([each.U for each in points])
    seconds.append(time.perf_counter() - start)
    if seconds[-1] > 120:
        break
print(json.dumps({
    "first": seconds[0], "seconds": seconds[-1], "mebibytes": status("VmHWM") - before,
    "evaluations": sum(int(each.evaluations) for each in points),
    "converged": all(bool(each.converged) for each in points),
    "U": np.asarray(found).ravel().tolist(),
}))
"""


def problem(case):
    """ξ and labels: of the paper's images with untrained heads, or random with a signal."""
    if "images" in case:
        from benchmarks import oneshot

        _, xi, y, heads = oneshot.problem()
        assert tuple(heads) == tuple(case["heads"]) and len(y) == case["images"]
        return np.asarray(xi), np.asarray(y)
    rng, paths = np.random.default_rng(0), int(np.prod(case["heads"]))
    y = np.where(np.arange(case["examples"]) % 2, 1.0, -1.0)
    direction = rng.standard_normal((paths, case["dim"])) / np.sqrt(case["dim"])
    xi = rng.standard_normal((case["examples"], paths, case["dim"]))
    return xi + y[:, None, None] * direction, y


def unpack(folder):
    """The first version's library, from the history."""
    run = subprocess.run(
        ["git", "archive", FIRST, "attnpaths"], cwd=HERE, capture_output=True, check=False
    )
    if run.returncode:
        raise SystemExit(
            f"the first version, commit {FIRST}, is not in this repository's history; clone it "
            f"whole (git said: {run.stderr.decode().strip()})"
        )
    with tarfile.open(fileobj=io.BytesIO(run.stdout)) as archive:
        archive.extractall(folder, filter="data")
    # what the first version needed and this one does not
    install = ["install", "--quiet", "--no-deps", "--target", str(folder), "threadpoolctl"]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)


def measure(code, case, arrays):
    """What the worker says of a case, with the library in `code`."""
    # the machinery of pages may be installed beside; only the library is taken from `code`
    run = subprocess.run(
        [sys.executable, "-c", WORKER, json.dumps(case), arrays],
        env=os.environ | {"PYTHONPATH": str(code)},
        cwd=code,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


def report():
    """A row for each case: both times, their ratio, and the memory."""
    from benchmarks.timing import table

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "first"
        unpack(first)
        for name, case in CASES.items():
            arrays = str(Path(folder) / "arrays.npz")
            xi, y = problem(case)
            np.savez(arrays, xi=xi, y=y)
            then, now = (measure(code, case, arrays) for code in (first, HERE))
            assert now["converged"]
            apart = np.abs(np.subtract(then["U"], now["U"])).max() / np.abs(now["U"]).max()
            each = [one["seconds"] / one["evaluations"] for one in (then, now)]
            rows.append(
                [
                    name,
                    f"{then['seconds']:.1f} s",
                    f"{now['seconds']:.1f} s",
                    f"{then['seconds'] / now['seconds']:.1f}",
                    f"{each[0] / each[1]:.1f}",
                    f"{then['mebibytes']:.0f} MiB",
                    f"{now['mebibytes']:.0f} MiB",
                    f"{apart:.0e}",
                ]
            )
    head = ["", "first version", "now", "ratio", "ratio per evaluation", "peak memory, first"]
    return (
        f"**Beside the first version** (commit {FIRST}, on the same problems in one run; compiling "
        "not counted in times below two minutes; the last column is the largest difference of an "
        "entry of U, relative to the largest entry)\n\n" + table([*head, "now", "difference"], rows)
    )


if __name__ == "__main__":
    print(report())
