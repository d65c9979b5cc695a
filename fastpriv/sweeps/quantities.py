"""The quantities that a sweep can take by name, and functions of the user in the same form.

By name: the functions of ``fastpriv`` whose arguments are numbers (ufuncs of ``fastpriv.special``, conversions,
capacities, calibration), the privacy curves of the Gaussian mechanism and of the subsampled Gaussian pair, and
compositions of the latter. Functions are found by the annotations of their parameters. A quantity that is elementwise
is called once for many cells.

The subsampled Gaussian pair is P = (1 - q) N(0, sigma^2) + q N(1, sigma^2) against Q = N(0, sigma^2), with sigma in
units of the sensitivity; direction "remove" is D(P||Q), "add" is D(Q||P). Source: Mironov, Talwar and Zhang, Renyi
differential privacy of the sampled Gaussian mechanism (2019), section 3.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import inspect
import pickle
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate

_ROOMS = ("conversions", "capacity", "calibration")  # rooms of functions whose arguments may all be numbers
_NUMBERS = ("NumberLike", "ArrayLike", "float", "int")  # annotations of parameters that are numbers
# Annotations of parameters that are words.
_WORDS = ("Information", "TightOrPublished", "BoundOrPublished")
_RUN = ("n_jobs", "progress", "max_evaluations")  # parameters that say how a function runs, not what it computes
_RESULTS = ("Estimate", "AwgnCapacity", "GaussianGame")  # annotations of results that hold estimates
# Functions of curves or vectors, which an array of settings would be taken for.
_OF_VECTORS = ("dp_delta_from_rdp_curve", "dp_epsilon_from_rdp_curve", "maximal_leakage", "gaussian_information")
# Functions that are called cell by cell. The first and the last iterate for each setting, 0.1 ms or more, and the kind
# of their bounds depends on it; the game is of one setting.
_CELL_BY_CELL = ("awgn_capacity", "gaussian_game", "sigma_from_ci_lmip")
_SHOWN_NAMES = 12  # of a list of names in an error
_SLOW_CELLS = 256  # of one call, where a cell takes a millisecond or more: a batch takes a quarter of a second, roughly


@dataclass(frozen=True)
class SweepQuantity:
    """A function of settings.

    Parameters
    ----------
    name : str
        Its name in tables and errors.
    function : callable
        Called with the settings as keywords: numbers, or arrays of cells if it is elementwise.
    required, optional : tuple of str
        Its parameters; None for a function that takes any.
    texts : frozenset of str, optional
        Parameters that are words; None where that is not known.
    together : tuple of str, optional
        For elementwise functions: the parameters of which one call takes a single value. None if the function is
        called cell by cell.
    batch : int, optional
        For elementwise functions: the most cells of one call, where these are slow.
    source : str
        Digest of the source of a function of the user.
    takes_rng : bool
        Whether it takes a random generator as ``rng``.
    """

    name: str
    function: Callable[..., Any]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] | None = ()
    texts: frozenset[str] | None = None
    together: tuple[str, ...] | None = None
    source: str = ""
    takes_rng: bool = False
    batch: int | None = None

    @property
    def is_word(self) -> dict[str, bool] | None:
        """Whether each parameter is a word; None where that is not known."""
        if self.texts is None:
            return None
        return {name: name in self.texts for name in (*self.required, *(self.optional or ()))}

    def check_parameters(self, names: tuple[str, ...]) -> None:
        """Refuse parameters that the function does not take, and a lack of those that it needs."""
        for name in names:
            if self.optional is not None and name not in (*self.required, *self.optional):
                known = ", ".join((*self.required, *self.optional)) or "none"
                raise DomainError(
                    f"settings must name parameters of {self.name}; got {validate.shown(name)}. It has: {known}."
                )
        missing = [name for name in self.required if name not in names]
        if missing:
            raise DomainError(
                f"settings must give all parameters of {self.name}; got none for {', '.join(missing)}. Add it to the "
                "grid: a single value will do."
            )


def find_quantity(quantity: Any) -> SweepQuantity:
    """Return the quantity of this name, or that of a function of the user.

    Parameters
    ----------
    quantity : str or callable
        A public name such as ``"bac_capacity"`` or ``"conversions.mbp_from_ldp"``, the place of a function such as
        ``"mymodule:f"`` or ``"folder/file.py:f"``, or a function.
    """
    if callable(quantity):
        return _user_quantity(quantity)
    validate.instance("quantity", quantity, str, "a name or a function", "fastpriv sweep --list names all.")
    if ":" in quantity:
        return _user_quantity(_imported(quantity))
    result = _quantities()
    if quantity in result:
        return result[quantity]
    for room in (*_ROOMS, "special"):  # with bounds before bare numbers
        if f"{room}.{quantity}" in result:
            return result[f"{room}.{quantity}"]
    import difflib

    close = difflib.get_close_matches(quantity, [name.rpartition(".")[2] for name in result], 3, 0.5)
    close = list(dict.fromkeys(close)) or [name for name in result if quantity in name][:_SHOWN_NAMES]
    remedy = f"Write one of {', '.join(close)}." if close else "See fastpriv sweep --list."
    raise DomainError(f"quantity must be one that sweeps know; got {quantity!r}. {remedy}")


def quantity_names() -> dict[str, str]:
    """Return the names of all quantities with their parameters, as text."""
    return {
        name: ", ".join((*quantity.required, *(f"[{word}]" for word in quantity.optional or ())))
        for name, quantity in sorted(_quantities().items())
    }


@functools.cache
def _quantities() -> dict[str, SweepQuantity]:
    from .. import special

    result: dict[str, SweepQuantity] = {}
    for name in dir(special):
        ufunc = getattr(special, name)
        names = re.search(r"Parameters\n-+\n(.+) : ", ufunc.__doc__)
        if ufunc.signature is None and ufunc.nout == 1 and names:
            parameters = tuple(names[1].split(", "))
            bare = functools.partial(_ufunc_values, name, parameters)
            result[f"special.{name}"] = SweepQuantity(f"special.{name}", bare, parameters, (), frozenset(), ())
    for room in _ROOMS:
        module = importlib.import_module(f"..{room}", __package__)
        for name in dir(module):
            function = getattr(module, name)
            if isinstance(function, FunctionType) and name not in _OF_VECTORS:
                quantity = _public_quantity(f"{room}.{name}", function)
                if quantity is not None:
                    result[quantity.name] = quantity
    from .. import composition

    direction, bounds = frozenset({"direction"}), frozenset({"bounds"})
    further = (
        SweepQuantity("gaussian_delta", _gaussian_delta, ("sigma", "epsilon"), ("sensitivity",), direction, ()),
        SweepQuantity("sampled_gaussian_delta", _sampled_gaussian_delta, ("sigma", "rate", "epsilon"), ("direction",),
                      direction, ()),
        # The former name, with its parameter: the cells of stores have it in their keys.
        SweepQuantity("subsampled_gaussian_delta", _subsampled_gaussian_delta, ("sigma", "q", "epsilon"),
                      ("direction",), direction, ()),
        SweepQuantity("composed_delta", composition.composed_delta, ("sigma", "rate", "count", "epsilon"),
                      ("bounds",), bounds, (), batch=_SLOW_CELLS),
        SweepQuantity("composed_epsilon", composition.composed_epsilon, ("sigma", "rate", "count", "delta"),
                      ("bounds",), bounds, (), batch=_SLOW_CELLS),
        SweepQuantity("least_sigma", composition.least_sampled_sigma, ("rate", "count", "epsilon", "delta"),
                      ("bounds", "rtol"), bounds, ("rtol",), batch=_SLOW_CELLS),
    )
    return result | {quantity.name: quantity for quantity in further}


def _public_quantity(name: str, function: Callable[..., Any]) -> SweepQuantity | None:
    """Return the quantity of a public function; None if it needs an argument that is no number."""
    required: list[str] = []
    optional: list[str] = []
    texts: list[str] = []
    signature = inspect.signature(function)
    if str(signature.return_annotation) not in _RESULTS:
        return None
    for parameter in signature.parameters.values():
        words = set(re.findall(r"\w+", str(parameter.annotation)))
        if parameter.name in _RUN or not words & {*_NUMBERS, *_WORDS}:
            if parameter.default is inspect.Parameter.empty:
                return None
            continue
        (required if parameter.default is inspect.Parameter.empty else optional).append(parameter.name)
        if words & set(_WORDS):
            texts.append(parameter.name)
    whole = tuple(parameter.name for parameter in signature.parameters.values() if parameter.annotation == "int")
    if whole:
        function = functools.partial(_with_integers, function, whole)
    together = None if name.rpartition(".")[2] in _CELL_BY_CELL else ()
    return SweepQuantity(name, function, tuple(required), tuple(optional), frozenset(texts), together)


def _user_quantity(function: Callable[..., Any]) -> SweepQuantity:
    """Return the quantity of a function of the user, with the parameters of its signature."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] | None = ()
    takes_rng = False
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # compiled functions without a signature
        return SweepQuantity(name, function, (), None, None, None, _source_digest(function))
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            optional = None
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            raise DomainError(
                f"quantity must take its parameters by name; got {parameter.name!r} by position alone in {name}. "
                "Wrap it in a function of your own."
            )
        elif parameter.name == "rng":
            takes_rng = True
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            if parameter.default is parameter.empty:
                required += (parameter.name,)
            elif optional is not None:
                optional += (parameter.name,)
    return SweepQuantity(name, function, required, optional, None, None, _source_digest(function), takes_rng)


