"""How long the explorer takes to answer in a notebook, beside one bare `solve`."""

import statistics
import time

import numpy as np

from attnpaths import theory
from attnpaths.explorer import answers as explorer
from benchmarks.timing import milliseconds, paper_problem, table

CHANGES = 9


def timed(setting):
    """Seconds to the first answer, of one drawn task, and to the mean of all, without the curve."""
    start = time.perf_counter()
    for answer in explorer.answers(setting):
        took = time.perf_counter() - start
        if answer["seeds"] == 1:
            first = took
        if answer["seeds"] == len(explorer.SEEDS):
            return first, took
    raise RuntimeError("the explorer did not answer from all seeds")


def changes(name, rng):
    """Times for a walk that changes one control at a time, each value a new one."""
    stops = [stop for stop in explorer.FINE_STOPS[name] if stop != explorer.START[name]]
    values = rng.choice(stops, CHANGES, replace=False)
    return [timed(explorer.START | {name: value}) for value in values]


def report():
    """Median time of an answer to a change of each control."""
    xi, y, setting = paper_problem()
    _, bare, _ = milliseconds(lambda: theory.solve(xi, y, width=10, **setting).U)
    rng = np.random.default_rng(0)
    for stop in explorer.STOPS["tokens"]:
        # one compilation for each ten tokens
        next(explorer.answers(explorer.START | {"tokens": stop}))
    list(explorer.answers(explorer.START))
    rows = []
    for name in ("width", "temperature", "tokens", "sigma_perp"):
        first, whole = zip(*changes(name, rng), strict=True)
        rows.append(
            [
                name,
                f"{1e3 * statistics.median(first):.0f} ms",
                f"{1e3 * statistics.median(whole):.0f} ms",
                f"{1e3 * statistics.median(first) / bare:.0f}",
            ]
        )
    seeds = len(explorer.SEEDS)
    head = ["change of", "first answer", f"mean of {seeds} drawn tasks", "first, in solves"]
    return (
        f"**The explorer in a notebook**: median over {CHANGES} new values of each control, after "
        f"compiling; one `solve` (N = 10, P = 100) takes {bare:.1f} ms in the same run\n\n"
        + table(head, rows)
    )


if __name__ == "__main__":
    print(report())
