"""Theorem 3: information of any covariances, and the game, contain the truth."""

import math

import numpy as np
import pytest
from mpmath import mpf

from fastpriv import DomainError
from fastpriv.capacity import average_power_capacity, gaussian_game, gaussian_information
from fastpriv.errors import ShapeError
from oracles import gaussian_game as oracle

SCALES = (1e-300, 1e-160, 1e-20, 1e-3, 1.0, 1e3, 1e20, 1e160, 1e300)


def holds(estimate, truth):
    return mpf(float(estimate.lower)) <= truth <= mpf(float(estimate.upper))


def factor(rng, d, spread):
    return rng.normal(size=(d, d)) * 10.0 ** rng.uniform(-spread, spread, d)


def covariance(rng, d, spread=0.0):
    a = factor(rng, d, spread)
    return a @ a.T


def test_information_of_random_covariances():
    rng = np.random.default_rng(1)
    for d in (1, 2, 3, 5, 9):
        for spread in (0.0, 1.0, 3.0):
            for scale in (1e-18, 1e-3, 1.0, 1e6):
                units = 2.0 ** rng.integers(-300, 300, d)
                x, y = (covariance(rng, d, s) * np.outer(units, units) for s in (spread, spread / 3))
                x = x * scale
                got, want = gaussian_information(x, y), oracle.information(x, y)
                where = f"d={d} spread={spread} scale={scale}: got {got!r}, want {want}"
                assert holds(got, want), where
                if got.kind == "exact" and spread == 0.0 and d < 9:
                    assert got.width <= 1e-9 * got.value, where


def test_well_conditioned_noise_is_narrow():
    rng = np.random.default_rng(2)
    for d in (2, 4, 8, 16):
        y = covariance(rng, d) + d * np.eye(d)
        for scale in (1e-20, 1.0, 1e20):
            x = scale * (covariance(rng, d) + d * np.eye(d))
            got, want = gaussian_information(x, y), oracle.information(x, y)
            assert got.kind == "exact"
            assert holds(got, want), (got, want)
            assert got.width <= 6 * d * d * 2.0**-50 * got.value, (d, scale, got)


def test_signals_of_very_different_variances_are_held():
    rng = np.random.default_rng(12)
    for d in (2, 4, 7):
        for _ in range(8):
            units = 10.0 ** rng.uniform(-80, 80, d)
            x, y = covariance(rng, d, 3.0) * np.outer(units, units), covariance(rng, d, 2.0)
            got, want = gaussian_information(x, y), oracle.information(x, y)
            assert got.kind == "exact"
            assert holds(got, want), (got, want)


@pytest.mark.slow
def test_a_signal_indefinite_by_a_rounding_is_held():
    rng = np.random.default_rng(13)
    exact = 0
    for _ in range(200):
        basis = rng.normal(size=(2, 1))
        x, y = 1e3 * (basis @ basis.T), covariance(rng, 2) + 0.1 * np.eye(2)
        got, want = gaussian_information(x, y), oracle.information(x, y)
        exact += got.kind == "exact"
        assert got.kind == "heuristic" or holds(got, want), (x, y, got, want)
    assert exact > 0


def test_noise_of_every_condition_is_held():
    for k in range(1, 16):
        y = np.array([[1.0, 1.0 - 10.0**-k], [1.0 - 10.0**-k, 1.0]])
        for x in (np.eye(2), np.array([[3.0, -1.0], [-1.0, 2.0]]), 1e-12 * np.eye(2)):
            got, want = gaussian_information(x, y), oracle.information(x, y)
            if got.kind == "exact":
                assert holds(got, want), (k, x, got, want)
            else:
                assert 10.0**-k < 1e-13, (k, got)


@pytest.mark.parametrize("scale", SCALES)
def test_diagonals_of_every_scale(scale):
    for other in SCALES:
        x, y = np.array([scale, 3.0, 0.0]), np.array([other, 1.0, 5.0])
        want = oracle.information(np.diag(x), np.diag(y))
        for got in (gaussian_information(x, y), gaussian_information(np.diag(x), np.diag(y))):
            assert holds(got, want), (scale, other, got, want)
            assert got.width <= 1e-14 * got.value, (scale, other, got)
            assert got.kind == "exact"


