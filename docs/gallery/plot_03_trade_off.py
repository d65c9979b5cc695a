"""
Trade-off curves
================

The least chance of a miss (beta) for each chance of a false alarm (alpha), of the best test between neighbours: after
10, 100 and 1,000 steps. The diagonal is a coin.
"""

import matplotlib.pyplot as plt
import numpy as np

from fastpriv import PoissonSampledGaussian, compose, risk

alpha = np.linspace(0.0, 1.0, 101)
figure, ax = plt.subplots(figsize=(5, 5), layout="constrained")
ax.plot(alpha, 1 - alpha, color="grey", ls=":", label="coin")
for count in (10, 100, 1000):
    steps = compose(PoissonSampledGaussian(sigma=1.0, rate=0.05), count)
    curve = risk.trade_off_curve(steps, alpha=alpha)
    ax.plot(alpha, curve.beta.value, label=f"{count:,} steps, advantage {curve.advantage.value:.2f}")
ax.set(xlabel="alpha, false alarms", ylabel="beta, misses", title="sigma 1, rate 0.05", aspect="equal")
ax.legend(loc="upper right")
plt.show()
