"""Certified hockey-stick divergences contain the truth, and their bounds are as close as promised."""

from collections import defaultdict
from decimal import Decimal
from functools import cache

import numpy as np
import pytest
from mpmath import mp

from fastpriv import GaussianMixture, hockey_stick_divergence, total_variation
from fastpriv.divergences import log_hockey_stick_divergence
from fastpriv.divergences.one_dimension import monotone_pieces
from oracles.mixture_pairs import FAMILIES, ORDINARY, many, mix, pairs
from oracles.tables import rows
from oracles.truth import bounds, family_of

# relative width of value and logarithm: 1e-12 wherever it is promised; moves below 1e-8 of a standard deviation and
# double roots (H near 1e-24 as a difference of numbers near 1) have no promise, only the enclosure
WIDTH = 1e-12
# the width of the logarithm is promised down to here; below, crossings lie thousands of standard deviations out
LEAST_LOG = -3e5
NO_PROMISE = (
    "near-mean-1e-12",
    "near-mean-ulp",
    "near-weight",
    "near-sigma",
    "symmetric-touching",
    "symmetric-peak",
    "inexact",
)


@cache
def table():
    """(pair name, direction) -> list of (epsilon, H, log H), the last two as strings."""
    out = defaultdict(list)
    for name, direction, epsilon, value, log in rows("hockey_stick"):
        out[name, direction].append((float.fromhex(epsilon), value, log))
    return out


def mixture(m):
    return GaussianMixture(m.weights, m.means, m.sigmas)


def sides(pair, direction):
    first, second = (pair.p, pair.q) if direction == "PQ" else (pair.q, pair.p)
    return mixture(first), mixture(second)


def outside(lower, upper, text):
    """Whether no number of [lower, upper] is the truth."""
    low, high = bounds(text)
    return Decimal(float(lower)) > high or Decimal(float(upper)) < low


def relative_width(estimate, i):
    low, high = float(estimate.lower[i]), float(estimate.upper[i])
    if low == high:
        return 0.0
    size = max(abs(low), abs(high))
    return (high - low) / size if np.isfinite(size) else np.inf


def report(problems, limit=12):
    shown = "\n".join(problems[:limit])
    return f"{len(problems)} rows fail, the first of them:\n{shown}"


CASES = [(pair, direction) for pair in pairs() for direction in ("PQ", "QP")]
NAMES = [f"{pair.name}-{direction}" for pair, direction in CASES]


@pytest.mark.few(53)
@pytest.mark.parametrize(("pair", "direction"), CASES, ids=NAMES)
def test_bounds_contain_the_truth(pair, direction):
    truth = table()[pair.name, direction]
    epsilon = np.array([row[0] for row in truth])
    p, q = sides(pair, direction)
    value, log = hockey_stick_divergence(p, q, epsilon), log_hockey_stick_divergence(p, q, epsilon)
    assert value.kind == log.kind == "certified"
    problems = []
    for i, (e, want, want_log) in enumerate(truth):
        if want == "tiny":
            bad = value.lower[i] > 1e-300 or value.upper[i] < 0
        else:
            bad = outside(value.lower[i], value.upper[i], want)
        if bad:
            problems.append(
                f"epsilon={e!r}: [{value.lower[i]!r}, {value.upper[i]!r}] misses H = {want}, log H = {want_log}"
            )
        if outside(log.lower[i], log.upper[i], want_log):
            problems.append(f"epsilon={e!r}: [{log.lower[i]!r}, {log.upper[i]!r}] misses log H = {want_log}")
    assert not problems, report(problems)


def promised(pair, want):
    return not pair.name.startswith(NO_PROMISE) and not want.startswith(("<", ">"))


@pytest.mark.few(53)
@pytest.mark.parametrize(("pair", "direction"), CASES, ids=NAMES)
def test_bounds_are_as_close_as_promised(pair, direction):
    truth = table()[pair.name, direction]
    epsilon = np.array([row[0] for row in truth])
    p, q = sides(pair, direction)
    value, log = hockey_stick_divergence(p, q, epsilon), log_hockey_stick_divergence(p, q, epsilon)
    problems = []
    for i, (e, want, want_log) in enumerate(truth):
        if not promised(pair, want):
            continue
        if want not in ("tiny", "0") and float(want) > 1e-300 and relative_width(value, i) > WIDTH:
            problems.append(f"epsilon={e!r}: H = {want} in [{value.lower[i]!r}, {value.upper[i]!r}]")
        if want == "0" and not value.upper[i] <= 1e-300:
            problems.append(f"epsilon={e!r}: H = 0 but upper = {value.upper[i]!r}")
        if promised(pair, want_log) and want not in ("0",) and float(want_log) > LEAST_LOG:
            width = log.upper[i] - log.lower[i]
            if not width <= WIDTH * max(1.0, abs(float(want_log))):
                problems.append(f"epsilon={e!r}: log H = {want_log} in [{log.lower[i]!r}, {log.upper[i]!r}]")
    assert not problems, report(problems)


@pytest.mark.parametrize("family", ORDINARY)
def test_total_variation_contains_the_truth(family):
    for pair in pairs(family):
        want = table()[pair.name, "PQ"][0][1]
        got = total_variation(mixture(pair.p), mixture(pair.q))
        assert not outside(got.lower, got.upper, want), f"{pair.name}: {got!r} misses {want}"
        assert got.upper - got.lower <= WIDTH * got.upper, f"{pair.name}: {got!r}"


def test_the_table_covers_every_family():
    assert {family_of(name) for name, _ in table()} == set(FAMILIES)
    assert len(rows("hockey_stick")) > 1500


