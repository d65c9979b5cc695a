"""The quantities of one mechanism: Gaussian noise, or a channel.

What a channel does not give away in reasonable time (the curve of a million rows; a law of 2**42 releases under a prior
without symmetry) is bracketed by what it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import notions
from ..channels import AnyChannel
from ..errors import DomainError
from ..estimate import Estimate
from . import brackets
from .inputs.secrets import Secret

__all__ = ["CHANNEL", "GAUSSIAN", "measured"]

FloatArray = NDArray[np.float64]
LDP_DELTA = 1e-5
_PAIRS = 2**34  # rows times rows times releases that are compared for a curve
_CELLS = 2**24  # of a channel whose capacity is solved for
_POINTS = 64  # of a grid that is refined
_LARGEST = 700.0


def measured(secret: Secret, mechanism: Any, epsilon: FloatArray) -> dict[str, Estimate]:
    """Every quantity of one mechanism; the curves at all of ``epsilon``."""
    if isinstance(mechanism, AnyChannel):
        return _channel(secret, mechanism, epsilon)
    found: dict[str, Estimate] = {}
    for measure in GAUSSIAN:
        found.update(measure(secret, mechanism, epsilon))
    return found


def _local(secret: Secret, mechanism: Any, epsilon: FloatArray) -> Mapping[str, Estimate]:
    return {
        "ldp_delta": mechanism.delta(epsilon),
        "log_ldp_delta": mechanism.log_delta(epsilon),
        "ldp_epsilon": mechanism.epsilon(LDP_DELTA),
        "pure_ldp_epsilon": mechanism.epsilon(0.0),
    }


def _information(secret: Secret, mechanism: Any, epsilon: FloatArray) -> Mapping[str, Estimate]:
    delta, log_delta = notions.lip_curves(secret.prior, mechanism, epsilon)
    return {"lip_delta": delta, "log_lip_delta": log_delta}


def _average(secret: Secret, mechanism: Any, epsilon: FloatArray) -> Mapping[str, Estimate]:
    return {"mutual_information": notions.cd_lmip(secret.prior, mechanism).to("bits")}


def _bayesian(secret: Secret, mechanism: Any, epsilon: FloatArray) -> Mapping[str, Estimate]:
    abp = notions.abp(secret.prior, mechanism)
    return {"abp_max": abp.maximum, "abp_mean": abp.mean, "mbp_xi": notions.mbp_xi(secret.prior, mechanism)}


GAUSSIAN: tuple[Callable[[Secret, Any, FloatArray], Mapping[str, Estimate]], ...] = (
    _local, _information, _average, _bayesian,
)  # fmt: skip


def _channel(secret: Secret, channel: AnyChannel, epsilon: FloatArray) -> dict[str, Estimate]:
    prior = secret.weights
    known = notions.summary(prior, channel, n_jobs=1)
    level, mbp = notions.ldp_epsilon(None, channel, n_jobs=1), notions.mbp(prior, channel, n_jobs=1)
    xi, plus = notions.mbp_xi(prior, channel, n_jobs=1), mbp.plus
