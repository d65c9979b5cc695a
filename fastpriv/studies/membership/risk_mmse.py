"""The joint risk of many people through the error of the posterior mean.

Notation: r = f(b) + sigma z with f(b) = D^T b / |b| and z standard normal; at signal-to-noise ratio s the release is
f(b) + z / sqrt(s), with mmse(s) = E |f(b) - E(f(b) | r_s)|^2. Then, as mutual information is half its integral,

    H(b | r) = H(b) - 1/2 integral of mmse(s) over s from 0 to 1 / sigma^2.

The best linear estimate errs by l(s) = sum_i lambda_i / (1 + lambda_i s), with lambda_i the eigenvalues of Cov f, so
that the integral is at most sum_i log(1 + lambda_i / sigma^2) / 2; s is drawn with density proportional to l. Where
people are exchangeable, f is the mean of a sample without replacement given |b|, of one expectation whatever |b| is,
and Cov f = E (1 / |b| - 1 / K) / (K - 1) times the sum of (d_k - mean) (d_k - mean)^T; the squared error of the linear
estimate, whose mean is l, is then a control variate, with the coefficient that the other replicates show. Otherwise
Cov f is about that of drawn memberships, which serves for the density alone.

Chains of Gibbs steps give independent posterior means m_i of f: <f - m_i, f - m_j> has the mean mmse(s) where the
chains have converged, and |f - mean of m_i|^2 has at least it in any case. So the lower end of the risk needs no
convergence; for the upper end, draws whose chains disagree count as no error at all.
"""

# bounds: proved - the rounding of eigenvalues; the pilot gives a density to draw from, which any leaves right

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from ...base import random_streams, validate
from ...base.errors import DomainError
from ...base.estimate import Estimate, Information
from ...base.inverse import bisect
from ...base.monotone import in_unit
from ...base.numerics import UNIT_ROUNDOFF, FloatArray
from ...base.random_streams import RNGLike
from ...kernels import _matrix_product
from ...sampling.statistics.intervals import replicate_interval
from .linear_estimate import LMMSEAttacker
from .noises import GaussianNoise
from .posterior_sampling import WARM_UP, Chains, sample_posterior
from .releases import FrequencyRelease

__all__ = ["joint_risk_from_mmse"]

_HALVINGS = 60  # of the bisection for a ratio
_REPLICATES = 16  # of the draws: Student's factor is then 9 % above the normal quantile
_PILOT = 256  # memberships from which Cov f is taken where it is not known; any is right, a good one saves draws
# bound: proved - relative to the trace and for each person: eigenvalues of a symmetric matrix and its entries
_EIGENVALUE_ERROR = 64 * UNIT_ROUNDOFF


