"""Sharing work out over all JAX devices, in one process or in a job of several hosts.

Each of n devices takes every n-th item, so that all get hard ones and easy ones.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


class _Stopped(Exception):
    """Another share failed or was interrupted."""


def share_out(
    work: Callable[[Sequence[int], Callable[[], Any], Callable], list],
    items: Sequence[int],
    report: Callable[[], Any] = lambda: None,
) -> dict[int, Any]:
    """The answers to all `items`, each computed on one of the devices.

    `work(share, report, move)` answers a share of the items, in their order, with pytrees of
    arrays; it must call `move` on the arrays that it reads, which takes them to its device, and
    `report()` now and then, which stops it when another share has failed. Answers are brought
    back to one device. In a job of several processes each runs the shares of its own devices,
    and all get all answers; these must then have equal shapes.
    """
    if len(items) < jax.process_count():
        raise ValueError(
            f"{len(items)} independent parts are too few for a job of {jax.process_count()} "
            f"processes; start at most {len(items)}"
        )
    devices = _devices()[: len(items)]
    if len(devices) == 1:
        return dict(zip(items, work(items, report, lambda tree: tree), strict=True))
    shares = {device: items[i :: len(devices)] for i, device in enumerate(devices)}
    here, home = jax.process_index(), jax.local_devices()[0]
    lock, stopped = threading.Lock(), threading.Event()

    def careful_report():
        if stopped.is_set():
            raise _Stopped
        with lock:
            report()

    def run(device):
        with jax.default_device(device):
            move = lambda tree: jax.device_put(tree, device)  # noqa: E731
            return jax.device_put(work(shares[device], careful_report, move), home)

    mine = [device for device in devices if device.process_index == here]
    with ThreadPoolExecutor(len(mine)) as pool:
        futures = [pool.submit(run, device) for device in mine]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            stopped.set()
    errors = [error for future in futures if (error := future.exception()) is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, _Stopped)):
        raise error
    found = {}
    for device, future in zip(mine, futures, strict=True):
        found |= zip(shares[device], future.result(), strict=True)
    if jax.process_count() == 1:
        return found
    return _gather(found, {i: d.process_index for d, share in shares.items() for i in share})


def _devices() -> list:
    """All devices of the job, the first of each process before the second of any."""
    ranks = {}
    for device in jax.devices():
        ranks.setdefault(device.process_index, []).append(device)
    order = sorted((rank, p) for p, own in ranks.items() for rank in range(len(own)))
    return [ranks[p][rank] for rank, p in order]


def _gather(found: dict[int, Any], owner: dict[int, int]) -> dict[int, Any]:
    """All answers in every process: each fills in its own, and takes the others from theirs."""
    # not needed, and slow to import, where there is one process
    from jax.experimental import multihost_utils

    blank = jax.tree.map(np.zeros_like, next(iter(found.values())))
    mine = [found.get(item, blank) for item in sorted(owner)]
    table = jax.tree.map(lambda *leaves: np.stack(leaves), *mine)
    whole = multihost_utils.process_allgather(table)
    places = {item: (owner[item], row) for row, item in enumerate(sorted(owner))}
    return {
        item: jax.tree.map(lambda leaf, at=at: jnp.asarray(leaf[at]), whole)
        for item, at in places.items()
    }
