"""What a study of protections found: estimates from attacks, exact values of the same updates, examples and tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...base import validate
from ...base.errors import DomainError
from ...base.estimate import Estimate, Result
from ...base.numerics import BoolArray, FloatArray, IntArray
from ...base.table import CellType, Table
from .privacy_estimates import BayesianPrivacyEstimate
from .protections import Protection

__all__ = [
    "ExactLeakage", "LeakageOutcome", "LeakageStudy", "ReconstructionExample", "guessing_remark", "outcome_numbers",
]  # fmt: skip


_GUESSING = "better than guessing"  # in the remark on attacks that are not


def guessing_remark(recovered: float, chance: float, models: int, confidence: float) -> str:
    """What to say of attacks that recover no more than names at random, or not enough more to tell; "" for others.

    Of independent models, each with a mean in [0, 1] that is ``chance`` under guesses, the mean exceeds ``recovered``
    with probability exp(-models KL(recovered || chance)) at most (Hoeffding 1963, theorem 1).
    """
    if recovered > chance:
        left = (1.0 - recovered) * math.log((1.0 - recovered) / (1.0 - chance)) if recovered < 1.0 else 0.0
        if models * (recovered * math.log(recovered / chance) + left) >= -math.log(1.0 - confidence):
            return ""
    word = "no" if recovered <= chance else "not shown to be"
    return f"attack {word} {_GUESSING} (which recovers {chance:.3g} of the batch): says nothing about privacy"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactLeakage(Result):
    """What the exact posterior of the same updates says: what no attack can surpass.

    Parameters
    ----------
    c1 : Estimate
        Root of the Jensen-Shannon divergence of the mean belief about a record and the prior, over these M updates.
    kappa_3 : Estimate
        Largest |ln| of a belief against the prior over these updates and all records.
    kappa_3_smoothed : Estimate
        The same of beliefs that are smoothed as those of the attacks.
    recovered : Estimate
        Mean fraction of the batch that the S records with the largest probabilities are expected to hold.
    vulnerability : Estimate
        Mean over updates of the largest posterior probability of a batch.
    entropy : Estimate
        Mean over updates of the entropy of the posterior over batches, in nats.
    identified : float
        Fraction of the updates whose most probable batch is the true one.
    method : str
        How the posterior was reached.

    Notes
    -----
    **Accuracy** certified for these updates, as ``posterior``, or heuristic, as ``sampled_subset_posterior``;
    ``tests/leakage/test_leakage_studies.py``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.leakage import Protection, SoftmaxRegression, leakage_study
    >>> records, labels = np.random.default_rng(1).random((30, 6)), np.arange(30) % 3
    >>> noise = Protection(noise="gaussian", scale=0.01)
    >>> study = leakage_study(SoftmaxRegression(6, 3), records, labels, [noise], pool=20, batch=2, n_models=2,
    ...                       n_attacks=1, rng=1)
    >>> bool(study.outcomes[0].exact.c1.value >= study.outcomes[0].estimate.c1.value - 0.01)
    True
    """

    c1: Estimate
    kappa_3: Estimate
    kappa_3_smoothed: Estimate
    recovered: Estimate
    vulnerability: Estimate
    entropy: Estimate
    identified: float
    method: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakageOutcome(Result):
    """One protection: what the attacks attain, and what the best attack would.

    Parameters
    ----------
    label : str
        Name of the protection.
    protection : Protection
        The protection itself.
    estimate : BayesianPrivacyEstimate
        From the attacks.
    exact : ExactLeakage or None
        From the posterior; None where it is not known.
    leakage : Estimate
        Interval of the average Bayesian privacy from C1 and C2 of the reference protection and ``total_variation``.
    total_variation : float
        Bound of that of the releases under the reference protection and this one.
    distortion : Estimate
        Mean over models of the distance of the shared gradient from the mean gradient, in lengths of the latter.
    remark : str
        Why there is no exact value, and whether the attacks recovered no more than names at random would.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.leakage import Protection, SoftmaxRegression, leakage_study
    >>> records, labels = np.random.default_rng(1).random((30, 6)), np.arange(30) % 3
    >>> study = leakage_study(SoftmaxRegression(6, 3), records, labels, [Protection(clip_batch=0.1)], pool=20, batch=2,
    ...                       n_models=2, n_attacks=1, rng=1)
    >>> study.outcomes[0].label, study.outcomes[0].exact is None
    ('clip mean 0.1', True)
    """

    label: str
    protection: Protection
    estimate: BayesianPrivacyEstimate
    exact: ExactLeakage | None
    leakage: Estimate
    total_variation: float
    distortion: Estimate
    remark: str = ""

    @property
    def no_better_than_guessing(self) -> bool:
        """Whether the attacks are not shown to recover more of the batch than names at random."""
        return _GUESSING in self.remark

    def fractions(self) -> dict[str, Estimate]:
        """What the attacks attain as fractions of the exact optimum, with the bounds of both.

        Returns
        -------
        dict of str to Estimate
            Of ``c1``, ``recovered`` and ``vulnerability`` (attacks that recover the whole batch); empty without exact
            values. A fraction above 1 is chance: the optimum is that of the mean over batches.
        """
        if self.exact is None:
            return {}
        e = self.estimate
        pairs = {"c1": (e.c1, self.exact.c1), "recovered": (e.recovered, self.exact.recovered),
                 "vulnerability": (e.whole_batch, self.exact.vulnerability)}  # fmt: skip
        return {name: _ratio(one, best) for name, (one, best) in pairs.items()}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReconstructionExample(Result):
    """What the first attack on the first model reconstructs under a protection.

    Parameters
    ----------
    label : str
        The protection.
    records : ndarray, shape (S, D)
        Reconstructed records, each in the place of the record of the batch that it is matched to.
    recovered : ndarray of bool, shape (S,)
        Whether the record of the pool that a reconstruction is nearest to is this record of the batch.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.leakage import Protection, SoftmaxRegression, leakage_study
    >>> records, labels = np.random.default_rng(1).random((30, 6)), np.arange(30) % 3
    >>> study = leakage_study(SoftmaxRegression(6, 3), records, labels, [Protection()], pool=20, batch=1, n_models=1,
    ...                       n_attacks=1, rng=1)
    >>> truth = records[study.pool[study.batch]]
    >>> np.allclose(study.examples[0].records, truth), study.examples[0].recovered
    (True, array([ True]))
    """

    label: str
    records: FloatArray
    recovered: BoolArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakageStudy(Table, Result):
    """All protections of a grid.

    Parameters
    ----------
    outcomes : tuple of LeakageOutcome
        One a protection, in order.
    pool, batch : ndarray of int
        Records that were candidates, by their index in the data, and the places of the batch among them.
    attributions : ndarray of int, shape (protections, M, T, S)
        Places in the pool that each attack names, -1 for a miss.
    settings : mapping
        What ran, in plain types.
    examples : tuple of ReconstructionExample
        One reconstruction a protection.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.leakage import Protection, SoftmaxRegression, leakage_study
    >>> records, labels = np.random.default_rng(1).random((30, 6)), np.arange(30) % 3
    >>> study = leakage_study(SoftmaxRegression(6, 3), records, labels, [Protection()], pool=20, batch=1, n_models=2,
    ...                       n_attacks=1, rng=1)
    >>> study.attributions.shape, study.columns()[:2]
    ((1, 2, 1, 1), ('protection', 'c1'))
    """

    outcomes: tuple[LeakageOutcome, ...]
    pool: IntArray
    batch: IntArray
    attributions: IntArray
    settings: Mapping[str, Any]
    examples: tuple[ReconstructionExample, ...] = ()

    def __getitem__(self, label: str) -> LeakageOutcome:
        for one in self.outcomes:
            if one.label == label:
                return one
        raise DomainError(
            f"label must be one of the protections of the study; got {validate.shown(label)}. They are "
            f"{', '.join(one.label for one in self.outcomes)}."
        )

    def column_types(self) -> dict[str, CellType]:
        """The columns by name; numbers have columns ``_lower`` and ``_upper`` beside."""
        numbers = (name + end for name in _NUMBERS for end in ("", "_lower", "_upper"))
        return dict.fromkeys(("protection", *numbers, "remark"), "")

    def rows(self) -> list[tuple[Any, ...]]:
        """One row a protection; None where something is not known."""
        table = []
        for one in self.outcomes:
            numbers = outcome_numbers(one)
            found = (numbers.get(name) for name in _NUMBERS)
            cells = [cell for number in found for cell in ((None,) * 3 if number is None else number.floats())]
            table.append((one.label, *cells, one.remark))
        return table

    def metadata(self) -> dict[str, Any]:
        """Settings."""
        return {"settings": dict(self.settings)}

    def __repr__(self) -> str:
        e = self.outcomes[0].estimate
        return f"<LeakageStudy of {len(self.outcomes)} protections, {e.releases} models, {e.attacks} attacks on each>"


# Columns of the table that are numbers with bounds.
_NUMBERS = (
    "c1", "c1_null", "exact_c1", "kappa_3", "kappa_3_null", "exact_kappa_3", "exact_kappa_3_smoothed", "c2",
    "recovered", "exact_recovered", "whole_batch", "exact_vulnerability", "exact_entropy", "fraction_c1",
    "fraction_recovered", "fraction_vulnerability", "leakage", "distortion",
)  # fmt: skip


def outcome_numbers(outcome: LeakageOutcome) -> dict[str, Estimate | None]:
    """Numbers of an outcome by their column, those of the exact posterior as ``exact_``; absent where unknown."""
    found: dict[str, Estimate | None] = dict(outcome.estimate.estimates())
    if outcome.exact is not None:
        found |= {f"exact_{name}": one for name, one in outcome.exact.estimates().items()}
    found |= {f"fraction_{name}": one for name, one in outcome.fractions().items()}
    return found | {"leakage": outcome.leakage, "distortion": outcome.distortion}


def _ratio(one: Estimate, best: Estimate) -> Estimate:
    """What an attack attains by what is best, with the bounds of both; the number of nothing by nothing is 1."""
    (value, low, high), (top, least, most) = one.floats(), best.floats()
    if top == 0.0:
        return Estimate(1.0, 0.0, math.inf, kind="statistical", unit="1", method="nothing to attain",
                        confidence=one.confidence)  # fmt: skip
    return Estimate(
        value / top, low / most, high / least if least > 0 else math.inf, kind="statistical", unit="1",
        method="attacks by the exact optimum", confidence=one.confidence,
    )  # fmt: skip
