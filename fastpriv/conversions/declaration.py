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
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec

from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate
from ..base.monotone import monotone
from .vocabulary import NOTIONS, OPTIONS, PARAMETERS, Assumption

__all__ = ["DECLARED", "BoundOrPublished", "Conversion", "Form", "Formula", "TightOrPublished", "conversion"]

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Conversion:
    """One conversion by one formula: whoever has ``source`` has ``target``.

    Parameters
    ----------
    source, target : str
        Names of notions.
    function : str
        Its name in ``fastpriv.conversions``.
    form, reference, assumptions, domain, note, holds
        As for ``Formula``.
    result : str
        The parameter that it yields.
    module : str
        The module of ``fastpriv.conversions`` that defines it.
    required, optional : tuple of str
        The parameters that this formula takes.
    default : bool
        Whether it is the formula that the function uses unless ``form`` says otherwise.
    call : callable
        The function, set to this formula.

    Examples
    --------
    >>> from fastpriv.conversions import CONVERSIONS
    >>> [(row.function, row.form) for row in CONVERSIONS if not row.holds][:1]
    [('robustness_from_mbp', 'as_published')]
    """

    source: str
    target: str
    function: str
    form: Form
    reference: str
    assumptions: tuple[Assumption, ...]
    domain: str
    note: str
    holds: bool
    result: str
    module: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    default: bool
    call: Callable[..., Estimate]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function!r}, form={self.form!r})"

    def __reduce__(self) -> Any:
        return _declared, (self.module, self.function, self.form)

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


def _declared(module: str, function: str, form: Form) -> Conversion:
    """The conversion itself, for a pickle of it."""
    importlib.import_module("." + module, __package__)
    return next(row for row in DECLARED if (row.module, row.function, row.form) == (module, function, form))


DECLARED: list[Conversion] = []  # every conversion of the modules that are loaded; ``registry`` loads all

# The accuracy in the docstring of a conversion that states no other.
_ACCURACY = (
    "**Accuracy**: 1e-14 relative, where the bounds are not wider, against mpmath\n"
    "(tests/enclosures/test_conversions_values.py)."
)
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
        rows = [_declared_conversion(source, target, formula, function, by_form, exclusive) for formula in formulas]
        DECLARED.extend(rows)
        directions = {name for entry in by_form.values() for name in entry.__dict__["directions"]}
        public.__doc__ = _docstring(function, rows, exclusive, directions)
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


def _declared_conversion(
    source: str, target: str, formula: Formula, function: Callable[..., Estimate],
    by_form: dict[Form, Callable[..., Estimate]], exclusive: dict[str, Form],
) -> Conversion:  # fmt: skip
    module = function.__module__.rpartition(".")[2]
    quantity = function.__name__.partition("_from_")[0].rpartition("_")[2]
    taken = {
        name: parameter.default is parameter.empty or (parameter.default is None and name in exclusive)
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "form" and exclusive.get(name, formula.form) == formula.form
    }
    ranges = [
        f"{name} {PARAMETERS[name].constraint}"
        for name in taken
        if name in PARAMETERS
        and name not in formula.domain
        and PARAMETERS[name].constraint not in ("at least 0", "between 0 and 1")
    ]
    return Conversion(
        source, target, function.__name__, formula.form,
        formula.reference.replace("of the module", f"of conversions/{module}.py"), formula.assumptions,
        ", ".join(filter(None, [formula.domain, *ranges])), formula.note, formula.holds,
        quantity if quantity in ("delta", "epsilon") else NOTIONS[target].parameter, module,
        tuple(name for name, required in taken.items() if required),
        tuple(name for name, required in taken.items() if not required), formula.form == next(iter(by_form)),
        functools.partial(by_form[formula.form], **({"form": formula.form} if len(by_form) > 1 else {})),
    )  # fmt: skip


