"""Certified estimation for privacy: divergences, capacities, posteriors and privacy notions, each with its bounds.

Every answer is an ``Estimate``: ``value``, ``lower`` and ``upper`` bound, ``kind`` of the bounds, ``unit``, ``method``.

>>> import fastpriv

What does the release of a column with noise leak? ``assess`` makes tables, files and figures.

>>> report = fastpriv.assess([1, 2, 2, 3], sigma=[1.0], epsilon=[0.5])
>>> print(report["mutual_information"])
Estimate([0.2...

What is a quantity over a grid of settings? ``sweep`` tabulates a million of them, and goes on where it was killed.

>>> fastpriv.sweep("bac_capacity", grid={"a": [0.1, 0.2], "b": "0:0.5:6"})
<SweepTable of capacity.bac_capacity: 12 cells, a x b>

What does a channel leak, by every notion? ``notions`` has LDP, LIP, MBP, ABP, information, leakage and accuracy;
``mechanisms`` has the channels and noises that people use.

>>> result = fastpriv.notions.summary([0.5, 0.5], fastpriv.RandomizedResponse(2, 1.0))
>>> print(f"{result.cd_lmip:.3f}")
0.111 [0.110, 0.111]

What does one release tell about the secret? ``posterior`` takes likelihoods over up to 2**200 secrets.

>>> fastpriv.posterior([0.0, -1.0, -2.0]).map_index
0

How far apart are two distributions? ``kl_divergence``, ``hockey_stick_divergence``, ``renyi_divergence``, ``entropy``.

>>> p, q = fastpriv.GaussianMixture.single(0.0, 1.0), fastpriv.GaussianMixture.single(1.0, 1.0)
>>> print(f"{fastpriv.kl_divergence(p, q):.3f}")
0.500 [0.499, 0.501]

What does one notion promise in terms of another? ``conversions`` has all of them with their sources.

>>> fastpriv.conversions.mbp_from_ldp(1.0, 0.25).upper
0.827988939242...

How much can noise leak at most? ``awgn_capacity``, ``channel_capacity``, ``gaussian_game``. ``calibration`` has the
noise that meets a target.

>>> print(f"{fastpriv.awgn_capacity(1, 1.0, sigma=2.0):.4f}")
0.1114 [0.1114, 0.1115]

``figures`` draws any of these, ``datasets`` holds real data, ``special`` has elementary functions as ufuncs.
``help(fastpriv.kl_divergence)`` documents one function; ``dir(fastpriv)`` lists all names.
"""

from __future__ import annotations

import sys as _sys
from typing import Any as _Any

from .base import old_addresses as _old_addresses
from .base.public_names import attach as _attach
from .base.version import VERSION as _VERSION

__version__ = _VERSION

_old_addresses.install()
_load, __dir__, _names = _attach(__name__, __file__)  # the list of names is __init__.pyi


def __getattr__(name: str) -> _Any:
    """Load a public name on first use; ``__all__`` lists them for ``from fastpriv import *``."""
    if f"{__name__}.{name}" in _old_addresses.PRESENT:
        return _old_addresses.module(name)
    if name != "__all__":
        return _load(name) if name in _names else _old_addresses.formerly_at_the_top(name)
    # With __all__, help(fastpriv) would print every docstring in full; without it, pydoc prints the page above.
    if _sys._getframe(1).f_globals.get("__name__") == "pydoc":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return list(_names)
