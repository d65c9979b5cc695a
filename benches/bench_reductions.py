"""Recognising mixtures that are one-dimensional in disguise: what the look costs, and what it saves."""

import numpy as np
import pytest

from fastpriv import GaussianMixture
from fastpriv.divergences.reductions import factored_quantities

RNG = np.random.default_rng(1)
SIZES = [(8, 16), (1024, 16), (10_000, 1000)]
W, V, X = [0.25, 0.5, 0.25], [0.125, 0.375, 0.5], np.array([-2.0, 0.0, 3.0])


def general(size, d, form):
    means, weights = RNG.normal(size=(size, d)), np.full(size, 1 / size)
    kwargs = {"sigmas": 1.0} if form == "isotropic" else {"sigmas": RNG.uniform(1, 2, (size, d))}
    return GaussianMixture(weights, means, **kwargs), GaussianMixture(weights, means + RNG.normal(size=d), **kwargs)


def on_a_line(d):
    step = RNG.normal(size=d)
    step /= np.linalg.norm(step)
    return tuple(GaussianMixture(w, X[:, None] * step + 1.0, 1.0) for w in (W, V))


def sampled_kl(p, q, samples, seed=1):
    x = p.sample(samples, rng=seed)
    return float(np.mean(p.log_density(x) - q.log_density(x)))


@pytest.mark.parametrize("form", ["isotropic", "diagonal"])
@pytest.mark.parametrize(("size", "d"), SIZES)
def test_look_at_a_general_pair(benchmark, size, d, form):
    benchmark.group = f"look at {size} components in {d} dimensions"
    p, q = general(size, d, form)
    assert factored_quantities.renyi_divergence(p, q, 1.0) is None
    benchmark(factored_quantities.renyi_divergence, p, q, 1.0)


@pytest.mark.parametrize("way", ["reduced", "numpy, 10,000 samples"])
def test_kl_of_collinear_means(benchmark, way):
    benchmark.group = "KL of two collinear mixtures, d = 16"
    p, q = on_a_line(16)
    truth = factored_quantities.renyi_divergence(p, q, 1.0)
    assert truth.width < 1e-12
    assert abs(sampled_kl(p, q, 10_000) - truth.value) < 0.1
    if way == "reduced":
        benchmark(factored_quantities.renyi_divergence, p, q, 1.0)
    else:
        benchmark(sampled_kl, p, q, 10_000)
