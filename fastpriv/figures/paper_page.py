"""The page of figures 1 to 4 of the paper: one HTML file that needs nothing else, pictures inside."""

# bounds: none - how figures are drawn

from __future__ import annotations

import base64
import io
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from .. import __version__
from .paper_data import PaperFigure
from .paper_panels import panel_pages
from .paper_words import SOURCE, WORDS

__all__ = ["page", "worth"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2430; --faint: #626a7c; --paper: #fbfbfd; --card: #fff; --line: #dde1ea;
  --link: #31688e; --alarm: #b3432c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ee; --faint: #a0a8ba; --paper: #15181f; --card: #1d212a;
  --line: #363c4a; --link: #7fc4e8; --alarm: #f0907a; } .pictures img { filter: invert(.9) hue-rotate(180deg); } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 74rem; padding: 1.2rem clamp(.8rem, 3vw, 2.4rem) 4rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: clamp(1.4rem, 4vw, 2rem); line-height: 1.2; margin: .6rem 0; }
h2 { font-size: 1.3rem; margin: 0; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
a { color: var(--link); }
nav a, .files a { display: inline-block; padding: .35rem .2rem; margin-right: .8rem; }
.faint { color: var(--faint); font-size: .92rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .7rem; margin: 1.6rem 0;
  padding: clamp(.8rem, 2.5vw, 1.6rem); }
figure { margin: .8rem 0; }
.pictures { display: flex; flex-wrap: wrap; gap: .6rem; justify-content: center; }
.pictures img { flex: 1 1 21rem; min-width: 0; max-width: min(100%, 38rem); height: auto; background: #fff;
  border-radius: .4rem; }
figcaption { margin-top: .6rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .9rem .35rem 0; border-top: 1px solid var(--line); }
td:first-child { min-width: 9rem; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.two td { width: 50%; }
.two td:first-child { color: var(--alarm); }
details { margin-top: .8rem; }
summary { cursor: pointer; }
"""


def page(figures: Sequence[PaperFigure], files: Mapping[str, Sequence[str]], *, drawn: bool) -> str:
    """The whole page; ``files`` names the files beside it, figure by figure."""
    seconds = sum(figure.seconds for figure in figures)
    links = "".join(f'<a href="#{figure.name}">{_number(figure)}</a>' for figure in figures)
    python = ".".join(map(str, sys.version_info[:3]))
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Local mutual-information privacy, recomputed</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
            "<h1>Local mutual-information privacy, recomputed</h1>",
            f"<p>The figures of {escape(SOURCE)}, with bounds on every number. Equation numbers are those of the "
            "paper. μ is in bits, ε in nats, δ a probability.</p>",
            f'<p class="faint">fastpriv {escape(__version__)}, Python {python}; the numbers took {seconds:.2g} s. '
            "Made by <code>fastpriv figures</code>.</p>",
            f"<nav>{links}</nav>",
            *(_section(figure, files.get(figure.name, ()), drawn) for figure in figures),
            "</body>\n</html>\n",
        ]
    )


def worth(figure: PaperFigure) -> str:
    """How many numbers there are, what their bounds are, and how far apart at most."""
    kinds: Counter[str] = Counter()
    widest = 0.0
    for one in figure.curves:
        kinds[one.found.kind] += int(np.size(one.found.value))
        value = np.asarray(one.found.value)
        known = (value > 1e-300) & np.isfinite(one.found.upper)
        widest = max(widest, float(np.max(np.where(known, one.found.width / np.maximum(value, 1e-300), 0.0))))
    counted = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    return f"{sum(kinds.values()):,} numbers ({counted}), bounds within {widest:.0e} of the value"


def _section(figure: PaperFigure, files: Sequence[str], drawn: bool) -> str:
    words = WORDS[figure.name]
    pictures = _pictures(figure) if drawn else '<p class="faint">Not drawn; the numbers are in the table beside.</p>'
    links = "".join(f'<a href="{escape(name, quote=True)}">{escape(name)}</a>' for name in files)
    parameters, meanings = (
        "".join(f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in listed.items())
        for listed in (figure.parameters, figure.meanings())
    )
    corrections = "".join(
        f"<tr><td>{escape(wrong)}</td><td>{escape(right)}</td></tr>" for wrong, right in words.corrections(figure)
    )
    return f"""<section id="{figure.name}">
<h2>{_number(figure)}. {escape(words.title)}</h2>
<figure>{pictures}
<figcaption>{escape(words.caption)}</figcaption></figure>
<p><strong>What is seen.</strong> {escape(words.seen(figure))}</p>
<h3>As published, and right</h3>
<div class="wide"><table class="two"><tr><th>as published</th><th>right</th></tr>{corrections}</table></div>
{_single_numbers(figure)}
<details><summary>Parameters</summary><div class="wide"><table>{parameters}</table></div></details>
<details><summary>Curves in the table</summary><div class="wide"><table>{meanings}</table></div></details>
<p class="faint">Computed in {figure.seconds:.2g} s: {escape(worth(figure))}.</p>
<p class="files">{links}</p>
</section>"""


def _single_numbers(figure: PaperFigure) -> str:
    rows = []
    for one in figure.curves:
        if one.axes:
            continue
        place = ", ".join(f"{_sign(name)} = {number:.6g}" for name, number in one.setting.items())
        found = one.found
        unit = "" if found.unit in ("1", "probability") else f" {found.unit}"
        rows.append(
            f'<tr><td>{escape(one.meaning)}</td><td class="number">{escape(place)}</td>'
            f'<td class="number">{found.value:.12g}{escape(unit)}</td>'
            f'<td class="number">[{found.lower:.15g}, {found.upper:.15g}]</td><td>{escape(found.kind)}</td></tr>'
        )
    if not rows:
        return ""
    head = "<tr><th>number</th><th>at</th><th>value</th><th>bounds</th><th>kind</th></tr>"
    return f'<h3>Numbers</h3><div class="wide"><table>{head}{"".join(rows)}</table></div>'


def _pictures(figure: PaperFigure) -> str:
    images = []
    for sheet in panel_pages(figure):
        stream = io.BytesIO()
        sheet.savefig(stream, format="svg", metadata={"Date": None})
        title = sheet.axes[0].get_title(loc="left").replace("$", "").replace("\\mu", "μ")
        code = base64.b64encode(stream.getvalue()).decode("ascii")
        images.append(f'<img alt="{escape(title, quote=True)}" src="data:image/svg+xml;base64,{code}">')
    return f'<div class="pictures">{"".join(images)}</div>'


def _number(figure: PaperFigure) -> str:
    return f"Figure {figure.name.removeprefix('figure')}"


def _sign(name: str) -> str:
    return {"mu_bits": "μ", "sigma": "σ", "dimension": "d"}.get(name, name)
