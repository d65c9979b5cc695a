"""Channels as few numbers: columns that are alike, and within each of them secrets that are alike.

Notation: Q[d, w] the probability of release w under secret d, pi the prior, q = pi Q, r_d(w) = Q[d, w] / q[w]. A class
c is a set of releases whose columns are equal up to the order of the secrets; a group g of a class is a set of secrets
with one likelihood in it. ``total`` is (number of releases) times (largest likelihood) of a class; ``tilt`` is the log
of a group's likelihood over that largest one, so that a tiny epsilon is kept whole beside a likelihood of 2^-200.
"""

# bounds: tested by enclosures/test_channels - rounding of tilts and masses, and underflow

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._values import FloatArray, Value

__all__ = ["Extremes", "Profiles", "RowPair", "from_groups", "from_matrix", "ordered_pairs", "tilts", "underflow"]

_PAIRWISE = 8  # groups of a class up to which ratios are taken pair by pair, which cancels nothing
_BLOCK = 2**18
# bound: proved - half a unit in the last place of a double, IEEE 754
_UNIT = 2.0**-53
# bound: tested by enclosures/test_channels - error of a log of order 1 that a family makes from its parameters
_LOOSE = 32 * _UNIT  # error of a log of order 1 that a family makes from its parameters
# bound: none - which of two formulas takes a log ratio
_FEW_DIGITS = 2.0**-1021  # ratios below are subnormal, or nearly


@dataclass(frozen=True, slots=True)
class Extremes:
    """The largest log ratios of a channel under a prior, in nats.

    Parameters
    ----------
    ldp_epsilon : float
        max over releases of log(largest / smallest likelihood), over all secrets.
    support_epsilon : float
        The same over the secrets that the prior gives mass.
    xi_plus, xi_minus : float
        max ln r and -min ln r over these secrets and the releases that occur.
    rounding, error : float
        Relative and absolute bounds on the error of all four; they add.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse
    >>> RandomizedResponse(2**200, 1.0).extremes().xi_plus
    1.0
    """

    ldp_epsilon: float
    support_epsilon: float
    xi_plus: float
    xi_minus: float
    rounding: float = 1e-14
    error: float = 0.0


