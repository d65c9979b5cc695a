"""The rows of the truth table of the peak-power capacity: [d, R, lower, upper, radii, probabilities].

R, radii and probabilities are hexadecimal doubles; lower and upper hold 34 digits and differ by the weight of the
covering normal law, which is 1e-35 or, where one sphere of a large dimension stands for many, larger.
"""

from __future__ import annotations

import math

from flint import arb, ctx

from oracles import awgn, awgn_start
from oracles.tables import array_to_text

__all__ = ["PATHS", "SINGLES", "awgn_capacity"]

# amplitude per root-dimension where one sphere is best
SINGLES = {
    1: (1e-6, 1e-3, 0.1, 0.5, 1.0, 1.6),
    2: (1e-6, 0.3, 1.0, 1.7),
    3: (1e-6, 1.0, 1.7),
    4: (1e-4, 1.0),
    5: (0.01, 1.5),
    8: (1e-6, 1.0, 1.8),
    10: (0.1, 1.0),
    16: (1e-5, 1.0),
    32: (1e-6, 0.5, 1.8),
    64: (1e-6, 1.0),
    128: (0.01, 1.8),
    1000: (1e-6, 1.0, 1.85, 2.0, 3.0),
    4000: (1e-6, 1.0, 2.5, 10.0),
    100_000: (1e-6, 1.0, 3.0, 10.0),
}
# R, followed upward from a small ball
PATHS = {
    1: (1.7, 2.0, 2.9, 2.95, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0),
    2: (2.5, 3.0, 4.0, 6.0, 8.0, 10.0, 14.142135623730951),
    3: (3.5, 6.0, 12.0),
    4: (4.0, 6.0, 10.0, 20.0),
    5: (5.0, 10.0, 20.0),
    8: (6.0, 10.0, 20.0, 28.284271247461902),
    10: (7.0, 15.0, 25.0),
    16: (8.0, 16.0, 24.0),
    32: (11.0, 16.0, 28.0),
}
DIRECT = {64: (16.0, 20.0, 30.0), 128: (23.0, 30.0)}
# one dimension: rounded starts where i is too flat for doubles to find the points; Newton's method makes them exact
LONG = {
    15.0: (
        [
            0, 1.5286, 3.0865, 4.6984, 6.3863, 8.1764, 10.1116, 12.2812,
        ],
        [
            0.04483, 0.09056, 0.09306, 0.09688, 0.10204, 0.10908, 0.11951, 0.13825, 0.20578,
        ],
    ),
    18.0: (
        [
            0.4131, 1.6181, 3.0453, 4.5397, 6.0879, 7.698, 9.3859, 11.1763, 13.1115, 15.2812,
        ],
        [
            0.04736, 0.06853, 0.07338, 0.07607, 0.07889, 0.08233, 0.08674, 0.09272, 0.10158, 0.1175, 0.17489,
        ],
    ),
    20.0: (
        [
            0, 0.8117, 2.1667, 3.5874, 5.0442, 6.5417, 8.0892, 9.6986, 11.3861, 13.1764, 15.1116, 17.2812,
        ],
        [
            0.00962, 0.05724, 0.0637, 0.06542, 0.06711, 0.06915, 0.07168, 0.07482, 0.07884, 0.08428,
            0.09234, 0.10682, 0.15899,
        ],
    ),
    22.0: (
        [
            0.3313, 1.4642, 2.8012, 4.183, 5.598, 7.0495, 8.544, 10.09, 11.6989, 13.3862, 15.1764, 17.1116,
            19.2812,
        ],
        [
            0.03446, 0.054, 0.05687, 0.05828, 0.0597, 0.06135, 0.0633, 0.06566, 0.06856, 0.07226, 0.07725,
            0.08464, 0.09791, 0.14573,
        ],
    ),
    25.0: (
        [
            0.6276, 1.8903, 3.1731, 4.4829, 5.8231, 7.1961, 8.6045, 10.0524, 11.5452, 13.0905, 14.699,
            16.3863, 18.1764, 20.1116, 22.2812,
        ],
        [
            0.04655, 0.04709, 0.048, 0.04908, 0.05025, 0.05151, 0.05288, 0.05443, 0.05623, 0.05835, 0.06094,
            0.06423, 0.06867, 0.07523, 0.08703, 0.12954,
        ],
    ),
}
LIMITS = {1: 1.665925641, 2: 2.453389958, 8: 5.157672496, 64: 14.848587712}  # the first one, just below and above it
SECOND_LIMIT = 2.907464072  # one dimension, three points to four


