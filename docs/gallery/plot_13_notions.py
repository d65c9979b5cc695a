"""
One channel by several notions
==============================

Randomised response among ten values, with a uniform prior: what a release says by five notions, over the local epsilon.
Each bounds another loss, and none replaces another.
"""

import matplotlib.pyplot as plt
import numpy as np

from fastpriv import RandomizedResponse, notions

epsilon, prior = np.linspace(0.1, 6.0, 25), np.full(10, 0.1)
names = {
    "mutual information / log 10": lambda c: notions.cd_lmip(prior, c).value / np.log(10),
    "average Bayesian privacy / 0.8326": lambda c: notions.abp(prior, c).maximum.value / np.sqrt(np.log(2)),
    "chance that the best guess is right": lambda c: notions.bayes_vulnerability(prior, c).value,
    "LDP delta at epsilon = 1": lambda c: notions.ldp_delta(prior, c, 1.0).value,
    "MBP / log 10": lambda c: notions.mbp(prior, c).plus.value / np.log(10),
}
channels = [RandomizedResponse(10, e) for e in epsilon]

figure, ax = plt.subplots(layout="constrained")
for name, notion in names.items():
    ax.plot(epsilon, [notion(channel) for channel in channels], label=name)
ax.set(xlabel="local epsilon", ylabel="share of its largest value", title="Randomised response among ten values")
ax.legend()
plt.show()
