"""Stacks of written channels: an array of matrices with leading axes, one channel for each position of these axes.

Notation: n secrets, m releases; ``shape`` are the leading axes of a stack.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..base import parallel, validate
from ..base.numerics import FloatArray, RealArray
from ..base.values import Index, Stack, is_read_only
from ..kernels import _channel_capacity
from .base import Channel
from .matrix_cells import contiguous_cells, validated_cells

_BLOCK_CELLS = 2**18  # cells checked at a time: 2 MiB of doubles, less than a millisecond
# Remedy for an array that is no stack.
_REMEDY = "Pass shape (..., n, m): one row a secret, one column a release."


class ChannelStack(Stack):
    """Channels with leading axes, for one call instead of a loop over settings.

    The functions of ``fastpriv.notions`` and ``fastpriv.capacity`` take a stack in the place of a channel, and priors
    of shape (..., n) with it. The leading axes of both broadcast; the last axis of ``epsilon`` belongs to each channel.

    Parameters
    ----------
    matrices : array_like, shape (..., n, m)
        Probabilities of the releases under each secret, float64 or float32, as for ``Channel``: rows sum to 1 within
        1e-9 (float64) or 2e-6 (float32), and are never renormalised.
    errors : {"raise", "record"}, default "raise"
        What an invalid channel or prior does: raise an error that names it, or have NaN as its answers while the others
        keep theirs. ``errors`` of the stack then holds its text, and so does ``cost["errors"]`` of an Estimate.

    Attributes
    ----------
    cells : ndarray, shape (..., n, m)
        What was given, read-only; the cells of invalid channels are 1/m.
    shape : tuple of int
        The leading axes.
    inputs, outputs : int
        n and m.
    mass_gaps : ndarray, shape (...)
        Largest distance of the sum of a row from 1, rounded up.
    errors : mapping of tuple of int to str
        The texts of invalid channels by their position.

    Raises
    ------
    DomainError
        For a channel that ``Channel`` refuses, unless ``errors="record"``; its message is that of ``Channel`` with the
        position.
    ShapeError
        For fewer than two axes, no secret or no release.

    See Also
    --------
    fastpriv.Channel : one channel.

    Notes
    -----
    A C-contiguous array of floats that nobody can write to is kept without a copy.

    **Accuracy** the answers for a channel are those for the channel itself, bit for bit:
    ``tests/contracts/test_channel_stacks.py``.

    Examples
    --------
    Randomized response on two values for three flip probabilities, under two priors:

    >>> import numpy as np
    >>> from fastpriv import notions
    >>> from fastpriv.channels import ChannelStack
    >>> flip = np.array([0.1, 0.25, 0.5])
    >>> stack = ChannelStack(np.stack([[1 - flip, flip], [flip, 1 - flip]]).transpose(2, 0, 1))
    >>> stack.shape, stack.inputs, stack.outputs
    ((3,), 2, 2)
    >>> notions.ldp_epsilon(None, stack).value.round(6)
    array([2.197225, 1.098612, 0.      ])
    >>> notions.bayes_vulnerability([[[0.5, 0.5]], [[0.2, 0.8]]], stack).value
    array([[0.9 , 0.75, 0.5 ],
           [0.9 , 0.8 , 0.8 ]])
    """

    __slots__ = ("cells", "errors", "inputs", "mass_gaps", "outputs", "records", "shape")
    _fields = ("cells", "_error_texts")
    _columns = ("cells", "mass_gaps")

    cells: RealArray
    inputs: int
    outputs: int
    mass_gaps: FloatArray

    def __init__(self, matrices: ArrayLike, *, errors: Literal["raise", "record"] = "raise") -> None:
        records = validate.choice("errors", errors, ("raise", "record")) == "record"
        array = validated_cells("matrices", matrices, "rows of probabilities of one length", _REMEDY, stacked=True)
        may_share = validate.map_of(array) is None and is_read_only(array)
        cells = contiguous_cells("matrices", array, may_share, "Pass fewer channels at a time.")
        self._set(cells=cells, shape=cells.shape[:-2], inputs=cells.shape[-2], outputs=cells.shape[-1], records=records)
        flat = cells.reshape(-1, self.outputs)
        gaps = np.empty(len(flat))
        for part in parallel.blocks(len(flat), max(1, _BLOCK_CELLS // self.outputs)):
            with np.errstate(invalid="ignore"):
                gaps[part] = _channel_capacity.row_gaps(np.ascontiguousarray(flat[part], dtype=np.float64))
        gaps = gaps.reshape((*self.shape, self.inputs))
        with np.errstate(invalid="ignore"):
            invalid = np.asarray(~((gaps >= 0) & (gaps <= validate.sum_tolerance(cells.dtype))).all(axis=-1))
        self._set(mass_gaps=gaps.max(axis=-1, initial=0.0), errors=MappingProxyType({}))
        sound = {"cells": 1.0 / self.outputs, "mass_gaps": 0.0}
        validate.with_argument_name("matrix", "matrices", lambda: self._note_errors(invalid, "channel", sound))

    def _item(self, index: Index) -> Channel:
        return Channel(self.cells[index])

    def __repr__(self) -> str:
        invalid = f", {len(self.errors)} of them invalid" if self.errors else ""
        return (
            f"<ChannelStack of shape {self.shape}{invalid}: {self.inputs:,} secrets, {self.outputs:,} releases, "
            f"{self.cells.dtype}>"
        )
