"""Every conversion, calibrator, curve and game takes an Estimate wherever it takes a number."""

import math

import numpy as np
import pytest

import fastpriv as fp
from fastpriv import Estimate, conversions
from fastpriv.base.errors import DomainError
from fastpriv.base.monotone import UNITS, monotone, weakest
from fastpriv.conversions.vocabulary import PARAMETERS
from fastpriv.errors import ShapeError
from sizes import few_first

LN2 = math.log(2.0)
PRIOR = fp.Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
NOT_MONOTONE = {  # a smaller or larger number is not the safe one throughout; or the number is one of many, by design
    "dp_epsilon_from_rdp": {"order"}, "dp_delta_from_rdp": {"order"}, "dp_epsilon_from_rdp_curve": {"orders"},
    "dp_delta_from_rdp_curve": {"orders"}, "ldp_from_mbp": {"pi_min"},
    "ldp_from_mbp_sides": {"pi_min"}, "robustness_from_mbp": {"pi_min"},
    "dp_delta_from_mbp": {"pi_min"}, "dp_epsilon_from_mbp": {"pi_min"}, "total_variation_from_mbp": {"pi_min"},
    "kl_from_mbp": {"pi_min"}, "rdp_from_mbp": {"pi_min"},
}
CURVES = {"ci_lmip_from_dp_curve", "kl_from_dp_curve", "cd_lmip_from_lip_curve", "cd_lmip_from_hockey_sticks"}
INSIDE = {  # a number inside the range of each parameter
    "order": 2.0, "orders": [2.0, 3.0], "inputs": 4.0, "trials": 50.0, "group": 2.0, "pi_min": 0.2,
    "c1": 0.4, "separation": 0.7,
}


def estimate(value, lower, upper, unit="1", kind="certified", confidence=None):
    return Estimate(value, lower, upper, kind=kind, unit=unit, method="given", confidence=confidence)


def unit_of(name):
    return "nats" if UNITS[name] == "information" else UNITS[name]


def numeric():
    """The conversions, each with the function that takes estimates and the names of its parameters of numbers."""
    for row in conversions.CONVERSIONS:
        if row.function not in CURVES:
            yield row, row.call, [name for name in row.parameters if name in PARAMETERS]


def directions(row):
    """The parameters of a formula that may be estimates."""
    return f"{row.rising} {row.falling} {row.widening}".split()


def test_every_number_of_every_conversion_has_a_direction():
    for row, _, names in numeric():
        known = set(directions(row)) & set(names)
        not_monotone = NOT_MONOTONE.get(row.function, set()) & set(names)
        if (row.function, row.form) == ("dp_epsilon_from_rdp", "as_published"):
            not_monotone = set()
        assert known | not_monotone == set(names), row.function
        assert not known & not_monotone, row.function


def arguments_of(name, names, rng):
    """Random numbers in range, of shape (50,), or a curve of two points."""
    drawn = {
        key: np.clip(rng.uniform(0.0, 1.0, 50) ** rng.integers(1, 6), 1e-9, 0.49 if key == "pi_min" else 0.65)
        for key in names
    }
    for key in {"epsilon", "xi", "rho", "separation", "renyi", "target_epsilon", "mu"} & set(names):
        drawn[key] = 10 ** rng.uniform(-3, 0.9, 50)
    for key in {"inputs", "trials", "group", "order"} & set(names):
        drawn[key] = rng.integers(2, 9, 50).astype(float)
    if name.endswith("_rdp_curve"):
        drawn["orders"] = np.array([2.0, 5.0])
        drawn["renyi"] = np.sort(rng.uniform(0, 2, (50, 2)), axis=1)
    return drawn


@pytest.mark.parametrize("seed", few_first(range(3), 1))
@pytest.mark.slow
def test_the_directions_are_those_of_the_formulas(seed):
    """Numbers within the bracket have their answers within the bracket of the answer."""
    for row, function, names in numeric():
        rng = np.random.default_rng([seed, len(row.function)])
        drawn = arguments_of(row.function, names, rng)
        if (row.function, row.form) == ("robustness_from_mbp", "as_published"):
            drawn["xi"] = np.minimum(drawn["xi"], 0.8)
        for name in directions(row):
            low = drawn[name]
            whole = name in ("inputs", "trials", "group", "order")
            wider = np.where(whole, rng.integers(0, 4, np.shape(low)), low * rng.uniform(0, 0.2, np.shape(low)))
            high = low + wider
            if name == "pi_min":
                high = np.minimum(high, 0.5)
            middle = low + (high - low) * rng.choice([0.0, 0.5, 1.0], np.shape(low))
            middle = np.round(middle) if whole else middle
            given = estimate(middle, low, high, unit_of(name))
            found = function(**{**drawn, name: given})
            for inside in (low, middle, high):
                answer = function(**{**drawn, name: inside})
                assert np.all(found.lower <= answer.value * (1 + 1e-12)), (row.function, name)
                assert np.all(answer.value <= found.upper * (1 + 1e-12) + 1e-300), (row.function, name)
            np.testing.assert_array_equal(found.value, function(**{**drawn, name: middle}).value)
            assert found.kind == "certified", row.function


