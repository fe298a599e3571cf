"""Wrong values for each kind of argument: no array, no number, no seed, no head, no file."""

import tempfile
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from attnpaths import Weights


class Odd:
    """Something that is nothing."""

    def __repr__(self):
        return "Odd()"


def but(values: dict[str, Any], *names: str) -> dict[str, Any]:
    """All of these wrong values apart from some, which are right here."""
    return {name: value for name, value in values.items() if name not in names}


def arrays(good) -> dict[str, Any]:
    """What is no array of real numbers with these axes."""
    good = np.asarray(good, float)
    hole = np.zeros(good.shape, bool)
    hole.flat[0] = True
    values = {
        "None": None,
        "text": "three",
        "bytes": b"three",
        "an object": Odd(),
        "a dict": {"x": 1.0},
        "a set": {1.0, 2.0},
        "NaN": np.where(hole, np.nan, good),
        "infinite": np.where(hole, -np.inf, good),
        "complex": good + 1j,
        "texts": np.full(good.shape, "1.0"),
        "objects": np.full(good.shape, None),
        "dates": np.zeros(good.shape, "datetime64[s]"),
        "masked": np.ma.array(good, mask=hole),
        "an axis less": good[0],
        "an axis more": good[None],
        "empty": good[:0],
        "keys": jax.random.split(jax.random.key(0), good.shape),
        "a complex tensor": torch.zeros(good.shape, dtype=torch.complex64),
        "a NaN of single precision": jnp.asarray(np.where(hole, np.nan, good), jnp.float32),
    }
    if good.ndim:
        values["masked rows"] = list(values["masked"])
        values["ragged"] = [good.tolist()[0], [good.tolist()[0]] * 2]
    return values


def longer(good) -> dict[str, Any]:
    """One row too many: what does not fit the other arguments."""
    good = np.asarray(good, float)
    return {"a row more": np.concatenate([good, good[:1]])}