@in_unit
def joint_risk_from_mmse(
    model: FrequencyRelease, *, samples: int = 256, sweeps: int = 1000, chains: int = 4, temperatures: int = 1,
    confidence: float = 0.95, rng: RNGLike = None, n_jobs: int | None = None, unit: Information = "nats",
) -> Estimate:  # fmt: skip
    """The joint risk H(b | r) of any number of people, by an integral over the signal-to-noise ratio.

    Parameters
    ----------
    model : FrequencyRelease
        With Gaussian noise of one sigma, not clipped.
    samples : int, default 256
        Releases that are drawn, each at a ratio of its own; at least 64.
    sweeps : int, default 1000
        Of each chain, as ``membership_posterior``.
    chains : int, default 4
        Of each release, at least 2.
    temperatures : int, default 1
        Replicas of each chain at ever higher temperatures, which exchange states: for chains that do not mix otherwise.
    confidence : float, default 0.95
        Level of the interval.
    rng : int, Generator or None
        Source of random numbers.
    n_jobs : int, optional
        Number of threads.
    unit : {"nats", "bits"}
        Unit of the answer.

    Returns
    -------
    Estimate
        ``statistical``. Its lower end holds at the level whether the chains converge or not; its upper end where those
        that agree have. With one probability for all, or a fixed number of members, the lower end is no less than that
        of the best linear estimate, which is not random. ``cost["unmixed"]`` counts the draws whose chains disagree.

    Raises
    ------
    DomainError
        For other noise, releases that are clipped, and keywords out of range.

    Notes
    -----
    **Accuracy** ``tests/membership/test_risk_mmse.py`` compares with certified risks and with enumeration.

    Source: Guo, Shamai and Verdu 2005, theorem 2.

    Examples
    --------
    >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, GaussianNoise, Panel, bgp_risk
    >>> from fastpriv.membership import joint_risk_from_mmse
    >>> model = FrequencyRelease(Panel([[1], [0], [1]]), FixedSizeMembership(1), GaussianNoise(0.5))
    >>> found = joint_risk_from_mmse(model, samples=64, sweeps=200, rng=1)
    >>> bool(found.lower <= bgp_risk(model, kind="joint").value <= found.upper)
    True
    """
    validate.instance("model", model, FrequencyRelease)
    sigma = model.noise.sigma if isinstance(model.noise, GaussianNoise) else None
    if not isinstance(sigma, float) or model.clip:
        raise DomainError(
            f"model must have Gaussian noise of one sigma without clipping; got {model!r}. Use bgp_risk for others."
        )
    validate.count("samples", samples, 64, validate.MOST_ENTRIES)
    validate.count("sweeps", sweeps, 16, validate.MOST_ENTRIES)
    validate.count("chains", chains, 2, validate.MOST_ENTRIES)
    validate.count("temperatures", temperatures, 1, validate.MOST_ENTRIES)
    level = validate.scalar("confidence", confidence, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1))
    prior = model.prior.entropy(model.n_people)
    first, *streams = random_streams.root(rng).spawn(_REPLICATES + 1)
    people = np.ascontiguousarray(model.panel.to_array().T, dtype=np.float64)
    linear = _linear_estimate(model, people)
    variances = _pilot_variances(model, np.random.default_rng(first)) if linear is None else linear.variances
    variances = np.maximum(variances, 1e-12 * sigma**2)  # no attribute varies: the density is then uniform
    most = 1.0 / sigma**2
    whole = 0.5 * math.fsum(np.log1p(variances * most).tolist())
    each, unmixed = -(-int(samples) // _REPLICATES), 0
    draws, controls = [], []
    for stream in streams:
        random = np.random.default_rng(stream)
        found, known = [], []
        for i in range(each):
            u = (i + 1.0 - random.random()) / each
            ratio = _ratio_at(variances, u * whole, most)
            one = FrequencyRelease(model.panel, model.prior, GaussianNoise(1.0 / math.sqrt(ratio)))
            b = model.prior.draw(1, model.n_people, random)
            released = one.release(b, rng=random)
            guess = LMMSEAttacker(one).scores(released).reshape(1, -1)
            try:
                (posterior,) = sample_posterior(
                    [one], [released], guess, sweeps=sweeps, chains=chains, temperatures=temperatures,
                    confidence=level, rng=int(random.integers(2**62)), resume=None, n_jobs=n_jobs, progress=None,
                    result=_nothing,
                )  # fmt: skip
            except KeyboardInterrupt:
                raise KeyboardInterrupt("interrupted while drawing releases") from None
            agree = posterior.mixed
            unmixed += not agree
            error, bound = _errors(people, b[0] / b.sum(), _mean_shares(posterior.chains))
            most_linear = math.fsum((variances / (1.0 + variances * ratio)).tolist())
            density = whole / most_linear
            found.append([density * error, density * (error if agree else min(error, 0.0)), density * bound])
            truth = one.frequencies(b)[0]
            known.append(0.0 if linear is None else density * (linear.error(released[0], truth, ratio) - most_linear))
        draws.append(found)
        controls.append(known)
    interval = replicate_interval(_controlled(np.array(draws), np.array(controls)), level, points=each)
    entropy = float(prior.value)
    least = -math.inf
    if linear is not None:
        least = float(prior.lower) - whole * (1.0 + _EIGENVALUE_ERROR * model.n_people)
    upper = max(min(float(prior.upper) - float(interval.lower[1]), float(prior.upper)), least, 0.0)
    value = min(max(entropy - float(interval.value[0]), least, 0.0), upper)
    lower = min(max(float(prior.lower) - float(interval.upper[2]), least, 0.0), value)
    return Estimate(
        value, lower, upper, kind="statistical", unit="nats", confidence=level,
        method="integral of the mean squared error", cost={"samples": each * _REPLICATES, "unmixed": unmixed},
    )  # fmt: skip


class _LinearEstimate(NamedTuple):
    """Upper bounds of the eigenvalues of Cov f, its eigenvectors (m, i), and the expectation of f."""

    variances: FloatArray
    vectors: FloatArray
    mean: FloatArray

    def error(self, released: FloatArray, truth: FloatArray, ratio: float) -> float:
        """The squared error of the best linear estimate at a signal-to-noise ratio."""
        gain = self.variances * ratio / (1.0 + self.variances * ratio)
        estimate = self.mean + self.vectors @ (gain * (self.vectors.T @ (released - self.mean)))
        return math.fsum(np.square(truth - estimate).tolist())


def _linear_estimate(model: FrequencyRelease, people: FloatArray) -> _LinearEstimate | None:
    """None where people are not exchangeable."""
    prior, count = model.prior, model.n_people
    log_odds, log_size_weights = prior.log_prior(count)
    if np.ptp(log_odds) > 0.0 or count == 1:
        return None
    sizes = np.arange(1, count + 1)
    ways = [math.lgamma(count + 1) - math.lgamma(n + 1) - math.lgamma(count - n + 1) for n in sizes.tolist()]
    logs = np.array(ways) + log_size_weights[1:] + sizes * log_odds[0]
    weights = np.exp(logs - logs.max())
    factor = float(weights @ (1.0 / sizes - 1.0 / count) / weights.sum()) / (count - 1)
    mean = people.mean(axis=1)
    vectors, values, _ = np.linalg.svd(people - mean[:, None], full_matrices=False)
    squares = np.square(values)
    return _LinearEstimate(factor * (squares + _EIGENVALUE_ERROR * count * float(squares.sum())), vectors, mean)


def _controlled(draws: FloatArray, controls: FloatArray) -> FloatArray:
    """Means of each replicate, shape (R, 3), less the control's times the coefficient of the other replicates."""
    means, mean_controls = draws.mean(axis=1), controls.mean(axis=1)
    found: FloatArray = np.empty(means.shape)
    for r in range(len(means)):
        x, c = np.delete(draws, r, axis=0), np.delete(controls, r, axis=0)
        spread = float(np.sum(c * c))
        slope = np.einsum("rde,rd->e", x - x.mean(axis=(0, 1)), c) / spread if spread > 0.0 else np.zeros(3)
        found[r] = means[r] - slope * mean_controls[r]
    return np.asarray(found)


def _pilot_variances(model: FrequencyRelease, random: Any) -> Any:
    """About the eigenvalues of Cov f, from drawn memberships, with a little of each direction."""
    pilot = model.frequencies(model.prior.draw(_PILOT, model.n_people, random))
    pilot = pilot - pilot.mean(axis=0)
    found = np.maximum(np.linalg.eigvalsh(pilot @ pilot.T / len(pilot)), 0.0)
    return found[found > 0.0] if bool((found > 0.0).any()) else np.ones(1)


def _ratio_at(variances: FloatArray, integral: float, most: float) -> float:
    """The s up to which half the linear estimate's error integrates to ``integral``, at most ``most``; by bisection."""
    low, high = bisect(
        lambda ratio: 0.5 * math.fsum(np.log1p(variances * ratio).tolist()) >= integral, 0.0, most, _HALVINGS
    )
    return 0.5 * (low + high)


def _mean_shares(chains: Chains) -> FloatArray:
    """The mean of b / |b| over the sweeps that are kept, of each chain: shape (chains, K)."""
    kept = chains.states[:, int(WARM_UP * chains.states.shape[1]) :]
    b = np.unpackbits(kept, axis=-1, count=chains.mode.size).reshape(len(kept), -1, chains.mode.size)
    return np.asarray((b / b.sum(axis=-1, keepdims=True)).mean(axis=1))


def _errors(people: FloatArray, truth: FloatArray, shares: FloatArray) -> tuple[float, float]:
    """<f - m_i, f - m_j> averaged over pairs of chains, and the squared error of the mean of all."""
    off = [_matrix_product.matrix_vector(people, truth - one) for one in shares]
    pairs = [math.fsum((x * y).tolist()) for x, y in itertools.combinations(off, 2)]
    return math.fsum(pairs) / len(pairs), math.fsum((np.mean(off, axis=0) ** 2).tolist())


def _nothing(_: object) -> None:
    """What an interruption carries."""
