"""The widget: one front end, answered by Python in a notebook."""

import threading
from pathlib import Path

import anywidget
import traitlets

from attnpaths.explorer.answers import (
    FINE_STOPS,
    START,
    STOPS,
    answers,
    check,
    spelled,
    spelled_stops,
)

MIME = "application/vnd.attnpaths.explorer+json"
_HERE = Path(__file__).parent


class Explorer(anywidget.AnyWidget):
    """Controls and pictures in one widget; `Explorer(width=100)` starts there.

    In a notebook it answers any setting, also one given by `explorer.setting = {...}`. Work is
    done in a thread, so that a new setting is noticed while the last one is still refined.

    >>> Explorer(width=100, sigma_perp=5).setting["tokens"]
    30
    """

    _esm = _HERE / "explorer.js"
    _css = _HERE / "explorer.css"
    setting = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)
    stops = traitlets.Dict().tag(sync=True)
    curve_widths = traitlets.List().tag(sync=True)
    problem = traitlets.Unicode().tag(sync=True)

    def __init__(self, **setting):
        """Start at `START`, but for what is given by name."""
        super().__init__(
            setting=START | setting,
            stops=spelled_stops(FINE_STOPS),
            curve_widths=spelled_stops(STOPS)["width"],
        )
        self._lock, self._wanted, self._thread = threading.Lock(), None, None
        self.observe(lambda change: self._ask(), names="setting")
        self.on_msg(lambda *_: self._ask())

    @traitlets.validate("setting")
    def _check_setting(self, proposal):
        setting = check(proposal["value"])
        return setting | {"width": spelled(setting["width"])}

    def _ask(self):
        """Want an answer to the present setting, and wake the thread that gives it."""
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
                for answer in answers(setting):
                    if self._wanted is not None:
                        break
                    self.answer, self.problem = answer, ""
            except Exception as error:
                # nobody sees what a thread raises: show it where the answer would be
                self.problem = f"{type(error).__name__}: {error}"

    def _repr_mimebundle_(self, **kwargs):
        """The widget, and for the built page the word that it belongs here."""
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return {**data, MIME: {"explorer": "markov", "setting": self.setting}}, metadata
