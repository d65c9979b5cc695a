"""The bracket of the peak-power capacity holds the truth, and its input, slope and inverse are what they claim."""

import math

import numpy as np
import pytest
from flint import arb
from scipy.special import gammaln, ive

from fastpriv import DomainError, Estimate, awgn_capacity
from fastpriv.calibration import sigma_from_ci_lmip
from fastpriv.errors import ShapeError
from oracles import awgn, awgn_start
from oracles.tables import array_from_text, rows

TABLE = [(d, float.fromhex(amplitude), arb(low), arb(high)) for d, amplitude, low, high, *_ in rows("awgn_capacity")]
LAWS = {
    (d, float.fromhex(amplitude)): (array_from_text(radii), array_from_text(p))
    for d, amplitude, _, _, radii, p in rows("awgn_capacity")
}
# what is left of the pattern at the two ends of the interval; an empirical constant
END_CONSTANT = 3.98160794705


def volume_bound(d, r):
    """Uniform input: C >= log volume - (d/2) log(2 pi e)."""
    return d * math.log(r) - d / 2 * math.log(2 * math.e) - float(gammaln(d / 2 + 1))


def power_bound(d, r):
    return d / 2 * math.log1p(r * r / d)


@pytest.mark.parametrize("rtol", [1e-9, 1e-12])
@pytest.mark.parametrize("dimension", sorted({row[0] for row in TABLE}))
def test_the_bracket_contains_the_truth(dimension, rtol):
    problems = []
    for d, amplitude, low, high in TABLE:
        if d != dimension:
            continue
        got = awgn_capacity(d, amplitude, rtol=rtol)
        where = f"d={d} R={amplitude!r}: got {got!r}, width {got.width / got.value:.2e}, want {low.str(20)}"
        if not (arb(got.lower) <= high and low <= arb(got.upper)):
            problems.append(f"misses: {where}")
        if not got.width <= rtol * got.lower:
            problems.append(f"wide: {where}")
        if not got.lower <= got.value <= got.upper or got.kind == "statistical" or got.unit != "nats":
            problems.append(f"malformed: {where}")
    assert not problems, "\n".join(problems)


INPUTS = [
    (1, 0.5), (1, 2.0), (1, 3.0), (1, 6.0), (2, 1.0), (2, 4.0), (10, 3.0),
    pytest.param(3, 6.0, marks=pytest.mark.slow), pytest.param(4, 10.0, marks=pytest.mark.slow),
    pytest.param(8, 10.0, marks=pytest.mark.slow), pytest.param(1, 15.0, marks=pytest.mark.slow),
    pytest.param(32, 16.0, marks=pytest.mark.slow), pytest.param(64, 16.0, marks=pytest.mark.slow),
    pytest.param(1000, 10.0, marks=pytest.mark.slow),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("d", "amplitude"), INPUTS)
def test_the_input_proves_the_bracket(d, amplitude):
    got = awgn_capacity(d, amplitude)
    radii, p = np.asarray(got.radii), np.asarray(got.probabilities)
    assert radii.shape == p.shape
    assert radii.ndim == 1
    assert np.all((radii >= 0) & (radii <= amplitude))
    assert np.all(p >= 0)
    assert abs(math.fsum(p) - 1) < 1e-12
    low = awgn.settled(d, got.lower, 1e-10)
    count = 12 if d < 100 else 3
    points = [low + (amplitude - low) * j / count for j in range(count)] + [amplitude]
    law = [float(r) for r in radii], [float(w) for w in p]
    value = awgn.information(d, *law)
    assert arb(got.lower) * (1 - arb("1e-15")) <= value <= arb(got.upper), (got, value.str(20))
    for r, i in zip(points, awgn.information_density(d, points, *law), strict=True):
        assert i <= arb(got.upper), f"d={d} R={amplitude} r={r}: i={i.str(20)}, upper={got.upper!r}"


