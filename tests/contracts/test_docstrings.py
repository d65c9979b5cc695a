"""Every public name has a docstring with an example; test_public_calls.py runs the examples."""

import inspect
from types import ModuleType

import numpy as np
import pytest

from contracts.registry import public_names, resolved


@pytest.mark.parametrize("name", public_names())
def test_public_names_are_documented(name):
    thing = resolved(name)
    text = inspect.getdoc(thing) or ""
    if isinstance(thing, type) and issubclass(thing, Exception):
        assert len(text) > 20
        return
    assert ">>> " in text, f"{name} has no example"
    assert text[0].isupper() or isinstance(thing, np.ufunc), f"{name}: the first line should be a sentence"
    if isinstance(thing, (np.ufunc, ModuleType)) or not inspect.signature(thing).parameters:
        return
    assert "Parameters\n----------" in text, f"{name} does not list its parameters"
    missing = [p for p in inspect.signature(thing).parameters if p not in text]
    assert not missing, f"{name} does not describe {missing}"
