"""Networks of several families: their attention is what they say it is, and heads can go."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnpaths import analyse, theory
from attnpaths.adapters import gated_heads, keys_first, record_attention, without_heads

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()

EXAMPLES, TOKENS, DIM, HEADS = 4, 5, 12, 2
MASK = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
SIZES = {"hidden_size": DIM, "num_hidden_layers": 2, "num_attention_heads": HEADS}
SIZES |= {"intermediate_size": 16, "initializer_range": 0.5}
WORDS = {"vocab_size": 20, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}


class Rotary(nn.Module):
    """An own module: rotary positions, causal mask, shared keys, normalisation inside."""

    def __init__(self, layers=2):
        super().__init__()
        self.norm = nn.ModuleList(nn.RMSNorm(DIM) for _ in range(layers))
        self.queries = nn.ModuleList(nn.Linear(DIM, DIM) for _ in range(layers))
        self.shared = nn.ModuleList(nn.Linear(DIM, DIM) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(DIM, DIM) for _ in range(layers))
        self.weights = []

    def turned(self, x):
        angle = torch.arange(x.shape[-2])[:, None] * torch.ones(x.shape[-1] // 2, dtype=x.dtype)
        cos, sin, (a, b) = angle.cos(), angle.sin(), x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)

    def forward(self, x):
        self.weights = []
        for norm, queries, shared, out in zip(
            self.norm, self.queries, self.shared, self.out, strict=True
        ):
            h = norm(x)
            q = queries(h).unflatten(2, (2, -1)).transpose(1, 2)
            k, v = shared(h).unflatten(2, (2, 1, -1)).permute(2, 0, 3, 1, 4)
            q, k = self.turned(q), self.turned(k)
            logits = q @ k.repeat_interleave(2, dim=1).mT / q.shape[-1] ** 0.5
            later = torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1)
            self.weights.append(logits.masked_fill(later, -torch.inf).softmax(dim=-1).detach())
            z = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            x = x + out(z.transpose(1, 2).flatten(2))
        return x


def gpt2():
    config = transformers.GPT2Config(n_embd=DIM, n_layer=2, n_head=HEADS, n_positions=8,
                                     initializer_range=0.5, **WORDS)  # fmt: skip
    return transformers.GPT2Model(config), {"input_ids": ids(), "attention_mask": MASK}


def bert():
    config = transformers.BertConfig(max_position_embeddings=8, **SIZES, **WORDS)
    return transformers.BertModel(config), {"input_ids": ids(), "attention_mask": MASK}


def vit():
    config = transformers.ViTConfig(image_size=4, patch_size=2, num_channels=1, **SIZES)
    generator = torch.Generator().manual_seed(1)
    return transformers.ViTModel(config), {"pixel_values": torch.randn(4, 1, 4, 4, generator=generator)}  # fmt: skip  # noqa: E501


def ids():
    return torch.randint(3, 20, (EXAMPLES, TOKENS), generator=torch.Generator().manual_seed(1))


FAMILIES = {"GPT-2": gpt2, "BERT": bert, "ViT": vit}


@pytest.fixture(params=FAMILIES)
def family(request):
    torch.manual_seed(0)
    model, inputs = FAMILIES[request.param]()
    return request.param, model.eval(), inputs


def projections(name, model):
    """The output projections of all layers, as weights `[D, heads · G]` that may be changed."""
    if name == "GPT-2":
        return [block.attn.c_proj.weight.T for block in model.h]
    if name == "BERT":
        return [block.attention.output.dense.weight for block in model.encoder.layer]
    return [block.attention.o_proj.weight for block in model.layers]


def last(output):
    return output.last_hidden_state


def test_recorded_attention_is_the_models_own(family):
    name, model, inputs = family
    assert model.config._attn_implementation == "sdpa"
    by_sdpa = record_attention(model, inputs)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        own = model(**inputs, output_attentions=True, output_hidden_states=True)
    by_eager = record_attention(model, inputs)
    assert model.config._attn_implementation == "eager"
    torch.testing.assert_close(last(by_sdpa.output), last(own), atol=1e-4, rtol=1e-4)
    for ours, again, theirs in zip(
        by_sdpa.omega, by_eager.omega, keys_first(own.attentions), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
        np.testing.assert_array_equal(ours, again)
        np.testing.assert_allclose(ours.sum(axis=2), 1, atol=1e-12)
    # BERT normalises its embeddings, the others in front of attention
    stream = own.hidden_states[0].numpy()
    found = by_sdpa.x if name == "BERT" else by_sdpa.raw[0]
    np.testing.assert_allclose(found, stream, atol=1e-6)
    np.testing.assert_allclose(by_sdpa.x.mean(axis=2), 0, atol=1e-5)


def test_a_head_that_is_gone_is_one_with_no_output_projection(family):
    name, model, inputs = family
    with without_heads(model, [(1, 2), (2, 1)]), torch.no_grad():
        found = last(model(**inputs))
    smaller, half = copy.deepcopy(model), DIM // HEADS
    with torch.no_grad():
        first, second = projections(name, smaller)
        first[:, half:], second[:, :half] = 0, 0
        expected, whole = last(smaller(**inputs)), last(model(**inputs))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert float((found - whole).abs().max()) > 0.01
    with pytest.raises(ValueError, match=r"no head \(2, 3\): attention layer 2"):
        with without_heads(model, [(2, 3)]), torch.no_grad():
            model(**inputs)


def test_an_own_module_with_rotary_positions_a_causal_mask_and_shared_keys():
    torch.manual_seed(0)
    model = Rotary().double()
    x = torch.randn(EXAMPLES, TOKENS, DIM, dtype=torch.float64)
    seen = record_attention(model, x)
    for ours, theirs in zip(seen.omega, keys_first(model.weights), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-13)
        np.testing.assert_array_equal(np.tril(ours, -1), 0)
    np.testing.assert_allclose(seen.x, model.norm[0](x).detach(), atol=1e-13)
    np.testing.assert_array_equal(seen.raw[0], x)
    with without_heads(model, [(1, 2)]), torch.no_grad():
        found = model(x)
    with torch.no_grad():
        model.out[0].weight[:, 6:] = 0
        torch.testing.assert_close(found, model(x))


def test_bfloat16_attention_sums_to_one_and_is_close():
    torch.manual_seed(0)
    model, inputs = gpt2()
    full = record_attention(model.eval(), inputs).omega
    half = record_attention(model.bfloat16(), inputs)
    for ours, theirs in zip(half.omega, full, strict=True):
        np.testing.assert_allclose(ours.sum(axis=2), 1, atol=1e-12)
        np.testing.assert_allclose(ours, theirs, atol=0.1)
    encoder = nn.TransformerEncoderLayer(DIM, HEADS, 8, batch_first=True).eval().bfloat16()
    x = torch.randn(EXAMPLES, TOKENS, DIM, dtype=torch.bfloat16)
    np.testing.assert_allclose(record_attention(encoder, x).omega[0].sum(axis=2), 1, atol=1e-12)


def test_masked_keys_get_nothing():
    model, inputs = bert()
    padded = np.asarray(MASK == 0)
    for layer in record_attention(model.eval(), inputs).omega:
        assert np.all(layer.swapaxes(1, 2)[padded] == 0)


def test_a_gate_has_a_gradient_in_every_family(family):
    _, model, inputs = family
    gates = {(1, 1): torch.ones((), requires_grad=True), (2, 2): torch.ones((), requires_grad=True)}
    with gated_heads(model, gates):
        last(model(**inputs)).square()[:, 0, 0].sum().backward()
    assert all(float(gate.grad.abs()) > 1e-6 for gate in gates.values())


def test_several_sequences_and_caches_are_refused():
    class Windows(nn.Module):
        def forward(self, x):
            x = F.scaled_dot_product_attention(x, x, x)
            x = x[:, ::2]
            return F.scaled_dot_product_attention(x, x, x)

    with pytest.raises(ValueError, match=r"same examples and tokens.*\(4, 3\), \(4, 5\)"):
        record_attention(Windows(), torch.randn(EXAMPLES, TOKENS, DIM))
    with pytest.raises(ValueError, match="no cache of earlier tokens"):
        record_attention(Cached(), torch.randn(EXAMPLES, TOKENS, DIM))


class Cached(nn.Module):
    def forward(self, x):
        return F.scaled_dot_product_attention(x[:, -1:], x, x)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_analysed_by_one_call(name, monkeypatch):
    torch.manual_seed(0)
    # infinite width will do, and compiles faster
    monkeypatch.setattr(theory, "solve", lambda *a, width, **k: theory.gp_limit(*a, **k))
    model, inputs = FAMILIES[name]()
    options = {"readout": "first" if name == "BERT" else "last", "width": 10, "temperature": 0.1}
    report = analyse(model.eval(), inputs, [1, -1, 1, -1], layers=(2, 2), **options)
    assert report.plan.head_names == [(2, 1), (2, 2)] and report.predict(inputs).mean.shape == (4,)
    padded = name == "GPT-2"
    read = MASK.sum(dim=1).numpy() - 1 if padded else (0 if name == "BERT" else -1)
    tokens = record_attention(model, inputs).tokens[1]
    np.testing.assert_allclose(report.theory.xi[:, 0], tokens[np.arange(EXAMPLES), read])


def test_an_encoder_decoder_is_refused_whatever_the_lengths():
    config = transformers.T5Config(
        d_model=DIM, d_ff=16, d_kv=6, num_layers=1, num_heads=HEADS, vocab_size=20,
        decoder_start_token_id=0,
    )  # fmt: skip
    model = transformers.T5Model(config).eval()
    inputs = {"input_ids": ids(), "decoder_input_ids": ids()}
    with pytest.raises(ValueError, match=r"T5Model has a decoder .*; .* model\.get_encoder\(\)"):
        record_attention(model, inputs)
    alone = record_attention(model.get_encoder(), ids())
    assert len(alone.omega) == 1 and alone.omega[0].shape[1] == HEADS
