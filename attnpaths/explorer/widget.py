"""The widget: the page's own front end in a notebook, where Python answers too if it is asked."""

import threading
from pathlib import Path

import anywidget
import traitlets

from attnpaths import _checks
from attnpaths.explorer.answers import START, answers, check
from attnpaths.explorer.bundle import module

MIME = "application/vnd.attnpaths.explorer+json"
#: The pictures below U, by name.
VIEWS = ("accuracy", "chain", "kernels", "alignment", "predictions", "bargain", "learn")
#: What stands beside the controls while Python works.
COMPUTES = "Python computes; new sizes are compiled first (up to a minute)"


class Explorer(anywidget.AnyWidget):
    """Controls and pictures in one widget; `Explorer(width=100, view="kernels")` starts there.

    The front end computes by itself, in a notebook as in a page. Switched to Python (`by =
    "python"`), a thread answers with the library; it says that it compiles, and a new setting is
    noticed while the last one is still refined. `explorer.setting` follows the controls, and
    they follow it.

    >>> Explorer(width=100, sigma_perp=5).setting["tokens"]
    30
    """

    _esm = module()
    _css = Path(__file__).parent / "explorer.css"
    setting = traitlets.Dict().tag(sync=True)
    look = traitlets.Dict().tag(sync=True)
    by = traitlets.Enum(("page", "python"), "page").tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)
    working = traitlets.Unicode().tag(sync=True)
    problem = traitlets.Unicode().tag(sync=True)

    def __init__(self, *, view: str = "accuracy", **setting):
        """Start at `START`, but for what is given by name."""
        _checks.choice("view", view, VIEWS)
        super().__init__(setting=START | setting, look={"view": view})
        self._lock, self._wanted, self._thread = threading.Lock(), None, None
        self.observe(lambda change: self._ask(), names=["setting", "by"])

    @traitlets.validate("setting")
    def _check_setting(self, proposal):
        return check(proposal["value"])

    def _ask(self):
        """Want an answer to the present setting, and wake the thread that gives it."""
        if self.by != "python":
            return
        with self._lock:
            self._wanted = self.setting
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()

    def _work(self):
        while True:
            with self._lock:
                setting, self._wanted = self._wanted, None
                if setting is None:
                    self._thread = None
                    return
            try:
                self.working, self.problem = COMPUTES, ""
                for answer in answers(setting):
                    if self._wanted is not None:
                        break
                    self.answer = answer
                self.working = ""
            except Exception as error:
                # nobody sees what a thread raises: show it where the answer would be
                self.working, self.problem = "", f"{type(error).__name__}: {error}"

    def _repr_mimebundle_(self, **kwargs):
        """The widget, and for the built page the word that it belongs here."""
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        words = {"explorer": "markov", "setting": self.setting, "look": self.look}
        return {**data, MIME: words}, metadata
