#!/usr/bin/env python3
"""Compute the truths that ``fastpriv.datasets.mixture_tasks`` and ``composition_tasks`` ship, and write their files.

    python tools/truths.py            # compute all, write both files, and print a table of what was reached
    python tools/truths.py --check    # compute all, and compare with the files

All parameters are dyadic rationals of few bits, so that every sum and product on the way from a task to the
one-dimensional quantities of its truth is exact; ``exact_product`` refuses what is not. Where nothing reduces a task to
one dimension, it is sampled, with the seed ``SEED`` and the CRC-32 of its name, until half the width of the interval
at ``CONFIDENCE`` is at most ``TOLERANCE``.

Settings of compositions come from a list of releases: epsilon is that at which delta is about a target, cut to three
digits. A setting whose delta is known less well than ``MAX_DELTA_WIDTH`` is refused.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

import fastpriv
from fastpriv import Estimate, GaussianMixture
from fastpriv.base.estimate import KINDS
from fastpriv.divergences import label_information
from fastpriv.pairs import PoissonSampled
from fastpriv.sampling import Sampling

FOLDER = Path(__file__).parents[1] / "fastpriv" / "studies" / "datasets"
SEED = 20_261
CONFIDENCE = 0.999
TOLERANCE = 2e-5  # half the width of a sampled truth, at most
MAX_CERTIFIED_WIDTH = 1e-11  # of a truth that is proved
MAX_DELTA_WIDTH = 1e-9  # of a true delta
MAX_RELATIVE_WIDTH = 1e-7  # of a true delta, relative to it
TARGETS = (1e-2, 1e-5, 1e-12, 1e-30)  # deltas near which a composition is asked for
LEAST_DELTA = 1e-300  # smaller ones have few digits as doubles

UNIT = 16  # means and standard deviations of channels are multiples of 1/16
NOISE = 12  # standard deviation of the noise of channels, in these units
INPUT_SIGMAS = (5, 9, 16, 35)  # of inputs, in these units: with the noise they give 13, 15, 20 and 37


class Task(NamedTuple):
    """A task without its truth, and what computes the truth."""

    name: str
    quantity: str
    description: str
    p: GaussianMixture
    q: GaussianMixture | None
    x_dimension: int | None
    truth: Callable[[], Estimate]


class Line(NamedTuple):
    """A one-dimensional input of a channel: weights, means and standard deviations in units of 1/16."""

    weights: tuple[float, ...]
    means: tuple[int, ...]
    sigmas: tuple[int, ...]


# -- exact arithmetic ------------------------------------------------------------------------------------------------


def exact_product(*matrices: Any) -> np.ndarray:
    """Product of matrices of doubles, in rational arithmetic; an error if an entry is no double."""
    result = [[Fraction(float(x)) for x in row] for row in matrices[0]]
    for matrix in matrices[1:]:
        columns = [[Fraction(float(x)) for x in column] for column in np.transpose(matrix)]
        result = [[sum((x * y for x, y in zip(row, column, strict=True)), Fraction(0)) for column in columns]
                  for row in result]
    doubles = np.array([[float(x) for x in row] for row in result])
    if any(Fraction(float(x)) != y for row, exact in zip(doubles, result, strict=True)
           for x, y in zip(row, exact, strict=True)):
        raise ValueError("a product is no double: take parameters of fewer bits")
    return doubles


def total(terms: list[tuple[int, Estimate]], method: str) -> Estimate:
    """Sum of estimates times integers, rounded outward."""
    sums = [Fraction(0)] * 3
    for factor, term in terms:
        numbers = (term.value, term.lower, term.upper) if factor > 0 else (term.value, term.upper, term.lower)
        sums = [s + factor * Fraction(float(x)) for s, x in zip(sums, numbers, strict=True)]
    value, lower, upper = (float(s) for s in sums)
    lower, upper = math.nextafter(lower, -math.inf), math.nextafter(upper, math.inf)
    kind = max((term.kind for _, term in terms), key=KINDS.index)
    return Estimate(value, lower, upper, kind=kind, unit="nats", method=method)


def mixing(size: int) -> np.ndarray:
    """Integer matrix of determinant 1 with small entries."""
    lower, upper = np.eye(size), np.eye(size)
    for i in range(1, size):
        lower[i, i - 1] = (-1) ** i
        upper[i - 1, i] = 1.0 if i % 3 else -1.0
    return exact_product(lower, upper)


# -- tasks of mutual information -------------------------------------------------------------------------------------


def sampling(name: str) -> Sampling:
    """Options of a sampled truth."""
    return Sampling(confidence=CONFIDENCE, rtol=0.0, atol=TOLERANCE, max_samples=10**10, max_seconds=math.inf,
                    rng=[SEED, crc32(name.encode())], n_jobs=1)


def line_information(line: Line, noise: int = NOISE) -> Estimate:
    """I(X; X + N) of a one-dimensional input, as h(X + N) - h(N)."""
    roots = [math.isqrt(s * s + noise * noise) for s in line.sigmas]
    if any(root * root != s * s + noise * noise for root, s in zip(roots, line.sigmas, strict=True)):
        raise ValueError(f"{line} and noise {noise} give a standard deviation that is no integer")
    means, sigmas = np.array(line.means) / UNIT, np.array(roots) / UNIT
    output = fastpriv.entropy(GaussianMixture(line.weights, means, sigmas), certified=True)
    return total([(1, output), (-1, fastpriv.entropy(GaussianMixture.single(0.0, noise / UNIT)))], "h(Y) - h(N)")


def joint_of_lines(lines: list[Line], mix: bool) -> GaussianMixture:
    """Joint distribution of (X, Y), Y = X + N, of independent coordinates, mixed by integer matrices if asked for."""
    d = len(lines)
    left = mixing(d) if mix else np.eye(d)
    right = np.flip(mixing(d)) if mix else np.eye(d)
    matrix = np.block([[left, np.zeros((d, d))], [np.zeros((d, d)), right]])
    weights, means, covariances = [], [], []
    for index in np.ndindex(*(len(line.weights) for line in lines)):
        weights.append(math.prod(line.weights[i] for line, i in zip(lines, index, strict=True)))
        mean = np.array([line.means[i] for line, i in zip(lines, index, strict=True)]) / UNIT
        square = np.diag([line.sigmas[i] ** 2 for line, i in zip(lines, index, strict=True)]) / UNIT**2
        noise = np.eye(d) * NOISE**2 / UNIT**2
        means.append(exact_product(matrix, np.concatenate([mean, mean])[:, None])[:, 0])
        covariances.append(exact_product(matrix, np.block([[square, square], [square, square + noise]]), matrix.T))
    shared = all(np.array_equal(c, covariances[0]) for c in covariances)
    return GaussianMixture(weights, means, covariances=covariances[0] if shared else np.array(covariances))


def channel(name: str, description: str, lines: list[Line], mix: bool = False) -> Task:
    """Task of a channel Y = X + N of independent coordinates."""
    truth = lambda: total([(1, line_information(line)) for line in lines], "sum of h(Y) - h(N) over coordinates")
    return Task(name, "mutual_information", description, joint_of_lines(lines, mix), None, len(lines), truth)


def linear_channel(name: str, description: str, line: Line, matrix: np.ndarray, noise: int, truth: Estimate) -> Task:
    """Task of a channel Y = A X + N with white noise and an input whose coordinates all follow one line with one sigma.

    A column of A: X is that line, repeated to several outputs. A row: X = (U, 0, ..., 0) plus white Gaussian noise.
    """
    outputs, inputs = matrix.shape
    a = np.vstack([np.eye(inputs), matrix])
    square = np.eye(inputs) * line.sigmas[0] ** 2 / UNIT**2
    covariance = exact_product(a, square, a.T)
    covariance[inputs:, inputs:] += np.eye(outputs) * noise**2 / UNIT**2
    start = np.eye(inputs)[:, :1]
    means = [exact_product(a, start * (mean / UNIT))[:, 0] for mean in line.means]
    joint = GaussianMixture(line.weights, means, covariances=covariance)
    return Task(name, "mutual_information", description, joint, None, inputs, lambda: truth)


def product_of_marginals(p: GaussianMixture, x_dimension: int) -> GaussianMixture:
    """Distribution of independent X and Y with the marginals of a joint mixture."""
    d, k = p.dimension, len(p)
    if p.covariances is not None:
        stack = np.broadcast_to(p.covariances, (k, d, d))
    else:
        stack = np.array([np.diag(np.broadcast_to(s, d) ** 2) for s in p.sigmas])
    weights, means, covariances = [], [], []
    for i in range(k):
        for j in range(k):
            covariance = np.zeros((d, d))
            covariance[:x_dimension, :x_dimension] = stack[i, :x_dimension, :x_dimension]
            covariance[x_dimension:, x_dimension:] = stack[j, x_dimension:, x_dimension:]
            weights.append(float(p.weights[i] * p.weights[j]))
            means.append(np.concatenate([p.means[i, :x_dimension], p.means[j, x_dimension:]]))
            covariances.append(covariance)
    return GaussianMixture(weights, means, covariances=np.array(covariances))


def joint(name: str, description: str, p: GaussianMixture, x_dimension: int) -> Task:
    """Task of a joint distribution whose mutual information is KL(P_XY || P_X P_Y)."""
    certified = len(p) == 1
    options = {"certified": True} if certified else {"sampling": sampling(name)}
    truth = lambda: fastpriv.kl_divergence(p, product_of_marginals(p, x_dimension), **options)
    return Task(name, "mutual_information", description, p, None, x_dimension, truth)


def gaussian_joint(name: str, description: str, covariance: Any, x_dimension: int) -> Task:
    """Task of one joint normal distribution."""
    covariance = np.array(covariance, dtype=float)
    normal = GaussianMixture.single(np.zeros(len(covariance)), covariance=covariance)
    return joint(name, description, normal, x_dimension)


def independent(name: str, description: str, p: GaussianMixture, x_dimension: int) -> Task:
    """Task of independent X and Y."""
    truth = lambda: Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="independent")
    return Task(name, "mutual_information", description, p, None, x_dimension, truth)


def paired(correlations: list[float], extra: int = 0) -> np.ndarray:
    """Covariance of X and Y with these correlations of X_i and Y_i, and this many pairs without."""
    d = len(correlations) + extra
    covariance, r = np.eye(2 * d), [*correlations, *[0.0] * extra]
    for i in range(d):
        covariance[i, d + i] = covariance[d + i, i] = r[i]
    return covariance


def grown(size: int, vectors: Any, scale: float = 1.0) -> np.ndarray:
    """Identity plus outer products of integer vectors, times a power of two."""
    vectors = np.array(vectors, dtype=float).reshape(-1, size)
    return np.eye(size) + scale * exact_product(vectors.T, vectors)


def integers(name: str, low: int, high: int, shape: tuple[int, ...]) -> np.ndarray:
    """Integers from low to high, from the name: x -> x^2 + x on 32 bits of a CRC, the same on every machine."""
    state, numbers = crc32(name.encode()), []
    for _ in range(math.prod(shape)):
        state = (state * 1_664_525 + 1_013_904_223) % 2**32
        numbers.append(low + (state >> 16) % (high - low + 1))
    return np.array(numbers, dtype=float).reshape(shape)


def circle(count: int, radius: float) -> np.ndarray:
    """Points on a circle, in units of 1/64."""
    angles = 2 * math.pi * np.arange(count) / count
    return np.round(64 * radius * np.column_stack([np.cos(angles), np.sin(angles)])) / 64 + 0.0


TWO = Line((0.5, 0.5), (-24, 24), (9, 9))
SKEWED = Line((0.25, 0.75), (-32, 16), (5, 16))
OUTLIERS = Line((0.9375, 0.0625), (0, 0), (5, 35))
FOUR = Line((0.25,) * 4, (-48, -16, 16, 48), (5,) * 4)
ONE = Line((1.0,), (0,), (16,))


def mutual_information_tasks() -> Iterator[Task]:
    """6 joint normal distributions, 10 channels, 9 mixtures as joint distributions, and one without information."""
    yield gaussian_joint("gaussian-weak-1-1", "normal, correlation 1/4", [[1, 0.25], [0.25, 1]], 1)
    r = 1023 / 1024
    yield gaussian_joint("gaussian-strong-1-1", "normal, correlation 1023/1024", [[1, r], [r, 1]], 1)
    yield gaussian_joint("gaussian-pairs-3-3", "normal, correlations 3/4, 1/2 and 0", paired([0.75, 0.5, 0.0]), 3)
    yield gaussian_joint("gaussian-dense-5-5", "normal, I + 1 1'/4", grown(10, np.ones(10), 0.25), 5)
    yield gaussian_joint("gaussian-sparse-25-25", "normal, 2 of 25 pairs have the correlation 3/4",
                         paired([0.75, 0.75], 23), 25)
    v = integers("gaussian-factor-1-24", -1, 1, (2, 25))
    yield gaussian_joint("gaussian-factor-1-24", "normal, I plus two factors", grown(25, v, 0.25), 1)
    yield channel("channel-two-1-1", "Y = X + N, X with two peaks", [TWO])
    yield channel("channel-skewed-1-1", "Y = X + N, X of a narrow and a wide component", [SKEWED])
    yield channel("channel-outliers-1-1", "Y = X + N, 1/16 of X is wide", [OUTLIERS])
    yield channel("channel-four-1-1", "Y = X + N, X with four narrow peaks", [FOUR])
    yield channel("channel-two-2-2", "Y = X + N, independent coordinates with two peaks and with outliers",
                  [TWO, OUTLIERS])
    yield channel("channel-mixed-3-3", "Y = X + N of three coordinates, two with peaks, mixed by integer matrices",
                  [TWO, SKEWED, ONE], mix=True)
    yield channel("channel-mixed-10-10", "Y = X + N of ten coordinates, two with peaks, mixed by integer matrices",
                  [TWO, OUTLIERS, *[ONE] * 8], mix=True)
    yield channel("channel-mixed-25-25", "Y = X + N of 25 coordinates, one with peaks, mixed by integer matrices",
                  [TWO, *[ONE] * 24], mix=True)
    row = np.array([[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
    line = Line((0.25, 0.75), (-32, 16), (3, 3))  # nine coordinates of 3/16 sum to 9/16
    yield linear_channel("channel-sum-9-1", "Y = the sum of nine inputs + N, the first with two peaks",
                         line, row, NOISE, line_information(Line(line.weights, line.means, (9, 9))))
    yield linear_channel("channel-repeated-1-16", "Y = X 1 + N, one input with four peaks seen 16 times",
                         FOUR, np.ones((16, 1)), 4 * NOISE, line_information(FOUR))
    cross = [[[1, 0.875], [0.875, 1]], [[1, -0.875], [-0.875, 1]]]
    yield joint("mixture-cross-1-1", "two crossed normal distributions",
                GaussianMixture([0.5, 0.5], np.zeros((2, 2)), covariances=cross), 1)
    fence = [[2.0 * i, 2.0 * (i % 2)] for i in range(8)]
    yield joint("mixture-fence-1-1", "eight components in zigzag", GaussianMixture([0.125] * 8, fence, 0.5), 1)
    yield joint("mixture-ring-1-1", "eight components on a circle",
                GaussianMixture([0.125] * 8, circle(8, 2.0), 0.5), 1)
    wide = [grown(2, [1, 1], 4.0), 64 * np.eye(2)]
    yield joint("mixture-outliers-1-1", "a correlated normal distribution, 1/16 of wide outliers",
                GaussianMixture([0.9375, 0.0625], np.zeros((2, 2)), covariances=wide), 1)
    four = np.array([[x, y] for x in (-2.0, 2.0) for y in (-2.0, 2.0)])
    tilts = [grown(2, [1, s], 1.0) for s in (1, -1, -1, 1)]
    yield joint("mixture-tilted-1-1", "four tilted components on a square",
                GaussianMixture([0.25] * 4, four, covariances=np.array(tilts)), 1)
    for dx, dy, count, scale in ((2, 2, 3, 0.5), (1, 4, 3, 0.5), (5, 5, 2, 0.25)):
        name = f"mixture-dense-{dx}-{dy}"
        d = dx + dy
        covariances = [grown(d, integers(f"{name} {i}", -1, 1, (2, d)), scale) for i in range(count)]
        weights = [0.5, 0.25, 0.25] if count == 3 else [0.5, 0.5]
        means = integers(name, -2, 2, (count, d)) / (2 if d < 10 else 4)
        yield joint(name, f"{count} components with factors of their own",
                    GaussianMixture(weights, means, covariances=np.array(covariances)), dx)
    yield joint("mixture-means-25-25", "three means, X and Y independent for each of them",
                small("mixture-means-25-25", 50, 3, 1.0, 0.25), 25)
    product = GaussianMixture([0.25] * 4, [[x, x, y, y] for x in (-1.0, 1.0) for y in (-2.0, 2.0)], 0.5)
    yield independent("mixture-independent-2-2", "independent X and Y, each with two peaks", product, 2)


# -- the other tasks ---------------------------------------------------------------------------------------------------


def labels(name: str, description: str, p: GaussianMixture, certified: bool = True) -> Task:
    """Task of a label and a sample."""
    options = {"certified": True} if certified else {"sampling": sampling(name)}
    return Task(name, "label_information", description, p, None, None, lambda: label_information(p, **options))


def divergence(name: str, quantity: str, description: str, p: GaussianMixture, q: GaussianMixture,
               certified: bool = True) -> Task:
    """Task of a divergence."""
    function = getattr(fastpriv, quantity)
    proof = {"certified": True} if quantity == "kl_divergence" else {}
    options = proof if certified else {"sampling": sampling(name)}
    return Task(name, quantity, description, p, q, None, lambda: function(p, q, **options))


def entropy(name: str, description: str, p: GaussianMixture, certified: bool = True) -> Task:
    """Task of a differential entropy."""
    options = {"certified": True} if certified else {"sampling": sampling(name)}
    return Task(name, "entropy", description, p, None, None, lambda: fastpriv.entropy(p, **options))


def product(lines: list[GaussianMixture]) -> GaussianMixture:
    """Product of one-dimensional mixtures."""
    weights, means, sigmas = [], [], []
    for index in np.ndindex(*(len(line) for line in lines)):
        weights.append(math.prod(float(line.weights[i]) for line, i in zip(lines, index, strict=True)))
        means.append([line.means[i] for line, i in zip(lines, index, strict=True)])
        sigmas.append([line.sigmas[i] for line, i in zip(lines, index, strict=True)])
    return GaussianMixture(weights, means, sigmas)


def sum_over(lines: list[tuple[GaussianMixture, ...]], function: Callable[..., Estimate]) -> Callable[[], Estimate]:
    """Sum of a quantity over independent coordinates."""
    return lambda: total([(1, function(*line, certified=True)) for line in lines], "sum over coordinates")


def small(name: str, dimension: int, count: int, sigma: Any, unit: float = 0.5) -> GaussianMixture:
    """Mixture of 2, 3, 5 or 10 components whose means are small multiples of a unit."""
    weights = {2: [0.5, 0.5], 3: [0.5, 0.25, 0.25], 5: [0.25, 0.25, 0.25, 0.125, 0.125],
               10: [0.125] * 6 + [0.0625] * 4}[count]
    return GaussianMixture(weights, integers(name, -2, 2, (count, dimension)) * unit, sigma)


def collinear(name: str, dimension: int, weights: list[float], positions: list[float]) -> GaussianMixture:
    """Mixture with means on a line and one full covariance, which depend on the name and the dimension."""
    u = integers(name, -2, 2, (dimension,)) / 4
    return GaussianMixture(weights, np.outer(positions, u), covariances=grown(dimension, 4 * u, 1 / 64))


def other_tasks() -> Iterator[Task]:
    """10 tasks of labels, 9 of KL divergences, 7 of total variation, 8 of entropies."""
    univariate = GaussianMixture([0.5, 0.25, 0.25], [-2.0, 0.0, 3.0], [0.5, 1.0, 2.0])
    other = GaussianMixture([0.75, 0.25], [1.0, -1.0], [1.0, 0.75])
    keyed = GaussianMixture([0.25, 0.25, 0.5], [-1.0, 1.0, 4.0], 1.0)

    yield labels("labels-two-1", "two components", GaussianMixture([0.5, 0.5], [-1.0, 1.0], 1.0))
    yield labels("labels-rare-1", "one component of weight 1/1024",
                 GaussianMixture([1 / 1024, 1023 / 1024], [4.0, 0.0], 1.0))
    yield labels("labels-levels-1", "16 equal levels", GaussianMixture([1 / 16] * 16, np.arange(16.0), 0.5))
    yield labels("labels-widths-1", "three components of different widths", univariate)
    line = np.outer([0.0, 1.0, 2.0], np.ones(10)) * 0.5
    yield labels("labels-line-10", "three means on a line", GaussianMixture([0.5, 0.25, 0.25], line, 1.0))
    line = np.outer([-1.0, 0.0, 0.5, 2.0], integers("labels-line-50", -2, 2, (50,)) / 8)
    yield labels("labels-line-50", "four means on a line", GaussianMixture([0.25] * 4, line, 1.0))
    levels, skewed = GaussianMixture([0.25] * 4, [-3.0, -1.0, 1.0, 3.0], 1.0), keyed
    yield Task("labels-grid-2", "label_information", "a grid of 4 x 3 means", product([levels, skewed]), None, None,
               sum_over([(levels,), (skewed,)], label_information))
    yield labels("labels-circle-2", "eight means on a circle", GaussianMixture([0.125] * 8, circle(8, 2.0), 1.0), False)
    yield labels("labels-five-10", "five components in ten dimensions", small("labels-five-10", 10, 5, 1.0), False)
    yield labels("labels-ten-50", "ten components in 50 dimensions", small("labels-ten-50", 50, 10, 2.0), False)

    kl = "kl_divergence"
    yield divergence("kl-one-1", kl, "mixtures of three and two components", univariate, other)
    outliers = GaussianMixture([1023 / 1024, 1 / 1024], [0.0, 6.0], 1.0)
    yield divergence("kl-outliers-1", kl, "1/1024 of P is where Q has next to nothing", outliers,
                     GaussianMixture.single(0.0, 1.0))
    wide = grown(5, integers("kl-normal-5", -1, 1, (3, 5)), 0.5)
    yield divergence("kl-normal-5", kl, "normal, different covariances", GaussianMixture.single(np.zeros(5),
                     covariance=wide), GaussianMixture.single(np.full(5, 0.5), 1.25))
    yield divergence("kl-normal-50", kl, "normal, different diagonal covariances", GaussianMixture.single(np.zeros(50),
                     np.arange(32, 82) / 64), GaussianMixture.single(np.full(50, 0.125), 0.875))
    p, q = collinear("kl-line-50", 50, [0.5, 0.5], [0, 1]), collinear("kl-line-50", 50, [0.25, 0.75], [2, -1])
    yield divergence("kl-line-50", kl, "means on a line, one full covariance", p, q)
    pairs = [(univariate, other), (other, keyed)]
    yield Task("kl-product-2", kl, "independent coordinates with peaks", product([univariate, other]),
               product([other, keyed]), None, sum_over(pairs, fastpriv.kl_divergence))
    yield divergence("kl-two-2", kl, "mixtures of two components of different widths",
                     GaussianMixture([0.5, 0.5], [[0.0, 0.0], [2.0, 1.0]], [1.0, 2.0]),
                     GaussianMixture([0.5, 0.5], [[1.0, 1.0], [-1.0, 2.0]], [1.5, 1.0]), False)
    yield divergence("kl-mixtures-10", kl, "three and two components of different widths",
                     small("kl-mixtures-10 p", 10, 3, [1.0, 1.5, 1.25]), small("kl-mixtures-10 q", 10, 2, [1.5, 1.25]),
                     False)
    yield divergence("kl-mixtures-20", kl, "three and two components of one width",
                     small("kl-mixtures-20 p", 20, 3, 1.0, 0.25), small("kl-mixtures-20 q", 20, 2, 1.0, 0.25), False)

    tv = "total_variation"
    yield divergence("tv-one-1", tv, "mixtures of three and two components", univariate, other)
    yield divergence("tv-close-1", tv, "means 1/64 apart", GaussianMixture([0.5, 0.5], [0.0, 3.0], 1.0),
                     GaussianMixture([0.5, 0.5], [1 / 64, 3.0], 1.0))
    yield divergence("tv-shift-50", tv, "normal, one covariance", GaussianMixture.single(np.zeros(50), 1.0),
                     GaussianMixture.single(np.full(50, 0.25), 1.0))
    wide = grown(10, integers("tv-normal-10", -1, 1, (2, 10)), 0.25)
    yield divergence("tv-normal-10", tv, "normal, different covariances", GaussianMixture.single(np.zeros(10),
                     covariance=wide), GaussianMixture.single(np.full(10, 0.25), 1.0))
    p, q = collinear("tv-line-20", 20, [0.5, 0.5], [0, 1]), collinear("tv-line-20", 20, [0.25, 0.75], [2, -1])
    yield divergence("tv-line-20", tv, "means on a line, one full covariance", p, q)
    yield divergence("tv-two-2", tv, "mixtures of two components of different widths",
                     GaussianMixture([0.5, 0.5], [[0.0, 0.0], [2.0, 1.0]], [1.0, 2.0]),
                     GaussianMixture([0.5, 0.5], [[1.0, 1.0], [-1.0, 2.0]], [1.5, 1.0]), False)
    yield divergence("tv-mixtures-10", tv, "three and two components of different widths",
                     small("tv-mixtures-10 p", 10, 3, [1.0, 1.5, 1.25]), small("tv-mixtures-10 q", 10, 2, [1.5, 1.25]),
                     False)

    yield entropy("entropy-one-1", "three components of different widths", univariate)
    yield entropy("entropy-narrow-1", "one component of 1/1024 of the width of the other",
                  GaussianMixture([0.5, 0.5], [0.0, 0.5], [1.0, 1 / 1024]))
    yield entropy("entropy-normal-50", "normal, I plus two factors",
                  GaussianMixture.single(np.zeros(50), covariance=grown(50, integers("h", -1, 1, (2, 50)), 0.25)))
    yield entropy("entropy-line-20", "means on a line, one full covariance",
                  collinear("entropy-line-20", 20, [0.5, 0.25, 0.25], [0, 1, 4]))
    yield Task("entropy-product-3", "entropy", "independent coordinates with peaks",
               product([univariate, other, keyed]), None, None,
               sum_over([(univariate,), (other,), (keyed,)], fastpriv.entropy))
    yield entropy("entropy-circle-2", "eight components on a circle",
                  GaussianMixture([0.125] * 8, circle(8, 2.0), 0.5), False)
    covariances = np.array([grown(4, integers(f"entropy-dense-4 {i}", -1, 1, (2, 4)), 0.5) for i in range(3)])
    yield entropy("entropy-dense-4", "three components with factors of their own",
                  GaussianMixture([0.5, 0.25, 0.25], integers("entropy-dense-4", -2, 2, (3, 4)),
                                  covariances=covariances), False)
    yield entropy("entropy-mixture-10", "three components of different widths",
                  small("entropy-mixture-10", 10, 3, [1.0, 1.5, 1.25]), False)


def mixture_definitions() -> list[Task]:
    """All tasks of mixtures."""
    return [*mutual_information_tasks(), *other_tasks()]


def plain(p: GaussianMixture) -> dict[str, Any]:
    """Arguments of the constructor, in plain types."""
    spread = {"sigmas": p.sigmas} if p.covariances is None else {"covariances": p.covariances}
    if p.covariances is not None and len(p.covariances) == 1:
        spread = {"covariances": p.covariances[0]}
    arrays = {"weights": p.weights, "means": p.means, **spread}
    return {name: _integers_without_points(array.tolist()) for name, array in arrays.items()}


def mixture_entry(task: Task) -> dict[str, Any]:
    """What the file says of a task, computed."""
    truth = task.truth()
    width = float(truth.upper - truth.lower)
    if width > (2 * TOLERANCE if truth.kind == "statistical" else MAX_CERTIFIED_WIDTH) or truth.kind == "heuristic":
        raise ValueError(f"the truth of {task.name} is {truth!r}, {width} wide")
    if truth.lower < 0.0 and task.quantity != "entropy":
        raise ValueError(f"the truth of {task.name} is {truth!r}")
    entry: dict[str, Any] = {"name": task.name, "quantity": task.quantity, "description": task.description}
    entry |= {"truth": fields_of(truth)} | ({"x_dimension": task.x_dimension} if task.x_dimension else {})
    return entry | {"p": plain(task.p)} | ({"q": plain(task.q)} if task.q else {})


def mixture_entries() -> list[dict[str, Any]]:
    """All tasks of mixtures, with a line on each as it is computed."""
    entries = []
    for task in mixture_definitions():
        start = time.process_time()
        entries.append(mixture_entry(task))
        truth = entries[-1]["truth"]
        print(f"{task.name:24}{truth['kind']:12}{truth['value']:.10g} +- {(truth['upper'] - truth['lower']) / 2:.1e} "
              f"{time.process_time() - start:.1f} s", flush=True)
    return entries


def fields_of(estimate: Estimate) -> dict[str, Any]:
    """Arguments of the constructor, in plain types."""
    numbers = {name: float(getattr(estimate, name)) for name in ("value", "lower", "upper")}
    texts = {"kind": estimate.kind, "unit": estimate.unit, "method": estimate.method}
    return numbers | texts | ({"confidence": estimate.confidence} if estimate.confidence else {})


def _integers_without_points(numbers: Any) -> Any:
    if isinstance(numbers, list):
        return [_integers_without_points(x) for x in numbers]
    return int(numbers) if numbers == int(numbers) else numbers


# -- compositions ------------------------------------------------------------------------------------------------------

Steps = list[tuple[str, float, float, int]]  # mechanism, scale, rate, count


def composition_settings() -> Iterator[tuple[str, Steps, str, tuple[float, ...] | None]]:
    """Kind, releases, direction and epsilons, None for those of the targets: 75 compositions, four epsilons each."""
    for sigma, count in ((0.5, 1), (1.0, 1), (3.0, 1), (2.0, 10), (4.0, 100), (20.0, 1000), (100.0, 10_000),
                         (1000.0, 1_000_000)):
        yield "gaussian", [("gaussian", sigma, 1.0, count)], "worst", None
    sampled = [
        (0.5, 0.02, 50), (0.5, 0.001, 1000), (0.6, 0.001, 10_000), (0.7, 0.01, 500), (0.8, 0.004, 2500),
        (0.8, 1e-4, 100_000), (1.0, 0.01, 1000), (1.0, 0.001, 10_000), (1.0, 0.1, 20), (1.0, 0.5, 10),
        (1.0, 1e-5, 100_000), (1.1, 0.01, 3000), (1.2, 0.05, 200), (1.5, 0.02, 2000), (2.0, 0.01, 10_000),
        (2.0, 0.2, 100), (2.0, 1e-4, 1_000_000), (2.5, 0.9, 5), (3.0, 0.05, 1000), (3.0, 0.5, 50),
        (4.0, 0.1, 1000), (5.0, 0.9, 100), (5.0, 0.01, 100_000), (8.0, 0.25, 2000), (10.0, 0.01, 1_000_000),
        (10.0, 0.5, 1000), (20.0, 0.1, 100_000), (100.0, 0.5, 100), (100.0, 0.1, 1_000_000),
    ]
    for sigma, rate, count in sampled:
        yield "sampled-gaussian", [("gaussian", sigma, rate, count)], "worst", None
    yield "sampled-gaussian", [("gaussian", 1.0, 1e-6, 10_000)], "worst", (0.0, 1e-5, 5e-5, 1e-4)
    for sigma, rate, count in ((1.0, 0.01, 1000), (2.0, 0.2, 100), (5.0, 0.9, 100), (3.0, 0.5, 50)):
        for direction in ("forward", "backward"):
            yield f"sampled-gaussian-{direction}", [("gaussian", sigma, rate, count)], direction, None
    for scale, count in ((1.0, 4), (2.0, 10), (5.0, 20), (10.0, 100), (50.0, 1000), (200.0, 10_000),
                         (1000.0, 1_000_000)):
        yield "laplace", [("laplace", scale, 1.0, count)], "worst", None
    for scale, rate, count in ((1.0, 0.1, 4), (2.0, 0.1, 10), (1.0, 0.5, 2), (4.0, 0.5, 5), (2.0, 0.25, 5)):
        yield "sampled-laplace", [("laplace", scale, rate, count)], "worst", (0.0, 0.1, 0.2, 0.3)
    mixed: list[Steps] = [
        [("gaussian", 1.0, 0.01, 500), ("gaussian", 8.0, 1.0, 2)],
        [("gaussian", 1.0, 0.01, 500), ("gaussian", 2.0, 0.02, 1000)],
        [("gaussian", 0.8, 0.004, 1000), ("gaussian", 1.2, 0.004, 1000), ("gaussian", 2.0, 0.004, 1000)],
        [("gaussian", 1.0, 0.001, 10_000), ("gaussian", 10.0, 1.0, 1)],
        [("gaussian", 2.0, 1e-4, 100_000), ("gaussian", 1.0, 0.1, 10)],
        [("gaussian", 5.0, 0.9, 10), ("gaussian", 5.0, 0.1, 1000)],
        [("gaussian", 50.0, 0.5, 1000), ("gaussian", 30.0, 1.0, 10)],
        [("gaussian", 3.0, 1.0, 1), ("gaussian", 4.0, 1.0, 2), ("gaussian", 6.0, 1.0, 3)],
        [("gaussian", 4.0, 1.0, 1), ("laplace", 4.0, 1.0, 1)],
        [("gaussian", 8.0, 1.0, 4), ("laplace", 20.0, 1.0, 10)],
        [("gaussian", 50.0, 1.0, 100), ("laplace", 100.0, 1.0, 1000)],
        [("gaussian", 1.5, 0.02, 500), ("laplace", 50.0, 1.0, 20)],
        [("gaussian", 10.0, 0.5, 500), ("gaussian", 1.0, 0.001, 1000), ("laplace", 100.0, 1.0, 100)],
        [("gaussian", 1.0, 0.01, 500), ("laplace", 20.0, 1.0, 10)],
        [("gaussian", 1.0, 0.01, 500), ("gaussian", 8.0, 1.0, 2), ("laplace", 20.0, 1.0, 10)],
        [("gaussian", 2.0, 0.05, 1000), ("laplace", 10.0, 1.0, 2)],
        [("gaussian", 0.7, 0.001, 2000), ("gaussian", 20.0, 1.0, 5), ("laplace", 50.0, 1.0, 20)],
    ]
    for steps in mixed:
        yield "mixed", steps, "worst", None


def pair_of(step: Any) -> Any:
    """The mechanism of a step."""
    mechanism, scale, rate, _ = step
    if mechanism == "laplace":
        noise = fastpriv.LaplaceMechanism(scale)
        return noise if rate == 1.0 else PoissonSampled(noise, rate)
    return fastpriv.GaussianMechanism(scale, 1.0) if rate == 1.0 else fastpriv.PoissonSampledGaussian(scale, rate)


def composition_of(steps: Any) -> Any:
    """The composition of steps."""
    return fastpriv.compose([pair_of(step) for step in steps], [step[3] for step in steps])


def cut(epsilon: float) -> float:
    """An epsilon cut to three significant digits; 0 where delta is below its target at any epsilon."""
    if epsilon <= 0.0:
        return 0.0
    exponent = math.floor(math.log10(epsilon)) - 2
    digits = math.floor(epsilon / 10.0**exponent)
    return float(f"{digits}e{exponent}")


def composition_entry(name: str, steps: Any, direction: str, epsilon: float) -> dict[str, Any]:
    """What the file says of a task, computed."""
    composition = composition_of(steps)
    delta = composition.delta(epsilon, direction=direction)
    log_delta = composition.log_delta(epsilon, direction=direction)
    width, least = float(delta.upper - delta.lower), float(delta.lower)
    if width > MAX_DELTA_WIDTH or least < LEAST_DELTA or width > MAX_RELATIVE_WIDTH * least:
        raise ValueError(f"{name}: {steps} at {epsilon}: {delta!r}, {width} wide, {width / least} relative")
    if {delta.kind, log_delta.kind} - {"certified", "exact"}:
        raise ValueError(f"{name}: {delta!r}")
    names = ("mechanism", "scale", "rate", "count")
    return {"name": name, "steps": [dict(zip(names, step, strict=True)) for step in steps], "epsilon": epsilon,
            "direction": direction, "truth": fields_of(delta), "log_truth": fields_of(log_delta)}


def composition_entries() -> Iterator[dict[str, Any]]:
    """All tasks of compositions."""
    numbers: Counter[str] = Counter()
    for kind, steps, direction, epsilons in composition_settings():
        if epsilons is None:
            composition = composition_of(steps)
            epsilons = tuple(cut(float(composition.epsilon(d, direction=direction).lower)) for d in TARGETS)
        for epsilon in epsilons:
            numbers[kind] += 1
            yield composition_entry(f"{kind}-{numbers[kind]:03}", steps, direction, epsilon)


# -- files -------------------------------------------------------------------------------------------------------------


def text_of(head: dict[str, Any], entries: list[dict[str, Any]]) -> str:
    """A JSON document with one line for each task."""
    lines = ",\n".join("  " + json.dumps(entry, separators=(",", ":")) for entry in entries)
    return json.dumps(head, indent=1)[:-2] + ',\n "tasks": [\n' + lines + "\n ]\n}\n"


def main() -> None:
    """Compute the truths, and write or compare the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    parser.add_argument("--only", choices=["compositions", "mixtures"], help="one of the files")
    arguments = parser.parse_args()
    for name in ("compositions", "mixtures") if arguments.only is None else (arguments.only,):
        start = time.process_time()
        head = {"source": "tools/truths.py", "licence": "BSD-3-Clause"}
        if name == "compositions":
            file, entries = "composition_tasks.json", list(composition_entries())
            groups = [entry["name"][:-4] for entry in entries]
        else:
            file, entries, head = "mixture_tasks.json", mixture_entries(), head | {"seed": SEED}
            groups = [entry["quantity"] for entry in entries]
        report(name, entries, groups, time.process_time() - start)
        text = text_of(head, entries)
        if not arguments.check:
            (FOLDER / file).write_text(text, encoding="utf-8")
        elif changed := changed_tasks(json.loads((FOLDER / file).read_text(encoding="utf-8")), json.loads(text)):
            raise SystemExit(f"{file} differs from what was computed: {changed}")


