"""Random normals and placed samples: accuracy of the quantile, laws, antithetic pairs, and the same bits everywhere."""

import hashlib
import importlib.util
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy import stats

from fastpriv.base import random_streams
from fastpriv.kernels import _draw
from kernels.variants import check_same_lines, each_wider_variant

ROOT = Path(__file__).parents[2]
WORDS = np.array([1, 2, 3, 4], dtype=np.uint64)
N = 1 << 19


def normals(d, n, seed=0, antithetic=False):
    out = np.empty((d, n))
    _draw.normals(random_streams.stream_words(random_streams.root(seed), (), _draw.SEED_WORDS), antithetic, out)
    return out


def quantiles(digits):
    """The normal of every number of 64 binary digits, all through the kernel that fills rows."""
    out = np.empty((len(digits), 8))
    _draw.sobol_normals(np.zeros((len(digits), 1), np.uint64), np.asarray(digits, np.uint64), 0, out)
    assert (out == out[:, :1]).all()
    return out[:, 0].copy()


def relative_error(digits, z):
    """(z - Phi^-1(u)) / z by one Newton step in 40 digits; u is the middle of the interval that 53 digits name."""
    with mpmath.workdps(40):
        k = int(digits) >> 11
        low = mpmath.mpf(2 * min(k, 2**53 - 1 - k) + 1) / mpmath.mpf(2) ** 54
        size = mpmath.mpf(abs(float(z)))
        assert (z < 0) == (k < 2**52)
        gap = mpmath.erfc(size / mpmath.sqrt(2)) / 2 - low
        step = gap / (mpmath.exp(-size * size / 2) / mpmath.sqrt(2 * mpmath.pi))
        return float(step / (1 - size * step / 2) / size)


def test_the_quantile_is_right_to_1e_14_everywhere():
    rng = np.random.default_rng(1)
    tails = [int(2.0 ** (64 - e)) for e in np.linspace(1, 53, 700)]
    middle = [2**63 - int(2.0**e) for e in np.linspace(11, 63, 300)]
    edges = [(2 * m << (52 - e)) + step * 2**11 for e in range(12) for m in (2, 3) for step in (-2, -1, 0, 1, 2)]
    spread = rng.integers(0, 2**63, 400, dtype=np.uint64)
    lower = np.array([*tails, *middle, *(edge << 9 for edge in edges if edge << 9 < 2**63), *map(int, spread)])
    lower = np.unique(np.minimum(lower.astype(np.uint64), np.uint64(2**63 - 1)))
    lower = np.concatenate([np.array([0, 1 << 11, 2 << 11], np.uint64), lower])
    z = quantiles(lower)
    errors = np.array([relative_error(digits, x) for digits, x in zip(lower, z, strict=True)])
    worst = int(np.argmax(abs(errors)))
    assert abs(errors[worst]) < 1e-14, (hex(int(lower[worst])), z[worst], errors[worst])
    assert (quantiles(~lower) == -z).all(), "Phi^-1(1 - u) = -Phi^-1(u)"
    assert z[0] < -8.2, "the last of 2**53 intervals"


def test_the_quantile_does_not_fall():
    rng = np.random.default_rng(2)
    start = np.concatenate([2 ** rng.uniform(12, 64, 500), 2**63 - 2 ** rng.uniform(12, 62, 500)]).astype(np.uint64)
    near = np.sort(np.minimum(start, np.uint64(2**63)))[:, None] + (np.arange(8, dtype=np.uint64) << np.uint64(11))
    z = quantiles(near.ravel()).reshape(near.shape)
    assert (np.diff(z, axis=1) >= -2e-14 * abs(z[:, 1:])).all()


@pytest.mark.slow
def test_the_table_is_what_the_fit_prints(capsys):
    specification = importlib.util.spec_from_file_location("fit_normal", ROOT / "tools" / "fit_normal.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    module.main()
    assert capsys.readouterr().out == (ROOT / "csrc/sampling/fp_normal_quantile_tables.h").read_text()


def test_uniforms_are_uniform_and_never_0_or_1():
    u = np.empty(N)
    _draw.uniforms(WORDS, u)
    assert u.min() >= 2.0**-53
    assert u.max() <= 1 - 2.0**-53
    assert ((u * 2.0**53) % 2 == 1).all(), "the middle of one of 2**52 intervals"
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    lows = np.floor(u * 2.0**52).astype(np.uint64)
    for bit in range(52):
        ones = int((lows >> np.uint64(bit) & np.uint64(1)).sum())
        assert abs(ones - N / 2) < 4.5 * np.sqrt(N / 4), bit


def test_normals_are_normal():
    z = normals(4, N // 4)
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-3
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)):
        assert abs((z**power).mean() - mean) < 4 * np.sqrt(variance / N), power
    for limit in (2.0, 2.8, 3.5, 4.2):  # the far part starts at 2.885
        chance = 2 * stats.norm.sf(limit)
        assert abs((abs(z) > limit).sum() - N * chance) < 4 * np.sqrt(N * chance), limit


