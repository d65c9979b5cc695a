"""Log densities of a mixture over many samples beside the NumPy line, scipy.stats, and the machine's own limit."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from fastpriv import GaussianMixture
from fastpriv.distributions.packed import log_density, log_density_information, pack
from fastpriv.kernels import _sample_terms

RNG = np.random.default_rng(1)
SIZES = ((8, 1), (8, 16), (64, 16), (1024, 16), (100, 1000))
FULL_SIZES = ((8, 16), (64, 16), (8, 100))


def law(form, k, d):
    weights, means = RNG.dirichlet(np.ones(k)), RNG.normal(0, 2, (k, d))
    if form == "full":
        turns = np.linalg.qr(RNG.normal(size=(k, d, d)))[0]
        spectrum = np.geomspace(0.5, 2, d)
        return GaussianMixture(weights, means, covariances=np.einsum("kij,j,klj->kil", turns, spectrum, turns))
    return GaussianMixture(weights, means, RNG.uniform(0.5, 2, k if form == "isotropic" else (k, d)))


def samples(k, d):
    return RNG.normal(0, 2, (d, max(64, 2**16 // d // 8 * 8)))


def numpy_line(mixture, x):
    """Squares expanded, so that the work is three matrix products (diagonal or isotropic); by einsum for full."""
    if mixture.form == "full":
        z = np.einsum("kij,kjn->kin", np.linalg.inv(mixture.factors), x - mixture.means[:, :, None])
        squares, volume = (z * z).sum(axis=1), np.log(np.diagonal(mixture.factors, axis1=1, axis2=2)).sum(axis=1)
    else:
        means = mixture.means.reshape(len(mixture), -1)
        r = 1 / np.broadcast_to(mixture.sigmas.reshape(len(mixture), -1), means.shape)
        r2 = r * r
        squares = r2 @ (x * x) - 2 * (means * r2) @ x + (means * means * r2).sum(axis=1)[:, None]
        volume = -np.log(r).sum(axis=1)
    constants = np.log(mixture.weights) - volume - len(x) / 2 * np.log(2 * np.pi)
    return logsumexp(constants[:, None] - squares / 2, axis=0)


def scipy_stats(mixture, x):
    means = mixture.means.reshape(len(mixture), -1)
    found = []
    for c, weight in enumerate(mixture.weights):
        full = mixture.form == "full"
        cov = mixture.covariances[c] if full else np.broadcast_to(mixture.sigmas[c] ** 2, means[c].shape)
        found.append(np.log(weight) + multivariate_normal.logpdf(x.T, means[c], cov))
    return logsumexp(found, axis=0)


CASES = [(form, k, d) for form in ("isotropic", "diagonal") for k, d in SIZES] + [("full", k, d) for k, d in FULL_SIZES]


@pytest.mark.parametrize("side", ["fastpriv", "numpy", "scipy"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_log_density(benchmark, case, side):
    form, k, d = case
    mixture, x = law(*case), samples(k, d)
    packed = pack(mixture)
    calls = {
        "fastpriv": lambda: log_density(packed, x), "numpy": lambda: numpy_line(mixture, x),
        "scipy": lambda: scipy_stats(mixture, x),
    }
    if side == "scipy" and k * d > 1024:
        pytest.skip("minutes")
    np.testing.assert_allclose(calls[side]()[:200], log_density(packed, np.ascontiguousarray(x[:, :200])), rtol=1e-9)
    benchmark.group = f"log density, {form}, k = {k}, d = {d}"
    benchmark(calls[side])
    work = x.shape[1] * k * (d * (d + 1) / 2 if form == "full" else d)
    if benchmark.stats:  # None with --benchmark-disable
        benchmark.extra_info["ns per sample x component x dimension"] = benchmark.stats["min"] / work * 1e9


@pytest.mark.parametrize("side", ["fastpriv", "numpy"])
def test_information(benchmark, side):
    mixture, x = law("diagonal", 64, 16), samples(64, 16)
    packed = pack(mixture)

    def numpy_information():
        z = (x[None] - mixture.means[:, :, None]) / mixture.sigmas[:, :, None]
        terms = packed.constants[:, None] - (z * z).sum(axis=1) / 2
        post = np.exp(terms - logsumexp(terms, axis=0))
        logs = np.log(np.where(post > 0, post, 1)) - packed.log_weights[:, None]
        return (post * logs).sum(axis=0)

    call = numpy_information if side == "numpy" else lambda: log_density_information(packed, x)[1]
    np.testing.assert_allclose(call(), numpy_information(), atol=1e-10)
    benchmark.group = "information of the component, diagonal, k = 64, d = 16"
    benchmark(call)


@pytest.mark.parametrize("side", ["fastpriv", "numpy"])
@pytest.mark.parametrize("many", [1, 100])
def test_hockey_sticks(benchmark, many, side):
    lp = RNG.normal(-20, 2, 8192)
    lq, epsilons, sums = lp - RNG.normal(0, 1, 8192), np.linspace(0, 4, many), np.empty(many)

    def ours():
        _sample_terms.term_sums("hockey_stick_forward", lp, lq, None, epsilons, sums)
        return sums

    def line():
        return np.maximum(0, -np.expm1(epsilons[:, None] - (lp - lq))).sum(axis=1)

    call = ours if side == "fastpriv" else line
    np.testing.assert_allclose(call(), line(), rtol=1e-12)
    benchmark.group = f"hockey-stick terms, {many} eps"
    benchmark(call)
