"""The options of a sampled call: interval, target, budget and method; and the time budget that the call keeps to.

``Sampling`` is the one home of their defaults, their validation and their documentation. Public functions take it as
``sampling=`` and take its fields by name too (``SamplingOptions``); inside it travels as one ``Request``.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from ..base import executors, parallel, random_streams, validate
from ..base.errors import DomainError
from ..base.executors import ExecutorLike
from ..base.parallel import Progress
from ..base.random_streams import RNGLike

if TYPE_CHECKING:
    from numpy.random import SeedSequence

Side = Literal["both", "lower", "upper"]
IntervalKind = Literal["replicates", "guaranteed"]

DISTRIBUTIONS = ("direct", "balanced", "tilted")  # words of ``method`` for the distribution that samples come from
POINTS = ("sobol", "antithetic", "random", "plain")  # words of ``method`` for the point sets
SIDES: tuple[Side, ...] = ("both", "lower", "upper")  # which bounds an interval has: ``side``
INTERVALS: tuple[IntervalKind, ...] = ("replicates", "guaranteed")  # how an interval is made: ``interval``
MIN_SAMPLES = 8  # two replicates of one antithetic pair from each of two distributions
MAX_SAMPLES = 2**50  # counts of samples, and their sums, are exact as doubles


class SamplingOptions(TypedDict, total=False):
    """The fields of ``Sampling`` as keywords of a sampled function."""

    confidence: float
    side: Side
    rtol: float
    atol: float
    max_samples: float
    max_seconds: float
    method: str
    interval: IntervalKind
    rng: RNGLike
    n_jobs: int | None
    progress: Progress
    executor: ExecutorLike


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How a sampled quantity is computed: interval, target, budget, method, seed and threads.

    Every sampled function takes one as ``sampling=``, and each of these fields as a keyword, which then overrides that
    of ``sampling``.

    Parameters
    ----------
    confidence : float, default 0.95
        Level of the interval, between 0 and 1.
    side : {"both", "lower", "upper"}, default "both"
        With "upper" (a guarantee) or "lower" (an attack) the whole error is spent on that bound, and the other bound is
        the trivial one.
    rtol, atol : float, default 1e-3 and 0
        The run stops when half the width is at most ``max(atol, rtol * abs(value))``; one-sided, the distance from the
        value to the bound. For logarithms of probabilities ``rtol`` is the relative accuracy of the probability, for
        entropies it is relative to ``max(1, abs(value))``. Both 0 spend the whole budget.
    max_samples : float, default 1e8
        Most samples that are drawn, those of the pilot included; a whole number from 8 to 2**50.
    max_seconds : float, default 60
        Time after which no new work begins, the search for a proposal included; infinity for no limit. ``cost`` of the
        answer says why the run stopped, and whether a rerun gives the same bits.
    method : str, default "auto"
        Words that force the distribution of the samples ("direct": P; "balanced": (P + Q)/2; "tilted": a proposal whose
        density bounds the integrand) and the points ("sobol", "antithetic", "random": all stratified by component;
        "plain": neither). A pilot picks a distribution. Any word but "auto" samples, even where something exact
        applies.
    interval : {"replicates", "guaranteed"}, default "replicates"
        Student's interval over independent replicates, or bounds that hold for every number of samples and at every
        moment, about twice as wide, which need a known range (or exponential moments) of the integrand.
    rng : None, int, sequence of int, SeedSequence, Generator or BitGenerator, default None
        The seed. The same seed gives the same bits for any ``n_jobs`` and backend.
    n_jobs : int, optional
        Threads; None means what ``joblib.parallel_config`` says.
    progress : bool or callable, optional
        Shows, or is called with, the number of pieces done and their total, stage by stage.
    executor : None or "processes", optional
        Where stages run that take longer than a moment; None means threads. The same bits for any of them, on one
        instruction set; what a worker that dies was doing is done again.

    Raises
    ------
    DomainError, ShapeError
        For a field out of its range.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, kl_divergence
    >>> from fastpriv.sampling import Sampling
    >>> quick = Sampling(rtol=0.05, side="upper", rng=1)
    >>> p = GaussianMixture([0.5, 0.5], [[0, 0], [1, 2]], [[1.0, 2.0], [2.0, 1.0]])
    >>> kl_divergence(p, GaussianMixture.single([1, 1], 1.0), sampling=quick, confidence=0.99).confidence
    0.99
    """

    confidence: float = 0.95
    side: Side = "both"
    rtol: float = 1e-3
    atol: float = 0.0
    max_samples: float = 10**8
    max_seconds: float = 60.0
    method: str = "auto"
    interval: IntervalKind = "replicates"
    rng: RNGLike = None
    n_jobs: int | None = None
    progress: Progress = None
    executor: ExecutorLike = None

    def __post_init__(self) -> None:
        parallel.checked(self.n_jobs, self.progress)
        executors.checked(self.executor)
        _, points = _split_method(self.method)
        interval = validate.choice("interval", self.interval, INTERVALS)
        if interval == "guaranteed" and points not in (None, "random"):
            raise DomainError(
                f"method must leave the points open for interval='guaranteed', which is proved for random ones; got "
                f"{self.method!r}. Name a distribution alone, or take interval='replicates'."
            )
        seconds = validate.scalar(
            "max_seconds", self.max_seconds, "positive", lambda x: x > 0,
            remedy="Pass seconds, or infinity for no limit.",
        )
        confidence = validate.open_probability("confidence", self.confidence)
        side = validate.choice("side", self.side, SIDES)
        tolerance = ("at least 0 and finite", lambda x: (x >= 0) & np.isfinite(x))
        rtol, atol = (validate.scalar(name, getattr(self, name), *tolerance) for name in ("rtol", "atol"))
        samples = _whole_samples(self.max_samples)
        random_streams.checked(self.rng)
        validated = {
            "confidence": confidence, "side": side, "rtol": rtol, "atol": atol, "max_samples": samples,
            "max_seconds": seconds, "interval": interval,
        }
        for name, value in validated.items():
            object.__setattr__(self, name, value)

    @property
    def distribution(self) -> str | None:
        """The distribution of the samples that ``method`` forces."""
        return _split_method(self.method)[0]

    @property
    def points(self) -> str | None:
        """The point set that ``method`` forces."""
        return _split_method(self.method)[1]

    @property
    def forced(self) -> bool:
        """Whether ``method`` asks for samples even where something exact applies."""
        return self.method != "auto" and _split_method(self.method) != (None, None)

    @property
    def spends_everything(self) -> bool:
        """Whether no target stops the run before its budget is spent."""
        return self.rtol == 0.0 and self.atol == 0.0

    def request(self) -> Request:
        """The options for one call that begins now."""
        request = object.__new__(Request)  # of fields that were validated: its constructor takes ten times as long
        fields = request.__dict__
        fields.update(vars(self))
        if self.rng is not None:  # a generator is asked once a call, also where the answer then takes no samples
            fields["rng"] = random_streams.root(self.rng)
        fields["time_budget"] = TimeBudget(self.max_seconds)
        return request


