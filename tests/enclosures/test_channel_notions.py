"""Notions of channels against their definitions in many digits: every interval holds the truth, and is narrow."""

import math

import numpy as np
import pytest
from mpmath import exp, inf, log, mpf, sqrt, workdps
from scipy.sparse import csr_array

from fastpriv import Channel, DomainError, RandomizedResponse, channel_capacity, notions
from fastpriv.channels import DefaultChannel, SparseChannel
from fastpriv.mechanisms import ExponentialMechanism, GeometricMechanism, SubsetSelection, UnaryEncoding
from oracles import channel_notions as truth

LN2 = math.log(2)


def shares(rng, count, zeros=0.0, tiny=None):
    cells = rng.dirichlet(np.full(count, 0.5))
    cells[rng.random(count) < zeros] = 0.0
    if tiny is not None:
        cells[rng.random(count) < 0.3] = tiny
    return dyadic(cells / cells.sum() if cells.sum() > 0 else np.eye(count)[0])


def dyadic(cells):
    """Multiples of 2^-50 with sum 1, tiny ones besides."""
    whole = np.floor(cells * 2.0**50)
    whole[np.argmax(whole)] += 2.0**50 - whole.sum()
    return np.where((cells > 0) & (cells < 1e-200), cells, whole * 2.0**-50)


def cases():
    rng = np.random.default_rng(7)
    for n, m in ((1, 3), (2, 2), (3, 1), (4, 7), (13, 6), (19, 5)):
        yield f"{n} by {m}", np.array([shares(rng, m) for _ in range(n)]), shares(rng, n)
    for n, m in ((3, 4), (9, 5)):
        yield f"zeros, {n} by {m}", np.array([shares(rng, m, 0.4) for _ in range(n)]), shares(rng, n, 0.4)
        yield f"tiny cells, {n} by {m}", np.array([shares(rng, m, 0, 1e-300) for _ in range(n)]), shares(rng, n)
        yield f"tiny prior, {n} by {m}", np.array([shares(rng, m) for _ in range(n)]), shares(rng, n, 0, 1e-290)
    for size in (1e-3, 1e-7, 1e-12):
        base = shares(rng, 6)
        rows = base * (1 + size * rng.uniform(-1, 1, (5, 6)))
        yield f"rows equal to {size}", np.array([dyadic(row / row.sum()) for row in rows]), shares(rng, 5)
    yield "equal rows", np.tile([0.25, 0.5, 0.25], (4, 1)), np.array([0.1, 0.2, 0.3, 0.4])
    yield "identity", np.eye(3), np.array([0.5, 0.25, 0.25])
    yield "identity, a tiny prior", np.eye(2), np.array([1.0, 1e-290])
    yield "a column that only an impossible secret has", np.array([[1, 0], [1, 0], [0, 1.0]]), np.array([0.5, 0.5, 0])
    yield "a column of subnormal numbers", np.array([[1e-312, 1.0], [3e-312, 1.0]]), np.array([0.5, 0.5])
    few = 2.0**-47
    yield "first rows far from the rest", np.array([*[[1.0, 0]] * 70, [0, 1]]), np.array([*[few] * 70, 1 - 70 * few])


CASES = list(cases())


def unless_noise(want, upper):
    """0 where the answer is 0 and the truth what its own 250 digits leave of a difference."""
    return 0 if upper == 0 and abs(want) < 1e-245 else want


