"""The attack on a beacon beside products of probabilities and sums over answers; its errors."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from fastpriv import DomainError, ShapeError
from fastpriv.studies.membership import Panel, SequentialBeacon

REFERENCES = Panel(np.array([[1, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 1], [1, 1, 0, 0]]))
P = [0.8, 0.4, 0.2, 0.2]
N, ERROR, SIGMA, PRIOR = 3, 0.05, 0.1, 0.3
ORDERS = ["information", "likelihood_ratio", "rarest", "listed", "random"]


def beacon(**words):
    return SequentialBeacon(REFERENCES, N, **{"error": ERROR, "prior": PRIOR} | words)


def no(j, d, member):
    return (1 - P[j]) ** (N - 1) * (ERROR if d else 1.0) if member else (1 - P[j]) ** N


def density(j, d, member):
    spread = P[j] * (1 - P[j])
    if member:
        return stats.norm((d + (N - 1) * P[j]) / N, math.sqrt((N - 1) * spread / N**2 + SIGMA**2))
    return stats.norm(P[j], math.sqrt(spread / N + SIGMA**2))


@pytest.mark.parametrize(("j", "d", "answer"), list(itertools.product(range(4), (0, 1), (0, 1))))
def test_log_ratios_of_presence(j, d, answer):
    one, other = (no(j, d, member) for member in (True, False))
    want = math.log((1 - one) / (1 - other) if answer else one / other)
    assert beacon().log_ratio(j, d, answer) == pytest.approx(want, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize(("j", "d", "answer"), list(itertools.product(range(4), (0, 1), (-0.1, 0.3, 1.2))))
def test_log_ratios_of_frequencies(j, d, answer):
    want = density(j, d, True).logpdf(answer) - density(j, d, False).logpdf(answer)
    assert beacon(answers="frequency", sigma=SIGMA).log_ratio(j, d, answer) == pytest.approx(want, rel=1e-11, abs=1e-13)


def information(j, d, member, answers):
    """Mutual information of an answer and membership, by a sum or an integral."""
    q = [1 - member, member]
    if answers == "presence":
        table = [[no(j, d, b), 1 - no(j, d, b)] for b in (False, True)]
        return sum(q[b] * table[b][a] * math.log(table[b][a] / (q[0] * table[0][a] + q[1] * table[1][a]))
                   for b in (0, 1) for a in (0, 1))  # fmt: skip
    laws = [density(j, d, b) for b in (False, True)]

    def inside(a):
        f = [law.pdf(a) for law in laws]
        both = q[0] * f[0] + q[1] * f[1]
        return sum(q[b] * f[b] * math.log(f[b] / both) for b in (0, 1) if f[b] > 0)

    return integrate.quad(inside, -2, 3, epsabs=1e-10, limit=200)[0]


@pytest.mark.few(1)
@pytest.mark.parametrize("answers", ["presence", "frequency"])
def test_each_query_is_the_most_informative_one(answers):
    targets = np.array(list(itertools.product([False, True], repeat=4)))
    attack = beacon(answers=answers, sigma=SIGMA)
    replies = np.array([0.0, 1.0, 1.0, 0.0]) if answers == "presence" else np.array([0.7, 0.5, 0.4, 0.1])
    run = attack.run(targets, replies, queries=4)
    assert np.array_equal(np.sort(run.queried, axis=1), np.tile(np.arange(4), (16, 1)))
    assert np.array_equal(run.answers, replies[run.queried])
    for d, queried, log_ratios in zip(targets, run.queried, run.log_ratios, strict=True):
        assert log_ratios[0] == 0.0
        for step, j in enumerate(queried):
            member = 1 / (1 + (1 - PRIOR) / PRIOR * math.exp(-log_ratios[step]))
            worth = {k: information(k, d[k], member, answers) for k in set(range(4)) - set(queried[:step].tolist())}
            tolerance = 1e-9 if answers == "presence" else 0.02 * max(worth.values())  # six nodes
            assert worth[j] >= max(worth.values()) - tolerance, (d, step, worth)
            change = attack.log_ratio(j, d[j], replies[j])
            assert log_ratios[step + 1] == pytest.approx(log_ratios[step] + change, abs=1e-12)


def test_fixed_orders():
    target = [[True, False, True, True]]
    assert beacon(order="rarest").run(target, [1, 1, 1, 1], queries=4).queried.tolist() == [[2, 3, 0, 1]]
    assert beacon(order="listed").run(target, [1, 1, 1, 1], queries=3).queried.tolist() == [[0, 1, 2]]
    runs = [beacon(order="random").run(target * 50, [1, 1, 1, 1], queries=4, rng=seed).queried for seed in (1, 1, 2)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


@pytest.mark.parametrize("answers", ["presence", "frequency"])
@pytest.mark.parametrize("order", ORDERS)
def test_a_function_is_asked_only_what_is_needed(order, answers):
    asked = []

    def answer(j):
        asked.append(j)
        return float(j % 2)

    attack = beacon(order=order, answers=answers)
    run = attack.run([[True, False, True, True]], answer, queries=2, rng=1)
    assert asked == run.queried[0].tolist()
    again = attack.run([[True, False, True, True]], [0, 1, 0, 1], queries=2, rng=1)
    assert all(np.array_equal(one, other) for one, other in zip(run, again, strict=True))


def test_answers_of_a_beacon():
    people = Panel(np.eye(4, dtype=int))
    b = [[True, True, False, False]]
    draws = np.concatenate([beacon(error=0.25).respond(people, b, rng=seed) for seed in range(4000)])
    assert draws[:, 2:].max() == 0.0
    hits = stats.binomtest(int(draws[:, :2].sum()), 8000, 0.75)
    assert hits.pvalue > 1e-5
    noisy = beacon(answers="frequency", sigma=0.1).respond(people, b * 3000, rng=1)
    assert stats.kstest((noisy - [0.5, 0.5, 0.0, 0.0]).ravel() / 0.1, "norm").pvalue > 1e-5


def drawn(seed=1):
    rng = np.random.default_rng(seed)
    bits = rng.random((300, 200)) < np.exp(rng.uniform(math.log(0.005), math.log(0.4), 200))
    bits = bits[:, bits.any(axis=0) & ~bits.all(axis=0)]
    return Panel(bits[:150]), Panel(bits[150:])


@pytest.mark.few(1)
@pytest.mark.parametrize("answers", ["presence", "frequency"])
def test_chosen_queries_find_more_members_than_listed_ones(answers):
    people, references = drawn()
    found = {
        order: SequentialBeacon(references, 20, answers=answers, order=order).power(people, queries=12, count=600,
        rng=1) for order in ("information", "listed", "random")
    }
    best = found.pop("information")
    assert best.power.value[0] == 0.0
    assert best.queries.tolist() == list(range(13))
    for other in found.values():
        assert best.power.lower[-1] > other.power.upper[-1]
    assert best.to_frame()["quantity"].tolist() == ["power"] * 13


def test_a_target_that_is_excluded_stays_so():
    attack = SequentialBeacon(REFERENCES, 1, error=0.01)
    for order in ORDERS:
        attack.order = order
        run = attack.run([[False, False, True, True]], [1, 1, 1, 1], queries=4, rng=1)
        assert run.log_ratios[0, -1] == -math.inf
        assert not np.isnan(run.log_ratios).any()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: SequentialBeacon([[1, 0]], 2), DomainError, "references must be a Panel; got"),
        (lambda: SequentialBeacon(REFERENCES, 0), DomainError, "n_members must be an integer of at least 1; got 0"),
        (lambda: beacon(answers="yes"), DomainError, "answers must be one of presence, frequency; got 'yes'"),
        (lambda: beacon(order="best"), DomainError, "order must be one of information, likelihood_ratio, rarest"),
        (lambda: beacon(error=0.0), DomainError, "error must be between 0 and 1, exclusive; got 0.0"),
        (lambda: beacon(sigma=-1.0), DomainError, "sigma must be at least 0 and finite; got -1.0"),
        (lambda: beacon(prior=1.0), DomainError, "prior must be between 0 and 1, exclusive; got 1.0"),
        (lambda: beacon().run([True] * 4, [1] * 4, queries=1), ShapeError,
         r"targets must have one entry an attribute, here 4, in each row; got shape \(4,\). Put a single target in a"),
        (lambda: beacon().run([[True] * 3], [1] * 3, queries=1), ShapeError,
         r"targets must have one entry an attribute, here 4, in each row; got shape \(1, 3\)"),
        (lambda: beacon().run([[True] * 4], [1] * 4, queries=5), DomainError, "queries must be an integer of"),
        (lambda: beacon().run([[True] * 4], [1, 0, 0.5, 1], queries=1), DomainError,
         "answers must be 0 or 1 of presence; got 0.5. Pass answers='frequency' for others"),
        (lambda: beacon().run([[True] * 4], [1, 0], queries=1), ShapeError,
         r"answers must have one entry an attribute, of shape \(4,\) or \(1, 4\); got \(2,\)"),
        (lambda: beacon().respond(REFERENCES, [[0] * 5]), DomainError,
         "membership must have at least one member in each row; got none in 1 rows"),
        (lambda: SequentialBeacon(drawn()[1], 150).power(drawn()[0], queries=1), DomainError,
         "n_members must be fewer than the 150 people of the panel, so that there are targets who are no members"),
        (lambda: beacon().log_ratio(4, True, 1), DomainError, "attribute must be integers from 0 to 3; got 4"),
        (lambda: beacon().log_ratio([0, 1], [True] * 3, 1), ShapeError, "has must be of a shape that broadcasts with"),
        (lambda: beacon().power(Panel([[1], [0]]), queries=1), ShapeError, "references must have the 1 at"),
    ],
)  # fmt: skip
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()
