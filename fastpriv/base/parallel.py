"""Work in blocks that depend neither on the number of workers nor on their kind: threads, or the processes or the
cluster of a joblib backend that the caller configured. The one owner of joblib; ``executors`` runs work that lasts."""

from __future__ import annotations

import itertools
import os
import pickle
import threading
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from time import monotonic
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import validate
from .errors import DomainError, WorkerDiedError, warned

__all__ = [
    "Outcome", "Progress", "Threads", "announced", "backend_outcomes", "blocks", "checked", "configured_workers",
    "is_cluster", "on_one_worker", "ordered_map", "pickled", "pickled_or_none", "process_pool", "progress_reporter",
    "run_locally", "run_pickled", "run_task",
]

Result = TypeVar("Result")
Progress = bool | Callable[[int, int], None] | None

_MAX_JOBS = 2**16  # threads or processes; more would only hold memory
_TASKS_PER_WORKER = 8  # tasks in one round of a backend, or ahead of threads: the delay before results are seen
_LAST_TASKS = 0.5  # seconds that closing waits for tasks of threads, which cannot be stopped
_CACHED_FUNCTIONS = 4  # latest calls; nested calls alternate between two or three
_IGNORED_WARNINGS = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)  # as Python does


def blocks(total: int, size: int) -> list[slice]:
    """Consecutive slices of at most ``size`` that cover ``range(total)``."""
    return [slice(start, min(start + size, total)) for start in range(0, total, size)]


def checked(n_jobs: Any, progress: Any = None) -> None:
    """Check both arguments, also where the work is too short to use them."""
    if n_jobs is not None:
        whole = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, (bool, np.bool_))
        if not whole or n_jobs == 0:
            raise DomainError(
                f"n_jobs must be a non-zero integer or None; got {validate.shown(n_jobs)}. Pass -1 for all cores."
            )
        if abs(int(n_jobs)) > _MAX_JOBS:
            raise DomainError(
                f"n_jobs must be at most {_MAX_JOBS} in size; got {validate.shown(n_jobs)}. Pass -1 for all cores."
            )
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise DomainError(
            f"progress must be True or False, or a function; got {validate.shown(progress)}. "
            "A function is called with the number of pieces done and the total."
        )


def ordered_map(
    function: Callable[[Any], Result], tasks: Sequence[Any], *, n_jobs: int | None = None, progress: Progress = None,
    brief: bool = False, shared: bool = False,
) -> Generator[Result, None, None]:
    """Yield ``function(task)`` in the order of ``tasks``, computed by the workers of joblib.

    Workers are threads unless the caller of the library configured another backend. ``n_jobs=None`` means the number
    set by ``joblib.parallel_config``, one worker when it sets none. ``brief`` says that all of the work takes a few
    milliseconds: the caller's own thread does it. Results are yielded in order as they are ready, so a caller that is
    interrupted keeps all that was yielded.

    Processes and clusters are sent the function once, and then tasks: tasks should be small, and what they have in
    common part of the function. ``shared`` says that the function is large, or writes into arrays of the caller:
    threads do the tasks whatever the backend is. Threads also do them where the function cannot be pickled, not even by
    cloudpickle, and in a daemonic process, which cannot have children.
    """
    checked(n_jobs, progress)
    report, close = progress_reporter(progress, len(tasks))
    results = _results(function, tasks, 1 if brief else n_jobs, shared)
    try:
        for done, result in enumerate(results, start=1):
            report(done)
            yield result
    finally:
        results.close()
        close()


def _results(
    function: Callable[[Any], Result], tasks: Sequence[Any], n_jobs: int | None, shared: bool
) -> Generator[Result, None, None]:
    """Choose between the caller's thread, threads, and the processes of a backend."""
    if len(tasks) <= 1 or n_jobs == 1:
        yield from map(function, tasks)
        return
    from multiprocessing import current_process

    backend, workers = configured_workers(n_jobs)
    sent = None
    if not getattr(backend, "supports_sharedmem", False):
        sent = None if shared or current_process().daemon else pickled_or_none(function)
        if sent is None:
            from joblib.parallel import ThreadingBackend

            backend = ThreadingBackend(nesting_level=backend.nesting_level)
    count = backend.effective_n_jobs(workers)
    if count <= 1:
        yield from map(function, tasks)
    elif sent is not None:
        # By map: a generator or a variable would be held by the traceback of an error, and the pool with it.
        yield from map(_result_of, backend_outcomes(sent, tasks, workers, backend))
    else:
        yield from _thread_results(function, tasks, count)


def configured_workers(n_jobs: int | None) -> tuple[Any, int]:
    """The joblib backend that the caller configured, or threads, and its number of workers, -1 for all cores."""
    from joblib.parallel import get_active_backend

    backend, configured = get_active_backend(prefer="threads")
    workers = configured if n_jobs is None else n_jobs
    return backend, backend.default_n_jobs if workers is None else workers


