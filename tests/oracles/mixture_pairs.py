"""Harsh pairs of one-dimensional Gaussian mixtures, by family; NumPy arrays only.

``FAMILIES`` maps a name to a function without arguments that makes a list of ``Pair``. The weights of all families
but ``inexact`` and ``tiny`` are multiples of 2^-53 that sum to 1 exactly, so that no convention about the missing
mass matters. ``pairs`` and ``priors`` return the numbers that the truth tables store, the same to the last bit on every
machine; what a table does not know yet is made here. To change a stored input, remove it from the tables first.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, log

import numpy as np

from oracles.tables import array_from_text, array_to_text, inputs

__all__ = [
    "EPSILONS", "FAMILIES", "ORDINARY", "Mixture", "Pair", "dyadic", "figure3_prior", "made_priors", "many",
    "pair_from_text", "pair_to_text", "pairs", "prior_to_text", "priors",
]

EPSILONS = np.array([0.0, 1e-12, 1e-3, 0.1, 1.0, 3.0, 10.0, 50.0, 300.0, 1000.0])

# families of ordinary size, where 1e-12 relative is asked of every quantity
ORDINARY = ("random", "shift", "subsampled", "group", "bimodal", "offset")


@dataclass(frozen=True)
class Mixture:
    """Weights, means and standard deviations, float64 arrays of one length."""

    weights: np.ndarray
    means: np.ndarray
    sigmas: np.ndarray

    def __iter__(self):
        return iter((self.weights, self.means, self.sigmas))


@dataclass(frozen=True)
class Pair:
    """Two mixtures with a name; ``epsilons`` is the grid to use instead of ``EPSILONS``, if any."""

    name: str
    p: Mixture
    q: Mixture
    epsilons: tuple = ()

    @property
    def grid(self):
        return np.array(self.epsilons) if len(self.epsilons) else EPSILONS


def mix(weights, means, sigmas):
    means = np.atleast_1d(np.asarray(means, dtype=float))
    sigmas = np.broadcast_to(np.asarray(sigmas, dtype=float), means.shape).copy()
    weights = np.atleast_1d(np.asarray(weights, dtype=float))
    return Mixture(weights, means, sigmas)


def dyadic(weights):
    """The nearest multiples of 2^-53 that sum to 1 exactly."""
    weights = np.asarray(weights, dtype=float)
    counts = [round(float(w) * 2**53) for w in weights / weights.sum()]
    top = int(np.argmax(counts))
    counts[top] += 2**53 - sum(counts)
    return np.array([count / 2**53 for count in counts])


def figure3_prior():
    """Points and weights: 21 points of [-1, 1] with the density of N(0, variance 1/4), normalised in doubles."""
    x = np.linspace(-1.0, 1.0, 21)
    w = np.exp(-2.0 * x * x)
    return x, w / w.sum()


def random_mixture(rng, size):
    return mix(dyadic(rng.dirichlet(np.ones(size)) + 1e-12), rng.normal(0, 3, size), np.exp(rng.normal(0, 0.7, size)))


def random():
    rng = np.random.default_rng(20250101)
    sizes = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (4, 4), (3, 5), (8, 8), (8, 2), (5, 8), (6, 6), (8, 8)]
    return [
        Pair(f"random-{i}-{a}x{b}", random_mixture(rng, a), random_mixture(rng, b)) for i, (a, b) in enumerate(sizes)
    ]


def shift():
    return [
        Pair(f"shift-{d:g}-sd-{s:g}", mix(1.0, d, s), mix(1.0, 0.0, s))
        for d, s in [(1e-6, 1.0), (1e-3, 0.7), (0.1, 1.0), (1.0, 1.0), (-1.0, 0.3), (5.0, 2.0), (40.0, 1.0), (1.0, 1e6)]
    ]


def subsampled():
    out = []
    for rate, sigma in [
        (1e-6, 0.3),
        (1e-6, 1.0),
        (1e-3, 0.5),
        (1e-3, 5.0),
        (0.01, 1.0),
        (0.1, 20.0),
        (0.5, 0.3),
        (0.5, 2.0),
    ]:
        low = 2.0**-53 * round(rate * 2**53)
        many, one = mix([1.0 - low, low], [0.0, 1.0], sigma), mix(1.0, 0.0, sigma)
        out.append(Pair(f"subsampled-{rate:g}-{sigma:g}-remove", many, one))
        out.append(Pair(f"subsampled-{rate:g}-{sigma:g}-add", one, many))
    return out


def group():
    out = []
    for n, rate, sigma in [(2, 0.01, 1.0), (4, 0.3, 2.0), (8, 0.01, 0.8), (16, 0.1, 4.0)]:
        w = dyadic([comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(n + 1)])
        many, one = mix(w, np.arange(n + 1.0), sigma), mix(1.0, 0.0, sigma)
        flipped = mix(w, -np.arange(n + 1.0), sigma)
        out += [
            Pair(f"group-{n}-{rate:g}-{sigma:g}-remove", many, one),
            Pair(f"group-{n}-{rate:g}-{sigma:g}-add", one, many),
            Pair(f"group-{n}-{rate:g}-{sigma:g}-replace", many, flipped),
        ]
    return out


def near():
    rng = np.random.default_rng(7)
    base = random_mixture(rng, 4)
    single = mix(1.0, 0.3, 1.1)
    out = []
    for label, move in [("1e-4", 1e-4), ("1e-8", 1e-8), ("1e-12", 1e-12), ("ulp", 0.0)]:
        for name, p in [("single", single), ("four", base)]:
            direction = np.where(np.arange(p.means.size) % 2 == 0, 1.0, -1.0)
            means = np.nextafter(p.means, np.inf) if move == 0 else p.means + move * direction
            out.append(Pair(f"near-mean-{label}-{name}", Mixture(p.weights, means, p.sigmas), p))
    moved = base.weights.copy()
    step = round(1e-10 * 2**53) / 2**53
    moved[0] += step
    moved[1] -= step
    out.append(Pair("near-weight-1e-10", Mixture(moved, base.means, base.sigmas), base))
    out.append(Pair("near-sigma-1e-9-wider", Mixture(base.weights, base.means, base.sigmas * (1 + 1e-9)), base))
    out.append(Pair("near-sigma-1e-9-narrower", Mixture(base.weights, base.means, base.sigmas * (1 - 1e-9)), base))
    out.append(
        Pair("near-one-component", Mixture(base.weights, base.means + np.array([0, 0, 1e-6, 0]), base.sigmas), base)
    )
    return out


def equal():
    rng = np.random.default_rng(11)
    base = random_mixture(rng, 5)
    order = np.array([3, 0, 4, 1, 2])
    permuted = Mixture(base.weights[order], base.means[order], base.sigmas[order])
    split = Mixture(np.repeat(base.weights / 2, 2), np.repeat(base.means, 2), np.repeat(base.sigmas, 2))
    uneven = Mixture(np.append(base.weights, base.weights[0] / 4), np.append(base.means, base.means[0]),
                     np.append(base.sigmas, base.sigmas[0]))
    uneven.weights[0] *= 0.75
    return [
        Pair("equal-single", mix(1.0, 0.0, 1.0), mix(1.0, 0.0, 1.0)),
        Pair("equal-same", base, base),
        Pair("equal-permuted", base, permuted),
        Pair("equal-split", split, base),
        Pair("equal-split-unevenly", uneven, permuted),
    ]


def tiny():
    out = []
    for w in (1e-300, 1e-30):
        far = mix([1.0, w], [0.0, 60.0], [1.0, 1.0])
        wide = mix([1.0, w], [0.0, 0.0], [1.0, 30.0])
        one = mix(1.0, 0.0, 1.0)
        out += [
            Pair(f"tiny-{w:g}-far-in-p", far, one),
            Pair(f"tiny-{w:g}-far-in-q", one, far),
            Pair(f"tiny-{w:g}-wide-in-p", wide, one),
            Pair(f"tiny-{w:g}-wide-in-q", mix(1.0, 5.0, 1.5), wide),
            Pair(f"tiny-{w:g}-shared", mix([1.0, w], [0.0, 3.0], [1.0, 0.5]), mix([1.0, w], [0.5, 3.0], [1.0, 0.25])),
        ]
    return out


def ratio():
    half = [0.5, 0.5]
    return [
        Pair("ratio-narrow-far", mix([0.75, 0.25], [0.0, 700.0], [1e3, 1e-3]), mix(1.0, 0.0, 1e3)),
        Pair("ratio-narrow-far-in-q", mix(1.0, 0.0, 1e3), mix([0.75, 0.25], [0.0, 700.0], [1e3, 1e-3])),
        Pair("ratio-both", mix(half, [0.0, 1.0], [1e3, 1e-3]), mix(half, [0.0, 1.0], [1e-3, 1e3])),
        Pair("ratio-singles", mix(1.0, 0.0, 1e-3), mix(1.0, 0.0, 1e3)),
        Pair("ratio-singles-back", mix(1.0, 0.0, 1e3), mix(1.0, 0.5, 1e-3)),
        Pair("ratio-needle", mix([1 - 2.0**-20, 2.0**-20], [0.0, 3e4], [1.0, 1e-3]), mix(1.0, 0.0, 1.0)),
        Pair("ratio-needles", mix(half, [-3.0, 3.0], 1e-3), mix([0.25, 0.75], [-3.0, 3.0], [1.1e-3, 1e3])),
    ]


def distant():
    return [
        Pair("distant-150", mix(1.0, 150.0, 1.0), mix(1.0, 0.0, 1.0)),
        Pair("distant-150-two", mix([0.5, 0.5], [150.0, 151.0], [1.0, 0.5]), mix([0.25, 0.75], [0.0, 2.0], [1.0, 1.5])),
        Pair("distant-unequal", mix(1.0, 150.0, 1.0), mix(1.0, 0.0, 2.0)),
        Pair("distant-part", mix([0.5, 0.5], [0.0, 150.0], 1.0), mix(1.0, 0.0, 1.0)),
    ]


def bimodal():
    half = [0.5, 0.5]
    return [
        Pair("bimodal-nested", mix(half, [-3.0, 3.0], 0.5), mix(half, [-1.0, 1.0], 0.4)),
        Pair("bimodal-wide-p", mix(1.0, 0.0, 2.0), mix(half, [-4.0, 4.0], 0.5)),
        Pair("bimodal-kinks", mix(1.0, 0.0, 1.5), mix([0.25, 0.5, 0.25], [-6.0, 0.0, 6.0], 0.25)),
        Pair(
            "bimodal-interlaced",
            mix([0.25] * 4, [-3.0, -1.0, 1.0, 3.0], 0.3),
            mix([0.25] * 4, [-4.0, -2.0, 0.0, 2.0], 0.3),
        ),
    ]


def symmetric():
    one, two = mix(1.0, 0.0, 1.0), mix([0.5, 0.5], [-1.0, 1.0], 1.0)
    narrow, wide = mix(1.0, 0.0, 1.0), mix(1.0, 0.0, 2.0)
    # log p/q = 1/2 - log cosh x has its maximum exactly 1/2; log(2) is the maximum of the second pair, up to rounding
    around = (0.5, np.nextafter(0.5, 0), np.nextafter(0.5, 1), 0.5 - 1e-8, 0.5 + 1e-8, 0.5 - 1e-4, 0.4)
    peak = log(2.0)
    beside = (peak, np.nextafter(peak, 0), np.nextafter(peak, 1), peak - 1e-8, peak - 1e-4, peak + 1e-8)
    return [
        Pair("symmetric-touching", one, two, around),
        Pair("symmetric-back", two, one),
        Pair("symmetric-peak", narrow, wide, beside),
        Pair("symmetric-peak-back", wide, narrow),
        Pair("symmetric-four", mix([0.25] * 4, [-3.0, -1.0, 1.0, 3.0], 1.0), mix([0.5, 0.5], [-2.0, 2.0], 1.0)),
        Pair(
            "symmetric-mirrored", mix([0.75, 0.25], [-1.0, 2.0], [1.0, 0.5]), mix([0.25, 0.75], [-2.0, 1.0], [0.5, 1.0])
        ),
    ]


def scale():
    rng = np.random.default_rng(5)
    p, q = random_mixture(rng, 3), random_mixture(rng, 3)

    def times(m, unit):
        return Mixture(m.weights, m.means * unit, m.sigmas * unit)

    return [Pair(f"scale-{unit:g}", times(p, unit), times(q, unit)) for unit in (1e200, 1e-200, 1e100, 1e-100)]


def offset():
    rng = np.random.default_rng(6)
    p, q = random_mixture(rng, 3), random_mixture(rng, 4)
    return [
        Pair("offset-singles", mix(1.0, 1e8 + 1.0, 1.0), mix(1.0, 1e8, 1.0)),
        Pair(
            "offset-mixtures",
            Mixture(p.weights, p.means + 1e8, np.ones(3)),
            Mixture(q.weights, q.means + 1e8, np.ones(4)),
        ),
        Pair("offset-sigmas", Mixture(p.weights, p.means + 1e8, p.sigmas), Mixture(q.weights, q.means + 1e8, q.sigmas)),
    ]


def inexact():
    """Weights as a user would type them: their doubles sum to 1 up to rounding only."""
    return [
        Pair(
            "inexact-tenths",
            mix([0.1, 0.2, 0.7], [0.0, 1.0, 3.0], [1.0, 0.5, 2.0]),
            mix([0.3, 0.3, 0.4], [0.5, 1.0, 2.0], 1.0),
        ),
        Pair("inexact-thirds", mix([1 / 3] * 3, [0.0, 1.0, 2.0], 1.0), mix([0.1] * 10, np.arange(10.0), 1.5)),
    ]


def made_priors():
    """Named priors (points, weights) for the notions; the weights sum to 1 exactly except in figure 3's."""
    rng = np.random.default_rng(3)
    x, w = figure3_prior()
    return {
        "figure3": (x, w),
        "two": (np.array([-1.0, 1.0]), np.array([0.5, 0.5])),
        "two-uneven": (np.array([0.0, 1.0]), np.array([1 - 2.0**-10, 2.0**-10])),
        "five": (np.array([-2.0, -1.0, 0.0, 0.5, 3.0]), dyadic(rng.dirichlet(np.ones(5)))),
        "close": (np.array([0.0, 1e-9, 1.0]), np.array([0.25, 0.5, 0.25])),
    }


