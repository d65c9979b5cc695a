"""Defences: best responses to known attackers, exact equilibria of small games, finite defences, their evaluation.

The public names stand in ``fastpriv.membership``.
"""
