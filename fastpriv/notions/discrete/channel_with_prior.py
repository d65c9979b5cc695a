"""A channel together with a checked prior, and the bracket in which the quantities of both are returned.

A prior is a vector, a Pmf, a tuple with one prior for each factor of a product channel, or None for the uniform prior.
"""

# bounds: proved - docs/proofs/roundings.md, 13.14: rounding where a logarithm or an exponential of a bracket is taken

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ...base import validate
from ...base.errors import DomainError, TooLargeError
from ...base.estimate import Estimate, Kind, Unit
from ...base.numerics import UNIT_ROUNDOFF as U
from ...base.numerics import FloatArray
from ...base.parallel import Progress
from ...channels import AnyChannel, Channel, ChannelStack, DefaultChannel, ProductChannel
from ...channels.type_classes import prior_gap
from ...distributions import Pmf, PmfStack
from ...kernels import _channel_quantities
from ...mechanisms import SubsetSelection, UnaryEncoding
from ...mechanisms.gaussian import GaussianMechanism

Prior: TypeAlias = "ArrayLike | Pmf | PmfStack | tuple[ArrayLike | None, ...] | None"
Mechanism: TypeAlias = "AnyChannel | ChannelStack | ArrayLike | GaussianMechanism"

LEAST_PRIOR = _channel_quantities.LEAST_PRIOR  # smaller positive prior probabilities are refused
_SUM_TOLERANCE = validate.sum_tolerance(np.float64)  # how far the sum of a prior may be from 1
_MOST_CELLS = 2**37  # cells that one call goes through at most: minutes of one core
_MOST_SET_CELLS = 2**25  # the same for channels whose rows list all sets, which are built at once in memory
_MOST_ENTRIES = 2**28  # secrets, and releases, for which vectors are held in memory


class Bracket(NamedTuple):
    """A number with its bounds, what they claim, and the method that found them."""

    value: float
    lower: float
    upper: float
    kind: Kind
    method: str

    def log(self) -> Bracket:
        """Bracket of the natural logarithm."""
        value, lower, upper = (math.log(x) if x > 0 else -math.inf for x in self[:3])
        return Bracket(value, lower - 10 * U * abs(lower), upper + 10 * U * abs(upper), self.kind, self.method)

    def exp(self) -> Bracket:
        """Bracket of the exponential, a probability."""
        value, lower, upper = (math.exp(x) for x in self[:3])
        return Bracket(value, lower * (1 - 10 * U), min(1.0, upper * (1 + 10 * U)), self.kind, self.method)


class ChannelWithPrior(NamedTuple):
    """A channel with a checked prior; None is the uniform one, a tuple has one prior for each factor of a product."""

    channel: AnyChannel
    prior: Any

    @property
    def weights(self) -> FloatArray:
        """Prior probability of each secret."""
        n = self.channel.inputs
        if self.prior is None:
            validate.memory("prior", 8 * n, "This quantity lists all secrets: take a channel with fewer.")
        return np.full(n, 1.0 / n) if self.prior is None else np.asarray(self.prior)

    @property
    def gap(self) -> float:
        """How far the sum of the prior is from 1."""
        if isinstance(self.prior, tuple):
            return math.expm1(math.fsum(power * math.log1p(prior_gap(prior)) for _, power, prior in self.factors or ()))
        return prior_gap(self.prior)

    @property
    def factors(self) -> list[tuple[AnyChannel, int, Any]] | None:
        """Factor, power and prior of each factor of a product under a product prior; None for anything else."""
        channel = self.channel
        return channel._factors_with_priors(self.prior) if isinstance(channel, ProductChannel) else None


class QuantityRequest(NamedTuple):
    """The named quantities of a channel with its prior, and how they are computed."""

    model: ChannelWithPrior
    names: tuple[str, ...]
    n_jobs: int | None = None
    progress: Progress = None
    omit_unavailable: bool = False  # whether what would take too many rows is left out instead of raising


def is_channel(mechanism: Mechanism) -> bool:
    """Whether it is a channel, a stack of channels, or a matrix that can be one."""
    return isinstance(mechanism, (AnyChannel, ChannelStack, np.ndarray, list, tuple))