@dataclass(frozen=True, kw_only=True)
class Request(Sampling):
    """Validated options of one call, with the root of its random streams and the time budget of the whole call."""

    time_budget: TimeBudget

    def __post_init__(self) -> None:
        """Fields come from a validated ``Sampling``, or from the code that shares out a budget."""

    @functools.cached_property
    def root(self) -> SeedSequence:
        """Root of all random streams of the call."""
        return random_streams.root(self.rng)

    @property
    def sample_budget(self) -> int:
        """``max_samples`` as the integer that validation made of it."""
        return int(self.max_samples)

    def portion(self, index: int, share: float, spent: int) -> Request:
        """The options of sub-run ``index``: this share of what is left of the budget, and streams of its own."""
        if share == 1.0 and index == 0:
            return self
        root = np.random.SeedSequence(self.root.entropy, spawn_key=(*self.root.spawn_key, 7, index))
        time_budget = self.time_budget.portion(share)
        samples = max(MIN_SAMPLES, int((self.sample_budget - spent) * share))
        return dataclasses.replace(
            self, rng=root, max_samples=samples, max_seconds=time_budget.seconds, time_budget=time_budget
        )


class TimeBudget:
    """The time that a call may take, from the check of its arguments to its last sample.

    It records whether it decided anything (``affected``), because a rerun may then give other bits.

    Parameters
    ----------
    seconds : float
        What may be spent; infinity for no limit.
    parent : TimeBudget, optional
        The budget that this one is a portion of.
    """

    def __init__(self, seconds: float, parent: TimeBudget | None = None) -> None:
        self.seconds, self.parent = seconds, parent
        self.started = time.monotonic()
        self.affected = False

    @property
    def remaining(self) -> float:
        """Seconds left, at least 0."""
        if math.isinf(self.seconds):
            return math.inf
        return max(0.0, self.seconds - (time.monotonic() - self.started))

    def expired(self, share: float = 1.0) -> bool:
        """Whether this share of the time is over. Call it only where the answer decides something."""
        over = self.remaining <= (1.0 - share) * self.seconds if math.isfinite(self.seconds) else False
        if over:
            self.mark_affected()
        return over

    def mark_affected(self) -> None:
        """Record that the time decided something, here and in the budget that this one is a portion of."""
        self.affected = True
        if self.parent is not None:
            self.parent.mark_affected()

    def limited(self, wanted: float, able: float) -> float:
        """What is wanted, or what the time is able to do of it; then it decided something."""
        if able < wanted:
            self.mark_affected()
        return min(wanted, able)

    def portion(self, share: float) -> TimeBudget:
        """A budget of this share of the remaining time."""
        return TimeBudget(self.remaining * share, self)


