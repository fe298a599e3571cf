"""From a model and labelled inputs to a report, in one call."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jax.typing import ArrayLike

from attnpaths import _checks, theory
from attnpaths.adapters.attention import called_heads, declared
from attnpaths.analysis import choice
from attnpaths.analysis.labels import targets
from attnpaths.analysis.plan import Plan
from attnpaths.analysis.report import Report, attached
from attnpaths.analysis.source import READOUTS, TOKENS, Source, seen_tokens
from attnpaths.problem import Problem


def analyse(
    model: Any,
    inputs: Any,
    labels: Any,
    *,
    readout: int | str | ArrayLike | Sequence[int],
    options: Mapping[str, Any] | None = None,
    mask: Any = None,
    tokens: Any = "normalised",
    residual: bool | Sequence[bool] = True,
    layers: Sequence[int] | None = None,
    blocks: int | None = None,
    chosen: Sequence[tuple[int, int]] | None = None,
    sampled: int | None = None,
    width: ArrayLike | None = None,
    temperature: ArrayLike | None = None,
    choose: str = "cross-validation",
    folds: int = 4,
    most_paths: int = 100,
    seed: int = 0,
    progress: bool = True,
) -> Report:
    """What the theory says of a transformer of PyTorch: paths, order parameter, scores of heads.

    Runs `model(inputs, **options)`, as `adapters.record_attention` does: a tensor, a tuple of
    arguments or a dictionary of named ones. The attention of its heads and its skip connections
    (`residual`, by default in all layers) make paths, along which f = Σ_π f^π is that of a linear
    network with the same attention: layer norms and MLPs are left behind.

    `labels [P]` are ±1 or the numbers of classes 0, …, C − 1. Two classes become y = ±1; more
    become C outputs, y_c = δ − 1/C, `[P, C]`. Numbers to regress on are given as `[P, C]`.

    `readout` is the token that is read: `"first"`, `"last"` or `"mean"` of those that are no
    padding, a token's number, or one for each example, `[P]`. Padding is what `mask [P, T]`, the
    inputs' `attention_mask` or the option `src_key_padding_mask` says. `tokens` are where paths
    start: `"normalised"`, what the first attention layer reads; `"raw"`, the same before the
    layer norm in front of it, often so small that the labels drown in the temperature; or an array
    `[P, T, D]`.

    `layers` = (first, last), from 1, is a window: what is below it is part of the tokens, and
    layers above are passed by their skips. Its layers may be put in `blocks`, in each of which a
    path goes through at most one head. Without both, as many of the last layers are taken, with
    all their paths, as have at most `most_paths`; see `Plan.of`. Of the heads, some may be
    `chosen`, [(layer, head), …], or so many of each block `sampled` at random by `seed`, which then
    stand for all of it. The report's `share` says how much of the prior variance of f the followed
    paths carry, or those that they stand for, out of all that there is from the window's first
    layer on: layers below it do not count. Its `error` says how far the GP limit's kernel of a draw
    of heads is from the mean over all draws.

    What is too much is refused: paths before the model runs, if its `config` or several
    `nn.MultiheadAttention` in it say how many heads it has (else it runs once more, to count them);
    attention before the first matrix is made.

    `width` N and `temperature` 𝒯, where they are not given, are the best of a small grid, by
    `folds`-fold cross-validation or, `choose="evidence"`, by the evidence at the saddle point,
    which can choose 𝒯 alone.

    >>> import torch
    >>> layer = torch.nn.TransformerEncoderLayer(6, 2, 8, batch_first=True, norm_first=True)
    >>> model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    >>> x, y = torch.randn(20, 4, 6), [0, 1] * 10
    >>> analyse(model, x, y, readout="last", width=10, temperature=0.1).heads().shape
    (4, 5)
    """
    kind, y = targets(labels)
    outputs = y.shape[1] if y.ndim == 2 else 1
    for name, value, choices in (("readout", readout, READOUTS), ("tokens", tokens, TOKENS)):
        if isinstance(value, str):
            _checks.choice(name, value, choices)
    _checks.choice("choose", choose, ("cross-validation", "evidence"))
    folds = _checks.whole("folds", folds, least=2, most=len(y))
    seed, progress = _checks.whole("seed", seed, least=0), _checks.flag("progress", progress)
    which = tokens if isinstance(tokens, str) else "given"
    given: Any = tokens if which == "given" else None
    if width is not None:
        width = float(_checks.number("width", width, least=1, infinite=True))
    if temperature is not None:
        temperature = float(_checks.number("temperature", temperature, above=0))
    source = Source(model, options, readout, which)
    wanted = {"layers": layers, "blocks": blocks, "residual": residual, "most_paths": most_paths}
    wanted |= {"chosen": chosen, "sampled": sampled, "seed": seed}

    def planned(heads: Sequence[int], dim: int) -> Plan:
        plan = Plan.of(heads, outputs=outputs, **wanted)
        what = f"the theory of {len(y)} examples along {plan.paths:,} paths"
        needed = plan.bytes(len(y), dim, outputs)
        _checks.memory(needed, what, "take fewer examples, layers or blocks")
        return plan

    heads, dim = declared(model)
    dim = np.shape(given)[2] if _checks.axes_of(given) == 3 else dim
    heads = heads or called_heads(model, inputs, options)
    plan = planned(heads, dim or 1)
    seen = source.record(inputs, plan, len(heads))
    if (called := tuple(layer.shape[1] for layer in seen.omega)) != heads:
        # a model may leave some of its layers out, or call them in another order
        heads, plan = called, planned(called, dim or 1)
        seen = source.record(inputs, plan, len(heads))
    if dim is None and given is None:
        plan = planned(heads, seen_tokens(seen, plan.first, which).shape[2])
    if len(seen.omega[-1]) != len(y):
        hint = "; a model of [tokens, examples, dim] has to be made with batch_first=True"
        raise ValueError(
            f"labels must hold one label per example, {len(seen.omega[-1])}; got {len(y)}"
            + hint * (len(y) == seen.omega[-1].shape[2])
        )
    xi = source.features(plan, seen, inputs, mask, given)
    skips = _checks.skips(residual, len(heads))
    share = source.share(plan, seen, inputs, mask, given, skips)
    error = source.error(plan, seen, inputs, mask, given, seed)
    setting = {"heads": plan.theory_heads, "residual": plan.theory_residual}
    # any temperature: it is chosen below
    problem = Problem.of(xi, y, temperature=1.0 if temperature is None else temperature, **setting)
    tried = None
    if width is None or temperature is None:
        tried = choice.choose(problem, choose, width, temperature, folds, seed, progress)
        i, j = tried.best
        width, temperature = tried.widths[i], tried.temperatures[j]
    choice.warn_if_faint(problem, temperature)
    solution = theory.solve(xi, y, width=width, temperature=temperature, **setting)
    name = type(model).__name__
    spelled = readout if isinstance(readout, str | int) else "by example"
    report = Report(
        solution, plan, len(heads), share, name, str(spelled), which, kind, tried, error
    )
    return attached(report, source)
