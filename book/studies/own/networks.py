"""Three small transformers of different make, and what can be read off their weights.

All read chains of tokens through an embedding, have two layers of four heads, and put out one
number: PyTorch's encoder, normalised before attention; GPT-2, causal, likewise; and BERT,
normalised after each addition, read at its first token.
"""

import numpy as np
import torch
from torch import nn

from attnpaths.tasks.markov import Task, make_task

LAYERS, HEADS, WIDTH, TOKENS = 2, 4, 16, 8
EXAMPLES, TESTS, STEPS, BATCH, RATE = 4000, 4000, 250, 64, 0.01
ARCHITECTURES = ("encoder", "GPT-2", "BERT")


class Reader(nn.Module):
    """Embedding, a transformer of one of the `ARCHITECTURES`, and one number read of one token.

    >>> Reader(19, "encoder")(torch.ones(5, 9, 19)).shape
    torch.Size([5])
    """

    def __init__(self, dim: int, architecture: str):
        """Draw the initial weights that each library draws."""
        super().__init__()
        self.architecture = architecture
        self.embed, self.read = nn.Linear(dim, WIDTH), nn.Linear(WIDTH, 1)
        self.body = {"encoder": _encoder, "GPT-2": _gpt2, "BERT": _bert}[architecture]()
        self.readout = "first" if architecture == "BERT" else "last"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Outputs `[P]` of tokens `x [P, T, D]`."""
        x = self.embed(x)
        if self.architecture == "encoder":
            state = self.body(x)
        else:
            state = self.body(inputs_embeds=x).last_hidden_state
        return self.read(state[:, 0 if self.readout == "first" else -1])[:, 0]

    def value_norms(self) -> np.ndarray:
        """The norm of W_O W_V for each head: its values, as they enter the residual stream."""
        norms = []
        for layer in range(LAYERS):
            value, out = self._values(layer)
            pairs = zip(out.chunk(HEADS, dim=1), value.chunk(HEADS), strict=True)
            norms += [float((o @ v).norm()) for o, v in pairs]
        return np.array(norms)

    def _values(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """W_V `[heads · G, D]` and W_O `[D, heads · G]` of a layer."""
        if self.architecture == "encoder":
            attention = self.body.layers[layer].self_attn
            return attention.in_proj_weight.detach().chunk(3)[2], attention.out_proj.weight.detach()
        if self.architecture == "GPT-2":
            attention = self.body.h[layer].attn
            value = attention.c_attn.weight.detach().T.chunk(3)[2]
            return value, attention.c_proj.weight.detach().T
        attention = self.body.encoder.layer[layer].attention
        return attention.self.value.weight.detach(), attention.output.dense.weight.detach()


def _encoder() -> nn.Module:
    options = {"dropout": 0.0, "batch_first": True, "norm_first": True}
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, **options)
    return nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)


def _gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2Model

    dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    config = GPT2Config(n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_inner=2 * WIDTH,
                        n_positions=TOKENS + 1, vocab_size=1, bos_token_id=0, eos_token_id=0,
                        use_cache=False, **dropout)  # fmt: skip
    return GPT2Model(config)


def _bert() -> nn.Module:
    from transformers import BertConfig, BertModel

    dropout = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
    config = BertConfig(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                        intermediate_size=2 * WIDTH, max_position_embeddings=TOKENS + 1,
                        vocab_size=1, **dropout)  # fmt: skip
    return BertModel(config, add_pooling_layer=False)


def small_task(seed: int) -> Task:
    """Chains of eight states with ten features, and flip probabilities of 0.2 and 0.8.

    >>> small_task(0).train.x.shape
    (4000, 9, 19)
    """
    return make_task(
        seed, tokens=TOKENS, dim=10, p_flip=(0.2, 0.8), examples=EXAMPLES, test_examples=TESTS
    )


def train(task: Task, architecture: str, *, seed: int = 0, steps: int = STEPS) -> Reader:
    """A transformer that has learned a task, by Adam with a rate that rises and falls."""
    x, y = single(task.train.x), single(task.train.y)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Reader(x.shape[-1], architecture)
    generator = torch.Generator().manual_seed(seed)
    adam = torch.optim.Adam(model.parameters())
    rate = torch.optim.lr_scheduler.OneCycleLR(adam, RATE, total_steps=steps)
    for _ in range(steps):
        batch = torch.randint(len(x), (BATCH,), generator=generator)
        adam.zero_grad()
        nn.functional.soft_margin_loss(model(x[batch]), y[batch]).backward()
        adam.step()
        rate.step()
    return model.eval()


def single(values) -> torch.Tensor:
    """Numbers as PyTorch's networks take them."""
    return torch.tensor(np.asarray(values), dtype=torch.float32)
