"""The files of a study of leakage: one self-contained page, the table as CSV, JSON and Parquet, pictures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from ...base import validate
from ...base.estimate import Estimate
from ...base.files import writable_directory, write_picture, write_text
from ...report.html_page import (
    can_draw,
    definition_list,
    details,
    file_links,
    html_page,
    meanings_of_kinds,
    paragraph,
    picture_gallery,
    run_description,
    section,
    svg_image,
    table,
)
from ...report.leakage_panels import (
    accuracy_against_privacy,
    estimates_against_noise,
    leakage_figure,
    reconstruction_figure,
    scoreboard_figure,
)
from ..membership.study_page import shown
from .record_files import LabelledRecords
from .study_results import LeakageStudy, outcome_numbers
from .task_scores import Scoreboard

__all__ = ["leakage_page", "save_leakage", "save_scoreboard", "summary_rows"]

_DPI = 110  # dots per inch of written pictures
_NARROW = 5e-7  # intervals that are not shown
# Headings of the tables of the page.
_HEADINGS = ("protection", ("C1", "attacks"), ("C1", "exact"), ("recovered", "attacks"), ("recovered", "best possible"),
             "distortion", "accuracy")  # fmt: skip
_FURTHER = ("protection", ("whole batch", "attacks"), ("whole batch", "best possible"), ("kappa_3, nats", "attacks"),
            ("kappa_3, nats", "exact"), ("entropy, nats", "exact"))  # fmt: skip
# Numbers of the second table.
_FURTHER_NAMES = ("whole_batch", "exact_vulnerability", "kappa_3", "exact_kappa_3_smoothed", "exact_entropy")
# What the columns of the table say.
_MEANINGS = (
    ("C1", "the average Bayesian privacy: how far the mean belief about a record of the batch is from what was "
     "believed before, from 0 (nothing leaks) to 0.8326. Exact values are those of the posterior over all batches."),
    ("recovered", "fraction of the batch that reconstructions are matched to; the best possible is what the records "
     "of the largest posterior probability attain on average"),
    ("whole batch", "attacks that recover every record of the batch; the best possible is the Bayes vulnerability"),
    ("kappa_3", "the largest |ln| of a belief against the prior in these updates: a lower bound of the maximum "
     "Bayesian privacy. Both values are smoothed alike, the bounds of attacks are not."),
    ("entropy", "what is left to know of the batch after an update"),
    ("distortion", "mean distance of what is shared from the true gradient, in lengths of the latter"),
    ("accuracy", "held-out records that models trained under this protection classify well"),
)  # fmt: skip
# What a scoreboard has tables of.
_SCORED = (
    ("success", "Whole batch", "Probability that the batch the attack names is the true one."),
    ("auc", "Membership", "AUC of members against others within a release; the fraction is that of AUC - 1/2."),
    ("information", "Information", "Nats about memberships that scores, taken as probabilities, tell."),
)
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
    settings, drawn = study.settings, drawn and can_draw()
    null = study.outcomes[0].estimate.c1_null
    return html_page("What does a model update leak?", [
        paragraph(
            f"{settings['batch_size']} of {settings['pool']} candidates from {data.source} are the batch of an update. "
            f"Under each protection {settings['n_models']} models with their own starting weights share it, and each "
            f"is attacked {settings['n_attacks']} times. Attacks are judged by the records they recover, and set "
            "beside the exact posterior of the same updates: of batches drawn at random no attack recovers more on "
            "average. "
            f"Intervals hold at level {settings['confidence']:g} each; models are the independent units."
        ),
        paragraph(
            "There are too many batches to visit: what is called exact are estimates by sampling, with error bars."
        ) if "heuristic" in _kinds(study) else "",
        paragraph(
            f"Attacks that name records at random have a C1 of {shown(null)}: compare with this, and not with 0."
        ),
        _guesses(study),
        *(_pictures(study, data) if drawn else ()),
        section("Table", [
            table(_HEADINGS, summary_rows(study), caption="Attacks under each protection, and exact values",
                  numeric=tuple(range(1, len(_HEADINGS)))),
            table(_FURTHER, _rows(study, _FURTHER_NAMES), caption="Whole batches, and the worst case",
                  numeric=tuple(range(1, len(_FURTHER)))),
            definition_list(_MEANINGS), meanings_of_kinds({"statistical"} | _kinds(study)), _remarks(study),
            _intervals(study),
        ], "table"),
        section("What this does not say", map(paragraph, _LIMITS), "limits"),
        section("What ran", [run_description(_described(study, data, command)), file_links(files)]),
    ])  # fmt: skip


def summary_rows(study: LeakageStudy) -> list[tuple[str, ...]]:
    """The rows of the first table, as text."""
    return _rows(study, ("c1", "exact_c1", "recovered", "exact_recovered", "distortion", "accuracy"))


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
    page = leakage_page(study, data, [path.name for path in paths], drawn=figure is not None, command=command)
    return [*paths, write_text(folder / "leakage.html", page)]


def save_scoreboard(
    board: Scoreboard, directory: str | os.PathLike[str], source: str, *,
    figure: Literal["png", "svg", "pdf"] | None = "png",
) -> list[Path]:  # fmt: skip
    """Write ``scoreboard.csv``, a figure and ``scoreboard.html``; return the paths."""
    folder = writable_directory(validate.path("directory", directory))
    paths = [folder / "scoreboard.csv"]
    board.to_csv(paths[0])
    parts = []
    if figure is not None:
        picture = scoreboard_figure(board)
        paths.append(write_picture(folder / f"scoreboard.{figure}", picture, figure, _DPI))
        parts.append(picture_gallery(
            [_whole_width(svg_image(picture, "Fractions of the best possible attack"))],
            "Points: the fraction for the releases of the tasks. Bars: its band for new ones."
        ))  # fmt: skip
    for kind, title, text in _SCORED:
        rows = [
            (one.task, f"{one.found} of {one.trials}", *(
                shown(number) if name == f"{kind}_band" else f"{float(number.value):.4f}"
                for name in (kind, f"best_{kind}", f"{kind}_fraction", f"{kind}_band")
                if (number := getattr(one, name, None)) is not None
            ))
            for one in board.scores if getattr(one, kind) is not None
        ]  # fmt: skip
        if rows:
            headings = ("task", "batches found", "attack", "best possible", "fraction", "band")[: len(rows[0])]
            parts += [f"<h3>{title}</h3>", paragraph(text), table(
                headings, rows, caption=f"{title}, by task", numeric=tuple(range(1, len(headings))))]  # fmt: skip
    page = html_page("Scores of an attack", [
        paragraph(
            f"Scores of {source} on {len(board.scores)} tasks whose best attack is known. A fraction is what the "
            "attack attains by the exact optimum of the same releases; its bounds are proved, and narrower than the "
            "digits. A band is for new releases of the same kind, at its level of confidence."
        ),
        section("Scores", parts),
        section("What ran", [run_description({"scores": source}), file_links([path.name for path in paths])]),
    ])  # fmt: skip
    return [*paths, write_text(folder / "scoreboard.html", page)]


def _pictures(study: LeakageStudy, data: LabelledRecords) -> list[str]:
    """Sections of figures, and of recovered pictures where records are pictures."""
    panels = [(estimates_against_noise(study, quantity=name), text) for name, text in (
        ("c1", "C1 of attacks and of the exact posterior"), ("recovered", "fraction of the batch that is recovered"))]
    if study.outcomes[0].accuracy is not None:
        panels.append((accuracy_against_privacy(study), "accuracy over C1"))
    for ax, _ in panels:
        ax.get_figure().tight_layout()
    parts = [section("Attacks and exact values", [picture_gallery(
        [svg_image(ax.get_figure(), text) for ax, text in panels],
        "Squares with intervals: attacks. Circles: the exact posterior, where it is known. Grey: attacks at random. "
        "Where circles lie above squares, a better attack exists."
    )], "figure")]  # fmt: skip
    if data.shape is None:
        return parts
    truth = data.records[study.pool[study.batch]]
    parts.append(section("What the attack sees", [picture_gallery(
        [_whole_width(svg_image(reconstruction_figure(study, truth, data.shape), "Records and their reconstructions"))],
        "The first attack on the first model. Left: the true records; then what was reconstructed under each "
        "protection. A dark frame: of all candidates the true record is the one that is matched."
    )], "reconstructions"))  # fmt: skip
    return parts


def _whole_width(image: str) -> str:
    """The image as wide as the page."""
    return image.replace("<img ", '<img style="max-width:100%" ', 1)


def _kinds(study: LeakageStudy) -> set[str]:
    """Kinds of the exact values: heuristic where the posterior was sampled."""
    return {one.exact.c1.kind for one in study.outcomes if one.exact is not None}


def _guesses(study: LeakageStudy) -> str:
    """What the attacks of some protections do not say, or nothing."""
    labels = [one.label for one in study.outcomes if one.no_better_than_guessing]
    if not labels:
        return ""
    every = "all protections" if len(labels) == len(study.outcomes) else ", ".join(labels)
    return paragraph(
        f"Under {every}: attack no better than guessing, or not shown to be, which says nothing about privacy. Compare "
        "with the best possible recovery, or try another attack."
    )


def _remarks(study: LeakageStudy) -> str:
    by_text: dict[str, list[str]] = {}
    for one in study.outcomes:
        if one.remark:
            by_text.setdefault(one.remark, []).append(one.label)
    pairs = [("; ".join(names), text) for text, names in by_text.items()]
    return details("Remarks", table(("protections", "remark"), pairs, caption="Remarks")) if pairs else ""


def _intervals(study: LeakageStudy) -> str:
    """The intervals of the leakage that follow from the attacks under the reference protection."""
    reference = study.outcomes[study.settings["reference"]].label
    rows = [(one.label, f"{one.total_variation:.3g}", shown(one.leakage)) for one in study.outcomes]
    return details("Leakage from total variation", paragraph(
        f"From C1 and C2 of the attacks under '{reference}' and the total variation of the releases: C1 - C2 TV to "
        "C1 + C2 TV. Wide where releases differ much."
    ) + table(("protection", "total variation", "interval of ABP"), rows, caption="Intervals", numeric=(1, 2)))


def _described(study: LeakageStudy, data: LabelledRecords, command: str) -> Mapping[str, str]:
    settings = study.settings
    names = ("rng", "threshold", "pseudo_count", "utility_rounds", "confidence")
    return {
        "command": command, "training": str(settings["training"]), "attack": str(settings["attack"]),
        "data": f"{data.source}: {len(data.records):,} records of {data.records.shape[1]} features, "
        f"{len(data.classes)} classes",
        "settings": ", ".join(f"{name} = {settings[name]}" for name in names),
    }  # fmt: skip
