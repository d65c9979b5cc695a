"""``convert``: the conversion, or the shortest chain of conversions, between two notions.

Every arrow says: whoever has the source, and meets its assumptions, has the target. So a chain of arrows is an arrow
whose assumptions are those of all its steps. Some are met by the ends of the chain: a notion of one prior says nothing
of secrets without prior probability, and what follows from a notion of all secrets holds for every two of them. Where
source and target are notions of one prior, the prior is the same. An arrow that needs a mechanism of a special family
is used alone. Each step passes its guarantee on, the bound on the side that is safe. A chain of conversions that no
smaller number improves is a bound: the extremal channel of one step need not be that of the next.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _validate
from ..errors import DomainError
from ..estimate import Estimate
from .arrow import EVERY_PAIR, FULL_SUPPORT, Arrow, Assumption
from .registry import ARROWS, NOTIONS, function_of, result_of

__all__ = ["Conversion", "Step", "convert"]

_RANK = {"tight": 0, "bound": 1, "published": 2}
_LONGEST = 4
# bound: none - when a bracket is shown as one number
_NARROW = 1e-9  # relative width of a bracket that is shown as one number


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One conversion of a chain: the arrow, what went in, what came out.

    Parameters
    ----------
    arrow : Arrow
        The row of the registry.
    arguments : dict
        Numbers or estimates by the names of the parameters.
    estimate : Estimate
        The answer.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> step = conversions.convert("mbp", "ldp", epsilon=1.0).steps[0]
    >>> step.arrow.function, step.arguments
    ('mbp_from_ldp', {'epsilon': 1.0})
    """

    arrow: Arrow
    arguments: dict[str, Any]
    estimate: Estimate

    @property
    def side(self) -> str:
        """Which bound is the guarantee."""
        return "lower" if self.arrow.target == "tradeoff" else "upper"

    @property
    def guarantee(self) -> Any:
        """The bound that may be relied on."""
        return getattr(self.estimate, self.side)


