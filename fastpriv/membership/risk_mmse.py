"""The joint risk of many people through the error of the posterior mean.

Notation: r = f(b) + sigma z with f(b) = D^T b / |b| and z standard normal; at signal-to-noise ratio s the release is
f(b) + z / sqrt(s), with mmse(s) = E |f(b) - E(f(b) | r_s)|^2. Then, as mutual information is half its integral,

    H(b | r) = H(b) - 1/2 integral of mmse(s) over s from 0 to 1 / sigma^2.

s is drawn with density proportional to 1 / (1 + v s), v about the variance of an attribute's direction. Chains of Gibbs
steps give independent posterior means m_i of f: <f - m_i, f - m_j> has the mean mmse(s) where the chains have
converged, and |f - mean of m_i|^2 has at least it in any case. So the lower end of the risk needs no convergence; for
the upper end, draws whose chains disagree count as no error at all.
"""

# bounds: none - the least v, of a density to draw from, which any v leaves right

from __future__ import annotations

import itertools
import math

import numpy as np

from .. import _random, _validate
from .._monotone import in_unit
from .._random import RNGLike
from ..errors import DomainError
from ..estimate import Estimate, Information
from ..kernels import _matrix_product
from ..numerics import FloatArray
from ..sampling.statistics.intervals import replicate_interval
from .linear_estimate import LMMSEAttacker
from .noises import GaussianNoise
from .posterior_sampling import WARM_UP, Chains, sample_posterior
from .releases import FrequencyRelease

__all__ = ["joint_risk_from_mmse"]

_REPLICATES = 16  # of the draws: Student's factor is then 9 % above the normal quantile
_PILOT = 256  # memberships from which v is taken; any v is right, a good one saves draws


@in_unit
def joint_risk_from_mmse(
    model: FrequencyRelease, *, samples: int = 256, sweeps: int = 1000, chains: int = 4, confidence: float = 0.95,
    rng: RNGLike = None, n_jobs: int | None = None, unit: Information = "nats",
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
        that agree have. ``cost["unmixed"]`` counts the draws whose chains disagree.

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
    _validate.instance("model", model, FrequencyRelease)
    sigma = model.noise.sigma if isinstance(model.noise, GaussianNoise) else None
    if not isinstance(sigma, float) or model.clip:
        raise DomainError(
            f"model must have Gaussian noise of one sigma without clipping; got {model!r}. Use bgp_risk for others."
        )
    _validate.count("samples", samples, 64)
    _validate.count("sweeps", sweeps, 16)
    _validate.count("chains", chains, 2)
    level = _validate.scalar("confidence", confidence, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1))
    prior = model.prior.entropy(model.n_people)
    first, *streams = _random.root(rng).spawn(_REPLICATES + 1)
    people = np.ascontiguousarray(model.panel.to_array().T, dtype=np.float64)
    pilot = model.frequencies(model.prior.draw(_PILOT, model.n_people, np.random.default_rng(first)))
    v = float(np.var(pilot, axis=0).sum()) / min(people.shape)
    v = max(v, 1e-12 * sigma**2)  # no attribute varies: the density is then uniform
    whole = math.log1p(v / sigma**2)
    each, unmixed, means = -(-int(samples) // _REPLICATES), 0, []
    for stream in streams:
        random = np.random.default_rng(stream)
        found = []
        for i in range(each):
            u = (i + 1.0 - random.random()) / each
            ratio = math.expm1(u * whole) / v
            one = FrequencyRelease(model.panel, model.prior, GaussianNoise(1.0 / math.sqrt(ratio)))
            b = model.prior.draw(1, model.n_people, random)
            released = one.release(b, rng=random)
            guess = LMMSEAttacker(one).scores(released).reshape(1, -1)
            (posterior,) = sample_posterior(
                [one], [released], guess, sweeps=sweeps, chains=chains, temperatures=1, confidence=level,
                rng=int(random.integers(2**62)), resume=None, n_jobs=n_jobs, progress=None, result=_nothing,
            )  # fmt: skip
            agree = posterior.mixed
            unmixed += not agree
            error, bound = _errors(people, b[0] / b.sum(), _mean_shares(posterior.chains))
            density = 0.5 * (1.0 + v * ratio) * whole / v
            found.append([density * error, density * (error if agree else min(error, 0.0)), density * bound])
        means.append(np.mean(found, axis=0))
    interval = replicate_interval(np.stack(means), level, points=each)
    entropy = float(prior.value)
    value = min(max(entropy - float(interval.value[0]), 0.0), entropy)
    upper = min(max(float(prior.upper) - float(interval.lower[1]), value), float(prior.upper))
    lower = max(min(float(prior.lower) - float(interval.upper[2]), value), 0.0)
    return Estimate(
        value, lower, upper, kind="statistical", unit="nats", confidence=level,
        method="integral of the mean squared error", cost={"samples": each * _REPLICATES, "unmixed": unmixed},
    )  # fmt: skip


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
