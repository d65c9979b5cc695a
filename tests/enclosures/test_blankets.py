"""Shuffled reports of any randomiser: bounds against all data sets, all outcomes of the blanket, and integrals."""

from __future__ import annotations

import itertools
import math
import pickle

import mpmath
import numpy as np
import pytest

from fastpriv import GaussianMechanism, LaplaceMechanism, RandomizedResponse, compose
from fastpriv.base.errors import DomainError
from fastpriv.channels import Channel
from fastpriv.mechanisms import UnaryEncoding
from fastpriv.pairs import Shuffled
from fastpriv.pairs.blankets import _CUTS, _log_excess, cells_of_reports
from fastpriv.pairs.shuffled_sums import ShuffleSum
from oracles import shuffled as oracle

CHANNELS = {
    "three values": [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]],
    "two values": [[0.9, 0.1], [0.05, 0.95]],
    "rare outputs": [[1e-300, 0.25, 0.75 - 2**-30, 2.0**-30], [3e-300, 0.75, 0.25 - 2**-32, 2.0**-32]],
    "nearly equal": [[0.5 + 2**-30, 0.5 - 2**-30, 0.0], [0.5 - 2**-30, 0.5 + 2**-30, 0.0]],
    "far apart": [[1.0 - 2**-50, 2.0**-50], [2.0**-50, 1.0 - 2**-50]],
    "five outputs": [[0.1, 0.2, 0.3, 0.15, 0.25], [0.3, 0.1, 0.2, 0.25, 0.15]],
}


def epsilons(local: float) -> list[float]:
    """Levels from 0 to the local epsilon, close to both ends."""
    return [share * local for share in (0.0, 1e-9, 0.1, 0.4, 0.7, 0.95, 1 - 1e-9)]


@pytest.mark.few(6)
@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("n", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_channels_against_all_data_sets(name, n):
    rows = [[mpmath.mpf(x) for x in row] for row in CHANNELS[name]]
    shuffled = Shuffled(Channel(CHANNELS[name]), n, adaptive=False)
    for epsilon in epsilons(shuffled.local_epsilon):
        with mpmath.workdps(60):
            truth, blanket = (f(rows, n, epsilon) for f in (oracle.worst_data_set_of_rows, oracle.blanket_of_rows))
        found = compose(shuffled).delta(epsilon)
        assert found.lower <= truth * (1 + 1e-15), (epsilon, found, truth)
        assert truth <= found.upper, (epsilon, found, truth)
        assert found.upper <= max(blanket * 1.03, 1e-290) or epsilon > 0.9 * shuffled.local_epsilon or "far" in name
        print(f"{name}, n {n}: {found.lower:.6e} <= {float(truth):.6e} <= {float(blanket):.6e}, {found.upper:.6e}")


def random_rows(generator: np.random.Generator) -> np.ndarray:
    """A channel of a few values whose entries have very different sizes."""
    sizes = generator.integers(2, 4), generator.integers(2, 4)
    rows = np.exp(generator.normal(0.0, generator.choice([0.1, 1.0, 4.0]), sizes))
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.few(7)
@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 60))])
def test_random_channels(seed):
    generator = np.random.default_rng(seed)
    table = random_rows(generator)
    n = int(generator.integers(1, 5))
    shuffled = Shuffled(Channel(table), n, adaptive=False)
    rows = [[mpmath.mpf(x) / mpmath.fsum(row) for x in row] for row in table.tolist()]
    for share in generator.random(3):
        epsilon = float(share) * shuffled.local_epsilon
        truth = oracle.worst_data_set_of_rows(rows, n, epsilon)
        found = compose(shuffled).delta(epsilon)
        assert found.lower <= truth * (1 + 1e-14) <= found.upper * (1 + 2e-14), (epsilon, found, truth)


