"""``Estimate``: a number with its bounds, and what is known about them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import DomainError, EstimateGivenError, ShapeError

__all__ = ["Estimate", "Information", "Kind", "NumberLike", "Unit"]

_Doubles = NDArray[np.float64]
Kind = Literal["exact", "certified", "statistical", "heuristic"]
Unit = Literal["nats", "bits", "probability", "log probability", "1"]
Information = Literal["nats", "bits"]  # what a function with a keyword ``unit`` takes and gives

KINDS: tuple[str, ...] = ("exact", "certified", "statistical", "heuristic")
UNITS: tuple[str, ...] = ("nats", "bits", "probability", "log probability", "1")
_LN2 = math.log(2.0)
_SHOWN = 6  # entries that a person can read in one line


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A value with a lower and an upper bound.

    Parameters
    ----------
    value, lower, upper : float or ndarray of float64
        The estimate and its bounds, ``lower <= value <= upper``, all of one shape.
    kind : {"exact", "certified", "statistical", "heuristic"}
        What the bounds are. ``exact``: closed form, the bounds are the stated rounding error, outward.
        ``certified``: an enclosure with truncation, discretisation and rounding included, proved but for constants
        that are tested. ``statistical``: a confidence interval at level ``confidence``. ``heuristic``: an error
        estimate that is tested but not proved.
    unit : {"nats", "bits", "probability", "log probability", "1"}
        Unit of all three numbers. A ``log probability`` is a natural logarithm.
    method : str
        The path that computed the number.
    confidence : float, optional
        Level of a statistical interval, None otherwise.
    cost : mapping, optional
        What was spent, such as ``{"evaluations": 1200}``.

    Notes
    -----
    A guarantee quotes ``upper``, an attack quotes ``lower``. There is no arithmetic on an Estimate and no silent
    conversion to an array: take ``.value`` (or ``float(e)``), ``.lower`` or ``.upper`` and say which one is meant.

    Bounds of kind ``exact`` and ``certified`` rest on constants. BOUNDS.md, beside the sources, lists which of them are
    proved, computed by a script or only tested against arithmetic of more digits, and which function rests on which.

    Examples
    --------
    >>> from fastpriv import Estimate
    >>> e = Estimate(0.5, 0.4375, 0.625, kind="certified", unit="nats", method="example")
    >>> float(e), e.width
    (0.5, 0.1875)
    >>> e.to("bits").upper
    0.90168440055560...
    """

    value: Any
    lower: Any
    upper: Any
    kind: Kind = field(kw_only=True)
    unit: Unit = field(kw_only=True)
    method: str = field(kw_only=True)
    confidence: float | None = field(default=None, kw_only=True)
    cost: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise DomainError(f"kind must be one of {', '.join(KINDS)}; got {self.kind!r}. Choose one of these.")
        if not isinstance(self.unit, str) or self.unit not in UNITS:
            raise DomainError(f"unit must be one of {', '.join(UNITS)}; got {self.unit!r}. Choose one of these.")
        if not isinstance(self.cost, Mapping):
            raise DomainError(f"cost must be a mapping; got {self.cost!r}. Pass a dictionary, or leave it out.")
        if (self.kind == "statistical") != (self.confidence is not None):
            raise DomainError(
                f"confidence must be given for a statistical estimate and for no other; got kind={self.kind!r}, "
                f"confidence={self.confidence!r}. Set confidence to the level of the interval."
            )
        value, lower, upper = (_doubles(name, getattr(self, name)) for name in ("value", "lower", "upper"))
        if not value.shape == lower.shape == upper.shape:
            raise ShapeError(
                f"value, lower and upper must be of one shape; got {value.shape}, {lower.shape} and {upper.shape}. "
                "Broadcast them before building the Estimate."
            )
        ordered = (lower <= value) & (value <= upper)
        if not ordered.all():
            worst = tuple(int(i) for i in np.argwhere(~ordered)[0])
            place = f" at index {worst[0] if len(worst) == 1 else worst}" if worst else ""
            raise DomainError(
                f"value must be between lower and upper; got {float(value[worst])!r} outside [{float(lower[worst])!r}, "
                f"{float(upper[worst])!r}]{place} ({int((~ordered).sum())} of {value.size} entries). "
                "Pass bounds that contain the value."
            )
        for name, array in (("value", value), ("lower", lower), ("upper", upper)):
            array.setflags(write=False)
            object.__setattr__(self, name, float(array) if array.ndim == 0 else array)
        object.__setattr__(self, "cost", MappingProxyType(dict(self.cost)))

    @classmethod
    def _of_arrays(
        cls, value: _Doubles, lower: _Doubles, upper: _Doubles, *, kind: Kind, unit: Unit, method: str
    ) -> Estimate:
        """Of fresh arrays of doubles, of one shape and in order, that nobody else holds: not copied, not checked."""
        made = cls(0.0, 0.0, 0.0, kind=kind, unit=unit, method=method)
        for name, array in (("value", value), ("lower", lower), ("upper", upper)):
            array.setflags(write=False)
            object.__setattr__(made, name, float(array) if array.ndim == 0 else array)
        return made

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of ``value``; ``()`` for a scalar."""
        return np.shape(self.value)

    @property
    def width(self) -> Any:
        """``upper - lower``."""
        with np.errstate(invalid="ignore"):
            width = np.where(np.equal(self.lower, self.upper), 0.0, np.subtract(self.upper, self.lower))
        return float(width) if width.ndim == 0 else width

    def to(self, unit: Unit) -> Estimate:
        """Convert between nats and bits, or between a probability and its natural logarithm.

        Bounds are rounded outward. Any other conversion raises ``DomainError``.
        """
        if not isinstance(unit, str):
            raise DomainError(f"unit must be one of {', '.join(UNITS)}; got {unit!r}. Choose one of these.")
        if unit == self.unit:
            return self
        one = np.float64
        if {self.unit, unit} == {"nats", "bits"}:
            factor = 1.0 / _LN2 if unit == "bits" else _LN2
            value, lower, upper = (np.multiply(x, factor) for x in (self.value, self.lower, self.upper))
        elif (self.unit, unit) == ("log probability", "probability"):
            value, lower, upper = (np.exp(one(x)) if np.ndim(x) == 0 else np.exp(x) for x in self._numbers())
        elif (self.unit, unit) == ("probability", "log probability"):
            with np.errstate(divide="ignore"):
                value, lower, upper = (np.log(x) for x in self._numbers())
        else:
            raise DomainError(
                f"unit must be convertible from {self.unit!r}; got {unit!r}. Nats and bits convert into each other, "
                "and so do a probability and its logarithm."
            )
        lower, upper = _outward(lower, -np.inf, self.lower), _outward(upper, np.inf, self.upper)
        if unit == "probability":  # exp(-inf) is 0 exactly
            lower, upper = np.clip(lower, 0.0, 1.0), np.where(np.isneginf(self.upper), 0.0, np.clip(upper, 0.0, 1.0))
        elif unit == "log probability":  # log 1 is 0 exactly
            upper = np.where(np.less_equal(self.upper, 1.0), np.minimum(upper, 0.0), upper)
        value = np.clip(value, lower, upper)
        return Estimate(
            value, lower, upper, kind=self.kind, unit=unit, method=self.method, confidence=self.confidence,
            cost=self.cost,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, for JSON; infinite numbers stay floats."""
        numbers = {"value": _plain(self.value), "lower": _plain(self.lower), "upper": _plain(self.upper)}
        return numbers | self._words()

    def _words(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "unit": self.unit, "method": self.method, "confidence": self.confidence,
            "cost": dict(self.cost),
        }  # fmt: skip

    def _numbers(self) -> tuple[Any, Any, Any]:
        return self.value, self.lower, self.upper

    def __getitem__(self, index: Any) -> Estimate:
        if self.shape == ():
            raise ShapeError("an Estimate must have an array value to be indexed; got a scalar. Use .value instead.")
        return Estimate(
            self.value[index], self.lower[index], self.upper[index], kind=self.kind, unit=self.unit,
            method=self.method, confidence=self.confidence, cost=self.cost,
        )  # fmt: skip

    def __float__(self) -> float:
        return float(self.value)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise EstimateGivenError(
            "an Estimate must not be used as an array; take .value, .lower or .upper and say which one."
        )

    def __reduce__(self) -> Any:
        return _rebuild, (self._words(), self.value, self.lower, self.upper)

    def __repr__(self) -> str:
        level = "" if self.confidence is None else f", confidence={self.confidence:.12g}"
        if self.shape == () or (np.ndim(self.value) == 1 and self.value.size <= _SHOWN):
            value, lower, upper = (_plain(number) for number in self._numbers())
            numbers = f"{value!r}, lower={lower!r}, upper={upper!r}"
        else:
            numbers = f"<shape {self.shape}>"
        words = f"unit={self.unit!r}, kind={self.kind!r}{level}, method={self.method!r}"
        return f"{type(self).__name__}({numbers}, {words})"


