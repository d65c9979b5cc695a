"""Report pages: ``page(title, sections)`` makes one self-contained HTML file of texts, tables and pictures.

A page needs nothing but itself: pictures are embedded as SVG, and there are no scripts, fonts or style sheets from
elsewhere. Every text is escaped here, so callers pass plain text. A section is a list of parts: a text is a paragraph
(or, with line ends, a program), a mapping a list of terms with their meanings, and tables, pictures and details have
classes of their own.
"""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files as resource_files
from importlib.util import find_spec
from typing import Any, Union

import numpy as np

from ..base import validate
from ..base.escaping import escape_invisible
from ..base.files import save_and_close
from ..base.version import VERSION
from ..kernels import _special

# What the bounds of an Estimate of each kind say.
_KIND_MEANINGS = {
    "exact": "The number is a closed form, and the bounds are its rounding error.",
    "certified": "The bounds enclose the number, with all errors of computation included.",
    "statistical": "The bounds are a confidence interval: at the stated confidence they contain the number.",
    "heuristic": "The bounds are an error estimate that is tested, not proved.",
}
# Text in place of the pictures where matplotlib is missing.
_NOT_DRAWN = "There are no pictures: matplotlib is not installed. Run: pip install 'fastpriv[figures]'"


Part = Union[str, Mapping[str, str], "TextTable", "Pictures", "Details", "_Links", None]


@dataclass(frozen=True)
class TextTable:
    """A table of texts on a report page.

    Parameters
    ----------
    headings : sequence of str or pair of str
        A heading for each column; a pair is written on two lines.
    rows : sequence of sequence of str
        The cells. The first cell of a row is the heading of the row.
    caption : str
        What the table shows.
    numeric : collection of int
        Indices of the columns of numbers.

    Examples
    --------
    >>> from fastpriv import report
    >>> table = report.TextTable(["sigma", ("bits", "at most")], [["1", "0.25"]], "Information", numeric=[0, 1])
    >>> "<caption>Information</caption>" in report.page("Noise", {"Table": [table]})
    True
    """

    headings: Sequence[str | tuple[str, str]]
    rows: Iterable[Sequence[str]]
    caption: str
    numeric: Collection[int] = ()

    def html(self) -> str:
        """The table, which scrolls sideways on a narrow screen."""
        number = [' class="number"' if j in self.numeric else "" for j in range(len(self.headings))]
        head = ""
        for attribute, heading in zip(number, self.headings, strict=True):
            top, *below = [heading] if isinstance(heading, str) else heading
            small = "".join(f"<small>{_text(line)}</small>" for line in below)
            head += f'<th scope="col"{attribute}>{_text(top)}{small}</th>'
        body = []
        for first, *cells in self.rows:
            line = "".join(f"<td{number[j]}>{_text(cell)}</td>" for j, cell in enumerate(cells, start=1))
            body.append(f'<tr><th scope="row"{number[0]}>{_text(first)}</th>{line}</tr>')
        caption, rows = _text(self.caption), "\n".join(body)
        return (
            f'<div class="wide" tabindex="0" role="region" aria-label="{caption}"><table><caption>{caption}</caption>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>"
        )


@dataclass(frozen=True)
class Pictures:
    """Pictures on a report page, side by side, or one below the other on a narrow screen.

    Parameters
    ----------
    images : sequence of pair of function and str
        A function for each picture that draws it and returns its axes or figure, and a text that says what it shows.
        Without matplotlib none is called, and the page says so.
    caption : str
        What all of them show.

    Examples
    --------
    >>> from fastpriv import report
    >>> pictures = report.Pictures([(lambda: report.style.axes_or_new(None), "Empty axes")], "Nothing yet")
    >>> "<figcaption>Nothing yet</figcaption>" in report.page("Curves", {"Pictures": [pictures]})
    True
    """

    images: Sequence[tuple[Callable[[], Any], str]]
    caption: str

    def html(self) -> str:
        """The pictures as SVG inside the page."""
        if not _can_draw():
            return f"<p>{_text(_NOT_DRAWN)}</p>"
        images = "".join(_svg_image(draw().get_figure(), text) for draw, text in self.images)
        return f'<figure><div class="pictures">{images}</div>\n<figcaption>{_text(self.caption)}</figcaption></figure>'


@dataclass(frozen=True)
class Details:
    """Parts of a report page that are shown when their title is clicked.

    Parameters
    ----------
    title : str
        What is always shown.
    parts : sequence of parts
        What is shown then.

    Examples
    --------
    >>> from fastpriv import report
    >>> details = report.Details("Settings", [{"sigma": "1"}])
    >>> "<summary>Settings</summary>" in report.page("Noise", {"More": [details]})
    True
    """

    title: str
    parts: Sequence[Part]

    def html(self) -> str:
        """The title, and the parts behind it."""
        return f"<details><summary>{_text(self.title)}</summary>{_parts(self.parts)}</details>"


