"""Distributions: immutable values that the quantities take."""

from .densities import Density, LogRatio
from .mixtures import GaussianMixture
from .pmf import Pmf

__all__ = ["Density", "GaussianMixture", "LogRatio", "Pmf"]
