"""Log densities of mixtures in d dimensions, the information of a sample on its component, and sampled terms."""

import numpy as np
from mpmath import mp, mpf

DIGITS = 60


def exponents(form, constants, means, scales, x):
    """constant_c - |z_c|^2 / 2 at one sample; scales as the kernels take them, every number exact."""
    with mp.workdps(DIGITS):
        k, d = means.shape
        rows = np.asarray(scales).reshape(-1, {0: 1, 1: d, 2: d * (d + 1) // 2}[form])
        found = []
        for c in range(k):
            r = rows[c if len(rows) > 1 else 0].tolist()
            t = [mpf(a) - mpf(b) for a, b in zip(x.tolist(), means[c].tolist(), strict=True)]
            if form == 2:
                z = [mp.fdot(zip(map(mpf, r[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]), t[: i + 1], strict=True))
                     for i in range(d)]
            else:
                z = [a * mpf(r[0] if form == 0 else r[j]) for j, a in enumerate(t)]
            found.append(mpf(float(constants[c])) - mp.fsum(a * a for a in z) / 2)
        return found


def log_sum(terms):
    with mp.workdps(DIGITS):
        top = max(terms)
        return top + mp.log(mp.fsum(mp.exp(term - top) for term in terms if term - top > -1000))


def log_density(form, constants, means, scales, x):
    """Shape (n,) of mpf at the columns of x."""
    return [log_sum(exponents(form, constants, means, scales, column)) for column in x.T]


def information(form, constants, log_weights, means, scales, x):
    """sum_c post log(post / w) - post + w; the weights need not sum to 1 exactly."""
    found = []
    with mp.workdps(DIGITS):
        logs = [mpf(float(v)) for v in log_weights]
        for column in x.T:
            terms = exponents(form, constants, means, scales, column)
            total = log_sum(terms)
            post = [mp.exp(term - total) for term in terms]
            found.append(mp.fsum(
                a * (term - total - logw) - a + mp.exp(logw) for a, term, logw in zip(post, terms, logs, strict=True)
            ))
    return found


def kappa(x):
    return mp.expm1(x) - x


def term(name, lp, lq, lg, parameter):
    """One sampled term from finite log densities."""
    with mp.workdps(DIGITS + 400):
        lp, lq, lg, a = mpf(float(lp)), mpf(float(lq)), mpf(float(lg)), mpf(float(parameter))
        ratio = lp - lq
        if name.endswith("_balanced") or name in ("kl_reversed", "jensen_shannon", "total_variation", "difference"):
            lg = mp.log((mp.exp(lp - max(lp, lq)) + mp.exp(lq - max(lp, lq))) / 2) + max(lp, lq)
        p, q = mp.exp(lp - lg), mp.exp(lq - lg)
        if name in ("kl_forward", "hockey_stick_forward", "excess"):
            p, q = mpf(1), mp.exp(-ratio)
        if name == "kl_forward":
            return ratio
        if name in ("kl_balanced", "kl_proposal"):
            return p * ratio - p + q
        if name == "kl_reversed":
            return -q * ratio - q + p
        if name == "jensen_shannon":
            return (p * mp.log(p) + q * mp.log(q)) / 2
        if name == "total_variation":
            return abs(p - q) / 2
        if name.startswith("hockey_stick"):
            return max(mpf(0), p - mp.exp(a) * q)
        if name.startswith("renyi_small"):
            return p * (kappa((a - 1) * ratio) + (a - 1) * kappa(-ratio))
        if name.startswith("renyi"):
            return p * mp.exp((a - 1) * ratio)
        return {"excess": mp.expm1(-ratio), "difference": p - q}[name]
