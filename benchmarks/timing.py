"""How everything here is timed: after compiling, as the median of several calls."""

import statistics
import time

import jax

from attnpaths.tasks import markov


def milliseconds(call, repeats=9):
    """The result of `call`, its median time and its first time, which includes compiling."""
    start = time.perf_counter()
    result = jax.block_until_ready(call())
    first = time.perf_counter() - start
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - start)
    return result, 1e3 * statistics.median(times), 1e3 * first


def paper_problem():
    """The paper's hidden-Markov-chain problem: ξ [100, 4, 231], y and the setting but for N."""
    task = markov.paper_task()
    xi = jax.block_until_ready(task.network.features(task.train.x))
    return xi, task.train.y, {"heads": task.network.head_counts, "temperature": 0.01}


def table(head, rows):
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