def holds(found, want, what, width=1e-12):
    """The interval contains the truth, and is no wider than it should be."""
    want = min(want, 1) if found.unit == "probability" else want
    want = unless_noise(want, found.upper)
    assert found.lower - 1e-300 <= want <= found.upper + 1e-300, (what, found, want)
    assert found.value == want or abs(found.value - want) <= width * (1 + abs(want)), (what, found, want)
    if want != inf:
        assert found.width <= 4 * width * (1 + abs(want)), (what, found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_every_number_of_a_written_channel(case):
    name, cells, prior = case
    want = truth.quantities(cells, prior)
    after = np.array(truth.posteriors(cells, prior), dtype=float)
    for channel in (Channel(cells), cells):
        filled = np.empty(cells.shape)
        found = notions.summary(prior, channel, posteriors=filled)
        for field, value in want.items():
            holds(getattr(found, field), value, (name, field))
        np.testing.assert_allclose(filled, after, rtol=1e-13, atol=1e-300)
        joint = np.where(found.release > 0, prior[:, None] * cells, -1.0)
        best = np.where(found.release > 0, joint.argmax(axis=0), -1)
        assert name.startswith(("equal", "rows", "a column of")) or np.array_equal(found.map_secrets, best)
    singly = {
        "cd_lmip": notions.cd_lmip, "pointwise_lmip": notions.pointwise_lmip, "xi": notions.lip_epsilon,
        "bayes_vulnerability": notions.bayes_vulnerability, "min_entropy_leakage": notions.min_entropy_leakage,
        "maximal_leakage": notions.maximal_leakage, "ldp_epsilon": notions.ldp_epsilon,
    }
    for field, function in singly.items():
        assert function(prior, cells).value == getattr(found, field).value, field
    assert notions.ldp_epsilon(prior, cells, on_support=True).value == found.ldp_on_support.value


@pytest.mark.parametrize("case", CASES[:15], ids=lambda case: case[0])
def test_logarithms_and_singles_are_cells_too(case):
    name, cells, prior = case
    with np.errstate(divide="ignore"):
        logs = np.log(cells)
    want = truth.quantities([[exp(mpf(x)) if x > -np.inf else mpf(0) for x in row] for row in logs], prior)
    found = notions.summary(prior, Channel(logs, log=True))
    for field, value in want.items():
        holds(getattr(found, field), value, (name, field), 1e-11)
    half = np.empty(cells.shape, dtype=np.float32)
    notions.summary(prior, cells, posteriors=half)
    np.testing.assert_allclose(half, np.array(truth.posteriors(cells, prior), dtype=float), rtol=2e-7, atol=1e-37)
    if "tiny" not in name:
        single = cells.astype(np.float32)
        want = truth.quantities(single.astype(float), prior)
        found = notions.summary(prior, Channel(single))
        for field, value in want.items():
            holds(getattr(found, field), value, (name, field), 3e-6)


@pytest.mark.parametrize("size", [1e-3, 1e-7, 1e-12])
def test_small_leakages_keep_their_digits(size):
    """Rows that sum to 1 exactly: information of order size^2, log ratios of order size."""
    steps = round(2.0**50 * size) * 2.0**-50
    base = np.array([0.25, 0.25, 0.375, 0.125])
    cells = base + steps * np.array([[1, -1, 0, 0], [0.5, 0.5, -1, 0], [0, 0, 0.25, -0.25], [0, 0, 0, 0.0]])
    prior = np.array([0.125, 0.25, 0.125, 0.5])
    want = truth.quantities(cells, prior)
    found = notions.summary(prior, cells)
    for field in ("cd_lmip", "pointwise_lmip", "xi_plus", "xi_minus", "ldp_epsilon", "min_entropy_leakage"):
        got = getattr(found, field)
        assert got.lower <= want[field] <= got.upper
        assert abs(got.value - want[field]) <= 1e-13 * want[field], (field, got, want[field])
        assert got.width <= 1e-10 * want[field], field
    shift = truth.abp(cells, prior, cells[0])
    got = notions.abp(prior, cells).per_value
    assert got.lower[0] <= shift <= got.upper[0]
    assert got.width[0] <= 1e-10 * shift


@pytest.mark.parametrize("case", CASES[:17], ids=lambda case: case[0])
def test_average_bayesian_privacy(case):
    _, cells, prior = case
    held = np.flatnonzero(prior)
    many = notions.abp(prior, cells)
    assert many.per_value.shape == held.shape
    want = [truth.abp(cells, prior, cells[d]) for d in held]
    for place, right in enumerate(want):
        holds(many.per_value[place], right, "all", 1e-9)
    holds(many.maximum, max(want), "maximum", 1e-9)
    holds(many.mean, sum(mpf(p) * x for p, x in zip(prior[held], want, strict=True)), "mean", 1e-9)
    one = notions.abp(prior, cells, secret=int(held[-1])).per_value
    holds(one[0], want[-1], "one", 1e-9)
    belief = np.full(len(prior), 1 / len(prior))
    other = notions.abp(prior, cells, secret=held[:1], belief=belief).maximum
    holds(other, truth.abp(cells, prior, cells[held[0]], belief), "belief", 1e-9)
    both = notions.abp(prior, cells, secret=held, belief=belief).per_value
    assert abs(both.value[0] - other.value) <= 1e-9
    place = int(np.argmax(prior @ cells))
    law = np.eye(cells.shape[1])[place]
    if cells.shape[1] > 1 and (cells[held] != cells[held[0]]).any():
        holds(notions.abp(prior, cells, release=law).maximum, truth.abp(cells, prior, law), "release", 1e-9)
    assert many.maximum.upper <= math.sqrt(LN2) + 1e-15


def test_a_release_drawn_from_the_prior_is_refused():
    cells, prior = np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([0.2, 0.8])
    with pytest.raises(DomainError, match="must be a distribution other than that of the release under the prior"):
        notions.abp(prior, cells, release=prior @ cells)
    useless = np.array([[0.5, 0.5], [0.5, 0.5]])  # there it is no mistake
    assert notions.abp(prior, useless, release=[0.5, 0.5]).maximum.value == 0.0


@pytest.mark.few(1)
@pytest.mark.parametrize("case", [case for case in CASES if len(case[1]) < 20], ids=lambda case: case[0])
def test_curves(case):
    name, cells, prior = case
    grid = np.array([[0.0, 1e-9, 0.1], [0.7, 3.0, 30.0]])
    found, informed = notions.ldp_delta(None, cells, grid), notions.lip_delta(prior, cells, grid)
    chosen = notions.ldp_delta(prior, cells, grid, on_support=True)
    assert found.shape == informed.shape == grid.shape
    for index, epsilon in np.ndenumerate(grid):
        for got, want in (
            (found, truth.ldp_delta(cells, epsilon)), (informed, truth.lip_delta(cells, prior, epsilon)),
            (chosen, truth.ldp_delta(cells[prior > 0], epsilon)),
        ):
            want = unless_noise(want, got.upper[index])
            assert got.lower[index] <= want <= got.upper[index], (name, epsilon, got, want)
            assert got.width[index] <= 1e-13
    level = notions.ldp_epsilon(None, cells)
    if level.value < np.inf:
        assert notions.ldp_delta(None, cells, level.upper).upper == 0.0
        assert notions.ldp_delta(None, cells, np.inf).upper == 0.0
    else:
        last = notions.ldp_delta(None, cells, np.inf)
        assert last.lower <= truth.ldp_delta(cells, inf) <= last.upper + 1e-9
    assert notions.log_lip_delta(prior, cells, 0.1).value == pytest.approx(
        math.log(informed.value[0, 2]) if informed.value[0, 2] > 0 else -np.inf)


def test_a_default_without_a_prior_is_one_under_the_uniform_prior():
    channel = DefaultChannel(7, [0.25, 0.25, 0.5], [4, 1], [[0.875, 0.125, 0.0], [0.25, 0.25, 0.5]])
    found, want = channel._type_classes(None), channel._type_classes(np.full(7, 1 / 7))
    for name in ("log_outputs", "log_total", "starts", "log_relative", "mass", "log_largest", "log_smallest"):
        np.testing.assert_allclose(getattr(found, name), getattr(want, name), rtol=1e-14, atol=1e-15)


STRUCTURED = [
    RandomizedResponse(4, 1.3), RandomizedResponse(2, 1e-9), RandomizedResponse(5, 20.0), UnaryEncoding(4, 1.0),
    UnaryEncoding.optimized(5, 0.4), UnaryEncoding.rappor(3, 0.5), SubsetSelection(6, 0.8, 2), SubsetSelection(5, 2.0),
    GeometricMechanism(6, 0.5), ExponentialMechanism(np.array([[1.0, 0.25, -3.0], [0.0, 2.0, 0.5]]), 1.0),
    SparseChannel(csr_array(np.diag([0.75, 0.75, 0.75])), background=0.125),
    SparseChannel(csr_array(np.diag([0.5, 0.75])), background=[[0.5], [0.25]]),
    DefaultChannel(7, [0.25, 0.25, 0.5], [4, 1], [[0.875, 0.125, 0.0], [0.25, 0.25, 0.5]]),
    RandomizedResponse(2, 0.7).power(3), RandomizedResponse(2, 0.7).product(GeometricMechanism(3, 0.4)),
    Channel([[0.75, 0.25], [0.5, 0.5]]).product(SubsetSelection(3, 1.0)),
]


@pytest.mark.few(1)
@pytest.mark.parametrize("channel", STRUCTURED, ids=lambda channel: repr(channel)[:40])
def test_structured_channels_against_their_rows(channel):
    rows = channel.matrix()
    n = channel.inputs
    priors = [None]
    if n < 20:
        weight = np.arange(n) + 1.0
        priors += [weight / weight.sum(), np.where(np.arange(n) == 1, 0.0, 1.0 / (n - 1))]
    for prior in priors:
        law = np.full(n, 1 / n) if prior is None else prior
        want = truth.quantities(rows, law)
        found = notions.summary(prior, channel)
        for field, value in want.items():  # of rounded rows
            got = getattr(found, field)
            assert got.value == value or abs(got.value - value) <= 1e-13 * (1 + value), (field, got, value)
            assert got.value == value or got.width <= 1e-12 * (1 + value), (field, got)
        grid = np.array([0.0, 0.2, 1.0])
        curve = notions.ldp_delta(prior, channel, grid, on_support=prior is not None)
        informed = notions.lip_delta(prior, channel, grid)
        for place, epsilon in enumerate(grid):
            assert abs(curve.value[place] - truth.ldp_delta(rows[law > 0], epsilon)) <= 1e-13
            assert abs(informed.value[place] - truth.lip_delta(rows, law, epsilon)) <= 1e-13
            assert max(curve.width.max(), informed.width.max()) <= 1e-11
        held = np.flatnonzero(law)
        shift = [truth.abp(rows, law, rows[d]) for d in held]
        got = notions.abp(prior, channel)
        assert abs(got.maximum.value - max(shift)) <= 1e-12
    assert abs(notions.ci_lmip(channel).value - channel_capacity(rows).capacity.value) <= 2e-9


def test_products_add():
    one, prior = Channel([[0.75, 0.25], [0.5, 0.5]]), [0.25, 0.75]
    single, many = notions.summary(prior, one), notions.summary((prior,), one.power(3))
    for name in ("ldp_epsilon", "xi_plus", "xi_minus", "xi", "cd_lmip", "pointwise_lmip", "min_entropy_leakage",
                 "maximal_leakage"):
        assert getattr(many, name).value == pytest.approx(3 * getattr(single, name).value, rel=1e-14)
    assert many.bayes_vulnerability.value == pytest.approx(single.bayes_vulnerability.value**3)
    rows = one.power(3).matrix()
    law = np.multiply.outer(np.multiply.outer(prior, prior), prior).ravel()
    assert notions.abp((prior,), one.power(3)).maximum.value == pytest.approx(
        float(max(truth.abp(rows, law, row) for row in rows)), rel=1e-12)
    assert notions.ci_lmip(one.power(50)).value == pytest.approx(50 * notions.ci_lmip(one).value, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m", "times"), [(2, 2, 5), (2, 3, 3), (3, 2, 3), (2, 4, 2), (1, 2, 3)])
def test_the_curve_of_a_product_mixes_the_pairs_of_its_factors(n, m, times):
    rng = np.random.default_rng([n, m, times])
    channel = Channel([shares(rng, m, 0.2) for _ in range(n)]).power(times)
    grid = [0.0, 0.1, 0.5, 1.0, 2.0, 4.0]
    mixed, whole = notions.ldp_delta(None, channel, grid), notions.ldp_delta(None, channel.matrix(), grid)
    assert (mixed.lower <= whole.upper).all()
    assert (whole.lower <= mixed.upper).all()
    assert max(mixed.width.max(), whole.width.max()) <= 1e-12
    assert Channel(rng.dirichlet(np.ones(2), 5)).power(2).dominating_pairs() is None
    assert Channel(rng.dirichlet(np.ones(2), 4)).power(50).dominating_pairs() is None
    assert Channel(rng.dirichlet(np.ones(300), 2)).power(3).dominating_pairs() is None
    large = notions.ldp_delta(None, Channel([[0.75, 0.25], [0.5, 0.5]]).power(200), [0.0, 50.0])
    np.testing.assert_allclose(large.value, [0.99980814998, 0.00223073194], rtol=1e-8)


@pytest.mark.slow
def test_closed_forms_at_any_size():
    for k in (2**64, 2**200):
        q = RandomizedResponse(k, 1.0)
        gain = log(mpf(k)) + 1 - log(k - 1 + exp(mpf(1)))
        assert notions.ldp_epsilon(None, q).value == 1.0
        assert notions.maximal_leakage(None, q).value == pytest.approx(float(gain), rel=1e-14)
        found = notions.summary(None, q)
        assert found.xi.value == pytest.approx(1.0)
        assert found.min_entropy_leakage.value == pytest.approx(1.0)
        assert 0 < found.cd_lmip.lower < found.cd_lmip.value < found.cd_lmip.upper < 1e-18
        assert found.pointwise_lmip.value == found.cd_lmip.value == notions.ci_lmip(q).value
        # one true secret: g there is (e^1 - 1)^2 / k to first order, so that ABP^2 is g^2 / (8 k)
        energy = (math.e - 1) ** 2 / k
        assert found.abp.maximum.value == pytest.approx(energy * math.sqrt(1 / (8 * k)), rel=1e-12)
    bits = RandomizedResponse(2, 0.5).power(200)
    assert notions.ldp_epsilon(None, bits).value == pytest.approx(100.0)
    found = notions.summary(None, bits)
    p = 1 / (1 + exp(-mpf(0.5)))
    information = 200 * (log(mpf(2)) + p * log(p) + (1 - p) * log(1 - p))
    holds(found.cd_lmip, information, "bits", 1e-11)
    assert found.bayes_vulnerability.value == pytest.approx(float(p**200), rel=1e-12)
    curve = notions.ldp_delta(None, RandomizedResponse(2, 0.5).power(30), [0.0, 5.0, 14.0])
    assert (np.diff(curve.value) < 0).all()
    assert curve.value[2] > 0
    assert notions.ldp_delta(None, RandomizedResponse(2, 0.5).power(30), 15.1).upper == 0.0
    for e, want in ((1e-20, None), (math.inf, math.sqrt(LN2))):
        shift = notions.abp(None, RandomizedResponse(2, e).power(200)).maximum
        want = float(sqrt(mpf(200) / 8) * mpf(e) ** 2 / 4) if want is None else want
        assert shift.value == pytest.approx(want, rel=1e-12)
        assert shift.lower <= shift.value <= shift.upper
    assert notions.cd_lmip(None, UnaryEncoding(10**6, 1.0)).value > 0
    assert notions.lip_delta(None, UnaryEncoding(10**6, 1.0), 0.1).value > 0
    rare = notions.summary(None, DefaultChannel(10**12, [0.5, 0.5], [7], [[0.9, 0.1]]))
    assert rare.cd_lmip.value == pytest.approx(0.368064207168e-12, rel=1e-9)
    assert rare.bayes_vulnerability.value == pytest.approx(1.4e-12)
    assert rare.map_secrets is None


def test_rows_between_those_of_positive_probability_are_left_out():
    """A row of probability 0 has the largest divergences; it lies between rows that count, after them, or before."""
    kept, other = [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0.375, 0.5, 0.125]], [0.0, 0.0, 1.0]
    plain = notions.ldp_delta(None, kept, [0.0, 0.5])
    for index in range(4):
        cells, prior = np.insert(kept, index, other, axis=0), np.insert([0.5, 0.25, 0.25], index, 0.0)
        for channel in (cells, SparseChannel(csr_array(cells))):
            found = notions.ldp_delta(prior, channel, [0.0, 0.5], on_support=True)
            assert found.value.tolist() == plain.value.tolist()
            assert (found.upper <= plain.upper + 1e-14).all()


def test_secrets_that_a_sparse_column_does_not_list():
    """Of those that have the background the largest and the smallest probability count, wherever they stand."""
    background, prior = np.array([0.25, 0.25, 0.5]), np.array([0.5, 0.25, 0.125, 0.0625, 0.0625])
    cells = np.tile(background, (5, 1))
    cells[3], cells[1] = [0.5, 0.25, 0.25], [0.25, 0.375, 0.375]
    channel = SparseChannel(csr_array(np.where(cells == background, 0.0, cells)), background)
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [3, 0, 4, 2, 1]):
        weights = prior[order]
        for quantity in (notions.bayes_vulnerability, notions.cd_lmip, lambda *of: notions.mbp(*of).xi):
            sparse, dense = quantity(weights, channel), quantity(weights, cells)
            assert abs(sparse.value - dense.value) <= 1e-13 * dense.value
            assert sparse.lower <= dense.upper
            assert dense.lower <= sparse.upper


