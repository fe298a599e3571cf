"""Ctrl-C at any moment, and again within 50 ms: what was drawn is kept."""

import pytest

from benchmarks import hostile_interruptions


@pytest.mark.parametrize("moment", hostile_interruptions.MOMENTS)
def test_what_was_drawn_is_kept(moment):
    assert hostile_interruptions.interrupted(moment) == "kept"
