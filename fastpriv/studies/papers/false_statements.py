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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ...base import validate
from ...base.estimate import Estimate, Result, exact
from ...base.numerics import UNIT_ROUNDOFF, FloatArray, rounded_up
from ...base.table import CellType, Table
from ...composition import compare_mechanisms
from ...conversions import membership_advantage_from_dp
from ..membership.member_posteriors import MembershipPosterior, membership_posterior
from ..membership.noises import GeneratorNoise, LaplaceNoise, NoNoise
from ..membership.panels import Panel
from ..membership.priors import BernoulliMembership, FixedSizeMembership, all_memberships
from ..membership.releases import CombinedReleases, FrequencyRelease
from .texts import texts_of

# bound: proved - relative to a sum of at most 64 terms of one sign, each a logarithm and two products, and of three
#    such sums: 64 + 3 + 5 roundings, doubled
_SUM_ERROR = 256 * UNIT_ROUNDOFF
_SEEDS = 1000  # releases of the generator that are attacked
_PRIORS = np.array([(1 - q, q) for q in np.linspace(0.01, 0.99, 99)])  # of the channels of theorem 12

Sides = tuple[Estimate, str, Estimate]  # of a relation
# Sides of the printed statement and of its right form in a game, and numbers that the texts name.
Game = tuple[Sides, Sides] | tuple[Sides, Sides, dict[str, Any]]


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
        return not _may_hold(self.printed_left, self.printed_relation, self.printed_right)

    @property
    def right_form_holds(self) -> bool:
        """Whether the bounds agree with the right form."""
        return _may_hold(self.right_left, self.right_relation, self.right_right)

    @property
    def verdict(self) -> str:
        """What a table says of the printed statement."""
        return "false" if self.fails else "holds here"

    def sides(self, form: Literal["printed", "right"]) -> tuple[float, str, float]:
        """Left side, relation and right side, without their bounds."""
        left, relation, right = (getattr(self, f"{form}_{part}") for part in ("left", "relation", "right"))
        return float(left.value), relation, float(right.value)

    def relation(self, form: Literal["printed", "right"]) -> str:
        """Both sides and the relation as text."""
        return "{:.6g} {} {:.6g}".format(*self.sides(form))


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
        statements = {statement.name: statement for statement in self.statements}
        return statements[validate.choice("name", name, tuple(statements))]

    def column_types(self) -> dict[str, CellType]:
        """The columns of the table."""
        sides = (f"{form} {part}" for form in ("printed", "right") for part in ("left", "relation", "right"))
        return dict.fromkeys(("statement", "verdict", "printed", "right form", "counterexample", *sides), "")

    def rows(self) -> list[tuple[Any, ...]]:
        """One row a statement; numbers are the values, without their bounds."""
        return [
            (
                each.name, each.verdict, each.printed, each.right, each.counterexample,
                *each.sides("printed"), *each.sides("right"),
            )
            for each in self.statements
        ]

    def __repr__(self) -> str:
        return "\n".join(
            f"{each.name}: {each.printed}\n    {each.verdict}: {each.relation('printed')}; right: {each.right} "
            f"({each.relation('right')})"
            for each in self.statements
        )


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
    texts = texts_of("statements")
    return PaperStatements(tuple(make_statement(name, texts[name], *game()) for name, game in _GAMES.items()))


def make_statement(
    name: str, texts: Mapping[str, str], printed: Sides, right: Sides, numbers: Mapping[str, Any] | None = None
) -> PaperStatement:
    """A statement of these texts, into which the numbers are filled."""
    words = {key: text.format_map(numbers or {}) for key, text in texts.items()}
    return PaperStatement(name, words["printed"], words["right"], words["counterexample"], *printed, *right)


def _may_hold(left: Estimate, relation: str, right: Estimate) -> bool:
    """Whether the bounds leave it possible that the relation holds."""
    not_above, not_below = bool(left.lower <= right.upper), bool(left.upper >= right.lower)
    return {"=": not_above and not_below, "<=": not_above, ">=": not_below}[relation]


def _lemma_3() -> Game:
    """Two equal people, one of them a member: the release says nothing, and who is in is one fair coin."""
    model = FrequencyRelease(Panel([[1], [1]]), FixedSizeMembership(1))
    result = membership_posterior(model, [1.0])
    chances = np.asarray(result.probabilities.value, dtype=np.float64)
    loss = _nats(sum(_entropy(np.array([p, 1 - p])) for p in chances.tolist()))
    joint = _entropy_of(result)
    return (loss, "=", joint), (loss, "=", _nats(2 * math.log(2.0)))


