"""Sweeps: one quantity over a table of settings, in a store that survives anything."""
