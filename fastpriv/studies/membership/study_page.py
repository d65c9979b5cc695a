"""The files of a study of attacks: one self-contained page, the table as CSV, JSON and Parquet, a picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ...base import validate
from ...base.estimate import Estimate
from ...base.files import writable_directory, write_picture, write_text
from ...report import Details, Pictures, TextTable, page
from .attack_panels import attack_figure, posterior_axes, roc_axes, roc_curves
from .studies import AttackOutcome, AttackStudy

__all__ = ["numbers_of", "save_study", "shown", "study_page"]

_DPI = 110  # dots per inch of written pictures: a figure is four panels wide
# What the columns of the table say.
_MEANINGS = {
    "AUC": "the probability that a member of one release scores higher than a non-member of another; 0.5 is chance",
    "TPR": "members who are found by the threshold that claims at most this fraction of the non-members",
    "advantage": "the largest true-positive minus false-positive rate of one threshold",
    "BWMA": "expected gain of all claims of a release, where a right one gains 1 - gamma and a false one costs gamma",
    "utility loss": "mean over attributes of E|released - frequency|",
}
# Caption of the pictures of a defence.
_CAPTION = (
    "Left: true-positive against false-positive rate, pooled over releases; the band, of the strongest attack, holds "
    "at all thresholds together. Right: the first release; who is thought a member, and who is one (shaded)."
)


def study_page(study: AttackStudy, files: Sequence[str] = (), *, drawn: bool = True) -> str:
    """The page as HTML text; ``files`` are names beside it that it links to."""
    settings = study.settings
    about = (
        f"{settings['people']} people may be members ({settings['prior']}); the frequencies of "
        f"{settings['attributes']} attributes of the members are released. {settings['references']} others are the "
        f"attackers' references. Each attack sees {settings['n_releases']:,} releases of each defence. Intervals hold "
        f"at level {settings['confidence']:g} each; releases are the independent units."
    )
    sections: dict[str, list[Any]] = {
        "": [about, settings.get("data")],
        "Table": [_table_of(study), _MEANINGS, _remarks(study)],
    }
    sections |= {f"Defence: {defence}": _defence(study, defence, drawn) for defence in study.defences()}
    sections["Beside them: a constant"] = [
        f"Releasing the frequencies of all {settings['people']} people, whoever is in, has a utility loss of "
        f"{shown(study.constant_loss)} and says nothing: AUC 0.5 for every attack. A defence of more loss than that is "
        "worth nothing."
    ]
    return page("Who is in? Attacks on released frequencies", sections, ran=_described(settings), files=files)


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
    text = study_page(study, [path.name for path in paths], drawn=figure is not None)
    return [*paths, write_text(folder / "membership.html", text)]


def _table_of(study: AttackStudy) -> TextTable:
    fpr, gamma = study.settings["fpr"], study.settings["gamma"]
    headings = ("defence", "attack", ("AUC", "interval"), (f"TPR at FPR {fpr:g}", "interval"),
                ("advantage", "interval"),
                (f"BWMA, gamma = {gamma:g}", "interval"), ("utility loss", "interval"))  # fmt: skip
    rows = [(one.defence, one.attack, *map(shown, numbers_of(one))) for one in study.outcomes]
    return TextTable(headings, rows, "Every attack on every defence", numeric=range(2, 7))


def numbers_of(one: AttackOutcome) -> tuple[Estimate | None, ...]:
    """The numbers of a row of the table."""
    e = one.evaluation
    found = (None,) * 4 if e is None else (e.auc, e.tpr_at_fpr, e.advantage, e.bwma)
    return (*found, one.utility_loss)


def _remarks(study: AttackStudy) -> Details | None:
    by_text: dict[str, list[str]] = {}
    for one in study.outcomes:
        if one.remark:
            by_text.setdefault(one.remark, []).append(f"{one.defence}, {one.attack}")
    pairs = [("; ".join(names), text) for text, names in by_text.items()]
    return Details("Remarks", [TextTable(("outcomes", "remark"), pairs, "Remarks")]) if pairs else None


def _defence(study: AttackStudy, defence: str, drawn: bool) -> list[Any]:
    noise = study.settings["defences"][defence]
    example = next((one for one in study.examples if one.defence == defence), None)
    images: list[Any] = []
    if curves := roc_curves(study, defence):
        images.append((partial(roc_axes, curves, defence), f"ROC curves, {defence}"))
    details = None
    if example is not None:
        images.append((partial(posterior_axes, example), f"Posterior of one release, {defence}"))
        members = ("yes" if member else "no" for member in example.membership.tolist())
        chances = [shown(example.probabilities[k]) for k in range(len(example.people))]
        rows = zip(example.people, members, chances, strict=True)
        table = TextTable(("person", "member", "probability"), rows, "Posterior probabilities of membership", (2,))
        details = Details("Posterior of the first release", [table])
    return [f"Noise: {noise}.", Pictures(images, _CAPTION) if drawn else None, details]


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
