"""Tables of composed Poisson-sampled Gaussians bound the truth, meet single calls, and have one result in any order."""

import math

import numpy as np
import pytest

import fastpriv
from fastpriv import DomainError, PoissonSampledGaussian, compose
from fastpriv.composition import composed_delta, composed_epsilon, least_sampled_sigma, least_sigma
from fastpriv.composition.contour import contour_tilts
from fastpriv.errors import ShapeError
from fastpriv.kernels import _sampled_cells
from fastpriv.pairs.mixture_pairs import MixturePair
from oracles.composition import log_delta_of_mixtures
from oracles.tables import rows

#: the stored cases of oracles/contours.py that are cells: rate, sigma, count
STORED = {
    "remove": (0.01, 2.0, 3000), "add": (0.03, 0.8, 300), "small sigma": (0.3, 0.5, 40), "wide": (0.5, 100.0, 100000),
    "million": (0.01, 2.0, 1000000), "rare": (1e-4, 1.0, 1000000),
}


def random_cells(seed, count):
    rng = np.random.default_rng(seed)
    sigma, rate = np.exp(rng.uniform(np.log(0.4), np.log(30.0), count)), np.exp(rng.uniform(-9.0, -0.1, count))
    return sigma, rate, np.floor(np.exp(rng.uniform(0.0, 11.0, count))), np.exp(rng.uniform(-35.0, -3.0, count))


def logs(estimate):
    with np.errstate(divide="ignore"):
        return np.log(estimate.lower), np.log(estimate.upper)


def truth_of_direction(sigma, rate, count, epsilon, removes):
    """log delta by two contours of tests/oracles/composition.py, which must agree."""
    mixture, noise = ((1 - rate, 0.0, sigma), (rate, 1.0, sigma)), ((1.0, 0.0, sigma),)
    p, q = (mixture, noise) if removes else (noise, mixture)
    pair = MixturePair(*PoissonSampledGaussian(sigma, rate).pair(), count)
    t = float(contour_tilts([pair if removes else pair.reversed()], np.array([epsilon]))[0])
    period = 60.0 / t + 20.0
    first, second = (
        log_delta_of_mixtures(p, q, count, epsilon, share * t, stretch * period, 600)
        for share, stretch in ((0.95, 1.0), (0.85, 1.1))
    )
    assert abs(first - second) < 1e-12 * (1.0 + abs(first))
    return first


CELLS = [(0.8, 0.02, 200, 1.5), (1.3, 0.004, 1000, 0.7), (0.6, 0.1, 20, 4.0), (2.0, 0.3, 50, 2.0)]


@pytest.mark.parametrize(("sigma", "rate", "count", "epsilon"), CELLS)
@pytest.mark.slow
def test_cells_contain_the_truth_of_the_larger_direction(sigma, rate, count, epsilon):
    ends = [truth_of_direction(sigma, rate, count, epsilon, True)]
    if epsilon < -count * math.log1p(-rate):
        ends.append(truth_of_direction(sigma, rate, count, epsilon, False))
    truth = max(ends)
    low, high = logs(composed_delta(sigma, rate, count, epsilon))
    slack = 1e-12 * (1.0 + abs(truth))  # of the oracle
    assert low - slack <= truth <= high + slack
    assert high - low < 1e-9
    assert truth <= logs(composed_delta(sigma, rate, count, epsilon, bounds="upper"))[1]
    delta = math.exp(truth)
    found = composed_epsilon(sigma, rate, count, delta)
    assert found.lower - 1e-11 <= epsilon <= found.upper + 1e-11
    assert found.upper - found.lower < 1e-9 * epsilon
    assert composed_epsilon(sigma, rate, count, delta, bounds="upper").upper >= epsilon


