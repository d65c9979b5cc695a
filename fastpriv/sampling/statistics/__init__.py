"""Intervals, bounds of streams, tails and checks: what samples prove."""
