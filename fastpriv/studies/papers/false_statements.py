"""What the paper on Bayes-Nash generative privacy states and does not hold, each with a counterexample that runs.

Every counterexample is a game of at most four people whose memberships and releases are enumerated. Both sides of the
printed statement and of its right form are computed with bounds, so that ``fails`` and ``right_form_holds`` are proved
by comparing intervals.

Source: Zhang, Venkatesaramani, De, Malin and Vorobeychik 2024, Bayes-Nash generative privacy against membership
inference attacks.
"""

# bounds: proved - roundings of a logarithm and a mean; 1e-9 is an epsilon, of a bound

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.errors import DomainError
from ...base.estimate import Estimate, Result, exact
from ...base.numerics import UNIT_ROUNDOFF, FloatArray, rounded_up
from ...base.table import CellType, Table
from ...composition import compare_mechanisms, membership_advantage_bound
from ..membership.member_posteriors import MembershipPosterior, membership_posterior
from ..membership.noises import GeneratorNoise, LaplaceNoise, NoNoise
from ..membership.panels import Panel
from ..membership.priors import BernoulliMembership, FixedSizeMembership
from ..membership.releases import CombinedReleases, FrequencyRelease

__all__ = ["PaperStatement", "PaperStatements", "paper_statements"]

# bound: proved - relative to a sum of at most 64 terms of one sign, each a logarithm and two products, and of three
#    such sums: 64 + 3 + 5 roundings, doubled
_SUM_ERROR = 256 * UNIT_ROUNDOFF
_SEEDS = 1000  # releases of the generator that are attacked
_PRIORS = np.linspace(0.01, 0.99, 99)  # of the channels of theorem 12


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PaperStatement(Result):
    """One statement that does not hold, its right form, and the numbers of a counterexample.

    Parameters
    ----------
    name : str
        Number in the paper.
    printed, right : str
        What it says, and what holds.
    counterexample : str
        The game.
    printed_left, printed_right : Estimate
        Both sides of the printed statement in that game.
    printed_relation : {"=", "<=", ">="}
        How it orders them.
    right_left, right_relation, right_right
        The same of the right form, in the same game.

    Notes
    -----
    **Accuracy** Both sides have proved bounds; ``tests/membership/test_false_statements.py`` checks each against sums
    by hand.

    Source: the head of fastpriv/studies/papers/false_statements.py.

    Examples
    --------
    >>> from fastpriv.membership import paper_statements
    >>> statement = paper_statements()["Lemma 3"]
    >>> statement.fails, statement.right_form_holds
    (True, True)
    >>> print(f"{statement.printed_left.value:.4f} {statement.printed_relation} {statement.printed_right.value:.4f}")
    1.3863 = 0.6931
    """

    name: str
    printed: str
    right: str
    counterexample: str
    printed_left: Estimate
    printed_relation: str
    printed_right: Estimate
    right_left: Estimate
    right_relation: str
    right_right: Estimate

    @property
    def fails(self) -> bool:
        """Whether the bounds prove that the printed relation is false in this game."""
        left, right = self.printed_left, self.printed_right
        above, below = bool(left.lower > right.upper), bool(left.upper < right.lower)
        return {"=": above or below, "<=": above, ">=": below}[self.printed_relation]

    @property
    def right_form_holds(self) -> bool:
        """Whether the bounds agree with the right form."""
        left, right = self.right_left, self.right_right
        not_above, not_below = bool(left.lower <= right.upper), bool(left.upper >= right.lower)
        return {"=": not_above and not_below, "<=": not_above, ">=": not_below}[self.right_relation]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PaperStatements(Table, Result):
    """All of them, as a table.

    Parameters
    ----------
    statements : tuple of PaperStatement
        In the order of the paper.

    Examples
    --------
    >>> from fastpriv.membership import paper_statements
    >>> [statement.name for statement in paper_statements()][:2]
    ['Lemma 3', 'Theorem 5, identity']
    """

    statements: tuple[PaperStatement, ...]

    def __iter__(self) -> Iterator[PaperStatement]:
        return iter(self.statements)

    def __len__(self) -> int:
        return len(self.statements)

    def __getitem__(self, name: str) -> PaperStatement:
        for one in self.statements:
            if one.name == name:
                return one
        names = ", ".join(repr(one.name) for one in self.statements)
        raise DomainError(f"name must be one of {names}; got {name!r}. Take one of them.")

    def column_types(self) -> dict[str, CellType]:
        """The columns of the table."""
        names = (
            "statement", "verdict", "printed", "right form", "counterexample", "printed left", "printed relation",
            "printed right", "right left", "right relation", "right right",
        )  # fmt: skip
        return dict.fromkeys(names, "")

    def rows(self) -> list[tuple[Any, ...]]:
        """One row a statement; numbers are the values, without their bounds."""
        return [
            (
                one.name, "false" if one.fails else "holds here", one.printed, one.right, one.counterexample,
                float(one.printed_left.value), one.printed_relation, float(one.printed_right.value),
                float(one.right_left.value), one.right_relation, float(one.right_right.value),
            )
            for one in self.statements
        ]  # fmt: skip

    def __repr__(self) -> str:
        lines = []
        for one in self.statements:
            sides = f"{float(one.printed_left.value):.6g} {one.printed_relation} {float(one.printed_right.value):.6g}"
            right = f"{float(one.right_left.value):.6g} {one.right_relation} {float(one.right_right.value):.6g}"
            verdict = "false" if one.fails else "holds here"
            lines.append(f"{one.name}: {one.printed}\n    {verdict}: {sides}; right: {one.right} ({right})")
        return "\n".join(lines)


