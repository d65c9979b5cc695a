"""Divergences between distributions."""
