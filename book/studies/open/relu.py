"""The paper's suggestion for nonlinear blocks, and the sampled networks that it is held against.

One attention layer reads what a block of ReLUs makes of every token,

    f = (NH)^(−1/2) Σ_h V_eff^h · Σ_s Ω^h_{s t*} φ(V⁰x_s/√D),   V_eff^h = a V^h/√N,

where φ(u) = √2 max(u, 0) keeps the prior variance. The suggestion: leave the action as it is, and
put the kernels of the wide network in place of C, in which the arc-cosine kernel stands for φ. The
network itself is sampled: given V⁰ and ‖a‖², V_eff and the noise are Gaussian and integrated out,
so that NUTS walks through V⁰ and one number more. `sample_all` walks through every weight instead.

Rules, fixed before the study was run, for an error δ against the sampled mean (relative, with its
Monte Carlo standard error), in cells (N, P/N, D):

- the suggestion *agrees* in a cell if δ_U and δ_f are at most 10 %, the rule of all these pages;
- it *fails* in a cell if δ_U or δ_f is more than 10 % by over two standard errors;
- it *holds in the limit* if at fixed P/N both errors at N = 40 are less than half of those at
  N = 10, as an error that falls like 1/N would be;
- it *helps* if δ_f is smaller than that of the GP limit by over two standard errors.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from attnpaths import Network, theory
from attnpaths.posterior import nuts
from book.studies.statistics import distance, mcse

HEADS, TOKENS, TESTS, TEMPERATURE = 2, 4, 100, 0.1


class Task(NamedTuple):
    """What the readout attends to `[P, H, T]`, tokens `[P, T, D]`, labels; tests come last."""

    read: np.ndarray
    x: np.ndarray
    y: np.ndarray

    def split(self, train: bool) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Training or test examples."""
        cut = slice(None, -TESTS) if train else slice(-TESTS, None)
        read, x, y = (jnp.asarray(each[cut]) for each in self)
        return read, x, y


def task(seed: int, examples: int, dim: int) -> Task:
    """Gaussian tokens and random heads; the label asks how far along one direction head 1 looks.

    y = sign(Σ_s Ω¹_{s t*} |w·x_s| − m), m the median, which no function linear in ξ can follow.

    >>> task(0, 10, 3).x.shape
    (110, 4, 3)
    """
    rng = np.random.default_rng(seed)
    heads = 2 * rng.normal(size=(HEADS, dim, dim)) / dim
    x = rng.normal(size=(examples + TESTS, TOKENS, dim))
    read = np.asarray(Network([heads], readout=-1).attention(x)[0][..., -1])
    w = rng.normal(size=dim)
    seen = np.einsum("ps,ps->p", read[:, 0], np.abs(x @ w))
    return Task(read, x, np.where(seen > np.median(seen), 1.0, -1.0))


