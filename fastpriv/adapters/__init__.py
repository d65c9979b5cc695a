"""Ways to other packages and back: privacy loss distributions, lists of releases, mixtures.

``dp_accounting_pld`` discretises the privacy loss of any pair, also of a composition, for dp_accounting;
``composition_from_dp_events`` and ``composition_from_opacus`` read lists of releases. Accountants that other packages
call: ``CertifiedAccountant`` (dp_accounting, jax_privacy), ``adapters.opacus``, ``adapters.flower``, ``adapters.pfl``;
``riskcal_evaluator`` and ``opendp_privacy_profile`` are curves in the shapes of these packages.
Mixtures of scikit-learn and SciPy come in and go out. What another package is needed for, it is imported for when the
function is called.
"""

from ..base.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
