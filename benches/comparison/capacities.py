"""Capacities and quantities of channels beside Blahut-Arimoto, dit, cvxpy and lines of NumPy."""

from __future__ import annotations

import math
import time

import numpy as np
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, ive, rel_entr, xlog1py, xlogy
from scipy.stats import chi2, ncx2

from fastpriv import (
    Channel,
    GaussianMechanism,
    Pmf,
    RandomizedResponse,
    awgn_capacity,
    channel_capacity,
    notions,
    special,
)

from .tasks import Peer, Task

# capacities of written channels, and of the binary asymmetric one

GAP = 1e-9


def random_channels(n, m, many=1):
    return np.random.default_rng((n, m)).dirichlet(np.ones(m), (many, n))


def blahut_arimoto(channel, gap=GAP, seconds=20.0):
    """A matvec, the logarithms of the output law and a matvec an iteration; ends at a certified gap, or by time."""
    known = np.where(channel > 0, channel * np.log(np.where(channel > 0, channel, 1.0)), 0.0).sum(axis=1)
    p = np.full(len(channel), 1.0 / len(channel))
    end = time.process_time() + seconds
    while True:
        divergences = known - channel @ np.log(p @ channel)
        value, upper = p @ divergences, divergences.max()
        if upper - value <= gap or time.process_time() > end:
            return value, upper
        p = p * np.exp(divergences - upper)
        p /= p.sum()


def capacity_by_dit(channel):
    from dit.algorithms import channel_capacity as capacity

    return capacity(channel)[0] * np.log(2)


def capacity_by_cvxpy(channel):
    import cvxpy as cp

    p = cp.Variable(channel.shape[0], nonneg=True)
    known = np.where(channel > 0, channel * np.log(np.where(channel > 0, channel, 1.0)), 0.0).sum(axis=1)
    problem = cp.Problem(cp.Maximize(known @ p + cp.sum(cp.entr(channel.T @ p))), [cp.sum(p) == 1])
    return problem.solve()


def entropy(p):
    return -(xlogy(p, p) + xlog1py(1 - p, -p))


def bac_closed_form(a, b):
    """Equation (11) as a person types it: 0/0 near a + b = 1."""
    h, k, gap = entropy(a), entropy(b), 1 - a - b
    return np.logaddexp(-((1 - b) * h - a * k) / gap, -((1 - a) * k - b * h) / gap)


def bac_blahut_arimoto(a, b, steps=200):
    """The general algorithm, on all channels at once."""
    w = np.full_like(a, 0.5)
    for _ in range(steps):
        q = (1 - w) * a + w * (1 - b)
        d0 = xlogy(a, a / q) + xlogy(1 - a, (1 - a) / (1 - q))
        d1 = xlogy(1 - b, (1 - b) / q) + xlogy(b, b / (1 - q))
        w = 1 / (1 + (1 - w) / w * np.exp(d0 - d1))
    return (1 - w) * d0 + w * d1


# Gaussian noise under a peak-power constraint


def log_bessel(d, x):
    """log 0F1(; d/2; x^2/4), for dimensions whose Bessel function fits in doubles."""
    nu, safe = d / 2 - 1, np.maximum(x, 1e-6)
    return gammaln(d / 2) + np.log(ive(nu, safe)) + safe - nu * np.log(safe / 2)


def one_sphere_by_scipy(d, r):
    """R^2 - E log G(R rho) with rho^2 noncentral chi-squared."""
    middle = math.sqrt(r * r + d)

    def integrand(rho):
        return 2 * rho * ncx2.pdf(rho * rho, d, r * r) * log_bessel(d, r * rho)

    return r * r - quad(integrand, max(0.0, middle - 9), middle + 9, limit=200, epsrel=1e-10)[0]


