"""One number a secret, in two passes over fixed blocks: ``streams`` runs, ``passes`` reads, ``rounding`` bounds,
``output`` writes.
"""
