"""Average Bayesian privacy of a channel: how far the expected posterior lies from the attacker's belief.

Notation: f = E[posterior] = pi (1 + g), g_d = sum_w P(w) (r_d(w) - 1) for the distribution P of the release; b the
attacker's belief, a = (f - b)/(f + b). JS(f || b) = sum (f + b)/4 phi(a), phi(a) = (1+a) log(1+a) + (1-a) log(1-a).

g is formed from P - q and r - 1, both centred. With N^2 = sum (P - q)^2 / q, chi^2 = sum q (r - 1)^2 and S of
``dense_quantities``, its error is at most u (m + 60) N chi + 40 u (N + chi) sqrt(S); the terms of JS fall and then rise
in g, so that the ends of its interval bound each of them. For one distribution, |r - 1| <= (top - low)/q gives
120 u sum (|P - q| + 0.3 D) (top - low)/q. Both are far too wide if a rare secret makes r huge; term by term the error
is u (m + 60) sum |P - q| |r - 1| + 40 u sum D |r - 1| + 40 u sum |P - q| D / q and u^2 S, at the cost of one more
product of matrices. Cells made from logarithms add four times their error to the first term.
"""

# bounds: proved - docs/proofs/notions.md, 14.6 and 14.7: roundings of expected posteriors, of terms of Jensen-Shannon
#    and of masses of types

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base import parallel, validate
from ...base.errors import DomainError, ShapeError
from ...base.numerics import SQRT_LOG_2, SQRT_LOG_2_ABOVE, FloatArray, IndexArray, RealArray
from ...base.numerics import UNIT_ROUNDOFF as U
from ...base.parallel import Progress
from ...capacity import structured
from ...channels import DefaultChannel
from ...channels.type_classes import compositions, log_multinomials
from ...kernels import _channel_blocks, _matrix_product
from ...mechanisms.set_valued import count_times_log
from . import product_channels
from .channel_with_prior import ChannelWithPrior, with_all_rows, with_distinct_rows
from .dense_quantities import ColumnStatistics, RowBlocks, row_statistics
from .set_channels import MOST_PAIRED, expected_changes, set_parameters
from .type_class_quantities import chi_square_information, type_classes

_BLOCK_RELEASES = 128  # distributions of the release in one task
_BLOCK_CELLS = 2**19  # cells of the channel in one task: 4 MiB of doubles
_MOST_TYPES = 2**21  # types of secrets of a product of symmetric channels: 16 MiB a vector
# bound: none - a distribution of the release so near q, in total variation, is taken for q and refused
_SAME_DISTANCE = 1e-12
# bound: none - errors of an expected posterior from which they are bounded term by term
_WIDE_ERROR = 1e-11
_SERIES_TERMS = 16  # of phi in powers of a^2, enough for |a| < 0.3


class PosteriorShifts(NamedTuple):
    """Root of JS for each distribution of the release with bounds, and the prior of each (None for one of them)."""

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    weight: FloatArray | None
    method: str
    weight_error: float = 0.0  # relative error of the weights


def posterior_shifts(
    model: ChannelWithPrior, release: Any, secret: Any, belief: Any, n_jobs: int | None,
    progress: Progress, rows: RowBlocks | None = None,
) -> PosteriorShifts:
    """For one given distribution of the release, for the rows of some secrets, or for all of positive probability.

    ``rows`` are those of the channel, if they have been gone through already.
    """
    if release is not None and secret is not None:
        raise DomainError("release must be None where secret is given; got both. Pass the one or the other.")
    if release is None and belief is None:
        symmetric = symmetric_shifts(model, secret)
        if symmetric is not None:
            return symmetric
        if has_pairwise_form(model):
            return _pairwise_shifts(model, secret)
        types = product_channels.expected_posteriors(model, secret)
        if types is not None:
            bounds = np.stack([types.js.mid, np.maximum(types.js.lower, 0.0), np.maximum(types.js.upper, 0.0)])
            shifts = _roots_of_sums(bounds, 0, types.mass)
            return shifts._replace(method="types of secrets", weight_error=types.mass_error)
    if rows is None:
        all_rows = belief is not None and isinstance(model.channel, DefaultChannel)
        rows = RowBlocks(with_all_rows(model) if all_rows else with_distinct_rows(model), n_jobs)
    columns, rows.progress = rows.columns, progress  # the first pass shows none
    believed = rows.prior if belief is None else _validated_belief(belief, rows.prior.size)
    if release is not None:
        return _shifts_under_one(rows, _validated_change(release, rows, columns), believed, None)
    secrets = _requested_rows(model, rows, secret)
    weight = rows.prior[secrets]
    if secrets.size == 1:
        return _shifts_under_one(rows, secrets, believed, weight)
    return _shifts_under(rows, secrets, believed, weight)


