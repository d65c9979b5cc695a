"""The terms that sampling averages against mpmath, their limits at zero densities, and the order of their sums."""

import math

import numpy as np
import pytest

from fastpriv.kernels import _sample_terms
from kernels.variants import check_same_lines, each_wider_variant
from oracles import densities as oracle

RATIOS = np.concatenate([
    s * np.array([1e-300, 1e-160, 1e-30, 1e-16, 1e-9, 1e-4, 0.1, 0.5, 0.9999999, 1.0, 1.0000001, 1.5, 1.999, 2.0, 2.001,
                  5.0, 20.0, 36.0, 37.5, 60.0, 300.0, 690.0])
    for s in (-1.0, 1.0)
])
PARAMETERS = {
    "hockey_stick": [0.0, 1e-9, 0.4999, 0.5, 3.0, -1.0, 40.0, -350.0, 350.0],
    "renyi": [0.5, 1e-3, 0.4999, 0.999999, 1.0, 1.000001, 2.0, 8.0],
}
INF = math.inf


def parameters(name):
    return np.array(next((v for key, v in PARAMETERS.items() if name.startswith(key)), [0.0]))


def terms(name, lp, lq, lg=None, values=None):
    lp, lq = (np.atleast_1d(np.asarray(a, dtype=float)) for a in (lp, lq))
    lg = lg if lg is None else np.atleast_1d(np.asarray(lg, dtype=float))
    values = parameters(name) if values is None else np.atleast_1d(np.asarray(values, dtype=float))
    out = np.full((len(values), len(lp)), np.nan)
    _sample_terms.terms(name, lp, lq, lg, values, out)
    return out


def tolerance(name, lp, lq, lg, a, true):
    """Relative 4e-15, and what rounding the exponents costs."""
    size = 4e-15
    ratio = lp - lq
    if name.startswith("hockey_stick"):
        size += 2e-16 * (1 + abs(ratio) + abs(a)) / max(abs(a - ratio), 1e-300) if ratio > a else 0
    if name.endswith("_proposal"):
        size += 2e-16 * (abs(lp) + abs(lq) + abs(lg))
    if name.startswith("renyi"):
        size += 4e-16 * abs(a - 1) * abs(ratio) + 4e-16 * abs(ratio)
    return size * abs(true)


@pytest.mark.few(9)
@pytest.mark.parametrize("name", _sample_terms.NAMES)
@pytest.mark.parametrize("level", [0.0, -700.0, 30.0])
def test_against_mpmath(name, level):
    """Log densities of every size; lp - lq is then exact or is taken as it rounds."""
    lq = np.full(RATIOS.shape, level)
    lp = lq + RATIOS if level else np.where(RATIOS > 0, RATIOS, 0.0)
    lq = lq if level else np.where(RATIOS > 0, 0.0, -RATIOS)
    lg = np.maximum(lp, lq) + 0.3 if name.endswith("_proposal") else None
    values = parameters(name)
    got = terms(name, lp, lq, lg)
    for row, a in zip(got, values, strict=True):
        for i, value in enumerate(row):
            g = 0.0 if lg is None else lg[i]
            true = oracle.term(name, lp[i], lq[i], g, a)
            if true > 1e308:
                assert value == INF
                continue
            error, allowed = abs(value - true), tolerance(name, lp[i], lq[i], g, a, true) + 1e-307
            assert error <= allowed, (name, lp[i], lq[i], g, a, value, float(true))


LIMITS = {  # at p = 0 < q, at q = 0 < p, with g = q, p in turn
    "kl_forward": (0, INF), "kl_balanced": (2, INF), "kl_reversed": (INF, 2), "kl_proposal": (1, INF),
    "jensen_shannon": (math.log(2), math.log(2)), "total_variation": (1, 1), "excess": (INF, -1), "difference": (-2, 2),
    "hockey_stick_forward": (0, 1), "hockey_stick_balanced": (0, 2), "hockey_stick_proposal": (0, 1),
}