def never_expired() -> bool:
    """Deadline test that never expires."""
    return False


def sampling_request(function: Callable[..., Any], sampling: Sampling | None, options: SamplingOptions) -> Request:
    """Validate the sampling options of a call of ``function``: those of ``sampling``, overridden by ``options``."""
    chosen = _DEFAULT if sampling is None else sampling
    validate.instance("sampling", chosen, Sampling)
    if options:
        names = [field.name for field in dataclasses.fields(Sampling)]
        for name in options:
            if name not in names:
                import difflib

                parameters = [each for each in inspect.signature(function).parameters if each != "options"]
                near = difflib.get_close_matches(name, [*names, *parameters], n=1)
                suggestion = f". Did you mean {near[0]!r}?" if near else ""
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}{suggestion}")
        chosen = dataclasses.replace(chosen, **options)
    return chosen.request()


def _whole_samples(value: Any) -> int:
    """A whole number of samples; a whole float is accepted, since 1e8 is how people write it."""
    if isinstance(value, (float, np.floating)) and math.isfinite(value) and value == int(value):
        value = int(value)
    return validate.count("max_samples", value, minimum=MIN_SAMPLES, maximum=MAX_SAMPLES)


def _split_method(method: Any) -> tuple[str | None, str | None]:
    """The words of ``method`` that name a distribution and a point set."""
    distribution = points = None
    words = method.split() if isinstance(method, str) else []
    for word in words:
        if word in DISTRIBUTIONS and distribution is None:
            distribution = word
        elif word in POINTS and points is None:
            points = word
        elif word != "auto" or len(words) > 1:
            words = []
            break
    if not words:
        raise DomainError(
            f"method must be 'auto' or name a distribution ({', '.join(DISTRIBUTIONS)}), points ({', '.join(POINTS)}) "
            f"or both; got {method!r}. Write for instance method='direct sobol'."
        )
    return distribution, points


_DEFAULT = Sampling()  # the options of a call that names none
