"""How long `import attnpaths` takes, beside `import jax` alone."""

import re
import statistics
import subprocess
import sys

from benchmarks.timing import table

REPEATS = 9
LIMIT = 1.3


def seconds(module):
    """What `python -X importtime` says of one import, in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", f"import {module}"],
        capture_output=True,
        text=True,
        check=True,
    )
    (found,) = re.findall(rf"\|\s+(\d+) \| {module}$", run.stderr, re.MULTILINE)
    return int(found) / 1e6


def report():
    """Medians of imports that take turns, and their ratio."""
    times = {"jax": [], "attnpaths": []}
    for _ in range(REPEATS):
        for module, found in times.items():
            found.append(seconds(module))
    medians = {module: statistics.median(found) for module, found in times.items()}
    rows = [[f"`import {module}`", f"{took:.2f} s"] for module, took in medians.items()]
    ratio = medians["attnpaths"] / medians["jax"]
    return (
        f"**Importing the library** takes {ratio:.2f} times as long as importing JAX alone "
        f"(medians of {REPEATS} processes each, in turns; at most {LIMIT} is wanted)\n\n"
        + table(["", "`python -X importtime`"], rows)
    )


if __name__ == "__main__":
    print(report())
