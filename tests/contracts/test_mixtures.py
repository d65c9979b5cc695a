"""GaussianMixture in d dimensions: forms, shapes, immutability, and the sentence that every fault gets."""

import base64
import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import fastpriv as fp
from fastpriv import DomainError, GaussianMixture, MixtureStack, Pmf
from fastpriv.base import validate
from fastpriv.distributions import PmfStack
from fastpriv.errors import ShapeError

HALF = [0.5, 0.5]
TWO = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
FULL = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])
STACK = np.array([FULL, 2 * FULL])
# GaussianMixture([0.25, 0.75], [0.0, 3.0], [1.0, 2.0]) and Pmf([0.0, 1.0], [0.5, 0.5]), pickled by version 0.2.0
OLD_MIXTURE = """
gASVJgEAAAAAAACMFmZhc3Rwcml2LmRpc3RyaWJ1dGlvbnOUjA9HYXVzc2lhbk1peHR1cmWUk5SMFm51bXB5Ll9jb3JlLm11bHRpYXJyYXmUjAxf
cmVjb25zdHJ1Y3SUk5SMBW51bXB5lIwHbmRhcnJheZSTlEsAhZRDAWKUh5RSlChLAUsChZRoBowFZHR5cGWUk5SMAmY4lImIh5RSlChLA4wBPJROTk5K
/////0r/////SwB0lGKJQxAAAAAAAADQPwAAAAAAAOg/lHSUYmgFaAhLAIWUaAqHlFKUKEsBSwKFlGgSiUMQAAAAAAAAAAAAAAAAAAAIQJR0lGJoBWgI
SwCFlGgKh5RSlChLAUsChZRoEolDEAAAAAAAAPA/AAAAAAAAAECUdJRih5RSlC4=
"""
OLD_LAW = """
gASV7AAAAAAAAACMFmZhc3Rwcml2LmRpc3RyaWJ1dGlvbnOUjANQbWaUk5SMFm51bXB5Ll9jb3JlLm11bHRpYXJyYXmUjAxfcmVjb25zdHJ1Y3SUk5SM
BW51bXB5lIwHbmRhcnJheZSTlEsAhZRDAWKUh5RSlChLAUsChZRoBowFZHR5cGWUk5SMAmY4lImIh5RSlChLA4wBPJROTk5K/////0r/////SwB0lGKJ
QxAAAAAAAAAAAAAAAAAAAPA/lHSUYmgFaAhLAIWUaAqHlFKUKEsBSwKFlGgSiUMQAAAAAAAA4D8AAAAAAADgP5R0lGKGlFKULg==
"""


