"""The one-shot network in PyTorch, where every weight learns, keys and queries too.

Three orders of contraction, one result: `Model.layered` follows the layers; the model itself
follows the paths; `Model.from_pixels` follows the paths and knows what tokens are made of.
"""

import math

import numpy as np
import torch

from attnpaths import _checks
from attnpaths.network import Network, Weights
from attnpaths.tasks.oneshot import CHANNELS, DIM, PIXELS


class Model(torch.nn.Module):
    """All weights of a network with H heads in each of L layers, read out by the mean.

    Initial weights are uniform within ±1/√(inputs). The scale factors of the paper, 1/√D and
    1/√N, are inside the weights here; `export` takes them out.

    >>> model = Model(layers=2, heads=2, key_dim=3, width=5, seed=0)
    >>> x = torch.ones(4, 48, 192)
    >>> model(x).shape, torch.allclose(model(x), model.layered(x), atol=1e-5)
    (torch.Size([4]), True)
    >>> pixels, orders, codes = torch.ones(4, 48, 64), torch.tensor([0, 1, 0, 1]), x[:2]
    >>> torch.allclose(model.from_pixels(pixels, orders, codes), model(2 * x), atol=1e-5)
    True
    >>> network, weights = model.export()
    >>> torch.allclose(Model.from_network(network, weights)(x), model(x), atol=1e-5)
    True
    """

    def __init__(
        self, *, layers: int, heads: int, key_dim: int, width: int, seed: int = 0, dim: int = DIM
    ):
        """Draw the initial weights."""
        super().__init__()
        sizes = {"layers": layers, "heads": heads, "key_dim": key_dim, "width": width, "dim": dim}
        for name, size in sizes.items():
            _checks.whole(name, size, least=1)
        seed = _checks.whole("seed", seed, least=0, most=2**63 - 1)
        count = width * dim + layers * heads * (width**2 + 2 * key_dim * dim)
        _checks.memory(
            # drawn in double precision, kept in single, with gradients and Adam's moments
            24 * count,
            f"{count:,} weights of {', '.join(f'{n}={size}' for n, size in sizes.items())}",
            "take a smaller one",
        )
        generator = torch.Generator().manual_seed(seed)

        def uniform(*shape):
            draw = torch.rand(*shape, generator=generator, dtype=torch.float64)
            bounded = (2 * draw - 1) / math.sqrt(shape[-1])
            return torch.nn.Parameter(bounded.to(torch.float32))

        def each_layer(*shape):
            return torch.nn.ParameterList([uniform(*shape) for _ in range(layers)])

        self.V0 = uniform(width, dim)
        self.V = each_layer(heads, width, width)
        self.a = uniform(width)
        self.keys = each_layer(heads, key_dim, dim)
        self.queries = each_layer(heads, key_dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Outputs `[P]` of tokens `x [P, T, D]`, path by path."""
        attention = [self._attention(i, x).transpose(1, 2) for i in range(len(self.V))]
        xi = self._reach(attention) @ x
        return torch.einsum("pkd,kd->p", xi, self._readouts())

    def layered(self, x: torch.Tensor) -> torch.Tensor:
        """The same outputs, layer by layer."""
        state = x @ self.V0.T
        for i, values in enumerate(self.V):
            heads, width, _ = values.shape
            sent = (state @ values.reshape(-1, width).T).unflatten(-1, (heads, width))
            state = self._attention(i, x) @ sent.transpose(1, 2)
            state = state.sum(dim=1) / math.sqrt(heads)
        return state.mean(dim=1) @ self.a

    def from_pixels(
        self, pixels: torch.Tensor, orders: torch.Tensor, codes: torch.Tensor
    ) -> torch.Tensor:
        """The same outputs, for tokens that are grey pixels in three channels plus a code.

        `pixels [P, T, 64]` and `codes [2, T, 192]` as in `Encoder`; `orders [P]` picks the code.
        All that meets the tokens is linear in them up to the softmax, so that pixels meet
        64×64 matrices, and the codes, which are the same in every batch, meet the weights once.
        """
        groups = [torch.nonzero(orders == o)[:, 0] for o in (0, 1)]
        readouts = self._readouts()
        grey = readouts.unflatten(-1, (PIXELS, CHANNELS)).sum(dim=-1)
        coded = codes @ readouts.T
        tables = [self._tables(i, codes) for i in range(len(self.V))]
        outputs = []
        for o, group in enumerate(groups):
            p = pixels[group]
            attention = [self._pixel_attention(p, *(t[o] for t in table)) for table in tables]
            reach = self._reach(attention)
            seen = torch.einsum("pkd,kd->p", reach @ p, grey)
            outputs.append(seen + torch.einsum("pkt,tk->p", reach, coded[o]))
        return torch.cat(outputs)[torch.argsort(torch.cat(groups))]

    def export(self) -> tuple[Network, Weights]:
        """The network of the library and its weights: `network.apply` gives the same outputs."""

        def plain(weight):
            return weight.detach().double().numpy()

        width, dim = self.V0.shape
        pairs = zip(self.keys, self.queries, strict=True)
        network = Network([(plain(k), plain(q)) for k, q in pairs], readout="mean")
        return network, Weights(
            plain(self.V0) * math.sqrt(dim),
            tuple(plain(v) * math.sqrt(width) for v in self.V),
            plain(self.a) * math.sqrt(width),
        )

    @classmethod
    def from_network(cls, network: Network, weights: Weights) -> "Model":
        """The model of a network with mean readout: the inverse of `export`."""
        if not isinstance(network, Network):
            raise ValueError(f"network must be an attnpaths.Network; got {type(network).__name__}")
        if network.readout != "mean" or not all(isinstance(h, tuple) for h in network.heads):
            raise ValueError(
                'a Model has the readout "mean" and pairs (W_K, W_Q) of heads; got '
                f"{network!r}, {'pairs' if isinstance(network.heads[0], tuple) else 'products'}"
            )
        weights = network.check_weights(weights)
        width, dim = weights.V0.shape
        if len(set(weights.widths)) > 1:
            raise ValueError(f"a Model has one width in all layers; got {weights.widths}")
        shapes = {k.shape for k, _ in network.heads}
        if len(shapes) > 1:
            raise ValueError(f"a Model has heads of one shape in all layers; got {shapes}")
        heads, key_dim, _ = shapes.pop()
        model = cls(layers=network.layers, heads=heads, key_dim=key_dim, width=width, dim=dim)
        names = {"V0": weights.V0 / math.sqrt(dim), "a": weights.a / math.sqrt(width)}
        for i, ((k, q), v) in enumerate(zip(network.heads, weights.V, strict=True)):
            names |= {f"keys.{i}": k, f"queries.{i}": q, f"V.{i}": v / math.sqrt(width)}
        model.load_state_dict({n: torch.tensor(np.asarray(w)) for n, w in names.items()})
        return model

    def _attention(self, layer, x):
        """Ω `[P, H, T, T]`, queries first: rows sum to one."""
        heads, key_dim, dim = self.keys[layer].shape

        def project(weights):
            flat = x @ weights.reshape(-1, dim).T
            return flat.unflatten(-1, (heads, key_dim)).transpose(1, 2)

        queries = project(self.queries[layer] / math.sqrt(key_dim))
        return torch.softmax(queries @ project(self.keys[layer]).mT, dim=-1)

    def _reach(self, attention):
        """How much of each token reaches the readout along each path, `[P, Π, T]`.

        Takes attention as `[P, queries, H, keys]`, so that all heads make one product.
        """
        reach = attention[-1].mean(dim=1)
        for layer in reversed(attention[:-1]):
            further = (reach @ layer.flatten(2)).unflatten(-1, layer.shape[2:])
            # the earlier layer's head becomes the slower index
            reach = further.transpose(1, 2).flatten(1, 2)
        return reach

    def _readouts(self):
        """One readout vector for each path, `[Π, D]`."""
        vectors = self.a[None]
        for values in reversed(self.V):
            heads, width, _ = values.shape
            # one product a head: left to itself, PyTorch would copy the values to make one of all
            met = torch.bmm(vectors.expand(heads, -1, -1), values)
            vectors = met.reshape(-1, width) / math.sqrt(heads)
        return vectors @ self.V0

    def _tables(self, layer, codes):
        """Four parts of the logits, for query·key: pixels·pixels, code·pixels and the rest."""
        queries = self.queries[layer] / math.sqrt(self.queries[layer].shape[1])
        keys = self.keys[layer]
        grey_q, grey_k = (w.unflatten(-1, (PIXELS, CHANNELS)).sum(dim=-1) for w in (queries, keys))
        coded_q, coded_k = (codes[:, None] @ w.mT for w in (queries, keys))
        both = (grey_q.mT @ grey_k).transpose(0, 1).flatten(1)
        asking = (coded_q @ grey_k).transpose(1, 2).flatten(1, 2)
        asked = (coded_k @ grey_q).flatten(1, 2).mT
        fixed = (coded_q @ coded_k.mT).transpose(1, 2)
        return both.expand(2, -1, -1), asking, asked, fixed

    def _pixel_attention(self, p, both, asking, asked, fixed):
        """Ω as `[P, queries, H, keys]`: a layout in which nothing has to be moved."""
        flat = p.flatten(0, 1)
        queries = (flat @ both).view(len(p), *asking.shape) + asking
        met = (flat @ asked).view(len(p), *fixed.shape)
        return torch.softmax((queries @ p.mT).view_as(met) + met + fixed, dim=-1)
