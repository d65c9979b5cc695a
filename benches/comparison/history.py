"""Runs in a file, one JSON object a line, and the ratios that fell since the last run of the same machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fastpriv import DomainError

FALL = 0.2  # a ratio to a peer that falls by this share of itself, or more, is a regression

Run = Mapping[str, Any]


def read_history(path: Path) -> list[Run]:
    """Runs of a file in their order; none if there is no file."""
    if not path.exists():
        return []
    runs = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            run = json.loads(line)
            if not {"machine", "instruction set", "tasks"} <= run.keys():
                raise ValueError
        except (ValueError, AttributeError):
            raise DomainError(
                f"history must have one run of fastpriv bench on each line, as JSON; got {line[:40]!r} in line "
                f"{number} of {path}. Remove the line, or name another file."
            ) from None
        runs.append(run)
    return runs


def append_run(path: Path, run: Run) -> None:
    """Write a run as the last line of a file."""
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(run) + "\n")


def last_results(runs: Iterable[Run], machine: str, instruction_set: str) -> dict[str, Any]:
    """The last result of each task on this machine with this instruction set."""
    results: dict[str, Any] = {}
    for run in runs:
        if (run["machine"], run["instruction set"]) == (machine, instruction_set):
            results |= run["tasks"]
    return results


def regressions(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[str, float, float]]:
    """Tasks whose ratio to the peer that was best before fell by ``FALL``, with the peer and both ratios.

    The ratio to that same peer is compared, so that a better peer that is new is no regression.
    """
    fallen = {}
    for name in before.keys() & after.keys():
        peer = before[name].get("best")
        if peer is None or "seconds" not in after[name]["peers"].get(peer, {}):
            continue
        old, new = before[name]["ratio"], after[name]["peers"][peer]["seconds"] / after[name]["seconds"]
        if new <= (1.0 - FALL) * old:
            fallen[name] = (peer, old, new)
    return fallen
