"""
How much noise, for how many steps
==================================

The least noise multiplier that meets epsilon at delta = 1e-5, over the number of steps at the rate 0.01. Each point is
bracketed: the drawn one is proved to meet the target.
"""

import matplotlib.pyplot as plt
import numpy as np

from fastpriv.composition import least_sampled_sigma

count = np.geomspace(30, 30_000, 5).round()
figure, ax = plt.subplots(layout="constrained")
for epsilon in (0.5, 2.0, 8.0):
    sigma = least_sampled_sigma(0.01, count, epsilon, 1e-5, rtol=1e-4)
    ax.loglog(count, sigma.upper, ".-", label=f"epsilon = {epsilon:g}")
ax.set(xlabel="steps", ylabel="least sigma", title="Rate 0.01, delta = 1e-5")
ax.set_yticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
ax.legend()
plt.show()
