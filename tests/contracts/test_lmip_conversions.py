"""The conversions of mutual-information privacy: bounds, units, inverses, the published figure, every error."""

import math

import numpy as np
import pytest
from mpmath import mpf

import fastpriv as fp
from fastpriv import DomainError, GaussianMechanism, Pmf, notions
from fastpriv import conversions as c
from fastpriv.errors import ShapeError
from oracles import lmip_conversions as oracle
from sizes import few_or_all

POINTS = np.linspace(-1.0, 1.0, 21)
FIGURE_3 = Pmf(POINTS, np.exp(-2 * POINTS**2) / np.exp(-2 * POINTS**2).sum())  # N(0, 1/4) at 21 points, normalised


def holds(estimate, truth):
    return mpf(float(estimate.lower)) <= truth <= mpf(float(estimate.upper))


@few_or_all("n", 8, 40)
def test_bounds_contain_the_truth(n):
    rng = np.random.default_rng(31)
    for mu, epsilon, atom in zip(0.69 * rng.random(n), rng.uniform(0, 4, n), rng.random(n), strict=True):
        row = float(mu), float(epsilon)
        assert holds(c.dp_delta_from_ci_lmip(*row), oracle.ldp(*row).delta), row
        assert holds(c.lip_delta_from_pointwise_lmip(*row), oracle.pointwise(*row).delta), row
        assert holds(c.lip_delta_from_cd_lmip(*row, atom), oracle.lip(*row, float(atom)).delta), (row, atom)
        assert holds(c.dp_delta_from_ci_lmip(mu, math.inf), oracle.ldp_end(row[0])), mu
        assert holds(c.lip_delta_from_cd_lmip(mu, math.inf, atom), oracle.lip_end(row[0], float(atom))), (mu, atom)


def test_units_kinds_and_shapes():
    bits = c.dp_delta_from_ci_lmip([[0.1], [0.2]], [0.5, 1.0, 2.0], unit="bits")
    nats = c.dp_delta_from_ci_lmip(np.array([[0.1], [0.2]]) * math.log(2), [0.5, 1.0, 2.0])
    np.testing.assert_allclose(bits.value, nats.value, rtol=1e-14)
    assert bits.shape == (2, 3)
    assert (bits.kind, bits.unit) == ("exact", "probability")
    assert c.lip_delta_from_cd_lmip(0.1, [0.5, 1.0], [[0.1], [0.2], [0.3]]).shape == (3, 2)


def test_the_ends():
    zero = c.dp_delta_from_ci_lmip(0.0, 1.0)
    assert (zero.lower, zero.value, zero.upper) == (0.0, 0.0, 0.0)
    assert c.dp_delta_from_ci_lmip([1.0, 2.0], 5.0).upper.tolist() == [1.0, 1.0]
    assert c.lip_delta_from_cd_lmip(0.3, 1.0, 0.0).upper == 1.0  # no atoms, no guarantee
    assert c.lip_delta_from_pointwise_lmip(0.1, math.inf).value == pytest.approx(-math.expm1(-0.1), rel=1e-14)
    assert c.lip_delta_from_pointwise_lmip(0.1, math.inf).value == c.lip_delta_from_pointwise_lmip(0.1, math.inf).value


def test_nothing_to_leak_is_exactly_zero():
    for found in (
        c.dp_delta_from_ci_lmip(0.0, [0.0, 1.0]), c.lip_delta_from_pointwise_lmip(0.0, [0.0, 1.0]),
        c.lip_delta_from_cd_lmip(0.0, 0.0, [0.0, 0.5, 1.0]), c.lip_delta_from_cd_lmip([0.1, 5.0], 0.0, 1.0),
        c.lip_delta_from_cd_lmip([0.0, 0.1], math.inf, 1.0), c.lip_delta_from_cd_lmip(0.1, 1.0, Pmf([3.0], [1.0])),
    ):
        assert np.all(found.upper == 0.0), found


def test_probabilities_that_miss_one_go_into_the_bounds():
    whole = c.lip_delta_from_cd_lmip(0.1, 1.0, Pmf([0.0, 1.0], [0.25, 0.75]))
    for gap in (9e-10, -9e-10):
        short = c.lip_delta_from_cd_lmip(0.1, 1.0, Pmf([0.0, 1.0], [0.25, 0.75 + gap]))
        truth = oracle.lip(0.1, 1.0, 0.25 / (1.0 + gap)).delta
        assert holds(short, truth), (gap, short)
        assert 1e-11 < short.width < 1e-8
    assert whole.width < 1e-13


def test_published_and_pointwise_are_one_number_with_two_meanings():
    published = c.lip_delta_from_cd_lmip(0.1, 1.0, form="as_published")
    valid = c.lip_delta_from_pointwise_lmip(0.1, 1.0)
    assert published.value == valid.value
    assert "FALSE" in published.method
    assert "FALSE" not in valid.method


def test_epsilon_is_the_inverse():
    rng = np.random.default_rng(32)
    mu = math.log(2) * np.where(rng.random(300) < 0.5, rng.random(300), 10 ** rng.uniform(-12, 0, 300))
    delta = np.clip(c.dp_delta_from_ci_lmip(mu, rng.uniform(0, 1.5, 300)).value, 0, 1)
    found = c.dp_epsilon_from_ci_lmip(mu, delta)
    assert np.isfinite(found.upper).mean() > 0.9
    finite = np.isfinite(found.upper)
    assert (c.dp_delta_from_ci_lmip(mu, found.upper).value[finite] <= delta[finite]).all()
    back = c.dp_delta_from_ci_lmip(mu, found.lower)
    assert (back.value >= delta * (1 - 1e-15))[found.lower > 0].all()
    assert c.dp_epsilon_from_ci_lmip(0.1, [0.1, 1.0]).value.tolist() == [math.inf, 0.0]
    assert c.dp_epsilon_from_ci_lmip(0.0, 0.0).upper == 0.0
    assert c.dp_epsilon_from_ci_lmip(1.5, [0.99, 1.0]).upper.tolist() == [math.inf, 0.0]


