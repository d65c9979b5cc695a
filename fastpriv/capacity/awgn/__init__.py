"""Noise on a secret in a ball (``ball``): ``settings`` of the solver and the proof, ``bounds`` beside them."""

from .ball import AwgnCapacity, awgn_capacity, awgn_sigma_from_capacity

__all__ = ["AwgnCapacity", "awgn_capacity", "awgn_sigma_from_capacity"]