@pytest.mark.parametrize(
    ("sigmas", "form", "shared", "kept"),
    [
        (2.0, "isotropic", True, [2.0, 2.0]),
        ([1.0, 2.0], "isotropic", False, [1.0, 2.0]),
        ([[1.0], [2.0]], "isotropic", False, [1.0, 2.0]),
        ([[2.0]], "isotropic", True, [2.0, 2.0]),
        ([[1.0, 2.0, 3.0]], "diagonal", True, [[1.0, 2.0, 3.0]] * 2),
        ([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "diagonal", False, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        ([[1.0, 1.0, 1.0], [4.0, 4.0, 4.0]], "isotropic", False, [1.0, 4.0]),
    ],
)
def test_sigmas_say_the_form(sigmas, form, shared, kept):
    p = GaussianMixture(HALF, TWO, sigmas)
    assert (p.form, p.shared, p.sigmas.tolist(), p.dimension, len(p)) == (form, shared, kept, 3, 2)
    assert p.covariances is None
    assert p.factors is None
    squares = np.broadcast_to(p.sigmas.reshape(2, -1) ** 2, (2, 3))
    assert GaussianMixture(HALF, TWO, covariances=squares[:, :, None] * np.eye(3)) == p


def test_covariances_are_kept_in_their_simplest_form():
    p = GaussianMixture(HALF, TWO, covariances=STACK)
    assert (p.form, p.shared, p.sigmas, p.covariances.tolist()) == ("full", False, None, STACK.tolist())
    assert p.factors is p.factors
    np.testing.assert_allclose(p.factors @ p.factors.swapaxes(1, 2), STACK, rtol=1e-15, atol=1e-15)
    assert np.triu(p.factors[0], 1).tolist() == np.zeros((3, 3)).tolist()
    one = GaussianMixture(HALF, TWO, covariances=FULL)
    assert (one.form, one.shared, one.covariances.shape, one.factors.shape) == ("full", True, (1, 3, 3), (1, 3, 3))
    assert one == GaussianMixture(HALF, TWO, covariances=[FULL, FULL]) == GaussianMixture(HALF, TWO, covariances=[FULL])
    assert GaussianMixture(HALF, TWO, covariances=np.eye(3, dtype=int)) == GaussianMixture(HALF, TWO, 1.0)
    dropped = GaussianMixture([0.5, 0.0, 0.5], TWO[[0, 0, 1]], covariances=STACK[[0, 1, 0]])
    assert dropped == one
    assert GaussianMixture([0.5, 0.0, 0.5], TWO[[0, 0, 1]], covariances=STACK[[0, 1, 1]]) == p
    assert GaussianMixture([0.5, 0.0, 0.5], TWO[[0, 0, 1]], [[1, 2, 3], [9, 9, 9], [1, 2, 3]]).shared


def test_one_coordinate_is_the_line():
    p = GaussianMixture(HALF, [0.0, 1.0], [2.0, 3.0])
    assert (p.form, p.dimension, p.shared, p.covariances, p.factors) == ("univariate", 1, False, None, None)
    assert GaussianMixture(HALF, [[0.0], [1.0]], [2.0, 3.0]) == p
    assert GaussianMixture(HALF, [[0.0], [1.0]], [[2.0], [3.0]]) == p
    assert GaussianMixture(HALF, [[0.0], [1.0]], covariances=[[[4.0]], [[9.0]]]) == p
    assert GaussianMixture(HALF, [0.0, 1.0], covariances=[[[4.0]], [[9.0]]]) == p
    assert GaussianMixture(HALF, [[0.0], [1.0]], [[2.0]]) == GaussianMixture(HALF, [0.0, 1.0], 2.0)
    assert hash(GaussianMixture(HALF, [0.0, -0.0], 1.0)) == hash(GaussianMixture(HALF, [-0.0, 0.0], 1.0))


@pytest.mark.parametrize("size", [2, 50, 1000])
def test_weights_of_float32_are_divided_by_their_sum_in_doubles(size):
    """Every door: mixtures, pmfs and stacks of both. Lists, and sums beyond what float32 explains, are refused."""
    weights = np.random.default_rng(size).dirichlet(np.ones(size)).astype(np.float32)
    weights[0] *= np.float32(1 + 1e-6 / max(float(weights[0]), 0.5))
    total = sum(map(Fraction, weights.tolist()))
    points = np.arange(float(size))
    wanted = np.array([float(Fraction(weight) / total) for weight in weights.tolist()])
    assert 1e-9 < abs(total - 1) < 2e-6
    one = GaussianMixture(weights, points, 1.0).weights, Pmf(points, weights).probabilities
    rows = MixtureStack(weights[None], points, 1.0).weights[0], PmfStack(points, weights[None]).probabilities[0]
    for stored in (*one, *rows):
        assert stored.dtype == np.float64
        assert np.abs(stored / wanted - 1).max() <= 2.0**-52
    with pytest.raises(DomainError, match="must sum to 1 within 1e-09"):
        GaussianMixture(weights.tolist(), points, 1.0)
    with pytest.raises(DomainError, match="must sum to 1 within 1e-09"):
        Pmf(points, weights * np.float32(1 + 4e-6))


def test_single_laws():
    assert GaussianMixture.single([0.0, 1.0], 2.0) == GaussianMixture([1.0], [[0.0, 1.0]], 2.0)
    assert GaussianMixture.single([0.0, 1.0], [2.0, 3.0]) == GaussianMixture([1.0], [[0.0, 1.0]], [[2.0, 3.0]])
    assert GaussianMixture.single(TWO[0], covariance=FULL) == GaussianMixture([1.0], TWO[:1], covariances=FULL)
    assert GaussianMixture.single(1.0, covariance=[[4.0]]) == GaussianMixture.single(1.0, 2.0)
    assert GaussianMixture.single([1.0], [2.0]) == GaussianMixture.single(1.0, 2.0)
    with pytest.raises(ShapeError, match="sigma must be a single number; got an array of shape"):
        GaussianMixture.single(1.0, [1.0, 2.0])
    with pytest.raises(ShapeError, match="mean must be one-dimensional; got shape"):
        GaussianMixture.single([[1.0]], 1.0)


LAWS = [
    GaussianMixture(HALF, TWO, [1.0, 2.0]), GaussianMixture(HALF, TWO, [[1.0, 2.0, 3.0]]),
    GaussianMixture(HALF, TWO, covariances=STACK), GaussianMixture(HALF, TWO, covariances=FULL),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.form)
def test_laws_are_immutable_equal_hashable_and_picklable(law):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        twin = pickle.loads(pickle.dumps(law, protocol))
        assert twin == law
        assert hash(twin) == hash(law)
        assert twin.form == law.form
        assert twin.log_density(TWO).tobytes() == law.log_density(TWO).tobytes()
        if law.form == "full":
            assert twin.factors.tobytes() == law.factors.tobytes()
            assert not twin.covariances.flags.writeable
    assert copy.deepcopy(law) is law
    assert copy.copy(law) is law
    for name in ("weights", "means", "sigmas", "covariances", "factors"):
        array = getattr(law, name)
        if array is not None:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1.0
    with pytest.raises(AttributeError, match="GaussianMixture is immutable; build a new one instead of setting means"):
        law.means = 0
    assert len({law, *LAWS}) == 4
    assert law != GaussianMixture(HALF, [0.0, 1.0], 1.0)


def test_old_pickles_load():
    assert pickle.loads(base64.b64decode(OLD_MIXTURE)) == GaussianMixture([0.25, 0.75], [0.0, 3.0], [1.0, 2.0])
    assert pickle.loads(base64.b64decode(OLD_LAW)) == Pmf([0.0, 1.0], [0.5, 0.5])


def test_representations():
    p, q = LAWS[0], LAWS[2]
    assert repr(p) == "GaussianMixture([0.5, 0.5], [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [1.0, 2.0])"
    assert repr(GaussianMixture.single([0.0, 1.0], covariance=[[2.0, 1.0], [1.0, 2.0]])) == (
        "GaussianMixture([1.0], [[0.0, 1.0]], covariances=[[[2.0, 1.0], [1.0, 2.0]]])"
    )
    assert repr(q) == "<GaussianMixture of 2 components in 3 dimensions, full>"
    assert repr(GaussianMixture.single(np.zeros(100), 1.0)) == (
        "<GaussianMixture of 1 component in 100 dimensions, isotropic>"
    )
    for law in (p, LAWS[1], GaussianMixture.single([0.0, 1.0], covariance=[[2.0, 1.0], [1.0, 2.0]])):
        assert eval(repr(law)) == law


def test_arguments_are_copied_unless_nobody_can_write_to_them():
    given = STACK.copy()
    p = GaussianMixture(HALF, TWO, covariances=given)
    given[:] = np.eye(3)
    assert p == LAWS[2]
    lasting = STACK.copy()
    view = lasting[:]
    view.setflags(write=False)
    assert not np.shares_memory(GaussianMixture(HALF, TWO, covariances=view).covariances, lasting)
    lasting.setflags(write=False)
    assert np.shares_memory(GaussianMixture(HALF, TWO, covariances=lasting).covariances, lasting)
    for other in (lasting.astype(">f8"), lasting.astype(np.longdouble), np.asfortranarray(lasting), lasting.tolist()):
        assert GaussianMixture(HALF, TWO, covariances=other) == p
    means = TWO.copy()
    p = GaussianMixture(HALF, means, 1.0)
    means[:] = 0.0
    assert p == GaussianMixture(HALF, TWO, 1.0)


def test_rounding_off_symmetry_is_averaged():
    given = STACK.copy()
    given[0, 0, 1] += 4e-16
    p = GaussianMixture(HALF, TWO, covariances=given)
    assert np.array_equal(p.covariances, p.covariances.swapaxes(1, 2))
    assert abs(p.covariances[0, 0, 1] - 1.0) < 4e-16


def bad(matrix, where=1):
    stack = np.array([np.eye(2)] * 3)
    stack[where] = matrix
    return stack


FAULTS = [
    (bad([[1, 2], [2, 1]]), "positive definite; got a smallest eigenvalue of -1, for unit variances, at index 1 "),
    (bad([[4, 16], [16, 16]], 2), r"smallest eigenvalue of -1, for unit variances, at index 2 \(1 of 3 matrices\)"),
    (bad([[1, 1], [1, 1]]), "positive definite to rounding; got a smallest eigenvalue of .*, for unit variances"),
    (bad([[1e-200, 1], [1, 1e200]]), r"\(1 of 3 matrices\). Drop coordinates that others determine, or add a small"),
    (bad([[1, 1 - 1e-15], [1 - 1e-15, 1]]), "covariances must be positive definite to rounding"),
    (bad([[1e-300, 1e308], [1e308, 1e300]]), "positive definite; got a smallest eigenvalue of -1e.100, for unit varia"),
    (bad([[1, 0.5], [0.4, 1]]), r"symmetric to rounding; got 0.5 at index \(1, 0, 1\) \(2 of 12 entries\). Pass \(K"),
    (bad([[1, math.nan], [0, 1]]), r"made of finite numbers; got nan at index \(1, 0, 1\) \(1 of 12 entries\)"),
    (bad([[1, 0], [0, math.inf]]), r"covariances must be made of finite numbers; got inf at index \(1, 1, 1\)"),
    (bad([[0, 0], [0, 1]]), r"covariances must be positive on their diagonals.*got 0.0 at index \(1, 0, 0\)"),
    (bad([[1, 0], [0, -1]]), "positive on their diagonals, between 1e-300 and 1e300; got -1.0"),
    (bad([[1e301, 0], [0, 1]]), "positive on their diagonals, between 1e-300 and 1e300; got 1e.301"),
    (bad([[1e-301, 0], [0, 1]]), "positive on their diagonals, between 1e-300 and 1e300; got 1e-301"),
    (bad([[1, 0.5], [0.5, 1]]) * (1 + 0j), "covariances must be made of finite numbers; got array"),
    (np.array([["a"]]), "covariances must be made of finite numbers; got array"),
    ([[1.0, 0.0], [0.0]], "covariances must be made of finite numbers; got"),
    (np.full((2, 2), np.longdouble("1e4000")), "covariances must be made of finite numbers; got"),
]


@pytest.mark.parametrize(("covariances", "message"), FAULTS, ids=range(len(FAULTS)))
def test_covariances_that_are_none(covariances, message):
    with pytest.raises(DomainError, match=message):
        GaussianMixture([0.25, 0.25, 0.5], np.zeros((3, 2)), covariances=covariances)


def test_the_index_is_that_of_the_argument():
    stack = bad([[1, 2], [2, 1]], 2)
    stack[0] = [[2, 1], [1, 2]]
    with pytest.raises(DomainError, match=r"at index 2 \(1 of 2 matrices\)"):
        GaussianMixture([0.5, 0.0, 0.5], np.zeros((3, 2)), covariances=stack)


def test_a_singular_matrix_is_seen_in_many_dimensions():
    rng = np.random.default_rng(3)
    data = rng.normal(size=(50, 60)) * 10.0 ** rng.uniform(-100, 100, 60)
    estimate = data.T @ data
    with pytest.raises(DomainError, match="got a smallest eigenvalue of .*, for unit variances, at index 0"):
        GaussianMixture.single(np.zeros(60), covariance=(estimate + estimate.T) / 2)
    # no pivot of this factor is small, yet its matrix is singular to rounding
    lower = np.eye(60) - np.tril(np.ones((60, 60)), -1)
    with pytest.raises(DomainError, match="positive definite to rounding"):
        GaussianMixture.single(np.zeros(60), covariance=lower @ lower.T)


def test_a_nearly_singular_matrix_is_kept():
    for least in (1e-10, 1e-14):
        matrix = np.array([[1.0, 1.0 - least], [1.0 - least, 1.0]])
        assert GaussianMixture.single([0.0, 0.0], covariance=matrix).form == "full"
    kernel = np.exp(-0.5 * np.subtract.outer(np.arange(300.0), np.arange(300.0)) ** 2 / 900)
    assert GaussianMixture.single(np.zeros(300), covariance=kernel + 1e-9 * np.eye(300)).form == "full"


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "message"),
    [
        ((HALF, TWO), {}, DomainError, "sigmas must be given, or else covariances, and not both; got neither"),
        ((HALF, [0, 1]), {}, DomainError, "sigmas must be given, or else covariances, and not both; got neither"),
        ((HALF, TWO, 1.0), {"covariances": FULL}, DomainError, "and not both; got both. Pass standard deviations as"),
        ((HALF, TWO, [1, 2, 3]), {}, ShapeError, r"got \(3,\). Pass shape \(1, 3\) for one standard deviation a coord"),
        ((HALF, TWO, [1, 2, 3, 4]), {}, ShapeError, r"sigmas must be a number or of shape \(2,\), \(2, 1\), \(1, 3\)"),
        ((HALF, TWO, np.ones((3, 3))), {}, ShapeError, r"or \(2, 3\) for means of shape \(2, 3\); got \(3, 3\)"),
        ((HALF, TWO, np.ones((2, 1, 3))), {}, ShapeError, r"got \(2, 1, 3\). Pass one standard deviation a component"),
        ((HALF, TWO, []), {}, ShapeError, r"got \(0,\). Pass one standard deviation a component"),
        ((HALF, TWO, [1.0, 0.0]), {}, DomainError, "sigmas must be positive and between 1e-300 and 1e300; got 0.0"),
        ((HALF, TWO, [1.0, math.nan]), {}, DomainError, "sigmas must be positive and between 1e-300 and 1e300; got na"),
        ((HALF, TWO, 1j), {}, DomainError, "sigmas must be positive and between 1e-300 and 1e300; got 1j"),
        ((HALF, TWO, 1e301), {}, DomainError, "sigmas must be positive and between 1e-300 and 1e300; got 1e.301"),
        ((HALF, TWO * 1j, 1.0), {}, DomainError, "means must be finite and at most 1e300 in size; got array"),
        ((HALF, TWO * 1e300, 1.0), {}, DomainError, r"means must be finite .*; got 2e\+300 at index \(0, 2\) \(4 of 6"),
        ((HALF, TWO * math.nan, 1.0), {}, DomainError, "means must be finite and at most 1e300 in size; got nan"),
        ((HALF, np.zeros((2, 0)), 1.0), {}, ShapeError, r"at least one coordinate; got shape \(2, 0\). Pass shape \(k"),
        ((HALF, np.zeros((0, 2)), 1.0), {}, ShapeError, "means must have one row a component and at least one coord"),
        ((HALF, np.zeros((2, 1, 1)), 1.0), {}, ShapeError, "means must have one row a component and at least one coor"),
        ((HALF, np.zeros((3, 2)), 1.0), {}, ShapeError, r"means must have one row for each of the 2 weights; got shap"),
        (([], np.zeros((0, 2)), 1.0), {}, ShapeError, "weights must have at least one entry; got an empty sequence"),
        (([0.5, 0.4], TWO, 1.0), {}, DomainError, "weights must sum to 1 within 1e-09; got a sum of 0.9"),
        ((HALF, TWO), {"covariances": 1.0}, ShapeError, r"covariances must be of shape \(3, 3\) or \(2, 3, 3\); got"),
        ((HALF, TWO), {"covariances": np.eye(2)}, ShapeError, r"got \(2, 2\). Pass one matrix for all components or o"),
        ((HALF, TWO, STACK), {}, ShapeError, r"sigmas must be .*; got \(2, 3, 3\). Matrices go to covariances=."),
        ((HALF, TWO, np.ones((3, 3))), {}, ShapeError, r"got \(3, 3\). Matrices go to covariances=."),
        (([0.33333334, 0.6666667], TWO, 1.0), {}, DomainError, "Divide in doubles, as in w = np.asarray.weights, d"),
        (([-0.5, 1.5], TWO, 1.0), {}, DomainError, "Pass one number for each, relative ones divided by their sum"),
        ((HALF, TWO), {"covariances": 2.0}, ShapeError, r"got \(\). Pass variances as sigmas=np.sqrt.variances"),
        ((HALF, TWO), {"covariances": np.ones((2, 3))}, ShapeError, r"got \(2, 3\). Pass variances as sigmas=np.sqrt"),
        ((HALF, TWO), {"covariances": [1, 2, 3]}, ShapeError, r"got \(3,\). Pass .* standard deviations go to sigmas"),
    ],
)
def test_faults_are_named(arguments, keywords, error, message):
    with pytest.raises(error, match=message):
        GaussianMixture(*arguments, **keywords)


