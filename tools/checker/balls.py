"""Numbers of a certificate as balls of python-flint, and the decision on a bracket."""

import functools

from flint import arb, ctx


class RefusedError(Exception):
    """Why a certificate is refused, in one sentence."""


def require(condition, reason):
    """Refuse the certificate unless the condition holds."""
    if not condition:
        raise RefusedError(reason)


def number(text, positive=False):
    """A finite number in hexadecimal (float.hex), exactly."""
    value = float.fromhex(text)
    require(abs(value) < float("inf") and (value > 0 or not positive), f"numbers must be finite or positive: {text!r}")
    return arb(value)


def distribution(texts, divided=True):
    """Probabilities, divided by their sum, which must be 1 within 1e-9, or as they are."""
    values = [number(text) for text in texts]
    total = sum(values, arb(0))
    fits = all(value >= 0 for value in values) and abs(total - 1) < 1e-9
    require(fits, f"probabilities must be at least 0 and sum to 1; got a sum of {total.str(9)}")
    return [value / total for value in values] if divided else values


def tail(x):
    """Probability that a standard normal variable exceeds x."""
    return (x / arb(2).sqrt()).erfc() / 2


def normal(x):
    """Standard normal density."""
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def between(low, high):
    """The ball around an interval."""
    return arb(low).union(arb(high))


def most(values):
    """The largest of some balls."""
    return functools.reduce(arb.max, values)


def log_float(x):
    """The logarithm of the upper end of a ball as a float, for choices that prove nothing."""
    return float(x.upper().log()) if x.is_finite() else 1e9


def decide(name, evaluate, low, high, known=(0, 1)):
    """Prove that evaluate(tolerance) lies in [low, high], with more and more bits; ``known`` is a range of it."""
    ctx.prec = 64
    size = abs(low).max(abs(high))
    width = (high - low).max(size * arb(2) ** -53).max(arb(2) ** -1080)
    for bits in (6, 12, 24, 60, 120, 300):
        ctx.prec = 64
        tolerance = (width * arb(2) ** -bits).mid()
        ctx.prec = 60 + 2 * bits + int((log_float(size.max(arb(1))) - log_float(tolerance)) / 0.69)
        ball = evaluate(tolerance)
        if (ball >= low or low <= known[0]) and (ball <= high or high >= known[1]):
            return
        require(not (ball > high or ball < low), f"{name}: the bracket is false; the truth is {ball.str(20)}")
    raise RefusedError(f"{name}: not refuted, but proved only to be {ball.str(20)}")
