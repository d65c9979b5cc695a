"""docs/errata.md is what tools/errata.py writes: its examples run, and prove what the page says."""

import importlib.util
import json
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture(scope="module")
def errata():
    spec = importlib.util.spec_from_file_location("errata", TOOLS / "errata.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_page_is_what_the_tool_writes(errata):
    assert errata.PAGE.read_text(encoding="utf-8") == errata.page()


def test_an_example_that_shows_nothing_is_refused(errata, tmp_path, monkeypatch):
    entry = """
[[section]]
title = "One"
text = "Two"
[[section.entry]]
title = "Three"
where = "here"
verdict = "false"
said = "1 + 1 is at most 2"
holds = "it does"
size = "{true} for {printed}"
code = "printed, true = 2, 1 + 1"
"""
    monkeypatch.setattr(errata, "ENTRIES", tmp_path / "errata.toml")
    errata.ENTRIES.write_text(entry)
    with pytest.raises(SystemExit, match="Three: the example does not show it"):
        errata.page()
    errata.ENTRIES.write_text(entry.replace("1 + 1\"", "1 + 2\""))
    assert "**Size**: 3 for 2." in errata.page()
    errata.ENTRIES.write_text(entry.replace("2, 1 + 1", "2, 3; a = b = 1; c = 1; d = 1; e = 1; f = 1"))
    with pytest.raises(SystemExit, match="Three: more than 5 statements"):
        errata.page()


def test_every_answer_of_another_package_names_its_version(errata):
    record = json.loads(errata.RECORD.read_text(encoding="utf-8"))
    assert len(record) >= 10
    for one in record.values():
        assert any(mark in one["versions"] for mark in (" 0.", " 1.", " at commit "))
        assert one["printed"].strip()
