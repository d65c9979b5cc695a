"""Estimation by sampling: points, proposals, the engine, intervals."""

from .options import Sampling

__all__ = ["Sampling"]


def __dir__() -> list[str]:
    return sorted(__all__)
