"""KL, Jensen-Shannon, Renyi divergences and entropy contain the truth, certified or not."""

from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from flint import arb, ctx

from fastpriv import GaussianMixture, entropy, jensen_shannon, kl_divergence, renyi_divergence
from oracles import mixture as oracle
from oracles.mixture_pairs import ORDINARY, pairs
from oracles.tables import rows
from oracles.truth import ORDERS, bounds, family_of

WIDTH = 1e-12
# the truth is of the order of what rounding the weights and moving a mean by an ulp means; only the enclosure counts
ROUNDING = ("near-mean-1e-12", "near-mean-ulp", "near-weight", "near-sigma", "inexact", "tiny", "equal")


def mixture(m):
    return GaussianMixture(m.weights, m.means, m.sigmas)


QUANTITIES = {
    "kl_PQ": lambda p, q, certified: kl_divergence(p, q, certified=certified),
    "kl_QP": lambda p, q, certified: kl_divergence(q, p, certified=certified),
    "js": lambda p, q, certified: jensen_shannon(p, q, certified=certified),
    "entropy_P": lambda p, q, certified: entropy(p, certified=certified),
    **{
        f"renyi_{order:g}": lambda p, q, certified, order=order: renyi_divergence(p, q, order, certified=certified)
        for order in ORDERS
    },
}


@cache
def table():
    out = defaultdict(dict)
    for name, quantity, value in rows("integrals"):
        out[name][quantity] = value
    return out


def log_mass(m):
    """Logarithm of the exact total weight, which differs from 1 by rounding at most."""
    gap = sum(map(Fraction, m.weights.tolist()), Fraction(-1))
    first = Decimal(gap.numerator) / Decimal(gap.denominator)
    return first - first * first / 2


def scaled_to_mass_one(pair, quantity, low, high):
    """The table's Renyi divergences are those of the raw measures, the package's those of the laws scaled to mass 1."""
    if not quantity.startswith("renyi") or not high.is_finite():
        return low, high
    order = Decimal(quantity.removeprefix("renyi_"))
    shift = (order * log_mass(pair.p) + (1 - order) * log_mass(pair.q)) / (order - 1)
    return low - shift, high - shift


def check(pair, certified):
    p, q = mixture(pair.p), mixture(pair.q)
    problems = []
    for quantity, want in table()[pair.name].items():
        got = QUANTITIES[quantity](p, q, certified)
        where = f"{pair.name} {quantity}: want {want}, got {got.value!r} in [{got.lower!r}, {got.upper!r}]"
        low, high = scaled_to_mass_one(pair, quantity, *bounds(want))
        if Decimal(got.lower) > high or Decimal(got.upper) < low:
            problems.append(f"misses: {where}")
        if certified and got.kind not in ("certified", "exact"):
            problems.append(f"{got.kind}: {where}")
        if want == "inf" or pair.name.startswith(ROUNDING):
            continue
        size = max(abs(got.value), 1.0 if quantity == "entropy_P" else 0.0)
        if not got.upper - got.lower <= WIDTH * size:
            problems.append(f"wide: {where}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: pair.name)
def test_the_fast_path_contains_the_truth(pair):
    check(pair, certified=False)


@pytest.mark.parametrize(
    "pair",
    [pytest.param(pair, marks=() if i % 4 == 0 else pytest.mark.slow, id=pair.name) for i, pair in enumerate(pairs())],
)
def test_the_certified_path_contains_the_truth(pair):
    check(pair, certified=True)


def test_the_table_covers_the_ordinary_families():
    families = {family_of(name) for name in table()}
    assert set(ORDINARY) | {"near", "tiny", "ratio", "distant"} <= families
    assert len(rows("integrals")) > 400


def test_a_far_needle_is_not_lost():
    # log-ratio 1e4 at a weight of 1e-300: the mass of p^10 q^-9 lies far outside the components
    far = next(pair for pair in pairs("tiny") if pair.name == "tiny-1e-300-far-in-p")
    got = renyi_divergence(mixture(far.p), mixture(far.q), 10.0)
    assert np.isclose(got.value, 17232.472, rtol=1e-7)


NEAR_LIMITS = [1 + 1e-9, 1 - 1e-9, 1 + 1e-12, 1 - 1e-12, 1 + 1e-15, 1 + 2.0**-52, 1 - 2.0**-53, 1e-6, 1e-12, 1e-30]
PAIRS_NEAR_LIMITS = {
    "one standard deviation": (([0.99, 0.01], [0.0, 1.0], [1.0, 1.0]), ([1.0], [0.0], [1.0])),
    "several": (([0.25, 0.75], [0.0, 2.0], [1.0, 0.5]), ([0.625, 0.375], [-1.0, 1.5], [1.25, 0.75])),
    "nearly equal": (([0.25, 0.75], [0.0, 2.0], [1.0, 0.5]), ([0.25, 0.75], [2.0**-30, 2.0], [1.0, 0.5])),
    "sums that miss 1": (([0.1] * 10, range(10), [1.0] * 10), ([0.25, 0.75 - 2.0**-32], [0.5, 4.0], [1.0, 2.0])),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("certified", [False, True])
@pytest.mark.parametrize("order", NEAR_LIMITS)
@pytest.mark.parametrize("pair", PAIRS_NEAR_LIMITS.values(), ids=PAIRS_NEAR_LIMITS)
def test_orders_near_0_and_1_lose_no_digits(pair, order, certified):
    p, q = pair
    truth = oracle.renyi(p, q, order, 160)  # scaling to mass 1 cancels 2e-10 down to 2e-31
    before, ctx.prec = ctx.prec, 500
    try:
        a = oracle.exact(Fraction(order))
        log_p, log_q = (oracle.exact(oracle.mass(side)).log() for side in pair)
        truth -= (a * log_p + (1 - a) * log_q) / (a - 1)  # the package scales both to mass 1
        got = renyi_divergence(GaussianMixture(*p), GaussianMixture(*q), order, certified=certified)
        assert arb(got.lower) <= truth <= arb(got.upper), (got.lower, got.upper, truth)
    finally:
        ctx.prec = before
    assert got.kind == "certified"
    assert got.upper - got.lower <= WIDTH * got.value


@pytest.mark.parametrize("order", [1e-60, 1e-200, 1e-300])
def test_the_smallest_orders_follow_the_reversed_divergence(order):
    # D_a(P||Q) = a / (1 - a) D_{1-a}(Q||P), which is a KL(Q||P) to all digits
    p, q = (GaussianMixture(*side) for side in PAIRS_NEAR_LIMITS["several"])
    got, want = renyi_divergence(p, q, order), kl_divergence(q, p)
    assert got.lower <= order * want.upper * (1 + 1e-15)
    assert order * want.lower * (1 - 1e-15) <= got.upper
    assert got.upper - got.lower <= WIDTH * got.value
    assert 0.0 <= renyi_divergence(p, q, 5e-324).upper < 1e-322
