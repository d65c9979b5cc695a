"""The one owner of threads: work is cut into blocks that do not depend on the number of workers, nor on what these
are: threads, or the processes or the cluster of a joblib backend that a caller configured."""

from __future__ import annotations

import os
import pickle
import threading
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _validate
from .errors import DomainError, warned

__all__ = ["Progress", "blocks", "checked", "ordered_map", "progress_reporter"]

Result = TypeVar("Result")
_MOST_JOBS = 2**16  # threads or processes; more would only hold memory
Progress = bool | Callable[[int, int], None] | None

# bound: none - how much is handed out at once, and functions that a worker keeps
_ROUND, _KEPT = 8, 4
_SILENT = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)  # unless somebody asks


def blocks(total: int, size: int) -> list[slice]:
    """Consecutive slices of at most ``size`` that cover ``range(total)``."""
    return [slice(start, min(start + size, total)) for start in range(0, total, size)]


def checked(n_jobs: Any, progress: Any = None) -> None:
    """Check both arguments, also where all of the work is brief."""
    if n_jobs is not None:
        whole = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, (bool, np.bool_))
        if not whole or n_jobs == 0:
            raise DomainError(
                f"n_jobs must be a non-zero integer or None; got {_validate.shown(n_jobs)}. Pass -1 for all cores."
            )
        if abs(int(n_jobs)) > _MOST_JOBS:
            raise DomainError(
                f"n_jobs must be at most {_MOST_JOBS} in size; got {_validate.shown(n_jobs)}. Pass -1 for all cores."
            )
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise DomainError(
            f"progress must be True or False, or a function; got {_validate.shown(progress)}. "
            "A function is called with the number of pieces done and the total."
        )