def paper_statements() -> PaperStatements:
    """The statements of the paper that are false as printed, each with a counterexample that is computed here.

    Returns
    -------
    PaperStatements
        One entry a statement: both sides of it, and of the right form, in one small game. It takes milliseconds.

    Notes
    -----
    The paper's formulas are read as its text and proofs explain them. Its proposition 1 (with joint probabilities), its
    proposition 4 (post-processing) and its proposition 6 (a fixed subjective prior) hold.

    **Accuracy** Sums over all memberships with proved bounds; ``tests/membership/test_false_statements.py``.

    Source: Zhang, Venkatesaramani, De, Malin and Vorobeychik 2024; theorem 12: Nair 2010 (channels more capable and not
    less noisy), Kaissis et al. 2024.

    Examples
    --------
    >>> from fastpriv.membership import paper_statements
    >>> all(statement.fails and statement.right_form_holds for statement in paper_statements())
    True
    """
    return PaperStatements((
        _lemma_3(), _theorem_5_identity(), _theorem_5_bound(), _proposition_7_if(), _proposition_7_only_if(),
        _proposition_8(), _proposition_10(), _theorem_12_risk_to_profile(), _theorem_12_profile_to_risk(),
    ))  # fmt: skip


def _lemma_3() -> PaperStatement:
    """Two equal people, one of them a member: the release says nothing, and who is in is one fair coin."""
    model = FrequencyRelease(Panel([[1], [1]]), FixedSizeMembership(1))
    found = membership_posterior(model, [1.0])
    loss, joint = _sum_of_entropies(_marginals(found)), _entropy_of(found)
    return PaperStatement(
        "Lemma 3", "the least cross-entropy loss is the conditional entropy H(B | R)",
        "it is the sum of H(B_k | R); the posterior is what attains it", "two equal people, one of them a member",
        loss, "=", joint, loss, "=", _nats(2 * math.log(2.0)),
    )  # fmt: skip


