"""Wrong arguments of what rests on the theory: pruning, PyTorch's modules, analysis, explorer."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from attnpaths import Network, Weights, adapters, analysis, explorer, kernels, pruning, theory
from attnpaths.tasks import images, oneshot
from benchmarks.hostile_values import (
    ALL_GONE,
    CALLABLES,
    COUNTS,
    FILES,
    FLAGS,
    HEADS,
    MATRICES,
    NAMES,
    NATURAL,
    NUMBERS,
    POSITIVE,
    RESIDUALS,
    SCORES,
    THINGS,
    WHOLE,
    WORDS,
    Odd,
    arrays,
    but,
    longer,
    matrices,
    signs,
    whole_network,
)

RNG = np.random.default_rng(1)
XI, Y = RNG.normal(size=(6, 4, 3)), np.array([1.0, -1, 1, -1, 1, -1])
OUTPUTS = np.ones((6, 4))
OMEGA = [np.full((6, 2, 4, 4), 0.25)] * 2
WEIGHTS = Weights.prior(0, width=5, dim=3, heads=(2, 2))
INPUTS = torch.from_numpy(RNG.normal(size=(6, 4, 6))).float()


def without_heads(module, heads):
    """A head that is not there is refused when the module runs."""
    with adapters.without_heads(module, heads), torch.no_grad():
        return module(*[torch.zeros(5, 4, 6)] * 3)[0]


def gated_heads(module, gates):
    """Factors are looked at when the module runs, too."""
    with adapters.gated_heads(module, gates), torch.no_grad():
        return module(*[torch.zeros(5, 4, 6)] * 3)[0]


def answer(**given):
    """The explorer's first answer to a small setting, but for what is given."""
    return next(explorer.answers({"tokens": 2, "examples": 4} | given))


@functools.cache
def fashion() -> images.Images:
    """As many black images of two classes as FashionMNIST has, and one more of each."""
    classes = np.repeat([0, 1], [6001, 6001])
    black = np.zeros((len(classes), 8, 8), np.uint8)
    return images.Images("fashion_mnist", black, classes, ("0", "1"), 0.3, 0.4)


