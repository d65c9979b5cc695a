"""Divergences between distributions: exact or certified where that can be, sampled with an honest interval where not.

Ways, tried in this order
-------------------------
1. Laws on the line: closed forms, quadrature, monotone pieces; ``exact`` or ``certified``.
2. Mixtures in d dimensions that are laws on the line in disguise (equal, one normal each, collinear means under one
   covariance, a product with factors on the line): the same, with the rounding of the map in the bounds.
3. Everything else, and every density only its owner knows: sampling; ``statistical``.

CAPABILITIES.md at the root of the repository has the whole table, and what each way costs.

Keywords of sampling
--------------------
confidence : float, default 0.95
    Level of the interval.
side : {"both", "lower", "upper"}
    With "upper" (a guarantee) or "lower" (an attack) all of the error is spent on that bound, and the other is trivial.
rtol, atol : float, default 1e-3 and 0
    The run stops when half the width is at most max(atol, rtol * abs(value)); one-sided, the distance from the value to
    the bound. Logarithms of probabilities take rtol as the relative accuracy of the probability, entropies relative to
    max(1, abs(value)). Both 0 spend the whole budget. The level holds at whatever moment the run stops.
max_samples, max_seconds : default 1e8 and 60
    The budget; the time includes the search for a law to sample. Where it ends first, the interval is wider, and
    ``cost["stopped"]`` says so; on the line the bracket is then what was proved by that time. A log ratio without
    bound that is the same at all of 131072 samples or more ends a run that has a target: "constant".
method : str
    "auto", or words that force the way: the law of the samples ("direct": P; "balanced": (P + Q)/2; "tilted": a law
    whose density bounds the integrand), the points ("sobol", "antithetic", "random": all stratified by component;
    "plain": neither). ``method="direct plain"`` is textbook Monte Carlo. What is left open a pilot picks. Any word but
    "auto" samples, also where the first two ways apply.
interval : {"replicates", "guaranteed"}
    Student's t over independent replicates, or bounds that hold for every number of samples and at every moment, proved
    from the known range (or exponential moments) of the integrand and about twice as wide. Where nothing bounds the log
    ratio, as for densities of your own, the upper end of a KL or Renyi divergence is infinite, and a warning says so.
rng : None, int, sequence of int, SeedSequence, Generator or BitGenerator
    The seed. The same seed gives the same bits for any ``n_jobs`` and backend, unless the clock or an
    interruption had a say: then ``cost["repeatable"]`` is False.
n_jobs : int, optional
    Threads; None means what ``joblib.parallel_config`` says.
progress : bool or callable, optional
    Shows, or calls with, the pieces done and their number, stage by stage.

An interruption (Ctrl-C) raises KeyboardInterrupt; its attribute ``best`` carries the answer that was reached, if there
was one.
"""

from .._public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