def ordered_map(
    function: Callable[[Any], Result], tasks: Sequence[Any], *, n_jobs: int | None = None, progress: Progress = None,
    brief: bool = False, shared: bool = False,
) -> Generator[Result, None, None]:  # fmt: skip
    """Yield ``function(task)`` in the order of ``tasks``, computed by joblib threads unless the caller of the library
    configured another backend; by the caller's own thread where all of it is ``brief``, a matter of few milliseconds.

    ``n_jobs=None`` means what ``joblib.parallel_config`` says, one worker when it says nothing. Results arrive in
    order as they are ready, so a caller that is interrupted keeps all that was yielded.

    Processes and clusters take the function once, and then tasks: tasks are small, and what they have in common is
    part of the function. Where that is large, or results are written into arrays of the caller, the tasks are
    ``shared``: threads do them whatever the backend is. So they do where the function cannot be pickled, not even by
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
    if len(tasks) <= 1 or n_jobs == 1:
        yield from map(function, tasks)
        return
    from multiprocessing import current_process

    from joblib.parallel import ThreadingBackend, get_active_backend

    backend, configured = get_active_backend(prefer="threads")
    workers = configured if n_jobs is None else n_jobs
    if workers is None:
        workers = backend.default_n_jobs
    if not getattr(backend, "supports_sharedmem", False):
        packed = None if shared or current_process().daemon else _packed(function)
        if packed is not None:
            if backend.effective_n_jobs(workers) > 1:
                yield from _remote_results(packed, tasks, workers, backend)
            else:
                yield from map(function, tasks)
            return
        backend = ThreadingBackend(nesting_level=backend.nesting_level)
    if backend.effective_n_jobs(workers) > 1:
        threads = backend if isinstance(backend, ThreadingBackend) else "threading"
        yield from _thread_results(function, tasks, workers, threads)
    else:
        yield from map(function, tasks)


def _thread_results(
    function: Callable[[Any], Result], tasks: Sequence[Any], n_jobs: int, backend: Any
) -> Iterator[Result]:
    """Threads tell of their results themselves: joblib looks for them only once in 10 ms."""
    import joblib

    done: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()
    ended = False

    def tell(place: int) -> None:
        if ended:
            return
        try:
            done.put((place, function(tasks[place]), None))
        except BaseException as error:
            done.put((place, None, error))

    run = joblib.Parallel(n_jobs=n_jobs, backend=backend, return_as="generator")
    early: dict[int, Result] = {}
    with _closed(run(joblib.delayed(tell)(place) for place in range(len(tasks)))):
        try:
            for place in range(len(tasks)):
                while place not in early:
                    which, result, error = done.get()
                    if error is not None:
                        raise error
                    early[which] = result
                yield early.pop(place)
        finally:
            ended = True


def _packed(function: Callable[[Any], Any]) -> NDArray[np.uint8] | None:
    """The pickled function, as an array, of which joblib and dask send one copy; None where it cannot be pickled."""
    import joblib

    try:
        return np.frombuffer(pickle.dumps(joblib.wrap_non_picklable_objects(function, keep_wrapper=False)), np.uint8)
    except Exception:  # whatever the objects of other people raise
        return None


def _remote_results(
    packed: NDArray[np.uint8], tasks: Sequence[Any], n_jobs: int, backend: Any
) -> Generator[Any, None, None]:
    """Results of other processes, with the errors and warnings that arose there."""
    import joblib

    name = os.urandom(16).hex()
    if backend.supports_return_generator:
        run = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
        work = (joblib.delayed(_remote)(name, packed, task) for task in tasks)
        with _closed(run(work)) as results:
            for answer in results:
                yield _received(answer)
        return
    size = _ROUND * backend.effective_n_jobs(n_jobs)
    with joblib.Parallel(n_jobs=n_jobs) as run:  # one pool for all rounds
        for part in blocks(len(tasks), size):
            for answer in run(joblib.delayed(_remote)(name, packed, tasks[i]) for i in range(part.start, part.stop)):
                yield _received(answer)


class _Answer(NamedTuple):
    """What another process sends back; an error as it was raised, so that no pool breaks."""

    result: Any
    error: BaseException | None
    warnings: tuple[tuple[str, type[Warning]], ...]


def _remote(name: str, packed: NDArray[np.uint8], task: Any) -> _Answer:
    """One task in another process."""
    if threading.current_thread() is not threading.main_thread():  # the filters of warnings belong to all threads
        return _attempted(name, packed, task)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = _attempted(name, packed, task)
    said = tuple((str(one.message), one.category) for one in caught if not issubclass(one.category, _SILENT))
    return answer._replace(warnings=said)


def _attempted(name: str, packed: NDArray[np.uint8], task: Any) -> _Answer:
    import joblib

    try:
        function = _unpacked.get(name)
        if function is None:
            function = pickle.loads(packed.data)
            while len(_unpacked) >= _KEPT:
                _unpacked.pop(next(iter(_unpacked)), None)
            _unpacked[name] = function
        with joblib.parallel_config("threading", n_jobs=1):  # what the task calls has this worker to itself
            return _Answer(function(task), None, ())
    except BaseException as error:
        return _Answer(None, _portable(error), ())


_unpacked: dict[str, Callable[[Any], Any]] = {}  # in a worker: the functions of the latest calls


def _portable(error: BaseException) -> BaseException:
    """The error, with a note of where it was raised; one that names it where it cannot be pickled."""
    where = "".join(traceback.format_exception(error))
    try:
        found = pickle.loads(pickle.dumps(error))
    except Exception:
        found = RuntimeError(f"{type(error).__name__}: {error}")
    if not isinstance(found, KeyboardInterrupt):
        found.add_note(f"In a worker process:\n{where}")
    return found  # type: ignore[no-any-return]


def _received(answer: _Answer) -> Any:
    for text, category in answer.warnings:
        warned(text, category)
    if answer.error is not None:
        raise answer.error
    return answer.result


@contextmanager
def _closed(results: Any) -> Iterator[Any]:
    """Close them whatever happens, without the warning of joblib of results that nobody wants any more."""
    try:
        yield results
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.close()


def progress_reporter(progress: Progress, total: int) -> tuple[Callable[[int], None], Callable[[], None]]:
    """Two functions: one of the number done, one that closes the display.

    Silent for None or False; a bar on stderr for True, once half a second has passed and stderr is a terminal; else the
    callable is called with the number done and the total.
    """
    if progress is None or progress is False:
        return (lambda done: None), (lambda: None)
    if callable(progress):
        call = progress
        return (lambda done: call(done, total)), (lambda: None)
    checked(None, progress)
    return _bar(total)


def _bar(total: int) -> tuple[Callable[[int], None], Callable[[], None]]:
    import sys

    try:
        from tqdm import tqdm
    except ImportError:
        shown = sys.stderr.isatty()

        def line(done: int) -> None:
            if shown:
                sys.stderr.write(f"\r{done}/{total}")
                sys.stderr.flush()

        return line, lambda: print(file=sys.stderr) if shown else None
    bar = tqdm(total=total, unit="block", leave=False, delay=0.5, disable=None)
    return (lambda done: bar.update(done - bar.n) if not bar.disable else None), bar.close
