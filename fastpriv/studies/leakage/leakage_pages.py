"""The files of a study of leakage: one self-contained page, the table as CSV, JSON and Parquet, pictures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ...base import validate
from ...base.estimate import Estimate
from ...base.files import writable_directory, write_picture, write_text
from ...report import (
    Details,
    Pictures,
    TextTable,
    estimates_against_noise,
    kind_meanings,
    page,
)
from ..membership.study_page import shown
from .leakage_figures import leakage_figure, reconstruction_figure
from .leakage_studies import LeakageStudy, outcome_numbers
from .record_files import LabelledRecords

__all__ = ["leakage_page", "save_leakage", "summary_rows"]

_DPI = 110  # dots per inch of written pictures
_NARROW = 5e-7  # intervals that are not shown
# Headings of the tables of the page.
_HEADINGS = ("protection", ("C1", "attacks"), ("C1", "exact"), ("recovered", "attacks"), ("recovered", "best possible"),
             "distortion")  # fmt: skip
_FURTHER = ("protection", ("whole batch", "attacks"), ("whole batch", "best possible"), ("kappa_3, nats", "attacks"),
            ("kappa_3, nats", "exact"), ("entropy, nats", "exact"))  # fmt: skip
# Numbers of the second table.
_FURTHER_NAMES = ("whole_batch", "exact_vulnerability", "kappa_3", "exact_kappa_3_smoothed", "exact_entropy")
# What the columns of the table say.
_MEANINGS = {
    "C1": "the average Bayesian privacy: how far the mean belief about a record of the batch is from what was believed "
    "before, from 0 (nothing leaks) to 0.8326. Exact values are those of the posterior over all batches.",
    "recovered": "fraction of the batch that reconstructions are matched to; the best possible is what the records of "
    "the largest posterior probability attain on average",
    "whole batch": "attacks that recover every record of the batch; the best possible is the Bayes vulnerability",
    "kappa_3": "the largest |ln| of a belief against the prior in these updates: a lower bound of the maximum Bayesian "
    "privacy. Both values are smoothed alike, the bounds of attacks are not.",
    "entropy": "what is left to know of the batch after an update",
    "distortion": "mean distance of what is shared from the true gradient, in lengths of the latter",
}
# What a study does not say, beside every table.
_LIMITS = (
    "These attacks are a lower bound: another attack may find more, up to the exact value where there is one.",
    "The batch is one of the candidates, and the exact posterior knows them all, the weights, and how the batch was "
    "drawn. An attacker who knows more than that can find more.",
    "All updates are of one batch. Other batches of the same data leak more or less.",
    "Intervals hold for new starting weights and noise, at their level one by one, not for the table as a whole.",
    "No number here is a differential privacy guarantee.",
)


def leakage_page(
    study: LeakageStudy, data: LabelledRecords, files: Sequence[str] = (), *, drawn: bool = True,
    command: str = "fastpriv.studies.leakage.leakage_study",
) -> str:  # fmt: skip
    """The page as HTML text; ``files`` are names beside it that it links to."""
    settings = study.settings
    about = [
        f"{settings['batch_size']} of {settings['pool']} candidates from {data.source} are the batch of an update. "
        f"Under each protection {settings['n_models']} models with their own starting weights share it, and each is "
        f"attacked {settings['n_attacks']} times. Attacks are judged by the records they recover, and set beside the "
        "exact posterior of the same updates: of batches drawn at random no attack recovers more on average. "
        f"Intervals hold at level {settings['confidence']:g} each; models are the independent units.",
        "There are too many batches to visit: what is called exact are estimates by sampling, with error bars."
        if "heuristic" in _kinds(study) else None,
        f"Attacks that name records at random have a C1 of {shown(study.outcomes[0].estimate.c1_null)}: compare with "
        "this, and not with 0.",
        _guesses(study),
    ]  # fmt: skip
    caption = "Attacks under each protection, and exact values"
    table = [
        TextTable(_HEADINGS, summary_rows(study), caption, range(1, len(_HEADINGS))),
        TextTable(_FURTHER, _rows(study, _FURTHER_NAMES), "Whole batches, and the worst case", range(1, len(_FURTHER))),
        _MEANINGS, kind_meanings({"statistical"} | _kinds(study)), _remarks(study), _intervals(study),
    ]  # fmt: skip
    sections = {"": about, **(_pictures(study, data) if drawn else {}), "Table": table}
    sections["What this does not say"] = list(_LIMITS)
    return page("What does a model update leak?", sections, ran=_described(study, data, command), files=files)


def summary_rows(study: LeakageStudy) -> list[tuple[str, ...]]:
    """The rows of the first table, as text."""
    return _rows(study, ("c1", "exact_c1", "recovered", "exact_recovered", "distortion"))


def _rows(study: LeakageStudy, names: Sequence[str]) -> list[tuple[str, ...]]:
    found = [(one.label, outcome_numbers(one)) for one in study.outcomes]
    return [(label, *(_number_text(numbers.get(name)) for name in names)) for label, numbers in found]


def _number_text(one: Estimate | None) -> str:
    """Three digits, and those of the interval where it is wider."""
    if one is None or one.upper - one.lower >= _NARROW:
        return shown(one)
    return f"{one.value:.3f}"


def save_leakage(
    study: LeakageStudy, data: LabelledRecords, directory: str | os.PathLike[str], *,
    figure: Literal["png", "svg", "pdf"] | None = "png", command: str = "fastpriv.studies.leakage.leakage_study",
) -> list[Path]:  # fmt: skip
    """Write ``leakage.csv``, ``.json``, ``.parquet`` (with pyarrow), the figure, ``reconstructions`` and the page.

    Each file appears whole or not at all; the paths are returned, the page ``leakage.html`` last.
    """
    folder = writable_directory(validate.path("directory", directory))
    paths = study.write_files(folder, "leakage")
    if figure is not None:
        paths.append(write_picture(folder / f"leakage.{figure}", leakage_figure(study), figure, _DPI))
        if data.shape is not None:
            picture = reconstruction_figure(study, data.records[study.pool[study.batch]], data.shape)
            paths.append(write_picture(folder / f"reconstructions.{figure}", picture, figure, _DPI))
    text = leakage_page(study, data, [path.name for path in paths], drawn=figure is not None, command=command)
    return [*paths, write_text(folder / "leakage.html", text)]


def _pictures(study: LeakageStudy, data: LabelledRecords) -> dict[str, list[Any]]:
    """Sections of figures, and of recovered pictures where records are pictures."""
    images: list[Any] = [
        (partial(estimates_against_noise, study, quantity="c1"), "C1 of attacks and of the exact posterior"),
        (partial(estimates_against_noise, study, quantity="recovered"), "fraction of the batch that is recovered"),
    ]
    sections: dict[str, list[Any]] = {"Attacks and exact values": [Pictures(images, (
        "Squares with intervals: attacks. Circles: the exact posterior, where it is known. Grey: attacks at random. "
        "Where circles lie above squares, a better attack exists."
    ))]}  # fmt: skip
    if data.shape is not None:
        draw = partial(reconstruction_figure, study, data.records[study.pool[study.batch]], data.shape)
        sections["What the attack sees"] = [Pictures([(draw, "Records and their reconstructions")], (
            "The first attack on the first model. Left: the true records; then what was reconstructed under each "
            "protection. A dark frame: of all candidates the true record is the one that is matched."
        ))]  # fmt: skip
    return sections


def _kinds(study: LeakageStudy) -> set[str]:
    """Kinds of the exact values: heuristic where the posterior was sampled."""
    return {one.exact.c1.kind for one in study.outcomes if one.exact is not None}


def _guesses(study: LeakageStudy) -> str | None:
    """What the attacks of some protections do not say, or nothing."""
    labels = [one.label for one in study.outcomes if one.no_better_than_guessing]
    if not labels:
        return None
    every = "all protections" if len(labels) == len(study.outcomes) else ", ".join(labels)
    return (
        f"Under {every}: attack no better than guessing, or not shown to be, which says nothing about privacy. Compare "
        "with the best possible recovery, or try another attack."
    )


def _remarks(study: LeakageStudy) -> Details | None:
    by_text: dict[str, list[str]] = {}
    for one in study.outcomes:
        if one.remark:
            by_text.setdefault(one.remark, []).append(one.label)
    pairs = [("; ".join(names), text) for text, names in by_text.items()]
    return Details("Remarks", [TextTable(("protections", "remark"), pairs, "Remarks")]) if pairs else None


def _intervals(study: LeakageStudy) -> Details:
    """The intervals of the leakage that follow from the attacks under the reference protection."""
    reference = study.outcomes[study.settings["reference"]].label
    rows = [(one.label, f"{one.total_variation:.3g}", shown(one.leakage)) for one in study.outcomes]
    about = (
        f"From C1 and C2 of the attacks under '{reference}' and the total variation of the releases: C1 - C2 TV to "
        "C1 + C2 TV. Wide where releases differ much."
    )
    headings = ("protection", "total variation", "interval of ABP")
    return Details("Leakage from total variation", [about, TextTable(headings, rows, "Intervals", numeric=(1, 2))])


def _described(study: LeakageStudy, data: LabelledRecords, command: str) -> Mapping[str, str]:
    settings = study.settings
    names = ("rng", "threshold", "pseudo_count", "confidence")
    return {
        "command": command, "training": str(settings["training"]), "attack": str(settings["attack"]),
        "data": f"{data.source}: {len(data.records):,} records of {data.records.shape[1]} features, "
        f"{len(data.classes)} classes",
        "settings": ", ".join(f"{name} = {settings[name]}" for name in names),
    }  # fmt: skip
