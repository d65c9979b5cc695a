"""Truth about beliefs over subsets: every subset written out, in mpmath; slow and readable."""

import itertools

from mpmath import mp, mpf

DIGITS = 60


def exponents(linear, pairwise, size):
    """Every subset with its log likelihood, in lexicographic order; pairs are read above the diagonal."""
    for members in itertools.combinations(range(len(linear)), size):
        alone = sum(mpf(float(linear[i])) for i in members)
        yield members, alone + sum(mpf(float(pairwise[i][j])) for i, j in itertools.combinations(members, 2))


def plogp(p, q):
    return p * mp.log(p / q) if p else mpf(0)


def belief(linear, pairwise, size):
    """What the posterior over all subsets of a size is worth, by name."""
    members, logs = zip(*exponents(linear, pairwise, size), strict=True)
    pool = len(linear)
    apart = max(x for x in logs if x > -mp.inf) - min(x for x in logs if x > -mp.inf)
    with mp.workdps(DIGITS + int(min(apart / 2, 330))):  # what a posterior near 1 leaves to 1 counts
        prior = [mpf(1) / len(members)] * len(members)
        joint = [w * mp.exp(x) for w, x in zip(prior, logs, strict=True)]
        evidence = mp.fsum(joint)
        law = [t / evidence for t in joint]
        middle = [(p + w) / 2 for p, w in zip(law, prior, strict=True)]
        ratios = [x - mp.log(evidence) for x, w in zip(logs, prior, strict=True) if w]
        return {
            "log_evidence": mp.log(evidence),
            "entropy": -mp.fsum(plogp(p, 1) for p in law),
            "kl": mp.fsum(map(plogp, law, prior)),
            "js": mp.fsum((plogp(p, m) + plogp(w, m)) / 2 for p, w, m in zip(law, prior, middle, strict=True)),
            "max_log_ratio": max(ratios),
            "min_log_ratio": min(ratios),
            "xi": max(map(abs, ratios)),
            "vulnerability": max(law),
            "inclusion": [
                mp.fsum(p for p, one in zip(law, members, strict=True) if i in one) for i in range(pool)
            ],
            "law": law,
        }


def gaussian_exponents(gradients, release, size, sigma):
    """log density of the release for the mean of every subset of the gradients, in lexicographic order."""
    with mp.workdps(DIGITS):
        noise = mpf(sigma)
        for members in itertools.combinations(range(len(gradients)), size):
            means = [mp.fsum(mpf(gradients[i][d]) for i in members) / size for d in range(len(release))]
            square = mp.fsum((mpf(y) - m) ** 2 for y, m in zip(release, means, strict=True))
            yield -square / (2 * noise**2) - len(release) * mp.log(mp.sqrt(2 * mp.pi) * noise)


def products(errors, features):
    """Gradients of a linear layer, one row a record: outer products, exact in mpmath."""
    with mp.workdps(DIGITS):
        return [[mpf(float(e)) * mpf(float(x)) for e in one for x in two]
                for one, two in zip(errors, features, strict=True)]
