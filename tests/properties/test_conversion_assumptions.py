"""Conversions and their chains promise nothing false: channels with zero cells, with secrets that the prior excludes,
and with neighbours that are not all pairs. What a conversion assumes is in its ``assumptions``, and only there.

A secret is one record, or two; neighbours differ in one record. Every notion is computed from its definition. A
conversion without assumptions must hold on every channel, one with assumptions where they are true.
"""

import itertools

import numpy as np
import pytest

from fastpriv import Estimate
from fastpriv import conversions as c
from fastpriv.conversions import chains
from fastpriv.conversions.vocabulary import EVERY_PAIR, FULL_SUPPORT, TRUE_BELIEF
from oracles import channel_quantities as on

ORDERS = 1.0 + np.geomspace(1e-4, 1e3, 100)
ORDER, TARGET, EPSILON, DELTA, ALARM, GROUP = 3.0, 0.3, 0.4, 0.05, 0.2, 2.0


def kl(p, r):
    if ((p > 0) & (r == 0)).any():
        return np.inf
    some = p > 0
    return float((p[some] * np.log(p[some] / r[some])).sum())


def log_ratio(p, r):
    if ((p > 0) & (r == 0)).any():
        return np.inf
    some = p > 0
    return float(np.log(p[some] / r[some]).max())


def renyi(p, r, order):
    order = np.asarray(order)
    if ((p > 0) & (r == 0)).any():
        return np.full(order.shape, np.inf)
    some = (p > 0) & (r > 0)
    terms = np.multiply.outer(order, np.log(p[some])) + np.multiply.outer(1 - order, np.log(r[some]))
    most = terms.max(axis=-1)
    return np.maximum((most + np.log(np.exp(terms - most[..., None]).sum(axis=-1))) / (order - 1), 0.0)


