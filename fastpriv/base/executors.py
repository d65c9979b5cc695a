"""Tasks that last, on threads, processes or a cluster: what a dying worker takes with it is one task at most.

``completed`` runs tasks on one of these, and yields the outcome of each as it is ready:

* None: threads, or the backend that ``joblib.parallel_config`` names;
* "processes": processes of this machine, one task each at a time, so that a death belongs to one task. A process is a
  fresh interpreter with one socket: no pool that breaks, no thread of a manager, and no import of ``__main__``;
* a ``concurrent.futures.Executor``;
* a ``distributed.Client``: tasks go to the scheduler one by one (joblib's own backend of dask waits for ever for a task
  that ends its worker). A worker runs them in a child process: dask gives a task that ends its worker to the next one,
  by default three times, and a local cluster does not replace workers that die in their start or again and again;
* "ray": the cluster that ``ray.init`` joined, or a local one.

A task whose worker died is tried again when nothing else runs: whatever dies then dies of this task. Results are bytes
from ``parallel.run_pickled``, which raises nothing, so every other error of an engine is the engine's own.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, NamedTuple, Protocol, TypeVar

from . import parallel, validate
from .errors import BackendMissingError, DomainError, WorkerDiedError, warned

__all__ = ["ExecutorLike", "Outcome", "checked", "completed", "ordered", "serve"]

Result = TypeVar("Result")
ExecutorLike = Any  # None, "processes", "ray", a concurrent.futures.Executor or a distributed.Client

_TASKS_AHEAD = 2  # tasks in flight for each worker of an engine that queues them: none waits for the caller
_LAST_TASKS = 0.5  # seconds that closing waits for tasks of threads, which cannot be stopped
_FAILED_STARTS = 3  # processes in a row that die before they have read the function: the machine cannot run it
_IDLE = 600.0  # seconds without a task after which a process ends: who started it may have forgotten it
_WORKERS_KNOWN_FOR = 5.0  # seconds until the size of a cluster is asked again: it may grow and shrink
_NO_WORKERS = 300.0  # seconds without any worker after which a cluster is given up: pods and nodes start in less
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
    named = executor is None or (isinstance(executor, str) and executor in ("processes", "ray"))
    if not (named or isinstance(executor, Executor) or _is_dask(executor)):
        raise DomainError(
            "executor must be None, 'processes', 'ray', a concurrent.futures.Executor or a distributed.Client; got "
            f"{validate.shown(executor)}. None means threads."
        )
    if _is_dask(executor) and executor.asynchronous:
        raise DomainError(
            "executor must be a distributed.Client that waits; got an asynchronous one. Make it with Client(address)."
        )


def completed(
    function: Callable[[Any], Any], tasks: Iterable[Any], *, executor: ExecutorLike = None, n_jobs: int | None = None,
    max_attempts: int = 2,
) -> Generator[tuple[int, Outcome], None, None]:  # fmt: skip
    """Yield ``(index, outcome)`` for each task, as they complete, in any order.

    An error that a task raises is its outcome. A task whose worker process dies is tried again, alone, up to
    ``max_attempts`` times in all, and then has ``WorkerDiedError`` as its outcome; no other task is lost. Tasks are
    taken from their iterator as workers become free, so that there may be any number of them. ``n_jobs`` is the number
    of threads or processes, or of tasks in flight on an engine that the caller started; None means what
    ``joblib.parallel_config`` says for threads, one process for each core, and two tasks for each worker of an engine.
    Closing the generator ends processes, cancels the tasks of an engine, and leaves threads to their last tasks.
    """
    checked(executor, n_jobs)
    attempts = validate.count("max_attempts", max_attempts)
    return _completed(function, tasks, executor, n_jobs, attempts)


def _completed(
    function: Callable[[Any], Any], tasks: Iterable[Any], executor: ExecutorLike, n_jobs: int | None, max_attempts: int
) -> Generator[tuple[int, Outcome], None, None]:
    numbered = enumerate(tasks)
    suspects: deque[tuple[int, Any, int]] = deque()  # tasks whose worker died, with the number of attempts
    running: dict[int, tuple[Any, int]] = {}
    pool = _pool(function, executor, n_jobs)
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


class _Pool(Protocol):
    """What runs tasks."""

    @property
    def capacity(self) -> int:
        """How many tasks it takes at a time."""

    def submit(self, index: int, task: Any) -> None:
        """Start a task, or queue it."""

    def result(self) -> tuple[int, Outcome | _Death]:
        """Wait for one of the tasks."""

    def close(self) -> None:
        """Stop; what is running may be lost."""


def _pool(function: Callable[[Any], Any], executor: ExecutorLike, n_jobs: int | None) -> _Pool:
    backend, workers = parallel.configured_workers(n_jobs)
    if executor is None and not getattr(backend, "supports_sharedmem", False):
        executor = getattr(backend, "client", "ray" if type(backend).__name__ == "RayBackend" else "processes")
    if executor == "processes":
        return _Processes(function, max(1, backend.effective_n_jobs(-1 if n_jobs is None else n_jobs)))
    if executor is None:
        count = backend.effective_n_jobs(workers)
        return _Threads(function, count) if count > 1 else _OwnThread(function)
    if executor == "ray":
        return _Ray(function, n_jobs)
    return _Dask(function, executor, n_jobs) if _is_dask(executor) else _Futures(function, executor, n_jobs)


def _is_dask(executor: Any) -> bool:
    return type(executor).__module__.partition(".")[0] == "distributed" and hasattr(executor, "scheduler_info")


def _run(function: Callable[[Any], Any], task: Any) -> Outcome:
    """Run a task in this process."""
    try:
        with parallel.on_one_worker():
            return Outcome(function(task))
    except (Exception, SystemExit) as error:
        return Outcome(error=error)


def _opened(data: bytes) -> Outcome:
    """The outcome that another process sent; its warnings are given here."""
    try:
        ((result, error, warnings),) = pickle.loads(data)
        for text, category in warnings:
            warned(text, category)
    except Exception as fault:  # the result cannot be read here, or a filter turns the warning into an error
        return Outcome(error=fault)
    return Outcome(result, error)


class _OwnThread:
    """The caller's own thread."""

    capacity = 1

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self.waiting: deque[tuple[int, Any]] = deque()

    def submit(self, index: int, task: Any) -> None:
        self.waiting.append((index, task))

    def result(self) -> tuple[int, Outcome | _Death]:
        index, task = self.waiting.popleft()
        return index, _run(self.function, task)

    def close(self) -> None:
        self.waiting.clear()


