"""Stacks of mechanisms and of priors: the bits of single calls for every function, broadcasting, threads, errors."""

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest

from fastpriv import (
    DomainError,
    Estimate,
    GaussianMechanism,
    Pmf,
    RandomizedResponse,
    calibration,
    channel_capacity,
    hockey_stick_divergence,
    mutual_information,
    notions,
)
from fastpriv.channels import ChannelStack
from fastpriv.distributions import PmfStack
from fastpriv.errors import NotConvergedError, ShapeError

RNG = np.random.default_rng(20)
LEVELS = [0.0, 1e-9, 0.3, 2.0, math.inf]
NOTIONS = {
    "ldp_epsilon": notions.ldp_epsilon, "lip_epsilon": notions.lip_epsilon, "mbp": notions.mbp,
    "cd_lmip": notions.cd_lmip, "pointwise_lmip": notions.pointwise_lmip, "summary": notions.summary,
    "bayes_vulnerability": notions.bayes_vulnerability, "min_entropy_leakage": notions.min_entropy_leakage,
    "maximal_leakage": notions.maximal_leakage, "abp": notions.abp, "map_secrets": notions.map_secrets,
    "ldp_delta": lambda prior, mechanism, **k: notions.ldp_delta(prior, mechanism, LEVELS, **k),
    "lip_delta": lambda prior, mechanism, **k: notions.lip_delta(prior, mechanism, LEVELS, **k),
    "log_lip_delta": lambda prior, mechanism, **k: notions.log_lip_delta(prior, mechanism, 0.5, **k),
    "lip_curves": lambda prior, mechanism, **k: notions.lip_curves(prior, mechanism, LEVELS, **k),
    "ci_lmip": lambda prior, mechanism, **k: notions.ci_lmip(mechanism, unit="bits", **k),
    "channel_capacity": lambda prior, mechanism, **k: channel_capacity(mechanism, **k),
}
OF_CHANNELS = ("bayes_vulnerability", "min_entropy_leakage", "maximal_leakage", "map_secrets", "summary", "ci_lmip",
               "channel_capacity")


def check(one, many, index):
    """The answer at this position of the stack is that of the single call, to the last bit."""
    if isinstance(one, Estimate):
        assert one.unit == many.unit
        for a, b in zip(one.arrays(), many.arrays(), strict=True):
            check(np.asarray(a), b, index)
    elif isinstance(one, np.ndarray):
        position = many[index]
        np.testing.assert_array_equal(one, position[tuple(map(slice, one.shape))], strict=one.ndim > 0)
        if position.shape != one.shape:  # shorter than others
            beyond = np.ones(position.shape, dtype=bool)
            beyond[tuple(map(slice, one.shape))] = False
            missing = position[beyond]
            assert np.all(missing == -1 if missing.dtype.kind == "i" else np.isnan(missing))
    elif isinstance(one, tuple):
        assert len(one) == len(many)
        for a, b in zip(one, many, strict=True):
            check(a, b, index)
    elif dataclasses.is_dataclass(one):
        assert type(one) is type(many)
        for field in dataclasses.fields(one):
            check(getattr(one, field.name), getattr(many, field.name), index)
    elif isinstance(one, str):
        assert one in many
    elif one is not None:
        assert one == many[index]


@pytest.mark.parametrize("name", [name for name in NOTIONS if name not in ("ci_lmip", "channel_capacity")])
def test_notions_of_a_channel_take_a_stack_of_priors(name):
    priors = RNG.dirichlet(np.ones(3), 4)
    pmfs, channel, function = PmfStack([5.0, 6.0, 7.0], priors), RandomizedResponse(3, 0.7), NOTIONS[name]
    found = function(pmfs, channel)
    assert pickle.dumps(found) == pickle.dumps(function(pmfs, channel, n_jobs=2))
    for i in range(4):
        check(function(pmfs[i], channel), found, i)


def test_levels_of_each_setting():
    levels = RNG.uniform(0, 2, (2, 1, 3))
    curve = notions.lip_delta(PRIORS[:4], GaussianMechanism(1.0), levels)
    assert curve.shape == (2, 4, 3)
    for i, j in np.ndindex(2, 4):
        check(notions.lip_delta(PRIORS[j], GaussianMechanism(1.0), levels[i, 0]), curve, (i, j))


def test_stacks_of_priors_and_of_channels_together():
    priors = RNG.dirichlet(np.ones(3), 4)
    priors[1] = [0.0, 1.0, 0.0]
    matrices = ChannelStack([[[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]]] * 4)
    pmfs = PmfStack([5.0, 6.0, 7.0], priors)
    check(notions.cd_lmip(priors[1], matrices[1]), notions.cd_lmip(pmfs, matrices), 1)


def nasty_priors(count=12, points=6):
    """Priors from nearly certain to uniform, with padding, on ranges from 1e-9 to 1e9."""
    values = RNG.normal(size=(count, points)) * 10.0 ** RNG.uniform(-9, 9, (count, 1))
    weights = RNG.dirichlet(np.full(points, 0.3), count)
    weights[0] = [0, 0, 1, 0, 0, 0]
    weights[1] = [0.5, 0, 0, 0, 0, 0.5]
    weights[2] = [1 - 1e-12, 1e-12, 0, 0, 0, 0]
    weights[3, :] = 1 / points
    values[1, 1:5] = 0.0
    return values, weights


