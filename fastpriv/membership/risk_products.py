"""Risks of two or three attributes by products of Gauss's rules.

Notation of ``risk_integrals``. The noise of the attributes is independent given b, so that all sums over classes are
products of matrices: p = P_1 diag(w) P_2^T at all pairs of nodes, P_j the densities of attribute j at its nodes; of
three attributes P_1 holds all pairs of the first two. sum_g u_g log(p / u_g) = p log p - sum_g u_g (log w_g + log
p_g) has an absolute error of a few roundings of the logarithms. Clipped attributes have nodes at 0 and 1, with their
probabilities.

The error is that between two rules on the same panels: tested, not proved.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .. import special
from .._values import distinct_rows
from ..numerics import FloatArray
from .classes import MembershipClasses

__all__ = ["MAX_COLUMNS", "AttributeColumn", "ProductIntegrals", "product_integrals"]

MAX_COLUMNS = 3  # attributes for which a product rule is of bearable size
_NODES = 10  # of Gauss's rule on a panel
_STEPS = (3.0, 1.5, 0.75, 0.375, 0.1875, 0.09375)  # lengths of panels, in scales: each rule is the error of the last
# bound: none - relative difference of two rules at which they are refined no more
_TARGET = 1e-12
_REACH = (8.5, 38.0)  # scales from the outer means to the ends, of normal and of Laplace noise: 1e-17
_MAX_WORK = 2**31  # nodes times classes beyond which releases are drawn instead
_BLOCK_NUMBERS = 2**22  # nodes that are formed at a time: 32 MiB


class AttributeColumn(NamedTuple):
    """One attribute: frequency and scale of each class, the kind of noise, and whether it is clipped."""

    normal: bool
    means: FloatArray
    scales: FloatArray
    clip: bool

    def nodes(self, step: float) -> tuple[FloatArray, FloatArray]:
        """Weights times densities, and log densities, of all classes at the nodes: shape (nodes, G) each."""
        constant = np.log(self.scales) + (0.5 * math.log(2 * math.pi) if self.normal else math.log(2.0))
        reach = _REACH[0] if self.normal else _REACH[1]
        low, high = float((self.means - reach * self.scales).min()), float((self.means + reach * self.scales).max())
        atoms = np.empty((0, self.means.size))
        if not self.normal and np.all(self.scales == self.scales[0]):  # posteriors are constant beyond the means
            low, high = float(self.means.min()), float(self.means.max())
            atoms = -np.abs(self.means - np.array([[low], [high]])) / self.scales - math.log(2.0)
        elif self.clip:
            low, high = max(low, 0.0), min(high, 1.0)
            tails = np.stack([self.means, 1.0 - self.means]) / self.scales
            atoms = np.asarray(special.log_ndtr(-tails)) if self.normal else -tails - math.log(2.0)
        distinct = distinct_rows(np.column_stack([self.means, self.scales]))[0]
        spread = np.arange(-math.ceil(reach / step), math.ceil(reach / step) + 1) * step
        ends = np.unique(np.clip((distinct[:, :1] + distinct[:, 1:] * spread).ravel(), low, high))
        cell = np.floor((ends - low) / (0.75 * step * float(self.scales.min())))
        kept = np.diff(cell, prepend=-1.0) > 0  # one end a cell
        kinks = np.empty(0) if self.normal else np.clip(self.means, low, high)
        ends = np.unique(np.concatenate([[low, high], ends[kept], kinks]))
        t, weights = np.polynomial.legendre.leggauss(_NODES)
        middle, half = 0.5 * (ends[1:] + ends[:-1]), 0.5 * (ends[1:] - ends[:-1])
        x, w = (middle[:, None] + half[:, None] * t).ravel(), (half[:, None] * weights).ravel()
        z = (x[:, None] - self.means) / self.scales
        logs = (-0.5 * z * z if self.normal else -np.abs(z)) - constant
        return np.concatenate([w, np.ones(len(atoms))]), np.concatenate([logs, atoms])


class ProductIntegrals(NamedTuple):
    """Integrals of the class and of each type, and the rule they came from."""

    classes: MembershipClasses
    value: FloatArray
    rule: tuple[tuple[FloatArray, FloatArray], ...]

    def gains(self, gamma: FloatArray) -> FloatArray:
        """sum_k E (pi_k - gamma)^+ by the same rule."""
        total = np.zeros(gamma.size)
        counts = np.bincount(self.classes.type_of)
        for weight, first, second, _, _ in _blocks(self.classes, self.rule):
            for count, member, other in zip(counts, self.classes.member, self.classes.other, strict=True):
                one, none = (first * member) @ second.T, (first * other) @ second.T
                for i, g in enumerate(gamma):
                    total[i] += count * float((weight * np.maximum((1 - g) * one - g * none, 0.0)).sum())
        return total


def product_integrals(
    classes: MembershipClasses, columns: list[AttributeColumn]
) -> tuple[str, ProductIntegrals, ProductIntegrals] | None:
    """The method and the integrals by a coarse and by a fine rule; None if that is too much work."""
    found: list[ProductIntegrals] = []
    for step in _STEPS:
        rule = tuple(column.nodes(step) for column in columns)
        if math.prod(len(weights) for weights, _ in rule) * len(classes.weights) > _MAX_WORK:
            break
        found.append(ProductIntegrals(classes, _integrals(classes, rule), rule))
        if len(found) > 1 and np.all(np.abs(found[-1].value - found[-2].value) <= _TARGET * np.abs(found[-1].value)):
            break
    if len(found) < 2:
        return None
    return f"products of Gauss's rules in {len(columns)} dimensions", found[-2], found[-1]


def _blocks(classes: MembershipClasses, rule: tuple[tuple[FloatArray, FloatArray], ...]):  # type: ignore[no-untyped-def]
    """Weights of pairs of nodes, w_g times densities of the first, densities of the second, and both logs."""
    *before, (last_weights, last_logs) = rule
    weights, logs = np.ones(1), np.log(classes.weights)[None]
    for more_weights, more_logs in before:
        weights = (weights[:, None] * more_weights).ravel()
        logs = (logs[:, None] + more_logs).reshape(weights.size, -1)
    step = max(1, _BLOCK_NUMBERS // last_weights.size)
    with np.errstate(under="ignore"):
        second = np.exp(last_logs)
        for start in range(0, weights.size, step):
            part = slice(start, start + step)
            yield weights[part, None] * last_weights, np.exp(logs[part]), second, logs[part], last_logs


def _integrals(classes: MembershipClasses, rule: tuple[tuple[FloatArray, FloatArray], ...]) -> FloatArray:
    """The joint integral, with the entropy of the classes' memberships, and that of each type."""
    value = np.zeros(1 + len(classes.member))
    value[0] = math.fsum(classes.given.tolist())
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        for weight, first, second, first_logs, second_logs in _blocks(classes, rule):
            p = first @ second.T
            inner = (first * first_logs) @ second.T + first @ (second * second_logs).T
            joint = np.where(p > 0, p * np.log(p) - inner, 0.0)
            value[0] += float((weight * np.maximum(joint, 0.0)).sum())
            for t, (member, other) in enumerate(zip(classes.member, classes.other, strict=True)):
                one, none = (first * member) @ second.T, (first * other) @ second.T
                terms = one * np.log1p(none / one) + none * np.log1p(one / none)
                value[1 + t] += float((weight * np.where((one > 0) & (none > 0), terms, 0.0)).sum())
    return value
