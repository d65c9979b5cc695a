"""
Digits from a gradient
======================

Four digits are a batch; their gradient is shared, with noise. What gradient matching reconstructs of them: the update
hides less than it seems to.
"""

import matplotlib.pyplot as plt

from fastpriv import datasets
from fastpriv.leakage import GradientMatching, Protection, SoftmaxRegression, Training

pixels, labels = datasets.digits()
batch, classes = pixels[[1, 2, 3, 4]] / 16, labels[[1, 2, 3, 4]]
model = SoftmaxRegression(64, 10)
rows = {"the batch": batch}
for scale in (0.0, 0.01, 0.05):
    protection = Protection(noise="gaussian", scale=scale) if scale else Protection()
    training = Training(model, rounds=1, learning_rate=0.1, batch="full", protection=protection)
    update = training.run(batch, classes, rng=1)
    rows[f"noise {scale:g}"] = GradientMatching().reconstruct(update, rng=1).records

figure, axes = plt.subplots(len(rows), 4, figsize=(4, 4.4), layout="constrained")
for line, (name, pictures) in zip(axes, rows.items(), strict=True):
    for ax, picture in zip(line, pictures, strict=True):
        ax.imshow(picture.reshape(8, 8), cmap="Greys", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)
plt.show()