class _Threads:
    """Threads that end with the process, whatever they are doing: an interrupt waits for none."""

    def __init__(self, function: Callable[[Any], Any], count: int) -> None:
        self.function, self.capacity = function, count
        self.waiting: SimpleQueue[tuple[int, Any] | None] = SimpleQueue()
        self.finished: SimpleQueue[tuple[int, Outcome]] = SimpleQueue()
        self.threads: list[threading.Thread] = []

    def _work(self) -> None:
        while (item := self.waiting.get()) is not None:
            index, task = item
            try:
                self.finished.put((index, _run(self.function, task)))
            except BaseException as error:  # an interrupt that a task raised
                self.finished.put((index, Outcome(error=error)))

    def submit(self, index: int, task: Any) -> None:
        self.waiting.put((index, task))
        if len(self.threads) < self.capacity:
            self.threads.append(threading.Thread(target=self._work, daemon=True))
            self.threads[-1].start()

    def result(self) -> tuple[int, Outcome | _Death]:
        return self.finished.get()

    def close(self) -> None:
        for _ in self.threads:
            self.waiting.put(None)
        deadline = monotonic() + _LAST_TASKS
        for thread in self.threads:
            thread.join(max(0.0, deadline - monotonic()))


class _Worker:
    """A process that runs one task at a time."""

    def __init__(self, function: bytes) -> None:
        from multiprocessing.connection import Connection
        from socket import socketpair

        own, other = socketpair()
        with other:
            program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve({other.fileno()})"
            # the end of its standard input tells the process that this one has ended
            self.process = subprocess.Popen(
                [sys.executable, "-c", program], stdin=subprocess.PIPE, pass_fds=[other.fileno()]
            )
        self.connection = Connection(own.detach())
        self.ready = False  # whether it has read the function
        with suppress(OSError):  # its death is found when it is asked for its result
            self.connection.send_bytes(function)

    def end(self) -> str:
        """End the process; how it ended."""
        self.connection.close()
        self.process.kill()
        assert self.process.stdin is not None
        self.process.stdin.close()
        return _ending(self.process.wait())


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


