"""``sweep``: one quantity over a table of settings, of which a killed run loses the unfinished cells alone.

Cells are computed in batches, in any order and by any number of workers. The results of a batch are a row of the store,
committed as it comes in, with the keys of its cells: cells of a store are never computed again, whatever grid they were
in. An index of all keys of the store says which cells are missing.

A run that evaluates cells in its own process notes so in the store, and clears the note when it ends. If a run left its
note, one of its cells may have killed it, and the next run evaluates cells in child processes. A batch that ends its
process is halved until the cell is alone; a cell that ends its process in every attempt is a row with its error.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .. import __version__
from ..base import executors, parallel, validate
from ..base.errors import DomainError, WorkerDiedError
from ..base.store import ResultStore
from ..base.table import table_path
from .cells import Batch, BatchOutcome, BatchResults, evaluate
from .parameter_grid import BLOCK, MAX_CELLS, ParameterGrid, make_parameter_grid, read_spec
from .quantities import SweepQuantity, find_quantity
from .sweep_table import CellIndex, SweepTable

_WINDOW = 64  # blocks whose missing cells are in memory at once: 0.5 million cells, 30 MB
_BATCHES_PER_WORKER = 4  # into which the missing cells of a window are cut, so that no worker waits for the last one
_ATTEMPTS = 4  # of a cell whose process dies, alone from the second on: nodes of a cluster die by themselves too
_RUNNING = "running"  # name of the remark of a store whose cells are evaluated in the process of the sweep
# The error of a cell that ends its process each time.
_DEATH = (
    "WorkerDiedError: the worker process must survive the cell; got its end each time that it was tried. Look for a "
    "lack of memory, or a crash in the function."
)


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
        return {field.name: json.dumps(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def of_notes(cls, notes: Mapping[str, str]) -> SweepProgress:
        """Read it from the remarks of a store."""
        try:
            return cls(**{field.name: json.loads(notes[field.name]) for field in fields(cls)})
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
    progress: bool | Callable[[int, int], None] | None = None,
) -> SweepTable:
    """Evaluate a quantity in every cell of a table of settings, and tabulate the results with their bounds.

    Parameters
    ----------
    quantity : str, callable, mapping or path-like
        A name, such as ``"sampled_gaussian_delta"``, ``"bac_capacity"`` or any function of ``fastpriv.conversions``
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
        ``"processes"`` for processes of this machine whatever the quantity. Clusters of dask and Ray are backends of
        ``joblib.parallel_config``.
    progress : bool or callable, optional
        True shows the bar of tqdm, with cells done, rate and time left, on stderr if that is a terminal; a callable is
        called with cells done and all cells.

    Returns
    -------
    SweepTable
        Columns: the settings, value, lower, upper, kind, unit, seconds, error.

    Raises
    ------
    DomainError
        For an unknown quantity or parameter, more than 1e8 cells, a store of another version, quantity or seed, one
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
            progress=progress,
        )
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
    target = None if out is None else table_path("out", out)
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
    ) -> None:
        self.settings, self.store, self.others = settings, store, others
        self.is_elementwise, self.batch = quantity.together is not None, quantity.batch
        if executor is None and not self.is_elementwise and quantity.source and _workers(n_jobs) > 1:
            executor = "processes"
        self.n_jobs, self.executor = n_jobs, executor
        self.done = self.failed = self.computed = 0
        self.start = time.monotonic()
        self.function = functools.partial(evaluate, quantity, seed)
        if executor is not None:
            try:
                parallel.pickled(self.function)
            except Exception as error:  # pickling runs code of the caller's objects, which may raise anything
                raise DomainError(
                    f"quantity must be a function that other processes can be sent; got {quantity.name}: "
                    f"{type(error).__name__}: {error}. Pass n_jobs=1, or make inside of it what it holds."
                ) from None
        # Whether a cell may end this process, and the store outlives it.
        self.is_risky = executor is None and not self.is_elementwise and store.path is not None
        may_have_killed = self.is_risky and store.notes().get(_RUNNING)
        if may_have_killed and parallel.pickled_or_none(self.function) is not None:
            self.n_jobs, self.executor, self.is_risky = _workers(n_jobs), "processes", False
        self.next_row = max(store.keys(), default=-1) + 1
        self.report, self.close = parallel.progress_reporter(progress, settings.count, unit="cell")

    def compute(self, only_copy: bool) -> None:
        """Compute all that is missing, or raise if it may only be copied."""
        try:
            self._commit([])
            if self.is_risky:
                self.store.put_many([], {_RUNNING: "yes"})
            for other in self.others:
                self._copy(other)
            index = CellIndex(self.store)
            for first in range(0, self.settings.blocks(), _WINDOW):
                blocks = range(first, min(first + _WINDOW, self.settings.blocks()))
                missing = [batch for block in blocks if len((batch := self._missing(index, block)).keys)]
                if not only_copy:
                    self._evaluate(missing)
            if self.done < self.settings.count:
                raise DomainError(
                    f"merge must be the stores of all shards; got {self.done:,} of {self.settings.count:,} cells. Run "
                    "the missing shards to their end, or leave merge out to compute what is missing."
                )
        finally:
            with suppress(OSError, DomainError):
                self.store.put_many([], {_RUNNING: ""})
            self.close()

    def _copy(self, other: ResultStore) -> None:
        """Copy the rows of another store with cells that this one lacks."""
        index = CellIndex(self.store)
        for _, payload in other.items():
            if index.missing(other.unpacked(payload, BatchResults.unpack).keys)[0].size:
                self._commit([payload])

    def _missing(self, index: CellIndex, block: int) -> Batch:
        """Return the cells of a block that the store lacks, each of them once."""
        cells = self.settings.block(block)
        keys = self.settings.keys(cells)
        lacking, failed = index.missing(keys)
        distinct = lacking[np.sort(np.unique(keys[lacking, 0], return_index=True)[1])]
        self.done += len(cells) - distinct.size
        self.failed += failed
        self.report(self.done)
        return Batch(self.settings.columns(distinct + cells.start), keys[distinct])

    def _evaluate(self, missing: list[Batch]) -> None:
        """Evaluate the missing cells of a window; a cell whose process died is tried again when it is alone."""
        cells = sum(len(batch.keys) for batch in missing)
        workers = _workers(-1 if self.executor and self.n_jobs is None else self.n_jobs)
        size = self.batch or BLOCK
        if not self.is_elementwise:
            size = min(max(1, -(-cells // (_BATCHES_PER_WORKER * workers))), BLOCK)
        parts = [batch.select(part) for batch in missing for part in parallel.blocks(len(batch.keys), size)]
        self._round(self._round(parts, 1), _ATTEMPTS)

    def _round(self, batches: list[Batch], attempts: int) -> list[Batch]:
        """Evaluate batches; return the cells that ended their processes, if they may be tried again."""
        waiting, started, suspects = deque(batches), list[Batch](), list[Batch]()

        def tasks() -> Iterator[Batch]:
            while waiting:
                started.append(waiting.popleft())
                yield started[-1]

        while waiting:
            started.clear()
            options: dict[str, Any] = {"executor": self.executor, "n_jobs": self.n_jobs, "max_attempts": attempts}
            with closing(executors.completed(self.function, tasks(), **options)) as outcomes:
                for index, outcome in outcomes:
                    batch = started[index]
                    half = len(batch.keys) // 2
                    if isinstance(outcome.error, WorkerDiedError) and half:
                        waiting += [batch.select(slice(None, half)), batch.select(slice(half, None))]
                    elif isinstance(outcome.error, WorkerDiedError) and attempts < _ATTEMPTS:
                        suspects.append(batch)
                    elif isinstance(outcome.error, WorkerDiedError):
                        results = BatchResults(batch.keys)
                        results.fail(slice(None), _DEATH)
                        self._took(results.outcome(len(batch.keys)))
                    elif outcome.error is not None:
                        raise outcome.error
                    else:
                        self._took(outcome.result)
                        if outcome.result.done < len(batch.keys):
                            waiting.append(batch.select(slice(outcome.result.done, None)))
        return suspects

    def _took(self, outcome: BatchOutcome) -> None:
        """Commit the outcome of a batch."""
        self.done += outcome.done
        self.computed += outcome.done
        self.failed += outcome.failed
        if outcome.done:
            self._commit([outcome.payload])
            self.report(self.done)
        if outcome.fatal:
            raise DomainError(outcome.fatal)

    def _commit(self, payloads: list[bytes]) -> None:
        seconds = time.monotonic() - self.start
        progress = SweepProgress(self.done, self.failed, self.settings.count, self.computed, seconds)
        self.store.put_many(enumerate(payloads, start=self.next_row), progress.notes())
        self.next_row += len(payloads)


def _merged(spec: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    """Return the keywords of a specification; those that are passed beside it may only be what it lacks."""
    for name, value in keywords.items():
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


def _duration(seconds: float) -> str:
    """Return a length of time in words."""
    if not np.isfinite(seconds):
        return "unknown time"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = int(seconds // 60)
    return f"{minutes} min {seconds % 60:.0f} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