def _theorem_5_identity() -> Game:
    """Two attributes of four people, released one by one without noise, and together."""
    panel, prior = Panel([[1, 1], [1, 0], [0, 1], [1, 1]]), BernoulliMembership(0.5)
    each = [FrequencyRelease(panel, prior, NoNoise(), attributes=[j]) for j in (0, 1)]
    joint_risk, joint_output = _without_noise(CombinedReleases(each))
    risks, outputs = zip(*(_without_noise(CombinedReleases([item])) for item in each), strict=True)
    total_correlation = sum(outputs) - joint_output
    parts = sum(risks)
    # the releases are functions of b: given it, their total correlation is 0
    right = parts - float(prior.entropy(4).value) + total_correlation
    return (_nats(joint_risk), ">=", _nats(parts)), (_nats(joint_risk), "=", _nats(right))


def _theorem_5_bound() -> Game:
    """The covariance of a membership of fixed size is singular, and its logarithm -infinity."""
    model = FrequencyRelease(Panel([[1], [1]]), FixedSizeMembership(1))
    result = membership_posterior(model, [1.0])
    entropy = _entropy_of(result)
    chance = float(np.asarray(result.probabilities.value)[0])  # b_2 is 1 - b_1
    covariance = chance * (1.0 - chance) * np.array([[1.0, -1.0], [-1.0, 1.0]])
    corrected = 0.5 * math.log(float(np.linalg.det(2 * math.pi * math.e * (covariance + np.eye(2) / 12))))
    singular = exact(-math.inf, 0.0, unit="nats", method="logarithm of a singular determinant")
    return (entropy, "<=", singular), (entropy, "<=", _nats(corrected))


def _proposition_7_if() -> Game:
    """A subjective prior that is right on average, and is pure noise."""
    truth, chance = 2 * math.log(2.0), 0.9
    loss = -math.log(chance) - math.log(1 - chance)  # of both people, over both priors
    return (_nats(loss), "<=", _nats(truth)), (_nats(truth), "<=", _nats(truth))


def _proposition_7_only_if() -> Game:
    """A subjective prior that knows something, and is wrong on average: (99, 1) or (40, 60) for the two memberships."""
    beliefs = np.array([[0.99, 0.01], [0.4, 0.6]])
    loss = -math.log(0.99) - math.log(0.6)  # both people of each membership, of which each has chance 1/2
    mean = 0.5 * (beliefs[0, 0] + beliefs[1, 0])
    truth = 2 * math.log(2.0)
    joint = 0.5 * beliefs  # the signal that is sent by these chances, read by Bayes' rule
    given_signal = 2 * (_entropy(joint) - _entropy(joint.sum(axis=0)))
    average = exact(mean, 4 * UNIT_ROUNDOFF, unit="probability", method="mean")
    half = exact(0.5, 0.0, unit="probability", method="closed form")
    return (average, "=", half), (_nats(given_signal), "<=", _nats(truth)), {"loss": loss, "truth": truth}


def _proposition_8() -> Game:
    """One seed for two attributes: the difference of the frequencies is released without noise."""
    panel, prior = Panel([[1, 0], [0, 1]]), FixedSizeMembership(1)

    def shift(membership: Any, seeds: FloatArray) -> FloatArray:
        return np.repeat(seeds - 0.5, 2, axis=1)

    result = FrequencyRelease(panel, prior, GeneratorNoise(shift, 1)).simulate(_SEEDS, rng=1)
    claims = result.released[:, 0] > result.released[:, 1]
    first = result.membership[:, 0]
    advantage = float(claims[first].mean() - claims[~first].mean())
    dithered = FrequencyRelease(panel, prior, GeneratorNoise(shift, 1, LaplaceNoise(0.5))).epsilon()
    attained = exact(advantage, 0.0, unit="1", method="all releases told apart")
    any_finite = exact(1e300, 0.0, unit="nats", method="any finite number")
    allowed = membership_advantage_from_dp(5.0, 0.1)
    return (attained, "<=", allowed), (dithered, "<=", any_finite), {"releases": _SEEDS}


