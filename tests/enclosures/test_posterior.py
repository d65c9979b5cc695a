"""Posteriors enclose the truth in many digits, and are right to 1e-13, on few secrets and on many."""

import numpy as np
import pytest
from mpmath import mp, mpf

import fastpriv
from fastpriv.channels.vector_sources import BLOCK
from oracles import posteriors

NAMES = ("log_evidence", "entropy", "kl", "js", "abp", "max_log_ratio", "min_log_ratio", "xi", "vulnerability")
rng = np.random.default_rng(20)


def normalised(x):
    return x / np.sum(x)


CASES = {
    "one secret": ([-3.5], None),
    "two": ([-1.0, -2.0], [0.25, 0.75]),
    "ties": ([0.0, -1.0, 0.0, -np.inf], None),
    "all alike": ([-5.0] * 20, normalised(np.arange(1.0, 21.0))),
    "impossible ones": ([-np.inf, -1.0, -np.inf, 2.0], [0.1, 0.2, 0.3, 0.4]),
    "prior zeros": ([-1.0, 700.0, -2.0, -np.inf], [0.5, 0.0, 0.5, 0.0]),
    "only one possible": ([-np.inf, -1e6, -np.inf], [0.3, 0.3, 0.4]),
    "far apart": ([0.0, -300.0, -650.0, -720.0, -800.0], [0.2] * 5),
    "a tiny prior that wins": ([0.0, 720.0, 1.0], [0.5, 1e-308, 0.5]),
    "a subnormal prior": ([0.0, 1.0, 2.0, 740.0], [0.25, 0.25, 0.5, 5e-324]),
    "weak": (1e-9 * rng.standard_normal(30), None),
    "very weak, far off": (-40.0 + 1e-12 * rng.standard_normal(50), normalised(rng.random(50))),
    "around one half": (np.repeat([0.4999, 0.5001, -0.4999, -0.5001, 0.0], 4), None),
    "normal": (rng.standard_normal(60), normalised(rng.random(60))),
    "wide": (30 * rng.standard_normal(70), normalised(rng.random(70) ** 8)),
    "concentrated": (np.where(np.arange(60) == 47, 0.0, -45.0 - rng.random(60)), None),
    "large offset": (-1000.0 + 4 * rng.standard_normal(60), normalised(rng.random(60))),
    "tile and one": (np.repeat(rng.standard_normal(27), 19), None),
}


def check(found, truth, digits=True):
    with mp.workdps(400):
        for name in NAMES:
            e, true = getattr(found, name), truth[name]
            assert mpf(e.lower) <= true <= mpf(e.upper), (name, e, mp.nstr(true, 25))
            assert e.kind == "exact"
            if digits and not mp.isinf(true) and true:
                floor = 1.0 if name in ("log_evidence", "max_log_ratio", "min_log_ratio", "xi") else 0.0
                allowed = 1e-13 * max(abs(true), floor)
                assert abs(mpf(e.value) - true) <= allowed, (name, e, mp.nstr(true, 25))


@pytest.mark.few(11)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("form", ["prior", "log_prior", "float32"])
def test_truth_is_enclosed(name, form):
    likelihood, prior = CASES[name]
    likelihood = np.asarray(likelihood, dtype=float)
    if form == "log_prior":
        with np.errstate(divide="ignore"):
            prior = np.log(np.full(likelihood.size, 1.0 / likelihood.size) if prior is None else prior)
        found = fastpriv.posterior(likelihood, log_prior=prior)
    else:
        if form == "float32":
            likelihood = likelihood.astype(np.float32)
            prior = None if prior is None else np.asarray(prior, dtype=np.float32)
        found = fastpriv.posterior(likelihood, prior)
    truth = posteriors.posterior(likelihood, prior, log_prior=form == "log_prior")
    check(found, truth)
    with mp.workdps(400):
        after = found.probabilities()
        for got, true in zip(after, truth["posterior"], strict=True):
            assert abs(mpf(got) - true) <= max(1e-13 * true, mpf("1e-299")), (name, got, mp.nstr(true, 20))
        assert found.map_index == truth["map_index"]
        best = sorted(range(likelihood.size), key=lambda i: (-truth["posterior"][i], i))[:10]
        best = [i for i in best if truth["posterior"][i] > 0]
        got = [truth["posterior"][i] for i in found.top.indices]
        for a, b in zip(got, (truth["posterior"][i] for i in best), strict=True):
            assert abs(a - b) <= mpf("1e-12") * b
        np.testing.assert_allclose(found.top.probabilities, [float(t) for t in got], rtol=2e-13, atol=1e-299)


def test_plain_likelihoods():
    likelihood = np.array([0.0, 1e-300, 0.25, 0.5, 1.0, 3.0])
    prior = normalised(np.arange(1.0, 7.0))
    check(fastpriv.posterior(likelihood, prior, log=False), posteriors.posterior(likelihood, prior, logs=False))
    weak = 1.0 + 1e-9 * rng.standard_normal(50)
    check(fastpriv.posterior(weak, log=False), posteriors.posterior(weak, logs=False), digits=False)
    single = np.array([0.1, 0.7, 0.2], dtype=np.float32)
    check(fastpriv.posterior(single, log=False), posteriors.posterior(single, logs=False))


