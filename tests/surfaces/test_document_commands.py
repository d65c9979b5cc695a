"""Every command in the documents runs in a directory that ``fastpriv examples`` wrote."""

import re
import shlex
from pathlib import Path

import pytest

from fastpriv.cli import main

DOCS = Path(__file__).parents[2] / "docs"
#: Commands that take more than a few seconds: studies of attacks, and large grids.
LONG = re.compile(r"fastpriv (membership|leakage|assess people|sweep gaussian)")


def commands():
    """Commands of all pages, in their order, without those for clusters and those of data sets that ship, which have
    tests of their own."""
    for page in sorted(DOCS.glob("*.md")):
        for block in re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
            for line in block.replace("\\\n", "").splitlines():
                words = shlex.split(line, comments=True) if line.startswith("fastpriv ") else []
                if len(words) > 2 and "--merge" not in words:
                    yield pytest.param(words[1:], id=f"{page.stem}: {shlex.join(words[1:])}",
                                       marks=[pytest.mark.slow] if LONG.match(line) else [])


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    home = tmp_path_factory.mktemp("examples")
    assert main(["examples", str(home)]) == 0
    return home


def test_there_are_commands():
    assert len(list(commands())) >= 25


@pytest.mark.slow
@pytest.mark.parametrize("words", list(commands()))
def test_the_command_runs(words, directory, monkeypatch, capsys):
    monkeypatch.chdir(directory)
    if "--status" in words and not (directory / words[-1]).exists():
        assert main(["sweep", "sweep.toml", "--store", words[-1], "--out", "curve.parquet", "--quiet"]) == 0
    assert main(words) == (1 if "--claim" in words else 0)
    assert capsys.readouterr().out