def row(dimension, amplitude, radii, probabilities, weight=awgn.COVER):
    spacing = max(0.25, float(amplitude) / 64)
    excess, where = awgn.certificate(dimension, amplitude, radii, probabilities, weight, spacing)
    value = awgn.information(dimension, radii, probabilities)
    if excess > 1e-24 * float(value):
        raise ArithmeticError(f"i exceeds C by {excess:.3g} at r = {where} (d={dimension}, R={amplitude})")
    covered = awgn.cover(dimension, 0, weight) < value
    ctx.prec = awgn.BITS
    upper = value * (1 + arb("1e-24")) + (arb(weight) if covered else 0)
    numbers = [x.str(34, radius=False) for x in (value * (1 - arb("1e-28")), upper)]
    law = [array_to_text([float(x) for x in part]) for part in (radii, probabilities)]
    return [dimension, float(amplitude).hex(), *numbers, *law]


def refined(dimension, amplitude, radii, probabilities, **options):
    return awgn.refined_capacity(dimension, amplitude, [*map(float, radii[:-1]), amplitude], probabilities, **options)


def single(dimension, amplitude):
    for weight in (awgn.COVER, "1e-30", "1e-26", "1e-22", "1e-18", "1e-15", "1e-13", "1e-12"):
        try:
            return row(dimension, amplitude, [amplitude], [1.0], weight)
        except ArithmeticError as error:
            last = error
    raise last


def near_limits():
    for dimension, guess in LIMITS.items():
        limit = float(awgn.single_sphere_limit(dimension, guess * 0.99, guess * 1.01))
        for factor in (1 - 1e-3, 1 - 1e-9):
            yield single(dimension, limit * factor)
        for gap in (1e-9, 1e-3):
            amplitude = limit * (1 + gap)
            share = gap if dimension < 64 else gap * 1e-18  # of the centre, roughly
            _, radii, p = refined(dimension, amplitude, [0.0, amplitude], [share, 1 - share])
            yield row(dimension, amplitude, radii, p)
    for gap, first in ((-1e-4, 0.0), (1e-4, 0.05), (1e-2, 0.2)):  # the centre leaves
        amplitude = SECOND_LIMIT * (1 + gap)
        _, radii, p = refined(1, amplitude, [first, amplitude], [0.3, 0.7])
        yield row(1, amplitude, radii, p)


def path(dimension, goals):
    first = None
    for goal in goals:
        radii, p, _ = awgn_start.path(dimension, goal, first)
        first = goal, radii, p
        yield row(dimension, goal, *refined(dimension, goal, radii, p)[1:])


def line(goals):
    for goal in goals:
        radii, p, _ = awgn_start.start(1, goal)
        yield row(1, goal, *refined(1, goal, radii, p)[1:])
    for goal, (radii, p) in LONG.items():
        yield row(1, goal, *refined(1, goal, [*radii, goal], p)[1:])


def awgn_capacity():
    """All rows."""
    for dimension, ratios in SINGLES.items():
        for ratio in ratios:
            yield single(dimension, ratio * math.sqrt(dimension))
    yield from near_limits()
    for dimension, goals in PATHS.items():
        yield from line(goals) if dimension == 1 else path(dimension, goals)
    for dimension, goals in DIRECT.items():
        for goal in goals:
            value = awgn.information(dimension, [goal], [1])
            low = max(0.0, awgn.settled(dimension, value * 0.98, awgn.COVER) - 2)
            radii, p, _ = awgn_start.start(dimension, goal, low)
            yield row(dimension, goal, *refined(dimension, goal, radii, p)[1:])
