"""``Sweep``: several columns or mechanisms side by side, in one table, one summary and one figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ... import __version__, figures
from ...errors import DomainError
from .result import Assessment
from .summary import compared
from .table import Report

__all__ = ["Sweep"]


@dataclass(frozen=True, eq=False)
class Sweep(Report):
    """The assessments of every column under every mechanism.

    Parameters
    ----------
    assessments : tuple of Assessment
        Column by column, within a column mechanism by mechanism.

    Examples
    --------
    >>> import fastpriv
    >>> jobs = ["nurse", "nurse", "clerk", "judge"]
    >>> found = fastpriv.sweep({"job": jobs}, mechanism=["rr", "subset"], level=[0.5, 1.0], epsilon=[0.1])
    >>> found["job", "rr"]["mutual_information"].upper.round(4)
    array([0.0282, 0.1152])
    >>> len(found.columns()["value"]) == sum(len(one.columns()["value"]) for one in found.assessments)
    True
    """

    assessments: tuple[Assessment, ...]

    def __getitem__(self, key: tuple[str, str]) -> Assessment:
        for one in self.assessments:
            if (one.name, one.mechanism) == key:
                return one
        keys = ", ".join(repr((one.name, one.mechanism)) for one in self.assessments)
        raise DomainError(f"key must be a column and a mechanism, of {keys}; got {key!r}. Choose one of these.")

    def __iter__(self) -> Iterator[Assessment]:
        return iter(self.assessments)

    def __len__(self) -> int:
        return len(self.assessments)

    def __repr__(self) -> str:
        columns, mechanisms = (dict.fromkeys(getattr(one, x) for one in self) for x in ("name", "mechanism"))
        return f"<Sweep of {', '.join(columns)} under {', '.join(mechanisms)}>"

    def summary(self) -> str:
        """The summaries of all, the comparison of the mechanisms first."""
        return compared(self)

    def plot(self) -> Any:
        """The figure: what the mechanisms leak of each column, over the LDP epsilon that they give."""
        return figures.sweep(self)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows of all assessments, one after the other."""
        for one in self.assessments:
            yield from one.rows()

    def settings(self) -> dict[str, Any]:
        """The settings of each assessment, in plain types."""
        return {"fastpriv": __version__, "assessments": [one.settings() for one in self.assessments]}
