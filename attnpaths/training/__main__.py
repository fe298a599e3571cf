"""The command line: `python -m attnpaths.training --help`."""

import argparse
import dataclasses
import signal
import sys

import torch

from attnpaths import _checks
from attnpaths.training.batches import SAMPLING
from attnpaths.training.loop import SOURCES, Settings, train


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m attnpaths.training",
        description="Train the one-shot network; run it again to go on after an interruption.",
    )
    for field in dataclasses.fields(Settings):
        option = f"--{field.name.replace('_', '-')}"
        choices = {"source": SOURCES, "sampling": SAMPLING}.get(field.name)
        usual = f"default {field.default}"
        parser.add_argument(
            option, type=field.type, default=field.default, choices=choices, help=usual
        )
    parser.add_argument("--out", required=True, help="folder of checkpoint and weights")
    parser.add_argument("--threads", type=int, default=None, help="threads; default: all cores")
    parser.add_argument("--test-examples", type=int, default=20_000, help="default 20000")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    options = vars(_parser().parse_args(arguments))
    folder, threads, quiet = (options.pop(name) for name in ("out", "threads", "quiet"))
    test_examples = options.pop("test_examples")
    signals = []
    previous = {
        number: signal.signal(number, lambda received, _: signals.append(received))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        if threads is not None:
            torch.set_num_threads(_checks.whole("--threads", threads, least=1))
        trained = train(
            Settings(**options),
            folder,
            stop=lambda: bool(signals),
            test_examples=test_examples,
            progress=not quiet,
        )
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if trained is None:
        print(f"stopped; the same command goes on from {folder}", file=sys.stderr)
        return 130
    for name, found in trained.record["accuracy"].items():
        if "missing" in found:
            print(f"{name}: not tested, {found['missing']}")
        else:
            share, error = found["accuracy"], found["standard_error"]
            print(f"{name}: {share:.4f} ± {error:.4f} ({found['examples']:,} sequences)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
