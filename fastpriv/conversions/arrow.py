"""``Arrow``: one conversion with everything that is to be known before it is trusted; ``Notion``: what it joins;
``Assumption``: what an arrow needs beyond its source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "EVERY_PAIR", "FULL_SUPPORT", "REPLACEMENT", "TRUE_BELIEF", "Arrow", "Assumption", "Form", "Notion",
]  # fmt: skip

Form = Literal["tight", "bound", "published"]


@dataclass(frozen=True, slots=True)
class Assumption:
    """What a conversion needs beyond its source.

    Parameters
    ----------
    text : str
        A statement about channel, prior or mechanism; the conversion holds where it is true.
    chained : bool
        Whether a chain of conversions may rest on it. It then is an assumption of the whole chain. What is special to
        one family of mechanisms is not: such a conversion is only used alone.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> [assumption.text for assumption in conversions.arrow("gdp_from_dp").assumptions]
    ['the mechanism is Gaussian']
    """

    text: str
    chained: bool = False


FULL_SUPPORT = Assumption(
    "the prior gives every secret a positive probability; otherwise it holds among those secrets only", True
)
EVERY_PAIR = Assumption("the source holds for every two secrets, not for neighbours only", True)
REPLACEMENT = Assumption("neighbours differ in the value of one record", True)
TRUE_BELIEF = Assumption("the attacker's prior is the true one", True)


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
    secrets : {"every", "pairs", "support", "records"}
        What it speaks of. ``every``: all secrets, whatever the prior. ``pairs``: every two secrets, or every two
        neighbours. ``support``: the secrets to which one prior gives a positive probability. ``records``: one record,
        the others given.

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
    secrets: Literal["every", "pairs", "support", "records"] = "every"


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
    assumptions : tuple of Assumption
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
    assumptions: tuple[Assumption, ...] = ()
    valid: str = "everywhere"
    note: str = ""
    result: str = ""

    @property
    def published(self) -> bool:
        """Whether it is kept as printed."""
        return self.form == "published"

    @property
    def assumption(self) -> str:
        """Its assumptions in words, empty where it needs nothing."""
        return "; ".join(assumption.text for assumption in self.assumptions)