def page(
    title: str, sections: Mapping[str, Sequence[Part]], *, ran: Mapping[str, str] | None = None,
    files: Iterable[str] = (),
) -> str:
    """Return a report page: one HTML file that needs nothing else.

    Parameters
    ----------
    title : str
        Title and heading of the page.
    sections : mapping of str to sequence of parts
        The sections by their titles; what is called "" stands before them, without a title. A part is a text, which is
        a paragraph (or a program, if it has line ends), a mapping of terms to their meanings, a ``TextTable``,
        ``Pictures`` or ``Details``. None and empty texts are left out.
    ran : mapping of str to str, optional
        Settings. With them a last section says what ran: versions, the instruction set, and these.
    files : iterable of str
        Names of files beside the page that its last section links to.

    Returns
    -------
    str
        The text of the page; every text in it is escaped.

    Examples
    --------
    >>> from fastpriv import report
    >>> text = report.page("Noise", {"": ["One release."], "In short": [{"sigma": "1"}]}, ran={"command": "mine"})
    >>> "<h1>Noise</h1>" in text, "<h2>What ran</h2>" in text
    (True, True)
    """
    validate.text("title", title)
    for argument, value in (("sections", sections), ("ran", {} if ran is None else ran)):
        validate.instance(argument, value, Mapping, "a dictionary", "Pass titles or names as its keys.")
    if ran is not None:
        python = ".".join(map(str, sys.version_info[:3]))
        software = f"fastpriv {VERSION}, Python {python}, NumPy {np.__version__}; instruction set {_special.ISA!s}"
        links = _Links({name: name for name in files})
        sections = {**sections, "What ran": [{"software": software, **ran}, links]}
    named = {name: f"section-{k}" for k, name in enumerate(sections) if name}
    parts = [_parts(sections.get("", ())), _Links({name: f"#{anchor}" for name, anchor in named.items()}, "nav").html()]
    for name, anchor in named.items():
        parts.append(f'<section id="{anchor}">\n<h2>{_text(name)}</h2>\n{_parts(sections[name])}\n</section>')
    style = resource_files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    return "\n".join([
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_text(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n<h1>{_text(title)}</h1>",
        *parts, "</main>\n</body>\n</html>\n",
    ])


def kind_meanings(kinds: Iterable[str]) -> dict[str, str]:
    """Return what bounds of these kinds say.

    Parameters
    ----------
    kinds : iterable of str
        Kinds of Estimates.

    Returns
    -------
    dict of str to str
        A sentence for each kind.

    Examples
    --------
    >>> from fastpriv import report
    >>> report.kind_meanings(["certified"])
    {'certified': 'The bounds enclose the number, with all errors of computation included.'}
    """
    wanted = validate.sequence("kinds", kinds, "kinds")
    for kind in wanted:
        validate.choice("kinds", kind, tuple(_KIND_MEANINGS))
    return {kind: text for kind, text in _KIND_MEANINGS.items() if kind in wanted}


def _can_draw() -> bool:
    return find_spec("matplotlib") is not None


@dataclass(frozen=True)
class _Links:
    """Links by their texts: to files beside the page, whose names have no colon, or to its sections."""

    targets: Mapping[str, str]
    tag: str = "p"

    def html(self) -> str:
        links = "".join(f'<a href="{_text(target)}">{_text(text)}</a>' for text, target in self.targets.items())
        return f'<{self.tag} class="links">{links}</{self.tag}>' if links else ""


def _parts(parts: Iterable[Any]) -> str:
    """Return the HTML of parts of a section."""
    return "\n".join(_html_of_part(part) for part in parts if part)


def _html_of_part(part: Any) -> str:
    if isinstance(part, str):
        return f"<pre>{_text(part)}</pre>" if "\n" in part else f"<p>{_text(part)}</p>"
    if isinstance(part, Mapping):
        pairs = "".join(f"<dt>{_text(term)}</dt><dd>{_text(meaning)}</dd>" for term, meaning in part.items())
        return f"<dl>{pairs}</dl>"
    return str(part.html())


def _svg_image(figure: Any, alternative: str) -> str:
    """Return a matplotlib figure as an image inside the page; ``alternative`` says in words what it shows."""
    stream = io.BytesIO()
    save_and_close(figure, stream, "svg")
    data = base64.b64encode(stream.getvalue()).decode("ascii")
    return f'<img alt="{_text(alternative)}" src="data:image/svg+xml;base64,{data}">'


def _text(text: str) -> str:
    """Escape a text for content or an attribute; characters without a shape are written as Python does."""
    return escape(escape_invisible(text), quote=True)
