"""Conversions between privacy notions: each reads ``<target>_from_<source>`` and says what it guarantees.

``CONVERSIONS`` has all of them, ``table()`` shows it, and ``convert`` finds the one, or the chain, between two notions.
A conversion is declared beside its function (``declaration.py``); everything else is made of these declarations.
"""

from __future__ import annotations

from ..base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
