"""What every public callable keeps to, over the registry: examples, missing values, estimates, units, vast sizes."""

import dataclasses
import inspect
import math
import re
import signal
from functools import cache

import numpy as np
import pytest

from contracts.registry import MODULES, Call, calls_of, examples, more_calls, public_names, resolved
from contracts.vast_sizes import fault_of
from fastpriv import DomainError, Estimate
from fastpriv.base.monotone import UNITS

LN2 = math.log(2.0)
# Calls that take what is masked or missing for a wrong object, and say so in the words of that object.
OTHER_WORDS = r"must be an? (integer|list|pair|function|sequence)|must be finite numbers; got None"
# Their values are looked at when a posterior or an accuracy asks for them, or they hold what others have computed.
NOT_LOOKED_AT = {"DenseLikelihood", "ProductLikelihood", "robust_accuracy", "Reconstruction", "RecoveredLabels",
                 "LeakageDesign", "Selected", "TextTable"}
# A vast array is refused in the words of NumPy, since it is copied before its size is looked at.
COPIED = {"channel_capacity", "maximal_leakage", "ProductLikelihood", "PmfStack", "robust_accuracy", "match_to_pool",
          "CombinedReleases.log_likelihood", "CombinedReleases.pooled"}
PAIRS = {"Selected", "composition_from_opacus", "ci_lmip_from_dp_curve"}  # their sequences are records, not arrays
TAKES_LONG = {"BandedMatrixMechanism.sampled_delta", "paper_figure"}
SEARCHES_LONG = {("least_sigma", "count")}
LIMITS = {"pi_min": 0.5, "relative_error": 1.0, "probability": 1.0, "log probability": 0.0}


@pytest.fixture(params=MODULES, scope="module")
def module_name(request):
    """One module after the other, so that a process runs the examples of few of them."""
    return request.param


@pytest.fixture(scope="module")
def calls(module_name, tmp_path_factory):
    """The calls of one module, and beside those of ``fastpriv`` itself the calls that no example makes."""
    more = more_calls(tmp_path_factory.mktemp("files")) if module_name == "fastpriv" else []
    return [*calls_of(module_name), *more]


def test_examples_run(module_name):
    assert not examples(module_name)[0]


@cache
def homes_of_functions():
    """Every public function, and the module that defines it."""
    return {name: thing.__module__ for name in public_names() if inspect.isfunction(thing := resolved(name))}


def test_every_public_function_has_a_recorded_call(module_name):
    """Classes of which others return the objects need none, nor do functions that need an extra."""
    recorded = {call.name for call in calls_of(module_name)}
    functions = {name for name, home in homes_of_functions().items() if home == module_name}
    missing = {name for name in functions if name.rpartition(".")[2] not in recorded}
    extras = {"adapters.dp_accounting_pld", "adapters.opendp_privacy_profile", "adapters.riskcal_evaluator",
              "adapters.sklearn_from_mixture", "device.kernel"}
    assert missing <= extras, f"their docstrings need an example that calls them: {sorted(missing - extras)}"


def test_every_public_function_is_in_a_module_with_examples():
    assert len(homes_of_functions()) > 100
    assert not {name: home for name, home in homes_of_functions().items() if home not in MODULES}


def numeric(call):
    """Parameters that are given as numbers or arrays of them, with these as arrays."""
    for name, value in call.arguments().items():
        if (
            callable(value)
            or isinstance(value, (bool, Estimate))
            or name == "rng"
            or type(value).__module__ == "pandas"
        ):
            continue
        try:
            cells = np.asarray(value)
        except (TypeError, ValueError):  # ragged, or made of estimates
            continue
        if cells.dtype.kind in "fiu" and cells.size:
            yield name, cells


def with_none(cells):
    flat = cells.ravel().astype(object)
    flat[-1] = None
    return flat.reshape(cells.shape).tolist()


