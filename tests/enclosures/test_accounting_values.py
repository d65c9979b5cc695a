"""Values of all sampling schemes, shuffling, selection, events and pairs of Gaussians, each by two independent methods.

A row has a mechanism, its number of releases, a direction, epsilon, and the true delta twice; or, where only bounds are
known, the delta of concrete data sets and that of the dominating pair.
"""

from functools import cache

import mpmath
import numpy as np
import pytest

from fastpriv import GaussianMechanism, GaussianMixture, LaplaceMechanism, RandomizedResponse, compose, pairs

GAUSSIANS = (
    GaussianMixture.single([1.0, 0.0], covariance=np.array([[1.0, 0.25], [0.25, 1.0]])),
    GaussianMixture.single([0.0, 0.0], covariance=np.diag([1.5, 1.0])),
)
WIDTH = 2e-7  # of log delta, on grids of losses; 1e-12 for all others

ROWS = [
    (
        pairs.TruncatedPoissonSampled(GaussianMechanism(2.0, 1.0), 40, 0.125, 6, relation="add_or_remove"),
        1,
        "forward",
        0.25,
        "2.08342605697704885298220649e-4",
        "2.57236592707505154384867948e-3",
    ),
    (
        pairs.TruncatedPoissonSampled(GaussianMechanism(2.0, 1.0), 40, 0.125, 6, relation="add_or_remove"),
        1,
        "forward",
        1.0,
        "5.30015915066110310560396525e-10",
        "6.06452749383162655052394926e-5",
    ),
    (
        pairs.FixedSizeSampled(GaussianMechanism(2.0, 1.0), 40, 4, relation="replace_one"),
        1,
        "worst",
        0.25,
        "7.41751206782712109789202152e-3",
        "7.41751206782712109789202152e-3",
    ),
    (
        pairs.FixedSizeSampled(GaussianMechanism(2.0, 1.0), 40, 4, relation="replace_one"),
        1,
        "worst",
        1.0,
        "2.07121486021392113755342642e-4",
        "2.07121486021392113755342642e-4",
    ),
    (
        pairs.FixedSizeSampled(GaussianMechanism(2.0, 1.0), 16, 4, relation="replace_one"),
        2,
        "worst",
        0.25,
        "0.0791600467631469345424591126",
        "0.085909117222369853834524286",
    ),
    (
        pairs.PoissonSampled(([0.375, 0.625], [0.625, 0.375]), 0.5, relation="add_or_remove"),
        2,
        "forward",
        0.0625,
        "0.101323689096929410109808856",
        "0.101323689096929410109808856",
    ),
    (
        pairs.PoissonSampled(([0.375, 0.625], [0.625, 0.375]), 0.5, relation="add_or_remove"),
        2,
        "forward",
        0.25,
        "0.0694339257782863538021752326",
        "0.0694339257782863538021752326",
    ),
    (
        pairs.PoissonSampled(([0.375, 0.625], [0.625, 0.375]), 0.5, relation="add_or_remove"),
        2,
        "backward",
        0.0625,
        "0.124501385270535142609152351",
        "0.124501385270535142609152351",
    ),
    (
        pairs.PoissonSampled(([0.375, 0.625], [0.625, 0.375]), 0.5, relation="add_or_remove"),
        2,
        "backward",
        0.25,
        "0.069618645828064628981644858",
        "0.069618645828064628981644858",
    ),
    (
        pairs.PoissonSampled(LaplaceMechanism(1.0, 1.0), 0.25, relation="add_or_remove"),
        2,
        "backward",
        0.0625,
        "0.107698519656006219816513778",
        "0.107698519656006219816513778",
    ),
    (
        pairs.PoissonSampled(LaplaceMechanism(1.0, 1.0), 0.25, relation="add_or_remove"),
        2,
        "backward",
        0.25,
        "0.0300178577597578817351134278",
        "0.0300178577597578817351134278",
    ),
    (
        pairs.PoissonSampled(GaussianMechanism(1.0, 1.0), 0.25, relation="replace_one"),
        1,
        "worst",
        0.25,
        "0.0886365167503236865476096012",
        "0.0886365167503236865476096012",
    ),
    (
        pairs.PoissonSampled(GaussianMechanism(1.0, 1.0), 0.25, relation="replace_one"),
        1,
        "worst",
        1.0,
        "0.0103978927704157083286028629",
        "0.0103978927704157083286028629",
    ),
    (
        pairs.Shuffled(1.0, 20),
        1,
        None,
        0.125,
        "0.0879539110410471208711642541",
        "0.0879539110410471208711642541",
    ),
    (
        pairs.Shuffled(1.0, 20),
        1,
        None,
        0.5,
        "0.0153080281661243886950986514",
        "0.0153080281661243886950986514",
    ),
    (
        pairs.Shuffled(RandomizedResponse(5, 3.0), 5, adaptive=False),
        1,
        None,
        2.0,
        "0.337291778978444954412848693",
        "0.337842721875379980216292516",
    ),
    (
        pairs.Shuffled(RandomizedResponse(2, 1.0), 4, adaptive=False),
        1,
        None,
        0.25,
        "0.150709638814469311187372072",
        "0.150709638814469311187372072",
    ),
    (
        pairs.Shuffled(RandomizedResponse(2, 1.0), 4, adaptive=False),
        1,
        None,
        0.5,
        "0.112387913365487837623885811",
        "0.112387913365487837623885811",
    ),
    (
        pairs.Selected(([0.5, 0.5], [0.25, 0.75]), pairs.NegativeBinomial(1.0, 0.5), order=[0, 1]),
        1,
        "forward",
        0.25,
        "0.149901130949370264179987538",
        "0.149901130949370264179987538",
    ),
    (
        pairs.Selected(([0.5, 0.5], [0.25, 0.75]), pairs.NegativeBinomial(1.0, 0.5), order=[0, 1]),
        1,
        "forward",
        0.5,
        "0.0978017232333150266406689351",
        "0.0978017232333150266406689351",
    ),
    (
        pairs.ApproximateDP(0.5, 0.0009765625),
        2,
        None,
        0.25,
        "0.205987623984048712380484354",
        "0.205987623984048712380484354",
    ),
    (
        pairs.ApproximateDP(0.5, 0.0009765625),
        2,
        None,
        0.75,
        "0.0874897402348601111213834149",
        "0.0874897402348601111213834149",
    ),
    (
        pairs.BoundedRange(1.0, adaptive=False),
        3,
        None,
        0.5,
        "0.206467765831188356266351104",
        "0.206467765831188356266351104",
    ),
    (
        pairs.DiscreteGaussianMechanism(sigma_squared=2.0, sensitivity=1),
        1,
        None,
        0.25,
        "0.180143128819516101014619602",
        "0.180143128819516101014619602",
    ),
    (
        pairs.DiscreteGaussianMechanism(sigma_squared=2.0, sensitivity=1),
        1,
        None,
        1.0,
        "0.0428120889861398300754240802",
        "0.0428120889861398300754240802",
    ),
    (
        GAUSSIANS,
        1,
        "forward",
        0.25,
        "0.257918383911355710528616817",
        "0.257918383911355710528616817",
    ),
]


@cache
def composed(mechanism, count):
    return compose(mechanism, count)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{type(row[0]).__name__}-{row[1]}-{row[3]}")
def test_delta(row):
    mechanism, count, direction, epsilon, least, most = row
    with mpmath.workdps(40):
        least, most = mpmath.mpf(least), mpmath.mpf(most)
        found = composed(mechanism, count).delta(epsilon, direction=direction)
        assert found.kind == "certified" or found.kind == "exact"
        unit = mpmath.mpf(10) ** -15  # digits of the values
        assert found.lower <= most * (1 + unit), row
        assert found.upper >= least * (1 - unit), row
        assert found.upper <= most * (1 + WIDTH), row
        assert found.lower >= least * (1 - WIDTH), row
        if least < most:
            assert found.lower <= least * (1 + WIDTH), row
            assert found.upper >= most * (1 - unit), row
