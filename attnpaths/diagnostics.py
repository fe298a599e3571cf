"""Can a Markov chain be trusted? R-hat, effective sample sizes and standard errors.

The rank-normalised, split versions of Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021).
Arrays are `[chains, draws, ...]`; every number after the first two axes is judged by itself.
Fewer than four draws per chain, or draws that never change, give NaN.
"""

import numpy as np
import scipy.fft
import scipy.special
import scipy.stats


def rhat(draws) -> np.ndarray | np.floating:
    """How much wider all chains together are than one alone; 1 when they agree.

    The larger of the R-hats of the ranks of the draws and of their distance to the median.

    >>> float(np.round(rhat(np.random.default_rng(0).normal(size=(4, 1000))), 2))
    1.0
    """
    halves = _split(draws)
    if halves is None:
        return _nothing(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_rhat(_ranked(halves)), _rhat(_ranked(folded)))


def ess_bulk(draws) -> np.ndarray | np.floating:
    """How many independent draws locate the bulk of the distribution as well.

    >>> bool(ess_bulk(np.random.default_rng(0).normal(size=(4, 1000))) > 3000)
    True
    """
    halves = _split(draws)
    return _nothing(draws) if halves is None else _ess(_ranked(halves))


def ess_tail(draws) -> np.ndarray | np.floating:
    """How many independent draws locate the worse of the 5 % and 95 % quantiles as well.

    >>> bool(ess_tail(np.random.default_rng(0).normal(size=(4, 1000))) > 2000)
    True
    """
    halves = _split(draws)
    if halves is None:
        return _nothing(draws)
    ends = np.quantile(np.asarray(draws), (0.05, 0.95), axis=(0, 1))
    return np.minimum(*(_ess((halves <= end).astype(float)) for end in ends))


def mcse(draws) -> np.ndarray | np.floating:
    """The Monte Carlo standard error of the mean: deviation over √(effective draws).

    >>> float(np.round(mcse(np.random.default_rng(0).normal(size=(4, 2500))), 3))
    0.01
    """
    halves = _split(draws)
    if halves is None:
        return _nothing(draws)
    return np.std(np.asarray(draws), axis=(0, 1), ddof=1) / np.sqrt(_ess(halves))


def _nothing(draws) -> np.ndarray:
    return np.full(np.shape(draws)[2:], np.nan)


def _split(draws) -> np.ndarray | None:
    """Each chain as two, so that a drift within a chain is seen; None when there is too little."""
    draws = np.asarray(draws, float)
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]]) if half > 1 else None


def _ranked(draws: np.ndarray) -> np.ndarray:
    """Normal quantiles of the ranks among all draws of all chains."""
    flat = draws.reshape(draws.shape[0] * draws.shape[1], -1)
    ranks = scipy.stats.rankdata(flat, axis=0)
    return scipy.special.ndtri((ranks - 0.375) / (len(flat) + 0.25)).reshape(draws.shape)


def _rhat(draws: np.ndarray) -> np.ndarray | np.floating:
    count = draws.shape[1]
    between = np.var(draws.mean(axis=1), axis=0, ddof=1)
    within = np.mean(np.var(draws, axis=1, ddof=1), axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sqrt(between / within + (count - 1) / count)


def _ess(draws: np.ndarray) -> np.ndarray | np.floating:
    """Effective draws by Geyer's initial monotone sequence, from all chains together."""
    chains, count = draws.shape[:2]
    centred = draws - draws.mean(axis=1, keepdims=True)
    length = scipy.fft.next_fast_len(2 * count)
    spectrum = scipy.fft.rfft(centred, length, axis=1)
    autocovariance = scipy.fft.irfft(np.abs(spectrum) ** 2, length, axis=1)[:, :count] / count
    mean = autocovariance.mean(axis=0)
    within = mean[0] * count / (count - 1)
    total = mean[0] + np.var(draws.mean(axis=1), axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = 1 - (within - mean) / total
    rho[0] = np.where(np.isnan(rho[0]), np.nan, 1.0)
    pairs = rho[0 : count - count % 2 : 2] + rho[1::2]
    # sums of neighbours are positive and fall with the lag; what does neither is noise
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    last = np.minimum(positive.sum(axis=0), len(pairs) - 1)
    kept = np.where(positive, np.minimum.accumulate(pairs, axis=0), 0).sum(axis=0)
    rest = np.take_along_axis(rho[0::2], last[None], axis=0)[0]
    tau = 2 * kept - 1 + np.where(positive.all(axis=0), 0, np.maximum(rest, 0))
    tau = np.maximum(tau, 1 / np.log10(chains * count))
    return np.where(np.isnan(rho[1]), np.nan, chains * count / tau)
