"""
A record added, or removed
==========================

Two data sets have two directions, and from two sampled releases on either may lose more. Accountants that compute
removal alone are below the truth where the line of addition is above.
"""

import matplotlib.pyplot as plt
import numpy as np

from fastpriv import compose

# Randomised response, 3 to 1, of Poisson samples at rate 1/2, twice.
steps = compose(([0.5, 0.5], [0.25, 0.75]), 2)
epsilon = np.linspace(0.0, 0.9, 181)

figure, ax = plt.subplots(layout="constrained")
for direction, name in (("forward", "removed"), ("backward", "added")):
    ax.plot(epsilon, steps.delta(epsilon, direction=direction).value, label=f"a record is {name}")
ax.set(xlabel="epsilon", ylabel="delta", title="Two answers by randomised response, sampled at rate 1/2")
ax.legend()
plt.show()
