"""The LDP curve of many rows: the screened maximum has the bits of that over all pairs, and the screen is a bound."""

import math
from fractions import Fraction

import numpy as np
import pytest

from fastpriv import Channel, notions
from fastpriv.kernels import _channel_pairs
from fastpriv.notions.discrete import delta_curves
from kernels.variants import check_same_lines, each_wider_variant

EPSILON = [0.0, 1e-15, 1e-9, 0.1, 0.5, 1.0, 1.0 + 1e-12, 3.0, 12.0, 50.0, 100.0, 650.0, 709.0, 720.0, math.inf]

SCRIPT = """
import hashlib
import numpy as np
from fastpriv.kernels import _channel_pairs

digest = hashlib.sha256()
rng = np.random.default_rng(4)
for n, m in ((1, 1), (2, 3), (17, 5), (40, 33)):
    rows, others = (np.round(rng.dirichlet(np.full(m, 0.3), n) * 2**40) / 2**40 for _ in range(2))
    excess, first = np.expm1(np.linspace(0, 6, 5)), np.array([0, 2, 3, 4, 5])
    for other in (None, others):
        largest = np.zeros(5)
        _channel_pairs.raise_to_pairs(rows, other, excess, first, largest)
        digest.update(largest.tobytes())
print(digest.hexdigest())
"""


@each_wider_variant
@pytest.mark.slow
def test_every_instruction_set_gives_the_same_bits(variant):
    check_same_lines(SCRIPT, 1, variant)


def rows_of(kind, n, m):
    rng = np.random.default_rng([n, m])
    rows = rng.dirichlet(np.full(m, 0.3), n)
    if kind == "zeros":
        rows[rng.random((n, m)) < 0.4] = 0.0
    if kind == "tiny":
        rows[:, ::3] *= 10.0 ** rng.integers(-320, -20, rows[:, ::3].shape)
    if kind == "equal":
        rows[:] = rows[0]
    if kind == "nearly equal":
        rows = rows[0] * (1 + 1e-13 * rng.standard_normal((n, m)))
    if kind == "clusters":
        rows = 0.999 * rows[rng.integers(0, min(4, n), n)] + 0.001 * rows
    if kind == "deterministic":
        rows = np.eye(m)[rng.integers(0, m, n)]
    if kind == "small delta":
        rows = rows[0] * (1 + 0.1 * np.sin(np.arange(n)[:, None] + np.arange(m)))
    rows[:, 0] = 0.5 if kind == "tiny" else rows[:, 0]
    rows = rows / rows.sum(axis=1, keepdims=True) if (rows.sum(axis=1) > 0).all() else np.full((n, m), 1 / m)
    return rows.astype(np.float32) if kind == "single" else rows


KINDS = ("plain", "zeros", "tiny", "equal", "nearly equal", "clusters", "deterministic", "small delta", "single")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "m"), [(2, 1), (3, 2), (15, 40), (70, 7), (130, 21)])
def test_the_screened_maximum_is_that_of_all_pairs_bit_for_bit(kind, n, m, monkeypatch):
    rows = rows_of(kind, n, m)
    prior = np.full(n, 1 / (n - 1))
    prior[0] = 0.0
    calls = [
        lambda: notions.ldp_delta(None, Channel(rows), EPSILON),
        lambda: notions.ldp_delta(prior, Channel(rows), EPSILON, on_support=True),
        lambda: notions.ldp_delta(None, Channel(rows), 0.5),
    ]
    full = [call() for call in calls]
    monkeypatch.setattr(delta_curves, "_SCREENED_WORK", 0)
    screened = [call() for call in calls]
    monkeypatch.setattr(delta_curves, "_SCREENED_TERMS", 16**2 * m)
    monkeypatch.setattr(delta_curves, "_MOST_CELLS_IN_ORDER", 0)
    blocks = [call() for call in calls]
    for one, two, three in zip(full, screened, blocks, strict=True):
        for a, b, c in zip(one.arrays(), two.arrays(), three.arrays(), strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(a, c)


def test_threads_and_progress(monkeypatch):
    rows = rows_of("plain", 300, 9)
    monkeypatch.setattr(delta_curves, "_SCREENED_WORK", 0)
    monkeypatch.setattr(delta_curves, "_SCREENED_TERMS", 16**2 * 9 * 15)
    steps = []
    one = notions.ldp_delta(None, Channel(rows), EPSILON, progress=lambda done, total: steps.append((done, total)))
    two = notions.ldp_delta(None, Channel(rows), EPSILON, n_jobs=2)
    assert one == two
    blocks = math.ceil(300 / 16)
    assert steps == [(k + 1, blocks * (blocks + 1) // 2) for k in range(blocks * (blocks + 1) // 2)]


def test_it_stops_between_tasks(monkeypatch):
    monkeypatch.setattr(delta_curves, "_SCREENED_WORK", 0)
    monkeypatch.setattr(delta_curves, "_SCREENED_TERMS", 16**2 * 9)

    def stop(done, total):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        notions.ldp_delta(None, Channel(rows_of("plain", 300, 9)), [0.1], progress=stop, n_jobs=2)


def test_few_pairs_are_evaluated():
    rows = rows_of("plain", 400, 50)
    excess, largest = np.expm1([0.1, 1.0]), np.zeros(2)
    first = np.array([0, 1, 2])
    evaluated = _channel_pairs.raise_to_pairs(rows, None, excess, first, largest)
    assert evaluated < 400
    before = largest.copy()
    assert _channel_pairs.raise_to_pairs(rows, None, excess, first, largest) <= 8
    np.testing.assert_array_equal(before, largest)
    assert _channel_pairs.raise_to_pairs(rows, None, excess, first, np.ones(2)) == 0  # no divergence exceeds 1


def test_the_maximum_against_exact_fractions():
    rng = np.random.default_rng(3)
    rows = rng.multinomial(2**20, np.full(5, 0.2), 30) / 2.0**20
    for excess in (0.0, 0.25, 1.5):
        largest = np.zeros(1)
        _channel_pairs.raise_to_pairs(rows, None, np.array([excess]), np.array([0, 1]), largest)
        exact = [[Fraction(x) for x in row] for row in rows.tolist()]
        factor = 1 + Fraction(excess)
        want = max(sum(max(a - factor * b, 0) for a, b in zip(p, q, strict=True)) for p in exact for q in exact)
        assert largest[0] == float(want)


@pytest.mark.parametrize("call", [
    lambda x, k: _channel_pairs.raise_to_pairs(x(2, 3), x(2, 2), x(1), k(0, 1), x(1)),
    lambda x, k: _channel_pairs.raise_to_pairs(x(2, 3), None, x(2), k(0, 1), x(2)),
    lambda x, k: _channel_pairs.raise_to_pairs(x(2, 3), None, x(2), k(0, 2), x(1)),
    lambda x, k: _channel_pairs.raise_to_pairs(x(0, 3), None, x(1), k(0, 1), x(1)),
    lambda x, k: _channel_pairs.raise_to_pairs(x(2, 3), None, x(2), k(0, 2, 1, 2), x(2)),
])
def test_shapes_are_checked_before_the_kernel_runs(call):
    with pytest.raises(ValueError, match="shapes must fit"):
        call(lambda *shape: np.zeros(shape), lambda *numbers: np.array(numbers))
