"""Stacks of mixtures: the answers of single calls bit for bit, broadcasting as NumPy has it, and errors of rows."""

import copy
import itertools
import json
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fastpriv as fp
from fastpriv import GaussianMixture, MixtureStack
from fastpriv.base.errors import DomainError, ShapeError

LINE = GaussianMixture([0.25, 0.75], [0.0, 1.0], 1.0)
BASE = GaussianMixture.single(0.0, 1.0)


def nasty(rng, k):
    """Parameters of a mixture: ordinary ones, and of every kind that makes brackets wide."""
    kind = rng.integers(8)
    w = rng.dirichlet(np.ones(k)) if kind % 2 else rng.integers(0, 3, k) + (np.arange(k) == 0)
    w = w / w.sum()
    m, s = rng.normal(size=k), rng.uniform(0.5, 2.0, k)
    if kind == 1:  # scales apart
        s = 10.0 ** rng.uniform(-100, 100, k)
    elif kind == 2:  # tiny and huge
        m, s = m * 1e-300, 10.0 ** rng.uniform(-290, -100, k)
    elif kind == 3:  # almost equal
        m, s = m * 1e-9, 1.0 + 1e-12 * s
    elif kind == 4:  # far apart
        m = m * 1e5
    elif kind == 5:  # a component that hardly weighs
        w = np.append(1.0 - 1e-12 * (k - 1), np.full(k - 1, 1e-12))
    elif kind == 6:
        m, s = m * 1e300 / 4, 10.0 ** rng.uniform(280, 299, k)
    return w, m, s


def stack_of(rows):
    k = max(len(w) for w, _, _ in rows)
    w, m, s = np.zeros((len(rows), k)), np.zeros((len(rows), k)), np.ones((len(rows), k))
    for i, row in enumerate(rows):
        w[i, : len(row[0])], m[i, : len(row[0])], s[i, : len(row[0])] = row
    return MixtureStack(w, m, s)


