"""Random and hostile brackets of all rooms against balls of python-flint:

    python tools/campaign [--count 100000] [--seed 0] [--minutes M] [KIND ...]

prints one line for each kind: brackets, those that miss the truth, those that tell nothing, and CPU seconds, and each
false bracket with its call. Status 1 where there is one. A bracket is false where the ball of the truth, at any
precision, lies beyond one of its ends; it tells nothing where its upper end is twice the lower one, or an absolute
1e-300 away where both are subnormal. Inputs are doubles, often at the ends of their range; what the call means by them
is computed from the doubles themselves.
"""

import argparse
import itertools
import math
import sys
import time

import numpy as np
from flint import arb, ctx

import fastpriv
from fastpriv import GaussianMechanism, LaplaceMechanism, RandomizedResponse, compose, notions
from fastpriv.pairs import PoissonSampled

PRECISIONS = (128, 384, 1024, 4096)


def exponential(rng, low, high):
    """A number of random size, with a random mantissa or a power of two."""
    x = 10.0 ** rng.uniform(low, high)
    return float(2.0 ** round(math.log2(x))) if rng.random() < 0.1 else float(x)


def unit(rng):
    """A probability: anywhere, near 0 or near 1."""
    kind = rng.integers(4)
    if kind == 0:
        return float(rng.choice([0.0, 1.0, 0.5, 5e-324, 2.0**-1022, 1.0 - 2.0**-53]))
    if kind == 1:
        return exponential(rng, -310, -1)
    return float(rng.random()) if kind == 2 else float(1.0 - exponential(rng, -15, -1))


def masses(rng, size):
    """Probabilities whose sum is 1 exactly: whole multiples of 2^-50, some of them 0, one of them small."""
    weights = rng.dirichlet(np.full(size, rng.choice([0.1, 1.0, 10.0])))
    if rng.random() < 0.3:
        weights[rng.integers(size)] *= 10.0 ** rng.uniform(-14, 0)
    whole = np.floor(weights / weights.sum() * 2.0**50)
    whole[np.argmax(whole)] += 2.0**50 - whole.sum()
    return whole * 2.0**-50


def normal(x):
    """The normal distribution function."""
    return (-x / arb(2).sqrt()).erfc() / 2


def positive(x):
    """max(x, 0)"""
    return x.max(arb(0))


def gaussian_delta(r, epsilon):
    """r: half of the distance in sigmas."""
    return normal(r - epsilon / (2 * r)) - epsilon.exp() * normal(-r - epsilon / (2 * r))


def gaussian(rng):
    """One release with normal noise, and compositions of it."""
    scale = exponential(rng, -150, 150)
    sigma, sensitivity = (scale * exponential(rng, -3, 3) for _ in range(2))
    mechanism = GaussianMechanism(sigma, sensitivity)
    ratio = sensitivity / sigma
    epsilon = float(rng.choice([0.0, exponential(rng, -300, 2), ratio * exponential(rng, -2, 1.5), ratio**2 / 2]))

    def truth():
        return gaussian_delta(arb(sensitivity) / arb(sigma) / 2, arb(epsilon))

    call = f"GaussianMechanism({sigma!r}, {sensitivity!r})"
    yield f"{call}.delta({epsilon!r})", mechanism.delta(epsilon), truth
    yield f"{call}.log_delta({epsilon!r})", mechanism.log_delta(epsilon), lambda: truth().log()
    steps = int(rng.choice([1, 3, 100, 10**6]))
    composed = compose(mechanism, steps)
    yield (f"compose({call}, {steps}).log_delta({epsilon!r})", composed.log_delta(epsilon),
           lambda: gaussian_delta(arb(steps).sqrt() * arb(sensitivity) / arb(sigma) / 2, arb(epsilon)).log())


