"""Mixtures with independent coordinates: certified curves against sums over outcomes and integrals of mpmath."""

import itertools

import numpy as np
import pytest
from mpmath import mp, mpf

from fastpriv import DomainError, GaussianMixture, LaplaceMechanism, compose, hockey_stick_divergence, total_variation
from fastpriv.divergences import log_hockey_stick_divergence
from fastpriv.errors import ShapeError
from fastpriv.risk import trade_off_curve
from oracles import gaussian_pairs, products

LEVELS = [0.0, 5e-324, 1e-9, 0.1, 0.7, 1.5, 3.0, 12.0, 40.0]
FAR = 1000.0  # in sigmas: components so far apart are outcomes, but for e^-125000


def product(coordinates, rng):
    """The mixture in d dimensions of independent mixtures, its components in any order."""
    rows = list(itertools.product(*(range(len(x)) for x in coordinates)))
    order = rng.permutation(len(rows))
    columns = []
    for name in ("weights", "means", "sigmas"):
        table = np.array([[getattr(x, name)[i] for x, i in zip(coordinates, row, strict=True)] for row in rows])
        columns.append(table[order])
    return GaussianMixture(columns[0].prod(axis=1), *columns[1:])


def check(label, found, truths, width):
    """The bounds of logarithms contain those of the truths; print the widest, relative to 1 + size."""
    assert found.kind == "certified", found
    widest = 0.0
    for low, high, truth in zip(np.ravel(found.lower), np.ravel(found.upper), truths, strict=True):
        if truth <= 0:
            assert low == -np.inf, (label, low)
            continue
        log = mp.log(truth)
        assert mpf(float(low)) <= log <= mpf(float(high)), (label, mp.nstr(log, 20), low, high)
        widest = max(widest, (high - low) / (1 + abs(float(log))))
    print(f"{label}: widest {widest:.1e}")
    assert widest <= width, (label, widest)


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 5, 1000])
@pytest.mark.parametrize("both", [False, True])
def test_a_mixture_beside_normal_coordinates(d, both):
    p, q = ([0.25, 0.75], [0.0, 2.0], [1.0, 1.0]), ([0.5, 0.5], [-0.5, 1.0], [1.0, 1.25])
    shift = np.full(d - 1, 0.5 / 2.0 ** round(np.log2(d - 1) / 2))
    means = [np.column_stack([x[1], np.tile(y, (2, 1))]) for x, y in ((p, shift), (q, 0 * shift))]
    sigmas = [np.column_stack([x[2], np.ones((2, d - 1))]) for x in (p, q)]
    first, second = (GaussianMixture(x[0], m, s) for x, m, s in zip((p, q), means, sigmas, strict=True))
    if both:
        first, second, p, q = second, first, q, p
    levels = [0.0, 0.7, 3.0]
    with mp.workdps(30):
        distance = mp.sqrt(sum(mpf(x) ** 2 for x in shift.tolist()))
        truths = [products.mixture_beside_shift(p, q, distance, mpf(e)) for e in levels]
        check(f"beside {d - 1} shifts", log_hockey_stick_divergence(first, second, levels), truths,
              (1e-3 if d > 10 else 1e-6) if both else 1e-10)
        if d < 10:
            blocks = [[GaussianMixture(*x), *(GaussianMixture.single(y, 1.0) for y in z)] for x, z in (
                (p, 0 * shift if both else shift), (q, shift if both else 0 * shift))]
            check("as blocks", log_hockey_stick_divergence(*blocks, levels), truths, 1e-6 if both else 1e-10)


