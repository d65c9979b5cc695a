"""Tasks that last, on threads, processes or an executor of the caller: a worker that dies costs one task at most.

``completed`` runs tasks on one of these, and yields the outcome of each as it is ready:

* None: threads, or the backend that ``joblib.parallel_config`` names. Clusters are such backends: dask, Ray;
* "processes": processes of this machine, each a pool of joblib's (loky) with one worker, so that a death belongs to one
  task;
* a ``concurrent.futures.Executor`` of the caller, such as ``client.get_executor()`` of dask.

A task whose worker died is tried again when nothing else runs: whatever dies then dies of this task. Results are bytes
from ``parallel.run_pickled``, which raises nothing, so every other error of an executor is the executor's own.
"""

from __future__ import annotations

import os
import pickle
import re
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from . import parallel, validate
from .errors import DomainError, WorkerDiedError, warned

__all__ = ["ExecutorLike", "Outcome", "checked", "completed", "ordered"]

Result = TypeVar("Result")
ExecutorLike = Executor | str | None  # the text is "processes"

_PROCESSES = "processes"  # the executor that is named by a text
_TASKS_AHEAD = 2  # tasks in flight for each worker of an executor that queues them: none waits for the caller
_LAST_TASKS = 0.5  # seconds that closing waits for tasks of threads, which cannot be stopped
_STARTS = 3  # processes in a row that die before they have read the function: the machine cannot run it
_IDLE = 60.0  # seconds without a task after which a process ends
_PARENT_CHECK = 1.0  # seconds between two checks of a process that its parent is alive
_TASKS_OF_GROUP = 16  # short tasks that are sent together: a cluster takes milliseconds for each
_GROUP_ATTEMPTS = 4  # of a group whose worker dies: nodes of a cluster are taken away now and then
_KEY_BYTES = 16  # of the random name of a function in the cache of each worker


class Outcome(NamedTuple):
    """What became of a task: its result, or the error that it raised, or ``WorkerDiedError``."""

    result: Any = None
    error: BaseException | None = None


def checked(executor: ExecutorLike, n_jobs: Any = None) -> None:
    """Check both arguments, also where the work is too short to use them."""
    parallel.checked(n_jobs)
    named = executor is None or (isinstance(executor, str) and executor == _PROCESSES)
    if not (named or isinstance(executor, Executor)):
        raise DomainError(
            f"executor must be None, 'processes' or a concurrent.futures.Executor; got {validate.shown(executor)}. "
            "None means threads, or the backend of joblib.parallel_config, such as dask or ray; a client of dask has "
            "an executor, client.get_executor()."
        )


def completed(
    function: Callable[[Any], Any], tasks: Iterable[Any], *, executor: ExecutorLike = None, n_jobs: int | None = None,
    max_attempts: int = 2,
) -> Generator[tuple[int, Outcome], None, None]:  # fmt: skip
    """Yield ``(index, outcome)`` for each task, as they complete, in any order.

    An error that a task raises is its outcome. A task whose worker process dies is tried again, alone, up to
    ``max_attempts`` times in all, and then has ``WorkerDiedError`` as its outcome; no other task is lost. Tasks are
    taken from their iterator as workers become free, so that there may be any number of them. ``n_jobs`` is the number
    of threads or processes, or of tasks in flight on an executor that the caller started; None means what
    ``joblib.parallel_config`` says for threads, one process for each core, and two tasks for each worker of an
    executor. Closing the generator ends processes, cancels the tasks of an executor, and leaves threads to their last
    tasks.
    """
    checked(executor, n_jobs)
    attempts = validate.count("max_attempts", max_attempts)
    return _completed(function, tasks, executor, n_jobs, attempts)


def _completed(
    function: Callable[[Any], Any], tasks: Iterable[Any], executor: ExecutorLike, n_jobs: int | None, max_attempts: int
) -> Generator[tuple[int, Outcome], None, None]:
    backend, workers = parallel.configured_workers(n_jobs)
    if executor is None and parallel.is_cluster(backend):
        data = parallel.pickled(function)
        yield from enumerate(map(_announced, parallel.cluster_outcomes(data, tasks, workers, backend)))
        return
    numbered = enumerate(tasks)
    suspects: deque[tuple[int, Any, int]] = deque()  # tasks whose worker died, with the number of attempts
    running: dict[int, tuple[Any, int]] = {}
    pool = _tasks_in_flight(function, executor, n_jobs)
    try:
        exhausted = False
        while True:
            while not exhausted and len(running) < pool.capacity:
                index, task = next(numbered, (-1, None))
                exhausted = index < 0
                if not exhausted:
                    running[index] = task, 1
                    pool.submit(index, task)
            if not running:
                if not suspects:
                    return
                index, task, attempt = suspects.popleft()
                running[index] = task, attempt + 1
                pool.submit(index, task)
            index, outcome = pool.result()
            task, attempt = running.pop(index)
            if not isinstance(outcome, _Death):
                yield index, outcome
            elif attempt < max_attempts:
                suspects.append((index, task, attempt))
            else:
                yield index, Outcome(error=outcome.error(index, attempt))
    finally:
        pool.close()


