"""Divergences between distributions: exact or certified where that can be, sampled with an honest interval where not.

Methods, tried in this order
----------------------------
1. Distributions in one dimension: closed forms, quadrature, monotone pieces; ``exact`` or ``certified``.
2. Mixtures in d dimensions that are laws on the line in disguise (equal, one normal each, collinear means under one
   covariance, a product with factors on the line): the same, with the rounding of the map in the bounds.
3. Everything else, and every density only its owner knows: sampling; ``statistical``.

CAPABILITIES.md at the root of the repository has the whole table, and what each way costs.

Sampling
--------
``fastpriv.Sampling`` documents the options of a sampled call; every function here takes one as ``sampling=``, and its
fields by name. The level holds at whatever moment the run stops; ``cost["stopped"]`` says why it did (a log ratio
without bound that is the same at all of 131072 samples or more ends a run that has a target: "constant"), and
``cost["repeatable"]`` is False where the clock or an interruption had a say. In one dimension a bracket is what was
proved when ``max_seconds`` were over. ``method="direct plain"`` is textbook Monte Carlo. ``interval="guaranteed"``
gives the KL or Renyi divergence of densities of your own an infinite upper end, since nothing bounds their log ratio;
a warning says so.

An interruption (Ctrl-C) raises KeyboardInterrupt; its attribute ``best`` carries the answer that was reached, if there
was one.
"""

__all__: list[str] = []  # the functions are names of fastpriv itself
