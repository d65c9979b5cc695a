"""(epsilon, beta, alpha)-MBP and -ABP: what follows from two intervals, and the errors of arguments."""

import numpy as np
import pytest

from fastpriv import DomainError, Estimate, GaussianMechanism, Pmf, notions
from fastpriv.errors import ShapeError


def counted(lower, upper, level=0.95):
    middle = 0.5 * (lower + upper)
    return Estimate(middle, lower, upper, kind="statistical", unit="probability", method="m", confidence=level)


@pytest.mark.parametrize(
    ("xi", "miss", "answer", "kind", "confidence"),
    [
        (0.4, (0.01, 0.05), "holds", "statistical", 0.95),
        (0.5, (0.01, 0.05), "holds", "statistical", 0.95),
        (0.6, (0.01, 0.05), "fails", "exact", None),
        (0.4, (0.06, 0.08), "fails", "statistical", 0.95),
        (0.6, (0.06, 0.08), "fails", "exact", None),
        (0.4, (0.04, 0.06), "undecided", "statistical", 0.95),
    ],
)
def test_verdicts(xi, miss, answer, kind, confidence):
    found = notions.mbp_claim(xi, counted(*miss), epsilon=0.5, beta=0.05)
    assert (found.answer, found.kind) == (answer, kind)
    assert found.confidence == (None if confidence is None else pytest.approx(confidence))
    assert len(found.reasons) == 2
    assert str(found).startswith(answer)


def test_two_statistical_bounds_add_their_errors():
    leak = Estimate(0.2, 0.1, 0.3, kind="statistical", unit="1", method="m", confidence=0.99)
    found = notions.abp_claim(leak, counted(0.01, 0.02), epsilon=0.4, beta=0.05)
    assert (found.answer, found.confidence) == ("holds", pytest.approx(0.94))
    lost = notions.abp_claim(leak, counted(0.06, 0.07), epsilon=0.05, beta=0.05)
    assert (lost.answer, lost.confidence) == ("fails", pytest.approx(0.99))


def test_reasons_round_outward_and_bits_are_understood():
    leak = Estimate(1.0, 1.0, 1.0, kind="exact", unit="bits", method="m")
    found = notions.mbp_claim(leak, counted(0.0123456, 0.0123456), epsilon=0.7, beta=0.5)
    assert found.reasons == (
        "MBP xi is at most 0.6932, claimed 0.7", "a miss has a probability of at most 0.01235, claimed 0.5",
    )
    assert "between 0.01234 and 0.01236" in str(
        notions.mbp_claim(leak, counted(0.012345, 0.012355), epsilon=0.7, beta=0.01235)
    )


def test_gaussian_noise_has_no_mbp_but_abp():
    prior, mechanism = Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(3.0)
    miss = notions.pac_accuracy(mechanism, 0.0, 0.0, 6.0)
    assert notions.mbp_claim(notions.lip_epsilon(prior, mechanism), miss, epsilon=50, beta=0.1).answer == "fails"
    assert notions.abp_claim(notions.abp(prior, mechanism).maximum, miss, epsilon=0.2, beta=0.1).answer == "holds"


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ({"epsilon": -1}, DomainError, "epsilon must be at least 0; got -1.0"),
        ({"beta": 1.5}, DomainError, "beta must be between 0 and 1; got 1.5"),
        ({"leakage": float("nan")}, DomainError, "leakage must be at least 0; got nan"),
        ({"leakage": counted(0.1, 0.2)}, DomainError, "leakage must be in the unit 'nats'; got 'probability'"),
        ({"leakage": Estimate([1.0], [1.0], [1.0], kind="exact", unit="nats", method="m")}, ShapeError,
         r"leakage must be a single number; got shape \(1,\). Take one entry"),
        ({"miss": 0.3}, DomainError, "miss must be a Estimate; got 0.3"),
        ({"miss": Estimate(1.0, 1.0, 1.0, kind="exact", unit="nats", method="m")}, DomainError,
         "miss must be a probability; got the unit 'nats'"),
        ({"miss": notions.pac_accuracy(GaussianMechanism(1.0), 0.0, 0.0, [1.0, 2.0])}, ShapeError,
         r"miss must be of one alpha; got shape \(2,\). Take the entry"),
    ],
)
def test_faults_of_claims_are_named(words, error, message):
    given = {"leakage": 0.1, "miss": counted(0.1, 0.2), "epsilon": 1.0, "beta": 0.5} | words
    with pytest.raises(error, match=message):
        notions.mbp_claim(given.pop("leakage"), given.pop("miss"), **given)


