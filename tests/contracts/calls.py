"""Valid calls of all public callables, taken from the examples of their docstrings.

Every example is run with its calls recorded: which function of the package was called, with which arguments. A method
is recorded for the class of the object, with the object bound. What has a call in no example is in ``MORE``.
"""

import ast
import copy
import doctest
import functools
import importlib
import inspect
import io
import pkgutil
import warnings
from contextlib import redirect_stdout

import numpy as np

import fastpriv

__all__ = ["Call", "recorded"]


class Call:
    """One valid call: a callable and its arguments by name."""

    def __init__(self, name, function, args, kwargs):
        self.name, self.function = name, function
        self.args, self.kwargs = list(args), dict(kwargs)
        try:
            self.signature = inspect.signature(function)
        except ValueError:
            self.signature = None

    def parameters(self):
        """Names of the parameters that can be given one by one."""
        if self.signature is None:
            return [f"x{i}" for i in range(len(self.args))]
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return [p.name for p in self.signature.parameters.values() if p.kind not in kinds]

    def given(self, name):
        """The argument of the valid call, or the default."""
        if self.signature is None:
            return self.args[int(name[1:])]
        bound = self.signature.bind(*self.args, **self.kwargs).arguments
        return bound.get(name, self.signature.parameters[name].default)

    def with_argument(self, name, value):
        """The call with one argument replaced, to be made without arguments."""
        if self.signature is None:
            args = list(self.args)
            args[int(name[1:])] = value
            return functools.partial(self.function, *args)
        bound = self.signature.bind(*self.args, **self.kwargs)
        bound.arguments[name] = value
        order = [p for p in self.signature.parameters if p in bound.arguments]
        bound.arguments = {p: bound.arguments[p] for p in order}
        args, kwargs, names = [], {}, False
        for parameter in self.signature.parameters.values():
            if parameter.name not in bound.arguments:
                names = names or parameter.kind is not parameter.VAR_POSITIONAL
                continue
            one = bound.arguments[parameter.name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                args.extend(one)
            elif parameter.kind is parameter.VAR_KEYWORD:
                kwargs.update(one)
            elif parameter.kind is parameter.KEYWORD_ONLY or names:
                kwargs[parameter.name] = one
            else:
                args.append(one)
        return functools.partial(self.function, *args, **kwargs)


class _Recording(ast.NodeTransformer):
    def visit_Call(self, node):
        self.generic_visit(node)
        return ast.copy_location(
            ast.Call(ast.Name("_recorded_call", ast.Load()), [node.func, *node.args], node.keywords), node
        )


def _name(function):
    """The public name of a function, class or method; None for what is not of the package."""
    if isinstance(function, np.ufunc):
        return f"special.{function.__name__}" if hasattr(fastpriv.special, function.__name__) else None
    owner = getattr(function, "__self__", None)
    if owner is not None and not inspect.ismodule(owner):
        kind = owner if isinstance(owner, type) else type(owner)
        if not kind.__module__.startswith("fastpriv"):
            return None
        return f"{kind.__qualname__}.{function.__name__}"
    if not str(getattr(function, "__module__", "")).startswith("fastpriv"):
        return None
    return getattr(function, "__qualname__", None) or f"{type(function).__qualname__}.__call__"


@functools.cache
def recorded():
    """Public name -> the first valid call of it."""
    found = {}

    def record(function, *args, **kwargs):
        name = _name(function)
        if name is None or "<" in name or name in found:
            return function(*args, **kwargs)
        try:
            kept = copy.deepcopy((args, kwargs))
        except TypeError:  # a generator, a module: such arguments are used up
            kept = None
        answer = function(*args, **kwargs)
        if kept is not None:
            found[name] = Call(name, function, *kept)
        return answer

    for module_name in _modules():
        module = importlib.import_module(module_name)
        tests = doctest.DocTestFinder(exclude_empty=True).find(module, module_name)
        parser = doctest.DocTestParser()
        tests += [
            parser.get_doctest(thing.__doc__, {}, f"{module_name}.{name}", None, None)
            for name, thing in vars(module).items() if isinstance(thing, np.ufunc) and thing.__doc__
        ]  # fmt: skip
        for test in tests:
            space = {**test.globs, "_recorded_call": record}
            with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                for example in test.examples:
                    tree = ast.fix_missing_locations(_Recording().visit(ast.parse(example.source)))
                    try:
                        exec(compile(tree, test.name, "exec"), space)
                    except Exception:
                        if not example.exc_msg:
                            raise
    return found


def _modules():
    return sorted(
        name for _, name, _ in pkgutil.walk_packages(fastpriv.__path__, "fastpriv.")
        if not name.startswith("fastpriv.kernels") and name != "fastpriv.__main__"
    )  # fmt: skip
