"""An accountant of dp_accounting whose answers are certified, for all who call one: jax_privacy, Flower."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ..base.errors import DomainError, explain_missing_package
from ..base.estimate import Estimate
from ..composition import Composition, compose, true_positive_rate
from .event_lists import composition_from_dp_events

with explain_missing_package("CertifiedAccountant", "dp_accounting", "dp-accounting"):
    from dp_accounting.privacy_accountant import NeighboringRelation, PrivacyAccountant

_RELATIONS = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: "add_or_remove", NeighboringRelation.REPLACE_ONE: "replace_one",
    NeighboringRelation.REPLACE_SPECIAL: "zero_out",
}  # what dp_accounting and ``composition_from_dp_events`` call the same neighbours


class CertifiedAccountant(PrivacyAccountant):  # type: ignore[misc]
    """A ``PrivacyAccountant`` of dp_accounting that answers by ``compose``, with proved upper bounds.

    It goes wherever dp_accounting takes an accountant (``calibrate_dp_mechanism``), and wherever jax_privacy takes an
    ``accountant_fn``; ``bounds`` gives both ends.

    Parameters
    ----------
    neighboring_relation : dp_accounting.NeighboringRelation, default ADD_OR_REMOVE_ONE
        REPLACE_ONE doubles the sensitivity of noise: multipliers are over ONE contribution. REPLACE_SPECIAL replaces a
        record by one that contributes zero.

    Raises
    ------
    BackendMissingError
        If dp_accounting is not installed.
    dp_accounting.UnsupportedEventError
        By ``compose``, for events that ``composition_from_dp_events`` refuses, with its words.

    Notes
    -----
    Equal events are counted, not kept: a loop that composes one event in every step of a training costs what one call
    with ``count`` costs. Checks (``supports``) change nothing.

    **Accuracy** that of ``compose``; ``tests/surfaces/test_hosts.py`` holds it against dp_accounting's own.

    Source: dp_accounting, privacy_accountant (version 0.6.0).

    Examples
    --------
    >>> from dp_accounting import dp_event  # doctest: +SKIP
    >>> from fastpriv.adapters import CertifiedAccountant  # doctest: +SKIP
    >>> step = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.0))  # doctest: +SKIP
    >>> training = CertifiedAccountant().compose(step, 1000)  # doctest: +SKIP
    >>> training.get_epsilon(1e-5), training.bounds(target_delta=1e-5)  # doctest: +SKIP
    (1.82..., Estimate(1.82..., ...))
    """

    def __init__(self, neighboring_relation: Any = NeighboringRelation.ADD_OR_REMOVE_ONE) -> None:
        super().__init__(neighboring_relation)
        self._counts: dict[Hashable, tuple[Composition, int]] = {}
        self._total: Composition | None = None

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        try:
            hash(event)
            key: Hashable = event
        except TypeError:  # lists within events
            key = (len(self._counts), id(event))
        try:
            part, before = self._counts.get(key) or (self._composition(event), 0)
        except DomainError as error:
            return self.CompositionErrorDetails(invalid_event=event, error_message=str(error))
        if do_compose:
            self._counts[key] = part, before + count
            self._total = None
        return None

    def _composition(self, event: Any) -> Composition:
        return composition_from_dp_events(event, relation=_RELATIONS[self.neighboring_relation])  # type: ignore[arg-type]

    @property
    def composition(self) -> Composition:
        """All releases so far, as ``compose`` has them."""
        if self._total is None:
            parts = self._counts.values()
            self._total = compose([part for part, _ in parts], [count for _, count in parts])
        return self._total

    def bounds(self, *, target_delta: Any = None, target_epsilon: Any = None) -> Estimate:
        """Epsilon at these deltas, or delta at these epsilons, with certified bounds; arrays of any shape."""
        if (target_delta is None) == (target_epsilon is None):
            raise DomainError(
                "target_delta or target_epsilon must be given, and not both; got "
                f"{'neither' if target_delta is None else 'both'}. Pass the one that is known."
            )
        if target_delta is None:
            return self.composition.delta(target_epsilon, direction="worst")
        return self.composition.epsilon(target_delta, direction="worst")

    def get_epsilon(self, target_delta: Any) -> Any:
        """The upper bound of epsilon, a float, or an array for an array of deltas."""
        return self.bounds(target_delta=target_delta).upper

    def get_delta(self, target_epsilon: Any) -> Any:
        """The upper bound of delta, a float, or an array for an array of epsilons, which may be negative."""
        return self.bounds(target_epsilon=target_epsilon).upper

    def get_true_positive_rates(self, false_positive_rates: Any) -> Any:
        """The upper bound of the true positive rate of any test for one record at these false positive rates."""
        forward = true_positive_rate(self.composition, None, false_positive_rates, null="p").upper
        backward = true_positive_rate(self.composition, None, false_positive_rates, null="q").upper
        return np.maximum(forward, backward)
