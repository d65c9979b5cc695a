"""Read the truth tables, and the one list of what they hold."""

from __future__ import annotations

from decimal import Context, Decimal

from oracles.mixture_pairs import FAMILIES, pairs

__all__ = [
    "INTEGRALS", "LEFT_OUT", "NOTION_EPSILONS", "NOTION_SIGMAS", "ORDERS", "SLACK", "bounds", "decimal",
    "family_of", "integral_pairs",
]

SLACK = Decimal("1e-30")  # the strings are right to at least this, relative
CONTEXT = Context(prec=60, Emin=-(10**17), Emax=10**17)

ORDERS = (0.5, 2.0, 10.0)
NOTION_SIGMAS = (0.05, 0.3, 1.0, 4.0, 100.0)
NOTION_EPSILONS = (0.0, 0.01, 0.1, 1.0, 7.0, 30.0, 100.0)


INTEGRALS = {
    "kl_PQ": lambda m, pair: m.kl_divergence(pair.p, pair.q, 120),
    "kl_QP": lambda m, pair: m.kl_divergence(pair.q, pair.p, 120),
    "js": lambda m, pair: m.js(pair.p, pair.q, 120),
    "entropy_P": lambda m, pair: m.entropy(pair.p, 120),
    **{f"renyi_{order:g}": lambda m, pair, order=order: m.renyi(pair.p, pair.q, order, 120) for order in ORDERS},
}


# (pair, quantity): minutes each in ball arithmetic
LEFT_OUT = frozenset(
    {
        ("shift-40-sd-1", "renyi_10"),
        ("tiny-1e-300-far-in-p", "js"),
        ("tiny-1e-300-far-in-p", "renyi_10"),
        ("tiny-1e-300-far-in-q", "js"),
        ("tiny-1e-300-far-in-q", "renyi_10"),
        ("tiny-1e-300-wide-in-p", "js"),
        ("tiny-1e-30-far-in-p", "renyi_10"),
        ("ratio-needle", "js"),
        ("distant-150", "renyi_10"),
        ("distant-part", "renyi_10"),
    }
)


def integral_pairs():
    return [pair for name in FAMILIES for pair in pairs(name)]


def family_of(pair_name):
    """The family is the first word of the name."""
    return pair_name.split("-", 1)[0]


def decimal(ball, digits=36):
    """The ball as a decimal string whose every digit is right to one unit."""
    if ball.is_zero():
        return "0"
    text = ball.str(digits, radius=False)
    assert ball.rel_accuracy_bits() >= 105, (text, ball.rel_accuracy_bits())
    return text


def bounds(text):
    """Decimal lower and upper bound of the truth behind a table entry."""
    if text.startswith("<-"):
        return Decimal("-Infinity"), Decimal(text[1:])
    if text.startswith(">"):
        return Decimal(text[1:]), Decimal(0)
    if text.startswith("<"):
        return Decimal(0), Decimal(text[1:])
    if text in ("inf", "-inf", "0"):
        return (Decimal(text),) * 2
    middle = CONTEXT.create_decimal(text)
    reach = CONTEXT.multiply(abs(middle), SLACK)
    return CONTEXT.subtract(middle, reach), CONTEXT.add(middle, reach)
