"""
Beta against alpha where false alarms are rare
==============================================

Who accuses few people cares for alpha of 1e-3 and less. There the advantage says nothing: on logarithmic axes the power
1 - beta is many times alpha, and the ratio is what (epsilon, delta) bounds.
"""

import matplotlib.pyplot as plt
import numpy as np

from fastpriv import PoissonSampledGaussian, compose, risk

alpha = np.geomspace(1e-8, 1.0, 41)
steps = compose(PoissonSampledGaussian(sigma=1.0, rate=0.01), 1000)
power = risk.true_positive_rate(steps, None, alpha)
epsilon, delta = steps.epsilon(1e-5).upper, 1e-5

figure, ax = plt.subplots(layout="constrained")
ax.loglog(alpha, power.value, label="best test, certified")
ax.loglog(alpha, np.minimum(np.exp(epsilon) * alpha + delta, 1.0), "--", label=f"({epsilon:.2f}, 1e-5)-DP allows")
ax.loglog(alpha, alpha, color="grey", ls=":", label="coin")
ax.set(xlabel="alpha, false alarms", ylabel="1 - beta, power", title="1,000 steps, sigma 1, rate 0.01")
ax.legend()
plt.show()