def _theorem_5_identity() -> PaperStatement:
    """Two attributes of four people, released one by one without noise, and together."""
    panel, prior = Panel([[1, 1], [1, 0], [0, 1], [1, 1]]), BernoulliMembership(0.5)
    each = [FrequencyRelease(panel, prior, NoNoise(), attributes=[j]) for j in (0, 1)]
    joint = _without_noise(CombinedReleases(each))
    alone = [_without_noise(CombinedReleases([one])) for one in each]
    total_correlation = alone[0].output + alone[1].output - joint.output
    parts = alone[0].risk + alone[1].risk
    # the releases are functions of b: given it, their total correlation is 0
    right = parts - float(prior.entropy(4).value) + total_correlation
    return PaperStatement(
        "Theorem 5, identity",
        "the risk of a composition is the sum of the risks plus the entropy of the outputs or their divergence from "
        "independence, which here is not negative",
        "H(B | X) = sum_i H(B | R_i) - (T - 1) H(B) + TC(X) - TC(X | B), for the joint risk alone",
        "four people, two attributes, each frequency a release, without noise",
        _nats(joint.risk), ">=", _nats(parts), _nats(joint.risk), "=", _nats(right),
    )  # fmt: skip


def _theorem_5_bound() -> PaperStatement:
    """The covariance of a membership of fixed size is singular, and its logarithm -infinity."""
    model = FrequencyRelease(Panel([[1], [1]]), FixedSizeMembership(1))
    found = membership_posterior(model, [1.0])
    entropy = _entropy_of(found)
    covariance = np.asarray(found.covariance().value)
    corrected = 0.5 * math.log(float(np.linalg.det(2 * math.pi * math.e * (covariance + np.eye(2) / 12))))
    return PaperStatement(
        "Theorem 5, bound", "the risk is at most E 1/2 log det(2 pi e Cov(B | X))",
        "it is at most E 1/2 log det(2 pi e (Cov(B | X) + I/12)): a discrete vector needs a uniform dither",
        "two equal people, one of them a member: Cov = [[1/4, -1/4], [-1/4, 1/4]]",
        entropy, "<=", exact(-math.inf, 0.0, unit="nats", method="logarithm of a singular determinant"),
        entropy, "<=", _nats(corrected),
    )  # fmt: skip


def _proposition_7_if() -> PaperStatement:
    """A subjective prior that is right on average, and is pure noise."""
    truth, chance = 2 * math.log(2.0), 0.9
    loss = -math.log(chance) - math.log(1 - chance)  # of both people, over both priors
    return PaperStatement(
        "Proposition 7, if",
        "a subjective prior whose expectation is the true prior leaves at most the risk of the true prior",
        "for a signal W and the posterior given it, H(B | R, W) <= H(B | R)",
        "two equal people, one a member; the attacker believes 9 to 1 in the one or the other, by a coin of its own",
        _nats(loss), "<=", _nats(truth), _nats(truth), "<=", _nats(truth),
    )  # fmt: skip


def _proposition_7_only_if() -> PaperStatement:
    """A subjective prior that knows something, and is wrong on average: (99, 1) or (40, 60) for the two memberships."""
    beliefs = np.array([[0.99, 0.01], [0.4, 0.6]])
    loss = -math.log(0.99) - math.log(0.6)  # both people of each membership, of which each has chance 1/2
    mean = 0.5 * (beliefs[0, 0] + beliefs[1, 0])
    truth = 2 * math.log(2.0)
    joint = 0.5 * beliefs  # the signal that is sent by these chances, read by Bayes' rule
    given_signal = 2 * (_entropy(joint) - _entropy(joint.sum(axis=0)))
    return PaperStatement(
        "Proposition 7, only if",
        f"a prior that leaves less risk has the true prior as its expectation (loss {loss:.4f} < {truth:.4f})",
        "it may have another one; whose posterior is right has no more risk: H(B | R, W) <= H(B | R)",
        "two equal people, one a member; the attacker believes (.99, .01) if it is the first, (.4, .6) otherwise",
        exact(mean, 4 * UNIT_ROUNDOFF, unit="probability", method="mean"), "=",
        exact(0.5, 0.0, unit="probability", method="closed form"), _nats(given_signal), "<=", _nats(truth),
    )  # fmt: skip