VALUES, WEIGHTS = nasty_priors()
PRIORS = PmfStack(VALUES, WEIGHTS)
SIGMAS = np.concatenate([10.0 ** RNG.uniform(-10, 10, 5), [1e-200, 1e200]])[:, None]


def test_rows_of_a_stack_of_priors_are_their_pmfs():
    for row, (x, p) in enumerate(zip(VALUES, WEIGHTS, strict=True)):
        assert PRIORS[row] == Pmf(x[p > 0], p[p > 0])
    pmfs = [PRIORS[row] for row in range(len(PRIORS))]
    assert list(PmfStack.of(pmfs)) == pmfs
    assert PRIORS[2:4][1] == pmfs[3]
    assert PRIORS[None][0, 3] == pmfs[3]
    assert PmfStack.of([]).shape == (0,)
    assert PmfStack([1.0], [1.0])[()] == Pmf([1.0], [1.0])
    assert pickle.loads(pickle.dumps(PRIORS)) == PRIORS == copy.deepcopy(PRIORS)
    assert hash(PRIORS) == hash(PRIORS[:])
    assert repr(PRIORS) == "<PmfStack of shape (12,): 6 points>"


@pytest.mark.parametrize("certified", [False, True])
def test_information_of_priors_and_sigmas_is_that_of_single_calls_bit_for_bit(certified):
    found = mutual_information(PRIORS, SIGMAS, certified=certified, n_jobs=2)
    again = notions.cd_lmip(PRIORS, GaussianMechanism(SIGMAS), certified=certified)
    assert found.shape == (7, 12)
    assert found.cost == again.cost
    for i, j in np.ndindex(found.shape):
        one = mutual_information(PRIORS[j], SIGMAS[i, 0], certified=certified)
        check(one, found, (i, j))
        check(one, again, (i, j))
    several = mutual_information(PRIORS[3], SIGMAS[:, 0], certified=certified, unit="bits")
    check(mutual_information(PRIORS[3], SIGMAS[2, 0], certified=certified, unit="bits"), several, 2)


def test_information_of_many_points_is_grouped_row_by_row():
    prior = Pmf(np.arange(3000.0), np.full(3000, 1 / 3000))
    found = mutual_information(prior, [1.0, 1e4])
    check(mutual_information(prior, 1e4), found, 1)
    assert "nodes" in found.method


@pytest.mark.parametrize("name", [name for name in NOTIONS if name not in OF_CHANNELS])
def test_notions_of_gaussian_noise_take_priors_and_sigmas(name):
    function = NOTIONS[name]
    mechanism = GaussianMechanism(SIGMAS[:3])
    priors = PRIORS[:6]
    found = function(priors, mechanism)
    assert pickle.dumps(found) == pickle.dumps(function(priors, mechanism, n_jobs=2))
    for i, j in np.ndindex(3, 6):
        check(function(priors[j], GaussianMechanism(SIGMAS[i, 0])), found, (i, j))
    check(function(priors[3], GaussianMechanism(SIGMAS[1, 0])), function(priors[3], mechanism), (1, 0))
    check(function(priors[3], GaussianMechanism(2.0)), function(priors, GaussianMechanism(2.0, 1.0)), 3)


def test_releases_of_gaussian_noise_are_stacks():
    mechanism = GaussianMechanism([[1.0], [2.0]])
    release = mechanism.output_distribution(PRIORS)
    assert release.shape == (2, 12)
    assert release[1, 3] == PRIORS[3].through_gaussian(2.0)
    assert mechanism.output_distribution(PRIORS[1])[1, 0] == PRIORS[1].through_gaussian(2.0)
    assert GaussianMechanism(2.0).output_distribution(PRIORS)[4] == PRIORS[4].through_gaussian(2.0)
    points = mechanism.conditional_distribution([0.0, 1.0, 5.0])
    assert points.shape == (2, 3)
    assert points[1, 2] == GaussianMechanism(2.0).conditional_distribution(5.0)
    curve = hockey_stick_divergence(points, mechanism.output_distribution(PRIORS[1]), [0.5])
    assert curve.shape == (2, 3, 1)


CALIBRATIONS = {
    "sigma_from_lip": ((0.5, [[1e-6], [0.4]]), calibration.sigma_from_lip),
    "sigma_from_lip_log_delta": ((0.5, [[-900.0], [-1.0]]), calibration.sigma_from_lip_log_delta),
    "sigma_from_cd_lmip": (([[1e-6], [0.3]],), calibration.sigma_from_cd_lmip),
    "sigma_from_pointwise_lmip": (([[1e-6], [0.3]],), calibration.sigma_from_pointwise_lmip),
}


