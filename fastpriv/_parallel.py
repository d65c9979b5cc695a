"""The one owner of threads: work is cut into blocks that do not depend on the number of workers."""

from __future__ import annotations

import warnings
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
    if n_jobs is not None and (isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or n_jobs == 0):
        raise DomainError(f"n_jobs must be a non-zero integer or None; got {n_jobs!r}. Pass -1 for all cores.")
    report, close = progress_reporter(progress, len(tasks))
    try:
        for done, result in enumerate(_results(function, tasks, n_jobs), start=1):
            report(done)
            yield result
    finally:
        close()


def _results(function: Callable[[Any], Result], tasks: Sequence[Any], n_jobs: int | None) -> Iterator[Result]:
    if len(tasks) <= 1 or n_jobs == 1:
        yield from map(function, tasks)
        return
    import joblib

    work = [joblib.delayed(function)(task) for task in tasks]
    try:
        results = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(work)
    except ValueError:  # a backend that can't hand out results as they come
        yield from joblib.Parallel(n_jobs=n_jobs, prefer="threads")(work)
        return
    try:
        for result in results:  # noqa: UP028  ("yield from" would close the results outside of the block below)
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib warns of results that nobody wants any more
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
    if not isinstance(progress, bool):
        raise DomainError(
            f"progress must be True or False, or a function; got {_validate.shown(progress)}. "
            "A function is called with the number of pieces done and the total."
        )
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