def test_a_statistical_epsilon_in_bits_makes_a_statistical_delta():
    seen = estimate(1.0 / LN2, 0.9 / LN2, 1.2 / LN2, "bits", "statistical", 0.95)
    found = conversions.abp_from_mbp(seen)
    assert (found.kind, found.confidence, found.unit) == ("statistical", 0.95, "1")
    assert found.lower == pytest.approx(conversions.abp_from_mbp(0.9).lower, rel=1e-12)
    assert found.upper == pytest.approx(conversions.abp_from_mbp(1.2).upper, rel=1e-12)
    assert found.value == pytest.approx(conversions.abp_from_mbp(1.0).value, rel=1e-12)
    assert found.method.endswith("over the bracket of xi")


def test_kinds_and_confidences_are_combined():
    kinds = {
        "exact": estimate(1.0, 1.0, 1.0, "nats", "exact"), "certified": estimate(1.0, 0.9, 1.1, "nats"),
        "statistical": estimate(1.0, 0.9, 1.1, "nats", "statistical", 0.95),
        "heuristic": estimate(1.0, 0.9, 1.1, "nats", "heuristic"),
    }
    for kind, given in kinds.items():
        assert conversions.dp_delta_from_ldp(given, 0.5).kind == kind
    delta = estimate(0.1, 0.05, 0.2, "probability", "statistical", 0.9)
    found = conversions.dp_delta_from_dp(kinds["statistical"], delta, 0.5)
    assert (found.kind, round(found.confidence, 12)) == ("statistical", 0.85)
    assert conversions.dp_delta_from_dp(kinds["heuristic"], delta, 0.5).kind == "heuristic"
    orders, renyi = [2.0, 3.0, 4.0], estimate(*(np.array([1.0, 1.5, 2.0]) + x for x in (0, -0.1, 0.1)), "nats",
                                              "statistical", 0.99)
    curve = conversions.dp_epsilon_from_rdp_curve(renyi, orders, 1e-6)
    assert round(curve.confidence, 12) == 0.97  # all three orders have to hold
    assert weakest(kinds["exact"], kinds["certified"]) == ("certified", None)


def test_arrays_broadcast():
    mu = estimate(np.array([0.1, 0.2]), np.array([0.05, 0.1]), np.array([0.15, 0.3]), "nats")
    found = conversions.dp_delta_from_ci_lmip(mu, np.array([[0.0], [1.0], [2.0]]))
    assert found.shape == (3, 2)
    np.testing.assert_array_equal(found.upper, conversions.dp_delta_from_ci_lmip(mu.upper, [[0.0], [1.0], [2.0]]).upper)
    with pytest.raises(ShapeError, match="epsilon must be of a shape"):
        conversions.dp_delta_from_ci_lmip(mu, [0.0, 1.0, 2.0])


SIGMA = estimate(20.0, 18.0, 25.0)
LEVEL = estimate(0.5, 0.4, 0.7, "nats")


def test_a_mechanism_is_calibrated_for_the_worst_of_the_brackets():
    delta = estimate(1e-5, 1e-6, 1e-4, "probability")
    made = fp.GaussianMechanism.calibrated(estimate(1.0, 0.9, 1.1, "nats"), delta, 1.0)
    assert made.sigma == fp.GaussianMechanism.calibrated(0.9, 1e-6, 1.0).sigma
    logs = fp.GaussianMechanism.calibrated_from_log_delta(1.0, delta, estimate(1.0, 0.5, 2.0))
    worst = fp.GaussianMechanism.calibrated_from_log_delta(1.0, delta.to("log probability").lower, 2.0)
    assert (logs.sigma, logs.sensitivity) == (worst.sigma, 2.0)


