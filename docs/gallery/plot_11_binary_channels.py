"""
Binary channels
===============

Capacity of the binary channel whose two error rates are on the axes. It is 0 where the rows are equal; the largest
leakage for a given error rate of one side is in the corners.
"""

import matplotlib.pyplot as plt
import numpy as np

from fastpriv import bac_capacity

rate = np.linspace(0.0, 1.0, 101)
bits = bac_capacity(rate[:, None], rate, unit="bits").value

figure, ax = plt.subplots(figsize=(5.6, 4.8), layout="constrained")
levels = ax.contourf(rate, rate, bits, np.linspace(0, 1, 11))
ax.set(xlabel="errors from 1", ylabel="errors from 0", title="Capacity of binary channels", aspect="equal")
figure.colorbar(levels, label="bits")
plt.show()