def test_points_and_sources_are_checked():
    line, plane = GaussianMixture(HALF, [0.0, 1.0], 1.0), LAWS[0]
    assert line.log_density(0.0).shape == ()
    assert line.log_density([0.0]).shape == line.log_density([[0.0]]).shape == (1,)
    assert plane.log_density(TWO[0]).shape == ()
    assert plane.log_density(TWO).tolist() == [plane.log_density(row) for row in TWO]
    assert plane.log_density(np.empty((0, 3))).shape == (0,)
    with pytest.raises(ShapeError, match=r"x must be of shape \(n,\) or \(n, 1\); got \(1, 2\). Pass one row of coord"):
        line.log_density([[0.0, 1.0]])
    for wrong in ([0.0, 1.0], [[0.0, 1.0]], 0.0, np.zeros((1, 1, 3))):
        with pytest.raises(ShapeError, match=r"x must be of shape \(n, 3\) or \(3,\); got "):
            plane.log_density(wrong)
    for wrong in (math.nan, math.inf):
        with pytest.raises(DomainError, match="x must be made of finite numbers; got (nan|inf)"):
            plane.log_density([0.0, 0.0, wrong])
    with pytest.raises(DomainError, match="size must be an integer of at least 0; got 1.5"):
        plane.sample(1.5)
    for wrong in ("seed", -1, 1.5, True):
        with pytest.raises(DomainError, match="rng must be None, an integer of at least 0, a sequence of these, a See"):
            plane.sample(1, rng=wrong)