RATIOS = (1e-6, 1e-3, 0.2, 1.0, 1.6)
SPREAD = [(d, a * math.sqrt(d)) for d in (1, 2, 3, 7, 20, 64, 500, 10_000, 100_000) for a in RATIOS]


@pytest.mark.parametrize(("d", "amplitude"), SPREAD)
def test_analytic_bounds_hold(d, amplitude):
    got = awgn_capacity(d, amplitude)
    assert got.lower <= power_bound(d, amplitude) * (1 + 1e-14)
    assert got.lower <= amplitude**2 / 2
    assert got.upper >= volume_bound(d, amplitude)
    if d == 1:
        assert got.lower <= math.log1p(2 * amplitude / math.sqrt(2 * math.pi * math.e))
    if amplitude <= 1e-3 * math.sqrt(d):  # C = R^2/2 - R^4/(4 d) + ...
        ratio = amplitude**2 / (2 * d)
        series, rest = amplitude**2 / 2 * (1 - ratio), 3 * ratio**2 + 1e-15
        assert got.lower <= series * (1 + rest)
        assert got.upper >= series * (1 - rest)


def test_one_sphere_of_huge_dimension_approaches_the_power_bound():
    for d in (4000, 100_000):
        got, bound = awgn_capacity(d, math.sqrt(d)), power_bound(d, math.sqrt(d))
        assert 0 < bound - got.value < 1.0


@pytest.mark.parametrize("amplitude", [6.0, 12.0, pytest.param(20.0, marks=pytest.mark.slow)])
def test_long_intervals_approach_their_length(amplitude):
    """The constant is empirical, and so is the tolerance; the length alone is a bound."""
    got = awgn_capacity(1, amplitude)
    assert got.upper >= volume_bound(1, amplitude)
    want = math.log((2 * amplitude + END_CONSTANT) / math.sqrt(2 * math.pi * math.e))
    assert got.value == pytest.approx(want, abs=2e-3 / amplitude**2)


@pytest.mark.parametrize("d", [2, 3])
def test_large_balls_approach_their_volume_from_above(d):
    excess = [awgn_capacity(d, r).value - volume_bound(d, r) for r in (3.0, 6.0, 9.0)]
    assert excess[0] > excess[1] > excess[2] > 0
    assert excess[2] * 9 < excess[1] * 6 * 1.2  # of order 1/R


@pytest.mark.parametrize("d", [1, 2, 8, 64, 4000])
def test_capacity_rises_and_is_concave_in_power(d):
    power = np.linspace(0.05, 4.0 if d < 9 else 1.6, 24) * d
    got = awgn_capacity(d, np.sqrt(power))
    assert got.shape == power.shape
    assert np.all(np.diff(got.value) > 0)
    bend = np.diff(got.value, 2)
    assert np.all(bend <= 4 * np.max(got.width) + 1e-14 * got.value[-1]), (bend.max(), np.argmax(bend))
    assert np.all(np.asarray(got.slope) > 0)
    assert np.all(np.asarray(got.slope) <= np.sqrt(power) * (1 + 1e-12))


