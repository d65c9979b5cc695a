"""Attacks on releases of frequencies that compare each person with references: likelihood ratios and scores.

Notation: r (m,) a release; d_k in {0, 1}^m the attributes of person k; references that are no members, pbar their
frequencies, n_ref their number. The likelihood ratio statistic of person k is

    LRS_k(r) = sum_j d_kj log(pbar_j / x_j) + (1 - d_kj) log((1 - pbar_j) / (1 - x_j)),

x = r and pbar cut to [e0, 1 - e0]. It is low for members, so that the score of an attack is -LRS_k. Each is a product
of the panel's bits with weights of the attributes.

Sources: Sankararaman, Obozinski, Jordan and Halperin 2009 (likelihood ratios); Venkatesaramani, Wan, Malin and
Vorobeychik 2023 (adaptive thresholds); Dwork, Smith, Steinke, Ullman and Vadhan 2015 (scores).
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base import parallel, validate
from ...base.errors import DomainError, ShapeError
from ...base.numerics import BoolArray, FloatArray
from ..kernels import _likelihood_ratio
from .panels import Panel, membership_array, released_array

_RELEASES = 128  # of one block: their weights and scores stay in the cache of a core
# bound: none - of a check of arguments
_CHANCE_AGREEMENT = 1e-9  # expected pairs of equal unrelated people below which an equal pair is one person
_COLUMNS = 4096  # attributes that are unpacked at a time
_NAMES_SHOWN = 5  # of attributes, in an error


class Attacker:
    """Base of the attacks on releases: a name, and scores.

    Those that give probabilities also have ``predict_proba(released)``, those that train ``fit(released, membership)``.
    """

    name: Any = ""  # what tables and legends call it

    def scores(self, released: Any) -> FloatArray:
        """Scores of the people, shape (..., K), higher for members, of releases of shape (..., m)."""
        raise NotImplementedError

    def decision_function(self, released: Any) -> FloatArray:
        """The same as ``scores``, under scikit-learn's name."""
        return self.scores(released)