def least_miss(p, r, alarm):
    """Neyman and Pearson: the least P(miss) of a test with this probability of a false alarm under p."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(p > 0, r / p, np.inf)
    left, hit = alarm, 0.0
    for k in np.argsort(-ratio):
        share = 1.0 if p[k] <= left else left / p[k]
        left, hit = left - share * p[k], hit + share * r[k]
    return 1.0 - hit


def capacity(q, steps=200):
    """A lower and an upper bound."""
    pi = np.full(len(q), 1 / len(q))
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(q > 0, q * np.log(q), 0.0).sum(axis=1)
        for _ in range(steps):
            release = pi @ q
            gains = own - q @ np.where(release > 0, np.log(release), 0.0)
            found = float(pi @ gains), float(gains.max())
            pi = pi * np.exp(gains)
            pi /= pi.sum()
    return found


class Secret:
    """A channel, a prior, and which secrets are neighbours; its notions as (what holds, what is at least so much)."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        records = [(2,), (3,), (4,), (2, 2), (2, 3)][seed % 5]
        self.points = list(itertools.product(*map(range, records)))
        n, m = len(self.points), int(rng.integers(2, 6))
        cells = np.exp(10.0 ** rng.uniform(-2, 0.6) * rng.standard_normal((n, m)))
        if seed % 3 == 1:
            cells *= rng.random((n, m)) < 0.8
            cells[np.arange(n), rng.integers(0, m, n)] += 0.1
        if seed % 7 == 3:
            cells[:-1] = cells[0]  # all rows but one alike, and that one may be excluded
        self.q = cells / cells.sum(axis=1, keepdims=True)
        self.pi = rng.dirichlet(np.full(n, 10.0 ** rng.uniform(-0.3, 1.5))) + 1e-6
        if len(records) == 2 and seed % 10 < 5:  # each record answers by itself: two steps are twice as far
            answers = [np.full((k, k), 0.2) + 0.8 * np.eye(k) for k in records]
            self.q = np.kron(*(answer / answer.sum(axis=1, keepdims=True) for answer in answers))
            self.pi = np.where(np.arange(n) == 0, 1.0, 1e-4)
            m = self.q.shape[1]
        if seed % 2 and n > 2:
            self.pi[-1 if seed % 7 == 3 else rng.integers(n)] = 0.0
        self.pi /= self.pi.sum()
        self.full = bool((self.pi > 0).all())
        self.complete = len(records) == 1
        self.near = [(i, j) for i in range(n) for j in range(n)
                     if sum(a != b for a, b in zip(self.points[i], self.points[j], strict=True)) == 1]
        self.deltas = {}
        self.law = rng.dirichlet(np.full(m, 0.5)) * (self.pi @ self.q > 0)
        self.law = self.law / self.law.sum() if self.law.sum() > 0 else self.pi @ self.q

    def over(self, function, steps=1):
        q, pairs = self.q, set(self.near)
        for _ in range(steps - 1):
            pairs |= {(i, k) for i, j in pairs for a, k in self.near if a == j and k != i}
        return max(function(q[i], q[j]) for i, j in pairs)

    def values(self):
        """By notion: a number that holds, for a source; and a number that a target must reach."""
        some = self.pi > 0
        rows, pi = self.q[some], self.pi[some]
        release = pi @ rows
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(release > 0, rows / release, 1.0)
            logs = np.log(ratio)
        after = (ratio * self.law).sum(axis=1) * pi
        given_row = [np.sqrt(max(on.js((ratio * row).sum(axis=1) * pi, pi), 0.0)) for row in rows]
        renyis = np.max([renyi(self.q[i], self.q[j], ORDERS) for i, j in self.near], axis=0)
        least, most = capacity(self.q)
        miss = self.q[:, : max(1, self.q.shape[1] // 2)].sum(axis=1).clip(0.0, 1.0)
        self.beta = float(miss[np.argmax(some)])
        hockey = on.hockey_stick
        exact = {
            "ldp": self.over(log_ratio), "total_variation": self.over(lambda p, r: hockey(p, r, 0.0)),
            "kl": self.over(kl), "dp": self.over(lambda p, r: hockey(p, r, EPSILON)),
            "rdp": self.over(lambda p, r: renyi(p, r, ORDER)), "mbp": float(np.abs(logs).max()),
            "lip": float(np.abs(logs).max()),
            "pointwise_lmip": max(kl(row, release) for row in rows),
            "cd_lmip": sum(w * kl(row, release) for w, row in zip(pi, rows, strict=True)),
            "maximal_leakage": float(np.log(self.q.max(axis=0).sum())),
        }
        reached = exact | {
            "zcdp": float((renyis / ORDERS).max()), "ci_lmip": least,
            "membership_advantage": exact["total_variation"],
            "abp": float(np.sqrt(max(on.js(after, pi), 0.0))), "abp_given_secret": max(given_row),
            "robustness": float(miss.max()), "tradeoff": -self.over(lambda p, r: -least_miss(p, r, ALARM)),
        }
        holds = exact | {
            "zcdp": max(renyis[0], float((renyis[1:] / ORDERS[:-1]).max()), renyis[-1]),
            "ci_lmip": most,
        }
        return {k: max(v, 0.0) for k, v in holds.items()}, reached

    def reached_at(self, name, at):
        """Of a notion with a second number: delta at ``at``, where that is an epsilon."""
        if np.isinf(at):  # nothing is promised
            return 0.0
        if (name, at) not in self.deltas:
            self.deltas[name, at] = self.delta(name, at)
        return self.deltas[name, at]

    def delta(self, name, at):
        if name == "dp":
            return self.over(lambda p, r: on.hockey_stick(p, r, at))
        some = self.pi > 0
        release = self.pi @ self.q
        return max(
            max(on.hockey_stick(row, release, at), np.exp(-min(at, 700.0)) * on.hockey_stick(release, row, at))
            for row in self.q[some]
        )


@pytest.fixture(scope="module", params=[6, pytest.param(400, marks=pytest.mark.slow)])
def secrets(request):
    found = [Secret(seed) for seed in range(request.param)]
    for secret in found:
        secret.holds, secret.reached = secret.values()
    return found


EXTRAS = ({}, {"delta": DELTA}, {"order": ORDER}, {"epsilon": EPSILON}, {"target_epsilon": TARGET},
          {"type_one": ALARM}, {"group": GROUP}, {"pi_min": None}, {"inputs": None}, {"beta": None},
          {"pi_min": None, "inputs": None}, {"pi_min": None, "delta": DELTA},
          {"pi_min": None, "target_epsilon": TARGET}, {"pi_min": None, "order": ORDER},
          {"epsilon": EPSILON, "pi_min": None})
SOURCES = {"ldp": "epsilon", "lip": "epsilon", "mbp": "xi", "zcdp": "rho", "kl": "kl", "rdp": "renyi", "dp": "delta",
           "total_variation": "total_variation", "maximal_leakage": "leakage", "pointwise_lmip": "mu", "cd_lmip": "mu",
           "ci_lmip": "mu"}


def ways(source, target, given):
    """The direct conversion, if any, and every chain."""
    direct = chains._direct(target, source, set(given), None)
    return [*([[direct]] if direct else []), *chains._chains(target, source, set(given))]


def true_of(assumption, secret):
    if assumption is FULL_SUPPORT:
        return secret.full
    if assumption is EVERY_PAIR:
        return secret.complete
    return assumption is TRUE_BELIEF


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_no_chain_promises_what_is_false(source, secrets):
    known = {
        "pi_min": [float(s.pi[s.pi > 0].min()) if (s.pi > 0).sum() > 1 else 0.5 for s in secrets],
        "inputs": [float(len(s.q)) for s in secrets],
        "beta": [s.beta for s in secrets],
    }
    checked, needed = 0, set()
    for target, extra in itertools.product(c.NOTIONS, EXTRAS):
        if target == source or SOURCES[source] in extra or target not in secrets[0].reached | {"approximate_lip": 0}:
            continue
        if (source == "rdp" and "order" not in extra) or (source == "dp" and "epsilon" not in extra):
            continue
        values = {SOURCES[source]: np.array([s.holds[source] for s in secrets])}
        values |= {name: np.array(known.get(name, number)) for name, number in extra.items()}
        for path in ways(source, target, values):
            if not chains._chainable(path[0]):
                continue  # of special mechanisms
            unit = {"unit": "nats"} if any("unit" in row.optional for row in path) else {}
            found = c.ConversionResult(source, target, chains._run(path, values | unit))
            promised = np.broadcast_to(found.guarantee, len(secrets))
            given = found.steps[-1].arguments
            for k, secret in enumerate(secrets):
                if not all(true_of(assumption, secret) for assumption in found.assumptions):
                    needed |= set(found.assumptions)
                    continue
                number = float(promised[k])
                if path[-1].result == "epsilon" and target == "dp":
                    reached, number = secret.reached_at("dp", number), DELTA
                elif target in ("dp", "approximate_lip"):
                    names = ("target_epsilon", "epsilon") if "target_epsilon" in given else ("epsilon",)
                    at = next((given[name] for name in names if name in given), None)
                    at = at.upper if isinstance(at, Estimate) else at  # a larger epsilon promises less
                    at = 0.0 if at is None else float(np.broadcast_to(at, len(secrets))[k])
                    reached = secret.reached_at(target, at)
                else:
                    reached = secret.reached[target]
                checked += 1
                functions = [entry.function for entry in path]
                if target == "tradeoff":
                    assert number <= reached + 1e-9, (functions, k, number, reached)
                else:
                    slack = 1e-7 if target.startswith("abp") else 1e-10  # a root of rounding
                    assert reached <= number * (1 + 1e-8) + slack, (functions, k, number, reached)
    assert checked >= len(secrets)
    if source in ("lip", "mbp"):
        assert needed >= {FULL_SUPPORT}


def test_a_secret_that_the_prior_excludes_may_reveal_itself():
    pi, q = np.array([0.5, 0.5, 0.0]), np.array([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]])
    release = pi @ q
    assert np.abs(np.log(q[:2] / release)).max() == 0.0
    assert capacity(q)[0] > 0.22
    found = c.convert("ci_lmip", "mbp", xi=0.0, unit="nats")
    assert found.guarantee == 0.0
    assert FULL_SUPPORT in found.assumptions
    assert FULL_SUPPORT.text in found.estimate.method
    assert FULL_SUPPORT.text in found.summary()
    assert FULL_SUPPORT.text in found.to_dict()["assumptions"]
    for target, source in (("membership_advantage", "lip"), ("maximal_leakage", "lip"), ("ci_lmip", "lip")):
        assert FULL_SUPPORT in c.convert(target, source, epsilon=0.0).assumptions
    for target in ("abp", "cd_lmip", "pointwise_lmip"):  # of the same prior: nothing is assumed
        assert c.convert(target, "lip", epsilon=0.1).assumptions == ()


def test_neighbours_are_not_every_pair():
    found = c.convert("approximate_lip", "zcdp", rho=0.1, epsilon=1.0)
    assert found.assumptions == (EVERY_PAIR,)
    assert c.convert("approximate_lip", "ci_lmip", mu=0.1, epsilon=1.0).assumptions == ()
    assert c.convert("maximal_leakage", "ldp", epsilon=1.0).assumptions == (EVERY_PAIR,)


def test_a_chain_is_a_bound_and_says_so():
    found = c.convert("abp", "lip", epsilon=1.0, pi_min=0.4)
    assert {step.conversion.form for step in found.steps} == {"tight"}
    assert found.form == found.to_dict()["form"] == "bound"
    assert "bound, by a chain of 3 conversions" in found.estimate.method
    assert "chain of 3: a bound, not known to be attained; assumes: nothing" in found.summary()
    direct = c.convert("mbp", "ldp", epsilon=1.0)
    assert direct.form == "tight"
    assert len(direct.steps) == 1


def test_the_direct_conversions_of_mbp_are_below_the_way_by_ldp():
    xi = np.array([1e-3, 0.3, 1.0, 4.0])
    twice = c.ldp_from_mbp(xi).upper
    for direct, by_ldp in (
        (c.total_variation_from_mbp(xi), c.total_variation_from_ldp(twice)), (c.kl_from_mbp(xi), c.kl_from_ldp(twice)),
        (c.dp_delta_from_mbp(xi, 0.5 * xi), c.dp_delta_from_ldp(twice, 0.5 * xi)),
        (c.dp_epsilon_from_mbp(xi, 1e-4), c.dp_epsilon_from_ldp(twice, 1e-4)),
        (c.rdp_from_mbp(xi, 3.0), c.rdp_from_ldp(twice, 3.0)),
        (c.maximal_leakage_from_mbp(xi), c.maximal_leakage_from_ldp(twice)),
    ):
        assert (direct.upper < by_ldp.lower).all(), direct.method


@pytest.mark.parametrize("xi", [0.01, 0.5, 2.0])
def test_the_direct_conversions_of_mbp_are_attained(xi):
    high, low, t = np.exp(xi), np.exp(-xi), 1 / (1 + np.exp(xi))
    q = np.array([t, t, 1 - 2 * t])
    p, r = q * [high, low, low], q * [low, high, low]
    rare = 1e-7
    rows = np.array([p, r, (q - rare * p - rare * r) / (1 - 2 * rare)])
    pi = np.array([rare, rare, 1 - 2 * rare])
    assert np.isclose(on.mbp(rows, pi)[0], xi, rtol=1e-5)
    assert np.isclose(0.5 * np.abs(p - r).sum(), c.total_variation_from_mbp(xi).value)
    assert np.isclose(kl(p, r), c.kl_from_mbp(xi).value)
    assert np.isclose(renyi(p, r, 3.0), c.rdp_from_mbp(xi, 3.0).value)
    assert np.isclose(on.hockey_stick(p, r, xi), c.dp_delta_from_mbp(xi, xi).value)
    reached = c.dp_epsilon_from_mbp(xi, 1e-3).value
    assert np.isclose(on.hockey_stick(p, r, reached), 1e-3)
    many = 5
    cells = np.full((many, many), low / many) + (1 - low) * np.eye(many)
    inside = c.maximal_leakage_from_mbp(on.mbp(cells, np.full(many, 0.2))[0], 0.2).value
    assert np.isclose(np.log(cells.max(axis=0).sum()), inside)
