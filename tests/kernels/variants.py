"""One program under every instruction set: what it prints must be the same."""

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["VARIANTS", "check_same_lines", "printed"]

TESTS = Path(__file__).parents[1]
VARIANTS = ("baseline", "avx2", "avx512")  # one that the machine lacks falls back to the best it has


def printed(program, variants=VARIANTS):
    """What the program writes to standard output under each, as bytes; all run at once and can import the tests."""
    path = os.pathsep.join([str(TESTS), *sys.path])
    running = {
        name: subprocess.Popen(
            [sys.executable, "-c", program], env=os.environ | {"FASTPRIV_ISA": name, "PYTHONPATH": path},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for name in variants
    }  # fmt: skip
    found = {}
    for name, process in running.items():
        found[name], errors = process.communicate()
        assert process.returncode == 0, (name, errors[-2000:].decode())
    return found


def check_same_lines(program, count):
    """The program prints so many lines, and the same ones under every instruction set."""
    lines = {name: out.decode().splitlines() for name, out in printed(program).items()}
    assert len(lines["baseline"]) == count
    for name in VARIANTS[1:]:
        pairs = zip(lines["baseline"], lines[name], strict=True)
        different = [line for line, other in pairs if line != other]
        assert not different, f"{name} differs from baseline in {different}"
