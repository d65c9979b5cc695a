"""Posteriors, memberships, sweeps and special functions beside NumPy, numba, torch, jax, joblib and SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.special

import fastpriv
from fastpriv import GaussianMechanism, posterior, special
from fastpriv.mechanisms import BatchGradient
from fastpriv.studies.membership import (
    BernoulliMembership,
    FrequencyRelease,
    GaussianNoise,
    LaplaceNoise,
    LInfinityNoise,
    Panel,
    membership_posterior,
)

from .accounting import ndtr_difference
from .tasks import Peer, Task

# evidence, entropy, Jensen-Shannon divergence and the largest log ratio of one posterior


def likelihoods(n):
    generator = np.random.default_rng(1)
    likelihood, prior = np.empty(n), np.empty(n)
    for i in range(0, n, 2**20):
        part = slice(i, min(i + 2**20, n))
        generator.standard_normal(out=likelihood[part])
        generator.random(out=prior[part])
    prior /= prior.sum()
    return likelihood, prior


def by_numpy(likelihood, prior):
    joint = np.log(prior) + likelihood
    top = joint.max()
    evidence = top + np.log(np.exp(joint - top).sum())
    log_ratio = likelihood - evidence
    after = prior * np.exp(log_ratio)
    middle = 0.5 * (prior + after)
    js = 0.5 * (prior * np.log(prior / middle) + after * np.log(after / middle)).sum()
    return evidence, -(after * np.log(after)).sum(), js, log_ratio.max()


def torch_posterior():
    import torch

    def call(likelihood, prior):
        likelihood, prior = torch.from_numpy(likelihood), torch.from_numpy(prior)
        evidence = torch.logsumexp(torch.log(prior) + likelihood, 0)
        log_ratio = likelihood - evidence
        after = prior * torch.exp(log_ratio)
        middle = 0.5 * (prior + after)
        js = 0.5 * (prior * torch.log(prior / middle) + after * torch.log(after / middle)).sum()
        return tuple(float(x) for x in (evidence, -(after * torch.log(after)).sum(), js, log_ratio.max()))

    return call


def jax_posterior():
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    @jax.jit
    def compiled(likelihood, prior):
        evidence = jax.scipy.special.logsumexp(jnp.log(prior) + likelihood)
        log_ratio = likelihood - evidence
        after = prior * jnp.exp(log_ratio)
        middle = 0.5 * (prior + after)
        js = 0.5 * (prior * jnp.log(prior / middle) + after * jnp.log(after / middle)).sum()
        return evidence, -(after * jnp.log(after)).sum(), js, log_ratio.max()

    return lambda likelihood, prior: tuple(float(x) for x in compiled(likelihood, prior))


def numba_posterior():
    import numba

    @numba.njit(nogil=True)
    def call(likelihood, prior):
        top = -np.inf
        for i in range(likelihood.size):
            top = max(top, np.log(prior[i]) + likelihood[i])
        total = 0.0
        for i in range(likelihood.size):
            total += np.exp(np.log(prior[i]) + likelihood[i] - top)
        evidence, entropy, js, most = top + np.log(total), 0.0, 0.0, -np.inf
        for i in range(likelihood.size):
            log_ratio = likelihood[i] - evidence
            after = prior[i] * np.exp(log_ratio)
            middle = 0.5 * (prior[i] + after)
            entropy -= after * np.log(after)
            js += 0.5 * (prior[i] * np.log(prior[i] / middle) + after * np.log(after / middle))
            most = max(most, log_ratio)
        return evidence, entropy, js, most

    return call


# subsets of three


def subset_likelihood(records, sigma=0.3):
    """Which three of the records were in the batch of a noisy gradient of softmax regression?"""
    rng = np.random.default_rng(0)
    pixels, labels = rng.integers(0, 17, (records, 64)) / 16.0, rng.integers(0, 10, records)
    weights = 0.1 * np.random.default_rng(0).normal(size=(10, 65))
    mechanism = BatchGradient.softmax_regression(pixels, labels, weights, size=3, sigma=sigma)
    return mechanism.column(mechanism.sample([7, 100, records - 30], rng=1))


def subsets_by_numpy(likelihood):
    """Entropy, JS, and extremes, all logarithms at once."""
    linear, pairwise, n = likelihood.linear, likelihood.pairwise, likelihood.linear.size
    places = np.array(list(itertools.combinations(range(n), 2)))
    logs = []
    for i in range(n - 2):
        j, k = places[places[:, 0] > i].T
        logs.append(linear[i] + linear[j] + linear[k] + pairwise[i, j] + pairwise[i, k] + pairwise[j, k])
    logs = np.concatenate(logs)
    top = logs.max()
    law = np.exp(logs - top)
    total = law.sum()
    law /= total
    y = logs - (top + np.log(total / logs.size))
    entropy = -np.sum(law * (y - np.log(logs.size)))
    middle = 0.5 * (law + 1 / logs.size)
    js = 0.5 * (np.sum(law * (np.log(law, where=law > 0, out=np.zeros_like(law)) - np.log(middle)))
                - np.mean(np.log(middle) + np.log(logs.size)))
    return entropy, js, y.max(), y.min()


def numba_subsets():
    import numba

    @numba.njit
    def passes(linear, pairwise):
        n = linear.size
        top = -np.inf
        for i in range(n - 2):
            for j in range(i + 1, n - 1):
                base = linear[i] + linear[j] + pairwise[i, j]
                for k in range(j + 1, n):
                    top = max(top, base + linear[k] + pairwise[i, k] + pairwise[j, k])
        total = moment = 0.0
        count = 0
        for i in range(n - 2):
            for j in range(i + 1, n - 1):
                base = linear[i] + linear[j] + pairwise[i, j]
                for k in range(j + 1, n):
                    d = base + linear[k] + pairwise[i, k] + pairwise[j, k] - top
                    e = np.exp(d)
                    total += e
                    moment += e * d
                    count += 1
        shift = np.log(total) - np.log(count)
        js, inclusion = 0.0, np.zeros(n)
        for i in range(n - 2):
            for j in range(i + 1, n - 1):
                base = linear[i] + linear[j] + pairwise[i, j]
                for k in range(j + 1, n):
                    r = np.exp(base + linear[k] + pairwise[i, k] + pairwise[j, k] - top - shift)
                    js += (r * np.log(2 * r / (1 + r)) if r > 0 else 0.0) + np.log(2 / (1 + r))
                    inclusion[i] += r
                    inclusion[j] += r
                    inclusion[k] += r
        return np.log(total) - moment / total, js / (2 * count), inclusion / count

    return passes


# memberships

NOISES = {"gaussian": GaussianNoise(0.3), "laplace": LaplaceNoise(0.3), "linfinity": LInfinityNoise(0.01)}


def membership_model(people, kind, attributes=64):
    rng = np.random.default_rng(people)
    panel = Panel(rng.random((people, attributes)) < rng.beta(1, 2, attributes))
    model = FrequencyRelease(panel, BernoulliMembership(0.5), NOISES[kind])
    return model, model.simulate(1, rng=1).released[0]


def membership_by_numpy(model, released, kind):
    """Probabilities as one would write them, 2^16 memberships at a time."""
    people = model.n_people
    d = model.panel.to_array().astype(float)
    logs, total, mass = [], 0.0, np.zeros(people)
    for start in range(0, 2**people, 2**16):
        b = ((np.arange(start, min(start + 2**16, 2**people))[:, None] >> np.arange(people)) & 1).astype(float)
        n = np.maximum(b.sum(axis=1, keepdims=True), 1)
        apart = released - b @ d / n
        if kind == "gaussian":
            logs = -np.sum(apart**2, axis=1) / (2 * model.noise.sigma**2)
        elif kind == "laplace":
            logs = -np.sum(np.abs(apart), axis=1) / model.noise.scale
        else:
            logs = -np.max(np.abs(apart), axis=1) / model.noise.scale
        weights = np.exp(logs + 60)
        weights[0] = 0.0 if start == 0 else weights[0]
        total += weights.sum()
        mass += weights @ b
    return mass / total


# tasks

_SECRETS = 2_000_000


def one_posterior():
    inputs = likelihoods(_SECRETS)
    makers = {"NumPy": lambda: by_numpy, "numba": numba_posterior, "torch": torch_posterior, "jax": jax_posterior}

    def peer(make):
        call = make()
        call(*likelihoods(1000))
        return lambda: call(*inputs)

    def ours():
        p = posterior(*inputs, n_jobs=1)
        return [p.log_evidence, p.entropy, p.js, p.max_log_ratio]

    return ours, {
        name: Peer(lambda make=make: peer(make), 1e-9) for name, make in makers.items()
    }


def subsets():
    likelihood = subset_likelihood(200)

    def ours():
        found = posterior(likelihood, n_jobs=1)
        return [found.entropy, found.js]

    def with_numba():
        passes = numba_subsets()
        passes(likelihood.linear[:5], likelihood.pairwise[:5, :5])
        return lambda: passes(likelihood.linear, likelihood.pairwise)[:2]

    return ours, {"numba": Peer(with_numba, 1e-9),
                  "NumPy": Peer(lambda: lambda: subsets_by_numpy(likelihood)[:2], 1e-9)}


_PEOPLE = 16


def members():
    model, released = membership_model(_PEOPLE, "gaussian")
    return lambda: membership_posterior(model, released).probabilities, {
        "NumPy": Peer(lambda: lambda: membership_by_numpy(model, released, "gaussian"), 1e-9),
    }


def sweep():
    sigma, epsilon = np.geomspace(0.5, 5.0, 100), np.linspace(0.0, 5.0, 100)
    cells = list(itertools.product(sigma.tolist(), epsilon.tolist()))

    def with_joblib():
        from joblib import Parallel, delayed

        line = delayed(lambda s, e: float(ndtr_difference(0.5 / s, e)))
        return lambda: Parallel(n_jobs=2, prefer="threads")(line(*cell) for cell in cells)

    def loop():
        return [GaussianMechanism(s, 1.0).delta(e).value for s, e in cells]

    def ours():
        table = fastpriv.sweep("gaussian_delta", grid={"sigma": sigma, "sensitivity": 1.0, "epsilon": epsilon})
        return tuple(np.asarray(table[name], float) for name in ("value", "lower", "upper"))

    return ours, {"joblib, a line of SciPy": Peer(with_joblib, 1e-9), "a loop over fastpriv's cells": Peer(
        lambda: loop, 1e-12)}


_POINTS = 100_000


def special_function(name, low, high, line):
    def make():
        x = np.random.default_rng(0).uniform(low, high, _POINTS)
        function = getattr(special, name)
        return lambda: function(x), {"NumPy or SciPy": Peer(lambda: lambda: line(x), 1e-12)}

    return make


def log1mexp_by_numpy(x):
    return np.where(x > -np.log(2), np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def mills_ratio_by_scipy(x):
    return np.sqrt(np.pi / 2) * scipy.special.erfcx(x / np.sqrt(2))


TASKS = (
    # at least three exponentials or logarithms of a secret: prior, likelihood ratio, Jensen-Shannon
    Task("posterior over 2,000,000 secrets", one_posterior, "exp", 3.0 * _SECRETS),
    Task("posterior over 1,313,400 subsets", subsets, "exp", 3 * 1_313_400),
    Task("membership of 16 people, 64 attributes", members, "exp", 2.0**_PEOPLE),
    Task("sweep of 10,000 cells", sweep),
    Task("exp, 100,000 points", special_function("exp", -5, 5, np.exp), "exp", _POINTS),
    Task("ndtr, 100,000 points", special_function("ndtr", -5, 5, scipy.special.ndtr), "exp", _POINTS),
    Task("log_ndtr, 100,000 points", special_function("log_ndtr", -5, 5, scipy.special.log_ndtr), "exp", _POINTS),
    Task("log1mexp, 100,000 points", special_function("log1mexp", -20, -1e-3, log1mexp_by_numpy), "exp", _POINTS),
    Task("Mills ratio, 100,000 points", special_function("mills_ratio", -5, 5, mills_ratio_by_scipy), "exp", _POINTS),
)