def test_capacities_keep_what_else_they_say():
    found = fp.awgn_capacity(3, 2.0, SIGMA, unit="bits")
    at = fp.awgn_capacity(3, 2.0, 20.0, unit="bits")
    assert isinstance(found, fp.capacity.AwgnCapacity)
    assert (found.slope, found.value, found.unit) == (at.slope, at.value, "bits")
    game = fp.capacity.gaussian_game(2, estimate(4.0, 3.0, 5.0), 1.0)
    assert (game.signal, game.noise) == (2.0, 0.5)


def test_an_interval_of_leakage_widens_with_what_is_not_known():
    c1, c2 = estimate(0.3, 0.25, 0.35), estimate(0.5, 0.4, 0.6)
    found = conversions.abp_from_c1(c1, c2, estimate(0.2, 0.1, 0.3, "probability"))
    assert (round(found.lower, 12), found.value, round(found.upper, 12)) == (0.07, 0.3, 0.53)


def test_samples_of_a_curve_pass_their_kind_on():
    epsilon, delta = np.linspace(0.0, 2.0, 5), np.array([0.2, 0.1, 0.05, 0.01, 0.0])
    seen = Estimate(delta, 0.9 * delta, 1.1 * delta, kind="statistical", unit="probability", method="seen",
                    confidence=0.99)
    found = conversions.ci_lmip_from_dp_curve((epsilon, seen))
    assert (found.kind, round(found.confidence, 12)) == ("statistical", 0.95)
    proved = Estimate(delta, delta, delta, kind="certified", unit="probability", method="seen")
    assert conversions.ci_lmip_from_dp_curve((epsilon, proved)).kind == "certified"


def test_convert_carries_estimates_through_a_chain():
    level = estimate(1.0, 0.9, 1.1, "nats", "statistical", 0.9)
    found = conversions.convert("abp", "lip", epsilon=level, pi_min=0.4)
    assert len(found.steps) == 3
    assert (found.estimate.kind, found.estimate.confidence) == ("statistical", 0.9)
    ends = [conversions.convert("abp", "lip", epsilon=e, pi_min=0.4).estimate for e in (0.9, 1.1)]
    assert found.estimate.lower == pytest.approx(ends[0].lower, rel=1e-12)
    assert found.guarantee == pytest.approx(ends[1].upper, rel=1e-12)
    assert "mbp_from_lip(epsilon=[0.9, 1.1])" in found.summary()
    assert found.to_dict()["steps"][0]["arguments"]["epsilon"]["confidence"] == 0.9
    bits = conversions.convert("dp", "ci_lmip", mu=estimate(0.2 / LN2, 0.1, 0.3, "bits"), epsilon=1.0)
    assert bits.estimate.value == pytest.approx(conversions.dp_delta_from_ci_lmip(0.2, 1.0).value, rel=1e-14)


def test_a_bracket_reaches_no_farther_than_the_range():
    near_half = estimate(0.5, 0.4, 0.5000001, "probability")
    assert conversions.mbp_from_ldp(1.0, near_half).lower == conversions.mbp_from_ldp(1.0, 0.5).lower
    assert conversions.total_variation_from_dp(1.0, estimate(1.0, 0.5, 1.1, "probability")).upper == 1.0


def test_what_is_refused_says_why():
    share = estimate(0.1, 0.1, 0.1, "probability")
    with pytest.raises(DomainError, match=r"mu must be an amount of information, .* with the unit 'probability'\."):
        conversions.dp_delta_from_ci_lmip(share, 1.0)
    with pytest.raises(DomainError, match="delta must be a probability or its logarithm; got an Estimate with"):
        conversions.dp_epsilon_from_ci_lmip(0.1, LEVEL)
    with pytest.raises(DomainError, match="sigma must be a number without a unit; got an Estimate with the unit"):
        fp.mutual_information(PRIOR, LEVEL)
    with pytest.raises(DomainError, match="pi_min must be a number, since neither end of a bracket is known to be"):
        conversions.ldp_from_mbp(1.0, share)
    with pytest.raises(DomainError, match=r"sigma must be positive .* got an Estimate\. No bounds are carried through"):
        fp.GaussianMechanism(SIGMA)
    with pytest.raises(DomainError, match=r"^dimension must be a number, since .* got an Estimate\. Pass its value"):
        fp.awgn_capacity(SIGMA, 1.0)
    with pytest.raises(DomainError, match="unit must be one of nats, bits"):
        conversions.dp_delta_from_ci_lmip(LEVEL, 1.0, unit="dits")
    with pytest.raises(TypeError, match="missing a required argument"):
        conversions.dp_delta_from_ci_lmip(LEVEL)
    with pytest.raises(DomainError, match=r"directions must be of parameters with a unit; got 'size'\. Add it"):
        monotone(rising="size")(lambda size: size)