def test_one_epsilon_and_many_agree():
    for pair in pairs("random", "near")[::3]:
        p, q = mixture(pair.p), mixture(pair.q)
        grid = hockey_stick_divergence(p, q, pair.grid)
        for i, epsilon in enumerate(pair.grid):
            one = hockey_stick_divergence(p, q, float(epsilon))
            where = (
                f"{pair.name} epsilon={epsilon!r}: {one!r} alone, [{grid.lower[i]!r}, {grid.upper[i]!r}] in the grid"
            )
            assert one.lower <= grid.upper[i], where
            assert grid.lower[i] <= one.upper, where


def doubles_of_hockey_stick(m, n, epsilon):
    """A dense Riemann sum of max(p - e^epsilon q, 0), good to about 1e-6 of 1."""
    x = np.linspace(-150, 150, 600_001)

    def density(mixture):
        total = np.zeros_like(x)
        for w, mean, s in zip(mixture.weights, mixture.means, mixture.sigmas, strict=True):
            near = slice(*np.searchsorted(x, (mean - 9 * s, mean + 9 * s)))
            total[near] += w / (s * np.sqrt(2 * np.pi)) * np.exp(-0.5 * ((x[near] - mean) / s) ** 2)
        return total

    return float(np.maximum(density(m) - np.exp(epsilon) * density(n), 0).sum() * (x[1] - x[0]))


@pytest.mark.parametrize("size", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_many_components(size):
    pair = many(size)
    epsilon = np.array([0.0, 0.05, 0.5])
    got = hockey_stick_divergence(mixture(pair.p), mixture(pair.q), epsilon)
    for i, e in enumerate(epsilon):
        want = doubles_of_hockey_stick(pair.p, pair.q, e)
        assert abs(got.value[i] - want) < 1e-6, f"{size} components, epsilon={e}: got {got.value[i]!r}, sum {want!r}"
        assert got.lower[i] <= got.value[i] <= got.upper[i]
        assert got.upper[i] - got.lower[i] <= WIDTH * got.upper[i], f"epsilon={e}: [{got.lower[i]!r}, {got.upper[i]!r}]"


def test_a_needle_far_away_is_not_lost():
    # blind adaptive quadrature over the line returns 0 for the needle's share
    wide, needle = mix(1.0, 0.0, 1e3), mix([0.75, 0.25], [0.0, 700.0], [1e3, 1e-3])
    got = hockey_stick_divergence(mixture(needle), mixture(wide), 3.0)
    assert 0.2499 < got.lower <= got.upper < 0.25


def test_equal_laws_by_different_components_are_at_distance_zero():
    """Rounding of their difference would leave 1e-15, which integrals of the curve cannot refine."""
    w = 2.0**-20
    p = GaussianMixture([w, w, w, w, 1 - 4 * w], [0.0] * 5, [0.125] * 5)
    q = GaussianMixture.single(0.0, 0.125)
    for first, second in ((p, q), (q, p)):
        assert (hockey_stick_divergence(first, second, [0.0, 1e-12, 1.0]).upper == 0.0).all()
        below = hockey_stick_divergence(first, second, -0.5)  # 1 - e^-0.5
        assert below.lower <= -np.expm1(-0.5) <= below.upper < 0.4
    moved = GaussianMixture([0.5, 0.5], [0.0, 0.0], [0.125, 0.25])
    assert hockey_stick_divergence(moved, q, 0.0).lower > 0.1


@pytest.mark.parametrize(("gap_p", "gap_q"), [(0.0, 0.01), (0.02, 0.0), (0.01, 0.03), (2.0**-53, 2.0**-52)])
def test_gaps_of_the_masses_widen_every_row(gap_p, gap_q):
    """The divergences of two measures on two points, each scaled by 1 +- its gap, lie within the widened rows."""
    p, q = (mp.mpf(3) / 4, mp.mpf(1) / 4), (mp.mpf(1) / 4, mp.mpf(3) / 4)

    def divergence(epsilon, of_p=1, of_q=1):
        return sum(max(of_p * a - mp.exp(mp.mpf(epsilon)) * of_q * b, 0) for a, b in zip(p, q, strict=True))

    epsilon = np.array([-0.5, 0.0, 0.5, 0.9375])
    levels = monotone_pieces.epsilons_for_gaps(epsilon, gap_p, gap_q)
    for x, low, high in zip(epsilon.tolist(), *levels[4:].reshape(2, 4).tolist(), strict=True):
        down, up = (mp.log((1 + mp.mpf(a)) / (1 - mp.mpf(b))) for a, b in ((gap_p, gap_q), (gap_q, gap_p)))
        assert x - down * (1 + 1e-14) - 5e-16 <= low <= x - down
        assert x + up <= high <= x + up * (1 + 1e-14) + 5e-16
    truths = [divergence(x) for x in levels.tolist()]
    rows = np.array([[x, x * (1 - 2e-16), x * (1 + 2e-16), mp.log(x), mp.log(x) - 2e-16, mp.log(x) + 2e-16]
                     for x in truths], dtype=np.float64)
    for x, row in zip(epsilon.tolist(), monotone_pieces.rows_for_gaps(rows, gap_p), strict=True):
        scaled = [divergence(x, 1 + i * mp.mpf(gap_p), 1 + j * mp.mpf(gap_q)) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        assert row[1] <= min(scaled) <= max(scaled) <= row[2]
        assert row[4] <= mp.log(min(scaled)) <= mp.log(max(scaled)) <= row[5]
        assert row[2] - row[1] <= 1.1 * (max(scaled) - min(scaled)) + 5e-15
