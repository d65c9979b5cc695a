"""Log densities of Gaussian mixtures in d dimensions with 80 digits (mpmath), from the definition."""

import mpmath

DIGITS = 80


def log_density(weights, means, covariances, x):
    """log sum_i w_i N(x; m_i, K_i); ``means`` are rows, ``covariances`` matrices, all exact doubles."""
    with mpmath.workdps(DIGITS):
        terms = [term(w, m, k, x) for w, m, k in zip(weights, means, covariances, strict=True) if w]
        top = max(terms)
        return top + mpmath.log(mpmath.fsum(mpmath.exp(t - top) for t in terms))


def term(weight, mean, covariance, x):
    """log(w N(x; m, K))."""
    factor = cholesky(covariance)
    z = []
    for i, row in enumerate(factor):
        rest = mpmath.mpf(float(x[i])) - mpmath.mpf(float(mean[i]))
        z.append((rest - mpmath.fsum(a * b for a, b in zip(row, z, strict=False))) / row[i])
    scale = mpmath.fsum(mpmath.log(row[i]) for i, row in enumerate(factor))
    square = mpmath.fsum(value * value for value in z)
    return mpmath.log(float(weight)) - scale - square / 2 - len(z) * mpmath.log(2 * mpmath.pi) / 2


def cholesky(matrix):
    """Rows of the lower factor, each as far as the diagonal."""
    rows = []
    for i, given in enumerate(matrix):
        row = []
        for j in range(i + 1):
            done = rows[j] if j < i else row
            rest = entry(given[j]) - mpmath.fsum(a * b for a, b in zip(row, done, strict=False))
            row.append(mpmath.sqrt(rest) if i == j else rest / done[j])
        rows.append(row)
    return rows


def diagonal(sigmas):
    """The exact matrix with these standard deviations."""
    with mpmath.workdps(DIGITS):
        squares = [mpmath.mpf(float(s)) ** 2 for s in sigmas]
        return [[squares[i] if i == j else mpmath.mpf(0) for j in range(len(squares))] for i in range(len(squares))]


def entry(value):
    return value if isinstance(value, mpmath.mpf) else mpmath.mpf(float(value))
