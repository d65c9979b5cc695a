"""The truth in d dimensions: its methods against each other, against NumPy samples, and against its own table."""

import mpmath
import numpy as np
import pytest

from oracles import mixture
from oracles import mixtures_nd as nd
from oracles.pairs_nd import cases, table

LINE_P = ([0.25, 0.75], [0.0, 1.5], [1.0, 0.75])
LINE_Q = ([0.5, 0.5], [0.25, 1.0], [1.25, 1.5])
ONE = ([1.0], [0.0], [1.0])


@pytest.fixture(autouse=True)
def _digits():
    before = mpmath.mp.dps
    mpmath.mp.dps = 40
    yield
    mpmath.mp.dps = before


def check_close(got, want, tolerance):
    assert abs(got - want) <= tolerance * abs(want), f"got {mpmath.nstr(got, 20)}, want {mpmath.nstr(want, 20)}"


@pytest.mark.slow
def test_the_grid_agrees_with_sums_over_the_coordinates():
    ps, qs = [LINE_P, LINE_Q], [LINE_Q, ([1.0], [0.5], [1.5])]
    p, q = nd.product_law(ps), nd.product_law(qs)

    def kl(x):
        a, b = nd.log_density(p, x), nd.log_density(q, x)
        return np.exp(a) * (a - b)

    got, error = nd.grid_integral(kl, [p, q], 0.1)
    assert error < 1e-12
    check_close(got, nd.product_truth("kl", ps, qs)[0], 1e-12)
    got, _ = nd.grid_integral(lambda x: -np.exp(a := nd.log_density(p, x)) * a, [p], 0.1)
    check_close(got, nd.product_truth("entropy", ps, ps)[0], 1e-12)


def test_an_affine_map_moves_the_density_and_nothing_else():
    p = nd.product_law([LINE_P, LINE_Q, ONE])
    rng = np.random.default_rng(1)
    matrix, shift = rng.normal(size=(3, 3)), rng.normal(size=3)
    x = rng.normal(size=(50, 3))
    got = nd.log_density(nd.affine_law(p, matrix, shift), x @ matrix.T + shift)
    np.testing.assert_allclose(got + np.linalg.slogdet(matrix)[1], nd.log_density(p, x), rtol=1e-11)


def test_closed_forms_agree_with_sums_over_the_coordinates():
    ps, qs = [([1.0], [0.5], [1.25]), ONE], [([1.0], [0.0], [1.5]), ([1.0], [1.0], [2.0])]
    p, q = nd.product_law(ps), nd.product_law(qs)
    check_close(nd.closed_form("kl", p, q)[0], nd.product_truth("kl", ps, qs)[0], 1e-24)
    check_close(nd.closed_form("entropy", p, q)[0], nd.product_truth("entropy", ps, ps)[0], 1e-24)
    for order in (0.5, 3.0):
        check_close(nd.closed_form("renyi", p, q, order)[0], nd.product_truth("renyi", ps, qs, order)[0], 1e-24)
    back = nd.affine_law(p, np.array([[1.0, 0.5], [0.0, 2.0]]), np.ones(2))
    other = nd.affine_law(q, np.array([[1.0, 0.5], [0.0, 2.0]]), np.ones(2))
    check_close(nd.closed_form("kl", back, other)[0], nd.closed_form("kl", p, q)[0], 1e-24)  # dyadic numbers: exact


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 12.0])
def test_spheres_agree_with_the_line(epsilon):
    for s, t in ((1.0, 1.5), (1.25, 1.0)):
        got, _ = nd.spherical_hockey_stick(1, s, t, epsilon)
        want = mixture.hockey_stick(([1.0], [0.0], [s]), ([1.0], [0.0], [t]), epsilon)
        if want.is_zero():
            assert got == 0
        else:
            check_close(got, nd.number(want), 1e-22)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 14.5])
def test_nested_crossings_agree_with_spheres_and_the_line(epsilon):
    p, q = (nd.Law(np.ones(1), np.zeros((1, 2)), np.full((1, 2), s)) for s in (1.25, 1.0))
    got, error = nd.nested_hockey_stick(p, q, epsilon, step=0.2, reach=12.0, cells=300)
    want, _ = nd.spherical_hockey_stick(2, 1.25, 1.0, epsilon)
    assert abs(got - mpmath.log(want)) <= error
    assert error < 0.01  # the edge of the set is vertical somewhere: slow convergence, honestly stated
    p, q = nd.product_law([LINE_P, ONE]), nd.product_law([LINE_Q, ONE])
    got, error = nd.nested_hockey_stick(p, q, 0.25, step=0.25, reach=9.0, cells=300)
    assert abs(got - nd.number(mixture.log_hockey_stick(LINE_P, LINE_Q, 0.25))) <= max(error, 1e-11)


