"""Channels of finitely many releases: ``discrete`` is the call, ``interior`` the method that solves, ``structured``
closed forms.
"""
