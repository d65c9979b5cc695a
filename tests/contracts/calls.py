"""Valid calls of all public callables, taken from the examples of their docstrings.

Every example is run with its calls recorded: which function of the package was called, with which arguments. A method
is recorded for the class of the object, with the object bound. Methods without an example are in ``methods``.
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
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
from scipy.sparse import csr_array

import fastpriv
from contracts.public import NAMES, ROOMS

__all__ = ["Call", "methods", "public_calls", "recorded"]


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
    def visit_FunctionDef(self, node):
        """A function that a decorator compiles takes no calls of Python's."""
        return node if node.decorator_list else self.generic_visit(node)

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
def recorded(only=None):
    """Public name -> the first valid call of it, in the examples of all modules or of those whose name starts so."""
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

    for module_name in _modules(only):
        module = importlib.import_module(module_name)
        for test in doctest.DocTestFinder(exclude_empty=True).find(module, module_name):
            space = {**test.globs, "_recorded_call": record}
            with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                warnings.simplefilter("ignore")
                for example in test.examples:
                    if example.options.get(doctest.SKIP):  # it needs an extra that may be absent
                        continue
                    tree = ast.fix_missing_locations(_Recording().visit(ast.parse(example.source)))
                    try:
                        exec(compile(tree, test.name, "exec"), space)
                    except Exception:
                        if not example.exc_msg:
                            raise
    return found


def methods(directory):
    """Calls of methods that have no example of their own, by name; files go to the directory."""
    found = {}

    def add(function, *args, **kwargs):
        found.setdefault(_name(function), Call(_name(function), function, args, kwargs))

    rr, dense = fastpriv.RandomizedResponse(3, 1.0), fastpriv.Channel([[0.8, 0.2], [0.1, 0.9]])
    rows = csr_array(np.array([[0.5, 0.5], [0.2, 0.8]]))
    channels = (
        dense, rr, fastpriv.UnaryEncoding.optimized(3, 1.0), fastpriv.SubsetSelection(5, 1.0),
        fastpriv.GeometricMechanism(4, 1.0), fastpriv.DiscreteLaplace(4, 1.0),
        fastpriv.ExponentialMechanism([[0.0, 1.0], [1.0, 0.0]], 1.0), rr.product(dense),
        fastpriv.DefaultChannel(4, [0.5, 0.5], [1], [[0.25, 0.75]]), fastpriv.SparseChannel(rows, 0.0),
    )  # fmt: skip
    for one in channels:
        prior = [1 / one.inputs] * one.inputs
        secrets = [[0, 0]] if isinstance(one, fastpriv.ProductChannel) else [0, 1]
        for function, args in (
            (one.rows, (0, 1)), (one.column, (0,)), (one.power, (2,)), (one.then, (list(range(one.outputs)),)),
            (one.type_classes, (prior,)), (one.extreme_log_ratios, (prior,)),
        ):  # fmt: skip
            add(function, *args)
        add(one.sample, secrets, rng=1)
    add(fastpriv.ProductChannel, (rr, dense), (2, 1))
    add(fastpriv.SparseChannel, rows, 0.0)
    add(fastpriv.UnaryEncoding.rappor, 3, 1.0)
    noise, prior = fastpriv.GaussianMechanism(1.0, 1.0), fastpriv.Pmf([0.0, 1.0], [0.5, 0.5])
    add(noise.output_distribution, prior)
    add(noise.conditional_distribution, 0.5)
    add(prior.through_gaussian, 1.0)
    add(fastpriv.posterior([0.0, -1.0, -2.0]).probabilities, 0, 2)
    report = fastpriv.assess([1, 2, 2, 3], sigma=[1.0], epsilon=[0.5])
    add(report.to_csv, f"{directory}/table.csv")
    add(report.to_json, f"{directory}/table.json")
    add(report.to_figure, f"{directory}/figure.png")
    add(report.save, f"{directory}/report")
    add(fastpriv.awgn_capacity(2, 1.0, 1.0).to, "bits")
    return found


def public_calls(directory, only=None):
    """Those of ``recorded`` whose function or class can be reached from ``fastpriv``, and ``methods``."""
    names = {*NAMES, *(name for room in ROOMS.values() if room is not fastpriv.special for name in room.__all__)}
    found = {name: call for name, call in recorded(only).items() if name.partition(".")[0] in names}
    return found if only else found | methods(directory)


def _modules(only):
    return sorted(
        name for _, name, _ in pkgutil.walk_packages(fastpriv.__path__, "fastpriv.")
        if not name.startswith(("fastpriv.kernels", "fastpriv.__main__")) and (only is None or name.startswith(only))
    )  # fmt: skip