def test_requests_beyond_the_machine_are_refused(monkeypatch):
    with pytest.raises(MemoryError, match="size must fit in memory; got a need of 2.4e.07 GB with .* GB free. Draw an"):
        LAWS[0].sample(10**15)
    monkeypatch.setattr(validate, "_UNCHECKED_BYTES", 0)
    monkeypatch.setattr(validate, "_free_memory", lambda: 100.0)
    with pytest.raises(MemoryError, match="covariances must fit in memory; .* Cholesky factors take as much again as"):
        GaussianMixture(HALF, TWO, covariances=STACK)
    lasting = STACK.copy()
    lasting.setflags(write=False)
    with pytest.raises(MemoryError, match="covariances must fit in memory; .* a copy, which a C-contiguous array of"):
        GaussianMixture(HALF, TWO, covariances=lasting)
    with pytest.raises(MemoryError, match="indices must fit in memory; .* Keep fewer coordinates"):
        LAWS[2].marginal([0, 1, 2])
    with pytest.raises(MemoryError, match="matrix must fit in memory; .* Map to fewer dimensions"):
        LAWS[0].affine(np.eye(3))
    with pytest.raises(MemoryError, match="matrix must fit in memory; .* The image has as many matrices"):
        LAWS[2].affine(2.0)
    monkeypatch.setattr(validate, "_free_memory", lambda: 300.0)
    assert GaussianMixture(HALF, TWO, covariances=lasting) == LAWS[2]
    monkeypatch.setattr(validate, "_free_memory", lambda: 200.0)
    with pytest.raises(MemoryError, match="covariances must fit in memory; got a need of 2.88e-07 GB with 2e-07 GB fr"):
        GaussianMixture(HALF, TWO, covariances=STACK)


