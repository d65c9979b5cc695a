"""What reductions in d dimensions must obey: affine invariance, additivity over products, dropping, data processing."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastpriv import GaussianMixture, hockey_stick_divergence, kl_divergence
from fastpriv.divergences.reductions import factored_quantities as reductions
from properties.drawn import QUICK, mixtures, overlap, shown

STEP = 2.0**-20
SLACK = 1e-13


@st.composite
def weights(draw, size):
    cuts = sorted(draw(st.sets(st.integers(1, 2**20 - 1), min_size=size - 1, max_size=size - 1)))
    return np.diff([0, *cuts, 2**20]) * STEP


@st.composite
def collinear(draw):
    """Two mixtures on one line of R^3 with whole coordinates, so that integer maps are exact."""
    size = draw(st.integers(1, 4))
    small = st.integers(-4, 4)
    x = np.array(draw(st.lists(small, min_size=size, max_size=size)), dtype=float)
    u = np.array(draw(st.lists(small, min_size=3, max_size=3).filter(any)), dtype=float)
    base = np.array(draw(st.lists(small, min_size=3, max_size=3)), dtype=float)
    return draw(weights(size)), draw(weights(size)), base + x[:, None] * u


@st.composite
def maps(draw):
    """An invertible whole matrix: a product of shears, and a power of two."""
    a = np.eye(3)
    for _ in range(draw(st.integers(0, 3))):
        shear = np.eye(3)
        i, j = draw(st.permutations(range(3)))[:2]
        shear[i, j] = draw(st.integers(-3, 3))
        a = shear @ a
    return a * 2.0 ** draw(st.integers(-30, 30))


def check_near(one, two, *case):
    assert one is not None, shown(*case)
    assert two is not None, shown(*case)
    for a, b, c, d in zip(*(np.ravel(x) for x in (one.lower, one.upper, two.lower, two.upper)), strict=True):
        assert overlap(a, b, c, d, SLACK * max(abs(b), abs(d))), (one, two, shown(*case))


@QUICK
@given(collinear(), maps(), st.floats(0, 3))
def test_an_invertible_map_changes_nothing(drawn, a, epsilon):
    w, v, means = drawn
    p, q = (GaussianMixture(x, means, 2.0) for x in (w, v))
    mapped = [GaussianMixture(x, means @ a.T, covariances=4.0 * a @ a.T) for x in (w, v)]
    check_near(reductions.renyi_divergence(p, q), reductions.renyi_divergence(*mapped), p, q, a)
    check_near(reductions.jensen_shannon(p, q), reductions.jensen_shannon(*mapped), p, q, a)
    check_near(reductions.renyi_divergence(p, q, 2.5), reductions.renyi_divergence(*mapped, 2.5), p, q, a)
    hockey_stick = reductions.hockey_stick_divergence
    check_near(hockey_stick(p, q, [0.0, epsilon]), hockey_stick(*mapped, [0.0, epsilon]), p, q, a)
    check_near(reductions.mutual_information(p), reductions.mutual_information(mapped[0]), p, q, a)
    stretch = float(np.log(abs(np.linalg.det(a))))
    one, two = reductions.entropy(p), reductions.entropy(mapped[0])
    assert overlap(one.lower + stretch, one.upper + stretch, two.lower, two.upper, 1e-12 * (1 + abs(stretch)))


@QUICK
@given(mixtures(), mixtures(), st.floats(-5, 5), st.floats(0.25, 4))
def test_a_coordinate_without_information_drops_out(p, q, mean, sigma):
    one, two = (
        GaussianMixture(
            law.weights, np.stack([np.full(len(law), mean), law.means], axis=1),
            np.stack([np.full(len(law), sigma), law.sigmas], axis=1),
        )
        for law in (p, q)
    )
    check_near(reductions.renyi_divergence(one, two), kl_divergence(p, q), p, q)
    curve = reductions.hockey_stick_divergence(one, two, [0.0, 1.0])
    check_near(curve, hockey_stick_divergence(p, q, [0.0, 1.0]), p, q)


@QUICK
@given(collinear(), st.integers(0, 2))
def test_forgetting_a_coordinate_tells_less(drawn, forgotten):
    w, v, means = drawn
    k = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
    p, q = (GaussianMixture(x, means, covariances=k) for x in (w, v))
    kept = [i for i in range(3) if i != forgotten]
    for quantity in (reductions.renyi_divergence, reductions.jensen_shannon, _total_variation):
        more, less = quantity(p, q), quantity(p.marginal(kept), q.marginal(kept))
        assert less.lower <= more.upper * (1 + SLACK), (quantity.__name__, shown(p, q))


def _total_variation(p, q):
    return reductions.hockey_stick_divergence(p, q, 0.0)
