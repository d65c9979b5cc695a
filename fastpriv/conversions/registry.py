"""Every conversion of the room, and what is made of all of them: the table and CONVERSIONS.md."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..base import validate
from .declaration import DECLARED, Conversion
from .vocabulary import NOTIONS

if TYPE_CHECKING:
    import pandas as pd

# The modules whose conversions are listed, in the order of the list.
_MODULES = (
    "bayesian_privacy", "average_bayesian_privacy", "information_and_leakage", "mutual_information_privacy",
    "information_from_curves", "differential_privacy", "renyi_privacy",
)
for _module in _MODULES:
    import_module(f".{_module}", __package__)
CONVERSIONS: tuple[Conversion, ...] = tuple(
    declared for module in _MODULES for declared in DECLARED if declared.module == module
)  # in the order of the tables, whatever was imported first
# Attributes of a Conversion that are columns of the table, in order.
_COLUMNS = ("source", "target", "function", "form", "holds", "assumption", "domain", "reference", "note")


def rows(target: str | None = None, source: str | None = None) -> list[dict[str, Any]]:
    """The rows of the table as dicts, of one target or source if given.

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
    >>> from fastpriv.conversions.registry import rows
    >>> [row["function"] for row in rows("gdp", "ldp")]
    ['gdp_from_ldp']
    """
    for name, notion in (("target", target), ("source", source)):
        if notion is not None:
            validate.choice(name, notion, tuple(NOTIONS))
    return [
        {column: getattr(row, column) for column in _COLUMNS}
        for row in CONVERSIONS
        if target in (None, row.target) and source in (None, row.source)
    ]


def table() -> pd.DataFrame | list[dict[str, Any]]:
    """Every conversion as a table: a pandas DataFrame, or a list of dicts where pandas is not installed.

    Returns
    -------
    DataFrame or list of dict
        Columns source, target, function, form, holds, assumption, domain, reference, note; a row for each formula of a
        conversion.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> len(conversions.table()) == len(conversions.CONVERSIONS)
    True
    """
    try:
        import pandas
    except ImportError:
        return rows()
    return pandas.DataFrame(rows(), columns=list(_COLUMNS))


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
    tight, false = sum(row.form == "tight" for row in CONVERSIONS), sum(not row.holds for row in CONVERSIONS)
    functions = len({row.function for row in CONVERSIONS})
    lines = [
        "# Conversions between privacy notions", "",
        "Generated from the declarations by `fastpriv convert --list --markdown`; `fastpriv.conversions.table()` has "
        "the same rows.", "",
        f"{len(CONVERSIONS)} conversions between {len(NOTIONS)} notions, in {functions} functions of "
        f"`fastpriv.conversions`: {tight} tight, {false} published ones that are **false** and kept under that label. "
        "Whoever has the source has the target. *tight*: no smaller number follows. *bound*: true, not known to be "
        "attained. *as published*: as printed, by `form=\"as_published\"` where the function has a better form.", "",
    ]
    for name in dict.fromkeys(row.source for row in CONVERSIONS):
        definition = NOTIONS[name].definition
        lines += [f"## From {NOTIONS[name].title} (`{name}`)", "", f"{definition[0].upper()}{definition[1:]}.", "",
                  "| to | function | form | needs, valid | source | note |", "|---|---|---|---|---|---|"]
        for row in CONVERSIONS:
            if row.source == name:
                form = row.form.replace("_", " ") + ("" if row.holds else ", **FALSE**")
                needs = "; ".join(filter(None, (row.assumption, row.domain)))
                cells = (NOTIONS[row.target].title, f"`{row.function}`", form, needs, row.reference, row.note)
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    lines += ["## Notions", "", "| notion | name | definition |", "|---|---|---|"]
    for notion in NOTIONS.values():
        definition = notion.definition.replace("|", "\\|")
        lines.append(f"| {notion.title} | `{notion.name}` | {definition} |")
    return "\n".join(lines) + "\n"
