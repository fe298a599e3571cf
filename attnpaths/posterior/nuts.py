"""Running NumPyro's NUTS: chains side by side, in short blocks that can be interrupted.

Every chain advances by blocks of draws, each one call of a compiled function that is given the
data as an argument: another data set of the same shape, another seed or another number of draws
does not compile again. Chains are spread over JAX's devices, and on a CPU over its cores too,
one thread each; when there are more chains than those, their blocks take turns. Chains mapped
over an axis instead (NumPyro's "vectorized") would all wait for the longest trajectory.
"""

import collections
import functools
import os
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from tqdm.auto import tqdm

from attnpaths import _extras

# Blocks hold at most so many draws or numbers, and are sized to take about so many seconds.
_MOST_DRAWS, _MOST_NUMBERS, _SECONDS = 128, 2**23, 0.4


class Trace(NamedTuple):
    """What a run leaves: arrays `[chains, kept, ...]`, one entry for every kept draw.

    Of all steps since the draw before, `leapfrogs` and `divergences` are counts, `jump` = Σ (ΔE)².
    """

    position: Any
    potential: Any
    energy: Any
    jump: Any
    leapfrogs: Any
    divergences: Any
    acceptance: Any
    step_size: Any


class Stopped(KeyboardInterrupt):
    """The run was to stop: how far it came, and what it had drawn (None during the warm-up)."""

    def __init__(self, message: str, trace: Trace | None):
        """Keep the trace beside the message."""
        super().__init__(message)
        self.trace = trace


def at_a_time(chains: int) -> int:
    """How many of the chains run side by side: = min(chains, cores or devices). Takes no array.

    >>> at_a_time(1)
    1
    """
    devices = jax.local_devices()
    on_cpu = devices[0].platform == "cpu"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(chains, max(len(devices), (cores or 1) if on_cpu else 1))