class RowPair(Value):
    """Two rows of a channel, releases with equal entries counted together.

    Parameters
    ----------
    log_p, log_q : ndarray, shape (c,)
        Log probability of each class of releases under either secret.
    log_ratio : ndarray, shape (c,), optional
        Their difference, where it is known more precisely.
    log_error, ratio_error : ndarray, shape (c,), optional
        Absolute bounds on the errors of log_p and log_q, and of log_ratio.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse
    >>> pair, = RandomizedResponse(3, 1.0).pairs()
    >>> pair.log_ratio.tolist()
    [1.0, -1.0, 0.0]
    """

    __slots__ = _fields = ("log_p", "log_q", "log_ratio", "log_error", "ratio_error")

    log_p: FloatArray
    log_q: FloatArray
    log_ratio: FloatArray
    log_error: FloatArray
    ratio_error: FloatArray

    def __init__(
        self, log_p: Any, log_q: Any, log_ratio: Any = None, log_error: Any = None, ratio_error: Any = None
    ) -> None:
        p, q = np.array(log_p, dtype=np.float64), np.array(log_q, dtype=np.float64)
        finite_p, finite_q = (np.where(np.isfinite(logs), np.abs(logs), 0.0) for logs in (p, q))
        size = np.maximum(finite_p, finite_q)
        if log_error is None:
            log_error = _LOOSE * (8.0 + size)
        if log_ratio is None:
            same = p == q
            with np.errstate(invalid="ignore"):
                log_ratio = np.where(same, 0.0, p - q)
            own = np.where(same, 0.0, np.minimum(2.0 * np.asarray(log_error), 16.0 * _UNIT * (8.0 + size)))
            ratio_error = own if ratio_error is None else ratio_error
        ratio = np.array(log_ratio, dtype=np.float64)
        if ratio_error is None:
            ratio_error = 8.0 * _UNIT * np.where(np.isfinite(ratio), np.abs(ratio), 0.0)
        self._set(
            log_p=p, log_q=q, log_ratio=ratio, log_error=np.array(log_error, dtype=np.float64),
            ratio_error=np.array(ratio_error, dtype=np.float64),
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<RowPair of {self.log_p.size} classes of releases>"


class Profiles(Value):
    """Classes of like releases, and in each of them groups of like secrets.

    Parameters
    ----------
    log_outputs : ndarray, shape (c,)
        Log number of releases in each class.
    log_total : ndarray, shape (c,)
        Log of that number times the largest likelihood in the class; -inf for releases that never occur.
    starts : ndarray of int, shape (c + 1,)
        Groups ``starts[i]`` to ``starts[i + 1]`` are those of class i; there is at least one.
    tilt : ndarray, shape (g,)
        Log likelihood of a group less that of the likeliest group of its class: at most 0, -inf for a zero.
    mass, log_mass : ndarray, shape (g,)
        Prior mass of the secrets of each group, and its log (which says it where the mass underflows). A group of
        mass zero holds secrets outside the prior's support: they count for LDP alone.
    log_largest, log_smallest : ndarray, shape (g,)
        Logs of the largest and the smallest positive prior probability of one secret in the group.
    missing : float, optional
        Upper bound on the probability, under any secret, of releases that no class covers.
    gap : float, optional
        How far the prior's sum is from 1.
    error : float, optional
        Absolute bound on the error of each tilt, beyond 1e-15 relative.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse
    >>> found = RandomizedResponse(10**9, 1.0).profiles()
    >>> found.tilt, found.mass.tolist()
    (array([ 0., -1.]), [1e-09, 0.999999999])
    >>> bool(abs(found.log_weight[0]) < 1e-15)  # all releases are in one class
    True
    """

    __slots__ = _fields = (
        "log_outputs", "log_total", "starts", "tilt", "mass", "log_mass", "log_largest", "log_smallest", "missing",
        "gap", "error",
    )  # fmt: skip

    log_outputs: FloatArray
    log_total: FloatArray
    starts: NDArray[np.int64]
    tilt: FloatArray
    mass: FloatArray
    log_mass: FloatArray
    log_largest: FloatArray
    log_smallest: FloatArray
    missing: float
    gap: float
    error: float

    def __init__(
        self, log_outputs: Any, log_total: Any, starts: Any, tilt: Any, mass: Any, log_mass: Any, log_largest: Any,
        log_smallest: Any, missing: float = 0.0, gap: float = 0.0, error: float = 0.0,
    ) -> None:  # fmt: skip
        columns = {"log_outputs": log_outputs, "log_total": log_total, "tilt": tilt, "mass": mass,
                   "log_mass": log_mass, "log_largest": log_largest, "log_smallest": log_smallest}  # fmt: skip
        self._set(
            **{name: np.ascontiguousarray(column, dtype=np.float64) for name, column in columns.items()},
            starts=np.ascontiguousarray(starts, dtype=np.int64), missing=float(missing), gap=float(gap),
            error=float(error),
        )  # fmt: skip

    @property
    def classes(self) -> NDArray[np.int64]:
        """The class of each group, shape (g,)."""
        return np.repeat(np.arange(len(self.log_total)), np.diff(self.starts))

    @property
    def log_likelihood(self) -> FloatArray:
        """Log likelihood of one release of the class under each group, shape (g,)."""
        base = np.where(self.log_total == -np.inf, -np.inf, self.log_total - self.log_outputs)
        return np.asarray(base[self.classes] + self.tilt)

    @property
    def log_evidence(self) -> FloatArray:
        """Log of sum_g mass_g e^tilt_g, the evidence over the largest likelihood, shape (c,)."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            change = self._summed(self.mass * np.expm1(self.tilt))
            if change.min() > -0.5:  # nearly flat, the rest is not needed
                return np.asarray(np.log1p(change))
            top = np.maximum.reduceat(self.log_mass + self.tilt, self.starts[:-1])
            centre = np.where(top == -np.inf, 0.0, top)[self.classes]
            direct = top + np.log(self._summed(np.exp(self.log_mass + self.tilt - centre)))
            direct = np.where(top == -np.inf, -np.inf, direct)
            return np.where(change > -0.5, np.log1p(np.maximum(change, -0.5)), direct)

    @property
    def log_weight(self) -> FloatArray:
        """Log probability of each class of releases under the prior, shape (c,)."""
        return self.log_total + self.log_evidence

    @property
    def log_ratio(self) -> FloatArray:
        """ln r of each group, shape (g,); without meaning in classes whose evidence is zero.

        In classes of at most 8 groups, the relative error is about 1e-15 even where r is next to 1.
        """
        return self._log_ratio(self.log_evidence)

    def _log_ratio(self, log_evidence: FloatArray) -> FloatArray:
        sizes = np.diff(self.starts)
        with np.errstate(invalid="ignore"):
            found = self.tilt - log_evidence[self.classes]
        found[self.tilt == -np.inf] = -np.inf
        for size in range(1, _PAIRWISE + 1):
            first = self.starts[:-1][sizes == size]
            for start in range(0, first.size, _BLOCK):
                groups = first[start : start + _BLOCK, None] + np.arange(size)
                found[groups] = _ratios(self.tilt[groups], self.mass[groups], self.log_mass[groups])
        return found

    def extremes(self) -> Extremes:
        """Largest log ratios: LDP over all secrets and over the support, and both sides of MBP."""
        held = self.log_mass > -np.inf
        rounding = 1e-14 + 2.0**-51 * min(_largest(self.log_mass), _largest(self.tilt))
        log_evidence = self.log_evidence
        occurs = (self.log_total + log_evidence > -np.inf)[self.classes] & held
        ratio = self._log_ratio(log_evidence)[occurs]
        plus, minus = max(0.0, float(np.max(ratio, initial=-np.inf))), max(0.0, float(-np.min(ratio, initial=np.inf)))
        spread = self._spread(held)
        every = spread if held.all() else self._spread(np.ones_like(held))
        return Extremes(every, spread, plus, minus, rounding,
                        4 * self.error + underflow(spread, plus, minus))  # fmt: skip

    def _spread(self, held: NDArray[np.bool_]) -> float:
        """The largest difference of two tilts of one class, of the groups that are held."""
        top = np.maximum.reduceat(np.where(held, self.tilt, -np.inf), self.starts[:-1])
        low = np.minimum.reduceat(np.where(held, self.tilt, np.inf), self.starts[:-1])
        real = (self.log_total > -np.inf) & (top > -np.inf)
        return float(np.max(top[real] - low[real], initial=0.0))

    def _summed(self, terms: FloatArray) -> FloatArray:
        return np.add.reduceat(terms, self.starts[:-1])

    def __repr__(self) -> str:
        return f"<Profiles: {len(self.log_total)} classes of releases, {len(self.tilt)} groups of secrets>"


def ordered_pairs(logs: FloatArray) -> tuple[RowPair, ...]:
    """All ordered pairs of different rows, given by the logs of their cells."""
    size = np.where(np.isfinite(logs), np.abs(logs), 0.0)
    return tuple(
        RowPair(p, q, log_error=8.0 * _UNIT * np.maximum(size[i], size[j]))
        for i, p in enumerate(logs) for j, q in enumerate(logs) if i != j
    )  # fmt: skip


def underflow(spread: float, plus: float, minus: float) -> float:
    """What is added to the error where a log ratio is too small for a number of 64 bits."""
    return 1e-300 if spread > 0 and min(plus, minus) < 1e-290 else 0.0


def from_matrix(cells: NDArray[np.floating[Any]], log: bool, prior: FloatArray | None, gap: float,
                error: float) -> Profiles:  # fmt: skip
    """Every release a class of its own, every secret a group: for channels that are small."""
    n = len(cells)
    mass = np.full(n, 1.0 / n) if prior is None else prior
    return from_groups(cells, mass, mass, mass, gap, log=log, error=error)


def from_groups(
    cells: NDArray[np.floating[Any]], mass: FloatArray, largest: FloatArray, smallest: FloatArray, gap: float, *,
    log: bool = False, error: float = 0.0,
) -> Profiles:  # fmt: skip
    """Every release a class of its own, every row a group of secrets."""
    n, m = cells.shape
    columns = np.ascontiguousarray(cells.T, dtype=np.float64)
    top = columns.max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        base = top if log else np.log(top)
        if log:
            tilt = columns - np.where(base == -np.inf, 0.0, base)[:, None]
        else:
            tilt = tilts(columns, top[:, None])
        logs = [np.tile(np.log(column), m) for column in (mass, largest, smallest)]
    return Profiles(np.zeros(m), base, np.arange(0, n * m + 1, n), tilt.reshape(-1), np.tile(mass, m), logs[0], logs[1],
                    logs[2], gap=gap, error=error)  # fmt: skip


def tilts(cells: FloatArray, top: FloatArray) -> FloatArray:
    """log(cells / top) for cells of at most ``top``, precise where they are next to it; -inf where both are 0.

    Logs are taken before the difference where the ratio would be subnormal, which has few digits.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(top > 0, top, 1.0)
        share = cells / scale
        near = share > 0.5
        found = np.log(share, out=np.zeros_like(share), where=~near)
        np.log1p((cells - top) / scale, out=found, where=near)
        lost = (share < _FEW_DIGITS) & (cells > 0)
        return np.where(lost, np.log(cells) - np.log(scale), found) if lost.any() else found


def _ratios(tilt: FloatArray, mass: FloatArray, log_mass: FloatArray) -> FloatArray:
    """ln r = -log sum_h mass_h e^(tilt_h - tilt_g), shape (classes, groups)."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        shift = tilt[:, None, :] - tilt[:, :, None]
        own = log_mass[:, None, :]
        exponent = np.where(own == -np.inf, -np.inf, own + shift)
        tiny = np.exp(exponent) - np.exp(own)  # for masses that underflow, or nearly
        terms = np.where(mass[:, None, :] > 1e-290, mass[:, None, :] * np.expm1(shift), tiny)
        change = np.sum(np.where(own == -np.inf, 0.0, terms), axis=2)
        top = exponent.max(axis=2)
        centre = np.where(np.isfinite(top), top, 0.0)
        direct = top + np.log(np.sum(np.exp(exponent - centre[:, :, None]), axis=2))
        near = np.abs(change) < 0.5
        found = -np.where(near, np.log1p(np.where(near, change, 0.0)), direct)
    return np.where(tilt == -np.inf, -np.inf, found)


def _largest(logs: FloatArray) -> float:
    """The largest finite size."""
    return float(np.max(np.abs(logs), where=np.isfinite(logs), initial=0.0))