def functions() -> dict[str, tuple[Callable, dict[str, Any], dict[str, dict[str, Any]]]]:
    """By name: a function, good arguments, and wrong values of some of them."""
    linear = MATRICES | {"odd": np.ones((5, 6)), "complex": np.ones((6, 6)) * 1j}
    layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True).eval()
    given = {"model": layer, "inputs": INPUTS, "labels": Y, "readout": "last", "width": 10.0}
    given |= {"temperature": 0.5, "progress": False}
    report = analysis.analyse(**given)
    grid = theory.sweep(
        XI, Y, heads=(2, 2), widths=[10, 100], temperatures=[0.5, 1.0], progress=False
    )
    square = np.full((2, 2, 2, 2), 0.5)
    network = Network([RNG.normal(size=(2, 3, 3))] * 2, readout=-1)
    attention = nn.MultiheadAttention(6, 2, bias=False)
    maps = {"None": None, "text": "x", "flat": np.ones((6, 3)), "other": np.ones((6, 4, 5))}
    maps |= {"deep": [np.ones((2, 3))], "texts": [np.full((1, 1, 2, 2), "a")]}
    maps |= {"NaN": [np.full((1, 1, 2, 2), np.nan)]}
    uneven = maps | {"negative": [-OMEGA[0]], "too large": [2 * OMEGA[0]], "empty": []}
    window = {"text": "12", "one": 1, "three": (1, 1, 1), "zero": (0, 1), "outside": (1, 2)}
    window |= {"turned": (1, 0), "half": (0.5, 1), "an object": Odd()}
    readouts = {"None": None, "text": "middle", "outside": 4, "far": -5, "half": 0.5}
    readouts |= {
        "too many": [0] * 7,
        "NaN": float("nan"),
        "padded": "last, but one",
        "texts": ["a"],
        "masked": np.ma.array([0] * 6, mask=[1] + [0] * 5),
    }
    classes = {"names": ["a", "b"] * 3, "a class missing": [0, 2] * 3, "half": [0.5, 1.0] * 3}
    classes |= {"negative": [-2, 1] * 3}
    masks = {"text": "all", "flat": np.ones(6), "other": np.ones((6, 5)), "empty": np.zeros((6, 4))}
    masks |= {"ragged": [[1, 1], [1]], "texts": np.full((6, 4), "1")}
    masks |= {
        "NaN": np.full((6, 4), np.nan),
        "masked": np.ma.array(np.ones((6, 4)), mask=np.eye(6, 4)),
    }
    points = {"a diagonal": ([0, 1], [0, 1]), "twice": [0, 0], "a mask": np.eye(2, dtype=bool)}
    points |= {"crossed": ([0, 0, 1, 1], [0, 1, 1, 0])}
    chains = {name: POSITIVE for name in ("width", "temperature")}
    chains |= {name: NUMBERS for name in ("sigma_perp", "sigma_parallel")}
    chains |= {name: NUMBERS | {"two": 2} for name in ("flip_plus", "flip_minus")}
    chains |= {name: NATURAL | {"huge": 10**6} for name in ("examples", "tokens", "tasks")}
    chains |= {"seed": WHOLE | {"huge": 2**60, "word": "authors"}, "denoising": WORDS}
    chains |= {
        "off": {"None": None, "all of a layer": ["1.1", "1.2"], "text": "1.1", "deep": [[1]]}
    }
    chains["width"] = but(chains["width"], "infinite") | {"huge": 10**9}
    # fmt: off
    return {
        "all_heads": (pruning.all_heads, {"heads": (2, 2)}, {"heads": COUNTS}),
        "check_heads": (pruning.check_heads, {"named": [(1, 1)], "heads": (2, 2)},
            {"named": NAMES, "heads": COUNTS}),
        "head_scores": (pruning.head_scores, {"U": np.eye(4), "heads": (2, 2)},
            {"U": matrices(np.eye(4)), "heads": COUNTS | {"others": (2, 3)}, "pairs": WORDS,
            "residual": RESIDUALS | {"both": True}, "sizes": but(arrays(np.ones((4, 4))), "None")
            | {"negative": -np.ones((4, 4)), "other": np.ones((3, 3))}}),
        "kernel_sizes": (pruning.kernel_sizes, {"problem": None}, {"problem": THINGS}),
        "value_norms": (pruning.value_norms, {"weights": WEIGHTS},
            {"weights": whole_network(WEIGHTS)}),
        "order_by_score": (pruning.order_by_score, {"scores": {(1, 1): 1.0, (1, 2): 2.0}},
            {"scores": SCORES}),
        "one_by_one": (pruning.one_by_one, {"score": lambda gone: {(1, 1): 1.0, (1, 2): 2.0},
            "heads": (2,)}, {"score": CALLABLES | {f"gives {name}": lambda gone, found=found: found
            for name, found in SCORES.items()}, "heads": COUNTS}),
        "order_by_norm": (pruning.order_by_norm, {"weights": WEIGHTS},
            {"weights": whole_network(WEIGHTS)}),
        "random_order": (pruning.random_order, {"heads": (2, 2), "seed": 0}, {"heads": COUNTS,
            "seed": WHOLE}),
        "prune": (pruning.prune, {"network": network, "weights": WEIGHTS, "heads": [(1, 1)],
            "rescale": True}, {"network": THINGS, "weights": whole_network(WEIGHTS),
            "heads": NAMES | ALL_GONE, "rescale": FLAGS}),
        "pruned_outputs": (pruning.pruned_outputs, {"outputs": OUTPUTS, "heads": (2, 2),
            "pruned": [(1, 1)]}, {"outputs": arrays(OUTPUTS), "heads": COUNTS, "pruned": NAMES
            | ALL_GONE}),
        "curve": (pruning.curve, {"outputs": OUTPUTS, "y": Y, "heads": (2, 2), "order": [(1, 1)]},
            {"outputs": arrays(OUTPUTS) | longer(OUTPUTS), "y": signs(Y), "heads": COUNTS,
            "order": NAMES | ALL_GONE, "ablation": WORDS}),
        "each_head": (pruning.each_head, {"outputs": OUTPUTS, "y": Y, "heads": (2, 2)},
            {"outputs": arrays(OUTPUTS), "y": signs(Y), "heads": COUNTS, "ablation": WORDS}),
        "gradient_importance": (pruning.gradient_importance, {"outputs": OUTPUTS, "y": Y,
            "heads": (2, 2)}, {"outputs": arrays(OUTPUTS), "y": signs(Y), "heads": COUNTS,
            "gone": NAMES | ALL_GONE, "by_layer": FLAGS}),
        "head_sizes": (pruning.head_sizes, {"outputs": OUTPUTS, "heads": (2, 2)},
            {"outputs": arrays(OUTPUTS), "heads": COUNTS}),
        "attention_focus": (pruning.attention_focus, {"attention": OMEGA}, {"attention": uneven}),
        "theory_outputs": (pruning.theory_outputs, {"theory": report.theory, "xi": XI},
            {"theory": THINGS, "xi": arrays(XI)}),
        "subset_accuracies": (pruning.subset_accuracies, {"outputs": OUTPUTS, "y": Y,
            "heads": (2, 2)}, {"outputs": arrays(OUTPUTS), "y": signs(Y), "heads": COUNTS
            | {"many": (11, 11)}, "ablation": WORDS}),
        "shapley_values": (pruning.shapley_values, {"accuracies": square, "heads": (2, 2)},
            {"accuracies": arrays(square), "heads": COUNTS | {"others": (2, 3)}}),
        "best_subsets": (pruning.best_subsets, {"accuracies": square, "heads": (2, 2)},
            {"accuracies": arrays(square), "heads": COUNTS | {"others": (2, 3)}}),
        "network_from_torch": (adapters.network_from_torch, {"layers": attention, "readout": 0,
            "constant": False}, {"layers": THINGS | {"no attention": nn.Linear(2, 2), "empty": []},
            "readout": {"None": None, "text": "last", "half": 0.5, "True": True},
            "constant": FLAGS}),
        "weights_from_torch": (adapters.weights_from_torch, {"layers": attention,
            "V0": np.ones((6, 6)), "a": np.ones(6)}, {"layers": THINGS
            | {"no attention": nn.Linear(2, 2)}, "V0": MATRICES, "a": {"None": None, "text": "a",
            "NaN": np.full(6, np.nan), "two": np.ones((2, 6))}}),
        "Layer.from_linear": (adapters.Layer.from_linear, {"query": np.ones((6, 6)),
            "key": np.ones((6, 6)), "value": np.ones((6, 6)), "heads": 2, "scale": 1.0},
            {"query": linear, "key": linear, "value": but(linear, "None"), "output": but(linear,
            "None", "flat", "odd") | {"too few": np.ones((6, 5))}, "heads": NATURAL,
            "scale": but(POSITIVE, "None")}),
        "Layer.from_multihead": (adapters.Layer.from_multihead, {"module": attention},
            {"module": THINGS | {"no attention": nn.Linear(6, 2)}}),
        "record_attention": (adapters.record_attention, {"module": layer, "inputs": INPUTS},
            {"module": THINGS | {"no attention": nn.Linear(6, 2),
            "dropout": nn.TransformerEncoderLayer(6, 2)}}),
        "keys_first": (adapters.keys_first, {"attentions": OMEGA}, {"attentions": maps}),
        "without_heads": (without_heads, {"module": nn.MultiheadAttention(6, 2),
            "heads": [(1, 1)]}, {"module": THINGS, "heads": NAMES}),
        "gated_heads": (gated_heads, {"module": nn.MultiheadAttention(6, 2),
            "gates": {(1, 1): 0.5}}, {"module": THINGS, "gates": but(SCORES, "empty")
            | {"outside": {(1, 3): 1.0}, "half": {(1, 1.5): 1.0}}}),
        "keys of a network": (Network, {"heads": [(np.ones((2, 5, 3)), np.ones((2, 5, 3)))],
            "readout": 0}, {"heads": HEADS | {f"W_Q {k}": [(np.ones((2, 5, 3)), v)] for k,
            v in arrays(np.ones((2, 5, 3))).items()}, "residual": RESIDUALS}),
        "analyse": (analysis.analyse, given, {"model": THINGS | {"no attention": nn.Linear(6, 2)},
            "labels": but(arrays(Y), "an axis more") | longer(Y) | classes, "readout": readouts,
            "mask": masks, "tokens": but(arrays(np.ones((6, 4, 3))), "None") | {"word": "mine",
            "a token less": np.ones((6, 3, 3))}, "residual": RESIDUALS, "layers": window,
            "blocks": but(NATURAL, "None") | {"more": 2}, "chosen": {"none": [], "one": (1, 1),
            "outside": [(1, 9)], "half": [(1, 1.5)]}, "sampled": but(NATURAL, "None"),
            "width": but(POSITIVE, "None", "infinite"), "temperature": but(POSITIVE, "None"),
            "choose": WORDS, "folds": NATURAL | {"one": 1, "more": 7},
            "most_paths": NATURAL | {"few": 2}, "seed": WHOLE, "progress": FLAGS}),
        "Plan.of": (analysis.Plan.of, {"heads": (2, 2)}, {"heads": COUNTS, "layers": window
            | {"outside": (1, 3)}, "blocks": but(NATURAL, "None") | {"more": 3},
            "residual": RESIDUALS, "outputs": NATURAL, "most_paths": NATURAL, "seed": WHOLE,
            "chosen": {"none": [], "one": (1, 1), "outside": [(1, 9)], "half": [(1, 1.5)]},
            "sampled": but(NATURAL, "None")}),
        "Report.hits": (report.hits, {"inputs": INPUTS, "labels": Y}, {"labels":
            but(arrays(Y), "an axis more") | longer(Y) | classes}),
        "Report.predict": (report.predict, {"inputs": INPUTS}, {"mask": masks,
            "tokens": but(arrays(np.ones((6, 4, 6))), "None") | {"other": np.ones((6, 4, 3))}}),
        "Report.scores": (report.scores, {}, {"pairs": WORDS, "weighed": FLAGS}),
        "Report.figure": (report.figure, {}, {"what": WORDS}),
        "Report.save": (report.save, {"path": ""}, {"path": FILES}),
        "analysis.load": (analysis.load, {"path": ""}, {"path": FILES}),
        "Sweep.to_xarray": (lambda grid_of: grid[grid_of].to_xarray(), {"grid_of": 0},
            {"grid_of": points}),
        "Prediction.accuracy of several": (kernels.Prediction(np.ones((6, 2)), np.ones((6, 2)),
            np.ones((6, 2, 2))).accuracy, {"y": np.ones((6, 2))}, {"y": arrays(np.ones((6, 2))),
            "by": but(WORDS, "None")}),
        "authors_set": (oneshot.authors_set, {"images": fashion(), "examples": 2},
            {"images": THINGS | {"glyphs": images.load("glyphs", classes=30)},
            "examples": but(NATURAL, "None") | {"odd": 3, "many": 4}}),
        "Explorer": (explorer.Explorer, {}, {"view": WORDS} | chains),
        "answers": (lambda setting: next(explorer.answers(setting)), {"setting": {}},
            {"setting": THINGS | {"unknown": {"height": 3}, "a number as name": {3: 3}}}),
        "answers to": (answer, {}, chains),
    }
    # fmt: on
