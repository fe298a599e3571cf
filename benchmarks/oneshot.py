"""The one-shot images at the paper's size: the whole sweep, and a step of training.

    python -m benchmarks.oneshot

uses Omniglot where it is at hand, and the built-in glyphs where not.
"""

import statistics
import time
import warnings

import jax
import numpy as np
import torch

from attnpaths import theory
from attnpaths.tasks import images as image_sources
from attnpaths.tasks import oneshot
from attnpaths.theory.adam import LEARNING_RATES
from attnpaths.training.model import Model
from benchmarks.timing import table
from book.studies.oneshot.theory import TEMPERATURES, WIDTHS

SIZES = {"layers": 2, "heads": 4, "key_dim": 128, "width": 512}
# Adam runs at one point in the middle of the grid, at a rate that suits it
WIDTH, TEMPERATURE, RATE = 100, 0.5, 0.1
STEPS, TRIALS = 200, 10 * len(LEARNING_RATES)
NEAR = 1e-9
BATCH, REPEATS = 128, 5


def source():
    """The paper's images if they are here, or the glyphs."""
    name = "omniglot" if image_sources.available("omniglot") else "glyphs"
    return image_sources.load(name, progress=False)


def problem():
    """The images, ξ of the paper's 600 sequences, seen by untrained heads, labels, and heads."""
    images = source()
    network, _ = Model(**SIZES, seed=0).export()
    task = oneshot.make_task(0, source=images, test_examples=2, out_of_distribution=())
    xi = jax.block_until_ready(network.features(task.train.x))
    return images, xi, task.train.y, network.head_counts


def timed_sweep(xi, y, heads):
    """The paper's grid and its seconds, with all that has to be compiled."""
    start = time.perf_counter()
    setting = {"heads": heads, "widths": WIDTHS, "temperatures": TEMPERATURES}
    grid = theory.sweep(xi, y, **setting, progress=False)
    jax.block_until_ready(grid[0, 0].U)
    return grid, time.perf_counter() - start


def adam(xi, y, heads, lowest):
    """Seconds of an Adam step, and how many it takes to come within 1e-9 of the lowest action.

    The gap to the minimum is followed for 200 steps; from how it shrank in the second hundred,
    the rest is extrapolated.
    """
    setting = {"heads": heads, "width": WIDTH, "temperature": TEMPERATURE, "learning_rate": RATE}
    gaps, seconds = [], 0.0
    with warnings.catch_warnings():
        # it is meant to stop early
        warnings.simplefilter("ignore", RuntimeWarning)
        theory.solve_adam(xi, y, steps=1, **setting)
        for steps in (STEPS // 2, STEPS):
            start = time.perf_counter()
            stopped = jax.block_until_ready(theory.solve_adam(xi, y, steps=steps, **setting))
            seconds = time.perf_counter() - start
            # the gap itself is rounding once it is closed
            gaps.append(max(float(stopped.action) - lowest, NEAR / 10))
    shrinking = np.log(gaps[0] / gaps[1]) / (STEPS / 2)
    left = np.log(gaps[1] / NEAR) / shrinking if shrinking > 0 else 0.0
    return seconds / STEPS, STEPS + max(left, 0.0), gaps


def training_steps(images):
    """Median seconds of a step of training, layer by layer and in the order of `training`."""
    encoder = oneshot.Encoder(images)
    batches = [oneshot.draw(images, BATCH, seed=i) for i in range(REPEATS + 1)]
    codes = torch.from_numpy(encoder.codes)
    orders = {
        "layer by layer": lambda model, b: model.layered(torch.from_numpy(encoder(b))),
        "paths before weights": lambda model, b: model.from_pixels(
            torch.from_numpy(encoder.pixels(b)), torch.from_numpy(b.orders), codes
        ),
    }
    found = {}
    for name, forward in orders.items():
        model = Model(**SIZES, seed=0)
        optimiser = torch.optim.Adam(model.parameters(), lr=3e-4)
        times, losses = [], []
        for batch in batches:
            start = time.perf_counter()
            optimiser.zero_grad(set_to_none=True)
            f = forward(model, batch)
            loss = (f - torch.from_numpy(batch.y).to(f.dtype)).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
            times.append(time.perf_counter() - start)
        # the first step warms up
        found[name] = statistics.median(times[1:]), losses
    return found


def report():
    """Both tables, with what they were measured on."""
    images, xi, y, heads = problem()
    grid, seconds = timed_sweep(xi, y, heads)
    points = grid.evaluations.size
    lowest = grid[WIDTHS.index(WIDTH), TEMPERATURES.index(TEMPERATURE)].action
    step, needed, gaps = adam(xi, y, heads, float(lowest))
    recipe = points * (TRIALS + needed) * step
    theory_rows = [
        [
            "`sweep`",
            f"{seconds / 60:.1f} min",
            f"{grid.evaluations.mean():.1f}",
            f"{grid.gradient_norm.max():.0e}",
        ],
        [
            f"Adam, extrapolated from {STEPS} steps of {1e3 * step:.0f} ms",
            f"{recipe / 3600:.1f} h ({recipe / seconds:.0f}×)",
            f"{TRIALS} to choose a rate + {needed:.0f}",
            "",
        ],
    ]
    steps = training_steps(images)
    (slow, losses), (fast, others) = steps.values()
    apart = max(abs(a - b) for a, b in zip(losses, others, strict=True))
    rows = [[name, f"{1e3 * took:.0f} ms"] for name, (took, _) in steps.items()]
    return (
        f"**One-shot images: {len(WIDTHS)} widths × {len(TEMPERATURES)} temperatures** "
        f"(P = {len(y)} of {images.source}, {xi.shape[1]} paths, untrained heads; compiling "
        f"counted; {int(grid.converged.sum())} of {points} converged; at N = {WIDTH}, "
        f"𝒯 = {TEMPERATURE} Adam is {gaps[0]:.0e} above the minimum after {STEPS // 2} steps and "
        f"{gaps[1]:.0e} after {STEPS}; it is to come within {NEAR:.0e})\n\n"
        + table(["", "time of the grid", "evaluations a point", "largest gradient"], theory_rows)
        + f"\n\n**A step of training** (batch {BATCH}, L = {SIZES['layers']}, "
        f"H = {SIZES['heads']}, N = {SIZES['width']}; the second order "
        f"is {slow / fast:.1f} times faster; largest difference of a loss in {len(losses)} steps "
        f"{apart:.0e})\n\n" + table(["order of contraction", "time"], rows)
    )


if __name__ == "__main__":
    print(report())
