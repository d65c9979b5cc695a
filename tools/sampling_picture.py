"""Draws docs/sampling.png: delta of an epoch of 8 steps under nine ways of sampling, with the bounds of each.

``python tools/sampling_picture.py`` needs matplotlib and takes minutes. 64 records, batches of 8, noise of sigma 2.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from fastpriv import GaussianMechanism, compose, figures
from fastpriv.base.files import write_picture
from fastpriv.composition import RandomAllocation
from fastpriv.pairs import (
    CyclicPoissonSampled,
    FixedSizeSampled,
    PoissonSampled,
    SeparatedSampled,
    ShuffledBatches,
    TruncatedPoissonSampled,
)

STEPS, SIZE, SAMPLE = 8, 64, 8
RATE, CAP = SAMPLE / SIZE, 12
NOISE = GaussianMechanism(2.0, 1.0)
EPSILON = np.linspace(0.0, 4.0, 25)
LEAST_DELTA = 1e-12
FILE = Path(__file__).parents[1] / "docs" / "sampling.png"


def main() -> None:
    """Compute the curves, and draw them."""
    schemes = {
        "8 of 64, add or remove": compose(FixedSizeSampled(NOISE, SIZE, SAMPLE), STEPS),
        "shuffled batches, replace one": compose(ShuffledBatches(NOISE, STEPS)),
        "shuffled batches, zero out": compose(ShuffledBatches(NOISE, STEPS, relation="zero_out")),
        "Poisson, replace one": compose(PoissonSampled(NOISE, RATE, "replace_one"), STEPS),
        "Poisson, at most 12, add or remove": compose(TruncatedPoissonSampled(NOISE, SIZE, RATE, CAP), STEPS),
        "2 subsets in turn, add or remove": compose(CyclicPoissonSampled([1.0], NOISE.sigma, STEPS, 0.25, 2)),
        "2 steps apart, add or remove": compose(SeparatedSampled([1.0], NOISE.sigma, STEPS, 1.0 / 7.0, 2)),
        "Poisson, add or remove": compose(PoissonSampled(NOISE, RATE), STEPS),
        "allocation, add or remove": compose(RandomAllocation(NOISE.sigma, STEPS)),
    }
    curves = [scheme.log_delta(EPSILON) for scheme in schemes.values()]
    title = "Eight steps, 64 records, batches of 8, sigma 2"
    figure = Figure(figsize=(9.5, 5.4), layout="constrained")
    ax = figures.profile(curves, EPSILON, labels=list(schemes), title=title, ax=figure.add_subplot())
    ax.set_ylim(LEAST_DELTA, 1.0)
    write_picture(FILE, figure, 110)


if __name__ == "__main__":
    main()
