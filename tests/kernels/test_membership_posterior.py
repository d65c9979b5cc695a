"""Kernels of the posterior of a membership: the same bits on every instruction set, and arguments that do not fit."""

import numpy as np
import pytest

from fastpriv.studies.kernels import _membership_gibbs, _membership_posterior
from kernels.variants import check_same_lines, each_wider_variant

PROGRAM = """
import warnings
import numpy as np
from fastpriv.studies.membership import (BernoulliMembership, CombinedReleases, FixedSizeMembership, FrequencyRelease,
                                 GaussianNoise, LaplaceNoise, LInfinityNoise, Panel, membership_posterior)
warnings.simplefilter("ignore")
def bits(i, n):  # numbers that depend on no library
    return [(i * 2654435761 + j * 40503) % 97 % 2 for j in range(n)]
def shown(estimate):
    return [x.hex() for number in (estimate.value, estimate.lower, estimate.upper) for x in np.ravel(number).tolist()]
for people, m in ((1, 1), (3, 5), (9, 17), (13, 30), (17, 9)):
    panel = Panel([bits(k + 1, m) for k in range(people)])
    released = np.array([((j * 37) % 101) / 101 for j in range(m)])
    released[0] = 0.0
    for prior in (BernoulliMembership(0.375), FixedSizeMembership((people + 1) // 2)):
        scales = 0.25 / np.arange(1, people + 1)
        for noise in (GaussianNoise(0.25), GaussianNoise(scales), LaplaceNoise(0.25), LInfinityNoise(0.0625)):
            clip = not isinstance(noise, LInfinityNoise)
            model = FrequencyRelease(panel, prior, noise, clip=clip)
            found = membership_posterior(model, released)
            print(*shown(found.log_odds), *shown(found.entropy), *shown(found.log_evidence), found.mode.tolist())
            sampled = membership_posterior(model, released, method="gibbs", sweeps=16, temperatures=2, rng=1)
            print(*shown(sampled.log_odds), sampled.mode.tolist())
"""


@pytest.mark.slow
@each_wider_variant
def test_every_instruction_set(variant):
    check_same_lines(PROGRAM, 5 * 2 * 4 * 2, variant)


def test_a_model_that_does_not_fit():
    prior, odds, sizes = np.zeros((2, 4, 8)), np.zeros((2, 3)), np.zeros(8)
    term = {"kind": "quadratic", "vectors": np.zeros((3, 14)), "low": np.zeros((2, 8)), "factor": np.zeros((2, 4, 8))}
    model = _membership_posterior.Model(3, 3, prior, odds, sizes, 0.0, [term])
    for low, high, one, text in [
        (2, 3, term, "the halves and the number of terms"),
        (3, 2, term, "the prior, the log odds and the sizes"),
        (3, 3, term | {"vectors": np.zeros((3, 6))}, "a vector of a quadratic term"),
        (3, 3, term | {"low": np.zeros((2, 4))}, "the arrays of a term must fit the halves"),
    ]:
        with pytest.raises(ValueError, match=text):
            _membership_posterior.Model(low, high, prior, odds, sizes, 0.0, [one])
    with pytest.raises(ValueError, match="the rows must be whole groups of four"):
        model.rows(0, 3, np.empty((3, 3)))
    with pytest.raises(ValueError, match="out must have three entries for each row"):
        model.rows(0, 4, np.empty((3, 3)))
    with pytest.raises(ValueError, match="there must be a row for each subset of the high half"):
        _membership_posterior.sides(np.zeros(4), np.zeros(4), 3)
    with pytest.raises(ValueError, match="there must be one top, mass and moment for each row"):
        _membership_posterior.total(np.zeros(4), np.zeros(4), np.zeros(3))


def test_a_model_of_chains_that_does_not_fit():
    people = np.zeros((3, 2), dtype=np.uint8)
    absolute = {"kind": "absolute", "people": people, "released": np.zeros(2), "factor": np.zeros(4)}
    shared = np.zeros((3, 3), np.int32)
    quadratic = {"kind": "quadratic", "shared": shared, "linear": np.zeros(3), "factor": np.zeros(4)}
    numbers = np.zeros(3), np.zeros(4), np.zeros(4), np.ones(1)
    for terms, text in [
        ([], "the arrays must fit the people, and the terms the kernel"),
        ([quadratic | {"linear": np.zeros(2)}], "a quadratic term must have an entry for each pair"),
        ([absolute | {"people": people[:2]}], "a term must have a row for each person"),
        ([{"kind": "censored", "people": people, "table": np.zeros((3, 4))}], "a table must have an entry"),
        ([absolute | {"factor": np.zeros(3)}], "a term must have a factor for each size"),
        ([absolute | {"released": np.zeros(3)}], "a release must have an entry for each attribute"),
    ]:
        with pytest.raises(ValueError, match=text):
            _membership_gibbs.Model(*numbers, False, terms)
    model = _membership_gibbs.Model(*numbers, False, [absolute])
    with pytest.raises(ValueError, match="there must be a state for each temperature, four words and a sweep"):
        model.run(np.ones((2, 3), dtype=np.uint8), np.zeros(4, dtype=np.uint64), 1)


def test_the_second_parts_of_a_quadratic_term_count():
    """The exponent of b is b' G b, each entry of G in two parts, of any size here, by brute force."""
    rng = np.random.default_rng(3)
    low, high = 3, 2
    people, subsets = low + high, 1 << low
    first, second = (rng.integers(-9, 9, (people, people)) / 8 for _ in range(2))
    first, second = first + first.T, second + second.T
    members = (np.arange(1 << people)[:, None] >> np.arange(people) & 1).astype(float)
    parts = [np.einsum("bi,ij,bj->b", members, part, members) for part in (first, second)]
    vectors = np.array([[*first[h], first[h, h], *second[h], second[h, h]] for h in range(low, people)])
    factor = np.zeros((2, high + 1, subsets))
    factor[0] = 1.0
    term = {"kind": "quadratic", "vectors": vectors, "low": np.array([part[:subsets] for part in parts]),
            "factor": factor}
    sizes = members[:subsets].sum(axis=1)
    model = _membership_posterior.Model(
        low, high, np.zeros((2, high + 1, subsets)), np.zeros((2, high)), sizes, 0.0, [term]
    )
    out = np.empty((3, 1 << high))
    model.rows(0, 1 << high, out)
    exponents = np.add(*parts).reshape(1 << high, subsets)
    np.testing.assert_allclose(out[0], exponents.max(axis=1), rtol=1e-14)
    np.testing.assert_allclose(out[1], np.exp(exponents - exponents.max(axis=1, keepdims=True)).sum(axis=1), rtol=1e-14)
