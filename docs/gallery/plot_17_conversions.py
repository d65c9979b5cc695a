"""
A map of conversions
====================

Which notion promises something in terms of which other one, in one step. A dark field is a tight conversion: no smaller
number follows.
"""

import matplotlib.pyplot as plt
import numpy as np

from fastpriv.conversions import CONVERSIONS

rank = {"as_published": 1, "bound": 2, "tight": 3}
best = {}
for one in CONVERSIONS:
    if one.holds:
        key = one.source, one.target
        best[key] = max(best.get(key, 0), rank[one.form])
sources, targets = (sorted({key[k] for key in best}) for k in (0, 1))
table = np.array([[best.get((source, target), 0) for target in targets] for source in sources])

figure, ax = plt.subplots(figsize=(8, 7), layout="constrained")
ax.imshow(table, cmap="Blues", vmin=0, vmax=3)
ax.set_xticks(range(len(targets)), targets, rotation=60, ha="right")
ax.set_yticks(range(len(sources)), sources)
ax.set(xlabel="promises", ylabel="who has", title=f"{len(best)} conversions: tight (dark), bound, as published (light)")
plt.show()
