"""`sweep` against as many calls of `solve`."""

import numpy as np

from attnpaths import theory
from benchmarks.timing import milliseconds, paper_problem, table


def report():
    """Time and evaluations for a grid of widths and temperatures."""
    xi, y, setting = paper_problem()
    heads = setting["heads"]
    widths = np.geomspace(10, 10_000, 25)
    temperatures = np.geomspace(0.01, 1.0, 8)

    def separately():
        return [
            theory.solve(xi, y, heads=heads, width=n, temperature=t)
            for n in widths
            for t in temperatures
        ]

    def together():
        grid = theory.sweep(
            xi, y, heads=heads, widths=widths, temperatures=temperatures, progress=False
        )
        return grid

    parts, slow, _ = milliseconds(separately, repeats=3)
    grid, fast, _ = milliseconds(together, repeats=3)
    flat = [point for row in grid for point in row]
    apart = max(float(abs(a.U - b.U).max()) for a, b in zip(parts, flat, strict=True))
    rows = [
        [
            name,
            f"{time / 1e3:.2f} s",
            *(f"{np.mean([getattr(t, k) for t in ts]):.1f}" for k in keys),
        ]
        for keys in (("evaluations", "hessian_products"),)
        for name, time, ts in (("`solve`, one by one", slow, parts), ("`sweep`", fast, flat))
    ]
    return (
        f"**A grid of {len(widths)} widths × {len(temperatures)} temperatures** (paper's problem; "
        f"`sweep` is {slow / fast:.1f} times faster; largest difference of an entry of U "
        f"{apart:.0e})\n\n" + table(["", "time", "evaluations a point", "Hessian products"], rows)
    )


if __name__ == "__main__":
    print(report())
