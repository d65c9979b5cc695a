"""The peak-power capacity at large amplitudes: narrow brackets, proved again from the input with another quadrature."""

import math

import numpy as np
import pytest
from scipy.special import gammaln, ndtr

from fastpriv import awgn_capacity
from fastpriv.calibration import sigma_from_ci_lmip

RAMP = 1.2  # width of the ramp of the uniform density, in standard deviations of the noise
END_CONSTANT = 3.98160794705  # empirical


def scaled_bessel(order, x):
    """sqrt(2 pi x) e^-x I_order(x) for large x."""
    term, total = np.ones_like(x), np.ones_like(x)
    for k in range(1, 12):
        term = -term * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k * x)
        total = total + term
    return total


class Input:
    """The law (r_0, r_1, ..), (p_0, p_1, ..): a uniform density with a ramp at r_0, and spheres.

    Densities are in units of p_0 / V, V = V_d E (r_0 + RAMP Z)^d, and integrals are sums over a grid of step 1/32.
    """

    def __init__(self, d, radius, radii, p):
        self.d, self.radii, self.p = d, radii, p
        self.rho = radius + np.arange(-75 * 32, 12 * 32) / 32
        moment = sum(
            math.comb(d, 2 * k) * math.prod(range(1, 2 * k, 2)) * (RAMP / radii[0]) ** (2 * k)
            for k in range(min(d // 2, 20) + 1)
        )
        self.log_moment = math.log(moment)
        log_volume = d / 2 * math.log(math.pi) - gammaln(d / 2 + 1) + d * math.log(radii[0]) + self.log_moment
        self.level = log_volume - math.log(p[0]) - d / 2 * math.log(2 * math.pi * math.e)
        r = radius + np.arange(-90 * 32, 0) / 32
        chi = ndtr((radii[0] - r) / RAMP)
        self.ball = np.array([np.sum(chi * self.density(r, rho)) for rho in self.rho]) / 32
        self.ball[self.rho < radius - 60] = 1.0  # the sum over r begins too close
        f = self.ball.copy()
        for r_j, p_j in zip(radii[1:], p[1:], strict=True):  # V / (area of the sphere) is r_0^d moment / (d r^(d-1))
            size = radii[0] * moment / d * (radii[0] / r_j) ** (d - 1)
            f += p_j / p[0] * size * self.density(r_j, self.rho)
        self.log_f = np.log(f)

    def density(self, r, rho):
        """Of the norm r of a point rho e + Z."""
        order = self.d / 2 - 1
        return (r / rho) ** (order + 0.5) * np.exp(-((r - rho) ** 2) / 2) * scaled_bessel(order, r * rho) / math.sqrt(
            2 * math.pi
        )

    def divergence(self, r):
        """i(r), the divergence of the output of a point of norm r from the output."""
        return self.level - np.sum(self.density(self.rho, r) * self.log_f) / 32

    def information(self):
        share = self.d / self.radii[0] * np.exp((self.d - 1) * np.log(self.rho / self.radii[0]) - self.log_moment)
        ball = self.level - np.sum(share * self.ball * self.log_f) / 32
        return self.p[0] * ball + sum(p * self.divergence(r) for r, p in zip(self.radii[1:], self.p[1:], strict=True))


INPUTS = [(1, 150.0), (1, 1e5), (2, 100.0), (2, 300.0), (2, 1e5), (3, 300.0), (3, 1e6), (4, 1e3), (8, 300.0), (8, 1e5),
          (64, 1e3), (300, 3e3)]


@pytest.mark.slow
@pytest.mark.parametrize(("d", "radius"), INPUTS)
def test_the_input_proves_the_bracket(d, radius):
    got = awgn_capacity(d, radius)
    assert got.method.startswith("uniform ball"), got.method
    assert got.width <= 2e-8 * got.value
    assert abs(math.fsum(got.probabilities) - 1) < 1e-14
    assert np.all(np.diff(got.radii[1:]) > 0)
    assert got.radii[-1] == radius
    law = Input(d, radius, got.radii, got.probabilities)
    rounding = 2e-14 * (got.value + d * math.log(radius))
    information = law.information()
    assert got.lower <= information + rounding, (got, information)
    assert abs(information - got.value) <= rounding, (got, information)
    found = [law.divergence(radius - x) for x in np.arange(0.0, 50.0, 0.35)]
    assert max(found) <= got.upper + rounding, (got, max(found))
    assert got.upper <= max(found) + 0.1 * got.width + 1e-9 * got.value, "the bound is the maximum and its errors"


@pytest.mark.slow
def test_the_proof_notices_other_weights():
    got = awgn_capacity(3, 300.0)
    p = np.array(got.probabilities)
    p[-1] *= 1.0001
    law = Input(3, 300.0, got.radii, p / p.sum())
    assert max(law.divergence(300.0 - x) for x in np.arange(0.0, 40.0, 0.35)) > got.upper + 1e-6
    law = Input(3, 300.0, got.radii + np.where(np.arange(len(p)) == len(p) - 3, 0.05, 0.0), got.probabilities)
    assert law.information() < got.lower


NARROW = [(d, r) for d in (2, 3, 4, 8) for r in (90.0, 300.0, 1e3, 1e5, 1e9, 1e15, 1e300)]
NARROW += [(16, 170.0), (64, 600.0), (300, 2e3), (4000, 3e4), (40_000, 3e5), (1_000_000, 1e7), (40_000, 1.1e7),
           (1, 1.1e7), (2, 1.1e7), (5, 1e7), (1000, 1e300)]


@pytest.mark.parametrize(("d", "radius"), NARROW)
def test_brackets_are_narrow_and_hold_the_limit(d, radius):
    got = awgn_capacity(d, radius)
    assert 0 < got.width <= (1e-7 if radius > 100 else 1e-6) * got.value, got
    assert got.lower <= got.value <= got.upper
    volume = d * math.log(radius) - d / 2 * math.log(2 * math.e) - gammaln(d / 2 + 1)  # less (d/2) log(2 pi e)
    rounding = 1e-13 * (abs(volume) + d)
    assert got.upper >= volume - rounding
    assert got.lower <= d / 2 * math.log1p((radius * 1e-150) ** 2 / d * 1e300) if radius < 1e150 else True
    if radius > 1e4 * d:  # the limit is empirical
        limit = volume + math.log1p(END_CONSTANT / 2 * d / radius)
        second = 20 * d * (d / radius) ** 2 + rounding
        assert got.lower <= limit + second, (got, limit)
        assert got.upper >= limit - second, (got, limit)


@pytest.mark.slow
def test_no_gap_stays_wide():
    rng = np.random.default_rng(20250119)
    problems = []
    for _ in range(600):
        d = int(math.exp(rng.uniform(0, math.log(1e6))))
        radius = math.exp(rng.uniform(math.log(60.0), math.log(1e8)))
        got = awgn_capacity(d, radius)
        if not got.width <= (1e-6 if d > 1 or radius < 60 else 1e-8 if radius < 1e5 else 1e-6) * got.value:
            problems.append(f"d={d} R={radius!r}: {got.width / got.value:.2e}, {got.method}")
    assert not problems, "\n".join(problems)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 8])
