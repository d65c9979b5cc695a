"""What releases promise, in sentences: how many members an attacker finds, and how sure the accusations are.

Notation: an attacker accuses a share alpha of those who are not members, and finds a share beta' of the members, at
most the true positive rate of the best test at alpha. With a share pi of members among all, the precision is

    pi beta' / (pi beta' + (1 - pi) alpha),

which rises with beta'; the lift is the precision over pi.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate, Result
from ..base.numerics import next_above, next_below, rounded_outward
from .advantages import advantage, reconstruction_robustness
from .compositions import Composition, certified_curves, compose
from .trade_off import true_positive_rate

__all__ = ["ASSUMPTIONS", "RiskStatement", "statement"]

# bound: proved - odds by four roundings, and their share by three
_ROUNDINGS = 10
# bound: none - how near to 1 / n a share is that is written as "1 in n"
_NEARLY_WHOLE = 1e-9
_DIGITS = 3  # significant digits of the numbers in the sentences, rounded up


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RiskStatement(Result):
    """The risks of a release, each with certified bounds; printed, they are sentences whose numbers are rounded up.

    Parameters
    ----------
    false_positive_rate, prior, candidates, delta : float, int
        The settings: alpha, pi, k, and the delta of ``epsilon``.
    true_positive_rate : Estimate
        The share of the members that are found at alpha.
    precision, lift : Estimate
        The share of members among those accused, and that over pi.
    advantage : Estimate
        The true positive rate less the false one of the best attack.
    reconstruction : Estimate
        The probability of a right guess among k values that are equally likely before the release.
    epsilon : Estimate
        At delta, in nats.
    record : str
        What one contribution is called in the sentences.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, risk
    >>> risk.statement(GaussianMechanism(2.0, 1.0)).to_frame()["quantity"].tolist()
    ['true_positive_rate', 'precision', 'lift', 'advantage', 'reconstruction', 'epsilon']
    """

    false_positive_rate: float
    prior: float
    candidates: int
    delta: float
    true_positive_rate: Estimate
    precision: Estimate
    lift: Estimate
    advantage: Estimate
    reconstruction: Estimate
    epsilon: Estimate
    record: str

    def sentences(self) -> list[str]:
        """Five sentences for people who decide; every number is a proved upper bound, rounded up."""
        alpha, pi, k = self.false_positive_rate, self.prior, self.candidates
        people, others = f"{self.record}s", _one_in(alpha)
        return [
            f"An attacker who wrongly accuses at most {others} of the {people} that are not in the data finds at most "
            f"{_percent(self.true_positive_rate)} % of those that are.",
            f"Where {_percentage(pi)} of the {people} asked about are in the data, and the attacker wrongly accuses "
            f"{others} of the others, at most {_percent(self.precision)} % of those accused are in the data: "
            f"{_rounded(self.lift)} times as many as among all.",
            f"Among {k:,} values of a {self.record} that are equally likely before the release, at most "
            f"{_percent(self.reconstruction)} % of guesses are right, in place of {_percentage(1 / k)}.",
            "The share of those in the data that an attack finds exceeds the share of the others that it accuses by at "
            f"most {_percent(self.advantage)} percentage points.",
            f"In the words of differential privacy: epsilon is at most {_rounded(self.epsilon)} at delta = "
            f"{self.delta:g}.",
        ]

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_html_(self) -> str:
        from html import escape

        from ..base.table import html_table

        rows = [[name.replace("_", " "), *(f"{number:.6g}" for number in item.floats()), item.kind]
                for name, item in self.estimates().items()]
        table = html_table(["quantity", "value", "lower", "upper", "bounds"], rows, "The numbers")
        return "".join(f"<p>{escape(text)}</p>" for text in (*self.sentences(), ASSUMPTIONS)) + table


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
        Printed, five sentences; in a notebook, these and the numbers; ``to_dict`` for JSON, ``to_frame`` for tables.

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
    >>> said.sentences()[-1]
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
    certified_curves(p, q)  # raises, with the names of both
    releases = p if isinstance(p, Composition) else compose(p if q is None else (p, q))
    rate = _larger([true_positive_rate(releases, None, alpha, null=null) for null in ("p", "q")])
    guess = _larger([reconstruction_robustness(item, None, 1.0 / number) for item in (releases, releases.reversed)])

    def precision_at(share: float) -> float:
        odds = pi / (1.0 - pi) * (share / alpha)  # in this order without underflow
        return odds / (1.0 + odds) if odds < 1.0 else 1.0 / (1.0 + 1.0 / odds)

    precision = _at_rate(rate, precision_at)
    return RiskStatement(
        alpha, pi, number, level, rate, precision, _at_rate(precision, lambda share: share / pi, "1"),
        advantage(releases), guess, releases.epsilon(level, direction="worst"), record,
    )


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
    return Estimate(value, min(lower, value), max(upper, value), kind="certified", unit=unit, method=rate.method)


def _rounded(item: Estimate) -> str:
    return rounded_outward(float(np.max(item.upper)), f".{_DIGITS}g", below=False)


def _percent(item: Estimate) -> str:
    share = min(float(next_above(100.0 * float(np.max(item.upper)))), 100.0)
    return rounded_outward(share, f".{_DIGITS}g", below=False)


def _percentage(share: float) -> str:
    return f"{100.0 * share:.3g} %"


def _one_in(share: float) -> str:
    number = round(1.0 / share)
    return f"1 in {number:,}" if abs(share * number - 1.0) < _NEARLY_WHOLE and number > 1 else _percentage(share)
