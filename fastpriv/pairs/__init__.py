"""Kinds of dominating pairs, each one class with the members that the engines of ``composition`` ask for.

How a kind is added
1. One class in one file here, a frozen dataclass derived from ``DominatingPair`` (``protocol.py``): the parameters and
   ``count`` as fields, by which equal pairs are grouped; ``curve(epsilon)``, the certified delta of one release, or
   ``log_delta``; and ``reversed()``, the pair of Q against P. Everything else has a default that rests on these two:
   such a pair is composed on a grid of losses.
2. Where more is known, the class says so by overriding a member: ``renyi_divergence``, ``largest_loss`` and
   ``losses_are_finite`` or ``infinite_mass``, ``add_to_contour`` with ``has_moments`` for sums along a contour,
   ``mixtures``, ``atoms``, ``laplace`` or ``grid_losses`` for engines of these forms.
3. A line in ``_READERS`` of ``readers.py``: what a caller passes, and the function that makes the pair of it.
"""

from ..base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
