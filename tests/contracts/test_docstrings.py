"""Every public name has a docstring with an example, and every example runs."""

import doctest
import importlib
import inspect
import pkgutil
from types import ModuleType

import numpy as np
import pytest

import fastpriv
from contracts.public import NAMES, ROOMS

MODULES = ["fastpriv", *sorted(
    name for _, name, _ in pkgutil.walk_packages(fastpriv.__path__, "fastpriv.")
    if not name.startswith("fastpriv.kernels") and name != "fastpriv.__main__"
)]  # fmt: skip
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def public():
    return [*NAMES, *(f"{room}.{name}" for room in ROOMS for name in exported(room))]


def exported(room):
    module = getattr(fastpriv, room)
    return [name for name in module.__all__ if not isinstance(getattr(module, name, None), (tuple, dict))]


def found(name):
    thing = fastpriv
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


@pytest.mark.parametrize("name", public())
def test_public_names_are_documented(name):
    thing = found(name)
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


@pytest.mark.parametrize("module_name", MODULES)
def test_examples_run(module_name):
    module = importlib.import_module(module_name)
    tests = doctest.DocTestFinder(exclude_empty=True).find(module, module_name)
    parser = doctest.DocTestParser()
    tests += [  # the finder does not look into ufuncs
        parser.get_doctest(thing.__doc__, {}, f"{module_name}.{name}", None, None)
        for name, thing in vars(module).items() if isinstance(thing, np.ufunc) and thing.__doc__
    ]  # fmt: skip
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    said = []
    with np.printoptions(legacy=False):
        for test in tests:
            runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)
