"""Panels of what noisy batch gradients reveal about the batch, over the noise; they take posteriors and an ``ax``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import ShapeError
from ..base.numerics import FloatArray
from .style import FAINT, INK, panel, shade

__all__ = ["batch_entropy", "membership"]

_LEAST_PROBABILITY = 1e-6  # the axis of probabilities ends here at the latest


@panel
def membership(sigma: ArrayLike, posteriors: Sequence[Any], batch: ArrayLike, ax: Any = None) -> Any:
    """Draw the posterior probability of each true member, and of the likeliest other record, over the noise.

    Parameters
    ----------
    sigma : array_like, shape (k,)
        Levels of noise.
    posteriors : sequence of Posterior, length k
        Posteriors over subsets, one a level.
    batch : array_like of int
        The true members.

    Raises
    ------
    ShapeError
        When there is not one posterior over subsets a level of noise.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import BatchGradient, figures, posterior
    >>> rng = np.random.default_rng(1)
    >>> steps = [BatchGradient.from_gradients(np.eye(9), 2, sigma) for sigma in (0.1, 1.0)]
    >>> seen = [posterior(step.column(step.sample([3, 7], rng=1))) for step in steps]
    >>> figures.membership([0.1, 1.0], seen, [3, 7]).get_ylabel()
    'posterior probability'
    """
    noise, ordered = _sorted_by_noise(sigma, posteriors)
    members = validate.integers("batch", batch, 0, ordered[0].inclusion.value.size - 1).reshape(-1).tolist()
    if not members:
        raise ShapeError("batch must have at least one member; got none. Pass the true members.")
    inclusion = np.array([posterior.inclusion.value for posterior in ordered])
    others = np.delete(inclusion, members, axis=1).max(axis=1, initial=0.0)
    for k, record in enumerate(members):
        colour = shade(k / max(1, len(members) - 1))
        ax.plot(noise, inclusion[:, record], "o-", ms=4, lw=1.8, color=colour, label=f"record {record}")
    ax.plot(noise, others, "s--", ms=3.5, lw=1.2, color=FAINT, label="likeliest other record")
    prior = len(members) / inclusion.shape[1]
    ax.axhline(prior, color=INK, lw=0.9, ls=":")
    ax.annotate(
        "before the release", (noise[0], prior), (0, -4), textcoords="offset points", va="top", fontsize=8.5, color=INK
    )
    least = max(_LEAST_PROBABILITY, 0.3 * min(prior, inclusion[:, members].min(), others.min()))
    ax.set(xscale="log", yscale="log", ylim=(least, 1.6), xlabel=r"noise $\sigma$", ylabel="posterior probability")
    ax.legend(frameon=False, fontsize=8.5, handlelength=1.8)
    return "Who was in the batch?"


@panel
def batch_entropy(sigma: ArrayLike, posteriors: Sequence[Any], ax: Any = None) -> Any:
    """Draw the entropy of the posterior over the batches, in bits, over the noise.

    Parameters
    ----------
    sigma : array_like, shape (k,)
        Levels of noise.
    posteriors : sequence of Posterior, length k
        One a level.

    Raises
    ------
    ShapeError
        When there is not one posterior over subsets a level of noise.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import BatchGradient, figures, posterior
    >>> step = BatchGradient.from_gradients(np.eye(9), 2, sigma=1.0)
    >>> seen = posterior(step.column(step.sample([3, 7], rng=1)))
    >>> figures.batch_entropy([1.0], [seen]).get_ylabel()
    'bits'
    """
    noise, ordered = _sorted_by_noise(sigma, posteriors)
    bits = [posterior.entropy.to("bits") for posterior in ordered]
    ax.plot(noise, [b.value for b in bits], "o-", ms=4, lw=1.8, color=shade(0.3))
    ax.fill_between(noise, [b.lower for b in bits], [b.upper for b in bits], color=shade(0.3), alpha=0.3, lw=0)
    most = math.log2(ordered[0].size)
    ax.axhline(most, color=INK, lw=0.9, ls=":")
    ax.annotate(f"before the release: {ordered[0].size:,} batches, {most:.2f} bits", (noise[0], most), (0, 4),
                textcoords="offset points", fontsize=8.5, color=INK)  # fmt: skip
    ax.set(xscale="log", ylim=(-0.03 * most, 1.12 * most), xlabel=r"noise $\sigma$", ylabel="bits")
    return "What is left to know of the batch"


def _sorted_by_noise(sigma: ArrayLike, posteriors: Sequence[Any]) -> tuple[FloatArray, list[Any]]:
    """Check the arguments and return them in the order of the noise."""
    noise = validate.vector("sigma", sigma, "positive and below 1e300", lambda x: (x > 0) & (x < 1e300))
    results = validate.sequence("posteriors", posteriors, "posteriors")
    if len(results) != noise.size or any(getattr(result, "inclusion", None) is None for result in results):
        raise ShapeError(
            f"posteriors must be one posterior over subsets for each of {noise.size} levels of noise; got "
            f"{len(results)}. Pass what posterior(step.column(release)) returned, in the order of sigma."
        )
    order = np.argsort(noise, kind="stable")
    return noise[order], [results[i] for i in order]
