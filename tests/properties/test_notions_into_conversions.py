"""Every notion of random channels, handed on to every conversion from it as an Estimate and as a bare number.

What the conversion promises is held against brute force over the channel. Channels and priors have zeros.
"""

import math

import numpy as np
import pytest

from fastpriv import conversions, notions
from fastpriv.base.errors import DomainError
from fastpriv.conversions.vocabulary import FULL_SUPPORT
from oracles import promises as brute

RELATIVE, ABSOLUTE = 1e-9, 1e-12  # of brute force in doubles
EPSILONS = (0.0, 0.3, 1.0)
DELTAS = (0.0, 1e-3, 0.2)
ORDERS = (1.0, 1.5, 4.0)
ALARMS = (0.0, 0.1, 0.5)


def random_channel(rng):
    """Rows and a prior: nearly constant to deterministic, with cells of 0, equal rows, and secrets without mass."""
    n, m = rng.integers(2, 5, size=2)
    cells = np.exp(10.0 ** rng.uniform(-3, 0.8) * rng.standard_normal((n, m)))
    if rng.random() < 0.5:
        cells *= rng.random((n, m)) < rng.choice([0.5, 0.9])
        cells[np.arange(n), rng.integers(0, m, n)] += 1.0
    if rng.random() < 0.2:
        cells[0] = cells[-1]
    prior = rng.dirichlet(np.full(n, 10.0 ** rng.uniform(-0.5, 1.5))) + 1e-9
    if n > 2 and rng.random() < 0.4:
        prior[rng.integers(0, n)] = 0.0
    rows = cells / cells.sum(axis=1, keepdims=True)
    return rows, prior / prior.sum()


class Drawn:
    """A channel under a prior: its notions from fastpriv, by source and parameter, and its truth by brute force."""

    def __init__(self, rng):
        self.rows, self.prior = random_channel(rng)
        self.held = self.prior > 0
        self.law = rng.dirichlet(np.full(self.rows.shape[1], 0.3))
        self.order = float(rng.choice(ORDERS))
        self.at = float(rng.choice(EPSILONS))
        self.capacities = {}

    def sources(self):
        """The arguments that each notion is, as fastpriv gives them."""
        rows, prior, at = self.rows, self.prior, self.at
        sides = notions.mbp(prior, rows)
        capacity = notions.ci_lmip(rows)
        delta = notions.ldp_delta(None, rows, at)
        pairs = brute.row_pairs(rows)
        return {
            "ldp": {"epsilon": notions.ldp_epsilon(None, rows)}, "dp": {"epsilon": at, "delta": delta},
            "total_variation": {"total_variation": notions.ldp_delta(None, rows, 0.0)},
            "kl": {"kl": max(brute.kl(p, q) for p, q in pairs) * (1 + 1e-12) + 1e-15},
            "rdp": {"renyi": max(brute.renyi(p, q, self.order) for p, q in pairs) * (1 + 1e-12) + 1e-15,
                    "order": self.order},
            "mbp": {"xi": sides.xi, "xi_plus": sides.plus, "xi_minus": sides.minus},
            "lip": {"epsilon": notions.lip_epsilon(prior, rows)}, "ci_lmip": {"mu": capacity},
            "cd_lmip": {"mu": notions.cd_lmip(prior, rows)},
            "pointwise_lmip": {"mu": notions.pointwise_lmip(prior, rows)},
            "maximal_leakage": {"leakage": notions.maximal_leakage(None, rows)},
        }

    def more(self):
        """Numbers that are not the notion's own: where on a curve, how many secrets, how likely ones."""
        known = self.prior[self.held]
        least = float(known.min()) if len(known) > 1 else 0.0
        return {
            "target_epsilon": np.array(EPSILONS), "delta": np.array(DELTAS), "epsilon": np.array(EPSILONS),
            "order": np.array(ORDERS), "type_one": np.array(ALARMS), "inputs": len(self.rows),
            "pi_min": min(least, 0.5), "atom": float(known.min()),
            "beta": self.beta(),
        }

    def event(self):
        return self.law > np.median(self.law) - 1e-12

    def beta(self):
        """Probability of an event under the first secret with mass."""
        return float(min(self.rows[self.held][0][self.event()].sum(), 1.0))

    def capacity(self, only_held):
        """A lower bound of the capacity, computed once."""
        if only_held not in self.capacities:
            self.capacities[only_held] = brute.capacity_below(self.rows[self.held] if only_held else self.rows)
        return self.capacities[only_held]

    def truth(self, target, result, given, only_held):
        """What the channel is worth by a notion, at the points of a curve that were asked for."""
        rows = self.rows[self.held] if only_held else self.rows
        inner, prior = self.rows[self.held], self.prior[self.held]
        pairs = brute.row_pairs(rows)
        logs = brute.log_ratios(inner, prior)
        release = prior @ inner

        def over(name, function):
            points = given.get("target_epsilon" if name == "epsilon" and "target_epsilon" in given else name)
            points = 0.0 if points is None else points  # said of every epsilon, or of 0 alone
            points = np.ravel(getattr(points, "upper", points))
            nothing = [name == "epsilon" and math.isinf(x) for x in points]  # is promised there
            return np.array([0.0 if free else function(float(x)) for x, free in zip(points, nothing, strict=True)])

        law = self.law * (release > 0)
        table = {
            "ldp": lambda: brute.largest_log_ratio(pairs), "kl": lambda: max(brute.kl(p, q) for p, q in pairs),
            "lip": lambda: float(np.abs(logs).max()), "mbp": lambda: float(np.abs(logs).max()),
            "total_variation": lambda: brute.delta(rows, 0.0), "membership_advantage": lambda: brute.delta(rows, 0.0),
            "rdp": lambda: over("order", lambda a: max(brute.renyi(p, q, a) for p, q in pairs)),
            "zcdp": lambda: max(brute.renyi(p, q, a) / a for p, q in pairs for a in (1.01, 1.5, 2.0, 8.0, 64.0)),
            "dp": lambda: over("epsilon", lambda e: brute.delta(rows, e)),
            "approximate_lip": lambda: over("epsilon", lambda e: brute.lip_delta(inner, prior, e)),
            "ci_lmip": lambda: self.capacity(only_held),
            "cd_lmip": lambda: brute.information(inner, prior),
            "pointwise_lmip": lambda: max(brute.kl(row, release) for row in inner),
            "maximal_leakage": lambda: math.log(rows.max(axis=0).sum()),
            "abp": lambda: brute.abp(inner, prior, law / law.sum() if law.sum() > 0 else release),
            "abp_given_secret": lambda: max(brute.abp(inner, prior, row) for row in inner),
            "robustness": lambda: float(inner[:, self.event()].sum(axis=1).max()),
            "tradeoff": lambda: over("type_one", lambda x: min(brute.miss(p, q, x) for p, q in pairs)),
        }
        return table[target]() if target in table else None