@pytest.mark.parametrize(("d", "amplitude"), [(1, 0.7), (1, 2.5), (5, 6.0), (64, 3.0), (100_000, 100.0)])
def test_only_the_ratio_matters(d, amplitude):
    plain = awgn_capacity(d, amplitude)
    for factor in (2.0**-400, 2.0**30, 2.0**500):
        scaled = awgn_capacity(d, amplitude * factor, factor)
        assert scaled.value == plain.value
        assert (scaled.lower, scaled.upper) == (plain.lower, plain.upper)
        np.testing.assert_allclose(scaled.radii, np.asarray(plain.radii) * factor, rtol=1e-15)
        assert scaled.slope * factor == pytest.approx(plain.slope, rel=1e-15)
    odd = awgn_capacity(d, amplitude * 0.3, 0.3)
    assert odd.lower <= plain.upper * (1 + 1e-15)
    assert plain.lower <= odd.upper * (1 + 1e-15)
    bits = awgn_capacity(d, amplitude, unit="bits")
    assert bits.unit == "bits"
    assert bits.value == pytest.approx(plain.value / math.log(2), rel=1e-15)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("d", "amplitude"), [(1, 1.0), (1, 2.0), (1, 3.5), (2, 1.5), (2, 4.0), (4, 6.0), (10, 3.0), (100, 1e-3)]
)
def test_slope_against_high_precision_differences(d, amplitude):
    radii, p, _ = awgn_start.start(d, amplitude)
    h = amplitude * 2.0**-20
    ends = []
    for r in (amplitude + h, amplitude - h):
        start = [float(x) for x in radii[:-1]]
        ends.append(awgn.refined_capacity(d, r, [*start, r], [float(x) for x in p])[0])
    want = float((ends[0] - ends[1]) / (2 * arb(h)))
    got = awgn_capacity(d, amplitude)
    assert got.slope == pytest.approx(want, rel=3e-9 if len(radii) > 1 else 1e-10), (d, amplitude, got.slope, want)
    halved = awgn_capacity(d, amplitude / 2, 0.5)
    assert halved.slope == pytest.approx(2 * want, rel=3e-9 if len(radii) > 1 else 1e-10)


TARGETS = [(1, 0.1), (1, 0.75), (1, 1.5), (2, 1e-6), (3, 2.5), (8, 4.0), (64, 0.3), (4000, 1.0), (100_000, 2000.0)]


@pytest.mark.parametrize(("d", "bits"), TARGETS)
def test_the_inverse_is_on_the_safe_side(d, bits):
    amplitude = 1.75
    got = sigma_from_ci_lmip(bits, d, amplitude, unit="bits")
    assert isinstance(got, Estimate)
    assert got.unit == "1"
    assert 0 < got.lower <= got.value <= got.upper
    assert got.width <= 1e-6 * got.value
    above, below = (awgn_capacity(d, amplitude, s, unit="bits", rtol=1e-12) for s in (got.upper, got.lower))
    assert above.lower <= bits, (above, bits)
    assert below.upper >= bits, (below, bits)
    assert above.value <= bits * (1 + 1e-13)
    nats = sigma_from_ci_lmip(bits * math.log(2), d, amplitude, unit="nats")
    assert nats.value == pytest.approx(got.value, rel=1e-8)


@pytest.mark.parametrize(("d", "bits"), [(1, 0.1), (2, 1e-6), (8, 4.0), (64, 0.3)])
def test_the_safe_sigma_meets_its_target_in_truth(d, bits):
    sigma = sigma_from_ci_lmip(bits, d, 1.0, unit="bits")
    target = arb(bits) * arb(2).log()
    for s, side in ((sigma.upper, 1), (sigma.lower, -1)):
        ratio = 1 / arb(s)
        shell = awgn.Shell(d, 0.0, float(ratio))
        sphere = shell.sphere(ratio)
        truth = shell.density(sphere, [g.log() for g in sphere])
        assert (truth <= target) if side > 0 else (truth >= target), (d, bits, s, (truth - target).str(5))


def test_the_inverse_takes_arrays():
    bits = np.array([0.25, 0.5, 1.0])
    got = sigma_from_ci_lmip(bits[:, None], [1, 2], 3.0, unit="bits")
    assert got.shape == (3, 2)
    for i, target in enumerate(bits):
        for j, d in enumerate((1, 2)):
            one = sigma_from_ci_lmip(target, d, 3.0, unit="bits")
            assert got.lower[i, j] <= one.upper
            assert one.lower <= got.upper[i, j]