@pytest.mark.parametrize("lag", [1, 2, 3, 8, 16])
def test_a_stream_does_not_know_its_past(lag):
    z = normals(1, N)[0]
    for f in (z, z * z - 1, np.sign(z) * z * z):
        scale = (f * f).mean() * np.sqrt(N)
        assert abs((f[lag:] * f[:-lag]).sum() / scale / np.sqrt(N)) < 4.5 / np.sqrt(N)


@pytest.mark.slow
def test_lanes_and_neighbouring_streams_are_uncorrelated():
    lanes = normals(1, N)[0].reshape(-1, 8).T
    root = random_streams.root(5)
    streams = np.empty((32, N // 32))
    for key in range(32):
        _draw.normals(random_streams.stream_words(root, (key,), _draw.SEED_WORDS), False, streams[key : key + 1])
    for rows in (lanes, streams):
        for values in (rows, rows * rows):
            off = np.corrcoef(values)[np.triu_indices(len(rows), 1)]
            assert abs(off).max() < 4.8 / np.sqrt(rows.shape[1])


def test_rows_of_any_length():
    for n in (1, 2, 7, 8, 9, 31, 64, 100):
        z = normals(3, n)
        assert np.isfinite(z).all()
        padded = normals(3, n + (-n) % 8)
        assert (z == padded[:, :n]).all(), "what is left of the last eight is dropped"


def test_antithetic_columns_come_in_pairs():
    for n in (2, 6, 16, 34, 4096):
        z = normals(3, n, antithetic=True)
        assert (z[:, ::2] == -z[:, 1::2]).all()
        assert (z[:, ::2] == normals(3, n // 2)).all()
    with pytest.raises(ValueError, match="shapes must fit: words .*, n even"):
        normals(3, 5, antithetic=True)


def test_the_stream_of_integers_never_changes():
    out = np.empty(1003, np.uint64)
    _draw.bits(WORDS, out)
    assert out[:2].tolist() == reference(WORDS, 0, 2)[:1] + reference(WORDS, 1, 1)
    lanes = np.array([reference(WORDS, lane, 126) for lane in range(8)], np.uint64).T.ravel()
    assert (out == lanes[:1003]).all()
    assert hashlib.sha256(out.tobytes()).hexdigest()[:32] == "edef3dad2894adf2bb59840db93bb415"


def reference(words, lane, n):
    """SFC64 seeded by SplitMix64, as the recurrences are published."""
    mask = 2**64 - 1

    def splitmix(word):
        x = (word + (lane + 1) * 0x9E3779B97F4A7C15) & mask
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        return x ^ (x >> 31)

    a, b, c, counter = (splitmix(int(word)) for word in words)
    given = []
    for _ in range(16 + n):
        output = (a + b + counter) & mask
        counter = (counter + 1) & mask
        a, b, c = b ^ (b >> 11), (c + (c << 3)) & mask, (((c << 24) | (c >> 40)) + output) & mask
        given.append(output)
    return given[16:]


def law(form, k, d, rng, shared=False):
    means = rng.normal(size=(k, d))
    if form == 2:
        return means, rng.normal(size=(1 if shared else k, d * (d + 1) // 2))
    return means, rng.random((k, d) if form else k) + 0.1


def placed(means, spreads, form, component, z):
    """The same in NumPy."""
    d = means.shape[1]
    if form < 2:
        return means[component].T + np.atleast_2d(spreads[component].T) * z
    factors = np.zeros((len(spreads), d, d))
    factors[:, *np.tril_indices(d)] = spreads
    return means[component].T + np.einsum("tij,jt->it", factors[component if len(spreads) > 1 else component * 0], z)


COMPONENTS = {
    "one run": lambda n, rng: np.zeros(n, int),
    "long runs": lambda n, rng: np.sort(rng.integers(0, 3, n)),
    "ragged runs": lambda n, rng: np.sort(np.minimum(rng.geometric(0.05, n), 60)),
    "single columns": lambda n, rng: np.sort(rng.permutation(2 * n)[:n]),
    "in any order": lambda n, rng: rng.integers(0, 5, n),
}


@pytest.mark.few(16)
@pytest.mark.parametrize("runs", COMPONENTS)
@pytest.mark.parametrize(("form", "shared"), [(0, False), (1, False), (2, False), (2, True)])
def test_place_is_what_numpy_says(form, shared, runs):
    rng = np.random.default_rng(4)
    for d, n in ((1, 1), (1, 100), (2, 37), (3, 64), (5, 200), (16, 333), (40, 90), (300, 41), (1030, 9)):
        if form == 2 and d > 40 and runs in ("ragged runs", "single columns") and not shared:
            continue
        component = COMPONENTS[runs](n, rng).astype(np.int32)
        means, spreads = law(form, int(component.max()) + 1, d, rng, shared)
        z = rng.normal(size=(d, n))
        out = np.full((d, n), np.nan)
        _draw.affine_map(form, means, spreads, component, z, out)
        want = placed(means, spreads, form, component, z)
        np.testing.assert_allclose(out, want, rtol=0, atol=1e-14 * d * (1 + abs(want).max()))
        if form < 2:
            assert (out == want).all()
        _draw.affine_map(form, means, spreads, component, z, z)
        assert (out == z).all(), "in place"


@pytest.mark.parametrize("first", [0, 1, 40, 99])
def test_runs_are_what_numpy_says(first):
    for bounds in ([100], [0, 0, 3, 3, 40, 41, 99, 100], [0, 100, 100], [7, 7, 100]):
        out = np.full(100 - first, -1, dtype=np.int32)
        _draw.component_runs(np.array(bounds), first, out)
        want = np.searchsorted(bounds, np.arange(first, 100), side="right")
        np.testing.assert_array_equal(out, np.minimum(want, len(bounds) - 1))
    with pytest.raises(ValueError, match="shapes must fit: bounds"):
        _draw.component_runs(np.array([3, 99]), first, np.empty(100 - first, dtype=np.int32))


def test_no_kernel_leaves_its_arrays():
    rng = np.random.default_rng(6)
    means, spreads = law(1, 3, 4, rng)
    z, out, component = rng.normal(size=(4, 10)), np.empty((4, 10)), np.zeros(10, np.int32)
    wrong = [
        (3, means, spreads, component, z, out), (-1, means, spreads, component, z, out),
        (0, means, spreads, component, z, out), (1, means[:2], spreads, component, z, out),
        (2, means, np.ones((2, 10)), component, z, out), (2, means, np.ones((3, 9)), component, z, out),
        (1, means, spreads, component[:9], z, out), (1, means, spreads, component, z[:3], out),
        (1, means, spreads, component, z, out[:, :9].copy()), (1, means, spreads, component + 3, z, out),
        (1, means, spreads, component - 1, z, out),
    ]
    for arguments in wrong:
        with pytest.raises(ValueError, match="shapes must fit: (means|component)"):
            _draw.affine_map(*arguments)
    with pytest.raises(ValueError, match="shapes must fit: words"):
        _draw.normals(WORDS[:3].copy(), False, out)
    with pytest.raises(ValueError, match="shapes must fit: words"):
        _draw.uniforms(WORDS[:3].copy(), out[0])
    with pytest.raises(ValueError, match="shapes must fit: words"):
        _draw.bits(WORDS[:3].copy(), np.empty(3, np.uint64))
    columns, shifts = np.ones((4, 65), np.uint64), np.ones(4, np.uint64)
    for bad in (columns, columns[:, :0].copy(), columns[:3, :5].copy()):
        with pytest.raises(ValueError, match="shapes must fit: columns"):
            _draw.sobol_normals(bad, shifts, 0, out)
        with pytest.raises(ValueError, match="shapes must fit: columns"):
            _draw.sobol_bits(bad, shifts, 0, out.view(np.uint64))
        with pytest.raises(ValueError, match="shapes must fit: words"):
            _draw.scramble(WORDS, bad, bad.copy(), shifts)
    _draw.normals(WORDS, False, np.empty((0, 5)))
    _draw.normals(WORDS, True, np.empty((5, 0)))
    _draw.affine_map(1, means, spreads, component[:0], np.empty((4, 0)), np.empty((4, 0)))


PROGRAM = """
import hashlib
import numpy as np
from fastpriv.base import random_streams
from fastpriv.kernels import _draw
from fastpriv.sampling import sobol

def say(name, *arrays):
    print(name, hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest())

words = random_streams.stream_words(random_streams.root(11), (3,), _draw.SEED_WORDS)
z, u, bits = np.empty((7, 4005)), np.empty(9001), np.empty(9001, np.uint64)
_draw.bits(words, bits)
_draw.uniforms(words, u)
_draw.normals(words, False, z)
say("bits", bits)
say("uniforms", u)
say("normals", z)
_draw.normals(words, True, z[:, :4004].copy())
columns, shifts = sobol.scrambled(7, random_streams.root(11), (4,))
digits, q = np.empty((7, 4005), np.uint64), np.empty((7, 4005))
_draw.sobol_bits(columns, shifts, 1003, digits)
_draw.sobol_normals(columns, shifts, 1003, q)
say("columns", columns, shifts)
say("sobol bits", digits)
say("sobol normals", q)
rng = np.random.default_rng(1)
component = np.sort(np.concatenate([rng.integers(0, 4, 3000), rng.integers(4, 400, 1005)])).astype(np.int32)
for form, spreads in enumerate([rng.random(400), rng.random((400, 7)), rng.normal(size=(400, 28))]):
    _draw.affine_map(form, rng.normal(size=(400, 7)), spreads, component, z, q)
    say(f"place {form}", q)
wide, tall = rng.normal(size=(45, 83)), np.empty((45, 83))
_draw.affine_map(2, rng.normal(size=(2, 45)), rng.normal(size=(1, 1035)), np.arange(83, dtype=np.int32) // 50, wide,
    tall)
say("place wide", tall)
"""


@pytest.mark.slow
@each_wider_variant
def test_every_instruction_set_gives_the_same_bits(variant):
    check_same_lines(PROGRAM, 10, variant)
