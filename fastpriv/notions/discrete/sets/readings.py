"""What sets tell under priors of many atoms, by the names of ``leakage``."""

from __future__ import annotations

from collections.abc import Iterable

from ..arguments import Reading, Setting
from .bits import bits_of
from .guesses import best_guess, maximal
from .information import information

__all__ = ["readings"]


def readings(given: Setting, names: Iterable[str]) -> dict[str, Reading]:
    """Those of the names that are known; none for other channels."""
    wanted = set(names)
    bits = bits_of(given) if wanted & {"information", "vulnerability", "before", "gain", "maximal", "maximal_support"
                                       } else None  # fmt: skip
    if bits is None:
        return {}
    found: dict[str, Reading] = {}
    if "information" in wanted:
        found["information"] = information(bits)
    if wanted & {"vulnerability", "before", "gain"}:
        found |= dict(zip(("vulnerability", "before", "gain"), best_guess(bits), strict=True))
    if "maximal" in wanted:
        found["maximal"] = maximal(bits, False)
    if "maximal_support" in wanted:
        found["maximal_support"] = maximal(bits, True)
    return found