def test_singular_covariances():
    finite = gaussian_information(np.diag([1.0, 0.0]), np.diag([1.0, 0.0]), unit="bits")
    assert finite.value == 0.5
    assert finite.kind == "exact"
    assert gaussian_information(np.diag([0.0, 1.0]), np.diag([1.0, 0.0])).value == math.inf
    assert gaussian_information([0.0, 1.0], [1.0, 0.0]).lower == math.inf
    none = gaussian_information(np.zeros((2, 2)), np.zeros((2, 2)))
    assert (none.lower, none.upper) == (0.0, 0.0)
    rng = np.random.default_rng(3)
    for d, rank in ((2, 1), (4, 2), (7, 3)):
        basis = rng.normal(size=(d, rank))
        a, b = covariance(rng, rank), covariance(rng, rank)
        inside = gaussian_information(basis @ a @ basis.T, basis @ b @ basis.T)
        assert inside.kind == "heuristic"
        assert holds(inside, oracle.information(a, b)), (d, rank, inside)
        assert inside.width <= 1e-7 * inside.value
        assert gaussian_information(np.eye(d), basis @ basis.T).value == math.inf


def test_stacks_and_shorthands():
    rng = np.random.default_rng(4)
    x = np.stack([covariance(rng, 3) for _ in range(4)]).reshape(2, 2, 3, 3)
    got = gaussian_information(x, 2.0)
    assert got.shape == (2, 2)
    for i in np.ndindex(2, 2):
        assert got.value[i] == gaussian_information(x[i], 2.0 * np.eye(3)).value
        assert got.value[i] == gaussian_information(x[i], [2.0, 2.0, 2.0]).value
    assert gaussian_information(1.0, 1.0, unit="bits").value == 0.5
    assert gaussian_information([1.0, 1.0], 1.0, unit="bits").value == 1.0
    mixed = gaussian_information(np.stack([np.eye(2), np.zeros((2, 2)), np.diag([1.0, 0.0])]), np.diag([1.0, 0.0]))
    assert mixed.value.tolist() == [math.inf, 0.0, gaussian_information(1.0, 1.0).value]


def test_congruence_leaves_the_information():
    rng = np.random.default_rng(5)
    for _ in range(20):
        x, y = (np.round(8 * covariance(rng, 3)) + 40 * np.eye(3) for _ in range(2))
        a = rng.integers(-9, 10, (3, 3)) + 20.0 * np.eye(3)  # all products stay whole numbers
        first, second = gaussian_information(x, y), gaussian_information(a @ x @ a.T, a @ y @ a.T)
        assert max(first.lower, second.lower) <= min(first.upper, second.upper), (x, y, a)
        units = 2.0 ** rng.integers(-400, 400, 3)
        third = gaussian_information(x * np.outer(units, units), y * np.outer(units, units))
        assert max(first.lower, third.lower) <= min(first.upper, third.upper), (x, y, units)


def test_sorted_eigenvalues_are_not_enough():
    """The line after (48) in print: sum of 1/2 log(1 + l_i / n_i) over eigenvalues sorted in decreasing order."""
    x, y = np.diag([4.0, 1.0]), np.diag([1.0, 3.0])
    printed = 0.5 * sum(math.log2(1 + a / b) for a, b in zip([4.0, 1.0], [3.0, 1.0], strict=True))
    assert printed == pytest.approx(1.1112, abs=5e-5)
    assert gaussian_information(x, y, unit="bits").value == pytest.approx(1.3685, abs=5e-5)
    angles = np.linspace(0, math.pi, 181)
    turns = np.array([[[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]] for t in angles])
    turned = gaussian_information(turns @ x @ turns.swapaxes(1, 2), y, unit="bits")
    assert turned.value.min() == pytest.approx(printed, abs=1e-12)
    assert turned.value.max() == pytest.approx(1.368482797083103, abs=1e-12)


def test_the_game_and_its_saddle_point():
    for d in (1, 2, 7, 100):
        for ratio in (1e-6, 0.3, 1.0, 1e4):
            game = gaussian_game(d, d * ratio, float(d))
            want = oracle.average_power(d, math.sqrt(d * ratio), 1.0)
            assert game.value.value == pytest.approx(float(want), rel=1e-14)
            assert game.signal == pytest.approx(ratio)
            assert game.noise == pytest.approx(1.0)
    assert gaussian_game(4, 4.0, 4.0, unit="bits").value.value == 2.0


def test_a_subnormal_quotient_of_powers_in_many_dimensions():
    """P / N is rounded from 1.5 to 2 units of the least double, and 2^52 times that is no longer subnormal."""
    game = gaussian_game(2**53, 1.5e-323, 2.0)
    assert holds(game.value, mpf(2) ** 52 * mpf(1.5e-323) / 2)


