"""User-defined densities: a function for the logarithm, a sampler, or the logarithm of a ratio alone.

Notation: p is the density of P with respect to a base measure that P and Q share: lengths, counts, or both, on any
support. ``x`` is a point of d numbers. Nothing here assumes that p is smooth, bounded or supported everywhere; a value
of -inf means p(x) = 0.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..base import random_streams, validate
from ..base.errors import DomainError
from ..base.numerics import FloatArray, WordArray
from ..base.values import ValueObject
from . import user_functions
from .packed import point_rows

_TRIAL_SAMPLES = 64  # points on which functions are called before a run


class _UserDefined(ValueObject):
    """Frozen; equal, hashable and picklable by the arguments of the constructor."""

    __slots__ = ("_arguments", "_function", "_warned", "dimension", "name", "vectorized")

    _arguments: dict[str, Any]
    _function: user_functions.PointFunction
    _warned: list[bool]
    dimension: int
    name: str
    vectorized: bool

    def _arrays(self) -> tuple[Any, ...]:
        return tuple(self._arguments.values())

    def __reduce__(self) -> Any:
        return _rebuilt, (type(self), self._arguments)

    def _set_arguments(self, argument: str, arguments: dict[str, Any]) -> None:
        function, vectorized, jit = arguments[argument], arguments["vectorized"], arguments["jit"]
        dimension = validate.count("dimension", arguments["dimension"])
        validate.flag("vectorized", vectorized)
        validate.flag("jit", jit)
        name = arguments["name"]
        if name is not None and not isinstance(name, str):
            raise DomainError(f"name must be a string or None; got {name!r}. Pass a word for messages to use.")
        name = name or user_functions.function_name(function)
        self._set(
            _arguments=arguments, _warned=[], dimension=dimension, name=name, vectorized=vectorized,
            _function=user_functions.PointFunction(
                argument, function, dimension, vectorized=vectorized, jit=jit, name=name
            ),
        )

    @property
    def form(self) -> Literal["jitted", "vectorized", "plain"]:
        """How the function is called: "jitted" and "plain" once a sample, "vectorized" once a block."""
        return self._function.form

    def _evaluate(self, x: FloatArray, block: int | None, *, zero: str, infinite: str) -> FloatArray:
        """Values at the columns of x; ``zero`` and ``infinite``, if not empty, say why -inf and +inf are invalid."""
        out = self._function(x, block)
        bad = user_functions.invalid_values(out, zero=not zero, infinite=not infinite)
        if bad is None:
            return out
        k = int(np.argmax(bad))
        value, function = float(out[k]), self._function
        why = zero if value == -np.inf else infinite if value == np.inf else "no logarithm is nan"
        raise DomainError(
            f"{function.argument} must be a number{'' if zero else ' or -inf'} at every point; got {value!r} from "
            f"{function.name!r}{user_functions.point_description(k, x, block)} "
            f"({int(bad.sum())} of {out.size} points): {why}. "
            f"Mend {function.name!r}, or the sampler if it leaves the support."
        )

    def _warn_of_cost(self, cost: float) -> None:
        if not self._warned and user_functions.warn_of_python_cost(self._function, cost):
            self._warned.append(True)


class Density(_UserDefined):
    """A distribution known by the logarithm of its density, and by a sampler if there is one.

    Parameters
    ----------
    log_density : callable
        Natural logarithm of the normalised density, -inf where it is zero. Three forms:

        * a function of one point under ``numba.njit``: ``log_density(x)`` with x a float64 array of length
          ``dimension`` gives one real number. It runs in compiled loops without the GIL: the fast form.
        * with ``vectorized=True`` a function of many points: x of shape (n, d) gives shape (n,). The form for NumPy;
          it may also be jitted, with ``nogil=True`` so that threads run side by side.
        * a plain Python function of one point: it works, at the price that a SamplingWarning names.

        In one dimension x is still an array: take ``x[0]``. Every call gets a copy, which the function may overwrite.
    sampler : callable, optional
        Under ``numba.njit``, ``sampler(rng, x)`` fills x, a float64 array of length ``dimension``, with one sample and
        returns nothing. A plain one, ``sampler(rng, n)``, returns n samples, integers or real numbers, of shape (n, d),
        in one dimension also (n,). ``rng`` is a ``numpy.random.Generator`` and the only randomness it may use. Without
        a sampler the density can only be compared with a distribution that has one. Samples of another distribution
        give wrong answers, and are seldom noticed: integrals are compared, variances are not.
    dimension : int
        Number of coordinates of a point, at least 1.
    name : str, optional
        Its name in messages; the name of the function by default.
    vectorized : bool, optional
        Whether log_density takes many points.
    jit : bool, optional
        Compile log_density by ``numba.njit``; where that fails an error says why, and nothing runs as plain Python.

    Raises
    ------
    DomainError
        If it is not a function, or a jitted function that cannot be compiled, returns anything but one real number or
        starts threads (``parallel=True``). When it is used: for nan and +inf, for -inf at a point of its own sampler,
        for samples that are not finite or do not depend on ``rng`` alone, for values that change from call to call,
        and for an exception of the function, which is chained.
    ShapeError
        When it is used: for values or samples of the wrong shape.
    BackendMissingError
        For ``jit=True`` without numba.

    Notes
    -----
    The density may be with respect to any base measure that both distributions share: lengths, counts on a grid, or a
    product, so discrete and bounded ones need nothing special; that of a GaussianMixture is with respect to lengths.
    Whether log_density is normalised cannot be checked in general; where both distributions have samplers, a run
    compares their integrals and warns.

    A function is compiled when the object is built, and the loop around it is kept in memory for the process: about
    0.15 s the first time. No file is written for it. Pass ``numba.njit(cache=True)`` functions to keep the compilation
    of the function itself on disk. numba has no vector exp or log: each costs about 4 ns, where a GaussianMixture pays
    under 1. What ``fastmath=True`` assumes, that nothing is infinite or nan, is false for log densities that are -inf.

    To be pickled, and so to run in other processes, the functions must be picklable: those of a module are, and jitted
    ones wherever they are from.

    **Accuracy** the values are those of the function, unchanged, for any number of threads;
    tests/properties/test_density_values.py holds jitted, plain and vectorised forms against each other and against
    GaussianMixture.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import Density
    >>> def log_laplace(x):
    ...     return -np.abs(x).sum(axis=1) - x.shape[1] * np.log(2.0)
    >>> def laplace(rng, n):
    ...     return rng.laplace(size=(n, 3))
    >>> p = Density(log_laplace, laplace, dimension=3, vectorized=True)
    >>> p
    Density('log_laplace', dimension=3, vectorized, with a sampler)
    >>> p.log_density([[0.0, 0.0, 0.0], [1.0, -1.0, 2.0]])
    array([-2.07..., -6.07...])
    """

    __slots__ = ("_sampler",)

    _sampler: user_functions.Sampler | None

    def __init__(
        self, log_density: Any, sampler: Any = None, *, dimension: int, name: str | None = None, vectorized: bool =
        False, jit: bool = False,
    ) -> None:
        arguments = {
            "log_density": log_density, "sampler": sampler, "dimension": dimension, "name": name,
            "vectorized": vectorized, "jit": jit,
        }
        self._set_arguments("log_density", arguments)
        self._set(_sampler=None if sampler is None else user_functions.Sampler("sampler", sampler, self.dimension))

    @property
    def has_sampler(self) -> bool:
        """Whether it has a sampler."""
        return self._sampler is not None

    def log_density(self, x: ArrayLike) -> FloatArray:
        """Natural logarithm of the density at each point.

        Parameters
        ----------
        x : array_like, shape (n, d) or (d,); in one dimension (n,), (n, 1) or a scalar
            Points, finite.

        Returns
        -------
        ndarray, shape (n,), or a scalar for one point
        """
        points, single = _columns("x", x, self.dimension)
        values = self.evaluate(points)
        return values[0] if single else values

    def sample(self, size: int, *, rng: Any = None) -> FloatArray:
        """Independent samples.

        Parameters
        ----------
        size : int
            Their number n.
        rng : None, int, SeedSequence, BitGenerator or Generator, optional
            Source of randomness (SPEC 7); equal seeds give equal samples.

        Returns
        -------
        ndarray, shape (n, d); in one dimension (n,)
        """
        n = validate.count("size", size, minimum=0)
        validate.memory("size", n * self.dimension * 16, "Draw and use the points in parts.")
        drawn = self.draw(random_streams.stream_words(random_streams.root(rng), (), 4), n)
        return drawn[0] if self.dimension == 1 else np.ascontiguousarray(drawn.T)

    def evaluate(self, x: FloatArray, *, drawn_from: object = None, block: int | None = None) -> FloatArray:
        """Log densities, shape (n,), of the columns of ``x``, C-contiguous (d, n).

        ``drawn_from`` is the distribution that the columns are samples of, where it is known: if that is this density,
        or True, the density cannot be zero there. ``block`` is named in errors.
        """
        own_samples = drawn_from is True or (isinstance(drawn_from, Density) and drawn_from == self)
        return self._evaluate(
            x, block, zero="it is the density's own draw, so its density is not zero" if own_samples else "",
            infinite="a density is finite, and a point mass needs a base measure of counts",
        )

    def draw(self, words: WordArray, n: int) -> FloatArray:
        """The n samples, shape (d, n), of the stream with the seed ``words``: the same on every call."""
        if self._sampler is None:
            raise DomainError(
                f"sampler must be given for a distribution that is sampled; got None for {self!r}. "
                "Pass Density(log_density, sampler, ...)."
            )
        return self._sampler(words, n)

    def trial(self, words: WordArray, x: FloatArray | None = None) -> None:
        """Call sampler and function on a few samples, or the function on ``x``, before a run.

        Their errors and the warning of plain Python are raised here, in the caller's thread.
        """
        own_samples = False
        if self._sampler is not None:
            drawn = user_functions.check_sampler(self._sampler, words, _TRIAL_SAMPLES)
            x, own_samples = (drawn, True) if x is None else (x, False)
            if not own_samples:
                self.evaluate(drawn, drawn_from=True)
        if x is not None:
            cost = user_functions.check_function(self._function, x)
            self.evaluate(x, drawn_from=own_samples)
            self._warn_of_cost(cost)

    def __repr__(self) -> str:
        with_sampler = "with" if self.has_sampler else "without"
        return f"Density({self.name!r}, dimension={self.dimension}, {self.form}, {with_sampler} a sampler)"


class LogRatio(_UserDefined):
    """A pair of distributions (P, Q) of which only log p(x)/q(x) is known, and samples of P.

    Parameters
    ----------
    log_ratio : callable
        Natural logarithm of p(x)/q(x), in one of the forms that :class:`Density` takes. +inf means q(x) = 0, -inf
        means p(x) = 0.
    sampler : callable
        Samples of P, in one of the forms that :class:`Density` takes.
    dimension : int
        Number of coordinates of a point, at least 1.
    sampler_q : callable, optional
        Samples of Q: needed for the Jensen-Shannon divergence and for the other direction (``both=True``), and a help
        to the other quantities, which need samples of P alone.
    name : str, optional
        Its name in messages.
    vectorized : bool, optional
        Whether log_ratio takes many points.
    jit : bool, optional
        Compile log_ratio by ``numba.njit``.

    Raises
    ------
    DomainError
        As :class:`Density`; when it is used, for nan, for -inf at a sample of P and for +inf at a sample of Q.
    ShapeError
        When it is used: for values or samples of the wrong shape.
    BackendMissingError
        For ``jit=True`` without numba.

    Notes
    -----
    The ratio of the normalised densities is needed: a ratio known up to a factor shifts every answer.

    **Accuracy** the values are those of the function, unchanged; tests/properties/test_density_values.py.

    Examples
    --------
    >>> from fastpriv.distributions import LogRatio
    >>> def log_ratio(x):
    ...     return x[:, 0] - 0.5
    >>> def sampler(rng, n):
    ...     return 1.0 + rng.standard_normal((n, 1))
    >>> LogRatio(log_ratio, sampler, dimension=1, vectorized=True)
    LogRatio('log_ratio', dimension=1, vectorized, samples of P)
    """

    __slots__ = ("_samplers",)

    _samplers: dict[str, user_functions.Sampler]

    def __init__(
        self, log_ratio: Any, sampler: Any, *, dimension: int, sampler_q: Any = None, name: str | None = None,
        vectorized: bool = False, jit: bool = False,
    ) -> None:
        arguments = {
            "log_ratio": log_ratio, "sampler": sampler, "dimension": dimension, "sampler_q": sampler_q, "name": name,
            "vectorized": vectorized, "jit": jit,
        }
        self._set_arguments("log_ratio", arguments)
        samplers = {"p": user_functions.Sampler("sampler", sampler, self.dimension)}
        if sampler_q is not None:
            samplers["q"] = user_functions.Sampler("sampler_q", sampler_q, self.dimension)
        self._set(_samplers=samplers)

    @property
    def sides(self) -> tuple[str, ...]:
        """The distributions with samplers: "p", or "p" and "q"."""
        return tuple(self._samplers)

    def log_ratio(self, x: ArrayLike) -> FloatArray:
        """log p/q at points of shape (n, d) or (d,); in one dimension (n,), (n, 1) or a scalar."""
        points, single = _columns("x", x, self.dimension)
        values = self.evaluate(points)
        return values[0] if single else values

    def evaluate(self, x: FloatArray, *, drawn_from: str | None = None, block: int | None = None) -> FloatArray:
        """log p/q, shape (n,), of the columns of ``x``, C-contiguous (d, n).

        ``drawn_from`` is the distribution that the columns are samples of, "p" or "q": it cannot be zero there.
        ``block`` is named in errors.
        """
        return self._evaluate(
            x, block, zero="it is a draw of P, so p is not zero" if drawn_from == "p" else "",
            infinite="it is a draw of Q, so q is not zero" if drawn_from == "q" else "",
        )

    def draw(self, words: WordArray, n: int, side: str = "p") -> FloatArray:
        """The n samples, shape (d, n), of P or Q in the stream with the seed ``words``: the same on every call."""
        if side not in self._samplers:
            raise DomainError(
                f"sampler_q must be given where Q is drawn from; got None for {self!r}. "
                "Pass LogRatio(..., sampler_q=...)."
            )
        return self._samplers[side](words, n)

    def trial(self, words: WordArray) -> None:
        """Call samplers and function on a few samples before a run, as ``Density.trial`` does."""
        for side, sampler in self._samplers.items():
            x = user_functions.check_sampler(sampler, words, _TRIAL_SAMPLES)
            cost = user_functions.check_function(self._function, x)
            self.evaluate(x, drawn_from=side)
            self._warn_of_cost(cost)

    def __repr__(self) -> str:
        sides = " and ".join(side.upper() for side in self._samplers)
        return f"LogRatio({self.name!r}, dimension={self.dimension}, {self.form}, samples of {sides})"


def _rebuilt(kind: Any, arguments: dict[str, Any]) -> Any:
    return kind(**arguments)


def _columns(name: str, x: ArrayLike, dimension: int) -> tuple[FloatArray, bool]:
    """Points as columns, and whether a single one was passed without its axis."""
    rows, single = point_rows(name, x, dimension)
    return np.ascontiguousarray(rows.T), single