@pytest.mark.slow
def test_a_nuisance_coordinate_is_bracketed():
    excess = 1e-3
    low, high = nd.nuisance_bracket(LINE_P, LINE_Q, 0.25, 2, excess)
    p, q = nd.product_law([LINE_P, ONE]), nd.product_law([LINE_Q, ([1.0], [0.0], [1 + excess])])
    got, error = nd.nested_hockey_stick(p, q, 0.25, step=0.25, reach=9.0, cells=300)
    assert low - error <= got <= high + error
    assert 0 < high - low < 0.02


SMOOTH = ("kl_PQ", "kl_QP", "entropy", "label_information", "jensen_shannon", "total_variation", "hockey_stick")
SAMPLED = [row for row in table() if row.quantity in SMOOTH and abs(row.value) > 1e-5 and (row.parameter or 0.0) <= 1.0]


def contributions(case, quantity, epsilon, rng, count):
    """Independent terms whose mean is the quantity, drawn and weighed as a person would by NumPy."""
    p, q = (case.q, case.p) if quantity == "kl_QP" else (case.p, case.q)
    x, label = nd.sample(p, count, rng)
    first = nd.log_density(p, x)
    if quantity == "entropy":
        return -first
    if quantity == "label_information":
        out = np.empty(count)
        for i in range(len(p.weights)):
            rows = (None if part is None else part[i : i + 1] for part in (p.sigmas, p.covariances))
            if p.covariances is not None and len(p.covariances) == 1:
                rows = (None, p.covariances)
            mine = label == i
            if mine.any():
                out[mine] = nd.log_density(nd.Law(np.ones(1), p.means[i : i + 1], *rows), x[mine]) - first[mine]
        return out
    second = nd.log_density(q, x)
    if quantity.startswith("kl"):
        return first - second
    if quantity == "jensen_shannon":
        y, _ = nd.sample(q, count, rng)
        swapped = nd.log_density(q, y), nd.log_density(p, y)
        return np.log(2) - (np.logaddexp(0, second - first) + np.logaddexp(0, swapped[1] - swapped[0])) / 2
    return np.maximum(-np.expm1(epsilon + second - first), 0.0)


@pytest.mark.few(1)
@pytest.mark.parametrize("row", SAMPLED, ids=str)
def test_plain_samples_agree(row):
    if row.case.startswith("rare") and row.quantity.startswith("kl"):
        pytest.skip("plain samples do not see the rare component")
    count = 4000
    terms = contributions(cases()[row.case], row.quantity, row.parameter or 0.0, np.random.default_rng(5), count)
    error = terms.std(ddof=1) / np.sqrt(count)
    assert abs(terms.mean() - row.value) <= 5 * error + (row.high - row.low), (terms.mean(), error, row.value)


def test_the_table_is_wide():
    rows = table()
    assert len(rows) >= 200
    for target in (1e-9, 1e-12, 1e-30):
        dimensions = {
            cases()[row.case].p.dimension for row in rows
            if row.quantity == "hockey_stick" and abs(np.log(row.value / target)) < 0.1
        }
        assert len(dimensions) >= 5, (target, dimensions)
    assert all(row.low <= row.value <= row.high for row in rows)
    narrow = [row for row in rows if row.high - row.low <= 2e-9 * max(abs(row.value), 1.0) or row.high == np.inf]
    assert len(narrow) >= 0.85 * len(rows)


SOME = ["product-2", "tiny-8", "single-16", "sphere-16", "unequal-4", "far-3", "collinear-24"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_a_sample_of_the_table_can_be_recomputed(name):
    computed = cases()[name].truths
    stored = [row for row in table() if row.case == name]
    assert len(computed) == len(stored)
    for (quantity, parameter, compute), row in zip(computed, stored, strict=True):
        assert (quantity, parameter) == (row.quantity, row.parameter)
        value, _ = compute()
        assert row.low <= float(value) <= row.high
