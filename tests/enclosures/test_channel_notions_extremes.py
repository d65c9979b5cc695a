"""Notions of channels where formulas lose their footing: huge levels, singles, rows made from
parameters that are nearly equal."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import exp, mp, mpf, workdps

from fastpriv import Channel, RandomizedResponse, notions
from fastpriv.mechanisms import ExponentialMechanism, GeometricMechanism, UnaryEncoding
from fastpriv.notions.discrete.channel_with_prior import ChannelWithPrior
from fastpriv.notions.discrete.dense_quantities import RowBlocks, column_brackets
from oracles import channel_notions as truth

ROWS = np.array([[0.75, 0.125, 0.125, 0.0], [0.0, 0.0, 0.25, 0.75], [0.25, 0.25, 0.5, 0.0]])
PRIOR = np.array([0.5, 0.375, 0.125])
TINY = np.array([[1e-300, 1.0], [1.0, 1e-300]])


WRITTEN = [
    Channel(ROWS), Channel(ROWS.astype(np.float32)), Channel(np.log(np.maximum(ROWS, 1e-300)), log=True),
    Channel(np.eye(3)), Channel(np.tile([0.25, 0.5, 0.25], (3, 1))),
]


def geometric(n, epsilon):
    a = exp(-mpf(epsilon))
    return [[a ** abs(d - w) / (1 + a) * (1 if w in (0, n - 1) else 1 - a) for w in range(n)] for d in range(n)]


@pytest.mark.parametrize("channel", WRITTEN[:4])
def test_singles_are_read_as_doubles(channel):
    logs, plain = channel._rows(0, 3, True), channel._rows(0, 3, False)
    with np.errstate(divide="ignore"):
        other = np.exp(logs.astype(np.float64)) if channel.log else np.log(plain.astype(np.float64))
    np.testing.assert_array_equal(plain if channel.log else logs, other)


def test_curves_at_huge_levels():
    for channel in (ROWS, np.eye(3), RandomizedResponse(3, 1000.0), UnaryEncoding(3, p=0.75, q=0.0)):
        rows = channel if isinstance(channel, np.ndarray) else channel.matrix()
        prior = None if channel is not ROWS else PRIOR
        weights = PRIOR if channel is ROWS else np.full(3, 1 / 3)
        for level in (700.0, 1e4, 1e300, math.inf):
            q = weights @ rows
            ldp = max(row[other == 0].sum() for row in rows for other in rows) if level > 1000 else None
            lip = max(q[row == 0].sum() for row in rows) if level > 1000 else None
            for found, want in ((notions.ldp_delta(None, channel, level), ldp),
                                (notions.lip_delta(prior, channel, level), lip)):
                assert found.lower <= found.value <= found.upper
                if want is not None and not isinstance(channel, RandomizedResponse):
                    assert found.lower <= want <= found.upper
                    assert found.width < 2e-13, (channel, level, found)
    assert notions.ldp_delta(None, RandomizedResponse(3, 1000.0), math.inf).upper == 0.0
    faint = notions.ldp_delta(None, TINY, 690.5)
    assert faint.lower <= 1 - exp(mpf(690.5)) * mpf(1e-300) <= faint.upper
    assert faint.width < 1e-12
    assert notions.ldp_delta(None, [[1e-310, 1.0], [1.0, 1e-310]], 710.0).lower == 0.0  # log ratio 713.8


def test_curves_of_rows_that_are_made_and_nearly_equal():
    channel, prior = GeometricMechanism(3, 1e-6), [0.25, 0.75, 0.0]
    with workdps(60):
        rows = geometric(3, 1e-6)
        for level in (0.0, 1e-12, 5e-7, 1e-6, 1.5e-6):
            for chosen, law, support in ((rows[:2], prior, True), (rows, [0.25, 0.5, 0.25], True), (rows, None, False)):
                found = notions.ldp_delta(law, channel, level, on_support=support)
                want = truth.ldp_delta(chosen, level)
                assert found.lower <= want <= found.upper, (level, found, want)
                assert found.width < 1e-13
    logs = np.log(channel.matrix())
    with mp.workdps(60):
        cells = [[exp(mpf(x)) for x in row] for row in logs]
        found = notions.ldp_delta(None, Channel(logs, log=True), 5e-7)
        assert found.lower <= truth.ldp_delta(cells, 5e-7) <= found.upper


def test_a_belief_that_misses_one_by_rounding():
    belief = np.array([1 - 2.0**-53])
    found = notions.abp([1.0], [[0.25, 0.25, 0.5]], belief=belief).per_value
    assert found.lower[0] == 0.0
    assert found.upper[0] < 1e-14


@pytest.mark.parametrize("releases", [2, pytest.param(600_000, marks=pytest.mark.slow)])
def test_equal_logarithms_of_cells_that_are_computed_may_stand_for_different_cells(releases):
    """Scores that differ by 1e-17: the cells, next to 1 / releases, are the same doubles, and the truth is not 0."""
    scores = np.zeros((2, releases))
    scores[0, 0] = 1e-17
    epsilon = notions.ldp_epsilon(None, ExponentialMechanism(scores, 2.0, 1.0))
    assert epsilon.lower <= 1e-17 * (1 - 1 / releases) <= epsilon.upper < 1e-13


def test_rows_of_wide_exponential_mechanisms():
    """Three products are rounded relative to the log of the cell, however near 1 the largest cells are."""
    high, low = float.fromhex("0x1.009eeef9337acp+0"), float.fromhex("-0x1.095c5ccd68f1fp-13")
    epsilon, span = float.fromhex("0x1.002b45d344f8bp+10"), float.fromhex("0x1.00236955240c9p+0")
    exact = (Fraction(high) - Fraction(low)) * Fraction(epsilon) / Fraction(2 * span)
    rows = RowBlocks(ChannelWithPrior(ExponentialMechanism([[high, low], [low, high]], epsilon, span), None))
    for bracket in column_brackets(rows, ("ldp_epsilon", "ldp_on_support")).values():
        assert bracket.lower <= exact <= bracket.upper < exact * (1 + Fraction(1, 10**14))


def test_scores_that_differ_by_more_than_the_largest_double():
    logs = ExponentialMechanism([[1.5e308, -1.5e308]], 2.0, 1e308).log_matrix()
    assert abs(logs[0, 0] - logs[0, 1] - 3.0) < 1e-14


def test_pairs_of_rows_of_vast_randomized_responses():
    """The log of nearly 1 is the sum of two logs of k, and as wrong as these."""
    for bits in range(100, 1000, 9):
        k, epsilon = int(10 ** (bits / 1000) * 2**60) << (bits - 60), 3.7 + bits / 997
        (pair,) = RandomizedResponse(k, epsilon).dominating_pairs()
        others = -(math.exp(epsilon) + 1) / (k + math.exp(epsilon) - 1)
        assert abs(pair.log_p[2] - others) <= pair.log_error[2] < 1e-11


def test_extremes_of_many_secrets_of_which_one_has_nearly_all_of_the_prior():
    first = np.append(2.0**-40, 2.0**-30 * (1 + np.arange(11) / 16))
    prior = np.append(1 - 11 * 2.0**-40, np.full(11, 2.0**-40))
    got = Channel(np.stack([first, 1 - first], axis=1)).extreme_log_ratios(prior)
    with workdps(50):
        cells = [[mpf(x), 1 - mpf(x)] for x in first.tolist()]
        q = [sum(p * row[w] for p, row in zip(prior.tolist(), cells, strict=True)) for w in range(2)]
        logs = [mp.log(row[w] / q[w]) for row in cells for w in range(2)]
        for value, exact in ((got.xi_plus, max(logs)), (got.xi_minus, -min(logs))):
            assert abs(value - exact) <= value * got.rounding + got.error < 1e-12
