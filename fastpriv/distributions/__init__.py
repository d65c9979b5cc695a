"""Distributions: immutable values that the quantities take."""

from .mixtures import GaussianMixture
from .pmf import Pmf

__all__ = ["GaussianMixture", "Pmf"]
