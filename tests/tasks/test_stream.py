import numpy as np
import pytest
import torch

from attnpaths.tasks.stream import Stream

SEEDS = [0, 1, 27, 59, 147, 2**31, 2**32 - 1]
SIZES = [*range(1, 41), 961, 40_000]


def generator(seed):
    return torch.Generator().manual_seed(seed)


def torch_draw(kind, shape, generator):
    return getattr(torch, kind)(*shape, generator=generator, dtype=torch.float64).numpy()


def same(kind, found, wanted):
    """The same bits, or for normal numbers all but the last digits of log, sin and cos."""
    assert found.dtype == np.float64
    if kind == "rand":
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-15, atol=0)


@pytest.mark.parametrize("kind", ["rand", "randn"])
@pytest.mark.parametrize("seed", SEEDS)
def test_one_call_after_a_seed(kind, seed):
    for size in SIZES:
        wanted = torch_draw(kind, (size,), generator(seed))
        same(kind, getattr(Stream(seed), kind)(size), wanted)


# sizes below 16 are drawn one by one, in pairs, of which one may be left for the next call
MIXED = {
    "spares": [("randn", (1,)), ("randn", (3,)), ("randn", (1,)), ("randn", (5,)), ("randn", (7,))],
    "kept over uniform draws": [("randn", (3,)), ("rand", (2,)), ("randn", (2,)), ("rand", (5,))],
    "kept over blocks": [("randn", (1,)), ("randn", (17,)), ("randn", (15,)), ("randn", (40,))],
    "shapes": [("rand", (3, 5)), ("randn", (2, 2, 5, 30)), ("randn", (31, 31)), ("rand", (1,))],
    "a random head": [("randn", (200, 200)), ("randn", (31, 31)), ("randn", (231, 231))],
    "nothing": [
        ("rand", (0,)),
        ("randn", (0,)),
        ("randn", (2,)),
        ("randn", (0, 3)),
        ("rand", (2,)),
    ],
}


@pytest.mark.parametrize("calls", MIXED)
@pytest.mark.parametrize("seed", [27, 2**32 - 1])
def test_calls_in_turn(calls, seed):
    ours, theirs = Stream(seed), generator(seed)
    for kind, shape in MIXED[calls]:
        found = getattr(ours, kind)(*shape)
        assert found.shape == shape
        same(kind, found, torch_draw(kind, shape, theirs))


def test_calls_at_random():
    """Many short runs, each of a dozen calls of random kinds and sizes."""
    rng = np.random.default_rng(0)
    for seed in rng.integers(2**32, size=60).tolist():
        ours, theirs = Stream(seed), generator(seed)
        for _ in range(12):
            kind, size = rng.choice(["rand", "randn"]), (int(rng.integers(1, 40)),)
            same(kind, getattr(ours, kind)(*size), torch_draw(kind, size, theirs))


def test_the_global_generator_of_torch():
    """What the authors use: `torch.manual_seed`, then calls without a generator."""
    with torch.random.fork_rng():
        torch.manual_seed(59)
        wanted = torch.rand(7, dtype=torch.float64), torch.randn(30, dtype=torch.float64)
    stream = Stream(59)
    same("rand", stream.rand(7), wanted[0].numpy())
    same("randn", stream.randn(30), wanted[1].numpy())


def test_streams_are_their_own():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = Stream(3), Stream(3)
    np.testing.assert_array_equal(first.randn(5), second.randn(5))
    assert (first.rand(4) != Stream(4).rand(4)).all()
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
