"""The run of ``fastpriv bench``: measures tasks, prints their table, keeps the history, and says what went wrong."""

from __future__ import annotations

import datetime
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from fastpriv import DomainError
from fastpriv.cli.info import installation

from . import accounting, capacities, divergences, posteriors
from .history import append_run, last_results, read_history, regressions
from .measure import best_times, forget_results, machine_limits, peak_memory
from .tasks import Task, agrees, contains, read_answer, relative_difference

TASKS: tuple[Task, ...] = (*divergences.TASKS, *accounting.TASKS, *capacities.TASKS, *posteriors.TASKS)
PACKAGES = ("numpy", "scipy", "numba", "joblib", "mpmath", "dp-accounting", "prv-accountant", "riskcal", "opacus",
            "PLD-accounting", "dit", "cvxpy", "scikit-learn", "torch", "jax")
_SECONDS = {False: 1.5, True: 0.2}  # processor time of the repetitions of one call, by whether the run is quick
_UNITS = {"exp": "exponentials", "bytes": "bytes", "flops": "operations"}


def run(
    only: Sequence[str] = (), quick: bool = False, history: str | None = None, output: str = "text",
    listing: bool = False, tasks: Sequence[Task] = TASKS, write: Callable[[str], object] | None = None,
) -> int:
    """Run the tasks, print them as "text", "markdown" or "json" (by ``write``), and return the exit code.

    1 says that an answer is wrong, or that a ratio fell against the ``history``; otherwise 0.
    """
    write = write or partial(print, end="", flush=True)
    chosen = choose(tasks, only)
    if listing:
        write("".join(f"{task.name}\n" for task in chosen))
        return 0
    path = None if history is None else Path(history)
    before = [] if path is None else read_history(path)
    entry = describe_machine(quick)
    wide = output == "text"
    if wide:
        write(heading(entry))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            entry["limits"] = machine_limits(_SECONDS[quick])
            if wide:
                write(limits_text(entry["limits"]) + "\n\n" + aligned([COLUMNS]))
            for task in chosen:
                entry["tasks"][task.name] = measured(task, quick, entry["limits"])
                if wide:
                    write(aligned([cells(task.name, entry["tasks"][task.name])]))
            old = last_results(before, entry["machine"], entry["instruction set"])
            for task in chosen:  # a second time, since one measurement of a busy machine is no proof
                if task.name in regressions(old, entry["tasks"]):
                    entry["tasks"][task.name] = measured(task, quick, entry["limits"])
        finally:
            logging.disable(logging.NOTSET)
    fallen = regressions(old, entry["tasks"])
    if path is not None:
        append_run(path, entry)
    if output == "json":
        write(json.dumps(entry, indent=2) + "\n")
    elif output == "markdown":
        write(markdown(entry))
    complaints = [
        f"{name}: the ratio to {peer} fell from {old_ratio:.3g} to {new_ratio:.3g}"
        for name, (peer, old_ratio, new_ratio) in fallen.items()
    ]
    complaints += [f"{name}: {text}" for name, result in entry["tasks"].items() for text in result["wrong"]]
    if wide:
        write(closing(entry, complaints))
    elif complaints:
        sys.stderr.write("".join(f"{text}\n" for text in complaints))
    return 1 if complaints else 0


def choose(tasks: Sequence[Task], only: Sequence[str]) -> list[Task]:
    """The tasks whose names contain one of the texts; all of them for no texts."""
    for text in only:
        if not any(text.lower() in task.name.lower() for task in tasks):
            raise DomainError(
                f"--only must be a part of the name of a task; got {text!r}. fastpriv bench --list shows the names."
            )
    return [task for task in tasks if not only or any(text.lower() in task.name.lower() for text in only)]


def describe_machine(quick: bool) -> dict[str, Any]:
    """An entry of the history without its measurements."""
    here = installation()
    try:
        model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        model = None
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "fastpriv": here["fastpriv"], "machine": f"{model[1] if model else here['platform']}, {here['threads']} cores",
        "instruction set": here["instruction set"], "load": round(os.getloadavg()[0], 2), "quick": quick,
        "packages": versions, "limits": {}, "tasks": {},
    }


