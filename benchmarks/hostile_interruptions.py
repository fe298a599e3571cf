"""Interruptions: Ctrl-C twice within 50 ms while sampling, and training killed as it runs.

Nothing may be lost: draws that were made when Ctrl-C came must be in the exception, and be those
of a run that nobody interrupted; training must end with the same bits.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import torch

from attnpaths import posterior
from attnpaths.posterior import densities, nuts
from attnpaths.training import Settings, checkpoint

#: Moments of sampling at which Ctrl-C can come.
MOMENTS = ("compiling", "warming up", "drawing", "tidying up", "reading")
_RNG = np.random.default_rng(0)
_XI = _RNG.normal(size=(8, 2, 3))
_WARMUP = 60
_SETTINGS = Settings(
    layers=1,
    heads=1,
    key_dim=4,
    width=4,
    source="glyphs",
    epochs=2.0,
    batch=16,
    validate_every=50,
    validation_examples=64,
)


def sampled(samples, width=5):
    """A small run of one chain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", posterior.DoubtfulSample)
        return posterior.sample_order_parameter(
            _XI,
            _XI[:, 0, 0],
            heads=(2,),
            width=width,
            temperature=0.5,
            seed=0,
            chains=1,
            warmup=_WARMUP,
            samples=samples,
            progress=False,
        )


def interrupted(moment, width=5, delay=0.0, gap=0.04):
    """ "kept", "lost" or "unclear": what becomes of a run when Ctrl-C comes at this moment."""
    steps, pressed = [0], []
    compiled, read = nuts._compiled, densities.OrderParameter.read
    shutdown = nuts.ThreadPoolExecutor.shutdown

    def press():
        if pressed:
            return

        def again():
            time.sleep(gap)
            os.kill(os.getpid(), signal.SIGINT)

        pressed.append(max(steps[0] - _WARMUP, 0))
        threading.Thread(target=again).start()
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)

    def counted(*arguments):
        begin, go = compiled(*arguments)
        wanted = {"compiling": 0, "warming up": 20, "drawing": _WARMUP + 1 + int(1000 * delay)}

        def advance(state, data, thinning, count):
            if moment in wanted and steps[0] >= wanted[moment]:
                press()
            found = go(state, data, thinning, count)
            steps[0] += count * thinning
            return found

        return begin, advance

    def reading(self, *arguments):
        if moment == "reading":
            press()
        return read(self, *arguments)

    def shutting(self, *arguments, **more):
        if moment == "tidying up":
            press()
        return shutdown(self, *arguments, **more)

    samples = 300 if moment in ("tidying up", "reading") else 100_000
    with contextlib.ExitStack() as undo:
        undo.callback(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        undo.enter_context(mock.patch.object(nuts, "_compiled", counted))
        undo.enter_context(mock.patch.object(densities.OrderParameter, "read", reading))
        undo.enter_context(mock.patch.object(nuts.ThreadPoolExecutor, "shutdown", shutting))
        try:
            sampled(samples, width)
            return "unclear"
        except posterior.Interrupted as error:
            drawn = error.posterior
        except KeyboardInterrupt:
            return "lost"
    kept = 0 if drawn is None else drawn.draws.shape[1]
    if kept < pressed[0]:
        return "lost"
    if kept:
        # the draws are those that a run without interruption begins with
        some = min(kept, 300)
        same = np.array_equal(drawn.draws[:, :some], sampled(300, width).draws[:, :some])
        return "kept" if same else "lost"
    return "kept"


def killed(count, seed=0):
    """What becomes of training that is killed so many times: "kept", "lost" or "unclear"."""
    chance = random.Random(seed)
    found = []
    with tempfile.TemporaryDirectory() as place:
        whole, folder = Path(place, "whole"), Path(place, "killed")
        # the numbers of threads decide on the last bit
        command = [sys.executable, "-m", *_SETTINGS.command.split()[2:-1]]
        command += [str(folder), "--threads", "1", "--test-examples", "8", "--quiet"]
        for number in range(count):
            running = subprocess.Popen(
                command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
            seen = _stamp(folder)
            deadline = time.monotonic() + 60
            while _stamp(folder) == seen and running.poll() is None:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.01)
            time.sleep(chance.random() * 0.2)
            running.send_signal(signal.SIGTERM if number % 3 == 2 else signal.SIGKILL)
            # one that had ended by then was not interrupted
            if running.wait() not in (-signal.SIGKILL, 130):
                found.append("unclear")
            else:
                found.append("kept" if _stamp(folder) else "lost")
        subprocess.run(command, check=True, capture_output=True)
        subprocess.run([*command[:-6], str(whole), *command[-5:]], check=True, capture_output=True)
        one, other = (checkpoint.read(each / "checkpoint.pt")["model"] for each in (whole, folder))
        if not all(torch.equal(one[name], other[name]) for name in one):
            return ["lost"] * count
        # and nothing strays
        names = sorted(path.name for path in folder.iterdir())
        assert names == ["checkpoint.pt", "weights.json", "weights.npz"], names
    return found


def _stamp(folder):
    path = folder / "checkpoint.pt"
    return path.stat().st_mtime_ns if path.exists() else None


def run(sampling=42, training=12):
    """How many interruptions there were of each kind, and what became of them."""
    counts = dict.fromkeys(("kept", "lost", "unclear"), 0)
    bad = []
    chance = random.Random(0)
    for number in range(sampling):
        moment = MOMENTS[number % len(MOMENTS)]
        # other widths compile anew
        width = 5 + number if moment == "compiling" else 5
        found = interrupted(moment, width, delay=chance.random(), gap=chance.random() * 0.05)
        counts[found] += 1
        if found != "kept":
            bad.append(f"{found}: Ctrl-C while {moment}")
    for found in killed(training):
        counts[found] += 1
        if found != "kept":
            bad.append(f"{found}: training killed")
    return counts, bad


if __name__ == "__main__":
    print(*run())