def many(size):
    """One pair of ``size`` components each."""
    rng = np.random.default_rng(size)
    p = mix(dyadic(rng.dirichlet(np.ones(size))), rng.normal(0, 20, size), np.exp(rng.normal(0, 0.3, size)))
    q = mix(dyadic(rng.dirichlet(np.ones(size))), rng.normal(0, 20, size), np.exp(rng.normal(0, 0.3, size)))
    return Pair(f"many-{size}", p, q)


FAMILIES = {
    "random": random, "shift": shift, "subsampled": subsampled, "group": group, "near": near, "equal": equal,
    "tiny": tiny, "ratio": ratio, "distant": distant, "bimodal": bimodal, "symmetric": symmetric, "scale": scale,
    "offset": offset, "inexact": inexact,
}


def pairs(*families):
    """The pairs of the families named, or of all, as stored beside their truths."""
    stored = inputs("hockey_stick")
    made = [pair for name in (families or FAMILIES) for pair in FAMILIES[name]()]
    return [pair_from_text(pair.name, stored[pair.name]) if pair.name in stored else pair for pair in made]


def priors():
    """The priors (points, weights) by name, as stored beside their truths."""
    stored = inputs("notions")
    return {
        name: tuple(array_from_text(stored[name][part]) for part in ("points", "weights")) if name in stored else made
        for name, made in made_priors().items()
    }


def pair_to_text(pair):
    """What a table stores of a pair."""
    laws = {
        side: {part: array_to_text(getattr(law, part)) for part in ("weights", "means", "sigmas")}
        for side, law in (("p", pair.p), ("q", pair.q))
    }
    return laws | ({"epsilons": array_to_text(pair.epsilons)} if len(pair.epsilons) else {})


def pair_from_text(name, entry):
    """The pair behind ``pair_to_text``."""
    p, q = (Mixture(*(array_from_text(entry[side][part]) for part in ("weights", "means", "sigmas"))) for side in "pq")
    return Pair(name, p, q, tuple(array_from_text(entry.get("epsilons", "")).tolist()))


def prior_to_text(prior):
    """What a table stores of a prior."""
    return dict(zip(("points", "weights"), map(array_to_text, prior), strict=True))
