"""``Estimate``, a number with its bounds, and ``Result``, the base of answers that consist of several."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from . import numerics
from .errors import DomainError, EstimateGivenError, ShapeError, warned
from .numerics import LOG_2, FloatArray, rounded_down, rounded_outward, rounded_up
from .remedies import first_false, shown
from .table import bracket_texts, html_table, pandas
from .values import equal

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Estimate", "Information", "Kind", "NumberLike", "Result", "Unit", "combined_costs", "exact", "stacked",
    "stacked_arrays", "with_negative_levels",
]

# bound: proved - of 1 - a + a H, relative, and of its logarithm: 8 units of each of NumPy's functions, two sums and a
#    product
_REFLECTED_ERROR = 4e-15
Kind = Literal["exact", "certified", "statistical", "heuristic"]
Unit = Literal["nats", "bits", "probability", "log probability", "1"]
Information = Literal["nats", "bits"]  # what a function with a keyword ``unit`` takes and gives

_LISTED_ENTRIES = 6  # entries of an axis that fit in one line; of a longer one, the first and last three are listed
_LISTED_METHODS = 8  # different methods that the one text of several estimates names
_TABLE_ROWS = 20  # rows of a table that fit on one screen; of a longer one, the first and last ten are shown
# bound: none - width up to which a bracket is one number for float(): absolute up to a value of 1, relative beyond
_NARROW = 1e-6
_SHOWN_DIGITS = ".7g"  # of a number in a repr: enough to compare, few enough to read

KINDS: tuple[str, ...] = ("exact", "certified", "statistical", "heuristic")  # of bounds, the strongest guarantee first
UNITS: tuple[str, ...] = ("nats", "bits", "probability", "log probability", "1")  # of values; "1" for pure numbers


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
        What was spent, such as ``{"evaluations": 1200}``. Its entry ``errors`` maps the index of an entry that has
        no answer, such as an invalid row of a stack, to the reason: all three numbers are NaN there, and nowhere else.

    Notes
    -----
    A guarantee quotes ``upper``, an attack quotes ``lower``. There is no arithmetic on an Estimate and no silent
    conversion to an array: take ``.value``, ``.lower`` or ``.upper`` and say which one is meant. ``float(e)`` is the
    value, and warns where a certified or statistical bracket is wider than 1e-6, or than 1e-6 times the value if that
    is larger: there it would hide the bounds.

    Bounds of kind ``exact`` and ``certified`` rest on constants. BOUNDS.md, beside the sources, lists which of them are
    proved, computed by a script or only tested against arithmetic of more digits, and which function rests on which.

    Examples
    --------
    >>> from fastpriv import Estimate
    >>> e = Estimate(0.5, 0.4375, 0.625, kind="certified", unit="nats", method="example")
    >>> e.value, e.width
    (0.5, 0.1875)
    >>> e.to("bits").upper
    0.90168440055560...
    """

    value: float | FloatArray
    lower: float | FloatArray
    upper: float | FloatArray
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
        if type(self.value) is type(self.lower) is type(self.upper) is float and self.lower <= self.value <= self.upper:
            object.__setattr__(self, "cost", MappingProxyType(dict(self.cost)))  # the common case, ten times as fast
            return
        value, lower, upper = (_doubles(name, getattr(self, name)) for name in ("value", "lower", "upper"))
        if not value.shape == lower.shape == upper.shape:
            raise ShapeError(
                f"value, lower and upper must be of one shape; got {value.shape}, {lower.shape} and {upper.shape}. "
                "Broadcast them before building the Estimate."
            )
        ordered = (lower <= value) & (value <= upper)
        if "errors" in self.cost:
            ordered |= np.isnan(value) & np.isnan(lower) & np.isnan(upper)
        if not ordered.all():
            worst, where = first_false(ordered)
            raise DomainError(
                f"value must be between lower and upper; got {float(value[worst])!r} outside [{float(lower[worst])!r}, "
                f"{float(upper[worst])!r}]{where}. Pass bounds that contain the value."
            )
        for name, array in (("value", value), ("lower", lower), ("upper", upper)):
            array.setflags(write=False)
            object.__setattr__(self, name, float(array) if array.ndim == 0 else array)
        object.__setattr__(self, "cost", MappingProxyType(dict(self.cost)))

    @classmethod
    def _of_arrays(
        cls, value: FloatArray, lower: FloatArray, upper: FloatArray, *, kind: Kind, unit: Unit, method: str,
        cost: Mapping[str, Any] = MappingProxyType({}),
    ) -> Estimate:
        """Of fresh arrays of doubles, of one shape and in order, that nobody else holds: not copied, not checked."""
        made = cls(0.0, 0.0, 0.0, kind=kind, unit=unit, method=method, cost=cost)
        for name, array in (("value", value), ("lower", lower), ("upper", upper)):
            array.setflags(write=False)
            object.__setattr__(made, name, float(array) if array.ndim == 0 else array)
        return made

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of ``value``; ``()`` for a scalar."""
        return np.shape(self.value)

    @property
    def width(self) -> float | FloatArray:
        """``upper - lower``."""
        with np.errstate(invalid="ignore"):
            width = np.where(np.equal(self.lower, self.upper), 0.0, np.subtract(self.upper, self.lower))
        return float(width) if width.ndim == 0 else width

    def floats(self) -> tuple[float, float, float]:
        """The value, the lower and the upper bound of a scalar estimate.

        Examples
        --------
        >>> from fastpriv import Estimate
        >>> Estimate(0.5, 0.4375, 0.625, kind="certified", unit="nats", method="example").floats()
        (0.5, 0.4375, 0.625)
        """
        if self.shape != ():
            raise ShapeError(f"an Estimate must be a scalar to give floats; got shape {self.shape}. Use arrays().")
        return float(self.value), float(self.lower), float(self.upper)

    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The values, the lower and the upper bounds as arrays; a scalar gives arrays without axes.

        Examples
        --------
        >>> from fastpriv import Estimate
        >>> found = Estimate([1.0, 2.0], [0.5, 1.5], [1.0, 2.5], kind="exact", unit="1", method="example")
        >>> found.arrays()[1].tolist()
        [0.5, 1.5]
        """
        return np.asarray(self.value), np.asarray(self.lower), np.asarray(self.upper)

    def to(self, unit: Unit) -> Estimate:
        """Convert between nats and bits, or between a probability and its natural logarithm.

        Bounds are rounded outward. Any other conversion raises ``DomainError``.
        """
        if not isinstance(unit, str):
            raise DomainError(f"unit must be one of {', '.join(UNITS)}; got {unit!r}. Choose one of these.")
        if unit == self.unit:
            return self
        if {self.unit, unit} == {"nats", "bits"}:
            factor = 1.0 / LOG_2 if unit == "bits" else LOG_2
            value, lower, upper = (np.multiply(x, factor) for x in (self.value, self.lower, self.upper))
        elif (self.unit, unit) == ("log probability", "probability"):
            value, lower, upper = (np.exp(x) for x in self._numbers())
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
        return Estimate(value, lower, upper, **self._description() | {"unit": unit}, cost=self.cost)

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, for JSON; infinite numbers stay floats."""
        numbers = {"value": _plain(self.value), "lower": _plain(self.lower), "upper": _plain(self.upper)}
        cost = dict(self.cost)
        if "errors" in cost:
            cost["errors"] = [[list(index), text] for index, text in cost["errors"].items()]
        return numbers | self._description() | {"cost": cost}

    def to_frame(self) -> pd.DataFrame:
        """A pandas DataFrame with the columns value, lower, upper, unit, kind and method, one row an entry."""
        frames = pandas("to_frame")
        numbers = {name: np.ravel(getattr(self, name)) for name in ("value", "lower", "upper")}
        index = frames.MultiIndex.from_product([range(n) for n in self.shape]) if len(self.shape) > 1 else None
        words = {"unit": self.unit, "kind": self.kind, "method": self.method}
        frame: pd.DataFrame = frames.DataFrame(numbers | words, index=index)
        return frame

    def _description(self) -> dict[str, Any]:
        return {"kind": self.kind, "unit": self.unit, "method": self.method, "confidence": self.confidence}

    def _numbers(self) -> tuple[float | FloatArray, float | FloatArray, float | FloatArray]:
        return self.value, self.lower, self.upper

    def __getitem__(self, index: Any) -> Estimate:
        if self.shape == ():
            raise ShapeError("an Estimate must have an array value to be indexed; got a scalar. Use .value instead.")
        value, lower, upper = (np.asarray(number)[index] for number in self._numbers())
        return Estimate(value, lower, upper, **self._description(), cost=self.cost)

    def __float__(self) -> float:
        """The value; with a warning where a certified or statistical bracket is too wide to be one number."""
        if self.kind in ("certified", "statistical") and np.size(self.value) == 1:
            value, lower, upper = (float(np.ravel(number)[0]) for number in self._numbers())
            if upper > lower and not upper - lower <= _NARROW * max(1.0, abs(value)):
                bounds = f"[{rounded_down(lower, 7)}, {rounded_up(upper, 7)}]"
                warned(
                    f"float() of this Estimate is its value, {value:.7g}, while its bounds are {bounds}. Take .upper "
                    "for a guarantee, .lower for an attack, or .value.",
                    UserWarning,
                )
        return float(self.value)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise EstimateGivenError(
            "an Estimate must not be used as an array; take .value, .lower or .upper and say which one."
        )

    def __eq__(self, other: object) -> Any:
        """Whether all but ``cost``, which tells how the numbers were reached, is the same."""
        return equal_fields(self, other)

    def __hash__(self) -> int:
        numbers = tuple((np.asarray(number) + 0.0).tobytes() for number in self._numbers())  # -0.0 equals 0.0
        return hash((type(self).__name__, self.shape, *numbers, *self._description().values()))

    def __reduce__(self) -> Any:
        words = {field.name: getattr(self, field.name) for field in fields(self)} | {"cost": dict(self.cost)}
        return _rebuild, (words, words.pop("value"), words.pop("lower"), words.pop("upper"), type(self))

    def __repr__(self) -> str:
        numbers = ", ".join(
            f"{prefix}{_listed(number, repr)}"
            for prefix, number in zip(("", "lower=", "upper="), self._numbers(), strict=True)
        )
        shape = f"shape={self.shape}, " if np.size(self.value) > _LISTED_ENTRIES or len(self.shape) > 1 else ""
        level = "" if self.confidence is None else f", confidence={self.confidence:.12g}"
        words = f"unit={self.unit!r}, kind={self.kind!r}{level}, method={self.method!r}"
        return f"{type(self).__name__}({numbers}, {shape}{words})"

    def __format__(self, spec: str) -> str:
        """The value and, in brackets, its bounds, each in the format of a float and the bounds rounded outward."""
        if not spec:
            return repr(self)
        value = _listed(self.value, lambda x: format(x, spec))
        lower = _listed(self.lower, lambda x: rounded_outward(x, spec, below=True))
        upper = _listed(self.upper, lambda x: rounded_outward(x, spec, below=False))
        return f"{value} [{lower}, {upper}]" if self.shape == () else f"{value}, lower={lower}, upper={upper}"

    def _repr_html_(self) -> str:
        """A table for notebooks: one row an entry, with its bounds."""
        rows = []
        for entry in _first_and_last(_entries(self), _TABLE_ROWS):
            if entry is None:
                rows.append(["\N{HORIZONTAL ELLIPSIS}"] * (4 if self.shape else 3))
                continue
            index, value, lower, upper = entry
            head = [] if self.shape == () else [str(index[0]) if len(index) == 1 else str(index)]
            rows.append([*head, *bracket_texts(value, lower, upper, 7)])
        header = [*(["index"] if self.shape else []), "value", "lower", "upper"]
        return html_table(header, rows, self._caption())

    def _caption(self) -> str:
        level = "" if self.confidence is None else f" at confidence {self.confidence:.12g}"
        unit = "no unit" if self.unit == "1" else self.unit
        return f"{type(self).__name__}: {unit}, {self.kind}{level}, {self.method}"


class Result:
    """Base of the frozen dataclasses that hold several quantities, each an ``Estimate`` or a ``Result`` of its own.

    A subclass is declared ``@dataclass(frozen=True, slots=True, eq=False, repr=False)``; what is None is not known, and
    is not shown. Fields that are declared with ``compare=False``, and ``cost``, take no part in equality: they tell how
    the numbers were reached. Fields declared with ``repr=False`` are not shown either.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def estimates(self) -> dict[str, Estimate]:
        """The quantities that are known, by name; those of a field that is a ``Result`` follow its name."""
        result: dict[str, Estimate] = {}
        for quantity in fields(self):
            content = getattr(self, quantity.name)
            if isinstance(content, Estimate):
                result[quantity.name] = content
            elif isinstance(content, Result):
                result |= {f"{quantity.name}_{name}": item for name, item in content.estimates().items()}
        return result

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, for JSON: each Estimate as its own dict, arrays as lists; infinite numbers stay floats."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self) if field.repr}

    def to_frame(self) -> pd.DataFrame:
        """A pandas DataFrame with the columns quantity, value, lower, upper, unit, kind and method.

        It has one row a quantity, and one row an entry of those that are arrays, with its position in ``index``.
        """
        rows = []
        for name, item in self.estimates().items():
            words = {"unit": item.unit, "kind": item.kind, "method": item.method}
            for index, value, lower, upper in _entries(item):
                rows.append({"quantity": name, "index": index, "value": value, "lower": lower, "upper": upper, **words})
        frame: pd.DataFrame = pandas("to_frame").DataFrame(rows)
        return frame.drop(columns="index") if rows and all(row["index"] == () for row in rows) else frame

    def __eq__(self, other: object) -> Any:
        return equal_fields(self, other)

    def __hash__(self) -> int:
        return hash((type(self).__name__, *self.estimates().values()))

    def __repr__(self) -> str:
        return format(self, _SHOWN_DIGITS)

    def __format__(self, spec: str) -> str:
        """Every quantity with its bounds, each number in the format of a float and bounds rounded outward."""
        words = []
        for name in fields(self):
            content = getattr(self, name.name)
            if content is not None and name.repr:
                formats_itself = isinstance(content, (Estimate, Result))
                shown = format(content, spec or _SHOWN_DIGITS) if formats_itself else _short_repr(content)
                words.append(f"{name.name}={shown}")
        return f"{type(self).__name__}({', '.join(words)})"

    def _repr_html_(self) -> str:
        """A table for notebooks: one row a quantity, or an entry of one, with its bounds, unit and kind."""
        rows = []
        for name, item in self.estimates().items():
            for entry in _first_and_last(_entries(item), _TABLE_ROWS):
                if entry is None:
                    rows.append(["\N{HORIZONTAL ELLIPSIS}"] * 6)
                    continue
                index, value, lower, upper = entry
                shown = f"{name}{list(index)}" if index else name
                unit = "" if item.unit == "1" else item.unit
                rows.append([shown, *bracket_texts(value, lower, upper, 7), unit, item.kind])
        return html_table(["quantity", "value", "lower", "upper", "unit", "kind"], rows, type(self).__name__)


