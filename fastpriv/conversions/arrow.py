"""``Arrow``: one conversion with everything that is to be known before it is trusted; ``Notion``: what it joins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Arrow", "Form", "Notion"]

Form = Literal["tight", "bound", "published"]


@dataclass(frozen=True, slots=True)
class Notion:
    """A privacy notion.

    Parameters
    ----------
    name : str
        As in the names of the conversions.
    title : str
        As in pictures and tables.
    value : str
        The parameter under which the next conversion of a chain takes it.
    meaning : str
        Its definition, in short.

    Examples
    --------
    >>> from fastpriv.conversions import NOTIONS
    >>> NOTIONS["zcdp"].title, NOTIONS["zcdp"].value
    ('zCDP', 'rho')
    """

    name: str
    title: str
    value: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """One conversion: whoever has ``source`` has ``target``.

    Parameters
    ----------
    source, target : str
        Names of notions.
    function : str
        Its name in ``fastpriv.conversions``.
    form : {"tight", "bound", "published"}
        ``tight``: no smaller number follows, some mechanism attains it or comes as close as one likes. ``bound``: true,
        not known to be attained. ``published``: as printed in a paper, kept for comparison where a better one stands
        beside it.
    holds : bool
        False for a published statement that is false.
    assumption : str
        What it needs beyond the source; empty where it needs nothing.
    valid : str
        Range in which it says something; arguments outside raise.
    reference : str
        Where it is stated, with its number; or where it is proved.
    note : str
        What else a reader should know.
    module : str
        Where it is defined, inside ``fastpriv.conversions``.
    result : str
        The parameter that it yields; by default the value of the target.

    Examples
    --------
    >>> from fastpriv.conversions import ARROWS
    >>> [arrow.function for arrow in ARROWS if not arrow.holds][:1]
    ['robustness_from_mbp_as_published']
    """

    source: str
    target: str
    function: str
    form: Form
    reference: str
    module: str
    holds: bool = True
    assumption: str = ""
    valid: str = "everywhere"
    note: str = ""
    result: str = ""

    @property
    def published(self) -> bool:
        """Whether it is kept as printed."""
        return self.form == "published"