def _imported(function_path: str) -> Callable[..., Any]:
    """Return the function ``module:name`` or ``file.py:name``."""
    module_name, _, name = function_path.rpartition(":")
    try:
        if module_name.endswith(".py"):
            path = Path(module_name)
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None  # there is a loader for every name in .py
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            if "" not in sys.path:
                sys.path.append("")  # last, so that no file of the directory stands in for a module that is installed
            module = importlib.import_module(module_name)
        function = getattr(module, name)
    except (ImportError, AttributeError, OSError) as error:
        raise DomainError(
            f"quantity must be the place of a function, module:name or file.py:name; got {function_path!r}: {error}. "
            "Check both."
        ) from None
    except Exception as error:  # the code of the user's module runs, which may raise anything
        raise DomainError(
            f"quantity must be the place of a function that can be imported; got {function_path!r}: "
            f"{type(error).__name__}: {error}. Correct the module."
        ) from error
    if not callable(function):
        raise DomainError(
            f"quantity must be the place of a function; got {validate.shown(function)} at {function_path!r}."
        )
    return function  # type: ignore[no-any-return]


def _source_digest(function: Any) -> str:
    """Return a digest of what a function does: its source or code, its defaults, and the values that it encloses."""
    digest = hashlib.sha256()
    _feed(digest, function)
    return digest.hexdigest()[:32]


