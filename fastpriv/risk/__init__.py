"""The risk of being told apart: errors of tests, advantages, and the order of mechanisms.

``trade_off_curve`` has the least error of the second kind for each error of the first kind, ``true_positive_rate`` and
``reconstruction_robustness`` the largest power, ``advantage`` and ``bayes_risk`` what the best test attains,
``membership_advantage_bound`` what (epsilon, delta) promises, ``privacy_profile`` delta at every real epsilon.
``compare_mechanisms`` proves that one mechanism is at least as private as another, or gives the epsilon, the test and
the prior for which it is not. ``gaussian_dp_fit`` finds the least mu of Gaussian privacy, ``trade_off_excess`` how far
a given trade-off function fails. Pairs may be compositions, the output of ``compose``.
"""

from __future__ import annotations

from .._public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
