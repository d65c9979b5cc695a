"""What draws say of the integrals of two log densities: right where they can tell, silent where they can't."""

import math
import warnings

import numpy as np
import pytest

from fastpriv.errors import SamplingWarning
from fastpriv.sampling.statistics.normalisation import LogRatioSums, warn_of_normalisation
from sizes import few_first

N = 2000


def shifted_normals(shift, log_ratio, seed, n=N):
    """log p - log q at draws of N(shift, 1) and N(0, 1), with Z_p / Z_q off by a factor."""
    rng = np.random.default_rng(seed)
    x, y = shift + rng.standard_normal(n), rng.standard_normal(n)
    return tuple(shift * draws - shift**2 / 2 + log_ratio for draws in (x, y))


def collected(at_p, at_q, parts=3):
    """What the draws of a run tell, taken in by parts."""
    whole = LogRatioSums(one_sided=at_p is None or at_q is None)
    for ratios, of_p in ((at_p, True), (at_q, False)):
        for some in np.array_split(ratios if ratios is not None else np.empty(0), parts):
            part = LogRatioSums(one_sided=whole.one_sided)
            part.update(some, np.zeros(len(some)), of_p)
            whole.merge(part)
    return whole


def compare_integrals(at_p, at_q):
    return collected(at_p, at_q, parts=1).comparison()


@pytest.mark.few(2)
@pytest.mark.parametrize("shift", [0.01, 0.3, 1.0, 2.0, 4.0, 8.0, 20.0])
def test_normalised_densities_raise_no_alarm(shift):
    for seed in range(60):
        at_p, at_q = shifted_normals(shift, 0.0, seed)
        for sides in ((at_p, at_q), (at_p, None), (None, at_q)):
            assert compare_integrals(*sides).verdict == "equal", (seed, sides)


