"""
The most that noise lets through
================================

The capacity of Gaussian noise under a peak limit: mutual information for the worst distribution of the secret, whose
norm is at most A. Dotted: what two points at the ends leak: from A = 1.67 on a third point leaks more.
"""

import matplotlib.pyplot as plt
import numpy as np

from fastpriv import GaussianMixture, awgn_capacity
from fastpriv.divergences import label_information

amplitude = np.linspace(0.1, 5.0, 50)
figure, ax = plt.subplots(layout="constrained")
for dimension in (1, 2, 4):
    capacity = awgn_capacity(dimension, amplitude, unit="bits")
    ax.plot(amplitude, capacity.value, label=f"{dimension} dimension{'s' * (dimension > 1)}")
ends = [label_information(GaussianMixture([0.5, 0.5], [-a, a], 1.0), unit="bits").value for a in amplitude]
ax.plot(amplitude, ends, ":", color="grey", label="two points, 1 dimension")
ax.set(xlabel="amplitude / sigma", ylabel="bits", title="Capacity under a peak limit")
ax.legend()
plt.show()