def _outward(bound: Any, direction: float, source: Any) -> Any:
    """Two units in the last place outward; an exact zero or infinity stays."""
    exact = np.isinf(bound) | (np.equal(source, 0.0) & np.equal(bound, 0.0))
    return np.where(exact, bound, np.nextafter(np.nextafter(bound, direction), direction))


def _doubles(name: str, number: Any) -> _Doubles:
    """An array of its own; an error for what is no number."""
    if isinstance(number, np.ndarray) and np.any(getattr(number, "mask", False)):
        raise DomainError(
            f"{name} must have no missing values; got a masked entry. Fill them in with .filled(value), or leave them "
            "out with .compressed()."
        )
    if not isinstance(number, (str, bytes)):
        try:
            found = np.asarray(number)
            if found.dtype.kind in "fiub":
                return np.array(found, dtype=np.float64)
            if found.dtype.kind == "O" and not any(x is None or isinstance(x, (str, bytes)) for x in found.ravel()):
                return np.array(found, dtype=np.float64)
        except EstimateGivenError:
            raise
        except (TypeError, ValueError, OverflowError):
            pass
    text = repr(number)
    raise DomainError(
        f"{name} must be a number or an array of numbers; got {text if len(text) <= 60 else text[:57] + '...'}. "
        "Convert it with numpy.asarray(x, dtype=float)."
    )


def _plain(number: Any) -> Any:
    return number.tolist() if isinstance(number, np.ndarray) else number


def _rebuild(fields: dict[str, Any], value: Any, lower: Any, upper: Any) -> Estimate:
    return Estimate(value, lower, upper, **fields)


NumberLike = ArrayLike | Estimate  # what a function that is ``monotone`` in a parameter takes for it