def channel_with_prior(prior: Prior | AnyChannel, mechanism: Mechanism) -> ChannelWithPrior:
    """The channel and its prior, both checked."""
    if type(mechanism) is Channel and (prior is None or _is_valid_prior(prior, mechanism.inputs)):
        return ChannelWithPrior(mechanism, prior)
    if isinstance(prior, AnyChannel):
        raise DomainError(
            f"prior must be probabilities, a Pmf or None; got a channel, {validate.shown(prior)}. The prior goes "
            "first, then the channel."
        )
    channel: Any = mechanism
    if not isinstance(mechanism, AnyChannel):
        channel = validate.with_argument_name("matrix", "mechanism", lambda: Channel(mechanism))  # type: ignore[arg-type]
    weights: Any = prior.probabilities if isinstance(prior, Pmf) else prior
    if isinstance(weights, list) and isinstance(channel, ProductChannel):
        weights = tuple(weights) if any(np.ndim(marginal) == 1 for marginal in weights) else weights
    checked = channel._validated_prior(weights)
    for vector in checked if isinstance(checked, tuple) else (checked,):
        if isinstance(vector, np.ndarray) and ((vector > 0) & (vector < LEAST_PRIOR)).any():
            raise DomainError(
                f"prior must be 0 or at least {LEAST_PRIOR:g} at every secret; got "
                f"{float(vector[vector > 0].min())!r}. Set it to 0 to leave the secret out."
            )
    return ChannelWithPrior(channel, checked)


def _is_valid_prior(prior: Any, inputs: int) -> bool:
    """Whether it is a plain vector that passes all checks, by one call of the kernel; others are checked elsewhere."""
    if not (type(prior) is np.ndarray and prior.dtype == np.float64 and prior.shape == (inputs,)):
        return False
    if prior.base is not None or not prior.flags.c_contiguous:
        return False
    return bool(0.0 <= _channel_quantities.prior_gap(prior) <= _SUM_TOLERANCE)


def with_distinct_rows(model: ChannelWithPrior) -> ChannelWithPrior:
    """The same model with one row for all default secrets, if its rows can be enumerated; else TooLargeError."""
    channel, prior = model
    if not isinstance(channel, DefaultChannel):
        return with_all_rows(model)
    listed = channel.indices
    if prior is None:
        size = float(channel.inputs)
        weights = np.append(np.full(listed.size, 1 / size), (channel.inputs - listed.size) / size)
    else:
        weights = np.append(prior[listed], float(np.sum(np.delete(prior, listed), dtype=np.longdouble)))
    return ChannelWithPrior(channel.distinct_rows, weights)


def with_all_rows(model: ChannelWithPrior) -> ChannelWithPrior:
    """The same model with one prior probability for each secret, if its rows can be enumerated; else TooLargeError."""
    channel, prior = model
    if not rows_are_enumerable(channel):
        raise TooLargeError(
            f"mechanism must have at most {'2**25' if _lists_sets(channel) else '2**37'} cells, 2**28 secrets and "
            f"2**28 releases to be gone through row by row; got {validate.shown(channel)}. "
            "This quantity is known in closed form for fewer families and priors."
        )
    return ChannelWithPrior(channel, channel._joint_prior(prior)) if isinstance(channel, ProductChannel) else model


def rows_are_enumerable(channel: AnyChannel) -> bool:
    """Whether the channel is small enough to be gone through row by row."""
    cells = _MOST_SET_CELLS if _lists_sets(channel) else _MOST_CELLS
    return channel._cells_within(cells) and max(channel.inputs, channel.outputs) <= _MOST_ENTRIES


def automatic_cells(channel: AnyChannel) -> int:
    """Largest number of cells that ``summary`` goes through for a channel of parameters."""
    return _MOST_SET_CELLS if _lists_sets(channel) else 2**32


def estimate(bracket: Bracket, unit: Unit) -> Estimate:
    """The bracket as an Estimate in this unit."""
    lower, upper = min(bracket.lower, bracket.value), max(bracket.upper, bracket.value)
    return Estimate(bracket.value, lower, upper, kind=bracket.kind, unit=unit, method=bracket.method)


def _lists_sets(channel: AnyChannel) -> bool:
    return isinstance(channel, (UnaryEncoding, SubsetSelection))
