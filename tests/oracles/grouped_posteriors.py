"""What a release does to beliefs, from the definitions, in many digits; slow and readable."""

from mpmath import exp, inf, log, mp, mpf

DIGITS = 250


@mp.workdps(DIGITS)
def quantities(log_likelihood, prior=None):
    """Of secrets one by one; ``prior`` holds mpf that sum to 1 (default uniform)."""
    n = len(log_likelihood)
    weights = [mpf(1) / n] * n if prior is None else list(prior)
    return of_groups([(1, pi, mpf(x) if x > -inf else None) for pi, x in zip(weights, log_likelihood, strict=True)])


@mp.workdps(DIGITS)
def of_groups(groups):
    """Of groups (count, prior of one secret, log likelihood or None for -inf)."""
    held = [(mpf(count), pi, log_l) for count, pi, log_l in groups if pi > 0]
    evidence = sum(count * pi * exp(log_l) for count, pi, log_l in held if log_l is not None)
    found = {"log_evidence": log(evidence), "kl": mpf(0), "js": mpf(0), "entropy": mpf(0), "vulnerability": mpf(0)}
    ratios = []
    for count, pi, log_l in held:
        r = exp(log_l) / evidence if log_l is not None else mpf(0)
        post = pi * r
        ratios.append(log(r) if r > 0 else -inf)
        if post > 0:
            found["kl"] += count * post * log(r)
            found["entropy"] -= count * post * log(post)
            found["js"] += count * post * log(2 * r / (1 + r)) / 2
        found["js"] += count * pi * log(2 / (1 + r)) / 2
        found["vulnerability"] = max(found["vulnerability"], post)
    found["max_log_ratio"], found["min_log_ratio"] = max(ratios), min(ratios)
    found["xi"] = max(ratios[0], *(abs(x) for x in ratios))
    return found


@mp.workdps(DIGITS)
def product(*factors):
    """All tuples of secrets of factors (log likelihoods, prior), the first place slowest: (log likelihoods, priors)."""
    logs, weights = [mpf(0)], [mpf(1)]
    for given, prior in factors:
        own = [mpf(1) / len(given)] * len(given) if prior is None else prior
        logs = [a + (mpf(b) if b > -inf else -inf) for a in logs for b in given]
        weights = [a * b for a in weights for b in own]
    return logs, weights
