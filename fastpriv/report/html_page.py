"""Self-contained HTML pages: the parts that all report pages are made of.

A page needs nothing but itself: pictures are embedded as SVG, and there are no scripts, fonts or style sheets from
elsewhere. Every text is escaped here, so callers pass plain text, and put the results, which are finished HTML,
together with ``section`` and ``html_page``.
"""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.util import find_spec
from typing import Any

import numpy as np

from .. import __version__
from ..base.escaping import escape_invisible
from ..kernels import _special

__all__ = [
    "can_draw", "definition_list", "details", "file_links", "html_page", "meanings_of_kinds", "paragraph",
    "picture_gallery", "run_description", "section", "svg_image", "table",
]  # fmt: skip

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2430; --faint: #5d6577; --paper: #fbfbfd; --card: #fff; --line: #dde1ea;
  --link: #2a5d86; --alarm: #b3432c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ee; --faint: #a0a8ba; --paper: #15181f; --card: #1d212a;
  --line: #363c4a; --link: #7fc4e8; --alarm: #f0907a; } .pictures img { filter: invert(.9) hue-rotate(180deg); } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.2rem clamp(.8rem, 3vw, 2.4rem) 4rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: clamp(1.4rem, 4vw, 2rem); line-height: 1.2; margin: .6rem 0; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 0 0 .6rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
a { color: var(--link); }
nav a, .files a { display: inline-block; padding: .35rem .2rem; margin-right: .8rem; }
.faint { color: var(--faint); font-size: .92rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .7rem; margin: 1.6rem 0;
  padding: clamp(.8rem, 2.5vw, 1.6rem); }
figure { margin: .8rem 0; }
.pictures { display: flex; flex-wrap: wrap; gap: .6rem; justify-content: center; }
.pictures img { flex: 1 1 26rem; min-width: 0; max-width: min(100%, 38rem); height: auto; background: #fff;
  border-radius: .4rem; }
figcaption { margin-top: .6rem; }
.wide { overflow-x: auto; }
.wide:focus-visible { outline: 2px solid var(--link); }
table { border-collapse: collapse; font-size: .92rem; width: 100%; }
caption { text-align: left; color: var(--faint); padding: .2rem 0 .5rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .9rem .35rem 0; border-top: 1px solid var(--line);
  font-weight: 400; overflow-wrap: break-word; }
thead th { font-weight: 600; border-top: 0; vertical-align: bottom; }
thead small { display: block; font-weight: 400; color: var(--faint); }
tbody th { min-width: 8rem; }
.number { font-variant-numeric: tabular-nums; white-space: nowrap; text-align: right; min-width: 0; }
.two td { width: 50%; }
.two td:first-child { color: var(--alarm); }
dl { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: .35rem 1.2rem; margin: .4rem 0; }
dt { font-weight: 600; }
dd { margin: 0; }
details { margin-top: .8rem; }
summary { cursor: pointer; }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; } }
@media print { body { max-width: none; } section { break-inside: avoid; } .wide { overflow: visible; } }
"""


# What the bounds of an Estimate of each kind say.
_KIND_MEANINGS = {
    "exact": "The number is a closed form, and the bounds are its rounding error.",
    "certified": "The bounds enclose the number, with all errors of computation included.",
    "statistical": "The bounds are a confidence interval: at the stated confidence they contain the number.",
    "heuristic": "The bounds are an error estimate that is tested, not proved.",
}


def html_page(title: str, parts: Iterable[str]) -> str:
    """Return a page with this title, as its heading too, and these parts in finished HTML."""
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{_text(title)}</h1>",
            *parts,
            "</main>\n</body>\n</html>\n",
        ]
    )


def section(title: str, parts: Iterable[str], name: str = "") -> str:
    """Return a section with a heading; ``name`` is what links within the page call it."""
    identity = f' id="{_text(name)}"' if name else ""
    return "\n".join([f"<section{identity}>\n<h2>{_text(title)}</h2>", *parts, "</section>"])


def paragraph(text: str, *, faint: bool = False) -> str:
    """Return a paragraph."""
    return f'<p class="faint">{_text(text)}</p>' if faint else f"<p>{_text(text)}</p>"


def details(title: str, html: str) -> str:
    """Return content that is shown when its title is clicked."""
    return f"<details><summary>{_text(title)}</summary>{html}</details>"


def definition_list(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a list of terms with their meanings."""
    return "<dl>" + "".join(f"<dt>{_text(term)}</dt><dd>{_text(meaning)}</dd>" for term, meaning in pairs) + "</dl>"


def meanings_of_kinds(kinds: Iterable[str]) -> str:
    """Return what bounds of these kinds say."""
    return definition_list([(kind, text) for kind, text in _KIND_MEANINGS.items() if kind in set(kinds)])


def file_links(names: Iterable[str]) -> str:
    """Return links to files beside the page, whose names have no colon."""
    links = "".join(f'<a href="{_text(name)}">{_text(name)}</a>' for name in names)
    return f'<p class="files">{links}</p>' if links else ""


def table(
    headings: Sequence[str | tuple[str, str]], rows: Iterable[Sequence[str]], *, caption: str,
    numeric: Sequence[int] = (), style: str = "",
) -> str:  # fmt: skip
    """Return a table that scrolls sideways on a narrow screen.

    A heading may be a pair of two lines. The first cell of a row is the heading of the row; ``numeric`` are the columns
    of numbers, and ``style`` is a class of the style sheet.
    """

    def number(column: int) -> str:
        return ' class="number"' if column in numeric else ""

    head = "".join(
        f'<th scope="col"{number(j)}>{_text(heading)}</th>' if isinstance(heading, str)
        else f'<th scope="col"{number(j)}>{_text(heading[0])}<small>{_text(heading[1])}</small></th>'
        for j, heading in enumerate(headings)
    )  # fmt: skip
    first = "td" if style == "two" else "th"
    scope = "" if style == "two" else ' scope="row"'
    body = "\n".join(
        f"<tr><{first}{scope}{number(0)}>{_text(row[0])}</{first}>"
        + "".join(f"<td{number(j)}>{_text(cell)}</td>" for j, cell in enumerate(row[1:], start=1)) + "</tr>"
        for row in rows
    )  # fmt: skip
    kind = f' class="{style}"' if style else ""
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{_text(caption)}"><table{kind}>'
        f"<caption>{_text(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def can_draw() -> bool:
    """Whether matplotlib is installed, without which a page has no pictures."""
    return find_spec("matplotlib") is not None


def svg_image(figure: Any, alternative: str) -> str:
    """Return a matplotlib figure as an image inside the page; ``alternative`` says in words what it shows."""
    stream = io.BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    data = base64.b64encode(stream.getvalue()).decode("ascii")
    return f'<img alt="{_text(alternative)}" src="data:image/svg+xml;base64,{data}">'


def picture_gallery(images: Sequence[str], caption: str) -> str:
    """Return images side by side, one below the other on a narrow screen, with a caption."""
    return f'<figure><div class="pictures">{"".join(images)}</div>\n<figcaption>{_text(caption)}</figcaption></figure>'


def run_description(settings: Mapping[str, str]) -> str:
    """Return what ran: versions, the instruction set of the kernels, and these settings."""
    python = ".".join(map(str, sys.version_info[:3]))
    versions = f"fastpriv {__version__}, Python {python}, NumPy {np.__version__}; instruction set {_special.ISA!s}"
    return definition_list([("software", versions), *settings.items()])


def _text(text: str) -> str:
    """Escape a text for content or an attribute; characters without a shape are written as Python does."""
    return escape(escape_invisible(text), quote=True)