def of_missing_values(call):
    """What is wrong with how a call takes a masked entry or None in its arguments."""
    for name, cells in numeric(call):
        wrong = [np.ma.array(cells, mask=np.arange(cells.size).reshape(cells.shape) == cells.size - 1)]
        for value in (*wrong, *([with_none(cells)] if cells.ndim else [])):
            what = "None" if isinstance(value, list) else "a masked entry"
            try:
                call.with_arguments(**{name: value})()
                said = "an answer"
            except (DomainError, TypeError, ValueError, AttributeError) as error:
                said = str(error)
            known = name in said or (name == "curve" and said.startswith("delta"))
            plain = f"must have no missing values; got {what}" in said and known
            if not plain and not re.search(OTHER_WORDS, said):
                yield f"{call.name}({name}={value}): {said}"


@pytest.mark.filterwarnings("ignore:.*must hold natural logarithms:UserWarning")
def test_what_is_masked_or_missing_is_refused(module_name, calls):
    if module_name != "fastpriv.special":  # ufuncs keep masks
        faults = [fault for call in calls if call.name not in NOT_LOOKED_AT for fault in of_missing_values(call)]
        assert not faults, "\n".join(faults)


def test_a_mask_that_hides_nothing_is_data(module_name, calls):
    for call in calls:
        arrays = {name: cells for name, cells in numeric(call) if cells.ndim}
        if call.name in TAKES_LONG | PAIRS or not arrays or module_name == "fastpriv.special":
            continue
        found = call.with_arguments(**{name: np.ma.array(cells, mask=False) for name, cells in arrays.items()})()
        plain = call.with_arguments()()
        assert type(found) is type(plain), call.name
        for one, other in zip(estimates_in(found), estimates_in(plain), strict=True):
            assert np.array_equal(one.value, other.value, equal_nan=True), call.name
            assert np.array_equal(one.lower, other.lower, equal_nan=True), call.name
            assert np.array_equal(one.upper, other.upper, equal_nan=True), call.name


def directions(call):
    """The directions of the parameters that may be estimates."""
    function = getattr(call.function, "__func__", call.function)
    return getattr(getattr(function, "func", function), "directions", {})


def estimates_in(answer):
    if isinstance(answer, Estimate):
        return [answer]
    if dataclasses.is_dataclass(answer):
        answer = [getattr(answer, field.name) for field in dataclasses.fields(answer)]
    return [one for one in answer if isinstance(one, Estimate)] if isinstance(answer, (tuple, list)) else []


def of_estimates(call):
    """What is wrong with the answer to a bracket, beside the answers to its ends and to its value."""
    for name, cells in numeric(call):
        if name not in directions(call) or any("complement" in other for other in call.arguments()):
            continue
        unit = call.arguments().get("unit", "nats") if UNITS[name] == "information" else UNITS[name]
        step = 1.0 if name in ("inputs", "trials", "group", "order") else 0.02 * np.abs(cells)
        step = np.where(np.isfinite(cells), step, 0.0)
        low = cells if name in ("inputs", "trials", "group", "order") else cells - step
        high = np.minimum(cells + step, LIMITS.get(name, LIMITS.get(unit, np.inf)))
        if name == "xi" and cells.max() <= 1.0:  # the range of the published form
            high = np.minimum(high, 1.0)
        low, high, cells = (x.astype(float)[()] for x in (low, high, cells))
        given = Estimate(cells, low, high, kind="certified", unit=unit, method="given")
        answers = [call.with_arguments(**{name: value}) for value in (given, low, cells, high)]
        carried, *plain = (estimates_in(answer()) for answer in answers)
        for ends in plain:
            for found, end in zip(carried, ends, strict=True):
                value = end.value
                if not (np.all(found.lower <= value) and np.all(value <= found.upper) and found.unit == end.unit):
                    yield f"{call.name}({name}={given}): {found} without {end}"


@pytest.mark.filterwarnings("ignore:.*must hold natural logarithms:UserWarning")
def test_brackets_in_and_brackets_out(calls):
    faults = [fault for call in calls for fault in of_estimates(call)]
    assert not faults, "\n".join(faults)


