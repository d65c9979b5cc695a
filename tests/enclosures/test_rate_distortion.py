"""Bounds of ``capacity.rate_distortion`` contain closed forms and the bracket of an independent solver."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from fastpriv import capacity
from fastpriv.base.errors import DomainError, NotConvergedError, ShapeError

mp = mpmath.MPContext()
mp.dps = 40


def _entropy(p):
    return -sum((x * mp.log(x) for x in p if x > 0), mp.mpf(0))


def _hamming(n):
    return 1.0 - np.eye(n)


def _bracket(theta, d, s, steps):
    """F(s) from below and above by Blahut and Arimoto's iteration in 40 digits."""
    n, m = len(d), len(d[0])
    kernel = [[mp.exp(-mp.mpf(s) * mp.mpf(float(x))) if np.isfinite(x) else mp.mpf(0) for x in row] for row in d]
    q = [mp.mpf(1) / m] * m
    for _ in range(steps):
        z = [mp.fdot(row, q) for row in kernel]
        c = [mp.fsum(mp.mpf(float(theta[b])) * kernel[b][r] / z[b] for b in range(n)) for r in range(m)]
        q = [x * y for x, y in zip(q, c, strict=True)]
        total = mp.fsum(q)
        q = [x / total for x in q]
    z = [mp.fdot(row, q) for row in kernel]
    c = [mp.fsum(mp.mpf(float(theta[b])) * kernel[b][r] / z[b] for b in range(n)) for r in range(m)]
    upper = -mp.fsum(mp.mpf(float(theta[b])) * mp.log(z[b]) for b in range(n))
    return upper - mp.log(max(c)), upper


@pytest.mark.parametrize("p", [0.5, 0.25, 1e-3, 1e-9])
@pytest.mark.parametrize("share", [1e-12, 1e-6, 0.1, 0.5, 0.9, 0.999999])
def test_binary_source_with_hamming_distortion(p, share):
    """R(D) = h(p) - h(D) for D < p (Cover and Thomas 2006, theorem 10.3.1)."""
    level = share * p
    point = capacity.rate_distortion([1 - p, p], _hamming(2), level=level)
    p_, d_ = mp.mpf(p), mp.mpf(point.distortion.value)
    truth = _entropy([p_, 1 - p_]) - _entropy([d_, 1 - d_])
    slack = mp.mpf(point.distortion.width) * mp.log((1 - d_) / d_)
    assert point.rate.lower - slack <= truth <= point.rate.upper + slack
    assert point.rate.width <= 1e-9 + 1e-12
    assert point.distortion.upper <= level * (1 + 1e-12) + 1e-18


