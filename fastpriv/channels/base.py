"""Channels: the base class of all, matrices, and what both are made into: products and cascades.

Notation: a secret d is an input of the channel, a release w is an output; both are counted from 0. Q[d, w] is the
probability of release w under secret d; there are n secrets and m releases.

The secret of a product is a tuple (d_1 .. d_t), the release (w_1 .. w_t), and Q the product of the Q_i[d_i, w_i]; there
are t coordinates. As integers, tuples are numbered with the first coordinate changing slowest. LDP, MBP, information
and log vulnerability add up. A cascade is Q[d, w] = sum_v A[d, v] B[v, w].

Source: Shannon 1948, the discrete channel with noise.
"""

# bounds: proved - docs/proofs/finite_capacity.md, 7.15: rounding of log cells and of log ratios of products

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base import parallel, random_streams, validate
from ..base.errors import DomainError, ShapeError
from ..base.files import FileArray, changed_file, memory_mapped_file
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, RealArray
from ..base.values import ValueObject, is_read_only
from ..kernels import _channel_quantities, _matrix_product
from . import type_classes as types
from .likelihoods import COPIES_REMEDY, DefaultLikelihood, ProductLikelihood, validated_powers
from .matrix_cells import contiguous_cells, largest_gap, logs_of, validated_cells

ENUMERABLE_CELLS = 2**20  # cells; a channel without structure of its own is enumerated up to this size (8 MiB)
_BLOCK_CELLS = 2**20  # cells computed at a time when a column is read from rows, or of a cascade: 8 MiB of doubles
_CACHED_CELLS = 2**15  # stored cells read at a time: 256 KiB of doubles, which stay in the cache of a core
_ENTRYWISE_OUTPUTS = 2**13  # releases beyond which a column of a file is read entry by entry: rows are 16 pages or more
_MAX_COPIES = 2**53  # copies of one factor of a product: counts up to here are exact as doubles
_MAX_COUNT_BITS = 2**23  # bits of a number of secrets or releases that is computed (0.8 s)
_MAX_COORDINATES = 2**22  # coordinates up to which lists of one factor each are made
_MAX_DIGITS = 2**16  # coordinates up to which a release given as one number is split (time grows with the square)
_MAX_PAIRED_ROWS = 4  # rows of a factor of unknown structure up to which all its ordered pairs are used
_MAX_PAIRED_OUTPUTS = 2**14  # releases of a factor with listed pairs
# bound: none - smaller log ratios have an absolute error alone
_SMALL_RATIO = 1e-280  # log ratios up to which the error is absolute
MAX_INPUTS = 2**1000  # secrets of one factor: their number must be finite as a double, with some room for products


