"""All public callables, each with valid calls of it: what the examples of the docstrings call, recorded as they run.

A contract that every public callable keeps (errors, missing values, estimates, units, sizes) is tested over this
registry, so that a new quantity with an example is tested too. A method is recorded for the class of the object, with
the object bound; ``methods`` has those without an example.
"""

import ast
import copy
import doctest
import functools
import importlib.util
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

import numpy as np
from scipy.sparse import csr_array

import fastpriv

__all__ = ["MODULES", "NAMES", "ROOMS", "Call", "calls_of", "examples", "more_calls", "public_names", "resolved"]

_SHOWN = [name for name in dir(fastpriv) if not name.startswith("__")]
#: Names that ``dir`` shows; rooms of ``studies`` have addresses of their own.
ROOMS = {name: one for name in _SHOWN if name != "studies" and isinstance(one := getattr(fastpriv, name), ModuleType)}
NAMES = [name for name in _SHOWN if name not in ROOMS and name != "studies"]
#: Modules that import a package which the extra ``test`` lacks; ``tools/hosts`` runs their tests.
_SOCKETS = {f"fastpriv.adapters.{host}" for host in ("flower", "jax", "opacus", "pfl", "torch")}
_BELOW = sorted(
    name for _, name, _ in pkgutil.walk_packages(fastpriv.__path__, "fastpriv.")
    if not name.startswith("fastpriv.kernels") and name not in {"fastpriv.__main__", *_SOCKETS}
)


def _has_examples(module_name):
    path = importlib.util.find_spec(module_name).origin
    return not path.endswith(".py") or ">>>" in Path(path).read_text()


#: The package, and the modules in which an example may stand.
MODULES = ["fastpriv", *filter(_has_examples, _BELOW)]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MOST_CALLS = 4  # of one callable: each call gives other parameters


def public_names():
    """Dotted names of all public functions, classes and objects, without tables."""
    listed = {
        room: [name for name in module.__all__ if not isinstance(getattr(module, name, None), (tuple, dict))]
        for room, module in ROOMS.items()
    }
    return [*NAMES, *(f"{room}.{name}" for room, names in listed.items() for name in names)]


