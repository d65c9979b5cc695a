"""What draws say of the integrals of two log densities: right where they can tell, silent where they can't."""

import math
import warnings

import numpy as np
import pytest

from fastpriv import SamplingWarning
from fastpriv.sampling.statistics.normalisation import compared_integrals, warned_of_integrals

N = 2000


def shifted_normals(shift, log_ratio, seed, n=N):
    """log p - log q at draws of N(shift, 1) and N(0, 1), with Z_p / Z_q off by a factor."""
    rng = np.random.default_rng(seed)
    x, y = shift + rng.standard_normal(n), rng.standard_normal(n)
    return tuple(shift * draws - shift**2 / 2 + log_ratio for draws in (x, y))


@pytest.mark.parametrize("shift", [0.01, 0.3, 1.0, 2.0, 4.0, 8.0, 20.0])
def test_normalised_densities_raise_no_alarm(shift):
    for seed in range(60):
        at_p, at_q = shifted_normals(shift, 0.0, seed)
        for sides in ((at_p, at_q), (at_p, None), (None, at_q)):
            assert compared_integrals(*sides).verdict == "equal", (seed, sides)


@pytest.mark.parametrize("shift", [0.01, 0.3, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("factor", [0.37, 0.8, 1.3, 1e9])
def test_a_missing_factor_is_found_and_measured(shift, factor):
    errors = []
    for seed in range(40):
        found = compared_integrals(*shifted_normals(shift, math.log(factor), seed))
        assert found.verdict == "unequal" or (shift > 1 and abs(math.log(factor)) < 0.5)
        errors.append((found.ratio - factor) / found.error)
    assert abs(np.mean(errors)) < 0.6
    assert 0.6 < np.std(errors) < 1.4


def test_densities_that_never_meet_say_nothing():
    found = compared_integrals(np.full(N, np.inf), np.full(N, -np.inf))
    assert (math.isnan(found.ratio), found.error, found.verdict) == (True, math.inf, "equal")
    found = compared_integrals(*shifted_normals(40.0, 1.0, 1))
    assert (math.isnan(found.ratio), found.error, found.verdict) == (True, math.inf, "equal")
    assert compared_integrals(None, None).verdict == "equal"
    assert compared_integrals(np.empty(0), np.empty(0)).verdict == "equal"


def test_densities_that_never_meet_may_still_contradict_themselves():
    found = compared_integrals(np.full(N, np.inf), np.full(N, 1.0))  # p is e times q where q is, and elsewhere too
    assert (found.ratio, found.error, found.verdict) == (pytest.approx(math.e), math.inf, "unequal")
    found = compared_integrals(np.full(N, -1.0), np.full(N, -np.inf))
    assert (found.ratio, found.error, found.verdict) == (pytest.approx(1 / math.e), math.inf, "unequal")


def test_supports_that_differ_are_no_fault_with_draws_of_both():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0, 2, N)  # P uniform on [0, 2], Q on [0, 1]
        at_p = np.where(x < 1, math.log(0.5), np.inf)
        found = compared_integrals(at_p, np.full(N, math.log(0.5)))
        assert found.verdict == "equal"
        assert abs(found.ratio - 1) < 5 * found.error


def test_draws_of_one_law_prove_an_excess_and_mention_a_lack():
    at_p, at_q = shifted_normals(0.3, math.log(0.37), 1)
    assert compared_integrals(at_p, None).verdict == "unequal"
    assert abs(compared_integrals(at_p, None).ratio - 0.37) < 0.02
    assert compared_integrals(None, at_q).verdict == "out of reach"
    assert abs(compared_integrals(None, at_q).ratio - 0.37) < 0.02
    assert compared_integrals(None, np.full(N, -np.inf)).ratio == 0.0
    assert compared_integrals(np.full(N, np.inf), None).verdict == "out of reach"
    assert compared_integrals(None, np.full(N, 1e4)).verdict == "unequal"


def test_the_warnings_say_what_was_seen_and_what_to_do():
    at_p, at_q = shifted_normals(0.3, math.log(0.37), 1)
    with pytest.warns(SamplingWarning, match=r"log densities must be normalised: the integral of mine over that of "
                                             r"yours is 0\.3\d* \+- 0\.00\d, not 1.*Subtract"):  # fmt: skip
        warned_of_integrals(at_p, at_q, "mine", "yours")
    with pytest.warns(SamplingWarning, match=r"draws of q alone give the integral of p over that of q as 0\.3.*or p "
                                             r"has mass where q has none"):  # fmt: skip
        warned_of_integrals(None, at_q)
    with pytest.warns(SamplingWarning, match="draws of p alone give .*or q has mass where p has none"):
        warned_of_integrals(shifted_normals(0.3, 1.0, 1)[0], None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert warned_of_integrals(*shifted_normals(0.3, 0.0, 1)).verdict == "equal"
