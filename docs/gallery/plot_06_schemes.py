"""
Poisson, fixed-size and shuffled batches
========================================

Batches of eight of 64 records, one step with sigma 2, by the way they are drawn. A batch of a fixed size is not a
Poisson sample of the same rate: the record takes the place of another one.
"""

import matplotlib.pyplot as plt
import numpy as np

from fastpriv import GaussianMechanism, PoissonSampledGaussian, compose
from fastpriv.pairs import FixedSizeSampled, PoissonSampled

noise, epsilon = GaussianMechanism(2.0, sensitivity=1.0), np.linspace(0.0, 2.0, 81)
schemes = {
    "Poisson, added or removed": PoissonSampledGaussian(2.0, 1 / 8),
    "Poisson, replaced": PoissonSampled(noise, 1 / 8, relation="replace_one"),
    "fixed size, replaced": FixedSizeSampled(noise, 64, 8, relation="replace_one"),
    "no sampling, replaced": GaussianMechanism(2.0, sensitivity=2.0),
}

figure, ax = plt.subplots(layout="constrained")
for name, scheme in schemes.items():
    ax.semilogy(epsilon, compose(scheme).delta(epsilon).upper, label=name)
ax.set(xlabel="epsilon", ylabel="delta", ylim=(1e-12, 1), title="One batch of 8 of 64 records, sigma 2")
ax.legend(loc="lower left")
plt.show()
