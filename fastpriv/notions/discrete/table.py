"""A channel gone through row by row, twice: what its columns hold, then what its rows tell.

Notation: Q (n, m), prior pi, q = pi Q, centre c, delta = sum pi (Q - c), q = c + delta, r = Q/q; u = 2^-53. Where a
column is too small for doubles, or cells are logarithms, it is scaled: x = Q e^-shift takes the place of Q.

Cells made from logs have a relative error of u (3 + log(top / x)) and the noise of the logs. D takes in that of cells
of at most 3 q, which are moved by at most 3 (1 + log(top / q)) q units; larger cells have psi(r) of the order of
r log r, so that K is moved by at most 4 times their relative error.

Errors: delta is right to 12 u sum pi |x - c|, and sum pi |x - c| <= D = min(top - low, q + c); hence x - q is right to
16 u (D + |x - c|), q to 16 u (D + q). For K = KL(Q_d || q) = sum q psi(r) the error of t = r - 1 enters by at most
1.3 min(|t|, 1), and sum q min(|t|, 1)^2 <= 3 K, so that by Cauchy and Schwarz it is below
200 u K + 64 u sqrt(K S), S = sum D^2 / q.
"""

# bounds: tested by enclosures/test_channel_notions - rounding of sums of rows and of cells given as logs

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _parallel
from ..._values import FloatArray
from ...channels import AnyChannel, Channel, SparseChannel
from ...kernels import _table
from .arguments import UNIT, Setting

__all__ = ["Columns", "Rows", "Table", "columns", "rows"]

_BLOCK = 2**21  # cells in one task
_FEWEST = 16  # rows in one task, at least
_SEEN = 64  # rows that the first centre is taken from
# bound: none - which columns are scaled
_FAINT = 1e-300  # columns that are scaled


