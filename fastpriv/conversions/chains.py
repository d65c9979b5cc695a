"""``convert``: the conversion, or the shortest chain of conversions, between two notions.

A conversion says: whoever has the source, and meets its assumptions, has the target. So a chain of conversions is a
conversion whose assumptions are those of all its steps. Some are met by the ends of the chain: a notion of one prior
says nothing of secrets without prior probability, and what follows from a notion of all secrets holds for every two of
them. Where source and target are notions of one prior, the prior is the same. A conversion that needs a mechanism of a
special family is used alone. Each step passes its guarantee on, the bound on the side that is safe. A chain of tight
conversions is a bound: the extremal channel of one step need not be that of the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate, Result
from ..base.numerics import FloatArray
from .declaration import Conversion, Form
from .registry import CONVERSIONS
from .vocabulary import EVERY_PAIR, FULL_SUPPORT, NOTIONS, Assumption

_RANK: tuple[Form, ...] = ("tight", "bound", "as_published")  # of direct conversions, the best first
_LONGEST = 4  # conversions in a chain
# parameters that describe the setting, not the source: a later step of a chain may take them too
_SHARED = {"unit", "pi_min", "inputs", "belief_gap"}
# bound: none - when a bracket is shown as one number
_NARROW = 1e-9  # relative width of a bracket that is shown as one number


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConversionStep(Result):
    """One conversion of a chain: the conversion, what went in, what came out.

    Parameters
    ----------
    conversion : Conversion
        The row of the table.
    arguments : dict
        Numbers or estimates by the names of the parameters.
    estimate : Estimate
        The answer.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> step = conversions.convert("mbp", "ldp", epsilon=1.0).steps[0]
    >>> step.conversion.function, step.arguments
    ('mbp_from_ldp', {'epsilon': 1.0})
    """

    conversion: Conversion
    arguments: dict[str, Any] = field(compare=False, repr=False)
    estimate: Estimate

    @property
    def side(self) -> Literal["lower", "upper"]:
        """Which bound is the guarantee."""
        return "lower" if self.conversion.target == "tradeoff" else "upper"

    @property
    def guarantee(self) -> float | FloatArray:
        """The bound that may be relied on."""
        bound: float | FloatArray = getattr(self.estimate, self.side)
        return bound

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, for JSON."""
        columns = ("function", "source", "target", "form", "holds", "assumption", "reference", "note", "result")
        return {name: getattr(self.conversion, name) for name in columns} | {
            "arguments": {name: _plain(value) for name, value in self.arguments.items()},
            "estimate": self.estimate.to_dict(),
        }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConversionResult(Result):
    """The answer of ``convert``: the steps, the last of which has the number.

    Parameters
    ----------
    source, target : str
        Names of notions.
    steps : tuple of ConversionStep
        From source to target.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> result = conversions.convert("abp", "lip", epsilon=1.0, pi_min=0.4)
    >>> result
    ConversionResult(abp from lip: 0.2825455 [0.2825454, 0.2825455], by mbp_from_lip, ldp_from_mbp, abp_from_ldp)
    """

    source: str
    target: str
    steps: tuple[ConversionStep, ...]

    @property
    def estimate(self) -> Estimate:
        """The answer with its bounds; a guarantee quotes ``guarantee``. ``method`` names what it assumes."""
        last = self.steps[-1].estimate
        remarks = [f"bound, by a chain of {len(self.steps)} conversions"] if len(self.steps) > 1 else []
        remarks += [f"assumes that {assumption.text}" for assumption in self.assumptions]
        return replace(last, method="; ".join([last.method, *remarks])) if remarks else last

    @property
    def guarantee(self) -> float | FloatArray:
        """The bound that may be relied on, where every step holds and the ``assumptions`` are met."""
        return self.steps[-1].guarantee

    @property
    def form(self) -> Form:
        """``tight``, ``bound`` or ``as_published``; a chain of several conversions is a ``bound``."""
        return self.steps[0].conversion.form if len(self.steps) == 1 else "bound"

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What it needs beyond the source: the assumptions of all steps, without those that its ends meet."""
        return _assumptions([step.conversion for step in self.steps])

    @property
    def holds(self) -> bool:
        """Whether no step is a published statement that is false."""
        return all(step.conversion.holds for step in self.steps)

    def summary(self) -> str:
        """A few lines of text: each step with its number, form, assumption and source."""
        lines = []
        for step in self.steps:
            row = step.conversion
            arguments = ", ".join(f"{name}={_shown_value(value)}" for name, value in step.arguments.items())
            form = "" if row.default else f', form="{row.form}"'
            titles = f"{NOTIONS[row.source].title} -> {NOTIONS[row.target].title}"
            lines.append(f"{titles}: {row.function}({arguments}{form})")
            unit = "" if step.estimate.unit in ("1", "probability") else f" {step.estimate.unit}"
            sign = "=" if not row.holds else ">=" if step.side == "lower" else "<="
            lines.append(f"    {row.result} {sign} {_shown_value(step.guarantee)}{unit}")
            verdict = row.form.replace("_", " ") if row.holds else "FALSE as published, not a guarantee"
            lines.append(f"    {verdict}; {row.reference}")
            lines += [f"    assumes: {row.assumption}"] if row.assumption else []
            lines += [f"    note: {row.note}"] if row.note else []
        if len(self.steps) > 1:
            words = "; ".join(assumption.text for assumption in self.assumptions) or "nothing"
            lines.append(f"chain of {len(self.steps)}: a bound, not known to be attained; assumes: {words}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, for JSON."""
        return {
            "source": self.source, "target": self.target, "holds": self.holds, "form": self.form,
            "assumptions": [assumption.text for assumption in self.assumptions],
            "guarantee": np.asarray(self.guarantee).tolist(),
            "steps": [step.to_dict() for step in self.steps],
        }

    def estimates(self) -> dict[str, Estimate]:
        """The answer of each step, by the name of its function."""
        return {step.conversion.function: step.estimate for step in self.steps}

    def __format__(self, spec: str) -> str:
        """The answer with its bounds in the format of a float, and the functions that led to it."""
        answer = format(self.steps[-1].estimate, spec or ".7g")
        return f"{type(self).__name__}({self.target} from {self.source}: {answer}, by {', '.join(self.estimates())})"


