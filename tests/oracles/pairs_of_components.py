"""Bounds of KL(P||Q) of diagonal mixtures from their pairs of components, in many digits.

sum_i w_i (log w_i - h(N_i) - log sum_j v_j z_ij) <= KL <= sum_i w_i min_j (KL(N_i||M_j) - log v_j), h the entropy and z
the integral of the product (Hershey and Olsen 2007; Durrieu et al. 2012).
"""

import mpmath

DIGITS = 60


def kl_bounds(w, mu, s, v, nu, t):
    """(least, most) for weights (k,), means and sigmas (k, d) of either law."""
    with mpmath.workdps(DIGITS):
        w, mu, s, v, nu, t = (mpmath.matrix(x.tolist()) for x in (w, mu, s, v, nu, t))
        k, m, d = mu.rows, nu.rows, mu.cols
        least, most = mpmath.mpf(0), mpmath.mpf(0)
        for i in range(k):
            entropy = sum(mpmath.log(2 * mpmath.pi * mpmath.e * s[i, c] ** 2) / 2 for c in range(d))
            overlap = mpmath.mpf(0)
            nearest = mpmath.inf
            for j in range(m):
                z, kl = mpmath.mpf(1), mpmath.mpf(0)
                for c in range(d):
                    both, gap = s[i, c] ** 2 + t[j, c] ** 2, (mu[i, c] - nu[j, c]) ** 2
                    z *= mpmath.exp(-gap / (2 * both)) / mpmath.sqrt(2 * mpmath.pi * both)
                    kl += mpmath.log(t[j, c] / s[i, c]) + (s[i, c] ** 2 + gap) / (2 * t[j, c] ** 2) - 0.5
                overlap += v[j] * z
                nearest = min(nearest, kl - mpmath.log(v[j]))
            least += w[i] * (mpmath.log(w[i]) - entropy - mpmath.log(overlap))
            most += w[i] * nearest
        return float(least), float(most)
