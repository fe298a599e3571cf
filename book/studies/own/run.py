"""Small standard transformers, their heads pruned one by one, and what the theory's score said.

Each transformer learns the hidden Markov chain on chains of its own. Its attention matrices go to
the theory, which scores its heads; then the transformer itself is run without each of them.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from attnpaths import pruning, theory
from attnpaths.adapters import record_attention, with_residual, without_heads
from attnpaths.network import Network
from attnpaths.tasks.markov import Split, Task, make_task
from book.studies.engine import collect

HEADS, WIDTH, TOKENS = (2, 2), 16, 8
EXAMPLES, TESTS, STEPS, BATCH, RATE = 4000, 4000, 500, 32, 0.01
# of the theory: training chains, half of each class, and the setting
LABELS, THEORY = 200, {"width": 10, "temperature": 0.1}
# networks that are trained together, and how often
TOGETHER, TIMES = 10, 4


class Transformer(nn.Module):
    """Embedding, layers of attention and MLP with layer norm and residuals, last token read.

    >>> Transformer(19)(torch.ones(5, 9, 19)).shape
    torch.Size([5])
    """

    def __init__(self, dim: int):
        """Draw PyTorch's initial weights."""
        super().__init__()
        self.embed = nn.Linear(dim, WIDTH)
        options = {"dropout": 0.0, "batch_first": True, "norm_first": True}
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, heads, 2 * WIDTH, **options) for heads in HEADS
        )
        self.read = nn.Linear(WIDTH, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Outputs `[P]` of tokens `x [P, T, D]`."""
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.read(x[:, -1])[:, 0]


def small_task(seed: int) -> Task:
    """Chains of eight states with ten features, and flip probabilities of 0.2 and 0.8.

    >>> small_task(0).train.x.shape
    (4000, 9, 19)
    """
    return make_task(
        seed, tokens=TOKENS, dim=10, p_flip=(0.2, 0.8), examples=EXAMPLES, test_examples=TESTS
    )


def train(tasks: Sequence[Task], *, seed: int = 0, steps: int = STEPS) -> list[Transformer]:
    """One transformer for each task, all trained in the same steps of Adam."""
    x = torch.stack([_single(task.train.x) for task in tasks])
    y = torch.stack([_single(task.train.y) for task in tasks])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        models = [Transformer(x.shape[-1]) for _ in tasks]
    generator = torch.Generator().manual_seed(seed)
    stacked, _ = stack_module_state(models)
    stacked = {name: weight.detach().requires_grad_() for name, weight in stacked.items()}

    def output(weights, x):
        return functional_call(models[0], weights, (x,))

    adam = torch.optim.Adam(stacked.values())
    rate = torch.optim.lr_scheduler.OneCycleLR(adam, RATE, total_steps=steps)
    # the only kernel of attention that can be mapped over networks
    with sdpa_kernel(SDPBackend.MATH):
        for _ in range(steps):
            batch = torch.randint(x.shape[1], (BATCH,), generator=generator)
            f = vmap(output, randomness="same")(stacked, x[:, batch])
            loss = nn.functional.soft_margin_loss(f, y[:, batch], reduction="sum") / BATCH
            adam.zero_grad()
            loss.backward()
            adam.step()
            rate.step()
    for i, model in enumerate(models):
        model.load_state_dict({name: weight.detach()[i] for name, weight in stacked.items()})
        model.eval()
    return models


def hits(model: Transformer, split: Split) -> np.ndarray:
    """Which labels the transformer gets right."""
    with torch.no_grad():
        return np.sign(model(_single(split.x)).numpy()) == np.asarray(split.y)


def drops(model: Transformer, split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Accuracy that is lost without each head, and its standard error."""
    whole, lost = hits(model, split).astype(float), []
    for head in pruning.all_heads(HEADS):
        with without_heads(model, [head]):
            lost.append(whole - hits(model, split))
    return np.mean(lost, axis=1), np.std(lost, axis=1) / np.sqrt(len(whole))


def value_norms(model: Transformer) -> np.ndarray:
    """The norm of W_O W_V for each head: its values, as they enter the residual stream."""
    norms = []
    for layer, heads in zip(model.layers, HEADS, strict=True):
        values = layer.self_attn.in_proj_weight.detach().chunk(3)[2].chunk(heads)
        outputs = layer.self_attn.out_proj.weight.detach().chunk(heads, dim=1)
        norms += [float((o @ v).norm()) for o, v in zip(outputs, values, strict=True)]
    return np.array(norms)


def features(model: Transformer, x, *, residual: bool = True):
    """ξ of the transformer's attention on `x`, and the heads that it belongs to."""
    seen = record_attention(model, _single(x))
    omega = with_residual(seen.omega) if residual else seen.omega
    attended = Network.from_attention(omega, seen.x, readout=-1)
    return attended.features(), attended.head_counts


def labelled(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """The chains that the theory learns from, and their labels."""
    half = np.arange(LABELS // 2)
    picked = np.concatenate([half, EXAMPLES // 2 + half])
    return np.asarray(task.train.x)[picked], np.asarray(task.train.y)[picked]


def scores(U, heads) -> np.ndarray:
    """The paper's score of every real head, the residual stream left out."""
    found = pruning.head_scores(U, heads)
    return np.array([found[head] for head in pruning.all_heads(HEADS)])


def networks(first: int) -> dict:
    """Train the networks of ten seeds; for each, what was lost and what could be guessed."""
    tasks = [small_task(seed) for seed in range(first, first + TOGETHER)]
    rows = []
    for model, task in zip(train(tasks, seed=first), tasks, strict=True):
        row = {"accuracy": hits(model, task.test).mean(), "value norm": value_norms(model)}
        row["lost"], row["error"] = drops(model, task.test)
        x, y = labelled(task)
        for name, residual in (("score", True), ("score, no residual", False)):
            xi, heads = features(model, x, residual=residual)
            solution = theory.solve(xi, y, heads=heads, **THEORY)
            row[name] = scores(solution.U, heads)
            if residual:
                new, _ = features(model, task.test.x)
                row["theory"] = solution.predict(new).accuracy(task.test.y)
        rows.append(row)
    return {name: [row[name] for row in rows] for name in rows[0]}


def parts() -> dict:
    """Every part of the study, with the function that computes it."""
    starts = range(0, TOGETHER * TIMES, TOGETHER)
    return {f"seeds {i} to {i + TOGETHER - 1}": partial(networks, i) for i in starts}


def _single(values) -> torch.Tensor:
    return torch.tensor(np.asarray(values), dtype=torch.float32)


if __name__ == "__main__":
    torch.set_num_threads(1)
    collect("own", parts(), seeds=range(TOGETHER * TIMES))