def of_units(call):
    """What is wrong with the answer in bits to arguments in bits, beside that in nats to arguments in nats."""
    given = call.arguments()
    amounts = [name for name in given if name in directions(call) and UNITS[name] == "information"]
    if any(isinstance(given[name], Estimate) for name in amounts):
        return
    scale = LN2 if given.get("unit") == "bits" else 1.0
    amounts = {name: scale * np.asarray(given[name], dtype=float)[()] for name in amounts}
    nats = call.with_arguments(unit="nats", **amounts)()
    bits = call.with_arguments(unit="bits", **{name: amount / LN2 for name, amount in amounts.items()})()
    for one, other in zip(estimates_in(nats), estimates_in(bits), strict=True):
        value, unit = (
            (one.value / LN2, "bits") if one.unit == "nats" and other.unit == "bits" else (one.value, one.unit)
        )
        if other.unit != unit or not np.allclose(other.value, value, rtol=1e-8, atol=0.0, equal_nan=True):
            yield f"{call.name}: {one} and {other}"
    with pytest.raises(DomainError, match="unit must be one of nats, bits; got 'dits'"):
        call.with_arguments(unit="dits", **amounts)()


def test_bits_are_nats_in_another_unit(calls):
    with_unit = [call for call in calls if call.signature and "unit" in call.signature.parameters]
    with_unit = [call for call in with_unit if call.signature.parameters["unit"].default == "nats"]
    faults = [fault for call in with_unit for fault in of_units(call)]
    assert not faults, "\n".join(faults)


def test_information_is_in_nats_unless_asked():
    """Over all functions, whether or not an example calls them with a unit."""
    units = {
        name: inspect.signature(thing).parameters["unit"]
        for name in public_names()
        if inspect.isfunction(thing := resolved(name)) and "unit" in inspect.signature(thing).parameters
    }
    stated = {name: unit for name, unit in units.items() if unit.default is not inspect.Parameter.empty}
    assert {unit.default for unit in stated.values()} == {"nats"}, stated
    assert {unit.kind for unit in stated.values()} == {inspect.Parameter.KEYWORD_ONLY}, stated
    assert len(stated) > 40


def sized(call):
    """The arguments by which a call can be made vast: whole numbers, and arrays that are broadcast."""
    for name, cells in numeric(call):
        if not cells.ndim and cells.dtype.kind in "iu":
            yield name, lambda size: size
        elif cells.ndim and cells.dtype.kind == "f":
            yield name, lambda size, cells=cells: np.broadcast_to(cells[:1], (min(size, 10**15), *cells.shape[1:]))


def too_long(signum, frame):
    raise TimeoutError("no answer in time")


@pytest.mark.parametrize("size", [10**18, 10**400], ids=["1e18", "1e400"])
def test_vast_sizes_end_at_once(size, calls):
    faults = []
    signal.signal(signal.SIGALRM, too_long)
    for call in calls:
        for name, value in sized(call):
            if (call.name, name) in SEARCHES_LONG:
                continue
            signal.alarm(20)
            try:
                fault = fault_of(lambda n, call=call, name=name, value=value: call.with_arguments(**{name: value(n)})(),
                                 size)
            finally:
                signal.alarm(0)
            if fault and not (fault.startswith("MemoryError") and call.name in COPIED):
                faults.append(f"{call.name}({name}): {fault}")
    assert not faults, "\n".join(faults)


def test_faults_would_be_seen():
    def careless(kl, *, unit="nats"):
        return Estimate(1.0 / float(np.sum(kl)), 0.0, 9.0, kind="certified", unit=unit, method="nothing is carried")

    careless.directions = {"kl": ("lower", "upper")}
    assert len(list(of_missing_values(Call("careless", careless, [[1.0, 2.0]], {})))) == 2
    assert "careless" in next(of_units(Call("careless", careless, [2.0], {})))

    def narrow(kl, *, unit="nats"):
        value = kl.value if isinstance(kl, Estimate) else kl
        return Estimate(value, value, value, kind="certified", unit=unit, method="the value alone")

    narrow.directions = careless.directions
    assert len(list(of_estimates(Call("narrow", narrow, [2.0], {})))) == 2
