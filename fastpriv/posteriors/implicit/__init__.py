"""Posteriors over domains that are never written out.

``defaults`` are one number for all secrets but a few, ``products`` tuples (``overlaps``: their Jensen-Shannon
divergence), ``indices`` functions of the secret's number, swept, bounded by ``branching`` or sampled by ``drawing``;
``balls`` are numbers with a radius, ``laws`` groups of secrets that are alike.
"""
