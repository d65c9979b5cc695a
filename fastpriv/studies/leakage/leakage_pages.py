"""The files of a study of leakage: one self-contained page, the table as CSV, JSON and Parquet, pictures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal

import numpy as np

from ...base import validate
from ...base.estimate import Estimate
from ...base.files import writable_directory, write_picture, write_text
from ...report import Pictures, TextTable, estimates_against_noise, kind_meanings, page, style
from ..membership.studies import DPI, names_by_remark, remarks_panel, shown
from .leakage_studies import LeakageStudy, outcome_numbers
from .record_files import LabelledRecords

_PANEL = (6.6, 5.3)  # inches, of a panel with protections along its axis
_PICTURE = 0.78  # inches, side of a reconstructed picture
_PICTURES = 14  # of a row, the true one first
_TITLE = 0.62  # inches, of the names above pictures
_TITLE_WIDTH = 13  # characters of a line of them
_NARROW = 5e-7  # intervals that are not shown
# Columns of the table of the page: heading, with what is below it, and number.
_COLUMNS = (
    (("C1", "attacks"), "c1"),
    (("C1", "exact"), "exact_c1"),
    (("recovered", "attacks"), "recovered"),
    (("recovered", "best possible"), "exact_recovered"),
    ("distortion", "distortion"),
    (("whole batch", "attacks"), "whole_batch"),
    (("whole batch", "best possible"), "exact_vulnerability"),
    (("kappa_3, nats", "attacks"), "kappa_3"),
    (("kappa_3, nats", "exact"), "exact_kappa_3_smoothed"),
    (("entropy, nats", "exact"), "exact_entropy"),
)
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
) -> str:
    """The page as HTML text; ``files`` are names beside it that it links to."""
    settings = study.settings
    about = [
        f"{settings['batch_size']} of {settings['pool']} candidates from {data.source} are the batch of an update. "
        f"Under each protection {settings['n_models']} models with their own starting weights share it, and each is "
        f"attacked {settings['n_attacks']} times. Attacks are judged by the records they recover, and set beside the "
        "exact posterior of the same updates: of batches drawn at random no attack recovers more on average. "
        f"Intervals hold at level {settings['confidence']:g} each; models are the independent units.",
        "There are too many batches to visit: what is called exact are estimates by sampling, with error bars."
        if "heuristic" in _kinds(study)
        else None,
        f"Attacks that name records at random have a C1 of {shown(study.outcomes[0].estimate.c1_null)}: compare with "
        "this, and not with 0.",
        _guesses(study),
    ]
    headings = ("protection", *(heading for heading, _ in _COLUMNS))
    caption = "Attacks under each protection, and exact values"
    table = [
        TextTable(headings, text_rows(study), caption, range(1, len(headings))),
        _MEANINGS,
        kind_meanings({"statistical"} | _kinds(study)),
        remarks_panel("protections", grouped_remarks(study)),
    ]
    sections = {"": about, **(_pictures(study, data) if drawn else {}), "Table": table}
    sections["What this does not say"] = list(_LIMITS)
    return page("What does a model update leak?", sections, ran=_described(study, data, command), files=files)


def text_rows(study: LeakageStudy) -> list[tuple[str, ...]]:
    """The rows of the table of the page, as texts."""
    result = [(outcome.label, outcome_numbers(outcome)) for outcome in study.outcomes]
    return [(label, *(_number_text(numbers.get(name)) for _, name in _COLUMNS)) for label, numbers in result]


def grouped_remarks(study: LeakageStudy) -> dict[str, list[str]]:
    """The remarks of a study, each with the protections that it is about."""
    return names_by_remark((outcome.label, outcome.remark) for outcome in study.outcomes)


def save_leakage(
    study: LeakageStudy, data: LabelledRecords, directory: str | os.PathLike[str], *,
    figure: Literal["png", "svg", "pdf"] | None = "png", command: str = "fastpriv.studies.leakage.leakage_study",
) -> list[Path]:
    """Write ``leakage.csv``, ``.json``, ``.parquet`` (with pyarrow), the figure, ``reconstructions`` and the page.

    Each file appears whole or not at all; the paths are returned, the page ``leakage.html`` last.
    """
    folder = writable_directory(validate.path("directory", directory))
    paths = study.write_files(folder, "leakage")
    if figure is not None:
        draws = [partial(estimates_against_noise, study, quantity=quantity) for quantity in ("c1", "recovered")]
        panels = style.figure_of_panels(draws, _PANEL)
        paths.append(write_picture(folder / f"leakage.{figure}", panels, DPI))
        if data.shape is not None:
            picture = reconstruction_figure(study, data)
            paths.append(write_picture(folder / f"reconstructions.{figure}", picture, DPI))
    text = leakage_page(study, data, [path.name for path in paths], drawn=figure is not None, command=command)
    return [*paths, write_text(folder / "leakage.html", text)]


def reconstruction_figure(study: LeakageStudy, data: LabelledRecords) -> Any:
    """Pictures of the batch, one a row, each followed by its reconstruction under every protection."""
    truth = data.records[study.pool[study.batch]]
    size, names = len(truth), [example.label for example in study.examples]
    wide = min(len(names) + 1, _PICTURES)
    groups = [study.examples[k : k + wide - 1] for k in range(0, len(names), wide - 1)]
    height = _PICTURE * size + _TITLE
    figure = style.new_figure((_PICTURE * wide + 0.2, len(groups) * height))
    for g, group in enumerate(groups):
        top = 1.0 - (g * height + _TITLE) / (len(groups) * height)
        grid = figure.add_gridspec(size, wide, wspace=0.12, hspace=0.12, left=0.01, right=0.99, top=top,
                                   bottom=top - (_PICTURE * size - 0.05) / (len(groups) * height))
        columns = [
            ("true record", truth, np.zeros(size, dtype=bool)),
            *((item.label, item.records, item.recovered) for item in group),
        ]
        for j, (name, records, recovered) in enumerate(columns):
            for i in range(size):
                ax = figure.add_subplot(grid[i, j])
                picture = np.clip(np.nan_to_num(np.asarray(records[i]), nan=0.5), 0.0, 1.0).reshape(data.shape)
                ax.imshow(picture, cmap="gray_r", vmin=0.0, vmax=1.0, interpolation="nearest")
                ax.set(xticks=[], yticks=[])
                for spine in ax.spines.values():
                    spine.set(color=style.INK if recovered[i] else style.BAR, lw=2.4 if recovered[i] else 0.8)
                if not i:
                    text, font = style.label(name, 3 * _TITLE_WIDTH)
                    lines = [line for piece in text.split(", ") for line in wrap(piece, _TITLE_WIDTH)]
                    ax.set_title("\n".join(lines), fontsize=7.5, color=style.INK, pad=5, **font)
    return figure


def _number_text(estimate: Estimate | None) -> str:
    """Three digits, and those of the interval where it is wider."""
    if estimate is None or estimate.upper - estimate.lower >= _NARROW:
        return shown(estimate)
    return f"{estimate.value:.3f}"


def _pictures(study: LeakageStudy, data: LabelledRecords) -> dict[str, list[Any]]:
    """Sections of figures, and of recovered pictures where records are pictures."""
    images: list[Any] = [
        (partial(estimates_against_noise, study, quantity="c1"), "C1 of attacks and of the exact posterior"),
        (partial(estimates_against_noise, study, quantity="recovered"), "fraction of the batch that is recovered"),
    ]
    sections: dict[str, list[Any]] = {"Attacks and exact values": [Pictures(images, (
        "Squares with intervals: attacks. Circles: the exact posterior, where it is known. Grey: attacks at random. "
        "Where circles lie above squares, a better attack exists."
    ))]}
    if data.shape is not None:
        images = [(partial(reconstruction_figure, study, data), "Records and their reconstructions")]
        sections["What the attack sees"] = [Pictures(images, (
            "The first attack on the first model. Left: the true records; then what was reconstructed under each "
            "protection. A dark frame: of all candidates the true record is the one that is matched."
        ))]
    return sections


def _kinds(study: LeakageStudy) -> set[str]:
    """Kinds of the exact values: heuristic where the posterior was sampled."""
    return {outcome.exact.c1.kind for outcome in study.outcomes if outcome.exact is not None}


def _guesses(study: LeakageStudy) -> str | None:
    """What the attacks of some protections do not say, or nothing."""
    labels = [outcome.label for outcome in study.outcomes if outcome.no_better_than_guessing]
    if not labels:
        return None
    every = "all protections" if len(labels) == len(study.outcomes) else ", ".join(labels)
    return (
        f"Under {every}: attack no better than guessing, or not shown to be, which says nothing about privacy. Compare "
        "with the best possible recovery, or try another attack."
    )


def _described(study: LeakageStudy, data: LabelledRecords, command: str) -> Mapping[str, str]:
    settings = study.settings
    names = ("rng", "threshold", "pseudo_count", "confidence")
    return {
        "command": command,
        "training": str(settings["training"]),
        "attack": str(settings["attack"]),
        "data": f"{data.source}: {len(data.records):,} records of {data.records.shape[1]} features, "
        f"{len(data.classes)} classes",
        "settings": ", ".join(f"{name} = {settings[name]}" for name in names),
    }
