"""What the notions of channels take, refuse and return."""

import json
import pickle
import sys

import numpy as np
import pytest

from fastpriv import Channel, DomainError, GaussianMechanism, Pmf, RandomizedResponse, notions
from fastpriv.channels import DefaultChannel
from fastpriv.errors import BackendMissingError, ShapeError
from fastpriv.mechanisms import GeometricMechanism

ROWS = np.array([[0.75, 0.25], [0.25, 0.75]])
PRIOR = np.array([0.25, 0.75])
BIG = GeometricMechanism(2**40, 0.1)


@pytest.mark.parametrize(("call", "error", "match"), [
    (lambda: notions.mbp([0.5, 0.6], ROWS), DomainError, "prior must sum to 1"),
    (lambda: notions.mbp([0.5, 0.5, 0], ROWS), ShapeError, "prior must have one entry for each of the 2 secrets"),
    (lambda: notions.mbp(PRIOR, [[0.5, 0.6], [0.5, 0.5]]), DomainError, "each row of mechanism must sum to 1"),
    (lambda: notions.mbp([1.0, 1e-305], ROWS), DomainError, "prior must be 0 or at least 1e-300 at every secret"),
    (lambda: notions.cd_lmip(None, BIG), DomainError, "to be gone through row by row"),
    (lambda: notions.ldp_delta(None, ROWS, np.nan), DomainError, "epsilon must be a number"),
    (lambda: notions.ldp_epsilon(None, ROWS, on_support=1), DomainError, "on_support must be True or False"),
    (lambda: notions.abp(PRIOR, ROWS, release=[1, 0], secret=0), DomainError, "release must be None where secret"),
    (lambda: notions.abp(PRIOR, ROWS, release=[1.0]), ShapeError, "release must have one entry for each"),
    (lambda: notions.abp(PRIOR, ROWS, release=PRIOR @ ROWS), DomainError,
     "release must be a distribution other than that of"),
    (lambda: notions.abp([1, 0], np.eye(2), release=[0.5, 0.5]), DomainError, "where the prior allows no release"),
    (lambda: notions.abp([1, 0], np.eye(2), secret=1), DomainError, "secret must be one that the prior gives mass"),
    (lambda: notions.abp(PRIOR, ROWS, secret=2), DomainError, "secret must be integers from 0 to .; got"),
    (lambda: notions.abp(None, RandomizedResponse(3, 1.0), secret=[1, 5]), DomainError,
     "secret must be integers from 0 to .; got"),
    (lambda: notions.abp(PRIOR, ROWS, belief=[1.0]), ShapeError, "belief must have one entry for each"),
    (lambda: notions.abp(Pmf([0, 1], PRIOR), GaussianMechanism(1.0), secret=0), DomainError,
     "release, secret and belief must be None for a Gaussian mechanism"),
    (lambda: notions.summary(PRIOR, ROWS, posteriors=np.empty((2, 3))), ShapeError,
     "posteriors must be a contiguous array of float32 or float64"),
    (lambda: notions.mbp(PRIOR, 3), DomainError,
     "mechanism must be a channel, rows of probabilities or a GaussianMechanism; got 3"),
])
def test_faults_are_named(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_priors_may_be_laws_lists_and_nothing():
    want = notions.cd_lmip(PRIOR, ROWS).value
    assert notions.cd_lmip(Pmf([3.0, 5.0], PRIOR), Channel(ROWS)).value == want
    assert notions.cd_lmip(list(PRIOR), ROWS.tolist()).value == want
    assert notions.cd_lmip(None, ROWS).value == notions.cd_lmip([0.5, 0.5], ROWS).value
    pair = Channel(ROWS).product(Channel(ROWS))
    assert notions.cd_lmip((PRIOR, None), pair).value == pytest.approx(want + notions.cd_lmip(None, ROWS).value)
    assert notions.cd_lmip([PRIOR, PRIOR], pair).value == pytest.approx(2 * want)


def test_gaussian_mechanisms_are_taken_as_before():
    prior, mechanism = Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(1.0)
    assert notions.ldp_epsilon(prior, mechanism).value == notions.lip_epsilon(prior, mechanism).value == np.inf
    assert notions.ldp_epsilon(Pmf([1.0], [1.0]), mechanism).value == 0.0
    found = notions.mbp(prior, mechanism)
    assert found.plus.value == found.minus.value == found.xi.value == np.inf


def test_a_summary_is_read_in_many_ways(monkeypatch):
    found = notions.summary(PRIOR, ROWS)
    data = found.to_dict()
    assert json.loads(json.dumps(data))["cd_lmip"]["value"] == found.cd_lmip.value
    assert data["abp"]["maximum"]["value"] == found.abp.maximum.value
    frame = found.to_frame()
    assert frame.set_index("quantity").loc["xi", "upper"] == found.xi.upper
    assert found == notions.summary(PRIOR, ROWS) != notions.summary(None, ROWS)
    assert "cd_lmip=" in repr(found)
    np.testing.assert_allclose(found.release, PRIOR @ ROWS, rtol=1e-15)
    assert found.map_secrets.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        found.release[0] = 1.0
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BackendMissingError, match="to_frame needs pandas"):
        found.to_frame()


def test_what_is_not_known_in_closed_form_is_none():
    found = notions.summary(None, BIG)
    assert found.cd_lmip is None
    assert found.map_secrets is None
    assert found.ldp_epsilon.value == pytest.approx(0.1 * (2**40 - 1))
    assert set(found.estimates()) == {"ldp_epsilon", "ldp_on_support", "xi", "xi_plus", "xi_minus"}


def test_like_secrets_are_told_apart_where_they_are_asked_for():
    channel = DefaultChannel(5, [0.5, 0.5], [3], [[0.9, 0.1]])
    some = notions.abp(None, channel, secret=[3, 0, 4]).per_value.value
    whole = notions.abp(None, channel.matrix()).per_value.value
    np.testing.assert_allclose(some, whole[[3, 0, 4]], rtol=1e-12)
    belief = [0.1, 0.2, 0.3, 0.2, 0.2]
    np.testing.assert_allclose(
        notions.abp(None, channel, belief=belief).per_value.value,
        notions.abp(None, channel.matrix(), belief=belief).per_value.value, rtol=1e-12)
    out = np.empty((5, 2))
    notions.summary(None, channel, posteriors=out)
    np.testing.assert_allclose(out, channel.matrix() / channel.matrix().sum(axis=0))
    assert notions.map_secrets(None, channel).tolist() == [3, 0]
    assert notions.abp(None, RandomizedResponse(3, 1.0), secret=[0, 2]).per_value.shape == (2,)
    law = [0.25, 0.25, 0.25, 0.25, 0.0]
    np.testing.assert_allclose(
        notions.cd_lmip(law, channel).value, notions.cd_lmip(law, channel.matrix()).value, rtol=1e-13)


def test_results_are_compared_by_value_and_pickled():
    mechanism = GaussianMechanism(1.0)
    for call in (
        lambda: notions.mbp(PRIOR, ROWS), lambda: notions.abp(PRIOR, ROWS), lambda: notions.summary(PRIOR, ROWS),
        lambda: notions.robust_accuracy(mechanism, [0.0, 1.0], 0.0, [1.0, 2.0]),
    ):
        result = call()
        assert result == call() == pickle.loads(pickle.dumps(result))
        assert repr(result) == repr(call())
        assert len(result.to_frame()) >= len(result.estimates())