def epsilon_of_gaussian(rng):
    """The inverse of its curve."""
    sigma, delta = exponential(rng, -2, 3), exponential(rng, -300, -0.5)
    found = GaussianMechanism(sigma, 1.0).epsilon(delta)
    r = lambda: 1 / arb(sigma) / 2
    call = f"GaussianMechanism({sigma!r}, 1.0).epsilon({delta!r})"
    yield from ends_of_inverse(call, found, delta, lambda epsilon: gaussian_delta(r(), epsilon))


def ends_of_inverse(call, found, delta, curve):
    """The curve at both ends of an epsilon is on the right side of delta: brackets with one end."""
    lower, upper = float(found.lower), float(found.upper)
    if lower > 0.0:
        yield f"{call}: delta at the lower end", Ends(delta, math.inf, lower, upper), lambda: curve(arb(lower))
    if upper < math.inf:
        yield f"{call}: delta at the upper end", Ends(0.0, delta, lower, upper), lambda: curve(arb(upper))


class Ends:
    """A bracket, with ends of another one that says whether it tells something."""

    def __init__(self, lower, upper, *told):
        self.lower, self.upper, self.told = lower, upper, told or (lower, upper)


def sampled_gaussian(rng):
    """One release of a Poisson sample with normal noise, both directions."""
    sigma, rate = exponential(rng, -1, 2), min(exponential(rng, -12, 0), 1.0)
    epsilon = float(rng.choice([0.0, exponential(rng, -12, 1), rate * exponential(rng, -2, 2)]))
    composed = compose(PoissonSampled(GaussianMechanism(sigma, 1.0), rate))

    def removed(x):
        return arb(rate) * gaussian_delta(1 / arb(sigma) / 2, (1 + ((x).exp() - 1) / arb(rate)).log())

    def added():
        f = 1 - arb(epsilon).exp() * (1 - arb(rate))
        return f * gaussian_delta(1 / arb(sigma) / 2, (1 + (arb(epsilon).exp() - 1) / f).log())

    call = f"compose(PoissonSampled(GaussianMechanism({sigma!r}, 1.0), {rate!r})).log_delta({epsilon!r}"
    yield (f"{call}, direction='forward')", composed.log_delta(epsilon, direction="forward"),
           lambda: removed(arb(epsilon)).log())
    if rate == 1.0 or math.exp(epsilon) * (1.0 - rate) < 1.0 - 1e-9:
        yield (f"{call}, direction='backward')", composed.log_delta(epsilon, direction="backward"),
               lambda: added().log())


def laplace(rng):
    """One release with Laplace noise."""
    scale = exponential(rng, -3, 6)
    loss = 1.0 / scale
    epsilon = float(rng.choice([0.0, loss * rng.random(), exponential(rng, -12, 2), loss * (1 - 2.0**-50)]))
    composed = compose(LaplaceMechanism(scale))
    yield (f"compose(LaplaceMechanism({scale!r})).delta({epsilon!r})", composed.delta(epsilon),
           lambda: positive(1 - ((arb(epsilon) - 1 / arb(scale)) / 2).exp()))


def randomized_response(rng):
    """Releases by k-ary randomised response, summed over counts."""
    k, level, steps = int(rng.integers(2, 9)), exponential(rng, -6, 1.5), int(rng.integers(1, 9))
    epsilon = float(rng.choice([0.0, level * rng.random() * steps, exponential(rng, -9, 1)]))
    composed = compose(RandomizedResponse(k, level), steps)

    def truth():
        kept, other = arb(level).exp(), 1 / (arb(level).exp() + (k - 1))
        total = arb(0)
        for i, j in itertools.product(range(steps + 1), repeat=2):
            if i + j > steps:
                continue
            ways = math.comb(steps, i) * math.comb(steps - i, j) * (k - 2) ** (steps - i - j)
            p, q = (kept**i, kept**j)
            total += arb(ways) * positive(p - arb(epsilon).exp() * q) * other**steps
        return total

    yield (f"compose(RandomizedResponse({k}, {level!r}), {steps}).delta({epsilon!r})", composed.delta(epsilon), truth)


