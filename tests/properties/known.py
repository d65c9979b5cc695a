"""The pairs in d dimensions whose truth is tabled, as the package takes them; shared by tests of sampled quantities."""

from functools import cache

import fastpriv
from fastpriv import GaussianMixture
from oracles.pairs_nd import cases, table

__all__ = ["ask", "known", "mixtures_of"]

BACKWARD = ("kl_QP",)
CALLS = {
    "kl_PQ": (fastpriv.kl_divergence, 2), "kl_QP": (fastpriv.kl_divergence, 2),
    "jensen_shannon": (fastpriv.jensen_shannon, 2), "total_variation": (fastpriv.total_variation, 2),
    "hockey_stick": (fastpriv.hockey_stick_divergence, 2),
    "log_hockey_stick": (fastpriv.divergences.log_hockey_stick_divergence, 2), "renyi": (fastpriv.renyi_divergence, 2),
    "entropy": (fastpriv.entropy, 1), "label_information": (fastpriv.divergences.label_information, 1),
}


def built(law):
    if law.covariances is None:
        return GaussianMixture(law.weights, law.means, law.sigmas)
    shared = len(law.covariances) == 1
    return GaussianMixture(law.weights, law.means, covariances=law.covariances[0] if shared else law.covariances)


@cache
def mixtures_of(case):
    """P and Q of a case."""
    return built(cases()[case].p), built(cases()[case].q)


@cache
def known(case, quantity, parameter=None):
    """The row of the table."""
    (row,) = [row for row in table() if (row.case, row.quantity, row.parameter) == (case, quantity, parameter)]
    return row


def ask(row, **keywords):
    """The package's answer to a row."""
    call, count = CALLS[row.quantity]
    p, q = mixtures_of(row.case)
    laws = (q, p) if row.quantity in BACKWARD else (p, q)
    parameter = () if row.parameter is None else (row.parameter,)
    return call(*laws[:count], *parameter, **keywords)
