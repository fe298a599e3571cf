"""Sweeps give the same answers on one device, on two, and in a job of two processes."""

import json
import os
import socket
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnpaths import theory
from attnpaths.theory import devices as sharding

SWEEP = """
import json
import jax
import numpy as np
from attnpaths.theory import devices as sharding
from attnpaths import theory

xi = np.random.default_rng(0).standard_normal((15, 2, 4))
y = np.sign(xi[:, 0, 0])
setting = dict(heads=(2,), widths=[3, 300], temperatures=[0.1, 1.0, 0.02], progress=False)
used = []
plain = sharding.share_out
def spied(work, *rest):
    def watched(share, report, move):
        used.append(next(iter(move(jax.numpy.ones(1)).devices())).id)
        return work(share, report, move)
    return plain(watched, *rest)
sharding.share_out = spied
grid = theory.sweep(xi, y, **setting)
print(json.dumps({
    "used": sorted(used),
    "U": grid.U.tolist(),
    "converged": grid.converged.tolist(),
    "temperature": [float(grid[0, j].temperature) for j in range(3)],
    "accuracy": grid.predict(xi).accuracy(y).tolist(),
}))
"""

# the module alone: a job of processes needs nothing else, and starts faster
JOB = """
import importlib.util, json, sys
import jax
import jax.numpy as jnp
path, address, index = sys.argv[1:]
jax.distributed.initialize(address, num_processes=2, process_id=int(index))
jax.config.update("jax_enable_x64", True)
spec = importlib.util.spec_from_file_location("sharding", path)
sharding = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sharding)
used = []
def work(share, report, move):
    used.extend(share)
    ones = move(jnp.ones((2, 2)))
    return [[{"U": ones * i / 4, "levels": (ones[0] * i,), "ok": ones[0, 0] * i > 5}]
            for i in share]
answers = sharding.share_out(work, [4, 9, 7])
print(json.dumps({
    "own": used,
    "devices": [len(jax.devices()), len(jax.local_devices())],
    "answers": {i: [each[0]["U"].tolist(), each[0]["levels"][0].tolist(), bool(each[0]["ok"])]
                for i, each in answers.items()},
}))
"""


def start(script, *arguments, devices=1):
    flags = f"--xla_force_host_platform_device_count={devices}"
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def test_two_devices_give_the_same_sweep():
    running = start(SWEEP, devices=2)
    xi = np.random.default_rng(0).standard_normal((15, 2, 4))
    setting = {"heads": (2,), "widths": [3, 300], "temperatures": [0.1, 1.0, 0.02]}
    y = np.sign(xi[:, 0, 0])
    grid = theory.sweep(xi, y, **setting, progress=False)
    found = finish(running)
    assert found["used"] == [0, 1]
    assert np.all(found["converged"]) and found["temperature"] == [0.1, 1.0, 0.02]
    np.testing.assert_allclose(found["U"], grid.U, rtol=0, atol=1e-7 * np.abs(grid.U).max())
    np.testing.assert_array_equal(found["accuracy"], grid.predict(xi).accuracy(y))


def test_two_processes_share_items_and_get_all_answers():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    running = [start(JOB, sharding.__file__, address, index) for index in range(2)]
    first, second = map(finish, running)
    assert first["devices"] == second["devices"] == [2, 1]
    assert (first["own"], second["own"]) == ([4, 7], [9])
    expected = {str(i): [[[i / 4] * 2] * 2, [i] * 2, i > 5] for i in (4, 7, 9)}
    assert first["answers"] == second["answers"] == expected


def test_on_one_device_items_keep_their_order():
    assert len(jax.devices()) == 1
    seen = []

    def work(share, report, move):
        seen.append(share)
        report()
        return [move(item) + 1 for item in share]

    reports = []
    assert sharding.share_out(work, [2, 0, 1], lambda: reports.append(1)) == {2: 3, 0: 1, 1: 2}
    assert seen == [[2, 0, 1]] and reports == [1]


def pretend(monkeypatch, count):
    """Several devices: the same one under several names."""

    class Device:
        process_index = 0

    devices = [Device() for _ in range(count)]
    real = jax.devices()[0]
    monkeypatch.setattr(jax, "devices", lambda: devices)
    monkeypatch.setattr(jax, "default_device", lambda _: jax.transfer_guard("allow"))
    monkeypatch.setattr(jax, "device_put", lambda tree, _: tree)
    monkeypatch.setattr(jax, "local_devices", lambda: [real])


def test_every_device_takes_every_nth_item(monkeypatch):
    pretend(monkeypatch, 3)
    shares = []

    def work(share, report, move):
        shares.append(tuple(share))
        return [jnp.asarray(item) for item in share]

    found = sharding.share_out(work, [9, 8, 7, 6, 5])
    assert sorted(shares) == [(7,), (8, 5), (9, 6)]
    assert {item: int(answer) for item, answer in found.items()} == {i: i for i in range(5, 10)}
    # no device without an item
    shares.clear()
    sharding.share_out(work, [1, 2])
    assert sorted(shares) == [(1,), (2,)]


def test_when_one_share_fails_the_others_stop(monkeypatch):
    pretend(monkeypatch, 2)

    def work(share, report, move):
        if 1 in share:
            raise ValueError("no such kernel")
        while True:
            report()

    with pytest.raises(ValueError, match="no such kernel"):
        sharding.share_out(work, [0, 1])


def test_more_processes_than_items_are_refused(monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 3)
    with pytest.raises(ValueError, match=r"2 independent parts are too few .* start at most 2"):
        sharding.share_out(lambda *_: [], [0, 1])
