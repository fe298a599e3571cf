"""Calls that make no sense: each public function with one argument that is wrong.

Every argument has a kind, and every kind its wrong values. A call counts as refused if it raises a
`ValueError` (or, for files, an `OSError` of its own) that names the argument; any other exception
is unclear, and an answer is wrong in silence.
"""

import dataclasses
import itertools
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from attnpaths import (
    Network,
    Problem,
    Weights,
    effective_weights,
    empirical_order_parameter,
    kernels,
    paths,
    posterior,
    theory,
    training,
)
from attnpaths.network import path_outputs
from attnpaths.tasks import glyphs, images, markov, oneshot
from benchmarks import hostile_rooms
from benchmarks.hostile_values import (
    COUNTS,
    FILES,
    FLAGS,
    HEADS,
    KINDS_OF_WIDTH,
    LISTS,
    NATURAL,
    NUMBERS,
    POSITIVE,
    READOUTS,
    RESIDUALS,
    SEEDS,
    THINGS,
    UNITS,
    WHOLE,
    WORDS,
    Odd,
    arrays,
    but,
    labels,
    longer,
    matrices,
    signs,
    whole_network,
)

TEMPORARY = tempfile.gettempdir()
NO_KIND = {"no kind": f"{TEMPORARY}/it"}


class Call(NamedTuple):
    """One call, and the words by which its error may name what is wrong."""

    name: str
    words: tuple[str, ...]
    make: Callable[[], Any]


RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 4, 3))
# attention between so many tokens, or a kernel of so many examples, no machine holds
LONG = np.ones((1, 10**6, 3))
MANY = np.ones((10**6, 4, 3))
XI, Y = RNG.normal(size=(6, 4, 3)), np.array([1.0, -1, 1, -1, 1, -1])
NETWORK = Network([RNG.normal(size=(2, 3, 3))] * 2, readout=-1)
WEIGHTS = Weights.prior(0, width=5, dim=3, heads=(2, 2))
OMEGA = [np.full((6, 2, 4, 4), 0.25)] * 2
SETTING = {"xi": XI, "y": Y, "heads": (2, 2), "temperature": 0.5, "prior_variance": 1.0}
GLYPHS = images.load("glyphs", classes=30)
SEQUENCES = oneshot.draw(GLYPHS, 4, seed=0)
FEW = {"chains": 1, "warmup": 2, "samples": 4, "seed": 0, "progress": False, "thinning": 1}
SMALL = {"layers": 1, "heads": 1, "key_dim": 2, "width": 2, "source": "glyphs", "batch": 4}
SMALL |= {"validate_every": 10, "validation_examples": 4, "epochs": 0.01}
FOLDER = tempfile.mkdtemp(prefix="attnpaths-hostile-")
PAIR = (np.ones((2, 3, 192)), np.ones((2, 3, 192)))


def solving(function, *, sampled=False, **more):
    """The arguments that all ways to an order parameter share."""
    good = SETTING | more
    wrong = {"xi": arrays(XI) | longer(XI), "y": labels(Y), "heads": COUNTS | {"others": (2, 3)}}
    kinds = {"two": (1.0, 1.0), "one negative": (1.0, -1.0, 1.0), "ragged": [[1.0], [1.0, 2.0]]}
    wrong |= {"temperature": POSITIVE, "prior_variance": POSITIVE | kinds}
    wrong |= {"residual": RESIDUALS | {"paths of another": True}}
    if "width" in more:
        wrong["width"] = UNITS if sampled else KINDS_OF_WIDTH
    if sampled:
        # no width is too large for the order parameter
        wrong["width"] = {k: v for k, v in UNITS.items() if k != "huge"}
    return function, good, wrong


def several(function, *, skipping, **more):
    """The same where layers have skips and labels are of several outputs."""
    xi, y = np.ones((6, 9, 3)), np.stack([Y, -Y], axis=1)
    good = SETTING | {"xi": xi, "y": y, "residual": True} | more
    wrong = {"xi": {"paths of heads alone": XI}, "y": arrays(y) | longer(y)}
    wrong |= {"residual": {"no skip": False, "one": (True, False)}}
    return function, good, wrong | ({"width": {"across a skip": (5, 6, 5)}} if skipping else {})


