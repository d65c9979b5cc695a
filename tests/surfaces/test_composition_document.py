"""The examples of docs/composition.md and of eight other pages run, and the table of steps is one."""

import doctest
import re
from pathlib import Path

import pytest

from fastpriv.adapters.step_tables import KINDS, read_steps

DOCUMENT = Path(__file__).parents[2] / "docs" / "composition.md"


@pytest.mark.parametrize(
    ("page", "least"),
    [("composition", 26), ("sampling", 16), ("adapters", 7), ("noise_level", 21), ("coming_from", 11), ("index", 3),
     ("start_column", 9), ("start_pair", 9), ("start_training", 10)],
)
def test_examples_of_the_page(page, least):
    path = DOCUMENT.with_name(f"{page}.md")
    done = doctest.testfile(str(path), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert done.attempted >= least
    assert done.failed == 0


def test_the_table_of_the_document(tmp_path):
    text = DOCUMENT.read_text()
    table = re.search(r"^```\n(kind,.*?)^```$", text, re.DOTALL | re.MULTILINE)[1]
    (tmp_path / "steps.csv").write_text(table)
    assert [step.count for step in read_steps(tmp_path / "steps.csv")] == [3000, 5, 10, 20]
    columns = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE))
    assert list(columns) == list(KINDS)
    for kind, names in columns.items():
        assert re.findall(r"`(\w+)`", names) == list(KINDS[kind].parameters)
