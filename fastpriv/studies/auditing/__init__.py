"""Audits: lower bounds on epsilon, delta, mu or any other parameter of a mechanism, from what attacks on it achieved.

``RepeatedRuns`` and ``OneRun`` hold the outcomes of an attack, ``audit_scores`` makes them of scores.
``audit_epsilon``, ``audit_delta`` and ``audit_gaussian_dp`` return estimates whose ``lower`` is excluded at a
confidence level, ``audit_p_value`` says whether the outcomes contradict one claim.
"""

from ...base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
