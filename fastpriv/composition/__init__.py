"""Compositions of private releases: delta and epsilon after many steps, with proved bounds on both sides.

Pairs of distributions are read by ``pairs``; privacy losses on grids, and their tilted transforms, bound the curve of
any composition.
"""