@pytest.mark.parametrize("name", CALIBRATIONS)
def test_calibration_takes_priors_and_targets(name):
    targets, function = CALIBRATIONS[name]
    values = np.array([[0.0, 1.0, 3.0], [-1e5, 2.0, 1e5], [0.0, 1e-8, 7.0]])
    priors = PmfStack(values, [[0.2, 0.5, 0.3], [0.98, 0.01, 0.01], [0.0, 1.0, 0.0]])
    found = function(*targets, priors)
    assert found.shape == (2, 3)
    assert pickle.dumps(found) == pickle.dumps(function(*targets, priors, n_jobs=2))
    for i, j in np.ndindex(2, 3):
        one = [target if np.ndim(target) == 0 else target[i][0] for target in targets]
        check(function(*one, priors[j]), found, (i, j))


def test_recorded_errors_keep_the_other_settings():
    priors = PmfStack([0.0, 1.0], [[0.5, 0.5], [0.5, 0.6], [0.1, 0.9]], errors="record")
    assert repr(priors) == "<PmfStack of shape (3,), 1 of them invalid: 2 points>"
    assert priors[1:].errors.keys() == {(0,)}
    with pytest.raises(DomainError, match="probabilities must sum to 1"):
        priors[1]
    for found in (
        notions.abp(priors, GaussianMechanism(1.0)).mean, mutual_information(priors, 1.0),
        notions.cd_lmip(priors, RandomizedResponse(2, 1.0)),
        notions.lip_delta(priors, GaussianMechanism(1.0), 0.5),
    ):
        assert np.isnan(found.value).tolist() == [False, True, False]
        assert "probabilities must sum to 1" in dict(found.cost["errors"])[1,]
    best = notions.map_secrets(priors, RandomizedResponse(2, 1.0))
    assert best.tolist() == [[0, 1], [-1, -1], [1, 1]]


def test_a_stack_of_no_axes_is_one_prior():
    with pytest.raises(TypeError, match="a PmfStack without leading axes has no length"):
        len(PmfStack([0.0], [1.0]))


NOISE = GaussianMechanism(1.0)
UNSOUND = PmfStack([0.0, 1.0], [[0.5, 0.6]], errors="record")
WRONG = {
    "empty": (lambda: notions.abp(PRIORS[:0], NOISE), DomainError,
              r"prior with mechanism must have a valid setting at least; got 0 invalid ones of shape \(0,\)"),
    "all invalid": (
        lambda: notions.abp(UNSOUND, NOISE), DomainError,
        r"must have a valid setting at least; got 1 invalid ones of shape \(1,\). the first is: probabilities must"),
    "broadcast": (lambda: notions.abp(PRIORS, GaussianMechanism(np.ones(5))), ShapeError,
                  r"leading axes must be of shapes that broadcast; got \(12,\) of prior and \(5,\) of mechanism"),
    "levels": (lambda: notions.lip_delta(PRIORS, NOISE, np.ones((3, 1))), ShapeError,
               "The last axis of epsilon belongs to each setting"),
    "posteriors": (
        lambda: notions.summary(PRIORS, RandomizedResponse(3, 1.0), posteriors=np.ones((3, 3))), DomainError,
        "posteriors must be None for a stack; got"),
    "a setting": (lambda: notions.cd_lmip(PRIORS, RandomizedResponse(3, 1.0)), ShapeError,
                  "prior must have one entry for each of the 3 secrets at setting 0; got 1"),
    "pmf": (lambda: PmfStack([0.0, 1.0], [[0.5, 0.5], [0.5, 0.6]]), DomainError,
            r"probabilities must sum to 1 within 1e-09 at row 1 \(1 of 2 rows\); got"),
    "pmf, NaN": (lambda: PmfStack([0.0, math.nan], [[0.5, 0.5]]), DomainError, "values must be"),
    "pmf, repeated": (lambda: PmfStack([[0.0, 1.0], [2.0, 2.0]], [0.5, 0.5]), DomainError, "values must be distinct"),
    "pmf, no point": (lambda: PmfStack([0.0, 1.0], [[0.0, 0.0]]), ShapeError, "must have at least one entry"),
    "pmf, shapes": (lambda: PmfStack([0.0, 1.0], [1.0]), ShapeError,
                    "values and probabilities must have leading axes that broadcast, and one last axis"),
    "pmf, of": (lambda: PmfStack.of([Pmf([0.0], [1.0]), 1.0]), DomainError, r"pmfs\[1\] must be a Pmf"),
    "sigma": (lambda: mutual_information(PRIORS, np.ones(5)), ShapeError, "sigma must be of a shape that broadcasts"),
    "sigma, range": (lambda: mutual_information(PRIORS, [[1.0], [0.0]]), DomainError, "sigma must be positive"),
    "prior of information": (lambda: mutual_information([0.5, 0.5], [1.0, 2.0]), DomainError, "prior must be a Pmf"),
    "no proof": (
        lambda: calibration.sigma_from_lip(0.5, 0.4, PmfStack([[0.0, 1e-300]], [0.5, 0.5])),
        (DomainError, NotConvergedError), "at setting 0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_every_error(case):
    call, error, text = WRONG[case]
    with pytest.raises(error, match=text):
        call()
