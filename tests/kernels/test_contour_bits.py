"""Sums along a contour give the same bits on every instruction set."""

import pytest

from kernels.variants import check_same_lines, each_wider_variant

SCRIPT = """
import numpy as np
from fastpriv import GaussianMixture
from fastpriv.composition.contour import contour_bounds
from fastpriv.pairs.discrete_pairs import DiscretePair
from fastpriv.pairs.laplace_pairs import LaplacePair
from fastpriv.pairs.mixture_pairs import MixturePair

noise = GaussianMixture.single(0.0, 1.5)
group = MixturePair(GaussianMixture([0.81, 0.18, 0.01], [0.0, 1.0, 2.0], 1.5), noise, 300)
several = MixturePair(GaussianMixture([0.9, 0.1], [0.0, 1.0], [1.5, 1.6]), noise, 30)
others = [LaplacePair(20.0, 1.0, 50), DiscretePair(np.array([0.5, 0.5]), np.array([0.45, 0.55]), 9)]
normal = MixturePair(GaussianMixture.single(0.0, 8.0), GaussianMixture.single(1.0, 8.1), 20)
rare = MixturePair(GaussianMixture([0.9999, 0.0001], [0.0, 1.0], 1.0), GaussianMixture.single(0.0, 1.0), 30)
epsilon = np.array([0.0, 0.7, 2.0, 9.0])
for steps in ([group], [group.reversed()], [group, normal, *others], [several.reversed()], [rare]):
    for quantity in ("delta", "tail"):
        bounds = contour_bounds(steps, epsilon, quantity)
        for k in range(4):
            print(quantity, k, *(column[k].hex() for column in bounds[:3]))
"""


@pytest.mark.few(1)
@each_wider_variant
@pytest.mark.slow
def test_every_instruction_set_gives_the_same_bits(variant):
    check_same_lines(SCRIPT, 40, variant)