def _feed(digest: Any, function: Any) -> None:
    if isinstance(function, functools.partial):
        _feed(digest, function.func)
        digest.update(repr((function.args, sorted(function.keywords.items()))).encode())
        return
    if inspect.ismethod(function):
        _feed_value(digest, function.__self__)
        function = function.__func__
    code = getattr(function, "__code__", None)
    if code is None:
        _feed_value(digest, function)
        return
    try:
        digest.update(inspect.getsource(function).encode())
    except (OSError, TypeError):
        _feed_code(digest, code)
    digest.update(repr((function.__defaults__, function.__kwdefaults__)).encode())
    for cell in function.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:  # not filled yet
            continue
        _feed_value(digest, content)


def _feed_value(digest: Any, value: Any) -> None:
    try:
        digest.update(pickle.dumps(value, protocol=4))
    except Exception:  # pickling runs code of the caller's objects, which may raise anything
        digest.update(getattr(value, "__qualname__", type(value).__qualname__).encode())


def _feed_code(digest: Any, code: CodeType) -> None:
    digest.update(code.co_code + repr(code.co_names).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _feed_code(digest, constant)
        else:
            digest.update(repr(constant).encode())


def _ufunc_values(name: str, parameters: tuple[str, ...], **settings: Any) -> Any:
    """Return the bare values of a function of ``fastpriv.special``."""
    from .. import special

    return getattr(special, name)(*(settings[parameter] for parameter in parameters))


def _with_integers(function: Callable[..., Any], whole: tuple[str, ...], **settings: Any) -> Any:
    """Call a function that takes integers where settings are doubles."""
    for name in whole:
        if float(settings[name]).is_integer():
            settings[name] = int(settings[name])
    return function(**settings)


def _gaussian_delta(*, sigma: Any, epsilon: Any, sensitivity: Any = 1.0) -> Estimate:
    """Privacy curve delta(epsilon) of the Gaussian mechanism."""
    from ..mechanisms.gaussian import GaussianMechanism

    return GaussianMechanism(sigma, sensitivity).delta(epsilon)


def _subsampled_gaussian_delta(*, sigma: Any, q: Any, epsilon: Any, direction: str = "remove") -> Estimate:
    return _sampled_gaussian_delta(sigma=sigma, rate=q, epsilon=epsilon, direction=direction)


def _sampled_gaussian_delta(*, sigma: Any, rate: Any, epsilon: Any, direction: str = "remove") -> Estimate:
    """Hockey-stick divergence of the subsampled Gaussian pair, by one call of its kernel."""
    from .. import special

    validate.choice("direction", direction, ("remove", "add"))
    sigma = validate.real("sigma", sigma, "positive and finite", lambda x: (x > 0) & np.isfinite(x))
    epsilon = validate.real("epsilon", epsilon, "at least 0", lambda x: x >= 0)
    rate = validate.real("rate", rate, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
    curve = getattr(special, f"sampled_gaussian_delta_{direction}")
    value, lower, upper = (np.asarray(numbers) for numbers in curve(sigma, rate, epsilon))
    method = f"closed form of two points against one, direction {direction}"
    return Estimate._of_arrays(value, lower, upper, kind="certified", unit="probability", method=method)
