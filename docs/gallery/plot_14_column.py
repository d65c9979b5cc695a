"""
A column of ages
================

What one noisy release of a real age tells, over the noise. The README's first command draws this and more.
"""

import matplotlib.pyplot as plt
import numpy as np

import fastpriv

ages = fastpriv.studies.datasets.adult("age")
report = fastpriv.assess(ages, sigma=np.geomspace(1, 1000, 25), epsilon=[1.0], name="age")
bits, lip, ldp = (report[name] for name in ("mutual_information", "lip_delta", "ldp_delta"))

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
left.loglog(report.sigma, bits.to("bits").upper)
left.set(xlabel="sigma, years", ylabel="bits", title="Mutual information")
right.loglog(report.sigma, ldp.upper[:, 0], label="LDP")
right.loglog(report.sigma, lip.upper[:, 0], label="LIP")
right.set(xlabel="sigma, years", ylabel="delta at epsilon = 1", ylim=(1e-12, 2), title="Worst value")
right.legend()
plt.show()