@dataclass(frozen=True, slots=True, eq=False)
class Conversion:
    """What ``convert`` found: the steps, the last of which has the answer.

    Parameters
    ----------
    source, target : str
        Names of notions.
    steps : tuple of Step
        From source to target.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> found = conversions.convert("abp", "lip", epsilon=1.0, pi_min=0.4)
    >>> [step.arrow.function for step in found.steps]
    ['ldp_from_lip', 'abp_from_ldp']
    """

    source: str
    target: str
    steps: tuple[Step, ...]

    @property
    def estimate(self) -> Estimate:
        """The answer with its bounds; a guarantee quotes ``guarantee``. ``method`` names what it assumes."""
        found = self.steps[-1].estimate
        said = [f"bound, by a chain of {len(self.steps)} conversions"] if len(self.steps) > 1 else []
        said += [f"assumes that {assumption.text}" for assumption in self.assumptions]
        return replace(found, method="; ".join([found.method, *said])) if said else found

    @property
    def guarantee(self) -> Any:
        """The bound that may be relied on, where every step holds and the ``assumptions`` are met."""
        return self.steps[-1].guarantee

    @property
    def form(self) -> str:
        """``tight``, ``bound`` or ``published``; a chain of several conversions is a ``bound``."""
        return self.steps[0].arrow.form if len(self.steps) == 1 else "bound"

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What it needs beyond the source: the assumptions of all steps, without those that its ends meet."""
        return _assumptions([step.arrow for step in self.steps])

    @property
    def holds(self) -> bool:
        """Whether no step is a published statement that is false."""
        return all(step.arrow.holds for step in self.steps)

    def summary(self) -> str:
        """A few lines of text: each step with its number, form, assumption and source."""
        lines = []
        for step in self.steps:
            arrow = step.arrow
            given = ", ".join(f"{name}={_short(value)}" for name, value in step.arguments.items())
            lines.append(f"{NOTIONS[arrow.source].title} -> {NOTIONS[arrow.target].title}: {arrow.function}({given})")
            unit = "" if step.estimate.unit in ("1", "probability") else f" {step.estimate.unit}"
            sign = "=" if not arrow.holds else ">=" if step.side == "lower" else "<="
            lines.append(f"    {result_of(arrow)} {sign} {_short(step.guarantee)}{unit}")
            verdict = arrow.form if arrow.holds else "FALSE as published, not a guarantee"
            lines.append(f"    {verdict}; {arrow.reference}")
            lines += [f"    assumes: {arrow.assumption}"] if arrow.assumption else []
            lines += [f"    note: {arrow.note}"] if arrow.note else []
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
            "steps": [
                {
                    "function": step.arrow.function, "source": step.arrow.source, "target": step.arrow.target,
                    "form": step.arrow.form, "holds": step.arrow.holds, "assumption": step.arrow.assumption,
                    "reference": step.arrow.reference, "note": step.arrow.note, "result": result_of(step.arrow),
                    "arguments": {name: _plain(value) for name, value in step.arguments.items()},
                    "estimate": step.estimate.to_dict(),
                } for step in self.steps
            ],
        }  # fmt: skip


def convert(target: str, source: str, *, as_published: bool = False, **values: Any) -> Conversion:
    """Convert from one notion to another, by the tight conversion where there is one.

    Parameters
    ----------
    target, source : str
        Names of notions, the keys of ``NOTIONS``.
    as_published : bool, default False
        Take the conversion as printed in a paper, also where it is false.
    **values
        Numbers or estimates by the names of the parameters, such as ``epsilon=1.0, pi_min=0.01``; arrays broadcast.
        ``unit`` is the unit of amounts of information, in and out. Every one must be of use.

    Returns
    -------
    Conversion
        Where nothing leads straight from source to target, the steps of the shortest chain that promises most; a chain
        uses no conversion that is false, kept as published, or true of special mechanisms only. Its ``assumptions``
        are those of all its steps.

    Raises
    ------
    DomainError
        For an unknown notion, for numbers that no conversion or chain can use, or a number outside its range.

    Notes
    -----
    **Accuracy** as the steps; tests/properties/test_conversion_chains.py.

    Source: the references of the steps.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> found = conversions.convert("mbp", "ldp", epsilon=1.0, pi_min=0.01)
    >>> found.estimate.value
    0.99365873...
    >>> print(conversions.convert("ldp", "mbp", xi=0.5).summary().splitlines()[0])
    MBP -> LDP: ldp_from_mbp(xi=0.5)
    """
    names = tuple(NOTIONS)
    _validate.choice("target", target, names)
    _validate.choice("source", source, names)
    _validate.flag("as_published", as_published)
    if not values:
        raise DomainError(
            f"values must be given by name; got none. From {source} to {target}: {_ways(target, source)}."
        )
    path = _direct(target, source, set(values), as_published)
    if path is not None:
        return Conversion(source, target, _run(path, values))
    follow = _following(source)
    if target not in follow:
        raise DomainError(
            f"target must be a notion that follows from {source}; got {target!r}. From {source} follow: "
            f"{', '.join(follow) or 'none'}."
        )
    paths = [] if as_published else _chains(target, source, set(values))
    if not paths:
        raise DomainError(
            f"values must be what a conversion from {source} to {target} takes; got {', '.join(values)}. "
            f"It takes: {_ways(target, source)}."
        )
    return Conversion(source, target, _best([_run(chain, values) for chain in paths]))


@functools.cache
def _takes(entry: Arrow) -> tuple[frozenset[str], frozenset[str]]:
    """Required and optional parameters."""
    parameters = inspect.signature(function_of(entry)).parameters.values()
    required = frozenset(p.name for p in parameters if p.default is p.empty)
    return required, frozenset(p.name for p in parameters) - required


def _direct(target: str, source: str, given: set[str], as_published: bool) -> list[Arrow] | None:
    """The best arrow that uses every number given."""
    found = []
    for place, entry in enumerate(ARROWS):
        only = entry.published and entry.holds and not entry.function.endswith("_as_published")  # no better form exists
        if (entry.source, entry.target) != (source, target) or (as_published != entry.published and not only):
            continue
        required, optional = _takes(entry)
        if required <= given <= required | optional:
            found.append((_RANK[entry.form], place, entry))
    return [min(found, key=lambda row: row[:2])[2]] if found else None


def _linked(entry: Arrow) -> bool:
    """Whether it may be part of a chain."""
    return entry.holds and not entry.published and all(assumption.chained for assumption in entry.assumptions)


def _assumptions(path: list[Arrow]) -> tuple[Assumption, ...]:
    """Those of all arrows in order, each once, without those that the ends of the chain meet."""
    found: dict[Assumption, None] = {}
    every_pair = False  # whether a notion of pairs holds for every two secrets by what it follows from
    for entry in path:
        scope = NOTIONS[entry.source].secrets
        every_pair = scope in ("every", "support") or (scope == "pairs" and every_pair)
        found |= {a: None for a in entry.assumptions if not (a is EVERY_PAIR and every_pair)}
    if NOTIONS[path[-1].target].secrets == "support":  # of one prior: secrets that it excludes do not count
        found.pop(FULL_SUPPORT, None)
    return tuple(found)


def _following(source: str) -> list[str]:
    """What a conversion or a chain leads to."""
    found, level = {entry.target for entry in ARROWS if entry.source == source}, {source}
    for _ in range(_LONGEST):
        level = {entry.target for entry in ARROWS if entry.source in level and _linked(entry)}
        found |= level
    return [name for name in NOTIONS if name in found]


def _chains(target: str, source: str, given: set[str]) -> list[list[Arrow]]:
    """The chains that hold and use every number, shortest first; of those, the ones that assume least."""
    usable = [(entry, *_takes(entry)) for entry in ARROWS if _linked(entry)]
    level: list[tuple[str, set[str], set[str], list[Arrow]]] = [(source, given, given, [])]
    found: list[list[Arrow]] = []
    for _ in range(_LONGEST):
        following = []
        for notion, pool, unused, path in level:
            seen = {step.source for step in path} | {notion}
            for entry, required, optional in usable:
                if entry.source == notion and entry.target not in seen and required <= pool:
                    used = (required | optional) & pool
                    left = (pool - _own(entry, used)) | {result_of(entry)}
                    following.append((entry.target, left, unused - used, [*path, entry]))
        found += [path for notion, _, unused, path in following if notion == target and not unused]
        level = [row for row in following if row[0] != target]
    least = min((len(_assumptions(path)) for path in found), default=0)
    return [path for path in found if len(_assumptions(path)) == least]


def _best(candidates: list[tuple[Step, ...]]) -> tuple[Step, ...]:
    """The chain that promises most in most entries; the first of equals."""
    best = candidates[0]
    for other in candidates[1:]:
        better = np.asarray(other[-1].guarantee) < np.asarray(best[-1].guarantee)
        if other[-1].side == "lower":
            better = np.asarray(other[-1].guarantee) > np.asarray(best[-1].guarantee)
        if np.mean(better) > 0.5:
            best = other
    return best


def _own(entry: Arrow, used: set[str] | frozenset[str]) -> set[str]:
    """What an arrow takes of its source, which the target no longer has."""
    shared = {"unit", "pi_min", "pi_max", "inputs", "belief_gap", "atom"}
    keeps = {"epsilon"} if result_of(entry) == "delta" and entry.source not in ("ldp", "dp", "lip") else set()
    keeps |= {"delta"} if result_of(entry) == "epsilon" else set()
    return set(used) - shared - keeps


def _run(path: list[Arrow], values: dict[str, Any]) -> tuple[Step, ...]:
    pool, steps = dict(values), []
    for entry in path:
        required, optional = _takes(entry)
        arguments = {name: value for name, value in pool.items() if name in required | optional}
        step = Step(entry, arguments, function_of(entry)(**arguments))
        steps.append(step)
        for name in _own(entry, set(arguments)):
            del pool[name]
        pool[result_of(entry)] = step.estimate
    return tuple(steps)


def _ways(target: str, source: str) -> str:
    said = []
    for entry in ARROWS:
        if (entry.source, entry.target) == (source, target):
            required, optional = _takes(entry)
            more = f" [{', '.join(sorted(optional))}]" if optional else ""
            printed = " as published" if entry.published else ""
            said.append(f"{entry.function}: {', '.join(sorted(required))}{more}{printed}")
    if said:
        return "; ".join(said)
    starts = sorted({name for e in ARROWS if e.source == source for name in _takes(e)[0]})
    return f"no direct conversion; chains from {source} start with {', '.join(starts)}"


def _short(value: Any) -> str:
    if isinstance(value, Estimate):
        unit = " bits" if value.unit == "bits" else ""
        if np.all((value.lower == value.upper) | (value.width <= _NARROW * np.abs(value.upper))):
            return _short(value.upper) + unit
        return f"[{_short(value.lower)}, {_short(value.upper)}]{unit}"
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
