"""The linear estimate of a membership with the least mean square error, from which chains of Gibbs steps start.

Notation: b in {0, 1}^K, n = |b|, r_i = D_i^T b / n + noise of variance v_i in each entry, of releases i. With the
moments under the prior

    e = E b / n,  C = Cov(b, b / n),  S = Cov(b / n),  G = sum_i D_i D_i^T / v_i,

the estimate is  E b + C (G S + I)^-1 (sum_i D_i r_i / v_i - G e),  by exchanging the m x m inverse for one of K x K.
Clipping is not taken into account.
"""

# bounds: none - an estimate without bounds: variances of noises

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...base.binomial import log_binomial_coefficients
from ...base.numerics import FloatArray
from .noises import GaussianNoise, LaplaceNoise, NoNoise, ScaledNoise
from .priors import BernoulliMembership, FixedSizeMembership, MembershipPrior
from .releases import FrequencyRelease

__all__ = ["linear_estimates"]

# bound: none - variance in the place of none: the inverse exists, and 1e-5 of noise changes nothing
_LEAST_VARIANCE = 1e-10


def linear_estimates(parts: Sequence[FrequencyRelease], arrays: Sequence[FloatArray]) -> FloatArray:
    """The estimates of b, shape (count, K), from ``arrays`` (count, m_i) of the releases; not confined to [0, 1].

    No other linear function of the releases is nearer to b.
    """
    people = parts[0].n_people
    sizes, mean, ratio, cross, spread = _moments(parts[0].prior, people)
    variances = [_variance(part, sizes) for part in parts]
    shared = np.zeros((people, people))
    for part, variance in zip(parts, variances, strict=True):
        shared += part.panel.gram() / variance
    gain = np.linalg.solve((shared @ spread + np.eye(people)).T, cross.T).T
    sums = np.zeros((len(arrays[0]), people))
    for part, variance, array in zip(parts, variances, arrays, strict=True):
        sums += part.panel.products(array.T).T / variance
    return np.asarray(mean + (sums - shared @ ratio) @ gain.T)


def _variance(part: FrequencyRelease, sizes: FloatArray) -> float:
    """Variance of one entry of the noise, on average over the sizes."""
    noise, people = part.noise, part.n_people
    if isinstance(noise, NoNoise):
        return _LEAST_VARIANCE
    unit = 1.0 if isinstance(noise, GaussianNoise) else 2.0
    if not isinstance(noise, (GaussianNoise, LaplaceNoise)):  # y = R U[-1, 1], E R^2 = (m + 1)(m + 2) scale^2
        unit = (part.n_attributes + 1.0) * (part.n_attributes + 2.0) / 3.0
    assert isinstance(noise, ScaledNoise)
    scale = noise.scale_of(np.arange(1, people + 1))
    return max(unit * float(sizes[1:] @ np.square(scale)), _LEAST_VARIANCE)


def _moments(prior: MembershipPrior, people: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """P(n = 0 ... K), E b, E b / n, Cov(b, b / n) and Cov(b / n)."""
    if isinstance(prior, FixedSizeMembership):
        n = prior.n0
        mean = np.full(people, n / people)
        pair = n * (n - 1.0) / (people * (people - 1.0)) if people > 1 else 1.0
        covariance = np.full((people, people), pair - (n / people) ** 2)
        np.fill_diagonal(covariance, n / people * (1 - n / people))
        sizes = np.zeros(people + 1)
        sizes[n] = 1.0
        return sizes, mean, mean / n, covariance / n, covariance / n**2
    assert isinstance(prior, BernoulliMembership)
    q = np.broadcast_to(np.asarray(prior.q, dtype=np.float64), (people,))
    some = -math.expm1(math.fsum(np.log1p(-q).tolist()))
    if np.all(q == q[0]):
        sizes, single, double = _equal_moments(float(q[0]), people)
        moments = [(np.full(people, single[power]), np.full((people, people), double[power])) for power in range(3)]
    else:
        sizes, moments = _unequal_moments(q)
    mean, ratio = moments[0][0] / some, moments[1][0] / some
    for vector, matrix in moments:
        np.fill_diagonal(matrix, vector)
    cross = moments[1][1] / some - np.outer(mean, ratio)
    spread = moments[2][1] / some - np.outer(ratio, ratio)
    return sizes / some, mean, ratio, cross, spread


def _equal_moments(q: float, people: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """P(n), E[b_k n^-p] and E[b_k b_l n^-p] for p = 0, 1, 2, before the condition that there is a member."""

    def binomial(trials: int) -> FloatArray:
        n = np.arange(trials + 1)
        logs = np.asarray(log_binomial_coefficients(trials, n)) + n * math.log(q) + (trials - n) * math.log1p(-q)
        return np.asarray(np.exp(logs))

    single, double = np.zeros(3), np.zeros(3)
    for power in range(3):
        single[power] = q * float(binomial(people - 1) @ (1.0 + np.arange(people)) ** -power)
        if people > 1:
            double[power] = q * q * float(binomial(people - 2) @ (2.0 + np.arange(people - 1)) ** -power)
    return binomial(people), single, double


def _unequal_moments(q: FloatArray) -> tuple[FloatArray, list[tuple[FloatArray, FloatArray]]]:
    """The same for different probabilities, by the characteristic function of n at an odd number of points.

    With z = e^(i w), E[b_k b_l g(n)] = q_k q_l sum over w of z^2 ghat(w) phi(w) / (phi_k(w) phi_l(w)) / points, where
    phi_k = 1 - q_k + q_k z is not 0, as no z is -1.
    """
    people = q.size
    points = people + 1 + people % 2
    n = np.arange(points)
    z = np.exp(2j * np.pi * n / points)
    factors = 1.0 - q[:, None] + q[:, None] * z  # (K, points)
    phi = np.exp(np.log(factors).sum(axis=0))
    sizes = np.maximum(np.real(np.fft.fft(phi)) / points, 0.0)[: people + 1]
    inverse = q[:, None] / factors
    result = []
    for power in range(3):
        weights = np.where((n >= 1) & (n <= people), np.maximum(n, 1.0) ** -power, 0.0)
        spectrum = np.fft.fft(weights) / points * phi  # sum over n of g(n) z^-n
        single = np.real(inverse @ (spectrum * z))
        double = np.real((inverse * (spectrum * z * z)) @ inverse.T)
        result.append((single, double))
    return sizes, result
