"""Likelihoods of released frequencies, entropies of priors and privacy of noise, in 60 digits or by enumeration."""

import itertools

import mpmath

__all__ = ["gaussian_delta", "log_likelihood", "memberships", "prior_weights"]

DIGITS = 60


def memberships(people):
    """All memberships with at least one member, as tuples of 0 and 1."""
    return [b for b in itertools.product((0, 1), repeat=people) if any(b)]


def prior_weights(people, q=None, members=None):
    """Probabilities of all memberships, normalised by their sum."""
    with mpmath.workdps(DIGITS):
        weights = {}
        for b in memberships(people):
            if members is None:
                factors = (mpmath.mpf(p) if one else 1 - mpmath.mpf(p) for p, one in zip(q, b, strict=True))
                weights[b] = mpmath.fprod(factors)
            else:
                weights[b] = mpmath.mpf(sum(b) == members)
        total = mpmath.fsum(weights.values())
        return {b: w / total for b, w in weights.items()}


def log_likelihood(kind, released, frequencies, scale, clip):
    """The log likelihood of one release, given its frequencies; all are doubles."""
    with mpmath.workdps(DIGITS):
        r, f = ([mpmath.mpf(float(x)) for x in xs] for xs in (released, frequencies))
        c = mpmath.mpf(float(scale))
        if kind == "infinity":
            return _infinity(r, f, c, clip)
        total = mpmath.mpf(0)
        for x, mean in zip(r, f, strict=True):
            if clip and x in (0, 1):
                far = mean if x == 0 else 1 - mean
                if kind == "gauss":
                    total += mpmath.log(mpmath.erfc(far / c / mpmath.sqrt(2)) / 2)
                else:
                    total += mpmath.log(mpmath.exp(-far / c) / 2)
            elif kind == "gauss":
                total += mpmath.log(mpmath.npdf(x, mean, c))
            else:
                total += mpmath.log(mpmath.exp(-abs(x - mean) / c) / (2 * c))
        return total


def _infinity(r, f, c, clip):
    """exp(-max |y| / c) / ((2 c)^m m!), integrated by hand over at most two entries that were clipped."""
    m = len(r)
    cut = [j for j in range(m) if clip and r[j] in (0, 1)]
    rest = max([abs(r[j] - f[j]) for j in range(m) if j not in cut], default=mpmath.mpf(0))
    least = sorted(f[j] if r[j] == 0 else 1 - f[j] for j in cut)
    top = max([rest, *least])  # up to it the integrand is constant, beyond it the entry itself is the largest
    if not cut:
        value = mpmath.exp(-rest / c)
    elif len(cut) == 1:
        value = (top - least[0]) * mpmath.exp(-top / c) + c * mpmath.exp(-top / c)
    else:
        assert len(cut) == 2
        inside = (top - least[1] + c) * mpmath.exp(-top / c)  # over the second entry, for a first one below top
        value = (top - least[0]) * inside + c * (top - least[1] + 2 * c) * mpmath.exp(-top / c)
    return mpmath.log(value) - m * mpmath.log(2 * c) - mpmath.loggamma(m + 1)


def gaussian_delta(epsilon, sigma, attributes, members):
    """The least delta of normal noise on m frequencies of n members, one of whom is replaced."""
    with mpmath.workdps(DIGITS):
        e, s = mpmath.mpf(epsilon), mpmath.sqrt(attributes) / members / mpmath.mpf(sigma)
        return mpmath.ncdf(s / 2 - e / s) - mpmath.exp(e) * mpmath.ncdf(-s / 2 - e / s)
