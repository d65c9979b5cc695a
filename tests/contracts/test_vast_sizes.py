"""Sizes typed by accident, 10**9 to 10**400: each call answers, or refuses in one sentence, and nothing hangs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.vast_sizes import CHANNELS, OTHERS, QUICK, USES, fault_of


@pytest.mark.parametrize("size", [10**18, 10**400], ids=["1e18", "1e400"])
def test_vast_sizes_end_at_once(size):
    calls = {
        (name, use): lambda n, make=make, use=use: USES[use](make(n))
        for name, make in CHANNELS.items() for use in QUICK
    }
    calls |= {(name, ""): call for name, call in OTHERS.items()}
    faults = {key: fault for key, call in calls.items() if (fault := fault_of(call, size))}
    assert not faults


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory and time are those of Linux")
def test_every_call_of_a_vast_size_ends_with_little_memory():
    done = subprocess.run(
        [sys.executable, "-m", "contracts.vast_sizes"], capture_output=True, text=True, check=True, timeout=7200,
        cwd=Path(__file__).parents[1],
    )
    faults = [json.loads(line) for line in done.stdout.splitlines()]
    assert not faults, "\n".join(map(str, faults))


def test_a_fault_would_be_seen():
    def deep(n):
        return float(10**400 * n)

    assert "OverflowError" in fault_of(deep, 1)
    assert "MemoryError" in fault_of(lambda n: bytes(n), 2**60)
