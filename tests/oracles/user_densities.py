"""What a person might hand over: laws in every form a density takes, and functions that break the rules."""

import math

import numba
import numpy as np

D = 3
SHIFT = np.array([0.5, -1.0, 2.0])
NORMALISER = -0.5 * D * math.log(2 * math.pi)


@numba.njit
def normal_jitted(x):
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * x[j]
    return NORMALISER - 0.5 * total


@numba.njit
def shifted_jitted(x):
    total = 0.0
    for j in range(x.shape[0]):
        total += (x[j] - SHIFT[j]) ** 2
    return NORMALISER - 0.5 * total


@numba.njit
def normal_sampler_jitted(rng, x):
    for j in range(x.shape[0]):
        x[j] = rng.standard_normal()


def normal_plain(x):
    total = 0.0
    for value in x:
        total += value * value
    return NORMALISER - 0.5 * total


def normal_vectorized(x):
    x *= x  # it is a copy
    return NORMALISER - 0.5 * x.sum(axis=1)


def shifted_vectorized(x):
    return NORMALISER - 0.5 * ((x - SHIFT) ** 2).sum(axis=1)


def normal_sampler(rng, n):
    return rng.standard_normal((n, D))


def shifted_sampler(rng, n):
    return SHIFT + rng.standard_normal((n, D))


def log_ratio_vectorized(x):
    return shifted_vectorized(x) - normal_vectorized(x.copy())


def poisson_log_density(x):
    """With respect to counts; the sampler gives integers of shape (n,)."""
    k = x[:, 0]
    with np.errstate(divide="ignore"):
        return np.where(k >= 0, k * math.log(3.0) - 3.0 - np.array([math.lgamma(v + 1) for v in np.abs(k)]), -np.inf)


def poisson_sampler(rng, n):
    return rng.poisson(3.0, n)


@numba.njit
def cube_jitted(x):
    for j in range(x.shape[0]):
        if not 0 <= x[j] <= 1:
            return -np.inf
    return 0.0


@numba.njit
def hard(x):
    """nan, +inf, -inf or an exception, as the first coordinate says."""
    if x[0] == 1:
        return np.nan
    if x[0] == 2:
        return np.inf
    if x[0] == 3:
        return -np.inf
    if x[0] == 4:
        raise ValueError("no fours")
    return 0.0


def points(first):
    """A tile whose first row is given."""
    x = np.zeros((D, len(first)))
    x[0] = first
    return x