def judged(drawn, row, given, found, only_held, words):
    """One promise against the channel; False where the notion has no brute force here."""
    result = row.result
    if result == "epsilon" and row.target == "dp":  # a curve, read the other way
        rows = drawn.rows[drawn.held] if only_held else drawn.rows
        for epsilon, delta in np.broadcast(found.upper, given["delta"]):
            truth = 0.0 if epsilon == math.inf else brute.delta(rows, float(epsilon))  # inf promises nothing
            assert truth <= delta * (1 + RELATIVE) + ABSOLUTE, (*words, epsilon, delta, truth)
        return True
    if row.target == "gdp":
        rows = drawn.rows[drawn.held] if only_held else drawn.rows
        curve = conversions.dp_delta_from_gdp(found.upper, np.array(EPSILONS)).upper
        truth = np.array([brute.delta(rows, e) for e in EPSILONS])
        assert (truth <= curve * (1 + RELATIVE) + ABSOLUTE).all(), (*words, truth, curve)
        return True
    truth = drawn.truth(row.target, result, given, only_held)
    if truth is None:
        return False
    if row.target == "tradeoff":
        assert np.all(found.lower <= np.asarray(truth) + ABSOLUTE), (*words, truth, found)
    else:
        assert np.all(np.asarray(truth) <= np.asarray(found.upper) * (1 + RELATIVE) + ABSOLUTE), (*words, truth, found)
    return True


OF_A_PRIOR = {"mbp", "lip", "cd_lmip", "pointwise_lmip"}  # of the secrets that the prior allows, and no others
NEEDS = {  # assumptions that not every channel meets
    "ci_lmip_from_dp": lambda drawn: len(drawn.rows) == 2,
    "leakage_error_from_frequency_error": lambda drawn: False,
}


def direct(drawn, seen):
    """Every conversion that holds, from every notion of the channel, both ways of handing on."""
    more = drawn.more()
    for source, own in drawn.sources().items():
        for row in conversions.CONVERSIONS:
            if row.source != source or not row.holds or not NEEDS.get(row.function, lambda _: True)(drawn):
                continue
            pool = {**more, **own}
            if not set(row.required) <= set(pool):
                continue
            numbers = {name: getattr(value, "upper", value) for name, value in pool.items()}
            for values in (pool, numbers):
                given = {name: values[name] for name in row.parameters if name in values}
                words = (row.function, row.form, given, drawn.rows, drawn.prior)
                if judged(drawn, row, given, row.call(**given), source in OF_A_PRIOR, words):
                    seen.add((row.function, row.form))