def _docstring(
    function: Callable[..., Estimate], rows: list[Conversion], exclusive: dict[str, Form], directions: set[str]
) -> str:
    """The docstring of the function with the sections that it lacks."""
    text, _, example = inspect.cleandoc(function.__doc__ or "").partition("\n>>> ")
    opening, *parts = re.split(r"\n([A-Z]\w*)\n-+\n", text.strip())
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    summary, _, details = opening.strip().partition("\n\n")
    side = "lower" if rows[0].target == "tradeoff" else "upper"
    sections["Parameters"] = _parameter_section(function, rows, exclusive, directions, sections.get("Parameters", ""))
    sections.setdefault(
        "Returns",
        f"Estimate\n    The {rows[0].result} of {NOTIONS[rows[0].target].title}, of the broadcast shape. A guarantee "
        f"quotes ``{side}``.",
    )
    sections.setdefault(
        "Raises", "DomainError\n    For a number outside its range.\nShapeError\n    For shapes that do not broadcast."
    )
    remarks, mark, accuracy = f"{details}\n\n{sections.get('Notes', '')}".partition("**Accuracy**")
    source = _filled(f"Source: {'; as published: '.join(dict.fromkeys(row.reference for row in rows))}.")
    sections["Notes"] = "\n\n".join(filter(None, [
        remarks.strip(), *map(_verdict, rows), (mark + accuracy).strip() or _ACCURACY, source,
    ]))  # fmt: skip
    sections["Examples"] = f">>> from fastpriv import conversions\n>>> {example}"
    order = ("Parameters", "Returns", "Raises", "Notes", "Examples")
    return "\n\n".join([summary, *(f"{name}\n{'-' * len(name)}\n{sections[name].strip()}" for name in order)])


def _verdict(row: Conversion) -> str:
    """The guarantees and restrictions of one formula."""
    words = [f"Form: {row.form}." if row.holds else "**FALSE as published**; never a guarantee."]
    words += [f"Assumption: {row.assumption}."] if row.assumption else []
    words += [f"Valid: {row.domain}."] if row.domain else []
    words += [f"Note: {row.note}."] if row.note else []
    return _filled(" ".join(words))


def _filled(text: str, indent: str = "") -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)


def _parameter_section(
    function: Callable[..., Estimate], rows: list[Conversion], exclusive: dict[str, Form], directions: set[str],
    written: str,
) -> str:  # fmt: skip
    """The parameters in the order of the signature, in the words of the docstring where it has some."""
    entries = dict(re.findall(r"^(\S.*?) : (.*(?:\n    .*)*)", written, re.M))
    lines: dict[str, None] = {}  # each once: an entry may be of several parameters
    for name, parameter in inspect.signature(function).parameters.items():
        heading = next((names for names in entries if name in names.split(", ")), None)
        form = f' With form "{exclusive[name]}" only.' if name in exclusive else ""
        if heading is not None:
            text = f"{heading} : {entries[heading]}{form}"
        elif name == "unit":
            text = 'unit : {"nats", "bits"}, default "nats"\n    Unit of every amount of information, in and out.'
        elif name == "form":
            forms = ", ".join(f'"{row.form}"' for row in rows)
            text = f'form : {{{forms}}}, default "{rows[0].form}"\n    The formula.'
        elif name in OPTIONS:
            kind, meaning = OPTIONS[name]
            default = "" if parameter.default is None else f", default {parameter.default:g}"
            text = f"{name} : {kind}{default}\n{_filled(meaning, '    ')}"
        else:
            known = PARAMETERS[name]
            kind = "array_like or Estimate" if name in directions else "array_like"
            default = "" if parameter.default in (parameter.empty, None) else f", default {parameter.default:g}"
            limits = f"{known.constraint[0].upper()}{known.constraint[1:]}"
            text = f"{name} : {kind}{default}\n" + _filled(f"{known.text} {limits}.{form}", "    ")
        lines[text] = None
    return "\n".join(lines)
