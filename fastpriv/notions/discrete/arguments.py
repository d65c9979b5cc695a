"""What people give: a channel or its matrix; a prior as a vector, a Pmf, a tuple of them or nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ... import _validate
from ..._values import FloatArray
from ...channels import AnyChannel, Channel, DefaultChannel, ProductChannel, SubsetSelection, UnaryEncoding
from ...channels.priors import prior_gap
from ...distributions import Pmf
from ...errors import DomainError
from ...estimate import Estimate, Kind, Unit

__all__ = ["UNIT", "Reading", "Setting", "discrete", "estimate", "most_cells", "rows_of", "setting", "written"]

# bound: proved - half a unit in the last place of a double, IEEE 754
UNIT = 2.0**-53
# bound: none - smaller prior probabilities are refused where ratios are taken
_LEAST = 1e-300  # positive prior probabilities that ratios can be taken of
_CELLS = 2**37  # cells gone through at most
_SETS = 2**25  # the same where the rows of all sets are made at once
_WIDE = 2**28  # secrets, and releases, of which numbers are held


class Reading(NamedTuple):
    """A number with its bounds and how it was found."""

    value: float
    lower: float
    upper: float
    kind: Kind
    method: str


class Setting(NamedTuple):
    """A channel with a checked prior; None is the uniform one, a tuple one prior a factor of a product."""

    channel: AnyChannel
    prior: Any

    @property
    def weights(self) -> FloatArray:
        """One probability a secret."""
        n = self.channel.inputs
        if self.prior is None:
            _validate.memory("prior", 8 * n, "This quantity lists all secrets: take a channel with fewer.")
        return np.full(n, 1.0 / n) if self.prior is None else np.asarray(self.prior)

    @property
    def gap(self) -> float:
        """How far the sum of the prior is from 1."""
        return prior_gap(self.prior)


def discrete(mechanism: Any) -> bool:
    """Whether it is a channel, or a matrix that can be one."""
    return isinstance(mechanism, (AnyChannel, np.ndarray, list, tuple))


def setting(prior: Any, mechanism: Any) -> Setting:
    """The channel and its prior, both checked."""
    if isinstance(prior, AnyChannel):
        raise DomainError(
            f"prior must be probabilities, a Pmf or None; got a channel, {_validate.shown(prior)}. The prior goes "
            "first, then the channel."
        )
    channel: AnyChannel = mechanism
    if not isinstance(mechanism, AnyChannel):
        channel = _validate.with_argument_name("matrix", "mechanism", lambda: Channel(mechanism))
    given = prior.probabilities if isinstance(prior, Pmf) else prior
    if isinstance(given, list) and isinstance(channel, ProductChannel) and any(np.ndim(one) == 1 for one in given):
        given = tuple(given)
    checked = channel._prior(given)
    for one in checked if isinstance(checked, tuple) else (checked,):
        if isinstance(one, np.ndarray) and ((one > 0) & (one < _LEAST)).any():
            raise DomainError(
                f"prior must be 0 or at least {_LEAST:g} at every secret; got {float(one[one > 0].min())!r}. "
                "Set it to 0 to leave the secret out."
            )
    return Setting(channel, checked)


def written(given: Setting) -> Setting:
    """The same with one row for all like secrets, where its rows can be gone through one by one."""
    channel, prior = given
    if not isinstance(channel, DefaultChannel):
        return rows_of(given)
    listed = channel.indices
    if prior is None:
        size = float(channel.inputs)
        return Setting(channel.laws, np.append(np.full(listed.size, 1 / size), (channel.inputs - listed.size) / size))
    rest = float(np.sum(np.delete(prior, listed), dtype=np.longdouble))
    return Setting(channel.laws, np.append(prior[listed], rest))


def most_cells(channel: AnyChannel) -> int:
    """Cells up to which rows are gone through unasked."""
    return _SETS if isinstance(channel, (UnaryEncoding, SubsetSelection)) else 2**32


def rows_of(given: Setting) -> Setting:
    """The same with one probability a secret, where its rows can be gone through one by one."""
    channel, prior = given
    sets = isinstance(channel, (UnaryEncoding, SubsetSelection))
    if not channel._cells_within(_SETS if sets else _CELLS) or max(channel.inputs, channel.outputs) > _WIDE:
        raise DomainError(
            f"mechanism must have at most {'2**25' if sets else '2**37'} cells, 2**28 secrets and 2**28 releases to be "
            f"gone through row by row; got {_validate.shown(channel)}. "
            "This quantity is known in closed form for fewer families and priors."
        )
    if isinstance(prior, tuple):
        assert isinstance(channel, ProductChannel)
        joint = np.ones(1)
        for one, own, law in zip(channel.factors, channel.powers, prior, strict=True):
            for _ in range(own):
                joint = np.multiply.outer(joint, Setting(one, law).weights).reshape(-1)
        return Setting(channel, joint)
    return given


def estimate(reading: Reading, unit: Unit, **cost: Any) -> Estimate:
    """The number with its unit."""
    lower, upper = min(reading.lower, reading.value), max(reading.upper, reading.value)
    return Estimate(reading.value, lower, upper, kind=reading.kind, unit=unit, method=reading.method, cost=cost)
