"""Figures of leakage: panels side by side, and recovered pictures."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import numpy as np

from ...report import estimates_against_noise, style

__all__ = ["leakage_figure", "reconstruction_figure"]

_PICTURE = 0.78  # inches, side of a reconstructed picture
_PICTURES = 14  # of a row, the true one first
_TITLE = 0.62  # inches, of the names above pictures
_TITLE_WIDTH = 13  # characters of a line of them
_PANEL = (6.6, 4.9)  # inches, of one with protections along its axis


def leakage_figure(study: Any) -> Any:
    """C1 and records recovered, side by side."""
    figure = style.new_figure((2 * _PANEL[0], _PANEL[1] + 0.4))
    for k, quantity in enumerate(("c1", "recovered")):
        estimates_against_noise(study, figure.add_subplot(1, 2, k + 1), quantity=quantity)
    figure.tight_layout()
    return figure


def reconstruction_figure(study: Any, truth: Any, shape: tuple[int, ...]) -> Any:
    """Pictures of the batch, one a row, each followed by its reconstruction under every protection.

    ``truth`` has the records of the batch, values from 0 to 1, and ``shape`` is that of a picture.
    """
    size, names = len(truth), [one.label for one in study.examples]
    wide = min(len(names) + 1, _PICTURES)
    groups = [study.examples[k : k + wide - 1] for k in range(0, len(names), wide - 1)]
    height = _PICTURE * size + _TITLE
    figure = style.new_figure((_PICTURE * wide + 0.2, len(groups) * height))
    for g, group in enumerate(groups):
        top = 1.0 - (g * height + _TITLE) / (len(groups) * height)
        grid = figure.add_gridspec(size, wide, wspace=0.12, hspace=0.12, left=0.01, right=0.99, top=top,
                                   bottom=top - (_PICTURE * size - 0.05) / (len(groups) * height))  # fmt: skip
        columns = [("true record", truth, np.zeros(size, dtype=bool)),
                   *((one.label, one.records, one.recovered) for one in group)]  # fmt: skip
        for j, (name, records, recovered) in enumerate(columns):
            for i in range(size):
                ax = figure.add_subplot(grid[i, j])
                picture = np.clip(np.nan_to_num(np.asarray(records[i]), nan=0.5), 0.0, 1.0).reshape(shape)
                ax.imshow(picture, cmap="gray_r", vmin=0.0, vmax=1.0, interpolation="nearest")
                ax.set(xticks=[], yticks=[])
                for spine in ax.spines.values():
                    spine.set(color=style.INK if recovered[i] else style.BAR, lw=2.4 if recovered[i] else 0.8)
                if not i:
                    text, font = style.label(name, 3 * _TITLE_WIDTH)
                    lines = [line for piece in text.split(", ") for line in wrap(piece, _TITLE_WIDTH)]
                    ax.set_title("\n".join(lines), fontsize=7.5, color=style.INK, pad=5, **font)
    return figure