def test_one_law_says_which_argument_takes_a_matrix():
    for wrong in (np.eye(3), [1.0, 1.0]):
        with pytest.raises(ShapeError, match=r"sigma must be a number or of shape \(3,\); got .*. A matrix goes to"):
            GaussianMixture.single([0.0, 0.0, 0.0], wrong)


def test_a_broadcast_matrix_is_looked_at_once():
    many = np.broadcast_to(FULL, (10**6, 3, 3))
    law = GaussianMixture(np.full(10**6, 1e-6), np.zeros((10**6, 3)), covariances=many)
    assert law.shared
    assert law.covariances.shape == (1, 3, 3)


def test_a_matrix_beyond_the_machine_is_refused_in_our_words():
    d = 10**7
    with pytest.raises(MemoryError, match="covariances must fit in memory; got a need of 9e.05 GB"):
        GaussianMixture([1.0], np.zeros((1, d)), covariances=np.broadcast_to(1.0, (d, d)))


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_what_scikit_learn_fits_is_taken_as_the_docstring_says(kind):
    variances = np.diagonal(STACK, axis1=1, axis2=2)
    covariances_ = {"full": STACK, "tied": FULL, "diag": variances, "spherical": np.array([1.0, 4.0])}[kind]
    if kind in ("full", "tied"):
        law = GaussianMixture(HALF, TWO, covariances=covariances_)
    else:
        law = GaussianMixture(HALF, TWO, np.sqrt(covariances_))
    matrices = {"full": STACK, "tied": [FULL, FULL], "diag": map(np.diag, variances), "spherical": [1.0, 4.0]}
    x = np.random.default_rng(1).normal(size=(50, 3))
    each = [multivariate_normal(m, K).logpdf(x) for m, K in zip(TWO, matrices[kind], strict=True)]
    np.testing.assert_allclose(law.log_density(x), np.logaddexp(*each) - np.log(2.0), rtol=1e-12)


