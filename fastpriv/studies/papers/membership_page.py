"""The page of the paper on generative membership privacy: comparisons of its figure 2, and its false statements."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ... import __version__
from ...base import validate
from ...base.files import json_safe, writable_directory, write_text
from ...report import Pictures, TextTable, page
from ..membership.attack_panels import roc_axes
from ..membership.study_page import shown
from .false_statements import PaperStatements
from .membership_figure import PaperComparisons

__all__ = ["paper_json", "paper_page", "save_paper"]


def paper_page(comparisons: PaperComparisons, statements: PaperStatements, *, drawn: bool = True) -> str:
    """One page of the comparisons of figure 2 and the statements that do not hold."""
    about = (
        "Zhang, Venkatesaramani, De, Malin and Vorobeychik, Bayes-Nash generative privacy against membership inference "
        "attacks: the comparisons of figure 2 at a size where every attack is judged exactly, and the statements that "
        f"are false as printed. {comparisons.description}"
    )
    sections: dict[str, Sequence[Any]] = {"": [about]}
    for one in comparisons.comparisons:
        rows = [(defence, attack, shown(auc)) for defence, attack, auc in one.aucs]
        draw = partial(roc_axes, list(one.curves), f"Comparison ({one.panel})")
        picture = Pictures([(draw, f"ROC curves of comparison {one.panel}")], one.setup)
        parts = [
            picture if drawn and one.curves else one.setup,
            TextTable(("defence", "attack", "AUC"), rows, "AUC, pooled over releases, with intervals", numeric=(2,)),
            TextTable(("claim", "found"), one.verdicts, "What the paper says, and what holds"),
        ]  # fmt: skip
        sections[f"({one.panel}) {one.claim}"] = [*(parts if rows else ()), one.remark]
    sections["Statements"] = [_statement_table(statements)]
    ran = {"command": "fastpriv membership --paper", "time": f"{comparisons.seconds:.2g} s"}
    return page("Bayes-Nash generative privacy, checked", sections, ran=ran)


def paper_json(comparisons: PaperComparisons, statements: PaperStatements) -> str:
    """All numbers of a page as JSON, without the time: the same call gives the same text."""
    document = {"fastpriv": __version__} | comparisons.document() | {"statements": list(statements.named_rows())}
    return json.dumps(json_safe(document), indent=1) + "\n"


def save_paper(
    comparisons: PaperComparisons, statements: PaperStatements, directory: str | os.PathLike[str], *, drawn: bool = True
) -> list[Path]:
    """Write ``comparisons.csv``, ``statements.csv``, ``paper.json`` and ``paper.html``; return the paths."""
    folder = writable_directory(validate.path("directory", directory))
    comparisons.to_csv(folder / "comparisons.csv")
    statements.to_csv(folder / "statements.csv")
    return [
        folder / "comparisons.csv",
        folder / "statements.csv",
        write_text(folder / "paper.json", paper_json(comparisons, statements)),
        write_text(folder / "paper.html", paper_page(comparisons, statements, drawn=drawn)),
    ]


def _statement_table(statements: PaperStatements) -> TextTable:
    """The statements that do not hold, with their counterexamples, as an HTML table."""
    rows = [
        (each.name, each.printed, each.relation("printed"), each.counterexample, each.right, each.relation("right"))
        for each in statements
    ]
    headings = ("statement", "as published", "false:", "in the game of", "right form", "holds:")
    return TextTable(headings, rows, "Statements that are false as published")
