"""``conversion``: the one declaration of a conversion, beside the function that computes it.

It says where the conversion leads from and to, and for each formula of the function its form, source, assumptions and
domain, and in which direction it moves with every parameter. The function's keyword ``form`` picks the formula. The
docstring of the function, the table, CONVERSIONS.md, the chains, the command and the diagram are made of it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, ParamSpec

from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate
from ..base.monotone import monotone
from .vocabulary import NOTIONS, OPTIONS, PARAMETERS, Assumption

Arguments = ParamSpec("Arguments")
Form = Literal["tight", "bound", "as_published"]
TightOrPublished = Literal["tight", "as_published"]  # the keyword ``form`` of a function with these two formulas
BoundOrPublished = Literal["bound", "as_published"]


@dataclass(frozen=True, slots=True)
class Formula:
    """One formula of a conversion, as ``conversion`` takes it.

    Parameters
    ----------
    form : {"tight", "bound", "as_published"}
        ``tight``: no smaller number follows, some mechanism attains it or comes as close as one likes. ``bound``: true,
        not known to be attained. ``as_published``: as printed in a paper, kept for comparison where a better one stands
        beside it.
    reference : str
        Where it is stated, with its number; or where it is proved.
    rising, falling, widening, joint : str
        The parameters that may be estimates, by what the answer does with them: see ``monotone``.
    assumptions : tuple of Assumption
        What it needs beyond the source.
    domain : str
        Range in which it says something, beyond the ranges of its parameters.
    note : str
        What else a reader should know.
    holds : bool
        False for a published statement that is false.
    only : str
        Parameters that no other formula of the function takes.
    """

    form: Form
    reference: str
    rising: str = ""
    falling: str = ""
    widening: str = ""
    joint: str = ""
    assumptions: tuple[Assumption, ...] = ()
    domain: str = ""
    note: str = ""
    holds: bool = True
    only: str = ""


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Conversion(Formula):
    """One conversion by one formula: whoever has ``source`` has ``target``.

    Parameters
    ----------
    source, target : str
        Names of notions.
    function : str
        Its name in ``fastpriv.conversions``.
    form, reference, assumptions, domain, note, holds
        As for ``Formula``.
    rising, falling, widening, joint, only
        As for ``Formula``: how bounds of arguments are carried through.
    result : str
        The parameter that it yields.
    module : str
        The module of ``fastpriv.conversions`` that defines it.
    required, optional : tuple of str
        The parameters that this formula takes.
    default : bool
        Whether it is the formula that the function uses unless ``form`` says otherwise.

    Examples
    --------
    >>> from fastpriv.conversions import CONVERSIONS
    >>> [(row.function, row.form) for row in CONVERSIONS if not row.holds][:1]
    [('robustness_from_mbp', 'as_published')]
    """

    source: str
    target: str
    function: str
    result: str
    module: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    default: bool

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function!r}, form={self.form!r})"

    def call(self, **values: Any) -> Estimate:
        """Call the function with this formula."""
        function = getattr(importlib.import_module("." + self.module, __package__), self.function)
        answer: Estimate = function(**values) if self.default else function(**values, form=self.form)
        return answer

    @property
    def parameters(self) -> tuple[str, ...]:
        """All parameters of this formula."""
        return self.required + self.optional

    @property
    def published(self) -> bool:
        """Whether it is kept as printed."""
        return self.form == "as_published"

    @property
    def assumption(self) -> str:
        """Its assumptions in words, empty where it needs nothing."""
        return "; ".join(assumption.text for assumption in self.assumptions)


DECLARED: list[Conversion] = []  # every conversion of the modules that are loaded; ``registry`` loads all

# The accuracy in the docstring of a conversion that states no other.
_ACCURACY = (
    "**Accuracy**: 2e-14 relative, where the bounds are not wider, against mpmath\n"
    "(tests/enclosures/test_conversions_values.py)."
)
# The errors in the docstring of a conversion that states no other.
_RAISES = "DomainError\n    For a number outside its range.\nShapeError\n    For shapes that do not broadcast."
_WIDTH = 116  # columns of a docstring without its indent


def conversion(
    source: str, target: str, *formulas: Formula
) -> Callable[[Callable[Arguments, Estimate]], Callable[Arguments, Estimate]]:
    """Declare that a function converts ``source`` to ``target``; the first formula is the default of its ``form``.

    The function takes estimates for the parameters that a formula names. Its docstring may stop after what is special
    to it: the sections that it lacks are written from the declaration, and lines after ``>>>`` become its example.
    """

    def declare(function: Callable[Arguments, Estimate]) -> Callable[Arguments, Estimate]:
        by_form = {
            formula.form: monotone(
                rising=formula.rising, falling=formula.falling, widening=formula.widening, joint=formula.joint
            )(function)
            for formula in formulas
        }
        parameters = inspect.signature(function).parameters
        exclusive = {name: formula.form for formula in formulas for name in formula.only.split()}
        default = formulas[0].form
        public = by_form[default]
        if len(formulas) > 1:

            @functools.wraps(public)
            def dispatch(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Estimate:
                form: Any = validate.choice("form", kwargs.get("form", default), tuple(by_form))
                _check_exclusive(form, {**dict(zip(parameters, args, strict=False)), **kwargs}, exclusive, parameters)
                return by_form[form](*args, **kwargs)

            public = dispatch
        rows = []
        for formula in formulas:
            taken = {
                name: parameter.default is parameter.empty or (parameter.default is None and name in exclusive)
                for name, parameter in parameters.items()
                if name != "form" and exclusive.get(name, formula.form) == formula.form
            }
            rows.append(_conversion_row(source, target, function, formula, taken, formula.form == default))
        DECLARED.extend(rows)
        public.__doc__ = _docstring(function, rows, exclusive)
        return public

    return declare


def _check_exclusive(form: str, arguments: dict[str, Any], exclusive: dict[str, Form], parameters: Any) -> None:
    """Reject parameters of another formula, and require those without which this one has no answer."""
    for name, owner in exclusive.items():
        if owner != form and arguments.get(name) is not None:
            raise DomainError(
                f"{name} must be left out where form is {form!r}; got {arguments[name]!r:.60}. Form {owner!r} takes it."
            )
        if owner == form and arguments.get(name) is None and parameters[name].default is None:
            raise DomainError(f"{name} must be given where form is {form!r}; got None. {PARAMETERS[name].text}")


def _conversion_row(
    source: str, target: str, function: Callable[..., Estimate], formula: Formula, taken: dict[str, bool], default: bool
) -> Conversion:
    """The row of one formula; ``taken`` says of each parameter whether it is required."""
    module = function.__module__.rpartition(".")[2]
    quantity = function.__name__.partition("_from_")[0].rpartition("_")[2]
    stated = {field.name: getattr(formula, field.name) for field in fields(formula)}
    stated["reference"] = formula.reference.replace("of the module", f"of conversions/{module}.py")
    return Conversion(
        **stated, source=source, target=target, function=function.__name__, module=module, default=default,
        result=quantity if quantity in ("delta", "epsilon") else NOTIONS[target].parameter,
        required=tuple(name for name, required in taken.items() if required),
        optional=tuple(name for name, required in taken.items() if not required),
    )


def _docstring(function: Callable[..., Estimate], rows: list[Conversion], exclusive: dict[str, Form]) -> str:
    """The docstring of the function with the sections that it lacks."""
    text, _, example = inspect.cleandoc(function.__doc__ or "").partition("\n>>> ")
    opening, *parts = re.split(r"\n([A-Z]\w*)\n-+\n", text.strip())
    written = dict(zip(parts[::2], parts[1::2], strict=True))
    summary, _, details = opening.strip().partition("\n\n")
    side = "lower" if rows[0].target == "tradeoff" else "upper"
    result = f"The {rows[0].result} of {NOTIONS[rows[0].target].title}, of the broadcast shape. A guarantee quotes"
    remarks, mark, accuracy = f"{details}\n\n{written.get('Notes', '')}".partition("**Accuracy**")
    source = f"Source: {'; as published: '.join(dict.fromkeys(row.reference for row in rows))}."
    notes = [remarks.strip(), *map(_verdict, rows), (mark + accuracy).strip() or _ACCURACY, _filled(source)]
    sections = {
        "Parameters": _parameter_section(function, rows, exclusive, written.get("Parameters", "")),
        "Returns": written.get("Returns", f"Estimate\n    {result} ``{side}``."),
        "Raises": written.get("Raises", _RAISES),
        "Notes": "\n\n".join(filter(None, notes)),
        "Examples": f">>> from fastpriv import conversions\n>>> {example}",
    }
    return "\n\n".join(
        [summary, *(f"{name}\n{'-' * len(name)}\n{content.strip()}" for name, content in sections.items())]
    )


def _verdict(row: Conversion) -> str:
    """The guarantees and restrictions of one formula."""
    words = [f"Form: {row.form}." if row.holds else "**FALSE as published**; never a guarantee."]
    remarks = {"Assumption": row.assumption, "Valid": row.domain, "Note": row.note}
    return _filled(" ".join([*words, *(f"{word}: {text}." for word, text in remarks.items() if text)]))


def _filled(text: str, indent: str = "") -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)


def _parameter_section(
    function: Callable[..., Estimate], rows: list[Conversion], exclusive: dict[str, Form], written: str
) -> str:
    """The parameters in the order of the signature, in the words of the docstring where it has some."""
    entries = dict(re.findall(r"^(\S.*?) : (.*(?:\n    .*)*)", written, re.M))
    estimates = {name for row in rows for name in f"{row.rising} {row.falling} {row.widening}".split()}
    forms = ", ".join(f'"{row.form}"' for row in rows)
    lines: dict[str, None] = {}  # each once: an entry may be of several parameters
    for name, parameter in inspect.signature(function).parameters.items():
        heading = next((names for names in entries if name in names.split(", ")), None)
        only = f' With form "{exclusive[name]}" only.' if name in exclusive else ""
        default = "" if parameter.default in (parameter.empty, None) else f", default {parameter.default}"
        if heading is not None:
            text = f"{heading} : {entries[heading]}{only}"
        elif name == "form":
            text = f'form : {{{forms}}}, default "{rows[0].form}"\n    The formula.'
        elif name in OPTIONS:
            kind, meaning = OPTIONS[name]
            text = f"{name} : {kind}{default}\n{_filled(meaning, '    ')}"
        else:
            known = PARAMETERS[name]
            kind = "array_like or Estimate" if name in estimates else "array_like"
            limits = f"{known.constraint[0].upper()}{known.constraint[1:]}"
            text = f"{name} : {kind}{default}\n{_filled(f'{known.text} {limits}.{only}', '    ')}"
        lines[text] = None
    return "\n".join(lines)
