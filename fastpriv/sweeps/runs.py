"""``sweep``: one quantity over a table of settings, of which a killed run loses the unfinished cells alone.

The cells are cut into blocks of 8,192. The results of a block are rows of the store under keys that begin with a digest
of the keys of its cells: a block whose cells are all there is never computed again. Cells that an earlier sweep of the
same quantity left in other blocks are copied from these. What is missing is computed in batches, in any order and by
any number of workers; each batch is committed as it comes in.

A run that evaluates cells in its own process notes so in the store, and clears the note when it ends. If a run left its
note, one of its cells may have killed it, and the next run evaluates cells in child processes. A batch that ends its
process is halved until the cell is alone; a cell that ends its process in every attempt is a row with its error.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..base import executors, parallel, validate
from ..base.errors import DomainError, WorkerDiedError
from ..base.files import check_writable_file
from ..base.numerics import WordArray
from ..base.store import ResultStore
from .cells import Batch, BatchOutcome, evaluate, failed_cells, pack, unpack
from .parameter_grid import BLOCK, MAX_CELLS, ParameterGrid, make_parameter_grid, read_spec
from .quantities import SweepQuantity, find_quantity
from .sweep_table import ROWS, SweepPlan, SweepTable, block_key, checked_target, first_positions, positions_in

__all__ = ["SweepProgress", "sweep"]

_WINDOW = 64  # blocks whose missing cells are in memory at once: 0.5 million cells, 30 MB
_BATCH_SECONDS = 0.2  # which a batch of single cells should take: far above the overhead of a task, some milliseconds
_FIRST_BATCH = 16  # cells of the first batches, from whose times the later ones are sized
_MAX_BATCH = BLOCK  # cells
_INDEXED_CELLS = 2**23  # cells of other blocks that are looked up one by one, in 200 MB; of a larger store none are
_ATTEMPTS = 4  # of a cell whose process dies, alone from the second on: nodes of a cluster die by themselves too
_RUNNING = "running"  # name of the remark of a store whose cells are evaluated in the process of the sweep
# The error of a cell that ends its process each time.
_DEATH = (
    "WorkerDiedError: the worker process must survive the cell; got its end each time that it was tried. Look for a "
    "lack of memory, or a crash in the function."
)
_PILOT_CELLS = 12  # cells of a dry run, evenly spaced
_PILOT_STACK = 1024  # the same for an elementwise quantity, in one call
_BYTES_PER_CELL = 16 + 4 + 4 + 24 + 2  # of a cell with one number in the store: key, seconds, error, numbers, label
_PARQUET_SHARE = 0.7  # of these in a Parquet file, whose columns of settings are compressed


@dataclass(frozen=True)
class SweepProgress:
    """How far a sweep is.

    Parameters
    ----------
    done, failed, total : int
        Cells that are finished, those among them with an error, and all.
    computed : int
        Cells that this run finished; the others were in the store.
    seconds : float
        Since this run started.
    """

    done: int
    failed: int
    total: int
    computed: int
    seconds: float

    @property
    def rate(self) -> float:
        """Cells a second in this run."""
        return self.computed / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float:
        """Seconds to the end at this rate; inf before the first cell."""
        if self.done >= self.total:
            return 0.0
        return (self.total - self.done) / self.rate if self.rate else float("inf")

    def __str__(self) -> str:
        share = 100.0 * self.done / self.total if self.total else 100.0
        left = f"{_duration(self.seconds_left)} left" if self.done < self.total else f"took {_duration(self.seconds)}"
        return (
            f"{self.done:,} of {self.total:,} cells done ({share:.1f}%), {self.failed:,} failed, {self.rate:,.0f} "
            f"cells/s, {left}"
        )

    def notes(self) -> dict[str, str]:
        """The same as remarks of a store."""
        return {
            "done": str(self.done), "failed": str(self.failed), "total": str(self.total),
            "computed": str(self.computed), "seconds": f"{self.seconds:.3f}", "updated": f"{time.time():.0f}",
        }  # fmt: skip

    @classmethod
    def of_notes(cls, notes: Mapping[str, str]) -> SweepProgress:
        """Read it from the remarks of a store."""
        try:
            done, failed, total, computed = (int(notes[name]) for name in ("done", "failed", "total", "computed"))
            return cls(done, failed, total, computed, float(notes["seconds"]))
        except (KeyError, ValueError):
            raise DomainError(
                "store must be one of a sweep; got none of its remarks. Name the store of a sweep."
            ) from None


def sweep(
    quantity: str | Callable[..., Any] | Mapping[str, Any] | os.PathLike[str], table: Any = None, *,
    grid: Mapping[str, Any] | None = None, zip: Mapping[str, Any] | None = None,
    replicates: int = 1, seed: int | None = None, store: str | os.PathLike[str] | None = None, resume: bool = True,
    out: str | os.PathLike[str] | None = None, shard: tuple[int, int] | None = None,
    merge: Sequence[str | os.PathLike[str]] = (), n_jobs: int | None = None, executor: Any = None,
    progress: bool | Callable[[int, int], None] | None = None, dry_run: bool = False,
) -> SweepTable | SweepPlan:  # fmt: skip
    """Evaluate a quantity in every cell of a table of settings, and tabulate the results with their bounds.

    Parameters
    ----------
    quantity : str, callable, mapping or path-like
        A name, such as ``"subsampled_gaussian_delta"``, ``"bac_capacity"`` or any function of ``fastpriv.conversions``
        or ``fastpriv.special`` (``fastpriv sweep --list`` names all); a function that is called with the settings as
        keywords and returns a number, an Estimate, or a dict of these; its place as text, ``"module:function"`` or
        ``"file.py:function"``. Or a whole specification: a mapping or the path of a TOML file with the keys quantity,
        grid, zip, table, replicates and seed.
    table : path-like, data frame, or sequence of mappings, optional
        Rows of settings: a CSV or Parquet file, a data frame of pandas, polars or Arrow, or a list of dicts.
    grid : mapping of str to array_like, optional
        The values of each parameter, of which all combinations are taken; the last parameter varies fastest. A single
        value stands for itself, text such as ``"0.5..5:100"`` (equal ratios) or ``"0:5:11"`` (equal steps) for a grid.
    zip : mapping of str to array_like, optional
        Parameters that vary together. ``table``, ``zip`` and ``grid`` may be combined: all combinations of their rows.
    replicates : int
        How often each cell is evaluated, each time with random numbers of its own; a column ``replicate`` counts.
    seed : int, optional
        For functions with a parameter ``rng``, which are passed a ``numpy.random.Generator``. Its stream depends on the
        seed, the settings of the cell and the replicate alone. None takes the seed of the store, or a fresh one.
    store : path-like, optional
        A file where every finished batch is kept. A run with the same store computes only what is missing there.
    resume : bool
        False empties the store first.
    out : path-like, optional
        File for the table, ``.parquet`` or ``.csv``, written when all cells are finished.
    shard : (int, int), optional
        ``(i, n)`` computes the i-th of n parts, i from 1, for instance one on each machine, with a store for each.
    merge : sequence of path-like
        Stores of shards, whose cells are copied. Nothing is computed then.
    n_jobs : int, optional
        Workers, as in joblib: threads for the quantities of fastpriv, processes for functions of Python.
    executor : optional
        Who does the work instead: ``"processes"`` or any ``concurrent.futures.Executor``. Clusters of dask and Ray are
        backends of ``joblib.parallel_config``.
    progress : bool or callable, optional
        True shows the bar of tqdm, with cells done, rate and time left, on stderr if that is a terminal; a callable is
        called with cells done and all cells.
    dry_run : bool
        Evaluate a few cells only and predict the time and the size of all.

    Returns
    -------
    SweepTable
        Columns: the settings, value, lower, upper, kind, unit, seconds, error. A SweepPlan for a dry run.

    Raises
    ------
    DomainError
        For an unknown quantity or parameter, more than 1e10 cells, a store of another version, quantity or seed, one
        that another run writes, and a function that returns neither a number nor an Estimate nor a dict of these. What
        was finished before is kept in the store.
    OSError
        If the store or ``out`` cannot be written.

    Notes
    -----
    An error of a cell is its row: ``error`` holds the text, the numbers are NaN, all other cells are computed. A cell
    that ends its worker process is tried again alone, and then has a row with its error too; one that ends the process
    of the sweep is found when the sweep is run again with its ``store``. ``lower`` and ``upper`` are NaN for results
    without bounds. ``seconds``, the time of a cell, is measured and is no part of the result: two tables are equal if
    all other columns are.

    **Accuracy** Every number is that of the quantity, bit for bit, for any ``n_jobs``, ``executor``, order, number of
    interruptions, or cells added later; ``tests/sweeps/test_sweep_values.py`` and ``test_kills.py``.

    Examples
    --------
    >>> import fastpriv
    >>> table = fastpriv.sweep("mbp_from_ldp", grid={"epsilon": [0.5, 1.0], "pi_min": [0.0, 0.25]})
    >>> table["upper"].round(4)
    array([0.5   , 0.3965, 1.    , 0.828 ])
    >>> fastpriv.sweep(lambda x, y: x * y, grid={"x": [2, 3], "y": 5})["value"]
    array([10., 15.])
    """
    if isinstance(quantity, (Mapping, os.PathLike)) or (isinstance(quantity, str) and quantity.endswith(".toml")):
        return sweep(
            **_merged(read_spec(quantity), table=table, grid=grid, zip=zip, replicates=replicates, seed=seed),
            store=store, resume=resume, out=out, shard=shard, merge=merge, n_jobs=n_jobs, executor=executor,
            progress=progress, dry_run=dry_run,
        )  # fmt: skip
    parallel.checked(n_jobs, progress)
    executors.checked(executor, n_jobs)
    merge = validate.sequence("merge", merge, "files")
    result = find_quantity(quantity)
    settings = make_parameter_grid(table, grid, zip, replicates, result.is_word)
    result.check_parameters(tuple(name for name in settings.names if name != "replicate"))
    if shard is not None:
        settings = settings.shard(*_shard(shard))
    if settings.count > MAX_CELLS:
        raise DomainError(
            f"settings must make at most {MAX_CELLS:,} cells in one run; got {settings.count:,}. Take fewer values, or "
            f"run {-(-settings.count // MAX_CELLS):,} shards or more (--shard i/n, shard=(i, n)), each with a store."
        )
    if seed is not None:
        seed = validate.count("seed", seed, 0)
    if validate.flag("dry_run", dry_run):
        return _plan(result, settings, seed or 0, n_jobs)
    target = None if out is None else checked_target("out", out)
    if target is not None:
        check_writable_file(target)
    keep = validate.flag("resume", resume)
    with ExitStack() as stack:
        if store is None:
            seed = _fresh_seed() if seed is None else seed
            results = ResultStore.temporary(_identity(result, seed))
        else:
            seed = _seed(result, seed, store, keep)
            results = stack.enter_context(ResultStore.open(store, identity=_identity(result, seed), resume=keep))
        others = [stack.enter_context(_shard_store(path, results)) for path in merge]
        run = _Run(result, settings, seed, results, others, n_jobs, executor, progress)
        run.compute(only_copy=bool(others))
        made = SweepTable(result.name, settings, seed if result.takes_rng else None, results)
        if target is not None:
            made.save(target)
    if store is not None:
        made._reopen(validate.path("store", store))
    return made


class _Run:
    """One run of a sweep: which cells are missing, their evaluation, and the commits."""

    def __init__(
        self, quantity: SweepQuantity, settings: ParameterGrid, seed: int, store: ResultStore,
        others: list[ResultStore], n_jobs: int | None, executor: Any, progress: Any,
    ) -> None:  # fmt: skip
        self.quantity, self.settings, self.seed, self.store, self.others = quantity, settings, seed, store, others
        if executor is None and quantity.together is None and quantity.source and _workers(n_jobs) > 1:
            executor = "processes"
        self.n_jobs, self.executor = n_jobs, executor
        self.done = self.failed = self.computed = 0
        self.start = time.monotonic()
        self.batch_cells = _MAX_BATCH if quantity.together is not None else _FIRST_BATCH
        self.sizes_known = quantity.together is not None
        self.bases: dict[int, int] = {}  # first key of each block of the window
        self.rows: dict[int, int] = {}  # rows that each block of the window has in the store
        self.index: _CellIndex | None = None
        self.has_rows = bool(store.path and store.keys()) or bool(others)
        self.function = functools.partial(evaluate, quantity, seed)
        # Whether a cell may end this process, and the store outlives it.
        in_process = executor is None or isinstance(executor, ThreadPoolExecutor)
        if not in_process:
            try:
                parallel.pickled(self.function)
            except Exception as error:  # pickling runs code of the caller's objects, which may raise anything
                raise DomainError(
                    f"quantity must be a function that other processes can be sent; got {quantity.name}: "
                    f"{type(error).__name__}: {error}. Pass n_jobs=1, or make inside of it what it holds."
                ) from None
        self.is_risky = in_process and quantity.together is None and store.path is not None
        may_have_killed = self.is_risky and store.notes().get(_RUNNING)
        if may_have_killed and parallel.pickled_or_none(self.function) is not None:
            self.n_jobs = _workers(n_jobs) if executor is None else executor._max_workers
            self.executor, self.is_risky = "processes", False
        self.report, self.close = parallel.progress_reporter(progress, settings.count, unit="cell")

    def compute(self, only_copy: bool) -> None:
        """Compute all that is missing, or raise if it may only be copied."""
        missing_cells = 0
        try:
            self._note([])
            if self.is_risky:
                self.store.put_many([], {_RUNNING: "yes"})
            for first in range(0, self.settings.blocks(), _WINDOW):
                missing = []
                self.rows.clear()
                self.bases.clear()
                for block in range(first, min(first + _WINDOW, self.settings.blocks())):
                    batch = self._missing(block)
                    if batch is not None:
                        missing.append((block, batch))
                        missing_cells += len(batch.keys)
                if missing and not only_copy:
                    self._evaluate(missing)
            if missing_cells and only_copy:
                raise DomainError(
                    f"merge must be the stores of all shards; got {self.settings.count - missing_cells:,} of "
                    f"{self.settings.count:,} cells. Run the missing shards to their end, or leave merge out to "
                    "compute what is missing."
                )
        finally:
            with suppress(OSError, DomainError):
                self.store.put_many([], {_RUNNING: ""})
            self.close()

    def progress(self) -> SweepProgress:
        return SweepProgress(self.done, self.failed, self.settings.count, self.computed, time.monotonic() - self.start)

    def _missing(self, block: int) -> Batch | None:
        """Return the cells of a block that the store lacks, None if it has all."""
        cells = self.settings.block(block)
        keys = self.settings.keys(cells)
        base = self.bases[block] = block_key(keys)
        self.rows[block], have, failed = 0, np.empty((0, 2), dtype=np.uint64), 0
        for key, payload in self.store.items(base, base + ROWS - 1):
            evaluated = self.store.unpacked(payload, unpack)
            have, failed = np.concatenate([have, evaluated.keys]), failed + int((evaluated.errors >= 0).sum())
            self.rows[block] = key - base + 1
        for other in self.others:
            have, failed = self._copied(block, (row for _, row in other.items(base, base + ROWS - 1)), have, failed)
        lacking = _without(keys, have)
        if lacking.size and self.has_rows:
            if self.index is None:
                self.index = _CellIndex([self.store, *self.others])
            have, failed = self._copied(block, self.index.rows(keys[lacking]), have, failed)
            lacking = _without(keys, have)
        self.done += len(cells) - lacking.size
        self.failed += failed
        self._report()
        if not lacking.size:
            return None
        positions = lacking + cells.start
        distinct = first_positions(keys[lacking])  # a cell may be listed twice
        self.done += lacking.size - distinct.size
        positions = positions[distinct]
        return Batch(self.settings.columns(positions), keys[lacking][distinct])

    def _copied(self, block: int, rows: Iterator[bytes], have: WordArray, failed: int) -> tuple[WordArray, int]:
        """Put rows of other places under the key of this block."""
        items = []
        for payload in rows:
            evaluated = self.store.unpacked(payload, unpack)
            if _without(evaluated.keys, have).size:
                items.append((self.bases[block] + self.rows[block], payload))
                self.rows[block] += 1
                failed += int((evaluated.errors >= 0).sum())
                have = np.concatenate([have, evaluated.keys])
        if items:
            self.store.put_many(items)
        return have, failed

    def _evaluate(self, missing: list[tuple[int, Batch]]) -> None:
        """Evaluate the missing cells of a window."""
        while missing and not self.sizes_known:  # a few small batches first, whose times size the later ones
            (block, batch), *missing = missing
            pilot = _FIRST_BATCH * _workers(self.n_jobs)
            if len(batch.keys) > pilot:
                missing.insert(0, (block, batch.select(slice(pilot, None))))
            missing = self._round([(block, batch.select(slice(pilot)))]) + missing
        while missing:
            missing = self._round(missing)

    def _round(self, missing: list[tuple[int, Batch]]) -> list[tuple[int, Batch]]:
        """Evaluate cells in batches; return what is left of them."""
        tasks = [
            (block, batch.select(part))
            for block, batch in missing
            for part in parallel.blocks(len(batch.keys), self.batch_cells)
        ]
        # A batch that ends its worker is halved at once; a cell is tried again when there are cells alone.
        attempts = 1 if any(len(batch.keys) > 1 for _, batch in tasks) else _ATTEMPTS
        left: list[tuple[int, Batch]] = []
        times: list[tuple[float, int]] = []
        batches = (batch for _, batch in tasks)
        with closing(
            executors.completed(
                self.function, batches, executor=self.executor, n_jobs=self.n_jobs, max_attempts=attempts
            )
        ) as outcomes:
            for index, outcome in outcomes:
                block, batch = tasks[index]
                left += [(block, part) for part in self._took(block, batch, outcome, times, attempts)]
        cells = sum(done for _, done in times)
        if cells and self.quantity.together is None:
            spent = sum(seconds for seconds, _ in times)
            self.batch_cells = int(max(1, min(cells * _BATCH_SECONDS, _MAX_BATCH * spent) / spent)) if spent else 1
            self.sizes_known = True
        return left

    def _took(
        self, block: int, batch: Batch, outcome: executors.Outcome, times: list[tuple[float, int]], attempts: int
    ) -> list[Batch]:
        """Commit the outcome of a batch; return the batches that are left to do."""
        if isinstance(outcome.error, WorkerDiedError):  # one of the cells ends its process: halves tell which
            half = len(batch.keys) // 2
            if half:
                return [batch.select(slice(None, half)), batch.select(slice(half, None))]
            if attempts < _ATTEMPTS:
                return [batch]
            answer = failed_cells(batch, _DEATH)
        elif outcome.error is not None:
            raise outcome.error
        else:
            answer = outcome.result
        self._commit(block, answer)
        if answer.fatal:
            raise DomainError(answer.fatal)
        times.append((answer.seconds, answer.done))
        return [batch.select(slice(answer.done, None))] if answer.done < len(batch.keys) else []

    def _commit(self, block: int, found: BatchOutcome) -> None:
        if not found.done:
            return
        self.done += found.done
        self.computed += found.done
        self.failed += found.failed
        self._note([(self.bases[block] + self.rows[block], found.payload)])
        self.rows[block] += 1
        self._report()

    def _note(self, items: list[tuple[int, bytes]]) -> None:
        self.store.put_many(items, self.progress().notes())

    def _report(self) -> None:
        self.report(self.done)


class _CellIndex:
    """Where the cells of stores are, of those that are not too large for it."""

    def __init__(self, stores: Sequence[ResultStore]) -> None:
        self.places: list[tuple[ResultStore, int]] = []
        keys, rows = [np.empty((0, 2), dtype=np.uint64)], [np.empty(0, dtype=np.int64)]
        count = 0
        for store in stores:
            for key, payload in store.items():
                result = store.unpacked(payload, unpack).keys
                count += len(result)
                if count > _INDEXED_CELLS:
                    break
                keys.append(result)
                rows.append(np.full(len(result), len(self.places)))
                self.places.append((store, key))
        self.keys, self.place_of_cell = np.concatenate(keys), np.concatenate(rows)
        order = np.argsort(self.keys[:, 0], kind="stable")
        self.keys, self.place_of_cell = self.keys[order], self.place_of_cell[order]

    def rows(self, wanted: WordArray) -> Iterator[bytes]:
        """Yield packed results of the wanted cells that are there."""
        result = positions_in(self.keys, wanted, is_sorted=True)
        for index in np.unique(self.place_of_cell[result[result >= 0]]).tolist():
            store, key = self.places[index]
            payload = store.get(key)
            if payload is not None:
                evaluated = store.unpacked(payload, unpack)
                cells = positions_in(evaluated.keys, wanted)
                yield pack(evaluated, np.unique(cells[cells >= 0]))


def _without(keys: WordArray, have: WordArray) -> NDArray[np.intp]:
    """Return the positions of the keys that are not among those that are there."""
    if keys.shape == have.shape and np.array_equal(keys, have):
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(positions_in(have, keys) < 0)


def _merged(spec: dict[str, Any], **given: Any) -> dict[str, Any]:
    """Return the keywords of a specification; those that are passed beside it may only be what it lacks."""
    for name, value in given.items():
        if value is None or (name == "replicates" and value == 1):
            continue
        if name in spec:
            raise DomainError(f"{name} must be given once; got it in the specification and beside it. Drop one.")
        spec[name] = value
    return spec


def _shard(shard: Any) -> tuple[int, int]:
    pair = validate.sequence("shard", shard, "two numbers")
    if len(pair) != 2:
        raise DomainError(
            f"shard must be two numbers (i, n); got {validate.shown(shard)}. Pass (1, 10) for the first of ten."
        )
    shards = validate.count("shard", pair[1])
    return validate.count("shard", pair[0], maximum=shards), shards


def _fresh_seed() -> int:
    return int.from_bytes(os.urandom(8), "little")


def _seed(quantity: SweepQuantity, seed: int | None, store: Any, keep: bool) -> int:
    """Return the seed; that of the store where none is given."""
    if seed is not None or not quantity.takes_rng:
        return seed or 0
    if keep and validate.path("store", store).is_file():
        with ResultStore.read(store) as result:
            text = result.identity.get("seed", "")
            if text.isdecimal():
                return int(text)
    return _fresh_seed()


def _identity(quantity: SweepQuantity, seed: int) -> dict[str, str]:
    """Return what the results of a store depend on besides the settings, which are in the keys of cells."""
    result = {"version": __version__, "quantity": quantity.name, "source": quantity.source or "fastpriv"}
    return result | ({"seed": str(seed)} if quantity.takes_rng else {})


def _shard_store(path: Any, results: ResultStore) -> ResultStore:
    """Open the store of a shard, which must have the identity of the store that it is copied to."""
    store = ResultStore.read(path, name="merge")
    for word, value in results.identity.items():
        if store.identity.get(word) != value:
            store.close()
            raise DomainError(
                f"merge must be stores of the same {word}; got {str(store.path)!r}, which has "
                f"{validate.shown(store.identity.get(word))} and not {validate.shown(value)}. Leave it out."
            )
    return store


def _workers(n_jobs: int | None) -> int:
    """Return the number of workers, as joblib counts them."""
    if n_jobs == 1:
        return 1
    backend, workers = parallel.configured_workers(n_jobs)
    return max(int(backend.effective_n_jobs(workers)), 1)


def _plan(quantity: SweepQuantity, settings: ParameterGrid, seed: int, n_jobs: int | None) -> SweepPlan:
    """Evaluate a few cells and predict time and size of all."""
    count = settings.count
    if quantity.together is not None:
        first = max(0, count // 2 - _PILOT_STACK // 2)
        cells = np.arange(first, min(first + _PILOT_STACK, count))
    else:
        cells = np.unique(np.linspace(0, count - 1, _PILOT_CELLS).astype(np.int64))
    batch = Batch(settings.columns(cells), settings.keys(cells))
    evaluate(quantity, seed, batch.select(slice(0, 1)))  # the first call loads modules
    start = time.perf_counter()
    outcome = evaluate(quantity, seed, batch)
    if outcome.fatal:
        raise DomainError(outcome.fatal)
    each = (time.perf_counter() - start) / outcome.done
    size = len(outcome.payload) / outcome.done if outcome.done > _PILOT_CELLS else _BYTES_PER_CELL
    texts = unpack(outcome.payload).texts
    return SweepPlan(
        quantity.name, count, outcome.done, outcome.failed, texts[0] if texts else "",
        each, each * count / _workers(n_jobs), int(size * count),
        int((_PARQUET_SHARE * size + 8 * len(settings.names)) * count),
    )  # fmt: skip


def _duration(seconds: float) -> str:
    """Return a length of time in words."""
    if not np.isfinite(seconds):
        return "unknown time"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = int(seconds // 60)
    return f"{minutes} min {seconds % 60:.0f} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
