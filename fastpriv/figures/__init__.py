"""Pictures, by matplotlib: an assessment, beliefs about batches, and the paper on local mutual-information privacy.

No global state.
"""

from __future__ import annotations

from .batches import batch_entropy, membership
from .channel_panels import categories, leakage, levels, sweep
from .conversions_map import conversions_diagram
from .panels import assessment, column, curves, information
from .paper_data import PaperFigure
from .paper_panels import paper_panel
from .reproduction import Paper, paper

__all__ = [
    "Paper", "PaperFigure", "assessment", "batch_entropy", "categories", "column", "conversions_diagram", "curves",
    "information", "leakage", "levels", "membership", "paper", "paper_panel", "sweep",
]  # fmt: skip
