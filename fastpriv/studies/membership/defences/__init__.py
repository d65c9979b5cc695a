"""Defences: best responses to known attackers, exact equilibria of small games, trained generators, their judgement.

The public names stand in ``fastpriv.membership``.
"""
