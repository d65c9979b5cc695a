"""Truth about who is a member: every membership written out, in mpmath; slow and readable."""

from mpmath import mp, mpf

DIGITS = 60


def log_likelihood(kind, attributes, released, scale, members, clip=False):
    """log p(r | b) for one release; ``scale`` is a number, or a list of those of 1, 2, ... members."""
    n = len(members)
    s = mpf(scale if isinstance(scale, float) else float(scale[n - 1]))
    total = mpf(0)
    apart = []
    for j, r in enumerate(released):
        f = mpf(sum(int(attributes[k][j]) for k in members)) / n
        r = mpf(float(r))
        end = clip and r in (0, 1)
        inward = f if r == 0 else 1 - f  # how far the frequency is from the end
        apart.append(abs(r - f))
        if kind == "gaussian":
            total += mp.log(mp.ncdf(-inward / s)) if end else -((r - f) / s) ** 2 / 2 - mp.log(s * mp.sqrt(2 * mp.pi))
        if kind == "laplace":
            total += -abs(r - f) / s - (mp.log(2) if end else mp.log(2 * s))
    if kind == "linfinity":
        total = -max(apart) / s - len(apart) * mp.log(2 * s) - mp.loggamma(len(apart) + 1)
    return total


def prior_logs(prior, people):
    """log theta(b) for each index of b, None where it is 0: ('bernoulli', q a person) or ('size', n0)."""
    kind, value = prior
    if kind == "size":
        sets = [index for index in range(2**people) if index.bit_count() == value]
        return {index: -mp.log(len(sets)) for index in sets}
    with mp.workdps(400):  # probabilities of 1e-300 count in the condition that there is a member
        q = [mpf(float(x)) for x in value]
        some = mp.log(1 - mp.fprod(1 - x for x in q))
        member, other = [mp.log(x) for x in q], [mp.log(1 - x) for x in q]
        return {
            index: mp.fsum(member[k] if index >> k & 1 else other[k] for k in range(people)) - some
            for index in range(1, 2**people)
        }


def belief(people, prior, releases):
    """log odds of each person, log evidence, entropy, covariance and the most probable memberships."""
    with mp.workdps(DIGITS):
        logs = {}
        for index, log_prior in prior_logs(prior, people).items():
            members = [k for k in range(people) if index >> k & 1]
            logs[index] = log_prior + mp.fsum(log_likelihood(*one[:4], members, *one[4:]) for one in releases)
        most = max(logs.values())
        weight = {index: mp.exp(one - most) for index, one in logs.items()}
        total = mp.fsum(weight.values())
        log_odds = []
        for k in range(people):
            member = mp.fsum(w for index, w in weight.items() if index >> k & 1)
            other = mp.fsum(w for index, w in weight.items() if not index >> k & 1)
            log_odds.append(mp.inf if other == 0 else -mp.inf if member == 0 else mp.log(member / other))
        entropy = mp.log(total) - mp.fsum(w * mp.log(w) for w in weight.values() if w) / total
        joint = [
            [mp.fsum(w for i, w in weight.items() if i >> k & 1 and i >> j & 1) / total for j in range(people)]
            for k in range(people)
        ]
        covariance = [[float(joint[k][j] - joint[k][k] * joint[j][j]) for j in range(people)] for k in range(people)]
        best = {index for index, one in logs.items() if one >= most - mpf(10) ** -25}
        return log_odds, mp.log(total) + most, entropy, covariance, best
