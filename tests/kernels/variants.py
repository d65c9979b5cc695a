"""One program under every instruction set: what it prints must be the same.

A variant that the CPU lacks is a skipped test that says so; it is never compared with a copy of another.
"""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from fastpriv.kernels.instruction_sets import INSTRUCTION_SETS, of_this_machine

__all__ = ["check_same_lines", "each_variant", "each_wider_variant", "printed"]

TESTS = Path(__file__).parents[1]


def parameters(variants, available):
    """The variants as parameters of a test that runs them all, in processes of its own; others are skipped."""
    found = []
    for name in variants:
        missing = () if name in available else (pytest.mark.skip(f"not run: this CPU has no {name}"),)
        found.append(pytest.param(name, marks=(pytest.mark.all_variants, *missing)))
    return found


each_variant = pytest.mark.parametrize("variant", parameters(INSTRUCTION_SETS, of_this_machine()))
each_wider_variant = pytest.mark.parametrize("variant", parameters(INSTRUCTION_SETS[1:], of_this_machine()))


@cache
def started(program, variant):
    path = os.pathsep.join([str(TESTS), *sys.path])
    return subprocess.Popen(
        [sys.executable, "-c", program], env=os.environ | {"FASTPRIV_ISA": variant, "PYTHONPATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )


@cache
def printed(program, variant):
    """What the program, which can import the tests, writes to standard output under a variant, as bytes."""
    process = started(program, variant)
    out, errors = process.communicate()
    assert process.returncode == 0, (variant, errors[-2000:].decode())
    return out


def check_same_lines(program, count, variant):
    """The program prints so many lines, and under the variant the same ones as under ``baseline``."""
    assert variant != "baseline"
    for name in ("baseline", variant):  # both run at once
        started(program, name)
    plain, found = (printed(program, name).decode().splitlines() for name in ("baseline", variant))
    assert len(plain) == count
    different = [line for line, other in zip(plain, found, strict=True) if line != other]
    assert not different, f"{variant} differs from baseline in {different}"
