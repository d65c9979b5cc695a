"""
What an audit proves
====================

Scores of 2,000 members and non-members of a Gaussian mechanism. Each threshold gives a lower bound of epsilon that
holds for it alone; the line has paid for the choice among all of them, and stays below the truth.
"""

import matplotlib.pyplot as plt
import numpy as np

from fastpriv import GaussianMechanism, figures
from fastpriv.auditing import audit_scores

member = np.arange(2000) % 2 == 0
scores = np.random.default_rng(1).normal(size=2000) + member
truth = GaussianMechanism(1.0, sensitivity=1.0).epsilon(1e-2).upper

figure, ax = plt.subplots(layout="constrained")
figures.audit(audit_scores(scores, member, delta=1e-2), truth=truth, ax=ax)
plt.show()
