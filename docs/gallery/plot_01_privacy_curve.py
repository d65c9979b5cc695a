"""
A privacy curve and its bounds
==============================

delta(epsilon) of 1,000 steps of DP-SGD, from ordinary deltas to 1e-38. The bounds are on both sides of the line and
closer than its width: below is the logarithm of their ratio.
"""

import matplotlib.pyplot as plt
import numpy as np

from fastpriv import PoissonSampledGaussian, compose

training = compose(PoissonSampledGaussian(sigma=1.0, rate=0.01), 1000)
epsilon = np.linspace(0.0, 12.0, 97)
log_delta = training.log_delta(epsilon)

figure, (curve, width) = plt.subplots(2, 1, sharex=True, height_ratios=[3, 1], layout="constrained")
curve.plot(epsilon, log_delta.value / np.log(10))
curve.set(ylabel="log10 delta", title="1,000 steps, sigma 1, rate 0.01")
width.plot(epsilon, 1e12 * (log_delta.upper - log_delta.lower))
width.set(xlabel="epsilon", ylabel="width / 1e-12", ylim=(0, None))
plt.show()
