"""Estimation by sampling: points, proposals, the engine, intervals."""

from .options import Sampling

__all__ = ["Sampling"]
