"""Runs programs of other packages, each in a process of its own with limits: the main file of a worker process.

The worker reads a JSON object from standard input: ``imports`` (modules that are loaded before the clock starts),
``programs`` (texts that set ``answer``), ``seconds`` of processor time and ``memory`` in bytes for each. It writes one
JSON object a line: ``status`` (answered, raised, out of time, out of memory, died), ``answer`` (list of numbers),
``error`` (text), ``seconds`` (processor time) and ``memory`` (bytes at the peak beyond those of an empty program).
It loads nothing of fastpriv, so that memory and time are the other package's.
"""

import contextlib
import json
import os
import resource
import select
import sys
import time
import warnings
from typing import Any

_PATIENCE = 5.0  # a program may last so many times its processor time, on a machine that is busy
_MAX_ANSWER = 1 << 16  # bytes that are read of a program's result


def main() -> None:
    """Read the task, run its programs in turn and write their outcomes."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != os.path.dirname(os.path.abspath(__file__))]
    task = json.load(sys.stdin)
    output = os.fdopen(os.dup(1), "w")
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silence, stream)
    warnings.simplefilter("ignore")
    failed = ""
    for module in task["imports"]:
        try:
            __import__(module)
        except Exception as error:
            failed = failed or f"{type(error).__name__}: {error}"
    if failed:
        output.write(json.dumps({"status": "not installed", "error": failed}) + "\n")
        return
    idle = _outcome("answer = 0.0", task["seconds"], task["memory"])["memory"]
    for program in task["programs"]:
        outcome = _outcome(program, task["seconds"], task["memory"])
        outcome["memory"] = max(0, outcome["memory"] - idle)
        output.write(json.dumps(outcome) + "\n")
        output.flush()


def _outcome(program: str, seconds: float, memory: int) -> dict[str, Any]:
    """Run one program in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run(program, seconds, memory, writer)
    os.close(writer)
    deadline, text, expired = time.monotonic() + _PATIENCE * seconds, b"", False
    while len(text) < _MAX_ANSWER:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(reader, _MAX_ANSWER) if ready else b""
        expired = not ready
        if not piece:
            break
        text += piece
    os.close(reader)
    if expired:
        os.kill(child, 9)
    _, status, usage = os.wait4(child, 0)
    used = usage.ru_utime + usage.ru_stime
    outcome: dict[str, Any] = {"status": "died", "answer": [], "error": f"signal {os.WTERMSIG(status)}"}
    if text:
        outcome = json.loads(text)
    elif expired or used >= 0.9 * seconds:
        outcome |= {"status": "out of time", "error": f"more than {seconds:g} s"}
    return outcome | {"seconds": used, "memory": 1024 * usage.ru_maxrss}


def _run(program: str, seconds: float, memory: int, writer: int) -> None:
    """Execute a program within its limits, write what it answers, and end the process."""
    with open("/proc/self/statm") as file:
        present = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (present + memory, present + memory))
    resource.setrlimit(resource.RLIMIT_CPU, (max(1, round(seconds)),) * 2)
    outcome: dict[str, Any] = {"status": "answered", "answer": [], "error": ""}
    try:
        names: dict[str, Any] = {}
        exec(program, names)  # a text of ``accountants``, never of a file
        answer = names["answer"]
        outcome["answer"] = [float(number) for number in (answer if isinstance(answer, tuple) else (answer,))]
    except MemoryError:
        outcome |= {"status": "out of memory", "error": f"more than {memory / 1e9:g} GB"}
    except Exception as error:
        outcome |= {"status": "raised", "error": f"{type(error).__name__}: {error}"[:300]}
    with contextlib.suppress(OSError):
        os.write(writer, json.dumps(outcome).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