@pytest.mark.parametrize(("n", "k", "local"), [(1, 4, 2.0), (5, 4, 2.0), (50, 3, 1.0), (1000, 4, 2.0), (3000, 6, 0.25)])
def test_randomised_response_is_an_instance(n, k, local):
    (cells,) = cells_of_reports(Channel(RandomizedResponse(k, local).matrix()))
    exact = ShuffleSum("blanket", n, local, k)
    for epsilon in (0.0, 0.01, 0.1 * local, 0.3 * local, 0.8 * local):
        found = max(_log_excess(cells, pair, n, epsilon, True) for pair in cells.pairs)
        lower, value = (float(row[0]) for row in (exact.log_delta(np.array([epsilon])).lower,
                                                  exact.log_delta(np.array([epsilon])).value))
        assert lower <= found, (epsilon, lower, found)
        assert found <= value + 3e-3 + 2e-3 * abs(value)
        print(f"n {n}, k {k}, epsilon {epsilon}: log delta {value:.4f}, above it {found - value:.1e}")


@pytest.mark.parametrize("encoding", [
    UnaryEncoding(2, 2.0), UnaryEncoding(3, 2.0), UnaryEncoding.optimized(3, 1.0),
    UnaryEncoding(3, p=0.2, q=0.7), UnaryEncoding(2, p=0.5, q=0.01), UnaryEncoding(3, 0.0),
])
def test_unary_encodings(encoding):
    rows = [[mpmath.mpf(x) for x in row] for row in encoding.matrix().tolist()]
    for n in (1, 2, 3):
        shuffled = Shuffled(encoding, n, adaptive=False)
        for share in (0.0, 0.3, 0.8):
            epsilon = share * shuffled.local_epsilon
            found, truth = compose(shuffled).delta(epsilon), oracle.worst_data_set_of_rows(rows, n, epsilon)
            assert found.lower <= truth * (1 + 1e-12)
            assert truth <= found.upper * (1 + 1e-12)
            if encoding.k > 1 and n < 3:
                blanket = oracle.blanket_of_rows(rows, n, epsilon)
                assert blanket * (1 - 1e-12) <= found.upper <= 1.03 * blanket + 1e-300, (n, share, found, blanket)


def normal_density(y):
    return np.exp(-0.5 * y * y) / math.sqrt(2 * math.pi)


def laplace_density(y):
    return 0.5 * np.exp(-np.abs(y))


