"""Capacity of any channel: a closed form where all secrets are alike, sums over factors, else solved."""

from __future__ import annotations

import math

from ...capacity.discrete import channel_capacity
from ...channels import AnyChannel, DefaultChannel, ProductChannel
from ...estimate import Estimate
from . import classes
from .arguments import UNIT, Setting, estimate

__all__ = ["capacity"]


def capacity(channel: AnyChannel, gap: float, n_jobs: int | None) -> Estimate:
    """Certified, in nats."""
    if isinstance(channel, ProductChannel):
        width = gap / sum(channel.powers)
        parts = [(own, capacity(one, max(width, 1e-14), n_jobs)) for one, own in
                 zip(channel.factors, channel.powers, strict=True)]  # fmt: skip
        value, lower, upper = (math.fsum(own * float(getattr(one, end)) for own, one in parts) for end in
                               ("value", "lower", "upper"))  # fmt: skip
        slack = 4 * UNIT * upper
        return Estimate(value, max(0.0, lower - slack), upper + slack, kind="certified", unit="nats",
                        method="sum over factors")  # fmt: skip
    if classes.alike(channel):
        profiles = classes.grouped(Setting(channel, None))
        if profiles is not None:
            found = classes.information(profiles, channel.mass_gap)
            return estimate(found._replace(method="all secrets alike: the uniform prior"), "nats")
    if isinstance(channel, DefaultChannel):
        channel = channel.laws
    return channel_capacity(channel, gap=gap, n_jobs=n_jobs).capacity
