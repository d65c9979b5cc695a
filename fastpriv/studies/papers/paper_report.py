"""``paper``: figures 1 to 4 of the paper on local mutual-information privacy, computed, drawn and written."""

# bounds: none - how figures are drawn

from __future__ import annotations

import json
import os
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from ...base import validate
from ...base.files import json_safe, writable_directory, write_picture
from ...base.numerics import rounded_outward
from ...base.parallel import Progress, ordered_map
from ...base.version import VERSION
from .paper_data import NAMES, PaperFigure, compute_figure
from .paper_panels import figure_of_panels
from .texts import texts_of

# The paper whose figures are computed again.
SOURCE = "Ngo, Östman and Graell i Amat, On local mutual-information privacy, 2024"
_DPI = 160  # dots per inch of written pictures


@dataclass(frozen=True, eq=False)
class Paper:
    """Figures of the paper, computed: a table and a picture each.

    Parameters
    ----------
    figures : tuple of PaperFigure
        The figures, in order.

    Examples
    --------
    >>> import fastpriv
    >>> paper = fastpriv.studies.papers.paper("figure3")
    >>> paper["figure3"].curve("saturation", mu_bits=0.1).estimate.value
    0.0669670084631...
    """

    figures: tuple[PaperFigure, ...]

    def __getitem__(self, name: str) -> PaperFigure:
        by_name = {figure.name: figure for figure in self.figures}
        return by_name[validate.choice("name", name, tuple(by_name))]

    def __iter__(self) -> Iterator[PaperFigure]:
        return iter(self.figures)

    def summary(self) -> str:
        """A few lines for each figure: what is wrong in print, the accuracy of its numbers, and their time."""
        lines = [f"{SOURCE}, recomputed"]
        for figure in self.figures:
            texts = texts_of("figures")[figure.name]
            lines += ["", f"{figure.name}  {texts['title']}"]
            for wrong, right in texts["corrections"]:
                lines += _wrapped(f"In print: {wrong} Right: {right}")
            lines += _wrapped(f"{figure.seconds:.2g} s: {_accuracy(figure)}.")
        return "\n".join(lines)

    def save(
        self, directory: str | os.PathLike[str], *, figure: Literal["png", "svg", "pdf"] | None = "png"
    ) -> list[Path]:
        """Write ``figureN.csv`` and a picture of each; return the paths.

        Each file appears whole or not at all. ``figure`` is png, svg, pdf or None for no pictures.
        """
        if figure is not None:
            validate.choice("figure", figure, ("png", "svg", "pdf"))
        folder = writable_directory(validate.path("directory", directory))
        paths: list[Path] = []
        for paper_figure in self.figures:
            paths.append(folder / f"{paper_figure.name}.csv")
            paper_figure.to_csv(paths[-1])
            if figure is not None:
                picture = figure_of_panels(paper_figure)
                paths.append(write_picture(folder / f"{paper_figure.name}.{figure}", picture, _DPI))
        return paths

    def json_pieces(self) -> Iterator[str]:
        """The JSON document: parameters, time and table of each figure; infinite numbers are strings."""
        figures = [
            {
                "name": figure.name, "parameters": dict(figure.parameters), "seconds": figure.seconds,
                "curves": figure.meanings(), "table": list(figure.named_rows()),
            }
            for figure in self.figures
        ]
        yield json.dumps(json_safe({"fastpriv": VERSION, "source": SOURCE, "figures": figures}), indent=1) + "\n"


def paper(name: str | int = "all", *, progress: Progress = None) -> Paper:
    """Compute figures 1 to 4 of the paper on local mutual-information privacy, with its parameters.

    Parameters
    ----------
    name : str or int, default "all"
        ``"all"``, or one figure: ``"figure3"``, ``"3"`` or ``3``.
    progress : bool or callable, optional
        True for a bar on stderr; a callable is called with (figures done, figures in all).

    Returns
    -------
    Paper
        The figures; ``.save(directory)`` writes tables and pictures.

    Raises
    ------
    DomainError
        For a name that is no figure.

    Notes
    -----
    The quantities are those of ``fastpriv.conversions``, ``fastpriv.notions`` and ``fastpriv.capacity``, as printed
    and as they should read.

    **Accuracy** every number carries bounds and their kind; ``tests/surfaces/test_paper_figures.py`` holds them against
    reference values.

    Source: Ngo, Ostman and Graell i Amat 2024, figures 1 to 4.

    Examples
    --------
    >>> import fastpriv
    >>> [figure.name for figure in fastpriv.studies.papers.paper(1)]
    ['figure1']
    """
    return Paper(tuple(ordered_map(compute_figure, figure_names(name), n_jobs=1, progress=progress)))


def figure_names(name: str | int) -> tuple[str, ...]:
    """Return the names of the figures that ``paper`` computes for ``name``; raise ``DomainError`` if it is none."""
    full_name = f"figure{name}" if str(name) in {figure.removeprefix("figure") for figure in NAMES} else name
    chosen = validate.choice("name", full_name, ("all", *NAMES))
    return NAMES if chosen == "all" else (chosen,)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent="  ", subsequent_indent="  ")


def _accuracy(figure: PaperFigure) -> str:
    """Return how many numbers there are, the kinds of their bounds, and the largest relative width."""
    kinds: Counter[str] = Counter()
    widest = 0.0
    for curve in figure.curves:
        e = curve.estimate
        value = np.asarray(e.value)
        kinds[e.kind] += value.size
        known = (value > 1e-300) & np.isfinite(e.upper)
        widest = max(widest, float(np.max(np.where(known, e.width / np.maximum(value, 1e-300), 0.0))))
    counted = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    width = rounded_outward(widest, ".0e", below=False)
    return f"{sum(kinds.values()):,} numbers ({counted}), bounds within {width} of the value"
