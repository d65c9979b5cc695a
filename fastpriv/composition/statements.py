"""What releases promise, in sentences: how many members an attacker finds, and how sure the accusations are.

Notation: an attacker accuses a share alpha of those who are not members, and finds a share beta' of the members, at
most the true positive rate of the best test at alpha. With a share pi of members among all, the precision is

    pi beta' / (pi beta' + (1 - pi) alpha),

which rises with beta'; the lift is the precision over pi.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate, Result
from ..base.numerics import next_above, next_below, rounded_down, rounded_outward
from ..base.table import html_table
from .advantages import advantage, reconstruction_robustness
from .compositions import Composition, certified_curves, compose
from .trade_off import true_positive_rate

# bound: proved - odds by four roundings, and their share by three
_ROUNDINGS = 10
# bound: none - how near to 1 / n a share is that is written as "1 in n"
_NEARLY_WHOLE = 1e-9
_DIGITS = 3  # significant digits of the numbers in the sentences, rounded up


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RiskStatement(Result):
    """A risk as sentences, and the numbers in them with their bounds; of releases, each number is a proved upper bound.

    Parameters
    ----------
    sentences, assumed, from_data : tuple of str
        The sentences; what they rest on; and that part of it which was read off the data.
    settings : dict
        Of releases: ``prior``, ``false_positive_rate``, ``candidates`` and ``delta``.
    true_positive_rate, precision, lift, advantage : Estimate, optional
        The share of the members that are found; the share of members among those accused, and that over the prior; the
        largest true positive rate less the false one.
    guess, reconstruction, information : Estimate, optional
        The chance of the best guess of a value, under its distribution, and among values that are equally likely before
        the release; what a release tells about it.
    epsilon, mu : Estimate, optional
        Parameters of differential privacy, epsilon in nats.

    Examples
    --------
    >>> import fastpriv
    >>> said = fastpriv.risk.statement(fastpriv.assess([31, 40, 40, 58], sigma=[100], epsilon=[1]))
    >>> said.sentences[1].partition(", ")[2]
    'somebody who knows everything but one value guesses it right at most 50.1 times in 100 (50 without the release).'
    """

    sentences: tuple[str, ...]
    assumed: tuple[str, ...]
    from_data: tuple[str, ...] = ()
    settings: dict[str, float] = field(default_factory=dict)
    true_positive_rate: Estimate | None = None
    precision: Estimate | None = None
    lift: Estimate | None = None
    advantage: Estimate | None = None
    guess: Estimate | None = None
    reconstruction: Estimate | None = None
    information: Estimate | None = None
    epsilon: Estimate | None = None
    mu: Estimate | None = None

    @classmethod
    def of_attack(
        cls, true_positive_rate: Estimate, false_positive_rate: float, advantage: Estimate, prior: float, record: str,
        sample: str,
    ) -> RiskStatement:
        """What an attack attained on a ``sample``, from its true positive rate at a false one and its advantage."""
        precision, lift = _precision_and_lift(true_positive_rate, prior, false_positive_rate)
        shown = [f"{rounded_down(100.0 * float(item.lower), _DIGITS)} to {_percent(item)}"
                 for item in (true_positive_rate, precision, advantage)]
        texts = (
            f"This attack, which wrongly accuses at most {_one_in(false_positive_rate)} of the {record}s that are not "
            f"in the data, finds {shown[0]} % of those that are.",
            f"Where {_percentage(prior)} of the {record}s asked about are members, {shown[1]} % of the accused are.",
            f"Its advantage, found less wrongly accused, is {shown[2]} percentage points at the best threshold.",
        )
        assumed = f"Each interval is at confidence {true_positive_rate.confidence:g}; other attacks may find more."
        return cls(texts, (assumed, sample), (), {}, true_positive_rate, precision, lift, advantage)

    def assumptions(self) -> list[str]:
        """What the numbers rest on, what was read off the data first."""
        return [*self.from_data, *self.assumed]

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def number_rows(self) -> list[list[str]]:
        """The numbers, for tables: what it is, value, lower and upper bound, kind of the bounds."""
        return [[name.replace("_", " "), *(f"{number:.6g}" for number in item.floats()), item.kind]
                for name, item in self.estimates().items()]

    def _repr_html_(self) -> str:
        table = html_table(["quantity", "value", "lower", "upper", "bounds"], self.number_rows(), "The numbers")
        return "".join(f"<p>{escape(text)}</p>" for text in (*self.sentences, *self.assumptions())) + table


ASSUMPTIONS = (
    "The attacker knows everything but the one contribution, and everything that was released; the mechanism is the "
    "one that was described, run as described."
)  # what every number of a statement rests on


def statement(
    p: Any, q: Any = None, *, prior: float = 0.01, false_positive_rate: float = 1e-3, candidates: int = 10,
    delta: float = 1e-5, record: str = "record",
) -> RiskStatement:
    """What a release, or many of them, tells an attacker, as numbers with bounds and as sentences.

    Parameters
    ----------
    p, q
        As ``trade_off_curve``: a mechanism, a channel, a ``Composition``, or two distributions, P with the record and Q
        without it. The best of several runs is ``compose(pairs.Selected(base, runs))``: choosing has its price in it.
        Or, alone, an ``Assessment``, the ``AttackEvaluation`` of an attack or the ``ScoreAudit`` of an audit, which
        take ``prior`` and ``record`` of what follows.
    prior : float, default 0.01
        The share of members among those that are asked about, between 0 and 1, both excluded.
    false_positive_rate : float, default 1e-3
        The share of the others that the attacker accuses, positive and at most 1.
    candidates : int, default 10
        The number of values of a record that are equally likely before the release, at least 2.
    delta : float, default 1e-5
        The delta at which epsilon is told, from 0 to 1.
    record : str, default "record"
        What one contribution is called: "patient", "customer".

    Returns
    -------
    RiskStatement
        Printed, sentences; in a notebook, these and the numbers; ``to_dict`` for JSON, ``to_frame`` for tables.

    Raises
    ------
    DomainError, ShapeError
        As ``trade_off_curve``, and for numbers out of range.

    Notes
    -----
    Both orders of a pair count where it has no order. Precision and lift are those at this false positive rate itself:
    who accuses fewer may be surer of them.

    **Accuracy** that of ``true_positive_rate``, ``advantage`` and ``Composition.epsilon``;
    ``tests/enclosures/test_risk.py``.

    Source: Jayaraman, Wang, Knipmeyer, Gu and Evans 2021 (precision at a prior); Hayes, Mahloujifar and Balle 2023
    (reconstruction among equally likely values).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, risk
    >>> said = risk.statement(GaussianMechanism(2.0, 1.0), record="patient")
    >>> said.sentences[-1]
    'In the words of differential privacy: epsilon is at most 2 at delta = 1e-05.'
    >>> round(said.lift.value, 3)
    4.62
    """
    pi = validate.scalar("prior", prior, "between 0 and 1, both excluded", lambda x: (x > 0) & (x < 1))
    alpha = validate.scalar("false_positive_rate", false_positive_rate, "positive and at most 1",
                            lambda x: (x > 0) & (x <= 1))
    number = validate.count("candidates", candidates, 2, 2**53)
    level = validate.scalar("delta", delta, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
    if not validate.text("record", record).strip():
        raise DomainError(f"record must be a word; got {record!r}. Say what one contribution is, such as 'patient'.")
    if q is None and hasattr(p, "risk_statement"):  # what studies return
        measured: RiskStatement = p.risk_statement(prior=pi, record=record)
        return measured
    certified_curves(p, q)  # raises, with the names of both
    releases = p if isinstance(p, Composition) else compose(p if q is None else (p, q))
    rate = _larger([true_positive_rate(releases, None, alpha, null=null) for null in ("p", "q")])
    guess = _larger([reconstruction_robustness(item, None, 1.0 / number) for item in (releases, releases.reversed)])
    precision, lift = _precision_and_lift(rate, pi, alpha)
    largest, epsilon = advantage(releases), releases.epsilon(level, direction="worst")
    people, others = f"{record}s", _one_in(alpha)
    texts = (
        f"An attacker who wrongly accuses at most {others} of the {people} that are not in the data finds at most "
        f"{_percent(rate)} % of those that are.",
        f"Where {_percentage(pi)} of the {people} asked about are in the data, and the attacker wrongly accuses "
        f"{others} of the others, at most {_percent(precision)} % of those accused are in the data: {_rounded(lift)} "
        "times as many as among all.",
        f"Among {number:,} values of a {record} that are equally likely before the release, at most {_percent(guess)} "
        f"% of guesses are right, in place of {_percentage(1 / number)}.",
        "The share of those in the data that an attack finds exceeds the share of the others that it accuses by at "
        f"most {_percent(largest)} percentage points.",
        f"In the words of differential privacy: epsilon is at most {_rounded(epsilon)} at delta = {level:g}.",
    )
    settings = {"prior": pi, "false_positive_rate": alpha, "candidates": number, "delta": level}
    return RiskStatement(
        texts, (ASSUMPTIONS,), (), settings, rate, precision, lift, largest, reconstruction=guess, epsilon=epsilon
    )


def _precision_and_lift(rate: Estimate, pi: float, alpha: float) -> tuple[Estimate, Estimate]:
    """The share of members among the accused, with a share pi of members and a rate at alpha; its lift."""

    def precision_at(share: float) -> float:
        odds = pi / (1.0 - pi) * (share / alpha)  # in this order without underflow
        return odds / (1.0 + odds) if odds < 1.0 else 1.0 / (1.0 + 1.0 / odds)

    precision = _at_rate(rate, precision_at)
    return precision, _at_rate(precision, lambda share: share / pi, "1")


def _larger(items: list[Estimate]) -> Estimate:
    """The largest, with the largest bounds."""
    value, lower, upper = (max(ends) for ends in zip(*(item.floats() for item in items), strict=True))
    return Estimate(value, lower, upper, kind="certified", unit=items[0].unit, method=items[0].method)


def _at_rate(rate: Estimate, rising: Any, unit: Any = "probability") -> Estimate:
    """A rising function of an estimate, rounded outward."""
    value, lower, upper = (float(rising(end)) for end in rate.floats())
    upper = float(next_above(upper, _ROUNDINGS))
    upper = min(upper, 1.0) if unit == "probability" else upper
    lower = max(0.0, float(next_below(lower, _ROUNDINGS)))
    words: Any = {"kind": rate.kind, "confidence": rate.confidence, "method": rate.method}
    return Estimate(value, min(lower, value), max(upper, value), unit=unit, **words)


def _rounded(item: Estimate) -> str:
    return rounded_outward(float(np.max(item.upper)), f".{_DIGITS}g", below=False)


def _percent(item: Estimate) -> str:
    share = min(float(next_above(100.0 * float(np.max(item.upper)))), 100.0)
    return rounded_outward(share, f".{_DIGITS}g", below=False)


def _percentage(share: float) -> str:
    return f"{100.0 * share:.3g} %"


def _one_in(share: float) -> str:
    number = round(min(1.0 / share, 2.0**53))
    return f"1 in {number:,}" if abs(share * number - 1.0) < _NEARLY_WHOLE and number > 1 else _percentage(share)