def convert(target: str, source: str, *, form: Form | None = None, **values: Any) -> ConversionResult:
    """Convert from one notion to another, by the tight conversion where there is one.

    Parameters
    ----------
    target, source : str
        Names of notions, the keys of ``NOTIONS``.
    form : {"tight", "bound", "as_published"}, optional
        Take a conversion of this form only: "as_published" as printed in a paper, also where that is false. By default
        the best one that holds, or a chain.
    **values
        Numbers or estimates by the names of the parameters, such as ``epsilon=1.0, pi_min=0.01``; arrays broadcast.
        ``unit`` is the unit of amounts of information, in and out. Every one must be of use.

    Returns
    -------
    ConversionResult
        Where nothing leads straight from source to target, the steps of the shortest chain that promises most; a chain
        uses no conversion that is false, kept as published, or true of special mechanisms only. Its ``assumptions``
        are those of all its steps.

    Raises
    ------
    DomainError
        For an unknown notion or form, for numbers that no conversion or chain can use, or a number outside its range.

    Notes
    -----
    **Accuracy** as the steps; tests/properties/test_conversion_chains.py.

    Source: the references of the steps.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> result = conversions.convert("mbp", "ldp", epsilon=1.0, pi_min=0.01)
    >>> result.estimate.value
    0.99365873...
    >>> print(conversions.convert("ldp", "mbp", xi=0.5).summary().splitlines()[0])
    MBP -> LDP: ldp_from_mbp(xi=0.5)
    """
    names = tuple(NOTIONS)
    validate.choice("target", target, names)
    validate.choice("source", source, names)
    if form is not None:
        validate.choice("form", form, _RANK)
    if not values:
        raise DomainError(
            f"values must be given by name; got none. From {source} to {target}: {_signatures(target, source)}."
        )
    row = _direct(target, source, set(values), form)
    if row is not None:
        return ConversionResult(source, target, _run([row], values))
    paths = [] if form is not None else _chains(target, source, set(values))
    if not paths:
        raise DomainError(
            f"values must be what a conversion from {source} to {target} takes; got {', '.join(values)}. "
            f"It takes: {_signatures(target, source)}."
        )
    return ConversionResult(source, target, _best([_run(path, values) for path in paths]))


def _direct(target: str, source: str, names: set[str], form: Form | None) -> Conversion | None:
    """The best conversion in one step that uses every number given."""
    candidates = [
        row
        for row in CONVERSIONS
        if (row.source, row.target) == (source, target)
        and (row.default if form is None else row.form == form)
        and set(row.required) <= names <= set(row.parameters)
    ]
    return min(candidates, key=lambda row: _RANK.index(row.form), default=None)


def _chainable(row: Conversion) -> bool:
    """Whether a conversion may be part of a chain."""
    return row.holds and not row.published and all(assumption.chained for assumption in row.assumptions)