def process_pool(idle_seconds: float, initializer: Callable[..., None], arguments: tuple[Any, ...]) -> Any:
    """A pool of one process, joblib's own kind of executor, which starts at its first task."""
    from joblib.externals.loky import ProcessPoolExecutor

    # the worker is started as a module: no file of the working directory may stand in for one of Python's
    safe = {"PYTHONSAFEPATH": "1"}
    return ProcessPoolExecutor(1, timeout=idle_seconds, initializer=initializer, initargs=arguments, env=safe)


def on_one_worker() -> Any:
    """A context in which calls of the package use the caller's thread alone: for the inside of a task."""
    import joblib

    return joblib.parallel_config("threading", n_jobs=1)


def _thread_results(
    function: Callable[[Any], Result], tasks: Sequence[Any], workers: int
) -> Generator[Result, None, None]:
    """Yield the results of threads in the order of tasks; an error is raised as it arises."""
    threads, waiting = Threads(partial(run_locally, function), workers), dict[int, Result]()
    sent = 0
    try:
        for index in range(len(tasks)):
            while sent < len(tasks) and sent <= index + _TASKS_PER_WORKER * workers:
                threads.submit(sent, tasks[sent])
                sent += 1
            while index not in waiting:
                finished, outcome = threads.result()
                waiting[finished] = outcome.result_or_raise()
            yield waiting.pop(index)
    finally:
        threads.close()


class Threads:
    """Threads that end with the process, whatever they are doing: an interrupt waits for none.

    ``run`` makes an outcome of a task, of which there may be more than threads.
    """

    def __init__(self, run: Callable[[Any], Any], count: int) -> None:
        self.run, self.count = run, count
        self.waiting: SimpleQueue[tuple[int, Any] | None] = SimpleQueue()
        self.finished: SimpleQueue[tuple[int, Any]] = SimpleQueue()
        self.threads: list[threading.Thread] = []
        self.pending = 0  # tasks whose outcome was not asked for
        self.closed = False

    def submit(self, index: int, task: Any) -> None:
        """Start a task, or queue it."""
        self.waiting.put((index, task))
        self.pending += 1
        if len(self.threads) < min(self.pending, self.count):
            self.threads.append(threading.Thread(target=self._work, args=(self.worker(),), daemon=True))
            self.threads[-1].start()

    def worker(self) -> Callable[[Any], Any]:
        """What a new thread does with each of its tasks."""
        return self.run

    def result(self) -> tuple[int, Any]:
        """Wait for one of the tasks; return its index and its outcome."""
        outcome = self.finished.get()
        self.pending -= 1
        return outcome

    def close(self) -> None:
        """Let threads end after their last task."""
        self.closed = True
        for _ in self.threads:
            self.waiting.put(None)
        deadline = monotonic() + _LAST_TASKS
        for thread in self.threads:
            thread.join(max(0.0, deadline - monotonic()))

    def _work(self, run: Callable[[Any], Any]) -> None:
        while (item := self.waiting.get()) is not None and not self.closed:
            index, task = item
            try:
                outcome = run(task)
            except BaseException as error:  # an interrupt that a task raised
                outcome = Outcome(error=error)
            self.finished.put((index, outcome))


class Outcome(NamedTuple):
    """What became of a task: its result, or the error that it raised, or ``WorkerDiedError``.

    An error is a value, so that no pool of processes breaks; ``warnings`` are those of another process.
    """

    result: Any = None
    error: BaseException | None = None
    warnings: tuple[tuple[str, type[Warning]], ...] = ()

    def result_or_raise(self) -> Any:
        """The result; the error is raised."""
        if self.error is not None:
            raise self.error
        return self.result


def announced(sent: Outcome) -> Outcome:
    """The outcome that another process sent; its warnings are given here."""
    try:
        for text, category in sent.warnings:
            warned(text, category)
    except Warning as fault:  # a filter turns it into an error
        return Outcome(error=fault)
    return Outcome(sent.result, sent.error)


def run_locally(function: Callable[[Any], Any], task: Any) -> Outcome:
    """Run a task in this process."""
    try:
        with on_one_worker():
            return Outcome(function(task))
    except (Exception, SystemExit) as error:
        return Outcome(error=error)


def pickled(item: Any) -> bytes:
    """A 1-tuple of the item as cloudpickle writes it: what is of ``__main__`` travels with its code."""
    import joblib

    return pickle.dumps(joblib.wrap_non_picklable_objects((item,), keep_wrapper=False))