def test_stored_truths_lie_within_the_bounds():
    """Of one direction, of which the larger one has at least that; the other one is smaller here but for "add"."""
    seen = 0
    for name, epsilon, stored, _ in rows("contours"):
        truth = float(stored)
        if name in STORED and truth > -700.0:
            rate, sigma, count = STORED[name]
            low, high = logs(composed_delta(sigma, rate, count, epsilon))
            slack = 3e-16 * (1.0 + abs(truth))
            assert truth <= high + slack, (name, epsilon)
            assert name == "add" or low - slack <= truth, (name, epsilon)
            assert high - low < (1e-3 if name == "rare" else 1e-9), (name, epsilon)
            seen += 1
    assert seen > 15


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.slow
def test_cells_meet_single_calls(seed):
    sigma, rate, count, delta = random_cells(seed, 12)
    found = composed_epsilon(sigma, rate, count, delta)
    deltas = composed_delta(sigma, rate, count, found.value)
    for i in range(sigma.size):
        single = compose(PoissonSampledGaussian(sigma[i], rate[i]), int(count[i]))
        epsilon, curve = single.epsilon(delta[i]), single.delta(found.value[i])
        assert found.lower[i] <= epsilon.upper, i
        assert epsilon.lower <= found.upper[i], i
        assert deltas.lower[i] <= curve.upper, i
        assert curve.lower <= deltas.upper[i], i
    positive = found.upper > 0.0
    assert ((found.upper - found.lower)[positive] < 1e-9 * found.upper[positive]).all()


@pytest.mark.slow
def test_extremes_are_bracketed():
    grid = [0.3, 1.0, 1e3], [1e-6, 1e-3, 0.3, 1.0 - 2.0**-53], [1, 100, 10**7], [1e-300, 1e-30, 1e-5, 0.3]
    sigma, rate, count, delta = (axis.ravel() for axis in np.meshgrid(*grid, indexing="ij"))
    above = composed_epsilon(sigma, rate, count, delta, bounds="upper")
    found = composed_epsilon(sigma, rate, count, delta)
    assert (found.lower <= found.value).all()
    assert (found.value <= found.upper).all()
    assert (found.lower <= above.upper).all()
    assert (found.upper <= above.upper).all()
    finite = np.isfinite(found.upper)
    assert finite.mean() > 0.9
    cells = [column[finite] for column in (sigma, rate, count)]
    below, beyond = (composed_delta(*cells, end[finite]) for end in (found.lower, found.upper))
    assert (beyond.lower <= delta[finite]).all()  # the curve at both ends does not deny them
    assert ((below.upper >= delta[finite]) | (found.lower[finite] == 0.0)).all()
    assert np.median((found.upper - found.lower)[finite] / np.maximum(found.upper[finite], 1e-300)) < 1e-9


def test_cells_without_losses_and_closed_forms():
    for bounds in ("both", "upper"):
        for sigma, rate, count in ((1.0, 0.0, 10), (1.0, 0.5, 0), (math.inf, 0.5, 10)):
            assert composed_delta(sigma, rate, count, 0.0, bounds=bounds).upper == 0.0
            assert composed_epsilon(sigma, rate, count, [0.0, 1e-5], bounds=bounds).upper.tolist() == [0.0, 0.0]
        assert composed_delta(1.0, 0.5, 10, math.inf, bounds=bounds).upper == 0.0
        assert composed_epsilon(1.0, 0.5, 10, [0.0, 1.0], bounds=bounds).lower.tolist() == [math.inf, 0.0]
        gaussian = fastpriv.GaussianMechanism(4.0, 1.0)
        assert composed_epsilon(4.0, 1.0, 16, 1e-5, bounds=bounds).upper == compose(gaussian, 16).epsilon(1e-5).upper
        assert composed_delta(4.0, 1.0, 16, 1.0, bounds=bounds).lower == compose(gaussian, 16).delta(1.0).lower
    assert least_sampled_sigma([0.0, 0.5], [10, 0], 1.0, 1e-5).upper.tolist() == [0.0, 0.0]
    assert composed_delta([], 0.5, 10, 1.0).shape == (0,)


