"""The quantities of one mechanism: Gaussian noise, or a channel.

What a channel does not give away in reasonable time (a law of 2**40 releases under a prior without symmetry) is
bracketed by what it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import notions
from ..channels import AnyChannel
from ..estimate import Estimate
from .inputs.secrets import Secret

__all__ = ["CHANNEL", "GAUSSIAN", "measured"]

FloatArray = NDArray[np.float64]
LDP_DELTA = 1e-5


def measured(secret: Secret, mechanism: Any, epsilon: FloatArray) -> dict[str, Estimate]:
    """Every quantity of one mechanism; the curves at all of ``epsilon``."""
    found: dict[str, Estimate] = {}
    for measure in CHANNEL if isinstance(mechanism, AnyChannel) else GAUSSIAN:
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


Measure = Callable[[Secret, Any, FloatArray], Mapping[str, Estimate]]
GAUSSIAN: tuple[Measure, ...] = (_local, _information, _average, _bayesian)
CHANNEL: tuple[Measure, ...] = ()
