"""Tasks that last, on threads or processes: a worker that dies costs one task at most.

``completed`` runs tasks on one of these, and yields the outcome of each as it is ready:

* None: threads, or the backend that ``joblib.parallel_config`` names. Clusters are such backends: dask, Ray;
* "processes": processes of this machine, each a pool of joblib's (loky) with one worker, so that a death belongs to one
  task.

A task whose worker died is tried again when nothing else runs: whatever dies then dies of this task. Results of
processes are bytes from ``parallel.run_pickled``, which raises nothing, so every other error is the end of a process.
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
from concurrent.futures import BrokenExecutor
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

from . import parallel, validate
from .errors import DomainError, WorkerDiedError
from .parallel import Outcome, Threads, announced, run_locally

__all__ = ["ExecutorLike", "Outcome", "checked", "completed", "ordered"]

Result = TypeVar("Result")
ExecutorLike = Literal["processes"] | None

_LAST_TASKS = 0.5  # seconds that closing waits for tasks of threads, which cannot be stopped
_STARTS = 3  # processes in a row that die before they have read the function: the machine cannot run it
_IDLE = 60.0  # seconds without a task after which a process ends
_PARENT_CHECK = 1.0  # seconds between two checks of a process that its parent is alive
_SHORT_ATTEMPTS = 4  # of one of many short tasks whose worker dies
_KEY_BYTES = 16  # of the random name of a function in the cache of each worker


def checked(executor: ExecutorLike, n_jobs: Any = None) -> None:
    """Check both arguments, also where the work is too short to use them."""
    parallel.checked(n_jobs)
    if not (executor is None or (isinstance(executor, str) and executor == "processes")):
        raise DomainError(
            f"executor must be None or 'processes'; got {validate.shown(executor)}. None means threads, or the backend "
            "of joblib.parallel_config, such as dask or ray."
        )


def completed(
    function: Callable[[Any], Any], tasks: Iterable[Any], *, executor: ExecutorLike = None, n_jobs: int | None = None,
    max_attempts: int = 2,
) -> Generator[tuple[int, Outcome], None, None]:
    """Yield ``(index, outcome)`` for each task, as they complete, in any order.

    An error that a task raises is its outcome. A task whose worker process dies is tried again, alone, up to
    ``max_attempts`` times in all, and then has ``WorkerDiedError`` as its outcome; no other task is lost. Tasks are
    taken from their iterator as workers become free, so that there may be any number of them. ``n_jobs`` is the number
    of threads or processes; None means what ``joblib.parallel_config`` says for threads, and one process for each core.
    Closing the generator ends processes, and leaves threads to their last tasks.
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
        yield from enumerate(map(announced, parallel.backend_outcomes(data, tasks, workers, backend)))
        return
    numbered = enumerate(tasks)
    if executor is None and getattr(backend, "supports_sharedmem", False):
        count = backend.effective_n_jobs(workers)
        if count <= 1:
            yield from ((index, run_locally(function, task)) for index, task in numbered)
            return
        pool = Threads(partial(run_locally, function), count)
    else:
        pool = _Processes(function, max(1, backend.effective_n_jobs(-1 if n_jobs is None else n_jobs)))
    suspects: deque[tuple[int, Any, int]] = deque()  # tasks whose worker died, with the number of attempts
    running: dict[int, tuple[Any, int]] = {}
    try:
        exhausted = False
        while True:
            while not exhausted and len(running) < pool.count:
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
) -> Generator[Result, None, None]:
    """``parallel.ordered_map`` on an executor: results in the order of tasks.

    The error of a task is raised when its turn comes. None as the executor, and work that is ``brief``, is for
    ``ordered_map`` itself.
    """
    if executor is None or brief or len(tasks) <= 1:
        yield from parallel.ordered_map(function, tasks, n_jobs=n_jobs, progress=progress, brief=brief)
        return
    report, close = parallel.progress_reporter(progress, len(tasks))
    waiting: dict[int, Outcome] = {}  # of later tasks, kept until they are due
    due = 0
    outcomes = completed(function, tasks, executor=executor, n_jobs=n_jobs, max_attempts=_SHORT_ATTEMPTS)
    try:
        for index, outcome in outcomes:
            waiting[index] = outcome
            while due in waiting:
                result = waiting.pop(due).result_or_raise()
                due += 1
                report(due)
                yield result
    finally:
        outcomes.close()
        close()


