"""Transformers of three makes, their heads taken out one by one, and what was guessed beforehand.

Each network learns the hidden Markov chain on chains of its own. Its attention goes to the theory,
which scores its heads; then the network itself is run without each of them. What would count as
success is in `book.studies.own.verdict`, which was written before the first of these networks.
"""

from functools import partial

import numpy as np
import torch
from torch import nn

from attnpaths import analyse, pruning
from attnpaths.adapters import gated_heads, without_heads
from attnpaths.tasks.markov import Split, Task
from book.studies.engine import collect
from book.studies.own.networks import (
    ARCHITECTURES,
    EXAMPLES,
    HEADS,
    LAYERS,
    Reader,
    single,
    small_task,
    train,
)

#: Networks of each make; of the theory: training chains, half of each class, and the setting.
NETWORKS, LABELS, THEORY = 12, 100, {"width": 10, "temperature": 0.1}
NAMES = pruning.all_heads((HEADS,) * LAYERS)


def hits(model: Reader, split: Split) -> np.ndarray:
    """Which labels the transformer gets right."""
    with torch.no_grad():
        return np.sign(model(single(split.x)).numpy()) == np.asarray(split.y)


def drops(model: Reader, split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Accuracy that is lost without each head, and its standard error."""
    whole, lost = hits(model, split).astype(float), []
    for head in NAMES:
        with without_heads(model, [head]):
            lost.append(whole - hits(model, split))
    return np.mean(lost, axis=1), np.std(lost, axis=1) / np.sqrt(len(whole))


def labelled(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """The chains that the theory learns from, and their labels."""
    half = np.arange(LABELS // 2)
    picked = np.concatenate([half, EXAMPLES // 2 + half])
    return np.asarray(task.train.x)[picked], np.asarray(task.train.y)[picked]


def gradient_importance(model: Reader, x, y) -> np.ndarray:
    """Michel et al. (2019): the mean over examples of |∂loss/∂m_h|, m_h what multiplies a head."""
    inputs, labels = single(x), single(y)
    gates = {head: torch.ones((), requires_grad=True) for head in NAMES}
    found = np.zeros(len(NAMES))
    with gated_heads(model, gates):
        for i in range(len(labels)):
            loss = nn.functional.soft_margin_loss(model(inputs[i : i + 1]), labels[i : i + 1])
            slopes = torch.autograd.grad(loss, list(gates.values()))
            found += np.abs(torch.stack(slopes).numpy())
    return found / len(labels)


def network(architecture: str, seed: int) -> dict:
    """Train one network; what it lost without each head, and what could be guessed."""
    task = small_task(seed)
    model = train(task, architecture, seed=seed)
    row = {"accuracy": hits(model, task.test).mean(), "value norm": model.value_norms()}
    row["lost"], row["error"] = drops(model, task.test)
    x, y = labelled(task)
    row["gradient"] = gradient_importance(model, x, y)
    shuffled = np.random.default_rng(seed).permutation(y)
    options = {"readout": model.readout, "progress": False, **THEORY}
    for name, labels in (("", y), (", shuffled labels", shuffled)):
        report = analyse(model, single(x), labels, **options)
        for pairs in ("both", "either"):
            for weighed in (False, True):
                kind = f"{pairs}, weighed" if weighed else pairs
                found = report.scores(pairs, weighed)
                row[f"{kind}{name}"] = [found[head] for head in NAMES]
        if not name:
            row["theory"] = report.hits(single(task.test.x), task.test.y).mean()
    return row


def parts() -> dict:
    """Every part of the study, with the function that computes it."""
    return {
        f"{architecture}, seed {seed}": partial(network, architecture, seed)
        for seed in range(NETWORKS)
        for architecture in ARCHITECTURES
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    collect("own", parts(), seeds=range(NETWORKS))