@pytest.mark.slow
def test_bits_of_a_cell_depend_on_this_cell_alone():
    grid = [[0.7, 2.0], [1e-3, 0.05], [10, 300, 3000], [1e-9, 1e-5, 1e-4]]
    columns = [axis.ravel() for axis in np.meshgrid(*grid, indexing="ij")]
    whole = composed_epsilon(*columns)
    order = np.random.default_rng(5).permutation(whole.value.size)
    for part in (order[:7], order[7:]):
        some = composed_epsilon(*(column[part] for column in columns))
        for name in ("value", "lower", "upper"):
            assert np.array_equal(getattr(some, name), getattr(whole, name)[part])


def test_sweeps_of_compositions(tmp_path):
    grid = {"sigma": [0.8, 1.5], "rate": [0.01, 0.1], "count": [100, 1000], "delta": [1e-6, 1e-5]}
    first = fastpriv.sweep("composed_epsilon", grid=grid, store=tmp_path / "s.db")
    assert first == fastpriv.sweep("composed_epsilon", grid=grid, n_jobs=2)
    grid["count"].append(3000)
    grown = fastpriv.sweep("composed_epsilon", grid=grid, store=tmp_path / "s.db")
    assert len(grown) == 24
    assert not grown.failed
    table = fastpriv.sweep("composed_delta", grid={**{k: grid[k] for k in ("sigma", "rate", "count")}, "epsilon": 1.0,
                                                   "bounds": ["both", "upper"]})
    upper = np.asarray(table["upper"]).reshape(-1, 2)
    assert (upper[:, 0] <= upper[:, 1]).all()
    least = fastpriv.sweep("least_sigma", grid={"rate": 0.05, "count": [10, 100], "epsilon": 1.0, "delta": 1e-5,
                                                "bounds": ["both", "upper"]})
    for upper, bounds in zip(least["upper"][2:], ("both", "upper"), strict=True):
        assert upper == least_sampled_sigma(0.05, 100, 1.0, 1e-5, bounds=bounds).upper


def test_least_sigmas_are_proved():
    found = least_sampled_sigma(0.02, [50, 500], epsilon=1.0, delta=1e-6)
    for count, low, high in zip((50, 500), found.lower, found.upper, strict=True):
        assert compose(PoissonSampledGaussian(high, 0.02), count).delta(1.0).lower <= 1e-6
        assert compose(PoissonSampledGaussian(low, 0.02), count).delta(1.0).upper >= 1e-6
        assert high - low < 1e-8 * high


@pytest.mark.slow
def test_least_sigmas_by_single_calls_lie_within_those_of_tables():
    """Wide losses and rare large ones, for which other sums are taken; and a single release, by the general search."""
    rate, count, epsilon, delta = [0.05, 0.002, 0.3], [300, 100, 1], [1.0, 1.5, 1.0], [1e-5, 1e-6, 1e-5]
    table = least_sampled_sigma(rate, count, epsilon, delta, rtol=1e-6)
    for i in range(3):
        single = least_sigma(lambda sigma, i=i: PoissonSampledGaussian(sigma, rate[i]), count=count[i],
                             epsilon=epsilon[i], delta=delta[i], rtol=1e-6)
        assert table.lower[i] <= single.upper, i
        assert single.lower <= table.upper[i], i
        assert table.upper[i] - table.lower[i] <= 1e-6 * table.upper[i], i


def test_ends_of_least_sigmas_do_not_depend_on_the_other_cells():
    grid = [[0.02, 0.08], [200, 1500], [0.7, 3.0], [1e-7, 1e-5]]
    columns = [axis.ravel() for axis in np.meshgrid(*grid, indexing="ij")]
    whole = least_sampled_sigma(*columns)
    assert (whole.upper - whole.lower <= 1e-9 * whole.upper).all()
    for part in (slice(5, 6), slice(15, None, -4)):
        some = least_sampled_sigma(*(column[part] for column in columns))
        for name in ("value", "lower", "upper"):
            assert np.array_equal(getattr(some, name), getattr(whole, name)[part])
    above = least_sampled_sigma(*columns, bounds="upper")
    assert (above.upper > whole.upper).all()
    assert (above.lower == 0.0).all()
    assert (composed_delta(above.upper, *columns[:3]).upper <= columns[3]).all()
    beside = least_sampled_sigma(*columns, bounds="upper", rtol=1e-3)  # of the least sigma by Chernoff's bound
    assert np.abs(beside.upper / above.upper - 1.0).max() <= 1e-3


