"""The conversions of mutual-information privacy with many digits, each answer between a primal and a dual value.

A primal value comes from probabilities whose capacity, or mutual information, is computed as defined and is at most mu;
a dual value comes from Lagrange multipliers. One is at most the truth and the other at least, so agreement proves
both, however the point was found. Everything is in nats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mpmath import mp, mpf


@dataclass(frozen=True)
class Answer:
    delta: Any
    high: Any  # the larger probability of the pair
    log_low: Any  # logarithm of the smaller one
    gap: Any  # relative distance of primal and dual


def ldp(mu: float, epsilon: float) -> Answer:
    """Equation (10): max of p1 - e^epsilon p0 over channels with rows (p0, p1) of capacity at most mu."""
    with mp.workdps(_digits(mu)):
        m, t = mpf(mu), mp.exp(mpf(epsilon))

        def upper(q: Any) -> Any:
            """p1, or None where even p1 = 1 is not far enough."""
            if m >= -mp.log(q):
                return None
            start = min(m + mp.sqrt(m * m + 2 * q * m), (1 - q) * (1 - mpf(10) ** -40))
            return q + _newton(lambda x: divergence(q + x, q) - m, lambda x: logit(q + x) - logit(q), start)

        def by_ratio(v: Any) -> Any:
            """q, p0 and p1 where p0 = e^-v q; for large epsilon, where q is too close to its limit to be used."""
            u = mp.exp(-v)
            linear, bend = psi(u), (1 - u) ** 2 - psi(u)
            y = _newton(  # in y = -log(1 - q) the divergence is nearly straight
                lambda y: divergence(-u * mp.expm1(-y), -mp.expm1(-y)) - m,
                lambda y: mp.exp(-y) * (u * (mp.log(u) - mp.log1p(u * mp.expm1(-y)) - y) - u)
                + 1 + u * mp.expm1(-y),
                2 * m / (linear + mp.sqrt(linear**2 + 2 * bend * m)),
            )
            q = -mp.expm1(-y)
            p1 = upper(q)
            return None if p1 is None else (q, u * q, p1)

        def by_mean(y: Any) -> Any:
            """q = 1 / (2 + y); for small epsilon, where v hardly moves."""
            q = 1 / (2 + y)
            if m >= -mp.log1p(-q):
                return None
            start = min(mp.sqrt(2 * q * m), q * (1 - mpf(10) ** -40))
            if divergence(q - start, q) < m:  # p0 is smaller than the best one can be
                return None
            x = _newton(lambda x: divergence(q - x, q) - m, lambda x: logit(q) - logit(q - x), start)
            return q, q - x, upper(q)

        point, missing, start = (
            (by_ratio, mpf(-1), mp.sqrt(mp.expm1(mpf(epsilon)) ** 2 + 8 * m)) if epsilon > 0.5
            else (by_mean, mpf(1), (mpf(epsilon) + mpf(10) ** -30) / mp.sqrt(m))
        )

        def excess(unknown: Any) -> Any:
            at = point(unknown)
            if at is None:
                return missing
            q, p0, p1 = at
            return mp.log((p1 - q) / (logit(p1) - logit(q)) * (logit(q) - logit(p0)) / (q - p0)) - mpf(epsilon)

        flat = mpf(epsilon) < mpf(10) ** -35 * mp.sqrt(m)  # q = 1/2 is best to its square
        q, p0, p1 = point(mpf(0) if flat else rising_root(excess, start, 30 + (_digits(mu) - 60) * 2 // 3))
        a, b = logit(p1) - logit(q), logit(q) - logit(p0)
        primal = p1 - t * p0
        w = b / (b + t * a)  # the weight of the row p1
        dual = (m + _potential(1 - w, w, a, b)) / (w * a)
        feasible = bac(p0, p1) - m
        gap = max(abs(dual / primal - 1), abs(feasible) / m)
        return Answer(+primal, +p1, mp.log(p0), gap)


def ldp_end(mu: float) -> Any:
    """The limit of ``ldp`` for large epsilon, from h(p) / p = -log(e^mu - 1)."""
    with mp.workdps(_digits(mu)):
        level = -mp.log(mp.expm1(mpf(mu)))
        p = rising_root(lambda p: level - entropy(p) / p if p < 1 else level, min(mpf(mu), mpf("0.999")))
        return +p


def lip(mu: float, epsilon: float, atom: float) -> Answer:
    """Max of q - e^epsilon p under I <= mu, where P(event) is q, and p given a value of probability ``atom``."""
    with mp.workdps(_digits(mu)):
        m, t, pi = mpf(mu), mp.exp(mpf(epsilon)), mpf(atom)
        rho = 1 - pi
        if m >= entropy(pi):
            return Answer(rho, rho, -mp.inf, mpf(0))

        def point(c: Any) -> tuple[Any, Any, Any, Any, Any]:
            a = pi / t * c
            b = c - a
            q = -rho / mp.expm1(-b) - pi / mp.expm1(a)
            return a, b, q, q / (q + (1 - q) * mp.exp(b)), q / (q + (1 - q) * mp.exp(-a))

        def excess(c: Any) -> Any:
            a, b, q, p, s = point(c)
            if q <= 0:  # the tangent
                return q * (pi * psi(mp.exp(-b)) + rho * psi(mp.exp(a))) - m
            return pi * divergence(p, q) + rho * divergence(s, q) - m

        c = rising_root(excess, mp.expm1(mpf(epsilon)) + mp.sqrt(8 * m / pi / rho))
        a, b, q, p, s = point(c)
        primal = q - t * p
        dual = (m + _potential(pi, rho, a, b)) / a
        mixed, information = rho * s + pi * p, pi * divergence(p, q) + rho * divergence(s, q)
        gap = max(abs(dual / primal - 1), abs(mixed / q - 1), abs(information / m - 1))
        return Answer(+primal, +q, mp.log(p), gap)


def lip_end(mu: float, atom: float) -> Any:
    """The limit of ``lip`` for large epsilon: the event excludes the atom."""
    with mp.workdps(_digits(mu)):
        m, pi = mpf(mu), mpf(atom)
        rho = 1 - pi
        if m >= entropy(pi):
            return rho
        return rising_root(
            lambda s: (-pi * mp.log1p(-rho * s) + rho * divergence(s, rho * s) if s < 1 else entropy(pi)) - m,
            min(m / entropy(pi), mpf("0.999")),
        ) * rho


def pointwise(mu: float, epsilon: float) -> Answer:
    """Equation (13) as printed: max of q - e^epsilon p under d(p || q) <= mu."""
    with mp.workdps(_digits(mu)):
        m, t = mpf(mu), mp.exp(mpf(epsilon))

        def point(b: Any) -> tuple[Any, Any]:
            q = -1 / mp.expm1(-b) - t / b
            return q, q / (q + (1 - q) * mp.exp(b))

        def excess(b: Any) -> Any:
            q, p = point(b)
            return divergence(p, q) - m if q > 0 else q * psi(mp.exp(-b)) - m

        b = rising_root(excess, mp.expm1(mpf(epsilon)) + mp.sqrt(8 * m))
        q, p = point(b)
        primal = q - t * p
        dual = t / b * (m + mp.log(t * -mp.expm1(-b) / b) - 1) - 1 / mp.expm1(-b)
        return Answer(+primal, +q, mp.log(p), max(abs(dual / primal - 1), abs(divergence(p, q) / m - 1)))


def divergence(p: Any, q: Any) -> Any:
    """d(p || q) of two coins, as defined."""
    return _times_log(p, p / q) + _times_log(1 - p, (1 - p) / (1 - q))


def psi(u: Any) -> Any:
    return u * mp.log(u) - u + 1


def entropy(p: Any) -> Any:
    return -_times_log(p, p) - _times_log(1 - p, 1 - p)


def logit(p: Any) -> Any:
    return mp.log(p) - mp.log(1 - p)


def bac(p0: Any, p1: Any) -> Any:
    """Capacity of the channel with rows (p0, p1), equation (11) in its symmetric form."""
    gap, h0, h1 = p1 - p0, entropy(p0), entropy(p1)
    return mp.log(mp.exp(-(p1 * h0 - p0 * h1) / gap) + mp.exp(-((1 - p0) * h1 - (1 - p1) * h0) / gap))


def rising_root(f: Any, start: Any, digits: int = 0) -> Any:
    """The root of a rising function on (0, inf): a bracket by doubling, then the Illinois method in log x, with a
    bisection whenever four steps have not halved the bracket."""
    x = mp.log(start)
    low, high, below, above, step = None, None, None, None, mpf(1) / 16
    while low is None or high is None:
        value = f(mp.exp(x))
        if value < 0:
            low, below = x, value
            x += step
        else:
            high, above = x, value
            x -= step
        step *= 2
    side, width = 0, high - low
    for count in range(2000):
        x = (low * above - high * below) / (above - below)
        if count % 4 == 3:
            x = (low + high) / 2 if high - low > width / 2 else x
            width = high - low
        if not low < x < high:
            x = (low + high) / 2
        value = f(mp.exp(x))
        if value == 0 or high - low < mpf(10) ** -(digits or mp.dps - 8):
            break
        if value < 0:
            low, below = x, value
            above = above / 2 if side < 0 else above
            side = -1
        else:
            high, above = x, value
            below = below / 2 if side > 0 else below
            side = 1
    return mp.exp(x)


def _newton(f: Any, slope: Any, x: Any) -> Any:
    """Newton's method, for functions close to straight, or convex and from a point above the root."""
    for _ in range(200):
        step = f(x) / slope(x)
        x -= step
        if abs(step) < abs(x) * mpf(10) ** -30:
            return x
    raise ArithmeticError("Newton's method did not settle")


def _potential(pi: Any, rho: Any, a: Any, b: Any) -> Any:
    """Minus the information of the rows at logit distances a and b from their mean, each with its tilt."""
    wide = mp.log(mp.exp(a) - mp.exp(-b))
    return -entropy(pi) + wide - pi * mp.log(mp.expm1(a)) - rho * mp.log(-mp.expm1(-b))


def _times_log(factor: Any, argument: Any) -> Any:
    return mpf(0) if factor == 0 else factor * mp.log(argument)


def _digits(mu: float) -> int:
    return 60 + int(-1.5 * min(0, mp.log10(mpf(mu))))
