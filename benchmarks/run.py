"""All tables, each from one run, with the machine it came from: `make bench`.

    python -m benchmarks.run [TABLE …]

measures the named tables, or all, and writes them into `benchmarks/results.md` and into the
README's copy, each whole or not at all; the others stay as they are.
"""

import argparse
import datetime
import os
import platform
import re
from pathlib import Path

import jax
from tqdm import tqdm

from benchmarks import (
    against_adam,
    before,
    grid,
    growth,
    imports,
    live,
    oneshot,
    optimisers,
    sampling,
)

HERE = Path(__file__).parent
TABLES = {
    module.__name__.split(".")[-1]: module
    for module in (
        imports,
        against_adam,
        grid,
        growth,
        before,
        sampling,
        oneshot,
        live,
        optimisers,
    )
}
IN_README = ("imports", "against_adam", "grid", "growth", "before", "sampling", "oneshot")
START, END = "<!-- benchmarks: made by `make bench` -->\n", "<!-- end of benchmarks -->"


def machine():
    """The processor, memory and versions, in one sentence."""
    names = (
        [
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ]
        if Path("/proc/cpuinfo").exists()
        else [platform.processor()]
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return (
        f"Measured on {datetime.date.today()}: {names[0]}, {os.cpu_count()} cores, "
        f"{memory / 2**30:.0f} GiB, Python {platform.python_version()}, "
        f"JAX {jax.__version__}."
    )


def replace(path, text):
    """Write a file under a temporary name, then give it its own."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def held(text):
    """The tables of `results.md`, by name."""
    parts = re.split(r"<!-- table: (\w+) -->\n", text)[1:]
    return {name: table.strip() for name, table in zip(parts[::2], parts[1::2], strict=True)}


def main(arguments=None):
    """Measure, then write."""
    parser = argparse.ArgumentParser(description="Measure tables, and write them.")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    wanted = parser.parse_args(arguments).tables
    if unknown := set(wanted) - set(TABLES):
        parser.error(f"no table {sorted(unknown)[0]}; the tables are {', '.join(TABLES)}")
    path, readme = HERE / "results.md", HERE.parent / "README.md"
    for name in tqdm(wanted or TABLES, unit="table"):
        found = held(path.read_text(encoding="utf-8")) if path.exists() else {}
        found[name] = f"{TABLES[name].report()}\n\n{machine()}"
        text = "\n\n".join(f"<!-- table: {n} -->\n{found[n]}" for n in TABLES if n in found)
        replace(path, text + "\n")
        copy = "\n\n".join(found[n] for n in IN_README if n in found)
        before, rest = readme.read_text(encoding="utf-8").split(START)
        replace(readme, f"{before}{START}\n{copy}\n\n{END}{rest.split(END)[1]}")
        print(found[name])


if __name__ == "__main__":
    main()
