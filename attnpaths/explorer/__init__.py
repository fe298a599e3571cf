"""The explorer: turn width, tokens, temperature and noise, and watch the network choose paths.

The front end computes where the reader is: `engine/` solves the theory in JavaScript, from the seed
on, in double precision, and `front/` shows it. In a notebook `Explorer` is a widget of the same,
which Python answers where it is asked to. Needs anywidget: `pip install "attnpaths[figures]"`.
"""

from attnpaths import _extras

_extras.require("anywidget", "figures", "attnpaths.explorer")

from attnpaths.explorer.answers import RANGES, START, answers  # noqa: E402
from attnpaths.explorer.widget import MIME, Explorer  # noqa: E402

__all__ = ["MIME", "RANGES", "START", "Explorer", "answers"]