NUMBERS = {"None": None, "text": "1", "NaN": float("nan"), "negative": -1.0, "complex": 1j}
NUMBERS |= {"two": [1.0, 2.0], "an object": Odd(), "True": True, "masked": np.ma.masked}
NUMBERS |= {"a date": np.datetime64("2026-01-01"), "a dict": {}}
POSITIVE = NUMBERS | {"zero": 0.0, "infinite": np.inf}
WHOLE = {"None": None, "text": "3", "negative": -1, "half": 1.5, "float": 3.0, "True": True}
WHOLE |= {"NaN": float("nan"), "list": [3], "array": np.array([3, 3]), "an object": Odd()}
NATURAL = WHOLE | {"zero": 0}
SEEDS = WHOLE | {
    "2⁶⁴": 2**64,
    "a key": jax.random.key(0),
    "keys": jax.random.split(jax.random.key(0)),
}
FLAGS = {"no": "no", "one": 1, "zero": 0, "None": None, "array": np.array([True, False])}
COUNTS = {"None": None, "number": 2, "text": "22", "zero": (0, 2), "half": (2.5, 2), "empty": ()}
COUNTS |= {"dict": {2: 2}, "negative": (-2, -2), "None inside": (2, None), "deep": ((2,), (2,))}
COUNTS |= {"NaN": (float("nan"), 2), "True": (True, 2), "an object": Odd()}
COUNTS |= {"huge": (10**12, 10**12)}
WORDS = {"None": None, "number": 3, "other": "whatever", "list": ["all"], "empty": ""}
KINDS_OF_WIDTH = POSITIVE | {"half": 0.5, "a list too short": (5,), "ragged": [[5], [5, 5]]}
KINDS_OF_WIDTH |= {"three with zero": (5, 0, 5), "three with None": (5, None, 5)}
del KINDS_OF_WIDTH["infinite"], KINDS_OF_WIDTH["True"]
UNITS = NATURAL | {"a list too short": (5,), "ragged": [[5], [5, 5]], "huge": 10**12}
UNITS |= {"three with half": (5, 2.5, 5)}
del UNITS["array"], UNITS["list"]
LISTS = {"None": None, "number": 3.0, "text": "3", "empty": [], "negative": [1.0, -2.0]}
LISTS |= {"NaN": [1.0, float("nan")], "deep": [[1.0]], "texts": ["1"], "None inside": [1.0, None]}
READOUTS = {"None": None, "text": "last", "half": 0.5, "True": True, "outside": 4, "far": -5}
READOUTS |= {"list": [0], "NaN": float("nan"), "an object": Odd(), "ragged": [[0], [0, 1]]}
READOUTS |= {"masked": np.ma.array([0] * 6, mask=[1] + [0] * 5)}
THINGS = {"None": None, "number": 3, "text": "it", "array": np.ones(3), "an object": Odd()}
THINGS |= {"a class": dict, "a list": [1, 2]}
HEADS = {"None": None, "number": 3, "text": "heads", "empty": [], "flat": [np.ones(3)]}
HEADS |= {"not square": [np.ones((2, 3, 4))], "NaN": [np.full((2, 3, 3), np.nan)]}
HEADS |= {"two sizes": [np.ones((2, 3, 3)), np.ones((2, 4, 4))], "None inside": [None]}
HEADS |= {"uneven pair": [(np.ones((2, 5, 3)), np.ones((2, 4, 3)))], "dict": {"W": 1}}
NAMES = {"None": None, "number": 3, "text": "11", "zero": [(0, 1)], "outside": [(1, 3)]}
NAMES |= {"half": [(1.5, 1)], "three": [(1, 1, 1)], "flat": [1, 1], "texts": [("1", "1")]}
ALL_GONE = {"all of a layer": [(1, 1), (1, 2)], "twice": [(1, 1), (1, 1)]}
SCORES = {"None": None, "list": [1.0], "NaN": {(1, 1): float("nan"), (1, 2): 1.0}}
SCORES |= {"texts": {(1, 1): "a", (1, 2): "b"}, "names": {1: 1.0, 2: 2.0}, "empty": {}}
CALLABLES = {"None": None, "number": 3, "scores": {(1, 1): 1.0, (1, 2): 2.0}}
RESIDUALS = {"None": None, "text": "yes", "number": 1, "floats": (1.0, 0.0), "an object": Odd()}
RESIDUALS |= {"three": (True, False, True), "None inside": (True, None), "empty": ()}
MATRICES = {"None": None, "text": "W", "flat": np.ones(6), "NaN": np.full((6, 6), np.nan)}
MATRICES |= {"object": Odd()}
FILES = {"None": None, "number": 3.5, "a list": ["a"], "nothing there": "/nowhere/it.npz"}
FILES |= {"a folder": tempfile.gettempdir(), "empty": ""}


def whole_network(good):
    """Weights that do not fit, whichever of them is wrong."""
    a = np.asarray(good.a)
    wrong = {
        "a too short": Weights(good.V0, good.V, a[:-1]),
        "a NaN": Weights(good.V0, good.V, a * np.nan),
        "V missing": Weights(good.V0, (), a),
        "V None": Weights(good.V0, None, a),
        "V0 turned": Weights(np.asarray(good.V0).T, good.V, a),
        "V0 None": Weights(None, good.V, a),
        "a masked": Weights(good.V0, good.V, np.ma.array(a, mask=[1] + [0] * (len(a) - 1))),
    }
    return wrong | THINGS


def signs(good):
    """Labels other than ±1, besides what is no array."""
    return arrays(good) | longer(good) | {"0 and 1": (np.asarray(good) + 1) / 2}


def labels(good):
    """What cannot be regressed on."""
    return arrays(good) | longer(good)


def matrices(good):
    """What is no covariance, besides what is no array."""
    skew = np.array(good, float)
    skew[0, -1] += 1
    bad = {"skew": skew, "indefinite": -np.asarray(good, float), "not square": np.ones((2, 3))}
    return arrays(good) | bad
