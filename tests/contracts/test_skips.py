"""A run of all tests fails where one was skipped for a reason that tests/conftest.py does not list."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LISTED = """
import pytest
def test_of_an_extra():
    pytest.importorskip("torch.not_there")
"""
UNLISTED = """
@pytest.mark.skip(reason="no time")
def test_put_off():
    pass
"""
WHOLE_FILE = "import pytest\npytest.importorskip('scipy.not_there')\n"


@pytest.mark.parametrize("unlisted", [False, True])
@pytest.mark.parametrize("processes", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_reasons_of_skips(unlisted, processes, tmp_path):
    (tmp_path / "conftest.py").write_text((Path(__file__).parents[1] / "conftest.py").read_text())
    (tmp_path / "test_one.py").write_text(LISTED + UNLISTED * unlisted)
    (tmp_path / "test_two.py").write_text("def test_passes():\n    pass\n")
    if unlisted:
        (tmp_path / "test_three.py").write_text(WHOLE_FILE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", processes, "-p", "no:cacheprovider", "--rootdir", ".", "."],
        env=os.environ | {"FASTPRIV_SKIPS": "listed"}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )
    *_, before, last = done.stdout.splitlines()
    assert done.returncode == unlisted, done.stdout
    assert last.startswith("1 passed, 3 skipped in" if unlisted else "1 passed, 1 skipped in")
    if unlisted:
        assert "test_one.py::test_put_off: Skipped: no time" in done.stdout
        assert "test_three.py: Skipped: could not import 'scipy.not_there'" in done.stdout
        assert "torch" not in before
