"""Pictures, by matplotlib: the panels of an assessment. Nothing here touches pyplot or any global state."""

from __future__ import annotations

from .panels import assessment, column, curves, information

__all__ = ["assessment", "column", "curves", "information"]
