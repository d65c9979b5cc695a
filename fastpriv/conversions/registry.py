"""The one table of conversions: notions, arrows between them, and what is generated from it.

``ARROWS`` holds every conversion that fastpriv has, with direction, assumption, range, source and verdict. The table of
the documentation, the picture, the command and the docstrings of the functions are made of it. NumPy is not needed to
read it, so that help is quick.
"""

from __future__ import annotations

import importlib
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ParamSpec

from .arrow import Arrow, Notion
from .arrows_bayesian import BAYESIAN
from .arrows_differential import DIFFERENTIAL
from .parameters import PARAMETERS

if TYPE_CHECKING:
    from ..estimate import Estimate

__all__ = ["ARROWS", "NOTIONS", "arrow", "documented", "function_of", "listed", "markdown", "result_of", "table"]

Arguments = ParamSpec("Arguments")

_CHANNEL = "every two rows of the channel, or every two neighbours: "

NOTIONS: dict[str, Notion] = {
    notion.name: notion
    for notion in (
        Notion("ldp", "LDP", "epsilon", _CHANNEL + "log ratio of the laws at most epsilon (pure privacy)", "pairs"),
        Notion("dp", "(ε, δ)-DP", "delta", _CHANNEL + "hockey-stick divergence at e^epsilon at most delta", "pairs"),
        Notion("dp_curve", "δ(ε) curve", "curve", "delta for every epsilon, or for many", "pairs"),
        Notion("tradeoff", "f-DP", "type_two", _CHANNEL + "least probability of a miss for one of a false alarm",
               "pairs"),
        Notion("rdp", "Rényi DP", "renyi", _CHANNEL + "Renyi divergence of an order at most renyi", "pairs"),
        Notion("zcdp", "zCDP", "rho", _CHANNEL + "Renyi divergence of each order a above 1 at most rho a", "pairs"),
        Notion("gdp", "Gaussian DP", "separation", _CHANNEL + "no easier to tell apart than N(0, 1), N(separation, 1)",
               "pairs"),
        Notion("kl", "KL", "kl", _CHANNEL + "Kullback-Leibler divergence at most kl", "pairs"),
        Notion("total_variation", "total variation", "total_variation", _CHANNEL + "total variation at most this",
               "pairs"),
        Notion("membership_advantage", "membership advantage", "advantage",
               "true minus false positive rate of any test for one record that is independent of the others",
               "records"),
        Notion("group_ldp", "LDP of groups", "epsilon", "pure privacy when group records change", "records"),
        Notion("group_dp", "(ε, δ)-DP of groups", "delta", "(group epsilon, delta) when group records change",
               "records"),
        Notion("group_zcdp", "zCDP of groups", "rho", "zCDP when group records change", "records"),
        Notion("group_gdp", "Gaussian DP of groups", "separation", "Gaussian privacy when group records change",
               "records"),
        Notion("mbp", "MBP", "xi", "|ln(posterior / prior)| at most xi for every release and every secret that the "
               "prior allows; a smaller xi is more private", "support"),
        Notion("mbp_plus", "MBP, one side", "xi_plus", "ln(posterior / prior) at most xi_plus", "support"),
        Notion("abp", "ABP", "abp", "root of the Jensen-Shannon divergence of beliefs after and before, any law of the "
               "release", "support"),
        Notion("abp_given_secret", "ABP, given secret", "abp", "ABP for a release drawn from the row of one secret",
               "support"),
        Notion("lip", "LIP", "epsilon", "log ratio of each row to the law of the release at most epsilon", "support"),
        Notion("approximate_lip", "(ε, δ)-LIP", "delta", "the same up to delta", "support"),
        Notion("lip_curve", "LIP curve", "curve", "delta of LIP for every epsilon, or for many", "support"),
        Notion("ci_lmip", "CI-LMIP", "mu", "mutual information at most mu under every prior: the capacity"),
        Notion("cd_lmip", "CD-LMIP", "mu", "mutual information at most mu under one prior", "support"),
        Notion("pointwise_lmip", "pointwise LMIP", "mu", "D(row || law of the release) at most mu at every secret",
               "support"),
        Notion("mi_dp", "MI-DP", "mu", "mutual information of one record and the release, given the other records",
               "records"),
        Notion("maximal_leakage", "maximal leakage", "leakage", "ln of the sum over releases of the largest cell"),
        Notion("min_entropy_leakage", "min-entropy leakage", "leakage", "ln of how much likelier a best guess gets",
               "support"),
        Notion("vulnerability", "Bayes vulnerability", "vulnerability", "chance that a best guess is right", "support"),
        Notion("robustness", "robust accuracy", "gamma", "chance to miss by more than alpha for each other secret"),
        Notion("trials", "independent trials", "trials", "how many models, or attacks on one, a frequency is from"),
        Notion("count_failure", "frequency out of range", "failure",
               "chance that an estimated frequency errs by more than relative_error of it"),
        Notion("count_error", "frequency error", "relative_error", "relative error of estimated frequencies"),
        Notion("c1_error", "error of C1", "c1_error", "largest |estimate - C1|"),
        Notion("leakage_error", "error of 2 C1 − C2 TV", "leakage_error", "largest error of that expression"),
        Notion("c1", "C1, C2, TV", "c1", "belief without protection, MBP and total variation of the protection"),
        Notion("c2", "C2", "c2", "(e^(2 xi) - 1) / 2"),
    )
}  # fmt: skip