def ordered(
    function: Callable[[Any], Result], tasks: Sequence[Any], *, executor: ExecutorLike = None,
    n_jobs: int | None = None, progress: parallel.Progress = None, brief: bool = False,
) -> Generator[Result, None, None]:  # fmt: skip
    """``parallel.ordered_map`` on an executor: results in the order of tasks, which are short and go in groups.

    The error of a task is raised when its turn comes. None as the executor, and work that is ``brief``, is for
    ``ordered_map`` itself.
    """
    if executor is None or brief or len(tasks) <= 1:
        return parallel.ordered_map(function, tasks, n_jobs=n_jobs, progress=progress, brief=brief)
    return _ordered(function, tasks, executor, n_jobs, progress)


def _ordered(
    function: Callable[[Any], Result], tasks: Sequence[Any], executor: ExecutorLike, n_jobs: int | None,
    progress: parallel.Progress,
) -> Generator[Result, None, None]:  # fmt: skip
    report, close = parallel.progress_reporter(progress, len(tasks))
    starts = range(0, len(tasks), _TASKS_OF_GROUP)
    groups = ([tasks[i] for i in range(start, min(start + _TASKS_OF_GROUP, len(tasks)))] for start in starts)
    waiting: dict[int, Outcome] = {}  # of later groups, kept until they are due
    due = done = 0
    outcomes = completed(
        partial(_group, function), groups, executor=executor, n_jobs=n_jobs, max_attempts=_GROUP_ATTEMPTS
    )
    try:
        for index, outcome in outcomes:
            waiting[index] = outcome
            while due in waiting:
                results, error = waiting.pop(due)
                due += 1
                if error is not None:
                    raise error
                for result in results:
                    done += 1
                    report(done)
                    yield result
    finally:
        outcomes.close()
        close()


def _group(function: Callable[[Any], Any], tasks: list[Any]) -> list[Any]:
    return [function(task) for task in tasks]


class _Death(NamedTuple):
    """The end of a worker before that of its task."""

    reason: str

    def error(self, index: int, attempts: int) -> WorkerDiedError:
        return WorkerDiedError(
            f"task {index} must leave its worker process alive; got the end of the process in each of {attempts} "
            f"attempts: {self.reason}. Look for a lack of memory, or a crash in the function."
        )


def _tasks_in_flight(function: Callable[[Any], Any], executor: ExecutorLike, n_jobs: int | None) -> _TasksInFlight:
    backend, workers = parallel.configured_workers(n_jobs)
    if executor is None and getattr(backend, "supports_sharedmem", False):
        count = backend.effective_n_jobs(workers)
        return _TasksInFlight(function, _Threads() if count > 1 else _CallingThread(), count)
    if executor is None or executor == _PROCESSES:
        count = max(1, backend.effective_n_jobs(-1 if n_jobs is None else n_jobs))
        return _TasksInFlight(function, _Processes(function), count)
    return _TasksInFlight(function, executor, n_jobs)


def _run(function: Callable[[Any], Any], task: Any) -> Outcome:
    """Run a task in this process."""
    try:
        with parallel.on_one_worker():
            return Outcome(function(task))
    except (Exception, SystemExit) as error:
        return Outcome(error=error)


def _announced(sent: parallel.TaskOutcome) -> Outcome:
    """The outcome that another process sent; its warnings are given here."""
    try:
        for text, category in sent.warnings:
            warned(text, category)
    except Warning as fault:  # a filter turns it into an error
        return Outcome(error=fault)
    return Outcome(sent.result, sent.error)


def _opened(data: bytes) -> Outcome:
    """The outcome that another process sent, as ``parallel.pickled`` writes it."""
    try:
        (sent,) = pickle.loads(data)
    except Exception as fault:  # the result cannot be read here
        return Outcome(error=fault)
    return _announced(sent)


