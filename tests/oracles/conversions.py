"""Conversions of privacy notions in mpmath, straight from their definitions; many digits, no care."""

from mpmath import mp, mpf

DIGITS = 700


def entropy(p):
    return -sum(x * mp.log(x) for x in (p, 1 - p) if x > 0)


def phi(r):
    return mp.log(2) if r == 0 else r * mp.log(2 * r / (1 + r)) + mp.log(2 / (1 + r))


def js(p, r):
    """Jensen-Shannon divergence of two Bernoulli laws."""
    return sum(y / 2 * phi(x / y) if y > 0 else x * mp.log(2) / 2 for x, y in ((p, r), (1 - p, 1 - r)))


def kl(p, r):
    return sum(x * mp.log(x / y) for x, y in ((p, r), (1 - p, 1 - r)) if x > 0)


def logistic(x):
    return 1 / (1 + mp.exp(-x))


def reached(x, b):
    return min(mp.exp(x) * b, 1 - mp.exp(-x) * (1 - b))


def grown(xi, pi):
    return sides(xi, xi, pi)


def sides(plus, minus, pi):
    if plus == 0 or minus == 0:  # all ratios are on one side of their mean, 1
        return mpf(0)
    if pi == 0:
        return plus + minus
    if 3 * pi <= 1:
        return vertices(plus, minus, pi, pi)
    return max(vertices(plus, minus, pi, 1 - pi), vertices(plus, minus, 1 - pi, pi))


def vertices(plus, minus, up, down):
    """Largest log ratio of r to r' with means 1: r at a secret of probability ``up``, r' at one of ``down``."""
    found = [plus + minus, mp.log(1 + (mp.exp(minus) - 1) / up)]
    gained = 1 - mp.exp(-plus)
    if gained < down:
        found.append(-mp.log(1 - gained / down))
    return min(found)


def from_beliefs(x):
    return mp.sqrt(js(logistic(x), logistic(-x)))


def given_secret(xi):
    a, b = max(mp.exp(-xi), 3 - 2 * mp.cosh(xi)), 2 * mp.cosh(xi) - 1
    return mpf(0) if xi == 0 else mp.sqrt(((1 - a) * phi(b) + (b - 1) * phi(a)) / (2 * (b - a)))


def published_error(e):
    return mp.sqrt((1 + e) * mp.log((1 + e) / (1 - e)) / 2 + (e + max(mp.log(1 + e), -mp.log(1 - e))) / 2)


def subset(e):
    s = mpf(1) if e == 0 else e / (1 - mp.exp(-e))
    return s - 1 - mp.log(s)


def capacity(e, n):
    if n == 2:
        return mp.log(2) - entropy(logistic(-e))
    return min(subset(e), mp.log(n) - mp.log((n - 1) * mp.exp(-e) + 1))


def response(e, a):
    p, q = logistic(e), logistic(-e)
    return kl(p, q) if a == 1 else mp.log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1)


def curve(e, d, t):
    return d + (1 - d) * max(mpf(0), mp.exp(e) - mp.exp(t)) / (1 + mp.exp(e))


def pure_epsilon(e, d):
    return mp.log(max(mpf(1), mp.exp(e) - d * (1 + mp.exp(e))))


def line(e, d, x):
    return max(mpf(0), 1 - d - mp.exp(e) * x, mp.exp(-e) * (1 - d - x))


def renyi_epsilon(r, a, d):
    return max(mpf(0), r + mp.log(1 - 1 / a) - (mp.log(d) + mp.log(a)) / (a - 1)) if d < 1 else mpf(0)


def renyi_delta(r, a, e):
    return min(mpf(1), mp.exp((a - 1) * (r - e)) * (1 - 1 / a) ** (a - 1) / a)


def two_point_delta(r, a, e):
    """The most delta of two laws on two points whose divergence of order a is r."""
    if a > 1 and r - e >= mp.log(a / (a - 1)):
        return 1 - mp.exp(e - r)  # p = 1
    n, low, high = a - 1, mp.log(mpf(10) ** -40), mp.log(mpf(10) ** 8)

    def laws(gap):
        s = mp.exp(-gap)
        x = mp.exp(e) * (gap / (1 - s) if n == 0 else a * (1 - s**n) / (n * (1 - s**a)))
        return x, s * x, (1 - s * x) / (x - s * x)

    def divergence(x, y, q):
        p = x * q
        if n == 0:
            return p * mp.log(x) + (1 - p) * mp.log(y)
        return mp.log(p * x**n + (1 - p) * y**n) / n

    for _ in range(160):
        middle = (low + high) / 2
        x, y, q = laws(mp.exp(middle))
        low, high = (low, middle) if y < 1 and divergence(x, y, q) > r else (middle, high)
    x, y, q = laws(mp.exp(low))
    return (x - mp.exp(e)) * q


