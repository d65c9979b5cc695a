"""``Assessment``: the frozen result for one column and one family of mechanisms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import __version__, figures
from ...distributions import Pmf
from ...errors import DomainError
from ...estimate import Estimate
from ..inputs.secrets import Secret
from ..noise import Requirement
from ..quantities import QUANTITIES, Surface
from .summary import summary
from .table import Report

__all__ = ["Assessment"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Assessment(Report):
    """What the release of a column leaks, over grids of a mechanism's parameter and of epsilon.

    Parameters
    ----------
    name, source : str
        What the column is called and where it comes from.
    secret : Secret
        The possible values and their law; ``records``, ``bins``, ``labels`` and ``prior`` are read from it.
    mechanism : str
        Name of the family of mechanisms.
    noise : str
        What it does, in words of its parameter.
    parameter : {"sigma", "level", ""}
        What the rows of the grid are: standard deviations of noise, levels of LDP, or nothing for a single mechanism.
    sensitivity : float
        Largest distance between two values, in the unit of the column; 1 for categories.
    grid : ndarray of float64, shape (s,)
        The parameter; ``sigma`` and ``level`` are other names for it.
    epsilon : ndarray of float64, shape (e,)
        Epsilons of the curves, in nats.
    surfaces : mapping of str to Surface
        The quantities on the grid.
    requirements : tuple of Requirement
        The parameter that some usual targets need.

    Notes
    -----
    ``assessment["lip_delta"]`` is an Estimate with arrays of shape (s, e) for a curve and (s,) for a number of each
    row. In CSV and Parquet ``sigma``, ``level`` and ``epsilon`` are empty or null where they have no place; in JSON
    infinite numbers are the strings ``"inf"`` and ``"-inf"``. The mechanism with bins is ``gaussian, 256 bins``.

    Examples
    --------
    >>> import fastpriv
    >>> report = fastpriv.assess([31, 40, 40, 58], sigma=[10, 100], epsilon=[1])
    >>> report["lip_delta"].shape
    (2, 1)
    >>> print(",".join(report.columns()))
    column,mechanism,quantity,sigma,level,epsilon,value,lower,upper,kind,unit,method
    """

    name: str
    source: str
    secret: Secret
    mechanism: str
    noise: str
    parameter: str
    sensitivity: float
    grid: FloatArray
    epsilon: FloatArray
    surfaces: Mapping[str, Surface]
    requirements: tuple[Requirement, ...]

    @property
    def records(self) -> int:
        """Number of records, 0 for a law that was given instead of data."""
        return self.secret.records

    @property
    def bins(self) -> int | None:
        """Number of bins to whose centres the release rounds values first; None where it takes them as they are."""
        return self.secret.bins

    @property
    def rounding(self) -> str | None:
        """What the release does first, in words; None where it takes values as they are."""
        if self.bins is None:
            return None
        left = f"{len(self.prior):,} of {self.bins:,} bins" if len(self.prior) < self.bins else f"{self.bins:,} bins"
        return f"values are rounded to the centres of {left} before the release"

    @property
    def prior(self) -> Pmf:
        """The law of what the mechanism is given: values, rounded ones with bins; of categories, their numbers."""
        return self.secret.prior

    @property
    def unrounded(self) -> Pmf:
        """The law of the values as they are; ``prior`` unless there are bins."""
        return self.secret.unrounded

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of categories, in the order of ``prior.values``."""
        return self.secret.labels

    @property
    def sigma(self) -> FloatArray:
        """Standard deviations of the noise, in the unit of the column."""
        return self._named("sigma")

    @property
    def level(self) -> FloatArray:
        """Levels of LDP, in nats, of a mechanism that has one as its parameter."""
        return self._named("level")

    def _named(self, parameter: str) -> FloatArray:
        if self.parameter != parameter:
            raise AttributeError(f"{self.mechanism} has no {parameter}; its grid holds: {self.parameter or 'nothing'}.")
        return self.grid

    def __getitem__(self, quantity: str) -> Estimate:
        if quantity not in self.surfaces:
            raise DomainError(f"quantity must be one of {', '.join(self.surfaces)}; got {quantity!r}. Choose one.")
        found = self.surfaces[quantity]
        kind: Any = found.weakest_kind
        unit: Any = QUANTITIES[quantity].unit
        return Estimate(
            found.value, found.lower, found.upper, kind=kind, unit=unit, method="; ".join(sorted(set(found.method)))
        )

    def __repr__(self) -> str:
        grid = f"{len(self.grid)} {self.parameter}s x " if self.parameter else ""
        return f"<Assessment of {self.name}: {grid}{len(self.epsilon)} epsilons, {self.mechanism}>"

    def summary(self) -> str:
        """The table a person reads: upper bounds, what they mean, and what usual targets need."""
        return summary(self)

    def plot(self) -> Any:
        """The figure, a ``matplotlib.figure.Figure``; single panels are in ``fastpriv.figures``."""
        return figures.assessment(self)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The tidy table row by row, in the order of ``COLUMNS``; None where a number has no place."""
        epsilons: list[float | None] = list(self.epsilon.tolist())
        mechanism = self.mechanism if self.bins is None else f"{self.mechanism}, {self.bins} bins"
        for quantity, found in self.surfaces.items():
            of = epsilons if QUANTITIES[quantity].curve else [None]
            unit = QUANTITIES[quantity].unit
            for i, at in enumerate(self.grid.tolist()):
                kind, method = found.kind[i], found.method[i]
                place = (at if self.parameter == "sigma" else None, at if self.parameter == "level" else None)
                numbers = (np.atleast_1d(x[i]).tolist() for x in (found.value, found.lower, found.upper))
                for epsilon, value, lower, upper in zip(of, *numbers, strict=True):
                    numbers_of = (epsilon, value, lower, upper)
                    yield (self.name, mechanism, quantity, *place, *numbers_of, kind, unit, method)

    def settings(self) -> dict[str, Any]:
        """Input, mechanism, grid sizes, meanings and what targets need, in plain types."""
        data: dict[str, Any] = {
            "name": self.name, "source": self.source, "records": self.records, "bins": self.bins,
            "values": len(self.unrounded),
        }  # fmt: skip
        if self.labels is None:
            x = self.unrounded.values
            data |= {"smallest": float(x[0]), "largest": float(x[-1])}
        else:
            data |= {"categories": list(self.labels), "probabilities": self.prior.probabilities.tolist()}
        mechanism: dict[str, Any] = {"name": self.mechanism, "noise": self.noise}
        if self.labels is None:
            mechanism["sensitivity"] = self.sensitivity
        if self.bins is not None:
            mechanism["rounding"] = self.rounding
        size = {self.parameter: len(self.grid)} if self.parameter else {}
        return {
            "fastpriv": __version__,
            "data": data,
            "mechanism": mechanism,
            "grid": size | {"epsilon": len(self.epsilon)},
            "quantities": {
                name: {"unit": QUANTITIES[name].unit, "meaning": QUANTITIES[name].meaning} for name in self.surfaces
            },
            "required_noise": [
                {"target": r.target, self.parameter: r.setting, "kind": r.kind} for r in self.requirements
            ],
        }
