"""Conversions between privacy notions: each reads ``<target>_from_<source>`` and says what it guarantees.

``ARROWS`` is the table of all of them, ``table()`` shows it, ``convert`` finds the one, or the chain, between two
notions. A function is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .arrow import Arrow, Notion
from .registry import ARROWS, NOTIONS, arrow, function_of, markdown, table

_CHAINS = ("Conversion", "Step", "convert")
_FUNCTIONS = {entry.function: entry for entry in ARROWS}

__all__ = ["ARROWS", "NOTIONS", "Arrow", "Notion", "arrow", "markdown", "table", *_CHAINS, *_FUNCTIONS]


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        value: Any = function_of(_FUNCTIONS[name])
    elif name in _CHAINS:
        value = getattr(import_module(".chains", __name__), name)
    else:
        raise AttributeError(f"module 'fastpriv.conversions' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({name for name in globals() if name.startswith("__")} | set(__all__))