class _Death(NamedTuple):
    """The end of a worker before that of its task."""

    reason: str

    def error(self, index: int, attempts: int) -> WorkerDiedError:
        return WorkerDiedError(
            f"task {index} must leave its worker process alive; got the end of the process in each of {attempts} "
            f"attempts: {self.reason}. Look for a lack of memory, or a crash in the function."
        )


def _opened(data: bytes) -> Outcome:
    """The outcome that another process sent, as ``parallel.pickled`` writes it."""
    try:
        (sent,) = pickle.loads(data)
    except Exception as fault:  # the result cannot be read here
        return Outcome(error=fault)
    return announced(sent)


class _Processes(Threads):
    """Threads with a process each, whose end is that of one task: the next task gets a new process.

    The first process has to read the function: what every task would say if it cannot is said once.
    """

    def __init__(self, function: Callable[[Any], Any], count: int) -> None:
        super().__init__(function, count)
        self.key, self.data = os.urandom(_KEY_BYTES).hex(), parallel.pickled(function)
        self.processes = [_Process()]
        self.first: _Process | None = self.processes[0]  # until a thread has it
        try:
            self._check_readable(self.processes[0])
        except BaseException:
            self.close()
            raise

    def _check_readable(self, process: _Process) -> None:
        reason = ""
        for _ in range(_STARTS):
            answer = process.run("", parallel.pickled(pickle.loads), parallel.pickled(self.data))
            if not isinstance(answer, _Death):
                if (error := _opened(answer).error) is not None:
                    raise error
                return
            reason = answer.reason
        raise WorkerDiedError(
            f"executor must be able to start processes; got {_STARTS} that ended before they had read the function, "
            f"the last by {reason}. Look at what they wrote to stderr."
        )

    def result(self) -> tuple[int, Any]:
        """Wait for one of the tasks."""
        index, outcome = super().result()
        return index, _opened(outcome) if isinstance(outcome, bytes) else outcome

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        for process in self.processes:
            process.end()
        super().close()

    def worker(self) -> Callable[[Any], Any]:
        """Return what sends tasks to a process of their own thread."""
        process, self.first = self.first, None
        if process is None:
            process = _Process()
            self.processes.append(process)

        def run(task: Any) -> Any:
            try:
                sent = parallel.pickled(task)
            except Exception as error:  # pickling runs code of the caller's objects, which may raise anything
                return Outcome(error=error)
            return process.run(self.key, self.data, sent)

        return run


class _Process:
    """A pool of one process, which is replaced where it breaks."""

    def __init__(self) -> None:
        self.pool: Any = None
        self.lock = threading.Lock()
        self.ended = False

    def run(self, key: str, function: bytes, task: bytes) -> bytes | _Death:
        """Run a task in the process; all that is sent is as ``parallel.pickled`` writes it."""
        try:
            answer: bytes = self._submit(key, function, task).result()
            return answer
        except Exception as error:  # of a broken pool, or one that was ended
            self.pool = None
            return _Death(_reason(error))

    def _submit(self, *call: Any) -> Any:
        with self.lock:
            while not self.ended:
                if self.pool is None:
                    arguments = os.getpid(), os.environ.get("PYTHONSAFEPATH")
                    self.pool = parallel.process_pool(_IDLE, _prepare_process, arguments)
                try:
                    return self.pool.submit(parallel.run_pickled, *call)
                except BrokenExecutor:  # it died while it had nothing to do
                    self.pool = None
        raise BrokenExecutor("the run was closed")

    def end(self) -> None:
        """End the process, whatever it is doing."""
        with self.lock:
            self.ended, pool = True, self.pool
        if pool is not None:
            pool.shutdown(wait=True, kill_workers=True)


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    exit_codes = re.search(r"exit codes of the workers are \{(.*?)\}", text)  # in the long text of joblib's pools
    return exit_codes[1] if exit_codes else text.rstrip(".") or type(error).__name__


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
