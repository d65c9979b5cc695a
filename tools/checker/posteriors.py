"""Posteriors over finite domains, by sums of balls."""

from balls import distribution, most, number
from flint import arb


def posterior(inputs, name):
    """One quantity of the posterior, in nats."""
    logs, prior = [number(text) for text in inputs["log_likelihood"]], distribution(inputs["prior"])
    pairs = [(w, x) for w, x in zip(prior, logs, strict=True) if w > 0]
    evidence = sum((w * x.exp() for w, x in pairs), arb(0)).log()
    ratios = [x - evidence for _, x in pairs]
    weights = [(w, w * r.exp(), r) for (w, _), r in zip(pairs, ratios, strict=True)]
    return {
        "log_evidence": lambda: evidence,
        "entropy": lambda: -sum((a * a.log() for _, a, _ in weights), arb(0)),
        "js": lambda: sum((a * r - (w + a) * ((1 + r.exp()) / 2).log() for w, a, r in weights), arb(0)) / 2,
        "kl": lambda: sum((a * r for _, a, r in weights), arb(0)),
        "vulnerability": lambda: most([a for _, a, _ in weights]),
        "max_log_ratio": lambda: most(ratios),
        "min_log_ratio": lambda: -most([-r for r in ratios]),
    }[name]()