def run(
    potential: Callable,
    data,
    starts: Array,
    key: Array,
    *,
    warmup: int,
    kept: int,
    thinning: int,
    dense: bool,
    acceptance: float,
    progress: bool,
    stop: Callable[[], bool] = lambda: False,
) -> Trace:
    """Sample z ~ exp(−potential(data, z)), one chain from each row of `starts [chains, size]`.

    `potential` must be hashable: runs with an equal one share their compiled code. `kept` draws
    of each chain are given back, `thinning` steps apart. When `stop()` says so, the blocks that
    are running are the last ones, and `Stopped` is raised.

    >>> def potential(scale, z):
    ...     return jnp.sum(z**2) / (2 * scale**2)
    >>> trace = run(potential, 3.0, jnp.zeros((2, 1)), jax.random.key(0), warmup=50, kept=100,
    ...             thinning=1, dense=False, acceptance=0.8, progress=False)
    >>> trace.position.shape, trace.energy.shape
    ((2, 100, 1), (2, 100))
    """
    chains, size = starts.shape
    block = max(1, min(_MOST_DRAWS, _MOST_NUMBERS // size))
    begin, advance = _compiled(potential, warmup, dense, acceptance, block)
    devices = jax.local_devices()
    used = [devices[chain % len(devices)] for chain in range(chains)]
    several = len(set(used)) > 1
    copies = {d: jax.device_put(data, d) if several else data for d in set(used)}
    states = []
    for start, seed, device in zip(starts, jax.random.split(key, chains), used, strict=True):
        state = begin(start, seed, copies[device])
        states.append(jax.device_put(state, device) if several else state)
    if not all(np.isfinite(state.potential_energy) for state in states):
        raise ValueError(
            "xi or y is too large beside the temperature: the posterior overflows double "
            "precision; divide xi and y by a common factor and the temperature by its square"
        )
    for chain in range(min(chains, len(devices))):
        if not stop():
            advance(states[chain], copies[used[chain]], 1, 0)  # no draws: only compiles

    workers = at_a_time(chains)
    name = f"{chains} chain{'s' * (chains > 1)}"
    name += f", {workers} at a time" if workers < chains else ""
    rows = [[] for _ in range(chains)]
    done = np.zeros(chains, int)
    total = warmup + kept * thinning
    pace = collections.defaultdict(lambda: 1)  # draws per block in each phase

    def one_block(chain):
        warming = done[chain] < warmup
        every, end = (1, warmup) if warming else (thinning, total)
        count = int(min((end - done[chain]) // every, pace[warming], block))
        began = time.perf_counter()
        state, row = advance(states[chain], copies[used[chain]], every, count)
        # copies: a view would keep the whole block alive
        row = None if warming else jax.tree.map(lambda x: np.array(np.asarray(x)[:count]), row)
        jax.block_until_ready(state)
        ratio = _SECONDS / max(time.perf_counter() - began, 1e-9)
        pace[warming] = int(np.clip(count * min(ratio, 2), 1, block))
        return chain, state, row, count * every

    bar = tqdm(total=chains * total, unit="step", disable=not progress, desc=f"{name}: warm-up")
    pool = ThreadPoolExecutor(workers)
    try:
        running = set() if stop() else {pool.submit(one_block, chain) for chain in range(chains)}
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                chain, states[chain], row, steps = future.result()
                rows[chain] += [] if row is None else [row]
                done[chain] += steps
                bar.update(steps)
                if done[chain] == warmup:
                    bar.set_description(f"{name}: sampling")
                if done[chain] < total and not stop():
                    running.add(pool.submit(one_block, chain))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        bar.close()
    if done.min() < total:
        finished = max(int(done.min()) - warmup, 0) // thinning
        raise Stopped(
            f"interrupted after {int(min(done.min(), warmup))} of {warmup} warm-up steps and "
            f"{finished} of {kept} draws of each chain; nothing was written",
            _gather(rows, finished) if finished else None,
        )
    return _gather(rows, kept)


def bfmi(trace: Trace, thinning: int) -> np.ndarray:
    """The Bayesian fraction of missing information `[chains]`; below 0.3 is a bad sign.

    Mean (E_i − E_{i−1})² over steps / Var(E), E the energy (Betancourt 2016): small when momenta
    cannot carry a chain through all energies.

    >>> energy, jump = np.array([[0.0, 2.0]]), np.array([[4.0, 4.0]])
    >>> bfmi(Trace(*[energy] * 3, jump, *[energy] * 4), thinning=1)
    array([4.])
    """
    if trace.energy.shape[1] < 2:
        return np.full(len(trace.energy), np.nan)
    return trace.jump.mean(axis=1) / thinning / np.var(trace.energy, axis=1)


@functools.lru_cache(maxsize=64)
def _compiled(potential, warmup, dense, acceptance, block):
    """`begin`, which makes a chain's first state, and `advance`, which moves it on."""
    hmc = _extras.require("numpyro.infer.hmc", "sampling", "sampling")
    start_kernel, step_kernel = hmc.hmc(
        potential_fn_gen=lambda data: functools.partial(potential, data), algo="NUTS"
    )
    setting = {"dense_mass": dense, "target_accept_prob": acceptance}

    @jax.jit
    def begin(z, key, data):
        return start_kernel(z, warmup, model_args=(data,), rng_key=key, **setting)

    @jax.jit
    def advance(state, data, thinning, count):
        def step(_, carry):
            old, jump, leapfrogs, divergences = carry
            new = step_kernel(old, (data,))
            jump += (new.energy - old.energy) ** 2
            return new, jump, leapfrogs + new.num_steps, divergences + new.diverging

        def draw(i, carry):
            state, rows = carry
            none = jnp.zeros((), int)
            state, *sums = jax.lax.fori_loop(0, thinning, step, (state, jnp.zeros(()), none, none))
            energies = state.potential_energy, state.energy
            tuned = state.accept_prob, state.adapt_state.step_size
            row = Trace._make((state.z, *energies, *sums, *tuned))
            return state, jax.tree.map(lambda kept, new: kept.at[i].set(new), rows, row)

        z, real = jnp.zeros((block, *state.z.shape)), jnp.zeros(block)
        integer = jnp.zeros(block, int)
        empty = Trace(z, real, real, real, integer, integer, real, real)
        return jax.lax.fori_loop(0, count, draw, (state, empty))

    return begin, advance


def _gather(rows, kept) -> Trace:
    """The blocks of all chains as one trace, cut to what all of them have."""
    chains = [jax.tree.map(lambda *x: np.concatenate(x)[:kept], *row) for row in rows]
    return jax.tree.map(lambda *x: np.stack(x), *chains)
