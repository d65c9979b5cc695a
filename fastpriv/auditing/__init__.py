"""Audits: lower bounds on epsilon, delta, mu or any other parameter of a mechanism, from what attacks on it achieved.

``RepeatedRuns`` and ``OneRun`` hold the outcomes of an attack, ``audit_scores`` makes them of scores.
``epsilon_lower_bound``, ``delta_lower_bound`` and ``gaussian_dp_lower_bound`` say what is excluded at a confidence
level, ``audit_p_value`` whether the outcomes contradict one claim, ``parameter_bound`` which members of a family of
mechanisms they exclude.
"""

from __future__ import annotations

from .._public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
