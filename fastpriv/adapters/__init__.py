"""Ways to other packages and back: privacy loss distributions, trade-off curves, mixtures.

``dp_accounting_pld`` discretises the privacy loss of any pair of distributions for dp_accounting, ``PldCurve`` reads
one of its distributions, and ``composed_delta`` and ``composed_hockey_stick_divergence`` compose with every rounding
accounted for. ``trade_off_curve`` has the errors of tests. Mixtures of scikit-learn and SciPy come in and go out.
What another package is needed for, it is imported for when the function is called.
"""

from __future__ import annotations

from .._public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