def test_a_gap_of_the_prior_enters_the_bounds():
    likelihood, prior = rng.standard_normal(50), normalised(rng.random(50)) * (1 + 4e-10)
    found = fastpriv.posterior(likelihood, prior)
    check(found, posteriors.posterior(likelihood, prior))
    for name in ("log_evidence", "max_log_ratio", "min_log_ratio", "xi"):
        assert getattr(found, name).width >= 4e-10, name
    for name in ("entropy", "vulnerability", "kl"):  # a slip of the whole prior leaves the posterior as it is
        assert getattr(found, name).width <= 1e-12, name
    assert found.js.width <= 1e-9 * found.js.value
    exact = fastpriv.posterior(likelihood, prior / (1 + 4e-10))
    assert exact.kl.width < 1e-12
    assert found.log_evidence.lower <= exact.log_evidence.value <= found.log_evidence.upper


def many(n):
    generator = np.random.default_rng(5)
    return generator.standard_normal(n) * 2 - 37.0, normalised(generator.exponential(size=n))


def in_long_doubles(likelihood, prior):
    wide = np.longdouble
    belief = np.full(likelihood.size, wide(1) / likelihood.size) if prior is None else prior.astype(wide)
    belief = belief / belief.sum()
    shifted = likelihood.astype(wide) - likelihood.max()
    joint = belief * np.exp(shifted)
    evidence = joint.sum()
    y, after = shifted - np.log(evidence), joint / evidence
    r = np.exp(y)
    js = np.sum(belief * (r * np.log(2 * r / (1 + r)) + np.log(2 / (1 + r)))) / 2
    return {
        "log_evidence": np.log(evidence) + likelihood.max(), "entropy": -np.sum(after * np.log(after)),
        "kl": np.sum(after * y), "js": js, "abp": np.sqrt(js), "max_log_ratio": y.max(), "min_log_ratio": y.min(),
        "xi": max(y.max(), -y.min()), "vulnerability": after.max(),
    }


@pytest.mark.few(1)
@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no extended precision here")
@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("single", [True, False])
def test_many_secrets(uniform, single):
    likelihood, prior = many(2 * BLOCK + 12345)
    if single:
        likelihood, prior = likelihood.astype(np.float32), prior.astype(np.float32)
    prior = None if uniform else prior
    found, truth = fastpriv.posterior(likelihood, prior, n_jobs=2), in_long_doubles(likelihood, prior)
    for name in NAMES:
        e, true = getattr(found, name), truth[name]
        assert abs(np.longdouble(e.value) - true) <= 1e-13 * max(abs(true), 1e-300), (name, e, true)
        assert e.lower <= true <= e.upper, (name, e, true)


def test_the_most_probable_secret():
    for likelihood, prior in CASES.values():
        likelihood = np.asarray(likelihood, dtype=float)
        with np.errstate(divide="ignore"):
            weights = likelihood if prior is None else likelihood + np.log(prior)
        found = weights[fastpriv.posterior(likelihood, prior).map_index]
        assert abs(found - weights.max()) <= 1e-14 * np.abs(likelihood[np.isfinite(likelihood)]).max()
    likelihood, prior = many(3 * BLOCK + 5)
    assert fastpriv.posterior(likelihood, n_jobs=2).map_index == np.argmax(likelihood)
    assert fastpriv.posterior(likelihood, prior).map_index == np.argmax(np.log(prior) + likelihood)
    twice = fastpriv.posterior(iter([likelihood, likelihood + 1.0]))
    assert twice.map_index == likelihood.size + np.argmax(likelihood)


@pytest.mark.few(5)
@pytest.mark.parametrize("exponent", [-40, -24, -22, -20, -17])
@pytest.mark.parametrize("falling", [False, True])
def test_rising_likelihoods_enclose_the_truth(exponent, falling):
    """Each tile has a largest likelihood of its own; with l = j h the sums are geometric series."""
    count = 16 * BLOCK + 77
    j = np.arange(count)
    likelihood = (j[::-1] if falling else j) * 2.0**exponent
    found = fastpriv.posterior(likelihood)
    with mp.workdps(60):
        h, x = mpf(2) ** exponent, mp.exp(-(mpf(2) ** exponent))
        total = (1 - x**count) / (1 - x)  # over e^((count - 1) h)
        mean = h * x * (1 - count * x ** (count - 1) + (count - 1) * x**count) / ((1 - x) ** 2 * total)
        log_ratio = mp.log(count) - mp.log(total)
        truth = {
            "log_evidence": (count - 1) * h - log_ratio, "entropy": mp.log(total) + mean, "vulnerability": 1 / total,
            "kl": mp.log(count) - mp.log(total) - mean, "max_log_ratio": log_ratio,
            "min_log_ratio": log_ratio - (count - 1) * h,
        }
        for name, true in truth.items():
            estimate = getattr(found, name)
            assert mpf(estimate.lower) <= true <= mpf(estimate.upper), (name, estimate, mp.nstr(true, 25))
            assert abs(mpf(estimate.value) - true) <= 3e-15 * max(abs(true), 1.0), (name, estimate, mp.nstr(true, 25))
