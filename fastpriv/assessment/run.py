"""``assess``: the grid in blocks of sigmas, each block kept on disk if asked, so that a killed run can go on."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from .._parallel import Progress, blocks, ordered_map
from ..distributions import Pmf
from ..errors import DomainError
from . import grids
from .checkpoint import Checkpoint
from .noise import required_noise
from .quantities import FAMILIES, QUANTITIES, Surface, measured
from .result import Assessment

__all__ = ["assess"]

FloatArray = NDArray[np.float64]
MAX_POINTS = 4096
_AUTO_POINTS = 512
_AUTO_BINS = 256
_BLOCKS = 512
_SIGMA = "Pass standard deviations in the unit of the column, such as 1,10,100."
_EPSILON = "Pass epsilons in nats, such as 0.1,1,10."


def assess(
    data: ArrayLike | Pmf, *, mechanism: str = "gaussian", sigma: ArrayLike | str | None = None,
    epsilon: ArrayLike | str | None = None, bins: int | str | None = "auto", sensitivity: float | None = None,
    name: str = "value", source: str = "data", n_jobs: int | None = None, progress: Progress = None,
    checkpoint: str | os.PathLike[str] | None = None, resume: bool = False,
) -> Assessment:  # fmt: skip
    """Tabulate what releasing each value of a column with noise leaks, with bounds.

    Parameters
    ----------
    data : array_like, shape (n,), or Pmf
        The sensitive column, or the law of its values. Its empirical distribution is the prior of the secret.
    mechanism : {"gaussian"}
        The noise: ``gaussian`` adds N(0, sigma^2) to each value once.
    sigma : array_like, shape (s,), or str, optional
        Standard deviations of the noise, in the unit of the column. Text such as ``"1,2,5"``, ``"0:10:101"`` (equal
        steps) or ``"1..1000:31"`` (equal ratios) is a grid. Default: round numbers from a tenth of the column's
        standard deviation to a hundred times it.
    epsilon : array_like, shape (e,), or str, optional
        Epsilons of the curves, in nats. Default: 81 from 0.01 to 100.
    bins : int, "auto" or None
        Round the values to the centres of this many equal bins before the noise is added. ``"auto"`` keeps up to 512
        distinct values as they are and takes 256 bins beyond; None keeps all values.
    sensitivity : float, optional
        Largest distance between two possible values, for LDP. Default: the range of the values.
    name, source : str
        What the column is called and where it comes from, for table and figure.
    n_jobs : int, optional
        Threads, as in joblib. The numbers do not depend on it.
    progress : bool or callable, optional
        True for a bar on stderr; a callable is called with (blocks done, blocks in all).
    checkpoint : path-like, optional
        A directory where finished blocks are kept until the run is complete.
    resume : bool
        Take the blocks of an earlier run with the same data and settings from ``checkpoint``.

    Returns
    -------
    Assessment
        Table, summary, files and figure.

    Raises
    ------
    DomainError
        For NaN or infinite data, a non-positive sigma, a negative epsilon, a constant column, more than 4096 distinct
        values without bins, or a grid of more than 5,000,000 cells.
    ShapeError
        For empty or multi-dimensional data.

    Notes
    -----
    With bins, every number speaks of the mechanism "round, then add noise". The quantities are those of
    ``fastpriv.notions``, whose docstrings give the sources.

    **Accuracy** Every number carries bounds; ``kind`` says what they claim. ``tests/surfaces/test_assess.py`` checks
    that the table repeats the numbers of ``fastpriv.notions``.

    Examples
    --------
    >>> import fastpriv
    >>> report = fastpriv.assess([31, 40, 40, 58], sigma="10,100", epsilon=[0.5, 1.0])
    >>> report["mutual_information"].upper.round(4)
    array([0.4736, 0.0069])
    """
    family = FAMILIES[_validate.choice("mechanism", mechanism, tuple(FAMILIES))]
    prior, records, used_bins = _prior(data, bins)
    span = _span(prior)
    if sensitivity is None:
        sensitivity = span
    else:
        sensitivity = _validate.scalar(
            "sensitivity", sensitivity, f"finite and at least the range of the values, {span!r}",
            lambda x: np.isfinite(x) & (x >= span), remedy="Pass the largest distance between two possible values.",
        )  # fmt: skip
    sigmas, epsilons = _points(prior, sigma, epsilon)
    store = None
    if checkpoint is not None:
        settings = (prior.values, prior.probabilities, sigmas, epsilons, np.array([sensitivity]))
        words = (mechanism, *QUANTITIES)
        store = Checkpoint.opened(checkpoint, words, settings, resume=_validate.flag("resume", resume))

    def block(part: slice) -> dict[str, Surface]:
        found = store.load(part.start) if store is not None else None
        if found is None:
            each = [measured(prior, family.build(s, sensitivity), epsilons) for s in sigmas[part].tolist()]
            found = {quantity: Surface.stacked([one[quantity] for one in each]) for quantity in QUANTITIES}
            if store is not None:
                store.keep(part.start, found)
        return found

    parts = blocks(sigmas.size, -(-sigmas.size // _BLOCKS))
    done = list(ordered_map(block, parts, n_jobs=n_jobs, progress=progress))
    surfaces = {quantity: Surface.joined([one[quantity] for one in done]) for quantity in QUANTITIES}
    report = Assessment(
        name, source, records, used_bins, prior, mechanism, family.noise, sensitivity, sigmas, epsilons, surfaces,
        required_noise(prior, family, sensitivity),
    )  # fmt: skip
    if store is not None:
        store.remove()
    return report


def _prior(data: ArrayLike | Pmf, bins: int | str | None) -> tuple[Pmf, int, int | None]:
    if isinstance(bins, str) and bins != "auto":
        raise DomainError(f"bins must be an integer, 'auto' or None; got {bins!r}. Pass one of these.")
    if isinstance(data, Pmf):
        prior, records, used = data, 0, None
    else:
        column = _validate.vector("data", data, "finite numbers", remedy="Remove or correct these entries.")
        records = column.size
        used = _bins(column, bins)
        prior = Pmf.from_data(column, bins=used)
    if len(prior) < 2:
        raise DomainError(
            f"data must have at least two different values; got {float(prior.values[0])!r} throughout. A constant "
            "column has nothing to leak."
        )
    if len(prior) > MAX_POINTS:
        raise DomainError(
            f"data must have at most {MAX_POINTS} distinct values when they are not rounded; got {len(prior)}. "
            "Pass bins='auto' or a number of bins (--bins auto, --bins 256)."
        )
    return prior, records, used


def _bins(column: FloatArray, bins: int | str | None) -> int | None:
    if bins != "auto":
        return None if bins is None else _validate.count("bins", bins, 2, MAX_POINTS)
    return _AUTO_BINS if np.unique(column).size > _AUTO_POINTS else None


def _span(prior: Pmf) -> float:
    """The range of the values, rounded up."""
    low, high = float(prior.values[0]), float(prior.values[-1])
    span = high - low
    return span if Fraction(high) - Fraction(low) <= Fraction(span) else math.nextafter(span, math.inf)


def _points(prior: Pmf, sigma: Any, epsilon: Any) -> tuple[FloatArray, FloatArray]:
    mean = np.sum(prior.probabilities * prior.values)
    deviation = float(np.sqrt(np.sum(prior.probabilities * (prior.values - mean) ** 2)))
    sigma = grids.default_sigma(deviation) if sigma is None else sigma
    epsilon = grids.default_epsilon() if epsilon is None else epsilon
    sigmas = grids.grid("sigma", sigma, "positive and finite", lambda x: (x > 0) & np.isfinite(x), _SIGMA)
    epsilons = grids.grid("epsilon", epsilon, "at least 0 and finite", lambda x: (x >= 0) & np.isfinite(x), _EPSILON)
    grids.checked_cells(sigmas, epsilons)
    return sigmas.build(), epsilons.build()
