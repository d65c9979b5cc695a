"""
The input that leaks most
=========================

The distribution of the secret that attains the capacity is a few points. They split as the amplitude grows: size is
probability.
"""

import matplotlib.pyplot as plt
import numpy as np

from fastpriv import awgn_capacity

figure, ax = plt.subplots(layout="constrained")
for amplitude in np.linspace(0.2, 6.0, 59):
    worst = awgn_capacity(1, amplitude)
    for radius, probability in zip(worst.radii, worst.probabilities, strict=True):
        if probability < 1e-3:
            continue
        points = [-radius, radius] if radius > 0 else [0.0]
        ax.scatter([amplitude] * len(points), points, s=80 * probability / len(points), color="tab:blue")
ax.set(xlabel="amplitude / sigma", ylabel="points of the worst input / sigma", title="One dimension")
plt.show()