def test_the_largest_likelihood_of_rare_ones():
    """log q enters the probability of a class, and log p - log q takes it back: both of size 593."""
    channel = UnaryEncoding.optimized(4, 593.1193818321219)
    prior = np.array([1.0, 5.82789473236251e-41, 6.900073775179619e-45, 3.401249872321711e-20])
    found = notions.summary(prior, channel)
    with workdps(600):
        q = 1 / (1 + exp(mpf(593.1193818321219)))
        most = log((1 - (1 - q) ** 4) / q / 2 + (1 - q) ** 3 / 2)  # x ones: p q^(x-1) (1-q)^(4-x) for the likeliest
    assert found.maximal_leakage.lower <= most <= found.maximal_leakage.upper
    assert found.maximal_leakage.width <= 1e-10


@pytest.mark.parametrize("channel", [UnaryEncoding(4, 0.7), RandomizedResponse(4, 0.7)], ids=repr)
def test_the_best_guess_of_a_prior_that_misses_one(channel):
    prior = np.array([0.04290342976597548, 0.009295485350173917, 0.0038495357865523435, 0.9439515493972983])
    assert abs(prior.sum() - 1) > 1e-10
    want = mpf(prior[3]) / sum(map(mpf, prior.tolist()))
    found = notions.summary(prior, channel).prior_vulnerability
    assert found.lower <= want <= found.upper