def _assumptions(path: Sequence[Conversion]) -> tuple[Assumption, ...]:
    """Those of all conversions in order, each once, without those that the ends of the chain meet."""
    needed: dict[Assumption, None] = {}
    every_pair = False  # whether a notion of pairs holds for every two secrets by what it follows from
    for row in path:
        secrets = NOTIONS[row.source].secrets
        every_pair = secrets in ("every", "support") or (secrets == "pairs" and every_pair)
        needed |= {a: None for a in row.assumptions if not (a == EVERY_PAIR and every_pair)}
    if NOTIONS[path[-1].target].secrets == "support":  # of one prior: secrets that it excludes do not count
        needed.pop(FULL_SUPPORT, None)
    return tuple(needed)


def _chains(target: str, source: str, names: set[str]) -> list[list[Conversion]]:
    """The chains that hold and use every number, shortest first; of those, the ones that assume least."""
    usable = [row for row in CONVERSIONS if _chainable(row)]
    level: list[tuple[str, set[str], set[str], list[Conversion]]] = [(source, names, names, [])]
    complete: list[list[Conversion]] = []
    for _ in range(_LONGEST):
        following = []
        for notion, available, unused, path in level:
            seen = {row.source for row in path} | {notion}
            for row in usable:
                if row.source == notion and row.target not in seen and set(row.required) <= available:
                    used = set(row.parameters) & available
                    remaining = (available - _consumed(row, used)) | {row.result}
                    following.append((row.target, remaining, unused - used, [*path, row]))
        complete += [path for notion, _, unused, path in following if notion == target and not unused]
        level = [state for state in following if state[0] != target]
    least = min((len(_assumptions(path)) for path in complete), default=0)
    return [path for path in complete if len(_assumptions(path)) == least]


def _best(candidates: list[tuple[ConversionStep, ...]]) -> tuple[ConversionStep, ...]:
    """The chain that promises most in most entries; the first of equals."""
    best = candidates[0]
    for other in candidates[1:]:
        better = np.asarray(other[-1].guarantee) < np.asarray(best[-1].guarantee)
        if other[-1].side == "lower":
            better = np.asarray(other[-1].guarantee) > np.asarray(best[-1].guarantee)
        if np.mean(better) > 0.5:
            best = other
    return best


def _consumed(row: Conversion, used: set[str]) -> set[str]:
    """The parameters of the source that the target no longer has."""
    keeps = {"epsilon"} if row.result == "delta" and row.source not in ("ldp", "dp", "lip") else set()
    keeps |= {"delta"} if row.result == "epsilon" else set()
    return used - _SHARED - keeps


def _run(path: list[Conversion], values: dict[str, Any]) -> tuple[ConversionStep, ...]:
    """Call the conversions one after the other, each with what it takes of the values and of the answers so far."""
    available, steps = dict(values), []
    for row in path:
        arguments = {name: value for name, value in available.items() if name in row.parameters}
        step = ConversionStep(row, arguments, row.call(**arguments))
        steps.append(step)
        for name in _consumed(row, set(arguments)):
            del available[name]
        available[row.result] = step.estimate
    return tuple(steps)


def _signatures(target: str, source: str) -> str:
    """What the conversions in one step take, for the text of an error."""
    texts = []
    for row in CONVERSIONS:
        if (row.source, row.target) == (source, target):
            optional = f" [{', '.join(sorted(row.optional))}]" if row.optional else ""
            published = " as published" if row.published else ""
            texts.append(f"{row.function}: {', '.join(sorted(row.required))}{optional}{published}")
    if texts:
        return "; ".join(texts)
    starts = sorted({name for row in CONVERSIONS if row.source == source for name in row.required})
    follows = f"chains from {source} start with {', '.join(starts)}" if starts else f"nothing follows from {source}"
    return f"no direct conversion; {follows}"


def _shown_value(value: Any) -> str:
    if isinstance(value, Estimate):
        unit = " bits" if value.unit == "bits" else ""
        if np.all((value.lower == value.upper) | (value.width <= _NARROW * np.abs(value.upper))):
            return _shown_value(value.upper) + unit
        return f"[{_shown_value(value.lower)}, {_shown_value(value.upper)}]{unit}"
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        return str(value)
    if array.ndim == 0:
        return f"{float(array)!r}".removesuffix(".0")
    return " ".join(np.array2string(array, floatmode="unique", threshold=6, separator=", ").split())


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        return value.to_dict()
    array = np.asarray(value)
    return array.tolist() if array.dtype.kind in "fiubU" else repr(value)