@pytest.mark.parametrize("count", [1, 2, 6, 100, 1000])
@pytest.mark.slow
def test_many_mixtures(count):
    """Two outcomes each, beside one normal coordinate of another mean, so that the sums have a density."""
    p, q = 0.375, 0.25
    with mp.workdps(50):
        ps, qs = ([GaussianMixture([x, 1 - x], [0.0, FAR], 1.0)] * count + [GaussianMixture.single(m, 1.0)]
                  for x, m in ((p, 0.5), (q, 0.0)))
        truths = [products.outcomes_beside(p, q, count, mpf(e), lambda x: products.of_shift(mpf(1) / 2, x))
                  for e in LEVELS]
        check(f"{count} mixtures", log_hockey_stick_divergence(ps, qs, LEVELS), truths, 1e-9)
        if count <= 6:
            rng = np.random.default_rng(count)
            first, second = product(ps, rng), product(qs, rng)
            check("in d dimensions", log_hockey_stick_divergence(first, second, LEVELS), truths, 1e-9)
            found = total_variation(first, second)
            assert mpf(found.lower) <= truths[0] <= mpf(found.upper)
            assert found.width < 1e-11
            errors = trade_off_curve(first, second, 0.125).beta
            assert errors.kind == "certified"
            bound = max(1 - truth - mp.exp(mpf(e)) / 8 for e, truth in zip(LEVELS, truths, strict=True))
            assert mpf(float(errors.upper)) >= bound


