"""What KL, Jensen-Shannon and Renyi divergences of mixtures must satisfy, on mixtures drawn by hypothesis."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fastpriv import (
    GaussianMixture,
    hockey_stick_divergence,
    jensen_shannon,
    kl_divergence,
    mutual_information,
    renyi_divergence,
    total_variation,
)
from fastpriv.distributions import Pmf
from properties.drawn import QUICK, mixtures, overlap, shown


@QUICK
@given(mixtures(), mixtures())
def test_pinsker_and_the_bounds_of_jensen_shannon(p, q):
    tv, kl, js = total_variation(p, q), kl_divergence(p, q), jensen_shannon(p, q)
    assert tv.lower <= np.sqrt(kl.upper / 2) * (1 + 1e-12), shown(p, q, tv, kl)
    assert js.lower <= np.log(2), shown(p, q, js)
    assert js.lower <= np.log(2) * tv.upper * (1 + 1e-12), shown(p, q, js, tv)
    back = jensen_shannon(q, p)
    assert overlap(js.lower, js.upper, back.lower, back.upper, 1e-13 * js.upper), shown(p, q, js, back)


@settings(max_examples=15, deadline=None)
@given(mixtures(sigmas=(0.5, 2.0), spread=3.0), mixtures(sigmas=(0.5, 2.0), spread=3.0))
def test_kl_is_the_integral_of_the_two_hockey_stick_curves(p, q):
    # Lemma 1: KL(P||Q) = integral over epsilon >= 0 of H_(e^eps)(P||Q) + e^-eps H_(e^eps)(Q||P)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    edges = np.concatenate([np.linspace(0, 2, 5), np.geomspace(3, 400, 14)])
    half = np.diff(edges)[:, None] / 2
    epsilon = (half * nodes + (edges[:-1, None] + half)).ravel()
    there, back = hockey_stick_divergence(p, q, epsilon), hockey_stick_divergence(q, p, epsilon)
    area = (half * weights).ravel()
    total = float(np.sum(area * (there.value + np.exp(-epsilon) * back.value)))
    kl = kl_divergence(p, q)
    rest = float(there.upper[-1]) * 1e4  # beyond the last edge
    assert abs(total - kl.value) <= 2e-3 * max(kl.value, 1e-3) + rest, shown(p, q, total, kl)


@QUICK
@given(mixtures(), mixtures(), st.floats(1.125, 8), st.floats(1.125, 8))
def test_renyi_rises_with_its_order_and_meets_kl(p, q, a, b):
    low, high = sorted((a, b))
    kl = kl_divergence(p, q)
    first, second = renyi_divergence(p, q, low), renyi_divergence(p, q, high)
    assert kl.lower <= first.upper * (1 + 1e-12), shown(p, q, a, b)
    assert first.lower <= second.upper * (1 + 1e-12), shown(p, q, a, b)


@QUICK
@given(mixtures(), mixtures(), st.floats(0.125, 8, width=32))
def test_noise_never_raises_a_divergence(p, q, noise):
    def noisy(m):
        return GaussianMixture(m.weights, m.means, np.hypot(m.sigmas, noise))

    for divergence in (kl_divergence, jensen_shannon):
        before, after = divergence(p, q), divergence(noisy(p), noisy(q))
        assert after.lower <= before.upper * (1 + 1e-12) + 1e-14, shown(p, q, noise, divergence.__name__, before, after)


@QUICK
@given(mixtures(sigmas=(1.0, 1.0)), st.floats(0.25, 8))
def test_mutual_information_falls_with_noise_and_stays_below_the_entropy(m, sigma):
    values, where = np.unique(m.means, return_inverse=True)
    weights = np.bincount(where, weights=m.weights)
    prior = Pmf(values, weights)
    low, high = mutual_information(prior, 2 * sigma), mutual_information(prior, sigma)
    entropy = -float(np.sum(weights * np.log(weights)))
    assert low.lower <= high.upper * (1 + 1e-12), (prior, sigma, low, high)
    assert high.lower <= entropy * (1 + 1e-12) + 1e-15, (prior, sigma, high, entropy)
