"""The one owner of threads: work is cut into blocks that do not depend on the number of workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from . import _validate
from .errors import DomainError

__all__ = ["Progress", "blocks", "ordered_map", "progress_reporter"]

Result = TypeVar("Result")
Progress = bool | Callable[[int, int], None] | None


def blocks(total: int, size: int) -> list[slice]:
    """Consecutive slices of at most ``size`` that cover ``range(total)``."""
    return [slice(start, min(start + size, total)) for start in range(0, total, size)]


def ordered_map(
    function: Callable[[Any], Result], tasks: Sequence[Any], *, n_jobs: int | None = None, progress: Progress = None,
) -> Iterator[Result]:  # fmt: skip
    """Yield ``function(task)`` in the order of ``tasks``, computed by joblib threads.

    ``n_jobs=None`` means what ``joblib.parallel_config`` says, one worker when it says nothing. Results arrive in
    order as they are ready, so a caller that is interrupted keeps all that was yielded.
    """
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0):
        raise DomainError(f"n_jobs must be a non-zero integer or None; got {n_jobs!r}. Pass -1 for all cores.")
    report = progress_reporter(progress, len(tasks))
    for done, result in enumerate(_results(function, tasks, n_jobs), start=1):
        report(done)
        yield result


def _results(function: Callable[[Any], Result], tasks: Sequence[Any], n_jobs: int | None) -> Iterator[Result]:
    if len(tasks) <= 1 or n_jobs == 1:
        yield from map(function, tasks)
        return
    import joblib

    run = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    yield from run(joblib.delayed(function)(task) for task in tasks)


def progress_reporter(progress: Progress, total: int) -> Callable[[int], None]:
    """A function of the number done: silent for None or False, a bar for True, else the callable."""
    if progress is None or progress is False:
        return lambda done: None
    if callable(progress):
        call = progress
        return lambda done: call(done, total)
    _validate.flag("progress", progress)
    return _bar(total)


def _bar(total: int) -> Callable[[int], None]:
    import sys

    try:
        from tqdm import tqdm
    except ImportError:

        def line(done: int) -> None:
            sys.stderr.write(f"\r{done}/{total}" + ("\n" if done == total else ""))
            sys.stderr.flush()

        return line
    bar = tqdm(total=total, unit="block", leave=False)

    def update(done: int) -> None:
        bar.update(done - bar.n)
        if done == total:
            bar.close()

    return update