def arc_cosine(inner: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """E[φ(u)φ(v)] for Gaussian u, v of variances `a` and `b` and covariance `inner`.

    = √(ab) [sin θ + (π − θ) cos θ]/π, with θ the angle between them.

    >>> arc_cosine(np.array([1.0, 0.0]), np.ones(2), np.ones(2)).round(4).tolist()
    [1.0, 0.3183]
    """
    size = np.sqrt(a * b)
    cosine = np.clip(inner / size, -1, 1)
    angle = np.arccos(cosine)
    return size * (np.sin(angle) + (np.pi - angle) * cosine) / np.pi


def features(of: Task, kind: str) -> np.ndarray:
    """ξ `[P, H, K]` whose path–path kernels are those of the wide network, for all examples.

    C(x, x') = Σ Ω_s Ω'_s' E[φ(x_s) φ(x'_s')], for two heads and summed over the tokens s of x and
    s' of x'; a root of this matrix has it as ξ·ξ/K.

    >>> features(task(0, 10, 3), "relu").shape[:2]
    (110, 2)
    """
    inner = np.einsum("psd,qtd->psqt", of.x, of.x) / of.x.shape[2]
    own = np.einsum("psd,psd->ps", of.x, of.x) / of.x.shape[2]
    if kind == "relu":
        inner = arc_cosine(inner, own[:, :, None, None], own[None, None])
    C = np.einsum("phs,psqt,qgt->phqg", of.read, inner, of.read, optimize=True)
    values, vectors = np.linalg.eigh(C.reshape(len(of.x) * HEADS, -1))
    keep = values > 1e-9 * values.max()
    root = vectors[:, keep] * np.sqrt(values[keep] * keep.sum())
    return root.reshape(len(of.x), HEADS, -1)


@dataclasses.dataclass(frozen=True)
class Hidden:
    """Minus the logarithm of the posterior of V⁰ and of u = ‖a‖²/N, with V_eff integrated out.

    The coordinates are V⁰ `[N, D]` and z, by which u = exp(z√(2/N)) has the prior χ²_N/N.
    """

    kind: str
    width: int
    dim: int

    @property
    def size(self) -> int:
        """How many coordinates there are."""
        return self.width * self.dim + 1

    def units(self, z, read, x):
        """What the paths see of the units, `[P, HN]` with all factors in it, and u."""
        V0 = z[:-1].reshape(self.width, self.dim)
        seen = jnp.einsum("psd,nd->psn", x, V0) / np.sqrt(self.dim)
        seen = seen if self.kind == "linear" else np.sqrt(2) * jax.nn.relu(seen)
        along = jnp.einsum("phs,psn->phn", read, seen).reshape(len(x), -1)
        return along / np.sqrt(self.width * HEADS), jnp.exp(z[-1] * np.sqrt(2 / self.width))

    def __call__(self, data, z):
        """½[ln det(K+𝒯) + Yᵀ(K+𝒯)⁻¹Y] − ln p(V⁰) − ln p(z)."""
        read, x, y = data
        F, u = self.units(z, read, x)
        factor = jnp.linalg.cholesky(u * F @ F.T + TEMPERATURE * jnp.eye(len(y)))
        scaled = solve_triangular(factor, y, lower=True)
        fit = scaled @ scaled / 2 + jnp.sum(jnp.log(jnp.diag(factor)))
        return fit + (jnp.sum(z[:-1] ** 2) + self.width * (u - jnp.log(u))) / 2

    @functools.partial(jax.jit, static_argnums=0)
    def answers(self, z, train, test):
        """The mean of U and of the test outputs given each row of z."""
        read, x, y = train

        def one(z):
            F, u = self.units(z, read, x)
            gain = u * jnp.linalg.solve(u * F @ F.T + TEMPERATURE * jnp.eye(len(y)), F).T
            mean = (gain @ y).reshape(HEADS, -1)
            spread = u * (jnp.eye(F.shape[1]) - gain @ F)
            spread = jnp.einsum("hngn->hg", spread.reshape(HEADS, self.width, HEADS, self.width))
            new = self.units(z, *test[:2])[0]
            return (mean @ mean.T + spread) / self.width, new @ mean.ravel()

        return jax.lax.map(one, z)


@dataclasses.dataclass(frozen=True)
class Everything:
    """The same posterior of all weights: V⁰ `[N, D]`, V `[H, N, N]` and a `[N]`, by brute force."""

    kind: str
    width: int
    dim: int

    @property
    def size(self) -> int:
        """How many weights there are."""
        return self.width * (self.dim + HEADS * self.width + 1)

    def read(self, z, read, x):
        """U and the outputs of one network."""
        V0, V, a = jnp.split(z, np.cumsum([self.width * self.dim, HEADS * self.width**2]))
        V = V.reshape(HEADS, self.width, self.width)
        v_eff = jnp.einsum("n,hnm->hm", a, V) / np.sqrt(self.width)
        hidden = Hidden(self.kind, self.width, self.dim)
        F, _ = hidden.units(jnp.append(V0, 0.0), read, x)
        return v_eff @ v_eff.T / self.width, F @ v_eff.ravel()

    def __call__(self, data, z):
        """‖f − Y‖²/(2𝒯) + ‖Θ‖²/2."""
        read, x, y = data
        gap = self.read(z, read, x)[1] - y
        return gap @ gap / (2 * TEMPERATURE) + z @ z / 2

    @functools.partial(jax.jit, static_argnums=0)
    def answers(self, z, train, test):
        """U and the test outputs of each row of z."""
        return jax.lax.map(lambda z: self.read(z, *test[:2]), z)


def sample(density, of: Task, seed: int, warmup: int, samples: int):
    """Draws `[chains, samples, ...]` of U and of the test outputs, by two chains of NUTS."""
    start, key = jax.random.split(jax.random.key(seed))
    trace = nuts.run(
        density,
        of.split(train=True),
        jax.random.normal(start, (2, density.size)),
        key,
        warmup=warmup,
        kept=samples,
        thinning=1,
        dense=False,
        acceptance=0.8,
        progress=False,
    )
    flat = jnp.asarray(trace.position).reshape(-1, density.size)
    found = density.answers(flat, of.split(train=True), of.split(train=False))
    U, f = (np.asarray(each).reshape(2, samples, -1) for each in found)
    return U, f, int(trace.divergences.sum())


def compare(kind: str, width: int, load: float, dim: int, seed: int = 0, samples: int = 300):
    """The suggestion, or for `kind` "linear" the theory itself, against sampled networks."""
    of = task(seed, round(load * width), dim)
    U, f, divergences = sample(Hidden(kind, width, dim), of, seed, 200, samples)
    xi, y = features(of, kind), of.y
    setting = {"heads": (HEADS,), "temperature": TEMPERATURE}
    learned = theory.solve(xi[:-TESTS], y[:-TESTS], width=width, **setting)
    limit = theory.gp_limit(xi[:-TESTS], y[:-TESTS], **setting)
    found = {"divergences": divergences, "U sampled": U.mean((0, 1)), "U": np.ravel(learned.U)}
    found["U error"] = mcse(U)
    for name, solved in (("theory", learned), ("GP", limit)):
        mean = np.asarray(solved.predict(xi[-TESTS:]).mean)
        found[f"{name} f"] = distance(f.mean((0, 1)), mcse(f), mean)
        found[f"{name} U"] = distance(U.mean((0, 1)), mcse(U), np.ravel(solved.U))
        found[f"{name} accuracy"] = np.mean(np.sign(mean) == y[-TESTS:])
    found["accuracy"] = np.mean(np.sign(f.mean((0, 1))) == y[-TESTS:])
    return found


def both_ways(width: int = 10, dim: int = 4, seed: int = 0, samples: int = 1000) -> dict:
    """Is it right to integrate V_eff out? Means of U and f by both samplers, and their errors."""
    of = task(seed, 2 * width, dim)
    found = {}
    for name, density in (
        ("hidden", Hidden("relu", width, dim)),
        ("everything", Everything("relu", width, dim)),
    ):
        U, f, divergences = sample(density, of, seed + 1, 400, samples)
        values = np.concatenate([U, f], axis=-1)
        found[name] = {"mean": values.mean((0, 1)), "mcse": mcse(values)}
        found[name]["divergences"] = divergences
    return found
