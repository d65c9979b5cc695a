"""H_a at a = e^epsilon < 1 against integrals of (p - a q)^+, for mixtures, mechanisms, channels and stacks."""

import re

import mpmath
import numpy as np
import pytest

from fastpriv import (
    Channel,
    DomainError,
    GaussianMechanism,
    GaussianMixture,
    LaplaceMechanism,
    MixtureStack,
    Pmf,
    hockey_stick_divergence,
    notions,
)
from fastpriv.distributions import LogRatio
from fastpriv.divergences import log_hockey_stick_divergence
from oracles import mixture

P = ([0.25, 0.75], [0.0, 2.0], [1.0, 0.5])
Q = ([0.5, 0.5], [0.5, -1.0], [1.5, 1.0])
LEVELS = np.array([[-30.0, -1.0, -1e-9], [0.0, 0.5, 3.0]])


def law(m):
    return GaussianMixture(*m)


def test_mixtures_against_ball_arithmetic():
    for first, second in ((P, Q), (Q, P)):
        pair = law(first), law(second)
        value, log = (f(*pair, LEVELS) for f in (hockey_stick_divergence, log_hockey_stick_divergence))
        for k, epsilon in np.ndenumerate(LEVELS):
            truth = mixture.hockey_stick(first, second, float(epsilon))
            assert value.lower[k] <= truth <= value.upper[k]
            assert truth.is_zero() or log.lower[k] <= truth.log() <= log.upper[k]
            assert value.upper[k] - value.lower[k] <= 1e-11 * value.upper[k]


def test_digits_of_small_answers_are_kept():
    """H at -1e-20 of two equal distributions is 1 - e^-1e-20."""
    got = hockey_stick_divergence(law(P), law(P), -1e-20)
    assert got.lower <= 1e-20 <= got.upper
    assert got.upper - got.lower <= 1e-34
    log = log_hockey_stick_divergence(law(P), law(P), -1e-20)
    assert log.lower <= float(mpmath.log(1e-20)) <= log.upper
    assert hockey_stick_divergence(law(P), law(Q), -np.inf).value == 1.0


def test_shapes_and_directions_and_stacks():
    both = hockey_stick_divergence(law(P), law(Q), LEVELS, both=True)
    assert np.array_equal(both.value[0], hockey_stick_divergence(law(P), law(Q), LEVELS).value)
    assert np.array_equal(both.value[1], hockey_stick_divergence(law(Q), law(P), LEVELS).value)
    stack = MixtureStack(*(np.tile(x, (4, 1)) for x in P))
    got = hockey_stick_divergence(stack, law(Q), LEVELS[0])
    assert got.value.shape == (4, 3)
    assert np.all(np.abs(got.value - hockey_stick_divergence(law(P), law(Q), LEVELS[0]).value) < 1e-14)
    assert isinstance(hockey_stick_divergence(law(P), law(Q), -1.0).value, float)


def test_masses_that_miss_one():
    p = ([0.25, 0.75 + 5e-10], [0.0, 2.0], [1.0, 0.5])
    got = hockey_stick_divergence(law(p), law(Q), -1.0)
    assert got.lower <= mixture.hockey_stick(p, Q, -1.0) <= got.upper


def test_mechanisms_and_channels():
    gaussian = GaussianMechanism(1.0, 1.0)
    for epsilon in (-5.0, -0.25):
        a, half = np.exp(epsilon), 0.5
        with mpmath.workdps(40):
            e = mpmath.mpf(epsilon)
            truth = mpmath.ncdf(half - e) - mpmath.exp(e) * mpmath.ncdf(-half - e)
        for got in (gaussian.delta(epsilon), notions.ldp_delta(Pmf([0.0, 1.0], [0.5, 0.5]), gaussian, epsilon)):
            assert got.lower <= truth <= got.upper
            assert got.upper - got.lower <= 1e-14
        log = gaussian.log_delta([epsilon, 1.0])
        assert log.lower[0] <= mpmath.log(truth) <= log.upper[0]
        rows = np.array([[0.3, 0.7], [0.6, 0.4]])
        want = max(np.maximum(x - a * y, 0.0).sum() for x in rows for y in rows)
        got = notions.ldp_delta(None, Channel(rows), epsilon)
        assert got.lower - 1e-15 <= want <= got.upper + 1e-15
    laplace = LaplaceMechanism(1.0, 1.0)  # quadrature of (p - a q)^+ with p, q a distance 1 apart
    for epsilon in (-3.0, -0.5):
        with mpmath.workdps(30):
            a, cut = mpmath.exp(epsilon), (1 - mpmath.mpf(epsilon)) / 2
            cuts = [-mpmath.inf, 0, *([cut] if 0 < cut < 1 else []), 1, mpmath.inf]
            truth = mpmath.quad(lambda x, a=a: max(mpmath.exp(-abs(x)) - a * mpmath.exp(-abs(x - 1)), 0) / 2, cuts)
        got = laplace.delta([epsilon, 0.5])
        assert abs(got.value[0] - truth) <= 1e-14
        assert got.lower[0] <= truth + 1e-20
        assert truth <= got.upper[0] + 1e-20


def test_what_is_refused_says_what_to_do():
    ratio = LogRatio(lambda x: x[:, 0], lambda rng, n: rng.normal(size=(n, 1)), dimension=1, vectorized=True)
    with pytest.raises(DomainError, match=r"with a LogRatio, .*; got -1\.0\. Pass the ratio of Q and P and -epsilon"):
        hockey_stick_divergence(ratio, epsilon=-1.0)
    prior = Pmf([0.0, 1.0], [0.5, 0.5])
    for mechanism in (GaussianMechanism(1.0), [[0.3, 0.7], [0.6, 0.4]]):
        with pytest.raises(DomainError, match=re.escape("bounds |log ratio| by epsilon: pass 0 or more")):
            notions.lip_delta(prior, mechanism, -1.0)
    with pytest.raises(DomainError, match="epsilon must be a number; got nan"):
        hockey_stick_divergence(law(P), law(Q), np.nan)
