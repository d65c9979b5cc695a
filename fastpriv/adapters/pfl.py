"""The accountant of pfl-research with certified bounds: of epsilon, delta and noise any two give the third."""

from __future__ import annotations

from typing import Any

from ..base.errors import DomainError, explain_missing_package
from ..composition import Composition, compose, least_sigma
from ..mechanisms import GaussianMechanism, LaplaceMechanism
from ..pairs.sampled import PoissonSampled

with explain_missing_package("fastpriv.adapters.pfl", "pfl-research", "pfl prv-accountant"):
    from pfl.privacy.privacy_accountant import PrivacyAccountant

_NOISES: dict[str, Any] = {"gaussian": GaussianMechanism, "laplace": LaplaceMechanism}  # by the names of pfl-research


class PflAccountant(PrivacyAccountant):  # type: ignore[misc]
    """A ``PrivacyAccountant`` of pfl-research; what is left out is filled in by its certified upper bound.

    Parameters and attributes are those of pfl-research. With all three given, delta must be proved to hold.

    Raises
    ------
    DomainError
        For another mechanism, or a delta that does not hold for epsilon and the noise.

    Notes
    -----
    **Accuracy** that of ``compose`` and ``least_sigma``; ``tests/surfaces/test_hosts.py``.

    Source: pfl-research, pfl.privacy.privacy_accountant (version 0.6.0).

    Examples
    --------
    >>> from fastpriv.adapters.pfl import PflAccountant  # doctest: +SKIP
    >>> PflAccountant(1000, 0.01, "gaussian", epsilon=2.0, delta=1e-6).noise_parameter  # doctest: +SKIP
    1.02...
    """

    epsilon: Any  # numbers, or None before they are filled in
    delta: Any
    noise_parameter: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mechanism not in _NOISES:
            raise DomainError(f"mechanism must be 'gaussian' or 'laplace'; got {self.mechanism!r}. Take one of these.")
        if self.noise_parameter is None:
            noise = least_sigma(self._one_release, epsilon=self.epsilon, delta=self.delta, count=self.num_compositions)
            self.noise_parameter = float(noise.upper)
        elif self.epsilon is None:
            self.epsilon = float(self.composition.epsilon(self.delta, direction="worst").upper)
        else:
            delta = float(self.composition.delta(self.epsilon, direction="worst").upper)
            if self.delta is not None and delta > self.delta:
                raise DomainError(
                    f"delta must be at least {delta!r} for this epsilon and noise; got {self.delta!r}. Pass more "
                    "noise, or leave one of the three out."
                )
            self.delta = delta if self.delta is None else self.delta

    def _one_release(self, noise: float) -> Any:
        return PoissonSampled(_NOISES[self.mechanism](noise, 1.0), self.sampling_probability)

    @property
    def composition(self) -> Composition:
        """All releases, as ``compose`` has them."""
        return compose(self._one_release(self.noise_parameter), self.num_compositions)