def curves(drawn):
    """Conversions of whole curves, sampled up to the level from which they are 0."""
    rows, held, prior = drawn.rows, drawn.rows[drawn.held], drawn.prior[drawn.held]
    pairs = brute.row_pairs(rows)
    for level, curve, lip in (
        (notions.ldp_epsilon(None, rows).upper, lambda e: notions.ldp_delta(None, rows, e), False),
        (notions.lip_epsilon(drawn.prior, rows).upper, lambda e: notions.lip_delta(drawn.prior, rows, e), True),
    ):
        if level == 0.0:
            continue
        grid = np.linspace(0.0, min(level, 5.0), 9)
        found = curve(grid)
        number = np.maximum.accumulate(found.upper[::-1])[::-1]
        for delta in (found, number):
            words = grid, delta, rows, drawn.prior
            if lip:
                bound = conversions.cd_lmip_from_lip_curve((grid, delta)).upper
                assert brute.information(held, prior) <= bound * (1 + RELATIVE) + ABSOLUTE, words
                continue
            bound = conversions.ci_lmip_from_dp_curve((grid, delta)).upper
            assert drawn.capacity(False) <= bound * (1 + RELATIVE) + ABSOLUTE, words
            bound = conversions.kl_from_dp_curve((grid, delta), (grid, delta)).upper
            assert max(brute.kl(p, q) for p, q in pairs) <= bound * (1 + RELATIVE) + ABSOLUTE, words


def chained(drawn, seen):
    """What ``convert`` finds between all notions, by chains too."""
    more = drawn.more()
    extra = ({}, {"target_epsilon": 0.3}, {"epsilon": 0.3}, {"delta": 1e-3}, {"order": 1.5}, {"type_one": 0.1},
             {"pi_min": more["pi_min"]}, {"beta": more["beta"]})
    for source, own in drawn.sources().items():
        own = {name: value for name, value in own.items() if name not in ("xi_plus", "xi_minus")}
        for target in conversions.NOTIONS:
            for added in extra:
                if set(added) & set(own):
                    continue
                for values in (own, {name: getattr(value, "upper", value) for name, value in own.items()}):
                    try:
                        found = conversions.convert(target, source, **values, **added)
                    except DomainError:
                        break
                    if any(not NEEDS.get(step.conversion.function, lambda _: True)(drawn) for step in found.steps):
                        break
                    last = found.steps[-1]
                    given = {**last.arguments, **added}
                    words = ([step.conversion.function for step in found.steps], values, added, drawn.rows, drawn.prior)
                    only_held = source in OF_A_PRIOR or FULL_SUPPORT in found.assumptions
                    judged(drawn, last.conversion, given, found.estimate, only_held, words)
                    seen.add((source, target))


@pytest.mark.slow
def test_no_conversion_of_a_notion_promises_too_much():
    seen = set()
    for seed in range(7):
        drawn = Drawn(np.random.default_rng([7, seed]))
        direct(drawn, seen)
        curves(drawn)
    assert len(seen) > 48, sorted(seen)


@pytest.mark.slow
def test_no_chain_from_a_notion_promises_too_much():
    seen = set()
    for seed in range(1):
        chained(Drawn(np.random.default_rng([8, seed])), seen)
    assert len(seen) > 85, len(seen)


def test_a_chain_through_a_notion_of_a_prior_speaks_of_its_secrets_only():
    """Three secrets that a release tells apart, one of them without mass: log 3 in all, log 2 among the other two."""
    rows, prior = np.where(np.eye(3) > 0, 1 - 2e-6, 1e-6), np.array([0.0, 0.5, 0.5])
    epsilon = notions.ldp_epsilon(None, rows)
    found = conversions.convert("maximal_leakage", "ldp", epsilon=epsilon, pi_min=0.5)
    assert [step.conversion.function for step in found.steps] == ["mbp_from_ldp", "maximal_leakage_from_mbp"]
    assert np.log(rows[prior > 0].max(axis=0).sum()) <= found.guarantee < np.log(rows.max(axis=0).sum())
    assert FULL_SUPPORT in found.assumptions
    assert "assumes: the prior gives every secret a positive probability; otherwise it holds among" in found.summary()
    everywhere = conversions.convert("maximal_leakage", "ldp", epsilon=epsilon)
    assert np.log(rows.max(axis=0).sum()) <= everywhere.guarantee


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
def test_no_conversion_promises_too_much_many_times(block):
    seen = set()
    for seed in range(100):
        drawn = Drawn(np.random.default_rng([9, block, seed]))
        direct(drawn, seen)
        curves(drawn)
    assert len(seen) > 48, sorted(seen)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(2))
def test_no_chain_promises_too_much_many_times(block):
    seen = set()
    for seed in range(5):
        chained(Drawn(np.random.default_rng([10, block, seed])), seen)
    assert len(seen) > 85, len(seen)
