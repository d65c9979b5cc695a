"""The largest product of two binomial tails over all rates, and the kinds of claims that tie the rates."""

from ._binomial_tail import DP, GAUSSIAN, LINES, greatest_products

__all__ = ["DP", "GAUSSIAN", "LINES", "greatest_products"]