def _proposition_8() -> PaperStatement:
    """One seed for two attributes: the difference of the frequencies is released without noise."""
    panel, prior = Panel([[1, 0], [0, 1]]), FixedSizeMembership(1)

    def shift(membership: Any, seeds: FloatArray) -> FloatArray:
        return np.repeat(seeds - 0.5, 2, axis=1)

    found = FrequencyRelease(panel, prior, GeneratorNoise(shift, 1)).simulate(_SEEDS, rng=1)
    claims = found.released[:, 0] > found.released[:, 1]
    first = found.membership[:, 0]
    advantage = float(claims[first].mean() - claims[~first].mean())
    dithered = FrequencyRelease(panel, prior, GeneratorNoise(shift, 1, LaplaceNoise(0.5))).epsilon()
    return PaperStatement(
        "Proposition 8", "a generator's release is (epsilon, delta)-differentially private for some epsilon",
        "only with a dither of full dimension: then its epsilon is finite",
        f"two people, two attributes, one seed; {_SEEDS} releases, attacked by the sign of r_1 - r_2. The right side "
        "is the largest advantage that epsilon = 5 and delta = 0.1 allow; only delta = 1 allows 1",
        exact(advantage, 0.0, unit="1", method="all releases told apart"), "<=",
        membership_advantage_bound(5.0, 0.1),
        dithered, "<=", exact(1e300, 0.0, unit="nats", method="any finite number"),
    )  # fmt: skip


def _proposition_10() -> PaperStatement:
    """The release is whether both or none of two people are in, and a third one always is."""
    xor = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])  # rows 00, 01, 10, 11
    ratio = _marginal_ratio(xor)
    kept = 0.6  # chance that the release is right; else it is turned around
    noisy = kept * xor + (1 - kept) * (1 - xor)
    # J(b | r) / theta(b) = P(r | b) / P(r) = 2 P(r | b)
    epsilon = 2 * max(abs(math.log(2 * kept)), abs(math.log(2 * (1 - kept))))
    privacy = math.log(float(noisy.max(axis=0).max() / noisy.min()))
    allowed = membership_advantage_bound(1e-9)
    comparison = compare_mechanisms((xor[0], xor[1]), ([0.5, 0.5], [0.5, 0.5]))
    return PaperStatement(
        "Proposition 10",
        f"posteriors of each person within e^(+-eps/2) of the prior (here within {ratio:.3g} of it) give eps-DP",
        "the same bounds on the joint posterior give eps-DP",
        "two people by fair coins, a third always in; the release is the xor of the two. The advantage between "
        "neighbours, against what epsilon = 1e-9 allows; right: the xor released with noise",
        comparison.excess_1, "<=", allowed, _nats(privacy), "<=", _nats(epsilon),
    )  # fmt: skip


def _theorem_12_risk_to_profile() -> PaperStatement:
    """A binary symmetric channel that tells less than an erasure channel under every prior, but not at epsilon = 0."""
    symmetric, erasure = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([[0.6, 0.4, 0.0], [0.0, 0.4, 0.6]])
    more = min(_information(q, erasure) - _information(q, symmetric) for q in _PRIORS)
    found = compare_mechanisms(tuple(symmetric), tuple(erasure))
    one = next(one for one in found.counterexamples if one.less_private == "first")
    return PaperStatement(
        "Theorem 12, (1) to (2) and (3)",
        f"at least as much risk under every prior (here by {more:.3g} nats or more) gives a privacy profile, and a "
        "weighted advantage, that are nowhere larger",
        "profiles in both directions, trade-off curves and weighted advantages have one order; risks do not decide it",
        "one person; a binary symmetric channel (.1) against an erasure channel (.4): delta at epsilon = 0; right: the "
        "weighted advantages at one prior and weight fail with it",
        one.delta_1, "<=", one.delta_2, one.advantage_1, ">=", one.advantage_2,
    )  # fmt: skip


