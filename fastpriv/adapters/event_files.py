"""Lists of events of other accountants in JSON files, as steps of a composition.

Opacus: ``accountant.history``, rows of noise multiplier, sampling rate and number of steps, or ``state_dict()``, which
has it under ``history``. dp_accounting: an event as ``json.dumps(event, default=lambda e: {"class_name":
type(e).__name__, **vars(e)})`` writes it, or a list of such events.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .. import _validate
from ..errors import DomainError
from .step_tables import ComposedStep, make_step

__all__ = ["read_events"]

_MAX_DEPTH = 100  # events inside events


def read_events(path: str | os.PathLike[str]) -> list[ComposedStep]:
    """Read the steps of a JSON file of Opacus or dp_accounting.

    Raises
    ------
    DomainError
        For a file that is neither, or an event that is no step; the text names the file and the place in it.
    OSError
        When the file cannot be read.
    """
    file = _validate.path("events", path)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DomainError(f"{str(file)!r} must be JSON; got {error}. Write it with json.dump.") from None
    if isinstance(content, dict) and "history" in content:
        content = content["history"]
    if isinstance(content, list) and content and all(isinstance(row, list) and len(row) == 3 for row in content):
        entries: Iterator[Any] = (
            (f"history[{k}]", {"kind": "sampled_gaussian", "sigma": sigma, "rate": rate, "count": count})
            for k, (sigma, rate, count) in enumerate(content)
        )
    else:
        entries = _entries("event", content, 1, None, 0)
    steps = []
    try:
        for place, entry in entries:
            try:
                steps.append(make_step(entry))
            except DomainError as error:
                raise DomainError(f"{place} must be a step; got one where {error}") from None
    except DomainError as error:
        raise DomainError(f"{str(file)!r} must be events of Opacus or dp_accounting; got one where {error}") from None
    if not steps:
        raise DomainError(f"{str(file)!r} must have at least one event; got none. Write the history of a training.")
    return steps


def _entries(
    place: str, event: Any, count: int, rate: float | None, depth: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The steps of an event, taken ``count`` times on a Poisson sample of this rate, None for all records."""
    if depth > _MAX_DEPTH:
        raise DomainError(f"{place} must be at most {_MAX_DEPTH} events deep; got more. Write repeated ones once.")
    if isinstance(event, list):
        for k, one in enumerate(event):
            yield from _entries(f"{place}[{k}]", one, count, rate, depth + 1)
        return
    if not isinstance(event, dict) or not isinstance(event.get("class_name"), str):
        raise DomainError(
            f"{place} must be an object with its class_name, or rows of a history; got {_validate.shown(event)}. Write "
            "it as the documentation says."
        )
    name = event["class_name"].removesuffix("DpEvent")
    if name == "NoOp":
        return
    if name == "Composed":
        yield from _entries(f"{place}.events", event.get("events"), count, rate, depth + 1)
    elif name == "SelfComposed":
        times = _validate.count(f"{place}.count", event.get("count"), minimum=0)
        yield from _entries(f"{place}.event", event.get("event"), count * times, rate, depth + 1)
    elif name == "PoissonSampled" and rate is None:
        sampling = event.get("sampling_probability")
        yield from _entries(f"{place}.event", event.get("event"), count, sampling, depth + 1)
    elif name == "Gaussian" and rate is not None:
        yield place, {"kind": "sampled_gaussian", "sigma": event.get("noise_multiplier"), "rate": rate, "count": count}
    elif name in _PLAIN_EVENTS and rate is None:
        yield place, {"count": count} | _PLAIN_EVENTS[name](event)
    else:
        sampled = "" if rate is None else " on a Poisson sample"
        raise DomainError(
            f"{place} must be one of NoOp, Composed, SelfComposed, PoissonSampled of Gaussian, "
            f"{', '.join(_PLAIN_EVENTS)}; got {event['class_name']}{sampled}. Pass its pair to fastpriv.compose."
        )


def _response(event: Mapping[str, Any]) -> dict[str, Any]:
    """Of k values each is released with probability noise / k, and the true one with 1 - noise besides."""
    noise, k = event.get("noise_parameter"), event.get("num_buckets")
    share = _validate.scalar("noise_parameter", noise, "above 0 and at most 1", lambda x: (x > 0) & (x <= 1))
    values = _validate.count("num_buckets", k, minimum=1)
    return {"kind": "randomized_response", "epsilon": math.log1p(values * (1.0 - share) / share), "k": values}


# Events whose step has the parameters of the event alone, by the name of their class.
_PLAIN_EVENTS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "Gaussian": lambda event: {"kind": "gaussian", "sigma": event.get("noise_multiplier")},
    "Laplace": lambda event: {"kind": "laplace", "scale": event.get("noise_multiplier")},
    "EpsilonDelta": lambda event: {
        "kind": "approximate_dp", "epsilon": event.get("epsilon"), "delta": event.get("delta")
    },
    "RandomizedResponse": _response,
}  # fmt: skip