def vectors(rng):
    """Divergences of probability vectors."""
    size = int(rng.integers(2, 30))
    p, q = masses(rng, size), masses(rng, size)
    if rng.random() < 0.3:  # nearly equal
        q = p.copy()
        i, j = rng.choice(size, 2, replace=False)
        move = min(2.0**-50 * rng.integers(1, 2**20), p[i])
        q[i], q[j] = q[i] - move, q[j] + move
    epsilon = float(rng.choice([0.0, exponential(rng, -12, 1)]))
    order = float(rng.choice([0.5, 2.0, 1.0 + exponential(rng, -6, 1), rng.random()]))
    balls = [[arb(float(x)) for x in side] for side in (p, q)]
    both = lambda f: sum((f(x, y) for x, y in zip(*balls, strict=True)), arb(0))
    call = f"({p.tolist()!r}, {q.tolist()!r}"
    if not ((p > 0) & (q == 0)).any():
        yield (f"kl_divergence{call})", fastpriv.kl_divergence(p, q),
               lambda: both(lambda x, y: x * (x / y).log() if x > 0 else arb(0)))
    if order < 1 or not ((p > 0) & (q == 0)).any():
        inside = lambda x, y: arb(0) if not x > 0 or not y > 0 else (arb(order) * (x / y).log()).exp() * y
        if both(inside) > 0:
            yield (f"renyi_divergence{call}, {order!r})", fastpriv.renyi_divergence(p, q, order),
                   lambda: both(inside).log() / (arb(order) - 1))
    yield (f"jensen_shannon{call})", fastpriv.jensen_shannon(p, q), lambda: both(
        lambda x, y: sum((z * (2 * z / (x + y)).log() if z > 0 else arb(0) for z in (x, y)), arb(0)) / 2))
    yield f"total_variation{call})", fastpriv.total_variation(p, q), lambda: both(lambda x, y: positive(x - y))
    yield (f"hockey_stick_divergence{call}, {epsilon!r})", fastpriv.hockey_stick_divergence(p, q, epsilon),
           lambda: both(lambda x, y: positive(x - arb(epsilon).exp() * y)))


def binary_channels(rng):
    """Capacities of binary asymmetric channels."""
    a, b = unit(rng), unit(rng)
    if a + b == 1.0:
        return

    def entropy(x):
        return sum((-z * z.log() if z > 0 else arb(0) for z in (x, 1 - x)), arb(0))

    def truth():
        x, y = arb(a), arb(b)  # P(1 | 0) and P(0 | 1); log sum_j e^-(inverse matrix times entropies of the rows)_j
        det, h, g = 1 - x - y, entropy(x), entropy(y)
        return ((-((1 - y) * h - x * g) / det).exp() + (-((1 - x) * g - y * h) / det).exp()).log()

    yield f"bac_capacity({a!r}, {b!r})", fastpriv.bac_capacity(a, b), truth


