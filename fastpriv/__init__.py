"""fastpriv: a fast, certified estimation engine for privacy. Every number comes with its bounds.

``assess``, ``sweep``          what releasing a column with noise leaks: tables, files, figures
``Channel``, ...               channels over finite domains, written out or known by parameters
``notions``                    LDP, LIP, MBP, ABP, information, leakage, PAC accuracy; ``notions.summary`` has all
``posterior``, ...             what one release does to beliefs; its likelihoods, ``BatchGradient``
``kl_divergence``, ...         divergences of ``GaussianMixture`` and ``Density``
``conversions``                one notion from another: ``conversions.convert``
``channel_capacity``, ...      what a channel or noise leaks at most: ``awgn_capacity``, ``gaussian_game``
``calibration``                the noise that meets a target
``figures``, ``datasets``      pictures, real data
``special``                    elementary functions as ufuncs
``Estimate``                   what every number is: ``value``, ``lower``, ``upper``, ``kind``, ``unit``
"""

from __future__ import annotations

from ._public import attach

__version__ = "0.3.0"

__getattr__, __dir__, __all__ = attach(__name__, __file__)  # the list is __init__.pyi
