"""All that follows from cells, one way or the other: closed forms, classes of like releases, or the rows themselves.

Quantities by name: ``ldp`` and ``support`` (LDP over all secrets and over those with prior), ``plus`` and ``minus``
(both sides of MBP), ``information``, ``pointwise``, ``vulnerability`` (after), ``before`` (the same without a release),
``gain`` (log of their ratio), ``maximal`` and ``maximal_support`` (maximal leakage). Of a product, logs add up.
"""

# bounds: tested by enclosures/test_channel_notions - rounding where a log or a difference is taken of a reading

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

from ... import _parallel
from ...capacity import structured
from ...channels import Channel, DefaultChannel, ProductChannel
from ...estimate import Kind
from . import classes, columns
from .arguments import UNIT, Reading, Setting, written
from .sets.readings import readings as of_sets
from .table import Columns, Table
from .table import columns as first_pass
from .table import rows as second_pass

__all__ = ["EDGES", "edges", "from_columns", "readings", "walked"]

EDGES = ("ldp", "support", "plus", "minus")
_GUESSES = ("vulnerability", "before", "gain")
_LOGS = ("vulnerability", "before")


def readings(given: Setting, wanted: Iterable[str], *, n_jobs: int | None = None, progress: Any = None) -> dict[
    str, Reading
]:  # fmt: skip
    """The quantities that are wanted."""
    _parallel.checked(n_jobs, progress)
    names = tuple(wanted)
    channel, prior = given
    if isinstance(channel, ProductChannel) and (prior is None or isinstance(prior, tuple)):
        return _sums(channel, prior, names, n_jobs, progress)
    found: dict[str, Reading] = {}
    if not isinstance(channel, (Channel, DefaultChannel)):
        if not set(names).isdisjoint(EDGES):
            found |= edges(given)
        if not set(names) <= set(found):
            found |= _grouped(given, names)
    elif isinstance(channel, DefaultChannel) and not set(names).isdisjoint(_GUESSES):
        profiles = channel._profiles(prior)
        found |= dict(zip(_GUESSES, classes.vulnerability(profiles, channel.mass_gap), strict=True))
        found["before"] = _exponential(found["before"])
    left = [name for name in names if name not in found]
    if left:
        found = walked(Table(written(given)), left, n_jobs=n_jobs, progress=progress) | found
    return {name: found[name] for name in names}


def walked(table: Table, names: Iterable[str], *, n_jobs: int | None = None, progress: Any = None) -> dict[
    str, Reading
]:  # fmt: skip
    """The same from the rows of a channel."""
    first = first_pass(table, n_jobs=n_jobs, progress=progress)
    found = from_columns(table, first, names)
    if {"information", "pointwise"} & set(names):
        second = second_pass(table, first, n_jobs=n_jobs, progress=progress)
        found["information"] = columns.information(table, first, second)
        found["pointwise"] = columns.pointwise(table, second)
    return found


def from_columns(table: Table, first: Columns, names: Iterable[str]) -> dict[str, Reading]:
    """What the first pass yields of them."""
    ways: tuple[tuple[tuple[str, ...], Callable[[], tuple[Reading, ...]]], ...] = (
        (("ldp",), lambda: (columns.edge_ratio(table, first, False),)),
        (("support",), lambda: (columns.edge_ratio(table, first, True),)),
        (("plus", "minus"), lambda: columns.log_ratios(table, first)),
        (_GUESSES, lambda: columns.vulnerability(table, first)),
        (("maximal",), lambda: (columns.maximal(table, first, False),)),
        (("maximal_support",), lambda: (columns.maximal(table, first, True),)),
    )
    wanted = set(names)
    found: dict[str, Reading] = {}
    for keys, way in ways:
        if not wanted.isdisjoint(keys):
            found |= dict(zip(keys, way(), strict=True))
    return found


def edges(given: Setting) -> dict[str, Reading]:
    """LDP and both sides of MBP where a family has them in closed form."""
    extremes = given.channel._extremes(given.prior)
    return {} if extremes is None else classes.edges(extremes, given.channel, given.gap)


def _grouped(given: Setting, names: tuple[str, ...]) -> dict[str, Reading]:
    profiles = classes.grouped(given)
    if profiles is None:
        return of_sets(given, names)
    gap = given.channel.mass_gap
    found = dict(zip(_GUESSES, classes.vulnerability(profiles, gap), strict=True))
    found["before"] = _exponential(found["before"])
    found["information"] = classes.information(profiles, given.channel)
    found["maximal"] = classes.maximal(profiles, False, gap)
    found["maximal_support"] = classes.maximal(profiles, True, gap)
    if given.prior is None and structured.alike(given.channel):
        found["pointwise"] = found["information"]
    return found


def _sums(channel: ProductChannel, prior: Any, names: tuple[str, ...], n_jobs: Any, progress: Any) -> dict[
    str, Reading
]:  # fmt: skip
    priors = (None,) * len(channel.factors) if prior is None else prior
    parts = [
        (own, readings(Setting(one, pi), names, n_jobs=n_jobs, progress=progress))
        for one, own, pi in zip(channel.factors, channel.powers, priors, strict=True)
    ]
    found = {}
    for name in names:
        if name in _LOGS:
            parts_of = [(own, _logarithm(one[name])) for own, one in parts]
        else:
            parts_of = [(own, one[name]) for own, one in parts]
        kind: Kind = "certified" if any(one.kind == "certified" for _, one in parts_of) else "exact"
        value, lower, upper = (
            _total([own * float(getattr(one, field)) for own, one in parts_of]) for field in ("value", "lower", "upper")
        )
        if lower == math.inf and not any(one.lower == math.inf for _, one in parts_of):
            lower = sys.float_info.max  # a sum that is finite, and no double
        if value < math.inf:
            lower, upper = lower - 4 * UNIT * abs(lower), upper + 4 * UNIT * abs(upper)
        reading = Reading(value, lower, upper, kind, "sum over factors")
        if name in _LOGS:
            reading = _exponential(reading)
        found[name] = reading
    return found


def _total(terms: list[float]) -> float:
    try:
        return math.inf if math.inf in terms else math.fsum(terms)
    except OverflowError:
        return math.inf


def _logarithm(one: Reading) -> Reading:
    value, lower, upper = (math.log(x) if x > 0 else -math.inf for x in (one.value, one.lower, one.upper))
    return Reading(value, lower - 2 * UNIT * abs(lower), upper + 2 * UNIT * abs(upper), one.kind, one.method)


def _exponential(one: Reading) -> Reading:
    value, lower, upper = (math.exp(x) for x in (one.value, one.lower, one.upper))
    return Reading(value, lower * (1 - 4 * UNIT), min(1.0, upper * (1 + 4 * UNIT)), one.kind, one.method)
