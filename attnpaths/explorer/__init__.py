"""The explorer: turn width, tokens, temperature and noise, and watch the network choose paths.

One front end, `explorer.js`, shows *answers*. In a notebook `Explorer` computes them for any
setting; in a built page they come from `grid()`, which has the same answers for the settings
of `STOPS`. An answer is about tasks that `make_task` draws, averaged over `SEEDS`. Needs
anywidget: `pip install "attnpaths[figures]"`.
"""

from attnpaths import _extras

_extras.require("anywidget", "figures", "attnpaths.explorer")

from attnpaths.explorer.answers import FINE_STOPS, SEEDS, START, STOPS, answers  # noqa: E402
from attnpaths.explorer.answers import grid as grid  # noqa: E402
from attnpaths.explorer.widget import MIME, Explorer  # noqa: E402

__all__ = ["FINE_STOPS", "MIME", "SEEDS", "START", "STOPS", "Explorer", "answers"]