def _centred_rows(rows: RowBlocks, part: slice) -> FloatArray:
    """Rows less q, scaled."""
    return np.asarray((rows.block(part) - rows.columns.centre) - rows.columns.delta)


def _changes_of_secrets(rows: RowBlocks, secrets: IndexArray) -> FloatArray:
    """P - q, where P is the row of each of these secrets."""
    if np.array_equal(secrets, np.arange(secrets[0], secrets[0] + secrets.size)):
        return rows.rescaled(_centred_rows(rows, slice(int(secrets[0]), int(secrets[-1]) + 1)))
    return rows.rescaled(np.concatenate([_centred_rows(rows, slice(d, d + 1)) for d in secrets.tolist()]))


def _sum_error(rows: RowBlocks, believed: FloatArray) -> float:
    """Relative error of 1 + g due to sums of rows, prior and belief that are not exactly 1."""
    gap: float = 2.1 * rows.channel.mass_gap + 1.1 * rows.gap + 2.1 * rows.mass_error
    # both the prior and a belief of its own are rounded when they are divided by their sums
    return gap + (0.0 if believed is rows.prior else 4 * U)


def _shifts_under_one(
    rows: RowBlocks, release: Any, believed: FloatArray, weight: FloatArray | None
) -> PosteriorShifts:
    """Under one release, a given P - q (without weight) or one row: in one pass, if its error is small enough.

    Of 1,000 x 1,000 cells this pass takes 3 ms, the products of matrices of ``_shifts_under`` 130 ms.
    """
    first = rows.columns
    change = release if weight is None else _changes_of_secrets(rows, release)[0]
    inverse = np.divide(1.0, first.q, out=np.zeros_like(first.q), where=first.occurs)
    q_error = rows.rescaled(first.spread)
    if weight is None:
        q_error = q_error + rows.rescaled(first.q)  # q is rounded when it is subtracted from the given P
    with np.errstate(over="ignore"):
        weighted_span = float(np.sum((np.abs(change) + 0.3 * q_error) * (first.span * inverse)))
    error = (120 * U + 4 * (first.relative_error + rows.mass_error)) * weighted_span
    if not error * float(rows.prior.max()) <= _WIDE_ERROR:
        return _shifts_under(rows, release, believed, weight)
    g = row_statistics(rows, change=change, divergences=False).mean_changes
    parts = _enclosed_terms(rows.prior, believed, g, error + _sum_error(rows, believed) * (1 + np.abs(g)))
    return _roots_of_sums(np.array([[_channel_blocks.accurate_sum(part)] for part in parts]), 0, weight)


