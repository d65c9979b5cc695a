"""Gaussian signals in Gaussian noise: their ``information``, the ``game`` between them, and how power is ``filling``
up; ``covariances`` and ``determinants`` as they are given.
"""