class _Processes:
    """Processes of this machine; one that dies is replaced."""

    def __init__(self, function: Callable[[Any], Any], count: int) -> None:
        self.function, self.capacity = parallel.pickled(function), count
        self.idle: list[_Worker] = []
        self.busy: dict[Any, tuple[_Worker, int, bytes]] = {}  # by connection
        self.unsent: deque[tuple[int, Outcome]] = deque()  # tasks that cannot be pickled
        self.failed_starts = 0

    def submit(self, index: int, task: Any) -> None:
        try:
            self._send(index, parallel.pickled(task))
        except OSError:
            raise
        except Exception as error:  # pickling runs code of the caller's objects, which may raise anything
            self.unsent.append((index, Outcome(error=error)))

    def _send(self, index: int, data: bytes) -> None:
        while self.idle:
            worker = self.idle.pop()
            try:
                worker.connection.send_bytes(data)
                break
            except OSError:  # it died while it had nothing to do
                worker.end()
        else:
            worker = _Worker(self.function)
            with suppress(OSError):
                worker.connection.send_bytes(data)
        self.busy[worker.connection] = worker, index, data

    def result(self) -> tuple[int, Outcome | _Death]:
        from multiprocessing.connection import wait

        while not self.unsent:
            connection = wait(list(self.busy))[0]
            worker, index, data = self.busy[connection]
            try:
                message = worker.connection.recv_bytes()
            except (EOFError, OSError):
                del self.busy[connection]
                reason = _how_it_ended(worker)
                if worker.ready:
                    return index, _Death(reason)
                self.failed_starts += 1
                if self.failed_starts == _FAILED_STARTS:
                    raise WorkerDiedError(
                        f"executor must be able to start processes; got {_FAILED_STARTS} that ended before they had "
                        f"read the function, the last by {reason}. Look at what they wrote to stderr."
                    ) from None
                self._send(index, data)
                continue
            if worker.ready:
                del self.busy[connection]
                self.idle.append(worker)
                return index, _opened(message)
            outcome = _opened(message)
            if outcome.error is not None:
                raise outcome.error
            worker.ready, self.failed_starts = True, 0
        return self.unsent.popleft()

    def close(self) -> None:
        for worker in [*self.idle, *(worker for worker, _, _ in self.busy.values())]:
            worker.end()
        self.idle, self.busy = [], {}


def _how_it_ended(worker: _Worker) -> str:
    """The end of a process that closed its connection; one that lives on in spite of that is killed."""
    with suppress(subprocess.TimeoutExpired):
        worker.process.wait(_LAST_TASKS)
    return worker.end()


def serve(descriptor: int) -> None:
    """Be a worker: read a function and then tasks from a socket, and send back outcomes, until it closes or is idle."""
    from multiprocessing.connection import Connection

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the process that started this one, and ends both
    threading.Thread(target=_end_with_parent, daemon=True).start()
    key = "function"
    with Connection(descriptor) as connection, suppress(EOFError, OSError):
        function = connection.recv_bytes()
        # what every task would say if the function cannot be read is said once
        connection.send_bytes(parallel.run_pickled("", parallel.pickled(_read), parallel.pickled(function)))
        while connection.poll(_IDLE):
            connection.send_bytes(parallel.run_pickled(key, function, connection.recv_bytes()))


