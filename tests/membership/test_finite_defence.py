"""Tables of finitely many releases: their epsilon beside rational arithmetic, rounded noises, repair, refusals."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from fastpriv import DomainError, ShapeError
from fastpriv.studies.membership import (
    BernoulliMembership,
    FiniteDefence,
    FixedSizeMembership,
    FrequencyRelease,
    GaussianNoise,
    GeneratorNoise,
    LaplaceNoise,
    LInfinityNoise,
    Panel,
    evaluate_defence,
)

PANEL = Panel([[1], [0], [1], [0]])
GRID = np.linspace(0, 1, 5)[:, None]


def drawn(prior, seed, low=-3.0):
    count = {"fixed": 6, "bernoulli": 15}["fixed" if isinstance(prior, FixedSizeMembership) else "bernoulli"]
    table = 10.0 ** np.random.default_rng(seed).uniform(low, 0, (count, 5))
    return FiniteDefence(PANEL, prior, GRID, table / table.sum(axis=1, keepdims=True))


def members(prior):
    every = [b for b in itertools.product([0, 1], repeat=4) if any(b)]
    every.sort(key=lambda b: sum(x << k for k, x in enumerate(b)))
    return [b for b in every if not isinstance(prior, FixedSizeMembership) or sum(b) == prior.n0]


def exact_epsilons(defence):
    """Of neighbours, and by the joint posterior, in 60 digits of the table with rows divided by their sums."""
    rows = [[Fraction(x) for x in row] for row in defence.table.tolist()]
    rows = [[x / sum(row) for x in row] for row in rows]
    every = members(defence.prior)
    fixed = isinstance(defence.prior, FixedSizeMembership)
    best = Fraction(1)
    for (i, b), (j, c) in itertools.permutations(enumerate(every), 2):
        if sum(x != y for x, y in zip(b, c, strict=True)) == (2 if fixed else 1):
            best = max(best, *(x / y for x, y in zip(rows[i], rows[j], strict=True)))
    q = Fraction(1, 2) if fixed else Fraction(defence.prior.q)
    weights = [q ** sum(b) * (1 - q) ** (4 - sum(b)) for b in every]
    theta = [w / sum(weights) for w in weights]
    total = [sum(t * row[r] for t, row in zip(theta, rows, strict=True)) for r in range(5)]
    joint = max(max(x / t, t / x) for row in rows for x, t in zip(row, total, strict=True))
    with mp.workdps(60):
        return tuple(k * mp.log(mpf(x.numerator) / x.denominator) for k, x in ((1, best), (2, joint)))


@pytest.mark.parametrize("prior", [FixedSizeMembership(2), BernoulliMembership(0.3)])
@pytest.mark.parametrize("low", [-0.1, -3.0, -280.0])
def test_epsilon_in_rational_arithmetic(prior, low):
    for seed in range(5):
        defence = drawn(prior, seed, low)
        for found, want in zip((defence.epsilon(), defence.joint_posterior_epsilon()), exact_epsilons(defence),
                               strict=True):  # fmt: skip
            assert mpf(found.lower) <= want <= mpf(found.upper)
            assert found.upper - found.lower < 1e-12 * (1 + found.value)
            assert found.kind == "certified"
        assert defence.epsilon().lower <= defence.joint_posterior_epsilon().upper


def test_an_excluded_release_is_infinite_and_is_mended():
    table = np.eye(6, 5)
    table[5, 0] = 1.0
    defence = FiniteDefence(PANEL, FixedSizeMembership(2), GRID, table)
    assert defence.epsilon().lower == math.inf
    assert defence.joint_posterior_epsilon().value == math.inf
    for target in (0.01, 1.0, 20.0):
        mended = defence.with_epsilon(target)
        assert 0.99 * target < mended.epsilon().upper <= target
        assert mended.with_epsilon(target) is mended
    same = FiniteDefence(PANEL, FixedSizeMembership(2), GRID, np.full((6, 5), 0.2))
    assert same.epsilon().value == 0.0


@pytest.mark.parametrize("noise", [LaplaceNoise(0.4), GaussianNoise(0.3)])
def test_rounding_is_post_processing(noise):
    panel = Panel([[1, 0], [0, 1], [1, 1]])
    release = FrequencyRelease(panel, FixedSizeMembership(1), noise)
    defence = FiniteDefence.of_release(release, 4)
    if isinstance(noise, LaplaceNoise):
        assert 0 < defence.epsilon().upper <= release.epsilon().upper
    simulated = release.simulate(40_000, rng=1)
    rounded = np.clip(np.rint(simulated.released * 3), 0, 3) / 3
    which = simulated.membership @ [0, 1, 2]
    for i in range(3):
        seen = rounded[which == i]
        for r, p in zip(defence.releases, defence.table[i], strict=True):
            share = np.isclose(seen, r).all(axis=1).mean()
            assert abs(share - p) < 5 * math.sqrt(p * (1 - p) / len(seen)) + 1e-9


def test_a_generator_becomes_a_table_and_is_judged():
    def hidden(b, nu):
        return 0.5 - b @ [[1.0], [0.0], [1.0], [0.0]] / b.sum(axis=1, keepdims=True) + 0 * nu  # always releases 1/2

    def shown(b, nu):
        return (nu - 0.5) / 10

    constant, other = (FiniteDefence.of_release(
        FrequencyRelease(PANEL, FixedSizeMembership(2), GeneratorNoise(function, 1, GaussianNoise(0.1))), 5, seeds=32,
        rng=1) for function in (hidden, shown))  # fmt: skip
    assert constant.epsilon().upper < 1e-12
    assert other.epsilon().lower > 5
    judged = evaluate_defence(other, attackers=[], releases=300, rng=1)
    exact = next(row for row in judged.attacks if row.attacker == "Bayes")
    assert exact.training == "exact"
    assert exact.evaluation.auc.value > 0.7
    assert other.simulate(7, rng=1).released.shape == (7, 1)
    assert other.scores([[0.5], [1.0]]).shape == (2, 4)


TABLE = np.full((6, 5), 0.2)
PRIOR = FixedSizeMembership(2)
RELEASE = FrequencyRelease(PANEL, PRIOR, GaussianNoise(0.1))
MISTAKES = [
    (lambda: FiniteDefence([[1]], PRIOR, GRID, TABLE), DomainError, "panel must be a Panel"),
    (lambda: FiniteDefence(Panel(np.eye(13, dtype=int)), PRIOR, GRID, TABLE), DomainError,
     "panel must have at most 12 people for a table of memberships; got 13"),
    (lambda: FiniteDefence(PANEL, PRIOR, [[0.0], [0.0]], TABLE), ShapeError, "releases must be rows that differ, of"),
    (lambda: FiniteDefence(PANEL, PRIOR, GRID, TABLE[:5]), ShapeError, "table must have a row for each of 6 members"),
    (lambda: FiniteDefence(PANEL, PRIOR, GRID, TABLE / 2), DomainError, "table must have rows that sum to 1; got one"),
    (lambda: FiniteDefence(PANEL, PRIOR, GRID, -TABLE), DomainError, "table must be probabilities; got -0.2"),
    (lambda: FiniteDefence.of_release(FrequencyRelease(PANEL, PRIOR, LInfinityNoise(1.0)), 5), DomainError,
     "release must have Gaussian or Laplace noise, or a generator with such a dither"),
    (lambda: FiniteDefence.of_release(RELEASE, 1), DomainError, "levels must be an integer of at least 2; got 1"),
    (lambda: FiniteDefence.of_release(RELEASE, 2**23), DomainError, "levels must leave at most 16777216 cells of the"),
    (lambda: FiniteDefence(PANEL, PRIOR, GRID, TABLE).with_epsilon(0.0), DomainError, "epsilon must be positive"),
    (lambda: FiniteDefence(PANEL, PRIOR, GRID, TABLE).scores([0.3]), DomainError, "released must be rows of releases"),
    (lambda: FiniteDefence(PANEL, PRIOR, GRID, TABLE).scores([0.3, 1]), ShapeError, "released must have 1 entries a"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), MISTAKES, ids=[text for *_, text in MISTAKES])
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text):
        call()
