"""Every public callable, with each argument of a valid call replaced by what cannot be meant: one clear error.

The error is one of fastpriv's own, names the argument (or one that it has to match) and says what was given; nothing is
warned of, nothing hangs and no memory is taken. A wrong argument may have an answer where it has a meaning: 1e308, or
nothing at all.
"""

import functools
import inspect
import re
import signal
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

import fastpriv
from contracts.registry import MODULES, calls_of, more_calls
from fastpriv.base.errors import (
    BackendMissingError,
    DomainError,
    EstimateGivenError,
    NotConvergedError,
    SamplingWarning,
    ShapeError,
)

OWN = (BackendMissingError, DomainError, EstimateGivenError, NotConvergedError, ShapeError)


def numbers():
    yield 1.0


WRONG = {
    "None": lambda: None, "text": lambda: "1", "bytes": lambda: b"x", "object": object, "complex": lambda: 1 + 2j,
    "empty": list, "ragged": lambda: [[1], [1, 2]], "dictionary": dict, "class": lambda: dict,
    "nan": lambda: float("nan"), "inf": lambda: float("inf"), "negative": lambda: -1, "large": lambda: 1e308,
    "true": lambda: True, "date": lambda: np.datetime64("2020-01-01"), "texts": lambda: np.array(["a", "b"]),
    "generator": numbers, "array of one": lambda: np.array(0.5), "zero": lambda: 0, "deep": lambda: [[[0.5]]],
    "huge": lambda: 10**400, "complex array": lambda: np.array([1j, 2.0]), "list with None": lambda: [None, 1.0],
    "list with nan": lambda: [0.5, float("nan")], "no rows": lambda: np.zeros((0, 3)), "set": lambda: {1.0},
    "list of bytes": lambda: [b"a"], "records": lambda: np.zeros(2, dtype=[("a", float)]),
    "sparse": lambda: csr_array(np.eye(2)), "function": lambda: len,
}

MATCHED = {  # arguments that have to fit another one, which the message may name instead
    "default": ("rows",), "factors": ("powers", "likelihood"), "sep": ("column",),
    "linear": ("pairwise", "members"), "products": ("gram",),
    "likelihood": ("prior",), "column": ("values",), "data": ("values",), "indices": ("values", "rows"),
    "curve": ("epsilon", "delta"), "forward": ("epsilon", "delta"), "backward": ("epsilon", "delta"),
    "sensitivity": ("epsilon",), "neighbours": ("secret",), "exceptions": ("row", "background"),
    "jit": ("log_density", "log_ratio", "sampler"), "shift": ("matrix",), "as_published": ("conversion",),
    "unit": ("Estimate",), "path": ("file",), "checkpoint": ("file",), "directory": ("file",), "target": ("secret",),
    "sampler_q": ("sampler",), "prior": ("likelihood",), "delta": ("epsilon",), "log_delta": ("epsilon",),
    "posteriors": ("file",), "background": ("row",), "clip": ("gradient",), "secrets": ("output",), "p": ("epsilon",),
    "q": ("epsilon",), "log": ("matrix", "likelihood", "prior"), "values": ("prior",), "rows": ("matrix",),
    "scores": ("membership", "path"), "table": ("settings",),
}
FREE = {"method", "name", "source", "cost"}  # words that are only shown
LEFT_OUT = {"main", "PaperFigure.curve"}  # the command line; what is a KeyError by its docstring
USERS_OWN = {"progress", "rng"}  # called, and what they raise is theirs
# The same, where the wrong argument can be called.
FUNCTIONS = {"answers", "family", "p", "pair", "pair_1", "pair_2", "pair_of_sigma", "scores", "statistic", "trade_off"}


class TooLong(BaseException):
    """A call with a wrong argument has not ended in time."""


def _too_long(signum, frame):
    raise TooLong


LONGEST = 20  # seconds


# Longer than is waited for: processes for small pieces; samples without a limit or on one thread.
LONG = {
    *(("BandedMatrixMechanism.sampled_delta", *one) for one in (
        ("max_samples", "None"), ("rng", "None"), ("rng", "zero"), ("rng", "huge"), ("n_jobs", "None"),
        ("n_jobs", "negative"))),
}