@pytest.mark.few(2)
@pytest.mark.parametrize("distance", [0.1, 1.0, pytest.param(3.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("noise", ["normal", "laplace"])
def test_two_reports_of_noise(noise, distance):
    normal = noise == "normal"
    mechanism = GaussianMechanism(1.0, distance) if normal else LaplaceMechanism(1.0, distance)
    reach = np.linspace(0.0, 8.0, 300 if normal else 2)
    y = np.unique(np.concatenate([-reach, np.linspace(0.0, distance, 401), distance + reach]))
    laws = {}
    for x in np.linspace(0.0, distance, 5).tolist():
        below = np.array([0.5 * math.erfc(-t / math.sqrt(2)) if normal else
                          0.5 * math.exp(t) if t < 0 else 1 - 0.5 * math.exp(-t) for t in (y - x).tolist()])
        laws[x] = np.diff(np.concatenate([[0.0], below, [1.0]]))
    values = list(laws)
    pairs = [(values[0], values[4]), (values[4], values[0]), (values[0], values[2]), (values[1], values[4])]
    for epsilon in (0.0, 0.1 * distance, 0.5 * distance, 0.9 * distance):
        found = compose(Shuffled(mechanism, 2, adaptive=False)).delta(epsilon)
        truth = max(oracle.two_reports(laws[a], laws[b], third, epsilon) for a, b in pairs for third in laws.values())
        print(f"{noise}, distance {distance}, epsilon {epsilon}: {found.lower:.5e} {truth:.5e} {found.upper:.5e}")
        assert found.lower <= truth * 1.0003 + 1e-9
        assert truth <= found.upper * (1 + 1e-12)
        assert found.upper <= 2 * truth + 1e-6


@pytest.mark.parametrize("distance", [1e-3, 0.5, 2.0, 6.0])
@pytest.mark.parametrize("normal", [True, False])
def test_ends_are_the_worst_pair(normal, distance):
    """Stop-losses of V of values inside the interval do not exceed those of its ends."""
    y = (np.arange(40_000) + 0.5) * (40 + distance) / 40_000 - 20
    density = normal_density if normal else laplace_density
    ends = density(y), density(y - distance)
    blanket = np.minimum(*ends)
    inside = [density(y - x) for x in np.linspace(0.0, distance, 6)]
    for alpha, t in itertools.product((0.0, 1.0, 1.3, math.exp(distance / 2)), (-3.0, -0.5, 0.0, 0.3, 2.0, 20.0)):
        bound = np.maximum(ends[0] - alpha * ends[1] - t * blanket, 0.0).sum()
        for i, j in itertools.product(range(6), repeat=2):
            excess = np.maximum(inside[i] - alpha * inside[j] - t * blanket, 0.0).sum()
            assert excess <= bound * (1 + 1e-6) + 1e-3 * alpha, (alpha, t, i, j, excess, bound)


@pytest.mark.parametrize("distance", [1e-6, 0.3, 2.0, 8.0])
@pytest.mark.parametrize("normal", [True, False])
def test_cells_of_noise(normal, distance):
    d = mpmath.mpf(float(np.nextafter(distance, np.inf)) if normal else distance)
    worst = 0.0
    with mpmath.workdps(60):
        below = mpmath.ncdf if normal else lambda y: mpmath.exp(y) / 2 if y < 0 else 1 - mpmath.exp(-y) / 2
        tables = cells_of_reports(GaussianMechanism(1.0, distance) if normal else LaplaceMechanism(1.0, distance))
        for cut, cells in zip(_CUTS if normal else (0.0,), tables, strict=False):
            edges = [mpmath.mpf(y) for y in np.linspace(-cut, float(d) / 2, 1025).tolist()]
            assert cells.blanket.size == 2 * 1024 + 2 * (not normal)
            assert math.isclose(cells.rows.sum() + cells.revealed.sum(), 3.0, rel_tol=1e-12)
            np.testing.assert_array_equal(cells.blanket, cells.rows.min(axis=0))
            for j in (0, 1, 100, 500, 1000, 1022, 1023):
                index = j + (not normal)
                ends = [d * (d / 2 - edges[j + side]) if normal else d - 2 * edges[j + side] for side in (1, 0)]
                truth = [below(edges[j + 1] - shift) - below(edges[j] - shift) for shift in (0, d, d / 2)]
                found = [*cells.rows[:, index], *cells.ratios[0][:, index]]
                errors = [abs(x / y - 1) for x, y in zip(found, [*truth, *map(mpmath.exp, ends)], strict=True)]
                worst = max(worst, float(max(errors)))
            if normal:
                for row, shift in enumerate((0, d, d / 2)):
                    worst = max(worst, abs(float(cells.revealed[row][0] / below(-mpmath.mpf(cut) - shift) - 1)))
    print(f"normal {normal}, distance {distance}: worst relative error {worst:.1e}, allowed {cells.error:.1e}")
    assert worst <= cells.error / 2


@pytest.mark.slow
def test_one_report_is_the_mechanism():
    for mechanism in (GaussianMechanism(0.5, 1.0), LaplaceMechanism(2.0, 1.0)):
        for epsilon in (0.0, 0.1, 0.4):
            found, truth = compose(Shuffled(mechanism, 1, adaptive=False)).delta(epsilon), mechanism.delta(epsilon)
            assert found.lower <= truth.upper
            assert truth.lower <= found.upper <= 1.01 * truth.upper
            assert found.lower >= 0.9 * truth.lower


@pytest.mark.slow
def test_more_reports_lose_less():
    epsilon = np.array([0.0, 0.1, 0.5])
    for mechanism in (GaussianMechanism(1.0, 1.0), LaplaceMechanism(1.0, 1.0), UnaryEncoding(5, 2.0)):
        last = np.ones(3)
        for n in (1, 3, 30, 300, 3000):
            found = compose(Shuffled(mechanism, n, adaptive=False)).delta(epsilon)
            assert (found.lower <= found.upper).all()
            assert (found.upper <= last * 1.002).all()
            last = np.asarray(found.upper)
            if not isinstance(mechanism, GaussianMechanism):
                assert (found.upper <= compose(Shuffled(mechanism, n)).delta(epsilon).upper).all()


@pytest.mark.slow
def test_far_levels_and_many_reports():
    table = Channel([[0.75, 0.2, 0.05], [0.3, 0.3, 0.4]])
    found = compose(Shuffled(table, 10**9, adaptive=False)).log_delta([0.0, 0.5, 50.0])
    assert found.upper[0] < -5.0
    assert found.upper[1] < -1000.0
    assert found.upper[2] == -math.inf
    far = compose(Shuffled(GaussianMechanism(1.0, 1.0), 1000, adaptive=False)).delta([40.0, 1e6])
    assert (far.upper < 1e-300).all()


@pytest.mark.slow
def test_two_rounds():
    rows = CHANNELS["three values"]
    wide = [[mpmath.mpf(x) for x in row] for row in rows]
    best = mpmath.mpf(0)
    for others in itertools.combinations_with_replacement(range(3), 2):
        laws = [oracle.histogram(wide, (x, *others)) for x in range(3)]
        best = max(best, *(oracle.positive_part(*oracle.twice(p, q), 0.3) for p, q in itertools.permutations(laws, 2)))
    found = compose(Shuffled(Channel(rows), 3, adaptive=False), 2).delta(0.3)
    print(found, float(best))
    assert found.lower <= best * (1 + 1e-12)
    assert best <= found.upper
    assert found.upper <= 1.5 * best


@pytest.mark.slow
def test_values_and_texts():
    one = Shuffled(GaussianMechanism(1.0, 1.0), 10, adaptive=False)
    assert pickle.loads(pickle.dumps(one)) == one
    assert compose(Shuffled(UnaryEncoding(1, 1.0), 10, adaptive=False)).delta(0.0).upper == 0.0
    for wide_noise in (LaplaceMechanism(1.0, 90.0), LaplaceMechanism(1.0, 600.0), GaussianMechanism(1.0, 20.0),
                       GaussianMechanism(1.0, 1e3), GaussianMechanism(1.0, 1e-9)):
        found = compose(Shuffled(wide_noise, 10, adaptive=False)).delta([0.0, 1e-3, 5.0])
        assert (found.lower <= found.upper).all()
        assert (found.upper <= np.asarray(wide_noise.delta([0.0, 1e-3, 5.0]).upper)).all()
    assert compose(Shuffled(GaussianMechanism(1.0, 0.0), 10, adaptive=False)).delta(0.0).upper == 0.0
    assert compose(Shuffled(Channel([[0.1] * 10]), 10, adaptive=False)).delta(0.0).upper < 1e-14
    wide = Channel(np.full((40, 2), 0.5) + np.linspace(-0.2, 0.2, 40)[:, None] * [1, -1])
    assert compose(Shuffled(wide, 10, adaptive=False)).delta(0.1).upper == compose(Shuffled(wide, 10)).delta(0.1).upper
    for make, text in (
        (lambda: Shuffled(GaussianMechanism(1.0, 1.0), 10), "or be a GaussianMechanism with adaptive=False"),
        (lambda: Shuffled(GaussianMechanism(1.0), 10, adaptive=False), "sensitivity"),
        (lambda: Shuffled(2.0, 10, adaptive=False), "adaptive must be True where nothing but a local epsilon is known"),
        (lambda: Shuffled(Channel([[1.0, 0.0], [0.5, 0.5]]), 10, adaptive=False), "must have a finite local epsilon"),
    ):
        with pytest.raises(DomainError) as error:
            make()
        assert text in str(error.value)
