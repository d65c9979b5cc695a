"""
Attacks on memberships
======================

Frequencies of 20 attributes of five people out of ten are released with noise. Two attacks say who was in; the band is
of both rates, at all thresholds, with confidence 0.95.
"""

import matplotlib.pyplot as plt
import numpy as np

from fastpriv import datasets
from fastpriv.membership import (
    BayesAttacker,
    FixedSizeMembership,
    FixedThresholdLRT,
    FrequencyRelease,
    GaussianNoise,
    Panel,
    roc_curve,
)

genotypes = Panel(**datasets.genotypes())
columns = np.flatnonzero((genotypes.frequencies() > 0.2) & (genotypes.frequencies() < 0.8))[:400:20]
pool = genotypes.select(people=np.arange(0, 1000, 100), attributes=columns)
others = genotypes.select(people=np.arange(1, 1000, 5), attributes=columns)
model = FrequencyRelease(pool, FixedSizeMembership(5), GaussianNoise(0.2))
simulated, grid = model.simulate(1000, rng=1), np.linspace(0.0, 1.0, 101)

figure, ax = plt.subplots(figsize=(5, 5), layout="constrained")
ax.plot([0, 1], [0, 1], ":", color="grey")
attackers = {"exact posterior": BayesAttacker(model), "likelihood ratio": FixedThresholdLRT(pool, others)}
for name, attacker in attackers.items():
    curve = roc_curve(attacker.scores(simulated.released), simulated.membership)
    (line,) = ax.plot(curve.fpr.value, curve.tpr.value, drawstyle="steps-post", label=name)
    lower = [curve.tpr.lower[curve.fpr.upper <= x].max(initial=0.0) for x in grid]
    upper = [curve.tpr.upper[curve.fpr.lower >= x].min(initial=1.0) for x in grid]
    ax.fill_between(grid, lower, upper, color=line.get_color(), alpha=0.15, lw=0)
ax.set(xlabel="false positive rate", ylabel="true positive rate", title="Who was in?", aspect="equal")
ax.legend(loc="lower right")
plt.show()
