"""The proofs of tools/proofs hold, say what BOUNDS.md lists, and fail when a header is changed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MISSING = [name for name in ("sollya", "gappa") if shutil.which(name) is None]
needs_programs = pytest.mark.skipif(bool(MISSING), reason=f"not run: {' and '.join(MISSING)} not installed")
ELEMENTARY, ERFC = "special/fp_elementary.h", "special/fp_erfc.h"


def proofs(*arguments):
    command = [sys.executable, str(ROOT / "tools" / "proofs"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def mutated(folder, header, old, new):
    """A copy of csrc in which a text of a header is another."""
    shutil.copytree(ROOT / "csrc", folder / "csrc", ignore=shutil.ignore_patterns("*.c", "*.so", "*.pyx"))
    path = folder / "csrc" / header
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    return folder


@needs_programs
def test_exp_and_log_are_proved():
    result = proofs("exp", "log")
    assert result.returncode == 0, result.stderr
    assert "fp_exp: ulps" in result.stdout
    assert "fp_log: ulps" in result.stdout


@needs_programs
@pytest.mark.parametrize(("name", "old", "new"), [  # by 2^-45 of itself
    ("exp", "0x1.5555555555559p-3", "0x1.5555555555603p-3"),
    ("log", "0x1.555555555558fp-1", "0x1.5555555555639p-1"),
])
def test_a_changed_coefficient_is_seen(tmp_path, name, old, new):
    result = proofs(name, "--root", str(mutated(tmp_path, ELEMENTARY, old, new)))
    assert result.returncode == 1
    assert f"for fp_{name}_tail" in result.stderr, result.stderr


def test_a_statement_that_is_too_small_is_an_error(tmp_path):
    root = mutated(tmp_path, "special/fp_normal_tail_table.h", "1.2325951644078310e-32", "1.0e-32")
    result = proofs("normal_tail", "--root", str(root))
    if MISSING:
        assert result.stdout.startswith("not run:")
        return
    assert result.returncode == 1
    assert "states 1e-32 for fp_normal_tail_table" in result.stderr


@needs_programs
@pytest.mark.slow
def test_all_proofs_hold_and_bounds_lists_them():
    result = proofs()
    assert result.returncode == 0, result.stderr
    for row in json.loads((ROOT / "tools" / "proofs" / "proved.json").read_text()):
        start = f"{row['proof']}: {row['name']}: {row['what']}: "
        lines = [line for line in result.stdout.splitlines() if line.startswith(start)]
        assert len(lines) == 1, row
        stated, proved = (float(x) for x in lines[0].partition(": stated ")[2].split(" (")[0].split(", proved "))
        assert stated == pytest.approx(row["stated"], rel=1e-3)
        assert proved == pytest.approx(row["proved"], rel=1e-2)
