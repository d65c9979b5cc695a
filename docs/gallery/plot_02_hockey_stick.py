"""
What delta is
=============

delta is the part of P that lies above e^epsilon Q: here of a sampled Gaussian release with a record (P) and without it
(Q). The least epsilon for a given delta moves the dashed line up until the coloured area is that small.
"""

import matplotlib.pyplot as plt
import numpy as np

from fastpriv import GaussianMixture, hockey_stick_divergence

p, q = GaussianMixture([0.7, 0.3], [0.0, 3.0], 1.0), GaussianMixture.single(0.0, 1.0)
epsilon, x = 0.5, np.linspace(-4.0, 7.0, 501)
above, below = (np.exp(one.log_density(x)) for one in (p, q))
delta = hockey_stick_divergence(p, q, epsilon)

figure, ax = plt.subplots(layout="constrained")
ax.plot(x, above, label="P")
ax.plot(x, np.exp(epsilon) * below, "--", label="e^0.5 Q")
ax.fill_between(x, above, np.exp(epsilon) * below, where=above > np.exp(epsilon) * below, alpha=0.3,
                label=f"delta = {delta:.6f}")
ax.set(xlabel="release", ylabel="density", title="Hockey-stick divergence at epsilon = 0.5")
ax.legend(loc="upper right")
plt.show()
