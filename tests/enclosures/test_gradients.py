"""Gradients of divergences against differences of integrals by mpmath, and laws that they obey at every scale."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from fastpriv import DomainError, GaussianMechanism, GaussianMixture, MixtureStack
from fastpriv.divergences import divergence_gradient
from fastpriv.errors import ShapeError

PAIRS = {
    "ordinary": (([0.4, 0.6], [-1.0, 1.0], [0.5, 0.7]), ([0.3, 0.7], [0.0, 0.5], [1.0, 2.0])),
    "scales": (([0.5, 0.5], [0.0, 0.01], [1.0, 1e-3]), ([0.9, 0.1], [0.0, 0.0], [1.0, 0.01])),
    "far and rare": (([1 - 2.0**-20, 2.0**-20], [0.0, 12.0], [1.0, 0.5]), ([0.5, 0.5], [0.0, 3.0], [1.0, 4.0])),
}
QUANTITIES = {"kl": {}, "jensen_shannon": {}, "renyi": {"order": 1.25}, "entropy": {},
              "hockey_stick": {"epsilon": 0.25}}
STEP = mpf(10) ** -12
SIDES = ("p_weights", "p_means", "p_sigmas", "q_weights", "q_means", "q_sigmas")


def density(side, x):
    return mpmath.fsum(w * mpmath.npdf(x, m, s) for w, m, s in zip(*side, strict=True))


def functional(quantity, sides, options):
    """The functional of densities that need not have mass 1, by 25 digits."""
    mpmath.mp.dps = 25
    components = [component for side in sides for component in zip(*side, strict=True)]
    ends = sorted({m + k * s for _, m, s in components for k in (-12, -5, -2, 0, 2, 5, 12)})
    p = lambda x: density(sides[0], x)
    q = lambda x: density(sides[1], x)
    if quantity == "entropy":
        return -mpmath.quad(lambda x: p(x) * mpmath.log(p(x)), ends)
    if quantity == "kl":
        return mpmath.quad(lambda x: p(x) * mpmath.log(p(x) / q(x)), ends)
    if quantity == "jensen_shannon":
        half = lambda a, b: a * mpmath.log(2 * a / (a + b)) / 2
        return mpmath.quad(lambda x: half(p(x), q(x)) + half(q(x), p(x)), ends)
    c = mpf(options.get("order", 2))
    return mpmath.log(mpmath.quad(lambda x: p(x) ** c * q(x) ** (1 - c), ends)) / (c - 1)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "quantity"), [
    ("ordinary", "kl"), ("scales", "jensen_shannon"), ("far and rare", "renyi"), ("ordinary", "entropy"),
])
def test_differences_of_integrals(name, quantity):
    sides = PAIRS[name][: 1 if quantity == "entropy" else 2]
    found = divergence_gradient(quantity, *(GaussianMixture(*side) for side in sides), **QUANTITIES[quantity])
    exact = [[[mpf(x) for x in column] for column in side] for side in sides]
    for k in range(3 * len(sides)):
        derivative = getattr(found, SIDES[k])
        size = float(np.abs(derivative.value).max())
        for i in range(1 if quantity in ("renyi", "jensen_shannon") else 2):
            values = []
            for sign in (1, -1):
                moved = [[list(column) for column in side] for side in exact]
                moved[k // 3][k % 3][i] += sign * STEP
                values.append(functional(quantity, moved, QUANTITIES[quantity]))
            truth = float((values[0] - values[1]) / (2 * STEP))
            assert abs(derivative.value[i] - truth) < 1e-10 * size, (name, quantity, SIDES[k], i)
    assert found.p_means.kind == "heuristic"


@pytest.mark.parametrize(("s", "t", "gap"), [(1.0, 1.0, 0.5), (1e-3, 2.0, 1.0), (3.0, 0.5, 1e-4)])
def test_two_normal_distributions(s, t, gap):
    """KL = log(t/s) + (s^2 + gap^2) / (2 t^2) - 1/2."""
    found = divergence_gradient("kl", GaussianMixture.single(gap, s), GaussianMixture.single(0.0, t))
    for estimate, truth in ((found.p_means, gap / t**2), (found.q_means, -gap / t**2),
                            (found.p_sigmas, s / t**2 - 1 / s), (found.q_sigmas, 1 / t - (s**2 + gap**2) / t**3)):
        assert estimate.lower[0] <= truth + 1e-15 * abs(truth)
        assert truth - 1e-15 * abs(truth) <= estimate.upper[0]
        assert estimate.width[0] < 1e-9 * (1 + abs(truth))


def test_hockey_stick_against_tails():
    """delta = P(A) - x Q(A), A one half-line where the two sigmas are equal: derivatives in closed form."""
    p, q, epsilon = GaussianMixture.single(1.0, 2.0), GaussianMixture.single(-0.5, 2.0), 0.4
    found = divergence_gradient("hockey_stick", p, q, epsilon=epsilon)
    threshold = mpf(0.25) + 4 * mpf(epsilon) / mpf(1.5)
    assert found.p_means.value[0] == pytest.approx(float(mpmath.npdf(threshold, 1, 2)), rel=1e-12)
    slope = -mpmath.exp(epsilon) * mpmath.npdf(threshold, -0.5, 2)
    assert found.q_means.value[0] == pytest.approx(float(slope), rel=1e-12)
    assert found.p_weights.value[0] == pytest.approx(float(1 - mpmath.ncdf(threshold, 1, 2)), rel=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("name", PAIRS)
def test_moving_and_scaling_both_changes_nothing(name, quantity, scale):
    sides = [(w, np.multiply(m, scale), np.multiply(s, scale)) for w, m, s in PAIRS[name]]
    mixtures = [GaussianMixture(*side) for side in sides[: 1 if quantity == "entropy" else 2]]
    found = divergence_gradient(quantity, *mixtures, **QUANTITIES[quantity])
    estimates = [found.estimates()[side] for side in SIDES[: 3 * len(mixtures)]]
    means, sigmas = estimates[1::3], estimates[2::3]
    assert abs(sum(x.value.sum() for x in means)) <= sum(x.width.sum() for x in means)
    terms = [(x * y.value, x * y.width) for side, pair in zip(sides, zip(means, sigmas, strict=True), strict=False)
             for x, y in zip(side[1:], pair, strict=True)]
    wanted = 1.0 if quantity == "entropy" else 0.0
    assert abs(sum(x.sum() for x, _ in terms) - wanted) <= sum(np.abs(width).sum() for _, width in terms)
    assert all(np.abs(width).max() < 1e-9 for _, width in terms)


def test_stacks_are_loops_over_their_rows():
    (w, m, s), (v, n, t) = PAIRS["ordinary"]
    p = MixtureStack([w, v], [m, n], [s, t])
    q = MixtureStack([[v], [w], [w]], [[n], [m], [n]], [[t], [s], [t]])
    found = divergence_gradient("kl", p, q)
    assert found.q_means.value.shape == (3, 2, 2)
    single = divergence_gradient("kl", GaussianMixture(v, n, t), GaussianMixture(w, n, t))
    assert (found.q_sigmas.value[2, 1] == single.q_sigmas.value).all()


def test_equal_distributions_have_no_gradient_but_by_weights():
    p = GaussianMixture(*PAIRS["ordinary"][0])
    found = divergence_gradient("kl", p, p)
    assert np.allclose(found.p_weights.value, 1.0, rtol=1e-13)
    assert np.allclose(found.q_weights.value, -1.0, rtol=1e-13)
    assert np.abs(found.p_means.value).max() < 1e-14


@pytest.mark.parametrize(("arguments", "options", "error", "text"), [
    (("l2", 0), {}, DomainError, "quantity must be"), (("kl",), {}, DomainError, "q must be a mixture for 'kl'"),
    (("entropy", 0), {}, DomainError, "q must be None for 'entropy'"),
    (("renyi", 0), {}, DomainError, "order must be given for 'renyi'"),
    (("renyi", 0), {"order": 1.0}, DomainError, "order must be positive and not 1"),
    (("kl", 0), {"epsilon": 1.0}, DomainError, "epsilon must be None for 'kl'"),
    (("hockey_stick", 0), {"epsilon": np.nan}, DomainError, "epsilon must be"),
    (("kl", GaussianMechanism(1.0, 1.0)), {}, ShapeError, "q must be mixtures in one dimension"),
    (("kl", GaussianMixture.single([0.0, 0.0], [1.0, 1.0])), {}, ShapeError, "q must be mixtures in one dimension"),
    (("kl", MixtureStack(np.ones((4, 1)), np.zeros((4, 1)), 1.0)),
     {"p": MixtureStack(np.ones((3, 1)), np.zeros((3, 1)), 1.0)}, ShapeError, "p and q must have leading axes"),
    (("renyi", 0), {"order": 30.0}, DomainError, "p and q must have a finite 'renyi'"),
])
def test_errors(arguments, options, error, text):
    p = options.get("p", GaussianMixture(*PAIRS["ordinary"][1]))
    options = {name: value for name, value in options.items() if name != "p"}
    quantity, *others = arguments
    others = [GaussianMixture(*PAIRS["ordinary"][0]) if other == 0 else other for other in others]
    with pytest.raises(error, match=text):
        divergence_gradient(quantity, p, *others, **options)
