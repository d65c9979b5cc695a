"""Posteriors over a few secrets in 400 digits, straight from the definitions."""

from mpmath import exp, inf, log, mp, mpf, sqrt

__all__ = ["posterior"]


def posterior(likelihood, prior=None, logs=True, log_prior=False):
    """All quantities of ``Posterior`` as mpf; the prior is divided by its sum."""
    with mp.workdps(400):
        weight = [exp(_number(x)) if logs else mpf(float(x)) for x in likelihood]
        if prior is None:
            belief = [mpf(1) / len(weight)] * len(weight)
        else:
            belief = [exp(_number(p)) if log_prior else mpf(float(p)) for p in prior]
            belief = [p / sum(belief) for p in belief]
        joint = [p * w for p, w in zip(belief, weight, strict=True)]
        evidence = sum(joint)
        after = [j / evidence for j in joint]
        live = [(p, a) for p, a in zip(belief, after, strict=True) if p > 0]
        ratios = [log(a / p) if a > 0 else -inf for p, a in live]
        js = _whole(sum(_against(p, (p + a) / 2) + _against(a, (p + a) / 2) for p, a in live) / 2)
        best = max(after)
        return {
            "log_evidence": log(evidence),
            "entropy": -sum(a * log(a) for a in after if a > 0),
            "kl": _whole(sum(_against(a, p) for p, a in live)),
            "js": js,
            "abp": sqrt(js),
            "max_log_ratio": max(ratios),
            "min_log_ratio": min(ratios),
            "xi": max(max(ratios), -min(ratios)),
            "vulnerability": best,
            "posterior": after,
            "map_index": after.index(best),
            "ties": after.count(best),
        }


def _number(x):
    return -inf if float(x) == -float("inf") else mpf(float(x))


def _against(a, b):
    return a * log(a / b) if a > 0 else mpf(0)


def _whole(x):
    """Zero where only rounding is left."""
    return x if abs(x) > mpf("1e-380") else mpf(0)