def test_figure_3_breaks_the_published_bound_and_no_other():
    for mu, sigma, crossing in ((0.1, 1.16618639010826510, 1.21546), (0.01, 3.80621415468606556, 0.378242)):
        mechanism = GaussianMechanism(sigma)
        assert notions.cd_lmip(FIGURE_3, mechanism).to("bits").value == pytest.approx(mu, rel=1e-12)
        worst = notions.pointwise_lmip(FIGURE_3, mechanism)
        epsilon = np.array([0.01, 0.1, 0.3, 1.0, 2.0])
        truth = notions.lip_delta(FIGURE_3, mechanism, epsilon)
        assert (truth.upper <= c.lip_delta_from_cd_lmip(mu, epsilon, FIGURE_3, unit="bits").lower).all()
        assert (truth.upper <= c.lip_delta_from_pointwise_lmip(worst.upper, epsilon).lower).all()

        def excess(e, mechanism=mechanism, mu=mu):
            published = c.lip_delta_from_cd_lmip(mu, e, unit="bits", form="as_published").value
            return notions.lip_delta(FIGURE_3, mechanism, e).value - published

        assert excess(crossing * (1 - 1e-5)) > 0 > excess(crossing * (1 + 1e-5))
    mechanism = GaussianMechanism(1.16618639010826510)
    assert notions.lip_delta(FIGURE_3, mechanism, 0.1).value == pytest.approx(0.2918000203034989, rel=1e-14)
    printed = c.lip_delta_from_cd_lmip(0.1, 0.1, unit="bits", form="as_published")
    assert printed.value == pytest.approx(0.15246, abs=5e-6)


def test_pointwise_lmip_is_the_largest_divergence():
    mechanism = GaussianMechanism(1.16618639010826510)
    found = notions.pointwise_lmip(FIGURE_3, mechanism)
    law = FIGURE_3.through_gaussian(mechanism.sigma)
    each = [fp.kl_divergence(fp.GaussianMixture.single(x, mechanism.sigma), law) for x in FIGURE_3.values]
    assert found.value == max(e.value for e in each)
    assert found.lower <= max(e.lower for e in each) <= max(e.upper for e in each) <= found.upper
    assert found.to("bits").value == pytest.approx(0.468, abs=5e-4)
    mean = sum(p * e.value for p, e in zip(FIGURE_3.probabilities, each, strict=True))
    assert mean == pytest.approx(notions.cd_lmip(FIGURE_3, mechanism).value, rel=1e-11)
    assert found.cost["divergences"] < 21
    assert notions.pointwise_lmip(Pmf([3.0], [1.0]), mechanism).value == 0.0
    skew = Pmf([0.0, 1.0, 50.0], [0.98, 0.019, 0.001])
    narrow = notions.pointwise_lmip(skew, GaussianMechanism(0.01), certified=True)
    assert narrow.value == pytest.approx(-math.log(0.001), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: c.dp_delta_from_ci_lmip(-0.1, 1.0), DomainError, "mu must be at least 0; got -0.1"),
        (lambda: c.dp_delta_from_ci_lmip(0.1, [1.0, math.nan]), DomainError, r"epsilon must be at least 0; got nan"),
        (lambda: c.dp_delta_from_ci_lmip(0.1, 1.0, unit="dits"), DomainError, "unit must be one of nats, bits"),
        (lambda: c.dp_delta_from_ci_lmip(math.nan, math.inf), DomainError, "mu must be at least 0; got nan"),
        (lambda: c.dp_epsilon_from_ci_lmip(0.1, 1.5), DomainError, "delta must be between 0 and 1; got 1.5"),
        (lambda: c.dp_epsilon_from_ci_lmip([0.1] * 2, [0.1] * 3), ShapeError, "delta must be of a shape that"),
        (lambda: c.dp_delta_from_ci_lmip([0.1] * 2, [1.0] * 3), ShapeError, "epsilon must be of a shape"),
        (lambda: c.lip_delta_from_cd_lmip(0.1, 1.0, 1.5), DomainError, "pi_min must be between 0 and 1; got 1.5"),
        (
            lambda: c.lip_delta_from_cd_lmip([0.1] * 2, 1.0, [0.1] * 3), ShapeError,
            "pi_min must be of a shape that broadcasts with mu and epsilon",
        ),
        (
            lambda: c.lip_delta_from_cd_lmip([0.1] * 2, math.inf, [0.1] * 3), ShapeError,
            "pi_min must be of a shape that broadcasts with mu and epsilon; got",
        ),
        (lambda: c.lip_delta_from_cd_lmip(-1.0, math.inf, 0.5), DomainError, "mu must be at least 0; got -1.0"),
        (lambda: c.lip_delta_from_pointwise_lmip(-1.0, math.inf), DomainError, "mu must be at least 0; got -1.0"),
        (lambda: c.lip_delta_from_pointwise_lmip(-1.0, 1.0), DomainError, "mu must be at least 0; got -1.0"),
        (lambda: notions.pointwise_lmip(3, GaussianMechanism(1.0)), DomainError, "prior must be a Pmf; got 3"),
        (lambda: notions.pointwise_lmip(FIGURE_3, 3), DomainError,
         "mechanism must be a channel, rows of probabilities or a GaussianMechanism; got 3"),
    ],
)
def test_every_error(call, error, text):
    with pytest.raises(error, match=text):
        call()
