"""The examples of docs/composition.md and of four other pages run, and the table of steps is one."""

import doctest
import re
from pathlib import Path

from fastpriv.adapters.step_tables import KINDS, read_steps

DOCUMENT = Path(__file__).parents[2] / "docs" / "composition.md"


def test_examples_of_the_document():
    found = doctest.testfile(str(DOCUMENT), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 25
    assert found.failed == 0


def test_examples_of_the_page_of_samplings():
    page = DOCUMENT.with_name("sampling.md")
    found = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 15
    assert found.failed == 0


def test_examples_of_the_page_of_adapters():
    found = doctest.testfile(str(DOCUMENT.with_name("adapters.md")), module_relative=False)
    assert found.attempted > 6
    assert found.failed == 0


def test_the_table_of_the_document(tmp_path):
    text = DOCUMENT.read_text()
    table = re.search(r"^```\n(kind,.*?)^```$", text, re.DOTALL | re.MULTILINE)[1]
    (tmp_path / "steps.csv").write_text(table)
    assert [step.count for step in read_steps(tmp_path / "steps.csv")] == [3000, 5, 10, 20]
    columns = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE))
    assert list(columns) == list(KINDS)
    for kind, names in columns.items():
        assert re.findall(r"`(\w+)`", names) == list(KINDS[kind].parameters)


def test_examples_of_the_page_of_noise_levels():
    found = doctest.testfile(str(DOCUMENT.with_name("noise_level.md")), module_relative=False)
    assert found.attempted > 20
    assert found.failed == 0


def test_examples_of_the_page_for_users_of_other_tools():
    found = doctest.testfile(str(DOCUMENT.with_name("coming_from.md")), module_relative=False)
    assert found.attempted > 10
    assert found.failed == 0
