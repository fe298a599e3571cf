"""A network small enough to integrate by brute force, on which every formula can be tried.

It has two layers of two heads, and its prior variance is not 1, so that no power of σ gets lost
unseen. The pages of the derivation and the one of differences share it.
"""

from typing import NamedTuple

import numpy as np

from attnpaths import Network

H, L, N, D, P = 2, 2, 5, 3, 4
SIGMA2, TEMPERATURE = 1.2, 0.5
#: Labels of the training examples; the test example comes after them.
Y = np.array([1.5, 1.5, -1.5, -1.5])
#: One variable t for each example, as the paper's route needs them.
T = np.array([0.9, -0.6, 0.5, -0.8, 0.7])

_RNG = np.random.default_rng(1)
_HEADS = [_RNG.normal(size=(H, D, D)) for _ in range(L)]
X = _RNG.normal(size=(P + 1, 4, D))
_HEADS.append(_RNG.normal(size=(H, D, D)))


def network(layers: int = L) -> Network:
    """The network, or one with fewer layers or with one more.

    >>> network(3).head_counts
    (2, 2, 2)
    """
    return Network(_HEADS[:layers], readout=-1)


def features(layers: int = L) -> np.ndarray:
    """Attentioned inputs ξ `[examples, paths, D]`, the test example last.

    >>> features().shape
    (5, 4, 3)
    """
    return np.asarray(network(layers).features(X))


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Weights as drawn from the prior."""
    return np.sqrt(SIGMA2) * rng.standard_normal(shape)


def next_layer(V: np.ndarray, below: np.ndarray) -> np.ndarray:
    """What one layer makes of partial paths: `[H·n, N]` becomes `[n, N]`; V is one or many.

    >>> next_layer(np.ones((2, 5, 5)), np.ones((4, 5))).shape
    (2, 5)
    """
    by_head = below.reshape(V.shape[-3], -1, N)
    return np.einsum("...hij,hpj->...pi", V, by_head) / np.sqrt(N * H)


def quadratic(U: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The sum over pairs of paths of U^{ππ'} q^π·q^π', for one `q [paths, N]` or many."""
    return np.einsum("pq,...pi,...qi->...", U, q, q, optimize=True)


def random_networks(rng: np.random.Generator, draws: int, layers: int = L):
    """Outputs `[draws, examples]` and effective weights `[draws, paths, N]` of random networks."""
    effective = normal(rng, draws, 1, N)
    for _ in range(layers):
        V = normal(rng, draws, H, N, N)
        effective = (effective[:, None] @ V).reshape(draws, -1, N) / np.sqrt(N)
    combined = (effective @ normal(rng, draws, N, D)).reshape(draws, -1)
    xi = features(layers)
    return combined @ xi.reshape(len(xi), -1).T / np.sqrt(H**layers * N * D), effective


class Sampled(NamedTuple):
    """An average over samples and its standard error.

    >>> Sampled(1.02, 0.01).agrees(1.0), Sampled(1.02, 0.001).contradicts(1.0)
    (True, True)
    """

    mean: float
    error: float

    @classmethod
    def of(cls, samples: np.ndarray, weights: np.ndarray | None = None) -> "Sampled":
        """The weighted mean of independent samples.

        >>> Sampled.of(np.array([0.0, 4.0, 0.0, 4.0]))
        Sampled(mean=2.0, error=1.0)
        """
        w = np.ones(len(samples)) if weights is None else weights / weights.mean()
        mean = np.mean(w * samples)
        return cls(float(mean), float(np.std(w * (samples - mean)) / np.sqrt(len(samples))))

    def distance(self, other: "float | Sampled") -> float:
        """How many standard errors lie between this and a number, or another average."""
        mean, error = other if isinstance(other, tuple) else (other, 0.0)
        return float(abs(self.mean - mean) / np.hypot(self.error, error))

    def agrees(self, other: "float | Sampled", precision: float = 0.01) -> bool:
        """Within 4 standard errors; and precise, or agreement would mean little."""
        return self.distance(other) < 4 and self.error < precision * abs(self.mean)

    def contradicts(self, other: "float | Sampled") -> bool:
        """More than 10 standard errors away."""
        return self.distance(other) > 10

    def against(self, formula: float) -> str:
        """Both in words, for the line of a check.

        >>> Sampled(1.02, 0.01).against(1.0)
        'sampled 1.0200 ± 0.0100, formula 1.0000'
        """
        return f"sampled {self.mean:.4f} ± {self.error:.4f}, formula {formula:.4f}"
