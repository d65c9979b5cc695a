"""An accountant of Opacus with certified upper bounds; importing this module registers it as ``"fastpriv"``."""

from __future__ import annotations

from typing import Any

from ..base.errors import explain_missing_package
from ..base.estimate import Estimate
from ..composition.compositions import Composition
from .event_lists import composition_from_opacus

with explain_missing_package("fastpriv.adapters.opacus", "Opacus", "opacus"):
    from opacus.accountants.accountant import IAccountant
    from opacus.accountants.registry import register_accountant


class OpacusAccountant(IAccountant):  # type: ignore[misc]
    """What ``PrivacyEngine(accountant="fastpriv")`` and ``get_noise_multiplier(accountant="fastpriv")`` of Opacus make.

    Attributes
    ----------
    history : list of (noise_multiplier, sample_rate, num_steps)
        As Opacus saves and loads it; equal steps in a row are counted.

    Raises
    ------
    BackendMissingError
        If Opacus is not installed.

    Notes
    -----
    ``get_noise_multiplier`` of Opacus bisects to within ``epsilon_tolerance`` (0.01) of the target;
    ``fastpriv.composition.least_sigma`` gives the least noise with a proof, in fewer evaluations.

    **Accuracy** that of ``compose``; ``tests/surfaces/test_hosts.py``.

    Source: Opacus, accountants (version 1.6.0).

    Examples
    --------
    >>> import fastpriv.adapters.opacus  # doctest: +SKIP
    >>> from opacus import PrivacyEngine  # doctest: +SKIP
    >>> engine = PrivacyEngine(accountant="fastpriv")  # doctest: +SKIP
    """

    def __init__(self) -> None:
        self.history: list[tuple[float, float, int]] = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count one step of a training."""
        noise, rate, steps = self.history[-1] if self.history else (None, None, 0)
        if (noise, rate) == (noise_multiplier, sample_rate):
            self.history[-1] = noise_multiplier, sample_rate, steps + 1
        else:
            self.history.append((noise_multiplier, sample_rate, 1))

    @property
    def composition(self) -> Composition:
        """All steps so far, as ``compose`` has them."""
        return composition_from_opacus(self.history)

    def bounds(self, delta: Any) -> Estimate:
        """Epsilon at these deltas, with both certified bounds."""
        return self.composition.epsilon(delta, direction="worst")

    def get_epsilon(self, delta: float, *_: Any, **__: Any) -> float:
        """The upper bound of epsilon; options of other accountants of Opacus have no meaning here."""
        return float(self.bounds(delta).upper)

    def __len__(self) -> int:
        """The number of steps."""
        return sum(steps for _, _, steps in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """The name under which it is registered."""
        return "fastpriv"


register_accountant(OpacusAccountant.mechanism(), OpacusAccountant, force=True)
