"""
A printed curve and the truth
=============================

Equation (13) of a paper says what delta of local information privacy follows from 0.1 bit of mutual information. The
Gaussian mechanism of the paper's own figure 3 leaks 0.1 bit and lies above it: the errata page has the right form.
"""

import matplotlib.pyplot as plt
import numpy as np

import fastpriv as fp

x = np.linspace(-1.0, 1.0, 21)
prior = fp.Pmf(x, np.exp(-2 * x**2) / np.exp(-2 * x**2).sum())
noise = fp.GaussianMechanism(fp.calibration.sigma_from_cd_lmip(0.1, prior, unit="bits").upper)
epsilon = np.geomspace(0.05, 3.0, 60)
printed = fp.conversions.lip_delta_from_cd_lmip(0.1, epsilon, form="as_published", unit="bits")

figure, ax = plt.subplots(layout="constrained")
ax.semilogx(epsilon, fp.notions.lip_delta(prior, noise, epsilon).lower, label="Gaussian noise, 0.1 bit, certified")
ax.semilogx(epsilon, printed.upper, "--", label="equation (13), as printed")
ax.set(xlabel="epsilon", ylabel="delta", title="Local information privacy from mutual information")
ax.set_xticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
ax.legend()
plt.show()