def same_bits(estimate, index, one):
    row = estimate if index is None else estimate[index]
    for name in ("value", "lower", "upper"):
        assert np.asarray(getattr(row, name)).tobytes() == np.asarray(getattr(one, name)).tobytes(), (index, row, one)
    assert fp.estimate.KINDS.index(one.kind) <= fp.estimate.KINDS.index(estimate.kind)
    assert all(part in estimate.method for part in one.method.split("; "))


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("logs", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_hockey_stick_curves_are_those_of_single_calls_bit_for_bit(seed, logs):
    rng = np.random.default_rng(seed)
    rows_p, rows_q = ([nasty(rng, int(rng.integers(1, 6))) for _ in range(24)] for _ in range(2))
    p, q = stack_of(rows_p), stack_of(rows_q)
    epsilon = [0.0, 1e-9, 0.5, 3.0, 40.0, np.inf]
    function = fp.divergences.log_hockey_stick_divergence if logs else fp.hockey_stick_divergence
    found = function(p, q, epsilon)
    assert found.shape == (24, 6)
    cost = 0
    for i in range(24):
        one = function(GaussianMixture(*rows_p[i]), GaussianMixture(*rows_q[i]), epsilon)
        same_bits(found, i, one)
        cost += one.cost["evaluations"]
    assert found.cost["evaluations"] == cost
    assert "closed bounds" in found.method


def test_long_grids_are_those_of_single_calls_bit_for_bit():
    rng = np.random.default_rng(9)
    p = MixtureStack(rng.dirichlet(np.ones(4), 3), rng.normal(size=(3, 4)), rng.uniform(0.5, 2.0, (3, 4)))
    epsilon = np.linspace(0.0, 4.0, 3000)
    found = fp.hockey_stick_divergence(p, p[::-1], epsilon)
    for i in range(3):
        same_bits(found, i, fp.hockey_stick_divergence(p[i], p[2 - i], epsilon))


@pytest.mark.slow
@pytest.mark.parametrize("certified", [False, True])
@pytest.mark.parametrize("name", ["kl_divergence", "jensen_shannon", "renyi_divergence", "total_variation", "entropy",
                                  "label_information"])
def test_other_quantities_are_those_of_single_calls_bit_for_bit(name, certified):
    rng = np.random.default_rng(8)
    rows_p, rows_q = ([nasty(rng, int(rng.integers(1, 5))) for _ in range(12)] for _ in range(2))
    function, p, q = getattr(fp.divergences, name), stack_of(rows_p), stack_of(rows_q)
    options = {} if name == "total_variation" else {"certified": certified}
    if name == "label_information":  # reduced: the components of a row share a standard deviation
        rows_p = [(w, m, s[:1]) for w, m, s in rows_p]
        p = stack_of([(w, m, np.full(len(w), s[0])) for w, m, s in rows_p])
        options |= {"rng": 1, "max_samples": 1000}
    alone = name in ("entropy", "label_information")
    found = function(p, **options) if alone else function(p, q, **options)
    assert found.shape == (12,)
    for i in range(12):
        arguments = [GaussianMixture(*rows[i]) for rows in ([rows_p] if alone else [rows_p, rows_q])]
        one = function(*arguments, **options)
        if one.kind != "statistical":
            same_bits(found, i, one)


TABLE = [  # leading axes of P, leading axes of Q, shape of epsilon
    ((), (), ()), ((3,), (), ()), ((), (3,), (4,)), ((3,), (3,), (4,)), ((3, 1), (2,), ()), ((3, 1), (1, 2), (5,)),
    ((2,), (3, 1), (1, 2, 4)), ((), (), (3, 2)), ((3,), (3,), (3, 1)), ((2, 3), (3,), (2, 1, 4)), ((0,), (), (4,)),
    ((2, 0), (1,), ()), ((3,), (), (0,)), ((1,), (1,), (1,)), ((2, 1, 3), (4, 1), ()),
]


@pytest.mark.parametrize(("of_p", "of_q", "of_epsilon"), TABLE)
def test_broadcasting_is_that_of_a_generalised_ufunc(of_p, of_q, of_epsilon):
    rng = np.random.default_rng(0)
    p = MixtureStack([0.5, 0.5], rng.normal(size=(*of_p, 2)), 1.0)
    q = MixtureStack([1.0], rng.normal(size=(*of_q, 1)), 1.5)
    epsilon = rng.exponential(size=of_epsilon)
    signature = "(k),(j),(e)->(e)" if of_epsilon else "(k),(j),()->()"

    def one(p_means, q_means, epsilon):
        pair = GaussianMixture([0.5, 0.5], p_means, 1.0), GaussianMixture([1.0], q_means, 1.5)
        return fp.hockey_stick_divergence(*pair, epsilon).value

    found = fp.hockey_stick_divergence(p, q, epsilon)
    shape = np.broadcast_shapes(of_p, of_q, of_epsilon[:-1]) + of_epsilon[-1:]
    assert found.shape == shape
    if found.value.size if shape else True:
        expected = np.vectorize(one, signature=signature, otypes=[float])(p.means, q.means, epsilon)
        assert_array_equal(found.value, expected)
    assert fp.kl_divergence(p, q).shape == np.broadcast_shapes(of_p, of_q)
    orders = 1.0 + rng.exponential(size=of_epsilon)
    assert fp.renyi_divergence(p, q, orders / 10).shape == shape
    assert fp.hockey_stick_divergence(p, q, epsilon, both=True).shape == (2, *shape)
    assert fp.kl_divergence(p, q, both=True).shape == (2, *np.broadcast_shapes(of_p, of_q))


def test_a_mixture_and_a_stack_in_any_place():
    p = MixtureStack.of([LINE, BASE])
    for pair in ((p, BASE), (BASE, p), (p, p)):
        found = fp.hockey_stick_divergence(*pair, 0.25)
        singles = [[side if isinstance(side, GaussianMixture) else side[i] for side in pair] for i in range(2)]
        assert found.value.tolist() == [fp.hockey_stick_divergence(*one, 0.25).value for one in singles]
    both = fp.hockey_stick_divergence(p, BASE, [0.1, 0.2], both=True)
    assert both[1] == fp.hockey_stick_divergence(BASE, p, [0.1, 0.2])
    assert fp.kl_divergence(p, BASE, both=True).value[1, 0] == fp.kl_divergence(BASE, LINE).value
    assert fp.kl_divergence(p, BASE, unit="bits").value[0] == fp.kl_divergence(LINE, BASE).to("bits").value
    order = fp.renyi_divergence(p, BASE, [1.0, 2.0, np.inf])
    assert order.value[0].tolist() == [fp.renyi_divergence(LINE, BASE, a).value for a in (1.0, 2.0, np.inf)]


def test_an_estimate_as_epsilon():
    epsilon = fp.Estimate([0.5, 1.0], [0.4, 0.9], [0.6, 1.1], kind="certified", unit="nats", method="given")
    found = fp.hockey_stick_divergence(MixtureStack.of([LINE, BASE]), BASE, epsilon)
    one = fp.hockey_stick_divergence(LINE, BASE, epsilon)
    assert_array_equal(found.upper[0], one.upper)
    assert_array_equal(found.lower[0], one.lower)


@pytest.mark.parametrize("n_jobs", [2, 5, -1])
@pytest.mark.slow
def test_threads_change_no_bit(n_jobs):
    rng = np.random.default_rng(3)
    p = MixtureStack(rng.dirichlet(np.ones(3), 5000), rng.normal(size=(5000, 3)), rng.uniform(0.5, 2.0, (5000, 3)))
    found = [fp.hockey_stick_divergence(p, BASE, [0.5, 1.0], n_jobs=jobs) for jobs in (1, n_jobs)]
    assert found[0] == found[1]
    assert found[0].cost == found[1].cost
    found = [fp.kl_divergence(p[:100], BASE, n_jobs=jobs) for jobs in (1, n_jobs)]
    assert found[0] == found[1]


# d dimensions

PLANE = {
    "isotropic": {"sigmas": np.array([[1.0], [2.0]])},
    "diagonal": {"sigmas": np.array([[1.0, 0.5], [2.0, 3.0]])},
    "full": {"covariances": np.array([[[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.25], [0.25, 1.0]]])},
    "shared": {"covariances": np.array([[[2.0, 1.0], [1.0, 2.0]]])},
}


@pytest.mark.parametrize("form", PLANE)
def test_rows_in_the_plane_are_mixtures(form):
    means = np.arange(12.0).reshape(3, 2, 2)
    stack = MixtureStack([0.25, 0.75], means, **PLANE[form], dimension=2)
    assert stack.shape == (3,)
    for i in range(3):
        words = {name: np.broadcast_to(value, (2, *value.shape[1:])) for name, value in PLANE[form].items()}
        assert stack[i] == GaussianMixture([0.25, 0.75], means[i], **words)
    again = MixtureStack.of([stack[i] for i in range(3)])
    assert [again[i] == stack[i] for i in range(3)] == [True] * 3


def test_rows_in_the_plane_that_reduce_to_the_line_are_those_of_single_calls():
    rng = np.random.default_rng(5)
    direction, covariance = np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    means = rng.normal(size=(6, 2, 1)) * direction
    p = MixtureStack([0.25, 0.75], means, covariances=covariance[None], dimension=2)
    q = GaussianMixture.single([0.0, 0.0], covariance=covariance)
    for name in ("hockey_stick_divergence", "kl_divergence", "jensen_shannon", "total_variation", "renyi_divergence"):
        found = getattr(fp.divergences, name)(p, q, n_jobs=2)
        assert found.kind in ("certified", "heuristic")
        for i in range(6):
            same_bits(found, i, getattr(fp.divergences, name)(p[i], q))
    assert fp.divergences.label_information(p).shape == fp.entropy(p).shape == (6,)


def test_sampled_rows_have_streams_of_their_own():
    rng = np.random.default_rng(6)
    p = MixtureStack([0.5, 0.5], rng.normal(size=(20, 2, 2)), rng.uniform(1.0, 2.0, (20, 2, 2)), dimension=2)
    q = MixtureStack([0.5, 0.5], [[1.0, 0.0], [0.0, 2.0]], [[1.0, 1.0], [2.0, 2.0]], dimension=2)
    spent = {"rtol": 0.0, "max_samples": 2000, "max_seconds": np.inf}
    found = fp.kl_divergence(p, q, rng=7, **spent)
    assert found.kind == "statistical"
    assert found.confidence == 0.95
    assert fp.kl_divergence(p, q, rng=7, n_jobs=3, **spent) == found
    assert fp.kl_divergence(p, q, rng=8, **spent) != found
    same = MixtureStack.of([p[0]] * 5)
    assert len(set(fp.kl_divergence(same, q, rng=7, **spent).value.tolist())) == 5
    forced = fp.hockey_stick_divergence(MixtureStack.of([LINE] * 3), BASE, [0.1, 0.5], method="direct", rng=1, **spent)
    assert forced.kind == "statistical"
    assert forced.shape == (3, 2)


# rows that are no mixtures

BAD = {
    "a weight": ({"weights": [[0.5, 0.5], [1.5, -0.5], [1.0, 0.0]]}, "weights must be probabilities between 0 and 1"),
    "a sum": ({"weights": [[0.5, 0.5], [0.5, 0.25], [1.0, 0.0]]}, "weights must sum to 1 within 1e-09"),
    "a mean": ({"means": [[0.0, 1.0], [0.0, np.nan], [0.0, 0.0]]}, "means must be finite and at most 1e300 in size"),
    "a sigma": ({"sigmas": [[1.0, 1.0], [1.0, 0.0], [1.0, 1.0]]}, "sigmas must be positive and between 1e-300"),
}


@pytest.mark.parametrize("defect", BAD)
def test_a_bad_row_raises_with_its_position(defect):
    changed, text = BAD[defect]
    arguments = {"weights": [0.5, 0.5], "means": [0.0, 1.0], "sigmas": 1.0} | changed
    with pytest.raises(DomainError, match=rf"{text}.* at row 1 \(1 of 3 rows\); got"):
        MixtureStack(**arguments)
    arguments = {name: np.asarray(one)[:, None] if np.ndim(one) == 2 else one for name, one in arguments.items()}
    with pytest.raises(DomainError, match=rf"{text}.* at row \(1, 0\) \(1 of 3 rows\); got"):
        MixtureStack(**arguments)


@pytest.mark.parametrize("defect", BAD)
def test_a_recorded_row_is_nan_and_the_others_keep_their_answers(defect):
    changed, text = BAD[defect]
    arguments = {"weights": [0.5, 0.5], "means": [0.0, 1.0], "sigmas": 1.0} | changed
    stack = MixtureStack(**arguments, errors="record")
    assert list(stack.errors) == [(1,)]
    assert stack.errors[1,].startswith(text)
    assert stack.invalid.tolist() == [False, True, False]
    sound = MixtureStack(**{name: np.asarray(v)[[0, 2]] if np.ndim(v) == 2 else v for name, v in arguments.items()})
    for name in ("hockey_stick_divergence", "kl_divergence", "jensen_shannon", "renyi_divergence", "total_variation"):
        found, expected = getattr(fp.divergences, name)(stack, BASE), getattr(fp.divergences, name)(sound, BASE)
        good = np.broadcast_to(expected.value, (2,))
        assert_array_equal(found.value, [good[0], np.nan, good[1]])
        assert np.isnan([found.lower[1], found.upper[1]]).all()
        assert found.cost["errors"] == {(1,): stack.errors[1,]}
    with pytest.raises(DomainError, match=text):
        stack[1]
    assert stack[::-1].errors == {(1,): stack.errors[1,]}
    assert stack[[0, 2]].errors == {}
    assert stack[1:].errors == {(0,): stack.errors[1,]}
    again = pickle.loads(pickle.dumps(stack))
    assert again == stack
    assert hash(again) == hash(stack)
    assert dict(again.errors) == dict(stack.errors)


def test_recorded_rows_of_two_stacks_and_their_estimates():
    p = MixtureStack([1.0], [[[0.0]], [[np.inf]]], 1.0, errors="record")  # (2, 1)
    q = MixtureStack([1.0], [[0.5], [1.0], [2.0]], [[1.0], [-1.0], [1.0]], errors="record")  # (3,)
    found = fp.hockey_stick_divergence(p, q, [0.0, 0.5])
    assert found.shape == (2, 3, 2)
    assert_array_equal(np.isnan(found.value).any(axis=-1), [[False, True, False], [True, True, True]])
    assert list(found.cost["errors"]) == [(0, 1), (1, 0), (1, 1), (1, 2)]
    assert np.isnan(found.to("log probability").value[1]).all()
    assert pickle.loads(pickle.dumps(found)).cost == found.cost
    assert json.loads(json.dumps(found.to_dict()))["cost"]["errors"][0][0] == [0, 1]
    assert "nan" in repr(found)
    assert "<table>" in found._repr_html_()
    assert len(found.to_frame()) == 12
    assert np.isnan(found[0, 1].value).all()
    assert fp.kl_divergence(p, q).value[0, 0] == fp.kl_divergence(BASE, GaussianMixture.single(0.5, 1.0)).value


def test_rows_that_fail_in_the_call():
    rows = [GaussianMixture([0.5, 0.5], [0.0, 1.0], 1.0), GaussianMixture.single(1.0, 1.0)]
    recorded = MixtureStack.of(rows, errors="record")
    found = fp.renyi_divergence(recorded, BASE, 1e305)
    assert np.isnan(found.value[0])
    assert found.upper[1] > 0
    assert found.cost["errors"][0,].startswith("order must be at most 1e+300")
    with pytest.raises(DomainError, match=r"order must be at most 1e\+300 .* at row 0; got"):
        fp.renyi_divergence(MixtureStack.of(rows), BASE, 1e305)


def test_nan_is_an_answer_of_recorded_rows_only():
    with pytest.raises(DomainError, match="value must be between lower and upper"):
        fp.Estimate([np.nan], [np.nan], [np.nan], kind="exact", unit="1", method="none")


# construction

WRONG = [
    ({"means": [0.0, 1.0]}, DomainError, "sigmas must be given, or else covariances in several dimensions.*neither"),
    ({"means": [0.0, 1.0], "sigmas": 1.0, "covariances": np.eye(2)}, DomainError, "got both"),
    ({"means": [0.0, 1.0], "covariances": np.eye(2)}, DomainError, "got covariances in one dimension"),
    ({"means": [0.0, 1.0], "sigmas": 1.0, "dimension": 2}, ShapeError, r"means must be of shape \(\.\.\., k, 2\)"),
    ({"means": np.zeros((2, 3)), "sigmas": 1.0, "dimension": 2}, ShapeError, r"means must be of shape .*got \(2, 3\)"),
    ({"means": np.zeros((2, 2)), "covariances": np.ones(3), "dimension": 2}, ShapeError, "covariances must be of"),
    ({"means": np.zeros(3), "sigmas": 1.0}, ShapeError, "weights, means and sigmas must be of shapes that broadcast"),
    ({"means": np.zeros((2, 2)), "sigmas": np.ones(3), "dimension": 2}, ShapeError, "of shapes that broadcast"),
    ({"means": [0.0, 1.0], "sigmas": "one"}, DomainError, "sigmas must be a real number; got 'one'"),
    ({"means": [0.0, 1.0], "sigmas": 1.0, "errors": "skip"}, DomainError, "errors must be one of raise, record"),
    ({"means": [0.0, 1.0], "sigmas": 1.0, "dimension": 0}, DomainError, "dimension must be an integer of at least 1"),
]


@pytest.mark.parametrize(("words", "error", "text"), WRONG)
def test_what_is_no_stack(words, error, text):
    with pytest.raises(error, match=text):
        MixtureStack([0.5, 0.5], **words)


def test_mixtures_with_sigmas_and_with_covariances_make_one_stack_of_the_same_mixtures():
    rng = np.random.default_rng(8)
    full = np.array([[2.0, 1.0], [1.0, 3.0]])
    mixtures = [
        GaussianMixture([0.25, 0.75], rng.normal(size=(2, 2)), covariances=[full, full / 7]),
        GaussianMixture(rng.dirichlet(np.ones(4)), rng.normal(size=(4, 2)), 10.0 ** rng.uniform(-140, 140, 4)),
        GaussianMixture(rng.dirichlet(np.ones(3)), rng.normal(size=(3, 2)), 10.0 ** rng.uniform(-3, 3, (3, 2))),
        GaussianMixture.single([0.0, 1.0], covariance=full),
        GaussianMixture.single([0.0, 1.0], 1 / 3),
    ]
    stack = MixtureStack.of(mixtures)
    assert stack.sigmas is None
    assert [stack[i] for i in range(5)] == mixtures
    assert MixtureStack.of(mixtures[1:3])[0] == mixtures[1]


def test_what_is_no_stack_of_mixtures():
    with pytest.raises(ShapeError, match="weights must have at least one entry"):
        MixtureStack(np.ones((3, 0)), np.ones((3, 0)), 1.0)
    with pytest.raises(DomainError, match=r"mixtures\[1\] must be a GaussianMixture"):
        MixtureStack.of([LINE, 1.0])
    plane = GaussianMixture.single([0.0, 0.0], 1.0)
    with pytest.raises(ShapeError, match="mixtures must all have one dimension; got 1 and 2, the latter at index 1"):
        MixtureStack.of([LINE, plane])
    full = GaussianMixture.single([0.0, 0.0], covariance=[[2.0, 1.0], [1.0, 2.0]])
    assert list(MixtureStack.of([plane, full])) == [plane, full]
    with pytest.raises(TypeError, match="a MixtureStack without leading axes has no length"):
        len(MixtureStack([1.0], [0.0], 1.0))
    with pytest.raises(IndexError):
        MixtureStack.of([LINE])[1]
    with pytest.raises(DomainError, match="covariances must be positive definite.* at row 1"):
        MixtureStack([1.0], np.zeros((2, 1, 2)), covariances=[[np.eye(2)], [[[1.0, 2.0], [2.0, 1.0]]]], dimension=2)
    with pytest.raises(DomainError, match="covariances must be symmetric to rounding at row 0"):
        MixtureStack([1.0], np.zeros((2, 1, 2)), covariances=[[[1.0, 0.5], [0.0, 1.0]]], dimension=2)


def test_what_goes_with_no_stack():
    stack = MixtureStack.of([LINE, BASE])
    with pytest.raises(DomainError, match="q must be a GaussianMixture or a MixtureStack beside a stack; got 3"):
        fp.kl_divergence(stack, 3)
    with pytest.raises(ShapeError, match="q must have the dimension of p, 1; got 2"):
        fp.kl_divergence(stack, GaussianMixture.single([0.0, 0.0], 1.0))
    with pytest.raises(ShapeError, match=r"p and q must have leading axes that broadcast; got \(2,\) and \(3,\)"):
        fp.kl_divergence(stack, MixtureStack.of([LINE] * 3))
    broadcast = r"leading axes that broadcast; got \(2,\) and \(\) and leading axes \(3,\) of epsilon"
    with pytest.raises(ShapeError, match=broadcast):
        fp.hockey_stick_divergence(stack, BASE, np.ones((3, 2)))
    with pytest.raises(DomainError, match="epsilon must be a number; got nan"):
        fp.hockey_stick_divergence(stack, BASE, [np.nan])


def test_empty_stacks():
    empty = MixtureStack.of([])
    assert empty.shape == (0,)
    assert fp.hockey_stick_divergence(empty, BASE, [0.1, 0.2]).shape == (0, 2)
    assert fp.kl_divergence(empty, BASE).method == "no rows"
    assert MixtureStack.of([LINE, BASE])[2:] == MixtureStack.of([LINE, BASE])[:0]


def test_a_stack_is_a_value():
    sigma = np.array([1.0, 2.0, 3.0])[:, None]
    stack = MixtureStack([0.5, 0.5], [0.0, 1.0], sigma)
    sigma[0] = 9.0
    assert stack[0] == GaussianMixture([0.5, 0.5], [0.0, 1.0], 1.0)
    assert stack == MixtureStack([0.5, 0.5], [0.0, 1.0], [[1.0], [2.0], [3.0]])
    assert stack != stack[::-1]
    assert stack[::-1][::-1] == stack
    assert copy.deepcopy(stack) is stack
    assert pickle.loads(pickle.dumps(stack)) == stack
    assert hash(pickle.loads(pickle.dumps(stack))) == hash(stack)
    assert len(stack) == 3
    assert [row == stack[i] for i, row in enumerate(stack)] == [True] * 3
    assert stack[None].shape == (1, 3)
    assert stack[np.array([True, False, True])].shape == (2,)
    assert repr(stack) == "MixtureStack(shape=(3,), components=2, dimension=1)"
    bad = MixtureStack([1.0], [[0.0], [np.nan]], 1.0, errors="record")
    assert repr(bad) == "MixtureStack(shape=(2,), components=1, dimension=1, errors at 1 rows)"
    with pytest.raises(ValueError, match="read-only"):
        stack.means[0, 0] = 1.0
    with pytest.raises(AttributeError, match="MixtureStack is immutable"):
        stack.shape = (3, 1)
    assert stack.mass_gaps.tolist() == [0.0] * 3
    rng = np.random.default_rng(2)
    w = rng.dirichlet(np.ones(7), 300)
    gaps = MixtureStack(w, np.zeros(7), 1.0).mass_gaps
    assert gaps.tolist() == [GaussianMixture(row, np.zeros(7), 1.0).mass_gap for row in w]
    assert (gaps > 0).any()
    assert (gaps == 0).any()


# time, and interruptions


@pytest.mark.slow
def test_the_time_is_kept():
    rng = np.random.default_rng(4)
    p = MixtureStack(rng.dirichlet(np.ones(8), 20000), rng.normal(size=(20000, 8)), rng.uniform(0.5, 2.0, (20000, 8)))
    assert p.mass_gaps.shape == (20000,)
    found = fp.hockey_stick_divergence(p, BASE, [0.5], max_seconds=0.3)
    assert found.cost["stopped"] == "max_seconds"
    assert "time spent" in found.method
    late = (found.lower == 0.0) & (found.upper == 1.0)
    assert late[-1]
    assert not late[0]
    found = fp.kl_divergence(p, BASE, max_seconds=0.3)
    assert found.cost["stopped"] == "max_seconds"
    assert found.upper[-1] == np.inf
    assert found.upper[0] < np.inf


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interruption_is_heard(n_jobs):
    rng = np.random.default_rng(4)
    p = MixtureStack(rng.dirichlet(np.ones(8), 1), rng.normal(size=(400000, 8)), rng.uniform(0.5, 2.0, (400000, 8)))
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fp.hockey_stick_divergence(p, BASE, [0.5], n_jobs=n_jobs)
    assert time.monotonic() - begun < 20.0  # all rows take minutes


def test_stacks_of_all_shapes_of_arguments():
    """Every argument may carry every axis."""
    for axes in itertools.product([1, 2], repeat=3):
        w = np.broadcast_to([0.25, 0.75], (axes[0], 1, 1, 2))
        m, s = np.broadcast_to([0.0, 1.0], (axes[1], 1, 2)), np.ones((axes[2], 1))
        assert MixtureStack(w, m, s).shape == (axes[0], axes[1], axes[2])