def resolved(name):
    """The object of a dotted name below ``fastpriv``."""
    return functools.reduce(getattr, name.split("."), fastpriv)


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

    def arguments(self):
        """The arguments that the call gives, by name, without those of ``*args`` and ``**kwargs``."""
        if self.signature is None:
            return {f"x{i}": value for i, value in enumerate(self.args)}
        bound = self.signature.bind(*self.args, **self.kwargs).arguments
        return {name: bound[name] for name in self.parameters() if name in bound}

    def with_arguments(self, **changed):
        """The call with some arguments replaced, to be made without arguments."""
        if self.signature is None:
            args = [changed.get(f"x{i}", value) for i, value in enumerate(self.args)]
            return functools.partial(self.function, *args)
        bound = self.signature.bind(*self.args, **self.kwargs)
        bound.arguments |= changed
        args, kwargs, skipped = [], {}, False
        for parameter in self.signature.parameters.values():
            if parameter.name not in bound.arguments:
                skipped = skipped or parameter.kind is not parameter.VAR_POSITIONAL
                continue
            value = bound.arguments[parameter.name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                args.extend(value)
            elif parameter.kind is parameter.VAR_KEYWORD:
                kwargs.update(value)
            elif parameter.kind is parameter.KEYWORD_ONLY or skipped:
                kwargs[parameter.name] = value
            else:
                args.append(value)
        return functools.partial(self.function, *args, **kwargs)


class _Recording(ast.NodeTransformer):
    def visit_FunctionDef(self, node):
        """A function that a decorator compiles takes no calls of Python's."""
        return node if node.decorator_list else self.generic_visit(node)

    def visit_Call(self, node):
        self.generic_visit(node)
        return ast.Call(ast.Name("_recorded_call", ast.Load()), [node.func, *node.args], node.keywords)


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
def examples(module_name):
    """What fails when the examples of a module run, as a text, and the calls that they make of names defined there."""
    found = {}
    module = importlib.import_module(module_name)

    def record(function, *args, **kwargs):
        name = _name(function)
        owner = getattr(function, "__self__", function)
        home = getattr(owner if isinstance(owner, type) else type(owner), "__module__", "")
        if owner is function:
            home = "fastpriv.special" if isinstance(function, np.ufunc) else getattr(function, "__module__", "")
        if name is None or "<" in name or home != module_name:
            return function(*args, **kwargs)
        try:
            call = Call(name, function, *copy.deepcopy((args, kwargs)))
        except TypeError:  # a generator, a module: such arguments are used up
            call = None
        answer = function(*args, **kwargs)
        if call is not None:
            others = found.setdefault(name, {})
            if len(others) < MOST_CALLS:
                others.setdefault(tuple(call.arguments()), call)
        return answer

    tests = doctest.DocTestFinder(exclude_empty=True).find(module, module_name)
    tests += [  # the finder does not look into ufuncs
        doctest.DocTestParser().get_doctest(thing.__doc__, {}, f"{module_name}.{name}", None, None)
        for name, thing in vars(module).items() if isinstance(thing, np.ufunc) and thing.__doc__
    ]
    runner, said = doctest.DocTestRunner(optionflags=FLAGS), []
    with np.printoptions(legacy=False):
        for test in tests:
            test.globs["_recorded_call"] = record
            for example in test.examples:
                tree = _Recording().visit(ast.parse(example.source))
                example.source = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
            runner.run(test, out=said.append, clear_globs=False)
    return "".join(said), [call for others in found.values() for call in others.values()]


def calls_of(module_name):
    """The calls in the examples of a module of names that can be reached from ``fastpriv``."""
    names = {name.rpartition(".")[2] for name in public_names()}
    return [call for call in examples(module_name)[1] if call.name.partition(".")[0] in names]


def more_calls(directory):
    """Calls of methods and of parameters that no example gives; files go to the directory."""
    found = []

    def add(function, *args, **kwargs):
        found.append(Call(_name(function), function, args, kwargs))

    rows, half = [[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]
    rr, dense = fastpriv.RandomizedResponse(3, 1.0), fastpriv.Channel(rows)
    channels = (
        dense, rr, fastpriv.mechanisms.UnaryEncoding.optimized(3, 1.0), fastpriv.mechanisms.SubsetSelection(5, 1.0),
        fastpriv.mechanisms.GeometricMechanism(4, 1.0), fastpriv.mechanisms.DiscreteLaplace(4, 1.0),
        fastpriv.mechanisms.ExponentialMechanism([[0.0, 1.0], [1.0, 0.0]], 1.0), rr.product(dense),
        fastpriv.channels.DefaultChannel(4, half, [1], [[0.25, 0.75]]),
        fastpriv.channels.SparseChannel(csr_array(rows), 0.0),
    )
    for channel in channels:
        prior = [1 / channel.inputs] * channel.inputs
        secrets = [[0, 0]] if isinstance(channel, fastpriv.channels.ProductChannel) else [0, 1]
        for function, args in (
            (channel.rows, (0, 1)), (channel.column, (0,)), (channel.power, (2,)),
            (channel.then, (list(range(channel.outputs)),)), (channel.type_classes, (prior,)),
            (channel.extreme_log_ratios, (prior,)),
        ):
            add(function, *args)
        add(channel.sample, secrets, rng=1)
    add(fastpriv.channels.ProductChannel, (rr, dense), (2, 1))
    add(fastpriv.channels.SparseChannel, csr_array(rows), 0.0)
    add(fastpriv.mechanisms.SubsetSelection, 5, 1.0, size=2)
    add(fastpriv.mechanisms.UnaryEncoding, 5, p=0.7, q=0.2)
    add(fastpriv.mechanisms.UnaryEncoding.rappor, 3, 1.0)
    add(fastpriv.mechanisms.ExponentialMechanism, rows, 1.0, sensitivity=1.0)
    noise, prior = fastpriv.GaussianMechanism(1.0, 1.0), fastpriv.Pmf([0.0, 1.0], half)
    add(noise.output_distribution, prior)
    add(noise.conditional_distribution, 0.5)
    add(prior.through_gaussian, 1.0)
    add(fastpriv.Pmf, [0.0, 1.0], half)
    add(fastpriv.distributions.PmfStack([0.0, 1.0], [half, half]).through_gaussian, [1.0, 2.0])
    add(fastpriv.GaussianMixture.single, half, 1.0)
    mixture = fastpriv.GaussianMixture(half, rows, 1.0)
    add(mixture.affine, rows, shift=half)
    add(fastpriv.posterior([0.0, -1.0, -2.0]).probabilities, 0, 2)
    add(fastpriv.posterior, [-1.0, -2.0], log_prior=np.log(half))
    add(fastpriv.channels.SubsetLikelihood, [0.0, -1.0], [[1.0, 0.5], [0.5, 1.0]], 1, 0.5)
    add(fastpriv.bac_capacity, half, half, complement_a=half, complement_b=half)
    add(fastpriv.awgn_capacity, [1, 2], [1.0, 2.0], [1.0, 2.0])
    add(fastpriv.awgn_capacity(2, 1.0, 1.0).to, "bits")
    add(fastpriv.notions.abp, half, dense, secret=[0, 1])
    add(fastpriv.notions.abp, half, dense, release=[0.25, 0.75], belief=[0.75, 0.25])
    add(fastpriv.notions.summary, half, dense, secret=[0, 1])
    add(fastpriv.notions.summary, half, dense, release=[0.25, 0.75], belief=[0.75, 0.25])
    conversions = fastpriv.conversions
    for function, *others in (
        (conversions.dp_delta_from_mbp, 0.3), (conversions.dp_epsilon_from_mbp, 0.3), (conversions.kl_from_mbp,),
        (conversions.rdp_from_mbp, 2.0), (conversions.robustness_from_mbp, 0.3),
    ):
        add(function, 0.3, *others, pi_min=[0.2, 0.2])
    add(conversions.abp_from_mbp, 0.3, belief_gap=[0.3, 0.3])
    add(conversions.abp_from_ldp, 0.3, belief_gap=[0.3, 0.3])
    for kind in (fastpriv.membership.GaussianNoise, fastpriv.membership.LaplaceNoise,
                 fastpriv.membership.LInfinityNoise):
        add(kind, [1.0, 2.0])
    add(fastpriv.membership.evaluate_attack, [0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], gamma=[0.3, 0.5])
    report = fastpriv.assess([1, 2, 2, 3], sigma=[1.0], epsilon=[0.5])
    add(report.to_csv, f"{directory}/table.csv")
    add(report.to_json, f"{directory}/table.json")
    add(report.to_figure, f"{directory}/figure.png")
    add(report.save, f"{directory}/report")
    return found