@pytest.mark.parametrize("name", _sample_terms.NAMES)
def test_zero_densities(name):
    lp, lq, lg = [-INF, -3.0, -INF], [-3.0, -INF, -INF], [-3.0, -3.0, 0.0]
    for row, a in zip(terms(name, lp, lq, lg), parameters(name), strict=True):
        assert row[2] == 0
        want = LIMITS.get(name)
        if name in ("renyi_proposal", "renyi_balanced"):
            twice = 2 if name == "renyi_balanced" else 1
            want = (0, 0 if a < 1 else twice if a == 1 else INF)
        if name in ("renyi_small_proposal", "renyi_small_balanced"):
            twice = 2 if name == "renyi_small_balanced" else 1
            want = (twice * (a - 1), -twice * a if a < 1 else 0 if a == 1 else INF)
        assert row[:2] == pytest.approx(want, rel=1e-15), (name, a)


@pytest.mark.parametrize("name", _sample_terms.NAMES)
def test_no_density_of_zero_hides_behind_a_tiny_share(name):
    """q = 0 < p where p/g underflows: still infinite where the mean is."""
    (value,) = terms(name, [-2000.0], [-INF], [0.0], parameters(name)[-1])
    if name in ("kl_proposal", "renyi_proposal", "renyi_small_proposal"):
        assert value == INF
    assert not np.isnan(value)


@pytest.mark.parametrize("name", _sample_terms.NAMES)
def test_nan_is_not_lost(name):
    for lp, lq in ((math.nan, 0.0), (0.0, math.nan), (math.nan, -INF)):
        assert np.isnan(terms(name, lp, lq, 0.0)).all()


@pytest.mark.parametrize("name", [n for n in _sample_terms.NAMES if n not in ("kl_forward", "excess", "difference")])
def test_the_sign_never_changes(name):
    rng = np.random.default_rng(2)
    lp = rng.normal(0, 10.0 ** rng.uniform(-12, 2, 4000))
    lq = rng.normal(0, 10.0 ** rng.uniform(-12, 2, 4000))
    for row, a in zip(terms(name, lp, lq, np.maximum(lp, lq)), parameters(name), strict=True):
        assert (row <= 0).all() if name.startswith("renyi_small") and a < 1 else (row >= 0).all()


@pytest.mark.parametrize("n", [0, 1, 7, 8, 511, 512, 513, 5000])
def test_sums_have_one_order(n):
    rng = np.random.default_rng(n)
    lp, lq, lg = rng.normal(-9, 2, (3, n))
    for name in _sample_terms.NAMES:
        values = parameters(name)
        rows = terms(name, lp, lq, lg) if n else np.empty((len(values), 0))
        sums, again = np.empty((2, len(values)))
        _sample_terms.term_sums(name, lp, lq, lg, values, sums)
        _sample_terms.ordered_sums(rows, again)
        assert np.array_equal(sums, again)
        for row, total in zip(rows, sums, strict=True):
            assert total == pytest.approx(math.fsum(row), rel=1e-13, abs=1e-13 * np.abs(row).sum())


SCRIPT = """
import hashlib
import numpy as np
from fastpriv.kernels import _sample_terms
rng = np.random.default_rng(7)
lp, lq, lg = rng.normal(-30, 5, (3, 1000))
digest = hashlib.sha256()
for name in _sample_terms.NAMES:
    out = np.empty((3, 1000))
    _sample_terms.terms(name, lp, lq, lg, np.array([0.5, 1.5, 3.0]), out)
    digest.update(out.tobytes())
print(digest.hexdigest())
"""


@each_wider_variant
@pytest.mark.slow
def test_every_instruction_set_gives_the_same_bits(variant):
    check_same_lines(SCRIPT, 1, variant)


def test_arrays_that_do_not_fit_are_refused():
    x, values = np.zeros(3), np.zeros(2)
    with pytest.raises(ValueError, match="the log densities of a term must have one length"):
        _sample_terms.terms("kl_forward", x, x[:2], None, values, np.empty((2, 3)))
    with pytest.raises(ValueError, match="the log densities of a term must have one length"):
        _sample_terms.term_sums("renyi_proposal", x, x, None, values, values)
    with pytest.raises(ValueError, match="a row for each parameter"):
        _sample_terms.terms("kl_forward", x, x, None, values, np.empty((1, 3)))
    with pytest.raises(ValueError, match="one entry for each parameter"):
        _sample_terms.term_sums("kl_forward", x, x, None, values, x)
    with pytest.raises(ValueError, match="one entry for each row"):
        _sample_terms.ordered_sums(np.empty((2, 3)), x)
    with pytest.raises(KeyError):
        _sample_terms.terms("kl", x, x, None, values, np.empty((2, 3)))
