"""Every message of an error in fastpriv is matched by a test, and says constraint and value."""

from pathlib import Path

import pytest

import fastpriv
from contracts.raised import ENOUGH, Expectations, messages
from contracts.source_facts import facts

ROOT = Path(fastpriv.__file__).parent
TESTS = Path(__file__).parents[1]
GENERIC = {"validate.py"}  # messages built of the caller's words: test_validate.py tests them by name


@pytest.mark.slow
def test_every_raise_is_matched_by_a_test():
    expected = Expectations(path for path in sorted(TESTS.rglob("test_*.py")) if path != Path(__file__))
    untested = expected.unmatched((path for path in sorted(ROOT.rglob("*.py")) if path.name not in GENERIC), ROOT)
    assert not untested, (
        f"no string of a test matches {ENOUGH} letters in a row of these messages; add a test with match= for each:\n"
        + "\n".join(untested)
    )


INVENTED = {
    "another constraint of a known argument": "raise DomainError(f'sigma must be at least the square of mu; got {x}.')",
    "a known constraint of other things": "raise DomainError(f'{name} must be a wholesome number; got {x}. Pass one.')",
    "a known beginning and end": "raise DomainError(f'sigma must be odd; got {x}. Pass one number a cat.')",
    "returned": "def fault():\n    return ShapeError(f'sigma must be a seven-sided array; got shape {shape}.')",
    "joined": "raise DomainError('sigma must be finite and ' + f'of the colour {colour}; got {x}')",
    "one of two": "raise DomainError('sigma must be positive' if a else 'sigma must be of another colour; got none')",
}
KNOWN = """
def test_known():
    with pytest.raises(DomainError, match=r"sigma must be positive and finite; got -1\\.0 at index 0"):
        f(-1.0)
    with pytest.raises(DomainError, match="must be a whole number; got .*Pass one number a secret|sigma must be at"):
        g()
    assert "sigma must be of kind" in said
    assert f"{name} must be {constraint}; got {value}" in said
    assert "sigma must be positive" in said
"""


def test_an_invented_message_would_be_seen(tmp_path):
    (tmp_path / "test_known.py").write_text(KNOWN)
    expected = Expectations([tmp_path / "test_known.py"])
    for name, source in INVENTED.items():
        (tmp_path / "module.py").write_text(source + "\n")
        (line,) = expected.unmatched([tmp_path / "module.py"], tmp_path)
        assert line.startswith("module.py:"), name
    genuine = """
raise DomainError(f"sigma must be positive and finite; got {float(x[i])!r} at index {i} ({k} of {n}). Pass {what}.")
raise ShapeError(f"{name} must be a whole number; got {x!r}. " + f"Pass one number a secret{more}.")
raise Odd("sigma must be of any colour")
raise DomainError(f"{name}: {fault}")
raise caught
"""
    (tmp_path / "module.py").write_text(genuine)
    assert expected.unmatched([tmp_path / "module.py"], tmp_path) == []


def test_every_message_of_the_package_is_read():
    found = [message for path in ROOT.rglob("*.py") for message in messages(path)]
    assert len(found) > 300


def test_messages_name_constraint_and_value():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        for line, name, plain, branches in facts(path).calls:
            if not plain or name not in ("DomainError", "ShapeError"):
                continue
            for template in branches:
                text = "".join(letter or "{}" for letter in template)
                if text != "{}" and not ("must" in text and "got" in text):
                    wrong.append(f"{path.relative_to(ROOT)}:{line}: {text[:110]}")
    assert not wrong, "not of the form '<argument> must be <constraint>; got <value>':\n" + "\n".join(wrong)
