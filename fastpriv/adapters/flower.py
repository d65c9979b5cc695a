"""The accountant of Flower's server with certified bounds in the place of Renyi ones."""

from __future__ import annotations

from typing import Any

from ..base.errors import explain_missing_package

with explain_missing_package("fastpriv.adapters.flower", "flwr 1.40 or later", "'flwr[dp]'"):
    from flwr.supercore.privacy_accounting import PrivacySpent
    from flwr.supercore.privacy_accounting.rdp_accountant import RdpAccountant


class FlowerAccountant(RdpAccountant):  # type: ignore[misc]
    """Flower's ``RdpAccountant`` with the same configuration, events, ledger and saved state; only the numbers differ.

    Notes
    -----
    Flower's own accountant reads ``noise_multiplier`` as the noise over the distance of neighbouring sums, which under
    ``REPLACE_ONE`` is twice the clipping norm; noise over the clipping norm, which its strategies add, is half as much
    noise. Here multipliers are over ONE contribution, so that epsilon under ``REPLACE_ONE`` is larger.

    **Accuracy** that of ``compose``; ``tests/surfaces/test_hosts.py``.

    Source: flwr, supercore.privacy_accounting (version 1.42.0).

    Examples
    --------
    >>> from fastpriv.adapters.flower import FlowerAccountant  # doctest: +SKIP
    >>> accountant = FlowerAccountant(config)  # doctest: +SKIP
    """

    def _new_backend(self, orders: Any) -> Any:
        from .accountants import CertifiedAccountant

        relations = self._privacy_accountant.NeighboringRelation
        backend = CertifiedAccountant(relations[self._config.neighboring_relation.name])
        backend.orders = super()._new_backend(orders).orders  # which Flower saves with its ledger
        return backend

    def get_privacy_spent(self, delta: float | None = None) -> Any:
        """Epsilon at delta, as Flower reports it; no order of a Renyi divergence belongs to it."""
        target = self._config.target_delta if delta is None else delta
        return PrivacySpent(self.get_epsilon(target), target, self.num_releases, "fastpriv", None)
