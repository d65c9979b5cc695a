"""Claims of privacy and accuracy at once: (epsilon, beta, alpha)-MBP and -ABP.

Both ask for a bound epsilon on the leakage and for standard accuracy alpha with confidence 1 - beta. What is known of
each is an interval; the claim holds when both intervals lie below, fails when one lies above, and is undecided else.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

from ... import _validate
from ...errors import DomainError, ShapeError
from ...estimate import KINDS, Estimate

__all__ = ["Verdict", "abp_claim", "mbp_claim"]



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
        The least that is claimed of the bounds that the answer rests on.
    confidence : float or None
        Of the answer: None where no bound that it rests on is statistical.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, notions
    >>> miss = notions.pac_accuracy(GaussianMechanism(1.0), 0.0, 0.0, alpha=2.0)
    >>> print(notions.mbp_claim(0.4, miss, epsilon=0.5, beta=0.05))
    holds: MBP xi is at most 0.4, claimed 0.5; a miss has a probability of at most 0.04551, claimed 0.05
    """

    answer: str
    reasons: tuple[str, ...]
    kind: str
    confidence: float | None

    def __str__(self) -> str:
        level = "" if self.confidence is None else f" (confidence {self.confidence:.6g})"
        return f"{self.answer}{level}: {'; '.join(self.reasons)}"


def mbp_claim(leakage: Any, miss: Estimate, *, epsilon: float, beta: float) -> Verdict:
    """Whether a mechanism is (epsilon, beta, alpha)-MBP: xi at most epsilon, and a miss of probability beta at most.

    Parameters
    ----------
    leakage : Estimate, or a number
        Its maximum Bayesian privacy xi in nats, from ``mbp_xi``; a number counts as exact.
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

    **Accuracy** that of the two estimates; ``tests/properties/test_pac_claims.py``.

    Source: Zhang and Chen, Bridging Privacy and Robustness, definition IV.5.

    Examples
    --------
    >>> from fastpriv import Estimate, notions
    >>> seen = Estimate(0.04, 0.03, 0.06, kind="statistical", unit="probability", method="counted", confidence=0.95)
    >>> notions.mbp_claim(0.4, seen, epsilon=0.5, beta=0.05).answer
    'undecided'
    >>> notions.mbp_claim(0.6, seen, epsilon=0.5, beta=0.05).answer
    'fails'
    """
    claimed = _validate.scalar("epsilon", epsilon, "at least 0", lambda x: x >= 0)
    return _verdict("MBP xi", _known(leakage, "nats"), claimed, miss, beta)


def abp_claim(leakage: Any, miss: Estimate, *, epsilon: float, beta: float) -> Verdict:
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

    Raises
    ------
    DomainError, ShapeError
        As ``mbp_claim``.

    Notes
    -----
    No mechanism leaks more than sqrt(log 2) = 0.8326, so that a claim above it is one of accuracy alone.

    **Accuracy** that of the two estimates; ``tests/properties/test_pac_claims.py``.

    Source: Zhang and Chen, definition IV.2.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> mechanism, prior = GaussianMechanism(1.0), Pmf([0.0, 1.0], [0.5, 0.5])
    >>> shift = notions.abp(prior, mechanism).maximum
    >>> notions.abp_claim(shift, notions.pac_accuracy(mechanism, 0.0, 0.0, 1.0), epsilon=0.5, beta=0.3).answer
    'fails'
    """
    claimed = _validate.scalar("epsilon", epsilon, "at least 0", lambda x: x >= 0)
    return _verdict("ABP", _known(leakage, "1"), claimed, miss, beta)


def _known(leakage: Any, unit: Any) -> Estimate:
    if isinstance(leakage, Estimate):
        found = leakage.to("nats") if (leakage.unit, unit) == ("bits", "nats") else leakage
        if found.unit != unit:
            raise DomainError(f"leakage must be in the unit {unit!r}; got {found.unit!r}. Pass the leakage itself.")
        if found.shape != ():
            raise ShapeError(f"leakage must be a single number; got shape {found.shape}. Take one entry of it.")
        return found
    number = _validate.scalar("leakage", leakage, "at least 0", lambda x: x >= 0)
    return Estimate(number, number, number, kind="exact", unit=unit, method="given")


def _verdict(name: str, leakage: Estimate, epsilon: float, miss: Any, beta: float) -> Verdict:
    _validate.instance("miss", miss, Estimate)
    if miss.unit != "probability":
        raise DomainError(f"miss must be a probability; got the unit {miss.unit!r}. Pass what pac_accuracy returns.")
    if miss.shape != ():
        raise ShapeError(f"miss must be of one alpha; got shape {miss.shape}. Take the entry of the claimed alpha.")
    allowed = _validate.scalar("beta", beta, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
    parts = [
        (f"{name} is", "claimed", leakage, epsilon), ("a miss has a probability of", "claimed", miss, allowed),
    ]  # fmt: skip
    states, reasons = [], []
    for what, word, found, bound in parts:
        state = "holds" if found.upper <= bound else "fails" if found.lower > bound else "undecided"
        said = {
            "holds": f"at most {_shown(found.upper, ROUND_CEILING)}",
            "fails": f"at least {_shown(found.lower, ROUND_FLOOR)}",
            "undecided": f"between {_shown(found.lower, ROUND_FLOOR)} and {_shown(found.upper, ROUND_CEILING)}",
        }[state]
        states.append(state)
        reasons.append(f"{what} {said}, {word} {bound:.4g}")
    answer = "fails" if "fails" in states else "undecided" if "undecided" in states else "holds"
    used = [found for state, (_, _, found, _) in zip(states, parts, strict=True) if state == answer]
    if answer == "fails":  # one that is proved is enough
        used = [min(used, key=lambda found: (KINDS.index(found.kind), -(found.confidence or 1.0)))]
    kind = max((found.kind for found in used), key=KINDS.index)
    errors = [1.0 - found.confidence for found in used if found.confidence is not None]
    return Verdict(answer, tuple(reasons), kind, max(0.0, 1.0 - sum(errors)) if errors else None)


def _shown(bound: float, direction: str) -> str:
    """Four digits, rounded outward."""
    return f"{float(Context(prec=4, rounding=direction).create_decimal(repr(float(bound)))):.4g}"