@pytest.mark.parametrize("d", [1, 2, 8, 64])
def test_capacity_and_slope_are_continuous_across_the_first_limit(d):
    limit = {1: 1.66592564127128, 2: 2.45338995969591, 8: 5.15767249614991, 64: 14.8485877122623}[d]
    gaps = np.array([-1e-3, -1e-6, -1e-9, -1e-12, 0.0, 1e-12, 1e-9, 1e-6, 1e-3])
    amplitude = limit * (1 + gaps)
    got = awgn_capacity(d, amplitude)
    assert np.all(got.width <= 1e-9 * got.value)
    middle, slope = got.value[4], np.asarray(got.slope)
    straight = middle + slope[4] * (amplitude - limit)
    reach = 2e-9 + 1e-5 * (np.abs(gaps) > 1e-4)
    assert np.all(np.abs(got.value - straight) <= reach * middle), got.value - straight
    np.testing.assert_allclose(slope, slope[4], rtol=1e-2)
    np.testing.assert_allclose(slope[1:-1], slope[4], rtol=2e-5)
    singles = [awgn_capacity(d, float(a)) for a in amplitude]
    assert all(len(one.radii) == 1 for one in singles[:2])
    if d < 64:  # there the centre has weight 5e-28 only
        assert len(singles[-1].radii) == 2


def test_three_points_become_four():
    before, after = (awgn_capacity(1, 2.90746407 + gap) for gap in (-1e-2, 1e-2))
    assert before.radii[0] == 0
    assert len(before.radii) == len(after.radii) == 2
    assert after.radii[0] > 0.01


def test_an_array_equals_its_entries():
    d, amplitude = np.array([1, 2, 5, 64])[:, None], np.array([0.0, 1e-3, 0.9, 1.7, 2.6, 4.0])
    order = np.random.default_rng(3).permutation(6)
    shuffled = amplitude[order]
    got, again = awgn_capacity(d, amplitude), awgn_capacity(d, shuffled)
    assert got.shape == (4, 6)
    for i, one in enumerate(d[:, 0]):
        for j, a in enumerate(amplitude):
            single = awgn_capacity(int(one), float(a))
            for lower, upper in ((got.lower[i, j], got.upper[i, j]),
                                 (again.lower[:, np.argsort(order)][i, j], again.upper[:, np.argsort(order)][i, j])):
                assert lower <= single.upper, (one, a)
                assert single.lower <= upper, (one, a)
                assert upper - lower <= 1e-9 * upper
    empty = awgn_capacity(3, np.empty(0))
    assert empty.shape == (0,)


HUGE = [(1, 30.0), (1, 100.0), (1, 1e3), (1, 1e5), (1, 1e150), (2, 1e3), (2, 1e6), (8, 3e3), (8, 3e6), (64, 8e6),
        (64, 8e3), (1000, 3e7), (4000, 6e5), (100_000, 3e8), (100_000, 3e4)]


@pytest.mark.parametrize(("d", "amplitude"), HUGE)
def test_far_out_the_bracket_is_narrow_and_true_and_takes_little_work(d, amplitude):
    got = awgn_capacity(d, amplitude)
    assert got.width <= 1e-7 * got.value
    assert got.cost["evaluations"] < 6e6
    low, high = volume_bound(d, amplitude), power_bound(d, amplitude)
    if d == 1:
        high = math.log1p(2 * amplitude / math.sqrt(2 * math.pi * math.e))
    assert got.lower <= high * (1 + 1e-13), (got, low, high)
    assert got.upper >= low * (1 - 1e-13), (got, low, high)
    assert 0 < got.lower <= got.value <= got.upper
    assert got.upper <= power_bound(d, amplitude) * (1 + 1e-12)
    assert got.lower >= low * (1 - 1e-12)
    if d == 1:
        empirical = math.log((2 * amplitude + END_CONSTANT) / math.sqrt(2 * math.pi * math.e))
        assert got.lower <= empirical * (1 + 1e-13)
        assert got.upper >= empirical * (1 - 1e-13)