def channel_notions(rng):
    """Notions of small channels."""
    inputs, outputs = (int(x) for x in rng.integers(2, 6, 2))
    rows = np.array([masses(rng, outputs) for _ in range(inputs)])
    prior = masses(rng, inputs)
    epsilon = float(rng.choice([0.0, exponential(rng, -9, 1)]))
    balls = [[arb(float(x)) for x in row] for row in rows]
    weights = [arb(float(x)) for x in prior]
    ordered = list(itertools.permutations(range(inputs), 2))
    call = f"({prior.tolist()!r}, {rows.tolist()!r}"

    def most(values):
        result = arb(0)
        for value in values:
            result = result.max(value)
        return result

    yield (f"notions.ldp_delta{call}, {epsilon!r})", notions.ldp_delta(prior, rows, epsilon), lambda: most(
        sum((positive(x - arb(epsilon).exp() * y) for x, y in zip(balls[i], balls[j], strict=True)), arb(0))
        for i, j in ordered))
    if (rows > 0).all():
        yield (f"notions.ldp_epsilon{call})", notions.ldp_epsilon(prior, rows), lambda: most(
            (x / y).log() for i, j in ordered for x, y in zip(balls[i], balls[j], strict=True)))
    used = [i for i in range(inputs) if prior[i] > 0]
    columns = list(zip(*balls, strict=True))
    mixed = [sum((weights[i] * column[i] for i in used), arb(0)) for column in columns]
    yield (f"notions.cd_lmip{call})", notions.cd_lmip(prior, rows), lambda: sum(
        (weights[i] * column[i] * (column[i] / mean).log() for column, mean in zip(columns, mixed, strict=True)
         for i in used if column[i] > 0), arb(0)))
    yield (f"notions.maximal_leakage{call})", notions.maximal_leakage(prior, rows),
           lambda: sum((most(column[i] for i in used) for column in columns), arb(0)).log())


def posteriors(rng):
    """Evidence of small posteriors."""
    size = int(rng.integers(2, 30))
    likelihood = rng.choice([1.0, 30.0, 1e3, 1e-9]) * rng.normal(size=size) + rng.choice([0.0, -1e5, 1e8])
    prior = masses(rng, size)
    if not (prior > 0).all():
        return
    found = fastpriv.posterior(likelihood, prior)
    yield (f"posterior({likelihood.tolist()!r}, {prior.tolist()!r}).log_evidence", found.log_evidence,
           lambda: sum((arb(float(w)) * arb(float(x)).exp() for w, x in zip(prior, likelihood, strict=True)),
                       arb(0)).log())


def discrete_compositions(rng):
    """Compositions of two vectors, summed over types."""
    size, steps = int(rng.integers(2, 4)), int(rng.integers(1, 7))
    p, q = masses(rng, size), masses(rng, size)
    epsilon = float(rng.choice([0.0, exponential(rng, -6, 1)]))

    def truth():
        x, y = ([arb(float(z)) for z in side] for side in (p, q))
        total = arb(0)
        for counts in itertools.product(range(steps + 1), repeat=size):
            if sum(counts) == steps:
                ways = math.factorial(steps) // math.prod(map(math.factorial, counts))
                one, other = arb(1), arb(1)
                for i, n in enumerate(counts):
                    one, other = one * x[i] ** n, other * y[i] ** n
                total += ways * positive(one - arb(epsilon).exp() * other)
        return total

    yield (f"compose(({p.tolist()!r}, {q.tolist()!r}), {steps}).delta({epsilon!r}, direction='forward')",
           compose((p, q), steps).delta(epsilon, direction="forward"), truth)


def normal_pairs(rng):
    """Two normal distributions of different sigmas: the set where p > e^epsilon q lies between or beyond two points."""
    scale = exponential(rng, -100, 100)
    m, s = scale * rng.normal() * exponential(rng, -3, 3), scale
    t = scale * float(rng.choice([exponential(rng, -6, 6), 1.0 + exponential(rng, -12, 0)]))
    if s == t:
        return
    epsilon = float(rng.choice([0.0, exponential(rng, -9, 2)]))
    p, q = fastpriv.GaussianMixture.single(m, s), fastpriv.GaussianMixture.single(0.0, t)

    def truth():
        # log p - log q - epsilon = a x^2 + b x + c, x in units of s around m
        ratio, shift = arb(s) / arb(t), arb(m) / arb(t)
        a, b, c = (ratio**2 - 1) / 2, ratio * shift, shift**2 / 2 - ratio.log() - arb(epsilon)
        root = (b**2 - 4 * a * c).sqrt() if b**2 - 4 * a * c > 0 else None
        if root is None:
            if b**2 - 4 * a * c < 0:
                return arb(0) if a < 0 else 1 - arb(epsilon).exp()
            raise ArithmeticError
        first, last = sorted(((-b - root) / (2 * a), (-b + root) / (2 * a)), key=lambda x: float(x.mid()))
        mass = lambda u, v: normal(v) - normal(u) if float(u.mid()) < 0 else normal(-u) - normal(-v)
        inside = mass(first, last) - arb(epsilon).exp() * mass(ratio * first + shift, ratio * last + shift)
        return inside if a < 0 else 1 - arb(epsilon).exp() + -inside

    yield (f"hockey_stick_divergence(GaussianMixture.single({m!r}, {s!r}), GaussianMixture.single(0.0, {t!r}), "
           f"{epsilon!r})", fastpriv.hockey_stick_divergence(p, q, epsilon), truth)
    yield (f"kl_divergence(GaussianMixture.single({m!r}, {s!r}), GaussianMixture.single(0.0, {t!r}))",
           fastpriv.kl_divergence(p, q),
           lambda: ((arb(s) / arb(t)) ** 2 + (arb(m) / arb(t)) ** 2 - 1) / 2 - (arb(s) / arb(t)).log())


