"""Hockey-stick divergences of components narrower than others by factors of 1e10 to 1e300: true, if wide, brackets."""

import math

import numpy as np
import pytest

from enclosures.test_hockey_stick_extremes import law, misses
from fastpriv import hockey_stick_divergence, log_hockey_stick_divergence
from oracles import mixture

KINDS = "in P", "in Q", "in both", "in both, nearly equal", "in both, one spacing of doubles apart", "three"


def weights(rng, size):
    counts = np.floor(rng.dirichlet(np.ones(size)) * 2.0**40) + 1
    counts[0] += 2.0**40 - counts.sum()
    return counts / 2.0**40 if np.all(counts > 0) else weights(rng, size)


def pair_with_needles(rng, kind):
    """Up to three wide components on each side, and needles of these ``KINDS``; the ratio of the two scales."""
    unit, ratio = 10.0 ** rng.uniform(-8, 8), 10.0 ** -rng.uniform(10, 288)
    means, sigmas = zip(*([rng.normal(0, 3, k) * unit, np.exp(rng.normal(0, 0.7, k)) * unit]
                          for k in rng.integers(1, 4, 2)), strict=True)  # fmt: skip
    place, width = rng.choice([0.0, rng.normal(0, 3), rng.normal(0, 30)]) * unit, ratio * unit
    near = width * 10.0 ** rng.uniform(-3, 3)
    needles = {
        "in P": ([(place, width)], []), "in Q": ([], [(place, width)]), "in both": ([(place, width)], [(place, near)]),
        "in both, nearly equal": ([(place, width)], [(place + width * rng.normal(0, 3), width * rng.uniform(0.5, 2))]),
        "in both, one spacing of doubles apart": ([(place, width)], [(np.nextafter(place, np.inf), near)]),
        "three": ([(place, width), (place, width * 10.0 ** rng.uniform(0, 12))],
                  [(place, width * 10.0 ** rng.uniform(-3, 9))]),
    }[kind]  # fmt: skip
    sides = []
    for m, s, own in zip(means, sigmas, needles, strict=True):
        m, s = (np.append(x, [needle[k] for needle in own]) for k, x in enumerate((m, s)))
        sides.append((weights(rng, m.size), m, s))
    return *sides, ratio


def check_brackets(p, q, epsilon):
    """Check both brackets against ball arithmetic."""
    truth = mixture.hockey_stick(p, q, epsilon, 60)
    value, log = (f(law(p), law(q), epsilon) for f in (hockey_stick_divergence, log_hockey_stick_divergence))
    where = f"{p} {q} epsilon={epsilon!r}: truth {truth.str(20)}, got {value!r} {log!r}"
    assert not misses(value, truth), where
    assert truth.is_zero() or not truth > 0 or not misses(log, truth, log=True), where


@pytest.mark.parametrize("kind", KINDS)
def test_needles_against_ball_arithmetic(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    p, q, ratio = pair_with_needles(rng, kind)
    check_brackets(p, q, abs(math.log(ratio)) * rng.uniform(0, 1.2))


@pytest.mark.slow
def test_many_needles_against_ball_arithmetic():
    """48 pairs, both ways: no bracket misses the truth."""
    rng = np.random.default_rng(2026)
    for k in range(48):
        p, q, ratio = pair_with_needles(rng, KINDS[k % len(KINDS)])
        epsilon = float(rng.choice([0.0, 10.0 ** rng.uniform(-12, 2.7), abs(math.log(ratio)) * rng.uniform(0, 1.2)]))
        check_brackets(p, q, epsilon)
        check_brackets(q, p, epsilon)


def chain(rng):
    """10 to 30 components of scales from 1e-140 to 1e140, some of them around 0."""
    k = rng.integers(10, 31)
    means = np.where(rng.random(k) < 0.3, 0.0, rng.normal(0, 1, k) * 10.0 ** rng.uniform(-140, 140, k))
    return weights(rng, k), means, 10.0 ** rng.uniform(-140, 140, k)


@pytest.mark.slow
def test_scales_from_1e_minus_140_to_1e_140():
    """Both directions at 0 are the same number, and the curve falls."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        p, q = law(chain(rng)), law(chain(rng))
        forward, backward = hockey_stick_divergence(p, q, 0.0), hockey_stick_divergence(q, p, 0.0)
        assert max(forward.lower, backward.lower) <= min(forward.upper, backward.upper)
        beyond = hockey_stick_divergence(p, q, 10.0 ** rng.uniform(-2, 2.5))
        assert beyond.lower <= forward.upper
