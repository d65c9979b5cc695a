"""``paper``: the figures of the paper on local mutual-information privacy, computed, drawn and written to files."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import __version__, _validate
from .._files import atomic_write, writable_directory
from .._parallel import Progress, ordered_map
from .paper_data import NAMES, PaperFigure, computed
from .paper_page import page, worth
from .paper_panels import picture
from .paper_words import SOURCE, WORDS

__all__ = ["Paper", "chosen", "paper"]


@dataclass(frozen=True, eq=False)
class Paper:
    """Figures of the paper, computed: a table each, pictures, one page.

    Parameters
    ----------
    figures : tuple of PaperFigure
        The figures, in order.

    Examples
    --------
    >>> import fastpriv
    >>> paper = fastpriv.figures.paper("figure3")
    >>> paper["figure3"].curve("saturation", mu_bits=0.1).found.value
    0.0669670084631...
    """

    figures: tuple[PaperFigure, ...]

    def __getitem__(self, name: str) -> PaperFigure:
        found = {figure.name: figure for figure in self.figures}
        return found[_validate.choice("name", name, tuple(found))]

    def __iter__(self) -> Iterator[PaperFigure]:
        return iter(self.figures)

    def summary(self) -> str:
        """A few lines a figure: what is seen, what the numbers are worth, how long they took."""
        lines = [f"{SOURCE}, recomputed"]
        for figure in self.figures:
            words = WORDS[figure.name]
            lines += ["", f"{figure.name}  {words.title}", *_folded(words.seen(figure))]
            for wrong, right in words.corrections(figure):
                lines += _folded(f"In print: {wrong} Right: {right}")
            lines += _folded(f"{figure.seconds:.2g} s: {worth(figure)}.")
        return "\n".join(lines)

    def page(self) -> str:
        """The HTML page, pictures inside, without links to files."""
        return page(self.figures, {}, drawn=True)

    def save(self, directory: str | os.PathLike[str], *, figure: str | None = "png") -> list[Path]:
        """Write ``figureN.csv``, a picture of each, and ``figures.html``; return the paths.

        Each file appears whole or not at all. ``figure`` is png, svg, pdf or None for no pictures, on the page either.
        """
        if figure is not None:
            _validate.choice("figure", figure, ("png", "svg", "pdf"))
        folder = writable_directory(_validate.path("directory", directory))
        paths = []
        files: dict[str, list[str]] = {}
        for one in self.figures:
            paths.append(folder / f"{one.name}.csv")
            _write_csv(one, paths[-1])
            if figure is not None:
                paths.append(folder / f"{one.name}.{figure}")
                _write_picture(one, paths[-1])
            files[one.name] = [path.name for path in paths if path.stem == one.name]
        text = page(self.figures, files, drawn=figure is not None)
        paths.append(folder / "figures.html")
        with atomic_write(paths[-1]) as stream:
            stream.write(text.encode())
        return paths

    def json_pieces(self) -> Iterator[str]:
        """The JSON document in pieces: parameters, time and table of each figure; infinite numbers are strings."""
        yield json.dumps({"fastpriv": __version__, "source": SOURCE}, indent=1)[:-2] + ',\n "figures": ['
        for i, one in enumerate(self.figures):
            head = {
                "name": one.name, "parameters": dict(one.parameters), "seconds": one.seconds, "curves": one.meanings(),
            }  # fmt: skip
            yield ("," if i else "") + "\n  " + json.dumps(head)[:-1] + ', "table": ['
            names = one.columns()
            for j, row in enumerate(one.rows()):
                yield (",\n   " if j else "\n   ") + json.dumps(dict(zip(names, map(_strict, row), strict=True)))
            yield "\n  ]}"
        yield "\n ]\n}\n"


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
        The figures; ``.save(directory)`` writes tables, pictures and a page.

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
    >>> [figure.name for figure in fastpriv.figures.paper(1)]
    ['figure1']
    """
    return Paper(tuple(ordered_map(computed, chosen(name), n_jobs=1, progress=progress)))


def chosen(name: str | int) -> tuple[str, ...]:
    """The names of the figures that ``paper`` computes for ``name``; ``DomainError`` where it is no figure."""
    asked = f"figure{name}" if str(name) in {figure.removeprefix("figure") for figure in NAMES} else name
    found = _validate.choice("name", asked, ("all", *NAMES))
    return NAMES if found == "all" else (found,)


def _write_csv(figure: PaperFigure, path: Path) -> None:
    with atomic_write(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(figure.columns())
        writer.writerows(figure.rows())
        text.flush()
        text.detach()


def _write_picture(figure: PaperFigure, path: Path) -> None:
    kind = path.suffix.lstrip(".")
    words = {"metadata": {"Date": None}} if kind == "svg" else {}
    sheet = picture(figure)
    with atomic_write(path) as stream:
        sheet.savefig(stream, format=kind, dpi=160, **words)


def _folded(text: str, width: int = 100) -> list[str]:
    import textwrap

    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="  ")


def _strict(item: Any) -> Any:
    return str(item) if isinstance(item, float) and not math.isfinite(item) else item
