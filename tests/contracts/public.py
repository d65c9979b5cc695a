"""The public names of the package: those that ``dir`` shows."""

from types import ModuleType

import fastpriv

__all__ = ["NAMES", "ROOMS"]

_SHOWN = [name for name in dir(fastpriv) if not name.startswith("__")]
ROOMS = {name: one for name in _SHOWN if isinstance(one := getattr(fastpriv, name), ModuleType)}
NAMES = [name for name in _SHOWN if name not in ROOMS]
