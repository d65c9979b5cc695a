"""Outcomes of attacks on membership, as counts: of independent runs with one target each, or of one run with many.

The two differ in what is random. Of repeated runs each has its own randomness, so that true and false positives are
independent binomial counts. In one run with many targets the outcomes depend on each other through the one output;
what is random and independent are the coins that said which targets are in.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...base import validate
from ...base.errors import DomainError, ShapeError
from ...base.numerics import FloatArray
from ...base.remedies import first_false
from ...base.values import ValueObject

_MOST = 2**53  # the largest count: doubles tell whole numbers apart up to here


class _AuditCounts(ValueObject):
    """Counts of one shape, of which some are at most others."""

    __slots__ = ()

    def _set_counts(self, counts: tuple[ArrayLike, ...], pairs: tuple[tuple[int, int], ...]) -> None:
        """Check the counts, and that the first of each pair is at most the second; keep doubles of one shape."""
        names = self._fields
        totals = {pair[1] for pair in pairs}
        result = [
            validate.integers(name, count, 1 if i in totals else 0, _MOST).astype(np.float64)
            for i, (name, count) in enumerate(zip(names, counts, strict=True))
        ]
        try:
            result = [np.array(broadcast_array) for broadcast_array in np.broadcast_arrays(*result)]
        except ValueError:
            shapes = ", ".join(str(item.shape) for item in result)
            raise ShapeError(
                f"{names[0]} must be of a shape that broadcasts with the other counts; got {shapes}. Pass one entry "
                "an audit."
            ) from None
        for i, j in pairs:
            good = result[i] <= result[j]
            if not good.all():
                at, where = first_false(good)
                raise DomainError(
                    f"{names[i]} must be at most {names[j]}; got {result[i][at]:.0f} of {result[j][at]:.0f}{where}. "
                    "Check which count is which."
                )
        self._set(**dict(zip(names, result, strict=True)))

    def __repr__(self) -> str:
        shown = (f"{n.item():.0f}" if n.ndim == 0 else f"<array of shape {n.shape}>" for n in self._arrays())
        words = (f"{name}={text}" for name, text in zip(self._fields, shown, strict=True))
        return f"{type(self).__name__}({', '.join(words)})"


class RepeatedRuns(_AuditCounts):
    """Counts of an attack on independent runs, each with its target in (a member) or out.

    Parameters
    ----------
    true_positives, members : array_like of int
        Runs with the target in that the attack claimed, of how many; at least one member.
    false_positives, non_members : array_like of int
        Runs without the target that the attack claimed, of how many; at least one.

    Raises
    ------
    DomainError, ShapeError
        For counts that are no whole numbers, negative, or larger than their total; shapes that do not broadcast.

    Notes
    -----
    Arrays are one audit an entry; all four broadcast. The rule of the attack, its threshold included, must not have
    been chosen with these outcomes: ``audit_scores`` chooses one and pays for it. Targets of one and the same run are
    no independent runs: they are ``OneRun``.

    **Accuracy** the counts are kept exactly; ``tests/auditing/test_lower_bounds.py``.

    Source: Jagielski, Ullman and Oprea 2020.

    Examples
    --------
    >>> from fastpriv.auditing import RepeatedRuns
    >>> RepeatedRuns(430, 1000, 40, 1000)
    RepeatedRuns(true_positives=430, members=1000, false_positives=40, non_members=1000)
    """

    __slots__ = _fields = ("true_positives", "members", "false_positives", "non_members")

    true_positives: FloatArray
    members: FloatArray
    false_positives: FloatArray
    non_members: FloatArray

    def __init__(
        self, true_positives: ArrayLike, members: ArrayLike, false_positives: ArrayLike, non_members: ArrayLike
    ) -> None:
        self._set_counts((true_positives, members, false_positives, non_members), ((0, 1), (2, 3)))


class OneRun(_AuditCounts):
    """Counts of an attack on one run, into which each of many canaries came by the toss of a fair coin.

    Parameters
    ----------
    correct : array_like of int
        Guesses, "in" or "out", that were right.
    guesses : array_like of int
        Canaries for which the attack guessed; it abstained for the others. At least one.
    canaries : array_like of int, optional
        All canaries whose coins were tossed; by default as many as guesses.

    Raises
    ------
    DomainError, ShapeError
        For counts that are no whole numbers, negative, or larger than their total; shapes that do not broadcast.

    Notes
    -----
    Arrays are one audit an entry. The coins are independent and fair: with a fixed number of canaries that are in, no
    bound of this package holds. Where delta is positive, or a Gaussian or another mechanism is audited, the number of
    guesses must be fixed before the run; for delta = 0 the attack may choose it by the output.

    **Accuracy** the counts are kept exactly; ``tests/auditing/test_lower_bounds.py``.

    Source: Steinke, Nasr and Jagielski 2023, section 1.

    Examples
    --------
    >>> from fastpriv.auditing import OneRun
    >>> OneRun(correct=180, guesses=200, canaries=1000)
    OneRun(correct=180, guesses=200, canaries=1000)
    """

    __slots__ = _fields = ("correct", "guesses", "canaries")

    correct: FloatArray
    guesses: FloatArray
    canaries: FloatArray

    def __init__(self, correct: ArrayLike, guesses: ArrayLike, canaries: ArrayLike | None = None) -> None:
        self._set_counts((correct, guesses, guesses if canaries is None else canaries), ((0, 1), (1, 2)))


Outcomes = RepeatedRuns | OneRun
