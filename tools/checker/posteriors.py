"""Posteriors over finite domains, by sums of balls."""

from flint import arb

from balls import distribution, most, number


def posterior(inputs, name):
    """One quantity of the posterior, in nats."""
    logs, prior = [number(text) for text in inputs["log_likelihood"]], distribution(inputs["prior"])
    pairs = [(w, x) for w, x in zip(prior, logs, strict=True) if w > 0]
    evidence = sum((w * x.exp() for w, x in pairs), arb(0)).log()
    ratios = [x - evidence for _, x in pairs]
    after = [w * r.exp() for (w, _), r in zip(pairs, ratios, strict=True)]
    if name in ("js", "abp"):
        terms = ((a * r - (w + a) * ((1 + r.exp()) / 2).log()) / 2 for (w, _), a, r in zip(pairs, after, ratios, strict=True))
        js = sum(terms, arb(0))
        return js if name == "js" else js.nonnegative_part().sqrt()
    return {
        "log_evidence": lambda: evidence,
        "entropy": lambda: -sum((a * a.log() for a in after), arb(0)),
        "kl": lambda: sum((a * r for a, r in zip(after, ratios, strict=True)), arb(0)),
        "vulnerability": lambda: most(after),
        "max_log_ratio": lambda: most(ratios),
        "min_log_ratio": lambda: -most([-r for r in ratios]),
        "xi": lambda: most([abs(r) for r in ratios]),
    }[name]()
