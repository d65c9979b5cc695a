"""``Posterior``, the result of ``posterior`` in numbers with bounds, and the parts that all methods build it from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import KINDS, Estimate, Result
from ..base.files import atomic_write
from ..base.numerics import FloatArray, next_above, next_below
from ..base.parallel import Progress

# The numbers that a posterior has, by the names that users pass.
QUANTITIES = (
    "log_evidence", "entropy", "kl", "js", "max_log_ratio", "min_log_ratio", "xi", "abp", "vulnerability", "inclusion",
)
INT64_LIMIT = 2**63  # secrets; indices of larger domains are Python integers


class Options(NamedTuple):
    """The arguments of ``posterior`` besides likelihood and prior, validated."""

    top: int = 10
    out: Any = None
    n_jobs: int | None = None
    progress: Progress = None
    log_prior: bool = False  # whether the prior holds logarithms
    executor: Any = None  # where shards run
    store: Any = None  # the file in which finished shards are kept


class Top(NamedTuple):
    """The most probable secrets, in decreasing order of probability, the lower index first where they are equal."""

    indices: NDArray[Any]  # (k,) int64, or Python integers; subsets: (k, members)
    probabilities: FloatArray  # (k,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Top) and all(map(np.array_equal, self, other))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Posterior(Result):
    """The posterior over all secrets after one release, in numbers.

    Parameters
    ----------
    size : int
        Number of secrets.
    log_evidence : Estimate
        log sum of prior times likelihood, in nats.
    entropy : Estimate
        Shannon entropy of the posterior.
    kl : Estimate or None
        KL(posterior || prior); None where a prior that is not uniform could be read only once.
    max_log_ratio, min_log_ratio : Estimate
        Largest and smallest log(posterior / prior) over the secrets with a positive prior; -inf where one is ruled out.
    vulnerability : Estimate
        The largest posterior probability.
    map_index : int or tuple of int
        The most probable secret, the lowest index on ties; of subsets, its members.
    ties : int
        Number of secrets that are as probable as this one.
    top : Top
        Indices and probabilities of the most probable secrets.
    js : Estimate, optional
        Jensen-Shannon divergence of posterior and prior; None where the likelihoods could be read only once.
    inclusion : Estimate, optional
        Of subsets: probability of each record of being a member.
    cost : mapping, optional
        Work done, such as passes or evaluations.
    _probabilities : callable, optional
        The function behind ``probabilities(start, stop)``; not for callers.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import posterior
    >>> result = posterior(np.log([0.5, 0.25, 0.125]))
    >>> result.map_index, round(float(result.vulnerability), 12), round(float(result.xi), 12)
    (0, 0.571428571429, 0.847297860387)
    """

    size: int
    log_evidence: Estimate
    entropy: Estimate
    kl: Estimate | None
    max_log_ratio: Estimate
    min_log_ratio: Estimate
    vulnerability: Estimate
    map_index: int | tuple[int, ...]
    ties: int
    top: Top
    js: Estimate | None = None
    inclusion: Estimate | None = None
    cost: Mapping[str, Any] = field(default_factory=dict)
    _probabilities: Callable[[int, int], FloatArray] | None = field(default=None, repr=False, compare=False)

    @property
    def xi(self) -> Estimate:
        """Maximum Bayesian privacy of this release: the largest absolute log ratio."""
        up, down = self.max_log_ratio, self.min_log_ratio
        value, lower = max(up.value, -down.value), max(up.lower, -down.upper, 0.0)
        kind = max(up.kind, down.kind, key=KINDS.index)
        return replace(up, value=value, lower=lower, upper=max(up.upper, -down.lower), kind=kind, cost={})

    @property
    def abp(self) -> Estimate | None:
        """Average Bayesian privacy of this release: the root of the Jensen-Shannon divergence."""
        if self.js is None:
            return None
        value, lower, upper = (math.sqrt(x) for x in (self.js.value, self.js.lower, self.js.upper))
        lower, upper = max(next_below(lower), 0.0), next_above(upper)
        return replace(self.js, value=value, lower=lower, upper=upper, unit="1", cost={})

    def probabilities(self, start: int = 0, stop: int | None = None) -> FloatArray:
        """Posterior probabilities of the secrets ``start`` to ``stop - 1``."""
        first = validate.count("start", start, 0)
        last = self.size if stop is None else validate.count("stop", stop, 0)
        if not first <= last <= self.size:
            raise DomainError(
                f"start and stop must be in order, from 0 to {validate.shown(self.size)}; got "
                f"{validate.shown(start)} and {validate.shown(stop)}. Count from 0."
            )
        if self._probabilities is None:
            raise DomainError(
                "probabilities must be asked of likelihoods that can be read again; got a posterior of an iterator, or "
                "one that was pickled. Pass a function that returns a fresh iterator, or out= for all of them."
            )
        return self._probabilities(first, last)

    def __reduce__(self) -> Any:
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        values |= {"_probabilities": None, "cost": dict(self.cost)}  # likelihoods are not pickled
        return partial(Posterior, **values), ()

    def estimates(self) -> dict[str, Estimate]:
        """The quantities that are known, by name."""
        return {name: estimate for name in QUANTITIES if (estimate := getattr(self, name)) is not None}

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, for JSON; infinite numbers stay floats, and unknown quantities are None."""
        estimates = self.estimates()
        numbers = {name: estimates[name].to_dict() if name in estimates else None for name in QUANTITIES}
        index = list(self.map_index) if isinstance(self.map_index, tuple) else int(self.map_index)
        best = {name: array.tolist() for name, array in self.top._asdict().items()}
        remainder = {"map_index": index, "ties": self.ties, "top": best, "cost": dict(self.cost)}
        return {"size": self.size, **numbers, **remainder}

    def __format__(self, spec: str) -> str:
        """The main quantities with their bounds, each number in the format of a float."""
        names = ("log_evidence", "entropy", "kl", "js", "xi", "vulnerability")
        numbers = ((name, getattr(self, name)) for name in names)
        text = ", ".join(f"{name}={estimate:{spec or '.6g'}}" for name, estimate in numbers if estimate is not None)
        return f"Posterior(size={validate.shown(self.size)}, {text}, map_index={validate.shown(self.map_index)})"


def index_array(indices: list[int], size: int) -> NDArray[Any]:
    """Secrets of a domain of this size as int64 where it holds them all, else as Python integers."""
    return np.array(indices, dtype=np.int64 if size <= INT64_LIMIT else object)


@contextmanager
def npy_stream(path: Any, size: int) -> Iterator[IO[bytes]]:
    """A ``.npy`` file of ``size`` doubles after its header; it takes its name when it is complete."""
    with atomic_write(path) as stream:
        header = {"descr": "<f8", "fortran_order": False, "shape": (size,)}
        np.lib.format.write_array_header_1_0(stream, header)
        yield stream
