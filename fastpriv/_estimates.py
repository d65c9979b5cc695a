"""``monotone``: a function of numbers takes an ``Estimate`` for each of them, and its bracket becomes the answer's.

Notation: an estimate [lower, upper] of x, a function f that rises or falls with x throughout. f(x) lies between f at
one end and f at the other, and each of these between its own bounds: the lower bound of the answer is that of f at the
end where f is least, the upper bound that of f where it is most; ``value`` is f at ``value``. With several estimates
the ends are taken together, each by its own direction. The kind is the weakest of all; what statistical intervals may
miss is added up (the union bound), since nothing is known of their dependence.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import numpy as np

from . import _validate
from .errors import DomainError
from .estimate import KINDS, Estimate, Unit

__all__ = ["UNITS", "Ends", "in_unit", "monotone", "weakest"]

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
Ends = tuple[dict[str, Any], dict[str, Any]]  # the arguments at which an answer is least, and most

_INFORMATION = "information"  # in the keyword ``unit`` of the function, nats where it has none
_NUMBER: Unit = "1"

# The unit of every parameter that may be an Estimate: a name means one thing in the whole package.
UNITS: Mapping[str, str] = {
    **dict.fromkeys(("capacity", "kl", "leakage", "mu"), _INFORMATION),
    **dict.fromkeys(
        ("belief_gap", "epsilon", "prior_spread", "renyi", "rho", "target_epsilon", "xi", "xi_minus", "xi_plus"), "nats"
    ),
    **dict.fromkeys(
        ("a", "atom", "b", "beta", "delta", "frequency", "p", "pi_max", "pi_min", "total_variation", "type_one",
         "type_two"), "probability",
    ),
    "log_delta": "log probability",
    **dict.fromkeys(
        ("alpha", "amplitude", "attacks", "c1", "c2", "decay", "group", "inputs", "noise_power", "order", "power",
         "relative_error", "sensitivity", "separation", "sigma", "signal_power", "trials"), _NUMBER,
    ),
}  # fmt: skip
_LIMITS = {
    "nats": (0.0, np.inf), "bits": (0.0, np.inf), "probability": (0.0, 1.0), "log probability": (-np.inf, 0.0),
    "pi_min": (0.0, 0.5), "c1": (0.0, float(np.sqrt(np.log(2.0)))),
}  # fmt: skip
_WANTED = {
    "nats": "an amount of information, in nats or bits", "bits": "an amount of information, in nats or bits",
    "probability": "a probability or its logarithm", "log probability": "a probability or its logarithm",
    _NUMBER: "a number without a unit",
}  # fmt: skip


def monotone(
    *, rising: str = "", falling: str = "", widening: str = "", at_value: str = "", between: str = "",
    ends: Callable[..., Ends] | None = None, joint: str = "", safe: bool = False,
) -> Callable[[Callable[Arguments, Answer]], Callable[Arguments, Answer]]:  # fmt: skip
    """Let a function take estimates for the parameters that are named, separated by spaces.

    Parameters
    ----------
    rising, falling : str
        Parameters with which the answer never falls, or never rises.
    widening : str
        Parameters with which the lower bound never rises and the upper bound never falls.
    at_value : str
        Parameters whose ``value`` alone is used, in the unit of the parameter: for answers that have no bounds.
    between, ends : str and callable
        Parameters with which the answer rises and falls; the function takes their brackets, by name, and says where
        between lower and upper the answer is least and where it is most.
    joint : str
        Those of the above whose entries are used together for one answer, so that all of them have to hold.
    safe : bool
        The answer is an object without bounds, made for the ends where it is most.
    """
    directions = {
        **dict.fromkeys(rising.split(), ("lower", "upper")), **dict.fromkeys(falling.split(), ("upper", "lower")),
        **dict.fromkeys(widening.split(), ("upper", "upper")), **dict.fromkeys(at_value.split(), ("value", "value")),
        **dict.fromkeys(between.split(), ("lower", "upper")),
    }  # fmt: skip

    def taking(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
        signature = inspect.signature(function)
        unknown = [name for name in directions if name not in signature.parameters or name not in UNITS]
        if unknown:
            raise DomainError(f"directions must be of parameters with a unit; got {unknown[0]!r}. Add it to UNITS.")

        @functools.wraps(function)
        def estimating(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
            for one in args:
                if isinstance(one, Estimate):
                    break
            else:
                for one in kwargs.values():
                    if isinstance(one, Estimate):
                        break
                else:
                    return function(*args, **kwargs)
            given = signature.bind(*args, **kwargs)
            found: Answer = _of_estimates(function, given, directions, ends, joint.split(), safe)
            return found

        estimating.__dict__["directions"] = directions
        return estimating

    return taking


def in_unit(function: Callable[Arguments, Estimate]) -> Callable[Arguments, Estimate]:
    """Let a function that computes in nats have a keyword ``unit``: its answer is converted."""

    @functools.wraps(function)
    def converting(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Estimate:
        unit: Any = _validate.choice("unit", kwargs.get("unit", "nats"), ("nats", "bits"))
        try:
            return function(*args, **kwargs).to(unit)
        except KeyboardInterrupt as error:
            if isinstance(best := getattr(error, "best", None), Estimate):
                error.best = best.to(unit)  # type: ignore[attr-defined]
            raise

    return converting


def weakest(*estimates: Estimate, times: tuple[int, ...] = ()) -> tuple[Any, float | None]:
    """The weakest kind, and the confidence that all hold together; ``times`` as many entries of each are needed."""
    kind = max((one.kind for one in estimates), key=KINDS.index)
    if kind != "statistical":
        return kind, None
    counts = times or (1,) * len(estimates)
    levels = [(one.confidence, n) for one, n in zip(estimates, counts, strict=True) if one.confidence is not None]
    missed = sum(n * (1.0 - level) for level, n in levels)
    return kind, max(0.0, 1.0 - missed)


def _of_estimates(
    function: Callable[..., Any], given: inspect.BoundArguments, directions: Mapping[str, tuple[str, str]],
    ends: Callable[..., Ends] | None, joint: list[str], safe: bool,
) -> Any:  # fmt: skip
    unit = given.arguments.get("unit", "nats")
    known = {
        name: _converted(name, value, unit, name in directions)
        for name, value in given.arguments.items() if isinstance(value, Estimate)
    }  # fmt: skip

    def at(arguments: Mapping[str, Any]) -> Any:
        given.arguments.update(arguments)
        try:
            return function(*given.args, **given.kwargs)
        except KeyboardInterrupt:  # what it may carry is of one end alone
            raise KeyboardInterrupt from None

    values = {name: one.value for name, one in known.items()}
    least, most = ({name: getattr(one, directions[name][i]) for name, one in known.items()} for i in (0, 1))
    if ends is not None:
        both = {name: _validate.array(name, given.arguments[name]) for name in directions if name not in known}
        least, most = ends(
            **{name: (np.asarray(one.lower), np.asarray(one.upper)) for name, one in known.items()},
            **{name: (number, number) for name, number in both.items()},
        )
    if safe:
        return at(most)
    central = at(values)
    certain = all(np.array_equal(one.lower, one.upper) for one in known.values())
    if certain or all(directions[name][0] == "value" for name in known):
        parts = (central, central)
    else:
        parts = (at(least), at(most))
    counts = tuple(int(np.size(one.value)) if name in joint else 1 for name, one in known.items())
    return _bracketed(central, *parts, tuple(known.values()), counts, ", ".join(known))


def _bracketed(
    central: Any, least: Any, most: Any, known: tuple[Estimate, ...], counts: tuple[int, ...], names: str
) -> Any:
    """The answer at ``value`` with the bounds of the ends, in all estimates that it consists of."""
    if isinstance(central, Estimate):
        own = (least,) if least is most else (least, most)
        kind, confidence = weakest(*known, *own, times=(*counts, *(1 for _ in own)))
        lower, upper = np.minimum(least.lower, central.value), np.maximum(most.upper, central.value)
        method = central.method if least is most else f"{central.method}, over the bracket of {names}"
        return dataclasses.replace(
            central, value=central.value, lower=lower, upper=upper, kind=kind, confidence=confidence, method=method
        )
    if isinstance(central, tuple):
        parts = zip(central, least, most, strict=True)
        return tuple(_bracketed(one, low, high, known, counts, names) for one, low, high in parts)
    if dataclasses.is_dataclass(central) and not isinstance(central, type):
        changed = {}
        for field in dataclasses.fields(central):
            one, low, high = (getattr(answer, field.name) for answer in (central, least, most))
            if isinstance(one, Estimate):
                changed[field.name] = _bracketed(one, low, high, known, counts, names)
        return dataclasses.replace(central, **changed)
    return central


def _converted(name: str, given: Estimate, unit: str, taken: bool) -> Estimate:
    """The estimate in the unit of the parameter."""
    if not taken:
        raise DomainError(
            f"{name} must be a number, since neither end of a bracket is known to be the safe one; got an Estimate. "
            "Pass its value, lower or upper, whichever is meant."
        )
    wanted: Any = unit if UNITS[name] == _INFORMATION else UNITS[name]
    if wanted not in _WANTED:  # not a unit: for the function to say so
        return given
    try:
        found = given.to(wanted)
    except DomainError:
        raise DomainError(
            f"{name} must be {_WANTED[wanted]}; got an Estimate with the unit {given.unit!r}. Pass an Estimate of the "
            "quantity meant, or a number."
        ) from None
    least, most = _LIMITS.get(name, _LIMITS.get(wanted, (-np.inf, np.inf)))
    lower, upper = np.maximum(found.lower, least), np.minimum(found.upper, most)  # the truth lies within both
    if np.all(lower <= found.value) and np.all(found.value <= upper):
        return dataclasses.replace(found, lower=lower, upper=upper)
    return found
