"""Whether Markov chains have mixed, and how many independent samples they are worth.

Notation: the chains of one target, each in blocks of sweeps; b a variable with values 0 and 1, and its mean.

Source: split R-hat and rank normalisation, A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Buerkner, Bayesian
Analysis 16(2), 2021; the interval of a proportion, E. Wilson 1927.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from scipy import special

from ...base.numerics import FloatArray

R_HAT_LIMIT = 1.05  # above it chains have not mixed; largest over hundreds of variables, 1.02 is common when they have
LEAST_SAMPLES = 100.0  # effective ones, of chains that have mixed: an error of 0.05 at most of a probability


def effective_samples(means: FloatArray, chance: FloatArray, total: float) -> FloatArray:
    """Independent samples whose mean varies as that of these blocks, (chains, blocks, K), at most all.

    Blocks are also joined by two, four and eight, for chains that remember more than a block, and the largest of these
    variances counts.  Where no block differs from another there is one sample a block.
    """
    chains, blocks, people = means.shape
    variance = np.zeros(people)
    for joined in (1, 2, 4, 8):
        number = blocks // joined
        if chains * number >= 8:
            part = means[:, blocks - number * joined :].reshape(chains * number, joined, people).mean(axis=1)
            variance = np.maximum(variance, np.var(part, axis=0, ddof=1) / len(part))
    with np.errstate(divide="ignore", invalid="ignore"):
        result = chance * (1.0 - chance) / variance
    return np.where(variance > 0.0, np.minimum(result, total), float(chains * blocks))


def wilson_interval(chance: FloatArray, samples: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Wilson's interval of probabilities that are means of so many samples."""
    z = NormalDist().inv_cdf(0.5 + 0.5 * confidence)
    square = z * z / samples
    center = (chance + square / 2) / (1 + square)
    half = z / (1 + square) * np.sqrt(chance * (1 - chance) / samples + square / (4 * samples))
    return np.maximum(center - half, 0.0), np.minimum(center + half, 1.0)


def half_means(frequency: FloatArray) -> FloatArray:
    """Means of b_k in both halves of each chain, (2 chains, K)."""
    half = frequency.shape[1] // 2
    if half == 0:
        return frequency[:, 0]
    return np.concatenate([frequency[:, :half].mean(axis=1), frequency[:, -half:].mean(axis=1)])


def split_r_hat_of_means(means: FloatArray) -> FloatArray:
    """Of variables with values 0 and 1, from their means; 1 where nothing changes anywhere."""
    within = np.mean(means * (1.0 - means), axis=0)
    between = np.var(means, axis=0, ddof=1) if len(means) > 1 else np.zeros(means.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.sqrt(1.0 + between / within)
    return np.asarray(np.where(within > 0.0, result, np.where(between > 0.0, math.inf, 1.0)))


def split_r_hat(values: FloatArray) -> float:
    """Of numbers, (chains, sweeps)."""
    half = values.shape[1] // 2
    if half < 2:
        return 1.0
    parts = np.concatenate([values[:, :half], values[:, -half:]])
    within, between = float(np.mean(np.var(parts, axis=1, ddof=1))), float(np.var(parts.mean(axis=1), ddof=1))
    if within == 0.0:
        return math.inf if between > 0.0 else 1.0
    return math.sqrt(1.0 + between / within)


def normal_scores(values: FloatArray) -> FloatArray:
    """Normal scores of the average ranks of all values."""
    from scipy.stats import rankdata

    return np.asarray(special.ndtri((rankdata(values).reshape(values.shape) - 0.375) / (values.size + 0.25)))
