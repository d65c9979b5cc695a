"""``monotone``: a function of numbers that also takes an ``Estimate`` for each of them, and carries its bounds through.

Notation: the estimate [lower, upper] of x, and a function f that is monotone in x. f(x) lies between the values of f at
the two ends, and each of these lies between its own bounds. The lower bound of the answer is therefore the lower bound
at the end where f is least, and the upper bound is the upper bound at the end where f is largest; ``value`` is f at
``value``. With several estimates the ends are combined, each by its own direction. The kind is the weakest of all. The
error probabilities of statistical intervals are added (union bound), since nothing is known of their dependence.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import numpy as np

from . import validate
from .errors import DomainError
from .estimate import KINDS, Estimate, Unit
from .numerics import SQRT_LOG_2

__all__ = ["UNITS", "Ends", "in_unit", "monotone", "weakest"]

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
Ends = tuple[dict[str, Any], dict[str, Any]]  # the arguments at which an answer is least, and largest

_INFORMATION = "information"  # stands for the unit that the keyword ``unit`` of the function names; nats without it
_NUMBER: Unit = "1"  # unit of plain numbers

# The unit of every parameter that may be an Estimate: a name means one thing in the whole package.
UNITS: Mapping[str, str] = {
    name: unit
    for unit, names in (
        (_INFORMATION, "capacity kl leakage mu"),
        ("nats", "belief_gap epsilon prior_spread renyi rho target_epsilon xi xi_minus xi_plus"),
        ("probability", "a b beta delta frequency p pi_min total_variation type_one"),
        ("log probability", "log_delta"),
        (_NUMBER, "alpha amplitude c1 c2 decay group inputs noise_power order power relative_error sensitivity "
                  "separation sigma signal_power trials"),
    )
    for name in names.split()
}
_LIMITS = {  # ranges that the truth lies in, so that bounds outside of them are clipped: by unit, or by parameter
    "nats": (0.0, np.inf), "bits": (0.0, np.inf), "probability": (0.0, 1.0), "log probability": (-np.inf, 0.0),
    "pi_min": (0.0, 0.5), "c1": (0.0, SQRT_LOG_2),
}
_DESCRIPTIONS = {  # of units, in errors
    **dict.fromkeys(("nats", "bits"), "an amount of information, in nats or bits"),
    **dict.fromkeys(("probability", "log probability"), "a probability or its logarithm"),
    _NUMBER: "a number without a unit",
}


def monotone(
    *, rising: str = "", falling: str = "", widening: str = "", at_value: str = "", between: str = "",
    ends: Callable[..., Ends] | None = None, joint: str = "", safe: bool = False,
) -> Callable[[Callable[Arguments, Answer]], Callable[Arguments, Answer]]:
    """Decorator: the function takes estimates for the parameters that are named here, separated by spaces.

    Parameters
    ----------
    rising, falling : str
        Parameters with which the answer never falls, or never rises.
    widening : str
        Parameters with which the lower bound never rises and the upper bound never falls.
    at_value : str
        Parameters of which only ``value`` is used, in the unit of the parameter: for answers that have no bounds.
    between, ends : str and callable
        Parameters in which the answer is not monotone. ``ends`` takes their brackets by name, and returns the arguments
        at which the answer is least and those at which it is largest.
    joint : str
        Those of the above whose entries are all used for one answer, so that all of their bounds have to hold at once.
    safe : bool
        The answer is an object without bounds; it is computed at the ends where it is largest.
    """
    directions = {
        **dict.fromkeys(f"{rising} {between}".split(), ("lower", "upper")),
        **dict.fromkeys(falling.split(), ("upper", "lower")),
        **dict.fromkeys(widening.split(), ("upper", "upper")),
        **dict.fromkeys(at_value.split(), ("value", "value")),
    }

    def decorate(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
        signature = inspect.signature(function)
        unknown = [name for name in directions if name not in signature.parameters or name not in UNITS]
        if unknown:
            raise DomainError(f"directions must be of parameters with a unit; got {unknown[0]!r}. Add it to UNITS.")

        @functools.wraps(function)
        def with_estimates(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
            for argument in (*args, *kwargs.values()):
                if isinstance(argument, Estimate):
                    break
            else:  # plain numbers, the common case, cost one short loop
                return function(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            answer: Answer = _propagate(function, bound, directions, ends, joint.split(), safe)
            return answer

        with_estimates.__dict__["directions"] = directions
        return with_estimates

    return decorate


def in_unit(function: Callable[Arguments, Estimate]) -> Callable[Arguments, Estimate]:
    """Decorator: convert the answer of a function that computes in nats to the unit of its keyword ``unit``."""

    @functools.wraps(function)
    def converting(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Estimate:
        unit: Any = validate.choice("unit", kwargs.get("unit", "nats"), ("nats", "bits"))
        try:
            return function(*args, **kwargs).to(unit)
        except KeyboardInterrupt as error:
            if isinstance(best := getattr(error, "best", None), Estimate):
                error.best = best.to(unit)  # type: ignore[attr-defined]
            raise

    return converting


def weakest(*estimates: Estimate, times: tuple[int, ...] = ()) -> tuple[Any, float | None]:
    """The weakest kind, and the confidence that all estimates hold at once; of each, ``times`` entries are used."""
    kind = max((estimate.kind for estimate in estimates), key=KINDS.index)
    if kind != "statistical":
        return kind, None
    counts = times or (1,) * len(estimates)
    levels = [(item.confidence, n) for item, n in zip(estimates, counts, strict=True) if item.confidence is not None]
    error_probability = sum(n * (1.0 - level) for level, n in levels)
    return kind, max(0.0, 1.0 - error_probability)


def _propagate(
    function: Callable[..., Any], bound: inspect.BoundArguments, directions: Mapping[str, tuple[str, str]],
    ends: Callable[..., Ends] | None, joint: list[str], safe: bool,
) -> Any:
    unit = bound.arguments.get("unit", "nats")
    estimates = {
        name: _converted(name, value, unit, name in directions)
        for name, value in bound.arguments.items()
        if isinstance(value, Estimate)
    }

    def evaluate(arguments: Mapping[str, Any]) -> Any:
        bound.arguments.update(arguments)
        try:
            return function(*bound.args, **bound.kwargs)
        except KeyboardInterrupt:  # the result that it may carry is of one end only
            raise KeyboardInterrupt from None

    values = {name: entry.value for name, entry in estimates.items()}
    least, most = ({name: getattr(item, directions[name][i]) for name, item in estimates.items()} for i in (0, 1))
    if ends is not None:
        both = {name: validate.array(name, bound.arguments[name]) for name in directions if name not in estimates}
        least, most = ends(
            **{name: (np.asarray(element.lower), np.asarray(element.upper)) for name, element in estimates.items()},
            **{name: (number, number) for name, number in both.items()},
        )
    if safe:
        return evaluate(most)
    central = evaluate(values)
    exact = all(np.array_equal(estimate.lower, estimate.upper) for estimate in estimates.values())
    if exact or all(directions[name][0] == "value" for name in estimates):
        parts = (central, central)
    else:
        parts = (evaluate(least), evaluate(most))
    counts = tuple(int(np.size(estimate.value)) if name in joint else 1 for name, estimate in estimates.items())
    return _bracketed(central, *parts, tuple(estimates.values()), counts, ", ".join(estimates))


def _bracketed(
    central: Any, least: Any, most: Any, known: tuple[Estimate, ...], counts: tuple[int, ...], names: str
) -> Any:
    """The answer at ``value`` with the bounds at the ends, in every Estimate of which the answer consists."""
    if isinstance(central, Estimate):
        end_estimates = (least,) if least is most else (least, most)
        kind, confidence = weakest(*known, *end_estimates, times=(*counts, *(1 for _ in end_estimates)))
        lower, upper = np.minimum(least.lower, central.value), np.maximum(most.upper, central.value)
        method = central.method if least is most else f"{central.method}, over the bracket of {names}"
        return dataclasses.replace(
            central, value=central.value, lower=lower, upper=upper, kind=kind, confidence=confidence, method=method
        )
    if isinstance(central, tuple):
        parts = zip(central, least, most, strict=True)
        return tuple(_bracketed(item, low, high, known, counts, names) for item, low, high in parts)
    if dataclasses.is_dataclass(central) and not isinstance(central, type):
        changed = {}
        for field in dataclasses.fields(central):
            entry, low, high = (getattr(answer, field.name) for answer in (central, least, most))
            if isinstance(entry, Estimate):
                changed[field.name] = _bracketed(entry, low, high, known, counts, names)
        return dataclasses.replace(central, **changed)
    return central


def _converted(name: str, estimate: Estimate, unit: str, has_direction: bool) -> Estimate:
    """Convert an estimate to the unit of the parameter, and clip its bounds to the range of the parameter."""
    if not has_direction:
        raise DomainError(
            f"{name} must be a number, since neither end of a bracket is known to be the safe one; got an Estimate. "
            "Pass its value, lower or upper, whichever is meant."
        )
    wanted: Any = unit if UNITS[name] == _INFORMATION else UNITS[name]
    if wanted not in _DESCRIPTIONS:  # an invalid keyword ``unit``: the function itself raises the error
        return estimate
    try:
        converted = estimate.to(wanted)
    except DomainError:
        raise DomainError(
            f"{name} must be {_DESCRIPTIONS[wanted]}; got an Estimate with the unit {estimate.unit!r}. Pass an "
            "Estimate of the quantity meant, or a number."
        ) from None
    least, most = _LIMITS.get(name, _LIMITS.get(wanted, (-np.inf, np.inf)))
    lower, upper = np.maximum(converted.lower, least), np.minimum(converted.upper, most)  # the truth lies in both
    if np.all(lower <= converted.value) and np.all(converted.value <= upper):
        return dataclasses.replace(converted, lower=lower, upper=upper)
    return converted