def measured(task: Task, quick: bool, limits: Mapping[str, float]) -> dict[str, Any]:
    """What fastpriv and each peer that is installed answer, and what it costs them."""
    ours, peers = task.make()
    forget = forget_results if task.cold else None
    answer = read_answer(ours())
    calls: dict[str, Any] = {"": (ours, forget)}
    result: dict[str, Any] = {"memory": peak_memory(ours, forget), "width": answer.width, "peers": {}, "wrong": []}
    if task.truth is not None and not contains(answer, np.array([task.truth[0]]), task.truth[1]):
        result["wrong"].append(f"the bracket does not contain the known value {task.truth[0]!r}")
    for name, peer in peers.items():
        if quick and peer.slow:
            continue
        entry = result["peers"][name] = {}
        try:
            call = peer.make()
            other = np.atleast_1d(np.asarray(call(), float))
            entry["memory"] = peak_memory(call)
        except ImportError as error:
            entry["absent"] = f"not installed: {error}"
            continue
        except Exception as error:  # a version of a package with other functions must not end the run
            entry["absent"] = f"{type(error).__name__}: {error}"
            continue
        entry["difference"] = relative_difference(answer, other) if other.shape == answer.value.shape else None
        if not agrees(answer, other, peer.tolerance):
            result["wrong"].append(f"{name} differs by more than {peer.tolerance:g} of the largest value")
        elif peer.error is not None and not contains(answer, other, peer.error):
            result["wrong"].append(f"the bracket does not contain the answer of {name}")
        calls[name] = (call, None)
    times = best_times(calls, _SECONDS[quick])
    result["seconds"] = times.pop("")
    for name, seconds in times.items():
        result["peers"][name]["seconds"] = seconds
    result["best"] = min(times, key=times.__getitem__, default=None)
    result["ratio"] = times[result["best"]] / result["seconds"] if times else None
    result["limit"] = task.limit
    result["share"] = task.work / (limits[task.limit] * result["seconds"]) if task.limit else None
    return result


# what is printed

COLUMNS = ("task", "fastpriv", "best peer", "its time", "ratio", "of the limit", "bracket", "difference", "memory, MB")
_WIDTHS = (59, 9, 30, 9, 7, 12, 8, 10, 13)


def cells(name: str, result: Mapping[str, Any]) -> tuple[str, ...]:
    """One line of the table."""
    best = result["peers"].get(result["best"], {})
    share = f"{100 * result['share']:.0f} % {result['limit']}" if result["share"] is not None else ""
    memory = [f"{item / 1e6:.1f}" for item in (result["memory"], best.get("memory")) if item is not None]
    return (name, time_text(result["seconds"]), result["best"] or "none installed", time_text(best.get("seconds")),
            number_text(result["ratio"]), share, error_text(result["width"]), error_text(best.get("difference")),
            " / ".join(memory))


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Lines with columns of fixed widths; text on the left, numbers on the right."""
    return "".join(
        " ".join(f"{cell:{'<' if i in (0, 2) else '>'}{width}}" for i, (cell, width) in
                 enumerate(zip(row, _WIDTHS, strict=True))).rstrip() + "\n" for row in rows
    )


def time_text(seconds: float | None) -> str:
    if seconds is None:
        return ""
    unit, factor = next((pair for pair in (("us", 1e6), ("ms", 1e3)) if seconds * pair[1] < 1000), ("s", 1.0))
    return f"{number_text(seconds * factor)} {unit}"


def number_text(number: float | None) -> str:
    """Three digits, without an exponent from 0.01 to a million."""
    if number is None:
        return ""
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def error_text(error: float | None) -> str:
    return "" if error is None else f"{error:.0e}" if error else "0"


def limits_text(limits: Mapping[str, float]) -> str:
    parts = [f"{limits[name]:.3g} {words} a second" for name, words in _UNITS.items()]
    return f"Limits of one core: {', '.join(parts)}."


def heading(entry: Mapping[str, Any]) -> str:
    return (
        f"fastpriv {entry['fastpriv']}, {entry['instruction set']}, {entry['machine']}, load {entry['load']:g}, "
        f"{entry['date']}{', quick' if entry['quick'] else ''}\n"
        + ", ".join(f"{name} {version}" for name, version in entry["packages"].items()) + "\n"
    )


def absent_peers(entry: Mapping[str, Any]) -> Iterator[str]:
    for result in entry["tasks"].values():
        yield from (f"{name} ({peer['absent']})" for name, peer in result["peers"].items() if "absent" in peer)


def closing(entry: Mapping[str, Any], complaints: Sequence[str]) -> str:
    """What was left out, and what went wrong."""
    absent = "".join(f"Left out: {text}\n" for text in dict.fromkeys(absent_peers(entry)))
    slower = sum(result["ratio"] is not None and result["ratio"] < 1 for result in entry["tasks"].values())
    wrong = "".join(f"WRONG: {text}\n" for text in complaints)
    return f"\n{len(entry['tasks'])} tasks, fastpriv slower than a peer in {slower}.\n{absent}{wrong}"


def markdown(entry: Mapping[str, Any]) -> str:
    """The tables of docs/benches.md: all tasks with their best peer, and the other peers."""
    lines = [
        heading(entry).splitlines()[0] + ". " + limits_text(entry["limits"]), "",
        "| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS),
    ]
    lines += ["| " + " | ".join(cells(name, result)) + " |" for name, result in entry["tasks"].items()]
    lines += ["", "| task | another peer | its time | ratio | difference | memory, MB |", "|---|---|---|---|---|---|"]
    for name, result in entry["tasks"].items():
        for title, peer in result["peers"].items():
            if title != result["best"] and "seconds" in peer:
                memory = "" if peer["memory"] is None else f"{peer['memory'] / 1e6:.1f}"
                columns = (name, title, time_text(peer["seconds"]), number_text(peer["seconds"] / result["seconds"]),
                           error_text(peer["difference"]), memory)
                lines.append("| " + " | ".join(columns) + " |")
    return "\n".join(lines) + "\n"