def _theorem_12_profile_to_risk() -> PaperStatement:
    """Both bits through a channel, or one alone: neighbours differ in one bit, and the profiles are equal."""
    symmetric = np.array([[0.9, 0.1], [0.1, 0.9]])
    both = np.kron(symmetric, symmetric)  # rows 00, 01, 10, 11
    alone = np.kron(symmetric, np.ones((2, 1)))
    pairs = ((0, 1), (2, 3), (0, 2), (1, 3))
    excess = max(
        float(compare_mechanisms((both[i], both[j]), (alone[0], alone[2])).excess_1.upper) for i, j in pairs
    )  # fmt: skip
    lost = [math.log(4.0) - _mutual_information(np.full(4, 0.25), one) for one in (both, alone)]
    return PaperStatement(
        "Theorem 12, (2) to (1)",
        f"a privacy profile that is nowhere larger (here by {rounded_up(excess, 2)}) gives at least as much risk",
        "for one pair of memberships it does if the profiles are ordered by garbling; with more people it does not",
        "two people by fair coins; both bits through a binary symmetric channel (.1), or the first alone; right: the "
        "second release is the first with a bit left out",
        _nats(lost[0]), ">=", _nats(lost[1]), _nats(lost[1]), ">=", _nats(lost[0]),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Enumerated:
    """Joint risk H(B | X) and entropy H(X) of releases without noise."""

    risk: float
    output: float


def _without_noise(model: CombinedReleases) -> _Enumerated:
    """Both, by the posterior of every release that can happen."""
    k = model.n_people
    b = (np.arange(1, 2**k)[:, None] >> np.arange(k)) & 1 == 1
    chance = np.exp(model.prior.log_probability(b))
    released = [one.frequencies(b) for one in model.releases]
    found = membership_posterior(model, released)
    entropy = found.entropy
    evidence = found.log_evidence
    assert entropy is not None
    assert evidence is not None
    return _Enumerated(float(chance @ np.asarray(entropy.value)), -float(chance @ np.asarray(evidence.value)))


def _entropy_of(found: MembershipPosterior) -> Estimate:
    assert found.entropy is not None  # of an enumeration
    return found.entropy


def _marginals(found: MembershipPosterior) -> FloatArray:
    return np.asarray(found.probabilities.value, dtype=np.float64)


def _sum_of_entropies(chances: FloatArray) -> Estimate:
    return _nats(sum(_entropy(np.array([p, 1 - p])) for p in chances.tolist()))


def _entropy(p: FloatArray) -> float:
    positive = p[p > 0]
    return -float((positive * np.log(positive)).sum())


def _mutual_information(prior: FloatArray, rows: FloatArray) -> float:
    joint = prior[:, None] * rows
    return _entropy(joint.sum(axis=0)) + _entropy(prior) - _entropy(joint)


def _information(q: float, rows: FloatArray) -> float:
    return _mutual_information(np.array([1 - q, q]), rows)


def _marginal_ratio(rows: FloatArray) -> float:
    """The largest posterior of one of two people over its prior 1/2, or the reverse, of rows 00, 01, 10, 11."""
    joint = rows / 4
    tables = (joint.reshape(2, 2, -1).sum(axis=1), joint.reshape(2, 2, -1).sum(axis=0))
    ratios = np.concatenate([2 * (one / one.sum(axis=0)).ravel() for one in tables])
    return float(max(ratios.max(), (1 / ratios).max()))


def _nats(value: float) -> Estimate:
    """A sum of a few entropies."""
    return exact(value, _SUM_ERROR * (abs(value) + 4.0), unit="nats", method="sum over memberships")
