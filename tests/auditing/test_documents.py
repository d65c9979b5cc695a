"""The examples of docs/auditing.md run and say what they say."""

import doctest
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "auditing.md"


def test_examples_of_the_document():
    found = doctest.testfile(str(DOCUMENT), module_relative=False)
    assert found.attempted > 15
    assert found.failed == 0
