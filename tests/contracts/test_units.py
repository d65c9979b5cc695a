"""Nats in and nats out, in every room; bits on request."""

import math

import numpy as np
import pytest

import fastpriv as fp
from fastpriv import conversions, notions

LN2 = math.log(2.0)
PRIOR = fp.Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])


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


def test_an_assessment_is_in_nats_and_its_table_in_bits():
    report = fp.assess([31, 40, 40, 58], sigma=[10, 100], epsilon=[1])
    found = report["mutual_information"]
    assert found.unit == "nats"
    assert set(report.columns()["unit"]) <= {"nats", "probability", "log probability", "1"}
    assert "of 1.5 bits" in report.summary()
    shown = [line.split() for line in report.summary().splitlines() if line.strip().startswith(("10 ", "100 "))]
    assert [float(row[2]) for row in shown] == pytest.approx((found.upper / LN2).tolist(), rel=0.006)