def spheres_by_blahut_arimoto(d, amplitude, steps, spacing=0.25):
    """Lower and upper bound on a grid of radii."""
    rho = np.arange(0.025, math.sqrt(amplitude**2 + d) + 8, 0.05)
    r = np.linspace(0, amplitude, int(amplitude / spacing) + 1)
    log = log_bessel(d, r[:, None] * rho) - r[:, None] ** 2 / 2
    law = np.exp(log + (d - 1) * np.log(rho) - rho**2 / 2)
    law /= law.sum(1, keepdims=True)
    top = log.max(0)
    scaled, p = np.exp(log - top), np.full(len(r), 1 / len(r))
    for _ in range(steps):
        i = r**2 / 2 - law @ (np.log(p @ scaled) + top)
        p = p * np.exp(i - i.max())
        p /= p.sum()
    return p @ i, i.max()


# quantities of channels


def response_matrix(k, epsilon):
    """Randomised response written out."""
    matrix = np.full((k, k), 1.0)
    np.fill_diagonal(matrix, np.exp(epsilon))
    return matrix / matrix.sum(axis=1, keepdims=True)


def extremes_by_numpy(cells):
    """LDP and both sides of MBP under the uniform prior, from the matrix."""
    evidence = cells.mean(axis=0)
    with np.errstate(divide="ignore"):
        logs = np.log(cells)
    ratio = logs - np.log(evidence)
    return (logs.max(axis=0) - logs.min(axis=0)).max(), ratio.max(), -ratio.min()


def information_by_numpy(prior, channels):
    """Mutual information of a stack of channels under one prior."""
    joint = prior[:, None] * channels
    return xlogy(joint, channels / joint.sum(axis=-2, keepdims=True)).sum(axis=(-2, -1))


def lip_by_numpy(prior, cells, epsilon):
    """LIP curve of a channel, both directions."""
    evidence = prior @ cells
    return np.array([
        max(np.maximum(cells - np.exp(e) * evidence, 0).sum(axis=1).max() * np.exp(-e),
            np.maximum(evidence - np.exp(e) * cells, 0).sum(axis=1).max()) for e in epsilon
    ])


# conversions


def bernoulli_divergence(p, q):
    return rel_entr(p, q) + rel_entr(1 - p, 1 - q)


def bernoulli_edge(q, level, end):
    """p between q and end with d(p || q) = level, by bisection."""
    low, high = q, end
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if bernoulli_divergence(middle, q) < level else (low, middle)
    return low


def ldp_by_scipy(mu, epsilon):
    """Largest delta of the mechanisms with a capacity of at most mu."""
    found = minimize_scalar(
        lambda q: math.exp(epsilon) * bernoulli_edge(q, mu, 0.0) - bernoulli_edge(q, mu, 1.0),
        bounds=(-math.expm1(-mu), 0.5), method="bounded", options={"xatol": 1e-10},
    )
    return -found.fun


def pointwise_by_scipy(mu, epsilon):
    found = minimize_scalar(
        lambda q: math.exp(epsilon) * bernoulli_edge(q, mu, 0.0) - q, bounds=(-math.expm1(-mu), 1 - 1e-12),
        method="bounded", options={"xatol": 1e-10},
    )
    return -found.fun


# tasks


def _importing(package, call):
    def make():
        __import__(package)
        return call

    return make


def small_channels():
    stack = random_channels(3, 3, 1000)[:100]

    def by_line():
        return [blahut_arimoto(channel)[0] for channel in stack]

    return lambda: channel_capacity(stack).capacity, {
        "NumPy Blahut-Arimoto": Peer(lambda: by_line, 1e-8),
        "dit": Peer(_importing("dit", lambda: [capacity_by_dit(channel) for channel in stack]), 1e-4, slow=True),
        "cvxpy": Peer(_importing("cvxpy", lambda: [capacity_by_cvxpy(channel) for channel in stack]), 1e-5, slow=True),
    }


def one_channel():
    channel = random_channels(16, 16)[0]
    return lambda: channel_capacity(channel).capacity, {
        "NumPy Blahut-Arimoto": Peer(lambda: lambda: blahut_arimoto(channel)[0], 1e-8),
        "dit": Peer(_importing("dit", lambda: capacity_by_dit(channel)), 1e-5, slow=True),
        "cvxpy": Peer(_importing("cvxpy", lambda: capacity_by_cvxpy(channel)), 1e-5),
    }


