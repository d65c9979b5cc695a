"""Divergences between distributions: exact or certified where possible, otherwise sampled with a confidence interval.

Methods, tried in this order
----------------------------
1. Distributions in one dimension: closed forms, quadrature, monotone pieces; ``exact`` or ``certified``.
2. Mixtures in d dimensions whose quantities are those of one-dimensional ones (equal distributions, one Gaussian each,
   collinear means with one covariance, products of one-dimensional factors): the same, with the rounding of the
   reduction in the bounds.
3. Everything else, and every user-defined density: sampling; ``statistical``.

docs/divergences.md in the repository has the whole table, and what each method costs.

Sampling
--------
``fastpriv.sampling.Sampling`` documents the options of a sampled call; every function here takes one as ``sampling=``,
and its
fields by name. The level holds at whatever moment the run stops; ``cost["stopped"]`` says why it did (a log ratio
without bound that is the same at all of 131072 samples or more ends a run that has a target: "constant"), and
``cost["repeatable"]`` is False where the clock or an interruption had a say. In one dimension a bracket is what was
proved when ``max_seconds`` were over. ``method="direct plain"`` is textbook Monte Carlo. ``interval="guaranteed"``
gives the KL or Renyi divergence of user-defined densities an infinite upper end, since nothing bounds their log ratio;
a warning says so.

An interruption (Ctrl-C) raises KeyboardInterrupt; its attribute ``best`` carries the answer that was reached, if there
was one.
"""

from ..base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
