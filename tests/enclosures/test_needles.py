"""Hockey-stick divergences of components narrower than others by factors of 1e10 to 1e300, wherever they are."""

import math

import numpy as np
import pytest

from enclosures.test_hockey_stick_extremes import law, misses
from fastpriv import hockey_stick_divergence
from fastpriv.divergences import log_hockey_stick_divergence
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
                          for k in rng.integers(1, 4, 2)), strict=True)
    place, width = rng.choice([0.0, rng.normal(0, 3), rng.normal(0, 30)]) * unit, ratio * unit
    near = width * 10.0 ** rng.uniform(-3, 3)
    needles = {
        "in P": ([(place, width)], []), "in Q": ([], [(place, width)]), "in both": ([(place, width)], [(place, near)]),
        "in both, nearly equal": ([(place, width)], [(place + width * rng.normal(0, 3), width * rng.uniform(0.5, 2))]),
        "in both, one spacing of doubles apart": ([(place, width)], [(np.nextafter(place, np.inf), near)]),
        "three": ([(place, width), (place, width * 10.0 ** rng.uniform(0, 12))],
                  [(place, width * 10.0 ** rng.uniform(-3, 9))]),
    }[kind]
    sides = []
    for m, s, own in zip(means, sigmas, needles, strict=True):
        m, s = (np.append(x, [needle[k] for needle in own]) for k, x in enumerate((m, s)))
        sides.append((weights(rng, m.size), m, s))
    return *sides, ratio


def relative_width(p, q, epsilon):
    """Check both brackets against ball arithmetic; the relative width of that of H, 0 below 1e-300."""
    truth = mixture.hockey_stick(p, q, epsilon, 60)
    value, log = (f(law(p), law(q), epsilon) for f in (hockey_stick_divergence, log_hockey_stick_divergence))
    where = f"{p} {q} epsilon={epsilon!r}: truth {truth.str(20)}, got {value!r} {log!r}"
    assert not misses(value, truth), where
    assert truth.is_zero() or not truth > 0 or not misses(log, truth, log=True), where
    return (float(value.upper) - float(value.lower)) / float(value.upper) if value.upper > 1e-300 else 0.0


# Brackets that were vacuous, of relative width 1: a wide component counts within the needle.
VACUOUS = [
    (([0.5519764674663747, 0.44802353253362526], [-146372.19573676307, 0.0],
      [171645.70640703154, 9.758765770415458e-28]),
     ([0.590352285258632, 0.40964771474136796], [232424.23812372648, 0.0],
      [38991.41173868569, 7.215248910865166e-29]), 86.58213629445208),
    (([0.1551645375584485, 0.5684210609097136, 0.27641440153183794],
      [0.655718443372108, 0.2990943343323458, 0.5142908887273502],
      [0.23894715628042773, 0.16575027433449993, 8.746648082852587e-164]),
     ([0.4798195950479567, 0.5201804049520433], [-0.0009283904499154043, 0.5142908887273502],
      [0.06473855396167477, 1.1861046902944157e-163]), 436.46761248750573),
    (([0.6028438170105801, 0.2620791601812016, 0.13507702280821832],
      [-2307.099575250446, 1863.5614367439603, 403.5222464530925],
      [3329.932741081084, 1148.853943163286, 2300.211098038664]),
     ([0.220580885344134, 0.6637281089197131, 0.11569100573615287],
      [-4675.300340555875, -4138.411477450799, -333.65233233344543],
      [1651.6673929939775, 2346.0049136683047, 6.948903070556252e-146]), 393.87323337192726),
]


@pytest.mark.parametrize(("p", "q", "epsilon"), VACUOUS)
def test_a_wide_component_within_a_needle(p, q, epsilon):
    assert relative_width(p, q, epsilon) <= 1e-9


@pytest.mark.parametrize("needle", [1e-7, 1e-9])
def test_components_far_from_each_other_are_resolved(needle):
    """Between needles the terms of a density are known to factors alone; its slope is that of the nearest one."""
    wide, narrow = ([1.0], [0.1], [1.0]), (5 * [0.2], [-1.1, -0.2, 0.3, 0.7, 1.9], 5 * [needle])
    for p, q in ((wide, narrow), (narrow, wide)):
        value = hockey_stick_divergence(law(p), law(q), 0.5)
        assert value.upper - value.lower <= 1e-12 * value.upper
        assert "budget" not in value.method


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", KINDS)
def test_needles_against_ball_arithmetic(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    p, q, ratio = pair_with_needles(rng, kind)
    assert relative_width(p, q, abs(math.log(ratio)) * rng.uniform(0, 1.2)) <= 1e-9


@pytest.mark.slow
def test_many_needles_against_ball_arithmetic():
    """24 pairs, both ways: no bracket misses the truth, and hardly one is as wide as what it encloses."""
    rng = np.random.default_rng(2026)
    widths = []
    for k in range(24):
        p, q, ratio = pair_with_needles(rng, KINDS[k % len(KINDS)])
        epsilon = float(rng.choice([0.0, 10.0 ** rng.uniform(-12, 2.7), abs(math.log(ratio)) * rng.uniform(0, 1.2)]))
        widths += [relative_width(p, q, epsilon), relative_width(q, p, epsilon)]
    assert np.sum(np.array(widths) > 1e-9) <= 2


def chain(rng):
    """10 to 30 components of scales from 1e-140 to 1e140, some of them around 0."""
    k = rng.integers(10, 31)
    means = np.where(rng.random(k) < 0.3, 0.0, rng.normal(0, 1, k) * 10.0 ** rng.uniform(-140, 140, k))
    return weights(rng, k), means, 10.0 ** rng.uniform(-140, 140, k)


@pytest.mark.slow
def test_scales_from_1e_minus_140_to_1e_140():
    """No bracket is vacuous, and both directions at 0 are the same number."""
    rng = np.random.default_rng(4)
    for _ in range(10):
        p, q = law(chain(rng)), law(chain(rng))
        forward, backward = hockey_stick_divergence(p, q, 0.0), hockey_stick_divergence(q, p, 0.0)
        assert max(forward.lower, backward.lower) <= min(forward.upper, backward.upper)
        beyond = hockey_stick_divergence(p, q, 10.0 ** rng.uniform(-2, 2.5))
        assert beyond.lower <= forward.upper
        for bracket in (forward, backward, beyond):
            assert bracket.upper - bracket.lower <= 0.2 * bracket.upper
