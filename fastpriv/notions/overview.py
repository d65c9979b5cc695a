"""``summary``: all quantities of a channel under a prior from one walk through its cells."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _parallel, _validate
from .._files import atomic_write
from .._values import FloatArray
from ..channels import Channel, DefaultChannel, ProductChannel
from ..errors import BackendMissingError, DomainError, ShapeError
from ..estimate import Estimate, Unit
from .bayesian import AverageBayesianPrivacy, averaged
from .discrete import arguments, beliefs, classes, columns, leakage, product_types, table

__all__ = ["ChannelSummary", "summary"]

_WORK = 2**32  # multiplications for ABP at all secrets that are done unasked
_NAMES: dict[str, tuple[str, Unit]] = {
    "ldp_epsilon": ("ldp", "nats"), "support_epsilon": ("support", "nats"), "xi_plus": ("plus", "nats"),
    "xi_minus": ("minus", "nats"), "cd_lmip": ("information", "nats"), "pointwise_lmip": ("pointwise", "nats"),
    "bayes_vulnerability": ("vulnerability", "probability"), "prior_vulnerability": ("before", "probability"),
    "min_entropy_leakage": ("gain", "nats"), "maximal_leakage": ("maximal_support", "nats"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class ChannelSummary:
    """What a channel tells about a secret with a prior. Estimates, None where there is no way to know them.

    Parameters
    ----------
    ldp_epsilon, support_epsilon : Estimate
        Pure LDP between all secrets, and between those that the prior gives mass.
    xi, xi_plus, xi_minus : Estimate
        Maximum Bayesian privacy and its sides; ``xi`` is pure local information privacy too.
    cd_lmip, pointwise_lmip : Estimate
        Mutual information, and the largest divergence of a row from the law of the release.
    bayes_vulnerability, prior_vulnerability, min_entropy_leakage, maximal_leakage : Estimate
        Chance of the best guess after and before the release, log of their ratio, and maximal leakage.
    abp : AverageBayesianPrivacy or None
        For the law of the release that was asked for; for all secrets where that is cheap.
    release, map_estimates : ndarray, shape (m,), or None
        Law of the release under the prior; likeliest secret after each release, -1 for those that never occur.
    divergences : ndarray, shape (n,), or None
        Divergence of each row from that law in nats, 0 for secrets without prior.
    posteriors : ndarray, path or None
        What was passed, filled.

    Examples
    --------
    >>> from fastpriv import notions
    >>> found = notions.summary([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    >>> found.bayes_vulnerability.value, found.map_estimates.tolist()
    (0.75, [0, 1])
    """

    ldp_epsilon: Estimate | None
    support_epsilon: Estimate | None
    xi: Estimate | None
    xi_plus: Estimate | None
    xi_minus: Estimate | None
    cd_lmip: Estimate | None
    pointwise_lmip: Estimate | None
    bayes_vulnerability: Estimate | None
    prior_vulnerability: Estimate | None
    min_entropy_leakage: Estimate | None
    maximal_leakage: Estimate | None
    abp: AverageBayesianPrivacy | None = None
    release: FloatArray | None = None
    map_estimates: NDArray[np.intp] | None = None
    divergences: FloatArray | None = None
    posteriors: Any = None

    def estimates(self) -> dict[str, Estimate]:
        """Those that are known, by name; of ABP the maximum and the mean."""
        known = {name.name: getattr(self, name.name) for name in fields(self)}
        found = {name: one for name, one in known.items() if isinstance(one, Estimate)}
        if self.abp is not None:
            found |= {"abp_maximum": self.abp.maximum, "abp_mean": self.abp.mean}
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, for JSON: each Estimate as its own dict."""
        return {name: one.to_dict() for name, one in self.estimates().items()}

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row a quantity."""
        try:
            import pandas as pd
        except ImportError:
            raise BackendMissingError("to_frame needs pandas. Install it with: pip install pandas") from None
        rows = [
            {"quantity": name, "value": one.value, "lower": one.lower, "upper": one.upper, "unit": one.unit,
             "kind": one.kind, "method": one.method}
            for name, one in self.estimates().items()
        ]  # fmt: skip
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={one.value:.6g}" for name, one in self.estimates().items())
        return f"ChannelSummary({numbers})"


def summary(
    prior: Any, mechanism: Any, *, posteriors: Any = None, release: ArrayLike | None = None, secret: Any = None,
    belief: ArrayLike | None = None, n_jobs: int | None = None, progress: _parallel.Progress = None,
) -> ChannelSummary:  # fmt: skip
    """LDP, MBP, LIP, mutual information, vulnerability, leakage, ABP and all posteriors of a channel under a prior.

    Parameters
    ----------
    prior : array_like, shape (n,), Pmf, tuple or None
        Probability of each secret, as in ``mbp``.
    mechanism : AnyChannel or array_like, shape (n, m)
        The channel.
    posteriors : ndarray, shape (n, m), or path, optional
        Where f(d | w) = pi(d) r_d(w) goes: a contiguous array of float32 or float64 that is filled, or a new ``.npy``
        file, which appears when it is whole. Columns of releases that never occur are 0.
    release, secret, belief : optional
        The law of the release for ABP, as in ``abp``. If none is given, ABP is taken at all secrets where that costs at
        most 2**32 multiplications, and left out beyond.
    n_jobs, progress : optional
        As in ``mbp``.

    Returns
    -------
    ChannelSummary
        Estimates, with ``to_dict`` and ``to_frame``.

    Raises
    ------
    DomainError
        As ``mbp`` and ``abp``.
    ShapeError
        For ``posteriors`` that do not fit.

    Notes
    -----
    A written channel is walked through twice, whatever is asked: largest and smallest cells, the law of the release and
    best guesses first; information and posteriors then. Blocks of 2**21 cells do not depend on ``n_jobs``, so the bits
    do not. Beside the channel, memory holds a few numbers for each row and each column, and one block a thread: 16 MiB,
    as much again for posteriors in a file, and for cells that are not plain doubles or singles.

    **Accuracy** as the functions of these names; ``tests/enclosures/test_channel_notions.py``.

    Source: the definitions that the functions of these names cite.

    Examples
    --------
    >>> from fastpriv import notions
    >>> found = notions.summary([0.2, 0.8], [[0.75, 0.25], [0.25, 0.75]])
    >>> round(found.cd_lmip.value, 6), round(found.abp.mean.value, 6)
    (0.085111, 0.048265)
    """
    _parallel.checked(n_jobs, progress)
    given = arguments.setting(prior, mechanism)
    known: dict[str, Any] = {}
    passed = None
    if posteriors is not None or _plain(given):
        found, known, passed = _walked(given, posteriors, release, secret, n_jobs, progress)
    else:
        found = _gathered(given, n_jobs, progress)
    numbers: dict[str, Any] = {
        name: arguments.estimate(found[key], unit) if key in found else None for name, (key, unit) in _NAMES.items()
    }
    numbers["xi"] = None
    plus, minus = numbers["xi_plus"], numbers["xi_minus"]
    if plus is not None and minus is not None:
        ends = (max(float(getattr(plus, end)), float(getattr(minus, end))) for end in ("value", "lower", "upper"))
        numbers["xi"] = Estimate(*ends, kind="exact", unit="nats", method=plus.method)
    asked = not (release is None and secret is None and belief is None)
    if asked or _cheap(given):
        known["abp"] = averaged(beliefs.shifts(given, release, secret, belief, n_jobs, None, passed))
    return ChannelSummary(**numbers, **known, posteriors=posteriors)


def _plain(given: arguments.Setting) -> bool:
    """Whether going through the rows is the way."""
    channel = given.channel
    if isinstance(channel, ProductChannel):
        return False
    if isinstance(channel, (Channel, DefaultChannel)):
        return True
    return classes.grouped(given) is None and channel._cells_within(arguments.most_cells(channel))


def _cheap(given: arguments.Setting) -> bool:
    """Whether ABP at all secrets is."""
    channel = given.channel
    if beliefs.alike(given) is not None or beliefs.paired(given) or product_types.few_types(given):
        return True
    if isinstance(channel, DefaultChannel):
        return (len(channel.indices) + 1) ** 2 * channel.outputs <= _WORK
    return channel._cells_within(_WORK, secrets=2)


def _gathered(given: arguments.Setting, n_jobs: int | None, progress: Any) -> dict[str, arguments.Reading]:
    """Each quantity that this channel and prior have a way to."""
    keys = [key for key, _ in _NAMES.values()]
    try:
        return leakage.readings(given, keys, n_jobs=n_jobs, progress=progress)
    except DomainError:
        pass
    found: dict[str, arguments.Reading] = {}
    for key in keys:
        try:
            found |= leakage.readings(given, (key,), n_jobs=n_jobs, progress=progress)
        except DomainError:
            continue
    return found


def _walked(
    given: arguments.Setting, posteriors: Any, release: Any, secret: Any, n_jobs: int | None, progress: Any
) -> Any:
    whole = arguments.written(given) if posteriors is None else arguments.rows_of(given)
    walk = table.Table(whole)
    first = table.columns(walk, n_jobs=n_jobs, progress=progress)
    written = isinstance(given.channel, Channel)
    law = beliefs.single_change(given, walk, first, release, secret) if written else None
    second = _second(walk, first, posteriors, law, n_jobs, progress)
    found = leakage.from_columns(walk, first, [key for key, _ in _NAMES.values()])
    found["information"] = columns.information(walk, first, second)
    found["pointwise"] = columns.pointwise(walk, second)
    if not isinstance(given.channel, (Channel, DefaultChannel)):
        found |= leakage.edges(given)
    known: dict[str, Any] = {"release": walk.scaled(first.q), "divergences": second.divergences}
    if whole.channel is given.channel:
        known["map_estimates"] = np.where(first.occurs, first.place, -1)
    else:  # rows stand for several secrets
        found |= leakage.readings(given, ("vulnerability", "before", "gain"))
        known = {}
    for array in known.values():
        array.setflags(write=False)
    return found, known, (walk, first, None if law is None else second.shifts) if written else None


def _second(
    walk: table.Table, first: table.Columns, posteriors: Any, law: FloatArray | None, n_jobs: int | None, progress: Any
) -> table.Rows:
    if not isinstance(posteriors, (str, os.PathLike)):
        if posteriors is not None:
            _checked(posteriors, walk.channel.shape)
        return table.rows(walk, first, law=law, posteriors=posteriors, n_jobs=n_jobs, progress=progress)
    with atomic_write(posteriors) as stream:
        header = {"descr": "<f8", "fortran_order": False, "shape": walk.channel.shape}
        np.lib.format.write_array_header_2_0(stream, header)
        begin, alone = stream.tell(), Lock()

        def sink(part: slice, block: FloatArray) -> None:
            with alone:  # blocks come in any order, and none waits in memory
                stream.seek(begin + part.start * block.shape[1] * block.itemsize)
                stream.write(block.data)

        return table.rows(walk, first, law=law, posteriors=sink, n_jobs=n_jobs, progress=progress)


def _checked(posteriors: Any, shape: tuple[int, int]) -> None:
    good = isinstance(posteriors, np.ndarray) and posteriors.dtype in (np.float32, np.float64)
    if not (good and posteriors.shape == shape and posteriors.flags.c_contiguous and posteriors.flags.writeable):
        raise ShapeError(
            f"posteriors must be a contiguous array of float32 or float64 of shape {shape} that can be written to, or "
            f"a path; got {_validate.shown(posteriors)}. Pass numpy.empty({shape})."
        )