def binary_channels():
    a, b = np.random.default_rng(2).random((2, 100_000))
    return lambda: special.bac_capacity(a, b), {
        "SciPy closed form": Peer(lambda: lambda: bac_closed_form(a, b), 1e-9),
        "NumPy Blahut-Arimoto": Peer(lambda: lambda: bac_blahut_arimoto(a, b), 1e-3),
    }


def one_sphere():
    d, r = 64, 8.0
    return lambda: awgn_capacity(d, r), {"SciPy quad": Peer(lambda: lambda: one_sphere_by_scipy(d, r), 1e-8)}


def several_spheres():
    d, amplitude = 8, 10.0
    return lambda: awgn_capacity(d, amplitude), {
        "NumPy Blahut-Arimoto": Peer(lambda: lambda: spheres_by_blahut_arimoto(d, amplitude, 2000)[0], 1e-2),
    }


_CELLS = (1000, 1000)


def extremes():
    matrix = response_matrix(_CELLS[0], 2.0)
    dense = Channel(matrix)

    def ours():
        result = dense.extreme_log_ratios()
        return [result.ldp_epsilon, result.xi_plus, result.xi_minus]

    return ours, {"NumPy": Peer(lambda: lambda: extremes_by_numpy(matrix), 1e-9)}


def structured():
    channel = RandomizedResponse(_CELLS[0], 2.0)

    def ours():
        result = channel.extreme_log_ratios()
        return [result.ldp_epsilon, result.xi_plus, result.xi_minus]

    return ours, {"NumPy": Peer(lambda: lambda: extremes_by_numpy(response_matrix(_CELLS[0], 2.0)), 1e-9)}


def lip_of_channel():
    prior, cells = np.random.default_rng(3).dirichlet(np.ones(200)), random_channels(200, 200)[0]
    grid = np.linspace(0, 5, 100)
    channel, weights = Channel(cells), Pmf(np.arange(200.0), prior)
    return lambda: notions.lip_delta(weights, channel, grid), {
        "NumPy": Peer(lambda: lambda: lip_by_numpy(prior, cells, grid), 1e-9),
    }


def information():
    stack, prior = random_channels(4, 4, 10_000), np.array([0.1, 0.2, 0.3, 0.4])
    return lambda: special.channel_mutual_information(prior, stack), {
        "SciPy xlogy": Peer(lambda: lambda: information_by_numpy(prior, stack), 1e-9),
    }


def accuracy():
    alpha = np.geomspace(0.1, 30.0, 1000)
    zero = np.zeros(10)
    return lambda: notions.pac_accuracy(GaussianMechanism(1.0), zero, zero, alpha), {
        "SciPy chi2": Peer(lambda: lambda: chi2.sf(alpha**2, 10), 1e-9),
    }


def conversions():
    pairs = [(mu, epsilon) for mu in np.linspace(0.04, 0.62, 8) for epsilon in np.linspace(0.1, 2, 8)]
    mu, epsilon = np.array(pairs).T
    return lambda: special.ci_lmip_ldp_delta(mu, epsilon), {
        "SciPy minimize_scalar": Peer(lambda: lambda: [ldp_by_scipy(*pair) for pair in pairs], 1e-6),
    }


TASKS = (
    Task("capacity, 100 channels 3 x 3", small_channels),
    Task("capacity, one channel 16 x 16", one_channel),
    # two binary entropies, a logarithm and an exponential a channel
    Task("capacity, 100,000 binary asymmetric channels", binary_channels, "exp", 6e5),
    Task("capacity of Gaussian noise, one sphere, 64 dimensions", one_sphere, cold=True),
    Task("capacity of Gaussian noise, several spheres, 8 dimensions", several_spheres, cold=True,
         truth=(9.876652309391196011, 1e-15)),
    Task("LDP and MBP, channel 1,000 x 1,000", extremes, "bytes", 8.0 * _CELLS[0] * _CELLS[1]),
    Task("LDP and MBP, randomised response of 1,000 values", structured),
    Task("LIP curve, channel 200 x 200, 100 epsilons", lip_of_channel),
    Task("mutual information, 10,000 channels 4 x 4", information, "exp", 16e4),
    Task("PAC accuracy, 10 dimensions, 1,000 distances", accuracy),
    Task("LDP curve from mutual information, 64 settings", conversions),
)
