"""Mixtures drawn by hypothesis, shared by the property tests."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from fastpriv import GaussianMixture

__all__ = ["EPSILON", "GRID", "QUICK", "mixtures", "overlap", "shown"]

STEP = 2.0**-20


@st.composite
def mixtures(draw, spread=6.0, sigmas=(0.125, 4.0)):
    """Weights are multiples of 2^-20 with sum 1, means and sigmas of ordinary size."""
    size = draw(st.integers(1, 5))
    cuts = sorted(draw(st.sets(st.integers(1, 2**20 - 1), min_size=size - 1, max_size=size - 1)))
    weights = np.diff([0, *cuts, 2**20]) * STEP
    numbers = {"allow_nan": False, "width": 32}
    means = draw(st.lists(st.floats(-spread, spread, **numbers), min_size=size, max_size=size))
    widths = draw(st.lists(st.floats(*sigmas, **numbers), min_size=size, max_size=size))
    return GaussianMixture(weights, means, widths)


EPSILON = st.floats(0, 20, allow_nan=False)
GRID = st.lists(EPSILON, min_size=2, max_size=8)
QUICK = settings(max_examples=40, deadline=None)


def shown(p, q, *rest):
    p, q = ([part.tolist() for part in (m.weights, m.means, m.sigmas)] for m in (p, q))
    return f"p = {p}, q = {q}, {rest}"


def overlap(a_low, a_high, b_low, b_high, slack=0.0):
    return a_low <= b_high + slack and b_low <= a_high + slack
