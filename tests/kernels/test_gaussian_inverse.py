"""epsilon for a target delta, and the noise for a target, are on the safe side and close: proved by ball arithmetic."""

import math

import numpy as np
import pytest
from flint import arb, ctx

from fastpriv import special
from oracles import gaussian_mechanism as oracle
from sizes import few_or_all

NEAR = 1e-13  # relative, in epsilon or sigma
PERTURBED = 8e-14  # relative, in delta, or in 1 - delta above 1/2
LOGS = (8e-14, 5e-15)  # the same for log_delta: absolute, and relative to |log_delta|


def targets(rng, n):
    parts = [
        10 ** rng.uniform(-12, -0.01, n // 4), 10 ** rng.uniform(-300, 0, n // 4),
        1 - 10 ** rng.uniform(-15.9, -0.3, n // 4), 10 ** rng.uniform(-323, -290, n - 3 * (n // 4)),
    ]
    return rng.permutation(np.concatenate(parts))


def cases(name, n):
    rng = np.random.default_rng(7)
    delta = targets(rng, n)
    if name == "practice":
        return 10 ** rng.uniform(-2, 2, n), delta
    if name == "everywhere":
        return 10 ** rng.uniform(-300, 149, n), delta
    if name == "half":
        return 10 ** rng.uniform(-0.5, 100, n), 0.5 + rng.integers(-3, 4, n) * 2.0**-53
    return np.clip(delta, 1e-300, 1) * 10 ** rng.uniform(0.1, 6, n), delta  # delta(0) of the order of the target


@pytest.mark.few(3)
@few_or_all("count", 400, 4000)
@pytest.mark.parametrize("name", ["practice", "everywhere", "half", "small r"])
def test_epsilon_is_safe_and_close(name, count):
    r, delta = cases(name, count)
    above, below = special.gaussian_epsilon(r, delta), special.gaussian_epsilon_below(r, delta)
    assert (above >= below).all()
    assert np.isfinite(above).all()
    worst = (0.0, "")
    for i in range(r.size):
        row = f"r={float(r[i])!r} delta={float(delta[i])!r} got={float(above[i])!r} below={float(below[i])!r}"
        parameter, target = float(r[i]), float(delta[i])
        assert true_delta(parameter, above[i]) <= arb(target), f"unsafe: {row}"
        if below[i] > 0:
            assert true_delta(parameter, below[i]) >= arb(target), f"not below: {row}"
        if above[i] > 0:
            worst = max(worst, (needed(true_delta(parameter, above[i] * (1 - NEAR)), target), row))
    print(name, worst)
    assert worst[0] <= PERTURBED, worst


def true_delta(r, epsilon):
    ball = oracle.log_delta(r, float(epsilon))
    ctx.prec = 300
    return ball.exp()


def needed(reached, target):
    """The relative change of the target that would make a lower epsilon right: 0 when none is."""
    gap = arb(target) - reached
    return max(0.0, float((gap / (reached if target <= 0.5 else 1 - arb(target))).mid()))


@few_or_all("n", 800, 4000)
def test_epsilon_from_log_delta_is_safe_and_close(n):
    rng = np.random.default_rng(8)
    r = 10 ** rng.uniform(-100, 30, n)
    near = special.gaussian_log_delta(r, 0.0) * (1 + 10 ** rng.uniform(-14, 0, n))  # close to the curve's own start
    log_delta = np.where((rng.random(n) < 0.5) & (near < 0), near, -(10 ** rng.uniform(-17, 50, n)))
    above = special.gaussian_epsilon_from_log_delta(r, log_delta)
    below = special.gaussian_epsilon_below_from_log_delta(r, log_delta)
    assert (above >= below).all()
    worst = (0.0, "")
    for i in range(n):
        row = f"r={float(r[i])!r} log_delta={float(log_delta[i])!r} got={float(above[i])!r} below={float(below[i])!r}"
        target = arb(float(log_delta[i]))
        assert oracle.log_delta(float(r[i]), float(above[i])) <= target, f"unsafe: {row}"
        if below[i] > 0:
            assert oracle.log_delta(float(r[i]), float(below[i])) >= target, f"not below: {row}"
        if above[i] > 0:
            ctx.prec = 300
            lower = float(above[i] * (1 - NEAR))
            if log_delta[i] > -0.69:
                target = (1 - target.exp()).log()
                gap = oracle.log_missing(float(r[i]), lower) - target
            else:
                gap = target - oracle.log_delta(float(r[i]), lower)
            allowed = LOGS[0] + LOGS[1] * abs(float(target))
            worst = max(worst, (float(gap.mid()) / allowed, row))
    print(worst)
    assert worst[0] <= 1.0, worst


@few_or_all("n", 300, 2000)
@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("scale", ["practice", "everywhere", "zero"])
def test_noise_is_safe_and_close(scale, logarithmic, n):
    rng = np.random.default_rng(9)
    delta = targets(rng, n)
    delta = delta[delta > 1e-300]
    epsilon = {"practice": 10 ** rng.uniform(-3, 2, delta.size), "everywhere": 10 ** rng.uniform(-300, 300, delta.size)}
    epsilon = epsilon.get(scale, np.zeros(delta.size))
    if logarithmic:
        target = np.log(delta)
        above = special.gaussian_noise_from_log_delta(epsilon, target)
        below = special.gaussian_noise_below_from_log_delta(epsilon, target)
    else:
        target, above = delta, special.gaussian_noise(epsilon, delta)
        below = special.gaussian_noise_below(epsilon, delta)
    assert (above >= below).all()
    assert (below > 0).all()
    assert np.isfinite(above).all()
    allowed = NEAR + (LOGS[1] * abs(target) if logarithmic else 0)
    closeness = (above - below) / above / allowed
    worst = int(np.argmax(closeness))
    assert closeness[worst] <= 1, (epsilon[worst], target[worst], above[worst], below[worst])
    for i in range(delta.size):
        goal = arb(float(target[i])) if logarithmic else arb(float(target[i])).log()
        row = f"epsilon={float(epsilon[i])!r} target={float(target[i])!r} got={float(above[i])!r}"
        assert log_delta_of_noise(above[i], epsilon[i]) <= goal, f"unsafe: {row}"
        assert log_delta_of_noise(below[i], epsilon[i]) >= goal, f"not below: {row} {float(below[i])!r}"


def log_delta_of_noise(noise, epsilon):
    """At r = 1 / (2 noise) exactly, not at its nearest double."""
    return oracle.log_delta_of(lambda: 1 / (2 * arb(float(noise))), float(epsilon))


@pytest.mark.parametrize(
    ("r", "delta", "epsilon"),
    [
        (0.0, 0.0, 0.0), (0.0, 0.5, 0.0), (1.0, 0.0, math.inf), (1.0, 1.0, 0.0), (math.inf, 0.5, math.inf),
        (math.inf, 1.0, 0.0), (math.inf, 0.0, math.inf), (1e200, 0.5, math.inf), (1.0, 0.99, 0.0),
        (1.0, -0.1, math.nan), (1.0, 1.5, math.nan), (-1.0, 0.5, math.nan), (math.nan, 0.5, math.nan),
        (1.0, math.nan, math.nan),
    ],
)
def test_epsilon_edges(r, delta, epsilon):
    np.testing.assert_equal(float(special.gaussian_epsilon(r, delta)), epsilon)
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithm = np.log(delta) if delta <= 1 else delta
    np.testing.assert_equal(float(special.gaussian_epsilon_from_log_delta(r, logarithm)), epsilon)


@pytest.mark.parametrize(
    ("epsilon", "delta", "noise"),
    [
        (0.0, 0.0, math.inf), (1.0, 0.0, math.inf), (1.0, 1.0, 0.0), (math.inf, 0.5, 0.0), (math.inf, 0.0, 0.0),
        (-1.0, 0.5, math.nan), (1.0, -0.1, math.nan), (1.0, 1.1, math.nan), (math.nan, 0.5, math.nan),
        (1.0, math.nan, math.nan),
    ],
)
def test_noise_edges(epsilon, delta, noise):
    np.testing.assert_equal(float(special.gaussian_noise(epsilon, delta)), noise)
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithm = np.log(delta) if delta <= 1 else delta
    np.testing.assert_equal(float(special.gaussian_noise_from_log_delta(epsilon, logarithm)), noise)


def test_noise_beyond_the_largest_double_is_inf():
    assert special.gaussian_noise_from_log_delta(0.0, -1e6) == math.inf
    assert special.gaussian_noise_from_log_delta(0.0, -700.0) < math.inf


def test_a_lane_does_not_depend_on_its_neighbours():
    r, delta = cases("everywhere", 500)
    whole = special.gaussian_epsilon(r, delta)
    np.testing.assert_array_equal(special.gaussian_epsilon(r[::-1], delta[::-1])[::-1], whole)
    np.testing.assert_array_equal([special.gaussian_epsilon(a, b) for a, b in zip(r, delta, strict=True)], whole)


def test_harsh_corners_end_and_are_safe():
    edge = np.array([5e-324, 1e-310, 1e-300, 1e-160, 1e-20, 0.5, 1.0, 1e8, 1e16, 1e150, 1e154, 1e300, 1.7e308])
    chance = np.array([5e-324, 1e-310, 1e-300, 1e-16, 0.5, np.nextafter(0.5, 1), 1 - 2.0**-53])
    epsilon = special.gaussian_epsilon(edge[:, None], chance)
    assert (epsilon >= 0).all()
    finite = np.isfinite(epsilon)
    again = np.where(finite, special.gaussian_delta(edge[:, None], np.where(finite, epsilon, 0)), 0)
    assert (again <= chance * (1 + 4e-15)).all()
    noise = special.gaussian_noise(edge[:, None], chance)
    assert (noise > 0).all()
    logs = -np.array([5e-324, 1e-300, 1e-16, 0.6, 0.7, 1e3, 1e10, 1e150, 1e300, 1.7e308])
    assert (special.gaussian_epsilon_from_log_delta(edge[:, None], logs) >= 0).all()
    assert (special.gaussian_noise_from_log_delta(edge[:, None], logs) > 0).all()
