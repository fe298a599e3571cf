"""The answer: an order parameter with the network that it belongs to, to read, draw and keep."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from attnpaths import _checks, _extras, _files, _html, kernels, pruning
from attnpaths.analysis.choice import Choice, log_evidence
from attnpaths.analysis.labels import VALUES, hits, targets
from attnpaths.analysis.plan import Plan
from attnpaths.analysis.source import Source
from attnpaths.problem import Problem
from attnpaths.theory import Theory


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What `analyse` found: the `theory`, the `plan` of paths, and where all of it came from.

    `layers` counts those of the whole model; `share`, out of 1, is how much of the prior variance
    of f goes along the paths that were followed, or that the heads that were drawn stand for; that
    of a window is the share within the layers from its first to the model's last, and says nothing
    of those below. `error` is the relative standard error of the GP limit's kernel of heads that
    were drawn; `choice` is how width and temperature were chosen, if they were. `save` writes all
    of it but the model to a .npz file, without pickle.

    >>> import torch
    >>> from attnpaths.analysis import analyse
    >>> model = torch.nn.TransformerEncoderLayer(6, 2, 8, batch_first=True).eval()
    >>> x, y = torch.randn(20, 4, 6), [0, 1, 2, 1] * 5
    >>> report = analyse(model, x, y, readout="mean", width=10, temperature=0.1)
    >>> report
    Report(TransformerEncoderLayer, layer 1 of 1, 3 paths, share 1.00, N = 10, 𝒯 = 0.1)
    >>> report.predict(x[:5]).mean.shape, len(report.hits(x[:5], y[:5])), len(report.scores())
    ((5, 3), 5, 2)
    >>> report.heads().columns.tolist(), dict(report.to_xarray().sizes)["head"]
    (['layer', 'head', 'score', 'either', 'weighed'], 2)
    >>> type(report.figure("order")).__name__, bool(report.evidence < 0)
    ('Figure', True)
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> report.save(f"{folder.name}/it.npz")
    >>> folder.cleanup()
    """

    theory: Theory
    plan: Plan
    layers: int
    share: float
    model: str
    readout: str
    tokens: str
    labels: str
    choice: Choice | None = None
    error: float | None = None

    def __repr__(self):
        """Where it came from, and the setting."""
        first, last = self.plan.first, self.plan.first + len(self.plan.heads) - 1
        which = f"layer {first}" if first == last else f"layers {first}–{last}"
        error = "" if self.error is None else f"error {self.error:.2f}, "
        share = f"{self.share:.2f}" if self.share >= 0.005 else "< 0.01"
        return (
            f"Report({self.model}, {which} of {self.layers}, {self.plan.paths} paths, "
            f"share {share}{self._within}, {error}N = {float(self.theory.width):g}, "
            f"𝒯 = {float(self.theory.temperature):.3g})"
        )

    def _repr_html_(self) -> str:
        """The setting, and the scores of all heads by layer."""
        plan, found = self.plan, self.scores()
        chosen = "as given" if self.choice is None else f"by {self.choice.by}"
        examples, _, dim = self.theory.xi.shape
        last = plan.first + len(plan.heads) - 1
        blocks = len(plan.blocks)
        followed = f"layer {last}" if plan.first == last else f"layers {plan.first} to {last}"
        followed += f" in {blocks} block{'s' * (blocks > 1)}: {plan.paths} paths"
        if plan.kept is not None:
            how = "drawn" if plan.sampled else "chosen"
            followed += f" through {len(plan.head_names)} heads that were {how}"
        facts = {
            "model": f"{self.model}, {self.layers} attention layer{'s' * (self.layers > 1)}",
            "followed": followed,
            f"share of the prior variance{self._within}": f"{self.share:.3f}",
            "examples": f"{examples}, {self.tokens} tokens of dimension {dim}, read {self.readout}",
            "width N, temperature 𝒯": f"{float(self.theory.width):g}, "
            f"{float(self.theory.temperature):.3g} ({chosen})",
            "converged": bool(self.theory.converged),
        }
        if self.error is not None:
            facts["standard error of the GP kernel"] = f"{self.error:.1%}"
        if self.choice is not None and self.choice.accuracy is not None:
            accuracy = np.asarray(self.choice.accuracy)[self.choice.best]
            facts["accuracy on examples left out"] = f"{accuracy:.3f}"
        table = np.full((len(plan.heads), max(plan.heads)), np.nan)
        for (layer, h), score in found.items():
            table[layer - plan.first, h - 1] = score
        rows = [f"layer {layer}" for layer in range(plan.first, last + 1)]
        columns = [f"head {h + 1}" for h in range(max(plan.heads))]
        caption = "scores, relative to the largest (– for heads that are not followed)"
        shown = _html.table(table / np.nanmax(table), rows, columns, caption, missing="–")
        return _html.card("Report", facts, shown)

    @property
    def _within(self) -> str:
        """Of which layers the share is, if not of all."""
        first, last = self.plan.first, self.layers
        spelled = f"layer {last}" if first == last else f"layers {first} to {last}"
        return "" if first == 1 else f" within {spelled}"

    @property
    def evidence(self) -> float:
        """ln p(Y) at the saddle point: to compare temperatures, not widths."""
        return float(log_evidence(self.theory))

    def scores(self, pairs: str = "both", weighed: bool = False) -> dict[tuple[int, int], float]:
        """The theory's score of every head, by (layer, head) as in the model; skips have none.

        See `pruning.head_scores`; `weighed` by `pruning.kernel_sizes`.
        """
        theory, weighed = self.theory, _checks.flag("weighed", weighed)
        sizes = pruning.kernel_sizes(theory.problem) if weighed else None
        given = {"residual": theory.residual, "sizes": sizes}
        found = pruning.head_scores(theory.U, theory.heads, pairs, **given)
        return dict(zip(self.plan.head_names, found.values(), strict=True))

    def heads(self) -> Any:
        """A `pandas.DataFrame` with a row for every head: layer, head, and its scores.

        `score` is the paper's, `either` that of the authors' code, `weighed` the paper's weighed by
        kernels. Needs pandas, which comes with `pip install "attnpaths[sampling]"`.
        """
        pandas = _extras.require("pandas", "sampling", "Report.heads")
        layer, head = np.transpose(self.plan.head_names)
        scores = {"score": self.scores(), "either": self.scores("either")}
        scores["weighed"] = self.scores(weighed=True)
        columns = {name: list(found.values()) for name, found in scores.items()}
        return pandas.DataFrame({"layer": layer, "head": head, **columns})

    def to_xarray(self) -> Any:
        """U by its paths and the scores by their heads, as an `xarray.Dataset`."""
        xarray = _extras.require("xarray", "sampling", "Report.to_xarray")
        names = self.plan.path_names
        if (outputs := self.theory.problem.outputs) is not None:
            names = [f"{name} ⇒ {c}" for name in names for c in range(outputs)]
        table = self.heads()
        scores = {name: ("head", table[name]) for name in ("score", "either", "weighed")}
        heads = [f"{layer}.{h}" for layer, h in self.plan.head_names]
        attrs = {"model": self.model, "share": self.share, "readout": self.readout}
        attrs |= {"share_of": f"the prior variance{self._within}"}
        attrs |= {name: float(getattr(self.theory, name)) for name in ("width", "temperature")}
        attrs |= {} if self.error is None else {"error": self.error}
        return xarray.Dataset(
            {"U": (("path", "other_path"), np.asarray(self.theory.U)), **scores},
            coords={"path": names, "other_path": names, "head": heads},
            attrs=attrs,
        )

    def figure(self, what: str = "scores") -> Any:
        """A picture: the `"scores"` of all heads, or the `"order"` parameter of all paths."""
        _checks.choice("what", what, ("scores", "order"))
        from attnpaths.figures import analysis

        if what == "scores":
            return analysis.head_map(self.scores())
        data = self.to_xarray()
        return analysis.path_matrix(data.U.values, data.path.values.tolist())

    def predict(
        self,
        inputs: Any,
        *,
        options: Mapping[str, Any] | None = None,
        mask: Any = None,
        tokens: Any = None,
    ) -> kernels.Prediction:
        """Mean and variance of the theory's output on new inputs, `[P]` or `[P, C]`, Eqs. 9 and 30.

        `options`, `mask` and `tokens` are those of the new inputs, where there were some in
        `analyse`.
        """
        source = getattr(self, "_source", None)
        if source is None:
            raise ValueError(
                "this report was read from a file, which holds no model: load(path, model=model)"
            )
        if source.tokens == "given" and tokens is None:
            raise ValueError("tokens were given as an array to analyse: give those of the inputs")
        if options is not None:
            source = dataclasses.replace(source, options=options)
        if not isinstance(source.readout, str) and np.ndim(source.readout):
            raise ValueError(
                "readout was given example by example, and is not known for new inputs; use "
                '"first", "last", "mean" or one number in analyse'
            )
        seen = source.record(inputs, self.plan, self.layers)
        xi = source.features(self.plan, seen, inputs, mask, tokens)
        if (dim := xi.shape[2]) != (wanted := self.theory.xi.shape[2]):
            raise ValueError(f"tokens must have dimension {wanted}, as in analyse; got {dim}")
        return self.theory.predict(xi)

    def hits(self, inputs: Any, labels: Any, **more: Any) -> np.ndarray:
        """Which of new `labels [P]` the theory gets right: by sign, or the largest of C outputs."""
        outputs = self.theory.problem.outputs
        # new labels need not have all classes, and two classes may be ±1 or 0 and 1
        classes = None if self.labels == VALUES else outputs or 2
        _, y = targets(labels, classes)
        mean = self.predict(inputs, **more).mean
        if len(mean) != len(y):
            raise ValueError(f"labels must hold one label per example, {len(mean)}; got {len(y)}")
        return hits(mean, y)

    def save(self, path: str | os.PathLike) -> None:
        """Write all of it, but for the model, to a .npz file."""
        _files.save(path, self)


def attached(report: Report, source: Source) -> Report:
    """The same report, which knows the model that it came from."""
    vars(report)["_source"] = source
    return report


def load(path: str | os.PathLike, model: Any = None, readout: Any = None) -> Report:
    """What `Report.save` wrote to `path`: U `[Π, Π]`, plan and problem.

    With the `model`, and its `readout` if that was a number, it predicts again.

    >>> import tempfile, torch
    >>> from attnpaths.analysis import analyse
    >>> model = torch.nn.TransformerEncoderLayer(6, 2, 8, batch_first=True).eval()
    >>> x, y = torch.randn(20, 4, 6), [-1, 1] * 10
    >>> report = analyse(model, x, y, readout="last", width=10, temperature=0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report.save(f"{folder}/it.npz")
    ...     load(f"{folder}/it.npz", model).predict(x).mean.shape
    (20,)
    """
    report = _files.load(path, (Report,), (Theory, Problem, Plan, Choice))
    if model is None:
        return report
    if (name := type(model).__name__) != report.model:
        raise ValueError(f"model must be the {report.model} that was analysed; got a {name}")
    if readout is None:
        readout = int(report.readout) if report.readout.lstrip("-").isdigit() else report.readout
    return attached(report, Source(model, None, readout, report.tokens))
