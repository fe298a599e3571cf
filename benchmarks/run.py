"""All tables, from one run, with the machine they came from: `make bench`.

Writes `benchmarks/results.md` and the README's copy of it, whole or not at all.
"""

import datetime
import os
import platform
from pathlib import Path

import jax
import psutil
from tqdm import tqdm

from benchmarks import against_adam, grid, growth, live, optimisers, sampling

HERE = Path(__file__).parent
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
    return (
        f"Measured on {datetime.date.today()}: {names[0]}, {os.cpu_count()} cores, "
        f"{psutil.virtual_memory().total / 2**30:.0f} GiB, Python {platform.python_version()}, "
        f"JAX {jax.__version__}. Times are medians within the run of each table."
    )


def replace(path, text):
    """Write a file under a temporary name, then give it its own."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def main():
    """Measure everything, then write."""
    parts = [machine()]
    for module in tqdm((against_adam, grid, growth, sampling, live, optimisers), unit="table"):
        parts.append(module.report())
    text = "\n\n".join(parts) + "\n"
    replace(HERE / "results.md", text)
    readme = HERE.parent / "README.md"
    before, rest = readme.read_text(encoding="utf-8").split(START)
    _, after = rest.split(END)
    replace(readme, before + START + "\n" + "\n\n".join(parts[:5]) + "\n\n" + END + after)
    print(text)


if __name__ == "__main__":
    main()
