"""KL, JS, Renyi, entropy and mutual information of mixtures beside the NumPy trapezoid and scipy.integrate.quad."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp

import fastpriv
from fastpriv import GaussianMixture, Pmf

RNG = np.random.default_rng(1)


def random_mixture(size):
    return GaussianMixture(RNG.dirichlet(np.ones(size)), RNG.normal(0, 3, size), np.exp(RNG.normal(0, 0.7, size)))


P, Q = random_mixture(8), random_mixture(8)
NEAR = GaussianMixture(P.weights, P.means + 1e-6, P.sigmas)
PRIOR, SIGMA = Pmf(np.linspace(-1, 1, 21), RNG.dirichlet(np.ones(21))), 0.3


def log_density(law, x):
    t = (np.asarray(x)[..., None] - law.means) / law.sigmas
    return logsumexp(np.log(law.weights / law.sigmas) - t * t / 2, axis=-1) - np.log(2 * np.pi) / 2


def kl_integrand(p, q):
    def f(x):
        lp, lq = log_density(p, x), log_density(q, x)
        return np.exp(lp) * (lp - lq)

    return f


def js_integrand(p, q):
    def f(x):
        lp, lq = log_density(p, x), log_density(q, x)
        lm = np.logaddexp(lp, lq) - np.log(2)
        return (np.exp(lp) * (lp - lm) + np.exp(lq) * (lq - lm)) / 2

    return f


def entropy_integrand(p, q):
    def f(x):
        lp = log_density(p, x)
        return -np.exp(lp) * lp

    return f


LAW = PRIOR.through_gaussian(SIGMA)
NOISE = 0.5 * np.log(2 * np.pi * np.e * SIGMA**2)
CASES = {
    "kl 8+8": (lambda: fastpriv.kl_divergence(P, Q).value, kl_integrand(P, Q), 0.0, 1e-7),
    "kl 8+8 certified": (lambda: fastpriv.kl_divergence(P, Q, certified=True).value, kl_integrand(P, Q), 0.0, 1e-7),
    "js 8+8": (lambda: fastpriv.jensen_shannon(P, Q).value, js_integrand(P, Q), 0.0, 1e-7),
    "entropy 8": (lambda: fastpriv.entropy(P).value, entropy_integrand(P, Q), 0.0, 1e-7),
    "mutual information 21": (
        lambda: fastpriv.mutual_information(PRIOR, SIGMA).value, entropy_integrand(LAW, LAW), NOISE, 1e-7,
    ),
    # here the peers keep no digit at all
    "kl 8+8 near-identical": (lambda: fastpriv.kl_divergence(P, NEAR).value, kl_integrand(P, NEAR), 0.0, None),
}  # fmt: skip
SIDES = ("fastpriv", "numpy trapezoid", "scipy quad")


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", CASES)
def test_integral(benchmark, name, side):
    ours, integrand, offset, tolerance = CASES[name]
    grid = np.linspace(-60.0, 60.0, 6001)

    def peer():
        if side == "scipy quad":
            return quad(integrand, -60.0, 60.0, limit=400)[0] - offset
        return np.trapezoid(integrand(grid), grid) - offset

    call = ours if side == "fastpriv" else peer
    if tolerance is not None:
        np.testing.assert_allclose(call(), ours(), rtol=tolerance)
    benchmark.group = f"mixture integrals: {name}"
    benchmark(call)


@pytest.mark.parametrize("size", [200, 2000])
def test_kl_of_thousands_of_components(benchmark, size):
    rng = np.random.default_rng(size)
    p, q = (
        GaussianMixture(rng.dirichlet(np.ones(size)), rng.normal(0, 100, size), np.exp(rng.normal(0, 0.5, size)))
        for _ in range(2)
    )
    got = fastpriv.kl_divergence(p, q)
    assert got.width <= 1e-12 * got.value
    benchmark.group = f"mixture integrals: kl {size}+{size}"
    benchmark(lambda: fastpriv.kl_divergence(p, q).value)
