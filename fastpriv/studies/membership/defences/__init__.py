"""Defences: best responses to known attackers, exact equilibria of small games, trained generators, their evaluation.

The public names stand in ``fastpriv.membership``.
"""
