"""Sobol points: SciPy's sequence, digital nets before and after scrambling, uniform scrambles, normals of them."""

import hashlib

import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

from fastpriv.base import random_streams
from fastpriv.kernels import _draw
from fastpriv.sampling import sobol
from sizes import few_or_all


def digits(columns, shifts, first, n):
    out = np.empty((len(columns), n), np.uint64)
    _draw.sobol_bits(columns, shifts, first, out)
    return out


def plain(d):
    return sobol.generators(d), np.zeros(d, np.uint64)


def gray(k):
    return k ^ (k >> 1)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 53, 1000, 1112])
def test_unscrambled_points_are_those_of_scipy(d):
    theirs = qmc.Sobol(d, scramble=False).random_base2(9).T
    ours = digits(*plain(d), 0, 512)
    assert (ours[:, gray(np.arange(512))] * 2.0**-64 == theirs).all()


@few_or_all("d", 400, 3000)
def test_far_points_are_those_of_scipy(d):
    for far in (99_999, 2**19 + 4321):
        sequence = qmc.Sobol(d, scramble=False)
        sequence.fast_forward(far)
        ours = digits(*plain(d), gray(far), 1)
        assert (ours[:, 0] * 2.0**-64 == sequence.random(1)[0]).all(), far


@pytest.mark.thread_unsafe(reason="threads that need them at once each make them")
def test_the_generators_are_triangular_and_kept():
    assert sobol.DIMENSIONS == qmc.Sobol.MAXDIM
    columns = sobol.generators(70)
    assert sobol.generators(70) is columns
    assert not columns.flags.writeable
    assert columns.shape == (70, sobol.COLUMNS)
    for b in range(sobol.COLUMNS):
        assert (columns[:, b] << np.uint64(b + 1) == 0).all(), "column b has b + 1 digits"
        assert (columns[:, b] >> np.uint64(63 - b) & np.uint64(1) == 1).all(), "the last of them is 1"


@pytest.mark.parametrize("scramble", [False, True])
@pytest.mark.parametrize(("block", "m"), [(0, 10), (5, 10), (3, 7), (2**20 + 1, 8)])
def test_every_aligned_block_is_a_net(scramble, block, m):
    d, n = 12, 2**m
    columns, shifts = sobol.scrambled(d, random_streams.root(1), (2,)) if scramble else plain(d)
    values = digits(columns, shifts, block * n, n)
    for row in values:
        for q in range(1, m + 1):
            cell = (row >> np.uint64(64 - q)).astype(np.int64)
            assert (np.bincount(cell, minlength=2**q) == 2 ** (m - q)).all(), q
    for q in range(1, m):  # the first two coordinates together: every elementary interval of area 1/n
        cell = (values[0] >> np.uint64(64 - q) << np.uint64(m - q)) + (values[1] >> np.uint64(64 - m + q))
        assert (np.bincount(cell.astype(np.int64), minlength=n) == 1).all(), q


def test_any_piece_of_the_sequence_is_the_same_as_in_one_go():
    columns, shifts = sobol.scrambled(5, random_streams.root(3), (1,))
    whole, normals = digits(columns, shifts, 0, 5000), np.empty((5, 5000))
    _draw.sobol_normals(columns, shifts, 0, normals)
    for first, n in ((0, 1), (1, 1), (3, 4), (7, 9), (8, 8), (13, 100), (64, 64), (1021, 2050), (4999, 1)):
        assert (digits(columns, shifts, first, n) == whole[:, first : first + n]).all()
        part = np.empty((5, n))
        _draw.sobol_normals(columns, shifts, first, part)
        assert (part == normals[:, first : first + n]).all()


def test_points_are_what_their_index_says():
    columns, shifts = sobol.scrambled(3, random_streams.root(8), (0,))
    for k in (0, 1, 6, 2**20 - 1, 2**20, 2**39 + 12345, 2**40 - 1):
        want = shifts.copy()
        for b in range(40):
            want ^= columns[:, b] * np.uint64(k >> b & 1)
        assert (digits(columns, shifts, k, 1)[:, 0] == want).all()
    assert (digits(columns, shifts, 2**40 - 3, 9)[:, 3] == shifts).all(), "bits beyond the columns count for nothing"


def test_normals_are_the_quantiles_of_the_points():
    columns, shifts = sobol.scrambled(6, random_streams.root(3), (1,))
    z = np.empty((6, 4096))
    _draw.sobol_normals(columns, shifts, 0, z)
    u = (digits(columns, shifts, 0, 4096) >> np.uint64(12)) * 2.0**-52 + 2.0**-53
    np.testing.assert_allclose(z, stats.norm.ppf(u), rtol=0, atol=1e-11)
    assert abs(z.mean(axis=1)).max() < 0.002
    assert abs(z.var(axis=1) - 1).max() < 0.02


def test_every_scrambled_point_is_uniform():
    """Over 3,000 scrambles: each of some points and coordinates, and pairs of them, the first digits of all."""
    root, seeds = random_streams.root(12), 3000
    values = np.array([digits(*sobol.scrambled(4, root, (seed,)), 5, 3).ravel() for seed in range(seeds)])
    u = values * 2.0**-64
    for column in u.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3
    for bit in range(64):
        ones = (values >> np.uint64(bit) & np.uint64(1)).sum(axis=0)
        assert abs(ones - seeds / 2).max() < 4.6 * np.sqrt(seeds / 4), bit
    across = np.corrcoef(u[:, ::3].T)[np.triu_indices(4, 1)]
    assert abs(across).max() < 4 / np.sqrt(seeds)


def test_means_over_scrambled_points_are_unbiased_and_far_better_than_random():
    d, n, seeds = 5, 256, 800
    root = random_streams.root(20)
    weights = np.arange(1, d + 1) / d
    means = np.empty(seeds)
    z = np.empty((d, n))
    for seed in range(seeds):
        columns, shifts = sobol.scrambled(d, root, (seed,))
        _draw.sobol_normals(columns, shifts, 0, z)
        means[seed] = np.exp(0.3 * weights @ z).mean()
    power = 0.09 * (weights @ weights)
    truth, spread = np.exp(power / 2), np.sqrt(np.exp(power) * np.expm1(power) / n)
    assert abs(means.mean() - truth) < 4 * means.std() / np.sqrt(seeds)
    assert means.std() < spread / 8


def test_scrambles_never_change():
    columns, shifts = sobol.scrambled(9, random_streams.root(0), (1, 2))
    found = hashlib.sha256(columns.tobytes() + shifts.tobytes()).hexdigest()[:32]
    assert found == "a9e2939d178dbc41e9f916d9c1b9861d"
    again = sobol.scrambled(9, random_streams.root(0), (1, 2))
    assert (again[0] == columns).all()
    assert (again[1] == shifts).all()
    assert (sobol.scrambled(9, random_streams.root(0), (1, 3))[1] != shifts).all()