class _TasksInFlight:
    """The tasks that an executor is running."""

    def __init__(self, function: Callable[[Any], Any], executor: Any, n_jobs: int | None) -> None:
        self.executor = executor
        workers = getattr(executor, "_max_workers", None) or os.cpu_count() or 1
        self.capacity = n_jobs if n_jobs is not None and n_jobs > 0 else _TASKS_AHEAD * workers
        self.local = function if isinstance(executor, (ThreadPoolExecutor, _Threads, _CallingThread)) else None
        self.key = os.urandom(_KEY_BYTES).hex()
        self.function = b"" if self.local else parallel.pickled(function)
        self.finished: SimpleQueue[tuple[int, Any]] = SimpleQueue()
        self.futures: dict[int, Future[Any]] = {}

    def submit(self, index: int, task: Any) -> None:
        """Start a task, or queue it."""
        call: tuple[Any, ...] = _run, self.local, task
        if self.local is None:
            try:
                call = parallel.run_pickled, self.key, self.function, parallel.pickled(task)
            except Exception as error:  # pickling runs code of the caller's objects, which may raise anything
                self.finished.put((index, Outcome(error=error)))
                return
        try:
            future = self.executor.submit(*call)
        except BrokenExecutor as error:
            raise _broken(error) from error
        except RuntimeError as error:  # that executors raise which were shut down
            raise DomainError(
                f"executor must be one that takes tasks; got {validate.shown(self.executor)}: {error}. Make a new one."
            ) from error
        self.futures[index] = future
        future.add_done_callback(lambda future: self.finished.put((index, future)))

    def result(self) -> tuple[int, Outcome | _Death]:
        """Wait for one of the tasks."""
        index, future = self.finished.get()
        if isinstance(future, Outcome):
            return index, future
        del self.futures[index]
        try:
            outcome = future.result()
        except BrokenExecutor as error:
            if not isinstance(self.executor, _Processes):
                raise _broken(error) from error
            outcome = _Death(_reason(error))
        except Exception as error:  # of the executor itself, such as KilledWorker of dask
            outcome = _Death(_reason(error))
        return index, _opened(outcome) if isinstance(outcome, bytes) else outcome

    def close(self) -> None:
        """Stop; what is running may be lost."""
        for future in self.futures.values():
            future.cancel()
        if isinstance(self.executor, (_Threads, _Processes)):
            self.executor.shutdown()


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    exit_codes = re.search(r"exit codes of the workers are \{(.*?)\}", text)  # in the long text of joblib's pools
    return exit_codes[1] if exit_codes else text.rstrip(".") or type(error).__name__


def _broken(error: BrokenExecutor) -> WorkerDiedError:
    return WorkerDiedError(
        f"executor must outlive its tasks; got one that a dying worker broke: {_reason(error)}. What was yielded is "
        "complete. Make a new executor, or pass executor='processes', which replaces workers that die."
    )


class _CallingThread(Executor):
    """The caller's own thread."""

    def submit(self, run: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a call."""
        future: Future[Any] = Future()
        future.set_result(run(*args, **kwargs))
        return future


class _Threads(Executor):
    """Threads that end with the process, whatever they are doing: an interrupt waits for none. One for each call that
    is running or queued, as its caller limits these."""

    def __init__(self) -> None:
        self.waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self.threads: list[threading.Thread] = []
        self.idle = threading.Semaphore(0)

    def submit(self, run: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start a call."""
        future: Future[Any] = Future()
        self.waiting.put((future, partial(run, *args, **kwargs)))
        if not self.idle.acquire(blocking=False):
            self.threads.append(threading.Thread(target=self._work, daemon=True))
            self.threads[-1].start()
        return future

    def _work(self) -> None:
        while (item := self.waiting.get()) is not None:
            future, call = item
            if future.set_running_or_notify_cancel():
                try:
                    result = call()
                except BaseException as error:  # an interrupt that a task raised
                    result = Outcome(error=error)
                self.idle.release()
                future.set_result(result)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        """Let threads end after their last call."""
        for _ in self.threads:
            self.waiting.put(None)
        deadline = monotonic() + _LAST_TASKS
        for thread in self.threads:
            thread.join(max(0.0, deadline - monotonic()))


class _Processes(Executor):
    """Pools of one process each: the end of a process breaks one pool, which is replaced.

    The first process has to read the function: what every task would say if it cannot is said once.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.idle: deque[Any] = deque()
        self.busy: set[Any] = set()
        self._check_readable(parallel.pickled(function))

    def _check_readable(self, function: bytes) -> None:
        for _ in range(_STARTS):
            call = self.submit(parallel.run_pickled, "", parallel.pickled(pickle.loads), parallel.pickled(function))
            try:
                error = _opened(call.result()).error
            except BrokenExecutor as end:
                reason = _reason(end)
                continue
            if error is not None:
                self.shutdown()
                raise error
            return
        raise WorkerDiedError(
            f"executor must be able to start processes; got {_STARTS} that ended before they had read the function, "
            f"the last by {reason}. Look at what they wrote to stderr."
        )

    def submit(self, run: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a call in a process that has nothing to do."""
        while True:
            pool = self.idle.popleft() if self.idle else _one_process()
            try:
                future = pool.submit(run, *args, **kwargs)
            except BrokenExecutor:  # it died while it had nothing to do
                continue
            self.busy.add(pool)
            future.add_done_callback(partial(self._finished, pool))
            return future  # type: ignore[no-any-return]

    def _finished(self, pool: Any, future: Future[Any]) -> None:
        self.busy.discard(pool)
        if not future.cancelled() and future.exception() is None:
            self.idle.append(pool)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        """End the processes, whatever they are doing."""
        for pool in [*self.idle, *self.busy]:
            pool.shutdown(wait=wait, kill_workers=True)


def _one_process() -> Any:
    """A pool of one process, which has not been started."""
    return parallel.process_pool(_IDLE, _prepare_process, (os.getpid(), os.environ.get("PYTHONSAFEPATH")))


def _prepare_process(parent: int, safe_path: str | None) -> None:
    """End with the parent, and leave interrupts to it: they are for all processes of a terminal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if safe_path is None:
        os.environ.pop("PYTHONSAFEPATH", None)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
