"""Likelihoods of one release over a domain of any size: the ``kinds`` there are, ``sources`` of written ones, those of
``subsets`` of a pool with their ``combinations`` in order.
"""
