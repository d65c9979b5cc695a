"""Several releases of one secret: the types of releases have what all sequences of releases have."""

import itertools

import numpy as np
import pytest
from mpmath import log, mp, mpf

from fastpriv import (
    Channel,
    DomainError,
    GaussianMechanism,
    Pmf,
    RandomizedResponse,
    RepeatedChannel,
    ShapeError,
    notions,
    repeated_releases,
)

SKEWED = Channel([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.0, 0.5, 0.5]])
NEARLY_EQUAL = Channel([[0.5, 0.5], [0.5 + 2.0**-30, 0.5 - 2.0**-30]])
TINY = Channel([[2.0**-1000, 1.0], [2.0**-990, 1.0]])
CASES = [
    ([SKEWED], [1]),
    ([SKEWED], [4]),
    ([NEARLY_EQUAL], [7]),
    ([TINY], [3]),
    ([SKEWED, Channel([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])], [2, 3]),
    ([RandomizedResponse(3, 0.5)], [3]),
]


def sequences(channels, counts):
    """Probabilities of all sequences of releases, one list for each secret."""
    rows = []
    for secret in range(channels[0].inputs):
        factors = [channel for channel, count in zip(channels, counts, strict=True) for _ in range(count)]
        cells = []
        for channel in factors:
            if isinstance(channel, RandomizedResponse):
                odds = mp.exp(mpf(channel.epsilon))
                total = odds + channel.inputs - 1
                cells.append([(odds if w == secret else 1) / total for w in range(channel.outputs)])
            else:
                exact = [mpf(x) for x in channel.matrix()[secret].tolist()]
                cells.append([x / sum(exact) for x in exact])
        rows.append([mp.fprod(sequence) for sequence in itertools.product(*cells)])
    return rows


@pytest.mark.parametrize("case", range(len(CASES)))
def test_all_sequences(case):
    channels, counts = CASES[case]
    found = repeated_releases(channels, counts)
    n = found.inputs
    prior = np.arange(1.0, n + 1) / (n * (n + 1) / 2)
    with mp.workdps(60):
        rows = sequences(channels, counts)
        weights = [mpf(x) / sum(map(mpf, prior.tolist())) for x in prior.tolist()]
        release = [mp.fdot(weights, column) for column in zip(*rows, strict=True)]
        ratios = [[(p / r if r else mpf(1)) for p, r in zip(row, release, strict=True)] for row in rows]
        flat = [x for row in ratios for x in row]
        information = mp.fsum(w * p * log(x) for w, row, over in zip(weights, rows, ratios, strict=True)
                              for p, x in zip(row, over, strict=True) if p > 0)  # fmt: skip
        xi = max(abs(log(x)) if x > 0 else mp.inf for x in flat)
        leakage = log(mp.fsum(max(column) for column in zip(*rows, strict=True)))
        epsilon = mpf("0.25")
        curve = max(
            mp.fsum(max(p - mp.exp(epsilon) * q, 0) for p, q in zip(a, b, strict=True)) for a in rows for b in rows
        )
        truths = {
            "cd_lmip": (notions.cd_lmip(prior, found), information),
            "lip_epsilon": (notions.lip_epsilon(prior, found), xi),
            "maximal_leakage": (notions.maximal_leakage(prior, found), leakage),
            "ldp_delta": (notions.ldp_delta(None, found, 0.25), curve),
            "mbp": (notions.mbp(prior, found).xi, xi),
        }
        for name, (bounds, truth) in truths.items():
            assert bounds.lower <= truth <= bounds.upper, (name, bounds, truth)
            assert truth == mp.inf or bounds.width <= 2e-13 * truth + 1e-13, (name, bounds)
        dense = Channel([[float(x) for x in row] for row in rows])
        ours, theirs = notions.abp(prior, found), notions.abp(prior, dense)
        assert np.allclose(ours.per_value.value, theirs.per_value.value, rtol=1e-7, atol=1e-9)
        assert ours.mean.lower <= theirs.mean.upper
        assert theirs.mean.lower <= ours.mean.upper


def test_many_releases():
    """2000 binary releases are 2001 types; the information grows with them up to that of the secret."""
    found = [notions.cd_lmip(None, repeated_releases(RandomizedResponse(2, 0.1), k)) for k in (1, 10, 200, 20_000)]
    assert all(one.upper < other.lower for one, other in itertools.pairwise(found))
    assert found[-1].upper <= np.log(2) * (1 + 1e-9)
    delta = notions.ldp_delta(None, repeated_releases(RandomizedResponse(2, 0.1), 200), [0.0, 5.0, 19.99, 20.0])
    assert (np.diff(delta.value) < 0).all()
    assert delta.value[-1] == 0.0


def test_gaussian_releases():
    """Precisions add; sigma is the largest double that is not above the exact one."""
    one = repeated_releases([GaussianMechanism(3.0, 1.0), GaussianMechanism(0.7, 1.0)], [5, 2])
    with mp.workdps(60):
        exact = 1 / mp.sqrt(5 / mpf(3.0) ** 2 + 2 / mpf(0.7) ** 2)
        assert one.sigma <= exact < np.nextafter(one.sigma, 9.0)
    assert repeated_releases(GaussianMechanism(1e-300), 10**6).sigma == pytest.approx(1e-303, rel=1e-15)
    prior = Pmf([0.0, 1.0], [0.5, 0.5])
    assert notions.cd_lmip(prior, repeated_releases(GaussianMechanism(8.0), 16)) == notions.cd_lmip(
        prior, GaussianMechanism(2.0)
    )


def test_what_is_refused():
    with pytest.raises(ShapeError, match="channels must have one number of secrets, at least one channel; got"):
        repeated_releases([SKEWED, NEARLY_EQUAL], 2)
    with pytest.raises(ShapeError, match=r"mechanism must be one mechanism or a list of at least one; got \[\]"):
        repeated_releases([])
    with pytest.raises(ShapeError, match="count must be one number, or one for each of the 1 mechanisms; got 2"):
        repeated_releases(SKEWED, [1, 2])
    with pytest.raises(ShapeError, match="counts must have one entry for each of the 1 channels; got 2"):
        RepeatedChannel([SKEWED], [1, 2])
    with pytest.raises(DomainError, match="counts must give at most 4194304 products of a secret and a type"):
        repeated_releases(SKEWED, 10**6)
    with pytest.raises(DomainError, match="mechanism must have one sensitivity, as all releases are of one value"):
        repeated_releases([GaussianMechanism(1.0, 1.0), GaussianMechanism(1.0, 2.0)], 2)
    with pytest.raises(DomainError, match="count must be integers from 1 to"):
        repeated_releases(SKEWED, 0)