# kind -> share of the brackets
KINDS = {
    gaussian: 25, epsilon_of_gaussian: 10, sampled_gaussian: 8, laplace: 5, randomized_response: 3, vectors: 20,
    binary_channels: 8, channel_notions: 8, posteriors: 5, discrete_compositions: 3, normal_pairs: 5,
}


def verdict(found, truth):
    """1 where the bracket holds the truth, 0 where it is false, -1 where no precision decides."""
    lower, upper = float(found.lower), float(found.upper)
    for precision in PRECISIONS:
        ctx.prec = precision
        try:
            ball = truth()
        except ArithmeticError:
            continue
        if not ball.is_finite():
            continue
        if ball < lower or ball > upper:
            return 0
        if ball >= lower and ball <= upper:
            return 1
        if ball.rel_accuracy_bits() > 300:  # an end is as near as that, an exact 1 say
            break
    return -1


def tells_nothing(found):
    """Whether the upper end is twice the lower one."""
    lower, upper = getattr(found, "told", (float(found.lower), float(found.upper)))
    if lower == upper or upper - lower <= 1e-300:
        return False
    low, high = sorted((abs(lower), abs(upper)))
    return not high <= 2.0 * low


def main():
    """Run the kinds and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", choices=[*[kind.__name__ for kind in KINDS], []])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=math.inf, help="of CPU time, for all kinds together")
    options = parser.parse_args()
    chosen = [kind for kind in KINDS if not options.kinds or kind.__name__ in options.kinds]
    total, wrong = sum(KINDS[kind] for kind in chosen), 0
    print("| kind | brackets | false | undecided | tell nothing | CPU s |\n|---|---|---|---|---|---|")
    for kind in chosen:
        goal, start = options.count * KINDS[kind] / total, time.process_time()
        counts, number = dict.fromkeys((1, 0, -1), 0), 0
        useless, limit = 0, 60.0 * options.minutes * KINDS[kind] / total
        while sum(counts.values()) < goal and time.process_time() - start < limit:
            number += 1
            for call, found, truth in kind(np.random.default_rng([options.seed, number, sum(map(ord, kind.__name__))])):
                result = verdict(found, truth)
                counts[result] += 1
                useless += tells_nothing(found)
                if result == 0 and counts[0] <= 5:
                    print(f"FALSE {call}: [{float(found.lower)!r}, {float(found.upper)!r}], truth {truth()}")
                elif tells_nothing(found) and useless <= 3:
                    print(f"wide  {call}: [{float(found.lower)!r}, {float(found.upper)!r}]", file=sys.stderr)
        wrong += counts[0]
        print("|", kind.__name__.replace("_", " "), f"| {sum(counts.values()):,} | {counts[0]} | {counts[-1]} |",
              f"{useless} | {time.process_time() - start:.0f} |", flush=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
