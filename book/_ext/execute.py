"""Run the chapters that have changed, side by side, before the book is built.

    python -m book._ext.execute [FOLDER]

executes every chapter of FOLDER/book whose cells are not in the build's cache, one on each core,
and keeps what they gave, so that the build, which would run them one after the other, finds all of
them done.
"""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import yaml
from jupyter_cache import get_cache
from myst_nb.core.read import read_myst_markdown_notebook
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from tqdm import tqdm

from book._ext.equations import ROOT
from book._ext.pages import cache_folder, keep_executed


def missing(root: Path) -> list[Path]:
    """The chapters that the cache does not hold as they are now, longest first."""
    cache, found = get_cache(cache_folder(root)), []
    for chapter in sorted((root / "book").glob("*.md"), key=lambda path: -path.stat().st_size):
        text = chapter.read_text("utf-8")
        if text.startswith("---") and "kernelspec:" in text.split("\n---", 1)[0]:
            try:
                cache.match_cache_notebook(read_myst_markdown_notebook(text, path=chapter))
            except KeyError:
                found.append(chapter)
    return found


async def run(root: Path) -> dict[Path, str]:
    """Execute what is missing, and keep it; gives the errors of chapters that fail."""
    config = yaml.safe_load((root / "_config.yml").read_text("utf-8"))
    cores, failed = asyncio.Semaphore(os.cpu_count() or 1), {}
    chapters = missing(root)

    async def execute(chapter: Path) -> None:
        notebook = read_myst_markdown_notebook(chapter.read_text("utf-8"), path=chapter)
        where = {"metadata": {"path": str(chapter.parent)}}
        client = NotebookClient(notebook, timeout=config["execute"]["timeout"], resources=where)
        async with cores:
            start = time.perf_counter()
            try:
                await client.async_execute()
            except (CellExecutionError, TimeoutError) as error:
                failed[chapter] = str(error)
            else:
                keep_executed(root, chapter, notebook, time.perf_counter() - start)
        done.update()

    with tqdm(total=len(chapters), desc="chapters", unit="chapter") as done:
        await asyncio.gather(*map(execute, chapters))
    return failed


def main(arguments: Sequence[str]) -> int:
    """The command line."""
    failed = asyncio.run(run(Path(arguments[0]) if arguments else ROOT))
    for chapter, error in failed.items():
        print(f"{chapter} fails:\n{error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
