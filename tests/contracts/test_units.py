"""Nats in and nats out, in every room; bits on request."""

import importlib
import inspect
import math
import pkgutil

import numpy as np
import pytest

import fastpriv as fp
from fastpriv import calibration, conversions, notions

LN2 = math.log(2.0)
PRIOR = fp.Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])


def functions():
    """Every public function and class of the package, by module."""
    for found in pkgutil.walk_packages(fp.__path__, "fastpriv."):
        if ".kernels" in found.name or found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if inspect.isfunction(thing) and thing.__module__.startswith(found.name):
                yield f"{found.name}.{name}", thing


def test_the_unit_of_information_is_nats_unless_asked():
    named = 0
    for name, function in functions():
        parameters = inspect.signature(function).parameters
        if "unit" in parameters and parameters["unit"].default is not inspect.Parameter.empty:
            assert parameters["unit"].default == "nats", name
            assert parameters["unit"].kind is inspect.Parameter.KEYWORD_ONLY, name
            named += 1
    assert named > 40


def test_every_conversion_of_information_has_a_unit():
    """What takes or gives mutual information, a divergence or a leakage takes ``unit``."""
    amounts = {"mu", "kl", "leakage"}
    for row in conversions.CONVERSIONS:
        if amounts & {*row.parameters, row.result}:
            assert "unit" in row.parameters, row.function


def test_what_a_notion_gives_a_conversion_takes():
    """The capacity of a channel, handed on as a bare number, promises what the channel keeps."""
    rows = np.array([[0.9, 0.1], [0.1, 0.9]])
    capacity = notions.ci_lmip(rows)
    assert capacity.unit == "nats"
    found = conversions.dp_delta_from_ci_lmip(capacity.upper, [0.0, 1.0])
    truth = 0.8, 0.9 - math.e * 0.1
    assert (found.upper >= truth).all(), found
    assert found.value[0] == pytest.approx(0.8, rel=1e-9)  # and no more than it, where that is tight


# a function of an amount of information and of the unit; whether the answer is one too
SAME = [
    (lambda m, u: conversions.dp_delta_from_ci_lmip(m, [0.0, 1.0], unit=u), False),
    (lambda m, u: conversions.dp_epsilon_from_ci_lmip(m, 0.7, unit=u), False),
    (lambda m, u: conversions.dp_delta_from_ci_lmip(m, math.inf, unit=u), False),
    (lambda m, u: conversions.lip_delta_from_cd_lmip(m, 1.0, 0.25, unit=u), False),
    (lambda m, u: conversions.lip_delta_from_cd_lmip(m, 1.0, PRIOR, unit=u), False),
    (lambda m, u: conversions.lip_delta_from_cd_lmip(m, math.inf, 0.25, unit=u), False),
    (lambda m, u: conversions.lip_delta_from_pointwise_lmip(m, 1.0, unit=u), False),
    (lambda m, u: conversions.lip_delta_from_cd_lmip(m, 1.0, unit=u, form="as_published"), False),
    (lambda m, u: conversions.lip_delta_from_pointwise_lmip(m, math.inf, unit=u), False),
    (lambda m, u: conversions.dp_delta_from_mi_dp(m, 1.0, unit=u), False),
    (lambda m, u: conversions.dp_delta_from_mi_dp(m, unit=u, form="as_published"), False),
    (lambda m, u: conversions.total_variation_from_kl(m, unit=u), False),
    (lambda m, u: conversions.ci_lmip_from_kl(m, unit=u), True),
    (lambda m, u: conversions.ci_lmip_from_maximal_leakage(m, unit=u), True),
    (lambda m, u: conversions.cd_lmip_from_ci_lmip(m, unit=u), True),
    (lambda m, u: conversions.convert("dp", "ci_lmip", mu=m, epsilon=1.0, unit=u).estimate, False),
    (lambda m, u: calibration.sigma_from_cd_lmip(m, PRIOR, unit=u), False),
    (lambda m, u: calibration.sigma_from_pointwise_lmip(m, PRIOR, unit=u), False),
    (lambda m, u: calibration.sigma_from_ci_lmip(m, 2, 1.0, unit=u), False),
]