def _read(function: bytes) -> None:
    pickle.loads(function)


def _end_with_parent() -> None:
    """Wait for the end of standard input, which is that of the parent; then end, whatever the main thread does."""
    with suppress(OSError):
        while os.read(0, 1):
            pass
    os._exit(1)


class _Futures:
    """An executor of ``concurrent.futures``, or what has futures like it."""

    patience: float | None = None  # seconds that ``result`` waits before it raises ``Empty``

    def __init__(self, function: Callable[[Any], Any], executor: Any, n_jobs: int | None) -> None:
        self.executor, self.n_jobs = executor, n_jobs
        self.local = function if isinstance(executor, ThreadPoolExecutor) else None
        self.key = os.urandom(_KEY_BYTES).hex()
        self.function = b"" if self.local else parallel.pickled(function)
        self.finished: SimpleQueue[tuple[int, Any]] = SimpleQueue()
        self.futures: dict[int, Any] = {}
        self.asked, self.workers = -_WORKERS_KNOWN_FOR, 0

    @property
    def capacity(self) -> int:
        """Tasks in flight: ``n_jobs``, or some for each worker."""
        if self.n_jobs is not None and self.n_jobs > 0:
            return self.n_jobs
        if monotonic() - self.asked >= _WORKERS_KNOWN_FOR:
            self.workers, self.asked = self._count_workers(), monotonic()
        return _TASKS_AHEAD * max(1, self.workers)

    def _count_workers(self) -> int:
        return getattr(self.executor, "_max_workers", None) or os.cpu_count() or 1

    def submit(self, index: int, task: Any) -> None:
        if self.local is None:
            try:
                data = parallel.pickled(task)
            except Exception as error:  # pickling runs code of the caller's objects, which may raise anything
                self.finished.put((index, Outcome(error=error)))
                return
        try:
            future = self._send(data) if self.local is None else self.executor.submit(_run, self.local, task)
        except BrokenExecutor as error:
            raise _broken(error) from error
        except RuntimeError as error:  # that executors raise which were shut down
            raise DomainError(
                f"executor must be one that takes tasks; got {validate.shown(self.executor)}: {error}. Make a new one."
            ) from error
        self.futures[index] = future
        future.add_done_callback(lambda future: self.finished.put((index, future)))

    def _send(self, data: bytes) -> Any:
        return self.executor.submit(parallel.run_pickled, self.key, self.function, data)

    def result(self) -> tuple[int, Outcome | _Death]:
        index, future = self.finished.get(timeout=self.patience)
        if isinstance(future, Outcome):
            return index, future
        del self.futures[index]
        outcome = self._outcome(future)
        return index, _opened(outcome) if isinstance(outcome, bytes) else outcome

    def _outcome(self, future: Any) -> bytes | Outcome | _Death:
        try:
            return future.result()  # type: ignore[no-any-return]
        except BrokenExecutor as error:
            raise _broken(error) from error

    def close(self) -> None:
        for future in self.futures.values():
            future.cancel()


def _broken(error: BrokenExecutor) -> WorkerDiedError:
    reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return WorkerDiedError(
        f"executor must outlive its tasks; got one that a dying worker broke: {reason}. What was yielded is complete. "
        "Make a new executor, or pass executor='processes', which replaces workers that die."
    )


