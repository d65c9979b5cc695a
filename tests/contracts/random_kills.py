"""Processes that are killed at random while a test runs."""

import contextlib
import os
import random
import signal
import threading
from pathlib import Path


def kill_at_random(pids, stop, kills):
    """Kill one of the processes now and then, until told to stop."""
    rng = random.Random(1)
    while not stop.wait(0.7):
        with contextlib.suppress(Exception):  # it may have ended by itself
            os.kill(rng.choice(pids()), signal.SIGKILL)
            kills.append(1)


@contextlib.contextmanager
def killer(pids):
    stop, kills = threading.Event(), []
    thread = threading.Thread(target=kill_at_random, args=(pids, stop, kills))
    thread.start()
    try:
        yield kills
    finally:
        stop.set()
        thread.join()


def children(count):
    """The processes that this one started for tasks; none while one of them has not been started."""
    threads = Path("/proc/self/task").glob("*/children")  # each has the processes that its thread started
    pids = [int(pid) for thread in threads for pid in thread.read_text().split()]
    pids = [pid for pid in pids if b"popen_loky" in (Path("/proc") / str(pid) / "cmdline").read_bytes()]
    return pids if len(pids) == count else []
