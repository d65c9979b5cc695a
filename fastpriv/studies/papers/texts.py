"""The sentences of the papers' pages: ``texts.toml`` beside this file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from ...base.files import parse_toml


@cache
def texts_of(part: str) -> dict[str, Any]:
    """Texts of ``figures`` or ``statements``, by name; the caller fills in the numbers in braces."""
    return dict(parse_toml(files(__package__).joinpath("texts.toml").read_text(encoding="utf-8"))[part])
