"""KL, JS, Renyi, entropy and mutual information of mixtures beside the NumPy trapezoid and scipy.integrate.quad."""

import numpy as np
import pytest
from comparison.divergences import binomial_sums, kl_integrand, log_density, renyi_by_dp_accounting, trapezoid_of_rows
from scipy.integrate import quad

import fastpriv
from fastpriv import GaussianMixture, Pmf

RNG = np.random.default_rng(1)


def random_mixture(size):
    return GaussianMixture(RNG.dirichlet(np.ones(size)), RNG.normal(0, 3, size), np.exp(RNG.normal(0, 0.7, size)))


P, Q = random_mixture(8), random_mixture(8)
NEAR = GaussianMixture(P.weights, P.means + 1e-6, P.sigmas)
PRIOR, SIGMA = Pmf(np.linspace(-1, 1, 21), RNG.dirichlet(np.ones(21))), 0.3


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
}
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


# stacks on bare arrays, certified, one thread

ROWS = 1000
RATES, NOISE_LEVELS = 10 ** RNG.uniform(-4, -1, ROWS), 10 ** RNG.uniform(-0.2, 1, ROWS)
SUBSAMPLED = (np.stack([1 - RATES, RATES], axis=1), np.array([0.0, 1.0]), np.stack([NOISE_LEVELS] * 2, axis=1))
UNSAMPLED = (np.ones(1), np.zeros(1), NOISE_LEVELS[:, None])
EIGHTS = [
    (RNG.dirichlet(np.ones(8), 20), RNG.normal(0, 3, (20, 8)), np.exp(RNG.normal(0, 0.7, (20, 8)))) for _ in "pq"
]
ORDER = 8


def quad_of_rows(p, q, half_width):
    laws = [[GaussianMixture(*row) for row in zip(*np.broadcast_arrays(*law), strict=True)] for law in (p, q)]
    ends = np.broadcast_to(half_width, len(p[0]))
    pairs = zip(*laws, ends, strict=True)
    return np.array([quad(kl_integrand(*pair), -end, end, limit=200)[0] for *pair, end in pairs])


STACKS = {
    "kl remove, 1000 subsampled": {
        "fastpriv": lambda: fastpriv.special.mixture_kl(*SUBSAMPLED, *UNSAMPLED)[0],
        "numpy trapezoid": lambda: trapezoid_of_rows(SUBSAMPLED, UNSAMPLED, 12 * NOISE_LEVELS + 1),
    },
    "kl add, 1000 subsampled": {
        "fastpriv": lambda: fastpriv.special.mixture_kl(*UNSAMPLED, *SUBSAMPLED)[0],
        "numpy trapezoid": lambda: trapezoid_of_rows(
            (np.ones((ROWS, 1)), np.zeros((ROWS, 1)), UNSAMPLED[2]), SUBSAMPLED, 12 * NOISE_LEVELS + 1),
    },
    "renyi of order 8, 1000 subsampled": {
        "fastpriv": lambda: fastpriv.special.mixture_renyi(*SUBSAMPLED, *UNSAMPLED, float(ORDER))[0],
        "numpy binomial sum": lambda: binomial_sums(RATES, NOISE_LEVELS, ORDER),
        "dp_accounting": lambda: renyi_by_dp_accounting(RATES, NOISE_LEVELS, ORDER),
    },
    "kl 8+8, 20": {
        "fastpriv": lambda: fastpriv.special.mixture_kl(*EIGHTS[0], *EIGHTS[1])[0],
        "numpy trapezoid": lambda: trapezoid_of_rows(*EIGHTS, 60.0),
        "scipy quad": lambda: quad_of_rows(*EIGHTS, 60.0),
    },
}


@pytest.mark.parametrize(("name", "side"), [(name, side) for name, sides in STACKS.items() for side in sides])
def test_stack(benchmark, name, side):
    if side == "dp_accounting":
        pytest.importorskip(side)
    call = STACKS[name][side]
    loose = {"numpy trapezoid": 0.2, "scipy quad": 1e-3}.get(side, 1e-6)  # the peers lose digits of small divergences
    np.testing.assert_allclose(call(), STACKS[name]["fastpriv"](), rtol=loose, atol=1e-7)
    benchmark.group = f"stacks of mixture integrals: {name}"
    benchmark(call)