def changed_tasks(document: dict[str, Any], computed: dict[str, Any]) -> list[str]:
    """Names of tasks that differ by more than the last digits, in which samples depend on the instruction set."""
    pairs = list(zip_longest(document.pop("tasks"), computed.pop("tasks"), fillvalue={}))
    return ["its head"] if document != computed else [
        str(new.get("name", old.get("name"))) for old, new in pairs
        if old.keys() != new.keys() or any(not is_same(old[key], new[key]) for key in old)
    ]


def is_same(old: Any, new: Any) -> bool:
    """Whether two fields of a task agree; ends of brackets do within a millionth of the width."""
    if not isinstance(old, dict) or "lower" not in old:
        return bool(old == new)
    slack = 1e-6 * (new["upper"] - new["lower"])
    ends = ("value", "lower", "upper")
    return all(abs(old[name] - new[name]) <= slack if name in ends else old[name] == new[name] for name in new)


def report(title: str, entries: list[dict[str, Any]], groups: list[str], seconds: float) -> None:
    """Print how many truths of each group are proved and sampled, and how wide they are at most."""
    print(f"\n{title:26}{'proved':>8}{'widest':>10}{'relative':>10}{'sampled':>9}{'widest':>10}")
    for group in dict.fromkeys(groups):
        truths = [entry["truth"] for entry, name in zip(entries, groups, strict=True) if name == group]
        widths: dict[bool, list[float]] = {True: [], False: []}
        for truth in truths:
            widths["confidence" in truth].append(truth["upper"] - truth["lower"])
        relative = max(((t["upper"] - t["lower"]) / abs(t["value"]) for t in truths if t["value"] != 0.0), default=0.0)
        proved, sampled = widths[False], widths[True]
        print(f"{group:26}{len(proved):8}{max(proved, default=0.0):10.1e}{relative:10.1e}"
              f"{len(sampled):9}{max(sampled, default=0.0):10.1e}")
    print(f"{len(entries)} in all, in {seconds:.0f} s of CPU\n", flush=True)


if __name__ == "__main__":
    main()