def test_a_false_upper_end_would_be_searched_anew(monkeypatch):
    """The closed curve of one removal denies what the kernel says."""
    monkeypatch.setattr(_sampled_cells, "sigmas", lambda rate, *_: np.tile([0.05, 0.04, 0.06, 1.0], (rate.size, 1)))
    assert least_sampled_sigma(0.02, 50, 1.0, 1e-6, rtol=1e-3).lower > 0.5


@pytest.mark.slow
def test_vast_and_tiny_cells_are_bracketed_or_left_to_the_general_search():
    """Saddle points at the last slot, rates without a sample, targets that are no doubles."""
    grid = [[5e-324, 1e-7, 0.5], [2.0, 2.0**53], [5e-324, 100.0, 1e300], [-744.4, -10.0, -1e-16]]
    rate, count, epsilon, target = (np.ascontiguousarray(a.ravel()) for a in np.meshgrid(*grid, indexing="ij"))
    for only_upper in (False, True):
        found = _sampled_cells.sigmas(rate, count, epsilon, target, -1e-15 * target, 1e-6, only_upper)
        proved = ~np.isnan(found[:, 0])
        assert (found[proved, 1] <= found[proved, 0]).all()
        assert (found[proved, 0] <= found[proved, 2]).all()


def test_products_and_sums_of_compositions():
    step = compose(PoissonSampledGaussian(1.0, 0.02))
    other = compose(fastpriv.GaussianMechanism(5.0, 1.0), 2)
    assert step * 10 == 10 * step == compose(step, 10)
    assert step * 3 + other == compose([step, other], [3, 1])
    assert (step * 0).count == 0
    with pytest.raises(DomainError, match="count must be an integer of at least 0"):
        step * 1.5
    with pytest.raises(TypeError):
        step + 1


def test_errors_of_tables():
    with pytest.raises(DomainError, match="sigma must be positive"):
        composed_delta(0.0, 0.5, 10, 1.0)
    with pytest.raises(DomainError, match="rate must be between 0 and 1"):
        composed_delta(1.0, 1.5, 10, 1.0)
    with pytest.raises(DomainError, match="count must be a whole number from 0 to"):
        composed_epsilon(1.0, 0.5, 2.5, 1e-5)
    with pytest.raises(DomainError, match="epsilon must be at least 0"):
        composed_delta(1.0, 0.5, 10, -1.0)
    with pytest.raises(DomainError, match="delta must be between 0 and 1"):
        composed_epsilon(1.0, 0.5, 10, 2.0)
    with pytest.raises(DomainError, match="bounds must be"):
        composed_epsilon(1.0, 0.5, 10, 1e-5, bounds="lower")
    with pytest.raises(DomainError, match="delta must be positive where losses are unbounded"):
        least_sampled_sigma(0.5, 10, 1.0, 0.0)
    with pytest.raises(ShapeError):
        composed_delta([1.0, 2.0], [0.1, 0.2, 0.3], 10, 1.0)
    ones = np.ones(2)
    with pytest.raises(ValueError, match="columns must have one length"):
        _sampled_cells.cells(ones, ones, ones, ones, np.ones(3), 0, False)
    with pytest.raises(ValueError, match="columns must have one length"):
        _sampled_cells.sigmas(ones, ones, ones, ones, np.ones(3), 1e-9, False)
    with pytest.raises(DomainError, match="bounds must be"):
        least_sampled_sigma(0.5, 10, 1.0, 1e-5, bounds="lower")