@pytest.mark.parametrize("d", [1, 2, 64, 100_000])
def test_no_amplitude_and_hardly_any(d):
    nothing = awgn_capacity(d, 0.0)
    assert (nothing.value, nothing.lower, nothing.upper) == (0.0, 0.0, 0.0)
    for amplitude in (1e-300, 1e-160, 1e-100, 1e-10):
        got = awgn_capacity(d, amplitude)
        truth = arb(amplitude) ** 2 / 2
        assert arb(got.lower) <= truth, (d, amplitude, got)
        assert truth * (1 - arb(amplitude) ** 2) <= arb(got.upper), (d, amplitude, got)
        assert 0 <= got.lower <= got.value <= got.upper
        assert got.width <= max(1e-9 * got.value, 1e-300), got


@pytest.mark.slow
def test_beyond_the_promise_the_bracket_stays_useful():
    for amplitude, width in ((40.0, 1e-9), (75.0, 1e-8)):
        got = awgn_capacity(1, amplitude)
        assert got.width <= width * got.value
        empirical = math.log((2 * amplitude + END_CONSTANT) / math.sqrt(2 * math.pi * math.e))
        assert got.value == pytest.approx(empirical, rel=1e-8)


@pytest.mark.slow
def test_random_settings_reach_their_width():
    rng = np.random.default_rng(20250104)
    problems = []
    for _ in range(1500):
        d = int(rng.integers(1, 40))
        amplitude = float(rng.uniform(0, 10) * math.sqrt(d) if d > 1 else rng.uniform(0, 25))
        got = awgn_capacity(d, amplitude)
        if not got.width <= 1e-9 * got.value:
            problems.append(f"d={d} R={amplitude!r}: {got.width / got.value:.2e}, {got.method}")
    assert not problems, "\n".join(problems)


@pytest.mark.slow
def test_monte_carlo_agrees():
    rng = np.random.default_rng(20250103)
    d, amplitude, n = 3, 5.0, 400_000
    got = awgn_capacity(d, amplitude)
    radii, p = np.asarray(got.radii), np.asarray(got.probabilities)
    assert len(radii) >= 2
    direction = rng.standard_normal((n, d))
    x = direction / np.linalg.norm(direction, axis=1)[:, None] * rng.choice(radii, n, p=p / p.sum())[:, None]
    noise = rng.standard_normal((n, d))
    rho = np.linalg.norm(x + noise, axis=1)
    z = rho[:, None] * radii
    small = z < 1e-8  # log G_3(z) = log(sinh z / z)
    safe = np.where(small, 1.0, z)
    log_bessel = np.where(small, 0.0, np.log(ive(0.5, safe) * math.gamma(1.5) * np.sqrt(2 / safe)) + safe)
    log_output = np.log(np.exp(log_bessel - radii**2 / 2 - rho[:, None] ** 2 / 2) @ p)
    sample = -np.sum(noise**2, axis=1) / 2 - log_output
    error = sample.std() / math.sqrt(n)
    assert abs(sample.mean() - got.value) < 4 * error
    assert error < 3e-3


@pytest.mark.slow
def test_blahut_arimoto_on_a_grid_agrees():
    amplitude = 2.5
    x, y = np.linspace(-amplitude, amplitude, 101), np.linspace(-amplitude - 8, amplitude + 8, 401)
    channel = np.exp(-((y - x[:, None]) ** 2) / 2)
    channel /= channel.sum(1, keepdims=True)
    p = np.full(len(x), 1 / len(x))
    for _ in range(3000):
        divergence = np.sum(channel * np.log(channel / (p @ channel)), axis=1)
        p *= np.exp(1.8 * (divergence - divergence.max()))
        p /= p.sum()
    got = awgn_capacity(1, amplitude)
    divergence = np.sum(channel * np.log(channel / (p @ channel)), axis=1)
    assert p @ divergence <= got.upper + 1e-9
    assert divergence.max() >= got.lower - 1e-9
    assert divergence.max() - p @ divergence < 1e-3


