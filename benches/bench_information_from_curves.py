"""Integrals of privacy curves with proved bounds beside ``scipy.integrate.quad`` of the same integrand, without any."""

import numpy as np
import pytest
from scipy.integrate import quad

from fastpriv import GaussianMechanism, GaussianMixture, Pmf, hockey_stick_divergence, kl_divergence, notions
from fastpriv.conversions import (
    HockeyStickCurve,
    LipCurve,
    cd_lmip_from_hockey_sticks,
    cd_lmip_from_lip_curve,
    ci_lmip_from_dp_curve,
    kl_from_dp_curve,
)

POINTS = np.linspace(-1, 1, 21)
WEIGHTS = np.exp(-2 * POINTS**2)
PRIOR = Pmf(POINTS, WEIGHTS / WEIGHTS.sum())
NOISE = GaussianMechanism(1.16618639010826510)
MECHANISM = GaussianMechanism(1.0, 2.0)
SAMPLES = np.linspace(0, 40, 4001)
P = GaussianMixture([0.5, 0.3, 0.2], [-1.0, 0.0, 2.0], [1.0, 0.5, 1.5])
Q = GaussianMixture([0.6, 0.4], [0.0, 1.0], [1.0, 2.0])


def quad_over(integrand, end):
    return quad(integrand, 0, end, limit=400, epsabs=0, epsrel=1e-10)[0]


@pytest.mark.parametrize("way", ["closed form", "fastpriv, 1e-8 proved", "fastpriv, 4001 samples", "quad"])
@pytest.mark.benchmark(group="(12) of the Gaussian mechanism")
def test_ldp(benchmark, way):
    delta = MECHANISM.delta(SAMPLES)
    run = {
        "closed form": lambda: ci_lmip_from_dp_curve(MECHANISM, unit="nats").value,
        "fastpriv, 1e-8 proved": lambda: ci_lmip_from_dp_curve(MECHANISM.delta, unit="nats").value,
        "fastpriv, 4001 samples": lambda: ci_lmip_from_dp_curve((SAMPLES, delta), unit="nats").value,
        "quad": lambda: quad_over(lambda e: (1 + np.exp(-e)) * MECHANISM.delta(e).value, 60),
    }[way]
    assert run() == pytest.approx(2.0, rel=1e-7)
    benchmark(run)


@pytest.mark.parametrize("way", ["fastpriv, 1e-6 proved", "fastpriv, 1e-3 proved", "quad"])
@pytest.mark.benchmark(group="(14) of 21 points, sigma 1.166")
def test_lip(benchmark, way):
    run = {
        "fastpriv, 1e-6 proved": lambda: cd_lmip_from_lip_curve(LipCurve(PRIOR, NOISE), unit="nats").value,
        "fastpriv, 1e-3 proved": lambda: cd_lmip_from_lip_curve(LipCurve(PRIOR, NOISE), unit="nats", rtol=1e-3).value,
        "quad": lambda: quad_over(lambda e: 2 * np.cosh(e) * notions.lip_delta(PRIOR, NOISE, e).value, 20),
    }[way]
    assert run() == pytest.approx(0.7534356688, rel=1e-8)
    benchmark(run)


@pytest.mark.benchmark(group="both directions of 21 points, sigma 1.166")
def test_both_directions(benchmark):
    run = lambda: cd_lmip_from_hockey_sticks(PRIOR, NOISE, unit="nats").value
    pair = NOISE.conditional_distribution(1.0), NOISE.output_distribution(PRIOR)
    assert run() == pytest.approx(kl_divergence(*pair).value, rel=1e-10)
    benchmark(run)


@pytest.mark.parametrize("way", ["fastpriv, 1e-6 proved", "quad", "kl_divergence"])
@pytest.mark.benchmark(group="KL of two mixtures as an integral of hockey-sticks")
def test_kl(benchmark, way):
    def integrand(e):
        return hockey_stick_divergence(P, Q, e).value + np.exp(-e) * hockey_stick_divergence(Q, P, e).value

    run = {
        "fastpriv, 1e-6 proved": lambda: kl_from_dp_curve(
            HockeyStickCurve(P, Q), HockeyStickCurve(Q, P), rtol=1e-6
        ).value,
        "quad": lambda: quad_over(integrand, 80),
        "kl_divergence": lambda: kl_divergence(P, Q).value,
    }[way]
    assert run() == pytest.approx(kl_divergence(P, Q).value, rel=1e-7)
    benchmark(run)
