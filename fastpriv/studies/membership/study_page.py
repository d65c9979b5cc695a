"""The files of a study of attacks: one self-contained page, the table as CSV, JSON and Parquet, a picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from ...base import validate
from ...base.estimate import Estimate
from ...base.files import writable_directory, write_picture, write_text
from ...report.attack_panels import attack_figure, posterior_axes, roc_axes, roc_curves
from ...report.html_page import (
    can_draw,
    definition_list,
    details,
    file_links,
    html_page,
    paragraph,
    picture_gallery,
    run_description,
    section,
    svg_image,
    table,
)
from .studies import AttackOutcome, AttackStudy

__all__ = ["axes_picture", "numbers_of", "save_study", "shown", "study_page"]

_DPI = 110  # dots per inch of written pictures: a figure is four panels wide
# What the columns of the table say.
_MEANINGS = (
    ("AUC", "the probability that a member of one release scores higher than a non-member of another; 0.5 is chance"),
    ("TPR", "members who are found by the threshold that claims at most this fraction of the non-members"),
    ("advantage", "the largest true-positive minus false-positive rate of one threshold"),
    ("BWMA", "expected gain of all claims of a release, where a right one gains 1 - gamma and a false one costs gamma"),
    ("utility loss", "mean over attributes of E|released - frequency|"),
)


def study_page(study: AttackStudy, files: Sequence[str] = (), *, drawn: bool = True) -> str:
    """The page as HTML text; ``files`` are names beside it that it links to."""
    settings = study.settings
    drawn = drawn and can_draw()
    return html_page("Who is in? Attacks on released frequencies", [
        paragraph(
            f"{settings['people']} people may be members ({settings['prior']}); the frequencies of "
            f"{settings['attributes']} attributes of the members are released. {settings['references']} others are the "
            f"attackers' references. Each attack sees {settings['n_releases']:,} releases of each defence. Intervals "
            f"hold at level {settings['confidence']:g} each; releases are the independent units."
        ),
        *([paragraph(settings["data"])] if "data" in settings else []),
        section("Table", [_table_of(study), definition_list(_MEANINGS), _remarks(study)], "table"),
        *(_defence(study, defence, drawn) for defence in study.defences()),
        section("Beside them: a constant", [paragraph(
            f"Releasing the frequencies of all {settings['people']} people, whoever is in, has a utility loss of "
            f"{shown(study.constant_loss)} and says nothing: AUC 0.5 for every attack. A defence of more loss than "
            f"that "
            "is worth nothing."
        )]),
        section("What ran", [run_description(_described(settings)), file_links(files)]),
    ])  # fmt: skip


def save_study(
    study: AttackStudy, directory: str | os.PathLike[str], *, figure: Literal["png", "svg", "pdf"] | None = "png"
) -> list[Path]:
    """Write ``membership.csv``, ``.json``, ``.parquet`` (with pyarrow), a picture and ``membership.html``.

    Each file appears whole or not at all; the paths are returned, the page last.
    """
    folder = writable_directory(validate.path("directory", directory))
    paths = study.write_files(folder, "membership")
    if figure is not None:
        paths.append(write_picture(folder / f"membership.{figure}", attack_figure(study), figure, _DPI))
    page = study_page(study, [path.name for path in paths], drawn=figure is not None)
    return [*paths, write_text(folder / "membership.html", page)]


def _table_of(study: AttackStudy) -> str:
    fpr, gamma = study.settings["fpr"], study.settings["gamma"]
    headings = ("defence", "attack", ("AUC", "interval"), (f"TPR at FPR {fpr:g}", "interval"),
                ("advantage", "interval"),
                (f"BWMA, gamma = {gamma:g}", "interval"), ("utility loss", "interval"))  # fmt: skip
    rows = []
    for one in study.outcomes:
        rows.append((one.defence, one.attack, *map(shown, numbers_of(one))))
    return table(headings, rows, caption="Every attack on every defence", numeric=(2, 3, 4, 5, 6))


def numbers_of(one: AttackOutcome) -> tuple[Estimate | None, ...]:
    """The numbers of a row of the table."""
    e = one.evaluation
    found = (None,) * 4 if e is None else (e.auc, e.tpr_at_fpr, e.advantage, e.bwma)
    return (*found, one.utility_loss)


def _remarks(study: AttackStudy) -> str:
    by_text: dict[str, list[str]] = {}
    for one in study.outcomes:
        if one.remark:
            by_text.setdefault(one.remark, []).append(f"{one.defence}, {one.attack}")
    pairs = [("; ".join(names), text) for text, names in by_text.items()]
    return details("Remarks", table(("outcomes", "remark"), pairs, caption="Remarks")) if pairs else ""


def _defence(study: AttackStudy, defence: str, drawn: bool) -> str:
    noise = study.settings["defences"][defence]
    parts = [paragraph(f"Noise: {noise}.")]
    example = next((one for one in study.examples if one.defence == defence), None)
    if drawn:
        curves = roc_curves(study, defence)
        images = [svg_image(axes_picture(roc_axes(curves, defence)), f"ROC curves, {defence}")] if curves else []
        if example is not None:
            images.append(svg_image(axes_picture(posterior_axes(example)), f"Posterior of one release, {defence}"))
        parts.append(picture_gallery(images, (
            "Left: true-positive against false-positive rate, pooled over releases; the band, of the strongest attack, "
            "holds at all thresholds together. Right: the first release; who is thought a member, and who is one "
            "(shaded)."
        )))  # fmt: skip
    if example is not None:
        rows = [
            (person, "yes" if member else "no", shown(chance))
            for person, member, chance in zip(
                example.people, example.membership.tolist(),
                map(example.probabilities.__getitem__, range(len(example.people))),
                strict=True,
            )
        ]
        parts.append(details("Posterior of the first release", table(
            ("person", "member", "probability"), rows, caption="Posterior probabilities of membership", numeric=(2,)
        )))  # fmt: skip
    return section(defence, parts)


def axes_picture(ax: Any) -> Any:
    """The figure of a panel, with room for the legend below."""
    figure = ax.get_figure()
    figure.tight_layout()
    return figure


def _described(settings: Any) -> dict[str, str]:
    names = ("n_releases", "n_training", "clip", "fpr", "gamma", "confidence", "rng")
    return {"command": "fastpriv membership", "settings": ", ".join(f"{name} = {settings[name]}" for name in names)}


def shown(one: Estimate | None) -> str:
    """A number with its interval, which is left out where it is narrower than the digits."""
    if one is None:
        return "-"
    if one.width < 5e-7:
        return f"{one.value:.4g}"
    return f"{one:.3f}"