def wrong_is_default(call, parameter, kind):
    """Whether an argument that is left out needs an extra that is absent."""
    return kind == "None" and call.signature and call.signature.parameters[parameter].default is None


def fault_of(call, parameter, kind):
    """What is wrong with how a call takes a wrong argument; None for nothing."""
    if (call.name, parameter, kind) in LONG:
        return None
    try:
        wrong = call.with_arguments(**{parameter: WRONG[kind]()})
    except TypeError:  # the number of arguments
        return None
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        signal.signal(signal.SIGALRM, _too_long)
        signal.alarm(LONGEST)
        try:
            wrong()
            fault = None
        except OWN as error:
            text = str(error)
            known = [parameter, *MATCHED.get(parameter, ())]
            absent = isinstance(error, BackendMissingError) and wrong_is_default(call, parameter, kind)
            named = any(re.search(rf"\b{name}", text) for name in known)
            fault = None if absent or (named and "got" in text) else f"{type(error).__name__}: {text}"
        except MemoryError as error:
            fault = None if "must fit in memory" in str(error) else f"MemoryError: {error}"
        except (OSError, ValueError, TypeError, AttributeError, ArithmeticError, LookupError, RuntimeError) as error:
            own_word = isinstance(error, OSError) and re.search(r"must be (an existing|a file)|directory", str(error))
            called = parameter in USERS_OWN and "argument" in str(error)
            called |= parameter in FUNCTIONS and kind in ("class", "function")
            fault = None if own_word or called else f"{type(error).__name__}: {error}"
        except TooLong:
            fault = f"no answer within {LONGEST} s"
        finally:
            signal.alarm(0)
    others = [one for one in seen if not issubclass(one.category, SamplingWarning)]
    if fault is None and others:
        fault = f"{others[0].category.__name__}: {others[0].message}"
    return fault and f"{call.name}({parameter}={kind}): {fault[:300]}"


def first_calls(modules, others=()):
    """The first call of each public name in the examples of some modules, and beside them of what has no example."""
    recorded = [*(call for module in modules for call in calls_of(module)), *others]
    return {call.name: call for call in reversed(recorded)}


def faults(calls, every=1, first=0):
    cases = [
        (call, parameter, kind)
        for name, call in sorted(calls.items()) if name not in LEFT_OUT
        for parameter in call.parameters() if parameter not in FREE for kind in WRONG
    ]
    return [fault for case in cases[first::every] if (fault := fault_of(*case))]


def test_a_wrong_argument_is_one_clear_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rooms = ("fastpriv.conversions.differential_privacy", "fastpriv.mechanisms")
    calls = first_calls(name for name in MODULES if name.startswith(rooms))
    found = faults(calls, every=3)
    assert len(calls) > 30
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_wrong_argument_is_one_clear_error(part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = faults(first_calls(MODULES, more_calls(tmp_path)), every=4, first=part)
    assert not found, f"{len(found)}\n" + "\n".join(found)


def test_a_fault_would_be_seen():
    def plain(x):
        return float(x) + 1.0

    def named(x):
        raise DomainError(f"y must be a number; got {x!r}. Pass one.")

    for function in (plain, named):
        call = functools.partial(function)
        call.name, call.parameters = "f", lambda: ["x"]
        call.with_arguments = lambda x, function=function: lambda: function(x)
        assert "f(x=None)" in fault_of(call, "x", "None")
    assert list(inspect.signature(plain).parameters) == ["x"]


@pytest.mark.parametrize("epsilon", [1e160, 1e308, -1e308, -np.inf])
def test_the_tails_of_normal_noise_are_0_or_1_beyond_all_losses(epsilon):
    one = fastpriv.compose(fastpriv.GaussianMechanism(10.0, 1.0), 100)
    tails = (one.tail_probabilities(epsilon), epsilon < 0), (one.lower_tail_probabilities(epsilon), epsilon > 0)
    for sides, value in tails:
        for side in sides:
            assert side.lower <= value <= side.upper
            assert side.upper - side.lower < 1e-15


def test_accountants_are_triples():
    with pytest.raises(DomainError, match="accountants must be triples of name, side and deltas; got"):
        fastpriv.report.composed_profile(
            fastpriv.GaussianMechanism(1.0, 1.0).log_delta([0.0, 1.0]), [0.0, 1.0], accountants=[("a", "upper")]
        )
