"""What hockey-stick divergences of mixtures must satisfy, on mixtures drawn by hypothesis.

Comparisons use the bounds of the estimates: a <= b is refuted only by a.lower > b.upper.
"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fastpriv import GaussianMixture, hockey_stick_divergence, total_variation
from properties.drawn import EPSILON, GRID, QUICK, mixtures, overlap, shown


@QUICK
@given(mixtures(), mixtures(), GRID)
def test_hockey_stick_is_a_probability_and_falls_with_epsilon(p, q, grid):
    grid = np.sort(grid)
    h = hockey_stick_divergence(p, q, grid)
    assert np.all((h.lower >= 0) & (h.lower <= h.value) & (h.value <= h.upper) & (h.upper <= 1)), shown(p, q, grid)
    assert np.all(h.lower[1:] <= h.upper[:-1]), shown(p, q, grid, h.lower, h.upper)


@QUICK
@given(mixtures(), mixtures(), st.tuples(st.floats(0, 6), st.floats(0, 6)), st.floats(0, 1))
def test_hockey_stick_is_convex_in_the_factor(p, q, ends, t):
    a, b = np.exp(ends)
    middle = (1 - t) * a + t * b
    h = hockey_stick_divergence(p, q, np.log([a, b, max(middle, 1.0)]))
    chord = (1 - t) * h.upper[0] + t * h.upper[1]
    assert h.lower[2] <= chord + 1e-12, shown(p, q, a, b, t, h.lower, h.upper)


@QUICK
@given(mixtures(), mixtures())
def test_total_variation_is_symmetric_and_the_curve_at_zero(p, q):
    there, back, curve = total_variation(p, q), total_variation(q, p), hockey_stick_divergence(p, q, 0.0)
    assert overlap(there.lower, there.upper, back.lower, back.upper), shown(p, q, there, back)
    assert (there.lower, there.upper) == (curve.lower, curve.upper), shown(p, q, there, curve)


@QUICK
@given(mixtures(), mixtures(), EPSILON)
def test_hockey_stick_stays_between_its_elementary_bounds(p, q, epsilon):
    # 1 - e^eps (1 - TV) <= H <= TV, and P(p > 0) - e^eps <= H
    tv, h = total_variation(p, q), hockey_stick_divergence(p, q, epsilon)
    assert h.lower <= tv.upper, shown(p, q, epsilon, h, tv)
    assert h.upper >= 1 - np.exp(epsilon) * (1 - tv.lower) - 1e-15 * np.exp(epsilon), shown(p, q, epsilon, h, tv)


@QUICK
@given(mixtures(), mixtures(), mixtures(), EPSILON, EPSILON)
def test_hockey_stick_obeys_the_triangle_of_adjacency(p, q, r, first, second):
    # P <= e^a R + H_a and R <= e^b Q + H_b give H_(a+b)(P||Q) <= H_a(P||R) + e^a H_b(R||Q)
    whole = hockey_stick_divergence(p, q, first + second)
    one, two = hockey_stick_divergence(p, r, first), hockey_stick_divergence(r, q, second)
    assert whole.lower <= (one.upper + np.exp(first) * two.upper) * (1 + 1e-12), shown(p, q, r, first, second)


@QUICK
@given(mixtures(), mixtures(), GRID, st.integers(-8, 8), st.integers(-64, 64), st.booleans())
def test_an_affine_map_changes_nothing(p, q, grid, power, shift, mirror):
    scale = (-1.0 if mirror else 1.0) * 2.0**power

    def mapped(m):
        return GaussianMixture(m.weights, scale * m.means + shift * 2.0**power, abs(scale) * m.sigmas)

    # the map must be exact in doubles, or the mixtures are others
    for m in (p, q):
        moved = scale * m.means + shift * 2.0**power
        assume(np.all((moved - shift * 2.0**power) / scale == m.means))
    before, after = hockey_stick_divergence(p, q, grid), hockey_stick_divergence(mapped(p), mapped(q), grid)
    assert np.all((before.lower <= after.upper) & (after.lower <= before.upper)), shown(
        p, q, grid, power, shift, mirror
    )


@QUICK
@given(mixtures(), mixtures(), GRID, st.floats(0.125, 8, width=32))
def test_adding_noise_never_helps_to_tell_apart(p, q, grid, noise):
    def noisy(m):
        return GaussianMixture(m.weights, m.means, np.hypot(m.sigmas, noise))

    before, after = hockey_stick_divergence(p, q, grid), hockey_stick_divergence(noisy(p), noisy(q), grid)
    # hypot rounds: the noisy pair may differ from the exact one by 1e-16 in sigma, hence the slack
    assert np.all(after.lower <= before.upper + 1e-14), shown(p, q, grid, noise, before.upper, after.lower)


@QUICK
@given(mixtures(), mixtures(), mixtures(), GRID)
def test_mixing_in_the_same_law_never_helps(p, q, r, grid):
    def blend(m):
        return GaussianMixture(
            np.concatenate([m.weights, r.weights]) / 2, np.concatenate([m.means, r.means]), np.concatenate([m.sigmas,
            r.sigmas])
        )

    before, after = hockey_stick_divergence(p, q, grid), hockey_stick_divergence(blend(p), blend(q), grid)
    assert np.all(after.lower <= before.upper / 2 * (1 + 1e-12)), shown(p, q, r, grid)
    at_zero, blended = total_variation(p, q), total_variation(blend(p), blend(q))
    assert overlap(blended.lower, blended.upper, at_zero.lower / 2, at_zero.upper / 2), shown(p, q, r)


@pytest.mark.slow
@QUICK
@given(mixtures(), mixtures(), GRID, st.randoms(use_true_random=False))
def test_order_and_splitting_of_components_do_not_matter(p, q, grid, draw):
    order = list(range(len(p)))
    draw.shuffle(order)
    shuffled = GaussianMixture(p.weights[order], p.means[order], p.sigmas[order])
    split = GaussianMixture(np.repeat(q.weights / 2, 2), np.repeat(q.means, 2), np.repeat(q.sigmas, 2))
    before, after = hockey_stick_divergence(p, q, grid), hockey_stick_divergence(shuffled, split, grid)
    assert np.all((before.lower <= after.upper) & (after.lower <= before.upper)), shown(p, q, grid, order)
    same = hockey_stick_divergence(p, shuffled, grid)
    assert np.all(same.lower == 0), shown(p, q, order)
    assert np.all(same.upper <= 1e-15), shown(p, q, order, same.upper)
