"""What each privacy notion is worth on a small channel, straight from its definition; zeros allowed, nats.

Rows are laws of the release, one a secret. A notion that speaks of a prior is computed for the secrets with mass.
"""

import math

import numpy as np


def row_pairs(rows):
    return [(p, q) for i, p in enumerate(rows) for j, q in enumerate(rows) if i != j] or [(rows[0], rows[0])]


def hockey_stick(p, q, epsilon):
    """H at e^epsilon, with epsilon = inf allowed: then what q has not."""
    if math.isinf(epsilon):
        return float(p[q == 0].sum())
    return float(np.maximum(p - math.exp(min(epsilon, 700.0)) * q, 0.0).sum())


def kl(p, q):
    if np.any((q == 0) & (p > 0)):
        return math.inf
    at = p > 0
    return max(float((p[at] * np.log(p[at] / q[at])).sum()), 0.0)


def renyi(p, q, order):
    if order == 1:
        return kl(p, q)
    if np.any((q == 0) & (p > 0)):
        return math.inf
    at = p > 0
    if math.isinf(order):
        return max(float(np.log(p[at] / q[at]).max()), 0.0)
    terms = order * np.log(p[at]) + (1 - order) * np.log(q[at])
    return max(float(terms.max() + np.log(np.exp(terms - terms.max()).sum())) / (order - 1), 0.0)


def largest_log_ratio(pairs):
    return max(renyi(p, q, math.inf) for p, q in pairs)


def delta(rows, epsilon):
    return min(max(hockey_stick(p, q, epsilon) for p, q in row_pairs(rows)), 1.0)


def lip_delta(rows, prior, epsilon):
    """Equation (5) of local information privacy, both directions."""
    release = prior @ rows
    first = max(hockey_stick(release, row, epsilon) for row in rows)
    return max(first, max(math.exp(-epsilon) * hockey_stick(row, release, epsilon) for row in rows))


def log_ratios(rows, prior):
    """ln(posterior / prior), of releases that occur; -inf where a release rules a secret out."""
    release = prior @ rows
    seen = release > 0
    with np.errstate(divide="ignore"):
        return np.log(rows[:, seen] / release[seen])


def information(rows, prior):
    release = prior @ rows
    return sum(weight * kl(row, release) for weight, row in zip(prior, rows, strict=True))


def capacity_below(rows, steps=150):
    """A lower bound of the capacity: the information under the prior that Blahut and Arimoto's steps lead to."""
    prior = np.full(len(rows), 1 / len(rows))
    for _ in range(steps):
        gains = np.exp([kl(row, prior @ rows) for row in rows])
        prior = prior * gains / (prior @ gains)
    return information(rows, prior)


def shift(before, after):
    """Root of the Jensen-Shannon divergence, in t = (before - after) / (before + after), so that little is lost."""
    middle = (before + after) / 2
    t = np.divide((before - after) / 2, middle, out=np.zeros_like(middle), where=middle > 0)
    near = np.abs(t) < 1e-4
    with np.errstate(divide="ignore", invalid="ignore"):
        far = (1 + t) * np.log1p(t) + np.where(t == 1, 0.0, (1 - t) * np.log1p(-t))
        far = np.where(t == -1, 2 * math.log(2), far)
    return math.sqrt(float((middle * np.where(near, t * t * (1 + t * t / 6), far)).sum()) / 2)


def abp(rows, prior, law):
    """Average Bayesian privacy for releases drawn from ``law``, which gives no mass where the release has none."""
    release = prior @ rows
    seen = release > 0
    after = (rows[:, seen] / release[seen] * law[seen]).sum(axis=1) * prior
    return shift(prior, after)


def miss(p, q, alarm):
    """Least probability of a miss of a randomised test of p against q with false alarms of probability ``alarm``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(p > 0, q / p, np.inf), kind="stable")
    alarms, hits = np.cumsum(p[order]), np.cumsum(q[order])
    return float(1.0 - np.interp(alarm, np.append(0.0, alarms), np.append(0.0, hits)))
