"""``Posterior``: what a release does to beliefs, in numbers with bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._values import FloatArray
from ..errors import DomainError
from ..estimate import Estimate

__all__ = ["Options", "Posterior", "Top"]


class Options(NamedTuple):
    """What ``posterior`` was asked for besides likelihood and prior."""

    top: int = 10
    out: Any = None
    memory: int | None = None  # bytes of working memory, None for the default of each way
    n_jobs: int | None = None
    progress: Any = None
    log_prior: bool = False  # whether the prior holds logarithms
    rng: Any = None  # for domains that can only be sampled
    resume: Any = None  # what an error that ended an earlier call carries as ``best``


class Top(NamedTuple):
    """The most probable secrets, in decreasing order of probability, the lower index first where they are equal."""

    indices: NDArray[Any]  # (k,) int64, or Python integers; subsets: (k, members)
    probabilities: FloatArray  # (k,)


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
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
        How many secrets are as probable as this one.
    top : Top
        Indices and probabilities of the most probable secrets.
    js : Estimate, optional
        Jensen-Shannon divergence of posterior and prior; None where the likelihoods could be read only once.
    inclusion : Estimate, optional
        Of subsets: probability of each record of being a member.
    cost : mapping, optional
        What was spent.
    _law : callable, optional
        What ``probabilities(start, stop)`` returns, as a function of both; not for callers.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import posterior
    >>> found = posterior(np.log([0.5, 0.25, 0.125]))
    >>> found.map_index, round(float(found.vulnerability), 12), round(float(found.xi), 12)
    (0, 0.571428571429, 0.847297860387)
    """

    size: int
    log_evidence: Estimate
    entropy: Estimate
    kl: Estimate | None
    max_log_ratio: Estimate
    min_log_ratio: Estimate
    vulnerability: Estimate
    map_index: Any
    ties: int
    top: Top
    js: Estimate | None = None
    inclusion: Estimate | None = None
    cost: Mapping[str, Any] = field(default_factory=dict)
    _law: Callable[[int, int], FloatArray] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        names = ("log_evidence", "entropy", "kl", "js", "xi", "vulnerability")
        numbers = ((name, getattr(self, name)) for name in names)
        text = ", ".join(f"{name}={float(one):.6g}" for name, one in numbers if one is not None)
        return f"Posterior(size={_validate.shown(self.size)}, {text}, map_index={_validate.shown(self.map_index)})"

    @property
    def xi(self) -> Estimate:
        """Maximum Bayesian privacy of this release: the largest size of a log ratio."""
        up, down = self.max_log_ratio, self.min_log_ratio
        value, lower, upper = (
            max(a, b) for a, b in ((up.value, -down.value), (up.lower, -down.upper), (up.upper, -down.lower))
        )
        return Estimate(
            value, max(lower, 0.0), upper, kind=weaker(up, down), unit=up.unit, method=up.method,
            confidence=up.confidence or down.confidence,
        )  # fmt: skip

    @property
    def abp(self) -> Estimate | None:
        """Average Bayesian privacy of this release: the root of the Jensen-Shannon divergence."""
        if self.js is None:
            return None
        value, lower, upper = (float(np.sqrt(x)) for x in (self.js.value, self.js.lower, self.js.upper))
        lower, upper = np.nextafter(lower, 0.0), min(np.nextafter(upper, 1.0), _SQRT_LN2)
        return Estimate(
            value, lower, upper, kind=self.js.kind, unit="1", method=self.js.method, confidence=self.js.confidence
        )  # fmt: skip

    def probabilities(self, start: int = 0, stop: int | None = None) -> FloatArray:
        """Posterior probabilities of the secrets ``start`` to ``stop - 1``."""
        first = _validate.count("start", start, 0)
        last = self.size if stop is None else _validate.count("stop", stop, 0)
        if not first <= last <= self.size:
            raise DomainError(
                f"start and stop must be in order, from 0 to {_validate.shown(self.size)}; got "
                f"{_validate.shown(start)} and {_validate.shown(stop)}. Count from 0."
            )
        if self._law is None:
            raise DomainError(
                "probabilities must be asked of likelihoods that can be read again; got a posterior of an iterator, or "
                "one that was pickled. Pass a function that returns a fresh iterator, or out= for all of them."
            )
        return self._law(first, last)

    def __reduce__(self) -> Any:
        held = {place.name: getattr(self, place.name) for place in fields(self)}
        return _rebuilt, (held | {"_law": None, "cost": dict(self.cost)},)  # likelihoods stay where they are

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, for JSON; infinite numbers stay floats."""
        numbers = {name: getattr(self, name) for name in QUANTITIES}
        plain = {name: None if number is None else number.to_dict() for name, number in numbers.items()}
        index = list(self.map_index) if isinstance(self.map_index, tuple) else int(self.map_index)
        best = {"indices": self.top.indices.tolist(), "probabilities": self.top.probabilities.tolist()}
        return {"size": self.size, **plain, "map_index": index, "ties": self.ties, "top": best, "cost": dict(self.cost)}

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row a quantity: value, lower, upper, unit, kind, method."""
        import pandas as pd

        rows = {name: getattr(self, name) for name in QUANTITIES if name != "inclusion"}
        return pd.DataFrame(
            {name: {"value": e.value, "lower": e.lower, "upper": e.upper, "unit": e.unit, "kind": e.kind,
                    "method": e.method} for name, e in rows.items() if e is not None}
        ).T.rename_axis("quantity")  # fmt: skip


QUANTITIES = (
    "log_evidence", "entropy", "kl", "js", "max_log_ratio", "min_log_ratio", "xi", "abp", "vulnerability", "inclusion",
)  # fmt: skip
_SQRT_LN2 = 0.8325546111576979  # rounded up
_KINDS = ("exact", "certified", "statistical", "heuristic")


def _rebuilt(held: dict[str, Any]) -> Posterior:
    return Posterior(**held)


def weaker(*numbers: Estimate) -> Any:
    """The weakest kind among these."""
    return _KINDS[max(_KINDS.index(number.kind) for number in numbers)]