def test_neither_player_gains_by_leaving_the_saddle_point():
    rng = np.random.default_rng(9)
    game = gaussian_game(3, 5.0, 2.0)
    for _ in range(30):
        x, y = covariance(rng, 3), covariance(rng, 3)
        x, y = 5.0 * x / np.trace(x), 2.0 * y / np.trace(y)
        assert gaussian_information(x, game.noise).lower <= game.value.upper
        assert gaussian_information(game.signal, y).upper >= game.value.lower


def test_average_power_capacity():
    rng = np.random.default_rng(10)
    d = np.concatenate([[1, 1, 1, 3, 10**15], rng.integers(1, 10**6, 200)])
    a = np.concatenate([[1e300, 1e-300, 0.0, 1e-160, 1.0], 10 ** rng.uniform(-300, 300, 200)])
    s = np.concatenate([[1e-300, 1e300, 1.0, 1.0, 1e-9], 10 ** rng.uniform(-300, 300, 200)])
    got = average_power_capacity(d, a, s)
    for i in range(d.size):
        want = oracle.average_power(d[i], a[i], s[i])
        assert holds(got[i], want), (d[i], a[i], s[i], got[i], want)
    seen = got.value > 1e-290
    assert (got.width[seen] <= 5e-15 * got.value[seen]).all()
    assert got.upper[2] == 0.0
    assert average_power_capacity(2, [[1.0], [2.0]], [1.0, 2.0, 3.0], unit="bits").shape == (2, 3)


def test_bad_signals():
    call = gaussian_information
    with pytest.raises(DomainError, match=r"signal must be symmetric to rounding; got .* at index \(0, 1\) \(2 of 4"):
        call([[1.0, 0.5], [0.4, 1.0]], np.eye(2))
    with pytest.raises(DomainError, match=r"signal must be positive semidefinite; got 2\.0 at index"):
        call([[1.0, 2.0], [2.0, 1.0]], np.eye(2))
    three = np.full((3, 3), -0.9) + 1.9 * np.eye(3)
    with pytest.raises(DomainError, match=r"signal must be positive semidefinite; got -0\.\d+\. Shown is"):
        call(three, np.eye(3))
    with pytest.raises(DomainError, match="signal must be at least 0 on its diagonal"):
        call([[1.0, 0.0], [0.0, -1.0]], np.eye(2))
    with pytest.raises(DomainError, match=r"signal must be positive semidefinite"):
        call([[0.0, 1e-30], [1e-30, 1.0]], np.eye(2))
    with pytest.raises(DomainError, match="signal must be made of finite numbers"):
        call([[math.nan, 0.0], [0.0, 1.0]], np.eye(2))
    with pytest.raises(DomainError, match="signal must be finite and at least 0"):
        call([1.0, -1.0], [1.0, 1.0])
    with pytest.raises(ShapeError, match="signal must be a square matrix or a stack of them"):
        call(np.ones((2, 3)), np.eye(2))


def test_bad_shapes_and_powers():
    with pytest.raises(ShapeError, match="signal must be of the dimension of noise; got shapes"):
        gaussian_information(np.eye(2), np.eye(3))
    with pytest.raises(ShapeError, match="signal must be of the dimension of noise"):
        gaussian_information([1.0], [1.0, 1.0])
    with pytest.raises(ShapeError, match="broadcasts with noise"):
        gaussian_information(np.ones((2, 1, 1)), np.ones((3, 1, 1)))
    with pytest.raises(DomainError, match="unit must be one of"):
        gaussian_information(1.0, 1.0, unit="bytes")
    with pytest.raises((DomainError, ShapeError), match="signal must be"):
        gaussian_information([[1.0, 2.0], [3.0]], 1.0)
    with pytest.raises(DomainError, match="signal_power must be positive and finite"):
        gaussian_game(2, 0.0, 1.0)
    with pytest.raises(DomainError, match="dimension must be an integer of at least 1"):
        gaussian_game(0, 1.0, 1.0)
    with pytest.raises(DomainError, match="dimension must be whole numbers from 1"):
        average_power_capacity(1.5, 1.0)
    with pytest.raises(DomainError, match="sigma must be positive and finite"):
        average_power_capacity(1, 1.0, 0.0)
    with pytest.raises(ShapeError, match="broadcasts with dimension and amplitude"):
        average_power_capacity(1, [1.0, 2.0], [1.0, 2.0, 3.0])