class Table:
    """The rows of a channel in fixed blocks of doubles or singles, scaled by column where that is needed."""

    def __init__(self, given: Setting) -> None:
        self.channel: AnyChannel = given.channel
        self.prior = np.ascontiguousarray(given.weights)
        self.gap = given.gap
        n, m = self.channel.shape
        self.parts = _parallel.blocks(n, max(_FEWEST, _BLOCK // m))
        self.log = not isinstance(self.channel, (Channel, SparseChannel)) or getattr(self.channel, "log", False)
        self.shift: FloatArray | None = None  # natural logs, of powers of 2 where cells are plain

    @property
    def noise(self) -> float:
        """Bound on the error of the logs of cells that are made from parameters; 0 for those that were given."""
        if isinstance(self.channel, Channel) or not self.log:
            return 0.0
        return 2.0**-50 * self._size

    @property
    def slack(self) -> float:
        """What the sum of a row can miss 1 by where its cells are made from parameters; 0 for those that were given."""
        return 0.0 if isinstance(self.channel, Channel) or not self.log else 2.0**-52 * self._size + self.noise

    @property
    def _size(self) -> float:
        return 1.0 + (0.0 if self.shift is None else float(np.abs(self.shift).max(initial=0.0)))

    @property
    def direct(self) -> bool:
        """Whether blocks hold the cells as they were given."""
        return not self.log and self.shift is None

    def block(self, part: slice) -> NDArray[np.floating[Any]]:
        """Rows of a block, scaled."""
        if not self.log:
            cells = self.channel._rows(part.start, part.stop, False)
            if self.shift is None:
                return cells
            return np.ldexp(cells.astype(np.float64), -self.exponents)
        assert self.shift is not None
        with np.errstate(over="ignore"):
            return np.exp(self.channel._log_rows(part.start, part.stop) - self.shift)

    @property
    def exponents(self) -> NDArray[np.int64]:
        """Powers of 2 that plain columns are scaled by."""
        assert self.shift is not None
        return np.rint(self.shift / math.log(2)).astype(np.int64)

    def scaled(self, laws: FloatArray) -> FloatArray:
        """What is per column and scaled, in true units."""
        if self.shift is None:
            return laws
        return laws * np.exp(self.shift) if self.log else np.ldexp(laws, self.exponents)

    @property
    def root_scale(self) -> FloatArray | float:
        """Square root of what scaled columns are multiplied by."""
        return 1.0 if self.shift is None else np.exp(0.5 * self.shift)


class Columns(NamedTuple):
    """First pass, (m,) each; scaled but for ``edges``."""

    top: FloatArray
    low: FloatArray
    best: FloatArray
    place: NDArray[np.intp]
    centre: FloatArray
    delta: FloatArray
    q: FloatArray
    spread: FloatArray  # D, and more where cells are made from logs
    reach: FloatArray  # top - low, likewise
    relative: float  # error of the larger cells, relative
    edges: FloatArray  # (4, m): top and low with prior, top and low of the other secrets; logs where cells are logs

    @property
    def occurs(self) -> NDArray[np.bool_]:
        """Releases of positive probability."""
        return self.q > 0


class Rows(NamedTuple):
    """Second pass."""

    divergences: FloatArray  # (n,)
    shifts: FloatArray  # (n,), mean of r - 1 under a law of the release
    energy: float  # S
    gap: float  # what rows miss 1 by
    relative: float  # error of the larger cells, relative


def columns(table: Table, *, n_jobs: int | None = None, progress: _parallel.Progress = None) -> Columns:
    """The first pass; once more where columns must be scaled, or where the first rows are no fair sample."""
    edges = _edges(table, n_jobs) if table.log else None
    if edges is not None:
        table.shift = np.where(np.isfinite(edges[0]), edges[0], 0.0)
    begin = int(np.argmax(table.prior > 0))
    part = slice(begin, min(begin + _SEEN, table.prior.size))
    centre = table.block(part)[table.prior[part] > 0].min(axis=0).astype(np.float64)
    total = float(np.sum(table.prior, dtype=np.longdouble))
    while True:
        numbers, place = _pass(table, centre, n_jobs, progress)
        top, low, best, high, rest, other_top, other_low = numbers
        if edges is None:
            edges = np.stack([top, low, other_top, other_low])
        delta = (high + rest) / total
        q = np.maximum(centre + delta, 0.0)
        faint = (top > 0) & (q < _FAINT)
        if faint.any() and table.shift is None:
            # never down: a cell far below its column may be subnormal already
            table.shift = np.where(top > 0, np.minimum(np.frexp(top)[1], 0), 0) * math.log(2)
            scale = -table.exponents
            centre = np.ldexp(low, scale)
        elif (centre > 2 * q).any():
            centre = np.ascontiguousarray(low)
        else:
            break
    reach = top - low
    spread = np.minimum(reach, q + centre)
    relative = 0.0
    if table.log:  # 16 u D is to hold what cells and q are rounded by
        with np.errstate(divide="ignore", invalid="ignore"):
            drop = np.where(q > 0, np.log(np.maximum(top, q) / q), 0.0)
        blur = 0.5 + 0.2 * table.noise / UNIT
        held = 3.0 * (1.0 + drop) * q
        spread, reach = spread + blur * np.minimum(top, held), reach + blur * top
        if (top > held).any():
            relative = table.noise + UNIT * (3.0 + float(drop.max(initial=0.0)))
    return Columns(top, low, best, place, centre, delta, q, spread, reach, relative, edges)


def rows(
    table: Table, first: Columns, *, law: FloatArray | None = None, posteriors: Any = None, n_jobs: int | None = None,
    progress: _parallel.Progress = None, divergences: bool = True,
) -> Rows:  # fmt: skip
    """The second pass; ``posteriors`` takes f(d|w), an array of shape (n, m) or a function of a slice and its block.

    Without ``divergences``, which cost most of it, they are 0.
    """
    inverse = np.divide(1.0, first.q, out=np.zeros_like(first.q), where=first.occurs)
    weight = table.scaled(first.q)

    def second(part: slice) -> FloatArray:
        block, own = table.block(part), table.prior[part]
        out = np.empty(block.shape) if callable(posteriors) else None if posteriors is None else posteriors[part]
        known = weight if divergences else None
        found = _table.rows(block, own, first.centre, first.delta, inverse, known, law, out)
        found[:, own == 0] = np.array([[0.0], [1.0], [0.0]])
        if callable(posteriors):
            posteriors(part, out)
        return np.asarray(found)

    parts = list(_parallel.ordered_map(second, table.parts, n_jobs=n_jobs, progress=progress, shared=True))
    each, _, shifts = np.concatenate(parts, axis=1)
    energy = _table.accurate_sum(weight * (first.spread * inverse) ** 2)
    return Rows(np.maximum(each, 0.0), shifts, energy, table.channel.mass_gap, first.relative)


def _pass(table: Table, centre: FloatArray, n_jobs: int | None, progress: _parallel.Progress) -> Any:
    def one(part: slice) -> Any:
        return _table.columns(table.block(part), table.prior[part], centre, part.start)

    found = None
    for numbers, place in _parallel.ordered_map(one, table.parts, n_jobs=n_jobs, progress=progress, shared=True):
        if found is None:
            found = numbers, place
        else:
            _table.join(found[0], found[1], numbers, place)
    return found


def _edges(table: Table, n_jobs: int | None) -> FloatArray:
    """Largest and smallest log of each column, of the secrets with prior and of the others."""
    def one(part: slice) -> FloatArray:
        logs, held = table.channel._log_rows(part.start, part.stop), table.prior[part] > 0
        return np.stack([
            logs[held].max(axis=0, initial=-np.inf), logs[held].min(axis=0, initial=np.inf),
            logs[~held].max(axis=0, initial=-np.inf), logs[~held].min(axis=0, initial=np.inf),
        ])  # fmt: skip

    found: FloatArray | None = None
    for edges in _parallel.ordered_map(one, table.parts, n_jobs=n_jobs, shared=True):
        if found is None:
            found = edges
        else:
            found[::2] = np.maximum(found[::2], edges[::2])
            found[1::2] = np.minimum(found[1::2], edges[1::2])
    assert found is not None
    return found