def _placed(entry: Arrow) -> Arrow:
    """The row, its proof with the file that holds it."""
    file = f"of conversions/{entry.module.replace('.', '/')}.py"
    return replace(entry, reference=entry.reference.replace("of the module", file))


ARROWS: tuple[Arrow, ...] = tuple(_placed(entry) for entry in (*BAYESIAN, *DIFFERENTIAL))

_BY_FUNCTION = {entry.function: entry for entry in ARROWS}
_COLUMNS = ("source", "target", "function", "form", "holds", "assumption", "valid", "reference", "note")
_RANGE = "For a number outside its range."
_SHAPES = "For shapes that do not broadcast."
_TEST = "tests/enclosures/test_conversions_values.py"


def arrow(function: str) -> Arrow:
    """The row of a function.

    Parameters
    ----------
    function : str
        Its name.

    Raises
    ------
    DomainError
        For a name that no conversion has.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.arrow("mbp_from_ldp").form
    'tight'
    """
    return _BY_FUNCTION[_one_of("function", function, tuple(_BY_FUNCTION))]


def function_of(entry: Arrow) -> Callable[..., Estimate]:
    """The function of a row, loaded."""
    module = importlib.import_module(f".{entry.module}", __package__)
    found: Callable[..., Estimate] = getattr(module, entry.function)
    return found


def result_of(entry: Arrow) -> str:
    """The name of the number that a row yields."""
    return entry.result or NOTIONS[entry.target].value


def listed(target: str | None = None, source: str | None = None) -> list[dict[str, Any]]:
    """The rows of the table as dicts, of one target or source if asked.

    Parameters
    ----------
    target, source : str, optional
        Names of notions.

    Raises
    ------
    DomainError
        For an unknown notion.

    Examples
    --------
    >>> from fastpriv.conversions.registry import listed
    >>> [row["function"] for row in listed("gdp", "ldp")]
    ['gdp_from_ldp']
    """
    for name, notion in (("target", target), ("source", source)):
        if notion is not None:
            _one_of(name, notion, tuple(NOTIONS))
    return [
        {name: getattr(entry, name) for name in _COLUMNS} for entry in ARROWS
        if target in (None, entry.target) and source in (None, entry.source)
    ]  # fmt: skip


def table() -> Any:
    """Every conversion as a table: a pandas DataFrame, or a list of dicts where pandas is not installed.

    Returns
    -------
    DataFrame or list of dict
        Columns source, target, function, form, holds, assumption, valid, reference, note; a row for each conversion.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> rows = conversions.table()
    >>> len(rows) == len(conversions.ARROWS)
    True
    """
    rows = listed()
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows, columns=list(_COLUMNS))