class _Dask(_Futures):
    """A cluster of dask: its scheduler moves the tasks of a worker that died to others."""

    patience = _WORKERS_KNOWN_FOR

    def __init__(self, function: Callable[[Any], Any], client: Any, n_jobs: int | None) -> None:
        super().__init__(function, client, n_jobs)
        self.held: Any = None
        self.seen = monotonic()  # when there were workers

    def _count_workers(self) -> int:
        return sum(self.executor.nthreads().values())

    def result(self) -> tuple[int, Outcome | _Death]:
        while True:
            try:
                return super().result()
            except Empty:
                self._check_workers()

    def _check_workers(self) -> None:
        """Raise if there have been no workers for long: dask itself would wait for ever."""
        if self._count_workers():
            self.seen = monotonic()
        elif monotonic() - self.seen >= _NO_WORKERS:
            raise WorkerDiedError(
                f"executor must have workers; got a cluster of dask without any for {_NO_WORKERS:g} s. Look in their "
                "logs at why they ended, and start new ones."
            )

    def _send(self, data: bytes) -> Any:
        if self.held is None or self.held.status not in ("pending", "finished"):
            # The function is the result of a task: the scheduler sends it to each worker once, and has it again if all
            # of them die. That task fails too if it was in the queues of several workers that died.
            self.held = self.executor.submit(bytes, self.function, pure=False)
        return self.executor.submit(_run_in_child, self.key, self.held, data, pure=False)

    def _outcome(self, future: Any) -> bytes | Outcome | _Death:
        from distributed import KilledWorker
        from distributed import TimeoutError as Expired

        while True:
            try:
                result = future.result(timeout=self.patience)
                return _Death(result) if isinstance(result, str) else result
            except KilledWorker as error:
                return _Death(" ".join(str(error).split()).rstrip("."))
            except Expired:  # the worker that had the result died: it is computed again
                self._check_workers()

    def close(self) -> None:
        with suppress(Exception):  # the cluster may be gone
            self.executor.cancel(list(self.futures.values()), force=True)
            self.executor.run(_end_children, self.key, wait=False)


def _run_in_child(key: str, function: bytes, task: bytes) -> bytes | str:
    """``run_pickled`` in a child process of this worker of dask; how the child ended, if the task ends it."""
    with _children_lock:
        idle = _children.setdefault(key, [])
        child = idle.pop() if idle else None
    if child is not None and child.process.poll() is not None:
        child.end()
        child = None
    if child is None:
        child = _Worker(function)
    try:
        if not child.ready:
            message = child.connection.recv_bytes()
            if pickle.loads(message)[0].error is not None:  # the function cannot be read here
                child.end()
                return message
            child.ready = True
        child.connection.send_bytes(task)
        message = child.connection.recv_bytes()
    except (EOFError, OSError):
        return _how_it_ended(child)
    with _children_lock:
        if key in _children:
            _children[key].append(child)
            return message
    child.end()
    return message


async def _end_children(key: str) -> None:  # of coroutines alone dask waits for none
    """End the idle child processes of a run that is over; busy ones end with their task."""
    with _children_lock:
        idle = _children.pop(key, [])
    for child in idle:
        child.end()


_children: dict[str, list[_Worker]] = {}  # in a worker of dask: the idle child processes by the key of their function
_children_lock = threading.Lock()


class _Ray(_Futures):
    """The cluster of Ray that this process is part of."""

    def __init__(self, function: Callable[[Any], Any], n_jobs: int | None) -> None:
        try:
            import ray
        except ImportError:
            raise BackendMissingError(
                "executor must be an engine that is installed; got 'ray' without the package ray. Install it with: "
                "pip install 'fastpriv[ray]'"
            ) from None
        super().__init__(function, ray, n_jobs)
        self.call = ray.remote(max_retries=0)(parallel.run_pickled)
        self.held = ray.put(self.function)

    def _count_workers(self) -> int:
        return int(self.executor.cluster_resources().get("CPU", 1))

    def _send(self, data: bytes) -> Any:
        reference = self.call.remote(self.key, self.held, data)
        future = reference.future()
        future.reference = reference
        return future

    def _outcome(self, future: Any) -> bytes | Outcome | _Death:
        errors = self.executor.exceptions
        try:
            return future.result()  # type: ignore[no-any-return]
        except errors.RayTaskError as error:
            return Outcome(error=error)
        except errors.RayError as error:
            return _Death(" ".join(str(error).split()).rstrip("."))

    def close(self) -> None:
        for future in self.futures.values():
            with suppress(Exception):  # the cluster may be gone
                self.executor.cancel(future.reference, force=True)
