"""Import time beside NumPy's, in processes of their own; the answer is the list of modules.

Run: pytest benches/bench_import.py
"""

import subprocess
import sys

import pytest


@pytest.mark.benchmark(group="import")
@pytest.mark.parametrize("module", ["numpy", "fastpriv"])
def test_import(benchmark, module):
    code = f"import {module}, sys; print(sum(name.startswith('scipy') for name in sys.modules))"

    def run():
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert run() == "0\n"
    benchmark.pedantic(run, rounds=10, warmup_rounds=1)