def combined_costs(costs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The costs of several estimates as one, entry by entry."""
    names = dict.fromkeys(name for cost in costs for name in cost)
    return {name: functools.reduce(_combined, (cost.get(name) for cost in costs)) for name in names}


def stacked(
    estimates: Sequence[Estimate | None], shape: tuple[int, ...], errors: Mapping[tuple[int, ...], str] | None = None
) -> Estimate:
    """Estimates as one, of this shape or, if they have shapes of their own, with leading axes of it.

    One at least is not None. ``errors`` has the texts of those that are None, by position: they are NaN, and so are the
    entries that an estimate lacks beside longer ones.
    """
    result = [estimate for estimate in estimates if estimate is not None]
    numbers = [
        stacked_arrays(
            [None if estimate is None else np.asarray(getattr(estimate, end)) for estimate in estimates], shape, np.nan
        )
        for end in ("value", "lower", "upper")
    ]
    kind: Any = max((estimate.kind for estimate in result), key=KINDS.index)
    cost = combined_costs([estimate.cost for estimate in result])
    if errors or np.isnan(numbers[0]).any():
        cost["errors"] = tuple((errors or {}).items())
    methods = list(dict.fromkeys(element.method for element in result))
    others = ["others"] if len(methods) > _LISTED_METHODS else []
    levels = [entry.confidence for entry in result if entry.confidence is not None]
    return Estimate(
        *numbers, kind=kind, unit=result[0].unit, method="; ".join(methods[:_LISTED_METHODS] + others), cost=cost,
        confidence=min(levels) if kind == "statistical" else None,
    )


def with_negative_levels(
    epsilon: FloatArray, curve: Callable[[FloatArray], Estimate], opposite: Callable[[FloatArray], Estimate],
    *, log: bool = False, gap: float = 0.0,
) -> Estimate:
    """H_a(P||Q), a = e^epsilon, at any epsilon, from the curves of P||Q and of Q||P at epsilon >= 0.

    The integral of p - a q is 1 - a, so that H_a(P||Q) = 1 - a + a H_{1/a}(Q||P), a sum of two positive terms. ``gap``
    bounds what each mass misses 1 by. ``log``: the curves are logarithms. Levels are on the last axes of the answers.
    """
    negative = epsilon < 0.0
    if not negative.any():
        return curve(epsilon)
    back = opposite(np.maximum(-epsilon, 0.0))
    levels = np.broadcast_to(np.minimum(epsilon, 0.0), np.shape(back.value))
    numbers = []
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        remainder, factor = -np.expm1(levels), np.exp(levels)
        for number, side in ((back.value, 0.0), (back.lower, -1.0), (back.upper, 1.0)):
            if log:
                slack = gap * (1.0 + factor) / remainder
                total = np.logaddexp(np.log(remainder), levels + number)
                outward = _REFLECTED_ERROR * (1.0 + np.abs(total)) + (1.01 * slack if gap else 0.0)
                total = np.minimum(total + side * outward, 0.0)
            else:
                total = remainder + factor * number
                total = np.clip(total + side * (_REFLECTED_ERROR * total + 1.01 * gap * (1.0 + factor)), 0.0, 1.0)
            numbers.append(total)
    value, lower, upper = numbers
    whole, numbers = back, [np.clip(value, lower, upper), lower, upper]
    if not negative.all():
        ahead = curve(np.maximum(epsilon, 0.0))
        whole, which = stacked((ahead, back), (2,)), np.broadcast_to(negative, levels.shape)
        numbers = [np.where(which, x, y) for x, y in zip(numbers, (ahead.value, ahead.lower, ahead.upper), strict=True)]
    return Estimate(*numbers, **whole._description(), cost=whole.cost)


def stacked_arrays(arrays: Sequence[Any], shape: tuple[int, ...], missing: float) -> Any:
    """One array of all, with leading axes ``shape``; ``missing`` where there is None, or one is shorter than others."""
    result = [array for array in arrays if array is not None]
    if len({array.shape for array in result}) == 1 and len(result) == len(arrays):
        return np.stack(result).reshape(shape + result[0].shape)
    axes = max(array.ndim for array in result)
    longest = tuple(max((*array.shape, *[1] * axes)[axis] for array in result) for axis in range(axes))
    out = np.full((len(arrays), *longest), missing, dtype=result[0].dtype)
    for position, array in enumerate(arrays):
        if array is not None:
            index: tuple[Any, ...] = (position, *map(slice, array.shape), *[0] * (axes - array.ndim))
            out[index] = array
    return out.reshape(shape + longest)


def exact(
    value: float | FloatArray, error: float | FloatArray, *, unit: Unit, method: str, least: float = -math.inf,
    most: float = math.inf,
) -> Estimate:
    """Estimate of a closed form whose rounding error is at most ``error``, and that lies in [least, most]."""
    return Estimate(*numerics.enclosure(value, error, least, most), kind="exact", unit=unit, method=method)


def _combined(entry: Any, other: Any) -> Any:
    """Two entries of ``cost`` as one: sums of counts, flags that both are, errors of both, two words."""
    if entry is None or other is None:
        return other if entry is None else entry
    if isinstance(entry, bool) and isinstance(other, bool):
        return entry and other
    if isinstance(entry, Mapping) and isinstance(other, Mapping):
        return {**entry, **other}
    if isinstance(entry, (int, float)) and isinstance(other, (int, float)):
        return entry + other
    return entry if entry == other else f"{entry}; {other}"


def _outward(bound: Any, direction: float, source: Any) -> Any:
    """Two units in the last place outward; an exact zero or infinity stays."""
    exact = np.isinf(bound) | (np.equal(source, 0.0) & np.equal(bound, 0.0))
    return np.where(exact, bound, np.nextafter(np.nextafter(bound, direction), direction))


def _doubles(name: str, number: Any) -> FloatArray:
    """An array of its own; an error for what is no number."""
    if type(number) is np.ndarray and number.dtype == np.float64:
        return number.copy()
    if isinstance(number, np.ndarray) and np.any(getattr(number, "mask", False)):
        raise DomainError(
            f"{name} must have no missing values; got a masked entry. Fill them in with .filled(value), or leave them "
            "out with .compressed()."
        )
    if not isinstance(number, (str, bytes)):
        try:
            result = np.asarray(number)
            if result.dtype.kind in "fiub":
                return np.array(result, dtype=np.float64)
            if result.dtype.kind == "O" and not any(x is None or isinstance(x, (str, bytes)) for x in result.ravel()):
                return np.array(result, dtype=np.float64)
        except EstimateGivenError:
            raise
        except (TypeError, ValueError, OverflowError):
            pass
    raise DomainError(
        f"{name} must be a number or an array of numbers; got {shown(number)}. Convert it with numpy.asarray(x, "
        "dtype=float)."
    )


def _plain(content: Any) -> Any:
    """Plain Python types for JSON, of a field of a result."""
    if isinstance(content, (Estimate, Result)):
        return content.to_dict()
    if isinstance(content, (np.ndarray, np.generic)):
        return content.tolist()
    if isinstance(content, (tuple, list)):
        return [_plain(item) for item in content]
    return content if content is None or isinstance(content, (bool, int, float, str, dict)) else str(content)


def _rebuild(words: dict[str, Any], value: Any, lower: Any, upper: Any, made: type[Estimate] = Estimate) -> Estimate:
    return made(value, lower, upper, **words)


def equal_fields(result: Any, other: Any) -> Any:
    """Whether two results of one class agree in all fields that are compared, and in arrays entry by entry."""
    if type(other) is not type(result):
        return NotImplemented
    names = [field.name for field in fields(result) if field.compare and field.name != "cost"]
    return all(equal(getattr(result, name), getattr(other, name)) for name in names)


def _first_and_last(entries: Sequence[Any], limit: int) -> list[Any]:
    """All entries, or of more than ``limit`` the first and last half of it with None between."""
    half = limit // 2
    return list(entries) if len(entries) <= limit else [*entries[:half], None, *entries[-half:]]


def _listed(number: float | FloatArray, shown: Callable[[float], str]) -> str:
    """A float, or the entries of an array in nested lists; of a long axis those at its ends."""
    if not isinstance(number, np.ndarray):
        return shown(number)
    words = (
        "..." if i is None else _listed(float(number[i]) if number.ndim == 1 else number[i], shown)
        for i in _first_and_last(range(len(number)), _LISTED_ENTRIES)
    )
    return f"[{', '.join(words)}]"


def _entries(estimate: Estimate) -> list[tuple[tuple[int, ...], float, float, float]]:
    """Index, value, lower and upper bound of each entry."""
    numbers = (np.asarray(number) for number in (estimate.value, estimate.lower, estimate.upper))
    value, lower, upper = (array.ravel().tolist() for array in numbers)
    return list(zip(np.ndindex(estimate.shape), value, lower, upper, strict=True))


def _short_repr(content: Any) -> str:
    """The repr of what is small; the shape and type of an array that is not."""
    if isinstance(content, np.ndarray) and content.size > _TABLE_ROWS:
        return f"<array of shape {content.shape}, {content.dtype}>"
    return repr(content.tolist() if isinstance(content, np.ndarray) else content)


NumberLike = ArrayLike | Estimate  # what a function that is ``monotone`` in a parameter takes for it