def _shifts_under(rows: RowBlocks, releases: Any, believed: FloatArray, weight: FloatArray | None) -> PosteriorShifts:
    """Under many rows as releases, or under one given P - q (without weight), by products of matrices."""
    first = rows.columns
    n, m = rows.channel.shape
    count, q_error = 1 if weight is None else releases.size, rows.rescaled(first.spread)
    if weight is None:
        q_error = q_error + rows.rescaled(first.q)
    columns = _ColumnFactors.of(first.q, first.spread, q_error, rows.root_scale)
    relative, gap = U * (m + 100) + 4 * (first.relative_error + rows.mass_error), _sum_error(rows, believed)

    def sums_of_block(task: tuple[slice, slice]) -> FloatArray:
        chosen, part = task
        change = releases[None, :] if weight is None else _changes_of_secrets(rows, releases[chosen])
        positive = (rows.prior[part] > 0) | (believed[part] > 0)
        with np.errstate(over="ignore", invalid="ignore"):
            t = _centred_rows(rows, part) * columns.inverse
        t[rows.prior[part] == 0] = 0.0
        pi, b, t = rows.prior[part][positive], believed[part][positive], t[positive]
        return _sums_under_changes(change, t, pi, b, columns, relative, gap)

    step = max(1, _BLOCK_CELLS // m)
    row_parts = parallel.blocks(n, step)
    tasks = [(chosen, part) for chosen in parallel.blocks(count, _BLOCK_RELEASES) for part in row_parts]
    sums = np.zeros((3, count))
    results = parallel.ordered_map(sums_of_block, tasks, n_jobs=rows.n_jobs, progress=rows.progress, shared=True)
    for (chosen, _), block in zip(tasks, results, strict=True):
        sums[:, chosen] += block
    return _roots_of_sums(sums, len(tasks) + step, weight)


class _ColumnFactors(NamedTuple):
    """What errors of expected posteriors are made of: arrays (..., m), and S^(1/2) (...)."""

    inverse: FloatArray  # 1/q, 0 where it never occurs
    root_q: FloatArray
    inverse_root: FloatArray
    q_error: FloatArray  # of q, in units of rounding
    relative_spread: FloatArray  # D/q
    root_energy: FloatArray

    @classmethod
    def of(
        cls, q: FloatArray, spread: FloatArray, q_error: FloatArray, root_scale: FloatArray | float
    ) -> _ColumnFactors:
        """From q and the spread of the scaled columns."""
        inverse = np.divide(1.0, q, out=np.zeros_like(q), where=q > 0)
        root_q = np.sqrt(q) * root_scale  # q itself may be too small for a double
        inverse_root = np.divide(1.0, root_q, out=np.zeros_like(root_q), where=root_q > 0)
        root_energy = np.sqrt(_channel_blocks.accurate_sums((root_q * (spread * inverse)) ** 2))
        return cls(inverse, root_q, inverse_root, q_error, spread * inverse, root_energy)


def _sums_under_changes(
    change: FloatArray, t: FloatArray, pi: FloatArray, belief: FloatArray, columns: _ColumnFactors, relative: float,
    gap: FloatArray | float,
) -> FloatArray:
    """Sums of the terms of JS and of their bounds (3, ..., k) under P - q (..., k, m) for r - 1 (..., n, m)."""
    _, root_q, inverse_root, q_error, relative_spread = (column[..., None, :] for column in columns[:5])
    root_energy, pi, belief = columns.root_energy[..., None, None], pi[..., None, :], belief[..., None, :]
    g = _matrix_product.product(change, t)
    norm = np.sqrt(np.sum((change * inverse_root) ** 2, axis=-1))[..., None]
    chi = np.sqrt(np.sum((t * root_q) ** 2, axis=-1))[..., None, :]
    error = relative * norm * chi + 40 * U * (norm + chi) * root_energy
    wide = ~(np.max(pi * error, axis=(-2, -1), initial=0.0) <= _WIDE_ERROR)
    if wide.any():
        change_size, t_size = np.abs(change), np.abs(t)
        spread_terms = np.swapaxes(_matrix_product.product(t_size, q_error), -1, -2)
        spread_terms = spread_terms + _matrix_product.product(change_size, relative_spread)
        spread_terms = spread_terms + 40 * U * root_energy**2
        narrow = relative * _matrix_product.product(change_size, t_size) + 40 * U * spread_terms
        error = np.where(wide[..., None, None], np.fmin(error, narrow), error)
    error = error + gap * (1 + np.abs(g))
    return np.stack([terms.sum(axis=-1) for terms in _enclosed_terms(pi, belief, g, error)])


def shifts_of_channels(cells: RealArray, columns: FloatArray, prior: FloatArray, gap: FloatArray) -> PosteriorShifts:
    """Under each row of channels (s, n, m) in one task each, given the statistics of their columns (s, 5, m).

    The prior (s, n) is positive everywhere, ``gap`` (s,) what sums miss 1 by, as ``_sum_error`` has it.
    """
    m = cells.shape[2]
    # the order of sums is that of the memory, which a choice of rows may have changed
    cells, prior = np.ascontiguousarray(cells), np.ascontiguousarray(prior)
    centre, delta, q, spread, _ = np.ascontiguousarray(np.moveaxis(columns, 1, 0))
    factors, change = _ColumnFactors.of(q, spread, spread, 1.0), (cells - centre[:, None]) - delta[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        t = change * factors.inverse[:, None]
    sums = _sums_under_changes(change, t, prior, prior, factors, U * (m + 100), gap[:, None, None])
    return _roots_of_sums(sums, 1 + max(1, _BLOCK_CELLS // m), prior)


def is_one_task(n: int, m: int) -> bool:
    """Whether all rows of a channel are releases of one task, as ``shifts_of_channels`` takes them."""
    return 1 < n <= _BLOCK_RELEASES and n * m <= _BLOCK_CELLS


def _enclosed_terms(pi: FloatArray, belief: FloatArray, g: FloatArray, error: FloatArray) -> tuple[FloatArray, ...]:
    """Terms of JS with their bounds: each falls and then rises in g."""
    middle = _jensen_shannon_terms(pi, belief, g)
    down = _jensen_shannon_terms(pi, belief, np.maximum(g - error, -1.0))
    up = _jensen_shannon_terms(pi, belief, g + error)
    crossed = (pi * (g - error) + (pi - belief) < 0) & (pi * (g + error) + (pi - belief) > 0)
    low = np.where(crossed, 0.0, np.minimum(np.minimum(down, up), middle))
    return middle, low, np.maximum(np.maximum(down, up), middle)


def _roots_of_sums(sums: FloatArray, terms: int, weight: FloatArray | None) -> PosteriorShifts:
    """Roots of sums of so many terms, of shape (3, n): values, lower and upper bounds."""
    value, lower, upper = np.maximum(sums, 0.0)
    relative, most = (terms + 300) * U, SQRT_LOG_2
    value, lower = np.minimum(np.sqrt(value), most), np.minimum(np.sqrt(lower * (1 - relative)), most)
    upper = np.minimum(np.sqrt(upper * (1 + relative) + 1e-300 * (upper > 0)), SQRT_LOG_2_ABOVE)
    return PosteriorShifts(value, lower, upper, weight, "expected posterior, centred")


def _jensen_shannon_terms(pi: FloatArray, belief: FloatArray, g: FloatArray) -> FloatArray:
    """Terms of JS(pi (1 + g) || belief)."""
    change, both = pi * g + (pi - belief), np.maximum(pi * (1.0 + g), 0.0) + belief
    a = np.clip(np.divide(change, both, out=np.zeros_like(change), where=both > 0), -1.0, 1.0)
    square, series = a * a, np.zeros_like(a)
    for k in range(_SERIES_TERMS, 0, -1):
        series = square * (1.0 / (k * (2 * k - 1)) + series)
    with np.errstate(divide="ignore", invalid="ignore"):
        full = np.where(a > -1, (1 + a) * np.log1p(a), 0.0) + np.where(a < 1, (1 - a) * np.log1p(-a), 0.0)
    return 0.25 * both * np.where(np.abs(a) < 0.3, series, full)


def symmetric_shifts(model: ChannelWithPrior, secret: Any) -> PosteriorShifts | None:
    """One shift for all secrets, or one for each that is requested, if the channel is symmetric."""
    symmetric = _symmetric_shift(model)
    if symmetric is None:
        return None
    size = 1 if secret is None else _validated_secrets(secret, model.channel.inputs).size
    value, lower, upper = (np.full(size, number) for number in symmetric)
    return PosteriorShifts(value, lower, upper, np.full(size, 1.0 / size), "types of secrets")


def _symmetric_shift(model: ChannelWithPrior) -> tuple[float, float, float] | None:
    """Value and bounds if the channel is symmetric: 1 + g takes one value at the true secret, another elsewhere."""
    uniform = isinstance(model.prior, tuple) and all(marginal is None for marginal in model.prior)
    if model.prior is not None and not uniform:
        return None
    factors = model.factors or [(model.channel, 1, None)]
    log_mass, mass_error, logs = np.zeros(1), np.zeros(1), [np.zeros(1)] * 3  # log(1 + g): value, lower, upper
    for factor, power, _ in factors:
        classes = type_classes(ChannelWithPrior(factor, None)) if structured.is_symmetric(factor) else None
        if classes is None or (power + 1) * log_mass.size > _MOST_TYPES:
            return None
        k, hits = factor.inputs, np.arange(power + 1)  # hits: factors where the secret is the true one
        energy, relative = chi_square_information(classes, factor)
        most, least = energy * (1 + relative), energy * (1 - relative)
        ends = (_log_growth(hits, *pair, k) for pair in ((energy, energy), (least, most), (most, least)))
        logs = [np.add.outer(log, of_factor).reshape(-1) for log, of_factor in zip(logs, ends, strict=True)]
        log_choices, choices_error = log_multinomials(power, compositions(power, 2))
        misses = count_times_log(power - hits, math.log1p(-(1 / k)) if k > 1 else -math.inf)
        of_factor = np.asarray(log_choices - hits * math.log(k) + misses, dtype=np.float64)
        log_mass = np.add.outer(log_mass, of_factor).reshape(-1)
        mass_error = np.add.outer(mass_error, choices_error + 16 * U * (hits * math.log(k) - misses)).reshape(-1)
    possible = log_mass > -np.inf
    mass, (g, low_g, high_g) = np.exp(log_mass[possible]), (np.expm1(log[possible]) for log in logs)
    mass_error = mass_error[possible] + 16 * U * (8 + np.abs(log_mass[possible])) + 300 * U
    outward = low_g - 4 * U * np.abs(low_g), high_g * (1 + 4 * U)
    middle, down, up = (_jensen_shannon_terms(mass, mass, x) for x in (g, *outward))
    low = np.where((low_g < 0) & (high_g > 0), 0.0, np.minimum(np.minimum(down, up), middle)) * (1 - mass_error)
    high = np.maximum(np.maximum(down, up), middle) * (1 + mass_error)
    value, lower, upper = (min(math.sqrt(max(0.0, math.fsum(terms))), SQRT_LOG_2) for terms in (middle, low, high))
    return value, lower * (1 - 4 * U), min(upper * (1 + 4 * U), SQRT_LOG_2_ABOVE)


def _log_growth(hits: NDArray[Any], at_true_secret: float, elsewhere: float, k: int) -> FloatArray:
    """log(1 + g) of each type, from g at the true secret and the sum of -g elsewhere: rounded up where the first is the
    larger, down where it is the smaller."""
    log_hit = math.log1p(at_true_secret)
    share = min(elsewhere / (k - 1), 1.0) if 1 < k < 2**1000 else 0.0
    log_miss, misses = math.log1p(-share) if share < 1 else -math.inf, hits[-1] - hits
    log = hits * log_hit + count_times_log(misses, log_miss)
    size = hits * log_hit + count_times_log(misses, -log_miss if log_miss > -math.inf else 0.0)
    direction = 0.0 if at_true_secret == elsewhere else 1.0 if at_true_secret > elsewhere else -1.0
    return np.asarray(log + 8 * U * size * direction)


def has_pairwise_form(model: ChannelWithPrior) -> bool:
    """Whether the expected posteriors are integrals for pairs of prior probabilities."""
    sets = set_parameters(model)
    return sets is not None and sets.size is None and sets.prior.size <= MOST_PAIRED


def _pairwise_shifts(model: ChannelWithPrior, secret: Any) -> PosteriorShifts:
    sets = set_parameters(model)
    assert sets is not None
    off_diagonal, off_error, diagonal, error = expected_changes(sets)
    mass = sets.counts * sets.prior - np.diag(sets.prior)
    elsewhere = _enclosed_terms(mass, mass, off_diagonal, off_error)
    at_true_secret = _enclosed_terms(sets.prior, sets.prior, diagonal, error)
    sums = np.stack([others.sum(axis=1) + true for others, true in zip(elsewhere, at_true_secret, strict=True)])
    sums[1] *= 1 - 8 * sets.relative_error
    sums[2] *= 1 + 8 * sets.relative_error
    weights = model.weights
    if secret is None:
        secrets = np.flatnonzero(weights > 0)
    else:
        secrets = _checked_support(_validated_secrets(secret, weights.size), weights)
    distinct = np.unique(weights[weights > 0])[::-1]
    index = np.searchsorted(-distinct, -weights[secrets])
    return _roots_of_sums(sums[:, index], sets.prior.size, weights[secrets])


def _validated_secrets(secret: Any, n: int) -> NDArray[Any]:
    secrets = validate.integers("secret", secret, 0, n - 1).reshape(-1)
    if secrets.size == 0:
        raise ShapeError("secret must be at least one secret; got none. Leave it out for all of them.")
    return secrets


def _requested_rows(model: ChannelWithPrior, rows: RowBlocks, secret: Any) -> IndexArray:
    """Indices of the rows of the requested secrets, or of all secrets of positive prior probability."""
    if secret is None:
        return np.flatnonzero(rows.prior > 0)
    secrets = _validated_secrets(secret, model.channel.inputs)
    if isinstance(model.channel, DefaultChannel) and rows.channel is model.channel.distinct_rows:
        listed = model.channel.indices
        index = np.searchsorted(listed, secrets)
        is_listed = (index < listed.size) & (listed[np.minimum(index, listed.size - 1)] == secrets)
        secrets = np.where(is_listed, index, listed.size)  # the last row is the default one
    return _checked_support(secrets, rows.prior)


def _checked_support(secrets: IndexArray, prior: FloatArray) -> IndexArray:
    for secret in secrets.tolist():
        if prior[secret] == 0:
            raise DomainError(
                f"secret must be one that the prior gives mass; got {secret}. The posterior is not defined at releases "
                "that the prior rules out."
            )
    return secrets


def _validated_belief(belief: Any, n: int) -> FloatArray:
    vector = validate.probabilities("belief", getattr(belief, "probabilities", belief))
    if vector.size != n:
        raise ShapeError(f"belief must have one entry for each of the {n} secrets; got {vector.size}. Pass one vector.")
    return np.asarray(vector / float(np.sum(vector, dtype=np.longdouble)))


def _validated_change(release: Any, rows: RowBlocks, first: ColumnStatistics) -> FloatArray:
    """The given distribution of the release less q."""
    m = first.q.size
    vector = validate.probabilities("release", release)
    if vector.size != m:
        raise ShapeError(f"release must have one entry for each of the {m} releases; got {vector.size}. Pass one row.")
    if (vector[~first.occurs] > 0).any():
        index = int(np.argmax((vector > 0) & ~first.occurs))
        raise DomainError(
            f"release must be 0 where the prior allows no release; got {float(vector[index])!r} at index {index}. "
            "The posterior is not defined there."
        )
    change = vector - rows.rescaled(first.q)
    differ = bool((first.top - first.low > 1e-9 * first.q).any())
    if differ and float(np.abs(change).sum()) <= _SAME_DISTANCE:
        raise DomainError(
            "release must be a distribution other than that of the release under the prior; got prior @ channel, under "
            "which the expected posterior is the prior and ABP vanishes for every channel. Pass secret= for the true "
            "secret, or the distribution of the releases that are seen."
        )
    return np.asarray(change)
