"""``fastpriv bench --quick``: its answers are asserted, and its run is written. With --benchmark-disable: a few tasks.

Run: fastpriv bench, with the limits of the machine; docs/benches.md tells how to read the tables.
"""

import json
import sys

from comparison.program import TASKS, choose, run

FEW = ("one epsilon", "delta, 3,000 steps", "16 x 16", "16 people", "ndtr, 100,000")


def test_a_quick_run(request, tmp_path):
    few, said, history = request.config.getoption("benchmark_disable"), [], tmp_path / "history.jsonl"
    code = run(FEW if few else (), quick=True, history=str(history), write=said.append)
    sys.stdout.write("".join(said))
    assert code == 0, "".join(said)
    (entry,) = map(json.loads, history.read_text().splitlines())
    names = [task.name for task in choose(TASKS, FEW if few else ())]
    assert list(entry["tasks"]) == names
    assert len(names) >= 6
    for name in names:
        result = entry["tasks"][name]
        assert result["seconds"] > 0, name
        assert result["best"] is None or result["best"] in result["peers"], name
