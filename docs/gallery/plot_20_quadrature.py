"""
When quad misses the peak
=========================

The mass of N(0, s^2) on (0.002, infinity), over s, by numerical integration with default settings and by its closed
form. The error that the integration reports does not contain the truth.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import integrate

from fastpriv import special


def density(x, s):
    return np.exp(-0.5 * (x / s) ** 2) / (s * np.sqrt(2 * np.pi))


scale = np.geomspace(2e-4, 2e-2, 40)
computed = np.array([integrate.quad(density, 0.002, np.inf, args=(s,))[0] for s in scale])

figure, ax = plt.subplots(layout="constrained")
ax.loglog(scale, special.ndtr(-0.002 / scale), label="special.ndtr")
ax.loglog(scale, np.maximum(computed, 1e-30), "--", label="scipy.integrate.quad")
ax.set(xlabel="s", ylabel="mass above 0.002", ylim=(1e-25, 1), title="A tail of a narrow distribution")
ax.legend()
plt.show()