def best_epsilon(rho, d):
    """Golden section over the logarithm of the order."""
    return _least(lambda s: rho * (1 + s) + mp.log(s / (1 + s)) - (mp.log(d) + mp.log(1 + s)) / s)


def best_delta(rho, e):
    return mp.exp(_least(lambda s: s * (rho * (1 + s) - e) + s * mp.log(s / (1 + s)) - mp.log(1 + s)))


def _least(function):
    low, high, gold = mpf(-60), mpf(700), (mp.sqrt(5) - 1) / 2
    left, right = high - gold * (high - low), low + gold * (high - low)
    fl, fr = function(mp.exp(left)), function(mp.exp(right))
    for _ in range(120):
        if fl < fr:
            high, right, fr = right, left, fl
            left = high - gold * (high - low)
            fl = function(mp.exp(left))
        else:
            low, left, fl = left, right, fr
            right = low + gold * (high - low)
            fr = function(mp.exp(right))
    return min(fl, fr)


def normal_curve(m, e):
    if m == 0:
        return mpf(0)
    return mp.ncdf(-e / m + m / 2) - mp.exp(e) * mp.ncdf(-e / m - m / 2)


def group_delta(e, d, k):
    return min(mpf(1), d * sum(mp.exp(e * i) for i in range(int(k))))


def tails(e, f, n):
    """Chernoff's bounds of the two tails of a frequency f from n trials."""
    if e == 0:
        return mpf(1)
    low = mp.exp(-n * kl(f * (1 - e), f)) if f < 1 else mpf(0)
    return min(mpf(1), low + (mp.exp(-n * kl(f * (1 + e), f)) if f < 1 and f * (1 + e) <= 1 else 0))


def two_rows(xi):
    """The two rows under xi-MBP that are farthest apart, as pairs of masses."""
    high, low, t = mp.exp(xi), mp.exp(-xi), 1 / (1 + mp.exp(xi))
    return [(t * high, t * low), (t * low, t * high), ((1 - 2 * t) * low, (1 - 2 * t) * low)]


def rows_kl(xi):
    return sum(p * mp.log(p / r) for p, r in two_rows(xi) if p > 0)


def rows_renyi(xi, a):
    return rows_kl(xi) if a == 1 else mp.log(sum(p**a * r ** (1 - a) for p, r in two_rows(xi) if p > 0)) / (a - 1)


def rows_hockey(xi, t):
    return sum(max(mpf(0), p - mp.exp(t) * r) for p, r in two_rows(xi))


def rows_epsilon(xi, d):
    """Only the first of the masses exceeds e^t times its partner, for t of 0 or more."""
    p, r = two_rows(xi)[0]
    return mp.log(max(mpf(1), (p - d) / r))