class _ReferenceAttack(Attacker):
    """Base of the attacks by products of a panel with weights."""

    panel: Panel

    def scores(self, released: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """Scores of the people, higher for members.

        Parameters
        ----------
        released : array_like, shape (..., m)
            Releases.
        n_jobs : int, optional
            Number of threads; the scores do not depend on it.

        Returns
        -------
        ndarray, shape (..., K)
        """
        r = released_array(released, self.panel.n_attributes)
        rows = np.ascontiguousarray(r.reshape(-1, r.shape[-1]))
        parts = parallel.blocks(len(rows), _RELEASES)
        scores = parallel.ordered_map(
            lambda part: self._scores(rows[part]), parts, n_jobs=n_jobs, shared=True, brief=rows.size < 2**16
        )
        answer = np.concatenate([np.empty((0, self.panel.n_people)), *scores])
        return answer.reshape(*r.shape[:-1], self.panel.n_people)

    def gradient(self, released: ArrayLike, weights: ArrayLike) -> FloatArray:
        """The gradient of sum_k weights_k score_k with respect to the release, which a defender descends.

        Parameters
        ----------
        released : array_like, shape (..., m)
            Releases.
        weights : array_like, shape (..., K)
            Of the people, for each release.

        Returns
        -------
        ndarray, shape (..., m)
            Where the score has a kink it is a derivative to one side; of a frequency that is cut to [e0, 1 - e0], that
            to the inside.
        """
        r = released_array(released, self.panel.n_attributes)
        w = validate.real("weights", weights, "finite numbers", np.isfinite)
        if w.shape != (*r.shape[:-1], self.panel.n_people):
            raise ShapeError(
                f"weights must have shape {(*r.shape[:-1], self.panel.n_people)}, one entry a person; got shape "
                f"{w.shape}. Give a row for each release."
            )
        return self._gradient(r.reshape(-1, r.shape[-1]), w.reshape(-1, w.shape[-1])).reshape(r.shape)

    def _scores(self, rows: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _gradient(self, rows: FloatArray, weights: FloatArray) -> FloatArray:
        raise NotImplementedError

    @cached_property
    def _attributes_of_people(self) -> Panel:
        return _transposed(self.panel)

    def _weighted_attributes(self, weights: FloatArray) -> FloatArray:
        """The sums of the attributes of people with weights of shape (R, K), shape (R, m)."""
        return np.asarray(self._attributes_of_people.products(weights.T).T)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.panel.n_people} people, {self.panel.n_attributes} attributes>"


class FixedThresholdLRT(_ReferenceAttack):
    """Likelihood ratio test with one threshold for all releases.

    Parameters
    ----------
    panel : Panel
        The people whose membership is in question, with the attributes that are released.
    references : Panel
        People who are no members, with the same attributes; none of them in ``panel``.
    alpha : float
        False-positive rate in (0, 1) that the threshold has on releases without defence.
    e0 : float, optional
        Frequencies are cut to [e0, 1 - e0], 0 < e0 <= 1/2; 1 / (2 n_ref) by default.

    Attributes
    ----------
    threshold : float or None
        Scores above it are claims; None before ``fit``.

    Raises
    ------
    DomainError, ShapeError
        For references that are in the panel (by name, or by equal attributes that chance does not explain), other
        attributes, attributes that nobody or everybody has in panel and references, and parameters outside their range.

    Notes
    -----
    **Accuracy** A score is a sum of m products of doubles; ``tests/membership/test_attackers.py`` compares with sums by
    hand. Scores are the same bits for every number of threads and every instruction set.

    Source: Sankararaman et al. 2009; the threshold: Shringarpure and Bustamante 2015.

    Examples
    --------
    >>> from fastpriv.membership import FixedSizeMembership, FixedThresholdLRT, FrequencyRelease, Panel
    >>> panel, references = Panel([[1, 0, 1], [0, 1, 0]]), Panel([[0, 0, 0], [1, 1, 1], [1, 0, 0], [0, 0, 1]])
    >>> attack = FixedThresholdLRT(panel, references, alpha=0.5)
    >>> attack.scores([1.0, 0.0, 1.0])
    array([ 1.273..., -3.465...])
    >>> undefended = FrequencyRelease(panel, FixedSizeMembership(1)).simulate(100, rng=1)
    >>> attack.fit(undefended.released, undefended.membership).claims([1.0, 0.0, 1.0])
    array([ True, False])
    """

    name = "fixed-threshold LRT"

    def __init__(self, panel: Panel, references: Panel, *, alpha: float = 0.05, e0: float | None = None) -> None:
        self.panel, self.references = panel, references
        checked_references(panel, references)
        self.alpha = validate.open_probability("alpha", alpha)
        e0 = 0.5 / references.n_people if e0 is None else e0
        self.e0 = validate.scalar("e0", e0, "above 0 and at most 1/2", lambda e: (e > 0) & (e <= 0.5))
        self.threshold: float | None = None
        pbar = references.frequencies()
        self._log_rest = np.log(np.clip(1.0 - pbar, self.e0, 1.0 - self.e0))
        self._log_odds = np.log(np.clip(pbar, self.e0, 1.0 - self.e0)) - self._log_rest

    def fit(self, released: ArrayLike, membership: ArrayLike) -> FixedThresholdLRT:
        """Set the threshold so that at most a fraction ``alpha`` of non-members are claimed.

        Parameters
        ----------
        released : array_like, shape (R, m)
            Releases without defence.
        membership : array_like of bool, shape (R, K)
            Who is a member of each.

        Examples
        --------
        >>> from fastpriv.membership import FixedThresholdLRT, Panel
        >>> attack = FixedThresholdLRT(Panel([[1, 0], [0, 1]]), Panel([[0, 0], [1, 1]]), alpha=0.5)
        >>> attack.fit([[1.0, 0.0], [0.0, 1.0]], [[True, False], [False, True]]).threshold
        -1.38...
        """
        r, b = training_releases(released, membership, self.panel.n_people, self.panel.n_attributes)
        others = self.scores(r)[~b]
        if not others.size:
            raise DomainError(
                f"membership must have non-members; got none among {b.size}. Simulate releases of fewer members."
            )
        self.threshold = empirical_threshold(others, self.alpha)
        return self

    def claims(self, released: ArrayLike) -> BoolArray:
        """Who is claimed to be a member: scores above the threshold.

        Parameters
        ----------
        released : array_like, shape (..., m)
            Releases.
        """
        if self.threshold is None:
            raise unfitted(self)
        return np.asarray(self.scores(released) > self.threshold)

    def _scores(self, rows: FloatArray) -> FloatArray:
        weights, constants = _likelihood_ratio.ratio_weights(rows, self._log_odds, self._log_rest, self.e0)
        return np.asarray(-(self.panel.products(weights.T).T + constants[:, None]))

    def _gradient(self, rows: FloatArray, weights: FloatArray) -> FloatArray:
        x = np.clip(rows, self.e0, 1.0 - self.e0)  # the score has the derivative (d - x) / (x (1 - x))
        total = weights.sum(axis=1, keepdims=True)
        return np.asarray((self._weighted_attributes(weights) - total * x) / (x * (1.0 - x)))


class AdaptiveThresholdLRT(FixedThresholdLRT):
    """Likelihood ratio test whose threshold follows the references at each release.

    Parameters
    ----------
    panel, references, e0
        As for ``FixedThresholdLRT``.
    n_smallest : int, optional
        Number N of references; a twentieth of them by default, at least 1.

    Notes
    -----
    The threshold of release r is tau_N(r), the mean of the N smallest LRS of the references, and a person is claimed
    where LRS_k <= tau_N(r): the score is tau_N(r) - LRS_k, and claims are scores of at least 0. Within one release its
    order of people, and so its AUC, is that of the fixed threshold.

    **Accuracy** As for ``FixedThresholdLRT``.

    Source: Venkatesaramani et al. 2023.

    Examples
    --------
    >>> from fastpriv.membership import AdaptiveThresholdLRT, Panel
    >>> panel, references = Panel([[1, 0, 1], [0, 1, 0]]), Panel([[0, 0, 0], [1, 1, 1], [1, 0, 0], [0, 0, 1]])
    >>> AdaptiveThresholdLRT(panel, references).claims([1.0, 0.0, 1.0])
    array([ True, False])
    """

    name = "adaptive-threshold LRT"

    def __init__(
        self, panel: Panel, references: Panel, *, n_smallest: int | None = None, e0: float | None = None
    ) -> None:
        super().__init__(panel, references, e0=e0)
        size = references.n_people
        n_smallest = max(1, size // 20) if n_smallest is None else n_smallest
        self.n_smallest = validate.count("n_smallest", n_smallest, 1, size)
        self.threshold = 0.0

    def fit(self, released: ArrayLike, membership: ArrayLike) -> AdaptiveThresholdLRT:
        """Nothing: the references of each release set its threshold.

        Parameters
        ----------
        released, membership
            Ignored.
        """
        return self

    def claims(self, released: ArrayLike) -> BoolArray:
        """Who is claimed to be a member: scores of at least 0.

        Parameters
        ----------
        released : array_like, shape (..., m)
            Releases.
        """
        return np.asarray(self.scores(released) >= 0.0)

    def _scores(self, rows: FloatArray) -> FloatArray:
        weights, _constants = _likelihood_ratio.ratio_weights(rows, self._log_odds, self._log_rest, self.e0)
        references = self.references.products(weights.T)
        smallest = np.partition(references, self.n_smallest - 1, axis=0)[: self.n_smallest]
        threshold = np.sort(smallest, axis=0).mean(axis=0)  # the constants cancel
        return np.asarray((threshold - self.panel.products(weights.T)).T)

    @cached_property
    def _attributes_of_references(self) -> Panel:
        return _transposed(self.references)

    def _gradient(self, rows: FloatArray, weights: FloatArray) -> FloatArray:
        factors, _ = _likelihood_ratio.ratio_weights(rows, self._log_odds, self._log_rest, self.e0)
        order = np.argpartition(self.references.products(factors.T), self.n_smallest - 1, axis=0)
        shares = np.zeros((len(rows), self.references.n_people))
        np.put_along_axis(shares, order[: self.n_smallest].T, 1.0 / self.n_smallest, axis=1)
        x = np.clip(rows, self.e0, 1.0 - self.e0)
        threshold = weights.sum(axis=1, keepdims=True) * self._attributes_of_references.products(shares.T).T
        return np.asarray((self._weighted_attributes(weights) - threshold) / (x * (1.0 - x)))


class DworkScore(_ReferenceAttack):
    """Inner product of a person, less a reference, with the deviation of the release from the references.

    Parameters
    ----------
    panel, references
        As for ``FixedThresholdLRT``, with at least two references.
    eta : float
        Deviations are cut to [-eta, eta]; positive. Without the cut by default.
    held_out : int
        Position of the reference z that the scores subtract, which is not among those whose mean is taken.

    Notes
    -----
    With attributes as +-1, y_k = 2 d_k - 1, q = 2 r - 1, and w the mean of the references but z, the score is
    <y_k - z, clip(q - w, -eta, eta)>. For a non-member its mean is 0 if all people are drawn alike, whatever is
    released.

    **Accuracy** As for ``FixedThresholdLRT``.

    Source: Dwork, Smith, Steinke, Ullman and Vadhan 2015, fig. 1.

    Examples
    --------
    >>> from fastpriv.membership import DworkScore, Panel
    >>> panel, references = Panel([[1, 0, 1], [0, 1, 0]]), Panel([[0, 0, 0], [1, 1, 1], [1, 0, 0]])
    >>> DworkScore(panel, references).scores([1.0, 0.0, 1.0])
    array([ 2., -4.])
    """

    name = "score"

    def __init__(self, panel: Panel, references: Panel, *, eta: float = math.inf, held_out: int = -1) -> None:
        self.panel, self.references = panel, references
        checked_references(panel, references)
        size = references.n_people
        if size < 2:
            raise DomainError(
                "references must be at least two people for a score, one of them held out; got 1. Add references."
            )
        self.eta = validate.scalar("eta", eta, "positive", lambda x: x > 0)
        self.held_out = validate.count("held_out", held_out, -size, size - 1)
        self._position = self.held_out % size
        others = references.select(people=np.delete(np.arange(size), self._position))
        self._mean = 2.0 * others.frequencies() - 1.0
        self._held_out = 2.0 * references.select(people=[self._position]).to_array()[0] - 1.0

    def _scores(self, rows: FloatArray) -> FloatArray:
        deviation = np.clip(2.0 * rows - 1.0 - self._mean, -self.eta, self.eta)
        held_out = (deviation * (1.0 + self._held_out)).sum(axis=1)  # <1 + z, .>: y is 2 d - 1
        return np.asarray(2.0 * self.panel.products(deviation.T).T - held_out[:, None])

    def _gradient(self, rows: FloatArray, weights: FloatArray) -> FloatArray:
        inside = np.abs(2.0 * rows - 1.0 - self._mean) < self.eta
        total = weights.sum(axis=1, keepdims=True) * (1.0 + self._held_out)
        return np.asarray(np.where(inside, 4.0 * self._weighted_attributes(weights) - 2.0 * total, 0.0))


def _transposed(panel: Panel) -> Panel:
    """The panel whose people are the attributes: its products are sums of attributes over people with weights."""
    packed = np.empty((panel.n_attributes, -(-panel.n_people // 8)), dtype=np.uint8)
    for part in parallel.blocks(panel.n_attributes, _COLUMNS):
        columns = panel.select(attributes=part).to_array().T
        packed[part] = np.packbits(columns, axis=1, bitorder="little")
    return Panel.from_packed(packed, panel.n_people)


def empirical_threshold(others: FloatArray, fpr: float) -> float:
    """The least score that at most a fraction ``fpr`` of the scores of non-members exceed; -inf where all may."""
    allowed = math.floor(fpr * others.size)
    if allowed >= others.size:
        return -math.inf
    return float(np.partition(others, others.size - allowed - 1)[others.size - allowed - 1])


def unfitted(attack: Any) -> DomainError:
    """The error of an attack that is used before it is trained."""
    return DomainError(
        f"fit must be called before scores and claims; got a {type(attack).__name__} that was never fitted. Call "
        "fit(released, membership)."
    )


def training_releases(
    released: Any, membership: Any, n_people: int, n_attributes: int | None = None
) -> tuple[FloatArray, BoolArray]:
    """Releases (R, m) and who is a member of each, (R, K)."""
    b = membership_array("membership", membership, n_people)
    if n_attributes is None:
        n_attributes = np.shape(released)[-1] if np.ndim(released) else 0
    r = released_array(released, n_attributes)
    if r.ndim != 2 or b.shape != (len(r), n_people) or not len(r):
        raise ShapeError(
            f"released and membership must be of shapes (R, m) and (R, {n_people}) with R of at least 1; got {r.shape} "
            f"and {b.shape}. Simulate them together."
        )
    return r, b


def checked_references(panel: Any, references: Any) -> None:
    """Check that references have the attributes of the panel, none of its people, and something to tell."""
    validate.instance("panel", panel, Panel)
    validate.instance("references", references, Panel)
    p = panel.frequencies()
    agreement = math.log(panel.n_people * references.n_people)  # log of the expected number of unrelated equal pairs
    agreement += float(np.log(p * p + (1.0 - p) * (1.0 - p)).sum())
    panel.require_disjoint(references, same_rows=agreement > math.log(_CHANCE_AGREEMENT))
    totals = [side.counts(np.ones(side.n_people, dtype=bool)) for side in (panel, references)]
    total = totals[0] + totals[1]
    constant = np.flatnonzero((total == 0) | (total == panel.n_people + references.n_people))
    if constant.size:
        shown = ", ".join(panel.attribute(j) for j in constant[:_NAMES_SHOWN])
        dots = ", ..." if constant.size > _NAMES_SHOWN else ""
        raise DomainError(
            f"panel and references must vary in every attribute; got {constant.size} of {panel.n_attributes} that all "
            f"of these people have or none has: {shown}{dots}. Leave them out by select(attributes=...)."
        )