@pytest.mark.parametrize(
    ("arguments", "options", "match"),
    [
        ((0, 1.0), {}, r"dimension must be .*; got 0"),
        ((-3, 1.0), {}, r"dimension must be .*; got -3"),
        ((1.5, 1.0), {}, r"dimension must be .*; got 1\.5"),
        ((math.nan, 1.0), {}, r"dimension must be .*; got nan"),
        ((math.inf, 1.0), {}, r"dimension must be .*; got inf"),
        (("2", 1.0), {}, r"dimension must be .*; got '2'"),
        ((2, -1.0), {}, r"amplitude must be .*; got -1\.0"),
        ((2, math.nan), {}, r"amplitude must be .*; got nan"),
        ((2, math.inf), {}, r"amplitude must be .*; got inf"),
        ((2, None), {}, r"amplitude must be .*; got None"),
        ((2, [1.0, -2.0, 3.0]), {}, r"amplitude must be .*; got -2\.0 at index 1 \(1 of 3 entries\)"),
        ((2, 1.0, 0.0), {}, r"sigma must be .*; got 0\.0"),
        ((2, 1.0, -1.0), {}, r"sigma must be .*; got -1\.0"),
        ((2, 1.0, math.nan), {}, r"sigma must be .*; got nan"),
        ((2, 1.0), {"rtol": 0.0}, r"rtol must be .*; got 0\.0"),
        ((2, 1.0), {"rtol": math.nan}, r"rtol must be .*; got nan"),
        ((2, 1.0), {"unit": "shannon"}, r"unit must be one of .*; got 'shannon'"),
    ],
)
def test_bad_input(arguments, options, match):
    with pytest.raises(DomainError, match=match):
        awgn_capacity(*arguments, **options)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((-1.0, 1, 1.0), r"mu must be .*; got -1\.0"),
        ((0.0, 1, 1.0), r"mu must be .*; got 0\.0"),
        ((math.nan, 1, 1.0), r"mu must be .*; got nan"),
        ((1.0, 0, 1.0), r"dimension must be .*; got 0"),
        ((1.0, 1, 0.0), r"amplitude must be .*; got 0\.0"),
        ((1.0, 1, math.inf), r"amplitude must be .*; got inf"),
    ],
)
def test_bad_input_of_the_inverse(arguments, match):
    with pytest.raises(DomainError, match=match):
        sigma_from_ci_lmip(*arguments, unit="bits")


def test_shapes_must_broadcast():
    with pytest.raises(ShapeError, match=r"dimension must be of a shape that broadcasts with amplitude; got \(3,\)"):
        awgn_capacity([1, 2, 3], [1.0, 2.0])


HARSH = [(1, 1.665925641), (1, 59.9), (1, 61.5), (2, 2.45338996), (3, 18.0), (7, 1e-150), (16, 40.0), (50, 71.0),
         (51, 71.0), (1000, 316.0), (100_000, 3e5), (1_000_000, 1e6), (1_000_000, 3e6)]


@pytest.mark.few(3)
@pytest.mark.parametrize(("d", "amplitude"), HARSH)
def test_brackets_of_every_width_agree(d, amplitude):
    found = [awgn_capacity(d, amplitude, rtol=rtol) for rtol in (1e-13, 1e-11, 1e-9, 1e-6, 1e-3, 0.1)]
    best_lower, best_upper = max(one.lower for one in found), min(one.upper for one in found)
    assert best_lower <= best_upper, found
    for one, rtol in zip(found[2:], (1e-9, 1e-6, 1e-3, 0.1), strict=True):
        assert one.width <= rtol * one.lower, one


@pytest.mark.parametrize("bits", [5e-324, 1e-310, 1e-290])
def test_the_inverse_of_hardly_anything(bits):
    sigma = sigma_from_ci_lmip(bits, 3, 1.0, unit="bits")
    assert 0 < sigma.lower <= sigma.value <= sigma.upper
    assert awgn_capacity(3, 1.0, sigma.upper, unit="bits").lower <= bits