def markdown() -> str:
    """CONVERSIONS.md: the notions, and the conversions by source.

    Returns
    -------
    str
        The text of the file; ``fastpriv convert --list --markdown`` prints it.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.markdown().splitlines()[0]
    '# Conversions between privacy notions'
    """
    tight, false = sum(e.form == "tight" for e in ARROWS), sum(not e.holds for e in ARROWS)
    lines = [
        "# Conversions between privacy notions", "",
        "Generated from the registry by `fastpriv convert --list --markdown`; `fastpriv.conversions.table()` has the "
        "same rows.", "",
        f"{len(ARROWS)} conversions between {len(NOTIONS)} notions: {tight} tight, {false} published ones that are "
        "**false** and kept under that label. Whoever has the source has the target. *tight*: no smaller number "
        "follows. *bound*: true, not known to be attained. *published*: as printed, where a better one stands beside "
        "it.", "",
    ]  # fmt: skip
    for name in dict.fromkeys(entry.source for entry in ARROWS):
        lines += [f"## From {NOTIONS[name].title} (`{name}`)", "", f"{NOTIONS[name].meaning[0].upper()}"
                  f"{NOTIONS[name].meaning[1:]}.", "", "| to | function | form | needs, valid | source | note |",
                  "|---|---|---|---|---|---|"]  # fmt: skip
        for entry in ARROWS:
            if entry.source == name:
                form = entry.form if entry.holds else "published, **FALSE**"
                needs = "; ".join(word for word in (entry.assumption, entry.valid) if word not in ("", "everywhere"))
                cells = (NOTIONS[entry.target].title, f"`{entry.function}`", form, needs, entry.reference, entry.note)
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    lines += ["## Notions", "", "| notion | name | definition |", "|---|---|---|"]
    lines += [f"| {n.title} | `{n.name}` | {n.meaning.replace('|', chr(92) + '|')} |" for n in NOTIONS.values()]
    return "\n".join(lines) + "\n"


def documented(function: Callable[Arguments, Estimate]) -> Callable[Arguments, Estimate]:
    """Completes the docstring of a conversion: arguments by their one meaning, verdict and source from its row."""
    entry = _BY_FUNCTION[function.__name__]
    text = inspect.cleandoc(function.__doc__ or "")
    said, _, example = text.partition("\nExamples\n--------\n")
    summary, _, more = said.strip().partition("\n\n")
    verdict = f"Form: {entry.form}." if entry.holds else "**FALSE as published**; never a guarantee."
    words = [verdict]
    words += [f"Assumption: {entry.assumption}."] if entry.assumption else []
    words += [f"Valid: {entry.valid}."] if entry.valid != "everywhere" else []
    words += [f"Note: {entry.note}."] if entry.note else []
    notes = "\n\n".join(filter(None, (more.strip(), textwrap.fill(" ".join(words), 116))))
    function.__doc__ = (
        f"{summary}\n\nParameters\n----------\n{_parameters(function)}\n\nReturns\n-------\nEstimate\n"
        f"    The {result_of(entry)} of {NOTIONS[entry.target].title}, of the broadcast shape. A guarantee quotes "
        f"``{'lower' if entry.target == 'tradeoff' else 'upper'}``.\n\n"
        f"Raises\n------\nDomainError\n    {_RANGE}\nShapeError\n    {_SHAPES}\n\nNotes\n-----\n{notes}\n\n"
        f"**Accuracy**: 1e-14 relative, where the bounds are not wider, against mpmath ({_TEST}).\n\n"
        f"Source: {entry.reference}.\n\nExamples\n--------\n{example}"
    )
    return function


def _one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    from .. import _validate

    return _validate.choice(name, value, known)


def _parameters(function: Callable[..., Any]) -> str:
    rows = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "unit":
            rows.append('unit : {"nats", "bits"}, default "nats"\n    Unit of every amount of information, in and out.')
            continue
        default = "" if parameter.default is parameter.empty else f", default {parameter.default:g}"
        known = PARAMETERS[name]
        limits = f"{known.constraint[0].upper()}{known.constraint[1:]}"
        kind = "array_like or Estimate" if name in getattr(function, "directions", ()) else "array_like"
        rows.append(f"{name} : {kind}{default}\n    {known.text} {limits}.")
    return "\n".join(rows)