NORMAL = GaussianMechanism(1.0)


def nan(rng, n):
    return np.where(np.arange(n) == 7, np.nan, 0.0)


def raising(rng, n):
    raise ZeroDivisionError("no data")


def forgetful(rng, n):
    return rng.normal(size=n - 1)


@pytest.mark.parametrize(
    ("given", "words", "error", "message"),
    [
        ((NORMAL, 0.0, 0.0, -1.0), {}, DomainError, "alpha must be at least 0 and finite; got -1.0"),
        ((NORMAL, 0.0, 0.0, [1.0, np.nan]), {}, DomainError, "alpha must be at least 0 and finite; got nan at index 1"),
        ((NORMAL, 0.0, 0.0, np.inf), {}, DomainError, "alpha must be at least 0 and finite; got inf"),
        ((NORMAL, 0.0, np.nan, 1.0), {}, DomainError, "target must be finite numbers; got nan"),
        ((NORMAL, np.nan, 0.0, 1.0), {}, DomainError, "secret must be finite numbers; got nan"),
        ((NORMAL, [0.0, 1.0], 0.0, 1.0), {}, ShapeError, "secret must have as many coordinates as target; got 2 and 1"),
        ((NORMAL, 0.0, 0.0, 1.0), {"norm": 3}, DomainError, "norm must be 1, 2 or inf; got 3"),
        ((NORMAL, 0.0, 0.0, 1.0), {"method": "exact"}, DomainError, "method must be 'auto' or name a distribution"),
        ((NORMAL, 0.0, 0.0, 1.0), {"confidence": 1.0}, DomainError, "confidence must be between 0 and 1"),
        ((NORMAL, 0.0, 0.0, 1.0), {"interval": "guaranteed"}, DomainError,
         "interval must be left out for counted samples; got 'guaranteed'"),
        ((NORMAL, 0.0, 0.0, 1.0), {"rtol": -1}, DomainError, "rtol must be at least 0 and finite"),
        ((NORMAL, 0.0, 0.0, 1.0), {"max_samples": 3}, DomainError, "max_samples must be an integer of at least 8"),
        ((GaussianMechanism([1.0, 2.0]), 0.0, 0.0, 1.0), {}, ShapeError, "sigma must be a single number"),
        (("normal", 0, 0.0, 1.0), {}, DomainError,
         "mechanism must be a GaussianMechanism or a function; got 'normal'"),
        ((nan, None, 0.0, 1.0), {}, DomainError, "mechanism must draw finite points; got nan in .* of draw 7"),
        ((raising, None, 0.0, 1.0), {}, DomainError, "got ZeroDivisionError: no data from 'raising'"),
        ((forgetful, None, 0.0, 1.0), {}, ShapeError, "mechanism must return n points as an array of shape"),
        ((lambda rng, n: ["a"] * n, None, 0.0, 1.0), {}, DomainError, "mechanism must return real numbers"),
        ((lambda rng, n, d: d, 0.0, 0.0, 1.0), {}, ShapeError, r"got shape \(\) from '<lambda>'"),
    ],
)
def test_faults_of_accuracy_are_named(given, words, error, message):
    with pytest.raises(error, match=message):
        notions.pac_accuracy(*given, **words)


@pytest.mark.parametrize("neighbours", [[], 3, "abc"])
def test_neighbours_are_a_sequence(neighbours):
    with pytest.raises(DomainError, match="neighbours must be a sequence of at least one secret; got"):
        notions.robust_accuracy(NORMAL, neighbours, 0.0, 1.0)
