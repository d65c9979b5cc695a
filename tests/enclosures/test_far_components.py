"""Components of any ratio of scales and any distance: bounds that contain the truth, narrow where doubles allow."""

import json
import math
from pathlib import Path

import pytest
from mpmath import mp, mpf

from fastpriv import (
    GaussianMechanism,
    GaussianMixture,
    Pmf,
    entropy,
    jensen_shannon,
    kl_divergence,
    mutual_information,
    notions,
    renyi_divergence,
)
from fastpriv.divergences import label_information
from oracles import far_components as oracle

TABLE = Path(oracle.__file__).parent / "truth" / "far_components.json"
LARGEST = 1.7976931348623157e308
MIXED = GaussianMixture([0.5, 0.5], [0.0, 1.0], 1.0)


def answers(row):
    p, q = (None if law is None else GaussianMixture(*law) for law in (laws(row["p"]), laws(row["q"])))
    quantity, order = row["quantity"], row["order"]
    if quantity == "information":
        sigma = float(p.sigmas[0])
        prior = Pmf(p.means, p.weights)
        return [
            label_information(p, certified=True), mutual_information(prior, sigma, certified=True),
            notions.cd_lmip(prior, GaussianMechanism(sigma, 1.0), certified=True),
        ]
    if quantity == "entropy":
        return [entropy(p, certified=True)]
    if quantity == "renyi":
        return [renyi_divergence(p, q, order, certified=True)]
    return [{"kl": kl_divergence, "js": jensen_shannon}[quantity](p, q, certified=True)]


def laws(columns):
    return None if columns is None else tuple([float.fromhex(x) for x in column] for column in columns)


@pytest.mark.slow
def test_bounds_contain_the_truth_and_are_narrow():
    for row in json.loads(TABLE.read_text()):
        want = mpf(row["truth"])
        for got in answers(row):
            where = f"{row}: got {got!r}"
            slack = abs(want) * mpf(10) ** -28
            assert mpf(float(got.lower)) - slack <= want <= mpf(float(got.upper)) + slack, where
            assert got.lower <= got.value <= got.upper, where
            assert got.width <= (4e-12 if row["quantity"] in ("entropy", "information") else 1e-12) * abs(want), where


@pytest.mark.slow
def test_the_table_can_be_recomputed():
    rows = json.loads(TABLE.read_text())
    for row, (quantity, order, p, q) in zip(rows, oracle.rows(), strict=True):
        assert (row["quantity"], row["order"]) == (quantity, order)
        assert laws(row["p"]) == p
        assert laws(row["q"]) == q
        sizes = [abs(x) for law in (p, q) if law for x in (*law[1], *law[2]) if x]
        if max(sizes) < 1e14 * min(sizes):  # a second or two each; more digits cost more
            found = oracle.truth(quantity, order, p, q)
            want = mpf(row["truth"])  # in the digits that the oracle has set
            assert abs(found - want) <= abs(want) * mpf(10) ** -17


@pytest.mark.parametrize("far", [1e-300, 1e300])
def test_a_divergence_beyond_the_doubles_has_an_infinite_upper_end(far):
    if far > 1:
        p, q = MIXED, GaussianMixture([0.5, 0.5], [-far, far], [1.0, 2.0])
    else:
        p, q = MIXED, GaussianMixture([0.5, 0.5], [-1.0, 1.0], [far, 2 * far])
    found = [kl_divergence(p, q)]
    if far > 1:
        found += [renyi_divergence(p, q, 2.0), renyi_divergence(p, q, 0.5)]
    for got in found:
        assert 0.0 < got.lower <= LARGEST
        assert got.upper == math.inf
        assert got.kind == "certified"


def test_scaling_by_powers_of_two_changes_nothing_that_matters():
    p, q = ([0.25, 0.75], [-1.0, 2.0], [0.5, 1.0]), ([0.5, 0.5], [0.0, 1e3], [2.0, 1e-3])
    for function in (kl_divergence, jensen_shannon, lambda p, q: renyi_divergence(p, q, 0.5)):
        want = function(GaussianMixture(*p), GaussianMixture(*q))
        for k in (-900, -300, 300, 900):
            scaled = [(w, [math.ldexp(x, k) for x in m], [math.ldexp(x, k) for x in s]) for w, m, s in (p, q)]
            got = function(*(GaussianMixture(*law) for law in scaled))
            assert got.width <= 2 * want.width + 1e-15
            assert got.lower <= want.upper
            assert want.lower <= got.upper


def test_information_is_never_above_the_entropy_of_the_prior():
    for weights in ([0.25, 0.25, 0.5], [0.1] * 10, [1 - 2.0**-40, 2.0**-40]):
        points = list(range(len(weights)))
        above = float(mp.fsum(-mpf(w) * mp.log(w) for w in weights))
        for sigma in (0.1, 1e-5, 1e-16, 1e-200):
            got = mutual_information(Pmf(points, weights), sigma)
            assert 0.0 <= got.lower <= got.value <= got.upper <= above * (1 + 1e-13), (weights, sigma, got)
            assert got.value >= above * (1 - 1e-11) or sigma > 0.01


@pytest.mark.parametrize(
    ("slip", "truth"),
    [
        (1, "2.15077985742239931721987093489e-13"), (-3, "2.15077985742239945264641040562e-13"),
        (5, "2.15077985742239918179333146415e-13"),
    ],
)
def test_weights_off_by_their_rounding_move_a_small_divergence_by_a_part_of_itself(slip, truth):
    """Weights mean w / sum(w); those of p sum to 1 + slip 2^-53, as NumPy's w / w.sum() does."""
    shift = 2.0**-20
    w = [0.375, 0.25, 0.375 + slip * 2.0**-53]
    p, q = (w, [0.0, 1.0, 3.0], [1.0] * 3), (w[::-1], [3.0 + shift, 1.0 + shift, shift], [1.0] * 3)
    got = kl_divergence(GaussianMixture(*p), GaussianMixture(*q), certified=True)
    assert mpf(got.lower) <= mpf(truth) <= mpf(got.upper)
    assert got.value < 1e-12
    assert got.width <= 1e-12 * got.value
    unequal = kl_divergence(GaussianMixture(*p), GaussianMixture([0.375, 0.25, 0.375], *q[1:]), certified=True)
    assert unequal.width <= 1e-11 * unequal.value
    for function in (jensen_shannon, lambda p, q: renyi_divergence(p, q, 2.0)):
        got = function(GaussianMixture(*p), GaussianMixture(*q))
        assert got.width <= 1e-11 * got.value
