"""The random numbers of PyTorch's CPU generator, without PyTorch.

The authors draw data by `torch.rand` and `torch.randn` in float64 after `torch.manual_seed`: simple
functions of a Mersenne Twister, which NumPy has too. Uniform numbers are the same bits, normal
ones differ by the last digit of log, sin and cos at most.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

# torch.randn draws so many numbers at once, where that many are asked for
_TOGETHER = 16


class Stream:
    """What follows `torch.manual_seed(seed)`, or a `torch.Generator` of that seed.

    >>> stream = Stream(27)
    >>> stream.rand(2).round(4).tolist(), stream.randn(1).round(4).tolist()
    ([0.8775, 0.2675], [1.2395])
    """

    def __init__(self, seed: int):
        """Seed the Mersenne Twister as PyTorch does."""
        _, key, position, *_ = np.random.RandomState(seed).get_state(legacy=True)
        self._words = np.random.MT19937()
        state: Any = {"bit_generator": "MT19937", "state": {"key": key, "pos": position}}
        self._words.state = state
        self._few = self._pairs()

    def rand(self, *shape: int) -> Float[np.ndarray, "..."]:
        """Uniform numbers in [0, 1), each of 53 bits of two words."""
        high, low = self._words.random_raw(2 * math.prod(shape)).reshape(-1, 2).T
        return ((((high & 0x1FFFFF) << 32) + low) * 2.0**-53).reshape(shape)

    def randn(self, *shape: int) -> Float[np.ndarray, "..."]:
        """Normal numbers, by Box and Muller's method: in blocks, or one by one if they are few."""
        count = math.prod(shape)
        if count < _TOGETHER:
            return np.array([next(self._few) for _ in range(count)]).reshape(shape)
        numbers = self.rand(count)
        whole = count - count % _TOGETHER
        numbers[:whole] = _normal(numbers[:whole])
        if whole < count:
            # PyTorch draws the last block anew, over what was there
            numbers[-_TOGETHER:] = _normal(self.rand(_TOGETHER))
        return numbers.reshape(shape)

    def _pairs(self) -> Iterator[float]:
        while True:
            turn, other = self.rand(2)
            radius, angle = math.sqrt(-2 * math.log1p(-other)), 2 * math.pi * turn
            yield radius * math.cos(angle)
            yield radius * math.sin(angle)


def _normal(uniform):
    """Each block's first half gives lengths, its second half angles."""
    lengths, angles = np.split(uniform.reshape(-1, _TOGETHER), 2, axis=1)
    radius, angle = np.sqrt(-2 * np.log(1 - lengths)), 2 * np.pi * angles
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()