def pickled_or_none(function: Callable[[Any], Any]) -> NDArray[np.uint8] | None:
    """The pickled function, as an array, of which joblib and dask send one copy; None where it cannot be pickled."""
    try:
        return np.frombuffer(pickled(function), np.uint8)
    except Exception:  # pickling runs code of the caller's objects, which may raise anything
        return None


def is_cluster(backend: Any) -> bool:
    """Whether a joblib backend is another package's, such as that of dask or of Ray."""
    from joblib.parallel import BACKENDS

    joblib_backends = [BACKENDS[name] for name in ("loky", "multiprocessing")]
    return not getattr(backend, "supports_sharedmem", False) and type(backend) not in joblib_backends


def backend_outcomes(function: Any, tasks: Iterable[Any], n_jobs: int, backend: Any) -> Generator[Outcome, None, None]:
    """Outcomes in the order of tasks, of which the workers of a backend are given one round at a time."""
    import joblib

    key, size, remaining = os.urandom(16).hex(), _TASKS_PER_WORKER * backend.effective_n_jobs(n_jobs), iter(tasks)
    with _explained_deaths(), joblib.Parallel(n_jobs=n_jobs) as run:  # one pool for all rounds
        while part := list(itertools.islice(remaining, size)):
            yield from run(joblib.delayed(run_task)(key, function, task) for task in part)


@contextmanager
def _explained_deaths() -> Iterator[None]:
    try:
        yield
    except BrokenExecutor as error:
        reason = str(error).partition("\n")[0].rstrip(". ") or type(error).__name__
        raise WorkerDiedError(
            f"joblib must have workers that outlive their tasks; got one that died: {reason}. Look for a lack of "
            "memory, or a crash in the function; executor='processes', where there is this argument, replaces workers."
        ) from error


def run_pickled(key: str, function: bytes, task: bytes) -> bytes:
    """The outcome of a task in another process; function, task and outcome are as ``pickled`` writes them."""
    try:
        outcome = run_task(key, function, pickle.loads(task)[0])
    except BaseException as error:  # the task cannot be read here
        outcome = Outcome(error=_picklable(error))
    try:
        return pickled(outcome)
    except Exception as error:
        fault = DomainError(f"function must return what can be pickled; got {type(error).__name__}: {error}.")
        return pickled(Outcome(None, fault, outcome.warnings))


def run_task(key: str, function: Any, task: Any) -> Outcome:
    """Run a task in another process, with its warnings where they can be recorded."""
    if threading.current_thread() is not threading.main_thread():  # filters of warnings belong to all threads
        return _outcome(key, function, task)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = _outcome(key, function, task)
    relevant = (warning for warning in caught if not issubclass(warning.category, _IGNORED_WARNINGS))
    selected = tuple((str(warning.message), warning.category) for warning in relevant)
    return outcome._replace(warnings=selected)


def _outcome(key: str, pickled_function: Any, task: Any) -> Outcome:
    try:
        function = _function_cache.get(key)
        if function is None:
            (function,) = pickle.loads(pickled_function)
            while len(_function_cache) >= _CACHED_FUNCTIONS:
                _function_cache.pop(next(iter([*_function_cache]), ""), None)  # a thread of dask may do the same
            _function_cache[key] = function
        with on_one_worker():
            return Outcome(function(task))
    except BaseException as error:
        return Outcome(error=_picklable(error))


_function_cache: dict[str, Callable[[Any], Any]] = {}  # in a worker: the functions of the latest calls


def _picklable(error: BaseException) -> BaseException:
    """The error, with a note of its traceback; a RuntimeError that names it where it cannot be pickled."""
    trace = "".join(traceback.format_exception(error))
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:
        copy = RuntimeError(f"{type(error).__name__}: {error}")
    if not isinstance(copy, KeyboardInterrupt):
        copy.add_note(f"In a worker process:\n{trace}")
    return copy  # type: ignore[no-any-return]


def _result_of(sent: Outcome) -> Any:
    """The result of a task of another process; its error is raised."""
    return announced(sent).result_or_raise()


def progress_reporter(
    progress: Progress, total: int, unit: str = "block"
) -> tuple[Callable[[int], None], Callable[[], None]]:
    """Two functions: one of the number done, one that closes the display.

    None and False show nothing. True shows the bar of tqdm on stderr, if it is installed and stderr is a terminal, once
    half a second has passed. A callable is called with the number done and the total.
    """
    checked(None, progress)
    if callable(progress):
        call = progress
        return (lambda done: call(done, total)), (lambda: None)
    if progress:
        with suppress(ImportError):
            from tqdm import tqdm

            bar = tqdm(total=total, unit=unit, leave=False, delay=0.5, disable=None)
            return (lambda done: bar.update(done - bar.n) if not bar.disable else None), bar.close
    return (lambda done: None), (lambda: None)