@pytest.mark.few(2)
@pytest.mark.parametrize("shift", [0.01, 0.3, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("factor", few_first([0.37, 1.3, 0.8, 1e9], 2))
def test_a_missing_factor_is_found_and_measured(shift, factor):
    errors = []
    for seed in range(40):
        found = compare_integrals(*shifted_normals(shift, math.log(factor), seed))
        assert found.verdict == "unequal" or (shift > 1 and abs(math.log(factor)) < 0.5)
        errors.append((found.ratio - factor) / found.error)
    if shift < 3 or factor < 1e6:  # otherwise few draws carry the sums, and the error is too small
        assert abs(np.mean(errors)) < 0.6
        assert 0.6 < np.std(errors) < 1.4


def test_densities_that_never_meet_say_nothing():
    found = compare_integrals(np.full(N, np.inf), np.full(N, -np.inf))
    assert (found.error, found.verdict) == (math.inf, "equal")
    assert compare_integrals(*shifted_normals(40.0, 1.0, 1)).verdict == "equal"
    assert compare_integrals(None, None).verdict == "equal"
    assert compare_integrals(np.empty(0), np.empty(0)).verdict == "equal"


def test_densities_that_never_meet_may_still_contradict_themselves():
    found = compare_integrals(np.full(N, np.inf), np.full(N, 1.0))  # p is e times q where q is, and elsewhere too
    assert (found.ratio, found.error, found.verdict) == (math.inf, math.inf, "unequal")
    found = compare_integrals(np.full(N, -1.0), np.full(N, -np.inf))
    assert (found.ratio, found.error, found.verdict) == (0.0, math.inf, "unequal")


def test_supports_that_differ_are_no_fault_with_draws_of_both():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0, 2, N)  # P uniform on [0, 2], Q on [0, 1]
        at_p = np.where(x < 1, math.log(0.5), np.inf)
        found = compare_integrals(at_p, np.full(N, math.log(0.5)))
        assert found.verdict == "equal"
        assert abs(found.ratio - 1) < 5 * found.error


def test_draws_of_one_law_prove_an_excess_and_mention_a_lack():
    at_p, at_q = shifted_normals(0.3, math.log(0.37), 1)
    assert compare_integrals(at_p, None).verdict == "unequal"
    assert abs(compare_integrals(at_p, None).ratio - 0.37) < 0.02
    assert compare_integrals(None, at_q).verdict == "out of reach"
    assert abs(compare_integrals(None, at_q).ratio - 0.37) < 0.02
    assert compare_integrals(None, np.full(N, -np.inf)).ratio == 0.0
    assert compare_integrals(np.full(N, np.inf), None).verdict == "out of reach"
    assert compare_integrals(None, np.full(N, 1e4)).verdict == "unequal"


def test_the_warnings_say_what_was_seen_and_what_to_do():
    at_p, at_q = shifted_normals(0.3, math.log(0.37), 1)
    with pytest.warns(SamplingWarning, match=r"log densities must be normalised: the integral of mine over that of "
                                             r"yours is 0\.3\d* \+- 0\.00\d, not 1.*Subtract"):
        warn_of_normalisation(compare_integrals(at_p, at_q), "mine", "yours")
    with pytest.warns(SamplingWarning, match=r"draws of q alone give the integral of p over that of q as 0\.3.*or p "
                                             r"has mass where q has none"):
        warn_of_normalisation(compare_integrals(None, at_q), of_p=False)
    with pytest.warns(SamplingWarning, match="draws of p alone give .*or q has mass where p has none"):
        warn_of_normalisation(compare_integrals(shifted_normals(0.3, 1.0, 1)[0], None))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_normalisation(compare_integrals(*shifted_normals(0.3, 0.0, 1)))


@pytest.mark.few(4)
@pytest.mark.parametrize("shift", [0.0, 0.01, 0.3, 1.0, 2.0, 3.0, 4.0, 8.0, 20.0])
@pytest.mark.parametrize("count", [500, 20_000])
def test_a_run_of_normalised_densities_raises_no_alarm(shift, count):
    for seed in range(40):
        at_p, at_q = shifted_normals(shift, 0.0, seed, count)
        for sides in ((at_p, at_q), (at_p, at_q[: count // 8]), (at_p, None), (None, at_q)):
            assert collected(*sides).comparison().verdict == "equal", (seed, sides)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.3, 1.0, 2.0, 3.0])
def test_false_alarms_of_runs_over_many_seeds(shift):
    alarms = 0
    for seed in range(20_000):
        at_p, at_q = shifted_normals(shift, 0.0, seed, 1000)
        for sides in ((at_p, at_q), (at_p, None)):
            alarms += collected(*sides, parts=1).comparison().verdict != "equal"
    assert alarms <= 12  # expected: at most 4


def test_heavy_weights_raise_no_alarm():
    """Draws of P alone, q over p with a Pareto tail, down to one that has no variance."""
    for tail in (1.2, 1.5, 2.1, 3.0):
        for seed in range(60):
            rng = np.random.default_rng([seed, round(10 * tail)])
            weights = (tail - 1.0) * rng.pareto(tail, 4000)
            assert collected(-np.log(weights), None).comparison().verdict == "equal", (tail, seed)


@pytest.mark.parametrize("factor", [0.9, 0.95, 1.05, 1.1])
@pytest.mark.parametrize("one_sided", [False, True])
def test_a_run_finds_and_measures_five_per_cent(factor, one_sided):
    for seed in range(20):
        at_p, at_q = shifted_normals(0.7, math.log(factor), seed, 40_000)
        found = collected(at_p, None if one_sided else at_q[:10_000]).comparison()
        assert found.verdict == ("out of reach" if one_sided and factor > 1 else "unequal"), (seed, found)
        assert abs(found.ratio - factor) < 6 * found.error


def test_equal_ratios_are_known_from_varying_ones():
    rng = np.random.default_rng(5)
    logs = -50.0 * rng.random(1000)
    same, rounded, varied = LogRatioSums(one_sided=True), LogRatioSums(one_sided=True), LogRatioSums(one_sided=True)
    same.update(logs, logs, True)
    rounded.update(logs + 1e-4 + 1e-14 * rng.standard_normal(1000), logs, True)
    varied.update(logs + 1e-8 * rng.standard_normal(1000), logs, True)
    assert (same.ratios_equal, rounded.ratios_equal, varied.ratios_equal) == (True, True, False)
    infinite_ratio = LogRatioSums(one_sided=False)
    infinite_ratio.update(np.zeros(3), np.array([0.0, -np.inf, 0.0]), True)
    assert (infinite_ratio.ratios_equal, infinite_ratio.infinite_ratio, same.infinite_ratio) == (False, True, False)
    assert LogRatioSums(one_sided=False).comparison().verdict == "equal"
