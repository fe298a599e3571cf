"""Ctrl-C as a question that is asked when nothing is lost, and not as an exception in between."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator

# Who presses Ctrl-C twice does so within so many seconds, and means it once.
_TWICE = 0.3


@contextlib.contextmanager
def asking() -> Iterator[Callable[[], bool]]:
    """As long as this lasts Ctrl-C, however often it comes, interrupts nothing.

    It only makes the function that is given say True. Whoever asks it can stop at a moment when
    nothing is lost, which an exception out of the middle of a compilation or of a tidying up
    would not choose.

    >>> with asking() as stop:
    ...     stop()
    False
    """
    pressed = []
    ours = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if ours else None
    if not callable(before):
        # another thread than the one that Ctrl-C reaches, or a program that does without
        yield lambda: False
        return
    signal.signal(signal.SIGINT, lambda *_: pressed.append(time.monotonic()))
    try:
        yield lambda: bool(pressed)
    finally:
        while pressed and time.monotonic() < pressed[-1] + _TWICE:
            time.sleep(0.01)
        signal.signal(signal.SIGINT, before)