def test_free_memory_is_known():
    assert 2**20 < validate._free_memory() < 2**60


def test_a_curve_of_the_line_refuses_more_dimensions():
    line = GaussianMixture(HALF, [0.0, 1.0], 1.0)
    with pytest.raises(ShapeError, match="p must be a mixture in one dimension; got one in 3 dimensions. Take a"):
        fp.conversions.HockeyStickCurve(LAWS[0], line)
    with pytest.raises(ShapeError, match="q must be a mixture in one dimension; got one in 3 dimensions. Take a"):
        fp.conversions.HockeyStickCurve(line, LAWS[2])


def test_faults_of_marginals_and_images():
    p = LAWS[2]
    for wrong in ([], [[0]]):
        with pytest.raises(DomainError, match="indices must be one or more integers; got .* Name the coordinates to k"):
            p.marginal(wrong)
    for wrong in ([0, 0], [3], [-1], 1.5, [True], "a"):
        with pytest.raises(DomainError, match="indices must be different integers from 0 to 2; got .* Count coordina"):
            p.marginal(wrong)
    for wrong in ([1.0, 2.0], np.eye(2), np.ones((4, 3)), np.ones((1, 1, 3)), np.ones((0, 3))):
        with pytest.raises(ShapeError, match=r"matrix must be a number, of shape \(3,\) or of shape \(m, 3\) with m f"):
            p.affine(wrong)
    with pytest.raises(ShapeError, match=r"shift must be a number or of shape \(1,\); got \(2,\). Pass one entry a ro"):
        p.affine([[1.0, 0.0, 0.0]], [1.0, 2.0])
    for wrong in (0.0, [1.0, 0.0, 2.0]):
        with pytest.raises(DomainError, match="matrix must be without zeros, so that the image has a density; got "):
            p.affine(wrong)
    for wrong in (np.ones((2, 3)), np.zeros((1, 3)), [[1.0, 0.0, 0.0], [1.0, 1e-17, 0.0]]):
        with pytest.raises(DomainError, match="matrix must map to a distribution within .*, and not onto fewer dim"):
            p.affine(wrong)
    for law in LAWS:
        for wrong in (1e308, [1e-308, 1.0, 1.0], np.diag([1e308, 1.0, 1.0]), [[1e308, 1e308, 0.0]]):
            with pytest.raises(DomainError, match="matrix must map to a distribution within .* of which "):
                law.affine(wrong)