def test_nothing_jumps_where_one_method_follows_another(d):
    """Around the first ball, and around the last."""
    for radii in (np.array([78.0, 79.0, 82.0, 86.0]), 1e7 * (1 + 1e-3 * np.array([-1.0, -0.5, 0.5, 1.0]))):
        got = [awgn_capacity(d, float(r)) for r in radii]
        assert len({one.method for one in got}) > 1, got
        for k in range(3):
            (r, s), (one, two) = radii[k : k + 2], got[k : k + 2]
            rise, slopes = two.value - one.value, (one.slope, two.slope)
            slack = (one.width + two.width) + 2e-3 * d * (s / r - 1) ** 2 + 1e-12
            assert min(slopes) * (s - r) - slack <= rise <= max(slopes) * (s - r) + slack, (d, r, s)


@pytest.mark.slow
def test_capacity_rises_with_the_amplitude_and_the_dimension():
    d, radius = np.array([1, 2, 3])[:, None], np.array([150.0, 1e4, 1e8])
    got = awgn_capacity(d, radius)
    for i, one in enumerate(d[:, 0]):
        for j, r in enumerate(radius):
            single = awgn_capacity(int(one), float(r))
            assert got.lower[i, j] <= single.upper
            assert single.lower <= got.upper[i, j]
    for axis in (0, 1):
        assert np.all(np.diff(got.lower, axis=axis) > 0)
        assert np.all(np.diff(got.upper, axis=axis) > 0)
    bend = np.diff(awgn_capacity(2, np.sqrt(np.linspace(1e4, 9e4, 9))).value, 2)
    assert np.all(bend < 0), "concave in the power"


@pytest.mark.parametrize(("d", "nats"), [(1, 5.0), (2, 9.7), (3, 30.0), (8, 100.0), (64, 400.0)])
def test_the_inverse_at_large_amplitudes(d, nats):
    sigma = sigma_from_ci_lmip(nats, d, 1.0, unit="nats")
    assert 0 < sigma.width <= 1e-6 * sigma.value
    assert awgn_capacity(d, 1.0, sigma.upper).lower <= nats
    assert awgn_capacity(d, 1.0, sigma.lower).upper >= nats
    value = awgn_capacity(d, 1.0, sigma.value).value
    assert value == pytest.approx(nats, rel=1e-7)
