"""Hockey-stick divergences of two normal distributions in several dimensions, by mpmath, without fastpriv.

The loss is a sum over coordinates c + w r u + y u^2 / 2 with u normal, r^2 = 1 + y and c = w^2 / 2 - log(1 + y) / 2.
"""

from mpmath import mp, mpf


def coordinates(mean_p, cov_p, mean_q, cov_q):
    """(y, w) of N(mean_p, cov_p) against N(mean_q, cov_q), entries exact."""
    d = len(mean_p)
    s, t = mp.matrix([list(map(mpf, row)) for row in cov_p]), mp.matrix([list(map(mpf, row)) for row in cov_q])
    root = mp.cholesky(t) ** -1
    values, vectors = mp.eigsy(root * (s - t) * root.T)
    w = vectors.T * root * mp.matrix([mpf(a) - mpf(b) for a, b in zip(mean_p, mean_q, strict=True)])
    return [(values[i], w[i]) for i in range(d)]


def one_coordinate(y, w, eps):
    """delta of one coordinate at any real epsilon, from the roots of loss = epsilon."""
    r = mp.sqrt(1 + y)
    c = w**2 / 2 - mp.log(1 + y) / 2 - eps

    def tail(x):  # P(u > x) - e^eps Q(u > x), where the sample w + r u is normal under Q
        return mp.ncdf(-x) - mp.exp(eps) * mp.ncdf(-(w + r * x))

    def head(x):
        return mp.ncdf(x) - mp.exp(eps) * mp.ncdf(w + r * x)

    if y == 0:
        if w == 0:
            return max(mpf(0), 1 - mp.exp(eps))
        return tail(-c / w) if w > 0 else head(-c / w)
    square = (w * r) ** 2 - 2 * y * c
    if square <= 0:
        return mpf(0) if y < 0 else 1 - mp.exp(eps)
    low, high = sorted([(-w * r - mp.sqrt(square)) / y, (-w * r + mp.sqrt(square)) / y])
    if y > 0:
        return head(low) + tail(high)
    if low > 0:
        return tail(low) - tail(high)
    if high < 0:
        return head(high) - head(low)
    return (mp.ncdf(high) - mp.ncdf(low)) - mp.exp(eps) * (mp.ncdf(w + r * high) - mp.ncdf(w + r * low))


def two_coordinates(first, second, eps):
    """The integral over the first coordinate of the curve of the second one."""
    (y, w), (other, v) = first, second
    r = mp.sqrt(1 + y)

    def rest(u):
        return eps - (w**2 / 2 - mp.log(1 + y) / 2 + w * r * u + y * u**2 / 2)

    points = [mpf(k) for k in range(-24, 25, 4)]
    if other != 0:  # kinks where the second loss has its extremum
        edge = -mp.log(1 + other) / 2 - v**2 / (2 * other)
        c = w**2 / 2 - mp.log(1 + y) / 2 + edge - eps
        square = (w * r) ** 2 - 2 * y * c
        if y != 0 and square > 0:
            points += [(-w * r - mp.sqrt(square)) / y, (-w * r + mp.sqrt(square)) / y]
        elif y == 0 and w != 0:
            points.append(-c / w)
    points = sorted(x for x in points if abs(x) <= 24)
    return mp.quad(lambda u: mp.npdf(u) * one_coordinate(other, v, rest(u)), points)


def pairs_of_coordinates(ys, eps):
    """Each y, all different, twice and w = 0: y u^2 / 2 + y u'^2 / 2 is y times an exponential variable."""
    s = eps + sum(mp.log(1 + y) for y in ys)
    total = mpf(0)
    for i, y in enumerate(ys):
        part = mpf(1)
        for j, other in enumerate(ys):
            if i != j:
                part *= y / (y - other)
        if y > 0:
            one = mp.exp(-s / y) * y / (1 + y) if s >= 0 else 1 - mp.exp(s) / (1 + y)
        elif s >= 0:
            one = mpf(0)
        else:
            e = s / y
            one = 1 - mp.exp(-e) - mp.exp(s) * (1 - mp.exp(-(1 + y) * e)) / (1 + y)
        total += part * one
    return total


def scaled_identity(d, y, eps):
    """d coordinates of one y and w = 0: chi-square with d degrees of freedom."""
    s = (eps + d * mp.log(1 + y) / 2) * 2 / y  # |u|^2 > s where y > 0, < s where y < 0
    if s <= 0:
        return 1 - mp.exp(eps) if y > 0 else mpf(0)
    half = mpf(d) / 2

    def mass(x):
        ends = (x / 2, mp.inf) if y > 0 else (0, x / 2)
        return mp.gammainc(half, *ends, regularized=True)

    return mass(s) - mp.exp(eps) * mass(s * (1 + y))