@pytest.mark.parametrize("number", range(len(SAME)))
def test_bits_are_nats_in_another_unit(number):
    function, amount = SAME[number]
    nats, bits = function(0.3, "nats"), function(0.3 / LN2, "bits")
    np.testing.assert_allclose(bits.value, nats.value / LN2 if amount else nats.value, rtol=1e-8)
    assert bits.unit == ("bits" if amount else nats.unit)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("ci_lmip_from_ldp", (1.0,)), ("mi_dp_from_ldp", (1.0,)), ("ci_lmip_from_dp", (1.0, 0.1)),
        ("cd_lmip_from_mbp", (1.0,)), ("pointwise_lmip_from_ldp", (1.0,)), ("kl_from_ldp", (1.0,)),
        ("kl_from_rdp", (0.3, 2.0)), ("kl_from_zcdp", (0.3,)), ("ci_lmip_from_mbp", (0.3,)),
        ("maximal_leakage_from_ldp", (1.0, 4)), ("min_entropy_leakage_from_ldp", (1.0, 0.4)),
    ],
)  # fmt: skip
def test_answers_in_bits(name, arguments):
    function = getattr(conversions, name)
    nats, bits = function(*arguments), function(*arguments, unit="bits")
    assert (nats.unit, bits.unit) == ("nats", "bits")
    assert bits.value == pytest.approx(nats.value / LN2, rel=1e-15)
    assert bits.lower <= nats.upper / LN2
    assert nats.lower / LN2 <= bits.upper


ROWS = [[0.9, 0.1], [0.3, 0.7]]
MIXTURES = fp.GaussianMixture([0.5, 0.5], [0.0, 1.0], 1.0), fp.GaussianMixture.single(0.3, 1.2)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (notions.cd_lmip, ([0.5, 0.5], ROWS)), (notions.cd_lmip, (PRIOR, fp.GaussianMechanism(20.0))),
        (notions.ci_lmip, (ROWS,)), (notions.pointwise_lmip, ([0.5, 0.5], ROWS)),
        (notions.min_entropy_leakage, (None, ROWS)), (notions.maximal_leakage, (None, ROWS)),
        (notions.renyi_leakage, (None, ROWS, 2.0)), (fp.kl_divergence, MIXTURES), (fp.jensen_shannon, MIXTURES),
        (fp.renyi_divergence, MIXTURES), (fp.entropy, MIXTURES[:1]), (fp.mutual_information, (PRIOR, 20.0)),
        (fp.label_information, MIXTURES[:1]), (fp.channel_capacity, (ROWS,)), (fp.bac_capacity, (0.1, 0.3)),
        (fp.binary_entropy, (0.1,)), (fp.awgn_capacity, (2, 1.0)), (fp.average_power_capacity, (2, 1.0)),
    ],
)  # fmt: skip
def test_notions_divergences_and_capacities_take_a_unit(function, arguments):
    answers = function(*arguments), function(*arguments, unit="bits")
    nats, bits = (getattr(found, "capacity", found) for found in answers)
    assert (nats.unit, bits.unit) == ("nats", "bits")
    assert bits.value == pytest.approx(nats.value / LN2, rel=1e-14)
    with pytest.raises(ValueError, match=r"unit must be one of nats, bits; got 'dits'"):
        function(*arguments, unit="dits")


def test_an_assessment_is_in_nats_and_its_table_in_bits():
    report = fp.assess([31, 40, 40, 58], sigma=[10, 100], epsilon=[1])
    found = report["mutual_information"]
    assert found.unit == "nats"
    assert set(report.columns()["unit"]) <= {"nats", "probability", "log probability", "1"}
    assert "bits of 1.5" in report.summary()
    shown = [line.split() for line in report.summary().splitlines() if line.strip().startswith(("10 ", "100 "))]
    assert [float(row[2]) for row in shown] == pytest.approx((found.upper / LN2).tolist(), rel=0.006)