def _proposition_10() -> Game:
    """The release is whether both or none of two people are in, and a third one always is."""
    xor = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])  # rows 00, 01, 10, 11
    ratio = _marginal_ratio(xor)
    selected = 0.6  # chance that the release is right; else it is turned around
    noisy = selected * xor + (1 - selected) * (1 - xor)
    # J(b | r) / theta(b) = P(r | b) / P(r) = 2 P(r | b)
    epsilon = 2 * max(abs(math.log(2 * selected)), abs(math.log(2 * (1 - selected))))
    privacy = math.log(float(noisy.max(axis=0).max() / noisy.min()))
    allowed = membership_advantage_from_dp(1e-9)
    comparison = compare_mechanisms((xor[0], xor[1]), ([0.5, 0.5], [0.5, 0.5]))
    return (comparison.excess_1, "<=", allowed), (_nats(privacy), "<=", _nats(epsilon)), {"ratio": ratio}


def _theorem_12_risk_to_profile() -> Game:
    """A binary symmetric channel that tells less than an erasure channel under every prior, but not at epsilon = 0."""
    symmetric, erasure = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([[0.6, 0.4, 0.0], [0.0, 0.4, 0.6]])
    more = min(_mutual_information(prior, erasure) - _mutual_information(prior, symmetric) for prior in _PRIORS)
    result = compare_mechanisms(tuple(symmetric), tuple(erasure))
    first = next(example for example in result.counterexamples if example.less_private == "first")
    printed, right = (first.delta_1, "<=", first.delta_2), (first.advantage_1, ">=", first.advantage_2)
    return printed, right, {"more": more}


def _theorem_12_profile_to_risk() -> Game:
    """Both bits through a channel, or one alone: neighbours differ in one bit, and the profiles are equal."""
    symmetric = np.array([[0.9, 0.1], [0.1, 0.9]])
    both = np.kron(symmetric, symmetric)  # rows 00, 01, 10, 11
    alone = np.kron(symmetric, np.ones((2, 1)))
    pairs = ((0, 1), (2, 3), (0, 2), (1, 3))
    excess = max(float(compare_mechanisms((both[i], both[j]), (alone[0], alone[2])).excess_1.upper) for i, j in pairs)
    lost = [math.log(4.0) - _mutual_information(np.full(4, 0.25), side) for side in (both, alone)]
    more, less = _nats(lost[0]), _nats(lost[1])
    return (more, ">=", less), (less, ">=", more), {"excess": rounded_up(excess, 2)}


def _without_noise(model: CombinedReleases) -> tuple[float, float]:
    """Joint risk H(B | X) and entropy H(X) of releases without noise, by the posterior of every possible release."""
    b, logs = all_memberships(model.prior, model.n_people)
    chance = np.exp(logs)
    posterior = membership_posterior(model, [release.frequencies(b) for release in model.releases])
    evidence = posterior.log_evidence
    assert evidence is not None
    return float(chance @ np.asarray(_entropy_of(posterior).value)), -float(chance @ np.asarray(evidence.value))


def _entropy_of(posterior: MembershipPosterior) -> Estimate:
    assert posterior.entropy is not None  # an enumeration always has it
    return posterior.entropy


def _entropy(p: FloatArray) -> float:
    positive = p[p > 0]
    return -float((positive * np.log(positive)).sum())


def _mutual_information(prior: FloatArray, rows: FloatArray) -> float:
    joint = prior[:, None] * rows
    return _entropy(joint.sum(axis=0)) + _entropy(prior) - _entropy(joint)


def _marginal_ratio(rows: FloatArray) -> float:
    """The largest posterior of one of two people over its prior 1/2, or the reverse, of rows 00, 01, 10, 11."""
    joint = rows / 4
    tables = (joint.reshape(2, 2, -1).sum(axis=1), joint.reshape(2, 2, -1).sum(axis=0))
    ratios = np.concatenate([2 * (table / table.sum(axis=0)).ravel() for table in tables])
    return float(max(ratios.max(), (1 / ratios).max()))


def _nats(value: float) -> Estimate:
    """A sum of a few entropies."""
    return exact(value, _SUM_ERROR * (abs(value) + 4.0), unit="nats", method="sum over memberships")


# Every statement by its number in the paper, in the order of the paper.
_GAMES: dict[str, Callable[[], Game]] = {
    "Lemma 3": _lemma_3,
    "Theorem 5, identity": _theorem_5_identity,
    "Theorem 5, bound": _theorem_5_bound,
    "Proposition 7, if": _proposition_7_if,
    "Proposition 7, only if": _proposition_7_only_if,
    "Proposition 8": _proposition_8,
    "Proposition 10": _proposition_10,
    "Theorem 12, (1) to (2) and (3)": _theorem_12_risk_to_profile,
    "Theorem 12, (2) to (1)": _theorem_12_profile_to_risk,
}