@pytest.mark.parametrize(
    ("ratio", "y"), [(1e-12, 1.0), (1e12, -0.5), (1e-6, 1e3), (0.25, 2.0**-20), (0.25, 1e12), (4.0, 1e-12 - 1)]
)
@pytest.mark.slow
def test_beside_other_variances(ratio, y):
    """Two outcomes beside two normal coordinates of unequal variances, in any unit."""
    p, q, unit = 0.375, 0.25, np.sqrt(ratio)
    with mp.workdps(200):
        sigma = float(unit * np.sqrt(1 + y))
        exact = (mpf(sigma) / mpf(float(unit))) ** 2 - 1

        def curve(e):
            pair, back = [exact], [1 / (1 + exact) - 1]
            return products.at_any_level(lambda x: gaussian_pairs.pairs_of_coordinates(pair, x),
                                         lambda x: gaussian_pairs.pairs_of_coordinates(back, x), e)

        ps, qs = ([GaussianMixture([x, 1 - x], [0.0, FAR], 1.0), *[GaussianMixture.single(0.0, s)] * 2]
                  for x, s in ((p, sigma), (q, float(unit))))
        levels = [0.0, 0.3, 5.0]  # below the loss of the outcomes, and beyond it
        truths = [products.outcomes_beside(p, q, 1, mpf(e), curve) for e in levels]
        rng = np.random.default_rng(0)
        found = log_hockey_stick_divergence(product(ps, rng), product(qs, rng), levels)
        check(f"variances {ratio:g}, y {y:g}", found, truths, np.inf)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_rounded_weights(seed):
    """The truth is that of the weights as they are, which are no products any more."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 7))
    shift = GaussianMixture.single(float(2.0 ** rng.integers(-4, 2)), 1.0)
    sides = []
    for last in (shift, GaussianMixture.single(0.0, 1.0)):
        shares = rng.uniform(0.02, 0.98, d)
        coordinates = [GaussianMixture([x, 1 - x], [0.0, FAR], 1.0) for x in shares]
        sides.append(product([*coordinates, last], rng))
    p, q = sides
    weights = [dict(zip(map(tuple, (x.means[:, :-1]).tolist()), x.weights.tolist(), strict=True)) for x in sides]
    levels = [0.0, 0.3, 2.0, 9.0]
    with mp.workdps(50):
        distance = mpf(float(shift.means.ravel()[0]))
        truths = [mp.fsum(mpf(w) * products.of_shift(distance, e - mp.log(mpf(w) / mpf(weights[1][key])))
                          for key, w in weights[0].items()) for e in levels]
        check(f"{d} rounded weights", log_hockey_stick_divergence(p, q, levels), truths, 1e-4)


def test_more_than_64_normal_coordinates_beside_other_kinds():
    """Laplace noise of a tiny loss changes a curve by at most that loss, and takes it off the sums of normal pairs."""
    d = 100
    p, q = (GaussianMixture.single(np.zeros(d), np.full(d, s)) for s in (1.0, 1.0625))
    p = GaussianMixture.single(p.means[0], np.r_[np.full(d - 1, 1.0), 1.5])
    levels, loss = np.array([0.5, 2.0]), 2.0**-20
    found = compose([(p, q), LaplaceMechanism(2.0**20)]).delta(levels, direction="forward")
    for sign, side in ((1, "lower"), (-1, "upper")):
        alone = getattr(compose((p, q)).delta(levels + sign * loss, direction="forward"), side)
        assert (sign * (np.asarray(found.upper if sign > 0 else found.lower) - alone) >= 0).all()
    assert (found.width < 1e-9 * found.value).all()


@pytest.mark.slow
def test_ends_and_equal_inputs():
    p, q = [GaussianMixture([0.5, 0.5], [0.0, 1.0], 1.0)] * 2, [GaussianMixture.single(0.0, 1.0)] * 2
    found = hockey_stick_divergence(p, q, [1e308, np.inf, -np.inf, -1e308])
    assert found.upper.tolist() == [pytest.approx(0.0, abs=1e-300), 0.0, 1.0, 1.0]
    assert found.lower.tolist() == [0.0, 0.0, pytest.approx(1.0, abs=1e-15), pytest.approx(1.0, abs=1e-15)]
    assert hockey_stick_divergence(p, p, [0.0, 1.0]).upper.tolist() == [0.0, 0.0]
    rng = np.random.default_rng(2)
    thirds = [GaussianMixture([1 / 3, 2 / 3], [0.0, 1.0], 1.0)] * 3
    assert total_variation(product(thirds, rng), product(thirds, rng)).upper < 1e-6  # weights in another order
    one, two = hockey_stick_divergence(p, q, 0.5, both=True).value
    assert one == hockey_stick_divergence(p, q, 0.5).value
    assert two == hockey_stick_divergence(q, p, 0.5).value


def test_weights_that_are_no_product():
    """A relative change of one weight beyond rounding is no product, and is sampled."""
    rng = np.random.default_rng(3)
    p = product([GaussianMixture([0.25, 0.75], [0.0, 1.0], 1.0)] * 2, rng)
    q = product([GaussianMixture([0.5, 0.5], [0.0, 1.0], 1.0)] * 2, rng)
    for change, kind in ((2e-12, "certified"), (1e-3, "statistical")):
        weights = p.weights.copy()
        weights[0] += change
        weights[1] -= change
        other = GaussianMixture(weights, p.means, p.sigmas)
        found, near = (hockey_stick_divergence(x, q, 0.5, max_samples=10_000, rng=1) for x in (other, p))
        assert found.kind == kind
        assert near.lower - 2e-3 <= found.value <= near.upper + 2e-3
        if kind == "certified":  # the difference is at most half of sum |change|
            assert found.lower <= near.upper + 2 * change
            assert found.upper >= near.lower - 2 * change


def test_errors():
    p, q = [GaussianMixture.single(0.0, 1.0)] * 2, GaussianMixture.single(0.0, 1.0)
    for wrong in ((p, q), (p, p[:1]), (p, [1.0, 2.0])):
        with pytest.raises(DomainError, match="q must be a list of GaussianMixtures, as many as in the other list"):
            hockey_stick_divergence(*wrong, 1.0)
    with pytest.raises(DomainError, match="p must be a list of GaussianMixtures, as many as in the other list"):
        total_variation([1.0, 2.0], p)
    with pytest.raises(ShapeError, match="p must have at least one entry"):
        total_variation([], [])
    with pytest.raises(DomainError, match="p must be a list of GaussianMixtures"):
        log_hockey_stick_divergence(q, p)
    with pytest.raises(DomainError, match="method must be 'auto' with lists of independent blocks"):
        hockey_stick_divergence(p, p, 1.0, method="direct")
