"""``paper``: figures 1 to 4 of the paper on local mutual-information privacy, computed, explained, drawn and written.

Numbers in the sentences are read from the computed figures, never written down here.
"""

# bounds: none - how figures are drawn

from __future__ import annotations

import json
import os
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ... import __version__
from ...base import validate
from ...base.files import json_safe, writable_directory, write_picture, write_text
from ...base.numerics import rounded_down, rounded_outward, rounded_up
from ...base.parallel import Progress, ordered_map
from ...report import Details, Pictures, TextTable, page
from .paper_data import NAMES, PaperFigure, compute_figure
from .paper_panels import figure_of_panels, panel_figures

__all__ = ["Paper", "figure_names", "paper"]

# The paper whose figures are computed again.
SOURCE = "Ngo, Östman and Graell i Amat, On local mutual-information privacy, 2024"
_TITLE = "Local mutual-information privacy, recomputed"  # title of the page
_DPI = 160  # dots per inch of written pictures


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
        """A few lines for each figure: what it shows, the accuracy of its numbers, and their computing time."""
        lines = [f"{SOURCE}, recomputed"]
        for figure in self.figures:
            text = TEXTS[figure.name]
            lines += ["", f"{figure.name}  {text.title}", *_wrapped(text.observation(figure))]
            for wrong, right in text.corrections(figure):
                lines += _wrapped(f"In print: {wrong} Right: {right}")
            lines += _wrapped(f"{figure.seconds:.2g} s: {_accuracy(figure)}.")
        return "\n".join(lines)

    def page(self) -> str:
        """The HTML page, pictures inside, without links to files."""
        return _page(self.figures, [], drawn=True)

    def save(
        self, directory: str | os.PathLike[str], *, figure: Literal["png", "svg", "pdf"] | None = "png"
    ) -> list[Path]:
        """Write ``figureN.csv``, a picture of each, and ``figures.html``; return the paths.

        Each file appears whole or not at all. ``figure`` is png, svg, pdf or None for no pictures, on the page either.
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
                paths.append(write_picture(folder / f"{paper_figure.name}.{figure}", picture, figure, _DPI))
        text = _page(self.figures, [path.name for path in paths], drawn=figure is not None)
        return [*paths, write_text(folder / "figures.html", text)]

    def json_pieces(self) -> Iterator[str]:
        """The JSON document in pieces: parameters, time and table of each figure; infinite numbers are strings."""
        yield json.dumps({"fastpriv": __version__, "source": SOURCE}, indent=1)[:-2] + ',\n "figures": ['
        for i, figure in enumerate(self.figures):
            head = {
                "name": figure.name, "parameters": dict(figure.parameters), "seconds": figure.seconds,
                "curves": figure.meanings(),
            }  # fmt: skip
            yield ("," if i else "") + "\n  " + json.dumps(head)[:-1] + ', "table": ['
            for j, row in enumerate(figure.named_rows()):
                yield (",\n   " if j else "\n   ") + json.dumps(json_safe(row))
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


def _page(figures: Sequence[PaperFigure], files: Sequence[str], *, drawn: bool) -> str:
    """Return the HTML page; ``files`` are the names of the files beside it."""
    seconds = sum(figure.seconds for figure in figures)
    about = (
        f"The figures of {SOURCE}, with bounds on every number. Equation numbers are those of the paper. μ is in bits, "
        "ε in nats, δ a probability."
    )
    sections: dict[str, Sequence[Any]] = {"": [about]}
    for figure in figures:
        title = f"Figure {figure.name.removeprefix('figure')}. {TEXTS[figure.name].title}"
        sections[title] = _section(figure, drawn)
    ran = {"command": "fastpriv figures", "time": f"{seconds:.2g} s"}
    return page(_TITLE, sections, ran=ran, files=files)


def _section(figure: PaperFigure, drawn: bool) -> list[Any]:
    text = TEXTS[figure.name]
    pictures: list[Any] = ["Not drawn; the numbers are in the table beside.", text.caption]
    if drawn:
        panels = panel_figures(figure)
        titles = (panel.axes[0].get_title(loc="left").replace("$", "").replace("\\mu", "μ") for panel in panels)
        images = [(panel.axes[0].get_figure, title) for panel, title in zip(panels, titles, strict=True)]
        pictures = [Pictures(images, text.caption)]
    return [
        *pictures,
        f"What is seen. {text.observation(figure)}",
        TextTable(("as published", "right"), text.corrections(figure), "What the paper prints, and what holds"),
        _single_numbers(figure),
        Details("Parameters", [dict(figure.parameters)]),
        Details("Curves in the table", [figure.meanings()]),
        f"Computed in {figure.seconds:.2g} s: {_accuracy(figure)}.",
    ]


def _single_numbers(figure: PaperFigure) -> TextTable | None:
    rows = []
    for curve in figure.curves:
        if curve.axes:
            continue
        setting = ", ".join(f"{_symbol(name)} = {number:.6g}" for name, number in curve.setting.items())
        e = curve.estimate
        unit = "" if e.unit in ("1", "probability") else f" {e.unit}"
        bounds = f"[{rounded_down(float(e.lower), 15)}, {rounded_up(float(e.upper), 15)}]"
        rows.append((curve.meaning, setting, f"{e.value:.12g}{unit}", bounds, e.kind))
    headings = ("number", "at", "value", "bounds", "kind")
    return TextTable(headings, rows, "Single numbers of the figure", numeric=(1, 2, 3)) if rows else None


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


def _symbol(name: str) -> str:
    return {"mu_bits": "μ", "sigma": "σ", "dimension": "d"}.get(name, name)


@dataclass(frozen=True, eq=False)
class FigureText:
    """The sentences of one figure; ``corrections`` are pairs of what was printed and what is right."""

    title: str
    caption: str
    observation: Callable[[PaperFigure], str]
    corrections: Callable[[PaperFigure], tuple[tuple[str, str], ...]]


def _observation1(figure: PaperFigure) -> str:
    achievable = figure.curve("ldp_delta_achievable", mu_bits=0.1)
    epsilon = achievable.axes["epsilon_nats"]
    index = int(np.argmin(np.abs(np.log(epsilon))))
    general = achievable.estimate.arrays()[2][index]
    gaussian = figure.curve("ldp_delta_gaussian", mu_bits=0.1).estimate.arrays()[2][index]
    limit = figure.curve("saturation", mu_bits=0.1).estimate.value
    return (
        f"However large ε is, the δ that μ bits promise stays above a level p̄, {limit:.4f} for μ = 0.1. The δ of "
        f"Gaussian noise with the same μ falls to 0: at ε = {epsilon[index]:.3g} it is {gaussian:.2g}, and "
        f"{general:.3g} is promised. A small μ by itself promises little LDP."
    )


def _corrections1(figure: PaperFigure) -> tuple[tuple[str, str], ...]:
    return (
        (
            "Equation (10) holds for every data distribution space.",
            "It holds when the space contains all distributions on two points; with fewer of them, μ says less.",
        ),
        (
            "The capacity (11) of the binary asymmetric channel, by cases.",
            "One formula serves everywhere; where the crossover probabilities add up to 1 it is 0/0 and the capacity "
            "is 0.",
        ),
    )


def _observation2(figure: PaperFigure) -> str:
    ends = [figure.curve("ratio", dimension=d).estimate.arrays()[0] for d in (1, 10)]
    return (
        f"For large σ² both fall as 1/σ². Their ratio falls from {ends[0][0]:.3g} (d = 1) and "
        f"{ends[1][0]:.3g} (d = 10) at the left to {ends[0][-1]:.4f} and {ends[1][-1]:.4f} at the "
        "right. For two antipodal inputs the sharp form is exact; where two inputs are the best there are (d = 1, "
        "σ² > 0.36) it is the optimum."
    )


def _corrections2(figure: PaperFigure) -> tuple[tuple[str, str], ...]:
    return (
        ("The gap between (12) and the optimum is almost constant.", "Their ratio is: it tends to 4, the gap to 0."),
        (
            "Equation (12) as the one conversion from LDP.",
            "For Gaussian noise it is 2dΔ²/σ² · log₂e bits; it is infinite for any curve δ(ε) that does not vanish. "
            "For two inputs, μ ≤ log₂e ∫ δ(ε)/(1 + e^ε) dε is sharp.",
        ),
    )


def _observation3(figure: PaperFigure) -> str:
    parts = []
    for mu in (0.1, 0.01):
        crossing = rounded_down(float(figure.curve("crossing", mu_bits=mu).estimate.lower), 6)
        pointwise = rounded_down(float(figure.curve("pointwise_lmip", mu_bits=mu).estimate.lower))
        parts.append(f"μ = {mu:g}: broken for ε < {crossing}, since one input alone leaks {pointwise} bit")
    return (
        f"Gaussian noise that leaks μ on average has a larger δ than the printed guarantee ({'; '.join(parts)}). "
        "The tight guarantee for the rarest of the 21 inputs hardly falls with ε. The shape of (13) is right for a "
        "bound on the worst input instead of the average."
    )


def _corrections3(figure: PaperFigure) -> tuple[tuple[str, str], ...]:
    return (
        (
            "Equation (13): μ-CD-LMIP gives (ε, δ)-LIP with KL(Ber(p₁) ‖ Ber(p₀)) ≤ μ.",
            "False: μ bounds the average over inputs, the proof needs every input. With π the probability of the worst "
            "input: π d(p₁‖p₀) + (1 − π) d(s‖p₀) ≤ μ, p₀ = (1 − π)s + πp₁; δ = 1 − π once μ reaches the binary entropy "
            "of π. As printed it holds under sup_x KL(P_x ‖ P_M) ≤ μ.",
        ),
        (
            "“N(0, 1/4) truncated in a set of 21 points”.",
            "The variance is 1/4, and the weights are the density at the points, normalised.",
        ),
    )


def _observation4(figure: PaperFigure) -> str:
    tenth = figure.curve("ratio_at_tenth").estimate.value
    both = figure.curve("ratio_both_directions").estimate.arrays()[0]
    bound, entropy = figure.curve("cd_lmip_from_lip"), figure.curve("entropy").estimate.value
    vacuous = bound.axes["sigma_squared"][bound.estimate.lower > entropy]
    return (
        f"Equation (14) is {tenth:.3g} times too large where the mechanism leaks 0.1 bit, and says more than all there "
        f"is to know ({entropy:.3g} bits) for σ² up to {rounded_down(vacuous.max(), 2)}. Keeping the two directions of "
        f"LIP apart costs a factor of {both.min():.3g} to {both.max():.3g} instead."
    )


def _corrections4(figure: PaperFigure) -> tuple[tuple[str, str], ...]:
    return (
        ("The caption speaks of an (ε, δ(ε))-LDP mechanism.", "It should say LIP: δ(ε) is the LIP curve."),
        ("“The Gaussian mechanism considered in Fig. 4”.", "The one of figure 3."),
        (
            "Equation (14), μ ≤ log₂e ∫ (e^ε + e^−ε) δ(ε) dε.",
            "True and very loose. Better: μ ≤ log₂e ∫ [sup_x H(P_x‖P_M) + e^−ε sup_x H(P_M‖P_x)] dε; with averages "
            "over x in place of the suprema it is exact.",
        ),
    )


TEXTS = {
    "figure1": FigureText(
        "What LMIP promises about LDP",
        "The achievable LDP curve, eq. (10), of any mechanism with CI-LMIP at most μ, the level it cannot fall below, "
        "and the optimal LDP curve, eq. (9), of Gaussian noise with the same μ (d = 10, Δ = 1).",
        _observation1, _corrections1,
    ),
    "figure2": FigureText(
        "What LDP promises about LMIP",
        "The CI-LMIP, eq. (12), that follows from the LDP curve of Gaussian noise, and its optimal CI-LMIP, eq. (8), "
        "the capacity of the channel with peak power (Δ = 1, d = 1 and 10). Right: the one over the other.",
        _observation2, _corrections2,
    ),
    "figure3": FigureText(
        "What LMIP promises about LIP",
        "The LIP curve of eq. (13) as printed for CD-LMIP at most μ and its limit 1 − 2^−μ; the optimal LIP curve, eq. "
        "(6), of Gaussian noise with that μ on 21 inputs; and two guarantees that hold.",
        _observation3, _corrections3,
    ),
    "figure4": FigureText(
        "What LIP promises about LMIP",
        "The CD-LMIP, eq. (14), that follows from the LIP curve of Gaussian noise, the form that keeps both directions "
        "apart, and the optimal CD-LMIP, on the 21 inputs of figure 3. Right: the guarantees over the optimum.",
        _observation4, _corrections4,
    ),
}  # fmt: skip