VALUES = {
    "mbp_from_ldp": lambda e, pi: mp.log(pi + (1 - pi) * mp.exp(e)),
    "mbp_from_ldp_as_published": lambda e, s: e + s,
    "ldp_from_mbp": grown,
    "ldp_from_mbp_sides": sides,
    "ldp_from_mbp_as_published": lambda xi, s: 2 * xi + s,
    "lip_from_mbp": lambda xi: xi,
    "mbp_from_lip": lambda e: e,
    "dp_delta_from_mbp": lambda xi, t, pi: min(rows_hockey(xi, t), curve(grown(xi, pi), mpf(0), t)),
    "dp_epsilon_from_mbp": lambda xi, d, pi: min(rows_epsilon(xi, d), pure_epsilon(grown(xi, pi), d)),
    "total_variation_from_mbp": lambda xi, pi: min(rows_hockey(xi, mpf(0)), mp.tanh(grown(xi, pi) / 2)),
    "kl_from_mbp": lambda xi, pi: min(rows_kl(xi), kl(logistic(grown(xi, pi)), logistic(-grown(xi, pi)))),
    "rdp_from_mbp": lambda xi, a, pi: min(rows_renyi(xi, a), response(grown(xi, pi), a)),
    "ci_lmip_from_pointwise_lmip": lambda mu: mu,
    "maximal_leakage_from_mbp": lambda xi, pi: min(
        [xi] + ([mp.log((1 - (1 - pi) * mp.exp(-xi)) / pi)] if pi > 0 else [])),
    "abp_from_mbp": lambda xi, g: from_beliefs(xi + g),
    "abp_from_mbp_as_published": lambda xi, g: mp.sqrt((xi + g) * (mp.exp(xi + g) - 1) / 2),
    "abp_given_secret_from_mbp": given_secret,
    "abp_from_ldp": lambda e, g: from_beliefs(e / 2 + g),
    "robustness_from_mbp": lambda xi, b, pi: min(reached(xi, reached(xi, b)), reached(grown(xi, pi), b)),
    "robustness_from_mbp_as_published": lambda xi, b: min(mpf(1), (1 + 4 * xi) * b),
    "robustness_from_ldp": reached,
    "frequency_failure_from_trials": tails,
    "frequency_failure_from_trials_as_published": lambda e, f, n: min(mpf(1), 2 * mp.exp(-e * e * f * n / 3)),
    "c1_error_from_frequency_error": lambda e: mp.sqrt(phi(1 - e) / 2),
    "c1_error_from_frequency_error_as_published": published_error,
    "leakage_error_from_frequency_error": lambda e: 2 * mp.sqrt(phi(1 - e) / 2),
    "leakage_error_from_frequency_error_as_published": lambda e: mpf(3) / 2 * published_error(e),
    "c2_from_mbp": lambda xi: (mp.exp(2 * xi) - 1) / 2,
    "abp_from_c1": lambda c1, c2, tv: c1,
    "abp_from_c1_as_published": lambda c1, c2, tv: max(mpf(0), 2 * c1 - c2 * tv),
    "maximal_leakage_from_ldp": lambda e, n: mp.log(n) - mp.log((n - 1) * mp.exp(-e) + 1),
    "ci_lmip_from_ldp": capacity,
    "ci_lmip_from_dp": lambda e, d: d * mp.log(2) + (1 - d) * (mp.log(2) - entropy(logistic(-e))),
    "ci_lmip_from_kl": lambda k: k,
    "ci_lmip_from_maximal_leakage": lambda k: k,
    "cd_lmip_from_ci_lmip": lambda mu: mu,
    "cd_lmip_from_pointwise_lmip": lambda mu: mu,
    "pointwise_lmip_from_mbp": lambda xi: kl(logistic(xi), logistic(-xi)),
    "pointwise_lmip_from_ldp": lambda e: kl(logistic(e), logistic(-e)),
    "dp_delta_from_ldp": lambda e, t: curve(e, mpf(0), t),
    "dp_epsilon_from_ldp": pure_epsilon,
    "dp_delta_from_dp": curve,
    "dp_delta_from_total_variation": lambda tv: tv,
    "total_variation_from_ldp": lambda e: (mp.exp(e) - 1) / (mp.exp(e) + 1),
    "total_variation_from_dp": lambda e, d: (mp.exp(e) - 1 + 2 * d) / (mp.exp(e) + 1),
    "total_variation_from_gdp": lambda m: 2 * mp.ncdf(m / 2) - 1,
    "total_variation_from_kl": lambda k: min(mp.sqrt(k / 2), mp.sqrt(1 - mp.exp(-k))),
    "membership_advantage_from_dp": lambda e, d: (mp.exp(e) - 1 + 2 * d) / (mp.exp(e) + 1),
    "membership_advantage_from_total_variation": lambda tv: tv,
    "lip_delta_from_dp": lambda e, d: d,
    "rdp_from_ldp": response,
    "rdp_from_ldp_as_published": lambda e, a: min(e, a * e * e / 2),
    "rdp_from_zcdp": lambda rho, a: rho * a,
    "kl_from_rdp": lambda r, a: r,
    "kl_from_ldp": lambda e: kl(logistic(e), logistic(-e)),
    "kl_from_ldp_as_published": lambda e: e * (mp.exp(e) - 1) / 2,
    "dp_epsilon_from_rdp_as_published": lambda r, a, d: r - mp.log(d) / (a - 1),
    "zcdp_from_ldp": lambda e: kl(logistic(e), logistic(-e)),
    "zcdp_from_ldp_as_published": lambda e: e * e / 2,
    "zcdp_from_gdp": lambda m: m * m / 2,
    "kl_from_zcdp": lambda rho: rho,
    "dp_epsilon_from_zcdp_as_published": lambda rho, d: rho + 2 * mp.sqrt(rho * -mp.log(d)),
    "dp_delta_from_gdp": normal_curve,
    "gdp_from_ldp": lambda e: 2 * mp.sqrt(2) * mp.erfinv(mp.tanh(e / 2)),
    "tradeoff_from_ldp": lambda e, x: line(e, mpf(0), x),
    "tradeoff_from_dp": line,
    "tradeoff_from_gdp": lambda m, x: mp.ncdf(mp.sqrt(2) * mp.erfinv(1 - 2 * x) - m),
    "group_dp_delta_from_dp": group_delta,
}
