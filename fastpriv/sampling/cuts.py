"""Where integrands without an upper end may be cut, and what that can take off their mean, by exponential moments.

Notation: f = log(p/q) under P, or the balanced integrand F = 2 s(l) (l + e^-l - 1) under M = (P + Q)/2, which is at
most 2 l^+ + 2; order s > 0.

log E_P e^(s l) is the logarithm of the integral of p^(1+s) q^(-s), which the proposals for Renyi divergences bound. For
T >= 2, (F - 2 T)^+ <= 2 (p/m) (l - T)^+ since p/m >= 1 where l > 0, so that E_M (F - 2 T)^+ <= 2 E_P (l - T)^+.

log E e^(-s log p) for a mixture p: p >= w_c n_c on the samples of component c, and E e^(s |z|^2 / 2) = (1 - s)^(-d/2).
"""

# bounds: tested by properties/test_tilting - rounding of a log moment (1e-12); the rest is a share of the target

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..distributions import GaussianMixture
from ..distributions.packed import Packed
from .guaranteed import Cut
from .options import Request
from .proposals.orders import renyi_proposal
from .statistics.sequences import tail_excess

__all__ = ["entropy_cut", "kl_cut"]

_HALVINGS = 40
_SHARE = 1e-3  # of the target that the cut may use up
_SEARCH = 0.5  # of the time that the search for a moment may take


def kl_cut(p: GaussianMixture, q: GaussianMixture, request: Request, *, both: bool) -> Cut:
    """For the balanced integrand of KL(P||Q), and of KL(Q||P) when ``both``."""
    pairs = [(p, q), (q, p)][: 1 + both]
    moments = [_moment(*pair, lambda: request.deadline.expired(_SEARCH)) for pair in pairs]
    if any(math.isinf(log_moment) for log_moment, _ in moments):
        return Cut()
    at = max(_place(log_moment, s, 0.5 * _room(log_moment / s, request)) for log_moment, s in moments)
    return Cut(2.0 * at, np.array([2.0 * tail_excess(log_moment, s, at) for log_moment, s in moments]))


def entropy_cut(packed: Packed, request: Request) -> Cut:
    """For -log p under P, in the coordinates of the pack."""
    s = 0.5
    logs = packed.log_weights - s * packed.constants
    top = float(logs.max())
    log_moment = top + math.log(float(np.exp(logs - top).sum())) - 0.5 * packed.dimension * math.log1p(-s) + 1e-12
    at = _place(log_moment, s, _room(1.0, request))
    return Cut(at, np.array([tail_excess(log_moment, s, at)]))


def _moment(p: GaussianMixture, q: GaussianMixture, expired: Callable[[], bool]) -> tuple[float, float]:
    """A bound of log E_P e^(s l), and the largest order s = 2^-k that has one."""
    for k in range(_HALVINGS):
        s = 0.5**k
        if expired():
            break
        proposal = renyi_proposal(p, q, 1.0 + s, expired=expired)
        if proposal.bounded and math.isfinite(proposal.log_scale):
            return max(proposal.log_scale, 0.0), s
    return math.inf, 1.0


def _room(size: float, request: Request) -> float:
    return _SHARE * max(request.atol, request.rtol * size, 1e-12 * max(size, 1e-12))


def _place(log_moment: float, s: float, room: float) -> float:
    """Where the excess is ``room``."""
    return max((log_moment - 1.0 - math.log(s * room)) / s, 2.0)
