"""What conversions speak of, computed on small channels straight from the definitions. Q[d, w] rows, pi prior; nats."""

import numpy as np


def random_channel(rng, most=6):
    """A channel and a prior, from nearly constant to nearly deterministic, some cells tiny."""
    n, m = rng.integers(2, most + 1, size=2)
    sharp = 10.0 ** rng.uniform(-3, 0.8)
    cells = np.exp(sharp * rng.standard_normal((n, m)) * rng.choice([1.0, 3.0], size=(n, m)))
    prior = rng.dirichlet(np.full(n, 10.0 ** rng.uniform(-0.5, 1.5))) + 1e-9
    return cells / cells.sum(axis=1, keepdims=True), prior / prior.sum()


def ldp(q):
    return float(np.log(q.max(axis=0) / q.min(axis=0)).max())


def ratios(q, pi):
    return q / (pi @ q)


def mbp(q, pi):
    """xi, xi_plus, xi_minus."""
    logs = np.log(ratios(q, pi))
    return float(np.abs(logs).max()), float(logs.max()), float(-logs.min())


def js(p, r):
    m = (p + r) / 2
    return float(sum((x * np.log(x / m, where=x > 0, out=np.zeros_like(x))).sum() for x in (p, r)) / 2)


def abp(q, pi, law, belief=None):
    after = (ratios(q, pi) * law).sum(axis=1) * pi
    return float(np.sqrt(max(js(after, pi if belief is None else belief), 0.0)))


def kl(p, r):
    return float((p * np.log(p / r)).sum())


def pointwise(q, pi):
    return max(kl(row, pi @ q) for row in q)


def information(q, pi):
    return float(sum(weight * kl(row, pi @ q) for weight, row in zip(pi, q, strict=True)))


def capacity_below(q, steps=2000):
    """Blahut and Arimoto's lower bound."""
    pi = np.full(len(q), 1 / len(q))
    for _ in range(steps):
        gains = np.exp([kl(row, pi @ q) for row in q])
        pi = pi * gains / (pi @ gains)
    return information(q, pi)


def hockey_stick(p, r, epsilon):
    return float(np.maximum(p - np.exp(min(epsilon, 700.0)) * r, 0.0).sum())


def renyi(p, r, order):
    if order == 1:
        return kl(p, r)
    terms = order * np.log(p) + (1 - order) * np.log(r)
    return float((terms.max() + np.log(np.exp(terms - terms.max()).sum())) / (order - 1))


def pairs(q):
    return [(q[i], q[j]) for i in range(len(q)) for j in range(len(q)) if i != j]


def events(m):
    """Every set of releases as a mask."""
    return (np.arange(1, 2**m)[:, None] >> np.arange(m)) & 1 == 1
