"""The page of the paper on generative membership privacy: comparisons of its figure 2, and its false statements."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ... import __version__
from ...base import validate
from ...base.files import json_safe, writable_directory, write_csv, write_text
from ...report.attack_panels import roc_axes
from ...report.html_page import (
    can_draw,
    html_page,
    paragraph,
    picture_gallery,
    run_description,
    section,
    svg_image,
    table,
)
from ..membership.study_page import axes_picture, shown
from .false_statements import PaperStatements
from .membership_figure import PaperComparisons

__all__ = ["paper_json", "paper_page", "save_paper"]


def paper_page(comparisons: PaperComparisons, statements: PaperStatements, *, drawn: bool = True) -> str:
    """One page of the comparisons of figure 2 and the statements that do not hold."""
    drawn = drawn and can_draw()
    parts = [paragraph(
        "Zhang, Venkatesaramani, De, Malin and Vorobeychik, Bayes-Nash generative privacy against membership inference "
        "attacks: the comparisons of figure 2 at a size where every attack is judged exactly, and the statements that "
        f"are false as printed. {comparisons.description}"
    )]  # fmt: skip
    for one in comparisons.comparisons:
        rows = [(defence, attack, shown(auc)) for defence, attack, auc in one.aucs]
        pictures = ""
        if drawn and one.curves:
            ax = roc_axes(list(one.curves), f"Comparison ({one.panel})")
            image = svg_image(axes_picture(ax), f"ROC curves of comparison {one.panel}")
            pictures = picture_gallery([image], one.setup)
        tables = [
            pictures or paragraph(one.setup),
            table(("defence", "attack", "AUC"), rows, caption="AUC, pooled over releases, with intervals",
                  numeric=(2,)),
            "<h3>As published, and found here</h3>",
            table(("claim", "found"), one.verdicts, caption="What the paper says, and what holds"),
        ] if rows else []  # fmt: skip
        remark = [paragraph(one.remark, faint=True)] if one.remark else []
        parts.append(section(f"({one.panel}) {one.claim}", [*tables, *remark], one.panel))
    parts.append(section("Statements", [_statement_table(statements)], "statements"))
    seconds = {"command": "fastpriv membership --paper", "time": f"{comparisons.seconds:.2g} s"}
    return html_page("Bayes-Nash generative privacy, checked", [
        *parts, section("What ran", [run_description(seconds)]),
    ])  # fmt: skip


def paper_json(comparisons: PaperComparisons, statements: PaperStatements) -> str:
    """All numbers of a page as JSON, without the time: the same call gives the same text."""
    rows = [dict(zip(statements.columns(), row, strict=True)) for row in statements.rows()]
    document = {"fastpriv": __version__} | comparisons.document() | {"statements": rows}
    return json.dumps(json_safe(document), indent=1) + "\n"


def save_paper(
    comparisons: PaperComparisons, statements: PaperStatements, directory: str | os.PathLike[str], *, drawn: bool = True
) -> list[Path]:
    """Write ``comparisons.csv``, ``statements.csv``, ``paper.json`` and ``paper.html``; return the paths."""
    folder = writable_directory(validate.path("directory", directory))
    paths = [folder / name for name in ("comparisons.csv", "statements.csv", "paper.json", "paper.html")]
    write_csv(paths[0], comparisons.columns(), comparisons.rows())
    write_csv(paths[1], statements.columns(), statements.rows())
    write_text(paths[2], paper_json(comparisons, statements))
    write_text(paths[3], paper_page(comparisons, statements, drawn=drawn))
    return paths


def _statement_table(statements: PaperStatements) -> str:
    """The statements that do not hold, with their counterexamples, as an HTML table."""
    rows = [
        (each.name, each.printed, each.relation("printed"), each.counterexample, each.right, each.relation("right"))
        for each in statements
    ]
    headings = ("statement", "as published", "false:", "in the game of", "right form", "holds:")
    return table(headings, rows, caption="Statements that are false as published", numeric=())
