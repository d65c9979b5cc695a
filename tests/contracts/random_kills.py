"""Processes that are killed at random while a test runs."""

import contextlib
import os
import random
import signal
import threading
from pathlib import Path

PAUSE, POLL = 0.7, 0.02  # seconds from one death to the next at least, and between two looks at what runs


def kill_at_random(count, stop, kills, others):
    """Kill one of ``count`` processes now and then, when all of them run, until told to stop."""
    rng = random.Random(1)
    while not stop.wait(PAUSE):
        while len(pids := children() - others) < count and not stop.wait(POLL):
            pass
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            if len(pids) >= count:
                os.kill(rng.choice(sorted(pids)), signal.SIGKILL)
                kills.append(1)


@contextlib.contextmanager
def killer(count):
    """Where ``count`` processes for tasks are to start: kill them at random, and yield the list of deaths."""
    stop, kills = threading.Event(), []
    others = children()  # workers that tests before this one have left wait for minutes
    thread = threading.Thread(target=kill_at_random, args=(count, stop, kills, others))
    thread.start()
    try:
        yield kills
    finally:
        stop.set()
        thread.join()


def children():
    """The processes that this one has started for tasks and that have not ended."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            _, parent, _ = (path / "stat").read_text().rpartition(")")[2].split(maxsplit=2)
            if int(parent) == os.getpid() and b"popen_loky" in (path / "cmdline").read_bytes():
                found.add(int(path.name))
    return found