class AnyChannel(ValueObject):
    """A row-stochastic matrix, stored or known by its structure: the base class of all channels.

    ``Channel`` is dense, ``SparseChannel`` holds exceptions to a background, ``DefaultChannel`` a few rows beside a
    default, ``ProductChannel`` independent channels side by side; the channels of ``fastpriv.mechanisms`` are known by
    parameters and never written out. There may be 2**200 secrets or releases: ``inputs`` and ``outputs`` are Python
    integers. All channels are immutable, equal when their parameters are, hashable and picklable.

    Examples
    --------
    >>> from fastpriv import Channel, RandomizedResponse
    >>> from fastpriv.channels import AnyChannel
    >>> q = RandomizedResponse(3, 1.0)
    >>> isinstance(q, AnyChannel), q.shape
    (True, (3, 3))
    >>> q.then(Channel([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])).shape
    (3, 2)
    """

    __slots__ = ()

    @property
    def inputs(self) -> int:
        """Number of secrets."""
        return self._input_count()

    @property
    def outputs(self) -> int:
        """Number of releases."""
        return self._output_count()

    @property
    def shape(self) -> tuple[int, int]:
        """Number of secrets and number of releases."""
        return self.inputs, self.outputs

    @property
    def mass_gap(self) -> float:
        """Largest distance of the sum of a row from 1, rounded up."""
        return 0.0

    def _input_count(self) -> int:
        raise NotImplementedError

    def _output_count(self) -> int:
        raise NotImplementedError

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        """Natural logarithms of the rows of secrets ``start`` to ``stop - 1``; a subclass has this or ``_rows``."""
        return np.asarray(self._rows(start, stop, True), dtype=np.float64)

    def _rows(self, start: int, stop: int, log: bool) -> RealArray:
        logs = self._log_rows(start, stop)
        return logs if log else np.exp(logs)

    def _log2_shape(self) -> tuple[float, float]:
        """Binary logarithms of the numbers of secrets and of releases, found without these numbers."""
        return math.log2(self.inputs), math.log2(self.outputs)

    def _cells_within(self, limit: int, exponent: int = 1) -> bool:
        """Whether (number of secrets) ** exponent * (number of releases) is at most ``limit``."""
        log_inputs, log_outputs = self._log2_shape()
        if exponent * log_inputs + log_outputs > math.log2(limit) + 1:
            return False  # the numbers themselves may be too long to be computed
        return bool(self.inputs**exponent * self.outputs <= limit)

    def rows(self, start: int = 0, stop: int | None = None, *, log: bool = False) -> RealArray:
        """The rows of secrets ``start`` to ``stop - 1``, by default of all, shape (stop - start, outputs).

        Probabilities, or with ``log`` their natural logarithms; read-only where they are stored so. Secrets that do not
        exist raise ``DomainError``, more than the memory that is free raises ``MemoryError``.
        """
        first = validate.count("start", start, 0, self.inputs)
        last = self.inputs if stop is None else validate.count("stop", stop, first, self.inputs)
        self._check_memory("rows", last - first, "Ask for fewer rows at a time.")
        return self._rows(first, last, validate.flag("log", log))

    def matrix(self) -> RealArray:
        """All rows, if they fit in memory."""
        remedy = "Use rows(start, stop), or quantities that never write the channel out."
        self._check_memory("matrix", self.inputs, remedy)
        return self._rows(0, self.inputs, False)

    def log_matrix(self) -> RealArray:
        """Natural logarithms of all rows, if they fit in memory."""
        self._check_memory("log_matrix", self.inputs, "Use rows(start, stop, log=True).")
        return self._rows(0, self.inputs, True)

    def _check_memory(self, name: str, rows: int, remedy: str) -> None:
        bits = math.log2(max(rows, 1)) + self._log2_shape()[1] + 3  # of the number of bytes, 8 a cell
        validate.memory(name, 2 ** int(min(bits, 1e5)) if bits > 100 else rows * self.outputs * 8, remedy)

    def column(self, output: ArrayLike) -> RealArray | DefaultLikelihood | ProductLikelihood:
        """Log likelihoods of one release under every secret.

        Parameters
        ----------
        output : int or array_like
            The release; channels whose releases are sets, bits or tuples take these too.

        Returns
        -------
        ndarray of shape (inputs,), DefaultLikelihood or ProductLikelihood
            All of them; or one default and what deviates from it; or, of a product, one column a factor.

        Raises
        ------
        DomainError, MemoryError
            For a release that does not exist; for more than the memory that is free.
        """
        index = self._output_index(output)
        validate.memory("column", min(self.inputs * 8, 2**1000), "Use a channel with fewer secrets.")
        return np.concatenate([self._rows(part.start, part.stop, True)[:, index] for part in _row_blocks(self)])

    def _output_index(self, output: Any) -> int:
        return validate.count("output", output, 0, self.outputs - 1)

    def sample(self, secrets: ArrayLike, *, rng: random_streams.RNGLike = None) -> Any:
        """One release for each secret.

        Parameters
        ----------
        secrets : array_like of int
            Secrets, any shape.
        rng : None, int, sequence of int, SeedSequence, BitGenerator or Generator, optional
            Source of randomness; equal integers give equal releases.

        Returns
        -------
        ndarray of int
            Of the shape of ``secrets``; sets, bits and tuples add an axis at the end. Secrets that do not exist raise
            ``DomainError``.
        """
        return self._sample(self._validated_secrets(secrets), random_streams.generator(rng))

    def _sample(self, secrets: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        """Inverse transform sampling, one row a distinct secret."""
        releases = np.empty(secrets.shape, dtype=np.int64)
        uniform = generator.random(secrets.shape)
        for secret in np.unique(secrets):
            selected = secrets == secret
            cumulative = np.cumsum(self._rows(int(secret), int(secret) + 1, False)[0], dtype=np.float64)
            releases[selected] = np.searchsorted(cumulative, uniform[selected] * cumulative[-1], side="right")
        return releases

    def _validated_secrets(self, secrets: ArrayLike) -> NDArray[Any]:
        """Secrets that exist, as integers of 64 bits where these can hold them all, else as Python integers."""
        return validate.integers("secrets", secrets, 0, self.inputs - 1)

    def then(self, post: AnyChannel | ArrayLike) -> AnyChannel:
        """The cascade: this channel, and then another step that sees only the release.

        Parameters
        ----------
        post : AnyChannel, array_like of shape (outputs, k), or array_like of int, shape (outputs,)
            A channel, a row-stochastic matrix, or a new label for each release (labels are counted from 0).

        Returns
        -------
        AnyChannel
            Of the same family where that is closed under the step, otherwise a dense ``Channel``.

        Raises
        ------
        DomainError, ShapeError, MemoryError
            For a matrix that is not row-stochastic, labels that are not natural numbers, a step for another number of
            releases, and a dense result that does not fit in memory.
        """
        if isinstance(post, AnyChannel):
            second: AnyChannel = post
        else:
            step = validate.array("post", post)
            if step.ndim == 1:
                return _relabelled(self, step)
            second = validate.with_argument_name("matrix", "post", lambda: Channel(step))
        if second.inputs != self.outputs:
            raise ShapeError(
                f"post must take the {validate.shown(self.outputs)} releases of the channel before it; got one of "
                f"{validate.shown(second.inputs)} secrets. Pass one row a release."
            )
        closed = self._closed_cascade(second)
        if closed is not None:
            return closed
        cells = _empty_cells(self.inputs, second.outputs, second.inputs)
        transposed = np.ascontiguousarray(np.asarray(second.matrix(), dtype=np.float64).T)
        for part in _row_blocks(self):
            cells[part] = _matrix_product.product(self.rows(part.start, part.stop), transposed)
        cells.setflags(write=False)
        return Channel(cells)

    def _closed_cascade(self, step: AnyChannel) -> AnyChannel | None:
        """The cascade within this family, or None where the family is not closed under the step."""
        return None

    def product(self, *others: AnyChannel) -> AnyChannel:
        """Independent channels side by side, as a ``ProductChannel``: this one first, products among them flattened.

        Secrets and releases become tuples; the first factor changes slowest.
        """
        return ProductChannel((self, *others))

    def power(self, exponent: int) -> AnyChannel:
        """The product of this many copies: a ``ProductChannel``, or the channel itself for ``exponent`` 1."""
        copies = validate.count("exponent", exponent, 1, _MAX_COPIES, remedy=COPIES_REMEDY)
        return self if copies == 1 else ProductChannel((self,), (copies,))

    def type_classes(self, prior: ArrayLike | None = None) -> types.TypeClasses | None:
        """Classes of equivalent releases and groups of equivalent secrets, which determine all quantities.

        ``prior`` has shape (inputs,); None is the uniform distribution, which is never written out. The answer is None
        where the channel is large and has no such grouping under this prior.
        """
        return self._type_classes(self._validated_prior(prior))

    def _type_classes(self, prior: FloatArray | None) -> types.TypeClasses | None:
        if not self._cells_within(ENUMERABLE_CELLS):
            return None
        logs = self._log_rows(0, self.inputs)
        error = self._log_error(types.largest_size(logs) + math.log(self.outputs))
        return types.classes_of_matrix(logs, True, prior, error)

    def _log_error(self, size: Any) -> Any:
        """Bound on the error of the log of a cell that is computed; ``size`` is at least |log cell| + log(outputs)."""
        return 2.0**-49 * (1.0 + size)

    def extreme_log_ratios(self, prior: ArrayLike | None = None) -> types.ExtremeLogRatios | None:
        """The largest log ratios (LDP and both sides of MBP) in closed form.

        ``prior`` has shape (inputs,); None is the uniform distribution. The answer is None where the channel is large
        and has no closed form under this prior.
        """
        return self._extreme_log_ratios(self._validated_prior(prior))

    def _extreme_log_ratios(self, prior: FloatArray | None) -> types.ExtremeLogRatios | None:
        classes = self._type_classes(prior)
        return None if classes is None or classes.omitted_mass else classes.extreme_log_ratios()

    def dominating_pairs(self) -> tuple[types.RowPair, ...] | None:
        """Ordered pairs of rows whose largest hockey-stick divergence is that of the channel, at every epsilon.

        The answer is None where no few pairs are known to attain it; all ordered pairs of rows must then be compared.
        """
        return None

    def _validated_prior(self, prior: Any) -> Any:
        return None if prior is None else types.validated_prior(prior, self.inputs)


class Channel(AnyChannel):
    """A channel written out as a matrix: one row a secret, one column a release.

    Parameters
    ----------
    matrix : array_like, shape (n, m)
        Probabilities of the releases under each secret, or their natural logarithms. float32 and float64 are kept as
        they are, other numbers become float64. Rows must sum to 1 within 1e-9 (float64) or 2e-6 (float32), and are
        never renormalised; what is computed has bounds that hold for the rows as given and for rows divided by
        their sums.
    log : bool, optional
        Whether ``matrix`` holds natural logarithms; -inf stands for a zero.

    Attributes
    ----------
    cells : ndarray, shape (n, m)
        What was given, read-only; ``log`` says whether they are logarithms.

    Raises
    ------
    DomainError, ShapeError, MemoryError
        For NaN, negative cells, or a row that does not sum to 1, which the message names; for an array that is not a
        matrix, or has no rows or no columns; if a copy is needed and would not fit.

    Notes
    -----
    A C-contiguous array of floats that nobody can write to (``setflags(write=False)``), and any ``numpy.memmap``, are
    kept without a copy and read in blocks. Zero columns, releases that never occur, are allowed.

    The rows of a mapped array are read from the file that is mapped, even if another file has taken its name since;
    an error says if it was written to or truncated. Where that file cannot be known (copy-on-write maps, files that
    were renamed or removed, systems other than Linux), each block is read through the map after a check of the length
    of the file; a file that is truncated in between still ends the process.

    **Accuracy** ``mass_gap`` is within rounding of the largest gap of a row; ``tests/contracts/test_channels.py``.

    Examples
    --------
    >>> from fastpriv import Channel
    >>> q = Channel([[0.75, 0.25], [0.25, 0.75]])
    >>> q.shape, q.column(0)
    ((2, 2), array([-0.28768207, -1.38629436]))
    >>> q.then(q).matrix()
    array([[0.625, 0.375],
           [0.375, 0.625]])
    """

    __slots__ = ("cells", "log", "mass_gap", "_file", "_plain")  # noqa: RUF023  (the order of the constructor)
    _fields = ("cells", "log")

    cells: RealArray
    log: bool
    mass_gap: float
    _file: FileArray | None
    _plain: bool  # whether the cells are probabilities in memory

    def __init__(self, matrix: ArrayLike, *, log: bool = False) -> None:
        logs = validate.flag("log", log)
        array = validated_cells("matrix", matrix, "numbers", "Pass shape (n, m).", stacked=False)
        may_share = isinstance(matrix, np.memmap) or is_read_only(array)
        remedy = "Save it as .npy and pass numpy.load(path, mmap_mode='r')."
        cells = contiguous_cells("matrix", array, may_share, remedy)
        self._set(cells=cells, log=logs, _file=memory_mapped_file("matrix", cells))
        self._set(_plain=not logs and validate.map_of(cells) is None)
        self._set(mass_gap=self._largest_gap())

    def _largest_gap(self) -> float:
        """The largest distance of a row's sum from 1, rounded up; an error for a row that is not a distribution."""
        parts = parallel.blocks(len(self.cells), max(1, _CACHED_CELLS // self.outputs))
        return max(largest_gap(self._stored_rows(part.start, part.stop), self.log, part.start) for part in parts)

    def _input_count(self) -> int:
        return len(self.cells)

    def _output_count(self) -> int:
        return int(self.cells.shape[1])

    def _stored_rows(self, start: int, stop: int) -> RealArray:
        """Rows as they are stored."""
        if self._file is None:
            block = self.cells[start:stop]
            if validate.map_of(block) is None:
                return block
            validate.whole_file("matrix", block)
            return np.array(block)
        m = self.outputs
        rows = self._file.take(start * m, stop * m).reshape(stop - start, m)
        rows.setflags(write=False)
        return rows

    def _stored_cells(self) -> RealArray:
        """All cells, where they are few or read once."""
        validate.whole_file("matrix", self.cells)
        return self.cells

    def _arrays(self) -> tuple[Any, ...]:
        return self._stored_cells(), self.log

    def _rows(self, start: int, stop: int, log: bool) -> RealArray:
        block = self._stored_rows(start, stop)
        if log == self.log:
            return block
        doubles = block.astype(np.float64)  # logs of singles in doubles: later steps count them as exact
        return logs_of(doubles) if log else np.asarray(np.exp(doubles))

    def _type_classes(self, prior: FloatArray | None) -> types.TypeClasses | None:
        if self.cells.size > ENUMERABLE_CELLS:
            return None
        return types.classes_of_matrix(self._stored_rows(0, self.inputs), self.log, prior)

    def _extreme_log_ratios(self, prior: FloatArray | None) -> types.ExtremeLogRatios | None:
        numbers = _channel_quantities.of_channel(self.cells, prior, 0.0, math.inf, 15) if self._plain else None
        if numbers is None:  # logarithms, a mapped file, or a column that has to be scaled
            return super()._extreme_log_ratios(prior)
        ratios = numbers[:12:3]  # LDP over all secrets, over the support, both sides of MBP
        finite = [(x, upper - x) for x, upper in zip(ratios, numbers[2:12:3], strict=True) if x < math.inf]
        largest, error = max(finite, default=(0.0, 0.0))
        rounding = (error / largest if largest > _SMALL_RATIO else 0.0) + 4 * UNIT_ROUNDOFF
        error = max((error - rounding * x for x, error in finite), default=0.0)
        return types.ExtremeLogRatios(*ratios, rounding=rounding, error=max(0.0, error))

    def column(self, output: ArrayLike) -> RealArray:
        """Log likelihoods of one release under every secret, shape (inputs,), float64."""
        cells = self._stored_column(self._output_index(output)).astype(np.float64)
        return cells if self.log else logs_of(cells)

    def _stored_column(self, index: int) -> RealArray:
        n, m = self.shape
        if self._file is None:
            return self._stored_cells()[:, index]
        column = np.empty(n, dtype=self.cells.dtype)
        if m > _ENTRYWISE_OUTPUTS:  # most pages of the file hold no entry of the column
            for row in range(n):
                column[row : row + 1] = self._file.take(row * m + index, row * m + index + 1)
            return column
        for part in parallel.blocks(n, max(1, _CACHED_CELLS // m)):
            column[part] = self._stored_rows(part.start, part.stop)[:, index]
        return column

    def __reduce__(self) -> Any:
        cells = self._stored_cells()
        if self._file is None:  # another process opens a file by its name
            cells = np.array(cells) if validate.map_of(cells) is not None else cells
        return _unpickled_channel, (np.asarray(cells), self.log, None if self._file is None else self._file.state)

    def __repr__(self) -> str:
        if self.cells.size <= 16 and not self.log:
            return f"Channel({self.cells.tolist()})"
        n, m = self.shape
        return f"<Channel of {n:,} secrets and {m:,} releases, {self.cells.dtype}{', logs' if self.log else ''}>"


class ProductChannel(AnyChannel):
    """Independent channels side by side, each of them any number of times.

    Parameters
    ----------
    factors : sequence of AnyChannel
        The channels in order; products among them are flattened.
    powers : sequence of int, optional
        How many copies of each. Default 1.

    Notes
    -----
    A prior is None (uniform), a tuple with one prior a factor (None among them allowed, shared by its copies), or, for
    small products, one probability a secret. ``sample`` takes and gives tuples along the last axis.

    **Accuracy** as the factors; ``tests/enclosures/test_channels.py``.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse
    >>> q = RandomizedResponse(2, 0.1).power(200)
    >>> q.inputs == 2**200, round(q.extreme_log_ratios().ldp_epsilon, 9)
    (True, 20.0)
    """

    __slots__ = _fields = ("factors", "powers")

    factors: tuple[AnyChannel, ...]
    powers: tuple[int, ...]

    def __init__(self, factors: Sequence[AnyChannel], powers: ArrayLike | None = None) -> None:
        channels = validate.sequence("factors", factors, "channels")
        for factor in channels:
            validate.instance("factors", factor, AnyChannel)
        if not channels:
            raise ShapeError("factors must have at least one entry; got none. Pass one channel for each part.")
        copies = validated_powers(powers, len(channels), _MAX_COPIES)
        flat: list[tuple[AnyChannel, int]] = []
        for factor, power in zip(channels, copies, strict=True):
            if not isinstance(factor, ProductChannel):
                flat.append((factor, power))
            elif power == 1 or len(factor.factors) == 1:
                _check_listable(len(flat) + len(factor.factors))
                flat += [
                    (inner_factor, validate.count("powers", inner * power, 1, _MAX_COPIES, remedy=COPIES_REMEDY))
                    for inner_factor, inner in factor._factors_with_powers()
                ]
            else:
                _check_listable(len(flat) + len(factor.factors) * power)
                flat += list(factor._factors_with_powers()) * power
        self._set(factors=tuple(inner_factor for inner_factor, _ in flat), powers=tuple(power for _, power in flat))

    def _input_count(self) -> int:
        check_countable("inputs", self._log2_shape()[0], _MAX_COUNT_BITS, self)
        return math.prod(factor.inputs**power for factor, power in self._factors_with_powers())

    def _output_count(self) -> int:
        check_countable("outputs", self._log2_shape()[1], _MAX_COUNT_BITS, self)
        return math.prod(factor.outputs**power for factor, power in self._factors_with_powers())

    @property
    def mass_gap(self) -> float:
        """Largest distance of the sum of a row from 1."""
        return math.expm1(sum(power * math.log1p(factor.mass_gap) for factor, power in self._factors_with_powers()))

    def _log2_shape(self) -> tuple[float, float]:
        logs = [(factor._log2_shape(), float(power)) for factor, power in self._factors_with_powers()]
        inputs, outputs = (sum(power * pair[side] for pair, power in logs) for side in (0, 1))
        return inputs, outputs

    def _factors_with_powers(self) -> Iterable[tuple[AnyChannel, int]]:
        return zip(self.factors, self.powers, strict=True)

    def _factor_of_coordinates(self) -> list[AnyChannel]:
        """The factor of each coordinate."""
        coordinates = sum(self.powers)
        if coordinates > _MAX_COORDINATES:
            raise DomainError(
                f"powers must be at most {_MAX_COORDINATES} copies where coordinates are enumerated; got "
                f"{validate.shown(coordinates)}. Ask for quantities, which count equal copies together."
            )
        return [factor for factor, power in self._factors_with_powers() for _ in range(power)]

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        factors = self._factor_of_coordinates()
        logs = np.empty((stop - start, self.outputs))
        for row in range(start, stop):
            joint = np.zeros(1)
            for factor, digit in zip(factors, mixed_radix_digits(row, [f.inputs for f in factors]), strict=True):
                logs_of_factor = np.asarray(factor._rows(digit, digit + 1, True), dtype=np.float64)
                joint = (joint[:, None] + logs_of_factor).reshape(-1)
            logs[row - start] = joint
        return logs

    def _log_error(self, size: Any) -> Any:
        return 2.0**-49 * (size + sum(self.powers) * (1.0 + size / 16.0))

    def column(self, output: ArrayLike) -> ProductLikelihood:
        """Log likelihoods of one release: the sums of one column for each coordinate.

        Parameters
        ----------
        output : int or sequence
            The release, as its number or with one release a coordinate.
        """
        factors = self._factor_of_coordinates()
        if isinstance(output, (int, np.integer)) and not isinstance(output, bool):
            if len(factors) > _MAX_DIGITS:
                raise DomainError(
                    f"output must hold one release for each of the {len(factors)} coordinates where they exceed "
                    f"{_MAX_DIGITS}; got {validate.shown(output)}. Pass a sequence instead of a number."
                )
            releases: list[Any] = mixed_radix_digits(self._output_index(output), [factor.outputs for factor in factors])
        else:
            releases = list(validate.sequence("output", output, "releases"))
            if len(releases) != len(factors):
                raise ShapeError(
                    f"output must have one entry for each of the {len(factors)} coordinates; got {len(releases)}. "
                    "Pass one release a coordinate."
                )
        return ProductLikelihood(
            tuple(factor.column(release) for factor, release in zip(factors, releases, strict=True))
        )

    def sample(self, secrets: ArrayLike, *, rng: random_streams.RNGLike = None) -> Any:
        """One release for each tuple of secrets along the last axis, shape (..., coordinates).

        Returns an array of the same shape, or a tuple of arrays where some releases are sets or bits.
        """
        t = len(self._factor_of_coordinates())
        tuples: NDArray[Any] = validate.array("secrets", secrets)
        if tuples.size == 0 and tuples.shape[-1:] == (0,):
            tuples = np.empty((0, t), dtype=np.int64)
        if tuples.ndim == 0 or tuples.shape[-1] != t:
            raise ShapeError(
                f"secrets must be tuples of {t} along the last axis; got shape {tuples.shape}. "
                "Pass one secret a coordinate."
            )
        generator = random_streams.generator(rng)
        releases: list[NDArray[Any]] = []
        for factor, power in self._factors_with_powers():
            part = factor.sample(tuples[..., len(releases) : len(releases) + power], rng=generator)
            releases += [part[(slice(None),) * (tuples.ndim - 1) + (i,)] for i in range(power)]
        integers = all(array.shape == tuples.shape[:-1] for array in releases)
        return np.stack(releases, axis=-1) if integers else tuple(releases)

    def _closed_cascade(self, step: AnyChannel) -> AnyChannel | None:
        if not isinstance(step, ProductChannel) or step.powers != self.powers:
            return None
        pairs = list(zip(self.factors, step.factors, strict=True))
        if any(factor.outputs != next_factor.inputs for factor, next_factor in pairs):
            return None
        return ProductChannel([factor.then(next_factor) for factor, next_factor in pairs], self.powers)

    def _validated_prior(self, prior: Any) -> Any:
        if isinstance(prior, tuple):
            if len(prior) != len(self.factors):
                raise ShapeError(
                    f"prior must be a tuple with one entry for each of the {len(self.factors)} factors; got "
                    f"{len(prior)}. Pass one prior a factor, or None."
                )
            return tuple(factor._validated_prior(part) for factor, part in zip(self.factors, prior, strict=True))
        return None if prior is None else types.validated_prior(prior, self.inputs)

    def _factors_with_priors(self, prior: Any) -> list[tuple[AnyChannel, int, Any]] | None:
        """Factors, powers and their priors; None for a prior that is not a product."""
        if prior is not None and not isinstance(prior, tuple):
            return None
        return list(zip(self.factors, self.powers, prior or (None,) * len(self.factors), strict=True))

    def _type_classes(self, prior: Any) -> types.TypeClasses | None:
        return super()._type_classes(self._joint_prior(prior)) if self._cells_within(ENUMERABLE_CELLS) else None

    def _joint_prior(self, prior: Any) -> FloatArray | None:
        """One probability for each tuple of secrets, where the prior has one distribution for each factor."""
        if not isinstance(prior, tuple):
            return None if prior is None else np.asarray(prior)
        joint = np.ones(1)
        for factor, power, marginal in self._factors_with_priors(prior) or ():
            probabilities = np.full(factor.inputs, 1.0 / factor.inputs) if marginal is None else marginal
            for _ in range(power):
                joint = np.multiply.outer(joint, probabilities).reshape(-1)
        return joint

    def _extreme_log_ratios(self, prior: Any) -> types.ExtremeLogRatios | None:
        factors = self._factors_with_priors(prior)
        if factors is None:
            return super()._extreme_log_ratios(prior)
        extremes = []
        for factor, power, factor_prior in factors:
            extreme = factor._extreme_log_ratios(factor_prior)
            if extreme is None:
                return None
            extremes.append((extreme, power))
        ldp, support, plus, minus, error = (
            sum_or_infinity([power * getattr(extreme, name) for extreme, power in extremes])
            for name in ("ldp_epsilon", "ldp_on_support", "xi_plus", "xi_minus", "error")
        )
        rounding = max(extreme.rounding for extreme, _ in extremes) + 2e-15
        return types.ExtremeLogRatios(ldp, support, plus, minus, rounding, error)

    def dominating_pairs(self) -> tuple[types.RowPair, ...] | None:
        """One pair of every factor at each of its coordinates, in all combinations.

        Equal rows are easier to tell apart nowhere, so factors with few rows contribute all their ordered pairs.
        """
        factors = []
        for factor, power in self._factors_with_powers():
            pairs = factor.dominating_pairs() or _all_ordered_pairs(factor)
            if pairs is None:
                return None
            factors.append((pairs, power))
        return types.product_pairs(factors)

    def __repr__(self) -> str:
        parts = [f"{factor!r}" + (f" ** {power}" if power > 1 else "") for factor, power in self._factors_with_powers()]
        return f"<ProductChannel: {' x '.join(parts)}>"


def check_countable(name: str, bits: float, max_bits: int, channel: AnyChannel) -> None:
    """Refuse to compute a number of secrets or releases that has too many digits."""
    if bits > max_bits:
        raise DomainError(
            f"{name} must be a number of at most {max_bits} bits to be written; got one of about {bits:.4g} bits for "
            f"{validate.shown(channel)}. Ask for quantities that never count them, or take a smaller channel."
        )


def _relabelled(first: AnyChannel, labels: NDArray[Any]) -> Channel:
    remedy = "Pass one natural number a release, or a matrix of two dimensions."
    if labels.size != first.outputs:
        raise ShapeError(
            f"post must have one label for each of the {validate.shown(first.outputs)} releases; got {labels.size}. "
            f"{remedy}"
        )
    labels = validate.integers("labels of post", labels, constraint="integers of at least 0", remedy=remedy)
    cells = _empty_cells(first.inputs, int(labels.max()) + 1, 0)
    cells[:] = 0.0
    order = np.argsort(labels, kind="stable")
    used, starts = np.unique(labels[order], return_index=True)
    for part in _row_blocks(first):
        block = first.rows(part.start, part.stop)
        cells[part, used] = np.add.reduceat(block[:, order], starts, axis=1, dtype=np.float64)
    cells.setflags(write=False)
    return Channel(cells)


def _row_blocks(channel: AnyChannel) -> list[slice]:
    return parallel.blocks(channel.inputs, max(1, _BLOCK_CELLS // channel.outputs))


def _empty_cells(inputs: int, outputs: int, further_rows: int) -> FloatArray:
    """A matrix for a cascade, if it fits in memory together with a second step of so many rows."""
    validate.memory("cascade", min((inputs + further_rows) * outputs * 8, 2**1000),
                     "Merge releases of the second step, or take fewer secrets.")
    return np.empty((inputs, outputs))


def sum_or_infinity(terms: list[float]) -> float:
    """The sum, infinite where a term is or where it exceeds the largest double."""
    try:
        return math.inf if math.inf in terms else math.fsum(terms)
    except OverflowError:
        return math.inf


def _all_ordered_pairs(channel: AnyChannel) -> tuple[types.RowPair, ...] | None:
    """All ordered pairs of rows of a channel with few rows; None if there are too many."""
    if channel.inputs > _MAX_PAIRED_ROWS or channel.outputs > _MAX_PAIRED_OUTPUTS:
        return None
    rows = channel._log_rows(0, channel.inputs)
    return types.ordered_pairs(rows) if len(rows) > 1 else (types.RowPair.trivial(),)


def _check_listable(factors: int) -> None:
    """Refuse a product with too many factors to list."""
    if factors > _MAX_COORDINATES:
        raise DomainError(
            f"factors must be at most {_MAX_COORDINATES}, with all products flattened; got "
            f"{validate.shown(factors)}. Put equal factors together with powers, as in q.power(1000)."
        )


def mixed_radix_digits(number: int, bases: list[int]) -> list[int]:
    """Digits of a number in mixed bases, the most significant first."""
    digits = []
    for base in reversed(bases):
        number, digit = divmod(number, base)
        digits.append(digit)
    return digits[::-1]


def _unpickled_channel(cells: RealArray, log: bool, state: tuple[int, int, int] | None = None) -> Channel:
    cells.setflags(write=False)
    channel = Channel(cells, log=log)
    if channel._file is not None and state not in (None, channel._file.state):
        raise changed_file("matrix", channel._file.path, "another was found under its name in another process")
    return channel
