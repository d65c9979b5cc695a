"""Claims of privacy and accuracy at once: (epsilon, beta, alpha)-MBP and -ABP.

Both ask for a bound epsilon on the leakage and for standard accuracy alpha with confidence 1 - beta. Each of the two is
known by an interval: the claim holds if both intervals lie below the claimed bounds, fails if one lies above, and is
undecided otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...base import validate
from ...base.errors import DomainError, ShapeError
from ...base.estimate import KINDS, Estimate, Kind, Unit
from ...base.numerics import rounded_down, rounded_up

Answer: TypeAlias = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a claim holds, and why.

    Parameters
    ----------
    answer : {"holds", "fails", "undecided"}
        What the bounds say.
    reasons : tuple of str
        One sentence for the leakage, one for the accuracy.
    kind : {"exact", "certified", "statistical", "heuristic"}
        The weakest kind of the bounds that the answer rests on.
    confidence : float or None
        Level of the answer; None if no bound that it rests on is statistical.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, notions
    >>> miss = notions.pac_accuracy(GaussianMechanism(1.0), 0.0, 0.0, alpha=2.0)
    >>> print(notions.mbp_claim(0.4, miss, epsilon=0.5, beta=0.05))
    holds: MBP xi is at most 0.4, claimed 0.5; a miss has a probability of at most 0.04551, claimed 0.05
    """

    answer: Answer
    reasons: tuple[str, ...]
    kind: Kind
    confidence: float | None

    def __str__(self) -> str:
        level = "" if self.confidence is None else f" (confidence {self.confidence:.6g})"
        return f"{self.answer}{level}: {'; '.join(self.reasons)}"


def mbp_claim(leakage: Estimate | float, miss: Estimate, *, epsilon: float, beta: float) -> Verdict:
    """Whether a mechanism is (epsilon, beta, alpha)-MBP: xi at most epsilon, and a miss of probability beta at most.

    Parameters
    ----------
    leakage : Estimate, or a number
        Its maximum Bayesian privacy xi in nats, ``mbp(...).xi``; a number counts as exact.
    miss : Estimate
        P(||M(d) - mu|| > alpha) for the one alpha of the claim, from ``pac_accuracy``.
    epsilon : float
        The claimed bound on xi, at least 0.
    beta : float
        The claimed bound on the probability of a miss, between 0 and 1.

    Returns
    -------
    Verdict
        ``answer`` is "holds", "fails" or "undecided"; ``reasons`` says why.

    Raises
    ------
    DomainError, ShapeError
        For claims outside these sets, NaN, other units, or arrays.

    Notes
    -----
    "Holds" rests on both bounds, so that the errors of two statistical ones add up.

    **Accuracy** that of the two estimates; ``tests/properties/test_pac_claims.py``. Source: Zhang and Chen, Bridging
    Privacy and Robustness, definition IV.5.

    Examples
    --------
    >>> from fastpriv import Estimate, notions
    >>> miss = Estimate(0.04, 0.03, 0.06, kind="statistical", unit="probability", method="counted", confidence=0.95)
    >>> notions.mbp_claim(0.4, miss, epsilon=0.5, beta=0.05).answer
    'undecided'
    >>> notions.mbp_claim(0.6, miss, epsilon=0.5, beta=0.05).answer
    'fails'
    """
    return _verdict("MBP xi", _single_number(leakage, "nats"), epsilon, miss, beta)


def abp_claim(leakage: Estimate | float, miss: Estimate, *, epsilon: float, beta: float) -> Verdict:
    """Whether a mechanism is (epsilon, beta, alpha)-ABP: ABP at most epsilon, and a miss of probability beta at most.

    Parameters
    ----------
    leakage : Estimate, or a number
        Its average Bayesian privacy, from ``abp``: ``.maximum``, ``.mean`` or one entry of ``.per_value``.
    miss, epsilon, beta
        As for ``mbp_claim``.

    Returns
    -------
    Verdict
        As for ``mbp_claim``.

    Notes
    -----
    No mechanism leaks more than sqrt(log 2) = 0.8326, so that a claim above it is one of accuracy alone.

    Raises as ``mbp_claim``. **Accuracy** that of the two estimates; ``tests/properties/test_pac_claims.py``. Source:
    Zhang and Chen, definition IV.2.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> mechanism, prior = GaussianMechanism(1.0), Pmf([0.0, 1.0], [0.5, 0.5])
    >>> shift = notions.abp(prior, mechanism).maximum
    >>> notions.abp_claim(shift, notions.pac_accuracy(mechanism, 0.0, 0.0, 1.0), epsilon=0.5, beta=0.3).answer
    'fails'
    """
    return _verdict("ABP", _single_number(leakage, "1"), epsilon, miss, beta)


def _single_number(leakage: Estimate | float, unit: Unit) -> Estimate:
    if isinstance(leakage, Estimate):
        converted = leakage.to("nats") if (leakage.unit, unit) == ("bits", "nats") else leakage
        if converted.unit != unit:
            raise DomainError(f"leakage must be in the unit {unit!r}; got {converted.unit!r}. Pass the leakage itself.")
        if converted.shape != ():
            raise ShapeError(f"leakage must be a single number; got shape {converted.shape}. Take one entry of it.")
        return converted
    number = validate.scalar("leakage", leakage, "at least 0", lambda x: x >= 0)
    return Estimate(number, number, number, kind="exact", unit=unit, method="given")


def _verdict(name: str, leakage: Estimate, epsilon: float, miss: Estimate, beta: float) -> Verdict:
    claimed = validate.scalar("epsilon", epsilon, "at least 0", lambda x: x >= 0)
    validate.instance("miss", miss, Estimate)
    if miss.unit != "probability":
        raise DomainError(f"miss must be a probability; got the unit {miss.unit!r}. Pass what pac_accuracy returns.")
    if miss.shape != ():
        raise ShapeError(f"miss must be of one alpha; got shape {miss.shape}. Take the entry of the claimed alpha.")
    allowed = validate.scalar("beta", beta, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
    parts = [(f"{name} is", leakage, claimed), ("a miss has a probability of", miss, allowed)]
    answers: list[Answer] = []
    reasons = []
    for subject, known, bound in parts:
        _, least, largest = known.floats()
        answer: Answer = "holds" if largest <= bound else "fails" if least > bound else "undecided"
        lower, upper = rounded_down(least, 4), rounded_up(largest, 4)
        words = {"holds": f"at most {upper}", "fails": f"at least {lower}", "undecided": f"between {lower} and {upper}"}
        answers.append(answer)
        reasons.append(f"{subject} {words[answer]}, claimed {bound:.4g}")
    overall: Answer = "fails" if "fails" in answers else "undecided" if "undecided" in answers else "holds"
    used = [known for answer, (_, known, _) in zip(answers, parts, strict=True) if answer == overall]
    if overall == "fails":  # one bound is enough: the one that claims most
        used = [min(used, key=lambda known: (KINDS.index(known.kind), -(known.confidence or 1.0)))]
    kind = max((known.kind for known in used), key=KINDS.index)
    errors = [1.0 - known.confidence for known in used if known.confidence is not None]
    return Verdict(overall, tuple(reasons), kind, max(0.0, 1.0 - sum(errors)) if errors else None)
