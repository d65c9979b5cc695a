"""The public names of the package: those that ``dir`` shows. Rooms of ``studies`` have addresses of their own."""

from types import ModuleType

import fastpriv

__all__ = ["NAMES", "ROOMS"]

_SHOWN = [name for name in dir(fastpriv) if not name.startswith("__")]
ROOMS = {name: one for name in _SHOWN if name != "studies" and isinstance(one := getattr(fastpriv, name), ModuleType)}
NAMES = [name for name in _SHOWN if name not in ROOMS and name != "studies"]