@pytest.mark.parametrize("n", [2, 3, 10, 50])
@pytest.mark.parametrize("share", [1e-6, 0.3, 0.9])
def test_uniform_source_with_hamming_distortion(n, share):
    """R(D) = log n - h(D) - D log(n - 1) for D < 1 - 1/n."""
    level = share * (1 - 1 / n)
    point = capacity.rate_distortion(np.full(n, 1 / n), _hamming(n), level=level)
    d = mp.mpf(point.distortion.value)
    truth = mp.log(n) - _entropy([d, 1 - d]) - d * mp.log(n - 1)
    assert point.rate.lower - 1e-12 <= truth <= point.rate.upper + 1e-12
    assert point.rate.width <= 1e-9 + 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_random_sources_meet_an_independent_solver(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    theta = rng.integers(1, 64, n) / 64.0
    theta = np.append(theta[:-1] / 64.0, 1.0 - (theta[:-1] / 64.0).sum())
    d = np.round(rng.random((n, m)) * 64) / 64
    if seed % 3 == 0 and m > 1:
        d[0, 0] = np.inf
    s = float(10.0 ** rng.uniform(-2, 3))
    lower, upper = _bracket(theta, d, s, 400)
    point = capacity.rate_distortion(theta, d, slope=s)
    assert point.lagrangian.lower <= upper
    assert lower <= point.lagrangian.upper
    assert point.lagrangian.width <= 1e-9 + 1e-12
    rate = point.lagrangian.lower - s * point.distortion.upper
    assert rate - 1e-12 <= point.rate.upper


def test_the_channel_has_the_rate_and_the_distortion():
    rng = np.random.default_rng(5)
    theta, d = rng.dirichlet(np.ones(20)), rng.random((20, 30))
    point = capacity.rate_distortion(theta, d, level=0.1)
    cells = point.channel.matrix()
    output = theta @ cells
    information = float(np.sum(theta[:, None] * cells * np.log(np.where(cells > 0, cells / output, 1.0))))
    assert abs(information - point.rate.value) <= 2e-9
    assert abs(float(theta @ (cells * d[:, point.reproductions]).sum(axis=1)) - 0.1) <= 1e-12


def test_degenerate_sources():
    alone = capacity.rate_distortion([1.0], [[0.5]], slope=3.0)
    assert alone.rate.upper <= 1e-12
    assert alone.distortion.value == 0.5
    unused = capacity.rate_distortion([0.5, 0.5, 0.0], [[0.0, np.inf], [0.0, np.inf], [np.inf, 0.0]], slope=2.0)
    assert unused.rate.upper <= 1e-12
    assert capacity.rate_distortion([0.5, 0.5], _hamming(2), slope=0.0).rate.upper <= 1e-12
    steep = capacity.rate_distortion([0.5, 0.5], _hamming(2), slope=1e6)
    assert abs(steep.rate.value - np.log(2)) <= 1e-9
    forbidden = capacity.rate_distortion([0.5, 0.5], [[0.0, np.inf], [np.inf, 0.0]], level=1.0)
    assert abs(forbidden.rate.value - np.log(2)) <= 1e-9


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        ({"slope": None}, DomainError, "slope must be given if level is not"),
        ({"slope": 1.0, "level": 1.0}, DomainError, "slope must be given if level is not"),
        ({"slope": -1.0}, DomainError, "slope must be a finite number"),
        ({"slope": np.inf}, DomainError, "slope must be a finite number"),
        ({"level": 0.01}, DomainError, "level must be at least the least possible distortion, 0.05"),
        ({"slope": 1.0, "distortion": [[-1.0, 0.0], [0.0, 1.0]]}, DomainError, "distortion must be numbers"),
        ({"slope": 1.0, "distortion": [[np.inf, np.inf], [0.0, 1.0]]}, DomainError, "finite for one reproduction"),
        ({"slope": 1.0, "distortion": [[1.0, 2.0]]}, ShapeError, "one row for each of the 2 symbols"),
        ({"slope": 1.0, "source": [0.5, 0.6]}, DomainError, "source must sum to 1"),
        ({"slope": 1.0, "atol": 0.0}, DomainError, "atol must be a positive number"),
    ],
)
def test_bad_input(call, kind, text):
    arguments = {"source": [0.5, 0.5], "distortion": [[0.1, 1.0], [1.0, 0.0]]} | call
    with pytest.raises(kind, match=text):
        capacity.rate_distortion(arguments.pop("source"), arguments.pop("distortion"), **arguments)


def test_bounds_that_do_not_meet_are_given_with_the_error(monkeypatch):
    rng = np.random.default_rng(1)
    monkeypatch.setattr("fastpriv.capacity.finite_sources._MAX_STEPS", 1)
    with pytest.raises(NotConvergedError, match="lagrangian must have bounds within 1e-12") as caught:
        capacity.rate_distortion(rng.dirichlet(np.ones(30)), rng.random((30, 40)), slope=20.0, atol=1e-12)
    monkeypatch.undo()
    truth = capacity.rate_distortion(rng.dirichlet(np.ones(30)), rng.random((30, 40)), slope=20.0, atol=1e-12)
    assert truth.lagrangian.width < 1e-11 < caught.value.best.lagrangian.width


def test_symbols_of_tiny_probability():
    p = 1e-20
    for d in (_hamming(2), [[0.0, np.inf], [np.inf, 0.0]]):
        point = capacity.rate_distortion([1 - p, p], d, slope=500.0)
        assert point.lagrangian.lower <= 1e-9
        assert point.lagrangian.upper >= _entropy([mp.mpf(1) - mp.mpf(p), mp.mpf(p)]) * (1 - 1e-6)


def test_a_coarse_tolerance_leaves_true_bounds():
    """Lower and upper bound of the Lagrangian lie far apart here, and the rate needs each at its own end."""
    p = 0.14174344429087313
    for atol in (0.4, 0.01):
        point = capacity.rate_distortion([1 - p, p], _hamming(2), slope=3.267749102448302, atol=atol)
        d = mp.mpf(point.distortion.value)
        truth = _entropy([1 - mp.mpf(p), mp.mpf(p)]) - _entropy([d, 1 - d])
        assert point.rate.lower <= truth <= point.rate.upper
