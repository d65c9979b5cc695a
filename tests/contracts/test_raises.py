"""Every `raise` in fastpriv has a test that matches its text.

The messages are f-strings, so what is compared is their constant text: a message counts as tested when some string in a
test shares twelve consecutive letters with it. Messages whose constant text is all short words are tested by name in
test_validate.py.
"""

import ast
import re
from pathlib import Path

import fastpriv

SHARED = 12
ROOT = Path(fastpriv.__file__).parent
TESTS = Path(__file__).parents[1]
GENERIC = {"_validate.py"}  # messages built of the caller's words


def fragments(node):
    """The constant parts of the message of a raise."""
    if not isinstance(node.exc, ast.Call):
        return []
    return [
        piece.value for argument in node.exc.args[:1] for piece in ast.walk(argument)
        if isinstance(piece, ast.Constant) and isinstance(piece.value, str)
    ]  # fmt: skip


def strings_of_the_tests():
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from re.split(r"\.\*|\\d\+?|[\[\]()+*?|^$\\]", node.value.replace("\\.", "."))


def grams(text):
    return {text[i : i + SHARED] for i in range(len(text) - SHARED + 1)}


def test_every_raise_is_matched_by_a_test():
    tested = set()
    for text in strings_of_the_tests():
        tested |= grams(text)
    untested = []
    for path in sorted(ROOT.rglob("*.py")):
        if path.name in GENERIC:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Raise):
                continue
            said = {gram for text in fragments(node) for gram in grams(text)}
            if said and not said & tested:
                untested.append(f"{path.relative_to(ROOT)}:{node.lineno}: {' ... '.join(fragments(node))[:110]}")
    assert not untested, "no test matches the text of:\n" + "\n".join(untested)


def test_messages_name_constraint_and_value():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
                continue
            kind = node.exc.func.id if isinstance(node.exc.func, ast.Name) else ""
            text = "".join(fragments(node))
            if kind in ("DomainError", "ShapeError") and not ("must" in text and "got" in text):
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}: {text[:110]}")
    assert not wrong, "not of the form '<argument> must be <constraint>; got <value>':\n" + "\n".join(wrong)