def sampling(wrong):
    """What both samplers take besides the problem."""
    small = {"chains": NATURAL | {"huge": 10**12}, "warmup": NATURAL}
    small |= {"samples": NATURAL | {"huge": 10**12}, "thinning": NATURAL | {"more": 5}}
    small |= {"seed": SEEDS, "progress": FLAGS}
    return wrong | small | {"acceptance": POSITIVE | {"one": 1.0}}


def sampled() -> posterior.Posterior:
    """Four draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", posterior.DoubtfulSample)
        return posterior.sample_order_parameter(**SETTING, width=5, **FEW)


def functions() -> dict[str, tuple[Callable, dict[str, Any], dict[str, dict[str, Any]]]]:
    """By name: a function, good arguments, and wrong values of some of them."""
    kernel = np.eye(6)
    grid = {k: v for k, v in SETTING.items() if k != "temperature"}
    draws_f, draws_good, draws_wrong = solving(
        posterior.sample_order_parameter, sampled=True, width=5, acceptance=0.9, whiten=False, **FEW
    )
    markov_good = {"seed": 0, "tokens": 3, "dim": 4, "examples": 4, "test_examples": 4}
    markov_good |= {"sigma_parallel": 1.0, "sigma_perp": 1.0, "beta": 10.0, "paths": "all"}
    markov_good |= {"denoising": "random", "p_flip": (0.3, 0.7)}
    flips = {"None": None, "one": 0.3, "three": (0.1, (0.1, 0.2, 0.3)), "too large": (0.3, 1.7)}
    flips |= {"one alone": (0.3,), "masked": np.ma.array([0.3, 0.7], mask=[1, 0])}
    flips |= {"NaN": (0.3, float("nan")), "texts": ("a", "b"), "negative": (-0.1, 0.5)}
    few = {"source": GLYPHS, "examples": 4, "test_examples": 4, "out_of_distribution": ()}
    sizes = {"huge": 10**13}
    classes = {"text": "ab", "outside": [0, 30], "one": [0], "twice": [0, 0], "negative": [-1, 0]}
    classes |= {"half": [0.5, 1.0], "an object": Odd(), "NaN": [0, float("nan")]}
    image = {"source": "mnist", "pixels": np.zeros((3, 8, 8), np.uint8), "names": ("0", "1")}
    image |= {"labels": np.array([0, 0, 1]), "mean": 0.5, "std": 0.5}
    pixels = {"float": np.zeros((3, 8, 8)), "signed": np.zeros((3, 8, 8), int), "None": None}
    pixels |= {
        "colour": np.zeros((3, 8, 8, 3), np.uint8),
        "text": "black",
        "bool": np.zeros((3, 8, 8), bool),
    }
    pixels |= {
        "masked": np.ma.array(image["pixels"], mask=True),
        "another number": np.zeros((4, 8, 8), np.uint8),
    }
    classed = {"float": np.array([0.0, 0, 1]), "None": None, "unsorted": np.array([1, 0, 0])}
    classed |= {"outside": np.array([0, 1, 2]), "negative": np.array([-1, 0, 1]), "text": "001"}
    classed |= {"masked": np.ma.array([0, 0, 1], mask=[1, 0, 0]), "short": np.array([0, 1])}
    rows = {"float": SEQUENCES.images / 1.0, "two": SEQUENCES.images[:, :2], "None": None}
    rows |= {"text": "abc", "negative": SEQUENCES.images - 10**6}
    rows |= {"masked": np.ma.array(SEQUENCES.images, mask=True)}
    flat = {"flat": np.ones(3), "None": None, "NaN": np.full((3, 192), np.nan), "text": "vectors"}
    flat |= {"two": np.ones((2, 192)), "other": np.ones((3, 5))}
    uneven = {"keys": np.full((6, 2, 4, 4), 0.5), "negative": np.full((6, 2, 4, 4), -0.25)}
    uneven |= {"other tokens": np.full((6, 2, 5, 5), 0.2), "NaN": np.full((6, 2, 4, 4), np.nan)}
    maps = {k: [v] for k, v in uneven.items()} | {"None": None, "empty": [], "number": 3}
    maps |= {
        "flat": [np.ones(3)],
        "None inside": [None],
        "masked": [np.ma.array(OMEGA[0], mask=True)],
    }
    solved = theory.solve(**SETTING, width=10)
    drawn = sampled()
    point = {
        "model": training.Model(**{k: SMALL[k] for k in ("layers", "heads", "key_dim", "width")})
    }
    point |= {"encoder": oneshot.Encoder(GLYPHS), "sequences": SEQUENCES}
    trained = training.Trained(Network([PAIR], readout="mean"), None, np.ones((3, 192)), {})
    unkept = {"network": {"network": None}, "weights": {"weights": WEIGHTS}}
    unkept |= {f"labels {k}": {"labels": v} for k, v in arrays(np.ones((3, 192))).items()}
    unkept |= {"no record": {"record": None}, "an array in its record": {"record": {"x": X}}}
    whole = dataclasses.replace(trained, weights=Weights.prior(0, width=4, dim=192, heads=(2,)))
    unkept = {name: dataclasses.replace(whole, **wrong) for name, wrong in unkept.items()}
    huge = [tuple(1e6 * each for each in PAIR)]
    unkept["huge"] = dataclasses.replace(whole, network=Network(huge, readout="mean"))
    kept = f"{FOLDER}/kept.npz"
    training.save_weights(kept, trained, values=False)
    recorded, predicted = Network.from_attention(OMEGA, X, readout=0), drawn.predict(XI)
    others = but(arrays(X), "None") | {"others": X + 1}
    # fmt: off
    return {
        "Network": (Network, {"heads": [np.ones((2, 3, 3))], "readout": 0}, {"heads": HEADS,
            "readout": but(READOUTS, "outside", "far"), "residual": RESIDUALS
            | {"two": (True, True)}}),
        "Network.features": (NETWORK.features, {"x": X}, {"x": arrays(X)
            | {"other tokens": np.ones((6, 4, 5)), "huge": X * 1e+200, "long": LONG}}),
        "Network.attention": (NETWORK.attention, {"x": X}, {"x": arrays(X)
            | {"other tokens": np.ones((6, 4, 5)), "huge": X * 1e+200, "long": LONG}}),
        "Network.apply": (NETWORK.apply, {"weights": WEIGHTS, "x": X}, {"x": arrays(X)
            | {"long": LONG},
            "weights": whole_network(WEIGHTS)}),
        "Network.apply_paths": (NETWORK.apply_paths, {"weights": WEIGHTS, "x": X},
            {"x": arrays(X), "weights": whole_network(WEIGHTS)}),
        "Network.from_attention": (Network.from_attention, {"omega": OMEGA, "x": X, "readout": 0},
            {"omega": maps, "x": arrays(X) | longer(X), "readout": READOUTS,
            "residual": RESIDUALS}),
        "Attended.attention": (recorded.attention, {"x": X}, {"x": others}),
        "Attended.features": (recorded.features, {"x": X}, {"x": others}),
        "Attended.apply_paths": (recorded.apply_paths, {"weights": WEIGHTS, "x": X},
            {"weights": whole_network(WEIGHTS), "x": others}),
        "effective_weights": (effective_weights, {"weights": WEIGHTS},
            {"weights": whole_network(WEIGHTS), "residual": RESIDUALS}),
        "empirical_order_parameter": (empirical_order_parameter, {"weights": WEIGHTS},
            {"weights": whole_network(WEIGHTS), "residual": RESIDUALS}),
        "path_outputs": (path_outputs, {"weights": WEIGHTS, "xi": XI},
            {"weights": whole_network(WEIGHTS), "xi": arrays(XI), "residual": RESIDUALS}),
        "Weights.prior": (Weights.prior, {"seed": 0, "width": 5, "dim": 3, "heads": (2, 2),
            "prior_variance": 1.0}, {"seed": but(SEEDS, "a key"), "width": UNITS, "dim": NATURAL,
            "heads": COUNTS, "prior_variance": POSITIVE, "outputs": but(NATURAL, "None")}),
        "paths": (paths.paths, {"head_counts": (2, 2), "layer": 1}, {"head_counts": COUNTS
            | {"huge": (1000,) * 4}, "layer": NATURAL | {"four": 4}, "residual": RESIDUALS}),
        "labels": (paths.labels, {"head_counts": (2, 2), "layer": 1}, {"head_counts": COUNTS
            | {"huge": (1000,) * 4}, "layer": NATURAL | {"four": 4}, "residual": RESIDUALS,
            "outputs": but(NATURAL, "None")}),
        "path_kernels": (kernels.path_kernels, {"xi_a": XI, "xi_b": XI}, {"xi_a": arrays(XI),
            "xi_b": but(arrays(XI), "None")}),
        "total_kernel": (kernels.total_kernel, {"U": np.eye(4), "xi_a": XI,
            "prior_variance": 1.0}, {"U": matrices(np.eye(4)), "xi_a": arrays(XI)
            | {"many": MANY}, "xi_b": but(arrays(XI), "None"), "prior_variance": POSITIVE,
            "scale": but(arrays(np.ones(4)), "None") | {"other": np.ones(3)}}),
        "kernels.predict": (kernels.predict, {"kernel": kernel, "cross": kernel,
            "diagonal": np.ones(6), "y": Y, "temperature": 1.0}, {"kernel": matrices(kernel),
            "cross": arrays(kernel), "diagonal": labels(np.ones(6)), "y": labels(Y),
            "temperature": POSITIVE}),
        "alignment": (kernels.alignment, {"kernel": kernel, "y": Y}, {"kernel": matrices(kernel),
            "y": labels(Y) | {"zero": 0 * Y}}),
        "Prediction.accuracy": (kernels.Prediction(jnp.ones(6), jnp.ones(6)).accuracy, {"y": Y},
            {"y": signs(Y)}),
        "Problem.of": solving(Problem.of),
        "theory.solve": solving(theory.solve, width=10),
        "theory.gp_limit": solving(theory.gp_limit),
        "Problem.of several": several(Problem.of, skipping=False),
        "theory.solve several": several(theory.solve, skipping=True, width=10),
        "theory.gp_limit several": several(theory.gp_limit, skipping=False),
        "sample_order_parameter several": several(posterior.sample_order_parameter, skipping=True,
            width=5, **FEW),
        "theory.solve_adam": (theory.solve_adam, SETTING | {"width": 10, "steps": 10,
            "tolerance": 1000000000.0, "learning_rate": 0.001, "target": -np.inf},
            {"xi": arrays(XI), "y": labels(Y), "heads": COUNTS, "width": NUMBERS | {"zero": 0.0},
            "temperature": POSITIVE, "prior_variance": POSITIVE, "steps": NATURAL,
            "tolerance": POSITIVE, "learning_rate": but(POSITIVE, "None"),
            "target": {"NaN": float("nan"), "text": "low", "None": None,
            "two": [1.0, 2.0], "complex": 1j}}),
        "theory.sweep": (theory.sweep, grid | {"widths": [10], "temperatures": [0.5],
            "progress": False}, {"xi": arrays(XI), "y": labels(Y), "heads": COUNTS,
            "widths": LISTS | {"zero": [0.0]}, "temperatures": LISTS | {"zero": [0.0],
            "infinite": [np.inf]}, "prior_variance": POSITIVE, "residual": RESIDUALS,
            "progress": FLAGS}),
        "theory.load": (theory.load, {"path": ""}, {"path": FILES}),
        "Theory.predict": (solved.predict, {"xi": XI}, {"xi": arrays(XI) | {"other": np.ones((6,
            2, 3)), "huge": XI * 1e200}}),
        "Theory.kernel": (solved.kernel, {"xi_a": XI, "xi_b": XI}, {"xi_a": but(arrays(XI),
            "None"), "xi_b": but(arrays(XI), "None")}),
        "Theory.kernel of one": (solved.kernel, {"xi_a": XI}, {"xi_a": {"huge": XI * 1e200,
            "many": MANY}}),
        "Theory.save": (solved.save, {"path": ""}, {"path": FILES | NO_KIND}),
        "sample_order_parameter": (draws_f, draws_good, sampling(draws_wrong)
            | {"whiten": FLAGS}),
        "sample_weights": (posterior.sample_weights, {"network": NETWORK, "x": X, "y": Y,
            "width": 5, "temperature": 0.5, "prior_variance": 1.0, "acceptance": 0.9, **FEW},
            sampling({"network": THINGS, "x": arrays(X), "y": labels(Y), "width": UNITS,
            "temperature": POSITIVE, "prior_variance": POSITIVE})),
        "complete_weights": (posterior.complete_weights, {"posterior": drawn, "seed": 0},
            {"posterior": THINGS, "seed": but(SEEDS, "None")}),
        "Posterior.thin": (drawn.thin, {"every": 2}, {"every": NATURAL | {"more": 5}}),
        "Posterior.predict": (drawn.predict, {"xi": XI}, {"xi": arrays(XI)
            | {"other": np.ones((6, 2, 3))}}),
        "Posterior.with_weights": (drawn.with_weights, {"weights": None}, {"weights": THINGS
            | {"of one network": WEIGHTS} | whole_network(WEIGHTS)}),
        "Posterior.outputs": (drawn.with_weights(posterior.complete_weights(drawn, seed=0)).outputs,
            {"xi": XI}, {"xi": arrays(XI) | {"other": np.ones((6, 2, 3))}}),
        "PosteriorPrediction.accuracy": (predicted.accuracy, {"y": Y}, {"y": signs(Y),
            "by": but(WORDS, "None")}),
        "PosteriorPrediction.accuracy_mcse": (predicted.accuracy_mcse, {"y": Y}, {"y": signs(Y),
            "by": but(WORDS, "None")}),
        "Posterior.save": (drawn.save, {"path": ""}, {"path": FILES | NO_KIND}),
        "posterior.load": (posterior.load, {"path": ""}, {"path": FILES}),
        "markov.paper_task": (markov.paper_task, {"sigma_perp": 1.0, "paths": "good",
            "denoising": "random"}, {"sigma_perp": NUMBERS, "paths": WORDS, "denoising": WORDS}),
        "markov.make_task": (markov.make_task, markov_good, {"seed": WHOLE, "tokens": NATURAL
            | sizes, "dim": NATURAL | sizes | {"odd": 5}, "examples": NATURAL | sizes,
            "test_examples": NATURAL | sizes, "sigma_parallel": NUMBERS, "sigma_perp": NUMBERS
            | {"infinite": np.inf}, "beta": POSITIVE, "paths": but(WORDS, "list"),
            "denoising": WORDS, "p_flip": flips}),
        "oneshot.make_task": (oneshot.make_task, {"seed": 0, **few}, {"seed": WHOLE,
            "examples": NATURAL | sizes, "test_examples": NATURAL | sizes, "source": THINGS,
            "out_of_distribution_set": WORDS,
            "out_of_distribution": {"None": None, "text": "mnist", "images": GLYPHS, "number": 3,
            "unknown": ["imagenet"]}, "labels": but(flat, "None"), "progress": FLAGS}),
        "oneshot.draw": (oneshot.draw, {"images": GLYPHS, "examples": 4, "seed": 0},
            {"images": THINGS, "examples": NATURAL | sizes, "seed": but(WHOLE, "list", "array")
            | {"words": [0, -1], "ragged": [[0], [0, 1]]}, "classes": classes}),
        "Sequences": (oneshot.Sequences, {"images": SEQUENCES.images, "signs": SEQUENCES.signs,
            "y": SEQUENCES.y}, {"images": rows,
            "signs": {"zero": 0 * SEQUENCES.y, "NaN": SEQUENCES.y * np.nan,
            "short": SEQUENCES.y[1:], "None": None}, "y": {"zero": 0 * SEQUENCES.y,
            "NaN": SEQUENCES.y * np.nan, "short": SEQUENCES.y[1:], "None": None,
            "masked": np.ma.array(SEQUENCES.y, mask=True)}}),
        "Encoder": (oneshot.Encoder, {"images": GLYPHS}, {"images": THINGS
            | {"small": images.load("glyphs", classes=2, size=28)}, "labels": but(flat, "None")}),
        "Encoder of sequences": (point["encoder"], {"sequences": SEQUENCES},
            {"sequences": THINGS}),
        "Encoder.pixels": (point["encoder"].pixels, {"sequences": SEQUENCES},
            {"sequences": THINGS}),
        "label_vectors": (oneshot.label_vectors, {"seed": 0}, {"seed": WHOLE}),
        "codes": (oneshot.codes, {"labels": np.ones((3, 192))}, {"labels": flat}),
        "split_classes": (oneshot.split_classes, {"images": GLYPHS}, {"images": THINGS}),
        "Images": (images.Images, image, {"pixels": pixels, "labels": classed, "mean": NUMBERS,
            "std": POSITIVE, "names": {"None": None, "number": 2, "one": ("0",)},
            "source": {"None": None, "number": 3}}),
        "Images.of_class": (GLYPHS.of_class, {"index": 0}, {"index": {"text": "0", "negative": -1,
            "outside": 30, "None": None, "half": 0.5, "list": [0], "array": np.array([0, 1]),
            "True": True}}),
        "images.load": (images.load, {"name": "glyphs", "classes": 2, "size": 32, "seed": 0,
            "progress": False}, {"name": WORDS | {"an object": Odd()}, "classes": {"zero": 0,
            "negative": -1, "half": 0.5, "text": "2", "empty": [], "texts": ["a"], "True": True,
            "huge": 10 ** 10, "an object": Odd()}, "size": but(NATURAL, "None") | {"small": 4,
            "huge": 10 ** 8}, "seed": WHOLE, "progress": FLAGS}),
        "images.available": (images.available, {"name": "glyphs"}, {"name": WORDS}),
        "glyphs.draw": (glyphs.draw, {"classes": 2, "examples": 2, "size": 32, "seed": 0},
            {"classes": NATURAL | sizes, "examples": NATURAL | sizes, "size": NATURAL
            | {"huge": 10 ** 8}, "seed": WHOLE}),
        "Settings": (training.Settings, SMALL, {name: NATURAL for name in ("layers", "heads",
            "key_dim", "width", "batch", "validate_every", "validation_examples")}
            | {"seed": WHOLE, "source": WORDS, "sampling": WORDS, "epochs": POSITIVE,
            "learning_rate": POSITIVE, "weight_decay": NUMBERS | {"infinite": np.inf}}),
        "train": (training.train, {"settings": training.Settings(**SMALL), "folder": FOLDER,
            "images": GLYPHS, "progress": False}, {"settings": THINGS, "folder": {"None": None,
            "number": 3, "a file": __file__}, "images": but(THINGS, "None"),
            "checkpoint_every": NATURAL, "until": but(WHOLE, "None"), "test_examples": NATURAL
            | sizes, "progress": FLAGS, "stop": {"None": None, "True": True}}),
        "training.epoch": (lambda **given: list(training.epoch(**given)), {"images": GLYPHS,
            "seed": 0, "number": 0, "classes": range(10), "batch": 4}, {"images": THINGS,
            "seed": WHOLE, "number": WHOLE, "classes": classes, "batch": NATURAL,
            "start": WHOLE, "sampling": WORDS}),
        "batches_per_epoch": (training.batches_per_epoch, {"classes": 10, "batch": 4},
            {"classes": WHOLE, "batch": NATURAL}),
        "Model": (training.Model, {k: SMALL[k] for k in ("layers", "heads", "key_dim", "width")},
            {k: NATURAL | {"huge": 10 ** 9} for k in ("layers", "heads", "key_dim", "width")}
            | {"seed": WHOLE | {"2⁶⁴": 2 ** 64}, "dim": NATURAL}),
        "Model.from_network": (training.Model.from_network, {"network": Network([PAIR],
            readout="mean"), "weights": Weights.prior(0, width=4, dim=192, heads=(2,))},
            {"network": THINGS | {"last token": Network([PAIR], readout=0)}, "weights": THINGS}),
        "training.accuracy": (training.accuracy, point, {"model": THINGS, "encoder": THINGS,
            "sequences": THINGS}),
        "load_weights": (training.load_weights, {"path": kept}, {"path": FILES,
            "width": but(NATURAL, "None")} | {size: but(NATURAL, "None") | {"more": 9}
            for size in ("layers", "heads", "key_dim")}),
        "save_weights": (training.save_weights, {"path": f"{TEMPORARY}/attnpaths-hostile.npz",
            "trained": trained, "values": False}, {"path": FILES | NO_KIND,
            "trained": THINGS, "values": FLAGS}),
        "save_weights of all": (training.save_weights, {"path": f"{FOLDER}/all.npz",
            "trained": whole}, {"trained": unkept}),
    }
    # fmt: on


# errors may name a thing by what it is, and by where in it the fault lies
# fmt: off
ALSO = {"head_counts": ("head",), "posterior": ("Posterior",),
    "path": ("file", "folder", "no weights at"), "name": ("image source",),
    "heads": ("head", "paths", "path"), "order": ("head", "prun"), "pruned": ("head", "prun"),
    "named": ("head",), "weights": ("Weights",), "width": ("weights",
    "draws"), "chains": ("draws",), "samples": ("draws", "thinning"), "settings": ("Settings",),
    "folder": ("folder",), "module": ("Layer", "MultiheadAttention", "training mode"),
    "layers": ("Layer",), "test_examples": ("examples",), "size": ("pixels",),
    "out_of_distribution": ("image source",), "pixels": ("images",), "network": ("Network",),
    "model": ("module", "attention"), "problem": ("Problem",), "theory": ("Theory",),
    "score": ("scores", "head"), "gates": ("head", "factor"), "blocks": ("paths",),
    "most_paths": ("paths",), "tokens": ("token",), "mask": ("padding",),
    "images": ("authors' set",), "grid_of": ("grid",), "residual": ("skip", "paths"),
    "gone": ("head",), "trained": ("weights.",)}
# fmt: on


def calls() -> Iterator[Call]:
    """All of them."""
    everything = functions() | hostile_rooms.functions()
    for name, (function, good, wrong) in everything.items():
        for argument, values in wrong.items():
            for value, bad in values.items():
                given = good | {argument: bad}
                words = (argument, *ALSO.get(argument, ()))
                yield Call(
                    f"{name}({argument}: {value})", words, lambda f=function, g=given: f(**g)
                )


def outcome(call: Call) -> tuple[str, str]:
    """What a call comes to, "refused", "unclear" or "accepted", and its words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call.make()
        except (ValueError, FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            text = str(error)
            clear = len(text) < 800 and any(_named(word, text) for word in call.words)
            return "refused" if clear else "unclear", f"{type(error).__name__}: {text}"
        except Exception as error:
            return "unclear", f"{type(error).__name__}: {error}"
    return "accepted", repr(found)[:200]


def _named(word: str, text: str) -> bool:
    """Whether a text has this word, or one that it begins; a short one only as it is."""
    return bool(re.search(rf"(?<!\w){re.escape(word)}" + r"(?!\w)" * (len(word) < 3), text))


def run(every: int = 1) -> tuple[dict[str, int], list[str]]:
    """What became of all calls, or of one in so many; then those that went wrong."""
    counts = {"refused": 0, "unclear": 0, "accepted": 0}
    bad = []
    for call in itertools.islice(calls(), 0, None, every):
        kind, words = outcome(call)
        counts[kind] += 1
        if kind != "refused":
            bad.append(f"{kind}: {call.name}: {words[:300]}")
    return counts, bad


if __name__ == "__main__":
    print(*run())
