"""
What shuffling gains
====================

n reports, each with a local epsilon of 2, are mixed before anybody sees them. The central epsilon at delta = 1e-6 falls
with the root of n, whatever the randomiser is.
"""

import matplotlib.pyplot as plt
import numpy as np

from fastpriv import compose
from fastpriv.pairs import Shuffled

n = np.array([100, 300, 1000, 3000, 10_000, 30_000])
epsilon = [compose(Shuffled(2.0, int(k))).epsilon(1e-6).upper for k in n]

figure, ax = plt.subplots(layout="constrained")
ax.loglog(n, epsilon, "o-", label="any randomiser, proved")
ax.loglog(n, epsilon[-1] * np.sqrt(n[-1] / n), ":", color="grey", label="1 / root of n")
ax.axhline(2.0, color="tab:red", lw=1, label="without shuffling")
ax.set(xlabel="reports", ylabel="epsilon at delta = 1e-6", title="Reports of local epsilon 2, shuffled")
ax.set_yticks([0.1, 0.2, 0.5, 1, 2], ["0.1", "0.2", "0.5", "1", "2"])
ax.minorticks_off()
ax.legend()
plt.show()
