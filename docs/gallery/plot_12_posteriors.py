"""
Posteriors that shrink
======================

One of 21 values is released with Gaussian noise, again and again. The posterior narrows around it; its entropy falls by
the information of the releases.
"""

import matplotlib.pyplot as plt
import numpy as np

from fastpriv import posterior

values, truth, sigma = np.linspace(-1.0, 1.0, 21), 0.3, 0.6
releases = truth + sigma * np.random.default_rng(4).normal(size=64)
log_likelihood = -0.5 * ((releases[:, None] - values) / sigma) ** 2

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
entropies, counts = [], [1, 2, 4, 8, 16, 32, 64]
for k in counts:
    after = posterior(log_likelihood[:k].sum(axis=0), np.full(21, 1 / 21))
    entropies.append(after.entropy.value)
    if k in (1, 8, 64):
        left.plot(values, after.probabilities(), ".-", label=f"{k} release{'s' * (k > 1)}")
left.axvline(truth, color="grey", ls=":")
left.set(xlabel="value", ylabel="probability")
left.legend()
right.semilogx(counts, entropies, "o-")
right.axhline(np.log(21), color="grey", ls=":")
right.set(xlabel="releases", ylabel="entropy of the posterior, nats", xticks=counts, xticklabels=counts)
right.minorticks_off()
plt.show()
