"""The gradient of the paper's action with fifty digits, which shares no line with the library.

Eqs. 32–34 by traces, inverses and determinants of the levels U⁽ℓ⁾, with skips and several outputs:
a level with a skip holds the level above as its first block.
"""

import math

import mpmath
import numpy as np

mpmath.mp.dps = 50


def exact(array):
    """The same numbers, with fifty digits."""
    return np.vectorize(mpmath.mpf, otypes=[object])(np.asarray(array, float))


def cholesky(matrix):
    """The lower triangular factor, row by row."""
    size = len(matrix)
    factor = np.full((size, size), mpmath.mpf(0))
    for i in range(size):
        for j in range(i):
            rest = matrix[i, j] - factor[i, :j].dot(factor[j, :j])
            factor[i, j] = rest / factor[j, j]
        factor[i, i] = mpmath.sqrt(matrix[i, i] - factor[i, :i].dot(factor[i, :i]))
    return factor


def inverse(matrix):
    """By the factor, whose own inverse is made column by column."""
    factor, size = cholesky(matrix), len(matrix)
    whitening = np.full((size, size), mpmath.mpf(0))
    for i in range(size):
        row = -factor[i, :i].dot(whitening[:i]) if i else np.full(size, mpmath.mpf(0))
        row[i] += 1
        whitening[i] = row / factor[i, i]
    return whitening.T.dot(whitening)


def scales(ways):
    """s_π of every path, times σ of V⁰ and D^(−1/2) elsewhere."""
    way = np.stack(np.unravel_index(np.arange(ways.paths), ways.counts), 1)
    return [
        math.prod(
            mpmath.mpf(1) if skip and not w else 1 / mpmath.sqrt(h)
            for w, h, skip in zip(row, ways.heads, ways.residual, strict=True)
        )
        for row in way
    ]


def energy_terms(U, xi, y, ways, variance, temperature):
    """The gradients in U of ln det(K+𝒯) and of Yᵀ(K+𝒯)⁻¹Y."""
    P, paths, dim = xi.shape
    C = ways.readouts
    root = mpmath.sqrt(variance / dim)
    phi = xi * np.array([root * s for s in scales(ways)])[None, :, None]
    flat = phi.reshape(P, -1)
    blocks = U.reshape(paths, C, paths, C)
    K = np.full((P, C, P, C), mpmath.mpf(0))
    for c in range(C):
        for e in range(C):
            mixed = np.stack([blocks[:, c, :, e].dot(each) for each in phi]).reshape(P, -1)
            K[:, c, :, e] = flat.dot(mixed.T)
    noisy = K.reshape(P * C, P * C) + temperature * exact(np.eye(P * C))
    G = inverse(noisy)
    v = G.dot(y.ravel())
    terms = []
    for W in (G, -np.outer(v, v)):
        W = W.reshape(P, C, P, C)
        term = np.full((paths, C, paths, C), mpmath.mpf(0))
        for c in range(C):
            for e in range(C):
                half = W[:, c, :, e].dot(flat).reshape(P, paths, dim)
                for p in range(paths):
                    for q in range(paths):
                        term[p, c, q, e] = np.sum(phi[:, p] * half[:, q])
        terms.append(term.reshape(paths * C, paths * C))
    return terms


def relative_gradient(found):
    """The largest derivative of the action in relative changes of a level, beside its terms."""
    problem, ways = found.problem, found.problem.ways
    C = ways.readouts
    given = exact(np.broadcast_to(problem.prior_variance, len(ways.heads) + 2))
    width = exact(np.broadcast_to(found.width, len(ways.heads) + 1))
    N = sum(width) / len(width)
    levels = [exact(np.atleast_2d(level)) for level in found.levels]
    terms = [[] for _ in levels]
    counts, skips = (*ways.counts, 1), (*ways.residual, False)
    for i, (level, count, skip) in enumerate(zip(levels, counts, skips, strict=True)):
        upper = levels[i + 1] if i + 1 < len(levels) else exact(np.eye(C))
        n, share = len(upper), width[i] / N
        over = inverse(upper)
        trace, above = level * 0, upper * 0
        for way in range(int(skip), count):
            part = slice(way * n, way * n + n)
            trace[part, part] = over
            above = above + over.dot(level[part, part]).dot(over)
        variance = given[i + 1]
        terms[i] += [share / variance * trace, -share * inverse(level)]
        if i + 1 < len(levels):
            terms[i + 1] += [-share / variance * above, share * count * over]
    data = exact(problem.xi), exact(problem.y)
    setting = given[0], exact(problem.temperature).item()
    terms[0] += [term / N for term in energy_terms(levels[0], *data, ways, *setting)]
    worst = mpmath.mpf(0)
    for i, (level, skip) in enumerate(zip(levels, skips, strict=True)):
        if skip:
            # the first block is the level above, and moves with it
            n = len(levels[i + 1])
            terms[i + 1] += [term[:n, :n].copy() for term in terms[i]]
            for term in terms[i]:
                term[:n, :n] = mpmath.mpf(0)
        A = cholesky(level)
        moved = [A.T.dot(term).dot(A) for term in terms[i]]
        size = sum(np.max(np.abs(term)) for term in moved)
        worst = max(worst, np.max(np.abs(sum(moved))) / size)
    return float(worst)
