"""``summary``: all quantities of a channel under a prior from the same passes through its cells."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base import parallel, validate
from ..base.errors import DomainError, ShapeError
from ..base.estimate import Estimate, Result
from ..base.files import atomic_write
from ..base.numerics import FloatArray, IndexArray
from ..base.parallel import Progress
from ..channels import Channel, ChannelStack, DefaultChannel, ProductChannel
from ..mechanisms.broadcasting import broadcasting
from .bayesian import AverageBayesianPrivacy, abp_of_shifts, larger_side
from .discrete import abp, product_channels
from .discrete import channel_with_prior as models
from .discrete import dense_quantities as dense
from .discrete.quantities import UNITS, brackets, check_relations
from .discrete.stack_quantities import quantities
from .discrete.type_class_quantities import BEST_GUESS, log_ratio_bounds, type_classes

Posteriors: TypeAlias = NDArray[np.float64] | NDArray[np.float32] | str | os.PathLike[str] | None

_AUTOMATIC_WORK = 2**32  # multiplications up to which ABP is computed for all secrets without a request: seconds


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ChannelSummary(Result):
    """Information that a channel leaks about a secret with a prior. Estimates, or None for those that are unavailable.

    Parameters
    ----------
    ldp_epsilon, ldp_on_support : Estimate
        Pure LDP between all secrets, and between those of positive prior probability.
    xi, xi_plus, xi_minus : Estimate
        Maximum Bayesian privacy and its sides; ``xi`` is pure local information privacy too.
    cd_lmip, pointwise_lmip : Estimate
        Mutual information, and the largest divergence of a row from the distribution of the release.
    bayes_vulnerability, prior_vulnerability, min_entropy_leakage, maximal_leakage : Estimate
        Chance of the best guess after and before the release, log of their ratio, and maximal leakage.
    abp : AverageBayesianPrivacy or None
        For the requested distribution of the release; else for all secrets, if that is cheap.
    release, map_secrets : ndarray, shape (m,), or None
        Distribution of the release under the prior; likeliest secret after each release, -1 for those that never occur.
    divergences : ndarray, shape (n,), or None
        Divergence of each row from that distribution in nats, 0 for secrets without prior.
    posteriors : ndarray, path or None
        What was passed, filled.

    Examples
    --------
    >>> from fastpriv import notions
    >>> quantities = notions.summary([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    >>> quantities.bayes_vulnerability.value, quantities.map_secrets.tolist()
    (0.75, [0, 1])
    """

    ldp_epsilon: Estimate | None
    ldp_on_support: Estimate | None
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
    release: FloatArray | None = field(default=None, repr=False)
    map_secrets: IndexArray | None = field(default=None, repr=False)
    divergences: FloatArray | None = field(default=None, repr=False)
    posteriors: Posteriors = field(default=None, repr=False, compare=False)


@broadcasting(without="posteriors", itself=(ChannelStack,))
def summary(
    prior: models.Prior, mechanism: models.Mechanism, *, posteriors: Posteriors = None,
    release: ArrayLike | None = None, secret: ArrayLike | None = None, belief: ArrayLike | None = None,
    n_jobs: int | None = None, progress: Progress = None,
) -> ChannelSummary:
    """LDP, MBP, LIP, mutual information, vulnerability, leakage, ABP and all posteriors of a channel under a prior.

    Parameters
    ----------
    prior : array_like, shape (n,), Pmf, tuple or None
        Probability of each secret, as in ``mbp``.
    mechanism : AnyChannel, ChannelStack or array_like, shape (n, m)
        The channel. Of a stack the estimates have its shape, and there are no posteriors, arrays or ABP.
    posteriors : ndarray, shape (n, m), or path, optional
        Where f(d | w) = pi(d) r_d(w) goes: a contiguous array of float32 or float64 that is filled, or a new ``.npy``
        file, which appears when it is whole. Columns of releases that never occur are 0.
    release, secret, belief : optional
        The distribution of the release for ABP, as in ``abp``. If none is given, ABP is taken at all secrets where that
        costs at most 2**32 multiplications, and left out beyond.
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
    A written channel is read twice, whatever is asked for: largest and smallest cells, q and best guesses in the first
    pass, information and posteriors in the second. Blocks of 2**21 cells do not depend on ``n_jobs``, so the bits do
    not. Beside the channel, memory holds a few numbers for each row and each column, and one block a thread: 16 MiB, as
    much again for posteriors in a file, and for cells that are not plain doubles or singles.

    **Accuracy** as the functions of these names; ``tests/enclosures/test_channel_notions.py``. Source: the definitions
    that the functions of these names cite.

    Examples
    --------
    >>> from fastpriv import notions
    >>> quantities = notions.summary([0.2, 0.8], [[0.75, 0.25], [0.25, 0.75]])
    >>> round(quantities.cd_lmip.value, 6), round(quantities.abp.mean.value, 6)
    (0.085111, 0.048265)
    """
    parallel.checked(n_jobs, progress)
    all_secrets = release is None and secret is None and belief is None
    if isinstance(mechanism, ChannelStack):
        if not all_secrets or posteriors is not None:
            raise DomainError(
                "posteriors, release, secret and belief must be None for a stack of channels; got one of them. Take "
                "its channels one by one."
            )
        result: dict[str, Any] = {**quantities(tuple(UNITS), prior, mechanism, n_jobs, progress)}
        return ChannelSummary(**result, xi=larger_side(result["xi_plus"], result["xi_minus"]))
    model = models.channel_with_prior(prior, mechanism)
    arrays: dict[str, Any] = {}
    rows: dense.RowBlocks | None = None
    if posteriors is not None or _is_enumerated(model):
        results, arrays, rows = _from_rows(model, posteriors, n_jobs, progress)
    else:
        results = brackets(model, UNITS, n_jobs=n_jobs, progress=progress, omit_unavailable=True)
    checked = check_relations(results, model)
    numbers: dict[str, Any] = {
        name: models.estimate(checked[name], unit) if name in checked else None for name, unit in UNITS.items()
    }
    plus, minus = numbers["xi_plus"], numbers["xi_minus"]
    numbers["xi"] = None if plus is None or minus is None else larger_side(plus, minus)
    shifts = abp.symmetric_shifts(model, None) if all_secrets else None
    if shifts is None and (not all_secrets or _abp_is_cheap(model)):
        shifts = abp.posterior_shifts(model, release, secret, belief, n_jobs, None, rows)
    shift = None if shifts is None else abp_of_shifts(shifts)
    return ChannelSummary(**numbers, abp=shift, **arrays, posteriors=posteriors)


def _is_enumerated(model: models.ChannelWithPrior) -> bool:
    """Whether all quantities come from the rows, rather than each from its own closed form."""
    channel = model.channel
    if isinstance(channel, ProductChannel):
        return False
    if isinstance(channel, (Channel, DefaultChannel)):
        return True
    return channel._cells_within(models.automatic_cells(channel)) and type_classes(model) is None


def _abp_is_cheap(model: models.ChannelWithPrior) -> bool:
    channel = model.channel
    if abp.has_pairwise_form(model) or product_channels.has_few_types(model):
        return True
    if isinstance(channel, DefaultChannel):
        return (len(channel.indices) + 1) ** 2 * channel.outputs <= _AUTOMATIC_WORK
    return channel._cells_within(_AUTOMATIC_WORK, exponent=2)


def _from_rows(
    model: models.ChannelWithPrior, posteriors: Any, n_jobs: int | None, progress: Progress
) -> tuple[dict[str, models.Bracket], dict[str, Any], dense.RowBlocks | None]:
    """Brackets, arrays, and the rows themselves if ABP can use them."""
    enumerated = models.with_distinct_rows(model) if posteriors is None else models.with_all_rows(model)
    rows = dense.RowBlocks(enumerated, n_jobs, progress)
    results = dense.column_brackets(rows, UNITS)
    second = _second_pass(rows, posteriors)
    results |= dense.row_brackets(rows, second)
    if not isinstance(model.channel, (Channel, DefaultChannel)):
        results |= log_ratio_bounds(models.QuantityRequest(model, tuple(UNITS)))
    arrays: dict[str, Any] = {}
    if rows.channel is model.channel:
        map_secrets = np.where(rows.columns.occurs, rows.columns.map_secret, -1)
        release = rows.rescaled(rows.columns.q)
        arrays = {"release": release, "map_secrets": map_secrets, "divergences": second.divergences}
        for array in arrays.values():
            array.setflags(write=False)
    else:  # rows stand for several secrets
        results |= brackets(model, BEST_GUESS)
    return results, arrays, rows if isinstance(model.channel, Channel) else None


def _second_pass(rows: dense.RowBlocks, posteriors: Any) -> dense.RowStatistics:
    if not isinstance(posteriors, (str, os.PathLike)):
        shape, array = rows.channel.shape, isinstance(posteriors, np.ndarray)
        good = array and posteriors.dtype in (np.float32, np.float64) and posteriors.shape == shape
        if posteriors is not None and not (good and posteriors.flags.c_contiguous and posteriors.flags.writeable):
            raise ShapeError(
                f"posteriors must be a contiguous array of float32 or float64 of shape {shape} that can be written to, "
                f"or a path; got {validate.shown(posteriors)}. Pass numpy.empty({shape})."
            )
        return dense.row_statistics(rows, posteriors=posteriors)
    with atomic_write(posteriors) as stream:
        header = {"descr": "<f8", "fortran_order": False, "shape": rows.channel.shape}
        np.lib.format.write_array_header_2_0(stream, header)
        begin, lock = stream.tell(), Lock()

        def write_block(part: slice, block: FloatArray) -> None:
            with lock:  # blocks come in any order, and none waits in memory
                stream.seek(begin + part.start * block.shape[1] * block.itemsize)
                stream.write(block.data)

        return dense.row_statistics(rows, posteriors=write_block)
